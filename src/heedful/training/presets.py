"""The studies' exact models by name: recipe, sizes and training, one row each."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from difflib import get_close_matches
from typing import Any

from heedful.training.config import TrainConfig


@dataclass(frozen=True)
class Preset:
    """What a preset's name stands for."""

    recipe: str
    model: dict[str, Any] = field(default_factory=dict)
    """Fields of ModelConfig beside the recipe."""
    train: TrainConfig = field(default_factory=TrainConfig)
    words: dict[str, Any] = field(default_factory=dict)
    """Fields of WordSettings."""
    where: str = ""
    """Where the study's page describes it."""


ERASURE_ENCODERS = {"rnn": "bigru", "conv": "conv", "noenc": "none"}
ERASURE_CORPORA = {
    # corpus: HAN word, sentence and head dropout; FLAN word and head dropout; rate; token bound
    "yahoo": (0.4445, 0.2202, 0.3749, 0.4445, 0.4457, 4e-4, 15_000),
    "imdb": (0.4445, 0.2202, 0.2457, 0.4445, 0.3457, 4e-4, 20_000),
    "amazon": (0.6, 0.2, 0.4, 0.6, 0.4, 2e-4, 135_000),
    "yelp": (0.7, 0.1, 0.7, 0.7, 0.7, 1e-4, 90_000),
}


def _erasure(corpus: str, family: str, encoder: str) -> Preset:
    """One of the 24 models of the erasure study (docs/studies/erasure.md, "Models")."""
    word, sentence, head, flat, flat_head, rate, bound = ERASURE_CORPORA[corpus]
    is_han = family == "han"
    width = 200 if encoder == "noenc" else 100
    is_long = corpus in ("yahoo", "imdb") and encoder != "noenc"
    clamps = corpus in ("amazon", "yelp") and encoder != "conv"
    return Preset(
        ("han:" if is_han else "") + f"{ERASURE_ENCODERS[encoder]}+additive",
        {
            "embedding_dim": 200,
            "width": 100,
            "attention_dim": width,
            "dropout": sentence if is_han else flat,
            "word_dropout": word if is_han else None,
            "window_dropout": 0.3,
            "head_dropout": head if is_han else flat_head,
            "head_dropout_on": "logits",
            "start": "orthogonal",
            # Yelp's HANrnn and HANnoenc alone cut word vectors to length 1.
            "embedding_norm": 1.0 if (corpus, is_han) == ("yelp", True) and clamps else None,
        },
        TrainConfig(
            epochs=15 if is_long else 60,
            batch_size=64,
            max_batch_tokens=bound,
            learning_rate=rate,
            clip_norm=0.0 if clamps else 10.0,
            clip_value=50.0 if clamps else 0.0,
            halve_on_plateau=True,
            patience=10 if encoder == "noenc" else 5,
        ),
        {"min_count": 5},
        'docs/studies/erasure.md, "Models"',
    )


POLARITY_SCALES = ("0.001", "1", "10", "20", "50", "100", "10000")
"""The seven λ of the polarity study."""
POLARITY_MODELS = {
    # name: encoder, attention, what weight decay acts on
    "dp": ("none", "scaled-dot", ""),
    "dp-l": ("bilstm", "scaled-dot", "encoder"),
    "dp-a": ("affine", "scaled-dot", "encoder"),
    "ad": ("none", "additive", "additive map"),
}


def _polarity(name: str, scale: str, one_logit: bool) -> Preset:
    """One of the 28 models of the polarity study, for two classes or for more.

    See docs/studies/polarity.md, "Models".
    """
    encoder, attention, decay = POLARITY_MODELS[name]
    return Preset(
        f"{encoder}+{attention}@{scale}",
        {
            "embedding_dim": 100,
            "width": 100,
            "attention_dim": 100,
            "normal_additive_query": True,
            "one_logit": one_logit,
            "head_bias": False,
            "dropout": 0.5,
            "head_dropout": 0.5,
            "start": "orthogonal cells",
            "embedding_start": 0.1,
        },
        TrainConfig(
            epochs=40,
            batch_size=100,
            optimiser="adagrad",
            learning_rate=0.02,
            rate_decay=1e-3,
            # Never given in the paper; 1e-3 is what the released configuration says.
            weight_decay=1e-3 if decay else 0.0,
            decay=decay or "all",
            clip_norm=0.0,
            patience=0,
        ),
        {"min_count": 1, "words_of": ("train", "dev", "test")},
        'docs/studies/polarity.md, "Models"',
    )


