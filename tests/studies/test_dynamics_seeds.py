"""Many seeds as one stacked model: each ends as it would alone; good and bad heads; keywords."""

from dataclasses import replace

import numpy as np
import pytest
import torch
from torch.nn import functional

from benchmarks.seeds_gpu import fit_alone
from heedful.corpora.batches import Batch
from heedful.corpora.pairs import of_task
from heedful.corpora.tasks import Copying, Keyword
from heedful.corpora.vocabulary import SPECIALS
from heedful.errors import InputError
from heedful.models.likelihoods import attended
from heedful.models.translator import (
    TranslatorConfig,
    build_translator,
    code_copying_config,
    copying_config,
)
from heedful.models.translator_stack import TranslatorStack
from heedful.studies.dynamics.heads import (
    Search,
    drawn_sets,
    head_of,
    search_heads,
    train_heads,
    with_heads,
)
from heedful.studies.dynamics.keyword import KeywordConfig, fit_keyword, keyword_classifier
from heedful.studies.dynamics.seeds import SeedCurves, SeedsConfig, fit_seeds

TASK = Copying(9, 6, is_reordered=True)
TRAIN = SeedsConfig(steps=20, batch_size=8, every=10, samples=8)
FORMS = {
    "lstm": copying_config(9, 8),
    "sum of heads": copying_config(9, 8, 3),
    "gru": code_copying_config(9, 8),
    "mean of gru heads": code_copying_config(9, 8, 3),
    "mean of shared heads": replace(copying_config(9, 8, 2), joined="mean"),
    "uniform": replace(copying_config(9, 8, 2), attention="uniform"),
    "uniform gru heads": replace(code_copying_config(9, 8, 2), attention="uniform"),
    "linear": replace(copying_config(9, 8), output="linear"),
    "relu": replace(copying_config(9, 8), output="relu"),
}


@pytest.mark.slow
@pytest.mark.parametrize("name", list(FORMS))
def test_each_seed_ends_as_it_would_alone(name: str) -> None:
    config = FORMS[name]
    stack = TranslatorStack([build_translator(config, seed).double() for seed in (3, 4, 5)])
    start = {n: w.detach().clone() for n, w in stack.weights.items()}
    fit_seeds(stack, TASK, TRAIN, seeds=(3, 4, 5))
    moved = float((stack.weights["words.weight"] - start["words.weight"]).detach().abs().max())
    assert moved > 1e-3
    for row, seed in enumerate((3, 4, 5)):
        alone = build_translator(config, seed).double()
        fit_alone(alone, TASK, TRAIN, seed=seed)
        for weight_name, weight in alone.named_parameters():
            stacked = stack.weights[weight_name][row]
            assert float((weight - stacked).detach().abs().max()) < 1e-9, weight_name
    back = [build_translator(config) for _ in range(3)]
    stack.write(model.double() for model in back)
    assert torch.equal(back[1].words.weight, stack.weights["words.weight"][1])


@pytest.mark.parametrize("name", ["lstm", "sum of heads", "mean of gru heads", "linear"])
def test_the_probe_of_a_stack_is_the_probe_of_each_model(name: str) -> None:
    models = [build_translator(FORMS[name], seed).double() for seed in (0, 1)]
    drawn = TASK.sample(TASK.keys((0, 1), 0), 5, TASK.orders((0, 1)))
    found = TranslatorStack(models).probe(drawn)
    for row, model in enumerate(models):
        torch.testing.assert_close(found[row], attended(model, of_task(drawn, row)).probe)


def test_evaluations_are_before_the_step_they_are_named_by() -> None:
    stack = TranslatorStack([build_translator(copying_config(9, 8), 0)])
    model = build_translator(copying_config(9, 8), 0)
    curves = fit_seeds(stack, TASK, TRAIN, seeds=(0,))
    assert curves.steps.tolist() == [0, 10, 20]
    drawn = TASK.sample(TASK.keys((0,), 0, "evaluate"), 8, TASK.orders((0,)))
    right = (model(of_task(drawn)).logits.argmax(-1) == drawn.target[0]).double().mean()
    assert curves.accuracy[0, 0] == pytest.approx(float(right))
    assert curves.loss[0, -1] < curves.loss[0, 0]


def test_a_task_that_is_not_learnt_is_reported_as_such() -> None:
    curves = SeedCurves(
        np.array([0, 10, 20]), np.array([[0.1, 0.96, 0.5], [0.1, 0.2, 0.3]]),
        np.ones((2, 3)), np.ones((2, 3, 3)),
    )  # fmt: skip
    assert curves.reached().tolist() == [10, np.inf]
    assert curves.last().tolist() == [0.5, 0.3]


