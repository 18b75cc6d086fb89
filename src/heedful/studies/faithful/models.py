"""The corpora and the models of the faithful study: what is trained, where and how often."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from functools import partial, wraps
from math import ceil
from pathlib import Path
from typing import Any, Concatenate, Literal, ParamSpec, TypeVar

from heedful.corpora import Corpus, EncodedCorpus, planted, recipe_of
from heedful.corpora.files import read_file
from heedful.corpora.root import locate, root_of
from heedful.errors import InputError
from heedful.models import Recipe, parse
from heedful.reproduction import stages
from heedful.reproduction.results import Step
from heedful.reproduction.study import Plan
from heedful.studies.faithful.examination import Measuring
from heedful.studies.faithful.printed import PAPER
from heedful.training import TrainConfig
from heedful.training.presets import FAITHFUL_MODEL, FAITHFUL_TRAIN

T = TypeVar("T")

ATTENTIONS = ("+", "•")
VARIANTS = ("base", "concat", "residual", "tying", "mlm")
JOINS = ("concat", "residual")
TUNED = ("tying", "mlm")

NOTES = ("anemia", "diabetes")
"""Corpora of clinical notes, which only credentialed users have."""
SMOKE = "planted"
MAIN = (SMOKE, "sst", "ag", "ng", "imdb", "anemia")
"""Where the tables are made: the smoke corpus at smoke scale, the others at paper scale."""
DEEP = (SMOKE, "sst", "ag", "ng", "imdb")
EVIDENCE = "evidence"
RATIONALES = (SMOKE, EVIDENCE, "eraser")


FEW = 6
"""Seeds where ten would be too dear: the least with which a sign test can decide."""
TEN = (SMOKE, "sst", "ag", "ng")
"""Corpora on which the models of T1 are trained with every seed."""
WIDER = 3
"""States of wide models over those of the others: 2 × 150, as published, where 2 × 50 are usual."""
LONGER = 3
"""Epochs of long trainings over the usual ones."""


@dataclass
class ScaleSizes:
    """What differs between the scales."""

    dim: int
    train: TrainConfig
    imitation: TrainConfig
    updates: int
    """Fewest updates of a training: a small corpus is read more often."""
    measuring: Measuring
    tying: tuple[float, ...]
    """δ tried: the published ones with room at both ends."""
    masked: tuple[float, ...]
    """η tried, of a loss averaged over masked words; room as above."""
    adversary: tuple[float, ...]
    """λ of the trained adversaries."""
    few_adversary: tuple[float, ...]
    """λ for the other remedies and for KL."""
    planted: Mapping[str, int]
    """Documents of the planted corpus."""


SCALES: dict[str, ScaleSizes] = {
    "smoke": ScaleSizes(
        dim=20,
        train=replace(FAITHFUL_TRAIN, epochs=6, learning_rate=1e-2),
        imitation=replace(FAITHFUL_TRAIN, epochs=3, learning_rate=1e-2, patience=2),
        updates=0,
        measuring=Measuring(draws=20, types=40, pairs=3_000),
        tying=(1.0, 10.0),
        masked=(0.1, 1.0),
        adversary=(0.0, 0.03, 0.3),
        few_adversary=(0.0, 0.3),
        planted={"train": 800, "dev": 100, "test": 160},
    ),
    "paper": ScaleSizes(
        dim=100,
        train=FAITHFUL_TRAIN,
        imitation=replace(FAITHFUL_TRAIN, epochs=20, patience=4),
        updates=1_600,
        measuring=Measuring(draws=100, types=1_000, pairs=1_000_000),
        tying=(0.3, 1.0, 3.0, 10.0, 20.0, 30.0, 60.0),
        masked=(0.03, 0.1, 0.3, 1.0, 3.0, 5.0, 10.0),
        adversary=(0.0, 1e-4, 1e-3, 3e-3, 1e-2, 3e-2, 0.1, 0.3, 1.0),
        few_adversary=(0.0, 1e-2, 0.1, 1.0),
        planted={"train": 2_400, "dev": 400, "test": 800},
    ),
}
LONG = ("imdb", *NOTES)
"""Corpora whose trainings take minutes."""
LONG_EPOCHS = 8
"""Epochs of the adversaries there, at most."""


def sizes(plan: Plan) -> ScaleSizes:
    """What this scale trains."""
    return SCALES[plan.scale]


def stretched(plan: Plan, config: TrainConfig, documents: int) -> TrainConfig:
    """The training with as many more epochs, and patience, as a small corpus needs."""
    usual = sizes(plan).train
    updates = usual.epochs * ceil(documents / usual.batch_size)
    times = max(1, ceil(sizes(plan).updates / updates))
    return replace(config, epochs=times * config.epochs, patience=times * config.patience)


Asked = ParamSpec("Asked")
_MADE: dict[tuple[Any, ...], tuple[ScaleSizes, Step[Any]]] = {}


def made_once(
    make: Callable[Concatenate[Plan, Asked], Step[T]],
) -> Callable[Concatenate[Plan, Asked], Step[T]]:
    """A function that makes a step, made to give the same step for equal questions.

    A step knows its needs down to the corpus; tables ask for the same few hundred thousands of
    times.
    """

    @wraps(make)
    def once(plan: Plan, /, *asked: Asked.args, **named: Asked.kwargs) -> Step[T]:
        found = sizes(plan)
        where = plan.scale, plan.seeds, plan.data_root, plan.device, id(found)
        key: tuple[Any, ...] = (make.__name__, *where, *asked, *sorted(named.items()))
        if key not in _MADE:
            _MADE[key] = (found, make(plan, *asked, **named))  # `found` is kept, so its id is too
        return _MADE[key][1]

    return once


@dataclass(frozen=True)
class Setting:
    """One model of the study, without its seed."""

    variant: str = "base"
    attention: str = "+"
    layers: int = 1
    strength: float | None = None
    """δ or η; none takes the one chosen on dev."""
    is_frozen: bool = False
    """Word vectors stay as loaded (masked words freeze them in any case)."""
    is_random: bool = False
    """Word vectors start at random."""
    query: Literal["normal", "default", "instance"] = "normal"
    """How the query of dot attention starts, or that it comes from the document."""
    is_wide: bool = False
    """States as wide as the paper's; the embeddings are as they were, so no remedy ties the two."""
    is_long: bool = False
    """Trained longer than the others."""

    @property
    def name(self) -> str:
        """A name for files: `tying+,d=10`."""
        parts = [self.variant + ("+" if self.attention == "+" else "-dot")]
        parts += [f"layers={self.layers}"] if self.layers > 1 else []
        parts += [f"strength={self.strength:g}"] if self.strength is not None else []
        parts += ["frozen"] if self.is_frozen else []
        parts += ["random"] if self.is_random else []
        parts += [self.query] if self.query != "normal" else []
        parts += ["wide"] if self.is_wide else []
        parts += ["long"] if self.is_long else []
        return ",".join(parts)

    @property
    def vectors(self) -> str:
        """Whether its word vectors are trained; masked words freeze theirs."""
        return "frozen" if self.is_frozen or self.variant == "mlm" else "trained"

    @property
    def is_tabled(self) -> bool:
        """Whether T1 or the claim about queries has it."""
        is_usual = self.query != "default" and self.strength is None and self.layers == 1
        return is_usual and not (self.is_random or self.is_wide or self.is_long)

    @property
    def is_chosen(self) -> bool:
        """Whether its strength is yet to be chosen."""
        return self.variant in TUNED and self.strength is None

    def recipe(self, dim: int) -> Recipe:
        """The model and its penalties, with states as wide as the embeddings unless wider."""
        text = f"bilstm*{self.layers}+{'additive' if self.attention == '+' else 'scaled-dot'}"
        text += f"+{self.variant}" if self.variant in JOINS else ""
        text += f"+{self.variant}:{self.strength!r}" if self.variant in TUNED else ""
        # States lie within (-1, 1): vectors drawn from N(0, 1) could never be met by tying.
        width = WIDER * dim if self.is_wide else dim
        asked = {"embedding_dim": dim, "width": width, "embedding_start": 0.5} | FAITHFUL_MODEL
        asked |= {"normal_query": self.query != "default"}
        asked |= {"instance_query": True} if self.query == "instance" else {}
        asked |= {"freeze_embeddings": True} if self.is_frozen else {}
        found = parse(text, **asked)
        # Their number grows with the text, so that a sum would need another η for every corpus.
        return Recipe(found.model, replace(found.penalties, masked_over="words"))


