"""The right answer: by hand on tiny texts, by brute force on random ones, and without any audit."""

import subprocess
import sys
from itertools import chain, combinations, product

import numpy as np
import pytest

from heedful.calibration import flipping_sets, truth
from heedful.calibration.compiled_stream import LayerProgram
from heedful.calibration.compiled_words import weighing
from heedful.calibration.mechanism import Built, Text, corpus_of, other_class
from heedful.calibration.mechanisms_heads import ON_WORD, TELL_ALL, streamed
from heedful.calibration.truth import seen, truth_of

WORDS = ("table", "chair", "good", "great", "bad", "awful")


def built(words: list[str], scores: dict[str, float], loud: dict[str, float], label: int = 1):
    """One text, read by a table of words: positive numbers speak for class 1."""
    corpus = corpus_of(lambda rng, _: Text(words, label), {"test": 1}, 0, words=WORDS)
    said = {word: [0.0, value] for word, value in loud.items()}
    substitutes = {word: other for word, other in other_class().items() if word in WORDS}
    return Built(weighing(corpus, scores, said), corpus, substitutes, ("table", "chair"))


LOUD = {"good": 1.0, "great": 1.0, "bad": -1.0, "awful": -1.0}


def only(model: Built) -> truth.TextTruth:
    (text,) = truth_of(model).texts
    return text


def test_one_word_that_is_seen_and_decides() -> None:
    text = only(built(["table", "good", "chair"], {"good": 5.0, "bad": 5.0}, LOUD))
    assert text.relevant == text.seen == (1,)
    assert text.points
    assert text.mediates
    assert text.around == pytest.approx(0.0, abs=1e-12)
    # Attention is as large on `bad` as on `good`: all of the effect is in what the word says.
    assert text.by_input == pytest.approx(1.0)
    assert text.by_weights == pytest.approx(0.0, abs=1e-12)


def test_evidence_three_times_is_relevant_three_times() -> None:
    text = only(built(["good", "great", "table", "good"], dict.fromkeys(LOUD, 4.0), LOUD))
    assert text.relevant == (0, 1, 3)  # any two of them flip, none alone
    assert text.points


def test_a_word_against_the_decision_is_not_relevant() -> None:
    text = only(built(["good", "bad", "great"], dict.fromkeys(LOUD, 0.0), LOUD))
    assert text.relevant == (0, 2)
    assert text.mass == pytest.approx(2 / 3)


def test_a_decoy_is_neither_relevant_nor_enough() -> None:
    text = only(built(["table", "good", "chair"], {"chair": 2.0}, LOUD))
    assert text.seen == (2,)
    assert not text.is_sufficient
    assert not text.points
    assert text.mediates


def test_a_model_that_says_the_same_whatever_it_reads_points_at_nothing() -> None:
    text = only(built(["table", "good"], {"good": 5.0}, dict.fromkeys(LOUD, 0.0)))
    assert text.relevant == ()
    assert not text.points
    assert not text.mediates
    assert np.isnan(text.around)


def test_what_cannot_matter_is_checked() -> None:
    liar = built(["table", "good"], {}, {"table": -2.0, "chair": 2.0, "good": 1.0})
    assert not only(liar).is_stable
    assert only(built(["table", "good"], {}, LOUD)).is_stable


@pytest.mark.parametrize(
    ("attention", "wanted"),
    [
        ([0.9, 0.05, 0.05], [True, False, False]),
        ([0.55, 0.45], [True, True]),  # at least half of the largest
        ([0.6, 0.2, 0.2], [True, False, False]),
        ([0.4, 0.15, 0.15, 0.15, 0.15], [True] * 5),  # half of the mass, and its equals
        ([0.4, 0.19, 0.18, 0.13, 0.1], [True, True, False, False, False]),
        ([1.0], [True]),
        ([1 / 30] * 30, [True] * 30),
    ],
)
def test_what_a_person_sees(attention: list[float], wanted: list[bool]) -> None:
    assert seen(np.array(attention)).tolist() == wanted


