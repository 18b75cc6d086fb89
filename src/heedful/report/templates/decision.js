/* What the model would decide under another attention: a linear head's arithmetic, in float64,
   as heedful's `decide` does it; for other heads, and for the text without a word, a lookup of what
   was computed beforehand. An erased unit is one that attention is removed from. */

const SMALLEST_MASS = 1e-290;

const softmax = (logits) => {
  const top = Math.max(...logits);
  const raised = logits.map((x) => Math.exp(x - top));
  const total = raised.reduce((sum, x) => sum + x, 0);
  return raised.map((x) => x / total);
};

const argmax = (values) => values.indexOf(Math.max(...values));

/* An edit in progress: weights before erasing, which units are erased, and whether the units that
   are not shown (`entry.rest`) keep their own proportions or share their weight evenly. */
const untouched = (entry) => ({
  entry,
  weights: entry.attention.slice(),
  erased: entry.attention.map(() => false),
  restIsFlat: false,
  isMoved: false,
  shuffles: 0,
});

/* The attention row after the edit: sums to 1, or is all 0 where nothing is left. */
const attentionOf = (state) => {
  const kept = state.weights.map((w, i) => (state.erased[i] ? 0 : w));
  const mass = kept.reduce((sum, w) => sum + w, 0);
  if (mass >= SMALLEST_MASS) return kept.map((w) => w / mass);
  const scores = state.entry.scores;
  const left = kept.map((_, i) => i).filter((i) => !state.erased[i] && scores?.[i] != null);
  if (state.isMoved || !left.length) return kept.map(() => 0);
  // What is left has underflowed: a softmax over its scores, as `decide` does.
  const shares = softmax(left.map((i) => scores[i]));
  left.forEach((unit, j) => { kept[unit] = shares[j]; });
  return kept;
};

const isRest = (entry, unit) => Boolean(entry.rest) && unit === entry.units.length - 1;

const goneOf = (state) => state.erased.map((is, unit) => (is ? unit : -1)).filter((unit) => unit >= 0);

/* What a page with a model behind it has asked (`entry.asked`), by what was done to the words. */
const editOf = (state) => ({ erased: goneOf(state), weights: state.isMoved ? attentionOf(state) : null });
const answered = (state) => state.entry.asked?.get(JSON.stringify(editOf(state)));

/* Class probabilities after the edit; null where a head that is not linear was not asked before. */
const decide = (state) => {
  const { entry } = state;
  if (!entry.unit_logits) {
    const gone = goneOf(state);
    if (entry.asked && (gone.length || state.isMoved)) return answered(state)?.attention ?? null;
    return gone.length ? lookedUp(entry, gone, entry.erasures, entry.cumulative?.slice(1)) : entry.probabilities;
  }
  const attention = attentionOf(state);
  const logits = entry.offset.slice();
  attention.forEach((weight, unit) => {
    const said = state.restIsFlat && isRest(entry, unit) ? entry.rest.flat : entry.unit_logits[unit];
    said.forEach((z, k) => { logits[k] += weight * z; });
  });
  return softmax(logits);
};

/* Class probabilities on the text without the erased units, read again; null where that was not done. */
const decideWithout = (state) => state.entry.asked ? answered(state)?.text ?? null :
  lookedUp(state.entry, goneOf(state), state.entry.deleted, state.entry.deleted_together);

/* Computed beforehand: each unit by itself, and the first 1, 2, … by attention together. */
const lookedUp = (entry, gone, single, together) => {
  const first = byAttention(entry).slice(0, gone.length);
  const isFirst = gone.length > 1 && first.every((unit) => gone.includes(unit));
  const found = gone.length === 1 ? single?.[gone[0]] : isFirst ? together?.[gone.length - 1] : null;
  return found && found[0] !== null ? found : null;
};

/* Units shown one by one from most to least attended, ties by position. */
const byAttention = (entry) =>
  entry.attention.map((_, unit) => unit).filter((unit) => !isRest(entry, unit))
    .sort((a, b) => entry.attention[b] - entry.attention[a] || a - b);

/* How far the attention moved: total variation and Jensen-Shannon distance, in nats. */
const moved = (state) => {
  const { entry } = state;
  const now = attentionOf(state);
  if (!now.some((w) => w > 0)) return null;
  let tvd = 0;
  let jsd = 0;
  const add = (p, q) => {
    const mean = (p + q) / 2;
    tvd += Math.abs(p - q) / 2;
    if (p > 0) jsd += (p * Math.log(p / mean)) / 2;
    if (q > 0) jsd += (q * Math.log(q / mean)) / 2;
  };
  now.forEach((q, unit) => {
    const p = entry.attention[unit];
    if (!isRest(entry, unit)) add(p, q);
    else {
      const even = 1 / entry.rest.count;
      entry.rest.members.forEach((share) => add(p * share, q * (state.restIsFlat ? even : share)));
    }
  });
  return { tvd, jsd: Math.max(jsd, 0) };
};

/* Gives one unit the weight `value`; the others keep their proportions and share what is left. */
const setWeight = (state, unit, value) => {
  if (state.erased[unit]) state.erased[unit] = false;
  const now = attentionOf(state);
  const target = Math.min(Math.max(value, 0), 1);
  const others = now.reduce((sum, w, i) => (i === unit ? sum : sum + w), 0);
  if (others <= 0) return; // alone: it holds everything
  const mass = state.weights.reduce((sum, w, i) => (state.erased[i] ? sum : sum + w), 0) || 1;
  now.forEach((w, i) => {
    if (state.erased[i]) return;
    state.weights[i] = mass * (i === unit ? target : (w * (1 - target)) / others);
  });
  state.isMoved = true;
};

const flatten = (state) => {
  const { entry } = state;
  state.weights = entry.attention.map((_, i) => (isRest(entry, i) ? entry.rest.count : 1));
  state.restIsFlat = Boolean(entry.rest);
  state.isMoved = true;
};

/* Deals the present weights anew among the units shown, in an order fixed by the id and the count. */
const shuffle = (state) => {
  const { entry } = state;
  const random = seeded(`${entry.id}/${(state.shuffles += 1)}`);
  const units = entry.attention.map((_, i) => i).filter((i) => !isRest(entry, i));
  const dealt = units.map((i) => state.weights[i]);
  for (let i = dealt.length - 1; i > 0; i -= 1) {
    const j = Math.floor(random() * (i + 1));
    [dealt[i], dealt[j]] = [dealt[j], dealt[i]];
  }
  units.forEach((unit, i) => { state.weights[unit] = dealt[i]; });
  state.isMoved = true;
};

/* Uniform numbers in [0, 1) from a text: FNV-1a, then a Weyl sequence with two mixing rounds. */
const seeded = (text) => {
  let state = 0x811c9dc5;
  for (const sign of text) state = Math.imul(state ^ sign.codePointAt(0), 0x01000193);
  return () => {
    state = (state + 0x9e3779b9) | 0;
    let mixed = Math.imul(state ^ (state >>> 16), 0x21f0aaad);
    mixed = Math.imul(mixed ^ (mixed >>> 15), 0x735a2d97);
    return ((mixed ^ (mixed >>> 15)) >>> 0) / 2 ** 32;
  };
};
