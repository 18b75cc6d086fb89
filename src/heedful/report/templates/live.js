/* One model at work on the text: its answers as they arrive, its panel, its curve; asked and cancelled from outside. */

const PATIENCE = 6;
const pause = (seconds) => new Promise((resolve) => { setTimeout(resolve, 1000 * seconds); });

/* The answer to a question put to the server; a busy one is asked again, as often as patience allows. */
const ask = async (path, body, signal, waiting = () => {}) => {
  for (let tries = 0; ; tries += 1) {
    const answer = await fetch(path, {
      method: "POST", headers: { "content-type": "application/json" }, body: JSON.stringify(body), signal,
    });
    if (answer.ok) return answer;
    const { error } = await answer.json().catch(() => ({ error: `The server answered ${answer.status}.` }));
    if (answer.status !== 503 || tries === PATIENCE) throw new Error(error);
    waiting(error);
    await pause(Number(answer.headers.get("retry-after")) || 1);
    if (signal.aborted) throw new DOMException("", "AbortError");
  }
};

/* Server-sent events of an answer, one by one. */
const listen = async (answer, heard) => {
  const reader = answer.body.pipeThrough(new TextDecoderStream()).getReader();
  let rest = "";
  for (;;) {
    const { value, done } = await reader.read();
    if (done) return;
    const parts = (rest + value).split("\n\n");
    rest = parts.pop();
    parts.filter((part) => part.startsWith("data: ")).forEach((part) => heard(JSON.parse(part.slice(6))));
  }
};

const REMEMBERED = 64;

/* Decisions under edits, asked of the server: the latest edit only, one question at a time. */
const editsView = (entry, question) => {
  entry.asked = new Map();
  let wanted = null;
  let isAsking = false;
  const work = async () => {
    isAsking = true;
    while (wanted) {
      const { key, edit, show, failed } = wanted;
      wanted = null;
      try {
        const answer = await ask("/api/decide", { ...question, ...edit }, new AbortController().signal);
        entry.asked.set(key, await answer.json());
        if (entry.asked.size > REMEMBERED) entry.asked.delete(entry.asked.keys().next().value);
        show();
      } catch (error) { failed(error); }
    }
    isAsking = false;
  };
  return (state, show, failed) => {
    const edit = editOf(state);
    const key = JSON.stringify(edit);
    const isKnown = entry.asked.has(key) || !(edit.erased.length || (edit.weights && !entry.unit_logits));
    wanted = isKnown ? null : { key, edit, show, failed };
    if (wanted && !isAsking) work();
  };
};

/* `changed` is told when an edit is made, `ended` when nothing is under way any more. */
const modelView = (about, number, { changed, ended }) => {
  const progress = make("progress", { max: 1, value: 0, "aria-label": "Explanations computed" });
  const words = make("span", { role: "status" });
  const clock = make("span");
  const state = make("p", { class: "state" }, progress, words, clock);
  const holder = make("div", { class: "holder" });
  const element = make("article", { class: "model", "data-model": number }, make("h2", {}, make("bdi", {}, about.name)), state, holder);
  let control = null;
  const view = { element, number, edit: null };
  const say = (text, isWrong = false) => {
    words.textContent = text;
    words.classList.toggle("note-wrong", isWrong);
  };
  const shown = (entry, event, question, start) => {
    const report = { ...about, methods: event.methods, linear: event.linear };
    const edits = editsView(entry, question);
    const panel = openPanel(entry, report, {
      start,
      changed: (edit, show) => {
        view.edit = edit;
        edits(edit, show, (error) => say(error.message, true));
        changed();
      },
    });
    const curve = curveView(entry, report);
    const button = (label, act) => {
      const one = make("button", { type: "button", class: "quiet", "data-export": label }, `Save as ${label}`);
      one.addEventListener("click", act);
      return one;
    };
    const exports = make("p", { class: "exports" },
      button("CSV", () => download("heedful.csv", "text/csv", asCsv(entry, report.methods))),
      button("SVG", () => download("heedful.svg", "image/svg+xml", asSvg(element))));
    const notes = [
      event.unknown.length ? `Not known to the model, all read as one symbol: ${event.unknown.slice(0, 20).join(", ")}${event.unknown.length > 20 ? " …" : ""}.` : "",
      event.unread ? `The text is longer than the model reads: ${event.unread} characters are left out.` : "",
      about.why,
    ].filter(Boolean).map((line) => make("p", { class: "help" }, line));
    panel.querySelector(".controls").after(curve.element);
    holder.replaceChildren(panel, ...notes, exports);
    return { panel, curve };
  };
  view.cancel = () => control?.abort();
  /* `start` makes an edit to begin with out of the entry, once that is there. */
  view.start = async (question, start = () => ({})) => {
    view.cancel();
    const own = new AbortController();
    control = own;
    const began = performance.now();
    let entry = null;
    let parts = null;
    let done = 0;
    let steps = 1;
    let order = [];
    const ticking = setInterval(() => {
      const next = order.find((name) => !entry.importance[name]);
      clock.textContent = `${((performance.now() - began) / 1000).toFixed(0)} s${next ? `, now ${next}` : ""}`;
    }, 500);
    element.setAttribute("aria-busy", "true");
    progress.hidden = false;
    progress.value = 0;
    say("Reading the text …");
    const heard = (event) => {
      if (own.signal.aborted) return;
      if (event.error) throw new Error(event.error);
      done += 1;
      if (event.entry) {
        entry = event.entry;
        ({ steps, order } = event);
        hideNumbers(holder);
        parts = shown(entry, event, { ...question, model: number }, start(entry));
      } else if (event.importance) {
        entry.importance[event.method] = event.importance;
        parts.panel.querySelector(`[data-method="${event.method}"] dd`).replaceChildren(methodWords(entry, event.method));
      } else if (event.curve) parts.curve.add(event.method, event.curve);
      else {
        if (event.flow) { entry.flow = event.flow; parts.panel.append(flowView(entry)); }
        if (event.heads) { entry.heads = event.heads; parts.panel.append(headsView(entry, about.audited.heads)); }
      }
      progress.value = Math.min(done / steps, 1);
      say(`${Object.keys(entry.importance).length} of ${order.length} explanations`);
    };
    try {
      await listen(await ask("/api/explain", { ...question, model: number }, own.signal, (busy) => say(busy)), heard);
      if (control === own) say(`${Object.keys(entry.importance).length} explanations in ${((performance.now() - began) / 1000).toFixed(1)} s`);
    } catch (error) {
      own.abort();
      if (control === own) say(error.name === "AbortError" ? "Cancelled; what was there already is shown." : error.message, error.name !== "AbortError");
    } finally {
      clearInterval(ticking);
      if (control === own) {
        control = null;
        clock.textContent = "";
        element.removeAttribute("aria-busy");
        progress.hidden = true;
        ended();
      }
    }
  };
  view.isBusy = () => control !== null;
  return view;
};
