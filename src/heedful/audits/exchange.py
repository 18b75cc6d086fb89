"""Exchange the words that attention shows between two texts that were decided differently.

A person who reads attention expects that the decision goes with the words shown, and not with the
others. So every text gets a partner that was decided differently, and words change places between
the two: those shown, the others, and thirds of those shown. Then attention is forbidden to look at
the exchanged words: what is left of their effect goes around it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
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
SHOWN, OTHERS, PARTS = 0, 1, (2, 3, 4)
"""Groups of a text's units: those shown, the others, and the shown ones in thirds."""
GROUPS = (SHOWN, OTHERS, *PARTS)
LEAST = 0.25
"""A group of weight m matters if exchanging it moves the log-odds by so much of m."""

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
    logits: Float64[np.ndarray, "class"]
    groups: Bool[np.ndarray, "group unit"]
    blocked: Float64[np.ndarray, "group class"]
    """Logits with attention to each group forbidden."""

    @property
    def decision(self) -> int:
        """The class decided on."""
        return int(self.logits.argmax())


class Hybrid(NamedTuple):
    """A text some of whose units come from another."""

    units: list[Ids]
    side: list[int]
    is_new: list[bool]

    @property
    def key(self) -> bytes:
        """The same for hybrids that read the same."""
        return b"".join(unit.tobytes() for unit in self.units) + bytes(self.is_new)


def seen(attention: Float64[np.ndarray, "unit"]) -> Units:
    """The units that a person sees: half of the largest weight, and on to half of the mass.

    Units that weigh the same as one that is seen are seen too.
    """
    falling = np.sort(attention)[::-1]
    reached = np.cumsum(falling)
    last = falling[min(np.searchsorted(reached, HALF - 1e-9), len(falling) - 1)]
    return np.asarray(attention >= min(last, HALF * falling[0]) * (1 - 1e-9))


def groups_of(attention: Float64[np.ndarray, "unit"]) -> Bool[np.ndarray, "group unit"]:
    """What is shown, the others, and the shown units in thirds of about the same weight.

    The heaviest unit first, each goes to the third that is lightest so far.
    """
    shown = seen(attention)
    found = np.zeros((len(GROUPS), len(attention)), dtype=bool)
    found[SHOWN], found[OTHERS] = shown, ~shown
    weight = np.zeros(len(PARTS))
    for unit in np.argsort(-attention, kind="stable")[: int(shown.sum())]:
        lightest = int(weight.argmin())
        found[PARTS[lightest], unit] = True
        weight[lightest] += attention[unit]
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
        grouped = [groups_of(row) for row in weights]
        blocked = _without(model, reading, grouped).cpu().numpy()
        logits = reading.logits.cpu().numpy()
        for row, (name, units, side) in enumerate(_units(reading)):
            found[name] = Text(
                name, units, side, weights[row], logits[row], grouped[row], blocked[row]
            )
    return [found[name] for name in documents.names]


def _without(
    model: AttentiveModel, reading: Reading, forbidden: Sequence[Bool[np.ndarray, "edit unit"]]
) -> torch.Tensor:
    """Logits with attention to the marked units forbidden and the rest renormalised."""
    gone = torch.zeros(len(forbidden), len(forbidden[0]), reading.mask.shape[1], dtype=torch.bool)
    for row, marked in enumerate(forbidden):
        gone[row, :, : marked.shape[1]] = torch.from_numpy(marked)
    return decide(model, reading, erase(gone.to(reading.mask.device)))


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


def exchanged(text: Text, other: Text, group: int, longest: int | None = None) -> Hybrid:
    """The text with the units of a group replaced, in order, by those of the other's group.

    Further units of the other follow on the last place; places that are left over fall away. A
    hybrid of more than `longest` tokens loses its last units.
    """
    new = [other.units[unit] for unit in np.flatnonzero(other.groups[group])]
    places = np.flatnonzero(text.groups[group]).tolist() or [len(text.units)]
    hybrid, taken, room = Hybrid([], [], []), 0, longest or 2**31
    for unit in range(len(text.units) + 1):
        is_new = unit in places
        put = text.units[unit : unit + 1]
        if is_new:
            put = new[taken:] if unit == places[-1] else new[taken : taken + 1]
            taken += len(put)
        for one in put:
            room -= len(one)
            if room >= 0:
                hybrid.units.append(one)
                hybrid.side.append(int(text.side[min(unit, len(text.side) - 1)]))
                hybrid.is_new.append(is_new)
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


class _Answer(NamedTuple):
    """What the model says of one hybrid."""

    moved: float
    """Log-odds of the partner's decision against the text's own."""
    blocked: float
    """The same with attention to the units from the partner forbidden."""
    decision: int


