// Answers beside their sources: which piece came from where, and how likely it is without a source.
const kept = JSON.parse(document.getElementById("kept").textContent);
const at = (selector) => document.querySelector(selector);
const answers = at("select[name=answer]"), methods = at("select[name=method]");
let piece = null, removed = null;

function made(name, properties = {}, ...children) {
  const element = document.createElement(name);
  for (const [key, value] of Object.entries(properties)) {
    if (key === "text") element.textContent = value;
    else element.setAttribute(key, value);
  }
  element.append(...children);
  return element;
}

const current = () => kept.answers[Number(answers.value)];
const sum = (numbers) => numbers.reduce((a, b) => a + b, 0);

/** A probability of any size, from its logarithm. */
function probability(log) {
  const value = Math.exp(log);
  if (value >= 0.001) return value.toPrecision(3);
  const power = Math.floor(log / Math.LN10);
  const raised = String(power).replace(/./g, (sign) => (sign === "-" ? "⁻" : "⁰¹²³⁴⁵⁶⁷⁸⁹"[Number(sign)]));
  return `${Math.pow(10, log / Math.LN10 - power).toFixed(1)} · 10${raised}`;
}

/** What the explanation says of each source: of one piece of the answer where it can, else of all. */
function importance() {
  const one = current(), method = methods.value;
  if (method === kept.oracle) {
    const of = (said) => (piece === null ? sum(said) : said[piece]);
    return one.without.map((said) => of(one.said) - of(said));
  }
  if (piece !== null && one.tokens[method]) return one.tokens[method][piece];
  return one.scores[method];
}

function show() {
  const one = current(), values = importance(), largest = Math.max(...values.map(Math.abs), 1e-30);
  const byPiece = methods.value === kept.oracle || Boolean(one.tokens[methods.value]);
  at(".asked").textContent = one.question;
  at(".label").textContent = one.is_given ? "Answer (given)" : "Answer (the model's own)";
  at(".pieces").replaceChildren(...one.pieces.map((text, place) => {
    const button = made("button", { type: "button", "aria-pressed": String(piece === place), text: text.trim() === "" ? "␣" : text });
    button.addEventListener("click", () => { piece = piece === place ? null : place; show(); });
    return button;
  }));
  const now = removed === null ? one.said : one.without[removed];
  const of = (said) => (piece === null ? sum(said) : said[piece]);
  const what = piece === null ? "the answer" : `“${one.pieces[piece].trim()}”`;
  const lines = [made("b", { text: `p = ${probability(of(now))}` }),
    made("span", { text: removed === null ? `${what}, with all sources` : `${what}, without source ${removed + 1}; ${probability(of(one.said))} with it` })];
  if (piece !== null && !byPiece) lines.push(made("p", { class: "soft", text: "This explanation is of the whole answer, not of its pieces." }));
  at(".told").replaceChildren(...lines);
  at(".sources").replaceChildren(...one.sources.map((source, place) => {
    const name = `${place + 1}${source.title ? ` · ${source.title}` : ""}${source.evidence ? " · evidence" : ""}`;
    const button = made("button", { type: "button", class: `source${source.evidence ? " known" : ""}${values[place] < 0 ? " less" : ""}`, "aria-pressed": String(removed === place) },
      made("span", { class: "line" }, made("span", { text: name }), made("span", { text: values[place].toPrecision(2).replace("-", "−") })),
      made("span", { class: "text", text: source.text }));
    button.style.setProperty("--w", String(Math.abs(values[place]) / largest));
    button.addEventListener("click", () => { removed = removed === place ? null : place; show(); });
    return button;
  }));
}

if (kept.answers.length) {
  kept.answers.forEach((one, place) => answers.append(made("option", { value: String(place), text: `${one.question.slice(0, 80)} → ${one.pieces.join("").trim()}` })));
  Object.keys(kept.answers[0].scores).forEach((name) => methods.append(made("option", { value: name, text: name })));
  methods.value = methods.dataset.first;
  answers.addEventListener("change", () => { piece = removed = null; show(); });
  methods.addEventListener("change", show);
  at("button[name=whole]").addEventListener("click", () => { piece = removed = null; show(); });
  show();
}
