"""The engine on a toy study: arithmetic instead of training, so that every rule shows."""

import json
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from heedful.errors import InputError
from heedful.report.panels import lines
from heedful.reproduction.judgements import judged
from heedful.reproduction.ledger import Parts, above, below
from heedful.reproduction.measures import average, contrast, difference, exact
from heedful.reproduction.reproduce import StudyResult, reproduce_study
from heedful.reproduction.request import StudyRequest
from heedful.reproduction.results import Results, Skipped, Step, named
from heedful.reproduction.study import Artifact, Claim, Made, Plan, Source, Study
from heedful.reproduction.tables import beside, numbers, row
from heedful.reproduction.view import View, Views
from heedful.runs import TABLE, locked
from heedful.statistics import Estimate
from heedful.studies import reproduce

ABSENT = "yelp.csv is not in the data root; get it from its authors."


class Killed(Exception):
    """Stands for a kill."""


class Lab:
    """A study that counts how often each step is computed and can be killed at one of them."""

    def __init__(self) -> None:
        self.computed: list[str] = []
        self.kill_at = ""

    def numbers_of(self, plan: Plan, corpus: str, seed: int) -> Step[pd.DataFrame]:
        def compute(results: Results) -> pd.DataFrame:
            self.note(corpus, seed, "rows")
            start = results[self.text(plan, corpus)]["start"]
            values = [start + seed + 0.1 * i for i in range(20)]
            names = [f"{corpus}/{i}" for i in range(20)]
            # The gap is 1 on average and not the same everywhere, so that it has an interval.
            gap = {n: 0.9 + 0.2 * (i % 2) for i, n in enumerate(names)}
            both = [(n, r, v - gap[n] * (r == "low")) for n, v in zip(names, values, strict=True)
                    for r in ("high", "low")]  # fmt: skip
            return pd.DataFrame(both, columns=["instance", "ranking", "value"])

        name = named(corpus, seed, "rows")
        return Step(name, compute, {"seed": seed}, TABLE, (self.text(plan, corpus),))

    def text(self, plan: Plan, corpus: str) -> Step[dict[str, float]]:
        def compute(results: Results) -> dict[str, float]:
            self.note(corpus, "text")
            if corpus == "yelp":
                raise InputError(ABSENT)
            return {"start": len(corpus)}

        return Step(named(corpus, "text"), compute, {"corpus": corpus, "scale": plan.scale})

    def note(self, *parts: Any) -> None:
        name = "/".join(map(str, parts))
        if name == self.kill_at:
            raise Killed(name)
        self.computed.append(name)

    def needs(self, plan: Plan, corpus: str) -> list[Step[pd.DataFrame]]:
        return [self.numbers_of(plan, corpus, seed) for seed in plan.seeds]

    def tables(self, view: View) -> list[pd.DataFrame]:
        return [view.of(self.numbers_of, seed) for seed in view.seeds]

    def table(self, views: Views) -> Made:
        def of(view: View) -> list[dict[str, Any]]:
            found = average(self.tables(view), "value", {"ranking": "high"})
            return [row({"corpus": view.corpus}, score=found)]

        ours = views.table(of)
        paper = numbers("corpus score\nsst 4.0\nyelp 9.5", ["corpus"])
        return Made(beside(ours, paper, ["corpus"]), deviations=("<b>half</b> the size",))

    def figure(self, views: Views) -> Made:
        table = views.on("sst").of(self.numbers_of, 0)
        table = table[table["ranking"] == "high"].assign(place=range(20))
        return Made(table, partial(lines, x="place", y="value"), "It <i>rises</i>.")

    def gap(self, view: View) -> Estimate:
        tables = self.tables(view)
        return difference(tables, "value", {"ranking": "high"}, {"ranking": "low"})

    def both(self, view: View) -> Parts:
        tables = self.tables(view)
        same = contrast(tables, tables, "value", {"ranking": "low"}, {"ranking": "low"})
        return Parts(size=average(tables, "value", {"ranking": "high"}), same=same)

    def study(self) -> Study:
        return Study(
            name="toy",
            title="A toy <script>alert(1)</script>",
            reference="Nobody, nowhere.",
            sources=(
                Source("sst", "SST"),
                Source("ag", "AG News", stand_in_for="Yahoo Answers"),
                Source("yelp", "Yelp", scales=("paper",)),
            ),
            seeds={"smoke": 2, "paper": 3},
            artifacts=(
                Artifact("T1", "Scores", "Table 1", "table", self.table, self.needs),
                Artifact(
                    "S-F2", "Curve", "Fig. 2", "figure", self.figure, self.needs, ("sst",)
                ),
                Artifact(
                    "F0", "Drawing", "Fig. 0", "drawing", lambda views: Made(svg="<svg></svg>")
                ),
            ),
            claims=(
                Claim(
                    "TOY-1", "High beats low", "§1", "gap", {"sst": "1.0"}, above(0), self.gap,
                    self.needs, over="all",
                ),
                Claim(
                    "TOY-2", "Both hold", "§2", "two", "none",
                    {"size": above(1), "same": below(0)}, self.both, self.needs, ("sst",),
                ),
                Claim(
                    "TOY-3", "Corpora differ", "§3", "count", "none", above(1),
                    needs=self.needs,
                    measure_all=lambda views: exact(len(views.corpora), len(views.corpora)),
                ),
            ),
        )  # fmt: skip

    def run(self, out: Path, **options: Any) -> StudyResult:
        self.computed.clear()
        shown = {
            name: options.pop(name) for name in ("show", "figures", "compute") if name in options
        }
        return reproduce_study(self.study(), StudyRequest(out=out, **options), **shown)


