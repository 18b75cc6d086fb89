import numpy as np
import pytest
from sklearn.metrics import accuracy_score, f1_score

from heedful.statistics import (
    classification_scores,
    proportion,
    resampling_weights,
    score_differences,
    score_estimates,
)

RNG = np.random.default_rng(0)
GOLD = RNG.integers(0, 3, 80)
PREDICTED = np.where(RNG.random((5, 80)) < 0.6, GOLD, RNG.integers(0, 4, (5, 80)))
NAMES = [f"d{i}" for i in range(80)]


def test_scores_equal_sklearn_for_every_draw_and_weighting():
    weights = resampling_weights(NAMES, replicates=4)
    # Class 4 is neither present nor predicted: undefined, as sklearn with zero_division=nan.
    scores = classification_scores(PREDICTED, GOLD, 5, weights)
    for replicate, w in enumerate(weights):
        for draw, predicted in enumerate(PREDICTED):
            options = {"labels": range(5), "sample_weight": w, "zero_division": np.nan}
            f1 = f1_score(GOLD, predicted, average=None, **options)
            macro = f1_score(GOLD, predicted, average="macro", **options)
            accuracy = accuracy_score(GOLD, predicted, sample_weight=w)
            np.testing.assert_allclose(scores.f1[replicate, draw], f1)
            assert scores.macro_f1[replicate, draw] == pytest.approx(macro)
            assert scores.accuracy[replicate, draw] == pytest.approx(accuracy)


def test_unknown_labels_do_not_count():
    gold = GOLD.copy()
    gold[:30] = -1
    whole = classification_scores(PREDICTED, gold, 4)
    known = classification_scores(PREDICTED[:, 30:], gold[30:], 4)
    np.testing.assert_allclose(whole.accuracy, known.accuracy)
    np.testing.assert_allclose(whole.f1, known.f1)
    assert score_estimates(PREDICTED, gold, "abcd", NAMES)["accuracy"].undefined == 30
    assert np.isnan(classification_scores(PREDICTED, np.full(80, -1), 4).accuracy).all()


def test_estimates_average_over_draws_and_enclose_their_value():
    found = score_estimates(PREDICTED, GOLD, "abcd", NAMES, replicates=300)
    scores = classification_scores(PREDICTED, GOLD, 4)
    assert list(found) == ["accuracy", "macro_f1", "f1:a", "f1:b", "f1:c", "f1:d"]
    assert found["accuracy"].value == pytest.approx(scores.accuracy.mean())
    assert found["macro_f1"].value == pytest.approx(scores.macro_f1.mean())
    assert found["f1:b"].value == pytest.approx(scores.f1[0, :, 1].mean())
    for name in ("accuracy", "macro_f1", "f1:a", "f1:b", "f1:c"):
        assert found[name].low < found[name].value < found[name].high
        assert found[name].method == "bca"
    single = score_estimates(PREDICTED[:1], GOLD, "abcd", NAMES, replicates=50)
    assert single["accuracy"] == proportion(int((PREDICTED[0] == GOLD).sum()), 80)


def test_a_class_that_is_not_there_has_no_f1_and_does_not_lower_the_mean():
    gold = np.array([0, 0, 1, 1, 1, 0] * 10)
    predicted = np.array([[0, 1, 1, 1, 0, 0] * 10])
    names = NAMES[:60]
    found = score_estimates(predicted, gold, "abz", names, replicates=200)
    present = f1_score(gold, predicted[0], average="macro", labels=[0, 1])
    assert found["macro_f1"].value == pytest.approx(present)
    absent = found["f1:z"]
    assert np.isnan([absent.value, absent.low, absent.high]).all()
    assert (absent.n, absent.undefined) == (0, 60)
    # Predicted once is defined: no hit among one guess.
    predicted[0, 0] = 2
    assert score_estimates(predicted, gold, "abz", names, replicates=50)["f1:z"].value == 0
    assert score_differences(predicted, predicted, gold, "abz", names)["f1:z"].value == 0
    none = classification_scores(predicted, np.full(60, -1), 3)
    assert np.isnan(none.f1).all()
    assert np.isnan(none.macro_f1).all()


@pytest.mark.slow
def test_intervals_of_macro_f1_cover_the_truth():
    rng = np.random.default_rng(5)

    def sample(n):
        gold = (rng.random(n) < 0.3).astype(np.int64)
        return np.where(rng.random(n) < 0.8, gold, 1 - gold)[None], gold

    truth = classification_scores(*sample(2_000_000), 2).macro_f1[0, 0]
    names, hits = [f"d{i}" for i in range(150)], 0
    for _ in range(200):
        found = score_estimates(*sample(150), "ab", names, replicates=500)["macro_f1"]
        hits += found.low <= truth <= found.high
    assert 0.91 <= hits / 200 <= 0.985


def test_differences_of_a_model_with_itself_are_exactly_zero():
    for found in score_differences(PREDICTED, PREDICTED, GOLD, "abcd", NAMES).values():
        assert (found.value, found.low, found.high) == (0.0, 0.0, 0.0)
    better = np.where(RNG.random((1, 80)) < 0.5, GOLD, PREDICTED[:1])
    found = score_differences(better, PREDICTED, GOLD, "abcd", NAMES)
    ours, theirs = (score_estimates(p, GOLD, "abcd", NAMES) for p in (better, PREDICTED))
    for name in found:
        assert found[name].value == pytest.approx(ours[name].value - theirs[name].value)


def test_no_instances_give_nan():
    none = score_estimates(np.zeros((2, 0), int), np.zeros(0, int), "ab", [])
    assert all(np.isnan(e.value) and e.n == 0 for e in none.values())
