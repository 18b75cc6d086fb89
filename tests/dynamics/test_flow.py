"""The terms of gradient flow add up to what automatic differentiation finds, for every family."""

import copy

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from heedful.corpora.encoded import Encoded
from heedful.corpora.vocabulary import SPECIALS, Vocabulary
from heedful.dynamics import FlowLog, flow
from heedful.dynamics.flow import (
    Flow,
    dot_product_rate,
    pair_means,
    parts_of,
)
from heedful.errors import InputError, UnsupportedModel
from heedful.models import AttentionClassifier, build, parse
from heedful.studies.polarity.path_steps import (
    gradients,
    printed_classes,
    printed_dot_products,
    rates,
)

FAMILIES = ("none+scaled-dot", "affine+scaled-dot", "none+additive")
WORDS = Vocabulary(SPECIALS + tuple(f"w{index}" for index in range(9)))
DIM = 5


def problem(seed: int, documents: int = 7, classes: int = 2) -> Encoded:
    """Random texts of one to six words out of nine, so that words repeat within a text."""
    draw = np.random.default_rng(seed)
    lengths = draw.integers(1, 7, documents)
    return Encoded(
        ids=draw.integers(len(SPECIALS), len(WORDS), lengths.sum()).astype(np.int32),
        starts=np.concatenate([[0], np.cumsum(lengths)]),
        labels=draw.integers(0, classes, documents),
        sentence=np.zeros(lengths.sum(), np.int32),
        names=tuple(map(str, range(documents))),
    )


def model_of(
    family: str, seed: int, scale: float = 1.0, classes: int = 0, **settings: object
) -> AttentionClassifier:
    """A random model in float64; `classes` = 0 is two classes with one logit."""
    sizes = {"embedding_dim": DIM, "width": 4, "attention_dim": 6, "head_bias": False}
    sizes |= {"one_logit": not classes, "normal_additive_query": True} | settings
    config = parse(f"{family}@{scale}", **sizes).model
    return build(config, WORDS, tuple(map(str, range(classes or 2))), seed).double().eval()


def relative(found: torch.Tensor, expected: torch.Tensor, terms: list[torch.Tensor]) -> float:
    """The largest difference, over the largest term."""
    size = max(float(term.abs().max()) for term in terms)
    return float((found - expected).abs().max()) / size


@pytest.mark.slow
@settings(max_examples=25, deadline=None)
@given(
    st.sampled_from(FAMILIES),
    st.integers(0, 10**6),
    st.sampled_from([0.5, 1.0, 10.0]),
    st.sampled_from([0, 2, 3, 4]),
    st.booleans(),
)
def test_the_terms_sum_to_the_autograd_derivative(
    family: str, seed: int, scale: float, classes: int, bias: bool
) -> None:
    texts = problem(seed, classes=classes or 2)
    model = model_of(family, seed, scale, classes, head_bias=bias, additive_bias=bias)
    found, expected = flow(model, texts), rates(model, texts)
    terms = [*found.polarity.values()]
    assert relative(found.polarity_rate, expected.polarity, terms) < 1e-10
    terms = [*found.attention.values()]
    assert relative(found.attention_rate, expected.attention, terms) < 1e-10


@settings(max_examples=15, deadline=None)
@given(st.integers(0, 10**6), st.sampled_from([0.5, 1.0, 10.0]))
def test_head_and_query_terms_are_those_of_their_own_gradients(seed: int, scale: float) -> None:
    texts, model = problem(seed), model_of("none+scaled-dot", seed, scale)
    found, gradient = flow(model, texts), gradients(model, texts)
    words = model.embedding.weight.detach()
    c = -words @ gradient["head.weight"].T
    f = -words @ gradient["level.attention.query.weight"][0] / scale
    torch.testing.assert_close(found.polarity["C"], c, rtol=1e-9, atol=1e-14)
    torch.testing.assert_close(found.attention["F"], f, rtol=1e-9, atol=1e-14)
    torch.testing.assert_close(found.velocity, -gradient["embedding.weight"], rtol=1e-9, atol=1e-14)


@pytest.mark.parametrize("family", FAMILIES)
def test_embeddings_move_as_their_gradient_says(family: str) -> None:
    texts, model = problem(3, classes=3), model_of(family, 3, 2.0, 3)
    expected = -gradients(model, texts)["embedding.weight"]
    torch.testing.assert_close(flow(model, texts).velocity, expected, rtol=1e-9, atol=1e-14)


