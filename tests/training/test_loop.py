"""The loop: what it keeps, when it stops, and that a killed run ends with the same numbers."""

import json
import math
from dataclasses import replace
from pathlib import Path

import pytest
import torch

from heedful.corpora import EncodedCorpus, encode, planted
from heedful.errors import InputError
from heedful.models import AttentionClassifier, Penalties, build, parse
from heedful.training import Moment, TrainConfig, evaluate, fit
from heedful.training.evaluation import Metrics
from heedful.training.optimisers import optimiser_of


@pytest.fixture(scope="module")
def corpus() -> EncodedCorpus:
    return encode(planted(seed=3, sizes={"train": 120, "dev": 40, "test": 40}))


def fresh(corpus: EncodedCorpus, recipe: str = "bigru+additive", **sizes: object):
    sizes = {"embedding_dim": 8, "width": 8} | sizes
    return build(parse(recipe, **sizes).model, corpus.vocabulary, corpus.classes, seed=1)


class Killed(Exception):
    pass


def same_weights(first: AttentionClassifier, second: AttentionClassifier) -> bool:
    pairs = zip(first.state_dict().values(), second.state_dict().values(), strict=True)
    return all(torch.equal(a, b) for a, b in pairs)


@pytest.mark.slow
@pytest.mark.parametrize("optimiser", ["adam", "amsgrad", "adamw", "adagrad", "sgd"])
def test_a_run_killed_inside_an_epoch_ends_with_the_same_numbers(
    corpus: EncodedCorpus, tmp_path: Path, optimiser: str
) -> None:
    config = TrainConfig(
        epochs=3,
        batch_size=16,
        optimiser=optimiser,
        patience=0,
        halve_on_plateau=True,
        evaluate_at=(5, 12),
        checkpoint_seconds=0.0,
    )
    penalties = Penalties(tying=1.0)
    whole = fresh(corpus, dropout=0.3)
    expected = fit(whole, corpus, config, penalties, seed=7)

    def kill(moment: Moment) -> None:
        if moment.step == 12:
            raise Killed

    killed = fresh(corpus, dropout=0.3)
    with pytest.raises(Killed):
        fit(killed, corpus, config, penalties, seed=7, observers=[kill], folder=tmp_path)
    resumed = fresh(corpus, dropout=0.3)
    found = fit(resumed, corpus, config, penalties, seed=7, folder=tmp_path)
    assert same_weights(whole, resumed)
    assert found == expected
    lines = (tmp_path / "metrics.jsonl").read_text().splitlines()
    assert [json.loads(line)["step"] for line in lines] == [e["step"] for e in expected.entries]


def test_a_checkpoint_of_other_settings_is_refused(corpus: EncodedCorpus, tmp_path: Path) -> None:
    def kill(moment: Moment) -> None:
        if moment.epoch == 2:
            raise Killed

    with pytest.raises(Killed):
        fit(fresh(corpus), corpus, TrainConfig(epochs=3), observers=[kill], folder=tmp_path)
    with pytest.raises(InputError, match="other settings"):
        fit(fresh(corpus), corpus, TrainConfig(epochs=3, learning_rate=0.1), folder=tmp_path)
    (tmp_path / "checkpoint.safetensors").write_bytes(b"not a checkpoint")
    with pytest.raises(InputError, match="cannot be read"):
        fit(fresh(corpus), corpus, TrainConfig(epochs=3), folder=tmp_path)


@pytest.mark.slow
def test_the_kept_weights_are_those_of_the_best_dev_evaluation(corpus: EncodedCorpus) -> None:
    model = fresh(corpus)
    history = fit(model, corpus, TrainConfig(epochs=4, patience=0, learning_rate=0.03))
    accuracies = [entry["dev_accuracy"] for entry in history.entries]
    assert history.best == max(accuracies)
    assert evaluate(model, corpus.splits["dev"]).accuracy == max(accuracies)
    first_best = accuracies.index(max(accuracies))
    assert history.best_step == history.entries[first_best]["step"]


def test_training_stops_after_patience_and_halves_the_rate_on_each_plateau(
    corpus: EncodedCorpus,
) -> None:
    # A rate this small changes no decision, so no evaluation after the first one gains.
    config = TrainConfig(epochs=9, patience=2, learning_rate=1e-12, halve_on_plateau=True)
    history = fit(fresh(corpus), corpus, config)
    assert len(history.entries) == 3
    assert [e["learning_rate"] for e in history.entries] == [1e-12, 5e-13, 2.5e-13]


