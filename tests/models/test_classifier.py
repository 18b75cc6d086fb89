"""The attention classifier: its parts, its sentences, its vectors and its files."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import torch

from heedful.corpora.vocabulary import MASK, PAD
from heedful.errors import InputError
from heedful.models import AttentionClassifier, build, load_model, parse, read, save_model
from heedful.models.classifier import sentences
from tests.tiny import DIM, WORDS, batch_of, chosen, classifier

BATCH = batch_of()


def config(recipe: str = "affine+additive", **settings: object) -> object:
    return parse(recipe, **({"embedding_dim": DIM, "width": DIM} | settings)).model


def test_two_tokens_worked_out_by_hand() -> None:
    model = classifier("none+dot", 2, embedding_dim=2)
    batch = chosen(batch_of(((2,),)), [0])
    first, second = batch.ids[0].tolist()
    with torch.no_grad():
        model.embedding.weight[first] = torch.tensor([1.0, 0.0])
        model.embedding.weight[second] = torch.tensor([0.0, 2.0])
        model.level.attention.query.weight.copy_(torch.tensor([[np.log(3.0), 0.0]]))
        model.head.weight.copy_(torch.tensor([[4.0, 0.0], [0.0, 8.0]]))
        model.head.bias.copy_(torch.tensor([0.5, -0.5]))
    reading = read(model, batch)
    # Scores log 3 and 0 give attention 3/4 and 1/4, the context is (3/4, 1/2).
    torch.testing.assert_close(reading.attention, torch.tensor([[0.75, 0.25]]).double())
    torch.testing.assert_close(reading.logits, torch.tensor([[3.5, 3.5]]).double())
    assert reading.unit_logits is not None
    torch.testing.assert_close(
        reading.unit_logits, torch.tensor([[[4.0, 0.0], [0.0, 16.0]]]).double()
    )


def test_scaled_dot_divides_scores_by_the_root_of_the_width_unless_told() -> None:
    plain, scaled = classifier("affine+dot"), classifier("affine+scaled-dot")
    told = classifier("affine+dot@4")
    scores = read(plain, BATCH).scores
    torch.testing.assert_close(read(scaled, BATCH).scores, scores / DIM**0.5)
    torch.testing.assert_close(read(told, BATCH).scores, scores / 4)


def test_uniform_attention_is_even_over_the_units_of_each_document() -> None:
    reading = read(classifier("bilstm+uniform"), BATCH)
    expected = reading.mask.double() / reading.units[:, None]
    torch.testing.assert_close(reading.attention, expected)


def test_joins_put_the_input_beside_or_onto_the_state() -> None:
    inputs = read(classifier("affine+dot"), BATCH).inputs
    alone = read(classifier("affine+dot"), BATCH).values
    beside = read(classifier("affine+dot+concat"), BATCH).values
    onto = read(classifier("affine+dot+residual"), BATCH).values
    torch.testing.assert_close(beside, torch.cat([alone, inputs], -1))
    torch.testing.assert_close(onto, alone + inputs)


def test_one_logit_is_reported_beside_a_zero() -> None:
    model = classifier("conv+additive", 2, one_logit=True)
    reading = read(model, BATCH)
    assert model.head.out_features == 1
    assert reading.logits.shape == (len(BATCH), 2)
    assert reading.logits[:, 0].tolist() == [0.0] * len(BATCH)
    assert reading.unit_logits is not None
    assert float(reading.unit_logits[..., 0].abs().max()) == 0


def test_sentences_are_numbered_without_gaps_and_tokens_placed_within_them() -> None:
    layout = sentences(batch_of(((1,), (2, 1), (1, 3))))
    assert layout.unit_of_token.tolist() == [[0, 0, 0, 0], [0, 0, 1, 1], [0, 1, 1, 1]]
    assert layout.place.tolist() == [[0, 0, 0, 0], [0, 1, 0, 0], [0, 0, 1, 2]]
    assert layout.mask.tolist() == [[True, False], [True, True], [True, True]]


def test_a_hierarchical_model_attends_within_each_sentence_alone() -> None:
    model = classifier("han:none+dot")
    reading = read(model, BATCH)
    assert model.words is not None
    for document, lengths in enumerate(((1,), (2, 1), (1, 3, 2), (4, 1))):
        start = 0
        for unit, length in enumerate(lengths):
            words = reading.inputs[document, start : start + length]
            weights = model.words.attention(words[None])[0].softmax(-1)
            torch.testing.assert_close(reading.values[document, unit], weights @ words)
            start += length
            assert len(reading.texts[document][unit].split()) == length
    assert reading.per_unit(BATCH.mask.double()).tolist() == [
        [1, 0, 0],
        [2, 1, 0],
        [1, 3, 2],
        [4, 1, 0],
    ]


@pytest.mark.parametrize("on", ["input", "logits"])
def test_dropout_acts_in_training_only(on: str) -> None:
    model = classifier("none+dot", head_dropout=0.5, head_dropout_on=on)
    calm = model(BATCH).logits
    torch.testing.assert_close(model(BATCH).logits, calm)
    model.train()
    assert not torch.equal(model(BATCH).logits, calm)


def test_a_reading_asks_for_no_gradient() -> None:
    for dtype in (torch.float32, torch.float64):
        reading = read(classifier("bigru+additive").to(dtype), BATCH)
        for held in (reading.logits, reading.unit_logits, reading.offset, reading.values):
            assert held is not None
            assert not held.requires_grad
        for exact in (reading.logits, reading.attention, reading.unit_logits, reading.offset):
            assert exact is not None
            assert exact.dtype == torch.float64


def test_given_vectors_replace_the_random_ones_and_the_rest_get_their_length() -> None:
    model = build(config(), WORDS, ("a", "b"))
    start = model.embedding.weight.detach().clone()
    vectors = np.full((len(WORDS), DIM), np.nan)
    vectors[10:20] = np.random.default_rng(0).normal(0, 3, (10, DIM))
    model.set_vectors(vectors)
    weight = model.embedding.weight.detach()
    np.testing.assert_allclose(weight[10:20], vectors[10:20], rtol=1e-6)
    assert float(weight[PAD].abs().max()) == 0
    assert float(weight[MASK].norm()) > 0
    ratio = weight[20:] / start[20:]
    torch.testing.assert_close(ratio, ratio[0, 0].expand_as(ratio))
    expected = np.linalg.norm(vectors[10:20], axis=1).mean() / start[MASK:].norm(dim=1).mean()
    assert float(ratio[0, 0]) == pytest.approx(float(expected), rel=1e-5)


def test_vectors_for_no_word_at_all_leave_the_random_start() -> None:
    model = build(config(), WORDS, ("a", "b"))
    start = model.embedding.weight.detach().clone()
    model.set_vectors(np.full((len(WORDS), DIM), np.nan))
    assert torch.equal(model.embedding.weight, start)


def test_vectors_of_another_width_are_refused() -> None:
    model = build(config(), WORDS, ("a", "b"))
    with pytest.raises(InputError, match="set embedding_dim to the vectors' dimension"):
        model.set_vectors(np.zeros((len(WORDS), DIM + 1)))


def test_the_random_start_depends_on_the_seed_alone() -> None:
    torch.rand(3)
    first = build(config("bilstm+additive"), WORDS, ("a", "b"), seed=5)
    torch.rand(7)
    second = build(config("bilstm+additive"), WORDS, ("a", "b"), seed=5)
    other = build(config("bilstm+additive"), WORDS, ("a", "b"), seed=6)
    for name, weight in first.state_dict().items():
        assert torch.equal(weight, second.state_dict()[name])
    assert not torch.equal(first.head.weight, other.head.weight)


@pytest.mark.parametrize(
    ("classes", "settings", "said"),
    [
        (("only",), {}, "at least two classes"),
        (("a", "b", "c"), {"one_logit": True}, "one_logit is for two classes, got 3"),
    ],
)
def test_impossible_heads_are_refused(
    classes: tuple[str, ...], settings: dict[str, bool], said: str
) -> None:
    with pytest.raises(InputError, match=said):
        AttentionClassifier(config(**settings), WORDS, classes)


def test_a_saved_model_reads_back_to_the_bit(tmp_path: Path) -> None:
    model = build(config("han:bigru*2+scaled-dot@3+concat"), WORDS, ("bad", "good"), seed=3)
    save_model(model, tmp_path / "model")
    again = load_model(tmp_path / "model")
    assert (again.config, again.classes, again.vocabulary) == (
        model.config,
        ("bad", "good"),
        WORDS,
    )
    assert not again.training
    assert torch.equal(read(again, BATCH).logits, read(model, BATCH).logits)


@pytest.mark.parametrize(
    ("name", "content", "said"),
    [
        ("model.safetensors", None, "holds no trained model"),
        ("model.safetensors", b"not tensors", "not a model heedful can read"),
        ("config.json", b'{"format": 99}', "has model format 99"),
        ("config.json", b"{}", "not a model heedful can read"),
        ("config.json", b"{", "not valid JSON"),
        ("vocabulary.json", b'["a"]', "not a model heedful can read"),
    ],
)
def test_a_broken_folder_is_refused_in_one_sentence(
    tmp_path: Path, name: str, content: bytes | None, said: str
) -> None:
    save_model(build(config(), WORDS, ("a", "b")), tmp_path)
    if content is None:
        (tmp_path / name).unlink()
    else:
        (tmp_path / name).write_bytes(content)
    with pytest.raises(InputError, match=said) as caught:
        load_model(tmp_path)
    assert "\n" not in str(caught.value)
