"""The paper's Transformer: its sizes, what it may depend on, and that it can be audited."""

from __future__ import annotations

import json
from dataclasses import replace

import numpy as np
import pytest
import torch

import heedful
from heedful.audits import AUDITS
from heedful.audits.examination import Portion
from heedful.corpora import batches, encode, planted
from heedful.corpora.vocabulary import SPECIALS, Vocabulary
from heedful.errors import InputError, UnsupportedModel
from heedful.importance import explain, methods_of
from heedful.importance.traced import squared_slopes
from heedful.jobs.settings import settings_of
from heedful.models import (
    TransformerConfig,
    build,
    build_narrator,
    decide,
    erase,
    example,
    identity,
    lat,
    load_classifier,
    load_model,
    read,
    save_model,
)
from heedful.models.tracing import layers_of
from heedful.models.transformer import sinusoids
from heedful.training import TrainConfig, fit

WORDS = Vocabulary((*SPECIALS, *["the", "food", "was", "good", "bad", "and", "service", "slow"]))
SMALL = TransformerConfig(
    embedding_dim=12, layers=3, heads=2, head_dim=8, feed_forward=8, pooling_dims=(8, 4),
    decider_dim=8,
)  # fmt: skip
TEXTS = ["the food was good", "bad service and slow food", "good"]


def small(**changed):
    model = build(replace(SMALL, **changed), WORDS, ("no", "maybe", "yes"), seed=1)
    with torch.no_grad():  # sharper attention than at the start
        for layer in model.encoder.layers:
            layer.query.weight *= 6
    return model.double().eval()


def counted(model):
    return sum(weight.numel() for weight in model.parameters() if weight.requires_grad)


def test_the_published_numbers_of_parameters_are_met_exactly():
    config = TransformerConfig()
    assert counted(build(config, WORDS, tuple("12345"))) == 3_993_222
    assert counted(build_narrator(config, WORDS)) == 4_715_362


def test_word_vectors_are_inputs_and_missing_words_are_zero():
    model = small()
    vectors = np.arange(len(WORDS) * 12, dtype=np.float32).reshape(-1, 12)
    vectors[WORDS.ids["bad"]] = np.nan
    model.set_vectors(vectors)
    embedded = model.embed(model.batch(["food bad unheard"]))[0]
    assert embedded[0].tolist() == vectors[WORDS.ids["food"]].tolist()
    assert not embedded[1].any()
    assert "vectors.table" not in dict(model.named_parameters())
    with pytest.raises(InputError, match="embedding_dim"):
        model.set_vectors(vectors[:, :5])


def test_only_queries_are_normed_unless_asked():
    inputs = torch.randn(1, 4, 12, dtype=torch.float64)
    mask = torch.ones(1, 4, dtype=torch.bool)
    for norm, is_scaled in (("query", True), ("full", False)):
        layer = small(norm=norm).encoder.layers[0]
        once, twice = layer.attention(inputs, mask), layer.attention(2 * inputs, mask)
        assert torch.allclose(once.query, twice.query, atol=1e-5)  # the norm's epsilon
        assert torch.allclose(2 * once.key, twice.key) == is_scaled


@pytest.mark.parametrize("norm", ["query", "full"])
def test_a_batch_equals_single_texts(norm):
    model = small(norm=norm)
    together = read(model, model.batch(TEXTS))
    traced = lat(layers_of(model, together.batch))
    for row, text in enumerate(TEXTS):
        alone = read(model, model.batch([text]))
        n = len(text.split())
        assert torch.allclose(alone.logits[0], together.logits[row], atol=1e-12)
        single = lat(layers_of(model, alone.batch)).shares
        assert torch.allclose(single[:, 0], traced.shares[:, row, :, :n], atol=1e-14)
        assert not traced.shares[:, row, :, n:].any()


def test_without_positions_the_order_of_words_does_not_matter():
    model = small()
    given, turned = model.batch([TEXTS[1]]), model.batch([" ".join(TEXTS[1].split()[::-1])])
    assert torch.allclose(read(model, given).logits, read(model, turned).logits, atol=1e-13)
    forward, backward = (lat(layers_of(model, one)).total for one in (given, turned))
    assert torch.allclose(forward, backward.flip(-1), atol=1e-13)
    ordered = small(positions="sinusoidal")
    assert not torch.allclose(read(ordered, given).logits, read(ordered, turned).logits, atol=1e-6)


