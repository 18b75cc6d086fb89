"""Exchange the words that attention shows between two texts that were decided differently.

A person who reads attention expects that the decision goes with the words shown, and not with the
others. So every text gets a partner that was decided differently, and words change places between
the two: those shown, the others, and thirds of those shown. Then attention is forbidden to look at
the exchanged words: what is left of their effect goes around it.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np
import pandas as pd
import torch
from jaxtyping import Bool, Float64, Int

from heedful.audits.examination import Portion, readings
from heedful.corpora.encoded import Encoded
from heedful.models.edits import erase
from heedful.models.huggingface.pieces import FIRST, SECOND
from heedful.models.reading import Reading
from heedful.models.verbs import AttentiveModel, decide
from heedful.runs.randomness import keys, uniform_noise

HALF = 0.5
"""Of the mass and of the largest weight: what a person sees. Of an effect: what passes."""
FEW = 5
"""Up to so many shown units are tried one by one; of more, so many are drawn by their weight."""
SURE = 0.75
LEAST = 0.25
"""A unit of weight w matters if it moves the log-odds by so much of w of what all shown ones do."""

Ids = Int[np.ndarray, "token"]
Units = Bool[np.ndarray, "unit"]


class Text(NamedTuple):
    """One text as it was read."""

    name: str
    units: list[Ids]
    side: Int[np.ndarray, "unit"]
    """Where the numbers of its words begin: 0, or by the text of a pair."""
    weights: Float64[np.ndarray, "unit"]
    """The attention that is shown; they sum to 1."""
    groups: Bool[np.ndarray, "group unit"]
    """The shown units and the others; then each shown one, or every second one of many."""
    logits: Float64[np.ndarray, "class"]
    blocked: Float64[np.ndarray, "group class"]
    """Logits with attention to each group forbidden."""

    @property
    def decision(self) -> int:
        """The class decided on."""
        return int(self.logits.argmax())

    @property
    def shown(self) -> Units:
        """The units that a person sees."""
        return self.groups[0]

    @property
    def order(self) -> list[int]:
        """The shown units, heaviest first."""
        count = int(self.shown.sum())
        return np.argsort(-self.weights, kind="stable")[:count].tolist()

    @property
    def is_few(self) -> bool:
        """Whether so few units are shown that each is tried."""
        return int(self.shown.sum()) <= FEW


class Hybrid(NamedTuple):
    """A text without some of its units and with some of another's."""

    units: list[Ids]
    side: list[int]
    origin: list[int]
    """Which unit of the text each is; -1 for those of the other."""


def seen(attention: Float64[np.ndarray, "unit"]) -> Units:
    """The units that a person sees: half of the largest weight, and on to half of the mass.

    Units that weigh the same as one that is seen are seen too.
    """
    falling = np.sort(attention)[::-1]
    reached = np.cumsum(falling)
    last = falling[min(np.searchsorted(reached, HALF - 1e-9), len(falling) - 1)]
    return np.asarray(attention >= min(last, HALF * falling[0]) * (1 - 1e-9))


def groups_of(weights: Float64[np.ndarray, "unit"]) -> Bool[np.ndarray, "group unit"]:
    """What is shown, the others, and each shown unit; of many shown ones, every second by weight."""
    shown = seen(weights)
    order = np.argsort(-weights, kind="stable")[: int(shown.sum())]
    chosen = order[:, None] if len(order) <= FEW else order[None, 1::2]
    found = np.zeros((2 + len(chosen), len(weights)), dtype=bool)
    found[0], found[1] = shown, ~shown
    np.put_along_axis(found[2:], chosen, True, 1)
    return found


def texts_of(
    model: AttentiveModel,
    documents: Encoded,
    device: torch.device | str = "cpu",
    at_once: Portion = Portion(),
    head: int | None = None,
) -> list[Text]:
    """The documents as read, with what a person sees of the audited attention, or of one head."""
    found: dict[str, Text] = {}
    for reading in readings(model, documents, device, at_once):
        shown = reading.attention
        if head is not None:
            assert reading.heads is not None
            shown = reading.heads[:, head]
        shown = shown / shown.sum(-1, keepdim=True).clamp_min(1e-300)
        counts = reading.units.tolist()
        weights = [row[:n] for row, n in zip(shown.cpu().numpy(), counts, strict=True)]
        groups = [groups_of(row) for row in weights]
        blocked = _without(model, reading, groups)
        logits = reading.logits.cpu().numpy()
        for row, (name, units, side) in enumerate(_units(reading)):
            found[name] = Text(
                name,
                units,
                side,
                weights[row],
                groups[row],
                logits[row],
                blocked[row, : len(groups[row])],
            )
    return [found[name] for name in documents.names]


