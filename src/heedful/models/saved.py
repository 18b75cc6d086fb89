"""Building a model from its configuration, and keeping it as safetensors with its words."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any, TypeAlias, overload

import numpy as np
import torch
from jaxtyping import Float
from safetensors import SafetensorError, safe_open
from safetensors.torch import save_file
from torch import Tensor, nn
from torch.overrides import TorchFunctionMode

from heedful.corpora.encoded import MAX_TOKENS
from heedful.corpora.vocabulary import SPECIALS, Vocabulary
from heedful.errors import InputError, UnsupportedModel, unknown
from heedful.models.classifier import AttentionClassifier
from heedful.models.recipe import ModelConfig, with_settings
from heedful.models.transformer import TransformerClassifier
from heedful.models.transformer_config import TransformerConfig
from heedful.models.windows import NarrativeTransformer
from heedful.runs.atomic import read_json, write_json, writing
from heedful.runs.entries import refuse_pipe
from heedful.runs.memory import refuse_larger, refuse_without_room
from heedful.runs.randomness import seeded
from heedful.runs.steps import fingerprint

FORMAT, READ = 2, (1, 2)
"""The first has no digest of words and settings."""
DIGEST = "digest"
"""What a file of tensors calls the digest of its numbers."""
TRAINED = 4
"""Training keeps the weights, their gradients and two numbers for each of them."""
WEIGHTS, CONFIG, WORDS = "model.safetensors", "config.json", "vocabulary.json"

Classifier: TypeAlias = AttentionClassifier | TransformerClassifier
"""A model of our own that decides."""
Saved: TypeAlias = Classifier | NarrativeTransformer
"""A model of our own, as it can be kept in a folder."""
KINDS: dict[str, type[Saved]] = {
    "attention-classifier": AttentionClassifier,
    "transformer": TransformerClassifier,
    "narrative-transformer": NarrativeTransformer,
}
"""What a folder's configuration calls its model."""


@overload
def build(
    config: ModelConfig,
    vocabulary: Vocabulary,
    classes: tuple[str, ...],
    seed: int = 0,
    vectors: Float[np.ndarray, "word dim"] | None = None,
    tokeniser: str = "words",
    max_tokens: int = MAX_TOKENS,
) -> AttentionClassifier: ...
@overload
def build(
    config: TransformerConfig,
    vocabulary: Vocabulary,
    classes: tuple[str, ...],
    seed: int = 0,
    vectors: Float[np.ndarray, "word dim"] | None = None,
    tokeniser: str = "words",
    max_tokens: int = MAX_TOKENS,
) -> TransformerClassifier: ...
def build(
    config: ModelConfig | TransformerConfig,
    vocabulary: Vocabulary,
    classes: tuple[str, ...],
    seed: int = 0,
    vectors: Float[np.ndarray, "word dim"] | None = None,
    tokeniser: str = "words",
    max_tokens: int = MAX_TOKENS,
) -> Classifier:
    """A fresh classifier whose random start depends on the seed alone.

    One that does not fit into memory is refused before it is made.
    """
    words = vocabulary, classes, tokeniser, max_tokens
    kind = TransformerClassifier if isinstance(config, TransformerConfig) else AttentionClassifier
    refuse_large(lambda: kind(config, *words), "This model")  # type: ignore[arg-type]
    with seeded(seed):
        model: Classifier
        if isinstance(config, TransformerConfig):
            model = TransformerClassifier(config, *words)
        else:
            model = AttentionClassifier(config, *words)
        if vectors is not None:
            model.set_vectors(vectors)
    return model


def refuse_large(make: Callable[[], nn.Module], name: str, times: int = TRAINED) -> None:
    """Raises where a model would not fit into memory; it is made without numbers to see its size.

    `times` counts what lies beside the weights.
    """
    try:
        with torch.device("meta"), _Unfilled():
            model = make()
        held = (*model.parameters(), *model.buffers())
        needed = sum(value.numel() * value.element_size() for value in held)
    except RuntimeError as error:  # sizes whose product no number holds
        raise InputError(f"{name} cannot be made: {str(error).splitlines()[0]}.") from error
    refuse_larger(times * needed, name)


