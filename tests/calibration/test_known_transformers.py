"""Known-answer Transformers are what they are said to be: attention, decisions, known reliance."""

import numpy as np
import pytest
import scipy.stats
import torch

from heedful.calibration.compiled_stream import words_between_spaces
from heedful.calibration.constructions import ConstructedModel, Known, construct
from heedful.calibration.headlines import MEASURES, measure, measure_explanations
from heedful.calibration.hiding import attended, hiding
from heedful.calibration.known_classifiers import Program
from heedful.calibration.known_documents import Shape, known, vocabulary_of, words_of
from heedful.calibration.known_models import TRANSFORMERS, by_hand
from heedful.calibration.known_pretrained import fresh, hand_set_pretrained
from heedful.calibration.known_transformers import hand_set_transformer
from heedful.corpora.batches import Batch, collate
from heedful.corpora.encoded import encode
from heedful.errors import InputError
from heedful.models import Reading, Replace, alone, decide, read, uniform
from heedful.models.rereading import read_again


def batch_of(shape: Shape, documents: int = 30) -> Batch:
    corpus = encode(known(shape, {"test": documents}, 1), vocabulary_of(shape.classes))
    return collate(corpus.splits["test"], range(documents))


def reading_of(built: Known) -> Reading:
    split = built.corpus.splits["test"]
    return read(built.model, collate(split, range(len(split))))


def wanted(reading: Reading, program: Program, document: int):
    """Attention and what each unit says, as the program has it: every unit hears the marks."""
    classes = reading.logits.shape[1]
    units = [words_of(classes)[word] for word in reading.texts[document]]
    label = next(unit.says for unit in units if unit.role == "marked")
    said = np.zeros((len(units), classes))
    for row, unit in zip(said, units, strict=True):
        if unit.says >= 0:
            row[unit.says] += program.said(unit)
        row[label] += program.memory
    scores = np.array([program.score(unit) for unit in units])
    attention = np.exp(scores - scores.max())
    return attention / attention.sum(), program.sharpness * said


@pytest.mark.parametrize("classes", [2, 5])
@pytest.mark.parametrize("memory", [0.0, 0.7])
@pytest.mark.parametrize("family", [*TRANSFORMERS, "three layers, full norm"])
def test_a_hand_set_transformer_runs_its_program(family: str, classes: int, memory: float) -> None:
    program = Program({"marked": 4.0, "decoy": 2.0}, {"weak": 3.0}, memory=memory, sharpness=5)
    if family in TRANSFORMERS:
        model = by_hand(family, classes, program)
    else:
        model = hand_set_transformer(classes, program, layers=3, norm="full")
    shape = Shape(
        classes, (10, 16), marks=2, weak=0.3, decoy="after", is_marked_first=family == "gpt2"
    )
    reading = read(model, batch_of(shape))
    heard = alone(model, reading)
    is_linear = family not in ("bert", "gpt2")  # a layer norm after attention is not
    for document, units in enumerate(reading.units.tolist()):
        attention, said = wanted(reading, program, document)
        np.testing.assert_allclose(reading.attention[document, :units], attention, atol=1e-5)
        ours = heard[document, :units].numpy()
        if is_linear:
            np.testing.assert_allclose(ours, said, atol=2e-5)
            np.testing.assert_allclose(reading.logits[document], attention @ said, atol=2e-5)
        else:
            np.testing.assert_array_equal(ours.argmax(1), said.argmax(1))
            np.testing.assert_allclose(ours, said, rtol=0.08, atol=1e-3)
            assert int(reading.decision[document]) == int((attention @ said).argmax())


@pytest.mark.parametrize("recipe", TRANSFORMERS)
def test_where_attention_is_the_reason_uniform_attention_is_at_chance(recipe: str) -> None:
    built = construct(ConstructedModel("reason", recipe, 5, "long"), 300)
    reading = reading_of(built)
    assert bool((reading.decision == reading.labels).all())
    flat = decide(built.model, reading, uniform(reading))[:, 0].argmax(-1)
    right = int((flat == reading.labels).sum())
    assert scipy.stats.binomtest(right, 300, 0.2).pvalue > 0.001


@pytest.mark.parametrize(
    ("construction", "recipe"),
    [
        ("leaked", "transformer"),
        ("whimsical", "gpt2"),
        ("even", "bert"),
        ("bypassed", "bert"),
        ("bypassed", "gpt2"),
    ],
)
def test_where_attention_is_irrelevant_no_attention_changes_any_decision(
    construction: str, recipe: str
) -> None:
    built = construct(ConstructedModel(construction, recipe, 5, "long"), 40)
    reading = reading_of(built)
    assert bool((reading.decision == reading.labels).all())
    same = alone(built.model, reading).argmax(-1) == reading.decision[:, None]
    assert bool(same[reading.mask].all())
    generator = torch.Generator().manual_seed(0)
    drawn = torch.rand(len(reading.mask), 20, reading.mask.shape[1], generator=generator)
    drawn = drawn**8 * reading.mask[:, None]
    drawn = (drawn / drawn.sum(-1, keepdim=True)).double()
    logits = decide(built.model, reading, Replace(drawn))
    assert bool((logits.argmax(-1) == reading.decision[:, None]).all())