def invariant_rates(model: AttentionClassifier, found: Flow) -> dict[str, torch.Tensor]:
    """Rates that the flow of a dot model without encoder must have, from π and ρ alone.

    `head` and `query` are d|W|²/dτ and d|V|²/dτ, `words` is d Σ|e|²/dτ, `balance` their difference
    (0: a conservation law), `alignment` is d(V·W)/dτ summed over outputs.
    """
    parts = parts_of(model)
    m = len(found.reading.labels)
    said = found.scores.logits[:, int(model.config.one_logit) :]
    scores, pi, rho = found.scores.scores, found.pi, found.rho
    head, query = 2 / m * (pi * said).sum(), 2 / m * (rho * scores).sum()
    words = 2 * (parts.words * found.velocity).sum()
    turning = (rho @ said) / parts.scale + parts.scale * (scores @ pi)
    return {
        "head": head,
        "query": query,
        "words": words,
        "balance": words - head - query,
        "alignment": turning.sum() / m,
    }


@settings(max_examples=15, deadline=None)
@given(st.integers(0, 10**6), st.sampled_from([0.5, 1.0, 10.0]), st.sampled_from([0, 3]))
def test_the_invariants_hold(seed: int, scale: float, classes: int) -> None:
    # docs/studies/polarity.md, "Identities"
    texts = problem(seed, classes=classes or 2)
    model = model_of("none+scaled-dot", seed, scale, classes)
    found, gradient = invariant_rates(model, flow(model, texts)), gradients(model, texts)
    head, query = (p.detach() for p in (model.head.weight, model.level.attention.query.weight))
    against = {name: -value for name, value in gradient.items()}
    d_head, d_query = against["head.weight"], against["level.attention.query.weight"]
    largest = max(abs(float(found[name])) for name in ("head", "query", "words"))
    assert abs(float(found["balance"])) < 1e-12 * max(largest, 1)
    assert float(found["head"]) == pytest.approx(float(2 * (head * d_head).sum()), rel=1e-9)
    assert float(found["query"]) == pytest.approx(
        float(2 * (query * d_query).sum()), rel=1e-9, abs=1e-14
    )
    turning = (d_head @ query[0] + head @ d_query[0]).sum()
    assert float(found["alignment"]) == pytest.approx(float(turning), rel=1e-8, abs=1e-14)


@pytest.mark.parametrize("family", FAMILIES)
def test_one_small_euler_step_changes_the_scores_as_predicted(family: str) -> None:
    texts, model = problem(5), model_of(family, 5, 2.0)
    found, gradient = flow(model, texts), gradients(model, texts)
    moved, step = copy.deepcopy(model), 1e-6
    with torch.no_grad():
        for name, weight in moved.named_parameters():
            weight -= step * gradient[name]
    after = flow(moved, texts).scores
    polarity = (after.logits[:, 1:] - found.scores.logits[:, 1:]) / step
    attention = (after.scores - found.scores.scores) / step
    assert relative(polarity, found.polarity_rate, [found.polarity_rate]) < 1e-5
    assert relative(attention, found.attention_rate, [found.attention_rate]) < 1e-5


def test_dot_products_change_as_autograd_says_and_not_as_printed() -> None:
    texts, model = problem(7), model_of("none+scaled-dot", 7, 10.0)
    found, words = flow(model, texts), model.embedding.weight.detach()
    moves = -gradients(model, texts)["embedding.weight"]
    expected = moves @ words.T + words @ moves.T
    chosen = torch.arange(len(WORDS))
    right = dot_product_rate(model, found, chosen)
    wrong = printed_dot_products(model, found, chosen)
    assert relative(right, expected, [expected]) < 1e-10
    assert relative(wrong, expected, [expected]) > 1e-2
    groups = torch.tensor([-1] * 5 + [0, 0, 0, 1, 1, 1, 2, -1, -1])
    one_way = pair_means(found.velocity, words, groups, 3)
    blocks = one_way + one_way.T
    first, second = groups == 0, groups == 1
    torch.testing.assert_close(blocks[0, 1], expected[first][:, second].mean())
    inside = expected[first][:, first]
    off = inside[~torch.eye(3, dtype=torch.bool)]
    torch.testing.assert_close(blocks[0, 0], off.mean())
    assert bool(blocks[2, 2].isnan())  # one word has no pair
    assert pair_means(words, words, groups, 3)[0, 1] == pytest.approx(
        float((words[first] @ words[second].T).mean())
    )