def few(plan: Plan) -> tuple[int, ...]:
    """The seeds of what is dear."""
    return plan.seeds[:FEW]


def seeds_of(plan: Plan, corpus: str, *settings: Setting) -> tuple[int, ...]:
    """The seeds that all these models are trained with on a corpus."""
    is_many = corpus in TEN and all(setting.is_tabled for setting in settings)
    return plan.seeds if is_many else few(plan)


def _planted(plan: Plan) -> Corpus:
    length = "short" if plan.scale == "smoke" else "long"
    return planted(2, length, sizes=dict(sizes(plan).planted))


def _notes(name: str, plan: Plan) -> Corpus:
    """Clinical notes from `mimic/<name>.csv`, with the columns text, label and split."""
    file = f"mimic/{name}.csv"
    try:
        path = locate(root_of(plan.data_root), file)
    except InputError:
        path = None
    if path is None:
        raise InputError(_without_notes(name))
    return read_file(path, text="text", label="label", split="split").corpus


def _without_notes(name: str) -> str:
    return (
        f"{name} needs clinical notes that only credentialed users have (MIMIC-III); put "
        f"mimic/{name}.csv into the data root, with the columns text, label (0 or 1) and split "
        "(train, dev or test)."
    )


def vectors_of(plan: Plan, corpus: str) -> Path | None:
    """The word vectors that a corpus starts from; none at smoke scale."""
    if plan.scale == "smoke" or corpus in (SMOKE, EVIDENCE):
        return None
    return stages.word_vectors(plan)