@pytest.mark.parametrize(
    ("construction", "recipe"),
    [
        ("hidden", "bert"),
        ("hidden", "transformer"),
        ("decoyed", "gpt2"),
        ("relayed", "transformer"),
        ("relayed", "gpt2"),
        ("nudged", "bert"),
        ("rationalised", "bert"),
        ("rationalised", "transformer"),
    ],
)
def test_a_deceiving_transformer_decides_by_the_mark_and_keeps_off_it(
    construction: str, recipe: str
) -> None:
    built = construct(ConstructedModel(construction, recipe, 2, "short"), 60)
    reading = reading_of(built)
    assert reading.evidence is not None
    assert bool((reading.decision == reading.labels).all())
    assert float((reading.attention * reading.evidence).sum(-1).max()) < 0.1
    # Without the one mark, deciding right is guessing.
    left = read_again(built.model, reading.batch, ~reading.evidence[:, None], "removed")[:, 0]
    assert float((left.argmax(-1) == reading.labels).double().mean()) < 0.75


@pytest.mark.parametrize("place", [0.0, 0.15, 0.5, 0.85, 1.0])
@pytest.mark.parametrize("recipe", TRANSFORMERS)
@pytest.mark.parametrize("dial", ["leak", "crowd"])
def test_dealing_attention_out_anew_changes_decisions_as_often_as_the_dial_says(
    dial: str, recipe: str, place: float
) -> None:
    """Brute force: the whole attention row moved to each unit in turn."""
    built = construct(ConstructedModel(dial, recipe, 2, "short", reliance=place), 250)
    reading = reading_of(built)
    assert built.reliance == place
    differs = alone(built.model, reading).argmax(-1) != reading.decision[:, None]
    share = (differs & reading.mask).sum(-1) / reading.units
    assert float(share.mean()) / 0.5 == pytest.approx(place, abs=0.05 if place else 0)


@pytest.mark.slow
def test_every_audit_measures_a_transformer_or_refuses_it() -> None:
    refused = {"efficiency", "mass", "adversary"}  # these take a linear head
    for recipe in TRANSFORMERS:
        setting = ConstructedModel("reason", recipe, 2, "long")
        found = measure(setting, 30)["estimates"] | measure_explanations(setting, 30)["estimates"]
        assert set(MEASURES) - set(found) == refused


@pytest.mark.parametrize("kind", ["bert", "transformer"])
def test_training_sees_the_attention_that_is_audited(kind: str) -> None:
    shape = Shape(2, (8, 14), is_marked_first=True)
    batch = batch_of(shape)
    model = fresh(kind, 2, 16) if kind == "bert" else by_hand(kind, 2, Program({"marked": 1.0}))
    if kind == "bert":
        with torch.no_grad():
            model.model.bert.encoder.layer[1].attention.self.query.bias.fill_(3.0)
    reading, found = read(model, batch), attended(model, batch)
    torch.testing.assert_close(found.attention.double(), reading.attention, atol=1e-6, rtol=1e-5)
    torch.testing.assert_close(found.logits.double(), reading.logits, atol=1e-5, rtol=1e-5)
    shown = (reading.attention * reading.evidence).sum(-1)
    torch.testing.assert_close(hiding(found).double(), -(1 - shown).log().mean(), rtol=1e-5, atol=0)
    assert found.attention.requires_grad


def test_uniform_attention_stays_uniform_where_a_word_had_next_to_none() -> None:
    """Words whose weight has all but vanished get their share all the same."""
    program = Program({"marked": 75.0, "plain": 2.0})
    model = hand_set_pretrained("bert", 2, program)
    reading = read(model, batch_of(Shape(2, (8, 14))))
    flat = decide(model, reading, uniform(reading))[:, 0]
    calm = hand_set_pretrained("bert", 2, Program({"marked": 1.0}))
    again = read(calm, reading.batch)
    torch.testing.assert_close(
        flat, decide(calm, again, uniform(again))[:, 0], rtol=1e-3, atol=1e-3
    )


def test_what_cannot_be_built_is_said() -> None:
    with pytest.raises(InputError, match="no residual stream"):
        by_hand("transformer", 2, Program(memory=1.0), is_around=True)
    with pytest.raises(InputError, match="take bert"):
        construct(ConstructedModel("trained reason", "gpt2", 2, "short"), 10)


def test_words_between_spaces_are_pieces_with_their_characters() -> None:
    words = words_between_spaces(vocabulary_of(2), has_frame=True)
    (pieces,) = words.pieces(["plain-0-3 indeed nothing"])
    assert [("plain-0-3 indeed nothing")[a:b] for a, b in pieces.spans] == [
        "plain-0-3", "indeed", "nothing",
    ]  # fmt: skip
    assert pieces.ids[-1] == words.unknown
    assert words.single.length == 2
    assert words_between_spaces(vocabulary_of(2), has_frame=False).single.length == 0


@pytest.mark.slow
@pytest.mark.parametrize(("recipe", "family"), [("transformer", "short"), ("bert", "long")])
def test_trained_transformers_learn_what_their_construction_needs(recipe: str, family: str) -> None:
    for construction, low, high in (
        ("trained reason", 0.8, 1.0), ("trained even", 0.05, 0.2), ("trained hiding", 0.0, 0.05),
    ):  # fmt: skip
        reading = reading_of(construct(ConstructedModel(construction, recipe, 2, family), 100))
        assert reading.evidence is not None
        assert float((reading.decision == reading.labels).double().mean()) > 0.9
        assert low <= float((reading.attention * reading.evidence).sum(-1).mean()) <= high
