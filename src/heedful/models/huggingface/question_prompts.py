"""A question with its sources as a prompt of parts, each cut into pieces for itself."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from heedful.errors import InputError
from heedful.models.huggingface.answers import greedy_answer
from heedful.models.huggingface.pieces import without_panic
from heedful.models.huggingface.prompts import chat_form

SLOTS = ("{passages}", "{question}")
TEMPLATE = (
    "Answer the question in a few words, from these passages.\n\n{passages}\nQuestion: {question}\n"
    "Answer:"
)
FREE = "N/A"
"""A question without content, under which attention shows what it gives to passages anyhow."""
LONGEST = 24
"""Pieces of an answer that is made."""


@dataclass(frozen=True)
class AnswerPrompt:
    """The pieces of a prompt and of the answer behind it."""

    before: tuple[int, ...]
    sources: tuple[tuple[int, ...], ...]
    after: tuple[int, ...]
    answer: tuple[int, ...] = ()

    @property
    def parts(self) -> list[tuple[int, ...]]:
        """What stands before the sources, each of these, and what asks."""
        return [self.before, *self.sources, self.after]

    @property
    def pieces(self) -> list[int]:
        """The whole prompt."""
        return [piece for part in self.parts for piece in part]


def question_template(given: str | Path | None) -> str:
    """The template: the usual one, the text itself where it has the slots, else that of a file."""
    if given is None:
        return TEMPLATE
    said = str(given)
    if not any(slot in said for slot in SLOTS) and os.path.isfile(said):
        said = Path(said).read_text(encoding="utf-8")
    if [said.count(slot) for slot in SLOTS] != [1, 1] or said.index(SLOTS[0]) > said.index(
        SLOTS[1]
    ):
        raise InputError(
            "A prompt for questions must hold {passages} once and behind it {question} once; "
            f"got {said!r}."
        )
    return said


class QuestionTokeniser:
    """How a model is asked a question: the template in pieces, and answers made or cut."""

    def __init__(self, tokenizer: Any, template: str = TEMPLATE, is_chat: bool = False) -> None:
        self.tokenizer, self.is_chat = tokenizer, is_chat
        whole = chat_form(template, tokenizer) if is_chat else template
        self.before, self.after = whole.split(SLOTS[0])
        self.after = self.after.rstrip(" ")

    def prompt(self, question: str, lines: Sequence[str]) -> AnswerPrompt:
        """The prompt of a question, without an answer yet. A source is a line."""
        return AnswerPrompt(
            tuple(self.start()),
            tuple(tuple(self._cut(f"{line}\n")) for line in lines),
            tuple(self._cut(self.after.replace(SLOTS[1], question))),
        )

    def free(self, prompt: AnswerPrompt) -> AnswerPrompt:
        """The same sources and answer behind a question without content."""
        return replace(prompt, after=tuple(self._cut(self.after.replace(SLOTS[1], FREE))))

    def given(self, answer: str) -> tuple[int, ...]:
        """An answer as it stands behind the prompt."""
        lead = "" if self.after[-1:].isspace() else " "
        found = tuple(self._cut(f"{lead}{answer}"))
        if not found:
            raise InputError(f"The answer {answer!r} has no pieces, so it has no probability.")
        return found

    def made(self, model: Any, prompt: AnswerPrompt) -> tuple[int, ...]:
        """The answer that the model gives greedily, up to its end or that of the first line.

        Blank lines before it belong to it; one that is nothing else is none.
        """
        ends = model.generation_config.eos_token_id if model.generation_config else None
        known = {self.tokenizer.eos_token_id, *(ends if isinstance(ends, list) else [ends])}

        def is_end(said: Sequence[int], piece: int) -> bool:
            is_said = bool(self.tokenizer.decode(list(said)).strip())
            return piece in known or (is_said and "\n" in self.tokenizer.decode([piece]))

        found = tuple(greedy_answer(model, prompt.pieces, LONGEST, is_end))
        return found if self.tokenizer.decode(list(found)).strip() else ()

    def shown(self, pieces: Sequence[int]) -> list[str]:
        """Each piece as text."""
        return [self.tokenizer.decode([piece]) for piece in pieces]

    @without_panic()
    def _cut(self, text: str) -> list[int]:
        found: Any = self.tokenizer(text, add_special_tokens=False, verbose=False)
        return list(found["input_ids"])

    @without_panic()
    def start(self) -> list[int]:
        """What stands before the sources, with the first token that the tokenizer puts there."""
        cut = self._cut(self.before)
        if self.is_chat:
            return cut
        whole: Any = self.tokenizer(self.before, verbose=False)
        ids = list(whole["input_ids"])
        at = next((n for n in range(len(ids)) if ids[n : n + len(cut)] == cut), 0)
        return [*ids[:at], *cut]
