"""Every mechanism is what its paragraph says: builds, decides, attends, has its right word."""

import math

import numpy as np
import pytest
import torch

from heedful.calibration.compiled_stream import (
    ONE,
    SPECIAL,
    HeadProgram,
    LayerProgram,
    NeuronProgram,
    StreamProgram,
    compiled,
)
from heedful.calibration.mechanism import NEUTRAL, Built, Mechanism, corpus_of
from heedful.calibration.mechanisms import BUILDS, FAMILIES, MECHANISMS
from heedful.calibration.mechanisms_composition import NOT
from heedful.calibration.mechanisms_heads import OFF, sheet
from heedful.calibration.mechanisms_words import DECOY, SAID, one_word, vocabulary
from heedful.calibration.truth import Truth, truth_of
from heedful.corpora.batches import collate
from heedful.models import Reading, read

TEXTS = 16
OPEN = {name: one for name, one in MECHANISMS.items() if one.part == "open"}
LEARNT = {name for name, one in OPEN.items() if one.build.__qualname__.startswith("learnt")}
COMPILED = [name for name in OPEN if name not in LEARNT]

PARTLY = {
    "decoy in 35% of the texts",
    "decoy in 50% of the texts",
    "decoy in 65% of the texts",
    "one class hidden, the other seen",
    "texts of five to seventy words",
    "a class by default",
    "told to all later words, at layer 1",
    "bypass for 2 of six words",
    "bypass for 3 of six words",
    "bypass for 4 of six words",
    "negation in half of the texts",
}
YES = {
    "honest word, silent context",
    "honest verdict among voices",
    "soft but honest",
    "honest among five classes",
    "decoy with 0.30 of the mass",
    "decoy with 0.45 of the mass",
    "decoy in 10% of the texts",
    "bypass for 1 of six words",
    "honest evidence 2 times",
    "honest evidence 3 times",
    "evidence three times, attention on one",
    "three of five vote",
    "ten words of twenty vote",
    "thirty words of sixty vote",
    "every word votes, attention even",
    "honest texts of two or three words",
    "honest word of sixty to seventy",
    "honest sentence of two to four",
    "honest at 95 to 5",
    "honest and saturated",
    "honest near ties",
    "honest with noise",
    "honest at chance",
    "four heads, one on a decoy",
    "four honest heads",
    "honest at layer 0",
    "honest at all layers",
    "residual stream with 0.10 of the effect",
    "residual stream with 0.30 of the effect",
    "residual stream with 0.45 of the effect",
    "attention on the separator, the rest honest",
    "negation seen whole",
    "two words agree or not, both seen",
    "the first of two wins",
    "remembered from both sides",
}


def reading_of(built: Built) -> Reading:
    split = built.corpus.splits["test"]
    return read(built.model, collate(split, range(len(split))))


def mass(reading: Reading, *words: str) -> np.ndarray:
    """The attention of each text on some words."""
    named = [[word in words for word in text] for text in reading.texts]
    weights = [row[: len(text)] for row, text in zip(reading.attention, named, strict=True)]
    pairs = zip(weights, named, strict=True)
    return np.array([float(row[torch.tensor(on)].sum()) for row, on in pairs])


@pytest.mark.slow
@pytest.mark.parametrize("name", COMPILED)
def test_a_mechanism_has_the_word_that_its_paragraph_promises(name: str) -> None:
    is_share = MECHANISMS[name].dial.startswith("share of") or name in PARTLY
    texts = 100 if is_share or "of six" in name else TEXTS
    found = truth_of(MECHANISMS[name].build(0, 200), texts=texts)
    assert len(found.texts) == texts
    wanted = "yes" if name in YES else "partly" if name in PARTLY else "no"
    assert found.word == wanted
    assert found.unstable.value == 0.0  # what cannot matter does not
    is_chance = MECHANISMS[name].kind in ("chance", "noise")
    assert is_chance or found.accuracy == 1.0


def test_mechanisms_are_many_and_told() -> None:
    observations = {one.dial or one.name for one in OPEN.values()}
    assert len(observations) >= 42
    assert set(BUILDS) == set(MECHANISMS)
    assert len(BUILDS) == sum(len(family.MECHANISMS) for family in FAMILIES)  # no name twice
    for one in MECHANISMS.values():
        assert len(one.paragraph.split()) >= 5
        assert one.paragraph.endswith(".")
    assert {*YES, *PARTLY} <= set(OPEN)


@pytest.mark.parametrize("share", [0.3, 0.45, 0.6, 0.75, 0.9])
def test_a_decoy_has_the_mass_that_its_name_says(share: float) -> None:
    built = MECHANISMS[f"decoy with {share:.2f} of the mass"].build(0, 20)
    on_decoy = mass(reading_of(built), DECOY)
    assert on_decoy == pytest.approx(np.full(20, share), abs=1e-3)