def test_sinusoids_are_sines_and_cosines_of_falling_rates():
    table = sinusoids(5, 4)
    assert torch.allclose(table[3, :2], torch.tensor([np.sin(3.0), np.cos(3.0)]).float())
    assert torch.allclose(table[3, 2:], torch.tensor([np.sin(0.03), np.cos(0.03)]).float())


def test_the_trace_of_the_model_is_the_product_of_its_matrices():
    model = small()
    stack = layers_of(model, model.batch(TEXTS))
    product = stack.pooling[:, None, None].expand(-1, 2, 1, -1)
    for layer in reversed(stack.layers):
        product = product @ layer.matrix()
    assert torch.allclose(lat(stack).input, product[:, :, 0], atol=1e-14)
    assert torch.allclose(lat(stack).total.sum(-1), torch.tensor(2.0).double(), atol=1e-13)


def test_answers_come_from_the_edited_average():
    model = small()
    reading = read(model, model.batch(TEXTS))
    assert torch.equal(decide(model, reading, identity(reading))[:, 0], reading.logits)
    direct = model(reading.batch).logits
    assert torch.allclose(direct, reading.logits, atol=1e-12)
    first = torch.zeros_like(reading.mask)
    first[:, 0] = True
    without = decide(model, reading, erase(first[:, None]))[0, 0]
    rest = reading.scores[0, 1:4].softmax(-1) @ reading.values[0, 1:4]
    assert torch.allclose(without, model.head(rest), atol=1e-12)


def test_losses_are_the_published_sum_and_the_mean_over_classes():
    batch = small().batch(TEXTS)
    batch = replace(batch, labels=torch.tensor([0, 2, 1]))
    model = small()
    logits = model(batch).logits
    wanted = torch.eye(3, dtype=torch.float64)[batch.labels]
    p = logits.sigmoid()
    summed = -(wanted * p.log() + (1 - wanted) * (1 - p).log()).sum()
    assert torch.allclose(model.loss(batch), summed)
    entropy = -logits.log_softmax(-1).gather(1, batch.labels[:, None]).mean()
    assert torch.allclose(small(loss="cross-entropy").loss(batch), entropy)


def test_the_squared_gradient_of_a_batch_is_that_of_each_text():
    model = small()
    batch = model.batch(TEXTS)
    found = squared_slopes(model, batch)
    inputs = model.embed(model.batch(TEXTS[:1])).requires_grad_()
    model.from_inputs(inputs, model.batch(TEXTS[:1])).logits.sigmoid().sum().backward()
    assert torch.allclose(found[0, :4], inputs.grad.square().sum(-1)[0], atol=1e-15)
    step, classes = 1e-6, torch.tensor([2, 0, 1])
    moved = model.embed(batch).clone()
    moved[1, 0, 3] += step
    plain = model(batch).logits[1, 0]
    slope = (model.from_inputs(moved, batch).logits[1, 0] - plain) / step
    by_class = squared_slopes(model, batch, classes)
    assert by_class[1, 0] >= slope**2 - 1e-8
    assert not by_class[~batch.mask].any()


def test_methods_that_trace_refuse_a_model_without_layers():
    flat = example()
    reading = read(flat, flat.batch(["good food"]))
    with pytest.raises(UnsupportedModel, match="does not offer trace"):
        explain(flat, reading, ["trace"])
    assert "trace" not in methods_of(flat)
    model = small()
    found = explain(model, read(model, model.batch(TEXTS)), ["trace", "rollout"])
    assert torch.allclose(found["trace"].sum(-1), torch.tensor(2.0).double(), atol=1e-9)
    assert torch.allclose(found["rollout"].sum(-1), torch.tensor(1.0).double(), atol=1e-9)


