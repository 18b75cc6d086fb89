"""The JSON that commands print with `--json`: a type for each, from which its schema is made.

What is a dataclass with all of its fields is that dataclass; other forms are written out here.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import is_dataclass
from pathlib import Path
from types import NoneType, UnionType
from typing import Any, Literal, NotRequired, TypedDict, Union, get_args, get_origin, get_type_hints

from heedful.audits.answer_verdict import Word as AnswersWord
from heedful.audits.finding import Outcome
from heedful.audits.ranking import Standing
from heedful.audits.verdict import Word
from heedful.corpora.catalogue import Availability
from heedful.jobs.align import Aligned
from heedful.jobs.explain import Explanation, Recommended
from heedful.jobs.strengths import Chosen, Strength
from heedful.report.sheet import Sheets
from heedful.reproduction.reproduce import Reproduced

DRAFT = "https://json-schema.org/draft/2020-12/schema"


class EstimateJson(TypedDict):
    """A number with its 95 % interval; null where it is undefined."""

    value: float
    low: float
    high: float
    n: int
    interval: str
    undefined: int


class MeasureJson(EstimateJson):
    """One number of a finding."""

    measure: str
    method: str


class FindingJson(TypedDict):
    """What one test found."""

    question: str
    answer: str
    measures: list[MeasureJson]
    notes: list[str]


class NamedFindingJson(FindingJson):
    """What one test found, with its name and the chart that shows it."""

    audit: str
    chart: str


class TestJson(EstimateJson):
    """One test behind the verdict."""

    name: str
    outcome: Outcome
    sentence: str
    audit: str
    threshold: float
    contradicts: float


class PlaceJson(TypedDict):
    """One explanation in the ranking."""

    method: str
    place: int
    standing: Standing
    faithfulness: EstimateJson
    beyond_random: EstimateJson | None
    is_best: bool
    beside: dict[str, EstimateJson]


class SweepJson(TypedDict):
    """A grid of audits: a row for each cell, with the columns of its table."""

    folder: str
    page: str | None
    cells: list[dict[str, Any]]


class RankingJson(TypedDict):
    """All explanations, best first."""

    sentence: str
    recommendation: str
    recommended: str
    places: list[PlaceJson]


class GroupJson(TypedDict):
    """Texts that can be told apart in which it holds more often."""

    name: str
    sentence: str
    size: EstimateJson
    inside: EstimateJson
    outside: EstimateJson


class TableJson(TypedDict):
    """A table with its caption."""

    columns: list[str]
    rows: list[list[Any]]
    caption: str


class VerdictJson(TypedDict):
    """The answer and why."""

    word: Word
    sentence: str
    provisional: bool
    tests: list[TestJson]
    rule: list[str]
    near: str
    group: GroupJson | None
    advice: list[str]
    calibration: TableJson | None
    ranking: RankingJson | None


class QualityJson(TypedDict):
    """How well a model decides on one split."""

    value: float
    low: NotRequired[float]
    high: NotRequired[float]
    n: NotRequired[int]


class AuditJson(TypedDict):
    """`heedful audit`."""

    verdict: VerdictJson
    documents: int
    quality: dict[str, QualityJson]
    folder: str
    report: str
    findings: dict[str, FindingJson]


class AnswersVerdictJson(TypedDict):
    """What an audit of answers comes to."""

    word: AnswersWord
    sentence: str
    advice: str
    method: str
    provisional: bool


class AnswersJson(TypedDict):
    """`heedful audit --questions`."""

    verdict: AnswersVerdictJson
    answers: int
    folder: str
    report: str
    answer: str
    measures: list[MeasureJson]
    notes: list[str]


class TrainJson(TypedDict):
    """`heedful train`."""

    folder: str
    test: dict[str, Any]
    best_dev: float


class TriedJson(TypedDict):
    """One strength of an objective."""

    strength: float
    f1: float
    uniform: float
    permuted: float
    reliance: float
    cost: NotRequired[EstimateJson]
    buys: NotRequired[EstimateJson]
    behind: NotRequired[EstimateJson]


class RemedyJson(TypedDict):
    """`heedful train --from`."""

    objective: str
    limit: float
    base: Strength
    tried: list[TriedJson]
    chosen: Chosen
    is_remedy: bool
    said: list[str]
    next: str
    folder: str
    run: str
    notes: list[str]


class ReportJson(TypedDict):
    """`heedful report`."""

    report: str


class ExplainJson(TypedDict):
    """`heedful explain`."""

    recommended: Recommended
    explanations: list[Explanation]


class LexiconJson(TypedDict):
    """`heedful lexicon`."""

    folder: str
    report: str
    said: list[str]
    findings: dict[str, NamedFindingJson]


class NarrativesJson(TypedDict):
    """`heedful narratives`."""

    folder: str
    ccc: EstimateJson
    answers: dict[str, str]


class ComparedRunJson(TypedDict):
    """One run of a comparison."""

    run: str
    model: str
    corpus: str
    verdict: Word
    accuracy: EstimateJson | None
    tests: list[TestJson]


class CompareJson(TypedDict):
    """`heedful compare`."""

    page: str
    notes: list[str]
    runs: list[ComparedRunJson]
    gains: list[EstimateJson]


ScoreJson = TypedDict(
    "ScoreJson", {"right": EstimateJson, "no called yes": list[str], "wrong": list[list[Any]]}
)


class DecoderScoreJson(TypedDict):
    """How often the word about answers is right on decoders."""

    right: EstimateJson
    families: EstimateJson
    too_kind: list[str]
    wrong: list[tuple[str, AnswersWord, AnswersWord, bool]]


class CalibratedAnswersJson(TypedDict):
    """The word about answers, on decoders; a part is there if some of its decoders were tried."""

    borders: dict[str, float]
    fitted: NotRequired[DecoderScoreJson]
    held_out: NotRequired[DecoderScoreJson]


class CalibrateJson(TypedDict):
    """`heedful calibrate`."""

    folder: str
    borders: dict[str, dict[str, float]]
    scores: dict[str, ScoreJson]
    mechanisms: int
    answers: CalibratedAnswersJson
    seconds: float


class PreparedJson(TypedDict):
    """One corpus of `heedful prepare`."""

    corpus: str
    folder: str
    bytes: int


class DrawnFindingJson(NamedFindingJson):
    """What one test found, with the data of its chart."""

    drawn: dict[str, Any]


TranslatorJson = TypedDict(
    "TranslatorJson",
    {
        "folder": str,
        "page": str,
        "trained": bool,
        "sizes": str,
        "train": int,
        "dev": int,
        "watched": int,
        "pieces": int,
        "bleu": EstimateJson,
        "token accuracy": EstimateJson,
        "most frequent": str,
        "most frequent share": EstimateJson,
        "gain": EstimateJson,
        "is learnt": bool,
        "told": str,
        "audit": DrawnFindingJson,
        "beyond chance": EstimateJson,
        "may show": str,
        "notes": list[str],
        "alignment": str,
        "guessed": str,
        "translations": list[list[str]],
    },
)


OUTPUTS: dict[str, Any] = {
    "align": Aligned,
    "audit": AuditJson | AnswersJson,
    "calibrate": CalibrateJson,
    "compare": CompareJson,
    "corpora": list[Availability],
    "explain": ExplainJson,
    "lexicon": LexiconJson,
    "narratives": NarrativesJson,
    "prepare": list[PreparedJson],
    "report": ReportJson,
    "reproduce": Reproduced,
    "sheet": Sheets,
    "sweep": SweepJson,
    "train": TrainJson | RemedyJson,
    "translator": TranslatorJson,
}
"""What each command prints with `--json`."""
_SIMPLE: dict[Any, dict[str, Any]] = {
    Any: {},
    str: {"type": "string"},
    Path: {"type": "string"},
    bool: {"type": "boolean"},
    int: {"type": "integer"},
    # Not-a-number is null: JSON has no other word for it.
    float: {"type": ["number", "null"]},
    NoneType: {"type": "null"},
}


def schema_of(command: str) -> dict[str, Any]:
    """The JSON schema (draft 2020-12) of what a command prints with `--json`."""
    return {"$schema": DRAFT, "title": f"heedful {command} --json", **_schema(OUTPUTS[command])}


def _schema(kind: Any) -> dict[str, Any]:
    """The schema of a type: objects have all of their keys, and no others."""
    if kind in _SIMPLE:
        return _SIMPLE[kind]
    origin, inside = get_origin(kind), get_args(kind)
    if origin in (Union, UnionType):
        return {"anyOf": [_schema(one) for one in inside]}
    if origin is Literal:
        return {"enum": list(inside)}
    if origin is NotRequired:
        return _schema(inside[0])
    if origin is list:
        return {"type": "array", "items": _schema(inside[0])}
    if origin is tuple and len(inside) == 2 and inside[1] is Ellipsis:
        return {"type": "array", "items": _schema(inside[0])}
    if origin is tuple:
        items = [_schema(one) for one in inside]
        return {"type": "array", "prefixItems": items, "items": False, "minItems": len(items)}
    if origin in (dict, Mapping):
        return {"type": "object", "additionalProperties": _schema(inside[1])}
    assert is_dataclass(kind) or hasattr(kind, "__annotations__"), kind
    hints = get_type_hints(kind, include_extras=True)
    required = [name for name, one in hints.items() if get_origin(one) is not NotRequired]
    return {
        "type": "object",
        "description": (kind.__doc__ or "").strip().split("\n")[0],
        "properties": {name: _schema(one) for name, one in hints.items()},
        "required": required,
        "additionalProperties": False,
    }