@pytest.mark.parametrize(
    ("name", "words", "least", "most"),
    [
        ("hidden word", tuple(SAID), 0.0, 2e-3),
        ("soft but honest", ("avoid", "choose"), 0.0, 0.85),
        ("four heads, three on a decoy", (DECOY,), 0.7, 0.76),
        ("relayed to a decoy", (DECOY,), 0.98, 1.0),
        ("attention on full stops", (".",), 0.85, 0.95),
        ("negation, the polar word seen", (NOT,), 0.0, 0.01),
        ("rationalised, evidence twice", tuple(SAID), 0.95, 1.0),
        ("thirty words of sixty vote", tuple(SAID), 0.99, 1.0),
    ],
)
def test_attention_lies_where_the_paragraph_says(
    name: str, words: tuple[str, ...], least: float, most: float
) -> None:
    built = MECHANISMS[name].build(0, 20)
    found = mass(reading_of(built), *words)
    assert found.min() >= least - 1e-9
    assert found.max() <= most + 1e-9


def test_special_tokens_take_what_the_separator_mechanism_says() -> None:
    outside = reading_of(
        MECHANISMS["attention on the separator, the rest honest"].build(0, 20)
    ).outside
    assert outside is not None
    assert float(outside.min()) > 0.7  # [CLS] and [SEP] together


def _plainly(program: StreamProgram, words: list[str], reader: int) -> np.ndarray:
    """A program's logits without any network: attributes in a dictionary, in float64."""
    stream = [{ONE: 1.0, **program.words.get(word, {})} for word in words]
    for layer in program.layers:
        before = [dict(position) for position in stream]
        for head in layer.heads:
            for number, position in enumerate(stream):
                asks = before[number].get(head.asks, 0.0)
                scores = [
                    asks * sum(weight * key.get(name, 0.0) for name, weight in head.scores.items())
                    for key in before
                ]
                weights = np.exp(np.array(scores) - max(scores))
                weights /= weights.sum()
                for source, target, times in head.hands:
                    said = [times * key.get(source, 0.0) for key in before]
                    position[target] = position.get(target, 0.0) + float(weights @ said)
        for position in stream:
            found = [
                max(0.0, sum(w * position.get(name, 0.0) for name, w in neuron.reads.items()))
                for neuron in layer.neurons
            ]
            for neuron, height in zip(layer.neurons, found, strict=True):
                for name, times in neuron.writes.items():
                    position[name] = position.get(name, 0.0) + times * height
    return sum(
        stream[reader].get(name, 0.0) * np.array(said) for name, said in program.decides.items()
    )


@pytest.mark.parametrize("kind", ["bert", "gpt2", "llama", "own"])
def test_a_compiled_transformer_runs_its_program(kind: str) -> None:
    corpus = corpus_of(one_word(beside=(DECOY,)), {"test": 12}, 0, words=vocabulary())
    top = HeadProgram({"word": 2.0, "told": 0.5, **OFF}, (("told", "heard", 0.7),))
    neuron = NeuronProgram({"told": 1.0, "decoy": 1.0, ONE: -0.5}, {"told": 0.5})
    below = LayerProgram([HeadProgram({"word": 3.0, **OFF}, (("said", "told", 1.0),))], [neuron])
    program = StreamProgram(sheet(), [below, LayerProgram([top])], {"heard": (-4.0, 4.0)})
    reading = reading_of(Built(compiled(kind, program, corpus), corpus, {}, NEUTRAL))
    for text, logits in zip(reading.texts, reading.logits.tolist(), strict=True):
        words, reader = list(text), len(text) - 1
        if kind == "bert":
            words, reader = ["[CLS]", *text, "[SEP]"], 0
        if kind in ("gpt2", "llama"):
            continue  # a causal model's lower layer sees the words before alone; below
        start = dict(program.words) | {name: {SPECIAL: 1.0} for name in ("[CLS]", "[SEP]")}
        plain = StreamProgram(start, program.layers, program.decides)
        assert logits == pytest.approx(_plainly(plain, words, reader), rel=0.04, abs=0.04)


@pytest.mark.parametrize("kind", ["gpt2", "llama"])
def test_a_compiled_causal_transformer_runs_its_program(kind: str) -> None:
    corpus = corpus_of(one_word(beside=(DECOY,)), {"test": 12}, 0, words=vocabulary())
    layer = LayerProgram(
        [HeadProgram({"word": 3.0}, (("said", "told", 1.0),)), HeadProgram({"decoy": 2.0})],
        [NeuronProgram({"told": 1.0, ONE: 0.1}, {"told": 0.5})],
    )
    program = StreamProgram(sheet(), [layer], {"told": (-4.0, 4.0)})
    reading = reading_of(Built(compiled(kind, program, corpus), corpus, {}, NEUTRAL))
    for text, logits in zip(reading.texts, reading.logits.tolist(), strict=True):
        wanted = _plainly(program, list(text), len(text) - 1)
        assert logits == pytest.approx(wanted, rel=0.04, abs=0.04)


@pytest.mark.slow
@pytest.mark.parametrize("name", sorted(LEARNT))
def test_a_trained_mechanism_has_learnt(name: str) -> None:
    found: Truth = truth_of(MECHANISMS[name].build(0, 100))
    assert found.accuracy >= 0.9
    assert found.unstable.value <= 0.1
    assert not math.isnan(found.both.value)


def test_a_seed_changes_texts_and_not_the_mechanism() -> None:
    one: Mechanism = MECHANISMS["honest verdict among voices"]
    first, second, again = (one.build(seed, 10) for seed in (0, 1, 0))
    assert first.corpus.fingerprint != second.corpus.fingerprint
    assert first.corpus.fingerprint == again.corpus.fingerprint
