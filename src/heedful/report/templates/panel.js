/* One open instance: a stage where attention is removed and moved, the decisions that follow with and
   without the word, and the words as every importance method colours them. */

const STEP = 0.02;
const BIG_STEP = 0.1;

/* `live` is for a page with a model behind it: the edit to begin with, and who is told of every other
   (`changed`, given the state and what shows the decision again once it is known). */
const openPanel = (entry, report, live = null) => {
  const state = { ...untouched(entry), ...live?.start };
  const panel = make("div", { class: "panel" });
  const outcome = outcomeView(entry, report);
  const isMovable = report.linear || live !== null;
  const stage = stageView(entry, isMovable);
  const update = (isDragging = false) => {
    stage.show(state, isDragging);
    outcome.show(state);
    refreshNumbers();
    live?.changed(state, () => outcome.show(state));
  };
  const controls = controlsView(entry, report, isMovable, {
    flatten: () => flatten(state),
    shuffle: () => shuffle(state),
    next: () => { const unit = byAttention(entry).find((i) => !state.erased[i]); if (unit >= 0) state.erased[unit] = true; },
    reset: () => Object.assign(state, untouched(entry)),
  }, update);
  panel.append(stage.element, outcome.element, controls, methodsView(entry, report, live !== null));
  if (entry.flow) panel.append(flowView(entry));
  if (entry.heads) panel.append(headsView(entry, report.audited.heads));
  listenToStage(stage, state, isMovable, update);
  listenForNumbers(panel, entry, (unit) => [["attention now", digits4(attentionOf(state)[unit])]]);
  update();
  return panel;
};

/* ------------------------------------------------------------------ the stage: a bar per unit */

const stageView = (entry, isMovable) => {
  const isLong = entry.units.reduce((sum, text) => sum + text.length, 0) > 24 * entry.units.length;
  const element = make("div", {
    class: `stage${isLong ? " of-sentences" : ""}${isMovable ? " movable" : ""}`,
    role: "group", dir: "auto",
    "aria-label": isMovable
      ? "Words with their attention. Left and right arrows move between words, Enter removes attention, up and down arrows move attention."
      : "Words with their attention. Left and right arrows move between words, Enter removes attention.",
  });
  const units = entry.units.map((text, unit) => {
    const fill = make("span", { class: "fill" });
    const was = make("span", { class: "was" });
    const bar = make("span", { class: "bar", "aria-hidden": "true" }, fill, was);
    const word = make("bdi", { class: "unit-text" }, text);
    const column = make("span", {
      class: `unit${entry.evidence?.[unit] ? " has-evidence" : ""}`,
      role: "button", tabindex: unit === 0 ? 0 : -1, "data-unit": unit,
    }, bar, word);
    const gap = spaced(entry, unit).trim();
    if (gap) element.append(make("span", { class: "gap", "aria-hidden": "true" }, gap));
    element.append(column);
    return { column, fill, was };
  });
  const before = Math.max(...entry.attention);
  const view = { element, scale: before };
  view.show = (state, isDragging) => {
    const now = attentionOf(state);
    // The scale rests while a bar is dragged, or the bar would run away from the pointer.
    if (!isDragging) view.scale = Math.max(before, ...now) || 1;
    units.forEach(({ column, fill, was }, unit) => {
      const isErased = state.erased[unit];
      fill.style.height = `${Math.min(now[unit] / view.scale, 1) * 100}%`;
      was.style.bottom = `${Math.min(entry.attention[unit] / view.scale, 1) * 100}%`;
      column.dataset.weight = now[unit];
      column.setAttribute("aria-pressed", isErased);
      column.setAttribute("aria-label",
        `${entry.units[unit]}, attention ${digits4(now[unit])}${isErased ? ", removed" : ""}`);
    });
  };
  return view;
};

const listenToStage = (stage, state, isMovable, update) => {
  const { element } = stage;
  const unitAt = (event) => event.target.closest("[data-unit]");
  let drag = null;
  element.addEventListener("pointerdown", (event) => {
    const bar = event.target.closest(".bar");
    if (!bar || !isMovable || event.button) return;
    const unit = Number(unitAt(event).dataset.unit);
    drag = { unit, bar, y: event.clientY, from: attentionOf(state)[unit] };
    bar.setPointerCapture(event.pointerId);
    unitAt(event).classList.add("dragged");
    event.preventDefault();
  });
  element.addEventListener("pointermove", (event) => {
    if (!drag) return;
    const raised = (drag.y - event.clientY) / drag.bar.clientHeight;
    setWeight(state, drag.unit, drag.from + raised * stage.scale);
    update(true);
  });
  const drop = () => {
    if (!drag) return;
    drag.bar.parentElement.classList.remove("dragged");
    drag = null;
    update();
  };
  element.addEventListener("pointerup", drop);
  element.addEventListener("pointercancel", drop);
  const toggle = (unit) => {
    state.erased[unit] = !state.erased[unit];
    update();
  };
  element.addEventListener("click", (event) => {
    if (event.target.closest(".unit-text")) toggle(Number(unitAt(event).dataset.unit));
  });
  element.addEventListener("keydown", (event) => {
    const target = unitAt(event);
    if (!target || event.ctrlKey || event.metaKey || event.altKey || walk(event, element)) return;
    const unit = Number(target.dataset.unit);
    const step = event.shiftKey ? BIG_STEP : STEP;
    const by = { ArrowUp: step, ArrowDown: -step, PageUp: BIG_STEP, PageDown: -BIG_STEP }[event.key];
    if (event.key === "Enter" || event.key === " ") toggle(unit);
    else if (by && isMovable) {
      setWeight(state, unit, attentionOf(state)[unit] + by);
      update();
    } else return;
    event.preventDefault();
  });
};