@pytest.mark.slow
def test_copying_with_more_words_than_places_is_learnt_sooner() -> None:
    accuracy = []
    for symbols in (8, 12):
        models = [build_translator(copying_config(symbols, 24), seed) for seed in range(3)]
        config = SeedsConfig(steps=60, batch_size=32, learning_rate=1e-2, every=20, samples=40)
        curves = fit_seeds(TranslatorStack(models), Copying(symbols, 8), config, seeds=range(3))
        accuracy.append(curves.accuracy[:, -1].mean())
    assert accuracy[1] > accuracy[0] > Copying(8, 8).chance


def test_unfit_stacks_are_refused() -> None:
    one = build_translator(copying_config(9, 8))
    with pytest.raises(InputError, match="same configuration"):
        TranslatorStack([one, build_translator(copying_config(9, 4))])
    with pytest.raises(InputError, match="one layer"):
        TranslatorStack([build_translator(TranslatorConfig(9, 4, 4))])
    with pytest.raises(InputError, match="one data seed"):
        fit_seeds(TranslatorStack([one]), TASK, TRAIN, seeds=(0, 1))
    with pytest.raises(InputError, match="the models read 11"):
        fit_seeds(TranslatorStack([one]), Copying(5, 5), TRAIN, seeds=(0,))
    with pytest.raises(InputError, match="at least one"):
        TranslatorStack([])


@pytest.mark.parametrize("config", [copying_config(6, 8), code_copying_config(6, 8)])
def test_heads_are_put_on_one_base(config: TranslatorConfig) -> None:
    base = build_translator(config, 1).state_dict()
    model = with_heads(config, 1, (5, 2))
    for name, weight in model.state_dict().items():
        is_head = name.startswith("query") or (
            name.startswith("project") and config.has_own_projections
        )
        if is_head:
            expected = torch.cat([head_of(config, 1, head)[name] for head in (5, 2)])
            assert torch.equal(weight, expected)
            assert not torch.equal(head_of(config, 1, 5)[name], base[name])
        else:
            assert torch.equal(weight, base[name])


@pytest.mark.slow
def test_a_search_keeps_heads_that_agree_in_all_three_trainings() -> None:
    task, config = Copying(4, 4), code_copying_config(4, 12)
    training = SeedsConfig(40, 16, 1e-2, 10, 30, "fixed")
    asked = Search(wanted=3, most=10, block=5, failed_below=0.95)
    found = search_heads(config, 0, task, training, asked)
    assert len(found.reached) == found.tried in (5, 10)
    assert found.good or found.bad
    at_once = search_heads(config, 0, task, training, replace(asked, is_at_once=True))
    assert (found.good, found.bad, found.reached) == (at_once.good, at_once.bad, at_once.reached)
    for kind, heads in ((True, found.good[:1]), (False, found.bad[:1])):
        for data_seed in range(3) if heads else ():
            curves = train_heads(config, 0, [heads], task, training, data_seeds=data_seed)
            assert bool(np.isfinite(curves.reached()[0])) is kind
    assert found.seconds > 0


def test_sets_of_heads_are_keyed_and_hold_each_head_once() -> None:
    sets = drawn_sets([(range(10), 3), ((77,), 1)], 5, "one good")
    assert sets == drawn_sets([(range(10), 3), ((77,), 1)], 5, "one good")
    for heads in sets:
        assert len(set(heads)) == 4
        assert heads[-1] == 77
    assert len(set(sets)) > 1


def test_keyword_classifiers_end_as_they_would_alone() -> None:
    config = KeywordConfig(Keyword(5, 6), width=6, steps=20, batch_size=10, samples=20)
    stacked = [keyword_classifier(config, seed).double() for seed in (0, 1)]
    curves = fit_keyword(stacked, config, seeds=(0, 1))
    assert curves.gamma.shape == (2, 11, 4)
    alone = keyword_classifier(config, 1).double()
    optimiser = torch.optim.Adam(alone.parameters(), config.learning_rate)
    for step in range(config.steps):
        drawn = config.task.sample(config.task.keys((1,), step), config.batch_size)
        ids, labels = drawn.ids[0] + len(SPECIALS), drawn.labels[0]
        mask = torch.ones_like(ids, dtype=torch.bool)
        batch = Batch(ids, mask, labels, torch.zeros_like(ids), tuple(map(str, range(len(ids)))))
        odds = alone(batch).logits[:, 1]
        optimiser.zero_grad()
        functional.binary_cross_entropy_with_logits(odds, labels.double()).backward()
        optimiser.step()
    for one, two in zip(stacked[1].parameters(), alone.parameters(), strict=True):
        assert float((one - two).detach().abs().max()) < 1e-9


@pytest.mark.slow
def test_the_keyword_s_own_state_speaks_first() -> None:
    config = KeywordConfig(Keyword(12, 12), 32, 30, 48, 5e-3, 10, 200)
    models = [keyword_classifier(config, seed) for seed in range(3)]
    curves = fit_keyword(models, config, seeds=range(3))
    own, following, mean, _ = curves.gamma[:, 1].mean(0)
    assert own > following > mean
    assert curves.accuracy[:, -1].mean() > curves.accuracy[:, 0].mean()
