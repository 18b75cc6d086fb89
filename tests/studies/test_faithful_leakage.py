"""Leakage by distance, and the bias fitted again."""

import numpy as np
import pytest
from scipy.optimize import minimize_scalar

from heedful.models import read
from heedful.models.verbs import alone
from heedful.studies.faithful import leakage
from tests.tiny import batch_of, classifier, padded


def test_bins_of_distance_cover_every_distance_once() -> None:
    assert leakage.distance_names() == ["0", "1", "2", "3-4", "5-8", "9-16", "17+"]


def test_units_are_counted_by_their_distance_to_the_top_one() -> None:
    model, batch = classifier("bilstm+additive", classes=2), batch_of(((7,), (3,)))
    reading = read(model, batch)
    rows = leakage.rows(model, reading, {}, 0)
    said = alone(model, reading).argmax(-1)
    for row, length in enumerate((7, 3)):
        top = int(reading.attention[row].argmax())
        expected = np.zeros((2, len(leakage.DISTANCES)), dtype=int)
        for unit in range(length):
            away = abs(unit - top)
            place = max(i for i, start in enumerate(leakage.DISTANCES) if start <= away)
            expected[0, place] += int(said[row, unit] == reading.decision[row])
            expected[1, place] += 1
        assert list(rows["alike"][row]) == expected[0].tolist()
        assert list(rows["there"][row]) == expected[1].tolist()
    assert rows["undecided"].between(0, 1).all()


def test_padding_does_not_change_leakage() -> None:
    model, batch = classifier("bilstm+additive", classes=2), batch_of()
    plain = leakage.rows(model, read(model, batch), {}, 0)
    wide = leakage.rows(model, read(model, padded(batch, 6)), {}, 0)
    for name in ("alike", "there"):
        assert [list(x) for x in plain[name]] == [list(x) for x in wide[name]]
    assert plain["undecided"].tolist() == wide["undecided"].tolist()


def test_the_refitted_bias_is_the_best_shift() -> None:
    rng = np.random.default_rng(0)
    margins, labels = rng.normal(1.5, 2, 200), rng.integers(0, 2, 200)

    def loss(shift: float) -> float:
        signs = np.where(labels == 1, 1, -1)
        return float(np.logaddexp(0, -signs * (margins + shift)).mean())

    best = minimize_scalar(loss, bounds=(-20, 20), method="bounded", options={"xatol": 1e-10}).x
    assert leakage.refitted_bias(margins, labels) == pytest.approx(best, abs=1e-5)


def test_a_shift_undone_by_the_bias_is_found() -> None:
    rng = np.random.default_rng(1)
    logits = rng.normal(0, 2, 4_000)
    labels = (rng.random(4_000) < 1 / (1 + np.exp(-logits))).astype(int)
    assert leakage.refitted_bias(logits + 3, labels) == pytest.approx(-3, abs=0.15)


def test_one_class_alone_leaves_the_bias_finite() -> None:
    found = leakage.refitted_bias(np.zeros(10), np.ones(10, dtype=int))
    assert np.isfinite(found)
    assert found > 0
