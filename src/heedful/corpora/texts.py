"""From a text to a document: tokens, spans and sentence numbers in one step."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial

from heedful.corpora.documents import Document, Locate, Located
from heedful.corpora.sentences import sentence_numbers
from heedful.corpora.tokens import TOKENISERS, tokenise
from heedful.errors import InputError


def document_of(
    id: str, text: str, label: int = -1, tokeniser: str = "words", *, is_packed: bool = False
) -> Document:
    """The text as a document, cut by a named token rule and into sentences."""
    if is_packed:
        tokens = tokenise(text, tokeniser).tokens
        return Document.packed(id, text, tokens, label, _LOCATE[tokeniser])
    tokens, spans = tokenise(text, tokeniser)
    return Document(
        id=id,
        text=text,
        tokens=tokens,
        spans=spans,
        label=label,
        sentence=sentence_numbers(text, spans),
    )


def _located(rule: str, text: str) -> Located:
    spans = tokenise(text, rule).spans
    return Located(spans, sentence_numbers(text, spans))


_LOCATE: Mapping[str, Locate] = {rule: partial(_located, rule) for rule in TOKENISERS}


def pair_of(
    id: str, first: str, second: str, label: int = -1, tokeniser: str = "words"
) -> Document:
    """Two texts as one document, one below the other; it knows where the second begins."""
    document = document_of(id, f"{first}\n{second}", label, tokeniser)
    return replace(document, second=len(first) + 1)


def unlabelled(
    texts: Sequence[str] | Sequence[str | tuple[str, str]], tokeniser: str = "words"
) -> list[Document]:
    """The texts, or pairs of texts, as documents without a label, named by their numbers."""
    if isinstance(texts, str):
        raise InputError(f"Expected a list of texts, got one text; write [{texts[:40]!r}].")
    return [
        document_of(str(number), text, -1, tokeniser)
        if isinstance(text, str)
        else pair_of(str(number), *text, -1, tokeniser)
        for number, text in enumerate(texts)
    ]
