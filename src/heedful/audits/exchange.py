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
from heedful.runs.randomness import keys

HALF = 0.5
"""Of the mass and of the largest weight: what a person sees. Of an effect: what passes."""
PARTS = 5
"""Groups of about the same weight that the shown units fall into."""
LEAST = 0.25
"""A group with a share s of what is shown matters if it has so much of s of its effect."""

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
    shown: Units
    logits: Float64[np.ndarray, "class"]
    blocked: Float64[np.ndarray, "2 class"]
    """Logits with attention to the shown units forbidden, and to the others."""

    @property
    def decision(self) -> int:
        """The class decided on."""
        return int(self.logits.argmax())


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


def parts(text: Text) -> list[Units]:
    """The shown units in groups of about the same weight; fewer groups where there are few units.

    The heaviest unit first, each goes to the group that is lightest so far.
    """
    count = int(text.shown.sum())
    found = np.zeros((min(PARTS, count), len(text.units)), dtype=bool)
    total = np.zeros(len(found))
    for unit in np.argsort(-text.weights, kind="stable")[:count]:
        lightest = int(total.argmin())
        found[lightest, unit] = True
        total[lightest] += text.weights[unit]
    return list(found)


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
        shows = [seen(row) for row in weights]
        blocked = _without(model, reading, [np.stack([row, ~row]) for row in shows])
        logits = reading.logits.cpu().numpy()
        for row, (name, units, side) in enumerate(_units(reading)):
            found[name] = Text(
                name, units, side, weights[row], shows[row], logits[row], blocked[row]
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
    """For each text one of about its length that was decided differently; -1 where none was."""
    drawn = keys(seed, [text.name for text in texts], "partner")
    order = np.lexsort([drawn, [len(text.units) for text in texts]])
    decision = np.array([text.decision for text in texts])[order]
    found = np.full(len(order), -1)
    for label in np.unique(decision):
        others, here = np.flatnonzero(decision != label), np.flatnonzero(decision == label)
        if len(others):
            after = np.searchsorted(others, here)
            left, right = (others[place.clip(0, len(others) - 1)] for place in (after - 1, after))
            nearer = np.where(np.abs(left - here) < np.abs(right - here), left, right)
            found[order[here]] = order[nearer]
    return found


def joined(text: Text, other: Text, away: Units, put: Units, longest: int | None = None) -> Hybrid:
    """The text without the units `away` and with the units `put` of the other.

    These take the places of those, in their order; what is left over follows on the last of these
    places, or on the last shown unit where more is put than goes. A hybrid of more than `longest`
    tokens loses its last units.
    """
    new = [other.units[unit] for unit in np.flatnonzero(put)]
    places = np.flatnonzero(away).tolist() if away.sum() == text.shown.sum() else []
    last = places[-1] if places else int(np.flatnonzero(text.shown)[-1])
    hybrid, room = Hybrid([], [], []), longest or 2**31
    for unit, own in enumerate(text.units):
        pieces = [] if away[unit] else [(own, unit)]
        count = len(new) if unit == last else int(unit in places)
        pieces += [(one, -1) for one in new[:count]]
        new = new[count:]
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
    is_told = whole["goes"] & whole["stays"]
    # Parts are looked at only where the shown words as a whole do what they should.
    part = _parted(pairs, np.flatnonzero(is_told), whole["shown odds"])
    around = np.fmax(whole["around"], part["around"])
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
            "mattering": part["mattering"],
            "around": around,
            "passes": 1 + pairs.tokens / lengths,
        }
    )


