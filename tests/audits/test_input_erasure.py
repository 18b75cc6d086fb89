"""Words removed or replaced, and the model read again."""

from __future__ import annotations

from dataclasses import replace
from math import ceil
from types import SimpleNamespace

import numpy as np
import pytest
import torch
from torch import nn

from heedful.audits import input_erasure
from heedful.audits.input_erasure import top_tokens
from heedful.corpora.batches import Batch
from heedful.corpora.vocabulary import MASK, PAD, UNKNOWN
from heedful.importance import explain
from heedful.models import AttentionClassifier, ranked, read, rereading
from heedful.models.rereading import read_again
from tests.tiny import NonLinear, batch_of, chosen, classifier, padded

DOCUMENTS = ((3, 1), (2, 5, 4), (1,), (4, 16), (2,))
BATCH = batch_of(DOCUMENTS)
NAMES = ["random", "attention", "gradient", "leave-one-out"]
GOOD = 10


def one_word_matters() -> AttentionClassifier:
    """A model that says class 1 if and only if the word GOOD is there."""
    model = classifier("none+dot", 2, embedding_dim=2)
    with torch.no_grad():
        model.embedding.weight[:] = torch.tensor([0.0, 1.0])
        model.embedding.weight[GOOD] = torch.tensor([1.0, 0.0])
        model.embedding.weight[PAD] = 0
        model.level.attention.query.weight.copy_(torch.tensor([[12.0, 0.0]]))
        model.head.weight.copy_(torch.tensor([[0.0, 0.0], [6.0, -6.0]]))
        model.head.bias.zero_()
    return model


def with_good_at(places: list[int], length: int) -> Batch:
    batch = batch_of(((length,),) * len(places))
    ids = torch.full_like(batch.ids, GOOD + 1)
    ids[torch.arange(len(places)), torch.tensor(places)] = GOOD
    return replace(batch, ids=ids)


def said_by_hand(model: AttentionClassifier, words: list[int], sentence: list[int]) -> np.ndarray:
    """Probabilities of one text, given as its words alone."""
    batch = Batch(
        ids=torch.tensor([words]),
        mask=torch.ones(1, len(words), dtype=torch.bool),
        labels=torch.tensor([0]),
        sentence=torch.tensor([sentence]),
        names=("text",),
    )
    return read(model, batch).logits.softmax(-1)[0].numpy()


@pytest.mark.parametrize("mode", ["removed", "replaced"])
def test_deleting_the_one_word_that_matters_costs_everything(mode: str) -> None:
    model = one_word_matters()
    reading = read(model, with_good_at([3, 0, 19], 20))
    assert reading.decision.tolist() == [1, 1, 1]
    importance = {"attention": reading.attention, "worst": -reading.attention}
    rows = input_erasure.rows(model, reading, importance, 0, modes=[mode])
    attention = rows[rows["method"] == "attention"]
    assert attention["flip"].all()
    assert (attention["comprehensiveness"] > 0.98).all()
    assert (attention["sufficiency"].abs() < 0.01).all()
    worst = rows[rows["method"] == "worst"]
    assert not worst["flip"].any()
    assert (worst["comprehensiveness"].abs() < 0.01).all()
    assert (worst["sufficiency"] > 0.98).all()


def test_a_share_is_rounded_up_to_whole_tokens() -> None:
    model = classifier("none+dot")
    for length in (1, 2, 10, 20, 21, 40, 41, 60):
        reading = read(model, batch_of(((length,),)))
        top = top_tokens(reading, {"attention": reading.attention})
        expected = [ceil(length * percent / 100) for percent in (5, 10, 20, 50)]
        assert top[0, 0].sum(-1).tolist() == expected
        order = ranked(reading.attention, reading)[0]
        assert bool(top[0, 0, -1, order[: expected[-1]]].all())