@made_once
def text(plan: Plan, corpus: str) -> Step[EncodedCorpus]:
    """The corpus as ids with the vectors of its words."""
    # The reader of ERASER movies has no recipe, and neither have the clinical notes.
    has_recipe = corpus in PAPER.readers and corpus != "eraser"
    least = recipe_of(PAPER.readers[corpus]).min_count if has_recipe else 2
    found = stages.prepared(plan, corpus, vectors_of(plan, corpus), min_count=least)
    return replace(found, absent=_without_notes(corpus)) if corpus in NOTES else found


LAYERS = (1, 2, 3)
DEPTH_VARIANTS = ("base", "concat", "tying", "mlm")
EDITS = ("uniform", "permuted")


CONTROLS = {
    "base, frozen vectors": Setting(is_frozen=True),
    "tying, frozen vectors": Setting("tying", is_frozen=True),
    "base •, frozen vectors": Setting(attention="•", is_frozen=True),
    "base, random vectors": Setting(is_random=True),
    "tying, random vectors": Setting("tying", is_random=True),
    "base, query of the instance": Setting(attention="•", query="instance"),
    "tying, query of the instance": Setting("tying", attention="•", query="instance"),
}
"""What sets one cause apart from the others (docs/studies/faithful.md, "Controls of our own")."""
QUERIES = {
    (query, variant): Setting(variant, "•", query=query)
    for query in ("default", "normal")
    for variant in ("base", "concat")
}
LASTING = {
    "wide": Setting(attention="•", is_wide=True),
    "long": Setting(attention="•", is_long=True),
    "wide and long": Setting(attention="•", is_wide=True, is_long=True),
    "long, frozen vectors": Setting(attention="•", is_frozen=True, is_long=True),
}
"""Dot attention with more room and more time to leave uniform."""


def lasting(corpus: str) -> list[Setting]:
    """Those that are trained on a corpus: long texts are not read longer."""
    return [one for one in LASTING.values() if not (one.is_long and corpus in LONG)]


FROZEN = tuple(Setting(v, a, is_frozen=True) for a in ATTENTIONS for v in VARIANTS if v != "mlm")
"""The models of T1 with word vectors that stay; masked words have these in any case."""


RATED = {"auprc": "AUPRC", "f1": "token F1", "mass": "mass on evidence"}


DEPTHS = [Setting(v, layers=n) for n in LAYERS for v in DEPTH_VARIANTS]


def searched(plan: Plan, variant: str) -> list[Setting]:
    """The strengths that are tried, additive attention."""
    grid = sizes(plan).tying if variant == "tying" else sizes(plan).masked
    return [Setting(variant, strength=value) for value in grid]


def roster(plan: Plan, corpus: str) -> list[tuple[Setting, int]]:
    """Every model of a corpus with its seed, each once."""
    found: dict[Setting, None] = {Setting(): None}

    def add(settings: Iterable[Setting]) -> None:
        found.update(dict.fromkeys(settings))

    for variant in TUNED:
        add(searched(plan, variant))
    if corpus in RATIONALES:
        add(Setting(variant) for variant in VARIANTS)
    if corpus in (*MAIN, *NOTES):
        add(Setting(v, a) for a in ATTENTIONS for v in VARIANTS)
        add(FROZEN)
    if corpus in DEEP:
        add(DEPTHS)
        add(QUERIES.values())
        add(lasting(corpus))
        add(CONTROLS.values())
    return [(one, seed) for one in found for seed in seeds_of(plan, corpus, one)]


SOURCES = (
    PAPER.source(SMOKE, _planted, dict(SCALES["smoke"].planted)),
    PAPER.source(EVIDENCE, _planted, dict(SCALES["paper"].planted)),
    *map(PAPER.source, ("sst", "ag", "ng", "imdb")),
    *(PAPER.source(name, partial(_notes, name)) for name in NOTES),
    PAPER.source("eraser"),
)
