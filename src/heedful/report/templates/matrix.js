// The page of all claims: filters, and what a verdict shows when it is opened.
const { claims, cells } = JSON.parse(document.getElementById("told").textContent);
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
      made("td", { class: "value count", text: part.n === null ? "–" : part.n.toLocaleString("en") }),
      made("td", { class: `drawn ${part.verdict.replaceAll(" ", "-")}` }, drawn(part, places))));
  const names = [["part"], ["verdict"], ["ours", "value"], ["95\u00a0% interval"], ["n", "value"], ["claimed: shaded", "drawn"]];
  const head = names.map(([text, css]) => made("th", { scope: "col", text, ...(css ? { class: css } : {}) }));
  return made("table", { class: "parts" }, made("thead", {}, made("tr", {}, ...head)), made("tbody", {}, ...rows));
}

function picturesOf(study, names) {
  const figures = names.map((name) =>
    made("figure", {},
      made("img", { src: `${study}/${name}.svg`, alt: `${name} of the ${study} study`, loading: "lazy" }),
      made("figcaption", {}, made("a", { href: `${study}/index.html#item-${name}`, text: `${name}, ours beside the paper's` }))));
  return made("div", { class: "pictures" }, ...figures);
}

/** What stands first in every opened verdict. */
function headed(claim, verdict, where) {
  const close = made("button", { type: "button", class: "close", "aria-label": "Close", text: "×" });
  close.addEventListener("click", () => dialog.close());
  return [close,
    made("p", { class: "which", text: `${claim.study} · ${claim.id}` }),
    made("h2", { id: "opened-verdict", class: verdict.replaceAll(" ", "-"), text: `${verdict} on ${where}` }),
    made("p", { class: "said", text: claim.claim }),
    made("p", { class: "soft", text: `${claim.where}. Statistic: ${claim.statistic}; claimed ${claim.side}.` })];
}

/** One verdict with its numbers. */
function verdictOf(cell, claim) {
  const seeds = cell.seeds === 1 ? "1 training" : `${cell.seeds} trainings`;
  const shown = cell.ours === null ? "" : `Ours: ${short(cell.ours)} ${ends(cell.interval)}, n = ${cell.n.toLocaleString("en")}, ${seeds}. `;
  const where = cell.stand_in_for ? `${cell.corpus}, which stands in for ${cell.stand_in_for}` : cell.corpus === "all" ? "all corpora" : cell.corpus;
  const command = cell.corpus === "all" ? claim.command : `${claim.command} --corpora ${cell.corpus}`;
  const found = [...headed(claim, cell.verdict, where),
    made("p", { class: "soft", text: `${shown}Paper: ${cell.paper}.` }),
    made("p", { class: "soft", text: cell.reason }),
    made("h3", { text: "Numbers" }), partsOf(cell),
    made("h3", { text: "The command that measures it again" }), made("pre", { tabindex: "0", text: command })];
  if (claim.pictures.length) found.push(made("h3", { text: "Pictures" }), picturesOf(claim.study, claim.pictures));
  if (claim.alike.length) found.push(made("h3", { text: "Pictures of what it rests on" }), picturesOf(claim.study, claim.alike));
  return found;
}

/** Several corpora on which a claim cannot be measured. */
function lackingOf(found, claim) {
  const reasons = found.flatMap((cell) => [made("dt", { text: cell.corpus }), made("dd", { text: cell.reason })]);
  return [...headed(claim, found[0].verdict, found.map((cell) => cell.corpus).join(", ")), made("dl", { class: "lacking" }, ...reasons)];
}

/** Shows what is known of a verdict, or of several that share a sign. */
function open(keys) {
  const found = keys.split(" ").map((key) => cells[key]);
  if (!found.every(Boolean)) return;
  const claim = claims[found[0].of];
  dialog.replaceChildren(...(found.length === 1 ? verdictOf(found[0], claim) : lackingOf(found, claim)));
  if (!dialog.open) dialog.showModal();
  dialog.scrollTop = 0;
  history.replaceState(null, "", `#${encodeURI(keys)}`);
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
  const columns = [...document.querySelectorAll(".matrix thead th")].slice(1);
  for (const [place, head] of columns.entries()) {
    const own = [...document.querySelectorAll(`.claim > td:nth-of-type(${place + 1})`)];
    const isUsed = count === 0 || own.some((cell) => !cell.parentElement.hidden && cell.querySelector(".mark:not([hidden])"));
    for (const cell of [head, ...own]) cell.hidden = !isUsed;
  }
  const wide = columns.filter((head) => !head.hidden).length + 1;
  for (const title of document.querySelectorAll(".study th")) title.colSpan = wide;
  form.querySelector("output").textContent = count === 1 ? "1 claim" : `${count} claims`;
}

document.querySelector(".matrix").addEventListener("click", (event) => {
  const mark = event.target.closest(".mark");
  if (mark) open(mark.dataset.opens);
});
dialog.addEventListener("close", () => history.replaceState(null, "", location.pathname + location.search));
dialog.addEventListener("click", (event) => { if (event.target === dialog) dialog.close(); });
for (const event of ["input", "change"]) form.addEventListener(event, choose);
form.addEventListener("reset", () => setTimeout(choose));
window.addEventListener("pageshow", choose); // a page that is gone back to has its filters again
form.addEventListener("submit", (event) => event.preventDefault());
window.addEventListener("hashchange", () => open(decodeURIComponent(location.hash.slice(1))));
open(decodeURIComponent(location.hash.slice(1)));
