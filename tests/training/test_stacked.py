"""Models trained in a stack end with the weights they would have had alone."""

from dataclasses import replace

import numpy as np
import pytest
import torch
from torch import nn

from heedful.corpora import EncodedCorpus, encode, planted
from heedful.corpora.batches import Batch, collate
from heedful.errors import InputError
from heedful.models import AttentionClassifier, Penalties, build, parse, read
from heedful.models.classifier_stack import ClassifierStack
from heedful.statistics.divergence import entropy
from heedful.training import TrainConfig, evaluate, fit
from heedful.training.loop import Moment
from heedful.training.optimisers import optimiser_for
from heedful.training.stacked import WordRows, evaluate_stack, fit_stacked, keeps_other_rows

CONFIG = TrainConfig(
    epochs=2, batch_size=20, optimiser="adagrad", learning_rate=0.05, rate_decay=1e-3,
    clip_norm=0.0, patience=0, order_seed=7,
)  # fmt: skip


@pytest.fixture(scope="module")
def corpus() -> EncodedCorpus:
    """Two hundred short reviews: ten steps an epoch."""
    return encode(planted(2, "short", sizes={"train": 200, "dev": 40, "test": 40}))


def member(corpus: EncodedCorpus, recipe: str, seed: int, **sizes: object) -> AttentionClassifier:
    """A model in float64 with both dropouts."""
    settings = {"embedding_dim": 8, "width": 6, "attention_dim": 5, "dropout": 0.5}
    settings |= {"head_dropout": 0.25, "one_logit": True, "embedding_start": 0.1} | sizes
    config = parse(recipe, **settings).model
    return build(config, corpus.vocabulary, corpus.classes, seed).double()


def difference(one: AttentionClassifier, two: AttentionClassifier) -> float:
    return max(
        float((a - b).abs().max()) for a, b in zip(one.parameters(), two.parameters(), strict=True)
    )


@pytest.mark.slow
@pytest.mark.parametrize(
    ("recipe", "config", "sizes"),
    [
        ("none+scaled-dot", CONFIG, {}),
        ("none+additive", replace(CONFIG, decay="additive map", weight_decay=0.01), {}),
        ("affine+scaled-dot", replace(CONFIG, decay="encoder", weight_decay=0.01), {}),
        ("bilstm+scaled-dot", replace(CONFIG, clip_norm=0.1), {"start": "orthogonal cells"}),
        ("lstm+additive", replace(CONFIG, optimiser="adam", rate_decay=0.0, clip_value=1e-3), {}),
        ("affine-tanh+uniform", replace(CONFIG, optimiser="sgd", rate_decay=0.0), {}),
    ],
)
def test_each_model_ends_as_it_would_alone(
    corpus: EncodedCorpus, recipe: str, config: TrainConfig, sizes: dict[str, object]
) -> None:
    scales = {"uniform": [""]}.get(recipe.split("+")[1], ["@0.5", "@10"])
    cases = [(f"{recipe}{scale}", seed) for seed in (3, 4) for scale in scales]
    stacked = [member(corpus, name, seed, **sizes) for name, seed in cases]
    histories = fit_stacked(stacked, corpus, config, seeds=[seed for _, seed in cases])
    for (name, seed), model, history in zip(cases, stacked, histories, strict=True):
        alone = member(corpus, name, seed, **sizes)
        start = member(corpus, name, seed, **sizes)
        expected = fit(alone, corpus, config, seed=seed)
        assert difference(model, alone) < 1e-9
        assert difference(model, start) > 1e-4
        assert history.best == expected.best
        assert history.best_step == expected.best_step
        for ours, theirs in zip(history.entries, expected.entries, strict=True):
            assert ours["loss"] == pytest.approx(theirs["loss"], rel=1e-9)
            assert ours["dev_loss"] == pytest.approx(theirs["dev_loss"], rel=1e-9)


