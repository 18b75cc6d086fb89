/* The page as a whole: the text that is typed, the models that are asked, the link, the documents. */

const TYPING = 0.45;  // seconds without a key before a text is read
const LINKING = 0.2;

const later = (seconds, act) => {
  let timer = 0;
  return (...given) => {
    clearTimeout(timer);
    timer = setTimeout(act, 1000 * seconds, ...given);
  };
};

/* ------------------------------------------------------------------------------- the link */

const numbers = (text) => (text ?? "").split(",").filter(Boolean).map(Number);

/* An edit as the link keeps it, and out of the link; one that does not fit the text is dropped. */
const kept = (state) => {
  const { erased, weights } = editOf(state);
  return { gone: erased.join(","), row: weights ? state.weights.map((w) => Number(w.toPrecision(6))).join(",") : "" };
};
const restored = (gone, row) => (entry) => {
  const erased = entry.units.map(() => false);
  numbers(gone).forEach((unit) => { if (unit in erased) erased[unit] = true; });
  const weights = numbers(row);
  const fits = weights.length === entry.units.length && weights.every((w) => Number.isFinite(w) && w >= 0);
  return fits ? { erased, weights, isMoved: true } : { erased };
};

/* --------------------------------------------------------------------------- the documents */

const showDocuments = (about, pick) => {
  const section = document.querySelector("[data-documents]");
  const [filters, list, count, more] = ["[data-filters]", "[data-list]", "[data-count]", "[data-more]"].map((one) => section.querySelector(one));
  const { name, total, of, labels } = about.documents;
  section.hidden = false;
  document.querySelector("[data-documents-link]").hidden = false;
  section.querySelector("[data-documents-lead]").textContent =
    `${total < of ? `The first ${total} of ${of}` : total} documents of ${name}, read by ${about.models[0].name}. Pick one to explain it.`;
  fillOptions(filters.elements.label, labels.map((one) => [one, one]));
  fillOptions(filters.elements.decision, about.models[0].classes.map((one) => [one, one]));
  const line = (one) => {
    const isRight = one.label === one.decision;
    const facts = make("span", { class: "facts" },
      ...(one.decision ? [make("bdi", { class: "decision" }, one.decision), make("span", { class: "number" }, digits4(one.probability))] : [make("span", {}, "not read yet")]),
      one.label && one.decision && labels.includes(one.decision) ? make("span", { class: isRight ? "right" : "wrong" }, isRight ? "right" : `wrong, labelled ${one.label}`) : one.label || null);
    const button = make("button", { type: "button", class: "opener" }, make("span", { class: "words", dir: "auto" }, one.beginning), facts);
    button.addEventListener("click", async () => pick(await (await fetch(`/api/documents/${one.number}`)).json()));
    return make("li", { class: "instance", "data-number": one.number }, button);
  };
  let asked = 0;
  const fetched = async (start) => {
    const mine = (asked += 1);
    const query = new URLSearchParams({ ...Object.fromEntries(new FormData(filters)), start });
    const found = await (await fetch(`/api/documents?${query}`)).json();
    if (mine !== asked) return;
    const lines = found.documents.map(line);
    if (start) list.append(...lines);
    else list.replaceChildren(...lines);
    more.hidden = list.children.length >= found.found;
    count.textContent = `${found.found} of ${found.total} documents${found.known < found.total ? `, ${found.known} read so far` : ""}`;
    if (start) lines[0]?.querySelector("button").focus();
    if (found.known < found.total) again();
  };
  const again = later(2, () => {
    const isInUse = list.contains(document.activeElement) || list.children.length > PER_PAGE;
    if (isInUse) again();
    else fetched(0);
  });
  const refresh = later(0.15, () => fetched(0));
  filters.addEventListener("input", refresh);
  filters.addEventListener("change", refresh);
  filters.addEventListener("submit", (event) => event.preventDefault());
  more.addEventListener("click", () => fetched(list.children.length));
  fetched(0);
};

/* -------------------------------------------------------------------------------- the text */

