/* Every head of every layer: what is attended to where the decision is read, one strip of words each. A strip
   that is chosen colours the words, and shows who attends to whom where the page holds it. */

const unpacked = (text) =>
  Float32Array.from(atob(text), (byte) => (byte.charCodeAt(0) / 255) ** 2);

const inkOf = (element) => getComputedStyle(element).getPropertyValue("--pos").trim().split(" ").join(",");

const paint = (canvas, weights, columns) => {
  const rows = weights.length / columns;
  canvas.width = columns;
  canvas.height = rows;
  const top = weights.reduce((max, x) => Math.max(max, x), 0) || 1;
  const pen = canvas.getContext("2d");
  const ink = inkOf(document.documentElement);
  weights.forEach((weight, at) => {
    pen.fillStyle = `rgba(${ink},${(weight / top).toFixed(3)})`;
    pen.fillRect(at % columns, Math.floor(at / columns), 1, 1);
  });
};

const headsView = (entry, sentence) => {
  const { layers, heads } = entry.heads;
  const count = entry.length;
  const rows = unpacked(entry.heads.rows);
  const pairs = entry.heads.pairs ? unpacked(entry.heads.pairs) : null;
  const rowOf = (layer, head) => rows.slice((layer * heads + head) * count, (layer * heads + head + 1) * count);
  const shown = make("div", { class: "head-shown", hidden: "" });
  const grid = make("div", { class: "head-grid", role: "group", "aria-label": "Heads by layer" });
  grid.style.setProperty("--heads", heads);
  const choose = (layer, head, button) => {
    grid.querySelectorAll("[aria-pressed]").forEach((one) => one.setAttribute("aria-pressed", one === button));
    const values = Array.from(rowOf(layer, head));
    const line = colouredWords(entry, entry.units.map((_, unit) => values[entry.positions?.[unit] ?? unit]), true);
    line.addEventListener("keydown", (event) => walk(event, line));
    shown.replaceChildren(make("p", { class: "help" }, `Layer ${layer}, head ${head} (--site heads:${layer}.${head})`), line);
    if (pairs) {
      const size = count * count;
      const canvas = make("canvas", { class: "pairs", role: "img", "aria-label": "Who attends to whom: a row per word that attends, a column per word attended" });
      paint(canvas, pairs.slice((layer * heads + head) * size, (layer * heads + head + 1) * size), count);
      canvas.addEventListener("pointermove", (event) => {
        const box = canvas.getBoundingClientRect();
        const at = (where, length) => Math.min(Math.max(Math.floor((where / length) * count), 0), count - 1);
        const query = at(event.clientY - box.top, box.height);
        const key = at(event.clientX - box.left, box.width);
        const weight = pairs[(layer * heads + head) * size + query * count + key];
        caption.textContent = `${entry.units[query]} → ${entry.units[key]}: ${digits4(weight)}`;
      });
      const caption = make("p", { class: "help" }, "Rows attend to columns; point at a cell to read it.");
      shown.append(canvas, caption);
    }
    shown.hidden = false;
  };
  for (let layer = layers - 1; layer >= 0; layer -= 1) {
    grid.append(make("span", { class: "layer-name" }, `layer ${layer}`));
    for (let head = 0; head < heads; head += 1) {
      const values = rowOf(layer, head);
      const most = values.indexOf(Math.max(...values));
      const canvas = make("canvas", { "aria-hidden": "true" });
      const button = make("button", {
        type: "button", class: "head", "aria-pressed": "false", "data-layer": layer, "data-head": head,
        "aria-label": `Layer ${layer}, head ${head}: most on ${entry.units[most] ?? "a word not shown"}`,
      }, canvas);
      paint(canvas, values, count);
      button.addEventListener("click", () => choose(layer, head, button));
      grid.append(button);
    }
  }
  return make("details", { class: "heads" },
    make("summary", {}, `Layers and heads `, make("span", { class: "count" }, `${layers} × ${heads}`)),
    make("p", { class: "help" }, `${sentence}, a strip of words for each head; the top layer first, both counted from 0. Special tokens, or a prompt, hold what is missing to 1.`),
    grid, shown);
};
