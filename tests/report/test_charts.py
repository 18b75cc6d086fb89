"""Charts: every one draws, belongs to the page, and says what it shows."""

import json
import math
import re
from dataclasses import replace
from itertools import combinations
from xml.etree import ElementTree

import numpy as np
import pandas as pd
import pytest
import torch

from heedful.audits import AUDITS
from heedful.audits.finding import Finding, Measure
from heedful.corpora.batches import Batch
from heedful.errors import InputError
from heedful.importance import explain
from heedful.models import read
from heedful.report.charts import CHARTS, DENSE, draw, draw_training
from heedful.report.charts import measures as measures_chart
from heedful.report.drawing import _COLOURS, last_part, plain_text, standalone, themed
from heedful.report.html import asset
from heedful.report.method_charts import OTHERS, colours_of
from heedful.runs.atomic import plain
from heedful.statistics.estimates import Estimate
from tests.tiny import batch_of, chosen, classifier

BAR = {"value": 0.4, "low": 0.3, "high": 0.5, "n": 9, "interval": "wilson", "undefined": 0}
BOX = {"low": 0.1, "q1": 0.2, "median": 0.4, "q3": 0.6, "high": 0.9, "n": 5}
BINS = {"edges": [0.0, 0.5, 1.0], "counts": [3, 4]}
CELLS = {"both": 1, "only_top": 2, "only_random": 1, "neither": 6}
DRAWN = {
    "adversary": {"exact_jsd": BINS, "largest": 0.69, "exact": [0.1, 0.6], "searched": [0.1, 0.5]},
    "agreement": {
        "methods": ["attention", "random"],
        "Kendall τ": [[1.0, -0.3], [-0.3, None]],
    },
    "concentration": {"entropy": BINS, "largest weight": BINS},
    "confidence": {"units": BINS, "documents": BINS},
    "erasure": {"boxes": {"attention": BOX, "random": BOX, "gone": dict.fromkeys(BOX) | {"n": 0}}},
    "evidence": {
        "methods": ["attention"],
        "AUPRC": [BAR],
        "token F1": [BAR],
        "mass on evidence": [BAR],
    },
    "heads": {
        "rows": [
            {"kind": kind, "head": head, "share": share}
            for kind in ("high", "low")
            for head, share in (("chance", 0.1), ("1", 0.2))
        ]
    },
    "input_erasure": {
        "methods": ["attention", "random"],
        "shares": [0.01, 0.1],
        "removed": {
            kind: {"attention": [BAR, BAR], "random": [BAR, BAR | {"value": None}]}
            for kind in ("flips", "comprehensiveness", "sufficiency")
        },
    },
    "lexicon": {
        "kinds": {"attention": "ratio"},
        "points": {"word": ["bad", "film"], "rating": [2.0, 5.0], "ratio": [1.4, 0.9]},
        "named": {"word": ["bad"], "rating": [2.0], "ratio": [1.4]},
        "grid": [2.0, 5.0],
        "curves": {"attention": {"middle": [1.3, 1.0], "low": [1.1, 0.8], "high": [1.5, 1.2]}},
    },
    "single_erasure": {
        "ranking": "attention",
        "delta_attention": [0.1, 0.2],
        "delta_js": [0.0, 0.1],
        "contingency": {"attention": CELLS},
    },
    "substitution": {
        "changed": {"uniform": BAR},
        "scores": {edit: {"accuracy": BAR} for edit in ("trained", "uniform", "permuted")},
    },
    "randomisation": {
        "methods": ["attention", "random"],
        "down to": ["head", "layer.0"],
        "τ": {"attention": [BAR, BAR], "random": [BAR, BAR | {"value": None}]},
    },
    "violation": {
        "methods": ["attention", "random"],
        "violations": [BAR, BAR | {"value": None}],
        "chance": [0.5, None],
        "effect as claimed": [BAR, BAR],
    },
    "words": {
        "classes": ["bad", "good"],
        "points": {
            "word": ["fine", "the", "odd"],
            "polarity": [2.0, 0.1, -1.0],
            "score": [1.0, -0.5, 0.2],
            "times": [9, 400, 3],
            "class": ["good", "neutral", ""],
        },
        "named": ["fine"],
        "cloud": {"word": ["fine"], "score": [1.0], "towards": ["good"]},
        "is_binary": True,
    },
}


def finding(chart: str, drawn: object = None, **fields: object) -> Finding:
    values = {"audit": chart, "question": "Why?", "answer": "So.", "measures": (), "chart": chart}
    return Finding(**(values | {"drawn": drawn or {}} | fields))  # type: ignore[arg-type]