@pytest.fixture
def lab() -> Lab:
    return Lab()


def kept(folder: Path) -> dict[str, bytes]:
    """All files but those that hold times."""
    timed = ("index.html", "study.json", "journal.jsonl")
    return {
        str(path.relative_to(folder)): path.read_bytes()
        for path in sorted(folder.rglob("*"))
        if path.is_file() and path.name not in timed and not path.name.endswith(".step.json")
    }


def test_every_artifact_has_its_files_and_a_drawing_has_no_csv(lab: Lab, tmp_path: Path):
    lab.run(tmp_path)
    names = {path.name for path in (tmp_path / "toy").iterdir()}
    for name in ("T1", "S-F2"):
        assert {f"{name}.csv", f"{name}.json", f"{name}.svg"} <= names
    assert {"F0.json", "F0.svg", "index.html", "claims.json", "steps"} <= names
    assert "F0.csv" not in names


def test_the_table_has_the_papers_numbers_beside_ours(lab: Lab, tmp_path: Path):
    lab.run(tmp_path)
    table = pd.read_csv(tmp_path / "toy" / "T1.csv").set_index("corpus")
    assert table.loc["sst", "score"] == pytest.approx(3 + 0.5 + 0.95)
    assert table.loc["sst", "score, difference"] == pytest.approx(0.45)
    assert pd.isna(table.loc["ag", "score, paper"])
    assert table.loc["yelp", "score, paper"] == 9.5
    assert pd.isna(table.loc["yelp", "score"])


@pytest.mark.slow
def test_a_killed_run_goes_on_and_ends_with_the_same_files(lab: Lab, tmp_path: Path):
    lab.run(tmp_path / "whole")
    whole = list(lab.computed)
    lab.kill_at = "ag/0/rows"
    with pytest.raises(Killed):
        lab.run(tmp_path / "killed")
    before = list(lab.computed)
    lab.kill_at = ""
    lab.run(tmp_path / "killed")
    assert before + lab.computed == whole
    assert kept(tmp_path / "killed") == kept(tmp_path / "whole")


@pytest.mark.slow
def test_nothing_is_computed_twice_and_only_what_is_asked_for(lab: Lab, tmp_path: Path):
    lab.run(tmp_path, only=["s-f2"])
    assert lab.computed == ["sst/text", "sst/0/rows", "sst/1/rows"]
    lab.run(tmp_path, only=["TOY-2"])
    assert lab.computed == []
    lab.run(tmp_path)
    assert lab.computed == ["ag/text", "ag/0/rows", "ag/1/rows"]


def test_a_part_keeps_the_other_claims_and_artifacts(lab: Lab, tmp_path: Path):
    whole = lab.run(tmp_path)
    part = lab.run(tmp_path, only=["TOY-1"], corpora=["sst"])
    marks = [(claim["id"], claim["corpus"]) for claim in part.claims]
    assert marks == [(claim["id"], claim["corpus"]) for claim in whole.claims]
    assert [record["id"] for record in part.artifacts] == ["T1", "S-F2", "F0"]


@pytest.mark.slow
def test_needs_of_finished_steps_are_not_asked_for_again(lab: Lab, tmp_path: Path):
    lab.run(tmp_path)
    for path in (tmp_path / "toy" / "steps" / "sst").glob("text*"):
        path.unlink()
    lab.run(tmp_path)
    assert lab.computed == []


