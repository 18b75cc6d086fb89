"""Attention of heads on words of a kind, beside chance in the same texts."""

import numpy as np
import pandas as pd
import pytest

from heedful.audits.head_shares import (
    above_chance,
    chance,
    lead,
    masses,
    published_chance,
    relabelled_leads,
    shares,
    tags,
)


def made(texts: int = 60, heads: int = 4, favourite: int | None = None) -> pd.DataFrame:
    """Texts of 5 to 9 tokens; every head's attention sums to one; one head may love one word."""
    rng = np.random.default_rng(7)
    parts = []
    for number in range(texts):
        n = int(rng.integers(5, 10))
        held = rng.dirichlet(np.ones(n), heads)
        labels = rng.choice([0, 1, 2, 3, 4], n, p=[0.1, 0.1, 0.6, 0.1, 0.1])
        if favourite is not None and (labels == 4).any():
            held[favourite] = np.eye(n)[int(np.argmax(labels == 4))]
        part = pd.DataFrame(held.T, columns=[f"head_{h}" for h in range(heads)])
        part["instance"], part["label_of_word"], part["length"] = f"t{number}", labels, n
        part["word"] = [f"w{label}" for label in labels]
        parts.append(part)
    return pd.concat(parts, ignore_index=True)


def test_shares_are_the_quotient_of_sums_of_equation_14() -> None:
    tokens = made()
    table = masses(tokens, tags(tokens))
    is_tagged = tokens["label_of_word"] == 4
    has_one = is_tagged.groupby(tokens["instance"]).transform("any")
    for head in range(4):
        held = tokens[f"head_{head}"]
        expected = held[is_tagged].sum() / held[has_one].sum()
        assert np.nanmean(shares(table, "v.pos")[:, head]) == pytest.approx(expected, rel=1e-12)


def test_chance_is_what_even_attention_gets_in_the_same_texts() -> None:
    tokens = made()
    for head in range(4):
        tokens[f"head_{head}"] = 1 / tokens["length"]
    table = masses(tokens, tags(tokens))
    for kind in ("both", "v.pos", "v.neg"):
        np.testing.assert_allclose(shares(table, kind)[:, 0], chance(table, kind))
        for one in above_chance(table, kind):
            assert one.value == pytest.approx(0, abs=1e-15)
            assert np.nanmax(np.abs(one.drawn)) < 1e-12


def test_the_published_chance_is_over_other_texts_and_swapped() -> None:
    table = pd.DataFrame(
        {"instance": ["a", "b", "c"], "length": [10, 10, 10], "v.pos": [2, 0, 0],
         "v.neg": [0, 1, 0], "v.pos 0": [0.3, 0, 0], "v.neg 0": [0, 0.4, 0]}
    )  # fmt: skip
    assert np.nanmean(chance(table, "v.pos")) == pytest.approx(0.2)
    assert np.nanmean(chance(table, "v.neg")) == pytest.approx(0.1)
    assert np.nanmean(published_chance(table, "v.pos")) == pytest.approx(0.05)
    assert np.nanmean(published_chance(table, "v.neg")) == pytest.approx(0.1)
    assert np.nanmean(published_chance(table, "both")) == pytest.approx(0.15)
    assert above_chance(table, "v.pos")[0].value == pytest.approx(0.1)
    assert above_chance(table, "v.pos", is_published=True)[0].value == pytest.approx(0.25)


def test_tags_come_from_labels_or_from_ratings() -> None:
    tokens = pd.DataFrame({"word": ["a", "b", "c", "d"], "label_of_word": [0, 4, 2, -1]})
    assert tags(tokens).tolist() == [-1, 1, 0, 0]
    ratings = pd.Series({"a": 6.5, "b": 3.5, "c": 3.4})
    assert tags(tokens, ratings).tolist() == [1, 0, -1, 0]


def test_a_head_that_loves_a_kind_leads_and_relabelling_takes_the_lead_away() -> None:
    equal, lover = made(), made(favourite=2)
    table = masses(lover, tags(lover))
    found, luck = lead(table, "v.pos"), relabelled_leads(table, "v.pos")
    means = np.nanmean(shares(table, "v.pos"), axis=0)
    assert found.value == pytest.approx(means[2] - np.delete(means, 2).mean())
    assert found.estimate().low > np.quantile(luck, 0.95)
    table = masses(equal, tags(equal))
    assert lead(table, "v.pos").value < np.quantile(relabelled_leads(table, "v.pos"), 0.999)


def test_relabelling_keeps_the_sum_over_heads() -> None:
    tokens = made(texts=20, heads=2)
    table = masses(tokens, tags(tokens))
    luck = relabelled_leads(table, "both", relabellings=50)
    held = shares(table, "both")
    apart = np.abs(held[:, 0] - held[:, 1])
    assert luck.max() <= np.nanmean(apart) + 1e-12  # all larger ones on one side
    assert luck.min() >= 0
