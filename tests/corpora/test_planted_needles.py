"""Made-up questions: the fact stands in one passage, the answer in the fact."""

from __future__ import annotations

import pytest

from heedful.corpora.planted_needles import PASSAGES, QUESTIONS, needles
from heedful.errors import InputError


def test_one_passage_says_the_answer_and_it_is_the_evidence() -> None:
    found = needles("needles:800")
    assert len(found) == QUESTIONS
    assert len({one.name for one in found}) == QUESTIONS
    for one in found:
        said = f"The {one.text.removeprefix('What is the ').split(' of ')[0]} of "
        holding = [said in source.text for source in one.sources]
        assert sum(holding) == 1
        assert len(one.sources) == PASSAGES
        assert holding == [bool(source.is_evidence) for source in one.sources]
        assert one.answer is not None
        assert f"is {one.answer}." in one.sources[holding.index(True)].text
    places = {[s.is_evidence for s in one.sources].index(True) for one in found}
    assert len(places) > PASSAGES // 2


def test_they_are_as_long_as_asked_and_the_same_every_time() -> None:
    for words in (160, 1600, 6400):
        found = needles(f"needles:{words}", count=4)
        lengths = [sum(len(s.text.split()) for s in one.sources) for one in found]
        assert all(words <= length <= words + PASSAGES * 16 for length in lengths)
    assert needles("needles:160", 3) == needles("needles:160", 3) != needles("needles:160", 4)


@pytest.mark.parametrize("name", ["needles:", "needles:x", "needles:10", "needles:-800"])
def test_other_lengths_are_refused_in_a_sentence(name: str) -> None:
    with pytest.raises(InputError, match="Expected needles:WORDS with 160 words or more"):
        needles(name)
