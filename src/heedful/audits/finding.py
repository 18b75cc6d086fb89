"""What an audit is and what it gives back."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, TypeAlias

import numpy as np
import pandas as pd
from jaxtyping import Shaped

from heedful.statistics.estimates import Estimate

if TYPE_CHECKING:
    import torch

    from heedful.audits.examination import Portion
    from heedful.corpora.encoded import Encoded
    from heedful.importance import Importance
    from heedful.models.reading import Reading
    from heedful.models.verbs import AttentiveModel

Outcome = Literal["supports", "mixed", "contradicts", "unknown"]
RowsOf: TypeAlias = "Callable[[AttentiveModel, Reading, Importance, int], pd.DataFrame]"
"""The rows of one batch: `rows(model, reading, importance, seed)`."""
WholeRowsOf: TypeAlias = "Callable[..., pd.DataFrame]"
"""The rows of all documents together: `rows(model, documents, seed, device, at_once)`, and of one
part of them, where there are `parts`, with its number last; answers of the model that were kept
come as `keep` (`runs.kept_tables`)."""
PartsOf: TypeAlias = "Callable[[AttentiveModel, Encoded, torch.device | str, Portion], int]"
"""How many parts there are: `parts(model, documents, device, at_once)`."""


@dataclass(frozen=True)
class Measure:
    """One number of a finding: what was measured, by which method, with its interval."""

    name: str
    """Short and unique within the finding together with `method`, e.g. `fraction removed`."""
    estimate: Estimate
    method: str = ""
    """Importance method, attention edit or comparison (`attention - random`) it belongs to."""


@dataclass(frozen=True)
class Finding:
    """The summary of one audit over a corpus."""

    audit: str
    question: str
    """What the test asks, in one sentence a practitioner understands."""
    answer: str
    """What it found here, in one sentence with its number."""
    measures: tuple[Measure, ...]
    chart: str
    """Name of the chart that shows it; `report` draws it."""
    drawn: Mapping[str, Any] = field(default_factory=dict)
    """The data that the chart draws, binned or thinned; plain lists and numbers."""
    notes: tuple[str, ...] = ()
    """Exclusions and policies, counted."""

    def table(self) -> pd.DataFrame:
        """The measures as a tidy table."""
        rows = [
            {"measure": m.name, "method": m.method} | m.estimate.to_json() for m in self.measures
        ]
        return pd.DataFrame(rows)

    def get(self, name: str, method: str = "") -> Estimate | None:
        """The estimate of a measure, or none if the finding does not have it."""
        for measure in self.measures:
            if measure.name == name and measure.method == method:
                return measure.estimate
        return None

    def by_method(self, name: str) -> dict[str, Estimate]:
        """The estimates of a measure by method, in order; differences (`a - b`) are left out."""
        return {
            one.method: one.estimate
            for one in self.measures
            if one.name == name and " - " not in one.method
        }

    def to_json(self) -> dict[str, Any]:
        """The finding as plain data."""
        return {
            "audit": self.audit,
            "question": self.question,
            "answer": self.answer,
            "measures": self.table().to_dict("records"),
            "chart": self.chart,
            "drawn": dict(self.drawn),
            "notes": list(self.notes),
        }

    @classmethod
    def from_json(cls, stored: Mapping[str, Any]) -> Finding:
        """The finding again from `to_json`."""
        measures = tuple(
            Measure(row["measure"], Estimate.from_json(row), row["method"])
            for row in stored["measures"]
        )
        return cls(
            audit=stored["audit"],
            question=stored["question"],
            answer=stored["answer"],
            measures=measures,
            chart=stored["chart"],
            drawn=stored["drawn"],
            notes=tuple(stored["notes"]),
        )


class Audit(NamedTuple):
    """Two functions, per-instance rows of one batch and the summary of all rows; and their label.

    `rows(model, reading, importance, seed)` gives a tidy frame whose column `instance` holds the
    instance id; a batch that has nothing to say gives a frame without rows. `summarise(rows)` gets
    the rows of the whole corpus, or none of them, and never sees the model.
    """

    rows: RowsOf
    summarise: Callable[[pd.DataFrame], Finding]
    name: str
    title: str
    question: str
    """What the test asks, in one sentence a practitioner understands."""
    place: int
    """Where it stands on the page, from 1."""
    chart: str = "measures"
    """Name of the chart that shows it; `report` draws it."""
    needs: Sequence[str] = ()
    """What the corpus must have for the audit to apply: `labels`, `evidence`, `alignment`,
    or the model: several `heads`."""
    settled: Callable[[Finding], bool] | None = None
    """Whether a finding on some of the documents answers what the audit is for, so that no more
    need be looked at; without it, it goes along with those that say so."""
    is_of_readings: bool = False
    """Whether it needs no more of a document than to read it once."""
    of_named: bool = False
    """Whether it need only ask of the methods that the ranking names, once there is one."""
    most: int = 0
    """Documents beyond which a slow audit learns little, drawn by key; 0 takes all."""
    whole: WholeRowsOf | None = None
    """The rows of all documents, in place of `rows`, where texts are set against each other."""
    parts: PartsOf | None = None
    """Where these rows come in parts, each of which a killed audit keeps."""
    tell: Callable[[Finding], str] | None = None
    """The answer in words, from measures alone, so that it can be told of added-up ones too."""

    def finding(
        self,
        answer: str | None = None,
        measures: tuple[Measure, ...] = (),
        drawn: Mapping[str, Any] | None = None,
        notes: tuple[str, ...] = (),
    ) -> Finding:
        """What it found: an answer to its question (`tell`'s if none), drawn as its chart."""
        found = Finding(self.name, self.question, "", measures, self.chart, drawn or {}, notes)
        if answer is None:
            assert self.tell is not None
            answer = self.tell(found)
        return replace(found, answer=answer)


def frame(instance: Sequence[str], **columns: Shaped[np.ndarray, "instance ..."]) -> pd.DataFrame:
    """One row per instance from equally long columns."""
    # A list of lists or of objects is what pandas takes apart; plain numbers it takes as they are.
    plain = {k: v if v.ndim == 1 and v.dtype.kind in "biuf" and len(v) else list(v)
             for k, v in columns.items()}  # fmt: skip
    return pd.DataFrame({"instance": list(instance)} | plain)
