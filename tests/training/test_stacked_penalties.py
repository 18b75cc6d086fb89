"""Models with joins, marks, layers and penalties trained in a stack are those trained alone."""

from dataclasses import replace

import pytest
import torch

from heedful.corpora import EncodedCorpus, encode, planted
from heedful.corpora.batches import collate
from heedful.errors import InputError
from heedful.models import Penalties, build, parse
from heedful.models.classifier_stack import ClassifierStack
from heedful.runs.randomness import seeded
from heedful.studies.faithful.drift import Drift
from heedful.training import TrainConfig, fit, objectives
from heedful.training.stacked import StackedTask, fit_stacked
from tests.tiny import DIM, WORDS, batch_of

CONFIG = TrainConfig(
    epochs=2, learning_rate=1e-2, batch_size=16, optimiser="amsgrad", weight_decay=1e-5,
    decay="all but attention", patience=0, select="f1", order_seed=5,
)  # fmt: skip


@pytest.fixture(scope="module")
def corpus() -> EncodedCorpus:
    return encode(planted(2, "short", 6, {"train": 60, "dev": 24, "test": 20}))


def fresh(corpus: EncodedCorpus, recipe: str, seed: int = 0, **settings: object):
    sizes = {"embedding_dim": 6, "width": 6, "marks": True, "one_logit": True} | settings
    config = parse(recipe, **sizes).model
    return build(config, corpus.vocabulary, corpus.classes, seed).double()


SHAPES = [
    ("bilstm+additive", {}),
    ("bilstm+scaled-dot+concat", {}),
    ("bilstm*2+additive+residual", {}),
]


@pytest.mark.slow
@pytest.mark.parametrize(("recipe", "settings"), SHAPES)
def test_stacked_training_is_training_alone(
    corpus: EncodedCorpus, recipe: str, settings: dict[str, object]
) -> None:
    strengths = (0.0, 3.0) if "concat" not in recipe else (0.0, 0.0)
    seeds = (0, 1)
    together = [fresh(corpus, recipe, seed, **settings) for seed in seeds]
    penalties = [Penalties(tying=strength) for strength in strengths]
    drifts = Drift()
    fit_stacked(together, corpus, CONFIG, penalties, seeds=seeds, observers=[drifts])
    for model, seed, penalty, drift in zip(together, seeds, penalties, drifts.entries, strict=True):
        alone, observer = fresh(corpus, recipe, seed, **settings), Drift()
        fit(alone, corpus, CONFIG, penalty, seed=seed, observers=[observer])
        for (name, ours), theirs in zip(model.named_parameters(), alone.parameters(), strict=True):
            torch.testing.assert_close(ours, theirs, rtol=1e-6, atol=1e-8, msg=name)
        assert drift[-1]["embedding"] == pytest.approx(observer.entries[0][-1]["embedding"])
        assert drift[-1]["apart"] == pytest.approx(observer.entries[0][-1]["apart"], nan_ok=True)


@pytest.mark.slow
@pytest.mark.parametrize(("recipe", "settings"), SHAPES)
def test_every_seed_reads_in_its_own_order_as_it_would_alone(
    corpus: EncodedCorpus, recipe: str, settings: dict[str, object]
) -> None:
    config = replace(CONFIG, order_seed=None, length_seed=4)
    strengths = (0.0, 3.0, 3.0) if "concat" not in recipe else (0.0, 0.0, 0.0)
    seeds = (0, 1, 0)
    together = [fresh(corpus, recipe, seed, **settings) for seed in seeds]
    penalties = [Penalties(tying=strength) for strength in strengths]
    found = fit_stacked(together, corpus, config, penalties, seeds=seeds)
    for model, seed, penalty, history in zip(together, seeds, penalties, found, strict=True):
        alone = fresh(corpus, recipe, seed, **settings)
        expected = fit(alone, corpus, config, penalty, seed=seed)
        for (name, ours), theirs in zip(model.named_parameters(), alone.parameters(), strict=True):
            torch.testing.assert_close(ours, theirs, rtol=1e-6, atol=1e-8, msg=name)
        assert history.entries[-1]["loss"] == pytest.approx(expected.entries[-1]["loss"])
    shared = fresh(corpus, recipe, 1, **settings)
    fit(shared, corpus, replace(config, order_seed=0), penalties[1], seed=1)
    ours, theirs = together[1].head.weight, shared.head.weight
    assert float((ours - theirs).detach().abs().max()) > 1e-4  # another order, another training


