"""What each strength of a remedy costs and buys on dev, and which of them is kept.

A strength costs F1 and buys reliance on attention: what is lost when attention is flattened or
shuffled. Of those that cost at most the limit the one that relies most on attention is kept
(docs/studies/faithful.md, "Masked words"). All models decide the same dev documents, so their
differences are bootstrapped in pairs: a document is drawn equally often for each.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, fields
from math import isnan
from pathlib import Path
from shlex import quote
from typing import Any

import numpy as np
from jaxtyping import Float64, Int

from heedful.audits import substitution
from heedful.audits.examination import Portion, examine
from heedful.corpora import Corpus, EncodedCorpus
from heedful.errors import InputError
from heedful.jobs.advice import Command, again, code_of, silence, untried
from heedful.jobs.decider import Decider
from heedful.statistics import Estimate, bootstraps, classification_scores
from heedful.statistics.estimates import per_cent
from heedful.statistics.scores import mean_of_defined

LIMIT = 1.5
"""How many points of dev F1 a strength may cost, unless another limit is given."""
LEGEND = (
    "All in points of dev F1 (mean over classes). flat, shuffled: its change when attention is "
    "flattened or shuffled; cost: F1 at 0 minus F1 here; buys: what flattening and shuffling take "
    "away here, minus what they take at 0."
)
"""What stands in the columns of the table."""


@dataclass(frozen=True)
class Strength:
    """What a model trained at one strength does on dev."""

    strength: float
    f1: float
    """The mean over classes, or that of the class asked for."""
    uniform: float
    """Change of F1 when attention is flattened."""
    permuted: float
    """Change of F1 when attention is shuffled."""

    @property
    def reliance(self) -> float:
        """F1 lost by flattening plus F1 lost by shuffling."""
        return -(self.uniform + self.permuted)


@dataclass(frozen=True)
class Price:
    """What one strength costs and buys, with intervals over dev documents."""

    cost: Estimate
    """F1 of the untreated model minus its own."""
    buys: Estimate
    """Its reliance on attention minus that of the untreated model."""
    behind: Estimate
    """The reliance of the strength that is kept minus its own."""

    def to_json(self) -> dict[str, Any]:
        """The intervals as plain data."""
        return {name: estimate.to_json() for name, estimate in vars(self).items()}

    @classmethod
    def from_json(cls, stored: Mapping[str, Any]) -> Price:
        """The intervals again from `to_json`; other keys are left alone."""
        return cls(*(Estimate.from_json(stored[field.name]) for field in fields(cls)))

    def is_rival(self, limit: float) -> bool:
        """Whether it may cost no more than the limit and rely no less than the one kept."""
        return self.cost.side(limit / 100) != "above" and self.behind.side(0) != "above"


@dataclass(frozen=True)
class Chosen:
    """The strength that the rule keeps."""

    strength: float
    is_within: bool
    """Whether it costs no more F1 than allowed; else it is the one that costs least."""


@dataclass(frozen=True)
class Remedy:
    """What a search for the strength leaves."""

    objective: str
    base: Strength
    tried: tuple[Strength, ...]
    chosen: Chosen
    folder: Path
    """The run of the model that was kept."""
    notes: tuple[str, ...] = ()
    limit: float = LIMIT
    """How many points of dev F1 a strength might cost."""
    prices: tuple[Price, ...] = ()
    """Of each strength tried; none where the search was made before there were intervals."""
    run: str = ""
    """The run whose model was trained again, where the search says so."""

    def to_json(self) -> dict[str, Any]:
        """The search as plain data."""
        tried = [asdict(one) | {"reliance": one.reliance} for one in self.tried]
        for one, price in zip(tried if self.prices else [], self.prices, strict=True):
            one |= price.to_json()
        return {
            "objective": self.objective,
            "limit": self.limit,
            "base": asdict(self.base),
            "tried": tried,
            "chosen": asdict(self.chosen),
            "is_remedy": self.is_remedy,
            "said": self._said(),
            "next": self._following().text,
            "folder": str(self.folder),
            "run": self.run,
            "notes": list(self.notes),
        }

    @classmethod
    def from_json(cls, stored: Mapping[str, Any], folder: Path) -> Remedy:
        """The search again from `to_json`, in the folder where it now lies."""
        numbers = ("strength", "f1", "uniform", "permuted")
        return cls(
            stored["objective"],
            Strength(**stored["base"]),
            tuple(Strength(*(one[name] for name in numbers)) for one in stored["tried"]),
            Chosen(**stored["chosen"]),
            folder,
            tuple(stored["notes"]),
            stored.get("limit", LIMIT),
            tuple(Price.from_json(one) for one in stored["tried"] if "cost" in one),
            stored.get("run", ""),
        )

    def lines(self) -> list[str]:
        """The search for the terminal: a line per strength, what was kept, and what to do next."""
        head = f"{'strength':>10} {'dev F1':>7} {'flat':>6} {'shuffled':>9}"
        costs, gives = (f"{what} [{per_cent(0.95)}]" for what in ("cost", "buys"))
        found = [*self.notes, f"{head} {costs:>20} {gives:>20}"]
        priced = self._priced()
        for one in (self.base, *self.tried):
            line = (
                f"{one.strength:>10g} {100 * one.f1:>7.1f} "
                f"{_change(one.uniform):>6} {_change(one.permuted):>9}"
            )
            if one.strength in priced:
                price = priced[one.strength]
                line += f" {_shown(price.cost):>20} {_shown(price.buys):>20}"
            elif one != self.base:
                cost, bought = self.base.f1 - one.f1, one.reliance - self.base.reliance
                line += f" {_points(cost):>20} {_points(bought):>20}"
            found.append(line + ("   kept" if one.strength == self.chosen.strength else ""))
        command, said = self._following()
        where = [] if self.is_remedy else [f"What was kept lies in {self.folder}."]
        told = "; ".join(filter(None, (said, "" if self.is_remedy else "not tried yet")))
        following = [f"Next: {command}" + (f" ({told})" if told else "")]
        if self.is_remedy and self.run:
            if not (Path(self.run) / "findings" / "verdict.json").is_file():
                following.append(f"Then: heedful audit {quote(self.run)}{code_of(Path(self.run))}")
            compared = f"heedful compare {quote(self.run)} {quote(str(self.folder))}"
            following.append(f"Then: {compared} (what it costs on test documents)")
        return [*found, LEGEND, *self._said(), *where, *following]

    @property
    def is_remedy(self) -> bool:
        """Whether what was kept is cheap enough and relies more on attention than the base."""
        return self.chosen.is_within and self._bought() > 0

    def _following(self) -> Command:
        """The command to go on with: an audit, or a strength not yet tried where none helps."""
        if self.is_remedy:
            return Command(f"heedful audit {quote(str(self.folder))}{code_of(self.folder)}")
        strength = untried([one.strength for one in self.tried], **asdict(self.chosen))
        limit = None if self.limit == LIMIT else self.limit
        return again(self.folder, f"{self.objective}:{strength}", limit)

    def _said(self) -> list[str]:
        """What to think of the strength that was kept, in sentences."""
        return list(filter(None, (self._kept(), self._doubt())))

    def _one_kept(self) -> Strength:
        return next(one for one in self.tried if one.strength == self.chosen.strength)

    def _bought(self) -> float:
        """How much more the strength that was kept relies on attention than the base."""
        return self._one_kept().reliance - self.base.reliance

    def _kept(self) -> str:
        """What the strength that was kept costs and buys, and why it is this one."""
        kept, bought = self._one_kept(), self._bought()
        cost = self.base.f1 - kept.f1
        is_close = not self.chosen.is_within and round(100 * cost, 1) <= self.limit
        points = f"{100 * abs(cost):.{2 if is_close else 1}f}"
        price = f"{'costs' if cost >= 0 else 'gains'} {points}{self._interval()} points of dev F1"
        allowed = f"{self.limit:g} points"
        if self.chosen.is_within and bought <= 0:
            return (
                f"No strength that costs at most {allowed} makes decisions rely more on attention; "
                f"{kept.strength:g} was kept, which {price}, but is no remedy."
            )
        named = f"{self.objective} at {kept.strength:g} {price}"
        relies = (
            f"{'buys' if bought >= 0 else 'loses'} {100 * abs(bought):.1f} points of reliance on "
            "attention (flattening and shuffling together)"
        )
        if self.chosen.is_within:
            return f"{named} and {relies}. No other one that costs at most {allowed} buys more."
        return (
            f"No strength is cheap enough: {named}, more than the limit of {allowed}, and "
            f"{relies}; it is kept as the cheapest, not as a remedy."
        )

    def _interval(self) -> str:
        """Within what the cost (or the gain) of the strength that was kept lies on dev."""
        price = self._priced().get(self.chosen.strength)
        if price is None or isnan(price.cost.low):
            return ""
        sign = 1 if self.base.f1 >= self._one_kept().f1 else -1
        ends = sorted(sign * end for end in (price.cost.low, price.cost.high))
        return f" [{', '.join(map(_points, ends))}; {price.cost.n:,} documents]"

    def _doubt(self) -> str:
        """What the dev documents are too few to tell of the choice; empty where nothing is."""
        priced = self._priced()
        if not priced:
            return ""
        kept = priced.pop(self.chosen.strength)
        cost, doubts = kept.cost, []
        if isnan(cost.low):
            doubts.append("its cost has no interval")
        elif cost.side(self.limit / 100) == "straddles":
            low, high = _points(cost.low), _points(cost.high)
            doubts.append(f"its cost may be anything from {low} to {high} points")
        if kept.buys.value > 0 and kept.buys.side(0) == "straddles":
            doubts.append("it may buy no reliance")
        elif kept.buys.value <= 0 < kept.buys.high:
            doubts.append("it may buy reliance after all")
        rivals = [f"{one:g}" for one, price in priced.items() if price.is_rival(self.limit)]
        doubts += [f"{_listed(rivals)} may do as well"] if rivals else []
        if not doubts:
            return ""
        told = f"With {cost.n} dev documents {_listed(doubts)}"
        return f"{told}; more dev documents would tell strengths apart."

    def _priced(self) -> dict[float, Price]:
        """The price of each strength; empty where the search has none."""
        strengths = [one.strength for one in self.tried] if self.prices else []
        return dict(zip(strengths, self.prices, strict=True))


def choose(base: float, tried: Sequence[Strength], limit: float = LIMIT) -> Chosen:
    """The strength with the most reliance among those within `limit` points of the base's F1.

    Where none is, the one with the highest F1. Ties go to the weaker strength.
    """
    if not tried:
        raise InputError("There is no strength to choose from; give at least one.")
    rising = sorted(tried, key=lambda one: one.strength)
    within = [one for one in rising if one.f1 >= base - limit / 100]
    if within:
        return Chosen(max(within, key=lambda one: one.reliance).strength, True)
    return Chosen(max(rising, key=lambda one: one.f1).strength, False)


def refuse_limit(limit: float) -> None:
    """Raises at a limit that no F1 can cost, or that is no number."""
    if not 0 <= limit <= 100:
        raise InputError(
            f"The limit is how many points of dev F1 a strength may cost, from 0 to 100; got "
            f"{limit:g}."
        )


def refuse_dev(corpus: Corpus | EncodedCorpus) -> None:
    """Raises at dev documents that are all of one of two classes."""
    if reason := silence(corpus):
        raise InputError(reason)


@dataclass(frozen=True, eq=False)
class Decisions:
    """What a model decides of each document with trained, flat and shuffled attention."""

    names: tuple[str, ...]
    gold: Int[np.ndarray, " instance"]
    trained: Int[np.ndarray, "1 instance"]
    uniform: Int[np.ndarray, "1 instance"]
    permuted: Int[np.ndarray, "draw instance"]
    classes: int
    """How many classes there are."""
    of_class: int | None = None
    """Whose F1; none takes the mean over classes. Of one class alone it stays high for a model
    that, without its attention, calls everything by that class."""

    def f1(
        self, weights: Float64[np.ndarray, "replicate instance"] | None = None
    ) -> Float64[np.ndarray, "replicate 3"]:
        """F1 with trained, flat and shuffled attention (mean over draws) under each weighting."""
        columns = []
        for decided in (self.trained, self.uniform, self.permuted):
            scores = classification_scores(decided, self.gold, self.classes, weights)
            f1 = scores.macro_f1 if self.of_class is None else scores.f1[..., self.of_class]
            columns.append(mean_of_defined(f1, 1))
        return np.stack(columns, axis=1)

    def at(self, strength: float) -> Strength:
        """What that comes to, for a model that was trained at this strength."""
        trained, flat, shuffled = self.f1()[0].tolist()
        return Strength(strength, trained, flat - trained, shuffled - trained)


def on_dev(
    model: Decider, corpus: EncodedCorpus, seed: int, device: str, of_class: int | None = None
) -> Decisions:
    """What the model decides of the dev documents, from one reading."""
    refuse_dev(corpus)
    asked = {"substitution": substitution.rows}
    dev, at_once = corpus.splits["dev"], Portion(256)
    found = examine(model, dev, asked, seed=seed, device=device, at_once=at_once)
    rows = found["substitution"]
    return Decisions(
        tuple(str(name) for name in rows["instance"]),
        rows["label"].to_numpy(dtype=np.int64),
        **substitution.decisions(rows),
        classes=len(model.classes),
        of_class=of_class,
    )


def prices(
    base: Decisions, tried: Sequence[Decisions], kept: int, replicates: int = 1000
) -> tuple[Price, ...]:
    """What each of the tried costs and buys beside the base, and lies behind the one kept."""
    assert all(one.names == base.names for one in tried), "pairs need the same documents"

    def differences(
        weights: Float64[np.ndarray, "replicate instance"],
    ) -> Float64[np.ndarray, "replicate difference"]:
        scores = np.stack([one.f1(weights) for one in (base, *tried)])
        trained, uniform, permuted = scores.transpose(2, 0, 1)
        reliance = (trained - uniform) + (trained - permuted)
        cost, buys = trained[0] - trained[1:], reliance[1:] - reliance[0]
        return np.concatenate([cost, buys, buys[kept] - buys]).T

    found = bootstraps(differences, base.names, replicates=replicates, method="bca")
    return tuple(Price(*found[place :: len(tried)]) for place in range(len(tried)))


def _points(difference: float) -> str:
    """A difference of F1 in points."""
    return f"{round(100 * difference, 1) + 0.0:.1f}"  # adding 0 turns a rounded -0.0 into 0.0


def _change(difference: float) -> str:
    """A change of F1 in points, with its sign."""
    return f"{round(100 * difference, 1) + 0.0:+.1f}"


def _shown(estimate: Estimate) -> str:
    """A difference of F1 in points with its interval; a dash where there is none."""
    if isnan(estimate.low):
        return f"{_points(estimate.value)} [-]"
    return f"{_points(estimate.value)} [{_points(estimate.low)}, {_points(estimate.high)}]"


def _listed(parts: Sequence[str]) -> str:
    """`a`, `a and b`, or `a, b and c`."""
    *first, last = parts
    return f"{', '.join(first)} and {last}" if first else last