class _Exchanges:
    """The pairs, and what the model says of their hybrids; equal hybrids are read once."""

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
        self.longest = _longest(model, pairs)
        self.decided = np.array([[text.decision, other.decision] for text, other in pairs])
        self.own = self.toward(np.stack([text.logits for text, _ in pairs]))
        self.other = self.toward(np.stack([other.logits for _, other in pairs]))
        self.text_blocked = self.toward(np.stack([text.blocked for text, _ in pairs]))
        shape = (len(pairs), len(GROUPS))
        self.moved, self.blocked = np.full((2, *shape), np.nan)
        self.decision = np.full(shape, -1)
        self.tokens = np.zeros(len(pairs))
        self._known: dict[tuple[int, bytes], _Answer] = {}

    def toward(
        self,
        logits: Float64[np.ndarray, "pair *any class"],
        rows: Int[np.ndarray, "pair"] | slice = slice(None),
    ) -> Float64[np.ndarray, "pair *any"]:
        """Logit of the partner's decision minus that of the text's own."""
        chosen = self.decided[rows]
        index = chosen.reshape(len(chosen), *[1] * (logits.ndim - 2), 2)
        both = np.take_along_axis(logits, np.broadcast_to(index, (*logits.shape[:-1], 2)), -1)
        return np.asarray(both[..., 1] - both[..., 0])

    def ask(self, rows: Int[np.ndarray, "some"], groups: Sequence[int]) -> None:
        """Exchanges these groups in these pairs."""
        asked = []
        for row in rows.tolist():
            text = self.pairs[row][0]
            whole = (row, np.concatenate(text.units).tobytes() + bytes(len(text.units)))
            self._known[whole] = _Answer(self.own[row], self.own[row], text.decision)
            for group in groups:
                hybrid = exchanged(*self.pairs[row], group, self.longest)
                asked.append((row, group, hybrid, (row, hybrid.key)))
        unread = {key: (row, hybrid) for row, _, hybrid, key in asked if key not in self._known}
        self._read(unread)
        for row, group, _, key in asked:
            answer = self._known[key]
            self.moved[row, group], self.blocked[row, group] = answer.moved, answer.blocked
            self.decision[row, group] = answer.decision

    def _read(self, unread: Mapping[tuple[int, bytes], tuple[int, Hybrid]]) -> None:
        if not unread:
            return
        listed = list(unread.items())
        encoded = _encoded([hybrid for _, (_, hybrid) in listed], self.unknown)
        for reading in readings(self.model, encoded, self.device, self.at_once):
            some = [listed[int(name)] for name in reading.names]
            rows = np.array([row for _, (row, _) in some])
            new = [np.array(hybrid.is_new or [True])[None] for _, (_, hybrid) in some]
            moved = self.toward(reading.logits.cpu().numpy(), rows)
            blocked = self.toward(_without(self.model, reading, new)[:, 0].cpu().numpy(), rows)
            decided = reading.decision.tolist()
            for place, (key, (row, hybrid)) in enumerate(some):
                self._known[key] = _Answer(moved[place], blocked[place], decided[place])
                self.tokens[row] += sum(map(len, hybrid.units))


def _longest(model: AttentiveModel, pairs: Sequence[tuple[Text, Text]]) -> int | None:
    """Tokens of a hybrid at most, where the model reads no more than so many."""
    if getattr(model, "max_pieces", None) is None:
        return None
    return max(sum(map(len, text.units)) for pair in pairs for text in pair)


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
    pairs = [
        (text, texts[other])
        for text, other in zip(texts, partners(texts, seed), strict=True)
        if other >= 0 and len(text.units) > 1
    ]
    if not pairs:
        return pd.DataFrame({"instance": []})
    found = _Exchanges(model, pairs, documents.unknown, device, at_once)
    found.ask(np.arange(len(pairs)), (SHOWN, OTHERS))
    goes = found.decision[:, SHOWN] == found.decided[:, 1]
    stays = found.decision[:, OTHERS] == found.decided[:, 0]
    # Thirds are asked for only where the shown words as a whole do what they should.
    found.ask(np.flatnonzero(goes & stays), PARTS)
    lengths = np.array([sum(map(len, text.units)) for text, _ in pairs])
    return pd.DataFrame(
        {
            "instance": [text.name for text, _ in pairs],
            "partner": [other.name for _, other in pairs],
            "decision": found.decided[:, 0],
            "units": [len(text.units) for text, _ in pairs],
            "seen": [float(text.groups[SHOWN].mean()) for text, _ in pairs],
            "largest": [float(text.weights.max()) for text, _ in pairs],
            "goes": goes,
            "stays": stays,
            "mattering": _mattering(found),
            "around": _around(found),
            "passes": 1 + found.tokens / lengths,
        }
    )


def _mattering(found: _Exchanges) -> Float64[np.ndarray, "pair"]:
    """The share of the attention that lies on groups whose exchange matters.

    A group of weight m matters if exchanging it, or forbidding attention to it, moves the log-odds
    from those of the text towards those of the partner by a quarter of m or more; averaging
    attention would move them by m.
    """
    span = np.maximum(found.other - found.own, 1e-12)
    total = np.zeros(len(span))
    for group in (OTHERS, *PARTS):
        weight = np.array([text.weights[text.groups[group]].sum() for text, _ in found.pairs])
        effect = np.fmax(found.moved[:, group], found.text_blocked[:, group]) - found.own
        total += weight * (effect / span >= LEAST * weight) * (effect > 0)
    return total


def _around(found: _Exchanges) -> Float64[np.ndarray, "pair"]:
    """The share of an exchange's effect that is left where attention to its words is forbidden.

    The largest one, of the exchanges with at least half of the largest effect: an exchange of
    nearly all words leaves attention nowhere to go. nan where no exchange has an effect.
    """
    effect = found.moved - found.own[:, None]
    left = found.blocked - found.text_blocked
    strength = np.nan_to_num(np.abs(effect))
    enough = (strength >= HALF * strength.max(1, keepdims=True)) & (strength > 1e-9)
    share = np.divide(left, effect, out=np.full(left.shape, -np.inf), where=enough)
    most = share.max(1)
    return np.where(np.isneginf(most), np.nan, most)


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
