"""The claims ledger: a sentence of a paper, a statistic, a side, and the verdict on our data.

A claim is confirmed when the 95 % interval lies wholly on its side of the threshold, refuted when
it lies wholly on the other, undecided when it straddles, not measurable when data is missing.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, Literal, NamedTuple, TypeAlias

from heedful.statistics import Estimate
from heedful.statistics.estimates import per_cent
from heedful.statistics.power import CHANCE, needed

Word: TypeAlias = Literal["confirmed", "refuted", "undecided", "not measurable"]
WORDS: tuple[Word, ...] = ("confirmed", "refuted", "undecided", "not measurable")
EVERY = "all"
"""The corpus of an object that speaks of all corpora at hand."""


@dataclass(frozen=True)
class Side:
    """The values that a claim allows: an interval of numbers, with or without its ends."""

    low: float
    high: float
    closed: bool
    text: str
    """As a person writes it: `> 0`."""
    is_held: bool = False
    """Whether the interval must hold all allowed values instead of lying among them."""

    def power(self, estimate: Estimate) -> str:
        """Which n would decide an undecided estimate, in half a sentence."""
        ends = [end for end in (self.low, self.high) if estimate.low <= end <= estimate.high]
        found = [needed(estimate, end) for end in ends]
        known = [n for n in found if n is not None]
        if not known or len(known) < len(found):
            return "no n would decide it at this value"
        return f"n = {max(known):,} would decide it with a chance of {per_cent(CHANCE)}"

    def judge(self, estimate: Estimate) -> Word:
        """Where the estimate's interval lies; without an interval nothing is decided."""
        low, high = estimate.low, estimate.high
        if math.isnan(low) or math.isnan(high):
            return "undecided"
        if self.is_held:
            return "confirmed" if low <= self.low and self.high <= high else "refuted"
        # An open side's own threshold lies outside it, but an interval that only touches the
        # threshold contains it, so it straddles: refuted is the same for open and closed sides.
        outside = high < self.low or low > self.high
        inside = self.low < low and high < self.high
        if self.closed:
            inside = self.low <= low and high <= self.high
        return "confirmed" if inside else "refuted" if outside else "undecided"


def above(threshold: float) -> Side:
    """Greater than the threshold."""
    return Side(threshold, math.inf, False, f"> {threshold:g}")


def below(threshold: float) -> Side:
    """Smaller than the threshold."""
    return Side(-math.inf, threshold, False, f"< {threshold:g}")


def at_least(threshold: float) -> Side:
    """The threshold or more."""
    return Side(threshold, math.inf, True, f"≥ {threshold:g}")


def at_most(threshold: float) -> Side:
    """The threshold or less."""
    return Side(-math.inf, threshold, True, f"≤ {threshold:g}")


def between(low: float, high: float) -> Side:
    """From low to high, ends included."""
    return Side(low, high, True, f"in [{low:g}, {high:g}]")


def within(size: float, centre: float = 0.0) -> Side:
    """At most `size` away from the centre; `within(0)` is an exact equality."""
    text = f"size ≤ {size:g}" if centre == 0 else f"{centre:g} ± {size:g}"
    return Side(centre - size, centre + size, True, text)


def holding(value: float) -> Side:
    """The interval holds the value: no difference was seen, which is weaker than there is none."""
    return Side(value, value, True, f"interval holds {value:g}", is_held=True)


class NotMeasurable(NamedTuple):
    """What a measurement gives where data is missing."""

    reason: str


@dataclass(frozen=True)
class Unchanged:
    """The same statistic two ways: the claim is that the verdict stays the same.

    Of several statistics whose verdicts must each stay, make `Parts` of one `Unchanged` for each:
    `Unchanged(Parts, Parts)` compares the two verdicts over all parts, so one that is refuted both
    times hides whatever changes beside it.
    """

    before: Estimate | Parts
    after: Estimate | Parts


Parts: TypeAlias = dict[str, Estimate | NotMeasurable | Unchanged]
"""Several statistics that must all lie on their sides, by name."""
Measured: TypeAlias = Estimate | Parts | Unchanged | NotMeasurable
Sides: TypeAlias = Side | Mapping[str, Side]


def each_unchanged(
    before: Mapping[str, Estimate | NotMeasurable | Unchanged],
    after: Mapping[str, Estimate | NotMeasurable | Unchanged],
    suffix: str = "",
) -> Parts:
    """Every statistic two ways: each verdict must stay, so that none hides another's change."""
    found = Parts()
    for name, second in after.items():
        first = before[name]
        if isinstance(first, Estimate) and isinstance(second, Estimate):
            found[name + suffix] = Unchanged(first, second)
        else:
            found[name + suffix] = second if isinstance(first, Estimate) else first
    return found


class Judgement(NamedTuple):
    """A verdict, the estimate it turns on and the parts it was made of."""

    word: Word
    estimate: Estimate | None
    reason: str
    parts: tuple[dict[str, Any], ...] = ()


def judge(measured: Measured, sides: Sides) -> Judgement:
    """The verdict on what was measured.

    Of several parts all must be confirmed; one refuted part refutes, and the first part that is not
    confirmed is the one shown; the reason begins with how many hold. `sides` is one side for every
    part, or one for each by name.
    """
    match measured:
        case NotMeasurable(reason):
            return Judgement("not measurable", None, reason)
        case Unchanged(before, after):
            return _unchanged(judge(before, sides), judge(after, sides))
        case Estimate():
            side = _side(sides, "")
            word = side.judge(measured)
            return Judgement(word, measured, _reason(measured, side, word))
    return _all_of(measured, sides)


