"""Token scores made comparable within texts, and averaged over words."""

from typing import get_args

import numpy as np
import pandas as pd
import pytest

from heedful.audits.word_means import Way, normalised, percentiles, word_means


def table() -> pd.DataFrame:
    return pd.DataFrame(
        {
            "instance": ["a", "a", "b", "c", "c", "c"],
            "word": ["good", "film", "good", "a", "good", "film"],
            "length": [2, 2, 1, 3, 3, 3],
            "lat": [6.0, 2.0, 8.0, 1.0, 5.0, 2.0],
        }
    )


def test_the_softmax_is_over_the_tokens_of_a_text() -> None:
    found = normalised(table(), "lat")
    assert found[0] == pytest.approx(1 / (1 + np.exp(-4)))
    assert found[2] == 1.0  # alone in its text, whatever it says
    np.testing.assert_allclose(np.bincount([0, 0, 1, 2, 2, 2], found), 1)


def test_all_mass_on_one_token_is_the_papers_bound() -> None:
    lat = np.zeros(23)
    lat[4] = 8.0
    tokens = pd.DataFrame({"instance": "x", "word": "w", "length": 23, "lat": lat})
    assert normalised(tokens, "lat")[4] == pytest.approx(np.exp(8) / (np.exp(8) + 22))
    even = tokens.assign(lat=8 / 23)
    np.testing.assert_allclose(normalised(even, "lat"), 1 / 23)


def test_even_importance_is_one_even_share_at_any_length() -> None:
    tokens = pd.DataFrame({"instance": list("aabbb"), "word": "w", "lat": 3.0})
    np.testing.assert_allclose(normalised(tokens, "lat", "ratio"), 1)
    np.testing.assert_allclose(normalised(tokens, "lat", "softmax ratio"), 1)
    np.testing.assert_allclose(normalised(tokens, "lat", "share"), [1 / 2] * 2 + [1 / 3] * 3)


def test_scaling_to_a_mass_makes_sums_comparable() -> None:
    tokens = table()
    tokens["pooling"] = tokens["lat"] / 8
    np.testing.assert_allclose(
        normalised(tokens, "pooling", mass=8.0), normalised(tokens, "lat"), rtol=1e-12
    )


@pytest.mark.parametrize("way", get_args(Way))
def test_the_order_of_tokens_does_not_matter_and_nothing_overflows(way: str) -> None:
    tokens = table()
    tokens["lat"] *= 400.0
    order = [5, 2, 0, 4, 1, 3]
    found = normalised(tokens, "lat", way)  # type: ignore[arg-type]
    assert np.isfinite(found).all()
    shuffled = normalised(tokens.iloc[order], "lat", way)  # type: ignore[arg-type]
    np.testing.assert_allclose(found[order], shuffled)


def test_a_text_without_importance_shares_evenly() -> None:
    tokens = pd.DataFrame({"instance": ["a", "a"], "word": "w", "lat": [0.0, 0.0]})
    assert normalised(tokens, "lat", "share").tolist() == [0.5, 0.5]


def test_word_means_are_those_of_a_groupby() -> None:
    tokens = table()
    scores = {"softmax": normalised(tokens, "lat")}
    found = word_means(tokens, scores)
    grouped = pd.Series(scores["softmax"]).groupby(tokens["word"])
    assert found["word"].tolist() == ["a", "film", "good"]
    assert found["count"].tolist() == [1, 2, 3]
    np.testing.assert_allclose(found["softmax"], grouped.mean())
    np.testing.assert_allclose(found["softmax sd"], grouped.std().fillna(0))
    np.testing.assert_allclose(found["inverse length"], [1 / 3, (1 / 2 + 1 / 3) / 2, 11 / 18])


def test_percentiles_have_a_mean_of_one_half_and_share_ties() -> None:
    found = percentiles(table(), "lat")
    np.testing.assert_allclose(found, [0.75, 0.25, 0.5, 1 / 6, 5 / 6, 0.5])
    tied = pd.DataFrame({"instance": "a", "lat": [1.0, 1.0, 0.0]})
    np.testing.assert_allclose(percentiles(tied, "lat"), [2 / 3, 2 / 3, 1 / 6])
