"""The right word about a decoder, from its program and its input alone (docs/right-answers.md).

Sources are replaced by others; the answers that the decoder then gives say which sources matter,
and whether a person who looks at attention sees them. No audit is imported here, and no border.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, TypeAlias

import numpy as np
from jaxtyping import Bool, Float, Int

from heedful.calibration.decoder_questions import KnownQuestion, said_by, written
from heedful.calibration.flipping_sets import Flipping, Heard, Search, flipping_sets
from heedful.calibration.known_decoders import KEYS, VALUES, KnownDecoder, Piece
from heedful.calibration.truth import HALF, REDRAWN, YES
from heedful.importance.sources import heads_of
from heedful.models.huggingface.source_reading import read_sources
from heedful.runs.randomness import numpy_generator
from heedful.statistics.estimates import Estimate
from heedful.statistics.intervals import proportion

RightWord: TypeAlias = Literal[
    "attention as it is", "these heads, so weighted", "no", "cannot tell"
]


@dataclass(frozen=True)
class DecoderTruth:
    """The right word about a decoder, and the shares of questions behind it."""

    matters: Estimate
    """Questions in which some source matters."""
    points: Estimate
    """Questions in which the attention of all heads points at what matters."""
    heads: Estimate
    """Questions in which the best weighting of heads does: what they hand on, those of one line of
    the program, or a single head."""
    unstable: Estimate
    """Questions whose answer changes by sources that were said not to matter."""

    @property
    def word(self) -> RightWord:
        """The right word."""
        if 1 - self.matters.value >= YES:
            return "cannot tell"
        if self.points.value >= YES:
            return "attention as it is"
        return "these heads, so weighted" if self.heads.value >= YES else "no"

    @property
    def is_near(self) -> bool:
        """Whether so few questions cannot tell on which side of a border a share lies."""
        sides = (self.matters.side(1 - YES), self.points.side(YES), self.heads.side(YES))
        by_word = {"cannot tell": sides[:1], "attention as it is": sides[:2]}
        return "straddles" in by_word.get(self.word, sides)


def truth_of_decoder(decoder: KnownDecoder, questions: Sequence[KnownQuestion]) -> DecoderTruth:
    """The right word, by what replacing sources does to these questions' answers."""
    weights = [np.full(count := _heads(decoder), 1 / count), _handed_on(decoder)]
    for group in {*decoder.groups, *((head,) for head in range(count))}:
        weights.append(np.isin(np.arange(count), group) / len(group))
    found = [_pointing(decoder, question, weights) for question in questions]
    points = np.array([points for _, points in found])
    every = len(questions)
    return DecoderTruth(
        proportion(sum(matters for matters, _ in found), every),
        proportion(int(points[:, 0].sum()), every),
        proportion(int(points[:, 1:].sum(0).max()), every),
        proportion(sum(not _is_stable(decoder, question) for question in questions), every),
    )


def seen_sources(row: Float[np.ndarray, " source"]) -> Bool[np.ndarray, " source"]:
    """The sources that a person sees: the largest weight, and what has half of it at least.

    Unlike of words, how much of the row that is does not count: what is left depends on how many
    sources there are, and most of what a language model attends to is no source.
    """
    return np.asarray((row >= HALF * row.max() * (1 - 1e-9)) & (row > 0))


def _heads(decoder: KnownDecoder) -> int:
    return decoder.program.layers * decoder.program.per_layer


def _handed_on(decoder: KnownDecoder) -> Float[np.ndarray, " head"]:
    """How much each head hands on, as the program says."""
    found = np.zeros(_heads(decoder))
    for line, group in zip(decoder.program.heads, decoder.groups, strict=True):
        found[list(group)] = max(line.copies, line.links, 0) / line.count
    return found


def _pointing(
    decoder: KnownDecoder,
    question: KnownQuestion,
    weights: Sequence[Float[np.ndarray, " head"]],
) -> tuple[bool, list[bool]]:
    """Whether some source matters, and whether the attention of heads so weighted shows those.

    It does if what a person sees of it is sufficient for the answer and at least half of that lies
    on sources that matter; never where none does.
    """
    places = np.array([n for n, one in enumerate(question.options) if len(one) > 1], dtype=int)
    counts = np.array([len(question.options[place]) for place in places], dtype=int)
    if not len(places):
        return False, [False] * len(weights)
    heads = heads_of(read_sources(decoder.model, question.asked().prompt, False))
    known: dict[bytes, tuple[bool, Bool[np.ndarray, " source"]]] = {}
    matters = False
    found, heard = list[bool](), dict[bytes, Heard]()
    for one in weights:
        row = heads @ one
        seen = seen_sources(row)
        if (key := seen.tobytes()) not in known:
            drawn = numpy_generator(decoder.seed, "decoder truth", question.name)
            flipping = _searched(
                decoder, question, places, flipping_sets(counts, seen[places], drawn), heard
            )
            relevant = np.zeros(len(row), dtype=bool)
            relevant[places[flipping.relevant]] = True
            known[key] = flipping.is_sufficient, relevant
        is_sufficient, relevant = known[key]
        matters |= bool(relevant.any())
        mass = float(row[relevant & seen].sum() / row[seen].sum()) if seen.any() else 0.0
        found.append(is_sufficient and mass >= HALF)
    return matters, found


def _searched(
    decoder: KnownDecoder,
    question: KnownQuestion,
    places: Int[np.ndarray, " place"],
    search: Search,
    heard: dict[bytes, Heard],
) -> Flipping:
    """The search, with its questions answered by the decoder; what was heard is kept."""
    try:
        ways = next(search)
        while True:
            if (key := ways.tobytes()) not in heard:
                whole = np.zeros((len(ways), len(question.options)), dtype=int)
                whole[:, places] = ways
                logits = said_by(decoder, written(question, whole), question.question).copy()
                own = logits[:, question.answer].copy()
                logits[:, question.answer] = -np.inf
                margin = own - logits.max(1)
                heard[key] = Heard(margin < 0, margin)
            ways = search.send(heard[key])
    except StopIteration as done:
        flipping: Flipping = done.value
        return flipping


def _is_stable(decoder: KnownDecoder, question: KnownQuestion) -> bool:
    """Whether other sources in place of those that cannot matter leave the answer."""
    drawn = numpy_generator(decoder.seed, "redrawn sources", question.name)
    asked = {question.question.key, question.question.other}
    asked |= {one.other for one in question.sources}
    keys = sorted({*range(KEYS)} - asked)
    texts: list[list[Piece]] = []
    for _ in range(REDRAWN):
        texts.append(
            [
                one
                if len(options) > 1
                else Piece("source", int(drawn.choice(keys)), int(drawn.integers(VALUES)))
                for one, options in zip(question.sources, question.options, strict=True)
            ]
        )
    said = said_by(decoder, texts, question.question).argmax(1)
    return bool((said == question.answer).all())
