"""A prompt around the user's text: its template is no word of the text, the labels come after it.

The prompt is cut into pieces as a whole, and a piece that touches the user's text belongs to the
text; what stands before and after it is the same for every text.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from heedful.errors import InputError
from heedful.models.huggingface.pieces import FastTokeniser, Frame, Pieces, without_panic

SLOT, SECOND_SLOT = "{text}", "{text2}"
PROBE = "word"
"""A text that shows which pieces the template has by itself."""
FREE = ("N/A", "[MASK]", "...")
"""Texts without content, whose answers show what the prompt alone leads to."""


@dataclass(frozen=True)
class Prompt:
    """What stands before the text and after it, and whether special tokens are written out."""

    before: str
    after: str
    is_chat: bool = False
    """Written by the tokenizer's chat template, which has its own special tokens."""
    between: str | None = None
    """What stands between the first text and the second; none where there is one."""

    @property
    def lead(self) -> str:
        """What stands between the prompt and a label: a space, unless the prompt ends in one."""
        return "" if self.after[-1:].isspace() else " "

    def around(self, text: str, second: str = PROBE) -> str:
        """The whole prompt for one text, or for two."""
        beside = "" if self.between is None else f"{self.between}{second}"
        return f"{self.before}{text}{beside}{self.after}"


def template_of(given: str | Path) -> str:
    """The template: the text itself where it has `{text}` in it, else that of the file."""
    if SLOT in str(given):
        return str(given)
    file = Path(given)
    if not os.path.isfile(file):  # a prompt may be longer than a path
        raise InputError(
            f"Expected a prompt with {SLOT} in it, or a file that holds one, got {str(given)!r}."
        )
    try:
        return file.read_text(encoding="utf-8")
    except UnicodeDecodeError as error:
        raise InputError(f"{file} is not UTF-8 text; save the prompt as UTF-8.") from error


def prompt_of(template: str, tokenizer: Any, is_chat: bool = False) -> Prompt:
    """The template with its slot found, in the model's chat form where that is asked for.

    Spaces at its end are left to the labels, as models learn them: a word with its space is one
    piece.

    >>> prompt_of("Review: {text}\\nSentiment: ", None)
    Prompt(before='Review: ', after='\\nSentiment:', is_chat=False, between=None)
    """
    if template.count(SLOT) != 1:
        raise InputError(
            f"The prompt must hold {SLOT} once, where the text goes; found it "
            f"{template.count(SLOT)} times."
        )
    if SECOND_SLOT in template.partition(SLOT)[0] or template.count(SECOND_SLOT) > 1:
        raise InputError(f"The prompt may hold {SECOND_SLOT} once, and only behind {SLOT}.")
    if is_chat:
        template = chat_form(template, tokenizer)
    before, after = template.split(SLOT)
    between = None
    if SECOND_SLOT in after:
        between, after = after.split(SECOND_SLOT)
    return Prompt(before, after.rstrip(" "), is_chat, between)


def chat_form(template: str, tokenizer: Any) -> str:
    """The template said by a user, in the form that the model was tuned to."""
    if not getattr(tokenizer, "chat_template", None):
        raise InputError(
            "This model's tokenizer has no chat template; leave --chat out, or name a model "
            "that was tuned to chat."
        )
    said = [{"role": "user", "content": template.strip()}]
    whole = tokenizer.apply_chat_template(said, tokenize=False, add_generation_prompt=True)
    return str(whole)


