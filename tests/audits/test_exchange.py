"""Exchanged words: against readings by hand, in any batches; shares worked out by hand."""

import math

import numpy as np
import pytest
import torch

from heedful.audits import exchange, single_heads
from heedful.audits.examination import Portion
from heedful.audits.exchange import GOES, MATTER, PASSES, SHARE, Outcomes, shares
from heedful.audits.exchanges import _Asked, _Pairs, rows, texts_of
from heedful.audits.hybrids import partners
from heedful.calibration.mechanisms import MECHANISMS
from heedful.corpora.batches import collate
from heedful.models.edits import erase
from heedful.models.verbs import decide, read


def outcomes(stays: list[float], again: list[float], **more: list[float]) -> Outcomes:
    n = len(stays)
    first, second = np.array(stays), np.array(again)
    return Outcomes(
        first >= 0.75,
        (first + second) / 2,
        2 * (np.abs(first - second) - 0.5).clip(0),
        np.array(more.get("few", [True] * n), dtype=bool),
        np.array(more.get("mattering", [1.0] * n)),
        np.array(more.get("passing", [True] * n), dtype=bool),
    )


def all_three(found: Outcomes) -> float:
    return float(shares(found, np.ones((1, len(found.kept))))[0, 0])


def test_shares_worked_out_by_hand() -> None:
    assert all_three(outcomes([1, 1, 1, 1], [1, 1, 1, 1])) == 1
    assert all_three(outcomes([0, 0, 0, 0], [0, 0, 0, 0])) == 0
    assert all_three(outcomes([1, 1, 0, 0], [1, 1, 0, 0])) == 0.5
    # Once with and once against the shown words is luck, and is taken off.
    assert all_three(outcomes([1, 1, 0, 0], [1, 0, 1, 0])) == 0
    # A tie is half, and no luck.
    assert all_three(outcomes([1, 0.5], [1, 0.5])) == 0.75
    half = outcomes([1, 1, 1, 1], [1, 1, 1, 1], mattering=[0.6, 0.6, 0.4, 0.4])
    assert all_three(half) == 0.5
    # Of many shown words only some are drawn: such texts are judged by their mean.
    drawn = outcomes([1] * 4, [1] * 4, mattering=[0.8, 0.8, 0.4, 0.4], few=[False] * 4)
    assert all_three(drawn) == 1
    around = outcomes([1] * 4, [1] * 4, passing=[True, False, False, False])
    assert all_three(around) == 0.25


@pytest.mark.parametrize(
    ("name", "holds"),
    [
        ("honest word, silent context", (1, 1, 1)),
        ("decoy with 0.60 of the mass", (1, 0, 1)),
        ("decoy with 0.90 of the mass", (0, math.nan, 1)),
        ("honest evidence 3 times", (1, 1, 1)),
        ("even attention, one word decides", (1, 0, 1)),
    ],
)
def test_each_test_sees_what_it_is_for(name: str, holds: tuple[float, float, float]) -> None:
    built = MECHANISMS[name].build(0, 60)
    found = exchange.summarise(rows(built.model, built.corpus.splits["test"]))
    for measure, expected in zip((GOES, MATTER, PASSES), holds, strict=True):
        estimate = found.get(measure)
        assert estimate is not None
        assert estimate.value == pytest.approx(expected, abs=0.02, nan_ok=True)
    whole = found.get(SHARE)
    assert whole is not None
    assert 0 <= whole.low <= whole.value <= whole.high <= 1
    assert whole.value == pytest.approx(float(holds == (1, 1, 1)), abs=0.02)


def test_odds_of_hybrids_are_those_of_the_same_texts_read_by_themselves() -> None:
    built = MECHANISMS["three of five vote"].build(0, 12)
    documents = built.corpus.splits["test"]
    texts = texts_of(built.model, documents)
    chosen = [(one, texts[p]) for one, p in zip(texts, partners(texts, 0), strict=True)]
    pairs = _Pairs(built.model, chosen, documents.unknown, "cpu", Portion(5, None))
    hybrids = [pairs.exchanged(row, x.seen, y.seen) for row, (x, y) in enumerate(chosen)]
    said = pairs.ask([_Asked(row, one, one.is_new) for row, one in enumerate(hybrids)])
    for (text, other), hybrid, found in zip(chosen, hybrids, said, strict=True):
        batch = collate(documents, [0])
        ids = torch.from_numpy(np.concatenate(hybrid.units))[None].long()
        mask = torch.ones_like(ids, dtype=torch.bool)
        alone = type(batch)(ids, mask, batch.labels, torch.zeros_like(ids), ("hybrid",))
        reading = read(built.model, alone)
        blocked = decide(built.model, reading, erase(torch.from_numpy(hybrid.is_new)[None]))[0, 0]
        for logits, odds in ((reading.logits[0], found.odds), (blocked, found.blocked[0])):
            expected = logits[other.decision] - logits[text.decision]
            assert odds == pytest.approx(float(expected), abs=1e-9)


def test_batches_change_nothing() -> None:
    built = MECHANISMS["two heads, one on a decoy"].build(0, 30)
    documents = built.corpus.splits["test"]
    first, second = (rows(built.model, documents, at_once=Portion(n, None)) for n in (4, 30))
    for column in ("goes", "stays", "mattering", "around", "passes"):
        assert np.allclose(first[column], second[column], atol=1e-5, equal_nan=True)
    assert (first["partner"] == second["partner"]).all()


def test_texts_that_are_all_decided_alike_have_no_partner() -> None:
    built = MECHANISMS["always the same class"].build(0, 20)
    table = rows(built.model, built.corpus.splits["test"])
    assert not len(table)
    found = exchange.summarise(table)
    assert found.measures == ()
    assert "decided alike" in found.answer


def test_texts_that_can_be_told_apart_are_named() -> None:
    built = MECHANISMS["one class hidden, the other seen"].build(0, 200)
    found = exchange.summarise(rows(built.model, built.corpus.splits["test"]))
    group = found.drawn["group"]
    assert group["inside"]["low"] > 0.7
    assert group["outside"]["high"] < 0.3
    assert group["sentence"].startswith("It holds in ")
    even = MECHANISMS["honest word, silent context"].build(0, 100)
    same = exchange.summarise(rows(even.model, even.corpus.splits["test"]))
    assert same.drawn["group"] is None


def test_the_one_head_that_may_be_shown_is_found() -> None:
    built = MECHANISMS["four heads, three on a decoy"].build(0, 40)
    found = single_heads.summarise(single_heads.rows(built.model, built.corpus.splits["test"]))
    shares = {one.method: one.estimate.value for one in found.measures}
    assert sorted(round(share) for share in shares.values()) == [0, 0, 0, 1]
    assert max(shares, key=lambda head: shares[head]) in found.answer
