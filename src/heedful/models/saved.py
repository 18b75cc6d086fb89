"""Building a classifier from its recipe, and keeping it as safetensors with its words."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np
import torch
from jaxtyping import Float
from safetensors import SafetensorError
from safetensors.torch import load_file, save_file

from heedful.corpora.encoded import MAX_TOKENS
from heedful.corpora.vocabulary import SPECIALS, Vocabulary
from heedful.errors import InputError
from heedful.models.classifier import AttentionClassifier
from heedful.models.recipe import ModelConfig
from heedful.runs.atomic import read_json, write_json, writing
from heedful.runs.randomness import seeded

FORMAT = 1
WEIGHTS, CONFIG, WORDS = "model.safetensors", "config.json", "vocabulary.json"


def build(
    config: ModelConfig,
    vocabulary: Vocabulary,
    classes: tuple[str, ...],
    seed: int = 0,
    vectors: Float[np.ndarray, "word dim"] | None = None,
    tokeniser: str = "words",
    max_tokens: int = MAX_TOKENS,
) -> AttentionClassifier:
    """A fresh classifier whose random start depends on the seed alone."""
    with seeded(seed):
        model = AttentionClassifier(config, vocabulary, classes, tokeniser, max_tokens)
        if vectors is not None:
            model.set_vectors(vectors)
    return model


def save_model(model: AttentionClassifier, folder: Path) -> None:
    """Writes weights, configuration, classes and words to a folder; the weights come last."""
    config: dict[str, Any] = {"format": FORMAT, "kind": "attention-classifier"}
    config |= {"classes": list(model.classes)}
    config |= {"recipe": model.recipe, "tokeniser": model.tokeniser}
    config |= {"max_tokens": model.max_tokens, "model": asdict(model.config)}
    write_json(folder / CONFIG, config)
    write_json(folder / WORDS, list(model.vocabulary.words))
    weights = {
        name: value.detach().cpu().contiguous() for name, value in model.state_dict().items()
    }
    with writing(folder / WEIGHTS) as path:
        save_file(weights, path)


def load_model(folder: Path, device: torch.device | str = "cpu") -> AttentionClassifier:
    """The classifier kept in a folder, in evaluation mode."""
    if not (folder / WEIGHTS).is_file():
        raise InputError(
            f"{folder} holds no trained model ({WEIGHTS} is missing); "
            "train one with `heedful train RECIPE --out DIR`."
        )
    stored = read_json(folder / CONFIG)
    words = read_json(folder / WORDS)
    try:
        if stored["format"] != FORMAT:
            raise InputError(
                f"{folder} has model format {stored['format']}, this heedful reads {FORMAT}; "
                "use the version that wrote it, or train again."
            )
        config = ModelConfig(**stored["model"])
        vocabulary, classes = Vocabulary(tuple(words)), tuple(stored["classes"])
        reading = stored["tokeniser"], stored["max_tokens"]
        model = AttentionClassifier(config, vocabulary, classes, *reading)
        model.recipe = str(stored["recipe"])
        model.load_state_dict(load_file(folder / WEIGHTS, device=str(device)))
    except InputError:
        raise
    except (KeyError, TypeError, RuntimeError, ValueError, SafetensorError) as error:
        reason = str(error).splitlines()[0]
        raise InputError(
            f"{folder} is not a model heedful can read ({reason}); train it again."
        ) from error
    return model.to(device).eval()


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
