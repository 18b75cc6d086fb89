// The page of all claims: filters, and what a verdict shows when it is opened.
const cells = JSON.parse(document.getElementById("cells").textContent);
const dialog = document.querySelector("dialog");
const form = document.querySelector(".filters");

/** An element with text and children; all text is set as text, never as markup. */
function made(name, properties = {}, ...children) {
  const element = document.createElement(name);
  for (const [key, value] of Object.entries(properties)) {
    if (key === "text") element.textContent = value;
    else element.setAttribute(key, value);
  }
  element.append(...children);
  return element;
}

/** A number as a table shows it. */
function short(number) {
  if (number === null) return "–";
  const size = Math.abs(number);
  const text = size !== 0 && (size < 0.001 || size >= 1e5) ? number.toExponential(1) : String(Number(number.toPrecision(3)));
  return text.replaceAll("-", "−");
}

const ends = (interval) => (interval ? `[${interval.map(short).join(", ")}]` : "no interval");

/** Numbers from `from` to `to` as places on a line of 192. */
function scaleOf(parts) {
  const numbers = parts.flatMap((part) => [part.ours, ...(part.interval ?? []), ...part.allowed]).filter((one) => one !== null);
  const low = Math.min(...numbers), high = Math.max(...numbers);
  const margin = (high - low || Math.abs(high) || 1) * 0.08;
  return (number) => (192 * (number - low + margin)) / (high - low + 2 * margin);
}

/** The interval on a line, what the claim allows shaded behind it. */
function drawn(part, place) {
  const svg = document.createElementNS("http://www.w3.org/2000/svg", "svg");
  svg.setAttribute("viewBox", "0 0 192 20");
  svg.setAttribute("aria-hidden", "true");
  const add = (name, properties) => {
    const element = document.createElementNS(svg.namespaceURI, name);
    for (const [key, value] of Object.entries(properties)) element.setAttribute(key, value);
    svg.append(element);
  };
  const [low, high] = part.allowed;
  if (low !== null || high !== null) {
    const left = low === null ? 0 : place(low), right = high === null ? 192 : place(high);
    add("rect", { class: "allowed", x: left, y: 0, width: Math.max(right - left, 1), height: 20 });
  }
  add("line", { class: "line", x1: 0, x2: 192, y1: 10, y2: 10 });
  for (const end of part.allowed) if (end !== null) add("line", { class: "limit", x1: place(end), x2: place(end), y1: 0, y2: 20 });
  if (part.interval) add("line", { class: "interval", x1: place(part.interval[0]), x2: place(part.interval[1]), y1: 10, y2: 10 });
  if (part.ours !== null) add("circle", { cx: place(part.ours), cy: 10, r: 4 });
  return svg;
}

function partsOf(cell) {
  const places = scaleOf(cell.parts);
  const rows = cell.parts.map((part) =>
    made("tr", {},
      made("th", { scope: "row", text: part.part }),
      made("td", { class: part.verdict.replaceAll(" ", "-"), text: part.verdict }),
      made("td", { class: "value", text: short(part.ours) }),
      made("td", { text: ends(part.interval) }),
      made("td", { class: "value", text: part.n === null ? "–" : part.n.toLocaleString("en") }),
      made("td", { class: `drawn ${part.verdict.replaceAll(" ", "-")}` }, drawn(part, places))));
  const names = [["part"], ["verdict"], ["ours", "value"], ["95\u00a0% interval"], ["n", "value"], ["claimed: shaded", "drawn"]];
  const head = names.map(([text, css]) => made("th", { scope: "col", text, ...(css ? { class: css } : {}) }));
  return made("table", { class: "parts" }, made("thead", {}, made("tr", {}, ...head)), made("tbody", {}, ...rows));
}

function picturesOf(cell) {
  const figures = cell.pictures.map((name) =>
    made("figure", {},
      made("img", { src: `${cell.study}/${name}.svg`, alt: `${name} of the ${cell.study} study`, loading: "lazy" }),
      made("figcaption", {}, made("a", { href: `${cell.study}/index.html#item-${name}`, text: `${name}, ours beside the paper's` }))));
  return made("div", { class: "pictures" }, ...figures);
}

/** Shows what is known of a verdict. */
function open(key) {
  const cell = cells[key];
  if (!cell) return;
  const close = made("button", { type: "button", class: "close", "aria-label": "Close", text: "×" });
  close.addEventListener("click", () => dialog.close());
  const seeds = cell.seeds === 1 ? "1 training" : `${cell.seeds} trainings`;
  const shown = cell.ours === null ? "" : `Ours: ${short(cell.ours)} ${ends(cell.interval)}, n = ${cell.n.toLocaleString("en")}, ${seeds}. `;
  const where = cell.stand_in_for ? `${cell.corpus}, which stands in for ${cell.stand_in_for}` : cell.corpus === "all" ? "all corpora" : cell.corpus;
  dialog.replaceChildren(close,
    made("p", { class: "which", text: `${cell.study} · ${cell.id}` }),
    made("h2", { id: "opened-verdict", class: cell.verdict.replaceAll(" ", "-"), text: `${cell.verdict} on ${where}` }),
    made("p", { class: "said", text: cell.claim }),
    made("p", { class: "soft", text: `${cell.where}. Statistic: ${cell.statistic}; claimed ${cell.side}.` }),
    made("p", { class: "soft", text: `${shown}Paper: ${cell.paper}.` }),
    made("p", { class: "soft", text: cell.reason }),
    made("h3", { text: "Numbers" }), partsOf(cell),
    made("h3", { text: "The command that measures it again" }), made("pre", { tabindex: "0", text: cell.command }));
  if (cell.pictures.length) dialog.append(made("h3", { text: "Pictures" }), picturesOf(cell));
  if (!dialog.open) dialog.showModal();
  dialog.scrollTop = 0;
  history.replaceState(null, "", `#${key}`);
}

/** Hides what was not asked for. */
function choose() {
  const { study, outcome, words } = Object.fromEntries(new FormData(form));
  const wanted = words.trim().toLowerCase();
  let count = 0;
  for (const body of document.querySelectorAll("[data-study]")) {
    let own = 0;
    for (const row of body.querySelectorAll(".claim")) {
      const marks = [...row.querySelectorAll(".mark")];
      for (const mark of marks) mark.hidden = Boolean(outcome) && mark.dataset.verdict !== outcome;
      const said = row.querySelector("th").textContent.toLowerCase();
      row.hidden = (study && body.dataset.study !== study) || !said.includes(wanted) || marks.every((mark) => mark.hidden);
      own += row.hidden ? 0 : 1;
    }
    body.hidden = own === 0;
    count += own;
  }
  form.querySelector("output").textContent = count === 1 ? "1 claim" : `${count} claims`;
}

document.querySelector(".matrix").addEventListener("click", (event) => {
  const mark = event.target.closest(".mark");
  if (mark) open(mark.dataset.key);
});
dialog.addEventListener("close", () => history.replaceState(null, "", "#"));
dialog.addEventListener("click", (event) => { if (event.target === dialog) dialog.close(); });
form.addEventListener("input", choose);
form.addEventListener("submit", (event) => event.preventDefault());
window.addEventListener("hashchange", () => open(decodeURIComponent(location.hash.slice(1))));
choose();
open(decodeURIComponent(location.hash.slice(1)));