def test_in_a_hierarchical_model_whole_sentences_go_until_the_share_is_reached() -> None:
    model = classifier("han:none+dot")
    reading = read(model, batch_of(((6, 1, 3),)))
    importance = {"second": torch.tensor([[0.0, 2.0, 1.0]]).double()}
    top = top_tokens(reading, importance, (0.05, 0.1, 0.2, 0.5))[0, 0]
    # Sentence 2 is a tenth of the text; a fifth needs sentence 3 as well, a half all three.
    assert top.sum(-1).tolist() == [1, 1, 4, 10]
    assert top[2].tolist() == [False] * 6 + [True] * 4


@pytest.mark.slow
@pytest.mark.parametrize("recipe", ["bilstm+additive", "conv+dot", "han:bigru+additive"])
def test_rows_equal_reading_each_edited_text_alone(recipe: str) -> None:
    model = classifier(recipe, 3)
    reading = read(model, BATCH)
    importance = explain(model, reading, NAMES)
    rows = input_erasure.rows(model, reading, importance, 0).set_index(
        ["instance", "method", "share", "mode"]
    )
    assert len(rows) == len(BATCH) * len(NAMES) * 4 * 2
    top = top_tokens(reading, importance)
    for document, name in enumerate(BATCH.names):
        length = int(BATCH.lengths[document])
        ids, sentence = (x[document, :length].tolist() for x in (BATCH.ids, BATCH.sentence))
        y = int(reading.decision[document])
        before = said_by_hand(model, ids, sentence)[y]
        for m, method in enumerate(NAMES):
            for s, share in enumerate(input_erasure.SHARES):
                is_top = top[document, m, s, :length].tolist()
                for mode in input_erasure.MODES:
                    without, only = (
                        said_by_hand(model, *edited(ids, sentence, is_top, gone, mode))
                        for gone in (True, False)
                    )
                    row = rows.loc[(name, method, share, mode)]
                    assert row["comprehensiveness"] == pytest.approx(before - without[y], abs=1e-10)
                    assert row["sufficiency"] == pytest.approx(before - only[y], abs=1e-10)
                    assert row["flip"] == (without.argmax() != y)
                    assert row["taken"] == sum(is_top)


def edited(
    ids: list[int], sentence: list[int], is_top: list[bool], gone: bool, mode: str
) -> tuple[list[int], list[int]]:
    """One text with its top tokens gone, or with nothing but them."""
    if mode == "replaced":
        return [UNKNOWN if t == gone else i for i, t in zip(ids, is_top, strict=True)], sentence
    kept = [(i, s) for i, s, t in zip(ids, sentence, is_top, strict=True) if t != gone]
    return [i for i, _ in kept] or [UNKNOWN], [s for _, s in kept] or [0]


@pytest.mark.parametrize("recipe", ["bigru+additive", "han:conv+dot"])
def test_padding_and_batch_order_change_no_row(recipe: str) -> None:
    model = classifier(recipe, 2)

    def of(batch: Batch) -> dict[tuple[object, ...], list[float]]:
        reading = read(model, batch)
        rows = input_erasure.rows(model, reading, explain(model, reading, NAMES), 0)
        keyed = rows.set_index(["instance", "method", "share", "mode"])
        values = keyed[["comprehensiveness", "sufficiency", "flip", "taken"]].astype(float)
        return dict(zip(keyed.index, values.to_numpy().tolist(), strict=True))

    whole = of(BATCH)
    parts = of(padded(chosen(BATCH, [3, 0]), 4)) | of(chosen(BATCH, [1, 4, 2]))
    assert parts.keys() == whole.keys()
    for key, values in whole.items():
        assert parts[key] == pytest.approx(values, abs=1e-11)


def test_small_passes_and_repeated_edits_change_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    model = classifier("bilstm+additive")
    generator = torch.Generator().manual_seed(0)
    kept = torch.rand(len(BATCH), 6, BATCH.mask.shape[1], generator=generator) < 0.5
    kept = torch.cat([kept, kept.flip(1)], 1)
    texts = []
    forward = model.forward
    monkeypatch.setattr(model, "forward", lambda batch: texts.append(len(batch)) or forward(batch))
    for mode in ("removed", "replaced"):
        monkeypatch.setattr(rereading, "PASS_TOKENS", 2**14)
        whole = read_again(model, BATCH, kept, mode)
        assert sum(texts) <= len(BATCH) * 6
        assert len(texts) == 1
        assert torch.equal(whole[:, :6], whole[:, 6:].flip(1))
        monkeypatch.setattr(rereading, "PASS_TOKENS", 25)
        torch.testing.assert_close(read_again(model, BATCH, kept, mode), whole)
        assert len(texts) > 2
        texts.clear()