class _Unfilled(TorchFunctionMode):
    """Weights without numbers stay so: to draw them there, torch would import its compilers."""

    def __torch_function__(
        self, func: Any, types: Any, args: Any = (), kwargs: Mapping[str, Any] | None = None
    ) -> Any:
        """The tensor as it is where it would be filled at random, else what the function gives."""
        kwargs = dict(kwargs or {})
        if getattr(func, "__name__", "") in ("normal_", "uniform_", "trunc_normal_"):
            return args[0] if args else kwargs["tensor"]
        return func(*args, **kwargs)


def build_narrator(
    config: TransformerConfig,
    vocabulary: Vocabulary,
    seed: int = 0,
    vectors: Float[np.ndarray, "word dim"] | None = None,
) -> NarrativeTransformer:
    """A fresh model that follows narratives, its random start by the seed alone."""
    with seeded(seed):
        model = NarrativeTransformer(config, vocabulary)
        if vectors is not None:
            model.set_vectors(vectors)
    return model


def save_model(model: Saved, folder: Path) -> None:
    """Writes weights, configuration, classes and words to a folder; the weights come last."""
    kind = next(name for name, known in KINDS.items() if isinstance(model, known))
    config: dict[str, Any] = {"format": FORMAT, "kind": kind, "classes": list(model.classes)}
    if not isinstance(model, NarrativeTransformer):
        config |= {"recipe": model.recipe, "tokeniser": model.tokeniser}
        config |= {"max_tokens": model.max_tokens}
    config |= {"model": asdict(model.config)}
    words = list(model.vocabulary.words)
    write_json(folder / CONFIG, config)
    write_json(folder / WORDS, words)
    weights = {
        name: value.detach().cpu().contiguous() for name, value in model.state_dict().items()
    }
    write_tensors(folder / WEIGHTS, weights, {}, _beside(config, words))


def load_model(folder: Path, device: torch.device | str = "cpu") -> Saved:
    """The model kept in a folder, of whatever kind, in evaluation mode."""
    if not (folder / WEIGHTS).is_file():
        raise InputError(
            f"{folder} holds no trained model ({WEIGHTS} is missing); "
            "train one with `heedful train RECIPE --out DIR`."
        )
    stored = read_json(folder / CONFIG)
    words = read_json(folder / WORDS)
    try:
        if stored["format"] not in READ:
            raise InputError(
                f"{folder} has model format {stored['format']}, this heedful reads {FORMAT}; "
                "use the version that wrote it, or train again."
            )
        model = _made(stored, Vocabulary(tuple(words)))
        model.load_state_dict(read_tensors(folder / WEIGHTS, _beside(stored, words))[0])
        refuse_undefined(model, str(folder))
    except InputError:
        raise
    except (KeyError, TypeError, RuntimeError, ValueError, SafetensorError) as error:
        reason = str(error).splitlines()[0]
        raise InputError(
            f"{folder} is not a model heedful can read ({reason}); train it again."
        ) from error
    return model.to(device).eval()


def _beside(config: dict[str, Any], words: Any) -> str:
    """The digest of what lies beside weights; a word that became another would be no error."""
    return fingerprint({"config": config, "words": words})


def load_classifier(folder: Path, device: torch.device | str = "cpu") -> AttentionClassifier:
    """The attention classifier kept in a folder; a model of another kind is refused."""
    model = load_model(folder, device)
    if not isinstance(model, AttentionClassifier):
        raise UnsupportedModel(f"{folder} holds a Transformer; this needs an attention classifier.")
    return model


