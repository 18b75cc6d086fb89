"""Decoders built by hand: that they attend and answer as their program says."""

from __future__ import annotations

import math

import numpy as np
import pytest

from heedful.calibration.decoder_questions import NEUTRAL, known_questions, said_by
from heedful.calibration.known_decoders import (
    DecoderProgram,
    Heads,
    KnownDecoder,
    Piece,
    known_decoder,
    pieces,
    programs,
)
from heedful.errors import InputError
from heedful.importance.sources import heads_of
from heedful.models.huggingface.source_reading import read_sources

MIXED = DecoderProgram(
    name="mixed",
    family="tests",
    says="Heads of many kinds.",
    heads=(
        Heads("asked", 2, margin=5.0, copies=1.0),
        Heads("first", margin=4.0),
        Heads("last"),
        Heads("even"),
        Heads("start", margin=3.0),
    ),
    sources=(7, 7),
)


def value_of(number: int) -> int:
    """The value that a piece says."""
    return number - pieces()[Piece("value", value=0)]


def rows_of(decoder: KnownDecoder, number: int) -> tuple[list[Piece], Piece, np.ndarray]:
    """Sources, question and what every head gives to each source."""
    asked = known_questions(decoder, number + 1)[number]
    reading = read_sources(decoder.model, asked.asked().prompt, is_followed=False)
    return list(asked.sources), asked.question, heads_of(reading)


def test_heads_attend_as_their_line_says() -> None:
    decoder = known_decoder(MIXED, 3)
    sources, question, heads = rows_of(decoder, 4)
    asked = [one.key == question.key for one in sources].index(True)
    # Seven sources and the first token at 0 nats but for what is looked for; the question at −8.
    others = 7 + math.exp(-8)
    by_line = [heads[:, list(group)] for group in decoder.groups]
    assert by_line[0][asked] == pytest.approx(math.exp(5) / (others + math.exp(5)), rel=0.02)
    assert by_line[1][0] == pytest.approx(math.exp(4) / (others + math.exp(4)), rel=0.02)
    assert by_line[2][-1].item() > 0.8
    assert by_line[3] == pytest.approx(1 / (others + 1), rel=0.05)  # places lengthen vectors
    assert by_line[4].sum() == pytest.approx(7 / (others + math.exp(3)), rel=0.02)


def test_what_heads_hand_on_is_said_and_nothing_else() -> None:
    decoder = known_decoder(MIXED, 1)
    for asked in known_questions(decoder, 8):
        told = next(one for one in asked.sources if one.key == asked.question.key)
        assert value_of(asked.answer) == told.value
        without = [NEUTRAL if one == told else one for one in asked.sources]
        other = [told._replace(value=(told.value + 1) % 8) if one == told else one
                 for one in asked.sources]  # fmt: skip
        logits = said_by(decoder, [asked.sources, without, other], asked.question)
        own = logits[:, asked.answer]
        assert own[0] > 5
        assert max(own[1:]) < 0.2
        assert value_of(int(logits[2].argmax())) == (told.value + 1) % 8


def test_which_head_does_what_is_drawn_and_layers_are_alike() -> None:
    places = {known_decoder(MIXED, seed).groups for seed in range(4)}
    assert len(places) == 4
    assert all(sorted(sum(groups, ())) == list(range(6)) for groups in places)
    with pytest.raises(InputError, match="same number of heads"):
        DecoderProgram("x", "y", "z", (Heads("even", 2), Heads("even", layer=1)))


def test_questions_have_the_sources_that_their_program_says() -> None:
    for name, (agree, against) in {
        "two against one, all seen": (2, 1),
        "said by 3 sources, all seen": (3, 0),
        "all look, 13 to 16 sources": (1, 0),
    }.items():
        program = programs()[name]
        for asked in known_questions(known_decoder(program), 10):
            told = [one.value for one in asked.sources if one.key == asked.question.key]
            counts = sorted((told.count(value) for value in {*told}), reverse=True)
            assert counts == [agree, *([against] if against else [])]
            assert program.sources[0] <= len(asked.sources) <= program.sources[1]
            can_matter = [one for one in asked.options if len(one) > 1]
            assert len(can_matter) == agree + against
            assert all(one[1] == NEUTRAL and one[2] != one[0] for one in can_matter)
    chain = programs()["a chain, both steps seen"]
    for asked in known_questions(known_decoder(chain), 10):
        first = next(one for one in asked.sources if one.key == asked.question.key)
        last = next(one for one in asked.sources if one.key == first.other)
        assert value_of(asked.answer) == last.value


def test_every_program_says_what_it_is_and_no_two_are_alike() -> None:
    assert len(programs()) >= 120
    assert all(one.says.endswith(".") and one.family for one in programs().values())
    seen = {(one.heads, one.sources, one.agree, one.against, one.marked, one.loud, one.memory,
             one.remembered, one.from_memory, one.is_chain, one.is_asked_also, one.place,
             one.temper, one.sink, one.all_matter, one.quiet)
            for one in programs().values()}  # fmt: skip
    assert len(seen) == len(programs())
