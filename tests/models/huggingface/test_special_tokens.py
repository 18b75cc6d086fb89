"""Attention that lies on no word: how much it is, and that everybody is told."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from heedful.audits import concentration
from heedful.audits.concentration import OUTSIDE
from heedful.jobs.explain import explain
from heedful.jobs.instance_layers import describe_flows
from heedful.jobs.instances import describe
from heedful.models import lat, read
from heedful.models.huggingface.attending import attending
from heedful.models.huggingface.calls import softmax
from heedful.models.huggingface.pieces import framed
from heedful.models.tracing import layers_of
from tests.tiny import batch_of, classifier
from tests.tiny_transformers import TEXTS, reader


@pytest.mark.parametrize("kind", ["bert", "xlnet", "gpt2"])
def test_the_share_on_special_tokens_is_what_the_pooled_row_gives_them(kind: str) -> None:
    model = reader(kind)
    batch = model.batch(TEXTS)
    seen: list[torch.Tensor] = []

    def keep(number: int, scores: torch.Tensor) -> torch.Tensor:
        seen.append(softmax(scores))
        return seen[-1]

    frame = framed(batch, model.subwords)
    with torch.no_grad(), attending(model.model, keep):
        model.run(model.inputs_of(frame))
    position = model.layout.position(frame.mask)
    row = seen[-1].mean(1)[torch.arange(len(TEXTS)), position]
    on_pieces = torch.stack(
        [row[t, frame.place[t, :n]].sum() for t, n in enumerate(batch.lengths.tolist())]
    )
    reading = read(model, batch)
    assert reading.outside is not None
    torch.testing.assert_close(reading.outside, 1 - on_pieces, atol=1e-12, rtol=0)
    assert bool((reading.outside > 1e-3).any()) == (kind != "gpt2")  # which has none


def test_the_audit_and_the_page_say_it_and_models_of_one_row_do_not() -> None:
    model = reader("bert")
    reading = read(model, model.batch(TEXTS))
    rows = concentration.rows(model, reading, {}, 0)
    assert reading.outside is not None
    np.testing.assert_allclose(rows["outside"], reading.outside)
    finding = concentration.summarise(rows)
    share = finding.get(OUTSIDE)
    assert share is not None
    several = rows["units"] > 1
    assert share.value == pytest.approx(rows["outside"][several].mean())
    assert "lies on what is no word of the text" in finding.answer
    entry = describe(model, reading, {})[0]
    assert entry["outside"] == pytest.approx(float(reading.outside[0]), rel=1e-3)
    told = explain(model, TEXTS[0], ["attention"])
    assert told.outside == pytest.approx(float(reading.outside[0]))

    flat = classifier("bilstm+additive")
    one_row = read(flat, batch_of(((5,), (4,))))
    assert one_row.outside is None
    silent = concentration.summarise(concentration.rows(flat, one_row, {}, 0))
    assert silent.get(OUTSIDE) is None
    assert "special" not in silent.answer


def test_words_that_the_tokenizer_does_not_know_are_named() -> None:
    told = explain(reader("bert"), "the zyx staff was zyx", ["attention"])
    assert told.unknown == ("zyx",)
    assert explain(reader("bert"), "the staff", ["attention"]).unknown == ()


@pytest.mark.parametrize("kind", ["bert", "xlnet"])
def test_flow_among_words_and_special_tokens_is_that_of_their_pieces(kind: str) -> None:
    model = reader(kind)
    reading = read(model, model.batch(TEXTS))
    nodes = model.nodes(reading)
    after = {"bert": ("[CLS]", "[SEP]"), "xlnet": ("bad", "[CLS]")}[kind]
    assert (nodes.names[1][0], nodes.names[1][-1]) == after
    assert [n for n in nodes.names[0] if n not in ("[CLS]", "[SEP]")] == list(reading.texts[0])
    stack = layers_of(model, reading.batch)
    flows = describe_flows(stack, dict(enumerate(nodes.names)), nodes.of_key)
    trace = lat(stack)
    for row, flow in flows.items():
        shares, edges = np.array(flow["shares"]), np.array(flow["flow"])
        # What leaves a node downwards is what it holds, and what comes in is what lies below.
        np.testing.assert_allclose(edges.sum(-1), shares[1:], atol=1e-4)
        np.testing.assert_allclose(edges.sum(-2), shares[:-1], atol=1e-4)
        words = [place for place, name in enumerate(nodes.names[row]) if name[0] != "["]
        on_words = reading.per_unit(stack.of_batch(trace.total))[row, : len(words)]
        np.testing.assert_allclose(shares[0].sum(0)[words], on_words, atol=1e-5)


def test_the_page_gets_the_flow_of_a_pretrained_model() -> None:
    model = reader("bert")
    entry = describe(model, read(model, model.batch(TEXTS)), {})[0]
    assert entry["flow"]["words"][0] == "[CLS]"
    assert len(entry["flow"]["words"]) == len(entry["units"]) + 2
