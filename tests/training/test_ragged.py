"""Classifiers trained side by side without padding end as each would alone."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from heedful.corpora import EncodedCorpus, encode, planted
from heedful.corpora.batches import groups, ranked_groups
from heedful.errors import InputError
from heedful.models import AttentionClassifier, build, parse
from heedful.models.ragged_stack import RaggedStack, ResidentSentences
from heedful.training import TrainConfig, fit
from heedful.training.checkpoints import CHECKPOINT
from heedful.training.evaluation import evaluate
from heedful.training.loop import History
from heedful.training.ragged import (
    RaggedTask,
    attentive_metrics,
    fit_ragged,
    mean_logits,
    shared_batches,
)

RECIPES = tuple(
    family + encoder + "+additive"
    for family in ("", "han:")
    for encoder in ("none", "conv", "bigru", "gru")
)
SEEDS = (3, 8, 5)
CONFIG = TrainConfig(
    epochs=9, batch_size=16, max_batch_tokens=700, learning_rate=2e-2, clip_norm=1.0,
    halve_on_plateau=True, halve_after=2, patience=4, length_seed=0,
)  # fmt: skip


@pytest.fixture(scope="module")
def corpus() -> EncodedCorpus:
    return encode(planted(3, "long", sizes={"train": 70, "dev": 24, "test": 9}))


def member(corpus: EncodedCorpus, recipe: str, seed: int, **settings: Any) -> AttentionClassifier:
    sizes: dict[str, Any] = {"embedding_dim": 6, "width": 8, "attention_dim": 5}
    config = parse(recipe, **(sizes | settings)).model
    return build(config, corpus.vocabulary, corpus.classes, seed).double()


def trained(
    corpus: EncodedCorpus, recipe: str, config: TrainConfig, folder: Path | None = None
) -> tuple[list[AttentionClassifier], list[History]]:
    models = [member(corpus, recipe, seed) for seed in SEEDS]
    return models, fit_ragged(models, corpus, config, seeds=SEEDS, folder=folder)


def difference(one: AttentionClassifier, two: AttentionClassifier) -> float:
    pairs = zip(one.parameters(), two.parameters(), strict=True)
    return max(float((a - b).detach().abs().max()) for a, b in pairs)


@pytest.mark.parametrize("recipe", RECIPES)
def test_each_ends_as_it_would_alone(corpus: EncodedCorpus, recipe: str) -> None:
    together, histories = trained(corpus, recipe, CONFIG)
    for seed, model, history in zip(SEEDS, together, histories, strict=True):
        alone = member(corpus, recipe, seed)
        own = fit(alone, corpus, CONFIG, seed=seed)
        assert difference(model, alone) < 1e-9
        assert history.best_step == own.best_step
        assert len(history.entries) == len(own.entries)  # it ended at the same epoch
        for ours, theirs in zip(history.entries, own.entries, strict=True):
            assert ours["learning_rate"] == theirs["learning_rate"]
            assert ours["dev_accuracy"] == theirs["dev_accuracy"]
            assert ours["loss"] == pytest.approx(theirs["loss"], abs=1e-9)


def test_models_keep_rates_and_ends_of_their_own(corpus: EncodedCorpus) -> None:
    _, histories = trained(corpus, "none+additive", replace(CONFIG, epochs=14, halve_after=1))
    paths = [[entry["learning_rate"] for entry in one.entries] for one in histories]
    assert len({tuple(path) for path in paths}) > 1
    assert len({len(path) for path in paths}) > 1
    for path in paths:
        assert set(np.log2(CONFIG.learning_rate / np.array(path)) % 1) == {0.0}


@pytest.mark.parametrize("recipe", ["conv+additive", "han:bigru+additive"])
def test_dev_is_judged_as_by_evaluate(corpus: EncodedCorpus, recipe: str) -> None:
    models = [member(corpus, recipe, seed) for seed in SEEDS]
    stack = RaggedStack(models, "cpu")
    found = attentive_metrics(stack, shared_batches(stack, corpus.splits["dev"]))
    stack.release()
    for model, metrics in zip(models, found, strict=True):
        alone = evaluate(model, corpus.splits["dev"])
        assert metrics.accuracy == alone.accuracy
        assert metrics.loss == pytest.approx(alone.loss, abs=1e-9)
        reading = model.read(_batch(corpus))
        attention, units = reading.attention.detach(), reading.mask.sum(-1)
        spread = torch.special.entr(attention).sum(-1) / units.double().log()
        assert metrics.entropy == pytest.approx(float(spread[units > 1].mean()), abs=1e-9)


def test_mean_logits_are_those_of_the_mean_context(corpus: EncodedCorpus) -> None:
    model = member(corpus, "han:conv+additive", 1)
    found = mean_logits([model], corpus.splits["dev"])
    context = model(_batch(corpus)).attended.context.mean(0)
    assert np.allclose(found[0], model.head(context).detach().numpy(), atol=1e-9)


def _batch(corpus: EncodedCorpus) -> Any:
    from heedful.corpora.batches import collate

    return collate(corpus.splits["dev"], range(len(corpus.splits["dev"])))


def test_what_dropout_leaves_out_is_made_up_for(corpus: EncodedCorpus) -> None:
    drops = {"dropout": 0.5, "head_dropout": 0.25, "head_dropout_on": "logits"}
    models = [member(corpus, "none+additive", 0, **drops) for _ in range(400)]
    stack = RaggedStack(models, "cpu")
    documents = ResidentSentences.of(corpus.splits["dev"], "cpu")
    rows = np.arange(3)[None].repeat(400, 0)
    sizes = documents.sizes(rows, np.array([0]))[0]
    batch = documents.batch(torch.from_numpy(rows), sizes, False)
    for weight in (stack.weights["level.attention.query.weight"],):
        weight.data.zero_()  # uniform attention: the expectation is the value without dropout
    plain = stack.run(batch).logits[0]
    drawn = stack.run(batch, torch.Generator().manual_seed(0)).logits
    assert 0.2 < float((drawn == 0).double().mean()) < 0.3
    error = drawn.std(0) / 20
    assert bool(((drawn.mean(0) - plain).abs() < 5 * error + 1e-9).all())


def test_a_kill_costs_nothing(
    corpus: EncodedCorpus, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    whole, _ = trained(corpus, "han:conv+additive", CONFIG)
    learn, taken = RaggedTask.learn, []

    def killed(self: RaggedTask, *given: Any) -> Any:
        taken.append(1)
        if len(taken) == 13:
            raise KeyboardInterrupt
        return learn(self, *given)

    monkeypatch.setattr(RaggedTask, "learn", killed)
    config = replace(CONFIG, checkpoint_seconds=1e-9)
    with pytest.raises(KeyboardInterrupt):
        trained(corpus, "han:conv+additive", config, tmp_path)
    assert (tmp_path / CHECKPOINT).is_file()
    monkeypatch.undo()
    again, _ = trained(corpus, "han:conv+additive", config, tmp_path)
    assert max(difference(*pair) for pair in zip(whole, again, strict=True)) == 0


def test_batches_of_one_rank_have_one_size_and_other_documents(corpus: EncodedCorpus) -> None:
    train = corpus.splits["train"]

    def cut(seed: int) -> list[Any]:
        draw, order = np.random.default_rng(seed), np.random.default_rng(9)
        return ranked_groups(train, 16, draw, order, 700)

    one, two = cut(0), cut(1)
    assert [len(group) for group in one] == [len(group) for group in two]
    assert sorted(np.concatenate(one)) == list(range(len(train)))
    assert any(set(a) != set(b) for a, b in zip(one, two, strict=True))
    plain = groups(train, 16, None, 700)
    assert sorted(map(len, one)) == sorted(map(len, plain))


def test_what_cannot_be_trained_so_is_refused(corpus: EncodedCorpus) -> None:
    with pytest.raises(InputError, match="length_seed"):
        trained(corpus, "none+additive", replace(CONFIG, length_seed=None))
    with pytest.raises(InputError, match="optimiser cannot be stacked"):
        trained(corpus, "none+additive", replace(CONFIG, optimiser="sgd"))
    with pytest.raises(InputError, match="cannot be stacked without padding"):
        trained(corpus, "bilstm+additive", CONFIG)
