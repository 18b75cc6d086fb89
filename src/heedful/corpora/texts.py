"""From a text to a document: tokens, spans and sentence numbers in one step."""

from __future__ import annotations

from dataclasses import replace

from heedful.corpora.documents import Document
from heedful.corpora.sentences import sentence_numbers
from heedful.corpora.tokens import tokenise


def document_of(id: str, text: str, label: int = -1, tokeniser: str = "words") -> Document:
    """The text as a document, cut by a named token rule and into sentences."""
    tokens, spans = tokenise(text, tokeniser)
    return Document(
        id=id,
        text=text,
        tokens=tokens,
        spans=spans,
        label=label,
        sentence=sentence_numbers(text, spans),
    )


def pair_of(
    id: str, first: str, second: str, label: int = -1, tokeniser: str = "words"
) -> Document:
    """Two texts as one document, one below the other; it knows where the second begins."""
    document = document_of(id, f"{first}\n{second}", label, tokeniser)
    return replace(document, second=len(first) + 1)
