"""The compact tables of the tracing study, by corpus, seed and variant."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

from heedful.audits import lexicon
from heedful.errors import InputError
from heedful.reproduction.results import Skipped
from heedful.statistics import draws
from heedful.statistics.draws import Draws
from heedful.statistics.estimates import Estimate
from heedful.studies.tracing import models, steps
from heedful.studies.tracing.word_steps import matches_of

if TYPE_CHECKING:
    import pandas as pd

    from heedful.corpora.lexicon import Match
    from heedful.reproduction.results import Results
    from heedful.reproduction.study import Plan


@dataclass(frozen=True, eq=False)
class View:
    """One corpus: every table from finished steps, statistics over its seeds."""

    results: Results
    plan: Plan
    corpus: str

    @property
    def seeds(self) -> tuple[int, ...]:
        """The seeds of the plan."""
        return self.plan.seeds

    @cached_property
    def matches(self) -> dict[str, Match]:
        """Ratings of the corpus's words."""
        return matches_of(self.results[steps.ratings(self.plan, self.corpus)])

    def words(self, seed: int, variant: str = models.PUBLISHED) -> pd.DataFrame:
        """Word averages of all words."""
        return self.results[steps.words(self.plan, self.corpus, seed, variant)]

    def rated(self, seed: int, variant: str = models.PUBLISHED) -> pd.DataFrame:
        """Word averages of rated words seen more than once."""
        try:
            return lexicon.rated(self.words(seed, variant), self.matches)
        except InputError as error:
            raise Skipped(str(error)) from error

    def heads(self, seed: int) -> pd.DataFrame:
        """Attention of heads on tagged words, by text."""
        return self.results[steps.heads(self.plan, self.corpus, seed)]

    def texts(self, seed: int) -> pd.DataFrame:
        """One row per text."""
        return self.results[steps.texts(self.plan, self.corpus, seed)]

    def accuracies(self, variant: str = models.PUBLISHED) -> list[float]:
        """Test accuracy of every seed, per cent."""
        found = [models.decisions(self.plan, self.corpus, variant, s) for s in self.seeds]
        return [100 * float(self.results[one]["training"]["accuracy"].iloc[0]) for one in found]

    def each(self, of: Callable[[int], Draws]) -> list[Draws]:
        """A statistic of every seed."""
        return [of(seed) for seed in self.seeds]

    def over_seeds(self, of: Callable[[int], Draws]) -> Estimate:
        """The mean of a statistic over seeds; replicates draw seeds beside words or texts."""
        return draws.over_seeds(self.each(of)).estimate()