@pytest.mark.parametrize("seed", range(5))
def test_printed_multi_class_forms_fail(seed: int) -> None:
    texts, model = problem(seed, 12, 3), model_of("none+scaled-dot", seed, 10.0, 3)
    found, expected = flow(model, texts), rates(model, texts)
    printed = printed_classes(model, found)
    assert relative(found.polarity_rate, expected.polarity, [expected.polarity]) < 1e-9
    assert relative(printed.polarity, expected.polarity, [expected.polarity]) > 1e-2
    assert relative(printed.attention, expected.attention, [expected.attention]) > 1e-3


def test_two_logits_flow_twice_as_fast_as_one() -> None:
    texts, one = problem(11), model_of("none+scaled-dot", 11)
    two = model_of("none+scaled-dot", 11, classes=2)
    with torch.no_grad():
        two.embedding.weight.copy_(one.embedding.weight)
        two.level.attention.query.weight.copy_(one.level.attention.query.weight)
        two.head.weight.copy_(torch.cat([-one.head.weight / 2, one.head.weight / 2]))
    single, double = flow(one, texts), flow(two, texts)
    torch.testing.assert_close(double.towards()["C"], 2 * single.towards()["C"])
    for name in "AB":
        torch.testing.assert_close(double.towards()[name], single.towards()[name])


def test_texts_of_one_word_drive_polarity_and_never_attention() -> None:
    texts = problem(2)
    single = Encoded(texts.ids[:4], np.arange(5), texts.labels[:4], texts.sentence[:4], ("",) * 4)
    found = flow(model_of("none+scaled-dot", 2), single)
    assert float(found.pi.abs().max()) > 0
    assert float(found.rho.abs().max()) < 1e-14
    assert float(found.attention["F"].abs().max()) < 1e-14


def test_frozen_vectors_leave_only_what_head_and_query_learn() -> None:
    texts, model = problem(4), model_of("none+scaled-dot", 4, freeze_embeddings=True)
    found, expected = flow(model, texts), rates(model, texts)
    assert float(found.polarity["A"].abs().max()) == 0
    assert relative(found.polarity_rate, expected.polarity, [expected.polarity]) < 1e-10
    assert relative(found.attention_rate, expected.attention, [expected.attention]) < 1e-10


def test_models_and_labels_without_a_known_flow_are_refused() -> None:
    texts = problem(1)
    for recipe in ("bilstm+scaled-dot", "affine+additive", "none+scaled-dot+concat"):
        config = parse(recipe, embedding_dim=4, width=4).model
        with pytest.raises(UnsupportedModel):
            flow(build(config, WORDS, ("0", "1")), texts)
    texts.labels[0] = -1
    with pytest.raises(InputError, match="label of every text"):
        flow(model_of("none+scaled-dot", 1), texts)
    texts.labels[0] = 2
    with pytest.raises(InputError, match="class numbers"):
        flow(model_of("none+scaled-dot", 1), texts)


def test_the_log_has_a_row_for_each_word_and_moment() -> None:
    from heedful.corpora.encoded import EncodedCorpus

    texts = problem(6, classes=3)
    corpus = EncodedCorpus("tiny", ("0", "1", "2"), WORDS, {"train": texts}, "", {})
    log = FlowLog(["w1", "w2"], output=0)
    model = model_of("affine+scaled-dot", 6, 2.0, 3)
    log.log(1, 0.5, model, corpus)
    log.log(2, 1.0, model, corpus)
    table = log.table()
    assert list(table["word"]) == ["w1", "w2", "w1", "w2"]
    summed = table[[c for c in table if str(c).startswith("attention ")]].sum(axis=1)
    place = WORDS.ids["w1"]
    assert summed[0] == pytest.approx(float(rates(model, texts).attention[place]))
    with pytest.raises(InputError, match="does not know"):
        FlowLog(["absent"]).log(0, 0.0, model, corpus)
