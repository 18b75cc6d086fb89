"""All six architectures of the erasure study against brute force, in float64.

Remove the first k items of a ranking, renormalise what is left, run the head again: on every
prefix of every ranking, the logits and the first flip must be those of the closed forms.
"""

import numpy as np
import pandas as pd
import pytest
import torch

from heedful.audits.rankings import greedy_order
from heedful.corpora.batches import Batch
from heedful.importance import explain
from heedful.importance.methods import gradient_by_autograd
from heedful.models import AttentionClassifier, read
from heedful.models.verbs import curve, ranked
from heedful.studies.erasure.examination import METHODS, OURS, RANKINGS, Erased, erase
from heedful.training.presets import PRESETS
from tests.tiny import DIM, batch_of, brute_force, chosen, classifier, padded

ARCHITECTURES = ("han-rnn", "han-conv", "han-noenc", "flan-rnn", "flan-conv", "flan-noenc")
# Words in each sentence: one sentence of one word, one of several, two, many, long and short ones.
DOCUMENTS = ((1,), (4,), (2, 1), (3, 1, 2, 2, 1, 4, 2), (1, 1, 1, 1, 1), (9, 8, 7, 6))


def model_of(architecture: str, classes: int = 3, seed: int = 0) -> AttentionClassifier:
    preset = PRESETS[f"erasure/imdb/{architecture}"]
    sizes = dict.fromkeys(("embedding_dim", "width", "attention_dim"), DIM)
    model = classifier(preset.recipe, classes, seed, sharpness=2.5, **(preset.model | sizes))
    with torch.no_grad():  # the preset's bias starts at zero, where the last step is a tie
        model.head.bias.copy_(0.3 * torch.randn(classes, generator=_generator(seed)))
    return model


def _generator(seed: int) -> torch.Generator:
    return torch.Generator().manual_seed(seed)


@pytest.mark.slow
@pytest.mark.parametrize("architecture", ARCHITECTURES)
def test_every_prefix_of_every_ranking_equals_brute_force(architecture: str) -> None:
    flips = 0
    for seed in range(2):
        model, batch = model_of(architecture, seed=seed), batch_of(DOCUMENTS, seed)
        reading = read(model, batch)
        rows = Erased(erase(model, reading, explain(model, reading, METHODS, seed), seed))
        importance = explain(model, reading, [*RANKINGS, OURS[0]], seed)
        orders = {name: ranked(scores, reading) for name, scores in importance.items()}
        orders["greedy"] = greedy_order(reading)
        logits = curve(model, reading, torch.stack(list(orders.values()), 1)).numpy()
        for document in range(len(DOCUMENTS)):
            n = int(reading.units[document])
            attention = reading.attention[document, :n].numpy()
            with torch.no_grad():
                untouched = model(chosen(batch, [document])).logits[0].numpy()
            for number, (name, order) in enumerate(orders.items()):
                expected, first = [], np.inf
                for k in range(n + 1):
                    left = attention.copy()
                    left[order[document, :k].numpy()] = 0
                    total = left.sum()
                    left = left / total if k < n else 0 * left
                    said = brute_force(model, batch, document, left)
                    expected.append(said)
                    if k and np.isinf(first) and said.argmax() != untouched.argmax():
                        first = k
                found = logits[document, number, : n + 1]
                np.testing.assert_allclose(found, expected, atol=1e-9)
                np.testing.assert_allclose(found[0], untouched, atol=1e-9)
                np.testing.assert_allclose(found[n], model.head.bias.detach().numpy(), atol=1e-12)
                if n > 1:
                    assert rows.removed(name)[document] == first
                    flips += np.isfinite(first) and first < n
    assert flips > 10  # otherwise the check would have checked little


@pytest.mark.parametrize("architecture", ARCHITECTURES)
def test_the_gradient_is_that_of_automatic_differentiation(architecture: str) -> None:
    model = model_of(architecture)
    reading = read(model, batch_of(DOCUMENTS))
    closed = explain(model, reading, ["gradient"])["gradient"]
    torch.testing.assert_close(closed, gradient_by_autograd(model, reading), atol=1e-12, rtol=0)


@pytest.mark.parametrize("architecture", ARCHITECTURES)
def test_padding_and_batching_change_no_row(architecture: str) -> None:
    model, batch = model_of(architecture), batch_of(DOCUMENTS)

    def erased(batch: Batch) -> pd.DataFrame:
        reading = read(model, batch)
        return erase(model, reading, explain(model, reading, METHODS), 0)

    whole = erased(batch).set_index("instance")
    wider = erased(padded(batch, 5)).set_index("instance")
    parts = [erased(chosen(batch, [row])) for row in (3, 5)]
    assert _same(wider, whole)
    for part in parts:
        alone = part.set_index("instance")
        assert _same(alone, whole.loc[alone.index])


def _same(one, other) -> bool:
    floats = [name for name in one if one[name].dtype == np.float32]
    np.testing.assert_allclose(one[floats], other[floats], atol=1e-6)
    rest = [name for name in one if name not in floats]
    return bool((one[rest] == other[rest]).all().all())