@pytest.mark.parametrize(
    ("recipe", "times"), [("bilstm+additive", rereading.ON_A_CARD), ("han:bigru+additive", 1)]
)
def test_a_card_is_given_more_texts_of_flat_classifiers_alone(recipe: str, times: int) -> None:
    model = classifier(recipe)
    on_card = SimpleNamespace(ids=SimpleNamespace(is_cuda=True))
    assert rereading._most_tokens(model, on_card) == times * rereading.PASS_TOKENS
    assert rereading._most_tokens(model, BATCH) == rereading.PASS_TOKENS


def test_any_symbol_can_take_a_words_place() -> None:
    model = classifier("none+dot")
    nothing = torch.zeros_like(BATCH.mask)[:, None]
    logits = read_again(model, BATCH, nothing, "replaced", MASK)[:, 0]
    for document, length in enumerate(BATCH.lengths.tolist()):
        by_hand = said_by_hand(model, [MASK] * length, [0] * length)
        np.testing.assert_allclose(logits[document].softmax(-1), by_hand, atol=1e-12)


def test_a_model_with_another_head_is_read_again_as_a_whole() -> None:
    inner = classifier("gru+dot")
    bent = NonLinear(inner, nn.Tanh())
    reading = read(bent, BATCH)
    rows = input_erasure.rows(bent, reading, {"attention": reading.attention}, 0)
    assert rows["comprehensiveness"].notna().all()
    everything = BATCH.mask[:, None]
    torch.testing.assert_close(read_again(bent, BATCH, everything, "removed")[:, 0], reading.logits)


def test_the_finding_averages_over_shares_and_compares_with_random() -> None:
    model = one_word_matters()
    reading = read(model, with_good_at([3, 0, 19, 7], 20))
    importance = explain(model, reading, ["random", "attention"])
    rows = input_erasure.rows(model, reading, importance, 0)
    finding = input_erasure.summarise(rows)
    removed = rows[(rows["mode"] == "removed") & (rows["method"] == "attention")]
    found = finding.get("comprehensiveness", "attention")
    assert found is not None
    assert found.n == 4
    assert found.value == pytest.approx(removed["comprehensiveness"].mean())
    other = rows[(rows["mode"] == "removed") & (rows["method"] == "random")]
    difference = finding.get("comprehensiveness", "attention - random")
    assert difference is not None
    assert difference.value == pytest.approx(
        removed["comprehensiveness"].mean() - other["comprehensiveness"].mean()
    )
    for name in ("sufficiency", "flips", "flips, replaced", "sufficiency, replaced"):
        assert finding.get(name, "random") is not None
    drawn = finding.drawn["removed"]["comprehensiveness"]["attention"]
    per_share = removed.groupby("share")["comprehensiveness"].mean()
    assert [point["value"] for point in drawn] == pytest.approx(per_share.tolist())
    assert finding.drawn["shares"] == [0.05, 0.1, 0.2, 0.5]


def test_documents_with_one_unit_are_left_out_and_counted() -> None:
    model = classifier("none+dot")
    reading = read(model, BATCH)
    rows = input_erasure.rows(model, reading, {"attention": reading.attention}, 0)
    finding = input_erasure.summarise(rows)
    found = finding.get("comprehensiveness", "attention")
    assert found is not None
    assert found.n == len(BATCH) - 1
    assert "1 of 5 documents have one unit and are left out." in finding.notes
    for empty in (
        rows[rows["units"] == 1],
        rows.head(0),
        input_erasure.rows(model, reading, {}, 0),
    ):
        assert input_erasure.summarise(empty).answer.startswith("Nothing could be measured")
