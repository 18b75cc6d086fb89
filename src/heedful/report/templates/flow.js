/* Attention traced down the layers of one text: a column per head, a row per layer. A head or a layer
   that is clicked stands out, and the words show what it leaves on them. */

const FLOW = { spacing: 9, gap: 14, side: 40, top: 16, faint: 0.1 };

/* The name of SVG's elements, asked of the browser: the page holds no address. */
const SVG = new DOMParser().parseFromString("<svg></svg>", "text/html").body.firstChild.namespaceURI;

const makeSvg = (tag, attributes = {}, ...children) => {
  const element = document.createElementNS(SVG, tag);
  for (const [name, value] of Object.entries(attributes)) element.setAttribute(name, value);
  element.append(...children);
  return element;
};

const flowView = (entry) => {
  const { layers, heads, shares } = entry.flow;
  const { words: labels } = entry.flow;  // words, and special tokens where there are some
  const count = labels.length;
  const edges = Uint8Array.from(atob(entry.flow.edges), (byte) => byte.charCodeAt(0));
  const width = FLOW.spacing * Math.max(count - 1, 1);
  const bottom = FLOW.top + layers * width;
  const left = (head) => FLOW.side + head * (width + FLOW.gap);
  const state = { head: null, layer: null };
  const drawing = makeSvg("svg", {
    class: "flow", viewBox: `0 0 ${left(heads) + 4} ${bottom + 12}`, role: "group",
    "aria-label": "Traced attention: a column per head, a row per layer",
  });
  const text = (x, y, label, anchor = "middle") =>
    makeSvg("text", { x, y, "text-anchor": anchor }, String(label));
  const pressable = (element, name, press) => {
    element.setAttribute("role", "button");
    element.setAttribute("tabindex", "0");
    element.setAttribute("aria-label", name);
    element.addEventListener("click", press);
    element.addEventListener("keydown", (event) => {
      if (event.key !== "Enter" && event.key !== " ") return;
      press();
      event.preventDefault();
    });
    return element;
  };
  const choose = (what, value) => () => {
    state[what] = state[what] === value ? null : value;
    show();
  };
  const cells = [];
  for (let head = 0; head < heads; head += 1) {
    for (let layer = 0; layer < layers; layer += 1) {
      const low = bottom - layer * width;
      const lines = Array.from({ length: 16 }, () => "");
      for (let query = 0; query < count; query += 1) for (let key = 0; key < count; key += 1) {
        const root = edges[((layer * heads + head) * count + query) * count + key] / 255;
        if (root < FLOW.faint) continue;
        lines[Math.min(Math.floor(root * root * 16), 15)] +=
          `M${left(head) + key * FLOW.spacing} ${low}L${left(head) + query * FLOW.spacing} ${low - width}`;
      }
      const cell = makeSvg("g", { class: "cell" },
        makeSvg("rect", { x: left(head) - 5, y: low - width, width: width + 10, height: width, class: "hit" }),
        ...lines.flatMap((d, step) => (d ? [makeSvg("path", { d, "stroke-opacity": (step + 0.5) / 16 })] : [])));
      cell.addEventListener("click", choose("head", head));
      cells.push({ cell, head, layer });
    }
    for (let height = 0; height <= layers; height += 1) shares[height][head].forEach((share, unit) => {
      const dot = makeSvg("circle", {
        cx: left(head) + unit * FLOW.spacing, cy: bottom - height * width, r: 3,
        "fill-opacity": Math.max(Math.min(share, 1), 0.05),
      });
      cells.push({ cell: dot, head, layer: height });
    });
  }
  drawing.append(...cells.map(({ cell }) => cell));
  const names = [];
  for (let head = 0; head < heads; head += 1) {
    const name = pressable(text(left(head) + width / 2, 10, head), `head ${head}`, choose("head", head));
    names.push({ name, head });
  }
  for (let height = 0; height <= layers; height += 1) {
    const label = height ? height - 1 : "input";  // what enters a layer is what the one below gives
    const name = text(FLOW.side - 9, bottom - height * width + 4, label, "end");
    names.push({ name: pressable(name, height ? `layer ${label}` : label, choose("layer", height)), height });
  }
  drawing.append(...names.map(({ name }) => name));
  const words = labels.map((unit) => make("bdi", { class: "unit-text word" }, unit));
  const line = make("p", { class: "words flow-words", dir: "auto" },
    ...words.flatMap((word, unit) => [count === entry.units.length ? spaced(entry, unit) : " ", word]));
  const caption = make("p", { class: "help", role: "status" });
  const show = () => {
    const height = state.layer ?? 0;
    const chosen = state.head === null ? [...Array(heads).keys()] : [state.head];
    const held = words.map((_, unit) => chosen.reduce((sum, head) => sum + shares[height][head][unit], 0));
    const top = Math.max(...held) || 1;
    words.forEach((word, unit) => {
      shade(word, held[unit] / top);
      word.title = digits4(held[unit]);
    });
    cells.forEach(({ cell, head, layer }) => {
      const isHidden = (state.head !== null && head !== state.head) || (state.layer !== null && layer < state.layer);
      cell.classList.toggle("aside", isHidden);
    });
    names.forEach(({ name, head, height: row }) =>
      name.setAttribute("aria-pressed", head === undefined ? row === state.layer : head === state.head));
    const whose = state.head === null ? "all heads" : `head ${state.head}`;
    const where = height ? `at layer ${height - 1}` : "on the input";
    const most = held.indexOf(Math.max(...held));
    caption.textContent = `What ${whose} ${state.head === null ? "leave" : "leaves"} ${where}; the most, `
      + `${digits4(held[most])}, on “${labels[most]}”. Click a head or a layer; both count from 0.`;
  };
  show();
  return make("details", { class: "flow-panel" },
    make("summary", {}, "Attention through the layers"), drawing, line, caption);
};
