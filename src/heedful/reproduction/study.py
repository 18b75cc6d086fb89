"""How a study is declared: corpora, artifacts and claims as data, on steps that are done once.

A module of `heedful.studies` composes what the other rooms offer with what it alone needs:

    STUDY = Study(
        name="tiny", title="…", reference="…",
        sources=(Source("planted", "planted reviews", load),),
        seeds={"smoke": 2, "paper": 5},
        artifacts=(T1, …), claims=(TINY_1, …),
    )

**Steps.** A function from (plan, corpus, …) to a `Step` names a piece of work and what it needs.
Most are ready-made in `heedful.reproduction.stages`:

    def rows(plan, corpus, recipe, seed):
        text = stages.prepared(plan, corpus)
        model = stages.trained(plan, text, recipe, seed, TRAIN[plan.scale])
        return stages.audited(plan, text, model, ("erasure",), ("random", "attention"))

    def needs(plan, corpus):                     # the same for most artifacts and claims
        return [rows(plan, corpus, recipe, seed) for recipe in RECIPES for seed in plan.seeds]

A step's own function is `Step(named(corpus, "counts"), compute, inputs={…}, form=TABLE,
needs=(text,))`, where `compute(results)` takes what it needs by `results[text]`.

**Results.** Both look at a `View`, one corpus of a run: `view.of(rows, recipe, seed)` is the result
of that step on it, `view.seeds` the seeds.

**Artifacts.** `make(views)` returns a `Made`: the tidy table that goes to the CSV, and
`draw(table)`, a figure made from that table and nothing else (`heedful.report.panels` has boxes,
scatters, lines, histograms and heatmaps; without `draw` the table itself is drawn).
`views.table(rows)` is the table of what `rows(view)` gives for every corpus, and notes the missing
ones; `heedful.reproduction.tables` lays the paper's numbers beside ours.

**Claims.** `measure(view)` returns an Estimate (see `heedful.reproduction.measures`), `Parts` of
several that must all hold, `Unchanged(before, after)` where the claim is that a check does not
change a verdict, or `NotMeasurable(reason)`. `side` says what is claimed: `above(0)`,
`at_least(0.75)`, `within(0.1)`, …, or one side per part. `over="all"` adds the object with corpus
`all`, decided over the corpora at hand; a function `measure_all(views)` measures it instead where
the claim compares corpora.

**Words.** A larger study has them as data, in a `paper.toml` beside it: see
`heedful.reproduction.paper`.

A missing corpus, or any InputError inside a step, skips what needs it with the reason.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, TypeAlias, TypeVar

from heedful.errors import InputError, unknown
from heedful.reproduction.ledger import Measured, Sides
from heedful.reproduction.results import Step

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.figure import Figure

    from heedful.corpora import Corpus
    from heedful.reproduction.view import View, Views

T = TypeVar("T")

Scale: TypeAlias = Literal["smoke", "paper"]
SCALES: tuple[Scale, ...] = ("smoke", "paper")


@dataclass(frozen=True)
class Source:
    """A corpus (or a generated task) as a study uses it."""

    name: str
    """How it is asked for by `--corpora` and written in the tables, e.g. `imdb-stars`."""
    title: str
    load: Callable[[Plan], Corpus] | None = None
    """Reads it; none for a task that makes its own data."""
    stand_in_for: str | None = None
    """The published corpus in whose place it stands."""
    scales: tuple[Scale, ...] = SCALES
    """Where it is used unless `--corpora` asks for it."""
    inputs: Mapping[str, Any] = field(default_factory=dict)
    """What `load` depends on beside the scale (sizes, the reader's name)."""
    deviation: str = ""
    """How it differs from what the paper used, in a sentence."""


@dataclass(frozen=True)
class Plan:
    """What a run was asked for."""

    study: Study
    scale: Scale
    seeds: tuple[int, ...]
    corpora: tuple[str, ...]
    """Names of the sources in use, in the study's order."""
    data_root: Path | None = None
    device: str = "cpu"

    def source(self, corpus: str) -> Source:
        """The source of that name."""
        return self.study.source(corpus)

    def only(self, corpora: tuple[str, ...] | None) -> Plan:
        """The plan with those of its corpora that are named; all of them without names."""
        named = self.corpora if corpora is None else corpora
        return replace(self, corpora=tuple(name for name in self.corpora if name in named))

    def steps(self, parts: Iterable[Artifact | Claim]) -> list[Step[Any]]:
        """The steps that artifacts and claims ask for, in their order."""
        return [
            step
            for part in parts
            for corpus in self.only(part.corpora).corpora
            for step in part.needs(self, corpus)
        ]

    def pick(self, smoke: T, paper: T) -> T:
        """The value of this scale."""
        return smoke if self.scale == "smoke" else paper


Needs: TypeAlias = Callable[[Plan, str], Iterable[Step[Any]]]


def nothing(plan: Plan, corpus: str) -> tuple[Step[Any], ...]:
    """Needs no step."""
    return ()


@dataclass(frozen=True)
class Made:
    """An artifact as it came out here."""

    table: pd.DataFrame | None = None
    """The tidy table that is drawn: it becomes the CSV. None for a drawing without data."""
    draw: Callable[[pd.DataFrame], Figure] | None = None
    """A figure from the table and nothing else; None draws the table itself."""
    sentence: str = ""
    """What it shows here, with its number."""
    deviations: tuple[str, ...] = ()
    """Where this artifact differs from the paper's, beside what holds for the whole study."""
    svg: str = ""
    """The picture itself, for a drawing without data."""
    shown: pd.DataFrame | None = None
    """What the page shows as a table, when the CSV's is too long or too tidy to read."""


@dataclass(frozen=True)
class Artifact:
    """A table, figure or drawing of the paper."""

    id: str
    """The paper's table or figure (T1, M-T2, S-F13), or one of ours (X1)."""
    title: str
    where: str
    """Where the paper has it."""
    kind: Literal["table", "figure", "drawing"]
    make: Callable[[Views], Made]
    """What it shows; the views it gets are those of its own corpora."""
    needs: Needs = nothing
    """The steps of one corpus that must be done first."""
    corpora: tuple[str, ...] | None = None
    """Names of the sources it shows; none means all."""
    paper: str = ""
    """What the paper's shows, in a sentence or a few numbers."""


@dataclass(frozen=True)
class Claim:
    """A testable sentence of the paper, with the statistic and side that decide it."""

    id: str
    sentence: str
    where: str
    statistic: str
    paper: str | Mapping[str, str]
    """The paper's value; by corpus where they differ."""
    side: Sides
    measure: Callable[[View], Measured] | None = None
    """The statistic on one corpus; none for a claim that only compares corpora."""
    needs: Needs = nothing
    corpora: tuple[str, ...] | None = None
    """Names of the sources it speaks of; none means all."""
    over: Literal["each", "all"] = "each"
    """`all` adds an object for all corpora at hand: confirmed only if each one is."""
    measure_all: Callable[[Views], Measured] | None = None
    """The statistic over the corpora whose needs could be met, where it is no conjunction."""
    seeds: int | Callable[[Plan, str], int] | None = None
    """Trainings of each kind that the statistic rests on, by corpus where they differ; none means
    all seeds of the plan."""

    def trainings(self, plan: Plan, corpora: Iterable[str]) -> int:
        """Those of one corpus; over several the fewest."""
        if callable(self.seeds):
            return min((self.seeds(plan, corpus) for corpus in corpora), default=len(plan.seeds))
        return len(plan.seeds) if self.seeds is None else self.seeds

    def paper_value(self, corpus: str) -> str:
        """What the paper printed for this corpus."""
        return self.paper if isinstance(self.paper, str) else self.paper.get(corpus, "not given")


@dataclass(frozen=True)
class Study:
    """One paper: its corpora, its artifacts and its claims."""

    name: str
    title: str
    reference: str
    sources: tuple[Source, ...]
    artifacts: tuple[Artifact, ...]
    claims: tuple[Claim, ...]
    seeds: Mapping[Scale, int]
    """How many seeds each scale trains."""
    deviations: Callable[[Plan], tuple[str, ...]] = lambda plan: ()
    """Where the whole reproduction differs from the paper: sizes, vectors, epochs."""
    symbols: Mapping[str, str] = field(default_factory=dict)
    """What the paper's symbols mean, each in a sentence; the page explains them first."""
    fills_card: bool = False
    """Whether its products fill a card, so that small kernels of other studies wait beside them."""

    def __post_init__(self) -> None:
        ids = [part.id for part in self.parts]
        if len(set(map(str.lower, ids))) < len(ids):
            raise ValueError(f"study {self.name}: artifact and claim ids must differ")
        for part in self.parts:
            for corpus in part.corpora or ():
                self.source(corpus)

    @property
    def parts(self) -> tuple[Artifact | Claim, ...]:
        """Everything that has an id."""
        return (*self.artifacts, *self.claims)

    def source(self, name: str) -> Source:
        """The source of that name."""
        for source in self.sources:
            if source.name == name:
                return source
        raise unknown(f"corpus of {self.name}", name, [source.name for source in self.sources])

    def plan(
        self,
        scale: str = "smoke",
        corpora: Iterable[str] = (),
        seeds: int | None = None,
        data_root: Path | str | None = None,
        device: str = "cpu",
    ) -> Plan:
        """What to do, checked; without names, the corpora of the scale."""
        if scale not in SCALES:
            raise unknown("scale", scale, SCALES)
        known: Scale = "smoke" if scale == "smoke" else "paper"
        asked = {self.source(name).name for name in corpora}
        default = {source.name for source in self.sources if known in source.scales}
        chosen = [source.name for source in self.sources if source.name in (asked or default)]
        count = self.seeds[known] if seeds is None else seeds
        if count < 1:
            raise InputError(f"--seeds must be at least 1, got {count}.")
        root = None if data_root is None else Path(data_root)
        return Plan(self, known, tuple(range(count)), tuple(chosen), root, device)

    def chosen(self, only: Iterable[str]) -> tuple[tuple[Artifact, ...], tuple[Claim, ...]]:
        """The artifacts and claims of those ids; all of them without ids."""
        known = {part.id.lower(): part.id for part in self.parts}
        wanted = set()
        for id in only:
            if id.lower() not in known:
                raise unknown(f"artifact or claim of {self.name}", id, known.values())
            wanted.add(known[id.lower()])
        artifacts = tuple(a for a in self.artifacts if a.id in wanted or not wanted)
        claims = tuple(c for c in self.claims if c.id in wanted or not wanted)
        return artifacts, claims
