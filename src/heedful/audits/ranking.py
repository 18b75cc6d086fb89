"""Of all the ways to explain this model, which beat a random order, and where attention stands.

Explanations are ranked by what deleting words says of them (`input_erasure`): how much the decision
loses without the words they name, less what it loses with these alone. That number lies below 0 for
a random order, since few words alone rarely decide as the whole text does: so what is told of a
method is how far it lies above that, paired by document. What other audits say of a method stands
beside it and may speak against it.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any, Literal

from heedful.audits.finding import Finding
from heedful.audits.randomisation import KEPT, MUCH
from heedful.statistics.estimates import Estimate, per_cent

Standing = Literal[
    "better than random", "better in part", "as random", "worse than random", "unknown"
]
"""Against a random order of words. Whether attention may be shown is the verdict's to say."""
FAITHFULNESS = "faithfulness"
BESIDE = {
    "comprehensiveness": ("input-erasure", "comprehensiveness"),
    "sufficiency": ("input-erasure", "sufficiency"),
    "claims belied": ("violation", "violations"),
    KEPT: ("randomisation", KEPT),
    "AUPRC": ("evidence", "AUPRC"),
}
"""What else is shown of a method: the audit and the measure."""
LEAST = 0.02
"""Losing less probability than this without its words is nothing: the decision hardly moves."""
PLACE = " (see `Deleting words`)"
"""Where on the page of the audit the numbers of an advice stand."""
NAMED = 3
"""Methods as good as the best that a sentence names."""


@dataclass(frozen=True)
class Place:
    """One way to explain the model, and how it fared."""

    method: str
    place: int
    """From 1, the most faithful; 0 for the random order, which has no place of its own."""
    standing: Standing
    faithfulness: Estimate
    beyond_random: Estimate | None
    """The paired difference to a random order."""
    is_best: bool
    """Whether it is the best, or not clearly worse than it."""
    beside: Mapping[str, Estimate]
    """What other measures say, by name."""

    def to_json(self) -> dict[str, Any]:
        """The place as plain data."""
        beyond = None if self.beyond_random is None else self.beyond_random.to_json()
        return asdict(self) | {
            "faithfulness": self.faithfulness.to_json(),
            "beyond_random": beyond,
            "beside": {name: estimate.to_json() for name, estimate in self.beside.items()},
        }


@dataclass(frozen=True)
class Ranking:
    """All explanations, best first, and what follows from it."""

    sentence: str
    recommendation: str
    places: tuple[Place, ...]
    recommended: str = ""
    """The method that it names; none where it advises none."""

    def to_json(self) -> dict[str, Any]:
        """The ranking as plain data."""
        return {
            "sentence": self.sentence,
            "recommendation": self.recommendation,
            "recommended": self.recommended,
            "places": [place.to_json() for place in self.places],
        }

    def of(self, method: str) -> Place | None:
        """The place of a method, or none if it was not tried."""
        return next((place for place in self.places if place.method == method), None)


def rank(findings: Mapping[str, Finding], may_show: bool = False) -> Ranking | None:
    """The ranking that the findings hold; none where words were not deleted by two methods.

    Where the verdict is that attention may be shown, a better explanation does not forbid it.
    """
    erased = findings.get("input-erasure")
    if erased is None:
        return None
    worth = {
        measure.method: measure.estimate
        for measure in erased.measures
        if measure.name == FAITHFULNESS and " - " not in measure.method
    }
    worth = {m: e for m, e in worth.items() if not math.isnan(e.value)}
    order = sorted(worth, key=lambda method: -worth[method].value)
    named = [method for method in order if method != "random"]
    if not named:
        return None
    places = tuple(
        Place(
            method=method,
            place=0 if method == "random" else named.index(method) + 1,
            standing=_standing(erased, method),
            faithfulness=worth[method],
            beyond_random=erased.get(FAITHFULNESS, f"{method} - random"),
            is_best=_is_best(erased, method, order[0]),
            beside=_beside(findings, method),
        )
        for method in order
    )
    told, advised = _recommendation(places, may_show)
    return Ranking(_sentence(places, may_show), told, places, advised)


def named_in(ranking: Ranking | None, methods: Sequence[str]) -> tuple[str, ...]:
    """Of the methods, those that the ranking speaks of, beside a random order; all without one."""
    if ranking is None:
        return tuple(methods)
    tied = [place.method for place in ranking.places if place.is_best][: NAMED + 1]
    named = {"random", "attention", ranking.recommended, *tied}
    return tuple(name for name in methods if name in named)


