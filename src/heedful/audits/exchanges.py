"""Exchange the words that attention shows between two texts that were decided differently.

A person who reads attention expects that the decision goes with the words shown, and not with the
others. So every text gets a partner that was decided differently, and words change places between
the two: first those shown, then the others, then shown ones one at a time. Last, attention is
forbidden to look at the words: what is left of their effect goes around it.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import pandas as pd
import torch
from jaxtyping import Bool, Float64, Int

from heedful.audits.examination import Portion, readings
from heedful.audits.hybrids import (
    FEW,
    Hybrid,
    ReadText,
    encoded_hybrids,
    exchanged,
    groups_of,
    partners,
    texts_in,
)
from heedful.corpora.encoded import Encoded
from heedful.models.edits import erase
from heedful.models.reading import Reading
from heedful.models.verbs import AttentiveModel, decide
from heedful.runs.randomness import keys, uniform_noise

HALF = 0.5
"""Of the attention, and of an effect."""
SURE = 0.75
"""From here on a decision counts as kept: halfway from a tie to being sure."""
LEAST = 0.25
"""A unit of weight w matters if it moves the log-odds by so much of w of the way to the partner."""
NOTHING = np.zeros((0, 1), dtype=bool)

Rows = Int[np.ndarray, "some"]
Odds = Float64[np.ndarray, "pair"]


def rows(
    model: AttentiveModel,
    documents: Encoded,
    seed: int = 0,
    device: torch.device | str = "cpu",
    at_once: Portion = Portion(),
    head: int | None = None,
) -> pd.DataFrame:
    """What the exchanges with a partner did to each text of several units.

    `goes` is how far the partner's shown units bring its decision when they take the place of the
    text's own (0 to 1, see `_way`); `stays` how far the text's shown units keep its decision when
    all others are the partner's: in the partner, in the place of its own shown units. `mattering`
    is the attention on units that matter, `around` the share of their effect that passes around
    attention. Of a model with several heads, `head` asks about what one of them shows.
    """
    texts = texts_of(model, documents, device, at_once, head)
    chosen = [
        (text, texts[other])
        for text, other in zip(texts, partners(texts, seed), strict=True)
        if other >= 0 and len(text.units) > 1
    ]
    if not chosen:
        return pd.DataFrame({"instance": []})
    pairs = _Pairs(model, chosen, documents.unknown, device, at_once)
    whole = _exchange(pairs)
    mattering, around = np.zeros(len(chosen)), whole.around.copy()
    # Single units are looked at only where the shown ones as a whole keep the decision.
    kept = np.flatnonzero(whole.stays >= SURE)
    is_few = np.array([text.is_few for text, _ in chosen])
    few, many = kept[is_few[kept]], kept[~is_few[kept]]
    mattering[few] = _one_by_one(pairs, few, whole.moved)
    mattering[many], drawn_around = _drawn(pairs, many, seed)
    around[many] = np.fmax(around[many], drawn_around)
    return pd.DataFrame(
        {
            "instance": [text.name for text, _ in chosen],
            "partner": [other.name for _, other in chosen],
            "decided": [model.classes[text.decision] for text, _ in chosen],
            "units": [len(text.units) for text, _ in chosen],
            "seen": [float(text.seen.mean()) for text, _ in chosen],
            "largest": [float(text.weights.max()) for text, _ in chosen],
            "goes": whole.goes,
            "stays": whole.stays,
            "is_few": is_few,
            "mattering": mattering,
            "around": around,
            "passes": 1 + pairs.tokens / [text.length for text, _ in chosen],
        }
    )


def texts_of(
    model: AttentiveModel,
    documents: Encoded,
    device: torch.device | str = "cpu",
    at_once: Portion = Portion(),
    head: int | None = None,
) -> list[ReadText]:
    """The documents as read, with what a person sees of the audited attention, or of one head."""
    found: list[ReadText] = []
    for reading in readings(model, documents, device, at_once):
        shown = reading.attention
        if head is not None:
            assert reading.heads is not None
            shown = reading.heads[:, head]
        shown = shown / shown.sum(-1, keepdim=True).clamp_min(1e-300)
        counts = reading.units.tolist()
        weights = [row[:n] for row, n in zip(shown.cpu().numpy(), counts, strict=True)]
        groups = [groups_of(row) for row in weights]
        found += texts_in(reading, weights, groups, _forbidding(model, reading, groups))
    rest = [exchanged(text, text, text.seen, text.only([])) for text in found]
    by_name: dict[str, ReadText] = {}
    for reading in readings(model, encoded_hybrids(rest, documents.unknown), device, at_once):
        for name, logits in zip(reading.names, reading.logits.cpu().numpy(), strict=True):
            text = found[int(name)]
            by_name[text.name] = text._replace(rest=logits)
    return [by_name[name] for name in documents.names]


def _forbidding(
    model: AttentiveModel, reading: Reading, forbidden: Sequence[Bool[np.ndarray, "edit unit"]]
) -> Float64[np.ndarray, "text edit class"]:
    """Logits with attention to the marked units forbidden and the rest renormalised."""
    edits = max(map(len, forbidden))
    gone = torch.zeros(len(forbidden), edits, reading.mask.shape[1], dtype=torch.bool)
    for row, marked in enumerate(forbidden):
        gone[row, : len(marked), : marked.shape[1]] = torch.from_numpy(marked)
    found = decide(model, reading, erase(gone.to(reading.mask.device)))
    return np.asarray(found.cpu().numpy())


class _Asked(NamedTuple):
    """A hybrid of one pair, and sets of its units that attention is forbidden to look at."""

    pair: int
    hybrid: Hybrid
    forbidden: Bool[np.ndarray, "edit unit"] = NOTHING


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
        pairs: Sequence[tuple[ReadText, ReadText]],
        unknown: int,
        device: torch.device | str,
        at_once: Portion,
    ) -> None:
        self.model, self.pairs, self.unknown = model, pairs, unknown
        self.device, self.at_once = device, at_once
        longest = max(text.length for pair in pairs for text in pair)
        self.longest = longest if hasattr(model, "max_pieces") else None
        self.decided = np.array([[text.decision, other.decision] for text, other in pairs])
        self.own, self.other = (
            self.odds(np.stack([pair[which].logits for pair in pairs])) for which in (0, 1)
        )
        self.rest, self.other_rest = (
            self.odds(np.stack([pair[which].rest for pair in pairs])) for which in (0, 1)
        )
        seen = [sum(len(text.units[unit]) for unit in text.order) for text, _ in pairs]
        self.tokens = np.array([text.length for text, _ in pairs]) - np.array(seen)
        """Tokens that were read for each pair beside the text itself."""

    def odds(
        self, logits: Float64[np.ndarray, "pair *any class"], rows: Rows | slice = slice(None)
    ) -> Float64[np.ndarray, "pair *any"]:
        """Logit of the partner's decision minus that of the text's own."""
        chosen = self.decided[rows]
        index = chosen.reshape(len(chosen), *[1] * (logits.ndim - 2), 2)
        both = np.take_along_axis(logits, np.broadcast_to(index, (*logits.shape[:-1], 2)), -1)
        return np.asarray(both[..., 1] - both[..., 0])

    def blocked(self, row: int) -> Float64[np.ndarray, "group"]:
        """The odds of a text with attention to each of its groups forbidden."""
        return np.asarray(self.odds(self.pairs[row][0].blocked[None], np.array([row]))[0])

    def exchanged(
        self, row: int, away: Bool[np.ndarray, "unit"], put: Bool[np.ndarray, "unit"]
    ) -> Hybrid:
        """A hybrid of one pair."""
        return exchanged(*self.pairs[row], away, put, self.longest)

    def ask(self, asked: Sequence[_Asked]) -> list[_Said]:
        """What the model says of hybrids, in the order given."""
        if not asked:
            return []
        encoded = encoded_hybrids([one.hybrid for one in asked], self.unknown)
        found: dict[int, _Said] = {}
        for reading in readings(self.model, encoded, self.device, self.at_once):
            places = [int(name) for name in reading.names]
            rows = np.array([asked[place].pair for place in places])
            odds = self.odds(reading.logits.cpu().numpy(), rows)
            forbidden = [asked[place].forbidden for place in places]
            blocked = np.zeros((len(rows), 0))
            if any(map(len, forbidden)):
                blocked = self.odds(_forbidding(self.model, reading, forbidden), rows)
            decided = reading.decision.tolist()
            for row, place in enumerate(places):
                kept = blocked[row, : len(forbidden[row])]
                found[place] = _Said(float(odds[row]), decided[row], kept)
                self.tokens[rows[row]] += sum(map(len, asked[place].hybrid.units))
        return [found[place] for place in range(len(asked))]


class _Exchanged(NamedTuple):
    """What exchanging all shown units, and all others, did to each pair."""

    goes: Odds
    stays: Odds
    moved: Odds
    """Log-odds with the shown units exchanged."""
    around: Odds


def _exchange(pairs: _Pairs) -> _Exchanged:
    """Exchanges the shown units, and the others.

    `around` is measured on the text alone where deleting its shown units takes away half of the
    log-odds: the share of that loss which does not come about when attention to them is forbidden
    instead. Elsewhere (evidence that is said twice, or is not shown) on the exchange with the
    larger effect: the share that is left with attention to the exchanged units forbidden in both
    texts.
    """
    asked = []
    for row, (text, other) in enumerate(pairs.pairs):
        hybrid = pairs.exchanged(row, text.seen, other.seen)
        asked.append(_Asked(row, hybrid, hybrid.is_new))
        # All others exchanged is the text's shown units in the partner, in the places of its own.
        hybrid = exchanged(other, text, other.seen, text.seen, pairs.longest)
        asked.append(_Asked(row, hybrid, ~hybrid.is_new))
    said = pairs.ask(asked)
    decision, odds, blocked = (
        np.array(one).reshape(-1, 2)
        for one in zip(*((s.decision, s.odds, s.blocked[0]) for s in said), strict=True)
    )
    before = pairs.odds(np.stack([text.blocked[:2] for text, _ in pairs.pairs]))
    effect, left = odds - pairs.own[:, None], blocked - before
    larger = np.abs(effect).argmax(1)[:, None]
    effect, left = (np.take_along_axis(one, larger, 1)[:, 0] for one in (effect, left))
    lost = pairs.rest - pairs.own
    is_alone = (larger[:, 0] == 0) & (np.abs(lost) >= HALF * np.abs(pairs.own))
    around = np.where(is_alone, _share(pairs.rest - before[:, 0], lost), _share(left, effect))
    # Half as sure as the less sure of the two texts is sure enough.
    sure = HALF * np.minimum(-pairs.own, pairs.other).clip(1e-12)
    goes = _way(odds[:, 0], pairs.rest, sure)
    stays = _way(-odds[:, 1], -pairs.other_rest, sure)
    is_third = (decision[:, :, None] != pairs.decided[:, None]).all(-1)
    goes, stays = np.where(is_third, 0, np.stack([goes, stays], 1)).T
    return _Exchanged(goes, stays, odds[:, 0], around)


def _way(odds: Odds, rest: Odds, sure: Odds) -> Odds:
    """How far shown units bring the log-odds of their decision: 1 to be sure, 1/2 to a tie.

    But no further than they themselves bring them, from what the rest says without them (0) to
    being sure (1); unless the rest is sure already.
    """
    reached = (odds / sure).clip(-1, 1) / 2 + HALF
    brought = (odds - rest) / np.maximum(sure - rest, sure / 2)
    return np.asarray(np.where(rest < sure, np.minimum(reached, brought.clip(0, 1)), reached))


def _share(part: Odds, whole: Odds) -> Odds:
    found = np.full(len(whole), np.nan)
    return np.asarray(np.divide(part, whole, out=found, where=np.abs(whole) > 1e-9))


def _one_by_one(pairs: _Pairs, rows: Rows, moved: Odds) -> Odds:
    """Of few shown units: the attention on those that matter.

    Each is replaced by the partner's quietest shown unit, or deleted where that is the same, and
    attention to it is forbidden; what moves the log-odds further towards the partner's counts.
    """
    asked = []
    for row in rows.tolist():
        text, other = pairs.pairs[row]
        quiet = _quietest(other, text.decision)
        for unit in text.order if len(text.order) > 1 else ():
            is_same = np.array_equal(text.units[unit], other.units[quiet])
            put = other.only([] if is_same else [quiet])
            asked.append(_Asked(row, pairs.exchanged(row, text.only([unit]), put)))
    said = iter(pairs.ask(asked))
    found = []
    for row in rows.tolist():
        text = pairs.pairs[row][0]
        alone = len(text.order) == 1
        odds = [moved[row]] if alone else [next(said).odds for _ in text.order]
        effect = np.maximum(odds, pairs.blocked(row)[2:]) - pairs.own[row]
        weights = text.weights[text.order]
        way = max(pairs.other[row] - pairs.own[row], 1e-9)
        found.append(weights[effect / way >= LEAST * weights].sum())
    return np.array(found)


def _quietest(other: ReadText, against: int) -> int:
    """The shown unit that the partner's decision needs least; of many the lightest."""
    if not other.is_few:
        return other.order[-1]
    kept = other.blocked[2:, other.decision] - other.blocked[2:, against]
    return other.order[int(kept.argmax())]