def texts(element: str) -> list[str]:
    found = ElementTree.fromstring(standalone(element))
    return ["".join(node.itertext()) for node in found.iter("{http://www.w3.org/2000/svg}text")]


def test_there_is_a_sample_for_every_chart() -> None:
    assert set(DRAWN) == set(CHARTS)


@pytest.mark.slow
@pytest.mark.parametrize("name", DRAWN)
def test_a_chart_is_themed_described_and_without_links(name: str) -> None:
    element = draw(finding(name, DRAWN[name]))
    assert CHARTS[name](finding(name, DRAWN[name])) is not None  # not the plain chart instead
    root = ElementTree.fromstring(standalone(element))
    named = {node.tag.split("}")[1]: node.text for node in list(root)[:2]}
    assert named == {"title": "Why?", "desc": "So."}
    assert "http" not in element
    assert "<style" not in element
    assert "font-family" not in element
    # Every colour follows the page: what is left of plain colours stands inside var(…, light).
    assert not re.findall(r"(?:fill|stroke): #", element)
    assert "var(--" in element
    # A file has plain colours, which a page makes its own again.
    file = standalone(element)
    assert "var(" not in file
    assert themed(file).count("var(--") == element.count("var(--")


@pytest.mark.parametrize("name", DRAWN)
def test_ids_are_prefixed_and_references_resolve(name: str) -> None:
    element = draw(finding(name, DRAWN[name]))
    ids = re.findall(r'\bid="([^"]+)"', element)
    used = re.findall(r'(?:url\(|href=")#([^")]+)', element)
    assert len(ids) == len(set(ids))
    assert all(i.startswith(f"chart-{name.replace('_', '-')}-") for i in ids)
    assert set(used) <= set(ids)


def test_the_same_finding_is_drawn_the_same() -> None:
    assert draw(finding("erasure", DRAWN["erasure"])) == draw(finding("erasure", DRAWN["erasure"]))


def test_an_unknown_chart_lists_the_measures_with_numbers() -> None:
    measures = (
        Measure("fraction", Estimate(0.4, 0.3, 0.5, 9, "wilson"), "attention"),
        Measure("bare", Estimate(0.2, math.nan, math.nan, 9, "none")),
        Measure("undefined", Estimate(math.nan, math.nan, math.nan, 0, "none")),
    )
    shown = texts(draw(finding("something new", measures=measures)))
    assert "fraction, attention" in shown
    assert "bare" in shown
    assert "undefined" not in shown


def test_long_names_are_whole_and_shares_have_the_axis_to_themselves() -> None:
    measures = (
        Measure("texts in which all three of them hold", Estimate(0.4, 0.3, 0.5, 9, "wilson")),
        Measure("attention lies on words that matter", Estimate(0.2, 0.1, 0.3, 9, "wilson")),
        Measure("forward passes", Estimate(5.7, 5.4, 6.0, 9, "student")),
    )
    drawn = measures_chart(finding("something new", measures=measures)).axes[0]
    assert drawn.x.ends[1] < 1
    labels = [label.replace("\n", " ") for label in drawn.y.names]
    assert labels == [measure.name for measure in measures[:2]]


def test_a_finding_without_data_says_so_instead_of_failing() -> None:
    for name in CHARTS:
        assert "Nothing to draw: no number is defined." in texts(draw(finding(name)))


def test_only_dense_scatters_become_pictures() -> None:
    few, many = DRAWN["single_erasure"], dict(DRAWN["single_erasure"])
    many["delta_attention"] = many["delta_js"] = [0.5] * (DENSE + 1)
    assert "<image" not in draw(finding("single_erasure", few))
    assert "data:image/png;base64" in draw(finding("single_erasure", many))


def test_names_from_data_are_text_never_markup_or_maths() -> None:
    name = "<script>$x^2$</script>"
    drawn = {"methods": [name], "AUPRC": [BAR]}
    element = draw(finding("evidence", drawn))
    assert "<script" not in element
    assert name in texts(element)


def test_labels_are_one_short_line() -> None:
    assert plain_text("a\nb\x00\tc") == "a b c"
    assert plain_text("x" * 40, 10) == "x" * 9 + "…"


def test_a_name_that_does_not_fit_is_told_by_its_last_part() -> None:
    assert last_part("attention, mean") == "attention, mean"
    assert last_part("probability of the decision, read alone, top unit") == "top unit"
    assert last_part("x" * 40, 10) == "x" * 9 + "…"
    assert last_part("a long beginning, " + "x" * 40, 10) == "x" * 9 + "…"


