"""What claims and tables look at: the finished results of one corpus, or of several."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Concatenate, ParamSpec, TypeVar

from heedful.reproduction.results import Results, Step
from heedful.reproduction.tables import gathered
from heedful.statistics import Estimate, draws
from heedful.statistics.draws import Draws

if TYPE_CHECKING:
    import pandas as pd

    from heedful.reproduction.ledger import Measured
    from heedful.reproduction.study import Plan

P = ParamSpec("P")
T = TypeVar("T")
StepOf = Callable[Concatenate["Plan", str, P], Step[T]]
"""A function from plan, corpus and what else there is to a step."""


@dataclass(frozen=True, eq=False)
class View:
    """One corpus of a run: the results of its steps."""

    results: Results
    plan: Plan
    corpus: str

    @property
    def seeds(self) -> tuple[int, ...]:
        """The seeds of the plan."""
        return self.plan.seeds

    @property
    def alone(self) -> Views:
        """This corpus where several are asked for."""
        return Views(self.results, self.plan.only((self.corpus,)))

    def __getitem__(self, step: Step[T]) -> T:
        return self.results[step]

    def of(self, step: StepOf[P, T], *arguments: P.args, **named: P.kwargs) -> T:
        """The result of a step of this corpus: `view.of(words, seed)`."""
        return self.results[step(self.plan, self.corpus, *arguments, **named)]

    def on(self, corpus: str) -> View:
        """Another corpus of the same run."""
        return View(self.results, self.plan, corpus)

    def over_seeds(self, of: Callable[[int], Draws]) -> Estimate:
        """The mean of a statistic over seeds; replicates draw seeds beside words or texts."""
        return draws.over_seeds([of(seed) for seed in self.seeds]).estimate()


@dataclass(frozen=True, eq=False)
class Views:
    """The corpora that an artifact shows or a claim compares, each as a View."""

    results: Results
    plan: Plan
    """With no other corpora than these."""

    @property
    def corpora(self) -> tuple[str, ...]:
        """Their names."""
        return self.plan.corpora

    @property
    def seeds(self) -> tuple[int, ...]:
        """The seeds of the plan."""
        return self.plan.seeds

    def __getitem__(self, step: Step[T]) -> T:
        return self.results[step]

    def __iter__(self) -> Iterator[View]:
        return (self.on(corpus) for corpus in self.corpora)

    def on(self, corpus: str) -> View:
        """One corpus."""
        return View(self.results, self.plan, corpus)

    def each(self, make: Callable[[View], T]) -> dict[str, T]:
        """What `make` gives for each corpus; those it cannot be had for are noted as missing."""
        return self.results.each(self.corpora, lambda corpus: make(self.on(corpus)))

    def table(self, rows: Callable[[View], Iterable[Mapping[str, Any]]]) -> pd.DataFrame:
        """One table from the rows of each corpus at hand."""
        return gathered(self.each(lambda view: list(rows(view))))


def alone(measure_all: Callable[[Views], Measured]) -> Callable[[View], Measured]:
    """A statistic over several corpora, on one of them."""
    return lambda view: measure_all(view.alone)