PRESETS: dict[str, Preset] = {
    f"erasure/{corpus}/{family}-{encoder}": _erasure(corpus, family, encoder)
    for corpus in ERASURE_CORPORA
    for family in ("han", "flan")
    for encoder in ERASURE_ENCODERS
}
PRESETS |= {
    f"polarity/{name}@{scale}" + ("" if one_logit else "/classes"): _polarity(
        name, scale, one_logit
    )
    for name in POLARITY_MODELS
    for scale in POLARITY_SCALES
    for one_logit in (True, False)
}
# Without a corpus, the values of the one with the longest texts.
PRESETS |= {
    f"erasure/{family}-{encoder}": PRESETS[f"erasure/imdb/{family}-{encoder}"]
    for family in ("han", "flan")
    for encoder in ERASURE_ENCODERS
}

FAITHFUL_TRAIN = TrainConfig(
    epochs=8,
    batch_size=32,
    optimiser="amsgrad",
    learning_rate=1e-3,
    weight_decay=1e-5,
    decay="all but attention",
    clip_norm=5.0,
    patience=0,
    select="f1",
)
"""The training of every model of the faithful study (docs/studies/faithful.md, "Training")."""
FAITHFUL_MODEL: dict[str, Any] = {"one_logit": True, "marks": True, "normal_query": True}
FAITHFUL_ATTENTIONS = {"+": "additive", "-dot": "scaled-dot"}
FAITHFUL_VARIANTS = {
    # Strengths to start from; the study chooses them on dev.
    "base": "",
    "concat": "+concat",
    "residual": "+residual",
    "tying": "+tying:10",
    "mlm": "+mlm:1",
}

PRESETS |= {
    f"faithful/{variant}{mark}": Preset(
        f"bilstm+{attention}{ending}",
        {"embedding_dim": 300, "width": 300} | FAITHFUL_MODEL,
        FAITHFUL_TRAIN,
        {"min_count": 2},
        'docs/studies/faithful.md, "Models"',
    )
    for variant, ending in FAITHFUL_VARIANTS.items()
    for mark, attention in FAITHFUL_ATTENTIONS.items()
}

TRACING_TRAIN = TrainConfig(
    epochs=200,
    batch_size=500,
    learning_rate=1e-4,
    weight_decay=1e-4,
    clip_norm=0.0,
    patience=0,
)
"""Adam with L2 over whole epochs, the best dev accuracy kept (docs/studies/tracing.md,
"Training")."""
TRACING_WORDS: dict[str, Any] = {"min_count": 1, "words_of": ("train", "dev", "test")}
"""Vectors are inputs, so words of dev and test have theirs."""
TRACING_VARIANTS: dict[str, dict[str, Any]] = {
    "": {},
    "/first-epoch-dropout": {"dropout_epochs": 1},
    "/cross-entropy": {"loss": "cross-entropy"},
    "/positions": {"positions": "sinusoidal"},
    "/full-norm": {"norm": "full"},
}
"""What the code did by mistake, what the paper says instead, and what neither tried."""
PRESETS |= {
    f"tracing/sst{ending}": Preset(
        "transformer", changed, TRACING_TRAIN, TRACING_WORDS, 'docs/studies/tracing.md, "Models"'
    )
    for ending, changed in TRACING_VARIANTS.items()
}
PRESETS["tracing/send"] = Preset(
    "narratives",
    {},
    replace(TRACING_TRAIN, batch_size=25, select="ccc"),
    {},
    'docs/studies/tracing.md, "Training"',
)

DYNAMICS_MODEL: dict[str, Any] = {
    "embedding_dim": 300,
    "width": 512,
    "attention_dim": 256,
    "one_logit": True,
}
"""1,274,882 parameters beside the word vectors, which start random (docs/studies/dynamics.md,
"Classifier", "Errata")."""
DYNAMICS_TRAIN = TrainConfig(clip_norm=0.0, patience=0)
"""Adam at 1e-3 and nothing else; the study counts 4,000 steps by a Schedule."""
PRESETS |= {
    f"dynamics/{name}": Preset(
        f"bilstm+{attention}",
        DYNAMICS_MODEL,
        DYNAMICS_TRAIN,
        {"min_count": 3},
        'docs/studies/dynamics.md, "Classifier"',
    )
    for name, attention in {"attention": "additive-relu", "uniform": "uniform"}.items()
}


def nearest(name: str) -> str:
    """Which presets a mistyped name may mean, in a sentence; of a strange one, the studies.

    >>> nearest("dynamics/atention")
    'The nearest presets: dynamics/attention, dynamics/uniform.'
    """
    near = get_close_matches(name, PRESETS, n=6)
    if near:
        return f"The nearest presets: {', '.join(near)}."
    studies = sorted({preset.partition("/")[0] for preset in PRESETS})
    return f"Presets begin with {', '.join(f'{study}/' for study in studies)}."
