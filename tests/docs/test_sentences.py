"""The reader of sentences: what nobody knows, and what is wrong, does not slip through."""

from __future__ import annotations

from tests.docs.intervals_again import Near, Told
from tests.docs.sentences import (
    Known,
    altered,
    faults,
    is_told,
    page_sentences,
    sentences,
    unnoticed,
)

KNOWN: Known = [
    (r"Of # texts # %(?: \[#, #\])? flip\.", lambda n, m: [n, Told(25.04, 10, 40.2, n)])
]


def test_a_sentence_is_right_unknown_or_wrong() -> None:
    assert faults("Of 8 texts 25 % [10, 40] flip.", KNOWN, 8) == []
    assert faults("Of 8 texts 25 % [10, 40] flip again.", KNOWN, 8) == [
        "0 rules know this sentence"
    ]
    assert faults("Of 8 texts 26 % [10, 40] flip.", KNOWN, 8) == ["26 for 25.04"]
    assert faults("Of 8 texts 25 % flip.", KNOWN, 8) == ["4 numbers expected, 2 told"]


def test_a_number_that_could_be_any_other_is_noticed() -> None:
    assert unnoticed(["Of 8 texts 25 % [10, 40] flip."], KNOWN, 8) == []
    lenient: Known = [(r"Of # texts # flip\.", lambda n, m: [n, Near(25.0, 5.0)])]
    assert unnoticed(["Of 8 texts 25 flip."], lenient, 8) == []  # altered by more than is left open
    assert [altered(one) for one in ("25", "−0.06", "1,204", "2.9e-05")] == [
        "20", "−0.01", "1,209", "6.9e-05",
    ]  # fmt: skip


def test_a_number_is_told_to_the_digits_that_it_has() -> None:
    assert is_told("1,204", 1204)
    assert is_told("−0.13", -0.1349)
    assert not is_told("0.13", 0.1351)
    assert is_told("3e-07", 3.1e-7)


def test_sentences_with_numbers_are_found_and_commands_left_out() -> None:
    said = (
        " → Show it: 5 % lost. No number here. Then 7 of 9.\n`heedful audit x --documents 0` is it"
    )
    assert sentences(said) == ["Show it: 5 % lost.", "Then 7 of 9."]
    page = "<p>All of it holds in <b>3 %</b> here.</p><table><td>4 of them all</td></table><p>9</p>"
    assert page_sentences(page) == ["All of it holds in 3 % here."]