def test_other_inputs_are_computed_again(lab: Lab, tmp_path: Path):
    results = Results(tmp_path)
    one = Step("x", lambda r: 1, {"size": 1})
    assert results[one] == 1
    assert results[Step("x", lambda r: 2, {"size": 1})] == 1
    assert results[Step("x", lambda r: 2, {"size": 2})] == 2
    assert results[Step("x", lambda r: 3, {"size": 2}, version=2)] == 3
    below_it = Step("y", lambda r: 4, {}, needs=(one,))
    changed = Step("y", lambda r: 5, {}, needs=(Step("x", lambda r: 0, {"size": 9}),))
    assert (results[below_it], results[changed]) == (4, 5)
    with pytest.raises(ValueError, match="two steps are named 'x'"):
        results.planned([one, Step("x", lambda r: 2, {"size": 3})])


def test_claims_have_one_object_per_corpus_and_one_for_all(lab: Lab, tmp_path: Path):
    lab.run(tmp_path)
    claims = json.loads((tmp_path / "toy" / "claims.json").read_text())
    found = {(one["id"], one["corpus"]): one for one in claims}
    assert list(found) == [
        ("TOY-1", "sst"), ("TOY-1", "ag"), ("TOY-1", "all"), ("TOY-2", "sst"), ("TOY-3", "all"),
    ]  # fmt: skip
    assert found["TOY-1", "ag"]["stand_in_for"] == "Yahoo Answers"
    assert found["TOY-1", "sst"]["stand_in_for"] is None
    assert found["TOY-1", "sst"]["paper"] == "1.0"
    assert found["TOY-1", "all"]["verdict"] == "confirmed"
    assert found["TOY-1", "sst"]["ours"] == pytest.approx(1.0)
    assert (found["TOY-1", "sst"]["n"], found["TOY-1", "sst"]["seeds"]) == (20, 2)
    # A difference of exactly 0 touches the threshold of "below 0".
    assert found["TOY-2", "sst"]["verdict"] == "undecided"
    assert "over the corpora at hand: sst, ag" in found["TOY-3", "all"]["reason"]


def test_a_missing_corpus_is_skipped_with_its_reason_everywhere(lab: Lab, tmp_path: Path):
    result = lab.run(tmp_path, scale="paper")
    found = {(one["id"], one["corpus"]): one for one in result.claims}
    assert found["TOY-1", "yelp"]["verdict"] == "not measurable"
    assert found["TOY-1", "yelp"]["reason"] == ABSENT
    assert found["TOY-1", "all"]["verdict"] == "confirmed"
    assert "not measurable: yelp" in found["TOY-1", "all"]["reason"]
    assert found["TOY-3", "all"]["ours"] == 2
    assert result.artifacts[0]["missing"] == {"yelp": ABSENT}
    assert "missing in " in (tmp_path / "toy" / "index.html").read_text()
    assert result.skipped["yelp/text"] == ABSENT
    assert ABSENT in (tmp_path / "toy" / "index.html").read_text()


def test_an_artifact_without_any_corpus_says_so(lab: Lab, tmp_path: Path):
    result = lab.run(tmp_path, scale="paper", corpora=["yelp"], only=["T1", "TOY-1"])
    assert result.artifacts[0]["missing"] == {"yelp": ABSENT}
    assert not (tmp_path / "toy" / "T1.csv").exists()
    assert [one["verdict"] for one in result.claims] == ["not measurable"] * 2


@pytest.mark.slow
def test_the_page_is_made_again_from_the_steps_alone(lab: Lab, tmp_path: Path):
    lab.run(tmp_path / "gpu", figures=False)
    there = tmp_path / "gpu" / "toy"
    assert not (there / "index.html").exists()
    assert not list(there.glob("*.svg"))
    here = tmp_path / "here" / "toy"
    here.mkdir(parents=True)
    (there / "steps").rename(here / "steps")
    lab.run(tmp_path / "here", compute=False)
    assert lab.computed == []
    assert (here / "claims.json").read_bytes() == (there / "claims.json").read_bytes()
    assert (here / "T1.csv").read_bytes() == (there / "T1.csv").read_bytes()
    assert (here / "T1.svg").exists()


@pytest.mark.slow
def test_a_step_that_was_done_again_counts_once(lab: Lab, tmp_path: Path):
    lab.run(tmp_path)
    journal = tmp_path / "toy" / "steps" / "journal.jsonl"
    before = journal.read_text()
    first = json.loads(before.splitlines()[0]) | {"seconds": 1e6, "commit": "withdrawn"}
    journal.write_text(json.dumps(first) + "\n" + before)
    lab.run(tmp_path, compute=False)
    page = (tmp_path / "toy" / "index.html").read_text()
    assert f" s in {len(before.splitlines())} steps" in page
    assert "withdrawn" not in page


