"""Words put into other texts: against readings by hand, in any batches; shares by hand."""

import math

import numpy as np
import pandas as pd
import pytest
import torch

from heedful.audits import exchange, single_heads
from heedful.audits.asking import Asked
from heedful.audits.examination import Portion
from heedful.audits.exchange import GOES, MATTER, PASSES, SHARE, outcomes, share_of_texts
from heedful.audits.exchanges import rows
from heedful.audits.hybrids import contexts, mixed
from heedful.audits.verdict import Verdict, judge
from heedful.calibration.mechanisms import MECHANISMS
from heedful.corpora.batches import collate
from heedful.models.edits import erase
from heedful.models.verbs import decide, read


def table(**columns: list[float]) -> pd.DataFrame:
    n = len(next(iter(columns.values())))
    whole = {"comes": [1.0] * n, "mattering": [1.0] * n, "around": [0.0] * n, "is_few": [True] * n}
    return pd.DataFrame(whole | columns)


def test_shares_worked_out_by_hand() -> None:
    assert share_of_texts(table(comes=[1, 1, 0, 0])).value == 0.5
    assert share_of_texts(table(comes=[1, 5 / 6, 4 / 6, 0])).value == 0.5
    # All three must hold in the same text: no product of shares.
    apart = table(comes=[1] * 4, mattering=[1, 1, 0, 0], around=[1, 1, 0, 0])
    assert share_of_texts(apart).value == 0
    assert share_of_texts(apart.assign(around=[0, 0, 1, 1])).value == 0.5
    # Of many shown words only some are drawn: such texts are judged by their mean.
    drawn = table(mattering=[0.8, 0.8, 0.4, 0.4], is_few=[False] * 4)
    assert share_of_texts(drawn).value == 1
    assert share_of_texts(drawn.assign(is_few=True)).value == 0.5
    assert outcomes(table(around=[math.nan])).passes.tolist() == [False]


@pytest.mark.parametrize(
    ("name", "holds"),
    [
        ("honest word, silent context", (1, 1, 1)),
        ("decoy with 0.60 of the mass", (1, 0, 1)),
        ("decoy with 0.90 of the mass", (0, math.nan, math.nan)),
        ("honest evidence 3 times", (1, 1, 1)),
        ("even attention, one word decides", (1, 0, 1)),
        ("texts of one word", (1, 1, 1)),
        ("texts of one word, decided beside attention", (1, 1, 0)),
        ("one class throughout, by a word in every text", (1, 1, 1)),
        ("one class throughout, with a word in every text", (0, math.nan, math.nan)),
        ("two shouts cancel, the whisper is unseen", (0, math.nan, math.nan)),
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


def test_a_rare_class_weighs_as_many_texts_as_it_has() -> None:
    for name, share in (("right for the common one", 0.9), ("right for the rare ones", 0.1)):
        built = MECHANISMS[f"three classes at 90 to 7 to 3, {name}"].build(0, 100)
        found = share_of_texts(rows(built.model, built.corpus.splits["test"]))
        assert found.value == pytest.approx(share, abs=0.02)


def test_hybrids_are_read_as_the_same_texts_by_themselves() -> None:
    built = MECHANISMS["three of five vote"].build(0, 12)
    documents = built.corpus.splits["test"]
    asked = Asked(built.model, documents, at_once=Portion(5, None))
    chosen = [(row, some[0]) for row, some in enumerate(contexts(asked.texts, 0, 1))]
    texts = asked.texts
    hybrids = [mixed(texts[b], texts[t], texts[t].seen, texts[b].only([])) for t, b in chosen]
    said = asked(hybrids, [t for t, _ in chosen], forbidding=True)
    for hybrid, logits, blocked, weights in zip(hybrids, *said, strict=True):
        batch = collate(documents, [0])
        ids = torch.from_numpy(np.concatenate(hybrid.units))[None].long()
        mask = torch.ones_like(ids, dtype=torch.bool)
        alone = type(batch)(ids, mask, batch.labels, torch.zeros_like(ids), ("hybrid",))
        reading = read(built.model, alone)
        gone = erase(torch.tensor(hybrid.is_new)[None, None])
        assert logits == pytest.approx(reading.logits[0].numpy(), abs=1e-9)
        assert blocked == pytest.approx(decide(built.model, reading, gone)[0, 0].numpy(), abs=1e-9)
        assert weights == pytest.approx(reading.attention[0].numpy(), abs=1e-9)
    lengths = np.array([text.length for text in texts])
    rests = [sum(len(u) for u, s in zip(t.units, t.seen, strict=True) if not s) for t in texts]
    assert asked.tokens == pytest.approx(lengths + rests + [len(h.units) for h in hybrids])


@pytest.mark.slow
def test_batches_change_nothing() -> None:
    built = MECHANISMS["two heads, one on a decoy"].build(0, 30)
    documents = built.corpus.splits["test"]
    first, second = (rows(built.model, documents, at_once=Portion(n, None)) for n in (4, 30))
    for column in ("comes", "mattering", "around", "passes"):
        assert np.allclose(first[column], second[column], atol=1e-5, equal_nan=True)
    assert (first["contexts"] == second["contexts"]).all()


def judged(name: str, **changes: object) -> Verdict:
    built = MECHANISMS[name].build(0, 100)
    found = rows(built.model, built.corpus.splits["test"]).assign(**changes)
    return judge({"exchange": exchange.summarise(found)}, 100)


def test_texts_that_are_all_decided_alike_are_put_into_each_other() -> None:
    verdict = judged("always the same class")
    assert verdict.word == "no"
    assert "All texts were decided as class" in verdict.sentence


@pytest.mark.slow
def test_a_model_at_chance_is_judged_and_said_to_be_at_chance() -> None:
    verdict = judged("honest at chance")
    assert verdict.word == "yes"
    assert "where always saying class" in verdict.sentence
    assert "where always saying" not in judged("honest verdict among voices").sentence


def test_texts_without_labels_are_judged_and_it_is_said() -> None:
    verdict = judged("honest verdict among voices", label="")
    assert verdict.word == "yes"
    assert "These texts have no labels" in verdict.sentence


def test_nothing_is_said_of_no_texts() -> None:
    found = exchange.summarise(pd.DataFrame({"instance": []}))
    assert found.measures == ()


@pytest.mark.slow
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


@pytest.mark.parametrize(
    ("comes", "who"),
    [
        ([[1, 0], [0, 0], [0, 0]], "Of 3 heads, head 0 does best"),
        ([[1, 0], [0, 0], [0, 1]], "Of 3 heads, head 0, head 2 do best"),
        ([[0, 0], [0, 0], [0, 0]], "All 3 heads do alike"),
        ([[1, 0]], "Of 1 heads, head 0 does best"),
    ],
)
def test_no_head_is_called_best_that_others_equal(comes: list[list[float]], who: str) -> None:
    names = [f"text {number}" for number in range(2)]
    every = [table(comes=one).assign(instance=names, head=n) for n, one in enumerate(comes)]
    answer = single_heads.summarise(pd.concat(every)).answer
    assert answer.startswith(f"{who}: all three tests hold in ")
    assert answer.endswith(" of 2 texts.")


@pytest.mark.slow
def test_the_one_head_that_may_be_shown_is_found() -> None:
    built = MECHANISMS["four heads, three on a decoy"].build(0, 40)
    found = single_heads.summarise(single_heads.rows(built.model, built.corpus.splits["test"]))
    shares = {one.method: one.estimate.value for one in found.measures}
    assert sorted(round(share) for share in shares.values()) == [0, 0, 0, 1]
    assert max(shares, key=lambda head: shares[head]) in found.answer
