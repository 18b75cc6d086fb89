"""Layers and heads on the page: packed weights, words as they were written."""

from __future__ import annotations

import base64
import json

import numpy as np
import torch

from heedful.importance import explain
from heedful.importance.layers import head_pairs, head_rows
from heedful.jobs.instance_layers import describe_heads
from heedful.jobs.instances import describe
from heedful.models import decide, erase, ranked, read
from heedful.models.tracing import layers_of
from tests.tiny import batch_of, classifier
from tests.tiny_transformers import reader

TEXTS = ("The food was unbelievable,  very   good!", "bad <b>staff</b>", "not good")


def unpacked(text: str) -> np.ndarray:
    return (np.frombuffer(base64.b64decode(text), np.uint8) / 255.0) ** 2


def test_rows_and_pairs_are_the_matrices_over_words() -> None:
    model = reader("bert")
    reading = read(model, model.batch(TEXTS))
    stack = layers_of(model, reading.batch)
    assert stack.place is not None
    rows, pairs = head_rows(model, reading), head_pairs(model, reading, [0, 1])
    for row in (0, 1):
        length = int(reading.batch.lengths[row])
        keys, words = stack.place[row, :length], reading.unit_of_token[row, :length]
        for layer, head in np.ndindex(2, 2):
            attention = stack.layers[layer].matrix()[row, head].numpy()
            for word in range(int(reading.units[row])):
                mine = keys[words == word].numpy()
                given = attention[0, mine].sum()  # BERT decides at its first position
                assert abs(float(rows[row, layer, head, word]) - given) < 1e-12
                for other in range(int(reading.units[row])):
                    theirs = keys[words == other].numpy()
                    wanted = attention[np.ix_(mine, theirs)].sum(1).mean()
                    assert abs(float(pairs[row][layer, head, word, other]) - wanted) < 1e-12


def test_the_page_holds_them_in_a_byte_each() -> None:
    model = reader("bert")
    reading = read(model, model.batch(TEXTS))
    found = describe_heads(model, reading)
    assert sorted(found) == [0, 1, 2]
    units = int(reading.units[0])
    assert (found[0]["layers"], found[0]["heads"]) == (2, 2)
    wanted = head_rows(model, reading)[0, :, :, :units].flatten().numpy()
    np.testing.assert_allclose(unpacked(found[0]["rows"]), wanted, atol=0.005)
    assert len(unpacked(found[0]["pairs"])) == 4 * units**2
    flat = classifier("none+dot")
    assert describe_heads(flat, read(flat, batch_of())) == {}
    other = reader("bart")
    assert describe_heads(other, read(other, other.batch(TEXTS))) == {}


def test_a_transformer_s_instances_hold_erasures_and_the_text_as_written() -> None:
    model = reader("bert")
    reading = read(model, model.batch(TEXTS))
    entries = describe(model, reading, explain(model, reading, ["attention", "rollout"]))
    json.dumps(entries, allow_nan=False)
    first, second, _ = entries
    assert "".join(g + u for g, u in zip(first["gaps"], first["units"], strict=True)) == (
        "The food was unbelievable, very good!"
    )
    assert "<" in second["units"]
    single = decide(
        model, reading, erase(torch.eye(reading.mask.shape[1]).bool().expand(3, -1, -1))
    )
    np.testing.assert_allclose(
        np.array(second["erasures"]), single.softmax(-1)[1, : len(second["units"])], atol=1e-5
    )
    top = ranked(reading.attention, reading)[0, :2]
    both = torch.zeros(1, 1, reading.mask.shape[1], dtype=torch.bool).expand(3, -1, -1).clone()
    both[0, 0, top] = True
    after = decide(model, reading, erase(both)).softmax(-1)[0, 0]
    np.testing.assert_allclose(first["cumulative"][2], after, atol=1e-5)
    assert len(first["cumulative"]) == len(first["units"]) + 1
