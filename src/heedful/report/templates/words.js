/* Words on the page: elements made of text alone, colours by importance, numbers on hover and focus. */

/* An element; text from the corpus only ever becomes a text node. */
const make = (tag, attributes = {}, ...children) => {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (value !== null && value !== undefined && value !== false) element.setAttribute(name, value);
  }
  element.append(...children.filter((child) => child !== null));
  return element;
};

/* A share as every sentence writes it, with a no-break space, as per_cent does in Python. */
const perCent = (share) => `${(100 * share).toFixed(0)}\u00a0%`;
const digits4 = (x) => x.toFixed(4);
const short = (x) => (x == null ? "–" : Math.abs(x) >= 1e-3 || x === 0 ? x.toFixed(4) : x.toExponential(1));
const signed = (x) => (x > 0 ? "+" : "") + short(x);

const TIGHT = /^(?:[,.!?;:%)\]}…]+|n't|['’]\p{L}{1,2})$/u;

/* What stands before a unit: as it was written where that is known, else no space before punctuation;
   an ellipsis where units are left out. */
const spaced = (entry, unit) => {
  const positions = entry.positions;
  if (unit && positions && positions[unit] !== positions[unit - 1] + 1) return " … ";
  if (entry.gaps) return entry.gaps[unit];
  return unit && !TIGHT.test(entry.units[unit]) ? " " : "";
};

/* Shades in [-1, 1] for one method: the largest magnitude in the document is full colour. */
const shades = (values) => {
  const top = values.reduce((max, x) => Math.max(max, Math.abs(x ?? 0)), 0) || 1;
  return values.map((x) => (x ?? 0) / top);
};

const shade = (element, value) => {
  element.style.setProperty("--shade", Math.abs(value).toFixed(3));
  element.classList.toggle("against", value < 0);
};

/* A line of coloured words. With `isLive` each word can be reached by keyboard, one tab stop a line. */
const colouredWords = (entry, values, isLive, limit = Infinity) => {
  const line = make("span", { class: "words", dir: "auto" });
  const colours = shades(values);
  const count = Math.min(entry.units.length, limit);
  for (let unit = 0; unit < count; unit += 1) {
    const attributes = { class: "word", "data-unit": unit };
    if (isLive) attributes.tabindex = unit === 0 ? 0 : -1;
    const word = make("bdi", attributes, entry.units[unit]);
    shade(word, colours[unit]);
    if (entry.evidence?.[unit]) word.classList.add("evidence");
    const before = spaced(entry, unit);
    if (unit && !before) word.classList.add("tight");
    line.append(before, word);
  }
  if (count < entry.units.length) line.append(" …");
  return line;
};

/* Left, Right, Home and End walk along a line that is one tab stop. True when the key was used. */
const walk = (event, line) => {
  const units = [...line.querySelectorAll("[data-unit]")];
  const at = units.indexOf(event.target);
  const to = { ArrowLeft: at - 1, ArrowRight: at + 1, Home: 0, End: units.length - 1 }[event.key];
  if (at < 0 || to === undefined || !units[to]) return false;
  units[at].tabIndex = -1;
  units[to].tabIndex = 0;
  units[to].focus();
  event.preventDefault();
  return true;
};

/* The numbers of one unit, beside it, for the mouse and for the keyboard; Escape puts them away. */
const tooltip = make("div", { class: "tooltip", role: "tooltip", id: "tooltip", hidden: "" });

const showNumbers = (panel, target, entry, extra) => {
  const unit = Number(target.dataset.unit);
  panel.querySelectorAll(".lit").forEach((word) => word.classList.remove("lit"));
  panel.querySelectorAll(`[data-unit="${unit}"]`).forEach((word) => word.classList.add("lit"));
  const table = make("dl");
  const rows = [...extra(unit), ...Object.entries(entry.importance).map(([m, v]) => [m, signedIf(v, unit)])];
  for (const [name, value] of rows) table.append(make("dt", {}, name), make("dd", {}, value));
  tooltip.replaceChildren(make("bdi", { class: "tooltip-word" }, entry.units[unit]), table);
  tooltip.hidden = false;
  target.setAttribute("aria-describedby", "tooltip");
  const box = target.getBoundingClientRect();
  const own = tooltip.getBoundingClientRect();
  const width = document.documentElement.clientWidth;
  const left = Math.max(Math.min(box.left + box.width / 2 - own.width / 2, width - own.width - 8), 8);
  const top = box.top > own.height + 16 ? box.top - own.height - 8 : box.bottom + 8;
  tooltip.style.left = `${scrollX + left}px`;
  tooltip.style.top = `${scrollY + top}px`;
  tooltip.again = () => showNumbers(panel, target, entry, extra);
};

/* What is shown now, with the numbers of now: they change under a pointer that rests. */
const refreshNumbers = () => { if (!tooltip.hidden) tooltip.again(); };

const signedIf = (values, unit) => (values.some((x) => x < 0) ? signed : short)(values[unit]);

const hideNumbers = (panel) => {
  tooltip.hidden = true;
  panel?.querySelectorAll(".lit").forEach((word) => word.classList.remove("lit"));
};

const listenForNumbers = (panel, entry, extra) => {
  const found = (event) => event.target.closest?.("[data-unit]");
  const show = (event) => found(event) && showNumbers(panel, found(event), entry, extra);
  const hide = (event) => {
    found(event)?.removeAttribute("aria-describedby");
    hideNumbers(panel);
  };
  panel.addEventListener("pointerover", (event) => event.pointerType !== "touch" && show(event));
  panel.addEventListener("pointerout", hide);
  panel.addEventListener("focusin", (event) => found(event)?.matches(":focus-visible") && show(event));
  panel.addEventListener("focusout", hide);
};