def _without(
    model: AttentiveModel, reading: Reading, forbidden: Sequence[Bool[np.ndarray, "edit unit"]]
) -> Float64[np.ndarray, "text edit class"]:
    """Logits with attention to the marked units forbidden and the rest renormalised."""
    edits = max(len(marked) for marked in forbidden)
    gone = torch.zeros(len(forbidden), edits, reading.mask.shape[1], dtype=torch.bool)
    for row, marked in enumerate(forbidden):
        gone[row, : len(marked), : marked.shape[1]] = torch.from_numpy(marked)
    found = decide(model, reading, erase(gone.to(reading.mask.device)))
    return np.asarray(found.cpu().numpy())


def _units(reading: Reading) -> Iterator[tuple[str, list[Ids], Int[np.ndarray, "unit"]]]:
    """Name, ids by unit and side by unit of every text."""
    batch = reading.batch
    unit, ids, numbers = (
        one.cpu().numpy() for one in (reading.unit_of_token, batch.ids, batch.sentence)
    )
    counts, lengths = reading.units.tolist(), batch.lengths.tolist()
    for row, name in enumerate(reading.names):
        length = lengths[row]
        starts = np.searchsorted(unit[row, :length], np.arange(counts[row]))
        first = numbers[row, starts]
        side = np.where(first >= SECOND, SECOND, np.where(first >= FIRST, FIRST, 0))
        yield name, np.split(ids[row, :length], starts[1:]), side


def partners(texts: Sequence[Text], seed: int) -> Int[np.ndarray, "text"]:
    """For each text the next longer one that was decided differently; -1 where none was.

    After the longest come the shortest. Two texts are seldom partners of each other, so that most
    are met in two different pairs.
    """
    drawn = keys(seed, [text.name for text in texts], "partner")
    order = np.lexsort([drawn, [len(text.units) for text in texts]])
    decision = np.array([text.decision for text in texts])[order]
    found = np.full(len(order), -1)
    for label in np.unique(decision):
        others, here = np.flatnonzero(decision != label), np.flatnonzero(decision == label)
        if len(others):
            found[order[here]] = order[others[np.searchsorted(others, here) % len(others)]]
    return found


def joined(text: Text, other: Text, away: Units, put: Units, longest: int | None = None) -> Hybrid:
    """The text with the units `away` replaced, in order, by the units `put` of the other.

    What is left over follows on the last of the places; places that are left over fall away. A
    hybrid of more than `longest` tokens loses its last units.
    """
    new = [other.units[unit] for unit in np.flatnonzero(put)]
    places = np.flatnonzero(away)
    hybrid, room = Hybrid([], [], []), longest or 2**31
    for unit, own in enumerate(text.units):
        pieces = [(own, unit)]
        if away[unit]:
            count = len(new) if unit == places[-1] else 1
            pieces, new = [(one, -1) for one in new[:count]], new[count:]
        for one, origin in pieces:
            room -= len(one)
            if room >= 0:
                hybrid.units.append(one)
                hybrid.side.append(int(text.side[unit]))
                hybrid.origin.append(origin)
    return hybrid


def _encoded(hybrids: Sequence[Hybrid], unknown: int) -> Encoded:
    """Hybrids as documents, named by their place; one without a unit is an unknown word."""
    ids, numbers, starts = [], [], [0]
    for hybrid in hybrids:
        units, side = hybrid.units or [np.array([unknown])], hybrid.side or [0]
        ids += units
        numbers += [
            np.full(len(u), n + s) for n, (u, s) in enumerate(zip(units, side, strict=True))
        ]
        starts.append(starts[-1] + sum(map(len, units)))
    names = tuple(str(place) for place in range(len(hybrids)))
    none = np.full(len(hybrids), -1)
    flat = np.concatenate(ids), np.array(starts), none, np.concatenate(numbers)
    return Encoded(*flat, names, unknown=unknown)


