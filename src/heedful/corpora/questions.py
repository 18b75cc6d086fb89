"""Questions with passages to answer them from: JSON Lines, one question a line.

A question has `question`, `passages`, and perhaps `answer` and `id`. A passage is a text, or an
object with `text` or `sentences`, perhaps a `title`, and perhaps `evidence`: true or false of the
whole, or the numbers (from 0) of the sentences that are known to hold the answer.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from heedful.corpora.sentences import sentence_numbers
from heedful.corpora.tables import read_table
from heedful.corpora.tokens import tokenise
from heedful.errors import InputError, unknown

UNITS = ("passages", "sentences")


@dataclass(frozen=True)
class PromptSource:
    """What may be removed from a prompt: a passage or a sentence."""

    text: str
    title: str = ""
    """Of its passage, where this source is the first of it."""
    is_evidence: bool | None = None
    """Whether it is known to hold the answer; none where nothing is known."""

    @property
    def line(self) -> str:
        """As it stands in a prompt."""
        return f"{self.title}: {self.text}" if self.title else self.text


@dataclass(frozen=True)
class Question:
    """A question, its sources in order, and the answer if one is given."""

    name: str
    text: str
    sources: tuple[PromptSource, ...]
    answer: str | None = None


def read_questions(path: Path | str, units: str = "passages") -> list[Question]:
    """The questions of a file, with passages or their sentences as sources."""
    if units not in UNITS:
        raise unknown("kind of source", units, UNITS)
    path = Path(path)
    table = read_table(path)
    for column in ("question", "passages"):
        if column not in table:
            raise InputError(f'{path} has no "{column}"; a question needs "question", "passages".')
    count = len(table["question"])
    rows = ({name: cells[row] for name, cells in table.items()} for row in range(count))
    questions = [_question(row, f"{path}, question {n}", n, units) for n, row in enumerate(rows, 1)]
    if not questions:
        raise InputError(f"{path} holds no question; write one JSON object a line.")
    names = [question.name for question in questions]
    if len(set(names)) < len(names):
        repeated = next(name for name in names if names.count(name) > 1)
        raise InputError(f"{path} has two questions with the id {repeated!r}; ids must differ.")
    return questions


def _question(found: dict[str, Any], where: str, number: int, units: str) -> Question:
    text, passages, answer = (found.get(name) for name in ("question", "passages", "answer"))
    if not isinstance(text, str) or not text.strip():
        raise InputError(f'{where} needs a "question", which is a text.')
    if not isinstance(passages, list) or not passages:
        raise InputError(f'{where} needs "passages", a list with a passage or more.')
    if answer is not None and (not isinstance(answer, str) or not answer.strip()):
        raise InputError(f'{where} has an "answer" that is no text; leave it out to have one made.')
    sources = [source for one in passages for source in _sources(one, where, units)]
    given = found.get("id")
    name = str(number if given is None else given)
    return Question(name, text.strip(), tuple(sources), answer and answer.strip())


def _sources(passage: Any, where: str, units: str) -> list[PromptSource]:
    """The sources of one passage."""
    given = {"text": passage} if isinstance(passage, str) else passage
    if not isinstance(given, dict):
        raise InputError(f"{where} has a passage that is neither a text nor an object.")
    sentences = given.get("sentences")
    if sentences is None and isinstance(given.get("text"), str):
        sentences = _sentences(given["text"])
    if (
        not isinstance(sentences, list)
        or not all(isinstance(one, str) for one in sentences)
        or not any(one.strip() for one in sentences)
    ):
        raise InputError(f'{where} has an empty passage, or one without "text" or "sentences".')
    title = str(given.get("title") or "").strip()
    known = _evidence(given.get("evidence"), len(sentences), where)
    if units == "passages":
        text = " ".join(one.strip() for one in sentences if one.strip())
        return [PromptSource(text, title, None if known is None else any(known))]
    kept = [n for n, one in enumerate(sentences) if one.strip()]
    return [
        PromptSource(
            sentences[n].strip(), title if n == kept[0] else "", known[n] if known else None
        )
        for n in kept
    ]


def _evidence(given: Any, sentences: int, where: str) -> list[bool] | None:
    """Which sentences are evidence; none where the passage does not say."""
    if given is None:
        return None
    if isinstance(given, bool):
        return [given] * sentences
    is_list = isinstance(given, list) and all(type(one) is int for one in given)
    if not is_list or not all(0 <= one < sentences for one in given):
        raise InputError(
            f'{where} has an "evidence" that is neither true nor false nor numbers of sentences '
            "of its passage."
        )
    return [n in given for n in range(sentences)]


def _sentences(text: str) -> Sequence[str]:
    """The sentences of a text, by rule."""
    spans = tokenise(text, "words").spans
    if not len(spans):
        return []
    numbers = sentence_numbers(text, spans)
    firsts = [int(spans[numbers == n][0, 0]) for n in range(int(numbers[-1]) + 1)]
    firsts[0] = 0
    return [text[a:b] for a, b in zip(firsts, [*firsts[1:], len(text)], strict=True)]
