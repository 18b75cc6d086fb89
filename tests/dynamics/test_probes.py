"""Attention, probe and saliency of classifiers, and what is kept of them while they learn."""

from copy import deepcopy
from dataclasses import replace

import numpy as np
import pytest
import torch

from heedful.corpora import encode, planted
from heedful.corpora.batches import collate, mixed_batches
from heedful.corpora.recipes import with_marks
from heedful.corpora.samples import subset
from heedful.dynamics import probes
from heedful.dynamics.agreement import starts_of
from heedful.dynamics.probes import (
    ProbeLog,
    kept_saliency,
    probed,
    probed_together,
    saliency,
)
from heedful.dynamics.trajectory import kept_checkpoints, load_trajectory, save_trajectory
from heedful.errors import InputError
from heedful.models import build, parse
from heedful.models.classifier_stack import ClassifierStack
from heedful.runs.randomness import numpy_generator
from heedful.studies.dynamics.frozen_probe import train_frozen
from heedful.training import TrainConfig, fit, loop, single
from heedful.training.config import Schedule
from heedful.training.presets import PRESETS

CONFIG = TrainConfig(batch_size=16, clip_norm=0.0, patience=0)
SIZES = {"embedding_dim": 12, "width": 16, "attention_dim": 8, "one_logit": True}


@pytest.fixture(scope="module")
def corpus():
    return encode(with_marks(planted(2, "short", sizes={"train": 80, "dev": 20, "test": 8})))


def _model(corpus, recipe="bilstm+additive-relu", seed=0, **sizes):
    config = parse(recipe, **(SIZES | sizes)).model
    return build(config, corpus.vocabulary, corpus.classes, seed)


def test_the_published_classifier_has_the_published_number_of_parameters(corpus):
    preset = PRESETS["dynamics/attention"]
    model = _model(corpus, preset.recipe, **preset.model)
    counted = sum(p.numel() for name, p in model.named_parameters() if "embedding" not in name)
    assert counted == 1_274_882


def test_relu_scores_are_their_formula(corpus):
    model = _model(corpus).double()
    batch = collate(corpus.splits["dev"], [0, 1])
    passed = model(batch)
    part = model.level.attention
    hidden = torch.relu(passed.attended.values @ part.hidden.weight.T + part.hidden.bias)
    wanted = hidden @ part.query.weight[0] + part.query.bias
    inside = batch.mask
    torch.testing.assert_close(passed.attended.scores[inside], wanted[inside])


def test_the_probe_gives_the_decision_back_through_log_odds(corpus):
    # Equation 12: p = σ(Σ α σ⁻¹(β)), exactly, the bias included.
    model = _model(corpus).double()
    dev = corpus.splits["dev"]
    found = probed(model, dev)
    starts = starts_of(found.lengths)
    decided = 1 / (1 + np.exp(-np.add.reduceat(found.attention[0] * found.probe[0], starts)))
    with torch.no_grad():
        logp = model(collate(dev, range(len(dev)))).logits.log_softmax(-1)
    right = logp.gather(1, torch.from_numpy(dev.labels)[:, None])[:, 0].exp().numpy()
    np.testing.assert_allclose(decided, right, atol=1e-6)


def test_rows_are_documents_in_order_and_marks_are_special(corpus):
    dev = corpus.splits["dev"]
    found = probed(_model(corpus), dev)
    assert found.lengths.tolist() == dev.lengths.tolist()
    np.testing.assert_allclose(
        np.add.reduceat(found.attention[0], starts_of(found.lengths)), 1.0, rtol=1e-5
    )
    special = np.flatnonzero(found.is_special)
    ends = np.cumsum(found.lengths) - 1
    assert special.tolist() == sorted([*starts_of(found.lengths), *ends])


def _some_labels(dev):
    """The documents, every third without its label."""
    return replace(dev, labels=np.where(np.arange(len(dev)) % 3 == 1, -1, dev.labels))