class _Asked(NamedTuple):
    """A hybrid of one pair, and sets of its units that attention is forbidden to look at."""

    pair: int
    hybrid: Hybrid
    forbidden: Bool[np.ndarray, "edit unit"]


class _Said(NamedTuple):
    """What the model says of it: log-odds of the partner's decision against the text's own."""

    odds: float
    decision: int
    blocked: Float64[np.ndarray, "edit"]


class _Pairs:
    """Texts and partners, and the model that is asked about their hybrids."""

    def __init__(
        self,
        model: AttentiveModel,
        pairs: Sequence[tuple[Text, Text]],
        unknown: int,
        device: torch.device | str,
        at_once: Portion,
    ) -> None:
        self.model, self.pairs, self.unknown = model, pairs, unknown
        self.device, self.at_once = device, at_once
        has_limit = hasattr(model, "max_pieces")
        lengths = [sum(map(len, text.units)) for pair in pairs for text in pair]
        self.longest = max(lengths) if has_limit else None
        self.decided = np.array([[text.decision, other.decision] for text, other in pairs])
        self.own, self.other = (
            self.odds(np.stack([pair[which].logits for pair in pairs])) for which in (0, 1)
        )
        self.tokens = np.zeros(len(pairs))

    def odds(
        self,
        logits: Float64[np.ndarray, "pair *any class"],
        rows: Int[np.ndarray, "pair"] | slice = slice(None),
    ) -> Float64[np.ndarray, "pair *any"]:
        """Logit of the partner's decision minus that of the text's own."""
        chosen = self.decided[rows]
        index = chosen.reshape(len(chosen), *[1] * (logits.ndim - 2), 2)
        both = np.take_along_axis(logits, np.broadcast_to(index, (*logits.shape[:-1], 2)), -1)
        return np.asarray(both[..., 1] - both[..., 0])

    def ask(self, asked: Sequence[_Asked]) -> list[_Said]:
        """What the model says of hybrids, in the order given."""
        if not asked:
            return []
        encoded = _encoded([one.hybrid for one in asked], self.unknown)
        found: dict[int, _Said] = {}
        for reading in readings(self.model, encoded, self.device, self.at_once):
            places = [int(name) for name in reading.names]
            rows = np.array([asked[place].pair for place in places])
            odds = self.odds(reading.logits.cpu().numpy(), rows)
            forbidden = [asked[place].forbidden for place in places]
            blocked = np.zeros((len(rows), 0))
            if any(map(len, forbidden)):
                blocked = self.odds(_without(self.model, reading, forbidden), rows)
            decided = reading.decision.tolist()
            for row, place in enumerate(places):
                said = _Said(float(odds[row]), decided[row], blocked[row, : len(forbidden[row])])
                found[place] = said
                self.tokens[rows[row]] += sum(map(len, asked[place].hybrid.units))
        return [found[place] for place in range(len(asked))]


def rows(
    model: AttentiveModel,
    documents: Encoded,
    seed: int = 0,
    device: torch.device | str = "cpu",
    at_once: Portion = Portion(),
    head: int | None = None,
) -> pd.DataFrame:
    """What the exchanges with a partner did to each text of several units."""
    texts = texts_of(model, documents, device, at_once, head)
    chosen = [
        (text, texts[other])
        for text, other in zip(texts, partners(texts, seed), strict=True)
        if other >= 0 and len(text.units) > 1
    ]
    if not chosen:
        return pd.DataFrame({"instance": []})
    pairs = _Pairs(model, chosen, documents.unknown, device, at_once)
    whole = _exchanged(pairs)
    # Single units are looked at only where the shown ones as a whole keep the decision.
    told = np.flatnonzero(whole["stays"] >= SURE)
    is_few = np.array([text.is_few for text, _ in chosen])
    mattering, around = np.zeros(len(chosen)), whole["around"]
    _one_by_one(pairs, told[is_few[told]], whole["shown odds"], mattering)
    _drawn(pairs, told[~is_few[told]], whole["shown odds"], mattering, around, seed)
    lengths = np.array([sum(map(len, text.units)) for text, _ in chosen])
    return pd.DataFrame(
        {
            "instance": [text.name for text, _ in chosen],
            "partner": [other.name for _, other in chosen],
            "decision": pairs.decided[:, 0],
            "units": [len(text.units) for text, _ in chosen],
            "seen": [float(text.shown.mean()) for text, _ in chosen],
            "largest": [float(text.weights.max()) for text, _ in chosen],
            "goes": whole["goes"],
            "stays": whole["stays"],
            "is_few": is_few,
            "mattering": mattering,
            "around": around,
            "passes": 1 + pairs.tokens / lengths,
        }
    )


