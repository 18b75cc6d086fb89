"""From a text to a document: tokens, spans and sentence numbers in one step."""

from __future__ import annotations

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