class PromptTokeniser(FastTokeniser):
    """A tokenizer that sees every text inside the prompt; template and labels are its frame."""

    def __init__(
        self, tokenizer: Any, prompt: Prompt, labels: Sequence[str], padding: int | None = None
    ) -> None:
        self.prompt = prompt
        super().__init__(tokenizer, padding)
        self.is_left_padded = True
        self.has_types = False
        self.pair = None
        self.cut_across = 0
        """Texts so far of which a piece also holds something of the template."""
        before, _, after = self._cut(PROBE)
        self.labels = tuple(self._label(name) for name in labels)
        _refuse_same(labels, self.labels)
        behind = tuple(piece for label in self.labels for piece in label[:-1])
        self.first = before[:1]
        self.single = Frame(before, (), (*after, *behind), _kinds(len(before), after + behind))
        if self.needs_pair:
            head, _, tail = self._cut(PROBE, is_second=True)
            between = head[len(before) + len(self._cut(PROBE)[1].ids) :]
            last = tail + behind
            kinds = _kinds(len(before), last, len(between))
            self.pair = Frame(before, between, last, kinds)

    @property
    def needs_pair(self) -> bool:  # type: ignore[override]
        """Whether the prompt has a place for two texts."""
        return self.prompt.between is not None

    def pieces(self, texts: Sequence[str], is_second: bool = False) -> list[Pieces]:
        """The pieces of each text as they stand in its prompt."""
        usual = self._cut(PROBE, is_second)[::2]
        found = []
        for text in texts:
            before, pieces, after = self._cut(text, is_second)
            self.cut_across += (before, after) != usual
            found.append(pieces)
        return found

    def _cut(
        self, text: str, is_second: bool = False
    ) -> tuple[tuple[int, ...], Pieces, tuple[int, ...]]:
        """The pieces before the text, of the text, and after it; the other text is a word."""
        start = len(self.prompt.before)
        start += len(f"{PROBE}{self.prompt.between}") if is_second else 0
        stop = start + len(text)
        texts = (PROBE, text) if is_second else (text,)
        ids, spans = self._whole(self.prompt.around(*texts))
        begin = next((n for n, (_, last) in enumerate(spans) if last > start), len(ids))
        end = next((n for n, span in enumerate(spans) if n >= begin and span[0] >= stop), len(ids))
        inside = [(max(a, start) - start, min(b, stop) - start) for a, b in spans[begin:end]]
        return tuple(ids[:begin]), Pieces(list(ids[begin:end]), inside), tuple(ids[end:])

    @without_panic()
    def _whole(self, text: str) -> tuple[list[int], list[tuple[int, int]]]:
        """A prompt as pieces, with the special tokens that belong at its beginning."""
        found = self.tokenizer(
            text, add_special_tokens=not self.prompt.is_chat, return_offsets_mapping=True,
            verbose=False,
        )  # fmt: skip
        ids, spans = list(found["input_ids"]), list(found["offset_mapping"])
        while len(ids) > 1 and spans[-1][0] == spans[-1][1]:  # an end of the text: more follows
            ids, spans = ids[:-1], spans[:-1]
        return ids, spans

    def _label(self, name: str) -> tuple[int, ...]:
        """The pieces of a label behind the prompt."""
        if not name.strip():
            raise InputError("A label is empty; name the words that the model chooses among.")
        prompt = self.prompt.around(PROBE)
        before, _ = self._whole(prompt)
        whole, _ = self._whole(f"{prompt}{self.prompt.lead}{name}")
        if whole[: len(before)] != before or len(whole) == len(before):
            raise InputError(
                f"The label {name!r} melts into the end of the prompt when it is cut into pieces; "
                "end the prompt with a colon or a new line."
            )
        found = tuple(whole[len(before) :])
        if self.tokenizer.unk_token_id in found:
            raise InputError(
                f"The label {name!r} is no word that the model knows: its tokenizer cuts it into "
                f"{', '.join(map(self.name, found))}. Choose other words for the class."
            )
        return found


def _refuse_same(names: Sequence[str], ids: Sequence[tuple[int, ...]]) -> None:
    if len(set(ids)) < len(ids):
        raise InputError(
            f"Two of the labels {', '.join(names)} are the same to the model's tokenizer; choose "
            "words that differ."
        )


def _kinds(before: int, after: tuple[int, ...], between: int = 0) -> Any:
    return (0,) * before, 0, (0,) * between, 0, (0,) * len(after)