@pytest.mark.parametrize("recipe", ["none+scaled-dot", "bilstm+scaled-dot"])
def test_a_seed_has_an_order_of_its_own_that_all_its_models_share(
    corpus: EncodedCorpus, recipe: str
) -> None:
    config = replace(CONFIG, order_seed=None)
    last = {}
    for seed in (3, 4):
        stacked = [member(corpus, f"{recipe}@{scale}", seed) for scale in (0.5, 10)]
        fit_stacked(stacked, corpus, config, seeds=[seed, seed])
        for scale, model in zip((0.5, 10), stacked, strict=True):
            alone = member(corpus, f"{recipe}@{scale}", seed)
            fit(alone, corpus, config, seed=seed)
            assert difference(model, alone) < 1e-9
        last[seed] = stacked[0]
    shared = member(corpus, f"{recipe}@0.5", 4)
    fit(shared, corpus, replace(CONFIG, order_seed=3), seed=4)
    assert difference(last[4], shared) > 1e-4  # the order of another seed is another training


@pytest.mark.parametrize("recipe", ["none+scaled-dot@5", "affine+scaled-dot@5"])
def test_penalties_may_differ_within_a_stack(corpus: EncodedCorpus, recipe: str) -> None:
    strengths = (0.0, 0.3)
    models = [member(corpus, recipe, 1) for _ in strengths]
    penalties = [Penalties(alignment=strength) for strength in strengths]
    fit_stacked(models, corpus, CONFIG, penalties, seeds=[1, 1])
    for model, penalty in zip(models, penalties, strict=True):
        alone = member(corpus, recipe, 1)
        fit(alone, corpus, CONFIG, penalty, seed=1)
        assert difference(model, alone) < 1e-9
    assert difference(models[0], models[1]) > 1e-4


def test_a_model_that_stops_early_keeps_what_it_had(corpus: EncodedCorpus) -> None:
    config = replace(CONFIG, epochs=6, patience=1, optimiser="sgd", rate_decay=0.0)
    config = replace(config, learning_rate=2.0)
    models = [member(corpus, "none+scaled-dot@5", seed) for seed in (0, 1)]
    histories = fit_stacked(models, corpus, config, seeds=[0, 1])
    for seed, (model, history) in enumerate(zip(models, histories, strict=True)):
        alone = member(corpus, "none+scaled-dot@5", seed)
        expected = fit(alone, corpus, config, seed=seed)
        assert len(history.entries) == len(expected.entries)
        assert difference(model, alone) < 1e-9


def test_observers_see_the_models_learn(corpus: EncodedCorpus) -> None:
    seen: list[tuple[int, float]] = []

    def observe(moment: Moment) -> None:
        model = moment.model.models[1]
        seen.append((moment.step, evaluate(model, corpus.splits["dev"]).loss))

    models = [member(corpus, "none+scaled-dot@5", seed) for seed in (0, 1)]
    config = replace(CONFIG, evaluate_at=(3,))
    histories = fit_stacked(models, corpus, config, seeds=[0, 1], observers=[observe])
    assert [step for step, _ in seen] == [3, 10, 20]
    for (_, loss), entry in zip(seen, histories[1].entries, strict=True):
        assert loss == pytest.approx(entry["dev_loss"], rel=1e-9)
    # Afterwards they share nothing.
    pointers = {p.untyped_storage().data_ptr() for m in models for p in m.parameters()}
    assert len(pointers) == sum(len(list(m.parameters())) for m in models)


def test_a_stack_reads_as_its_models_do(corpus: EncodedCorpus) -> None:
    for recipe in ("bilstm+additive@2", "none+additive-relu@2", "none+scaled-dot@3"):
        models = [member(corpus, recipe, seed, one_logit=False) for seed in (0, 1)]
        found = evaluate_stack(ClassifierStack(models, "cpu"), corpus.splits["test"])
        for model, metrics in zip(models, found, strict=True):
            expected = evaluate(model, corpus.splits["test"])
            assert metrics.accuracy == expected.accuracy
            assert metrics.loss == pytest.approx(expected.loss, rel=1e-9)
            evenness = []
            for document in range(len(corpus.splits["test"])):
                read_alone = read(model, collate(corpus.splits["test"], [document]))
                evenness.append(entropy(read_alone.attention, read_alone.mask))
            assert metrics.entropy == pytest.approx(float(torch.cat(evenness).mean()), rel=1e-9)


