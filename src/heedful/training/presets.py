"""The studies' exact models by name: recipe, sizes and training; settings are in `presets.toml`."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from difflib import get_close_matches
from typing import Any

from heedful.runs.data_files import data_beside
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


_READ = data_beside(__file__)


def _preset(study: str, recipe: str, model: dict[str, Any], **train: Any) -> Preset:
    """A model of a study: what its models share, and what this one has beside."""
    shared = _READ[study]
    sizes, training = shared.get("model", {}) | model, TrainConfig(**shared["train"] | train)
    return Preset(recipe, sizes, training, shared["words"], shared["where"])


ERASURE_ENCODERS = {"rnn": "bigru", "conv": "conv", "noenc": "none"}
ERASURE_CORPORA: dict[str, dict[str, Any]] = _READ["erasure"]["corpora"]


def _erasure(corpus: str, family: str, encoder: str) -> Preset:
    """One of the 24 models of the erasure study (docs/studies/erasure.md, "Models")."""
    chosen = ERASURE_CORPORA[corpus]
    word, sentence, head = chosen["han"]
    flat, flat_head = chosen["flan"]
    is_han = family == "han"
    is_long = corpus in ("yahoo", "imdb") and encoder != "noenc"
    clamps = corpus in ("amazon", "yelp") and encoder != "conv"
    return _preset(
        "erasure",
        ("han:" if is_han else "") + f"{ERASURE_ENCODERS[encoder]}+additive",
        {
            "attention_dim": 200 if encoder == "noenc" else 100,
            "dropout": sentence if is_han else flat,
            "word_dropout": word if is_han else None,
            "head_dropout": head if is_han else flat_head,
            # Yelp's HANrnn and HANnoenc alone cut word vectors to length 1.
            "embedding_norm": 1.0 if (corpus, is_han) == ("yelp", True) and clamps else None,
        },
        epochs=15 if is_long else 60,
        max_batch_tokens=chosen["bound"],
        learning_rate=chosen["rate"],
        clip_norm=0.0 if clamps else 10.0,
        clip_value=50.0 if clamps else 0.0,
        patience=10 if encoder == "noenc" else 5,
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
    return _preset(
        "polarity",
        f"{encoder}+{attention}@{scale}",
        {"one_logit": one_logit},
        # Never given in the paper; 1e-3 is what the released configuration says.
        weight_decay=1e-3 if decay else 0.0,
        decay=decay or "all",
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

FAITHFUL_MODEL: dict[str, Any] = _READ["faithful"]["model"]
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
    f"faithful/{variant}{mark}": _preset(
        "faithful", f"bilstm+{attention}{ending}", {"embedding_dim": 300, "width": 300}
    )
    for variant, ending in FAITHFUL_VARIANTS.items()
    for mark, attention in FAITHFUL_ATTENTIONS.items()
}
FAITHFUL_TRAIN = PRESETS["faithful/base+"].train
"""The training of every model of the faithful study (docs/studies/faithful.md, "Training")."""

TRACING_VARIANTS: dict[str, dict[str, Any]] = {
    "": {},
    "/first-epoch-dropout": {"dropout_epochs": 1},
    "/cross-entropy": {"loss": "cross-entropy"},
    "/positions": {"positions": "sinusoidal"},
    "/full-norm": {"norm": "full"},
}
"""What the code did by mistake, what the paper says instead, and what neither tried."""
PRESETS |= {
    f"tracing/sst{ending}": _preset("tracing", "transformer", changed)
    for ending, changed in TRACING_VARIANTS.items()
}
TRACING_TRAIN = PRESETS["tracing/sst"].train
"""Of texts and of narratives (docs/studies/tracing.md, "Training")."""
PRESETS["tracing/send"] = Preset(
    "narratives",
    {},
    replace(TRACING_TRAIN, batch_size=25, select="ccc"),
    {},
    'docs/studies/tracing.md, "Training"',
)

PRESETS |= {
    f"dynamics/{name}": _preset("dynamics", f"bilstm+{attention}", {})
    for name, attention in {"attention": "additive-relu", "uniform": "uniform"}.items()
}
DYNAMICS_TRAIN = PRESETS["dynamics/attention"].train


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
