"""Identities of the remedies (docs/studies/faithful.md, "Remedies", "Identities")."""

from dataclasses import replace

import numpy as np
import pytest
import torch

from heedful.corpora import EncodedCorpus, batches, encode, planted
from heedful.errors import InputError
from heedful.models import ModelConfig, Penalties, build, parse, read
from heedful.runs.randomness import seeded
from heedful.training import TrainConfig, fit, objectives
from heedful.training.presets import PRESETS
from tests.tiny import batch_of, classifier, padded


@pytest.fixture(scope="module")
def corpus() -> EncodedCorpus:
    return encode(planted(2, "short", 5, {"train": 64, "dev": 20, "test": 20}))


def test_the_literal_tying_sums_over_dimensions() -> None:
    model, batch = classifier("bilstm+additive"), batch_of()
    inputs = model.embed(batch)
    passed = model.from_inputs(inputs, batch)
    mean = objectives.tying(passed, inputs, batch.mask)
    literal = (passed.word_states - inputs)[batch.mask].norm(dim=-1).square().mean()
    summed = objectives.tying(passed, inputs, batch.mask, "sum")
    assert float(summed) == pytest.approx(float(literal), rel=1e-12)
    assert float(summed) == pytest.approx(6 * float(mean), rel=1e-12)


def test_clean_and_masked_documents_in_one_call_equal_two_calls() -> None:
    model, batch = classifier("bilstm+additive+mlm:1", classes=2), batch_of()
    with seeded(3):
        corrupted, chosen = objectives.corrupt(batch.ids, batch.mask, len(model.vocabulary))
    chosen[0, 0] = True  # at least one, whatever was drawn
    states = model(replace(batch, ids=corrupted)).word_states
    alone = objectives.guesses(model, states, batch.ids, chosen)
    both = replace(batch.repeated(2), ids=torch.cat([batch.ids, corrupted]))
    stacked = model(both)
    count = len(batch)
    together = objectives.guesses(model, stacked.word_states[count:], batch.ids, chosen)
    assert float(together) == pytest.approx(float(alone), rel=1e-12)
    torch.testing.assert_close(stacked.logits[:count], model(batch).logits)


def test_the_stacked_pass_gives_the_clean_decision(corpus: EncodedCorpus) -> None:
    model = classifier("bigru+dot", classes=2)
    batch = batch_of()
    passed, added = objectives.with_penalties(model, batch, Penalties(masked_words=2.0))
    torch.testing.assert_close(passed.logits, model(batch).logits)
    assert passed.attended.values.shape[0] == passed.mask.shape[0] == len(batch)
    assert float(added) >= 0


def test_guesses_per_word_and_per_document_differ_by_their_counts() -> None:
    model, batch = classifier("bilstm+additive", classes=2), batch_of()
    states, chosen = model(batch).word_states, batch.mask
    per_document = objectives.guesses(model, states, batch.ids, chosen)
    per_word = objectives.guesses(model, states, batch.ids, chosen, "words")
    total = float(per_document) * len(batch)
    assert total == pytest.approx(float(per_word) * int(batch.mask.sum()), rel=1e-12)


