/* The list of instances: filtered, sorted, shown a page at a time, opened one by one. */

const PER_PAGE = 20;

const confidence = (entry) => entry.probabilities[entry.decision];
/* The order of two or three words says little, and a long text is no example to begin with. */
const FEW = 6;
const MANY = 40;
const told = (entry) => (entry.length < FEW ? -1 : entry.disagreement ?? -1);
const ORDERS = {
  disagreement: (a, b) => told(b) - told(a),
  unsure: (a, b) => confidence(a) - confidence(b),
  sure: (a, b) => confidence(b) - confidence(a),
  longest: (a, b) => b.length - a.length,
  shortest: (a, b) => a.length - b.length,
  id: (a, b) => a.id.localeCompare(b.id, "en", { numeric: true }),
};

const showInstances = (report, section) => {
  const list = section.querySelector("[data-list]");
  const count = section.querySelector("[data-count]");
  const more = section.querySelector("[data-more]");
  const controls = section.querySelector("[data-filters]");
  report.instances.forEach((entry) => { entry.searched = entry.units.join(" ").toLocaleLowerCase(); });
  fillOptions(controls.elements.class, report.classes.map((name, index) => [index, name]));
  fillOptions(controls.elements.tag, [...new Set(report.instances.flatMap((entry) => entry.tags))].map((t) => [t, t]));
  let found = [];
  let shown = 0;
  let asked = "";
  const extend = () => {
    const next = found.slice(shown, shown + PER_PAGE);
    list.append(...next.map((entry) => instanceView(entry, report)));
    shown += next.length;
    more.hidden = shown >= found.length;
    more.textContent = `Show ${Math.min(PER_PAGE, found.length - shown)} more`;
  };
  const refresh = () => {
    const chosen = Object.fromEntries(new FormData(controls));
    if (JSON.stringify(chosen) === asked) return; // leaving a field is a change event too
    asked = JSON.stringify(chosen);
    const text = chosen.search.trim().toLocaleLowerCase();
    found = report.instances
      .filter((entry) => chosen.class === "" || entry.decision === Number(chosen.class))
      .filter((entry) => chosen.gold === "" || (entry.gold >= 0 && String(entry.gold === entry.decision) === chosen.gold))
      .filter((entry) => chosen.tag === "" || entry.tags.includes(chosen.tag))
      .filter((entry) => entry.searched.includes(text))
      .sort(ORDERS[chosen.order]);
    count.textContent = `${found.length} of ${report.instances.length} instances`;
    list.replaceChildren();
    shown = 0;
    extend();
  };
  controls.addEventListener("input", refresh);
  controls.addEventListener("change", refresh);
  controls.addEventListener("submit", (event) => event.preventDefault());
  more.addEventListener("click", () => {
    const at = list.children.length;
    extend();
    list.children[at]?.querySelector("button").focus();
  });
  refresh();
  const example = found.slice(0, shown).findIndex(({ length }) => length >= FEW && length <= MANY);
  list.children[Math.max(example, 0)]?.querySelector("button").click();
};

const fillOptions = (select, options) =>
  select.append(...options.map(([value, text]) => make("option", { value }, text)));

const instanceView = (entry, report) => {
  const isKnown = entry.gold >= 0;
  const isRight = entry.gold === entry.decision;
  const facts = make("span", { class: "facts" },
    make("bdi", { class: "decision" }, report.classes[entry.decision]),
    make("span", { class: "number" }, digits4(confidence(entry))),
    isKnown ? make("span", { class: isRight ? "right" : "wrong" }, isRight ? "right" : `wrong, labelled ${report.classes[entry.gold]}`) : null,
    ...entry.tags.filter((tag) => tag !== "wrong decision").map((tag) => make("span", { class: "tag" }, tag)));
  const button = make("button", { type: "button", class: "opener", "aria-expanded": "false" },
    colouredWords(entry, entry.attention, false, 40), facts);
  const item = make("li", { class: "instance", "data-id": entry.id }, button);
  button.addEventListener("click", () => {
    const open = item.querySelector(".panel");
    button.setAttribute("aria-expanded", String(!open));
    if (open) {
      hideNumbers(open);
      open.remove();
    } else item.append(openPanel(entry, report));
  });
  return item;
};
