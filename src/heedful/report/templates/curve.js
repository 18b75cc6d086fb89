/* What is left of the decision as words are removed, in the order of each explanation: a line per method,
   with a dot where the decision flips. Names below it bring lines to the front. */

const CURVE = { height: 200, left: 34, right: 10, top: 12, bottom: 34, colours: 8 };

const curveView = (entry, report) => {
  const drawing = makeSvg("svg", { role: "img" });
  const names = make("div", { class: "curve-names", role: "group", "aria-label": "Explanations in the chart" });
  const caption = make("p", { class: "help", role: "status" });
  const curves = new Map();
  const usual = [report.recommended, "attention", "random"];
  const chosen = new Set();
  const { unit } = report.audited;
  const said = (name) => {
    const { flip } = curves.get(name);
    return flip === null ? `${name}: never flips` : `${name}: flips after ${flip} of ${entry.length}`;
  };
  const own = (name) => `own-${([...chosen].indexOf(name) % CURVE.colours) + 1}`;
  const colour = () => names.querySelectorAll("button").forEach((button) => {
    const isChosen = chosen.has(button.dataset.name);
    button.className = `quiet curve-name${isChosen ? ` ${own(button.dataset.name)}` : ""}`;
    button.setAttribute("aria-pressed", String(isChosen));
  });
  const draw = () => {
    const width = Math.max(Math.min(element.clientWidth || 640, 900), 280);
    const right = width - CURVE.right;
    const low = CURVE.height - CURVE.bottom;
    const x = (step) => CURVE.left + ((right - CURVE.left) * step) / Math.max(entry.length, 1);
    const y = (p) => low - (low - CURVE.top) * p;
    const words = (at, up, text, anchor) => makeSvg("text", { x: at, y: up, "text-anchor": anchor }, text);
    const parts = [0, 0.5, 1].flatMap((p) => [
      makeSvg("line", { class: "axis", x1: CURVE.left, x2: right, y1: y(p), y2: y(p) }),
      words(CURVE.left - 6, y(p) + 4, String(p), "end")]);
    parts.push(words(CURVE.left, low + 16, "0", "middle"), words(right, low + 16, String(entry.length), "end"),
      words((CURVE.left + right) / 2, low + 28, `${unit}s whose attention is removed`, "middle"));
    const drawn = [...curves].sort(([a], [b]) => chosen.has(a) - chosen.has(b));
    for (const [name, { probability, flip }] of drawn) {
      const isChosen = chosen.has(name);
      const kind = isChosen ? ` chosen ${own(name)}` : "";
      const path = probability.map((p, step) => `${step ? "L" : "M"}${x(step).toFixed(1)} ${y(p ?? 0).toFixed(1)}`).join("");
      parts.push(makeSvg("path", { class: `line${kind}`, d: path, "data-curve": name, ...(name === "random" ? { "stroke-dasharray": "5 3" } : {}) }));
      if (isChosen && flip !== null) parts.push(makeSvg("circle", { class: `flip ${own(name)}`, cx: x(flip), cy: y(probability[flip]), r: 4.5 }));
    }
    drawing.setAttribute("viewBox", `0 0 ${width} ${CURVE.height}`);
    drawing.setAttribute("aria-label", `Probability of ${report.classes[entry.decision]} as ${unit}s lose their attention. ${[...chosen].map(said).join("; ")}.`);
    drawing.replaceChildren(...parts);
    colour();
    caption.textContent = chosen.size ? `${[...chosen].map(said).join("; ")}.` : "";
  };
  const element = make("div", { class: "curve", hidden: "" },
    make("h3", {}, `Probability of ${report.classes[entry.decision]}, ${unit} after ${unit} removed`), drawing, caption, names);
  new ResizeObserver(() => { if (curves.size) draw(); }).observe(element);
  const add = (name, curve) => {
    curves.set(name, curve);
    const button = make("button", { type: "button", "data-name": name }, name);
    if (usual.includes(name)) chosen.add(name);
    button.addEventListener("click", () => {
      if (!chosen.delete(name)) chosen.add(name);
      draw();
    });
    names.append(button);
    element.hidden = false;
    draw();
  };
  return { element, add, curves };
};