@pytest.mark.parametrize("models", [(), (3,)])
@pytest.mark.parametrize("logits", [1, 40, 2**26])
def test_guessed_words_cost_and_teach_what_autograd_says(
    models: tuple[int, ...], logits: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(objectives.LOGITS, "cpu", logits)  # one place at a time, a few, all
    generator = torch.Generator().manual_seed(4)
    table, plain = (
        5 * torch.randn(*models, count, 6, generator=generator).double() for count in (11, 7)
    )
    gold = torch.randint(11, (7,), generator=generator)
    states, plain = plain.clone().requires_grad_(), plain.requires_grad_()
    found = objectives.guessed(states, table, gold)
    right = (plain @ table.mT).log_softmax(-1)
    expected = -right.gather(-1, gold.expand(*models, -1)[..., None])[..., 0]
    torch.testing.assert_close(found, expected, rtol=1e-12, atol=1e-12)
    weights = torch.rand(found.shape, generator=generator).double()
    (found * weights).sum().backward()
    (expected * weights).sum().backward()
    torch.testing.assert_close(states.grad, plain.grad, rtol=1e-12, atol=1e-12)


def test_masked_words_need_a_table_that_stays() -> None:
    model = classifier("bilstm+additive", classes=2)
    with pytest.raises(InputError, match="set freeze_embeddings to true"):
        objectives.check(model.config, Penalties(masked_words=1.0))


def test_residual_without_states_attends_to_embeddings() -> None:
    residual, plain = classifier("bilstm+additive+residual"), classifier("none+additive")
    batch = batch_of()
    with torch.no_grad():
        for weight in residual.level.encoder.parameters():
            weight.zero_()
        for part in ("embedding", "level.attention", "head"):
            found = residual.get_submodule(part).state_dict()
            plain.get_submodule(part).load_state_dict(found)
    torch.testing.assert_close(read(residual, batch).logits, read(plain, batch).logits)


def test_concat_with_its_embedding_half_zeroed_is_base() -> None:
    base, concat = classifier("bilstm+scaled-dot"), classifier("bilstm+scaled-dot+concat")
    batch = batch_of()
    with torch.no_grad():
        concat.embedding.load_state_dict(base.embedding.state_dict())
        concat.level.encoder.load_state_dict(base.level.encoder.state_dict())
        width = base.level.dim
        for mine, theirs in (
            (concat.level.attention.query, base.level.attention.query),
            (concat.head, base.head),
        ):
            mine.weight.zero_()
            mine.weight[:, :width] = theirs.weight
        concat.head.bias.copy_(base.head.bias)
    concat.level.attention.scale = base.level.attention.scale  # √600 and √300 in the paper
    torch.testing.assert_close(read(concat, batch).logits, read(base, batch).logits)


def test_marks_are_read_by_the_encoder_and_not_attended() -> None:
    model, batch = classifier("bilstm+additive", marks=True), batch_of()
    reading = read(model, batch)
    assert reading.attention.shape == batch.ids.shape
    torch.testing.assert_close(reading.attention.sum(-1), torch.ones(len(batch)).double())
    # The same as a plain model that reads two more words of the same vectors.
    plain = classifier("bilstm+additive")
    state = {k: v for k, v in model.state_dict().items() if not k.endswith("marks")}
    plain.load_state_dict({k.replace("encoder.encoder.", "encoder."): v for k, v in state.items()})
    for row, length in enumerate(batch.lengths.tolist()):
        vectors = model.embed(batch)[row : row + 1, :length]
        marks = model.level.encoder.marks
        longer = torch.cat([marks[:1][None], vectors, marks[1:][None]], 1)
        states = plain.level.encoder(longer, torch.ones(1, length + 2, dtype=torch.bool))
        torch.testing.assert_close(reading.values[row, :length], states[0, 1:-1])


@pytest.mark.parametrize("recipe", ["bilstm+additive", "conv+scaled-dot", "han:bigru+additive"])
def test_padding_never_changes_a_model_with_marks(recipe: str) -> None:
    model, batch = classifier(recipe, marks=True), batch_of()
    wide = read(model, padded(batch, 5))
    torch.testing.assert_close(wide.logits, read(model, batch).logits, rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("recipe", ["bilstm+scaled-dot", "gru+dot+concat", "none+dot"])
def test_an_instance_query_ignores_padding_and_depends_on_the_document(recipe: str) -> None:
    model, batch = classifier(recipe, instance_query=True), batch_of()
    plain, wide = read(model, batch), read(model, padded(batch, 4))
    torch.testing.assert_close(wide.logits, plain.logits, rtol=1e-12, atol=1e-12)
    values = plain.values[2, : int(batch.lengths[2])]
    query = values.mean(0) @ model.level.attention.query.weight.T
    scores = values @ query / model.level.attention.scale
    torch.testing.assert_close(plain.scores[2, : len(scores)], scores)


def test_an_instance_query_is_for_dot_attention() -> None:
    with pytest.raises(InputError, match="dot and scaled-dot"):
        ModelConfig(attention="additive", instance_query=True)


@pytest.mark.parametrize("name", ["tying_over", "masked_over"])
def test_unknown_reductions_are_refused(name: str) -> None:
    with pytest.raises(InputError, match="reduction"):
        Penalties(**{name: "median"})  # type: ignore[arg-type]


def test_a_dev_split_without_the_positive_class_is_refused(corpus: EncodedCorpus) -> None:
    dev = corpus.splits["dev"]
    none = replace(dev, labels=np.zeros_like(dev.labels))
    lost = replace(corpus, splits={**corpus.splits, "dev": none})
    model = build(parse("none+additive").model, corpus.vocabulary, corpus.classes)
    with pytest.raises(InputError, match="no dev document"):
        fit(model, lost, TrainConfig(epochs=1, select="f1"))


def test_balanced_classes_weigh_the_rare_one_more(corpus: EncodedCorpus) -> None:
    model = classifier("none+additive", classes=2)
    batch = batch_of()
    labels = torch.tensor([0, 0, 0, 1])
    batch = replace(batch, labels=labels)
    logits = model(batch).logits
    weights = torch.tensor([4 / (2 * 3), 4 / (2 * 1)]).double()
    losses = torch.nn.functional.cross_entropy(logits, labels, reduction="none")
    expected = (losses * weights[labels]).sum() / weights[labels].sum()
    found = objectives.loss(model, batch, Penalties(), weights)
    assert float(found) == pytest.approx(float(expected), rel=1e-12)


def test_every_preset_of_the_study_builds_and_learns(corpus: EncodedCorpus) -> None:
    names = [name for name in PRESETS if name.startswith("faithful/")]
    assert len(names) == 10
    for name in names:
        preset = PRESETS[name]
        sizes = preset.model | {"embedding_dim": 8, "width": 8}
        recipe = parse(preset.recipe, **sizes)
        model = build(recipe.model, corpus.vocabulary, corpus.classes)
        objectives.check(model.config, recipe.penalties)
        batch = next(batches(corpus.splits["train"], 8))
        loss = objectives.loss(model, batch, recipe.penalties)
        loss.backward()  # type: ignore[no-untyped-call]
        assert torch.isfinite(loss)
        assert preset.train.optimiser == "amsgrad"
        assert preset.train.select == "f1"
