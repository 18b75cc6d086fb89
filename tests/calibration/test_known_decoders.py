"""Decoders whose sources are known: that they answer as built, and the word that an audit says."""

from __future__ import annotations

import numpy as np
import pytest

from heedful.calibration.known_decoders import (
    FIRST_VALUE,
    RIGHT,
    VALUES,
    known_decoder,
    known_questions,
    word_of,
)
from heedful.jobs.one_answer import without_each


@pytest.mark.parametrize("kind", RIGHT)
def test_a_known_decoder_answers_from_the_source_that_it_is_built_to(kind: str) -> None:
    decoder = known_decoder(kind, 3)
    for asked in known_questions(decoder, 6):
        said = without_each(decoder.model, asked.prompt).sum(1)
        evidence = [bool(one.is_evidence) for one in asked.question.sources]
        effects = said[0] - said[1:]
        if kind == "no source":
            np.testing.assert_allclose(effects, 0, atol=1e-12)
            continue
        assert evidence[int(effects.argmax())]
        assert effects.max() > 2 * np.delete(effects, effects.argmax()).max()
        assert FIRST_VALUE <= asked.prompt.answer[0] < FIRST_VALUE + VALUES


@pytest.mark.slow
@pytest.mark.parametrize("kind", RIGHT)
@pytest.mark.parametrize("seed", [0, 1])
def test_the_word_is_right_where_the_sources_are_known(kind: str, seed: int) -> None:
    assert word_of(known_decoder(kind, seed), audited=40, removals=6).word == RIGHT[kind]
