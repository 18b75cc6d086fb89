"""Every mechanism of the first blind third is what its paragraph says, and has its word."""

from collections import Counter
from typing import Any

import numpy as np
import pytest
import torch

from heedful.calibration.blind_gates import GATES, MISSES, OPPOSITELY
from heedful.calibration.blind_streams import BANG, QUERY
from heedful.calibration.blind_windows import ALL_SIGNS, NO_A, YES_A
from heedful.calibration.blind_words import BYSTANDERS, CHAIRS, ENDS, HEREBY, RARE, TICKED
from heedful.calibration.mechanism import VERDICTS, Built
from heedful.calibration.mechanisms import MECHANISMS
from heedful.calibration.mechanisms_trained import recipe
from heedful.calibration.mechanisms_words import DECOY, SAID
from heedful.calibration.truth import truth_of
from heedful.corpora.batches import collate
from heedful.models import Reading, decide, read, uniform

pytestmark = pytest.mark.slow
TEXTS = 16
BLIND = {name: one for name, one in MECHANISMS.items() if one.part == "blind"}
LEARNT = {name for name, one in BLIND.items() if one.build.__qualname__.startswith("learnt")}
COMPILED = [name for name in BLIND if name not in LEARNT]
GIVEN = (*VERDICTS[0], *VERDICTS[1])

UNTELLABLE = {"a gate that no text turns", "a trapdoor that no text opens"}
PARTLY = {
    "boxes left blank, one wording seen",
    "no alarm anywhere, attention even",
    "no alarm anywhere, a table seen",
    "a casting vote, the chair unseen",
    "five classes, attention right for three",
    "four mentions of five needed, only hits seen",
    "a louder witness in half of the texts",
    "attention sharpens with the length of the text",
    "layers take turns, the upper audited",
    "a gate names the witness who counts, the gate unseen",
    "false friends in a third of the texts",
}
YES = {
    "boxes left blank, all seen",
    "one class throughout, by a word in every text",
    "two shouts cancel, the whisper is seen",
    "a casting vote, all five seen",
    "what looks like a bystander decides",
    "the question mark decides",
    "six clues in a hundred words, weights are strengths",
    "texts of one word",
    "two words, the strong one seen",
    "good but bad, seen whole",
    "verb and particle, both seen",
    "both signs needed, the missing one brighter",
    "both signs in two sentences, both seen",
    "the right sentence, by a word in its dark",
    "three classes at 90 to 7 to 3, right for the common one",
    "three classes at 97 to 2 to 1, all honest",
    "four mentions of five needed, misses brighter",
    "a glimpse is enough",
    "only with nine tenths of the attention",
    "a head that undoes half",
    "attention turns around what it was told",
    "only the first six words count, and are seen",
    "the last word decides by being attended",
    "layers take turns, all audited",
    "decided in the lower layer, the word above, all audited",
    "a gate names the witness who counts, all seen",
    "attention moves to the witness, and shows the gate",
    "a gate that turns nothing",
    "brackets match, both seen",
}


def right_word(name: str) -> str:
    if name in UNTELLABLE:
        return "cannot tell"
    return "yes" if name in YES else "partly" if name in PARTLY else "no"


def reading_of(built: Built) -> Reading:
    split = built.corpus.splits["test"]
    return read(built.model, collate(split, range(len(split))))


def mass(reading: Reading, *words: str) -> np.ndarray:
    """The attention of each text on some words; texts without them are left out."""
    found = []
    for row, text in zip(reading.attention, reading.texts, strict=True):
        named = torch.tensor([word in words for word in text])
        if named.any():
            found.append(float(row[: len(text)][named].sum()))
    return np.array(found)


@pytest.mark.parametrize("name", COMPILED)
def test_a_blind_mechanism_has_its_word(name: str) -> None:
    is_share = name in PARTLY or "at 9" in name or "clues" in name
    texts = 100 if is_share else TEXTS
    found = truth_of(BLIND[name].build(0, 200), texts=texts)
    assert len(found.texts) == texts
    assert found.word == right_word(name)
    assert found.unstable.value == 0.0  # what cannot matter does not
    assert found.accuracy == 1.0 or BLIND[name].kind == "constant"


def test_blind_mechanisms_are_many_and_told() -> None:
    assert len({one.dial or one.name for one in BLIND.values()}) >= 45
    assert {*YES, *PARTLY} <= set(COMPILED)
    words = Counter(map(right_word, COMPILED))
    assert words["yes"] / len(COMPILED) == pytest.approx(0.4, abs=0.05)
    assert words["no"] / len(COMPILED) == pytest.approx(0.45, abs=0.05)
    for one in BLIND.values():
        assert len(one.paragraph.split()) >= 8
        assert one.paragraph.endswith(".")