@pytest.mark.parametrize("over", ["documents", "words"])
def test_words_hidden_from_each_seed_cost_its_models_what_they_cost_alone(
    corpus: EncodedCorpus, over: str
) -> None:
    config = parse("bilstm+additive+mlm:1", embedding_dim=6, width=6, marks=True).model
    seeds, words = (0, 1, 1), corpus.vocabulary
    models = [build(config, words, corpus.classes, 5 + row).double() for row in range(3)]
    penalties = [Penalties(masked_words=e, masked_over=over) for e in (0.5, 2.0, 1.0)]
    own = replace(CONFIG, order_seed=None, length_seed=4, batch_size=10)
    task = StackedTask(ClassifierStack(models, "cpu"), corpus, own, penalties, seeds, "cpu")
    _, (rows, longest) = next(iter(task.batches(0)))
    batch = task.documents.batch(torch.from_numpy(rows), longest)
    assert batch.ids.shape[:2] == (2, 10)
    assert not torch.equal(batch.ids[0], batch.ids[1])
    with seeded(3):
        seen = task.seen(batch)
    seen.added.sum().backward()
    with seeded(3):
        corrupted, chosen = objectives.corrupt(batch.ids, batch.mask, len(words))
    assert chosen[0].sum() != chosen[1].sum()  # some places are left over in one of them
    for row, seed in enumerate(seeds):
        alone = build(config, words, corpus.classes, 5 + row).double()
        given = collate(corpus.splits["train"], rows[seed])
        width = given.ids.shape[1]
        hidden = replace(given, ids=corrupted[seed][:, :width])
        states = alone(hidden).word_states
        missed = objectives.guesses(alone, states, given.ids, chosen[seed][:, :width], over)
        expected = penalties[row].masked_words * missed
        assert float(seen.added[row].detach()) == pytest.approx(float(expected.detach()), rel=1e-9)
        expected.backward()
        for name, weight in alone.named_parameters():
            if weight.grad is not None:
                torch.testing.assert_close(task.model.weights[name].grad[row], weight.grad)


@pytest.mark.parametrize("over", ["documents", "words"])
def test_masked_words_add_what_one_model_adds(corpus: EncodedCorpus, over: str) -> None:
    config = parse("bilstm+additive+mlm:1", embedding_dim=DIM, width=DIM, marks=True).model
    models = [build(config, WORDS, ("no", "yes"), seed).double() for seed in range(2)]
    penalties = [Penalties(masked_words=e, masked_over=over) for e in (0.5, 2.0)]
    batch = batch_of()
    task = StackedTask(ClassifierStack(models, "cpu"), corpus, CONFIG, penalties, (0, 1), "cpu")
    with seeded(3):
        seen, added = task.seen(batch)
    with seeded(3):
        corrupted, chosen = objectives.corrupt(batch.ids, batch.mask, len(WORDS))
    assert seen.logits.shape[:2] == (2, len(batch))
    for row, model in enumerate(models):
        states = model(replace(batch, ids=corrupted)).word_states
        guessed = objectives.guesses(model, states, batch.ids, chosen, over)
        expected = penalties[row].masked_words * float(guessed.detach())
        assert float(added[row].detach()) == pytest.approx(expected, rel=1e-9)


def test_hidden_words_teach_a_stacked_model_what_they_teach_one_alone(
    corpus: EncodedCorpus,
) -> None:
    config = parse("bilstm+additive+mlm:1", embedding_dim=DIM, width=DIM, marks=True).model
    penalty, batch = Penalties(masked_words=0.7), batch_of()
    alone = build(config, WORDS, ("no", "yes"), 1).double()
    models = [build(config, WORDS, ("no", "yes"), seed).double() for seed in range(2)]
    task = StackedTask(ClassifierStack(models, "cpu"), corpus, CONFIG, [penalty] * 2, (0, 1), "cpu")
    with seeded(3):
        task.seen(batch).added.sum().backward()
    with seeded(3):
        objectives.with_penalties(alone, batch, penalty).added.backward()
    expected = {name: weight.grad for name, weight in alone.named_parameters()}
    assert expected["level.encoder.marks"] is not None
    for name, weight in task.model.named_parameters():
        if expected[name] is not None:
            torch.testing.assert_close(weight.grad[1], expected[name], msg=name)


def test_masked_words_leave_stacked_tables_frozen(corpus: EncodedCorpus) -> None:
    models = [fresh(corpus, "bilstm+additive+mlm:1", seed) for seed in range(2)]
    before = [model.embedding.weight.clone() for model in models]
    fit_stacked(models, corpus, CONFIG, [Penalties(masked_words=1.0)] * 2, seeds=(0, 1))
    for model, table in zip(models, before, strict=True):
        assert torch.equal(model.embedding.weight, table)


def test_what_cannot_be_stacked_is_refused(corpus: EncodedCorpus) -> None:
    one = fresh(corpus, "bilstm+additive")
    other = fresh(corpus, "bilstm+additive+concat")
    with pytest.raises(InputError, match="same join"):
        ClassifierStack([one, other], "cpu")
    with pytest.raises(InputError, match="cannot be stacked"):
        ClassifierStack([fresh(corpus, "conv+additive")], "cpu")
    config, wide = replace(CONFIG, balanced=True), fresh(corpus, "bilstm+additive", width=8)
    with pytest.raises(InputError, match="one by one"):
        fit_stacked([one], corpus, config, [Penalties()], seeds=(0,))
    with pytest.raises(InputError, match="set width"):
        fit_stacked([wide], corpus, CONFIG, [Penalties(tying=1.0)], seeds=(0,))
