"""Texts with labels: what every reader returns and every model is trained on."""

from __future__ import annotations

import hashlib
import sys
import zlib
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple

import numpy as np
from jaxtyping import Bool, Int

from heedful.errors import InputError

SPLITS = ("train", "dev", "test")


class Located(NamedTuple):
    """Where the tokens of a text stand."""

    spans: Int[np.ndarray, "token 2"]
    sentence: Int[np.ndarray, " token"]


Locate = Callable[[str], Located]


@dataclass(frozen=True, eq=False, slots=True)
class Document:
    """One text, cut into tokens, with everything that is known about it."""

    id: str
    """Stable name of the instance; all randomness and all joins go by it."""
    text: str
    """The text as it was given."""
    tokens: tuple[str, ...]
    """What a model reads, in order."""
    spans: Int[np.ndarray, "token 2"]
    """Where each token stands in `text`: first character and one past the last."""
    label: int
    """Index into the corpus's classes; -1 when unknown."""
    sentence: Int[np.ndarray, " token"]
    """Number of the sentence each token belongs to, from 0, never decreasing."""
    evidence: Bool[np.ndarray, " token"] | None = None
    """Which tokens carry the label, where that is known (planted, human rationales)."""
    word_labels: Int[np.ndarray, " token"] | None = None
    """Labels of single words, where the corpus has them (the leaves of SST trees)."""
    second: int | None = None
    """The character at which the second text of a pair begins; none where there is one text."""
    locate: Locate | None = None
    """What computes `spans` and `sentence` of a packed document."""
    words: bytes = b""
    """Its packed tokens."""

    def __post_init__(self) -> None:
        n = len(self.tokens)
        for name in ("spans", "sentence", "evidence", "word_labels"):
            values = getattr(self, name)
            if values is not None and len(values) != n:
                raise ValueError(f"document {self.id}: {n} tokens but {len(values)} {name}")

    @classmethod
    def packed(
        cls, id: str, text: str, tokens: tuple[str, ...], label: int, locate: Locate
    ) -> Document:
        """A document in a quarter of the memory, for files so large that this matters.

        Its `tokens` are unpacked and its `spans` and `sentence` computed whenever they are asked
        for. No token holds a line break.
        """
        document = object.__new__(cls)
        kept = zlib.compress("\n".join(tokens).encode(), 1) if tokens else b""
        known = {"id": id, "text": text, "label": label, "locate": locate, "words": kept}
        for name in (*known, "evidence", "word_labels", "second"):
            object.__setattr__(document, name, known.get(name))
        return document

    def __getattr__(self, name: str) -> Any:  # called for what is not there
        if name not in ("tokens", *Located._fields) or self.locate is None:
            raise AttributeError(f"a document has no {name}")
        if name != "tokens":
            return getattr(self.locate(self.text), name)
        words = zlib.decompress(self.words).decode().split("\n") if self.words else ()
        return tuple(map(sys.intern, words))

    def cut(self, tokens: int) -> Document:
        """The document's first `tokens` tokens; the text is kept whole."""
        if len(self.tokens) <= tokens:
            return self
        return replace(
            self,
            tokens=self.tokens[:tokens],
            spans=self.spans[:tokens],
            sentence=self.sentence[:tokens],
            evidence=None if self.evidence is None else self.evidence[:tokens],
            word_labels=None if self.word_labels is None else self.word_labels[:tokens],
        )


@dataclass(frozen=True, eq=False)
class Corpus:
    """Labelled documents in splits, with where they came from and what was left out."""

    name: str
    """How the corpus is asked for, variant included (`sst:2`, `planted:5`)."""
    classes: tuple[str, ...]
    """Class names in the order of the label indices."""
    splits: Mapping[str, Sequence[Document]]
    """Documents of `train`, `dev` and `test`; any of them may be absent."""
    lexicon: Mapping[str, float] | None = None
    """Valence of words, where the corpus brings its own."""
    notes: Mapping[str, int] = field(default_factory=dict)
    """What reading did and how often: documents dropped, cut, repaired."""
    stand_in_for: str | None = None
    """The published corpus this one stands in for, when it is not the same."""
    tokeniser: str = "words"
    """How new text must be cut to be read like this corpus."""

    def __post_init__(self) -> None:
        for split in self.splits:
            if split not in SPLITS:
                raise ValueError(f"a split is one of {', '.join(SPLITS)}, got {split!r}")

    @property
    def fingerprint(self) -> str:
        """Sixteen hex digits that change when any document, label or split changes."""
        digest = hashlib.sha256(repr(self.classes).encode())
        for split in SPLITS:
            for document in self.splits.get(split, ()):
                line = f"{split}\0{document.id}\0{document.label}\0" + "\0".join(document.tokens)
                line += "" if document.second is None else f"\0second\0{document.second}"
                digest.update(line.encode("utf-8", "surrogatepass"))
        return digest.hexdigest()[:16]

    def require(self, *splits: str) -> None:
        """Raises unless every named split has documents."""
        for split in splits:
            if not self.splits.get(split):
                raise InputError(
                    f"Corpus {self.name} has no {split} documents; "
                    "name a split column or let heedful split by a seed."
                )

    def counts(self, split: str) -> dict[str, int]:
        """Number of documents of each class in a split, in class order."""
        found = Counter(document.label for document in self.splits.get(split, ()))
        return {name: found[index] for index, name in enumerate(self.classes)}