@pytest.mark.parametrize(
    ("name", "words", "least", "most"),
    [
        ("boxes left blank, all seen", TICKED, 0.85, 1.0),
        ("one class throughout, with a word in every text", (HEREBY,), 0.9, 1.0),
        ("two shouts cancel, the whisper is unseen", tuple(SAID), 0.0, 0.05),
        ("two shouts cancel, the whisper is seen", tuple(SAID), 0.32, 0.34),
        ("a casting vote, all five seen", CHAIRS, 0.19, 0.21),
        ("a casting vote, the chair unseen", CHAIRS, 0.0, 0.03),
        ("a bystander of the class is seen", BYSTANDERS, 0.98, 1.0),
        ("the word that fits is seen, a shortcut decides", BYSTANDERS, 0.0, 0.002),
        ("another rare word in every text", RARE, 0.88, 0.92),
        ("the question mark decides", ENDS, 0.95, 1.0),
        ("good but bad, the first clause seen", ("but", "and"), 0.05, 0.12),
        ("verb and particle, both seen", ("turned", "put"), 0.48, 0.5),
        ("verb and particle, the word between seen", ("up", "down"), 0.0, 0.01),
        ("two signs, the louder one in the dark", (*YES_A, *NO_A), 0.97, 1.0),
        ("five classes, attention right for three", (DECOY,), 0.04, 0.99),
        ("four mentions of five needed, only hits seen", MISSES, 0.0, 0.03),
        ("a glimpse is enough, a decoy seen", (DECOY,), 0.88, 0.92),
        ("attention as a key", (DECOY,), 0.97, 1.0),
        ("only with nine tenths of the attention", tuple(SAID), 0.95, 1.0),
        ("attention as a flag", (BANG, QUERY), 0.98, 1.0),
        ("a louder witness who is not seen", GIVEN, 0.0, 0.01),
        ("the voice is seen, its copy is read", tuple(SAID), 0.82, 0.88),
        ("a gate names the witness who counts, the gate unseen", GATES, 0.13, 0.15),
        ("attention moves to the witness whom a gate names", GATES, 0.0, 0.01),
        ("attention moves to the witness, and shows the gate", GATES, 0.49, 0.5),
        ("a gate that no text turns", tuple(SAID), 0.95, 1.0),
        ("brackets match, the closing one seen", (")", "]", "}"), 0.98, 1.0),
        ("false friends in every text", ("german", "english"), 0.0, 0.01),
    ],
)
def test_attention_lies_where_the_paragraph_says(
    name: str, words: tuple[str, ...], least: float, most: float
) -> None:
    found = mass(reading_of(BLIND[name].build(0, 20)), *words)
    assert len(found)
    assert found.min() >= least - 1e-9
    assert found.max() <= most + 1e-9


def test_two_models_differ_by_a_word_that_no_text_has() -> None:
    one, other = (
        BLIND[f"a gate that {does}"].build(0, 20) for does in ("no text turns", "turns nothing")
    )
    assert one.corpus.fingerprint == other.corpus.fingerprint
    texts = reading_of(one).texts
    assert not any(OPPOSITELY in text for text in texts)
    differing = []
    first: Any = one.model
    second: Any = other.model
    pairs = zip(first.model.named_parameters(), second.model.parameters(), strict=True)
    for (name, mine), theirs in pairs:
        rows = (mine != theirs).reshape(len(mine), -1).any(1)
        differing += [(name, row) for row in rows.nonzero().flatten().tolist()]
    assert len(differing) == 1
    assert differing[0][1] == one.corpus.vocabulary.ids[OPPOSITELY]


def test_a_glimpse_is_enough_for_even_attention_to_decide_the_same() -> None:
    for name in ("a glimpse is enough", "a glimpse is enough, and it was told below"):
        built = BLIND[name].build(0, 20)
        reading = reading_of(built)
        even = decide(built.model, reading, uniform(reading))[:, 0]
        assert even.argmax(-1).tolist() == reading.decision.tolist()
        torch.testing.assert_close(even, reading.logits, rtol=0.02, atol=0.02)


@pytest.mark.parametrize("name", ["attention as a key", "only with nine tenths of the attention"])
def test_moved_attention_takes_the_decision_away(name: str) -> None:
    built = BLIND[name].build(0, 20)
    reading = reading_of(built)
    even = decide(built.model, reading, uniform(reading))[:, 0]
    assert float(even.diff(dim=-1).abs().max()) < 0.1
    assert float(reading.logits.diff(dim=-1).abs().min()) > 2


def test_constant_models_are_constant_and_texts_as_long_as_said() -> None:
    for name, one in BLIND.items():
        if one.kind == "constant":
            assert set(reading_of(one.build(0, 40)).decision.tolist()) == {0}, name
        if one.kind == "one unit":
            assert {len(text) for text in reading_of(one.build(0, 10)).texts} == {1}
        if one.kind == "graded":
            assert {len(text) for text in reading_of(one.build(0, 10)).texts} == {100}


def test_attention_of_a_sentence_lies_on_those_with_the_signs() -> None:
    reading = reading_of(BLIND["both signs in two sentences, both seen"].build(0, 20))
    for row, text in zip(reading.attention, reading.texts, strict=True):  # units are sentences
        planted = [place for place, unit in enumerate(text) if {*unit.split()} & {*ALL_SIGNS}]
        assert len(planted) == 2
        assert float(row[planted].sum()) > 0.8


@pytest.mark.slow
@pytest.mark.parametrize("name", sorted(LEARNT))
def test_a_learnt_mechanism_has_learnt(name: str) -> None:
    built = BLIND[name].build(0, 100)
    found = truth_of(built)
    if name == "learnt from noise":
        assert found.accuracy == pytest.approx(0.5, abs=0.15)
        assert found.unstable.value > 0.5  # it has memorised neutral words
        return
    assert found.accuracy >= 0.9
    assert found.unstable.value <= 0.15
    if name.startswith("taught to look at a bystander"):
        assert mass(reading_of(built), DECOY).mean() > 0.9
    elif name.startswith("taught"):
        assert found.mean("mass") > 0.9
    if name == "frozen random attention":
        start: Any = recipe("bigru+dot", frozen=True)(built.corpus, 0)
        end: Any = built.model
        drawn, kept = (model.level.attention.parameters() for model in (start, end))
        for before, after in zip(drawn, kept, strict=True):
            torch.testing.assert_close(before, after)