def _exchanged(pairs: _Pairs) -> dict[str, np.ndarray]:
    """The shown units exchanged, the others exchanged, and the shown ones deleted."""
    asked = []
    for row, (text, other) in enumerate(pairs.pairs):
        nothing = np.zeros_like(other.shown)
        for away, put in (
            (text.shown, other.shown),
            (~text.shown, ~other.shown),
            (text.shown, nothing),
        ):
            hybrid = joined(text, other, away, put, pairs.longest)
            asked.append(_Asked(row, hybrid, np.array(hybrid.origin or [-1])[None] < 0))
    said = pairs.ask(asked)
    decision = np.array([one.decision for one in said]).reshape(-1, 3)
    odds = np.array([one.odds for one in said]).reshape(-1, 3)
    blocked = np.array([one.blocked[0] for one in said]).reshape(-1, 3)[:, :2]
    before = pairs.odds(np.stack([text.blocked[:2] for text, _ in pairs.pairs]))
    effect, left = odds[:, :2] - pairs.own[:, None], blocked - before
    larger = np.abs(effect).argmax(1)[:, None]
    effect, left = (np.take_along_axis(one, larger, 1)[:, 0] for one in (effect, left))
    around = _ratio(left, effect)
    deleted = odds[:, 2] - pairs.own
    own = (larger[:, 0] == 0) & (np.abs(deleted) >= HALF * np.abs(pairs.own))
    around = np.where(own, _ratio(odds[:, 2] - before[:, 0], deleted), around)
    sure = np.minimum(-pairs.own, pairs.other).clip(1e-12) / 2
    fraction = (odds[:, :2] / sure[:, None]).clip(-1, 1) / 2 + 0.5
    third = (decision[:, :2, None] != pairs.decided[:, None]).all(-1)
    return {
        "goes": np.where(third[:, 0], 0, fraction[:, 0]),
        "stays": np.where(third[:, 1], 0, 1 - fraction[:, 1]),
        "shown odds": odds[:, 0],
        "around": around,
    }


def _ratio(first: np.ndarray, second: np.ndarray) -> np.ndarray:
    return np.divide(first, second, out=np.full(len(second), np.nan), where=np.abs(second) > 1e-9)


NOTHING: Bool[np.ndarray, "0 1"] = np.zeros((0, 1), dtype=bool)


def _only(units: Sequence[int], text: Text) -> Units:
    found = np.zeros(len(text.units), dtype=bool)
    found[list(units)] = True
    return found


def _one_by_one(
    pairs: _Pairs,
    rows: Int[np.ndarray, "some"],
    without: Float64[np.ndarray, "pair"],
    mattering: Float64[np.ndarray, "pair"],
) -> None:
    """Of few shown units: the attention on those that matter.

    Each is replaced by the partner's quietest shown unit (whose attention can be forbidden at the
    least cost to the partner's decision), and attention to it is forbidden; the larger effect
    towards the partner's decision counts.
    """
    asked = []
    for row in rows.tolist():
        text, other = pairs.pairs[row]
        quiet = _quietest(text, other)
        if len(text.order) > 1:
            for unit in text.order:
                is_same = np.array_equal(text.units[unit], other.units[quiet])
                put = _only([] if is_same else [quiet], other)
                hybrid = joined(text, other, _only([unit], text), put, pairs.longest)
                asked.append(_Asked(row, hybrid, NOTHING))
    said = iter(pairs.ask(asked))
    for row in rows.tolist():
        text = pairs.pairs[row][0]
        whole = max(pairs.other[row] - pairs.own[row], 1e-9)
        odds = [next(said).odds for _ in text.order] if len(text.order) > 1 else [without[row]]
        blocked = text.blocked[2:] @ _direction(pairs, row)
        effect = (np.maximum(odds, blocked) - pairs.own[row]) / whole
        weights = text.weights[text.order]
        mattering[row] = weights[effect >= LEAST * weights].sum()