@pytest.mark.parametrize("recipe", ["bilstm+additive-relu", "han:bilstm+additive"])
def test_documents_are_probed_as_each_would_be_alone(corpus, recipe, monkeypatch):
    """In batches of a few, some without a label, words or sentences as units."""
    monkeypatch.setattr(probes, "TOKENS_AT_ONCE", 100)
    model, dev = _model(corpus, recipe).double(), _some_labels(corpus.splits["dev"])
    found, delta = probed(model, dev), saliency(model, dev)
    labelled = np.flatnonzero(dev.labels >= 0)
    assert found.item.tolist() == labelled.tolist()
    unit = token = 0
    for row, document in enumerate(labelled.tolist()):
        batch = collate(dev, [document])
        with torch.no_grad():
            passed = model(batch)
            attention = passed.attended.scores.softmax(-1)[0]
            said = model.with_zero(model.head(passed.attended.values))[0].softmax(-1)
        units = slice(unit, unit + found.lengths[row])
        assert found.lengths[row] == len(attention)
        np.testing.assert_allclose(found.attention[0, units], attention, atol=1e-7)
        right = torch.logit(said[:, dev.labels[document]])
        np.testing.assert_allclose(found.probe[0, units], right, atol=1e-6)
        decided = int(passed.logits.argmax()) == dev.labels[document]
        assert found.correct[0, row] == decided
        tokens = slice(token, token + int(dev.lengths[document]))
        own = saliency(model, subset(dev, np.array([document])))
        np.testing.assert_allclose(delta[tokens], own, atol=1e-7)
        unit, token = units.stop, tokens.stop
    assert (unit, token) == (found.attention.shape[1], len(delta))


@pytest.mark.parametrize("dtype", [torch.float64, torch.float32])
@pytest.mark.parametrize("recipe", ["bilstm+additive-relu", "bilstm+uniform"])
def test_a_stack_is_probed_as_each_of_its_models(corpus, recipe, dtype, monkeypatch):
    monkeypatch.setattr(probes, "TOGETHER", 800)  # several batches, others than one model's
    models = [_model(corpus, recipe, seed).to(dtype) for seed in range(3)]
    with torch.no_grad():
        for model in models:
            model.head.weight *= 20  # so that answers differ
    dev = _some_labels(corpus.splits["dev"])
    expected = [probed(model, dev, step=7) for model in models]
    found = probed_together(ClassifierStack(models, "cpu"), dev, step=7)
    # A gate, then the head, add up so many products, one rounding each; values are below 1, so that
    # the head makes no more of them than its weights add up to. Scores are made of smaller weights.
    terms = SIZES["embedding_dim"] + SIZES["width"] + 2 * SIZES["width"]
    largest = max(float(model.head.weight.detach().abs().sum()) for model in models)
    atol = terms * torch.finfo(dtype).eps / 2 * largest
    for one, two in zip(found, expected, strict=True):
        # Trajectories are in float32: float64 models agree up to its last bit.
        np.testing.assert_allclose(one.attention, two.attention, atol=atol, rtol=2e-7)
        np.testing.assert_allclose(one.probe, two.probe, atol=atol, rtol=2e-7)
        for name in ("steps", "correct", "lengths", "item", "is_special"):
            np.testing.assert_array_equal(getattr(one, name), getattr(two, name))
    assert len({tuple(one.correct[0]) for one in found}) > 1


def test_saliency_is_the_derivative_by_a_gate(corpus):
    model = _model(corpus).double()
    dev = subset(corpus.splits["dev"], np.array([3]))
    batch = collate(dev, [0])
    found = saliency(model, dev)
    with torch.no_grad():
        inputs = model.embed(batch)
        for place in range(0, len(found), 4):
            values = []
            for change in (-1e-5, 1e-5):
                gated = inputs.clone()
                gated[0, place] *= 1 + change
                p = model.from_inputs(gated, batch).logits.softmax(-1)[0, batch.labels[0]]
                values.append(torch.logit(p))
            assert found[place] == pytest.approx(float(values[1] - values[0]) / 2e-5, abs=1e-6)


