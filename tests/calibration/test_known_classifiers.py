"""Known-answer models are what they are said to be, to the bit where that is claimed."""

import numpy as np
import pytest
import scipy.stats
import torch

from heedful.calibration.constructions import (
    CONSTRUCTIONS,
    ConstructedModel,
    construct,
    is_near,
    right_word,
)
from heedful.calibration.known_classifiers import Program, hand_set
from heedful.calibration.known_documents import Shape, known, vocabulary_of, words_of
from heedful.corpora.batches import Batch, collate
from heedful.corpora.encoded import encode
from heedful.errors import InputError
from heedful.models import Reading, alone, decide, read, uniform

RECIPES = (
    "none+dot", "affine+additive", "affine-tanh+scaled-dot", "conv+dot", "lstm+additive",
    "bilstm+dot", "gru+dot", "bigru+additive", "han:none+dot", "han:bilstm+additive",
    "han:gru+dot", "han:conv+additive", "han:affine-tanh+additive",
)  # fmt: skip
REMEMBERING = ("lstm+additive", "gru+dot", "bilstm+dot", "bigru+additive", "han:bigru+dot")


def batch_of(shape: Shape, documents: int = 40, seed: int = 1) -> Batch:
    corpus = encode(known(shape, {"test": documents}, seed), vocabulary_of(shape.classes))
    return collate(corpus.splits["test"], range(documents))


def reading_of(setting: ConstructedModel, documents: int = 60) -> Reading:
    built = construct(setting, documents)
    return read(built.model, collate(built.corpus.splits["test"], range(documents)))


def wanted(reading: Reading, program: Program, recipe: str, document: int):
    """Attention and unit logits as the program says, unit by unit."""
    words, classes = words_of(reading.logits.shape[1]), reading.logits.shape[1]
    units = [
        next(words[w] for w in text.split() if words[w].role != "empty")
        for text in reading.texts[document]
    ]
    marks = [place for place, unit in enumerate(units) if unit.role == "marked"]
    label = units[marks[0]].says
    encoder = recipe.removeprefix("han:").partition("+")[0]
    said = np.zeros((len(units), classes))
    for place, unit in enumerate(units):
        if unit.says >= 0:
            said[place, unit.says] += program.said(unit)
        heard = {
            "conv": place - 1 in marks,
            "lstm": place >= marks[0],
            "gru": place >= marks[0],
            "bilstm": (place >= marks[0]) + (place <= marks[-1]),
            "bigru": (place >= marks[0]) + (place <= marks[-1]),
        }
        said[place, label] += program.memory * heard.get(encoder, 0)
    scores = np.array([program.score(unit) for unit in units])
    attention = np.exp(scores - scores.max())
    return attention / attention.sum(), program.sharpness * said


@pytest.mark.parametrize("classes", [2, 5])
@pytest.mark.parametrize("recipe", RECIPES)
def test_a_hand_set_model_runs_its_program(recipe: str, classes: int) -> None:
    remembers = not recipe.removeprefix("han:").startswith(("none", "affine"))
    program = Program(
        {"marked": 7.0, "decoy": 2.0}, {"weak": 3.0}, memory=0.7 * remembers, sharpness=5
    )
    words = 3 if recipe.startswith("han:") else 1
    shape = Shape(classes, (10, 16), marks=2, weak=0.3, decoy="after", words=words)
    reading = read(hand_set(recipe, classes, program), batch_of(shape))
    assert reading.unit_logits is not None
    for document, units in enumerate(reading.units.tolist()):
        attention, said = wanted(reading, program, recipe, document)
        np.testing.assert_allclose(reading.attention[document, :units], attention, atol=1e-6)
        np.testing.assert_allclose(reading.unit_logits[document, :units], said, atol=2e-5)


@pytest.mark.parametrize("recipe", ["gru+dot", "bilstm+scaled-dot"])
def test_matching_attends_to_units_that_say_what_is_remembered(recipe: str) -> None:
    reading = reading_of(ConstructedModel("rationalised", recipe, 2, "short"))
    words = words_of(2)
    for document, units in enumerate(reading.units.tolist()):
        texts = [words[text] for text in reading.texts[document]]
        label = int(reading.labels[document])
        says = torch.tensor([u.says == label and u.role != "marked" for u in texts])
        row = reading.attention[document, :units]
        assert float(row[says].sum()) > 0.98
        torch.testing.assert_close(row[says], row[says].mean().expand(int(says.sum())))


@pytest.mark.parametrize("classes", [2, 5])
@pytest.mark.parametrize(
    ("recipe", "family"),
    [("none+dot", "short"), ("bilstm+additive", "long"), ("han:gru+dot", "long")],
)
@pytest.mark.parametrize("construction", ["reason", "chorus", "choir"])
def test_where_attention_is_the_reason_uniform_attention_is_at_chance(
    construction: str, recipe: str, family: str, classes: int
) -> None:
    built = construct(ConstructedModel(construction, recipe, classes, family), 400)
    reading = read(built.model, collate(built.corpus.splits["test"], range(400)))
    right = (reading.decision == reading.labels).double().mean()
    assert right == 1 if construction == "reason" else right > 0.99  # a vote can be a near thing
    flat = decide(built.model, reading, uniform(reading))[:, 0].argmax(-1)
    right = int((flat == reading.labels).sum())
    assert scipy.stats.binomtest(right, 400, 1 / classes).pvalue > 0.001


