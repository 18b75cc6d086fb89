"""The trained adversary: decide alike, attend elsewhere."""

from dataclasses import replace
from math import log

import numpy as np
import pytest
import torch

from heedful.corpora import EncodedCorpus, encode, planted
from heedful.corpora.batches import collate
from heedful.errors import InputError
from heedful.models import AttentionClassifier, Penalties, build, parse, read
from heedful.studies.faithful.imitation import distance, distances, imitate, remember
from heedful.training import TrainConfig, fit
from tests.tiny import batch_of, classifier

FAST = TrainConfig(epochs=3, learning_rate=1e-2, batch_size=16, patience=2)

CONFIG = TrainConfig(
    epochs=2, learning_rate=1e-2, batch_size=16, optimiser="amsgrad", weight_decay=1e-5,
    decay="all but attention", patience=0, select="f1", order_seed=5,
)  # fmt: skip


@pytest.fixture(scope="module")
def few() -> EncodedCorpus:
    return encode(planted(2, "short", 6, {"train": 60, "dev": 24, "test": 20}))


def fresh(corpus: EncodedCorpus, seed: int = 0) -> AttentionClassifier:
    sizes = {"embedding_dim": 6, "width": 6, "marks": True, "one_logit": True}
    config = parse("bilstm+additive", **sizes).model
    return build(config, corpus.vocabulary, corpus.classes, seed).double()


@pytest.fixture(scope="module")
def corpus() -> EncodedCorpus:
    return encode(planted(2, "short", 2, {"train": 120, "dev": 40, "test": 40}))


@pytest.fixture(scope="module")
def first(corpus: EncodedCorpus):
    recipe = parse("bilstm+additive", embedding_dim=12, width=12, one_logit=True)
    model = build(recipe.model, corpus.vocabulary, corpus.classes)
    fit(model, corpus, TrainConfig(epochs=3, learning_rate=1e-2, batch_size=16))
    return model.eval()


def test_the_objective_is_its_definition_worked_out_by_hand() -> None:
    model, batch = classifier("bilstm+additive", classes=2), batch_of(((2,), (3,)))
    passed = model(batch)
    probability = torch.tensor([[0.7, 0.3], [0.2, 0.8]], dtype=torch.float64)
    attention = torch.tensor([[0.9, 0.1, 0.0], [0.2, 0.3, 0.5]], dtype=torch.float64)
    given = passed.logits.double(), passed.attended.scores, passed.mask, probability, attention
    found = distance(*given, 0.5, "jsd").detach()
    own = passed.attended.scores.softmax(-1).detach().numpy()
    output = passed.logits.softmax(-1).detach().numpy()
    for row, length in enumerate((2, 3)):
        p, q = own[row, :length], attention[row, :length].numpy()
        m = (p + q) / 2
        jsd = (p * np.log(p / m)).sum() / 2 + (q * np.log(q / m)).sum() / 2
        tvd = abs(output[row, 1] - float(probability[row, 1]))
        assert float(found[row]) == pytest.approx(tvd - 0.5 * jsd, rel=1e-9)
    by_kl = distance(*given, 0.5, "kl").detach()
    p, q = own[1], attention[1].numpy()
    tvd = abs(output[1, 1] - 0.8)
    assert float(by_kl[1]) == pytest.approx(tvd - 0.5 * (p * np.log(p / q)).sum(), rel=1e-9)


@pytest.mark.parametrize("divergence", ["jsd", "kl"])
def test_gradients_are_finite_with_padding_and_without_weight(divergence: str) -> None:
    model, batch = classifier("bilstm+additive", classes=2), batch_of(((1,), (4,)))
    attention = torch.tensor([[1.0, 0, 0, 0], [0.5, 0.5, 0, 0]]).double()
    probability = torch.full((2, 2), 0.5).double()
    passed = model(batch)
    given = passed.logits.double(), passed.attended.scores, passed.mask, probability, attention
    distance(*given, 1.0, divergence).sum().backward()
    assert all(bool(torch.isfinite(p.grad).all()) for p in model.parameters() if p.grad is not None)


def test_what_is_remembered_is_the_reading(corpus: EncodedCorpus, first) -> None:
    memory = remember(first, [corpus.splits["dev"]])
    (rows,) = distances([first], first, corpus.splits["dev"])
    assert set(memory.attention) == set(rows["instance"])
    assert rows["jsd"].max() < 1e-12
    assert rows["tvd"].max() < 1e-12
    batch = first.batch(["a dull film", "good"])
    reading = read(first, batch)
    name = corpus.splits["dev"].names[0]
    probability, attention = memory.of([name], 60, "cpu")
    assert attention.shape == (1, 60)
    assert float(attention.sum()) == pytest.approx(1)
    assert float(probability.sum()) == pytest.approx(1)
    assert reading.attention.shape[0] == 2


