"""The tables of traces, and the picture of one sentence, against matrices written out."""

from __future__ import annotations

import base64
import re
import xml.etree.ElementTree as ElementTree

import numpy as np
import pytest
import torch

from heedful.audits.traces import LOWEST, accuracy, token_tables
from heedful.corpora import collate, encode, load_prepared, planted, prepare
from heedful.importance.traced import squared_slopes
from heedful.jobs.instance_layers import describe_flow, packed_flow
from heedful.models import TransformerConfig, build, lat, rollout, trace
from heedful.models.tracing import layers_of
from heedful.report.drawing import standalone
from heedful.studies.tracing.flow_diagram import architecture, draw, raw, schematic
from heedful.studies.tracing.learnt import flow_of

HEADS, LAYERS = 2, 3


@pytest.fixture(scope="module")
def corpus():
    sizes = {"train": 20, "dev": 4, "test": 9}
    return encode(planted(5, "short", sizes=sizes), words_of=("train", "dev", "test"))


@pytest.fixture(scope="module")
def model(corpus):
    config = TransformerConfig(
        embedding_dim=10, layers=LAYERS, heads=HEADS, head_dim=8, feed_forward=8,
        pooling_dims=(8, 4), decider_dim=8,
    )  # fmt: skip
    made = build(config, corpus.vocabulary, corpus.classes, seed=2)
    with torch.no_grad():
        for layer in made.encoder.layers:
            layer.query.weight *= 5
    return made.eval()


@pytest.fixture(scope="module")
def tables(model, corpus):
    return token_tables(model, corpus.splits["test"])


def test_tokens_are_those_of_the_test_texts_in_order(tables, corpus):
    tokens, test = tables["tokens"], corpus.splits["test"]
    known = "instance position word length label_of_word lat gradient gradient_predicted pooling"
    others = ["averaged", "rollout", "top_layer", "even_start", *LOWEST]
    assert list(tokens) == [*known.split(), *others, "head_0", "head_1"]
    words = [word for document in test.documents for word in document.tokens]
    assert tokens["word"].tolist() == words
    assert tokens["instance"].drop_duplicates().tolist() == list(test.names)
    assert (tokens["length"] == np.repeat(test.lengths, test.lengths)).all()
    labels = np.concatenate([document.word_labels for document in test.documents])
    assert (tokens["label_of_word"] == labels).all()


@pytest.mark.parametrize("row", [0, 5])
def test_a_text_of_the_table_is_the_text_alone(tables, model, corpus, row):
    test = corpus.splits["test"]
    exact = build(model.config, model.vocabulary, model.classes)
    exact.load_state_dict(model.state_dict())
    exact = exact.double().eval()
    batch = collate(test, [row])
    stack = layers_of(exact, batch)
    decided = exact(batch).logits.argmax(-1)
    tokens = tables["tokens"]
    mine = tokens[tokens["instance"] == test.names[row]]
    for name, values in {
        "lat": lat(stack).total,
        "gradient": squared_slopes(exact, batch),
        "gradient_predicted": squared_slopes(exact, batch, decided),
        "pooling": stack.pooling,
        "averaged": trace(stack.layers, stack.pooling, heads="averaged").total,
        "rollout": rollout(stack).total,
        "top_layer": (stack.pooling[:, None, None] @ stack.layers[-1].matrix())[:, :, 0].sum(1),
        "even_start": trace(stack.layers, torch.full_like(stack.pooling, 1 / len(mine))).total,
        "head_1": lat(stack).input[:, 1],
    }.items():
        assert mine[name].to_numpy() == pytest.approx(values[0].detach().numpy(), rel=1e-5), name


def test_cells_hold_entropies_and_peaks_of_each_layer(tables, model, corpus):
    cells, test = tables["cells"], corpus.splits["test"]
    assert len(cells) == LAYERS * HEADS * len(test)
    assert cells["lost"].max() < 1e-12
    batch = collate(test, [3])
    stack = layers_of(model, batch)
    shares, rows = lat(stack).shares, stack.layers[1].matrix()[0, 1].detach()
    one = cells[(cells["instance"] == test.names[3]) & (cells["layer"] == 2) & (cells["head"] == 1)]
    entropy = -(rows * rows.log()).sum(-1).mean() / np.log(len(rows))
    assert float(one["entropy"].iloc[0]) == pytest.approx(float(entropy), abs=1e-5)
    assert float(one["peak"].iloc[0]) == pytest.approx(float(shares[1, 0, 1].max()), abs=1e-5)
    assert float(one["peak_above"].iloc[0]) == pytest.approx(float(shares[2, 0, 1].max()), abs=1e-5)


