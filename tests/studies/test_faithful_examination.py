"""Everything about one model from one reading.

See docs/studies/faithful.md, "Words alone", "Identities".
"""

import numpy as np
import pandas as pd
import pytest
import torch
from scipy.optimize import minimize_scalar

from heedful.audits import examination as examining
from heedful.audits.exact_adversary import TOLERANCE, farthest
from heedful.audits.examination import Portion
from heedful.audits.searched_adversary import search
from heedful.corpora import EncodedCorpus, encode, planted
from heedful.models import AttentionClassifier, build, parse, read
from heedful.models.edits import Permute, uniform
from heedful.models.verbs import alone, decide
from heedful.studies.faithful import examination
from heedful.studies.faithful.examination import Measuring, measure, number
from heedful.training import TrainConfig, evaluate, fit
from tests.tiny import batch_of, classifier, padded


@pytest.fixture(scope="module")
def corpus() -> EncodedCorpus:
    return encode(planted(2, "short", 3, {"train": 120, "dev": 40, "test": 50}))


@pytest.fixture(scope="module")
def model(corpus: EncodedCorpus) -> AttentionClassifier:
    recipe = parse("bilstm+additive", embedding_dim=12, width=12, one_logit=True, marks=True)
    found = build(recipe.model, corpus.vocabulary, corpus.classes)
    fit(found, corpus, TrainConfig(epochs=3, learning_rate=1e-2, batch_size=16))
    return found


@pytest.fixture(scope="module")
def tables(corpus: EncodedCorpus, model: AttentionClassifier):
    asked = Measuring(draws=20, erasure=True, types=20, pairs=500, sentences=5)
    return measure(model, corpus, asked, seed=1)


def test_scores_are_those_of_the_evaluation(corpus, model, tables) -> None:
    found = evaluate(model, corpus.splits["test"])
    assert number(tables, "test trained accuracy") == pytest.approx(found.accuracy)
    assert number(tables, "test trained f1") == pytest.approx(found.f1[1])
    assert number(tables, "test trained f1 of class 0") == pytest.approx(found.f1[0])


def test_no_edit_changes_more_decisions_than_some_attention_can(tables) -> None:
    rows = tables["instances"]
    assert (rows["uniform_changes"] <= rows["flippable"]).all()
    assert ((rows["permuted_changes"] > 0) <= rows["flippable"]).all()


def test_one_row_per_document_with_all_that_claims_need(corpus, tables) -> None:
    rows = tables["instances"]
    assert rows["instance"].is_unique
    assert len(rows) == 50
    for name in ("confidence", "near", "undecided", "entropy", "exact_jsd", "flip_attention",
                 "flip_random", "auprc_attention", "f1_random"):  # fmt: skip
        assert rows[name].notna().all(), name
    assert set(tables) == {"numbers", "instances", "distance", "information", "sentences"}
    assert int(tables["distance"]["units"].sum()) == int(rows["units"].sum())
    assert set(tables["information"]["sample"]) == {"MF", "RS"}


def test_confidence_is_of_right_decisions_only(tables) -> None:
    rows = tables["instances"]
    right = rows[rows["label"] == rows["decision"]]
    assert number(tables, "confidence") == pytest.approx(right["confidence"].mean(), abs=1e-6)


def test_single_words_weighed_by_attention_give_the_sentence(tables) -> None:
    rows = tables["sentences"]
    assert rows["instance"].nunique() == 5
    for _, words in rows.groupby("instance"):
        p = words["probability"].to_numpy(float)
        logit = (words["attention"].to_numpy(float) * np.log(p / (1 - p))).sum()
        assert 1 / (1 + np.exp(-logit)) == pytest.approx(words["sentence"].iloc[0], abs=1e-4)


def test_unknown_numbers_are_named(tables) -> None:
    with pytest.raises(KeyError, match="test trained f1"):
        number(tables, "nothing")


