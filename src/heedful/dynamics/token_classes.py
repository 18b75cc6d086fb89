"""Which words belong to a class: by how often they stand in its training texts.

See docs/studies/polarity.md, "Classes of words".

Two classes: γ = (f⁺ − f⁻) / (f⁺ + f⁻), with f⁺ and f⁻ the word's occurrences in texts of the second
and of the first class. More classes: the largest share q(k) of the word's occurrences.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from jaxtyping import Bool, Float, Int

from heedful.corpora.encoded import Encoded, EncodedCorpus
from heedful.corpora.vocabulary import SPECIALS
from heedful.errors import InputError, unknown

NEUTRAL = "neutral"
UNITS = ("occurrences", "documents")


@dataclass(frozen=True)
class TokenRule:
    """The thresholds of the classes; the defaults are the paper's."""

    strong: float = 0.5
    """A class word of two classes has |γ| above this …"""
    least: int = 5
    """… and more occurrences in its class than this."""
    weak: float = 0.1
    """A neutral word has |γ| below this …"""
    apart: int = 5
    """… and fewer occurrences more in one class than in the other; it needs no least frequency."""
    with_ends: bool = True
    """Whether γ = ±1 counts: the released code says yes, the paper's open intervals say no."""
    share: float = 0.65
    """A word of one of several classes has a larger share than this of its occurrences there."""
    floor: int = 30
    """Words of several classes, neutral ones too, occur at least so often."""
    spread: float = 0.15
    """A neutral word's largest and smallest share differ by less than this."""
    unit: str = "occurrences"
    """What is counted: occurrences, or documents that hold the word."""

    def __post_init__(self) -> None:
        if self.unit not in UNITS:
            raise unknown("unit to count", self.unit, UNITS)
        for name in ("strong", "weak", "share", "spread"):
            if not 0 <= getattr(self, name) <= 1:
                raise InputError(f"{name} lies between 0 and 1, got {getattr(self, name)}.")
        if self.weak > self.strong:
            raise InputError(
                f"weak ({self.weak}) must not be above strong ({self.strong}): no word may be "
                "neutral and of a class."
            )


@dataclass(frozen=True, eq=False)
class TokenClasses:
    """The class of every word, by id."""

    names: tuple[str, ...]
    """The classes, then `neutral`."""
    kind: Int[np.ndarray, " word"]
    """Position in `names`; -1 for words that belong nowhere."""
    counts: Int[np.ndarray, "word class"]
    """How often the word stands in texts of each class."""

    @property
    def association(self) -> Float[np.ndarray, " word"]:
        """γ for two classes; the largest share of a class for more; nan for unseen words."""
        return association(self.counts)

    def of(self, name: str) -> Bool[np.ndarray, " word"]:
        """Which words are of that class."""
        return np.asarray(self.kind == self.names.index(name))

    @property
    def sizes(self) -> dict[str, int]:
        """Number of words of each class."""
        return {name: int(self.of(name).sum()) for name in self.names}

    @property
    def empty(self) -> tuple[str, ...]:
        """Classes without any word, for a report to name."""
        return tuple(name for name, size in self.sizes.items() if not size)

    @property
    def is_member(self) -> Bool[np.ndarray, " word"]:
        """Which words belong somewhere."""
        return self.kind >= 0


def word_counts(
    encoded: Encoded, classes: int, words: int, unit: str = "occurrences"
) -> Int[np.ndarray, "word class"]:
    """How often each word stands in texts of each class; unlabelled texts do not count."""
    labels = encoded.labels
    if len(labels) and not -1 <= labels.min() <= labels.max() < classes:
        raise InputError(
            f"labels are class numbers from 0 to {classes - 1} (−1: unknown), got "
            f"{int(labels.min())} to {int(labels.max())}."
        )
    label = np.repeat(labels, encoded.lengths)
    ids = encoded.ids.astype(np.int64)
    if unit == "documents":
        document = np.repeat(np.arange(len(encoded)), encoded.lengths)
        _, first = np.unique(document * words + ids, return_index=True)
        label, ids = label[first], ids[first]
    known = label >= 0
    cells = np.bincount(ids[known] * classes + label[known], minlength=words * classes)
    return cells.reshape(words, classes)


def association(counts: Int[np.ndarray, "word class"]) -> Float[np.ndarray, " word"]:
    """γ for two classes, the largest share for more; nan where a word is never seen."""
    total = counts.sum(1)
    most = counts[:, 1] - counts[:, 0] if counts.shape[1] == 2 else counts.max(1)
    gamma = np.full(len(counts), np.nan)
    return np.asarray(np.divide(most, total, out=gamma, where=total > 0))


def classify(
    counts: Int[np.ndarray, "word class"],
    names: Sequence[str],
    rule: TokenRule = TokenRule(),
) -> TokenClasses:
    """The class of each word from its counts; the vocabulary's special symbols belong nowhere."""
    kind = np.full(len(counts), -1)
    if counts.shape[1] == 2:
        gamma = association(counts)
        below, above = counts[:, 0], counts[:, 1]
        inside = np.isfinite(gamma) & (rule.with_ends | (np.abs(gamma) < 1))
        kind[inside & (gamma < -rule.strong) & (below > rule.least)] = 0
        kind[inside & (gamma > rule.strong) & (above > rule.least)] = 1
        kind[(np.abs(gamma) < rule.weak) & (np.abs(above - below) < rule.apart)] = 2
    else:
        total = counts.sum(1)
        share = counts / np.maximum(total, 1)[:, None]
        frequent = total >= max(rule.floor, 1)
        polar = frequent & (share.max(1) > rule.share)
        kind[polar] = share.argmax(1)[polar]
        kind[frequent & ~polar & (np.ptp(share, axis=1) < rule.spread)] = counts.shape[1]
    kind[: len(SPECIALS)] = -1
    return TokenClasses((*names, NEUTRAL), kind, counts)


def token_classes(corpus: EncodedCorpus, rule: TokenRule = TokenRule()) -> TokenClasses:
    """The class of every word, from the training texts alone."""
    train, classes = corpus.splits["train"], corpus.classes
    counts = word_counts(train, len(classes), len(corpus.vocabulary), rule.unit)
    return classify(counts, classes, rule)