def test_drawing_only_keeps_what_can_no_longer_be_made(lab: Lab, tmp_path: Path):
    before = lab.run(tmp_path)
    for path in sorted((tmp_path / "toy" / "steps").rglob("*"), reverse=True):
        path.rmdir() if path.is_dir() else path.unlink()
    after = lab.run(tmp_path, compute=False)
    assert after.claims == before.claims
    assert after.artifacts == before.artifacts
    with pytest.raises(Skipped, match="not computed yet"):
        Results(tmp_path / "none", may_compute=False)[Step("x", lambda r: 1, {})]


def test_drawing_only_tells_why_an_artifact_was_never_made(lab: Lab, tmp_path: Path):
    asked: dict[str, Any] = {"scale": "paper", "corpora": ["yelp"], "only": ["T1"]}
    lab.run(tmp_path, **asked)
    record = tmp_path / "toy" / "T1.json"
    record.write_text(record.read_text().replace(ABSENT, "an old reason"))
    again = lab.run(tmp_path, compute=False, **asked)
    assert "an old reason" not in str(again.artifacts[0]["missing"])


def test_a_claim_tells_the_trainings_of_each_corpus(lab: Lab, tmp_path: Path):
    study = lab.study()
    first = replace(study.claims[0], seeds=lambda plan, corpus: {"sst": 2, "ag": 1}[corpus])
    found = judged(first, study.plan("smoke"), Results(tmp_path))
    assert {one["corpus"]: one["seeds"] for one in found} == {"sst": 2, "ag": 1, "all": 1}


def test_the_page_is_self_contained_and_escapes_everything(lab: Lab, tmp_path: Path):
    lab.run(tmp_path)
    page = (tmp_path / "toy" / "index.html").read_text()
    assert "<script" not in page
    assert "&lt;script&gt;alert(1)" in page
    assert "It &lt;i&gt;rises" in page
    assert "&lt;b&gt;half" in page
    assert 'src="http' not in page
    assert "Content-Security-Policy" in page
    for text in ("heedful reproduce toy --scale smoke", "Smoke scale", "stands in for Yahoo"):
        assert text in page
    assert 'class="verdict confirmed"' in page


def test_a_second_run_in_the_same_folder_is_told(lab: Lab, tmp_path: Path):
    with locked(tmp_path / "toy"), pytest.raises(InputError, match="in use by process"):
        lab.run(tmp_path)


def test_another_scale_and_foreign_folders_are_refused(lab: Lab, tmp_path: Path):
    lab.run(tmp_path)
    with pytest.raises(InputError, match="holds the smoke scale"):
        lab.run(tmp_path, scale="paper")
    (tmp_path / "mine" / "toy").mkdir(parents=True)
    (tmp_path / "mine" / "toy" / "thesis.tex").touch()
    with pytest.raises(InputError, match=r"thesis\.tex"):
        lab.run(tmp_path / "mine")


def test_unknown_names_list_the_known_ones(lab: Lab, tmp_path: Path):
    with pytest.raises(InputError, match=r"known: F0, S-F2, T1, TOY-1"):
        lab.run(tmp_path, only=["T9"])
    with pytest.raises(InputError, match="known: ag, sst, yelp"):
        lab.run(tmp_path, corpora=["imdb"])
    with pytest.raises(InputError, match="known: paper, smoke"):
        lab.run(tmp_path, scale="huge")
    with pytest.raises(InputError, match="at least 1"):
        lab.run(tmp_path, seeds=0)
    with pytest.raises(InputError, match="quicklook"):
        reproduce("quickloook", out=tmp_path)
    assert not (tmp_path / "toy").exists()


def test_progress_says_how_far_and_how_long(lab: Lab, tmp_path: Path, capsys: Any):
    lab.run(tmp_path, show=True)
    told = capsys.readouterr().err
    assert "step 1/6, time left unknown: sst/text" in told
    assert "step 6/6, ~0 s left: ag/1/rows" in told


def test_smoke_steps_run_on_one_thread_and_give_the_others_back(lab: Lab, tmp_path: Path):
    import torch

    before, seen = torch.get_num_threads(), []
    torch.set_num_threads(2)
    try:
        lab.note = lambda *parts: seen.append(torch.get_num_threads())  # type: ignore[method-assign]
        lab.run(tmp_path)
        assert set(seen) == {1}
        assert torch.get_num_threads() == 2
    finally:
        torch.set_num_threads(before)