def _exchanged(pairs: _Pairs) -> dict[str, np.ndarray]:
    """The shown units exchanged, and the others: where the decision goes, and by which way.

    `around` is the share of the larger effect that is left when attention to the exchanged units is
    forbidden in both texts; nan where neither exchange has an effect.
    """
    asked = []
    for row, (text, other) in enumerate(pairs.pairs):
        for away, put in ((text.shown, other.shown), (~text.shown, ~other.shown)):
            hybrid = joined(text, other, away, put, pairs.longest)
            asked.append(_Asked(row, hybrid, np.array(hybrid.origin or [-1])[None] < 0))
    said = pairs.ask(asked)
    decision = np.array([one.decision for one in said]).reshape(-1, 2)
    odds = np.array([one.odds for one in said]).reshape(-1, 2)
    blocked = np.array([one.blocked[0] for one in said]).reshape(-1, 2)
    before = pairs.odds(np.stack([text.blocked for text, _ in pairs.pairs]))
    effect, left = odds - pairs.own[:, None], blocked - before
    larger = np.abs(effect).argmax(1)[:, None]
    effect, left = (np.take_along_axis(one, larger, 1)[:, 0] for one in (effect, left))
    return {
        "goes": decision[:, 0] == pairs.decided[:, 1],
        "stays": decision[:, 1] == pairs.decided[:, 0],
        "shown odds": odds[:, 0],
        "around": _ratio(left, effect),
    }


def _ratio(first: np.ndarray, second: np.ndarray) -> np.ndarray:
    return np.divide(first, second, out=np.full(len(second), np.nan), where=np.abs(second) > 1e-9)


def _parted(
    pairs: _Pairs, rows: Int[np.ndarray, "some"], without: Float64[np.ndarray, "pair"]
) -> dict[str, np.ndarray]:
    """Which of the shown units matter: what is shown of both texts is put side by side.

    There the two balance, so that even a word that stands in the text three times has an effect.
    Then the text's own shown units are deleted part by part. A part with a share s of what is shown
    matters if it has at least s / 4 of the effect that all parts have together; averaging attention
    gives it about s / 2. `mattering` is the attention on parts that matter. `around` is the share
    of a deletion's effect that is left when attention is forbidden instead of the words deleted, of
    a part with at least half of the whole effect.
    """
    mattering, around = np.zeros(len(pairs.pairs)), np.full(len(pairs.pairs), np.nan)
    asked, owners = [], []
    for row in rows.tolist():
        text, other = pairs.pairs[row]
        groups = parts(text)
        none = np.zeros_like(text.shown)
        beside = joined(text, other, none, other.shown, pairs.longest)
        origin = np.array(beside.origin)
        forbidden = np.stack([(origin >= 0) & group[origin] for group in groups])
        asked.append(_Asked(row, beside, forbidden))
        owners.append((row, groups))
        nothing = np.zeros((0, 1), dtype=bool)
        if len(groups) > 1:
            for group in groups:
                hybrid = joined(text, other, group, other.shown, pairs.longest)
                asked.append(_Asked(row, hybrid, nothing))
    said = iter(pairs.ask(asked))
    for row, groups in owners:
        beside = next(said)
        deleted = [next(said).odds for _ in groups] if len(groups) > 1 else [without[row]]
        weights = pairs.pairs[row][0].weights
        mass = np.array([weights[group].sum() for group in groups])
        whole = without[row] - beside.odds
        if whole <= 1e-9:
            continue
        effect = (np.array(deleted) - beside.odds) / whole
        mattering[row] = mass[effect >= LEAST * mass / mass.sum()].sum()
        large = effect >= HALF
        if large.any():
            left = 1 - (beside.blocked - beside.odds) / whole / np.where(large, effect, 1)
            around[row] = left[large].max()
    return {"mattering": mattering, "around": around}


def outcomes(rows: pd.DataFrame) -> pd.DataFrame:
    """Per text: whether the decision goes with what is shown, whether that matters, and passes."""
    o = pd.DataFrame(
        {
            "goes": rows["goes"],
            "stays": rows["stays"],
            "mattering": rows["mattering"],
            "matter": rows["mattering"] >= HALF,
            "around": rows["around"],
            "mediates": rows["around"] < HALF,
        }
    )
    o["points"] = o.goes & o.stays & o.matter
    o["both"] = o.points & o.mediates
    return o
