"""The profile of training counts what it says it counts; the GPU itself is not needed here."""

from __future__ import annotations

import sys
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
import torch

sys.path.insert(0, str(Path(__file__).parents[2]))  # the benchmarks lie beside the package

from benchmarks.flow import flow_row
from benchmarks.stacking import stacking_cases, stacking_rows
from benchmarks.training_gpu import (
    ELEMENTWISE,
    GROUPS,
    Size,
    corpus_of,
    covered,
    group_of,
    least_bytes,
    operations,
    profiled,
    reviews,
    training,
)
from heedful.corpora import batches

SIZE = Size(steps=2, words=50, mean=20.0, sentence=6.0)


def test_documents_have_the_lengths_asked_for() -> None:
    found = reviews(Size(), 4_000)
    assert found.lengths.mean() == pytest.approx(280, rel=0.05)
    assert np.log(found.lengths).std() == pytest.approx(0.65, rel=0.05)
    assert found.sentence[found.starts[:-1]].max() == 0  # every document starts with its first
    sentences = np.diff(found.sentence, prepend=1) != 0
    assert len(found.ids) / sentences.sum() == pytest.approx(20, rel=0.05)  # the last is cut


def test_a_corpus_is_as_many_steps_as_asked_for() -> None:
    config = training("erasure/flan-noenc", SIZE)[2]
    found = corpus_of(Size(steps=3), config)
    count = sum(1 for _ in batches(found.splits["train"], 64, None, config.max_batch_tokens))
    assert 1 <= count <= 3


def test_overlapping_kernels_count_once() -> None:
    assert covered([(0, 2), (1, 3), (5, 6)]) == 4
    assert covered([(0, 10), (2, 3)]) == 10
    assert covered([]) == 0


def test_a_kernel_counts_to_the_operator_it_serves() -> None:
    def event(name: str, parent: object = None) -> SimpleNamespace:
        return SimpleNamespace(name=name, cpu_parent=parent)

    fill = event("aten::fill_", event("aten::zero_", event("aten::embedding_dense_backward")))
    assert group_of(fill) == "embedding, gather, scatter"
    assert group_of(event("aten::sqrt", event("Optimizer.step#Adam.step"))) == "optimiser"
    assert group_of(event("aten::_cudnn_rnn_backward")) == "recurrent cells (cuDNN)"
    assert group_of(event("aten::addmm")) == "matrix products, convolutions"
    assert group_of(event("aten::cudnn_convolution")) == "matrix products, convolutions"
    assert group_of(event("aten::tanh")) == ELEMENTWISE


def test_operations_are_six_per_weight_and_unit() -> None:
    model, corpus, config = training("erasure/flan-noenc", SIZE)
    train = corpus.splits["train"]
    per_token, per_document = 200 * 200 + 200, 200 * 8
    assert operations(model, train) == 6 * (per_token * len(train.ids) + per_document * len(train))
    count = sum(p.numel() for p in model.parameters())
    assert least_bytes(model, config) == 40 * count  # the norm of this model is clipped


@pytest.mark.slow
def test_the_shares_of_a_profile_are_shares() -> None:
    found = profiled("erasure/han-noenc", SIZE, "cpu")
    assert found["share_of_wall"].keys() == {*GROUPS, ELEMENTWISE}
    assert all(share >= 0 for share in found["share_of_wall"].values())
    assert found["share_of_wall"]["matrix products, convolutions"] > 0
    assert found["share_of_wall"]["recurrent cells (cuDNN)"] == 0
    assert found["card_idle_share"] is None


def test_the_stack_that_is_timed_learns_what_single_models_learn() -> None:
    cases = stacking_cases(instances=100, precision=torch.float64)
    alone, stacked = cases["one by one"](), cases["stacked"]()
    for one, other in zip(alone, stacked, strict=True):
        for ours, theirs in zip(one.parameters(), other.parameters(), strict=True):
            assert float((ours - theirs).detach().abs().max()) < 1e-12


def test_the_flow_of_all_words_is_set_against_an_epoch() -> None:
    row = flow_row(documents=120, words=60, repeats=1)
    assert row.at_most == 1
    assert row.ratio == pytest.approx(row.ours / (row.naive or 0))


@pytest.mark.slow
def test_a_row_of_the_table_for_every_stacked_model() -> None:
    rows = stacking_rows(instances=40, repeats=1)
    assert [row.case.split()[3] for row in rows] == ["dp", "dp-l", "dp-a", "ad"]
    assert all(row.ratio > 0 and row.naive for row in rows)
