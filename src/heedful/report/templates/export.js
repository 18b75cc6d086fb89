/* What is on the page as files: a table of the words by every method, and a picture of the lines and the curve. */

const download = (name, kind, text) => {
  const link = make("a", { download: name, href: URL.createObjectURL(new Blob([text], { type: kind })) });
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 10_000);
};

/* A cell of the table. A spreadsheet takes what begins with = + - @ for a formula: words get a sign before it. */
const cell = (value) => {
  if (typeof value === "number") return String(value);
  const text = /^\s*[=+\-@＝＋－＠]/.test(value ?? "") ? `'${value}` : value ?? "";
  return /[",\n\r]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text;
};

const asCsv = (entry, methods) => {
  const known = methods.map(({ name }) => name).filter((name) => entry.importance[name]);
  const rows = entry.units.map((word, unit) =>
    [unit + 1, word, entry.attention[unit], ...known.map((name) => entry.importance[name][unit])]);
  return [["place", "word", "attention weight", ...known], ...rows].map((row) => row.map(cell).join(",")).join("\r\n") + "\r\n";
};

/* A picture of the explanations as they stand on the page, word by word, with the colours of now. */
const asSvg = (element) => {
  const frame = element.getBoundingClientRect();
  const of = (part, name) => getComputedStyle(part)[name];
  const parts = [];
  const at = (box) => ({ x: (box.left - frame.left).toFixed(1), y: (box.top - frame.top).toFixed(1) });
  const write = (part, text) => {
    const box = part.getClientRects()[0];
    if (!box) return;
    const { x, y } = at(box);
    const size = parseFloat(of(part, "fontSize"));
    if (part.matches(".word")) parts.push(makeSvg("rect", { x, y, width: box.width.toFixed(1), height: box.height.toFixed(1), rx: 3, fill: of(part, "backgroundColor") }));
    parts.push(makeSvg("text", { x: Number(x) + parseFloat(of(part, "paddingLeft")), y: (Number(y) + box.height / 2 + size * 0.35).toFixed(1), "font-size": size, "font-weight": of(part, "fontWeight"), fill: of(part, "color") }, text));
  };
  element.querySelectorAll("h2, .curve h3, .method dt b, .method .word").forEach((part) => write(part, part.textContent));
  const chart = element.querySelector(".curve svg");
  const box = chart?.getBoundingClientRect();
  if (box?.width) {
    const { x, y } = at(box);
    const scale = box.width / chart.viewBox.baseVal.width;
    const copy = makeSvg("g", { transform: `translate(${x} ${y}) scale(${scale.toFixed(4)})`, "font-size": 11 });
    for (const part of chart.children) {
      const own = part.cloneNode(true);
      for (const name of ["fill", "stroke", "stroke-width", "opacity"]) own.setAttribute(name, of(part, name.replace(/-(.)/, (_, c) => c.toUpperCase())));
      own.removeAttribute("class");
      copy.append(own);
    }
    parts.push(copy);
  }
  const picture = makeSvg("svg", { viewBox: `0 0 ${frame.width.toFixed(0)} ${frame.height.toFixed(0)}`, width: frame.width.toFixed(0), height: frame.height.toFixed(0), "font-family": "sans-serif" },
    makeSvg("rect", { width: "100%", height: "100%", fill: of(document.body, "backgroundColor") }), ...parts);
  return new XMLSerializer().serializeToString(picture);
};