def _drawn(pairs: _Pairs, rows: Rows, seed: int) -> tuple[Odds, Odds]:
    """Of many shown units: the attention on those that matter, estimated, and what goes around.

    Every second one is exchanged, so that the two texts balance and none is superfluous; then five
    of the others, drawn by weight, are deleted one at a time. Where exchanging the half has half of
    the whole effect, what is left of it with attention to it forbidden goes around.
    """
    asked, drawn = [], []
    names = [pairs.pairs[row][0].name for row in rows]
    for row, key in zip(rows.tolist(), keys(seed, names, "drawn"), strict=True):
        text, other = pairs.pairs[row]
        half = pairs.exchanged(row, text.groups[2], other.only(other.order[1::2]))
        left = text.order[::2]
        # Exponential waiting times at rates of the weights: the first to come are drawn by weight.
        noise = uniform_noise(np.array([key]), len(left)).numpy()[0]
        waiting = -np.log1p(-noise) / text.weights[left].clip(1e-300)
        drawn.append([left[place] for place in np.argsort(waiting)[:FEW]])
        asked.append(_Asked(row, half, half.is_new))
        asked += [_Asked(row, half.without(unit)) for unit in drawn[-1]]
    said = iter(pairs.ask(asked))
    mattering, around = [], []
    for row, units in zip(rows.tolist(), drawn, strict=True):
        text, balanced = pairs.pairs[row][0], next(said)
        way = max(pairs.other[row] - pairs.own[row], 1e-9)
        effect = (np.array([next(said).odds for _ in units]) - balanced.odds) / way
        share = (effect >= LEAST * text.weights[units]).mean()
        mattering.append(text.weights[text.seen].sum() * share)
        moved = balanced.odds - pairs.own[row]
        left_over = (balanced.blocked[0] - pairs.blocked(row)[2]) / moved if moved else np.nan
        around.append(left_over if moved >= HALF * way else np.nan)
    return np.array(mattering), np.array(around)