@pytest.mark.slow
@pytest.mark.parametrize("select", ["accuracy", "macro_f1", "f1", "loss"])
def test_selection_follows_the_named_metric(corpus: EncodedCorpus, select: str) -> None:
    model = fresh(corpus)
    history = fit(model, corpus, TrainConfig(epochs=2, select=select, learning_rate=0.01))
    values = {
        "accuracy": [e["dev_accuracy"] for e in history.entries],
        "macro_f1": [e["dev_macro_f1"] for e in history.entries],
        "f1": [e["dev_f1"][-1] for e in history.entries],
        "loss": [-e["dev_loss"] for e in history.entries],
    }[select]
    assert history.best == max(values)


@pytest.mark.slow
def test_a_seed_fixes_everything_and_the_global_generator_is_given_back(
    corpus: EncodedCorpus,
) -> None:
    config = TrainConfig(epochs=1)
    before = torch.get_rng_state()
    models = [fresh(corpus, dropout=0.5) for _ in range(3)]
    for model, seed in zip(models, (4, 4, 5), strict=True):
        fit(model, corpus, config, seed=seed)
    assert torch.equal(torch.get_rng_state(), before)
    assert same_weights(models[0], models[1])
    assert not same_weights(models[0], models[2])


def test_weight_decay_acts_where_it_is_told(corpus: EncodedCorpus) -> None:
    model = fresh(corpus)
    names = {id(parameter): name for name, parameter in model.named_parameters()}

    def decayed(decay: str) -> set[str]:
        groups = optimiser_of(model, TrainConfig(weight_decay=0.1, decay=decay)).param_groups
        return {names[id(p)] for g in groups if g["weight_decay"] for p in g["params"]}

    everything = set(names.values())
    attention = {name for name in everything if ".attention." in name}
    assert attention
    assert decayed("all") == everything
    assert decayed("all but attention") == everything - attention
    assert decayed("encoder") == {name for name in everything if ".encoder." in name}


def test_frozen_embeddings_do_not_move(corpus: EncodedCorpus) -> None:
    model = fresh(corpus, freeze_embeddings=True)
    before = model.embedding.weight.detach().clone()
    fit(model, corpus, TrainConfig(epochs=1, learning_rate=0.1))
    assert torch.equal(model.embedding.weight, before)


def test_divergence_is_told_in_a_sentence(corpus: EncodedCorpus) -> None:
    model = fresh(corpus)
    with torch.no_grad():
        model.head.weight.fill_(math.nan)
    with pytest.raises(InputError, match="diverged"):
        fit(model, corpus, TrainConfig(epochs=1))


def test_a_corpus_without_dev_documents_is_refused(corpus: EncodedCorpus) -> None:
    bare = EncodedCorpus(
        "bare", corpus.classes, corpus.vocabulary, {"train": corpus.splits["train"]}, "x", {}
    )
    with pytest.raises(InputError, match="needs dev documents"):
        fit(fresh(corpus), bare)


@pytest.mark.parametrize(
    ("field", "value"),
    [("optimiser", "adamm"), ("epochs", 0), ("learning_rate", 0.0), ("select", "bleu")],
)
def test_settings_out_of_range_are_refused(field: str, value: object) -> None:
    with pytest.raises(InputError):
        TrainConfig(**{field: value})


def test_metrics_equal_a_loop_over_single_documents(corpus: EncodedCorpus) -> None:
    model = fresh(corpus).double()
    split = corpus.splits["test"]
    found = evaluate(model, split, batch_size=7)
    alone = evaluate(model, split, batch_size=1)
    assert found.loss == pytest.approx(alone.loss, abs=1e-12)
    assert replace(found, loss=0.0) == replace(alone, loss=0.0)


def test_an_undefined_score_is_the_worst_to_select_by() -> None:
    none = Metrics(loss=0.1, accuracy=0.9, macro_f1=math.nan, f1=(0.9, math.nan))
    assert [none.chosen(s) for s in ("f1", "macro_f1", "accuracy", "loss")] == [0, 0, 0.9, -0.1]
