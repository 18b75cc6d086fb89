"""The parallel corpora, translators and steps of the dynamics study.

See docs/studies/dynamics.md, "Translator".
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from typing import Any

import pandas as pd

from heedful.corpora.pairs import EncodedPairs
from heedful.corpora.parallel import Parallel
from heedful.corpora.parallel_corpora import IWSLT, NEWS, load_parallel
from heedful.corpora.pieces import PIECES, bleu_of_counts
from heedful.corpora.planted_pairs import planted_pairs
from heedful.corpora.root import locate, root_of
from heedful.dynamics.proxy import ProxyConfig
from heedful.dynamics.trajectory import FollowedRun
from heedful.errors import InputError
from heedful.models.translator import TranslatorConfig
from heedful.reproduction.ledger import Parts
from heedful.reproduction.measures import exact
from heedful.reproduction.results import Step
from heedful.reproduction.study import Made, Plan
from heedful.reproduction.tables import beside, row
from heedful.reproduction.view import View, Views
from heedful.statistics import Estimate
from heedful.statistics.draws import draws, minus
from heedful.statistics.estimates import per_cent
from heedful.studies.dynamics import run_steps, translation_steps
from heedful.studies.dynamics.agreement_curves import curve_of
from heedful.studies.dynamics.printed import PAPER
from heedful.studies.dynamics.run_steps import CrewRun, Runs
from heedful.training.sequences import EPOCHS, GRIDS, SequenceConfig

REFERENCE, COMPARISONS, UNIFORMS = 20, (13, 14), (12, 18, 19)
"""Seeds of run A, of B and C, and of the runs with uniform attention; the first are published."""
SECOND = 13
"""Seed of the other linear run, whose probe the best attention of the first is compared with."""
PAIRS = {"train": 480, "dev": 40, "test": 20}
SMOKE_PIECES = 640
PUBLISHED: dict[str, tuple[str, tuple[str, str]]] = {
    "multi30k": ("multi30k", ("de", "en")),
    "iwslt14": ("iwslt14", ("de", "en")),
    "it-pt": ("news-commentary", ("it", "pt")),
    "en-nl": ("news-commentary", ("en", "nl")),
    "en-pt": ("news-commentary", ("en", "pt")),
}
"""Readers and languages of the paper's parallel corpora."""
READ = PUBLISHED | {"multi30k-en-de": ("multi30k", ("en", "de"))}
"""Those, and Multi30k from English, as the paper says; the authors' code reads German."""
LINEAR_ON = ("multi30k", "multi30k-en-de", "planted-pairs")
"""Where a linear translator is trained too."""
TRANSLATED = (*READ, "planted-pairs")
SOURCES = (
    *map(PAPER.source, ("multi30k", "multi30k-en-de", "iwslt14", "it-pt", "en-nl", "en-pt")),
    PAPER.source("planted-pairs", inputs=PAIRS),
)


def _load(plan: Plan, corpus: str) -> Parallel:
    if corpus == "planted-pairs":
        return planted_pairs(PAIRS)
    name, languages = READ[corpus]
    return load_parallel(name, plan.data_root, languages)


def lacking(plan: Plan, files: Sequence[str], source: str) -> str:
    """Why a corpus's steps are nowhere, told where they are only drawn; nothing where a file is."""
    try:
        root = root_of(plan.data_root)
        if any(locate(root, file) for file in files):
            return ""
    except InputError:  # no data root at all
        pass
    return f"data absent: {files[0]} is not in the data root; it comes from {source}"


def _absent(plan: Plan, corpus: str) -> str:
    if corpus == "iwslt14":
        return lacking(plan, ["iwslt14/train.de"], IWSLT)
    name, languages = READ.get(corpus, ("", ("", "")))
    if name != "news-commentary":
        return ""
    return lacking(plan, [f"{name}/{'-'.join(languages)}.{languages[0]}"], NEWS)


def text(plan: Plan, corpus: str) -> Step[EncodedPairs]:
    """The corpus as sentencepiece ids."""
    size = plan.pick(SMOKE_PIECES, PIECES)
    found = translation_steps.encoded(
        corpus, partial(_load, plan, corpus), size, {"source": dict(plan.source(corpus).inputs)}
    )
    return replace(found, absent=_absent(plan, corpus))


def translator(plan: Plan, attention: str = "dot", output: str = "relu") -> TranslatorConfig:
    """The published translator; tiny at smoke scale."""
    kinds: Any = {"attention": attention, "output": output}
    if plan.scale == "smoke":
        return TranslatorConfig(SMOKE_PIECES, 32, 32, 1, dropout=0.0, **kinds)
    return TranslatorConfig(PIECES, **kinds)


def training(plan: Plan, corpus: str) -> SequenceConfig:
    """The published epochs and grid; few at smoke scale."""
    if plan.scale == "smoke":
        return SequenceConfig(6, 16, 1e-2, (0, 8, 24, 48, 72, 100, 140, 180))
    as_published = corpus.removesuffix("-en-de")  # the other direction has the same settings
    return SequenceConfig(EPOCHS[as_published], grid=GRIDS[as_published])


def run(
    plan: Plan, corpus: str, seed: int, attention: str = "dot", output: str = "relu"
) -> Step[FollowedRun]:
    """One translator, followed at every step of its grid."""
    name = {"dot": "attention", "uniform": "uniform"}[attention]
    return translation_steps.followed_pairs(
        text(plan, corpus),
        name if output == "relu" else f"{name} {output}",
        translator(plan, attention, output),
        seed,
        training(plan, corpus),
        with_saliency=attention == "dot" and output == "relu",
        beam=plan.pick(1, 5) if attention == "dot" and output == "relu" else 1,
    )