def _made(stored: dict[str, Any], vocabulary: Vocabulary) -> Saved:
    """The model of a stored configuration, before its weights are put in."""
    kind, sizes = stored.get("kind", "attention-classifier"), dict(stored["model"])
    if kind not in KINDS:
        raise unknown("kind of model", kind, KINDS)
    if kind == "attention-classifier":
        config: ModelConfig | TransformerConfig = with_settings(ModelConfig, sizes)
    else:
        config = with_settings(TransformerConfig, sizes)
    if kind == "narrative-transformer":
        assert isinstance(config, TransformerConfig)
        return NarrativeTransformer(config, vocabulary)
    reading, classes = (stored["tokeniser"], stored["max_tokens"]), stored["classes"]
    if not isinstance(classes, list) or list(map(type, (*reading, *classes))) != [
        str, int, *[str] * len(classes)
    ]:  # fmt: skip
        raise ValueError(f"tokeniser, max_tokens and classes are {(*reading, classes)}")
    model = build(config, vocabulary, tuple(classes), 0, None, *reading)
    model.recipe = str(stored["recipe"])
    return model


def weights_digest(model: nn.Module) -> str:
    """Sixteen hex digits of a model's weights."""
    return tensors_digest(model.state_dict())


def _with(said: dict[str, str], beside: str) -> dict[str, str]:
    """What a digest is of besides numbers."""
    return said | ({"beside": beside} if beside else {})


def write_tensors(
    path: Path, tensors: dict[str, Tensor], said: dict[str, str], beside: str = ""
) -> None:
    """Writes tensors, what is said of them, and the digest of both and of what lies beside them."""
    with writing(path) as temporary:
        digest = tensors_digest(tensors, _with(said, beside))
        # A model has this entry alone: of several the order changes from process to process.
        save_file(tensors, temporary, said | {DIGEST: digest})


def read_tensors(path: Path, beside: str = "") -> tuple[dict[str, Tensor], dict[str, str]]:
    """The tensors of a file and what is said of them; one that was changed since is refused.

    So is what lies beside it, but for files of versions that did not count that in.
    """
    refuse_without_room()
    refuse_pipe(path)
    with safe_open(path, framework="pt") as file:
        said = file.metadata() or {}
        tensors = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118
    digest = said.pop(DIGEST, None)  # files of older versions have none
    known = (tensors_digest(tensors, one) for one in (_with(said, beside), said))
    if digest is not None and digest not in known:
        others = ", or the words and settings beside it" if beside else ""
        raise InputError(
            f"{path} is damaged: its numbers are not those that were written{others}; take it from "
            "a copy, or remove it and train again."
        )
    return tensors, said


def refuse_undefined(model: nn.Module, name: str) -> None:
    """Raises where a weight is no number, by the name of its tensor."""
    for place, value in model.named_parameters():
        if value.is_floating_point() and not bool(value.isfinite().all()):
            raise InputError(
                f"{name} cannot decide: {place} holds values that are not finite numbers; its "
                "training failed, or the file is damaged. Train it again."
            )


def tensors_digest(tensors: Mapping[str, Tensor], said: Mapping[str, str] | None = None) -> str:
    """Sixteen hex digits of tensors by their names, and of what is said of them."""
    digest = hashlib.sha256("".join(f"{n}={v}\n" for n, v in sorted((said or {}).items())).encode())
    for name, value in sorted(tensors.items()):
        digest.update(name.encode())
        # As bytes, for precisions that numpy does not know.
        flat = value.detach().cpu().contiguous().flatten().view(torch.uint8)
        digest.update(flat.numpy().tobytes())
    return digest.hexdigest()[:16]


def example() -> AttentionClassifier:
    """A classifier with weights set by hand, for examples: it attends to `good`, then to `bad`."""
    words = Vocabulary((*SPECIALS, "good", "bad", "food", "service", "and"))
    config = ModelConfig("none", attention="dot", embedding_dim=2)
    model = build(config, words, ("negative", "positive"))
    table = torch.zeros(len(words), 2)
    table[words.ids["good"]] = torch.tensor([3.0, 1.0])
    table[words.ids["bad"]] = torch.tensor([2.0, -1.0])
    by_hand = {
        "embedding.weight": table,
        "level.attention.query.weight": torch.tensor([[1.0, 0.0]]),
        "head.weight": torch.tensor([[0.0, -2.0], [0.0, 2.0]]),
        "head.bias": torch.zeros(2),
    }
    model.load_state_dict(by_hand)
    return model.eval()