def brute(words: list[str], scores: dict[str, float], loud: dict[str, float]):
    """Relevant words by minimal *sufficient* sets, in float64, without any code of ours."""
    options = [(word, *other_class().get(word, ())) for word in words]

    def decides(text: tuple[str, ...]) -> bool:
        weights = np.exp([np.float64(scores.get(word, 0.0)) for word in text])
        return bool((weights * [loud.get(word, 0.0) for word in text]).sum() > 0)

    every = [(way, decides(way) == decides(tuple(words))) for way in product(*options)]
    places = range(len(words))

    def is_sufficient(kept: tuple[int, ...]) -> bool:
        return all(stays for way, stays in every if all(way[p] == words[p] for p in kept))

    sets = chain.from_iterable(combinations(places, size) for size in range(len(words) + 1))
    minimal: list[tuple[int, ...]] = []
    for one in sets:
        if is_sufficient(one) and not any(set(small) <= set(one) for small in minimal):
            minimal.append(one)
    return sorted({place for one in minimal for place in one}), is_sufficient


@pytest.mark.parametrize("seed", range(25))
def test_relevant_words_are_those_of_minimal_sufficient_sets_too(seed: int) -> None:
    rng = np.random.default_rng(seed)
    words = [str(word) for word in rng.choice(WORDS, 5)]
    scores = {word: float(rng.normal(0, 1)) for word in WORDS}
    loud = {word: float(sign * rng.uniform(0.5, 2)) for word, sign in LOUD.items()}
    text = only(built(words, scores, loud))
    relevant, is_sufficient = brute(words, scores, loud)
    assert list(text.relevant) == relevant
    assert text.is_sufficient == is_sufficient(text.seen)


@pytest.mark.parametrize("seed", range(10))
def test_samples_find_what_trying_everything_finds(
    seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    rng = np.random.default_rng(seed)
    words = [str(word) for word in rng.choice(WORDS, 6)]
    first, second = rng.normal(0, 1, 2)  # as loud and as attended as their counterparts
    scores = {"good": first, "bad": first, "great": second, "awful": second}
    wanted = only(built(words, scores, LOUD))
    monkeypatch.setattr(flipping_sets, "WAYS", 0)
    found = only(built(words, scores, LOUD))
    assert (found.relevant, found.is_sufficient) == (wanted.relevant, wanted.is_sufficient)


def test_restoring_words_finds_every_vote(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(flipping_sets, "WAYS", 0)
    words = ["good", "great", "good", "bad", "good", "table", "great"]
    text = only(built(words, dict.fromkeys(LOUD, 3.0), LOUD))
    assert text.relevant == (0, 1, 2, 4, 6)


@pytest.mark.parametrize("share", [0.2, 0.7])
def test_what_goes_around_is_the_residual_streams_share(share: float) -> None:
    layers = [LayerProgram([TELL_ALL]), LayerProgram([ON_WORD])]
    through = 5 * (1 - share)
    decides = {"heard": (-through, through), "told": (-5 * share, 5 * share)}
    model = streamed("gpt2", layers, decides)(0, 12)
    found = truth_of(model, texts=12)
    assert found.mean("around") == pytest.approx(share, abs=0.03)
    assert found.word == ("yes" if share < 0.5 else "no")
    assert found.pointing.value == 1.0


def test_words_of_sentences_are_seen_with_their_sentence() -> None:
    words, sentence = ["table", "good", "chair", "table"], [0, 0, 1, 1]
    corpus = corpus_of(lambda rng, _: Text(words, 1, (1,), sentence), {"test": 1}, 0, words=WORDS)
    scores = {"good": 5.0, "bad": 5.0}
    said = {word: [0.0, value] for word, value in LOUD.items()}
    model = weighing(corpus, scores, said, within=scores)
    text = only(Built(model, corpus, {"good": ("bad", "table")}, ("table", "chair")))
    assert text.seen == (0, 1)
    assert text.seen_share == 0.5
    assert text.points


def test_no_audit_is_imported() -> None:
    code = (
        "import sys, heedful.calibration.truth\n"
        "rooms = ('heedful.audits', 'heedful.jobs')\n"
        "print([name for name in sys.modules if name.startswith(rooms)])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