def test_units_and_gates_of_a_model_that_is_sure_are_not_tied(corpus):
    """As a model of 32 bits becomes after some thousand steps: probabilities are 1 to the bit."""
    model, dev = _model(corpus), corpus.splits["dev"]
    with torch.no_grad():
        plain, before = probed(model, dev).probe[0], saliency(model, dev)
        model.head.weight *= 4_000
        model.head.bias *= 4_000
    found = probed(model, dev)
    assert found.probe.max() > 100
    sure = found.probe[0] > 17  # log p would be 0 for all of them
    assert sure.sum() > 20
    assert len(np.unique(found.probe[0][sure])) > 0.9 * len(np.unique(plain[sure]))
    after = saliency(model, dev)
    starts = starts_of(dev.lengths)
    for start, length in zip(starts, dev.lengths, strict=True):
        own = slice(start, start + length)  # attention is the same, so are the directions
        np.testing.assert_allclose(after[own], 4_000 * before[own], rtol=1e-2, atol=1e-3)


def test_a_schedule_counts_steps_and_evaluates_where_it_says(corpus, tmp_path):
    schedule = Schedule(7, (0, 3, 7))
    dev = corpus.splits["dev"]
    log = ProbeLog(tmp_path, {"dev": dev}, with_saliency=True)
    model = _model(corpus)
    history = fit(model, corpus, CONFIG, observers=[log], schedule=schedule)
    assert [entry["step"] for entry in history.entries] == [0, 3, 7]
    kept = kept_checkpoints(tmp_path, "dev")
    assert kept.steps.tolist() == [0, 3, 7]
    fresh = probed(_model(corpus), dev)
    np.testing.assert_array_equal(kept.attention[0], fresh.attention[0])
    # The model is left at its best evaluation, which is where saliency was taken.
    np.testing.assert_allclose(kept_saliency(tmp_path, "dev"), saliency(model, dev), atol=1e-6)
    assert probed(model, dev).performance()[0] == kept.performance().max()


@pytest.mark.slow
@pytest.mark.parametrize("is_judged", [True, False])
def test_a_killed_schedule_ends_with_the_same_numbers(corpus, tmp_path, is_judged):
    schedule = Schedule(9, (0, 4, 9))
    config = replace(CONFIG, checkpoint_seconds=0.0)

    def observer(folder):
        return ProbeLog(folder, {"dev": corpus.splits["dev"]}, with_saliency=False)

    def train(folder, *others):
        fit(
            _model(corpus), corpus, config, observers=[observer(folder), *others], folder=folder,
            schedule=schedule, is_judged=is_judged,
        )  # fmt: skip

    whole = tmp_path / "whole"
    train(whole)

    def killed(moment):
        if moment.step == 4:
            raise KeyboardInterrupt

    parts = tmp_path / "parts"
    with pytest.raises(KeyboardInterrupt):
        train(parts, killed)
    train(parts)
    one, two = (kept_checkpoints(folder, "dev") for folder in (whole, parts))
    assert one.steps.tolist() == two.steps.tolist()
    np.testing.assert_array_equal(one.attention, two.attention)


