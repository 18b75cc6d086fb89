"""What a Transformer is made of: sizes and variants, the published ones by default."""

from __future__ import annotations

from dataclasses import dataclass, field

from heedful.errors import InputError, unknown
from heedful.models.recipe import MOST_LAYERS, MOST_WIDTH, Penalties

TRANSFORMER, NARRATIVES = "transformer", "narratives"
"""The recipes that name it: for texts, and for narratives that are rated over time."""
POSITIONS = ("none", "sinusoidal")
NORMS = ("query", "full")
LOSSES = ("bce-sum", "cross-entropy")
READS = ("windows", "narrative")


@dataclass(frozen=True)
class TransformerConfig:
    """Sizes and variants; the defaults are the published ones.

    See docs/studies/tracing.md, "Models".
    """

    embedding_dim: int = 300
    """Width of the word vectors and of the residual stream."""
    layers: int = 6
    heads: int = 8
    head_dim: int = 64
    """Width of one head's queries, keys and values."""
    feed_forward: int = 64
    """Hidden width between attention and the next layer."""
    pooling_dims: tuple[int, int] = (128, 64)
    """Hidden widths of the pooling attention."""
    decider_dim: int = 64
    """Hidden width of the classifier on top."""
    dropout: float = 0.1
    """Dropout on inputs, on attention and on what each half of a layer adds."""
    top_dropout: float = 0.3
    """Dropout in the pooling attention and in the classifier."""
    positions: str = "none"
    """none (published), or sinusoidal."""
    norm: str = "query"
    """What a layer norms before attention: the query's input alone (published), or full."""
    loss: str = "bce-sum"
    """Binary cross-entropy on one sigmoid per class, summed over batch and classes (the code), or
    the mean cross-entropy over classes (the paper)."""
    dropout_epochs: int | None = None
    """Dropout acts in so many first epochs only; the code has 1 by mistake
    (docs/studies/tracing.md, "Errata")."""
    reads: str = "windows"
    """Where the words of a narrative attend: within their window (published), or anywhere in the
    narrative. Texts have neither."""

    def __post_init__(self) -> None:
        for kind, value, known in (
            ("positions", self.positions, POSITIONS),
            ("norm", self.norm, NORMS),
            ("loss", self.loss, LOSSES),
            ("reads", self.reads, READS),
        ):
            if value not in known:
                raise unknown(f"choice of {kind}", value, known)
        for name in ("embedding_dim", "layers", "heads", "head_dim", "feed_forward", "decider_dim"):
            most = MOST_LAYERS if name == "layers" else MOST_WIDTH
            if not 1 <= getattr(self, name) <= most:
                raise InputError(f"{name} must be 1 to {most:,}, got {getattr(self, name)}.")
        if len(self.pooling_dims) != 2 or min(self.pooling_dims) < 1:
            raise InputError(f"pooling_dims are two sizes from 1 up, got {self.pooling_dims}.")
        for name in ("dropout", "top_dropout"):
            if not 0 <= getattr(self, name) < 1:
                raise InputError(f"{name} lies in [0, 1), got {getattr(self, name)}.")


@dataclass(frozen=True)
class TransformerRecipe:
    """A Transformer as `Recipe` is a classifier: what it is made of, and no penalties."""

    model: TransformerConfig = TransformerConfig()
    penalties: Penalties = field(default_factory=Penalties)

    def __str__(self) -> str:
        return TRANSFORMER