def test_what_cannot_be_stacked_is_said(corpus: EncodedCorpus) -> None:
    dot = member(corpus, "none+scaled-dot@1", 0)
    with pytest.raises(InputError, match="cannot be stacked"):
        ClassifierStack([member(corpus, "bigru+dot", 0)], "cpu")
    with pytest.raises(InputError, match="the same encoder"):
        ClassifierStack([dot, member(corpus, "affine+scaled-dot@1", 0)], "cpu")
    with pytest.raises(InputError, match="order_seed"):
        fit_stacked([dot, dot], corpus, replace(CONFIG, order_seed=None), seeds=[0, 1])
    with pytest.raises(InputError, match="one by one"):
        fit_stacked([dot], corpus, replace(CONFIG, balanced=True), seeds=[0])
    with pytest.raises(InputError, match="only V·W"):
        fit_stacked([dot], corpus, CONFIG, Penalties(tying=1), seeds=[0])
    with pytest.raises(InputError, match="one seed"):
        fit_stacked([dot], corpus, CONFIG, seeds=[0, 1])
    with pytest.raises(InputError, match="at least one"):
        ClassifierStack([], "cpu")


MODELS, WORDS, DIM = 3, 20, 4


def batch_of(generator: np.random.Generator) -> Batch:
    ids = torch.from_numpy(
        generator.integers(0, WORDS // 2, (5, 6))
    )  # half the words are never read
    plain = torch.zeros(5, dtype=torch.long)
    return Batch(ids, torch.ones_like(ids, dtype=torch.bool), plain, ids * 0, tuple("abcde"))


@pytest.mark.parametrize(
    "config",
    [
        TrainConfig(optimiser="adagrad", learning_rate=0.1, rate_decay=0.3),
        TrainConfig(optimiser="sgd", learning_rate=0.2),
        TrainConfig(optimiser="adagrad", learning_rate=0.1, weight_decay=0.1, decay="encoder"),
    ],
)
def test_rows_end_where_the_whole_table_ends(config: TrainConfig) -> None:
    assert keeps_other_rows(config)
    start = torch.randn(MODELS, WORDS, DIM, dtype=torch.float64)
    whole, table = nn.Parameter(start.clone()), nn.Parameter(start.clone())
    optimiser, rows = optimiser_for([("embedding.weight", whole)], config), WordRows(table, config)
    generator = np.random.default_rng(0)
    aims = torch.randn(MODELS, 5, 6, DIM, dtype=torch.float64)
    for _ in range(6):
        batch = batch_of(generator)
        optimiser.zero_grad()
        (whole[:, batch.ids] - aims).square().sum().backward()
        optimiser.step()
        lent = rows.lend(batch)
        assert torch.equal(rows.rows[:, lent.ids], table[:, batch.ids])
        (rows.rows[:, lent.ids] - aims).square().sum().backward()
        rows.update()
        torch.testing.assert_close(table, whole, rtol=0, atol=1e-13)
    assert torch.equal(table[:, WORDS // 2 :], start[:, WORDS // 2 :])
    assert float((table - start).detach()[:, : WORDS // 2].abs().min()) > 0


@pytest.mark.parametrize(
    "config",
    [
        TrainConfig(optimiser="adam"),  # it moves words that were not read, too
        TrainConfig(optimiser="sgd", weight_decay=0.1),
        TrainConfig(optimiser="adagrad", weight_decay=0.1, decay="all but attention"),
    ],
)
def test_where_unread_words_move_the_whole_table_is_needed(config: TrainConfig) -> None:
    assert not keeps_other_rows(config)


def test_without_a_gradient_nothing_moves() -> None:
    table = nn.Parameter(torch.randn(MODELS, WORDS, DIM))
    before = table.detach().clone()
    rows = WordRows(table, TrainConfig(optimiser="sgd"))
    rows.lend(batch_of(np.random.default_rng(1)))
    rows.update()
    assert torch.equal(table, before)
