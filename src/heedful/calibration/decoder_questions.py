"""Questions to decoders built by hand, and what may stand in the place of each source."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch
from jaxtyping import Float, Int

from heedful.calibration.known_decoders import (
    KEYS,
    VALUES,
    DecoderProgram,
    KnownDecoder,
    Piece,
    pieces,
)
from heedful.corpora.questions import PromptSource, Question
from heedful.jobs.one_answer import AskedQuestion
from heedful.models.huggingface.question_prompts import AnswerPrompt
from heedful.runs.randomness import numpy_generator

NEUTRAL = Piece("source")
"""A source without key and value."""


@dataclass(frozen=True)
class KnownQuestion:
    """A question, the answer that its decoder gives, and the program's view of its sources."""

    name: str
    sources: tuple[Piece, ...]
    question: Piece
    answer: int
    """The piece that is likeliest."""
    options: tuple[tuple[Piece, ...], ...]
    """Of each source: itself and what may stand in its place; itself alone if it cannot matter."""

    def asked(self) -> AskedQuestion:
        """As an audit gets it."""
        number = pieces()
        prompt = AnswerPrompt(
            (number[Piece("start")],),
            tuple((number[one],) for one in self.sources),
            (number[self.question],),
            (self.answer,),
        )
        sources = tuple(PromptSource("") for _ in self.sources)
        return AskedQuestion(Question(self.name, "", sources), prompt, False)


def known_questions(decoder: KnownDecoder, count: int, use: str = "") -> list[KnownQuestion]:
    """So many questions, drawn for a use."""
    program, found = decoder.program, []
    drawn = numpy_generator(decoder.seed, "decoder questions", program.name, use)
    for number in range(count):
        sources, question, can_matter, rival = _drawn(program, drawn)
        options = tuple(
            (one, *_others(one, sources, rival)) if place in can_matter else (one,)
            for place, one in enumerate(sources)
        )
        answer = int(said_by(decoder, [sources], question).argmax())
        found.append(KnownQuestion(f"{use}{number}", tuple(sources), question, answer, options))
    return found


@torch.no_grad()
def said_by(
    decoder: KnownDecoder, texts: Sequence[Sequence[Piece]], question: Piece
) -> Float[np.ndarray, "text piece"]:
    """The logits of all pieces behind each of these rows of sources and the question."""
    number = pieces()
    rows = [[number[Piece("start")], *(number[s] for s in t), number[question]] for t in texts]
    logits = decoder.model(input_ids=torch.tensor(rows), use_cache=False, logits_to_keep=1).logits
    return np.asarray(logits[:, -1])


def _drawn(
    program: DecoderProgram, drawn: np.random.Generator
) -> tuple[list[Piece], Piece, set[int], int]:
    """Sources, a question, the places of sources that can matter, and another value."""
    count = int(drawn.integers(program.sources[0], program.sources[1] + 1))
    keys, values = drawn.permutation(KEYS).tolist(), drawn.permutation(VALUES).tolist()
    asked, also, named, absent = keys[:4]
    right, rival = values[:2]
    free = keys[4:] if program.is_chain or program.is_asked_also else [*keys[4:], also, named]
    told = Piece("source", asked, right)
    needed = [told] * program.agree + [replace_value(told, rival)] * program.against
    if program.is_asked_also:
        needed.append(Piece("source", also, right))
    if program.is_chain:
        needed = [Piece("source", asked, -1, named), Piece("source", named, right)]
    said = [int(one) for one in drawn.choice(values[1:], count)]
    others = [
        Piece("source", key, value)
        for key, value in zip(drawn.permutation(free).tolist(), said, strict=False)
    ]
    while len(others) < count:  # of more sources than keys some have a key twice
        others.append(Piece("source", int(drawn.choice(free)), said[len(others)]))
    is_remembered = drawn.random() < program.from_memory
    if is_remembered:
        needed = []
    others = others[: count - len(needed)]
    if program.marked != "none":
        _flag(needed if program.marked == "right" else others, "is_marked")
    if program.loud != "none":
        _flag(needed if program.loud == "right" else others, "is_loud")
    order = drawn.permutation(count).tolist()
    sources = [[*needed, *others][n] for n in order]
    if program.place != "anywhere" and needed:
        at = 0 if program.place == "first" else count - 1
        now = sources.index(needed[0])
        sources[at], sources[now] = sources[now], sources[at]
    value = -1
    if program.memory:
        value = right if program.remembered == "the answer" or is_remembered else rival
    key = absent if is_remembered else asked
    question = Piece("question", key, value, also if program.is_asked_also else -1)
    edge = {0, count - 1} if any(h.does in ("first", "last") for h in program.heads) else set()
    matter = {
        place
        for place, one in enumerate(sources)
        if program.all_matter or one in needed or one.is_loud or one.is_marked or place in edge
    }
    return sources, question, matter, rival


def replace_value(one: Piece, value: int) -> Piece:
    """The same source with another value."""
    return one._replace(value=value)


def _flag(some: list[Piece], flag: str) -> None:
    if some:
        some[0] = Piece(**(some[0]._asdict() | {flag: True}))


def _others(one: Piece, sources: Sequence[Piece], rival: int) -> list[Piece]:
    """What may stand for a source: one that says nothing, and one that says something else."""
    if one.other >= 0:  # it names another source
        named = [s.key for s in sources if s.key not in (one.key, one.other) and s.other < 0]
        return [NEUTRAL, one._replace(other=named[0])]
    value = rival if one.value != rival else (rival + 1) % VALUES
    return [NEUTRAL, replace_value(one, value)]


def written(question: KnownQuestion, ways: Int[np.ndarray, "way source"]) -> list[list[Piece]]:
    """The sources with each its option of that number."""
    return [[options[n] for options, n in zip(question.options, way, strict=True)] for way in ways]
