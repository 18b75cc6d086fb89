"""Known-answer models are what they are said to be, to the bit where that is claimed."""

import numpy as np
import pytest
import torch

from heedful.calibration.known_classifiers import Program, hand_set
from heedful.calibration.known_documents import Shape, known, vocabulary_of, words_of
from heedful.corpora.batches import Batch, collate
from heedful.corpora.encoded import encode
from heedful.errors import InputError
from heedful.models import Reading, read

RECIPES = (
    "none+dot", "affine+additive", "affine-tanh+scaled-dot", "conv+dot", "lstm+additive",
    "bilstm+dot", "gru+dot", "bigru+additive", "han:none+dot", "han:bilstm+additive",
    "han:gru+dot", "han:conv+additive", "han:affine-tanh+additive",
)  # fmt: skip


def batch_of(shape: Shape, documents: int = 40, seed: int = 1) -> Batch:
    corpus = encode(known(shape, {"test": documents}, seed), vocabulary_of(shape.classes))
    return collate(corpus.splits["test"], range(documents))


def wanted(
    reading: Reading, program: Program, recipe: str, document: int
) -> tuple[np.ndarray, np.ndarray]:
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
    batch = batch_of(Shape(units=(8, 14), is_marked_first=True))
    reading = read(hand_set(recipe, 2, Program(match=8.0)), batch)
    words = words_of(2)
    for document, units in enumerate(reading.units.tolist()):
        texts = [words[text] for text in reading.texts[document]]
        label = int(reading.labels[document])
        says = torch.tensor([u.says == label and u.role != "marked" for u in texts])
        row = reading.attention[document, :units]
        assert float(row[says].sum()) > 0.98
        torch.testing.assert_close(row[says], row[says].mean().expand(int(says.sum())))


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


def test_a_program_names_the_models_it_can_be_set_into() -> None:
    with pytest.raises(InputError, match="passes nothing between units"):
        hand_set("none+dot", 2, Program(memory=1.0))
    with pytest.raises(InputError, match="no join"):
        hand_set("bilstm+dot+concat", 2, Program())
    with pytest.raises(InputError, match="dot attention"):
        hand_set("bilstm+additive", 2, Program(match=1.0))
    with pytest.raises(InputError, match="at least 10 units"):
        Shape(5, (8, 14), marks=2)