def _all_of(parts: Parts, sides: Sides) -> Judgement:
    judged = {name: judge(part, _side(sides, name)) for name, part in parts.items()}
    if not judged:
        return Judgement("not measurable", None, "nothing was measured")
    # The order of gravity: a refuted part settles it, whatever else is missing.
    for word in ("refuted", "not measurable", "undecided", "confirmed"):
        named = {name: one for name, one in judged.items() if one.word == word}
        if named:
            shown = next(iter(named.values()))
            held = sum(one.word == "confirmed" for one in judged.values())
            counted = [f"{held} of {len(judged)} parts hold"] if len(judged) > 1 else []
            return Judgement(
                shown.word,
                shown.estimate,
                _join([*counted, *(f"{name}: {one.reason}" for name, one in named.items())]),
                tuple(
                    {"part": name, "side": _side(sides, name).text, "verdict": one.word}
                    | numbers_of(one.estimate)
                    | {"reason": one.reason}
                    for name, one in judged.items()
                ),
            )
    raise AssertionError("a part has one of the four verdicts")


def _unchanged(before: Judgement, after: Judgement) -> Judgement:
    decided = {"confirmed", "refuted"}
    if "not measurable" in (before.word, after.word):
        missing = after if after.word == "not measurable" else before
        return Judgement("not measurable", None, missing.reason)
    word: Word = "undecided"
    if {before.word, after.word} <= decided:
        word = "confirmed" if before.word == after.word else "refuted"
    reason = f"{before.word} before ({before.reason}), {after.word} after ({after.reason})"
    return Judgement(word, after.estimate, reason, (*before.parts, *after.parts))


def over_all(judged: Mapping[str, Judgement]) -> Judgement:
    """The verdict on a claim that speaks of all corpora, from those at hand.

    Confirmed only if every measurable one is; the exceptions and the missing ones are named.
    """
    at_hand = {name: one for name, one in judged.items() if one.word != "not measurable"}
    absent = [name for name in judged if name not in at_hand]
    if not at_hand:
        reasons = {one.reason for one in judged.values()}
        return Judgement("not measurable", None, _join(sorted(reasons)) or "no corpus at hand")
    words = {name: one.word for name, one in at_hand.items()}
    word: Word = "undecided"
    if all(found == "confirmed" for found in words.values()):
        word = "confirmed"
    elif "refuted" in words.values():
        word = "refuted"
    held = sum(found == "confirmed" for found in words.values())
    told = [f"decided over the corpora at hand: {', '.join(at_hand)}"]
    if len(at_hand) > 1:
        told.insert(0, f"holds on {held} of {len(at_hand)} corpora")
    exceptions = [f"{name} ({found})" for name, found in words.items() if found != "confirmed"]
    if exceptions:
        told.append(f"exceptions: {', '.join(exceptions)}")
    if absent:
        told.append(f"not measurable: {', '.join(absent)}")
    # Several corpora have no common number: each one's stands among the parts.
    estimate = next(iter(at_hand.values())).estimate if len(at_hand) == 1 else None
    parts = tuple(
        {"part": name, "verdict": one.word} | numbers_of(one.estimate)
        for name, one in judged.items()
    )
    return Judgement(word, estimate, _join(told), parts)


SIGNS: Mapping[str, Callable[[float], Side]] = {
    ">": above,
    "<": below,
    "≥": at_least,
    "≤": at_most,
    "size ≤": within,
    "interval holds": holding,
}


def sides_of(text: str | Mapping[str, str]) -> Sides:
    """The side that a person writes so (`text_of` the other way round), or one for each part.

    >>> sides_of("≥ 10/16").low, sides_of("47.5 ± 1.5").low, sides_of("in [-0.6, -0.4]").high
    (0.625, 46.0, -0.4)
    """
    if not isinstance(text, str):
        return {part: _written(one) for part, one in text.items()}
    return _written(text)


def _written(text: str) -> Side:
    numbers = [float(Fraction(one)) for one in re.findall(r"-?[\d.]+(?:e-?\d+|/\d+)?", text)]
    if "±" in text:
        return within(numbers[1], numbers[0])
    if text.startswith("in ["):
        return between(*numbers)
    sign = text.rpartition(" ")[0]
    if sign not in SIGNS or len(numbers) != 1:
        known = ", ".join(f"{one} 0" for one in SIGNS)
        raise ValueError(f"a side is {known}, 0 ± 1 or in [0, 1]; got {text!r}")
    return SIGNS[sign](numbers[0])


def text_of(sides: Sides) -> str:
    """What is claimed, as a person writes it."""
    if isinstance(sides, Side):
        return sides.text
    return _join([f"{name} {side.text}" for name, side in sides.items()])


def _side(sides: Sides, name: str) -> Side:
    if isinstance(sides, Side):
        return sides
    if name not in sides:
        raise ValueError(f"no side for {name!r}; there are sides for {', '.join(sides)}")
    return sides[name]


def _reason(estimate: Estimate, side: Side, word: Word) -> str:
    if math.isnan(estimate.value):
        return "cannot be computed here"
    if math.isnan(estimate.low):
        return f"{estimate.value:.3g} from n = {estimate.n} has no interval"
    said = f"{estimate.against(side.low, side.high)}, claimed {side.text}"
    return f"{said}; {side.power(estimate)}" if word == "undecided" else said


def numbers_of(estimate: Estimate | None) -> dict[str, Any]:
    """An estimate as `claims.json` has it: ours, interval and n."""
    if estimate is None:
        return {"ours": None, "interval": None, "n": None}
    stored = estimate.to_json()
    ends = [stored["low"], stored["high"]]
    return {
        "ours": stored["value"],
        "interval": None if None in ends else ends,
        "n": estimate.n,
    }


def _join(sentences: Sequence[str]) -> str:
    return "; ".join(sentences)
