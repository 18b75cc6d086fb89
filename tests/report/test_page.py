"""The page is made of a run's files alone, holds all it needs, and shows text as text."""

import json
import math
import re
from collections import Counter
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pytest

from heedful.audits.finding import Finding, Measure
from heedful.errors import InputError, visible
from heedful.report import render
from heedful.report.scales import SCALES, scales_of
from heedful.runs import RunFolder, write_json
from heedful.statistics.estimates import Estimate
from tests.demo_run import VERDICT

EVIL = (
    "<script>alert(1)</script>",
    "</script><b>",
    "<!--",
    "<img src=x onerror=alert(2)>",
    '"quotes"',
    "'&amp;",
    "\u202eevil",
    "שלום",
    "𝒳",
    "\u2028",
)


class Parsed(HTMLParser):
    """What a browser would make of the page: elements, attributes, text."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.tags: Counter[str] = Counter()
        self.attributes: list[tuple[str, str, str]] = []
        self.text: list[str] = []
        self.scripts: dict[str, str] = {}
        self._inside = ""
        self.feed(page)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags[tag] += 1
        self.attributes += [(tag, name, value or "") for name, value in attrs]
        self._inside = dict(attrs).get("type") or "code" if tag == "script" else ""

    def handle_data(self, data: str) -> None:
        if self._inside:
            self.scripts[self._inside] = self.scripts.get(self._inside, "") + data
        else:
            self.text.append(data)

    def handle_endtag(self, tag: str) -> None:
        self._inside = ""


def finding(audit: str = "confidence", **fields: Any) -> Finding:
    estimate = Estimate(0.9, 0.85, 0.95, 100, "bootstrap-t", undefined=2)
    values = {
        "audit": audit,
        "question": "How sure?",
        "answer": "Very sure.",
        "measures": (Measure("single-unit confidence", estimate, "correct"),),
        "chart": "no such chart",
        "notes": ("3 of 100 documents are empty; see `notes`.",),
    }
    return Finding(**(values | fields))


def instances(units: tuple[str, ...] = ("good", "film")) -> dict[str, Any]:
    n = len(units)
    entry = {
        "id": "one",
        "units": list(units),
        "gold": 1,
        "decision": 1,
        "probabilities": [0.25, 0.75],
        "attention": [1 / n] * n,
        "importance": {"attention": [1 / n] * n},
        "unit_logits": [[0.0, 1.0]] * n,
        "offset": [0.0, 0.0],
        "evidence": None,
        "tags": [],
        "disagreement": None,
        "length": n,
    }
    methods = [{"name": "attention", "sentence": "The weight."}]
    classes = ["negative", "positive"]
    return {"classes": classes, "methods": methods, "linear": True, "documents": 7} | {
        "instances": [entry]
    }


@pytest.fixture
def run(tmp_path: Path) -> RunFolder:
    configuration = {"kind": "train", "recipe": "bilstm+additive", "corpus": "planted:2", "seed": 0}
    run = RunFolder.create(tmp_path / "run", configuration)
    write_json(run.findings / "confidence.json", finding())
    write_json(run.findings / "verdict.json", VERDICT)
    write_json(run.findings / "instances.json", instances())
    return run


def page_of(run: RunFolder) -> Parsed:
    return Parsed(render(run.path).read_text("utf-8"))


def test_the_page_answers_with_its_tests_advice_and_numbers(run: RunFolder) -> None:
    text = " ".join(" ".join(page_of(run).text).split())
    for expected in (
        "Partly",
        "provisional",
        VERDICT["sentence"],
        "bilstm+additive",
        "planted:2",
        "31 % [27, 35]",
        "supports from 20 % on",
        "not measured",
        "contradicts",
        VERDICT["advice"][0],
        "How sure?",
        "Very sure.",
        "single-unit confidence",
        "0.85, 0.95",
        "Tutek and Šnajder 2020, Table 3",
        "1 of 7 documents",
    ):
        assert expected in text


def test_the_page_is_self_contained(run: RunFolder) -> None:
    page = render(run.path).read_text("utf-8")
    parsed = Parsed(page)
    assert not re.findall(r"https?:|//[a-z]+\.|@import|url\((?!#)", page)
    loading = {"src", "srcset", "action", "data", "poster"}
    assert not [a for a in parsed.attributes if a[1] in loading]
    links = [value for _, name, value in parsed.attributes if name in ("href", "xlink:href")]
    assert all(link.startswith(("#", "data:image/png;base64,")) for link in links)
    assert not {"link", "iframe", "object", "embed", "base"} & set(parsed.tags)
    policy = next(v for _, n, v in parsed.attributes if n == "content" and "default-src" in v)
    assert "default-src 'none'" in policy
    assert "script-src 'sha256-" in policy


def test_links_inside_the_page_lead_somewhere_and_ids_are_unique(run: RunFolder) -> None:
    parsed = page_of(run)
    ids = [value for _, name, value in parsed.attributes if name == "id"]
    links = [v[1:] for _, n, v in parsed.attributes if n == "href" and v.startswith("#")]
    assert len(ids) == len(set(ids))
    assert set(links) <= set(ids)


@pytest.mark.slow
def test_figures_are_kept_as_files_of_their_own(run: RunFolder) -> None:
    run.metrics.write_text(json.dumps({"epoch": 1, "loss": 0.5, "dev_loss": 0.6}) + "\n")
    render(run.path)
    assert {path.name for path in run.figures.iterdir()} == {"confidence.svg", "training.svg"}
    assert (run.figures / "confidence.svg").read_text("utf-8").startswith("<svg xmlns=")


def test_rendering_again_gives_the_same_bytes(run: RunFolder) -> None:
    first = render(run.path).read_bytes()
    assert render(run.path).read_bytes() == first


def page_with(run: RunFolder, text: str) -> Parsed:
    """The page when every text that comes from data is this one."""
    shown = instances((text, "good")) | {"classes": [text, "positive"]}
    tests = [{"name": text, "sentence": text, "outcome": "mixed", "audit": text, "value": 0.5}]
    verdict = VERDICT | {"sentence": text, "advice": [text], "tests": tests}
    write_json(run.findings / "instances.json", shown)
    write_json(run.findings / "verdict.json", verdict)
    bad = finding(question=text, answer=text, notes=(text,))
    write_json(run.findings / "confidence.json", bad)
    parsed = page_of(run)
    plain = instances((visible(text), "good")) | {"classes": [visible(text), "positive"]}
    assert plain.items() <= json.loads(parsed.scripts["application/json"]).items()
    return parsed


@pytest.mark.slow
@pytest.mark.parametrize("evil", EVIL)
def test_text_from_data_is_shown_and_never_becomes_markup(run: RunFolder, evil: str) -> None:
    clean, parsed = page_with(run, "plain"), page_with(run, evil)
    assert parsed.tags == clean.tags
    assert [a[:2] for a in parsed.attributes] == [a[:2] for a in clean.attributes]
    assert parsed.scripts["code"] == clean.scripts["code"]
    assert sum(visible(evil) in piece for piece in parsed.text) >= 7
    assert not set("\u202e\u2028") & set("".join(parsed.text))


def test_half_surrogates_do_not_stop_the_page(run: RunFolder) -> None:
    write_json(run.findings / "confidence.json", finding(answer="bad \ud800 text"))
    assert "bad � text" in render(run.path).read_text("utf-8")


def test_a_run_without_findings_still_has_a_page(tmp_path: Path) -> None:
    run = RunFolder.create(tmp_path / "new", {"kind": "train", "recipe": "none+dot"})
    text = " ".join(page_of(run).text)
    assert "Cannot tell" in text
    assert "no findings yet" in text


def test_what_is_not_a_run_or_a_finding_is_refused_in_a_sentence(run: RunFolder) -> None:
    with pytest.raises(InputError, match="does not exist"):
        render(run.path / "elsewhere")
    write_json(run.findings / "odd.json", {"audit": "odd"})
    with pytest.raises(InputError, match=r"odd\.json is not a finding"):
        render(run.path)


def test_damaged_files_are_named(run: RunFolder) -> None:
    write_json(run.findings / "confidence.json", finding(chart="confidence", drawn={"units": {}}))
    with pytest.raises(InputError, match=r"confidence\.json holds a chart"):
        render(run.path)
    write_json(run.findings / "confidence.json", finding())
    for odd in ([], "text", {"instances": 3}, {"instances": ["x"]}):
        write_json(run.findings / "instances.json", odd)
        with pytest.raises(InputError, match=r"instances\.json holds no instances"):
            render(run.path)
    write_json(run.findings / "instances.json", instances(("a", "good")))
    run.metrics.write_text('{"epoch": 1, "lo')
    with pytest.raises(InputError, match=r"metrics\.jsonl, line 1, is damaged"):
        render(run.path)


def test_seed_0_is_a_seed(run: RunFolder) -> None:
    from heedful.report.page import _facts

    shown = {"documents": 0, "audited": {"rows": ""}}
    facts = _facts(run.record, {}, shown)
    assert facts["Seed"] == "0"
    bare = {"configuration": {"seed": 0}, "created": ""}
    assert _facts(bare, {}, shown) == {"Seed": "0"}


def test_a_broken_verdict_is_refused(run: RunFolder) -> None:
    write_json(run.findings / "verdict.json", {"word": "perhaps"})
    with pytest.raises(InputError, match="holds no verdict"):
        render(run.path)


def test_our_number_stands_on_the_published_scale() -> None:
    (scale,) = scales_of(finding())
    rows = {row["label"]: row for row in scale["rows"]}
    top = 0.95  # the axis runs from 0 to the largest number on it, the end of our interval
    assert rows["this model"]["at"] == pytest.approx(100 * 0.9 / top, abs=0.01)
    assert rows["BiLSTM, SST"]["at"] == pytest.approx(100 * 0.712 / top, abs=0.01)
    assert scales_of(finding(measures=())) == []
    assert all(math.isfinite(v) for found in SCALES.values() for s in found for _, v in s.values)


def test_a_cost_is_what_is_lost() -> None:
    worse = Measure("macro F1", Estimate(-0.03, -0.05, -0.01, 9, "t"), "uniform - trained")
    (scale,) = scales_of(finding("substitution", measures=(worse,)))
    ours, *theirs = scale["rows"]
    assert "costs" in scale["caption"]
    assert ours["shown"] == "3.0\xa0% [1.0, 5.0]"
    assert theirs[0]["shown"] == "2.8\xa0%"
    better = Measure("macro F1", Estimate(0.008, 0.0, 0.01, 9, "t"), "uniform - trained")
    (scale,) = scales_of(finding("substitution", measures=(better,)))
    assert scale["rows"][0]["shown"] == "−0.8\xa0% [−1.0, 0.0]"


def test_no_folder_of_the_users_machine_stands_on_the_page(tmp_path: Path) -> None:
    data, model = tmp_path / "secret" / "mails.csv", tmp_path / "secret" / "my-model"
    run = RunFolder.create(
        tmp_path / "run", {"kind": "audit", "recipe": f"hf:{model}", "corpus": str(data)}
    )
    run.update(audited={"documents": 7, "of": 9, "corpus": str(data), "run": str(model)})
    write_json(run.findings / "verdict.json", VERDICT)
    write_json(run.findings / "instances.json", instances())
    page = render(run.path).read_text("utf-8")
    assert "secret" not in page
    assert str(tmp_path) not in page
    assert "my-model" in page
    assert "mails.csv" in page


def test_advice_on_the_page_names_no_folder_above_the_run(run: RunFolder) -> None:
    said = f"Train: `heedful train --from {run.path.resolve()} --objective tying`."
    write_json(run.findings / "verdict.json", VERDICT | {"advice": [said]})
    text = " ".join(" ".join(page_of(run).text).split())
    assert f"heedful train --from {run.path.name} --objective tying" in text
    assert str(run.path.resolve().parent) not in text


def test_the_recommended_method_comes_first_and_random_last(run: RunFolder) -> None:
    names = ("random", "gradient", "attention", "occlusion")
    shown = instances() | {"methods": [{"name": name, "sentence": "."} for name in names]}
    places = [
        {"method": m, "place": p, "standing": "as random", "faithfulness": {"value": 0.1,
         "low": None, "high": None}, "beyond_random": None, "beside": {}}
        for p, m in enumerate(("occlusion", "gradient", "attention"), 1)
    ]  # fmt: skip
    ranking = {"sentence": "", "recommendation": "", "recommended": "occlusion", "places": places}
    write_json(run.findings / "instances.json", shown)
    write_json(run.findings / "verdict.json", VERDICT | {"ranking": ranking})
    told = json.loads(page_of(run).scripts["application/json"])
    listed = [method["name"] for method in told["methods"]]
    assert listed == ["occlusion", "attention", "gradient", "random"]
    assert told["recommended"] == "occlusion"


def test_the_rule_and_the_borders_of_the_verdict_are_on_the_page(run: RunFolder) -> None:
    tests = [VERDICT["tests"][0] | {"contradicts": 0.05}]
    write_json(run.findings / "verdict.json", VERDICT | {"rule": ["All or none."], "tests": tests})
    text = " ".join(page_of(run).text)
    assert "All or none." in text
    assert "supports from 20\xa0% on, contradicts up to 5\xa0%" in text


def test_the_page_says_where_attention_is_read_and_removed(run: RunFolder) -> None:
    audited = {"unit": "word", "where": "in the last layer", "heads": "What all attend to",
               "rows": "the last layer, the mean of all rows"}  # fmt: skip
    write_json(run.findings / "instances.json", instances() | {"audited": audited})
    text = " ".join(" ".join(page_of(run).text).split())
    assert "with attention to it in the last layer removed" in text
    assert "deleted and the text read again" in text
    assert "the mean of all rows" in text
    assert "the row that decides" not in text


# ------------------------------------------------------------------------- which instances


def test_options_and_intervals_are_whole_and_negative_numbers_have_a_minus(run: RunFolder) -> None:
    advice = "Lost -0.3 [-0.4, -0.1] of mean-pooled: `heedful train a-b --from runs/a-1 --limit 2`."
    write_json(run.findings / "verdict.json", VERDICT | {"advice": [advice]})
    page = render(run.path).read_text()
    told = "Lost \u22120.3 [\u22120.4,\u00a0\u22120.1] of mean-pooled: <code>heedful train a-b "
    whole = '<span class="option">--from</span> runs/a-1 <span class="option">--limit</span> 2'
    assert f"{told}{whole}</code>." in page


@pytest.mark.parametrize(
    ("documents", "explained", "said"),
    [
        (1, 1, "All 1 documents."),
        (7, 7, "1 of 7 documents, chosen"),
        (7, 5, "1 of the 5 documents that were explained, chosen"),
        (7, 1, "All 1 that were explained, of 7 documents."),
    ],
)
def test_documents_are_chosen_only_where_some_are_left_out(
    run: RunFolder, documents: int, explained: int, said: str
) -> None:
    counts = {"documents": documents, "explained": explained}
    write_json(run.findings / "instances.json", instances() | counts)
    assert said in render(run.path).read_text()