def test_the_test_set_is_encoded_once(corpus, model, monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[str] = []
    once = examining.read

    def counted(model, batch):
        seen.extend(batch.names)
        return once(model, batch)

    monkeypatch.setattr(examining, "read", counted)
    measure(model, corpus, Measuring(draws=5), seed=0)
    expected = [*corpus.splits["dev"].names, *corpus.splits["test"].names]
    assert sorted(seen) == sorted(expected)


@pytest.mark.slow
def test_how_many_documents_are_read_at_once_changes_no_number(
    corpus, model, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked, found = Measuring(draws=5, erasure=True), []
    for size in ((1_024, 2**18), (7, 60)):
        monkeypatch.setitem(examination.READ, "cpu", Portion(*size))
        found.append(measure(model, corpus, asked, seed=0))
    for name, table in found[0].items():
        pd.testing.assert_frame_equal(table, found[1][name], rtol=1e-5, atol=1e-6)


def test_the_mean_logit_over_all_permutations_is_that_of_uniform_attention() -> None:
    model, batch = classifier("bilstm+additive", classes=2), batch_of(((4,),))
    reading = read(model, batch)
    orders = torch.cartesian_prod(*[torch.arange(4)] * 4)
    orders = orders[[len(set(row)) == 4 for row in orders.tolist()]]
    logits = decide(model, reading, Permute(orders[None]))[0]
    flat = decide(model, reading, uniform(reading))[0, 0]
    said = alone(model, reading)[0]
    torch.testing.assert_close(logits.mean(0), flat)
    torch.testing.assert_close(flat, said.mean(0))
    uneven = (reading.attention[0] - 0.25).square().sum()
    expected = uneven * (said - said.mean(0)).square().sum(0) / 3
    torch.testing.assert_close(logits.var(0, correction=0), expected)


def test_the_exact_adversary_is_never_less_adversarial_than_the_search() -> None:
    generator = torch.Generator().manual_seed(0)
    documents, units = 96, 20
    lengths = torch.randint(6, units + 1, (documents, 1), generator=generator)
    mask = torch.arange(units) < lengths
    scores = 2 * torch.randn(documents, units, generator=generator, dtype=torch.float64)
    attention = scores.masked_fill(~mask, -torch.inf).softmax(-1)
    logit = 2 * torch.randn(documents, units, generator=generator, dtype=torch.float64)
    said = torch.stack([torch.zeros_like(logit), logit], -1).masked_fill(~mask[..., None], 0)
    searched = search(attention, said, mask, torch.arange(documents))
    # At the bound max(ε, the TVD that the search reached), document by document.
    bounds = searched.tvd.nan_to_num(0).clamp_min(TOLERANCE)
    for row in range(documents):
        if searched.jsd[row].isnan():
            continue
        one = slice(row, row + 1)
        exact = farthest(attention[one], said[one], mask[one], float(bounds[row]) + 1e-12)
        assert float(exact.jsd) >= float(searched.jsd[row]) - 1e-9


def test_a_documents_only_unit_does_not_count_as_deciding_alike() -> None:
    model = classifier("bilstm+additive", classes=2)
    reading = read(model, batch_of(((1,), (4,), (1,), (6,))))
    asked = examination.audits_of(Measuring(draws=4, is_exact=False))
    rows = {name: ask(model, reading, {}, 0) for name, ask in asked.items()}
    found = examination._single(rows)
    longer = rows["confidence"][rows["confidence"]["units"] > 1]
    assert len(longer) == 2
    assert found["agreeing"] == pytest.approx(longer["agreeing"].mean())
    assert found["near"] == pytest.approx(longer["near"].mean())
    instances = examination._instances(rows)
    assert instances["near"].isna().tolist() == [True, False, True, False]
    assert instances["confidence"].notna().all()


def test_bins_of_distance_cover_every_distance_once() -> None:
    assert examination.distance_names() == ["0", "1", "2", "3-4", "5-8", "9-16", "17+"]


def test_units_are_counted_by_their_distance_to_the_top_one() -> None:
    model, batch = classifier("bilstm+additive", classes=2), batch_of(((7,), (3,)))
    reading = read(model, batch)
    rows = examination.leakage_rows(model, reading, {}, 0)
    said = alone(model, reading).argmax(-1)
    for row, length in enumerate((7, 3)):
        top = int(reading.attention[row].argmax())
        expected = np.zeros((2, len(examination.DISTANCES)), dtype=int)
        for unit in range(length):
            away = abs(unit - top)
            place = max(i for i, start in enumerate(examination.DISTANCES) if start <= away)
            expected[0, place] += int(said[row, unit] == reading.decision[row])
            expected[1, place] += 1
        assert list(rows["alike"][row]) == expected[0].tolist()
        assert list(rows["there"][row]) == expected[1].tolist()
    assert rows["undecided"].between(0, 1).all()


def test_padding_does_not_change_leakage() -> None:
    model, batch = classifier("bilstm+additive", classes=2), batch_of()
    plain = examination.leakage_rows(model, read(model, batch), {}, 0)
    wide = examination.leakage_rows(model, read(model, padded(batch, 6)), {}, 0)
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
    assert examination.refitted_bias(margins, labels) == pytest.approx(best, abs=1e-5)


def test_a_shift_undone_by_the_bias_is_found() -> None:
    rng = np.random.default_rng(1)
    logits = rng.normal(0, 2, 4_000)
    labels = (rng.random(4_000) < 1 / (1 + np.exp(-logits))).astype(int)
    assert examination.refitted_bias(logits + 3, labels) == pytest.approx(-3, abs=0.15)


def test_one_class_alone_leaves_the_bias_finite() -> None:
    found = examination.refitted_bias(np.zeros(10), np.ones(10, dtype=int))
    assert np.isfinite(found)
    assert found > 0