@pytest.mark.slow
def test_a_stronger_adversary_attends_farther_away(corpus: EncodedCorpus, first) -> None:
    ((near, far),) = imitate([first], corpus, (0.0, 1.0), FAST, seeds=[9])
    test = corpus.splits["test"]
    one, two = distances([near.model, far.model], first, test)
    assert one.equals(distances([near.model], first, test)[0])  # each as if it were alone
    assert two["jsd"].mean() > one["jsd"].mean()
    assert one["jsd"].between(0, log(2)).all()
    assert far.loss < near.loss
    assert [entry["epoch"] for entry in near.log] == [1, 2, 3][: len(near.log)]
    assert -min(entry["dev_loss"] for entry in far.log) == pytest.approx(-far.loss)


@pytest.mark.slow
def test_the_same_seed_gives_the_same_adversary(corpus: EncodedCorpus, first) -> None:
    ((one,),), ((two,),) = (imitate([first], corpus, (0.1,), FAST, seeds=[4]) for _ in range(2))
    weights = zip(one.model.parameters(), two.model.parameters(), strict=True)
    assert all(torch.equal(a, b) for a, b in weights)


@pytest.mark.slow
def test_an_adversary_of_a_tied_model_is_tied_too(corpus: EncodedCorpus, first) -> None:
    ((free,),) = imitate([first], corpus, (0.1,), FAST, seeds=[4])
    ((tied,),) = imitate([first], corpus, (0.1,), FAST, Penalties(tying=30.0), seeds=[4])
    batch = first.batch(["the film was good and the food was dull"])

    def apart(model) -> float:
        inputs = model.embed(batch)
        states = model.from_inputs(inputs, batch).word_states
        return float((states - inputs).detach().norm())

    assert apart(tied.model) < apart(free.model)


@pytest.mark.slow
def test_stacked_adversaries_are_those_trained_alone(few: EncodedCorpus) -> None:
    first = fresh(few).float()
    fit(first, few, CONFIG)
    config = replace(CONFIG, order_seed=None)
    (found,) = imitate([first], few, (0.0, 0.5), config, seeds=[3])
    assert found[1].loss < found[0].loss
    ((alone,),) = imitate([first], few, (0.5,), config, seeds=[3])
    assert found[1].loss == pytest.approx(alone.loss, abs=1e-6)
    # What the model by itself makes of dev is what it was kept for.
    memory, dev = remember(first, [few.splits["dev"]]), collate(few.splits["dev"], range(24))
    with torch.no_grad():
        passed = found[1].model(dev)
    goal = memory.of(dev.names, dev.ids.shape[1], "cpu")
    each = distance(passed.logits.double(), passed.attended.scores, passed.mask, *goal, 0.5, "jsd")
    assert found[1].loss == pytest.approx(float(each.mean()), abs=1e-6)
    assert not torch.equal(found[0].model.head.weight, found[1].model.head.weight)


@pytest.mark.slow
def test_adversaries_of_several_models_are_those_of_each(few: EncodedCorpus) -> None:
    firsts = [fresh(few, seed) for seed in range(2)]
    strengths = (0.0, 0.5)
    for divergence in ("jsd", "kl"):
        together = imitate(firsts, few, strengths, CONFIG, divergence=divergence, seeds=[8, 9])
        for first, seed, found in zip(firsts, (8, 9), together, strict=True):
            (alone,) = imitate([first], few, strengths, CONFIG, divergence=divergence, seeds=[seed])
            for one, other in zip(found, alone, strict=True):
                assert one.loss == pytest.approx(other.loss, abs=1e-6)
                for name, weight in one.model.state_dict().items():
                    torch.testing.assert_close(weight, other.model.state_dict()[name], msg=name)


def test_bad_strengths_and_divergences_are_refused(corpus: EncodedCorpus, first) -> None:
    with pytest.raises(InputError, match="from 0 up"):
        imitate([first], corpus, (-1.0,), FAST, seeds=[0])
    with pytest.raises(InputError, match="λ must be a number from 0 up, got -1"):
        imitate([first], corpus, (0.0, -1.0), FAST, seeds=[0])
    with pytest.raises(InputError, match="divergence"):
        imitate([first], corpus, (0.1,), FAST, divergence="euclid", seeds=[0])