def _standing(erased: Finding, method: str) -> Standing:
    """Better where both deleting and keeping its words beat a random order, paired."""
    if method == "random":
        return "as random"
    kinds = (FAITHFULNESS, "comprehensiveness", "sufficiency")
    found = [erased.get(kind, f"{method} - random") for kind in kinds]
    if any(estimate is None or math.isnan(estimate.low) for estimate in found):
        return "unknown"
    sides = [estimate.side(0) for estimate in found if estimate is not None]
    if sides == ["above", "above", "below"]:
        return "better than random"
    words: dict[str, Standing] = {"above": "better in part", "below": "worse than random"}
    return words.get(sides[0], "as random")


def _is_best(erased: Finding, method: str, best: str) -> bool:
    behind = erased.get(FAITHFULNESS, f"{method} - {best}")
    return method == best or (behind is not None and behind.side(0) != "below")


def _beside(findings: Mapping[str, Finding], method: str) -> dict[str, Estimate]:
    found = {}
    for name, (audit, measure) in BESIDE.items():
        estimate = findings[audit].get(measure, method) if audit in findings else None
        if estimate is not None:
            found[name] = estimate
    return found


def _sentence(places: Sequence[Place], may_show: bool) -> str:
    """How many beat a random order, which is best, and where attention stands."""
    named = [place for place in places if place.method != "random"]
    better = sum(place.standing == "better than random" for place in named)
    best = named[0]
    are, they_name = ("is", "it names") if better == 1 else ("are", "they name")
    sentence = (
        f"{better} of {len(named)} explanations of this model {are} better than a random order on "
        f"{best.faithfulness.n:,} documents: the words {they_name} are needed for its decisions, "
        "and enough, more than random ones are. "
    )
    if all(place.method != "occlusion" for place in named):
        sentence += "Occlusion, which reads a text again for every word, was not tried. "
    attention = next((place for place in named if place.method == "attention"), None)
    worth = _beyond(best)
    if attention is None:
        return f"{sentence}The best is {best.method} ({worth})."
    if attention is best:
        return f"{sentence}Attention is the best of them ({worth})."
    behind = "not clearly behind" if attention.is_best else "behind"
    standing = {
        "better than random": "better than a random order",
        "better in part": "better than a random order only in part",
        "as random": "no better than a random order",
        "worse than random": "worse than a random order",
        "unknown": "not to be told from a random order here",
    }[attention.standing]
    sentence += (
        f"Attention is number {attention.place}, {standing} ({_beyond(attention)}), and {behind} "
        f"{best.method} ({worth})."
    )
    if attention.standing.startswith("better") and not may_show:
        sentence += " To be better than a random order is not enough to be shown as the reason."
    return sentence


def _beyond(place: Place) -> str:
    """How far it lies above a random order; by itself where there is none to compare with."""
    if place.beyond_random is None:
        return f"faithfulness {place.faithfulness}"
    return f"{place.beyond_random} above a random order"


def _recommendation(places: Sequence[Place], may_show: bool) -> tuple[str, str]:
    """Which explanation to show, with what speaks against it; and its name, where there is one."""
    best = places[0]
    none = "Show none of them as the reason: "
    if not best.standing.startswith("better"):
        return f"{none}no explanation here is clearly better than a random order.", ""
    cost = best.beside.get("comprehensiveness")
    if cost is not None and cost.value < LEAST:
        idle = "whichever words they name, the decision hardly loses any probability without them"
        return f"{none}{idle}{PLACE}.", ""
    tied = [p.method for p in places[1:] if p.is_best and p.method != "random"]
    advised = best.method
    if "attention" in (best.method, *tied):
        advised = "attention" if may_show else ""
        shown = "No other explanation tested here finds the words this model needs clearly better "
        shown += "than attention does"
    else:
        attention = next((p for p in places if p.method == "attention"), None)
        shown = f"Show `{best.method}`" + (" instead of attention" if attention else "")
        if attention and may_show:
            named = f"`{best.method}` does better than attention"
            shown = f"To name the fewest words that decide, {named}"
        shown += _costs(best, attention)
        if tied:
            others = ", ".join(f"`{method}`" for method in tied[:NAMED])
            shown += f"; {others} {'do' if len(tied) > 1 else 'does'} about as well"
    return f"{shown}{PLACE}.{_caution(best)}", advised


def _costs(best: Place, attention: Place | None) -> str:
    """What deleting the words of each costs, in words."""
    cost = best.beside.get("comprehensiveness")
    if cost is None or math.isnan(cost.value):
        return ""
    told = ": deleting the words it names costs the decision "
    told += f"{per_cent(cost.value)} of probability"
    other = attention.beside.get("comprehensiveness") if attention else None
    return told if other is None else f"{told}, those of attention {per_cent(other.value)}"


def _caution(best: Place) -> str:
    kept = best.beside.get(KEPT)
    if kept is None or kept.side(MUCH) != "above":
        return ""
    return (
        f" But `{best.method}` ranks words much the same when all weights are drawn anew (τ {kept})"
        ": it may speak of the text more than of the model."
    )