/* ------------------------------------------------------------- the decision and how it is told */

const NOT_COMPUTED = "Not computed beforehand: that is done for one at a time, and for the most attended ones together.";

/* One decision: what was done, the probabilities that follow, and whether the class changes. */
const decisionView = (entry, classes, kind) => {
  const rows = classes.map((name, index) => {
    const fill = make("span", { class: "fill" });
    const was = make("span", { class: "was" });
    was.style.left = `${entry.probabilities[index] * 100}%`;
    const number = make("output", { class: "probability", "data-class": index });
    const row = make("div", { class: "class" }, make("bdi", { class: "class-name" }, name),
      make("span", { class: "track", "aria-hidden": "true" }, fill, was), number);
    return { row, fill, number };
  });
  const done = make("h3", { class: "done" });
  const message = make("p", { class: "message", role: "status" });
  const element = make("div", { class: "decided-by", "data-decided": kind },
    done, make("div", { class: "classes" }, ...rows.map(({ row }) => row)), message);
  const show = (what, now, isEdited) => {
    done.textContent = what;
    rows.forEach(({ row, fill, number }, index) => {
      fill.style.width = `${(now?.[index] ?? 0) * 100}%`;
      number.textContent = now ? digits4(now[index]) : "–";
      row.classList.toggle("decided", now !== null && index === argmax(now));
    });
    const decision = now && argmax(now);
    const flips = now !== null && decision !== entry.decision;
    message.classList.toggle("flips", flips);
    if (!now) message.textContent = entry.asked ? "Being computed …" : NOT_COMPUTED;
    else if (flips) message.textContent = `The decision flips from ${classes[entry.decision]} to ${classes[decision]}.`;
    else message.textContent = `${isEdited ? "The decision stays" : "The model decides"} ${classes[decision]}.`;
  };
  return { element, show };
};

/* Two things that are not the same: attention to a word removed, and the word itself deleted. */
const outcomeView = (entry, { classes, audited }) => {
  const byWeights = decisionView(entry, classes, "attention");
  const byText = decisionView(entry, classes, "text");
  const distance = make("p", { class: "distance" });
  const hint = make("p", { class: "help" },
    `Click a ${audited.unit}: attention to it${atSite(audited)} is removed here, and below it is deleted and the text read again.`);
  const element = make("div", { class: "outcome" }, byWeights.element, distance, byText.element, hint);
  const show = (state) => {
    const gone = goneOf(state);
    const these = gone.length > 1 ? `these ${gone.length} ${audited.unit}s` : `this ${audited.unit}`;
    const removed = gone.length ? `attention to ${these}${atSite(audited)} removed` : "";
    const done = [state.isMoved ? "attention moved" : "", removed].filter(Boolean).join(", ") || "the text as it is";
    byWeights.show(capital(done), decide(state), state.isMoved || gone.length > 0);
    byText.element.hidden = !gone.length;
    hint.hidden = gone.length > 0;
    if (gone.length) byText.show(`${capital(these)} deleted, the text read again`, decideWithout(state), true);
    const by = moved(state);
    distance.textContent = by
      ? `Attention moved by TVD ${digits4(by.tvd)}, JSD ${digits4(by.jsd)} of at most 0.6931.`
      : entry.outside ? "No word is attended any more: special tokens alone are." : "No attention is left: the head's offset alone decides.";
  };
  return { element, show };
};

const atSite = (audited) => (audited.where ? ` ${audited.where}` : "");
const capital = (text) => text[0].toUpperCase() + text.slice(1);

const controlsView = (entry, { linear, audited }, isMovable, actions, update) => {
  const button = (name, label, hint) => {
    const element = make("button", { type: "button", class: "quiet", "data-action": name, title: hint }, label);
    element.addEventListener("click", () => { actions[name](); update(); });
    return element;
  };
  const { unit } = audited;
  const hidden = entry.rest?.count ?? entry.length - entry.units.length;
  const folded = hidden > 0
    ? ` ${hidden} of its ${entry.length} ${unit}s are not shown one by one; ${linear ? "the last block holds them together, and the numbers stay exact." : "they stay as they are."}`
    : "";
  const outside = entry.outside >= 0.005
    ? ` What is no word of the text (special tokens, a prompt) holds ${perCent(entry.outside)} of this attention; the bars share the rest.` : "";
  const help = `Click a ${unit} to remove the attention to it${atSite(audited)}${isMovable ? "; drag its bar to move attention" : ""}.${folded}${outside}`;
  return make("div", { class: "controls" },
    ...(isMovable
      ? [button("flatten", "Flatten", `Give every ${unit} the same attention`),
         button("shuffle", "Shuffle", "Deal the present weights anew")]
      : []),
    button("next", "Remove next", `Remove attention to the most attended ${unit} that is left`),
    button("reset", "Reset", "Back to the model's own attention"),
    make("p", { class: "help" }, help));
};

/* ------------------------------------------------------------ every method's words, line by line */

/* Methods that have not answered yet are left out, or with `isLive` have a line that waits for them. */
const methodsView = (entry, { methods, recommended, standing = "recommended" }, isLive) => {
  const list = make("dl", { class: "methods" });
  for (const { name, sentence } of methods) {
    if (!entry.importance[name] && !isLive) continue;
    list.append(make("div", { class: "method", "data-method": name },
      make("dt", {}, make("b", {}, name), name === recommended && standing ? make("em", { class: "recommended" }, standing) : null, make("span", {}, sentence)),
      make("dd", {}, methodWords(entry, name))));
  }
  return list;
};

const methodWords = (entry, name) => {
  if (!entry.importance[name]) return make("span", { class: "help" }, "…");
  const line = colouredWords(entry, entry.importance[name], true);
  line.addEventListener("keydown", (event) => walk(event, line));
  return line;
};
