"""Units that a decision needs, found where it turns: against votes counted by hand."""

import numpy as np
import pytest

from heedful.audits.asking import Asked
from heedful.audits.hybrids import contexts
from heedful.audits.needed_units import Pair, needed_mass
from heedful.calibration.compiled_words import weighing
from heedful.calibration.mechanism import Text, corpus_of

SAID = {"good": 1.0, "great": 1.0, "bad": -1.0, "awful": -1.0, "idle": 0.0, "table": 0.0}


def asked(*texts: list[str], scores: dict[str, float]) -> Asked:
    """Texts that a table of words decides by votes, in turn for class 1 and for class 0."""
    left = [list(text) for text in texts]
    corpus = corpus_of(lambda rng, _: Text(left.pop(0), 0), {"test": len(texts)}, 0, words=SAID)
    said = {word: [0.0, value] for word, value in SAID.items()}
    return Asked(weighing(corpus, scores, said), corpus.splits["test"])


def mass(found: Asked, turns: int = 3) -> list[float]:
    pairs = [
        [Pair(row, other, 0.0, True) for other in some]
        for row, some in enumerate(contexts(found.texts, 0, turns))
    ]
    return needed_mass(found, pairs, 0)[0].round(3).tolist()


def test_a_single_shown_unit_is_needed() -> None:
    found = asked(["table", "good"], ["table", "bad"], scores={"good": 5.0, "bad": 5.0})
    weight = np.exp(5) / (1 + np.exp(5))
    assert mass(found) == pytest.approx([weight, weight], abs=1e-3)


def test_all_of_three_that_say_the_same_are_needed() -> None:
    found = asked(["good", "great", "good"], ["bad", "awful", "bad"], scores={})
    assert min(mass(found)) >= 2 / 3 - 1e-3


def test_an_idle_unit_is_not_needed_whatever_it_weighs() -> None:
    scores = {"idle": 0.4}
    found = asked(["idle", "good"], ["idle", "bad"], scores=scores)
    weight = 1 / (1 + np.exp(0.4))
    assert mass(found) == pytest.approx([weight, weight], abs=1e-3)


def test_of_many_units_the_mass_is_estimated() -> None:
    votes = ["good"] * 6 + ["table"] * 6
    against = ["bad"] * 6 + ["table"] * 6
    found = asked(*[votes, against] * 10, scores={})
    estimated = mass(found, 1)
    assert np.mean(estimated) == pytest.approx(0.5, abs=0.15)
    assert min(estimated) >= 0
