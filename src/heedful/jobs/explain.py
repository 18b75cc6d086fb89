"""Why this text: the importance of its words by every method."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from heedful.corpora.batches import Batch
from heedful.corpora.vocabulary import UNKNOWN
from heedful.errors import InputError
from heedful.importance import explain as importance_of
from heedful.importance import methods_of
from heedful.importance.inputs import missing
from heedful.jobs.decider import Decider, decider_of
from heedful.models import Reading, read
from heedful.models.huggingface import RULE, PretrainedClassifier, unit_spans


@dataclass(frozen=True)
class Explanation:
    """One text, its decision and what each method says mattered."""

    units: tuple[str, ...]
    """Words, or sentences in a hierarchical model."""
    decision: str
    probabilities: dict[str, float]
    importance: dict[str, tuple[float, ...]]
    """One number per unit by each method, higher = more important."""
    spans: tuple[tuple[int, int], ...] = ()
    """First character of each unit in the text, and one past its last."""
    unknown: tuple[str, ...] = ()
    """Words of the text that the model does not know: all read as one symbol."""
    outside: float | None = None
    """The share of the audited attention that lies on special tokens, in a Transformer."""
    words: str = ""
    """How pieces of words became words, in a Transformer."""
    missing: float | None = None
    """How far integrated gradients are from adding up to the rise in probability."""

    def to_json(self) -> dict[str, Any]:
        """The explanation as plain data."""
        return {
            "decision": self.decision,
            "probabilities": self.probabilities,
            "units": list(self.units),
            "spans": [list(span) for span in self.spans],
            "importance": {name: list(values) for name, values in self.importance.items()},
            "unknown": list(self.unknown),
            "outside": self.outside,
            "words": self.words,
            "missing": self.missing,
        }


def explain(
    model: Decider | str | Path,
    text: str,
    methods: Sequence[str] | None = None,
    *,
    seed: int = 0,
    second: str | None = None,
) -> Explanation:
    """What each importance method says of each word of a text, or of a pair of texts.

    >>> import heedful
    >>> from heedful.jobs.settings import settings_of
    >>> corpus = heedful.load_corpus("planted:2:short", sizes={"train": 200, "dev": 50})
    >>> small = settings_of({"train": {"epochs": 1}})
    >>> model = heedful.train("none+additive", corpus, settings=small)
    >>> explanation = heedful.explain(model, "The soup was dreadful.", ["attention"])
    >>> explanation.units
    ('the', 'soup', 'was', 'dreadful', '.')
    """
    if not text.strip():
        raise InputError("Expected a text to explain, got an empty one.")
    model = decider_of(model)
    reading = read(model, _batch(model, text, second))
    probabilities = reading.logits[0].softmax(-1).tolist()
    offered = methods_of(model, costly=True, units=int(reading.units[0]))
    found = importance_of(model, reading, methods or offered, seed)
    return Explanation(
        units=reading.texts[0],
        decision=model.classes[int(reading.decision[0])],
        probabilities=dict(zip(model.classes, probabilities, strict=True)),
        importance={name: tuple(values[0].tolist()) for name, values in found.items()},
        spans=tuple(unit_spans(reading.batch, reading.unit_of_token)[0]),
        unknown=_unknown(model, reading),
        outside=None if reading.outside is None else float(reading.outside[0]),
        words=RULE if isinstance(model, PretrainedClassifier) else "",
        missing=float(missing(model, reading, found["integrated"])[0])
        if "integrated" in found
        else None,
    )


def _batch(model: Decider, text: str, second: str | None) -> Batch:
    if second is None:
        return model.batch([text])
    if not isinstance(model, PretrainedClassifier):
        raise InputError("This model reads one text; two are for models of transformers.")
    return model.batch([(text, second)])


def _unknown(model: Decider, reading: Reading) -> tuple[str, ...]:
    """The words that are not in the model's vocabulary, each once."""
    batch = reading.batch
    if isinstance(model, PretrainedClassifier):
        if not model.subwords.has_unknown:
            return ()
        is_strange = batch.ids[0] == model.subwords.unknown
        units = reading.unit_of_token[0][is_strange].tolist()
        return tuple(dict.fromkeys(reading.texts[0][unit] for unit in units))
    (words,) = batch.words(model.vocabulary)
    ids = model.vocabulary.encode(words)
    return tuple(dict.fromkeys(w for w, i in zip(words, ids, strict=True) if i == UNKNOWN and w))