const explore = async () => {
  const form = document.querySelector("[data-ask]");
  const { text, second, model, beside } = form.elements;
  const [place, note, cancel, link, pair] = ["[data-models]", "[data-note]", "[data-cancel]", "[data-link]", "[data-second]"].map((one) => document.querySelector(one));
  const about = await (await fetch("/api/about")).json();
  const options = about.models.map(({ name }, number) => [number, name]);
  fillOptions(model, options);
  fillOptions(beside, options);
  document.querySelector("[data-beside]").hidden = options.length < 2;
  let views = [];
  const say = (words, isWrong = false) => {
    note.textContent = words;
    note.classList.toggle("note-wrong", isWrong);
  };
  const chosen = () => [model.value, beside.value].filter((one, at) => one !== "" && (at === 0 || one !== model.value)).map(Number);
  const write = later(LINKING, () => {
    const fields = new URLSearchParams({ text: text.value, model: model.value });
    if (second.value) fields.set("second", second.value);
    if (beside.value) fields.set("beside", beside.value);
    views.forEach(({ edit }, at) => {
      if (!edit) return;
      const { gone, row } = kept(edit);
      if (gone) fields.set(`gone${at}`, gone);
      if (row) fields.set(`row${at}`, row);
    });
    history.replaceState(null, "", text.value ? `#${fields}` : location.pathname);
  });
  const ended = () => { cancel.disabled = !views.some((view) => view.isBusy()); };
  /* Shows the chosen models and asks them; `starts` are the edits of a link. */
  const run = (starts = []) => {
    const wanted = chosen();
    if (wanted.join() !== views.map(({ number }) => number).join()) {
      views.forEach((view) => view.cancel());
      views = wanted.map((number) => modelView(about.models[number], number, { changed: write, ended }));
      place.replaceChildren(...views.map(({ element }) => element));
      place.classList.toggle("two", views.length > 1);
    }
    pair.hidden = !wanted.some((number) => about.models[number].pairs);
    pair.open = pair.open || second.value !== "";
    write();
    if (!text.value.trim()) {
      views.forEach((view) => view.cancel());
      place.replaceChildren();
      views = [];
      return say("");
    }
    if (text.value.length > about.limits.characters) {
      views.forEach((view) => view.cancel());
      return say(`The text has ${text.value.length} characters, this page takes at most ${about.limits.characters}; paste a part of it.`, true);
    }
    say("");
    const question = { text: text.value, ...(second.value.trim() && !pair.hidden ? { text2: second.value } : {}) };
    views.forEach((view, at) => {
      view.edit = null;
      view.start(question, starts[at]);
    });
    cancel.disabled = false;
    return null;
  };
  const typed = later(TYPING, () => run());
  const read = () => {
    const fields = new URLSearchParams(location.hash.slice(1));
    text.value = fields.get("text") ?? "";
    second.value = fields.get("second") ?? "";
    const known = (name, usual) => (about.models[fields.get(name)] ? fields.get(name) : usual);
    model.value = known("model", "0");
    beside.value = known("beside", fields.has("text") || about.models.length !== 2 ? "" : "1");
    run([0, 1].map((at) => restored(fields.get(`gone${at}`), fields.get(`row${at}`))));
  };
  text.addEventListener("input", typed);
  second.addEventListener("input", typed);
  model.addEventListener("change", () => run());
  beside.addEventListener("change", () => run());
  form.addEventListener("submit", (event) => { event.preventDefault(); run(); });
  form.addEventListener("keydown", (event) => { if (event.key === "Enter" && (event.ctrlKey || event.metaKey)) run(); });
  cancel.addEventListener("click", () => views.forEach((view) => view.cancel()));
  link.addEventListener("click", async () => {
    try {
      await navigator.clipboard.writeText(location.href);
      say("The link is copied; it restores this text, the models and what was done to their attention.");
    } catch { say("The address of this page is the link: copy it from the address bar."); }
  });
  document.querySelectorAll("[data-jump]").forEach((one) => one.addEventListener("click", (event) => {
    event.preventDefault();  // the fragment is the page's state
    const there = document.querySelector(one.getAttribute("href"));
    there.scrollIntoView();
    there.querySelector("textarea, select")?.focus({ preventScroll: true });
  }));
  addEventListener("hashchange", read);
  read();
  if (about.documents.total) showDocuments(about, (picked) => {
    text.value = picked.text;
    second.value = picked.second ?? "";
    run();
    document.getElementById("text").scrollIntoView();
  });
};

explore().catch((error) => { document.querySelector("[data-note]").textContent = `The server does not answer (${error.message}).`; });
