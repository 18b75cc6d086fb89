"""A stack on documents without padding learns and is read as on padded ones."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
import torch
from torch import Tensor

from heedful.corpora import EncodedCorpus, encode, planted
from heedful.dynamics.probes import probed_together, saliency, saliency_together
from heedful.models import AttentionClassifier, build, cluster_kernel, clustered_stack, parse
from heedful.models.classifier_stack import ClassifierStack
from heedful.models.cluster_kernel import Documents
from heedful.models.recurrent import in_steps
from heedful.training import TrainConfig
from heedful.training.config import Schedule
from heedful.training.resident import ResidentDocuments
from heedful.training.scheduled import fit_scheduled_together

CONFIG = TrainConfig(batch_size=8, learning_rate=1e-2, clip_norm=0.0, patience=0)
SCHEDULE = Schedule(12, (0, 12))
SEEDS = (20, 13, 14)


@pytest.fixture(scope="module")
def corpus() -> EncodedCorpus:
    return encode(planted(2, "short", sizes={"train": 46, "dev": 12, "test": 4}))


def crew(corpus: EncodedCorpus, recipe: str) -> list[AttentionClassifier]:
    sizes = {"embedding_dim": 6, "width": 8, "attention_dim": 5, "one_logit": True}
    config = parse(recipe, **sizes).model
    return [build(config, corpus.vocabulary, corpus.classes, s).double() for s in SEEDS]


def padded_apart(gates: Tensor, hidden: Tensor, where: Documents) -> Tensor:
    """What the kernel computes, document by document through the loop."""
    found = gates.new_zeros(*gates.shape[:2], hidden.shape[1])
    for layer in range(len(gates)):
        for first, count in zip(
            where.first[layer].tolist(), where.count[layer].tolist(), strict=True
        ):
            place = torch.arange(first, first + count)
            place = place.flip(0) if layer >= where.turned else place
            start = gates.new_zeros(2, 1, 1, hidden.shape[1])
            states, _ = in_steps(gates[layer, place][None, None], hidden[layer][None], start)
            found = found.index_put((torch.tensor(layer), place), states[0, 0])
    return found


@pytest.fixture
def flat(monkeypatch: pytest.MonkeyPatch) -> Callable[[], None]:
    """Makes every stack from now on one that reads documents without padding."""

    def begin() -> None:
        monkeypatch.setattr(cluster_kernel, "ragged", padded_apart)
        monkeypatch.setattr(clustered_stack, "fits", lambda stack: True)

    return begin


@pytest.mark.parametrize("recipe", ["bilstm+additive-relu", "bilstm+uniform"])
def test_training_without_padding_ends_with_the_same_weights(
    corpus: EncodedCorpus, recipe: str, flat: Callable[[], None]
) -> None:
    padded, ragged = crew(corpus, recipe), crew(corpus, recipe)
    one = fit_scheduled_together(padded, corpus, CONFIG, seeds=SEEDS, schedule=SCHEDULE)
    flat()
    two = fit_scheduled_together(ragged, corpus, CONFIG, seeds=SEEDS, schedule=SCHEDULE)
    for first, second in zip(padded, ragged, strict=True):
        for a, b in zip(first.parameters(), second.parameters(), strict=True):
            torch.testing.assert_close(a, b, rtol=0, atol=1e-9)
    for a, b in zip(one, two, strict=True):
        assert a.entries[-1] == pytest.approx(b.entries[-1], rel=1e-9)


def test_what_is_read_of_documents_without_padding_is_the_same(
    corpus: EncodedCorpus, flat: Callable[[], None]
) -> None:
    models, dev = crew(corpus, "bilstm+additive-relu"), corpus.splits["dev"]
    expected = [saliency(model, dev) for model in models]
    stack = ClassifierStack(models, "cpu")
    np.testing.assert_allclose(saliency_together(stack, dev), expected, atol=1e-6)
    padded = probed_together(stack, dev)
    flat()
    np.testing.assert_allclose(saliency_together(stack, dev), expected, atol=1e-6)
    for one, two in zip(padded, probed_together(stack, dev), strict=True):
        np.testing.assert_allclose(one.attention, two.attention, atol=1e-6)
        np.testing.assert_allclose(one.probe, two.probe, atol=1e-5)
        assert (one.correct == two.correct).all()
        assert (one.item == two.item).all()


def test_flat_batches_hold_the_documents_of_padded_ones(corpus: EncodedCorpus) -> None:
    documents = ResidentDocuments.of(corpus.splits["train"], "cpu")
    rows = torch.tensor([[3, 0, 7], [1, 9, 2]])
    lengths = documents.lengths[rows]
    found = documents.flat(rows, int(lengths.sum(1).max()) + 2)
    padded = documents.batch(rows, int(lengths.max()))
    for model in range(2):
        for place in range(3):
            first, count = int(found.first[model, place]), int(found.lengths[model, place])
            assert torch.equal(
                found.ids[model, first : first + count], padded.ids[model, place, :count]
            )
            assert (found.owner[model, first : first + count] == place).all()
        assert (found.ids[model, int(lengths[model].sum()) :] == 0).all()
        assert (found.owner[model, int(lengths[model].sum()) :] == 3).all()
    assert torch.equal(found.labels, padded.labels)