def runs(plan: Plan, corpus: str) -> Runs:
    """Three pairs of runs of a parallel corpus, one at smoke scale, and what words alone tell."""
    others, uniforms = plan.pick((COMPARISONS[:1], UNIFORMS[:1]), (COMPARISONS, UNIFORMS))
    return Runs(
        CrewRun(run(plan, corpus, REFERENCE)),
        {str(seed): CrewRun(run(plan, corpus, seed)) for seed in others},
        {str(seed): CrewRun(run(plan, corpus, seed, "uniform")) for seed in uniforms},
        translation_steps.pair_predictors(text(plan, corpus), _proxy(plan)),
    )


def _proxy(plan: Plan) -> ProxyConfig:
    return plan.pick(ProxyConfig(32, 8, 64, 1e-2), ProxyConfig(256, 30, 64, 1e-3))


def logged(plan: Plan, corpus: str) -> Step[pd.DataFrame]:
    """The training log of a parallel corpus's runs."""
    learnt = training(plan, corpus), _proxy(plan)
    return run_steps.logged(text(plan, corpus), runs(plan, corpus), *learnt)


def linear(plan: Plan, corpus: str, seed: int = REFERENCE) -> Step[FollowedRun]:
    """The translator with a linear output (docs/studies/dynamics.md, "Linear output")."""
    return run(plan, corpus, seed, output="linear")


def optimal(plan: Plan, corpus: str) -> Step[pd.DataFrame]:
    """The best attention of the linear translator, word by word."""
    sentences = plan.pick(24, 256)
    runs = linear(plan, corpus), linear(plan, corpus, SECOND)
    return translation_steps.optimal(text(plan, corpus), *runs, sentences)


def translations(plan: Plan, corpus: str, output: str = "relu") -> Step[pd.DataFrame]:
    """Dev translations of the reference run, or of the linear one, by a beam of 5."""
    made = run(plan, corpus, REFERENCE, output=output)
    return translation_steps.translated(text(plan, corpus), made, "dev")


def scores(view: View) -> dict[str, Estimate]:
    """BLEU of the reference and of the linear translator, and linear minus reference."""
    tables = [view.of(translations, output) for output in ("relu", "linear")]
    names = list(tables[0]["name"])
    main, flat = (draws(partial(bleu_of_counts, table), names) for table in tables)
    found = {"BLEU": main, "BLEU, linear": flat, "difference": minus(flat, main)}
    return {name: one.estimate() for name, one in found.items()}


def best_attention(view: View) -> dict[str, Estimate | float]:
    """What the best attention of the linear translator agrees with, and its certificate."""
    table = view.of(optimal)
    item = table["item"].to_numpy()

    def mean(values: pd.Series[Any]) -> Estimate:
        return curve_of(values.to_numpy(dtype=float), item).at(0).estimate()

    ways = ("no state", "other", "other, no state", "from uniform")
    searched = [f"after {steps}" for steps in translation_steps.AFTER]
    return {
        "A(αopt,β)": mean(table["agreement"]),
        "beyond chance": mean(table["agreement"] - table["chance"]),
        "A(α,β)": mean(table["attention"]),
        **{f"A(αopt,β), {way}": mean(table[way]) for way in (*ways, *searched)},
        "stayed": mean(table["stayed"]),
        "nats": mean(table["loss"]),
        "nats, own attention": mean(table["own loss"]),
        "largest gap": float(table["gap"].max()),
    }


def _linear_model(views: Views) -> Made:
    """E1."""

    def one(view: View) -> list[dict[str, Any]]:
        cells: dict[str, Any] = {}
        cells |= scores(view) | best_attention(view)
        return [row({"corpus": view.corpus}, **cells)]

    ours = views.table(one)
    said = "; ".join(
        f"{one['corpus']}: BLEU {one['BLEU, linear']:.1f} with a linear output, {one['BLEU']:.1f} "
        f"without; the best attention lies on the probe's largest {per_cent(0.05)} in "
        f"{per_cent(one['A(αopt,β)'])} of the words, the model's own in "
        f"{per_cent(one['A(α,β)'])}, and saves {one['nats, own attention'] - one['nats']:.2f} of "
        f"{one['nats, own attention']:.2f} nats; without the decoder's state the probe is hit in "
        f"{per_cent(one['A(αopt,β), no state'])}, that of another run in "
        f"{per_cent(one['A(αopt,β), other'])} and "
        f"{per_cent(one['A(αopt,β), other, no state'])}; in {per_cent(one['stayed'])} of the words "
        "the best position alone is the optimum"
        for one in ours.to_dict("records")
    )
    table = beside(ours, E1_PAPER[E1_PAPER["corpus"].isin(views.corpora)], ["corpus"])
    return Made(table, sentence=f"{said}.")


def needs_linear(plan: Plan, corpus: str) -> list[Step[Any]]:
    """Both translators' texts and the best attention."""
    texts = [translations(plan, corpus, output) for output in ("relu", "linear")]
    return [*texts, optimal(plan, corpus)]


E1_PAPER = pd.DataFrame(
    {"corpus": ["multi30k"], "BLEU": [37.9], "BLEU, linear": [38.2], "A(αopt,β)": [0.53]}
)
LINEAR = PAPER.artifact("E1", _linear_model, needs_linear, LINEAR_ON)  # fmt: skip


def as_good(view: View) -> Estimate:
    """DYN-21."""
    return scores(view)["difference"]


def sits_on_the_largest(view: View) -> Parts:
    """DYN-20 on a corpus."""
    found = best_attention(view)
    beyond, gap = found["beyond chance"], found["largest gap"]
    assert isinstance(beyond, Estimate)
    assert isinstance(gap, float)
    return {"A(αopt,β) minus chance": beyond, "largest gap": exact(gap, beyond.n)}
