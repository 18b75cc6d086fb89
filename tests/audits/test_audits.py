"""What holds for every audit: batches and padding never matter, nothing breaks on odd corpora."""

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
import torch
from torch import nn

from heedful.audits import AUDITS
from heedful.audits.finding import Finding
from heedful.audits.registry import titles
from heedful.corpora.batches import Batch
from heedful.importance import explain
from heedful.models import AttentiveModel, read
from heedful.report import CHARTS
from tests.tiny import NonLinear, batch_of, chosen, classifier, padded

METHODS = ("random", "attention", "gradient", "product", "centred", "single", "leave-one-out")
DOCUMENTS = ((1,), (2,), (3, 2), (4, 1, 4), (6,), (2, 2, 2, 5))
BATCH = batch_of(DOCUMENTS)
BATCH = replace(
    BATCH, evidence=(torch.rand(BATCH.mask.shape, generator=torch.Generator().manual_seed(0)) < 0.3)
)


OF_CLASSIFIERS = [n for n, a in AUDITS.items() if n != "alignment" and a.whole is None]
"""That one is of translators, and has the same tests in test_alignment.py."""


def rows_of(name: str, model: AttentiveModel, batch: Batch) -> pd.DataFrame:
    reading = read(model, batch)
    return AUDITS[name].rows(model, reading, explain(model, reading, METHODS, seed=3), 3)


def ordered(rows: pd.DataFrame) -> pd.DataFrame:
    keys = [key for key in ("instance", "ranking", "first", "second") if key in rows]
    return rows.sort_values(keys, ignore_index=True)


@pytest.mark.parametrize("name", OF_CLASSIFIERS)
@pytest.mark.parametrize("recipe", ["bilstm+additive", "han:none+dot"])
def test_rows_do_not_depend_on_batches_or_padding(name: str, recipe: str) -> None:
    model = classifier(recipe)
    assert BATCH.evidence is not None
    known = nn.functional.pad(BATCH.evidence, (0, 4))
    whole = rows_of(name, model, replace(padded(BATCH, 4), evidence=known))
    parts = [rows_of(name, model, chosen(BATCH, part)) for part in ([5, 0], [3], [4, 1, 2])]
    split = pd.concat(parts, ignore_index=True)
    pd.testing.assert_frame_equal(ordered(whole), ordered(split), rtol=1e-9, atol=1e-11)
    # torch divides whole numbers in single precision.
    assert "float32" not in set(whole.dtypes.astype(str))


@pytest.mark.parametrize("name", OF_CLASSIFIERS)
@pytest.mark.parametrize("classes", [2, 3])
def test_findings_survive_json_and_parquet(name: str, classes: int, tmp_path: object) -> None:
    rows = rows_of(name, classifier("bigru+additive", classes), BATCH)
    finding = AUDITS[name].summarise(rows)
    assert finding.audit == name
    assert finding.question.endswith("?")
    assert finding.answer.endswith(".")
    assert finding.measures
    keys = [(measure.name, measure.method) for measure in finding.measures]
    assert len(set(keys)) == len(keys)
    rows.to_parquet(f"{tmp_path}/rows.parquet")
    again = AUDITS[name].summarise(pd.read_parquet(f"{tmp_path}/rows.parquet"))
    assert repr(again.to_json()) == repr(finding.to_json())  # nan equals nan in words
    assert repr(Finding.from_json(finding.to_json()).to_json()) == repr(finding.to_json())


@pytest.mark.parametrize("name", OF_CLASSIFIERS)
def test_a_head_that_is_not_linear_is_audited_too(name: str) -> None:
    inner = classifier("conv+additive", 3)
    bent = NonLinear(inner, nn.Tanh())
    straight = NonLinear(inner, nn.Identity())
    finding = AUDITS[name].summarise(rows_of(name, bent, BATCH))
    if name == "adversary":  # its geometry needs logits linear in attention, and it says so
        assert "linear head" in finding.answer
        return
    assert finding.measures
    # Through the other path a linear head gives the same rows, less what only it can have.
    fast, slow = (ordered(rows_of(name, model, BATCH)) for model in (inner, straight))
    if name == "erasure":
        fast = fast[fast["ranking"] != "greedy"].reset_index(drop=True)
    columns = [column for column in fast if not str(column).startswith("exact_")]
    pd.testing.assert_frame_equal(fast[columns], slow[columns], rtol=1e-9, atol=1e-11)


@pytest.mark.parametrize("name", AUDITS)
def test_nothing_and_single_units_are_summarised_in_words(name: str) -> None:
    for rows in (pd.DataFrame(), rows_of(name, classifier("none+dot"), chosen(BATCH, [0]))):
        finding = AUDITS[name].summarise(rows)
        assert finding.answer.endswith(".")
        assert "nan" not in finding.answer
        assert Finding.from_json(finding.to_json()).audit == name


@pytest.mark.parametrize("name", AUDITS)
def test_a_model_that_never_changes_its_mind_is_summarised(name: str) -> None:
    model = classifier("lstm+dot", 3)
    with torch.no_grad():
        model.head.bias.copy_(torch.tensor([1000.0, 0.0, 0.0]))
    batch = replace(BATCH, labels=torch.zeros_like(BATCH.labels))  # one gold class, one predicted
    finding = AUDITS[name].summarise(rows_of(name, model, batch))
    assert finding.answer.endswith(".")
    values = [m.estimate.value for m in finding.measures if m.name == "decisions changed"]
    assert np.all(np.array(values) == 0)


def test_every_audit_has_a_place_of_its_own_and_a_chart() -> None:
    places = sorted(audit.place for audit in AUDITS.values())
    assert places == list(range(1, len(AUDITS) + 1))
    assert {audit.chart for audit in AUDITS.values()} <= {*CHARTS, "measures"}
    assert list(titles())[:2] == ["exchange", "substitution"]
    assert set(titles()) == set(AUDITS)