@pytest.mark.slow
def test_observers_that_look_at_dev_save_its_evaluation_and_see_the_same(
    corpus, tmp_path, monkeypatch
):
    dev = corpus.splits["dev"]

    def followed(folder, **settings):
        log = ProbeLog(folder, {"dev": dev}, with_saliency=True)
        model = _model(corpus)
        schedule = Schedule(9, (0, 4, 9))
        fit(model, corpus, CONFIG, observers=[log], schedule=schedule, folder=folder, **settings)
        return model, kept_checkpoints(folder, "dev"), kept_saliency(folder, "dev")

    _, whole, delta = followed(tmp_path / "judged")
    unread = single.kind_of(_model(corpus))._replace(evaluate=None)
    monkeypatch.setattr(single, "kind_of", lambda model: unread)
    model, found, same = followed(tmp_path / "alone", is_judged=False)
    np.testing.assert_array_equal(found.attention, whole.attention)
    np.testing.assert_array_equal(found.probe, whole.probe)
    np.testing.assert_array_equal(found.correct, whole.correct)
    np.testing.assert_array_equal(same, delta)
    np.testing.assert_array_equal(probed(model, dev).probe[0], found.probe[-1])  # the last weights
    with pytest.raises(ValueError, match="only a schedule"):
        fit(_model(corpus), corpus, CONFIG, is_judged=False)


@pytest.mark.slow
def test_a_schedule_keeps_itself_by_the_clock_and_not_by_epochs(corpus, tmp_path, monkeypatch):
    saved = []
    monkeypatch.setattr(loop, "save_checkpoint", lambda *given: saved.append(given))
    epochs = 4 * len(corpus.splits["train"]) // CONFIG.batch_size
    fit(_model(corpus), corpus, CONFIG, folder=tmp_path, schedule=Schedule(epochs, (epochs,)))
    assert not saved
    often = replace(CONFIG, checkpoint_seconds=0.0)
    fit(_model(corpus), corpus, often, folder=tmp_path, schedule=Schedule(3, (3,)))
    assert len(saved) == 3


def test_mixed_batches_are_whole_and_do_not_sort_by_length(corpus):
    train = corpus.splits["train"]
    found = list(mixed_batches(train, 32, numpy_generator(0, "x")))
    assert [len(batch) for batch in found] == [32, 32]
    assert len({name for batch in found for name in batch.names}) == 64
    assert len(next(mixed_batches(train, 500, numpy_generator(0, "x")))) == len(train)


def test_bad_schedules_are_refused():
    with pytest.raises(InputError, match="at least 1 step"):
        Schedule(0, (0,))
    with pytest.raises(InputError, match="from 0 to 5"):
        Schedule(5, (6,))


def test_frozen_states_train_attention_alone_as_fit_would(corpus):
    schedule = Schedule(6, (0, 6))
    frozen, plain = _model(corpus), _model(corpus)
    seen = []
    train_frozen(frozen, corpus.splits["train"], schedule, seen.append, batch_size=16)
    assert seen == [0, 6]
    for name, parameter in plain.named_parameters():
        parameter.requires_grad_(".attention." in name)
    last = {}
    fit(
        plain, corpus, CONFIG, schedule=schedule,
        observers=[lambda m: last.update(deepcopy(m.model.state_dict()))],
    )  # fmt: skip
    last.pop("level.attention.query.bias")  # softmax never sees it: its gradient is rounding
    for name, value in [(k, v) for k, v in frozen.state_dict().items() if k in last]:
        torch.testing.assert_close(value, last[name], atol=1e-6, rtol=1e-5)
    streamed = _model(corpus)
    train_frozen(
        streamed, corpus.splits["train"], schedule, seen.append, batch_size=16, cached_bytes=0
    )
    torch.testing.assert_close(
        streamed.level.attention.query.weight,
        frozen.level.attention.query.weight,
        atol=1e-6,
        rtol=0,
    )


def test_trajectories_come_back_from_their_file(corpus, tmp_path):
    found = replace(probed(_model(corpus), corpus.splits["dev"]), scores={"bleu": np.array([3.0])})
    save_trajectory(tmp_path / "a.safetensors", found)
    again = load_trajectory(tmp_path / "a.safetensors")
    np.testing.assert_array_equal(again.probe, found.probe)
    np.testing.assert_array_equal(again.is_special, found.is_special)
    assert again.performance("bleu").tolist() == [3.0]
    (tmp_path / "b.safetensors").write_text("x")
    with pytest.raises(InputError, match="holds no trajectory"):
        load_trajectory(tmp_path / "b.safetensors")