@pytest.mark.parametrize("construction", ["leaked", "whimsical", "even"])
@pytest.mark.parametrize("recipe", REMEMBERING)
def test_where_attention_is_irrelevant_no_edit_changes_any_decision(
    construction: str, recipe: str
) -> None:
    setting = ConstructedModel(construction, recipe, 5, "long")
    built = construct(setting, 60)
    reading = read(built.model, collate(built.corpus.splits["test"], range(60)))
    assert bool((reading.decision == reading.labels).all())
    # The decision changes under some attention if and only if it changes on a single unit.
    decided = alone(built.model, reading).argmax(-1) == reading.decision[:, None]
    assert bool(decided[reading.mask].all())


@pytest.mark.parametrize(
    ("construction", "recipe"),
    [
        ("hidden", "none+dot"),
        ("hidden", "han:affine-tanh+additive"),
        ("decoyed", "affine+additive"),
        ("relayed", "conv+dot"),
        ("relayed", "lstm+additive"),
        ("nudged", "bigru+additive"),
        ("rationalised", "han:lstm+dot"),
    ],
)
@pytest.mark.parametrize("classes", [2, 5])
def test_a_deceiving_model_is_accurate_and_keeps_off_the_evidence(
    construction: str, recipe: str, classes: int
) -> None:
    reading = reading_of(ConstructedModel(construction, recipe, classes, "long"))
    assert reading.evidence is not None
    assert bool((reading.decision == reading.labels).all())
    assert float((reading.attention * reading.evidence).sum(-1).max()) < 0.1


def changes(reading: Reading, classes: int) -> float:
    """Chance-corrected share of single units that decide otherwise, over all units."""
    assert reading.unit_logits is not None
    differs = reading.unit_logits.argmax(-1) != reading.decision[:, None]
    share = (differs & reading.mask).sum(-1) / reading.units
    return float(share.mean()) / (1 - 1 / classes)


@pytest.mark.parametrize("place", [0.0, 0.15, 0.5, 0.85, 1.0])
@pytest.mark.parametrize(("dial", "recipe"), [("leak", "bigru+dot"), ("crowd", "none+dot")])
@pytest.mark.parametrize("classes", [2, 5])
def test_moving_attention_changes_decisions_as_often_as_the_dial_says(
    dial: str, recipe: str, classes: int, place: float
) -> None:
    reading = reading_of(ConstructedModel(dial, recipe, classes, "short", reliance=place), 300)
    assert changes(reading, classes) == pytest.approx(place, abs=0.045 if place else 0)


def test_the_ends_of_the_dials_are_the_reason_and_the_irrelevant() -> None:
    for classes in (2, 5):
        setting = ConstructedModel("leak", "bilstm+dot", classes, "short", reliance=1.0)
        end = construct(setting, 4).model
        score = setting.vary(8, 10, "score")
        whole = hand_set("bilstm+dot", classes, Program({"marked": score}))
        for name, weight in whole.state_dict().items():
            torch.testing.assert_close(end.state_dict()[name], weight, rtol=0, atol=0)
        for dial in ("leak", "crowd"):
            start = reading_of(ConstructedModel(dial, "bilstm+dot", classes, "short", reliance=0.0))
            assert start.unit_logits is not None
            same = start.unit_logits.argmax(-1) == start.decision[:, None]
            assert bool(same[start.mask].all())


def test_the_right_word_follows_from_kind_and_reliance() -> None:
    assert [right_word("dial", r) for r in (0.0, 0.25, 0.26, 0.74, 0.75, 1.0)] == [
        "no", "no", "partly", "partly", "yes", "yes",
    ]  # fmt: skip
    assert right_word("deceiving", 1.0) == "no"
    assert [is_near(r) for r in (0.15, 0.21, 0.25, 0.3, 0.5, 0.79, 0.85)] == [
        False, True, True, False, False, True, False,
    ]  # fmt: skip


def test_documents_are_the_same_for_the_same_seed_and_labels_are_even() -> None:
    shape = Shape(5, (10, 14))
    one, same, other = (known(shape, {"test": 50}, seed) for seed in (3, 3, 4))
    assert one.fingerprint == same.fingerprint != other.fingerprint
    assert set(one.counts("test").values()) == {10}
    for document in one.splits["test"]:
        assert document.text == " ".join(document.tokens)
        assert [document.text[a:b] for a, b in document.spans] == list(document.tokens)
        marked = [words_of(5)[w].says for w in np.array(document.tokens)[document.evidence]]
        assert marked == [document.label]


def test_every_construction_names_the_models_it_can_be_built_for() -> None:
    with pytest.raises(InputError, match="passes nothing between units"):
        hand_set("none+dot", 2, Program(memory=1.0))
    with pytest.raises(InputError, match="no join"):
        hand_set("bilstm+dot+concat", 2, Program())
    with pytest.raises(InputError, match="dot attention"):
        hand_set("bilstm+additive", 2, Program(match=1.0))
    with pytest.raises(InputError, match="at least 10 units"):
        Shape(5, (8, 14), marks=2)
    assert {c.build.__name__.replace("_", " ") for c in CONSTRUCTIONS.values()} == set(
        CONSTRUCTIONS
    )


@pytest.mark.slow
def test_trained_models_learn_what_their_construction_needs() -> None:
    reason = reading_of(ConstructedModel("trained reason", "none+additive", 2, "short"), 100)
    hiding = reading_of(ConstructedModel("trained hiding", "bilstm+additive", 2, "short"), 100)
    for reading, low, high in ((reason, 0.8, 1.0), (hiding, 0.0, 0.02)):
        assert reading.evidence is not None
        assert float((reading.decision == reading.labels).double().mean()) > 0.95
        assert low <= float((reading.attention * reading.evidence).sum(-1).mean()) <= high
