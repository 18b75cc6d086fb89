"""What is asked of a model beside the right class."""

import pytest
import torch

from heedful.corpora import EncodedCorpus, batches, encode, planted
from heedful.errors import InputError
from heedful.models import Penalties, build, parse
from heedful.runs.randomness import seeded
from heedful.training import objectives


@pytest.fixture(scope="module")
def corpus() -> EncodedCorpus:
    return encode(planted(seed=5, sizes={"train": 64, "dev": 20, "test": 20}))


def model_of(corpus: EncodedCorpus, recipe: str, **sizes: object):
    sizes = {"embedding_dim": 6, "width": 6} | sizes
    return build(parse(recipe, **sizes).model, corpus.vocabulary, corpus.classes).double()


def test_tying_is_the_mean_squared_distance_over_real_tokens(corpus: EncodedCorpus) -> None:
    model = model_of(corpus, "bilstm+additive")
    batch = next(batches(corpus.splits["train"], 8))
    inputs = model.embed(batch)
    passed = model.from_inputs(inputs, batch)
    expected, count = 0.0, 0
    for row in range(len(batch)):
        for token in range(int(batch.lengths[row])):
            difference = passed.word_states[row, token] - inputs[row, token]
            expected += float(difference.detach().square().sum())
            count += difference.numel()
    found = objectives.tying(passed, inputs, batch.mask).detach()
    assert float(found) == pytest.approx(expected / count, rel=1e-12)


def test_tying_is_zero_without_an_encoder(corpus: EncodedCorpus) -> None:
    model = model_of(corpus, "none+additive")
    batch = next(batches(corpus.splits["train"], 8))
    inputs = model.embed(batch)
    tied = objectives.tying(model.from_inputs(inputs, batch), inputs, batch.mask)
    assert float(tied.detach()) == 0


def test_tying_reaches_the_words_of_a_hierarchical_model(corpus: EncodedCorpus) -> None:
    model = model_of(corpus, "han:bigru+additive")
    batch = next(batches(corpus.splits["train"], 8))
    inputs = model.embed(batch)
    passed = model.from_inputs(inputs, batch)
    assert passed.word_states.shape[:2] == batch.ids.shape
    assert not passed.word_states[~batch.mask].any()
    assert float(objectives.tying(passed, inputs, batch.mask).detach()) > 0


def test_masked_words_are_chosen_as_published() -> None:
    ids = torch.randint(5, 1000, (400, 200))
    ids[:, 0] = 3
    mask = torch.ones_like(ids, dtype=torch.bool)
    mask[:, 150:] = False
    with seeded(1):
        corrupted, chosen = objectives.corrupt(ids, mask, 1000)
    ordinary = mask & (ids >= 5)
    assert not chosen[~ordinary].any()
    assert torch.equal(corrupted[~chosen], ids[~chosen])
    n, k = int(ordinary.sum()), int(chosen.sum())
    assert abs(k / n - 0.15) < 4 * (0.15 * 0.85 / n) ** 0.5
    masked = float((corrupted[chosen] == 2).double().mean())
    kept = float((corrupted[chosen] == ids[chosen]).double().mean())
    assert abs(masked - 0.8) < 4 * (0.16 / k) ** 0.5
    assert abs(kept - 0.1 - 0.1 / 995) < 4 * (0.09 / k) ** 0.5
    assert int(corrupted[chosen & (corrupted != 2)].min()) >= 5


def test_masked_words_leave_the_table_frozen_and_train_the_encoder(corpus: EncodedCorpus) -> None:
    model = model_of(corpus, "bilstm+additive+mlm:1")
    batch = next(batches(corpus.splits["train"], 16))
    with seeded(2):
        objectives.with_penalties(model, batch, Penalties(masked_words=1)).added.backward()
    assert model.embedding.weight.grad is None
    assert model.level.encoder.cells.weight_hh_l0.grad.abs().sum() > 0
    assert model.head.weight.grad is None


def test_penalties_add_up(corpus: EncodedCorpus) -> None:
    model = model_of(corpus, "bigru+dot")
    batch = next(batches(corpus.splits["train"], 16))
    plain = objectives.loss(model, batch, Penalties())
    inputs = model.embed(batch)
    tied = objectives.tying(model.from_inputs(inputs, batch), inputs, batch.mask)
    both = objectives.loss(model, batch, Penalties(tying=3.0))
    assert float(both) == pytest.approx(float(plain) + 3 * float(tied), rel=1e-12)


def test_states_and_embeddings_of_different_size_cannot_be_tied(corpus: EncodedCorpus) -> None:
    model = model_of(corpus, "bilstm+additive", width=8)
    with pytest.raises(InputError, match="set width to 6"):
        objectives.check(model.config, Penalties(tying=1))
    objectives.check(model.config, Penalties())


@pytest.mark.parametrize("name", ["tying", "masked_words"])
def test_strengths_below_zero_are_refused(name: str) -> None:
    with pytest.raises(InputError, match="from 0 up"):
        Penalties(**{name: -1.0})
