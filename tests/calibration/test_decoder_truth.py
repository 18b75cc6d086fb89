"""The right word about a decoder: what matters, what is seen, and the words of plain programs."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest

from heedful.calibration.decoder_questions import known_questions, said_by, written
from heedful.calibration.decoder_truth import seen_sources, truth_of_decoder
from heedful.calibration.known_decoders import KnownDecoder, Piece, known_decoder, pieces, programs


@pytest.mark.parametrize(
    ("row", "seen"),
    [
        ([0.1, 0.5, 0.2], [1]),
        ([0.3, 0.5, 0.25], [0, 1, 2]),
        ([0.2, 0.2, 0.2], [0, 1, 2]),
        ([0.0, 0.0], []),
    ],
)
def test_a_person_sees_what_has_half_of_the_largest(row: list[float], seen: list[int]) -> None:
    assert np.flatnonzero(seen_sources(np.array(row))).tolist() == seen


@pytest.mark.parametrize(
    ("name", "word"),
    [
        ("all heads look, by 8 nats", "attention as it is"),
        ("2 of eight look, others at a decoy", "these heads, so weighted"),
        ("two needed, one seen by seven heads", "these heads, so weighted"),
        ("one of 3 copies shown", "these heads, so weighted"),
        ("six heads look at the loud value", "attention as it is"),
        ("one loud value of 4 to 6", "no"),
        ("six of ten from memory, all look", "no"),
        ("heads look, nothing is handed on", "cannot tell"),
    ],
)
def test_right_words_that_follow_from_the_program(name: str, word: str) -> None:
    decoder = known_decoder(programs()[name])
    assert truth_of_decoder(decoder, known_questions(decoder, 12)).word == word


def matters(decoder: KnownDecoder, number: int) -> set[int]:
    """The places in a smallest set that changes the answer, by brute force over sets."""
    asked = known_questions(decoder, number + 1)[number]
    options = [range(len(one)) for one in asked.options]
    ways = np.array(list(product(*options)))
    texts = written(asked, ways)
    flips = said_by(decoder, texts, asked.question).argmax(1) != asked.answer
    sets = {frozenset(np.flatnonzero(way).tolist()) for way in ways[flips]}
    return set().union(*(one for one in sets if not any(other < one for other in sets)))


def test_of_votes_those_for_the_answer_matter_and_of_copies_all() -> None:
    for name in ("two against one, all seen", "said by 3 sources, all seen"):
        decoder = known_decoder(programs()[name])
        for number, asked in enumerate(known_questions(decoder, 6)):
            told = asked.answer - pieces()[Piece("value", value=0)]
            saying = {
                place for place, one in enumerate(asked.sources)
                if one.key == asked.question.key and one.value == told
            }  # fmt: skip
            assert matters(decoder, number) == saying
        found = truth_of_decoder(decoder, known_questions(decoder, 6))
        assert found.points.value == found.matters.value == 1
        assert found.unstable.value == 0