@pytest.mark.slow
def test_the_training_curve_needs_a_history(tmp_path) -> None:  # type: ignore[no-untyped-def]
    path = tmp_path / "metrics.jsonl"
    assert draw_training(path) == ""
    path.write_text('{"epoch": 1, "loss": 0.7, "dev_loss": 0.6, "dev_accuracy": 0.5}\n' * 2)
    assert "dev loss" in texts(draw_training(path))
    assert "loss 0.7" in draw_training(path)


BATCH = batch_of(((1,), (2,), (3, 2), (4, 1, 4), (6,), (2, 2, 2, 5)))
BATCH = replace(BATCH, evidence=BATCH.ids % 3 == 0)


def found_by(audit: str, batch: Batch, searched: bool = True) -> Finding:
    model = classifier("bigru+additive", 2)
    reading = read(model, batch)
    options = {"searched": 1.0} if audit == "adversary" and searched else {}
    rows = AUDITS[audit].rows(model, reading, explain(model, reading), 3, **options)
    return AUDITS[audit].summarise(rows)


@pytest.mark.slow
@pytest.mark.parametrize("audit", AUDITS)
def test_what_an_audit_keeps_is_what_its_chart_draws(audit: str) -> None:
    found = Finding.from_json(json.loads(json.dumps(plain(found_by(audit, BATCH)))))
    assert draw(found).startswith("<svg")
    if found.chart == "measures":  # the plain chart, by intent
        return
    # The hand-made samples above have no key that the audit does not give.
    sample = DRAWN[found.chart]
    assert found.drawn
    assert set(sample) <= set(found.drawn)
    if audit == "input-erasure":
        assert set(sample["removed"]) <= set(found.drawn["removed"])
    # Without one of its keys no chart is drawn in silence, save those that have others instead.
    spare = {"AUPRC", "token F1", "mass on evidence", "changed", "removed"}
    for key in set(sample) - spare:
        with pytest.raises((KeyError, ValueError)):
            draw(replace(found, drawn={k: v for k, v in found.drawn.items() if k != key}))


@pytest.mark.slow
@pytest.mark.parametrize("audit", AUDITS)
def test_odd_corpora_are_drawn_too(audit: str) -> None:
    unlabelled = replace(BATCH, labels=torch.full_like(BATCH.labels, -1))
    for batch in (chosen(BATCH, [0]), chosen(BATCH, [0, 1]), unlabelled):
        assert draw(found_by(audit, batch, searched=False)).startswith("<svg")
    assert draw(AUDITS[audit].summarise(pd.DataFrame())).startswith("<svg")


@pytest.mark.parametrize("line", ['{"epoch": 1, "lo', "[1, 2]", "\xff"])
def test_a_damaged_training_history_is_named(tmp_path, line: str) -> None:  # type: ignore[no-untyped-def]
    path = tmp_path / "metrics.jsonl"
    path.write_bytes(b'{"epoch": 1, "loss": 0.7}\n' + line.encode("latin-1"))
    with pytest.raises(InputError, match=r"metrics\.jsonl, line 2"):
        draw_training(path)


def lab(colour: str) -> np.ndarray:
    """A colour as people see it (CIELAB): 30 apart cannot be mistaken for each other."""
    light = np.array([int(colour[i : i + 2], 16) for i in (1, 3, 5)]) / 255
    light = np.where(light <= 0.04045, light / 12.92, ((light + 0.055) / 1.055) ** 2.4)
    to_xyz = [[0.4124, 0.3576, 0.1805], [0.2126, 0.7152, 0.0722], [0.0193, 0.1192, 0.9505]]
    xyz = np.array(to_xyz) @ light / np.array([0.9505, 1, 1.089])
    root = np.where(xyz > 0.008856, np.cbrt(xyz), 7.787 * xyz + 16 / 116)
    return np.array([116 * root[1] - 16, 500 * (root[0] - root[1]), 200 * (root[1] - root[2])])


def test_named_curves_have_colours_that_are_told_apart_by_day_and_night() -> None:
    methods = ["random", "attention", *(f"method {n}" for n in range(17))]
    styles = colours_of(methods)
    named = {name: style for name, style in styles.items() if style["alpha"] == 1}
    used = [style["color"] for style in named.values()]
    assert len(set(used)) == len(used) == len(OTHERS) + 2
    labels = [style["label"] for style in styles.values() if style["label"]]
    assert labels[-1] == "12 others"
    assert len(labels) == len(used) + 1
    sheet = asset("page.css")
    for theme in (sheet[: sheet.index("@media")], sheet[sheet.index("@media") :]):
        shown = dict(reversed(re.findall(r"(--chart-\d): (#[0-9a-f]{6})", theme)))
        seen = [lab(shown[colour.variable]) for colour in _COLOURS.values()
                if colour.stand_in in used]  # fmt: skip
        assert min(np.linalg.norm(a - b) for a, b in combinations(seen, 2)) > 30
