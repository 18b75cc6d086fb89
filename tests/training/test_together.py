"""Transformers trained side by side end as they would alone."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import torch

from heedful.corpora import planted
from heedful.errors import InputError
from heedful.jobs.decider import encoded_of
from heedful.jobs.settings import Settings
from heedful.models import TransformerConfig, build
from heedful.training import TrainConfig, fit, loop, together
from heedful.training.checkpoints import CHECKPOINT
from heedful.training.together import fit_together

SMALL = TransformerConfig(
    embedding_dim=12, layers=2, heads=2, head_dim=8, feed_forward=8, pooling_dims=(8, 4),
    decider_dim=8,
)  # fmt: skip
TRAIN = TrainConfig(
    epochs=2, batch_size=12, learning_rate=3e-3, weight_decay=1e-2, clip_norm=0.0, patience=0
)
VARIANTS = (
    SMALL,
    replace(SMALL, dropout_epochs=1),
    replace(SMALL, loss="cross-entropy"),
    replace(SMALL, positions="sinusoidal"),
)


@pytest.fixture(scope="module")
def corpus():
    found = planted(5, "short", sizes={"train": 30, "dev": 15, "test": 10})
    return encoded_of(found, Settings().words)


@pytest.fixture(autouse=True)
def doubles():
    before = torch.get_default_dtype()
    torch.set_default_dtype(torch.float64)
    yield
    torch.set_default_dtype(before)


def built(config, seed, corpus):
    return build(config, corpus.vocabulary, corpus.classes, seed)


def weights(model):
    return {name: value.detach().clone() for name, value in model.state_dict().items()}


def assert_equal_histories(one, two):
    assert one.best_step == two.best_step
    assert one.best == pytest.approx(two.best)
    assert len(one.entries) == len(two.entries)
    for first, second in zip(one.entries, two.entries, strict=True):
        assert first.keys() == second.keys()
        for name in ("step", "epoch", "learning_rate", "dev_accuracy"):
            assert first[name] == second[name]
        for name in ("loss", "dev_loss"):
            assert first[name] == pytest.approx(second[name], rel=1e-9)


@pytest.mark.slow
@pytest.mark.parametrize("norm", ["query", "full"])
def test_every_model_ends_as_it_would_alone(corpus, norm, monkeypatch):
    """Own starts, own batches of own lengths, own dropout, in float64."""
    if norm == "full":  # batches of all sizes padded to each other
        monkeypatch.setattr(together, "SLACK", 100.0)
    configs = VARIANTS if norm == "query" else VARIANTS[:1]
    members = [(replace(config, norm=norm), seed) for config in configs for seed in (0, 1)]
    stacked = [built(config, seed, corpus) for config, seed in members]
    histories = fit_together(stacked, corpus, TRAIN, seeds=[seed for _, seed in members])
    for model, history, (config, seed) in zip(stacked, histories, members, strict=True):
        alone = built(config, seed, corpus)
        expected = fit(alone, corpus, TRAIN, seed=seed)
        assert_equal_histories(history, expected)
        for name, value in weights(alone).items():
            torch.testing.assert_close(weights(model)[name], value, rtol=1e-7, atol=1e-9)


def test_shared_order_clipping_and_patience_are_those_of_fit(corpus):
    config = replace(TRAIN, order_seed=7, clip_norm=0.5, patience=1, epochs=4)
    stacked = [built(SMALL, seed, corpus) for seed in (3, 4)]
    histories = fit_together(stacked, corpus, config, seeds=[3, 4])
    for model, history, seed in zip(stacked, histories, (3, 4), strict=True):
        alone = built(SMALL, seed, corpus)
        assert_equal_histories(history, fit(alone, corpus, config, seed=seed))
        for name, value in weights(alone).items():
            torch.testing.assert_close(weights(model)[name], value, rtol=1e-7, atol=1e-9)


def test_a_killed_training_ends_with_the_same_weights(corpus, tmp_path, monkeypatch):
    config = replace(TRAIN, checkpoint_seconds=0.0)
    whole = [built(SMALL, seed, corpus) for seed in (0, 1)]
    expected = fit_together(whole, corpus, config, seeds=[0, 1])

    class Killed(Exception):
        pass

    epoch = loop._Run.epoch

    def dies(self, ticker):
        if self.done.epoch == 1:
            raise Killed
        epoch(self, ticker)

    monkeypatch.setattr(loop._Run, "epoch", dies)
    with pytest.raises(Killed):
        fit_together([built(SMALL, s, corpus) for s in (0, 1)], corpus, config, seeds=[0, 1],
                     folder=tmp_path)  # fmt: skip
    monkeypatch.setattr(loop._Run, "epoch", epoch)
    assert (tmp_path / CHECKPOINT).is_file()
    again = [built(SMALL, seed, corpus) for seed in (0, 1)]
    with pytest.raises(InputError, match="other settings"):
        fit_together(again, corpus, replace(config, epochs=9), seeds=[0, 1], folder=tmp_path)
    again = [built(SMALL, seed, corpus) for seed in (0, 1)]
    found = fit_together(again, corpus, config, seeds=[0, 1], folder=tmp_path)
    assert found == expected
    for one, two in zip(again, whole, strict=True):
        for name, value in weights(two).items():
            assert torch.equal(weights(one)[name], value)


def test_dropout_draws_differ_between_models_of_other_seeds(corpus):
    """Two equal starts part ways by their dropout and order alone."""
    one, two = built(SMALL, 0, corpus), built(SMALL, 0, corpus)
    config = replace(TRAIN, epochs=1, order_seed=0)
    fit_together([one, two], corpus, config, seeds=[0, 1])
    assert not torch.allclose(one.head[0].weight, two.head[0].weight, atol=1e-6)


def test_what_cannot_be_stacked_is_refused_by_name(corpus):
    models = [built(SMALL, 0, corpus), built(replace(SMALL, heads=4), 0, corpus)]
    with pytest.raises(InputError, match="the same heads"):
        fit_together(models, corpus, TRAIN, seeds=[0, 1])
    with pytest.raises(InputError, match="one seed for each of 2 models, got 1"):
        fit_together(models, corpus, TRAIN, seeds=[0])
    for changed in ({"balanced": True}, {"max_batch_tokens": 100}, {"evaluate_at": (1,)}):
        with pytest.raises(InputError, match=next(iter(changed))):
            fit_together(models[:1], corpus, replace(TRAIN, **changed), seeds=[0])


def test_rows_that_fill_up_change_nothing(corpus, monkeypatch):
    """A batch of two and one of five side by side: the smaller one is padded with rows."""
    stack = together.TransformerStack([built(SMALL, 0, corpus), built(SMALL, 1, corpus)])
    task = together.TransformersTask(stack, corpus, TRAIN, (0, 1), torch.device("cpu"))
    rows = [np.array([3, 4]), np.array([5, 6, 7, 8, 9])]
    apart = list(task.parts(rows))
    assert [batch.models for batch in apart] == [(0,), (1,)]
    monkeypatch.setattr(together, "SLACK", 100)
    (both,) = task.parts(rows)
    assert both.models == (0, 1)
    assert both.share.sum(1).tolist() == [2, 5]
    assert both.sizes == tuple(size for batch in apart for size in batch.sizes)
    whole = stack.losses(stack.forward(both), both)
    for row, batch in enumerate(apart):
        one = stack.losses(stack.forward(batch), batch)
        torch.testing.assert_close(one[0], whole[row], rtol=1e-12, atol=0)