def _direction(pairs: _Pairs, row: int) -> Float64[np.ndarray, "class"]:
    classes = len(pairs.pairs[row][0].logits)
    return np.asarray(
        np.eye(classes)[pairs.decided[row, 1]] - np.eye(classes)[pairs.decided[row, 0]]
    )


def _quietest(text: Text, other: Text) -> int:
    if not other.is_few:
        return other.order[-1]
    kept = other.blocked[2:, other.decision] - other.blocked[2:, text.decision]
    return other.order[int(kept.argmax())]


def _drawn(
    pairs: _Pairs,
    rows: Int[np.ndarray, "some"],
    without: Float64[np.ndarray, "pair"],
    mattering: Float64[np.ndarray, "pair"],
    around: Float64[np.ndarray, "pair"],
    seed: int,
) -> None:
    """Of many shown units: an estimate of the attention on those that matter.

    Every second one is exchanged, so that the two texts balance; then five of the others, drawn by
    weight, are deleted one at a time.
    """
    asked, drawn = [], {}
    noise = (
        uniform_noise(keys(seed, [pairs.pairs[r][0].name for r in rows], "drawn"), 2000).numpy()
        if len(rows)
        else None
    )
    for place, row in enumerate(rows.tolist()):
        text, other = pairs.pairs[row]
        put = _only(other.order[1::2], other)
        base = joined(text, other, text.groups[2], put, pairs.longest)
        asked.append(_Asked(row, base, (np.array(base.origin) < 0)[None]))
        left = text.order[::2]
        # Exponential times over weights: the first five to ring are drawn by weight.
        rings = -np.log1p(-noise[place, : len(left)]) / np.maximum(text.weights[left], 1e-300)
        drawn[row] = [left[i] for i in np.argsort(rings)[:FEW]]
        for unit in drawn[row]:
            keep = [i for i, o in enumerate(base.origin) if o != unit]
            hybrid = Hybrid(*([field[i] for i in keep] for field in base))
            asked.append(_Asked(row, hybrid, NOTHING))
    said = iter(pairs.ask(asked))
    for row in rows.tolist():
        text = pairs.pairs[row][0]
        base = next(said)
        whole = max(pairs.other[row] - pairs.own[row], 1e-9)
        effect = np.array([next(said).odds for _ in drawn[row]]) - base.odds
        weights = text.weights[drawn[row]]
        mattering[row] = text.weights[text.shown].sum() * (effect / whole >= LEAST * weights).mean()
        moved = base.odds - pairs.own[row]
        if moved >= HALF * whole:
            left = base.blocked[0] - text.blocked[2] @ _direction(pairs, row)
            around[row] = np.fmax(around[row], left / moved)


def outcomes(rows: pd.DataFrame) -> pd.DataFrame:
    """Per text: whether the decision goes with what is shown, whether that matters, and passes."""
    told = rows["stays"] >= SURE
    many = told & ~rows["is_few"]
    matter = rows["mattering"] >= HALF
    if many.any():
        matter = matter.where(~many, rows["mattering"][many].mean() >= HALF)
    partner = rows.set_index("instance")["partner"]
    others = rows[partner.reindex(rows["partner"]).to_numpy() != rows["instance"].to_numpy()]
    again = others.groupby("partner")["goes"].mean().reindex(rows["instance"]).to_numpy()
    own = rows["stays"].to_numpy(float)
    return pd.DataFrame({
        "goes": rows["goes"], "stays": rows["stays"], "told": told, "luck": 2*(np.abs(own-again)-.5).clip(0),
        "mattering": rows["mattering"], "matter": matter,
        "around": rows["around"], "mediates": rows["around"] < HALF})


def value(o: pd.DataFrame) -> tuple[float, float, float]:
    suff = max((o.goes.mean()+o.stays.mean())/2 - np.nan_to_num(np.nanmean(o.luck)), 0)
    m = o.matter[o.told].mean() if o.told.any() else 0.0
    med = o.mediates[o.told].mean() if o.told.any() else 0.0
    return suff * m * med, suff * m, o.mediates.mean()
