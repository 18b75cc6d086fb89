"""The documents of the first model that can be picked on the page: filtered, and read when there is
nothing else to do, so that they can be filtered by decision too."""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any

from heedful.corpora import Corpus, EncodedCorpus
from heedful.corpora.documents import Document
from heedful.corpora.encoded import Encoded
from heedful.errors import InputError
from heedful.explorer.texts import MOST_CHARACTERS, ExploredModel, TextAsked
from heedful.explorer.worker import Event, WorkStep
from heedful.jobs.explain import batch_of
from heedful.models import read

MOST_DOCUMENTS = 2_000
"""Documents that are offered: the first of the split."""
PER_PAGE, READ_TOGETHER = 20, 8
"""Documents of one answer, and of one step of the worker."""
BEGINNING = 300
"""Characters of a document in the list."""


@dataclass(frozen=True)
class OfferedDocument:
    """A document and what is known of it."""

    asked: TextAsked
    label: str
    """Its class in the corpus; empty where it has none."""
    searched: str
    """The text in small letters."""


@dataclass(frozen=True, eq=False)
class OfferedDocuments:
    """A list of documents, and the decisions that are known so far."""

    name: str = ""
    documents: Sequence[OfferedDocument] = ()
    of: int = 0
    """How many the split has."""
    classes: tuple[str, ...] = ()
    decided: dict[int, tuple[str, float]] = field(default_factory=dict)
    """Class and probability, by the number of the document; no class where it was refused."""

    def steps(self, explored: ExploredModel) -> deque[WorkStep]:
        """Reads all documents by the model, a few at a time."""
        numbers = range(len(self.documents))
        parts = [numbers[start : start + READ_TOGETHER] for start in numbers[::READ_TOGETHER]]
        return deque(WorkStep(explored.model, partial(self._read, explored, p)) for p in parts)

    def _read(self, explored: ExploredModel, numbers: range) -> Event:
        try:
            batch = batch_of(explored.model, [self.documents[one].asked for one in numbers])
        except InputError:  # a pair for a model of single texts, or `--long refuse`
            if len(numbers) == 1:
                self.decided[numbers[0]] = ("", 0.0)
                return {}
            for one in numbers:
                self._read(explored, range(one, one + 1))
            return {}
        found = read(explored.model, batch).logits.softmax(-1).max(-1)
        for one, share, best in zip(numbers, *(part.tolist() for part in found), strict=True):
            self.decided[one] = (explored.model.classes[best], share)
        return {}

    def page(self, label: str, decision: str, search: str, start: int) -> dict[str, Any]:
        """Those that were asked for, from the given one on; empty words ask for all."""
        search = search.casefold()
        found = [
            number
            for number, one in enumerate(self.documents)
            if (not label or one.label == label)
            and (not decision or self.decided.get(number, ("",))[0] == decision)
            and search in one.searched
        ]
        return {
            "found": len(found),
            "known": len(self.decided),
            "total": len(self.documents),
            "documents": [self._line(number) for number in found[start : start + PER_PAGE]],
        }

    def _line(self, number: int) -> dict[str, Any]:
        one = self.documents[number]
        decision, probability = self.decided.get(number, ("", None))
        return {
            "number": number,
            "beginning": one.asked.text[:BEGINNING],
            "label": one.label,
            "decision": decision,
            "probability": probability,
        }

    def one(self, number: int) -> dict[str, Any]:
        """The whole text of a document."""
        if not 0 <= number < len(self.documents):
            raise InputError(f"There is no document {number}; there are {len(self.documents)}.")
        return self.documents[number].asked._asdict()


def offered(corpus: Corpus | EncodedCorpus, split: str = "test") -> OfferedDocuments:
    """The documents of a corpus that has their texts: of the split, else of whichever it has."""
    splits: dict[str, Sequence[Document]] = {
        name: (part.documents or ()) if isinstance(part, Encoded) else part
        for name, part in corpus.splits.items()
    }
    every = splits.get(split) or next(filter(len, splits.values()), ())
    shown = []
    for document in every[:MOST_DOCUMENTS]:
        second = document.second
        first = document.text if second is None else document.text[:second].strip()
        if not first.strip():
            continue
        rest = None if second is None else document.text[second:][:MOST_CHARACTERS].strip() or None
        label = corpus.classes[document.label] if document.label >= 0 else ""
        asked = TextAsked(first[:MOST_CHARACTERS], rest)
        shown.append(OfferedDocument(asked, label, document.text.casefold()))
    return OfferedDocuments(corpus.name, shown, len(every), corpus.classes)
