"""A stacked pass is that of each model, and the models are the stack's."""

import numpy as np
import pytest
import torch

from heedful.corpora import EncodedCorpus, encode, planted
from heedful.corpora.batches import collate
from heedful.models import AttentionClassifier, build, parse
from heedful.models.classifier_stack import ClassifierStack
from heedful.training.resident import ResidentDocuments
from tests.tiny import DIM, WORDS, batch_of

SHAPES = [
    ("bilstm+additive", {}),
    ("bilstm+scaled-dot+concat", {}),
    ("bilstm*2+additive+residual", {}),
    ("bilstm+scaled-dot", {"instance_query": True}),
    ("bilstm+additive", {"marks": False, "one_logit": False}),
    ("none+additive", {"marks": False}),
]


@pytest.fixture(scope="module")
def corpus() -> EncodedCorpus:
    return encode(planted(2, "short", sizes={"train": 46, "dev": 12, "test": 40}))


def member(corpus: EncodedCorpus, recipe: str, seed: int) -> AttentionClassifier:
    """A model in float64."""
    sizes = {"embedding_dim": 6, "width": 8, "attention_dim": 5, "one_logit": True}
    config = parse(recipe, **sizes).model
    return build(config, corpus.vocabulary, corpus.classes, seed).double()


@pytest.mark.parametrize(("recipe", "settings"), SHAPES)
def test_a_stacked_pass_is_that_of_each_model(recipe: str, settings: dict[str, object]) -> None:
    sizes = {"embedding_dim": DIM, "width": DIM, "marks": True, "one_logit": True} | settings
    config = parse(recipe, **sizes).model
    models = [build(config, WORDS, ("no", "yes"), seed).double() for seed in range(3)]
    batch = batch_of()
    expected = [model(batch) for model in models]
    seen = ClassifierStack(models, "cpu").passed(batch.ids, batch.mask)
    for row, passed in enumerate(expected):
        torch.testing.assert_close(seen.logits[row], passed.logits)
        mask = batch.mask
        torch.testing.assert_close(seen.values[row][mask], passed.attended.values[mask])
        torch.testing.assert_close(seen.states[row][mask], passed.word_states[mask])


@pytest.mark.parametrize("recipe", ["bilstm+additive-relu", "bilstm+uniform", "none+dot"])
def test_own_documents_are_read_as_each_model_reads_them(
    corpus: EncodedCorpus, recipe: str
) -> None:
    models, train = [member(corpus, recipe, seed) for seed in range(3)], corpus.splits["train"]
    rows = np.array([[3, 0, 7], [5, 5, 11], [1, 2, 40]])
    longest = int(train.lengths.max()) + 3
    own = ResidentDocuments.of(train, "cpu").batch(torch.from_numpy(rows), longest)
    expected = [model(collate(train, row)) for model, row in zip(models, rows, strict=True)]
    sum(passed.logits.square().sum() for passed in expected).backward()
    gradients = [{n: p.grad for n, p in model.named_parameters()} for model in models]
    stack = ClassifierStack(models, "cpu")
    found = stack.passed(own.ids, own.mask)
    found.logits.square().sum().backward()
    for row, passed in enumerate(expected):
        width = passed.mask.shape[1]
        torch.testing.assert_close(found.logits[row], passed.logits)
        torch.testing.assert_close(found.scores[row, :, :width], passed.attended.scores)
        for name, weight in stack.named_parameters():
            if weight.grad is not None:
                torch.testing.assert_close(weight.grad[row], gradients[row][name])


def test_the_same_documents_with_and_without_a_model_axis_are_read_alike(
    corpus: EncodedCorpus,
) -> None:
    stack = ClassifierStack([member(corpus, "bilstm+additive-relu", s) for s in range(3)], "cpu")
    batch = collate(corpus.splits["train"], range(9))
    one = stack.forward(batch)
    two = stack.passed(batch.ids.expand(3, -1, -1), batch.mask.expand(3, -1, -1))
    for shared, own in zip(one, two, strict=True):
        assert torch.equal(shared, own)


def test_a_model_sees_the_stack_learn(corpus: EncodedCorpus) -> None:
    models = [member(corpus, "bilstm+additive@2", seed) for seed in (0, 1)]
    stack, model = ClassifierStack(models, "cpu"), models[1]
    with torch.no_grad():
        for weight in stack.weights.values():
            weight[1] += 1.0
    for name, parameter in model.named_parameters():
        assert torch.equal(parameter, stack.weights[name][1])