def test_documents_hold_the_decisions(tables, model, corpus):
    documents, test = tables["documents"], corpus.splits["test"]
    logits = torch.cat([model(collate(test, [row])).logits for row in range(len(test))])
    assert documents["prediction"].tolist() == logits.argmax(-1).tolist()
    right = (logits.argmax(-1).numpy() == test.labels).mean()
    assert accuracy(documents) == pytest.approx(right)


def test_labels_of_words_travel_with_prepared_files(tmp_path, corpus):
    whole = planted(5, "short", sizes={"train": 20, "dev": 4, "test": 9})
    prepare(whole, tmp_path / "kept", words_of=("train", "dev", "test"))
    again = load_prepared(tmp_path / "kept").splits["test"]
    assert (again.word_labels == corpus.splits["test"].word_labels).all()
    assert set(again.word_labels.tolist()) <= {0, 1, 2, 3, 4}


@pytest.fixture(scope="module")
def flow(tables, model, corpus):
    return flow_of(model.double(), corpus.splits["test"], tables["documents"], 10)


def test_the_flow_along_edges_sums_to_what_dots_hold(flow):
    shares, edges = np.asarray(flow["shares"]), np.asarray(flow["flow"])
    assert edges.sum(2) == pytest.approx(shares[:-1], abs=1e-4)  # into the lower dots
    assert edges.sum(3) == pytest.approx(shares[1:], abs=1e-4)  # out of the upper ones
    assert shares[-1] == pytest.approx(np.tile(flow["pooling"], (HEADS, 1)), abs=1e-6)


def test_the_drawing_has_every_cell_and_word_and_escapes_text(flow):
    evil = flow | {"words": ['<script>"x"</script>', *flow["words"][1:]]}
    picture = draw(evil, "a <b> & c")
    root = ElementTree.fromstring(picture)
    cells = [g for g in root.iter("g") if "data-head" in g.attrib]
    assert len(cells) == LAYERS * HEADS
    count = len(flow["words"])
    assert len(list(root.iter("circle"))) == (LAYERS + 1) * HEADS * count
    assert "<script" not in picture
    for darkness in ("clamp", "max", "softmax"):
        ElementTree.fromstring(draw(flow, darkness=darkness, has_pooling=False))


def test_the_drawing_is_a_file_that_any_reader_opens(flow):
    """A file of its own is XML, where an attribute given twice is an error."""
    root = ElementTree.fromstring(standalone(draw(flow)))
    assert root.tag.endswith("svg")
    for picture in (schematic(), architecture()):
        ElementTree.fromstring(standalone(picture))


def test_raw_attention_is_drawn_without_handing_down(flow, model):
    attention = np.array([np.full((HEADS, len(flow["words"]), len(flow["words"])), 0.25)] * LAYERS)
    shown = raw({**flow, "attention": attention.tolist()})
    assert np.asarray(shown["flow"]).shape == attention.shape
    shares = np.asarray(shown["shares"])
    assert shares.shape == (LAYERS + 1, HEADS, len(flow["words"]))
    assert shares[:-1] == pytest.approx(0.25)  # what a word receives on average
    assert shares[-1, 0] == pytest.approx(flow["pooling"])
    assert "<svg" in draw(shown)


def test_one_word_can_be_drawn(model):
    stack = layers_of(model, model.batch(["nice"]))
    root = ElementTree.fromstring(draw(describe_flow(stack, 0, ["nice"])))
    assert any(text.strip() == "nice" for text in root.itertext())


def test_packed_edges_are_the_roots_of_the_flow(flow):
    small = packed_flow(flow)
    shades = np.frombuffer(base64.b64decode(small["edges"]), dtype=np.uint8)
    edges = np.asarray(flow["flow"])
    assert (shades.reshape(edges.shape) / 255) ** 2 == pytest.approx(edges, abs=0.005)


def test_the_two_drawings_without_data_are_well_formed():
    for picture in (architecture(), schematic()):
        root = ElementTree.fromstring(picture)
        width = float(root.attrib["viewBox"].split()[2])
        places = [float(x) for x in re.findall(r'<text x="([\d.]+)"', picture)]
        assert all(0 < x < width for x in places)