def test_it_comes_back_from_its_folder(tmp_path):
    model = build(SMALL, WORDS, ("no", "yes"), seed=3)
    save_model(model, tmp_path)
    again = load_model(tmp_path)
    assert again.config == SMALL
    assert torch.equal(again(again.batch(TEXTS)).logits, model.eval()(model.batch(TEXTS)).logits)
    with pytest.raises(UnsupportedModel, match="Transformer"):
        load_classifier(tmp_path)
    stored = json.loads((tmp_path / "config.json").read_text())
    (tmp_path / "config.json").write_text(json.dumps(stored | {"kind": "tree"}))
    with pytest.raises(InputError, match="tree"):
        load_model(tmp_path)


@pytest.mark.parametrize(
    ("changed", "sentence"),
    [
        ({"positions": "learnt"}, "sinusoidal"),
        ({"heads": 0}, "heads"),
        ({"dropout": 1.0}, "dropout"),
        ({"pooling_dims": (3,)}, "pooling_dims"),
    ],
)
def test_sizes_that_cannot_be_are_refused_by_name(changed, sentence):
    with pytest.raises(InputError, match=sentence):
        replace(SMALL, **changed)


@pytest.fixture(scope="module")
def corpus():
    return planted(2, "short", sizes={"train": 60, "dev": 20, "test": 12})


@pytest.mark.slow
def test_every_audit_runs_on_it(corpus):
    encoded = encode(corpus)
    model = build(SMALL, encoded.vocabulary, encoded.classes)
    batch = next(batches(encoded.splits["test"], 12))
    reading = read(model, batch)
    importance = explain(model, reading, ("random", "attention", "leave-one-out", "trace"))
    for name, one in AUDITS.items():
        if one.whole is not None:  # of an untrained model, which may decide all texts alike
            one.summarise(one.whole(model, encoded.splits["test"], 0, "cpu", Portion()))
            continue
        rows = one.rows(model, reading, importance, 0)
        assert bool(len(rows)) == (name != "alignment"), name  # that one is of translators
        one.summarise(rows)


@pytest.mark.slow
@pytest.mark.parametrize("epochs", [None, 1])
def test_a_killed_training_ends_with_the_same_weights(corpus, tmp_path, epochs):
    encoded = encode(corpus)
    config = replace(SMALL, dropout_epochs=epochs)
    train = TrainConfig(epochs=3, batch_size=16, patience=0, clip_norm=0.0)
    whole = build(config, encoded.vocabulary, encoded.classes)
    fit(whole, encoded, train)

    def kill(moment):
        if moment.epoch == 2:
            raise KeyboardInterrupt

    half = build(config, encoded.vocabulary, encoded.classes)
    with pytest.raises(KeyboardInterrupt):
        fit(half, encoded, train, folder=tmp_path, observers=[kill])
    again = build(config, encoded.vocabulary, encoded.classes)
    fit(again, encoded, train, folder=tmp_path)
    for name, value in whole.state_dict().items():
        assert torch.equal(value, again.state_dict()[name]), name


def test_dropout_stops_after_the_epochs_it_is_given(corpus):
    encoded = encode(corpus)
    modes, steps = {}, [0]
    model = build(replace(SMALL, dropout_epochs=1), encoded.vocabulary, encoded.classes)

    def note(module, given):
        modes.setdefault(steps[0], module.training)

    model.register_forward_pre_hook(note)
    fit(model, encoded, TrainConfig(epochs=2, batch_size=60, patience=0),
        observers=[lambda moment: steps.__setitem__(0, moment.step)])  # fmt: skip
    assert modes == {0: True, 1: False}


@pytest.mark.slow
def test_it_is_trained_and_audited_by_its_recipe(corpus, tmp_path):
    sizes = {"embedding_dim": 12, "layers": 2, "heads": 2, "head_dim": 8, "pooling_dims": [8, 4]}
    settings = settings_of({"model": sizes, "train": {"epochs": 1}})
    model = heedful.train("transformer", corpus, tmp_path / "run", settings=settings)
    assert heedful.load(tmp_path / "run").config == model.config
    result = heedful.audit(
        tmp_path / "run", corpus, tmp_path / "run", audits=["erasure"], methods=["attention"]
    )
    assert result.report.is_file()
    assert '"flow"' in (tmp_path / "run/findings/instances.json").read_text()
