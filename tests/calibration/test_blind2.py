"""Every mechanism of the opponent's is what its paragraph says, and has its word."""

from collections import Counter

import numpy as np
import pytest

from heedful.calibration.blind2_streams import SEAT
from heedful.calibration.blind2_tables import ALLEGED, CRIMES, ECHOES, POLITE, PRICES, SECOND, SLANG
from heedful.calibration.mechanism import VERDICTS, Built
from heedful.calibration.mechanisms import MECHANISMS
from heedful.calibration.mechanisms_words import SAID
from heedful.calibration.truth import truth_of
from heedful.corpora.batches import collate
from heedful.models import Reading, read

pytestmark = pytest.mark.slow
OPPONENT = {name: one for name, one in MECHANISMS.items() if one.part == "opponent"}
LEARNT = {name for name, one in OPPONENT.items() if one.build.__qualname__.startswith("learnt")}
COMPILED = [name for name in OPPONENT if name not in LEARNT]

PARTLY = {
    "a contest, brightness by accident",
    "a price seen, the offer in the dark",
    "a dose, only the unit seen",
    "a hedge draws attention away, its absence unseen",
    "few voices drown, many are seen",
    "slang counts in the dark",
    "the lead is always seen",
    "early words go around the attention",
    "a tag at the end decides where it stands",
    "a rebuttal moves the attention",
    "a word twice in a row, seen where it is doubled",
    "an LSTM remembers as loudly as words speak",
}
NO = {
    "six desks, the salutation seen",
    "a contest, the loser a little brighter",
    "an offer seen, the price in the dark",
    "a thin light, 0.40 on the word",
    "an echo of the reason is seen",
    "the loudest wins, the middling one is seen",
    "a lexicon lit against its strength",
    "three sentences of twelve vote, all twelve lit",
    "an idiom, its noun seen",
    "who beats whom, the names seen",
    "a GRU remembers loudly, three classes",
    "a convolution hands the mark to its neighbour",
    "a jury of three kinds, one juror in the light",
    "one loud head outvotes two",
    "the length decides",
    "attention shows the counter-argument",
    "double negation, the voice seen",
    "decided in the middle layer, the first audited",
    "three layers share the work, 0.30 in the audited one",
    "a feed-forward part erases what attention brings",
    "a decoy that was told 1.0 of it, own Transformer",
    "a head for each of four classes",
    "the last word stays where it is read, all audited",
    "counted by an even head, two heads on a seat",
}


def word_of(name: str) -> str:
    return "partly" if name in PARTLY else "no" if name in NO else "yes"


def reading_of(built: Built) -> Reading:
    split = built.corpus.splits["test"]
    return read(built.model, collate(split, range(len(split))))


def mass(reading: Reading, *words: str) -> np.ndarray:
    """The attention of each text on some words."""
    pairs = zip(reading.attention.numpy(), reading.texts, strict=True)
    return np.array([sum(a for a, w in zip(r, t, strict=False) if w in words) for r, t in pairs])


@pytest.mark.parametrize("name", COMPILED)
def test_a_mechanism_of_the_opponents_has_its_word(name: str) -> None:
    texts = 100 if word_of(name) == "partly" or "lexicon" in name or "offer" in name else 8
    found = truth_of(OPPONENT[name].build(0, 100), texts=texts)
    assert found.word == word_of(name)
    assert found.unstable.value == 0.0
    assert found.accuracy == 1.0


@pytest.mark.parametrize("name", sorted(LEARNT)[::4])
def test_a_learnt_mechanism_has_learnt(name: str) -> None:
    built = OPPONENT[name].build(0, 40)
    assert (reading_of(built).decision.numpy() == built.corpus.splits["test"].labels).mean() > 0.75


def test_they_are_many_and_told_and_of_all_words() -> None:
    assert len({one.dial or one.name for one in OPPONENT.values()}) >= 60
    assert {*NO, *PARTLY} <= set(COMPILED)
    words = Counter(map(word_of, COMPILED))
    assert words["yes"] / len(COMPILED) == pytest.approx(0.42, abs=0.05)
    assert words["partly"] / len(COMPILED) == pytest.approx(0.2, abs=0.03)
    for one in OPPONENT.values():
        assert len(one.paragraph.split()) >= 10, one.name
        assert one.paragraph.endswith("."), one.name


@pytest.mark.parametrize(
    ("name", "words", "least", "most"),
    [
        ("six desks, the salutation seen", POLITE, 0.6, 0.8),
        ("a price seen, the offer in the dark", PRICES, 0.9, 1.0),
        ("an idiom, its noun seen", SECOND, 0.95, 1.0),
        ("a word twice in a row, seen in both classes", ECHOES, 0.95, 1.0),
        ("an echo of the reason is seen", (*SLANG[0], *SLANG[1]), 0.0, 0.1),
        ("one loud head outvotes two", (*VERDICTS[0], *VERDICTS[1]), 0.3, 0.4),
        ("the length decides", tuple(SAID), 0.95, 1.0),
        ("counted by an even head, two heads on a seat", (SEAT,), 0.6, 0.75),
        ("a thin light, 0.40 on the word", tuple(SAID), 0.399, 0.401),
    ],
)
def test_attention_lies_where_the_paragraph_says(
    name: str, words: tuple[str, ...], least: float, most: float
) -> None:
    found = mass(reading_of(OPPONENT[name].build(1, 12)), *words)
    assert ((found >= least) & (found <= most)).all(), found


def test_a_hedge_says_nothing_and_decides() -> None:
    reading = reading_of(OPPONENT["a hedge draws attention away, its absence unseen"].build(0, 20))
    is_hedged = np.array([ALLEGED in text for text in reading.texts])
    assert (reading.decision.numpy() == ~is_hedged).all()
    assert (mass(reading, ALLEGED)[is_hedged] > 0.9).all()
    assert (mass(reading, *CRIMES)[~is_hedged] > 0.9).all()


def test_irony_turns_long_texts_around() -> None:
    reading = reading_of(OPPONENT["irony by length"].build(0, 20))
    for text, decision in zip(reading.texts, reading.decision.tolist(), strict=True):
        said = next(SAID[word] for word in text if word in SAID)
        assert decision == (1 - said if len(text) > 10 else said)
