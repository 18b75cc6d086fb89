"""What is committed of a study: small files, and a page without dead links."""

import gzip
import json
import re
import sys
from pathlib import Path

import pandas as pd
import pytest

sys.path.insert(0, str(Path(__file__).parents[2] / "docs"))
from publish import (
    LARGE_FIGURE,
    LARGE_TABLE,
    SKIPPED,
    claims_page,
    publish,
    publish_logs,
    refresh,
)

from heedful.reproduction.index_page import StudyPage, render_study


def test_large_tables_are_packed_and_the_page_links_to_what_is_there(tmp_path: Path) -> None:
    study, target = tmp_path / "study", tmp_path / "docs"
    study.mkdir()
    large = "x\n" * LARGE_TABLE
    (study / "T1.csv").write_text("a\n1\n")
    (study / "F1.csv").write_text(large)
    (study / "index.html").write_text('<a href="T1.csv">T1</a> <a href="F1.csv">F1.csv</a>')
    assert publish(study, target) == ["F1.csv"]
    page = (target / "index.html").read_text()
    assert ">F1.csv.gz</a>" in page
    links = re.findall(r'href="([^"]+)"', page)
    assert links == ["T1.csv", "F1.csv.gz"]
    assert all((target / link).is_file() for link in links)
    assert gzip.decompress((target / "F1.csv.gz").read_bytes()).decode() == large
    first = (target / "F1.csv.gz").read_bytes()
    publish(study, target)
    assert (target / "F1.csv.gz").read_bytes() == first
    assert not (target / "F1.csv").exists()


def test_a_heavy_figure_is_refused(tmp_path: Path) -> None:
    (tmp_path / "F1.svg").write_text("x" * (LARGE_FIGURE + 1))
    with pytest.raises(SystemExit, match=r"F1\.svg"):
        publish(tmp_path, tmp_path / "docs")


def test_a_part_does_not_replace_what_is_measured(tmp_path: Path) -> None:
    verdict = {"id": "FAI-1", "corpus": "imdb", "verdict": "confirmed", "reason": "7, claimed > 5"}
    waits = {"verdict": "not measurable", "reason": "models: not computed yet, and only …"}
    whole, part = tmp_path / "whole", tmp_path / "part"
    for folder, claim in ((whole, verdict), (part, verdict | waits)):
        folder.mkdir()
        (folder / "claims.json").write_text(json.dumps([claim]))
    publish(whole, tmp_path / "docs")
    with pytest.raises(SystemExit, match=r"1 verdicts .*, FAI-1 on imdb among them: .*/corrected"):
        publish(part, tmp_path / "docs")
    assert json.loads((tmp_path / "docs" / "claims.json").read_text()) == [verdict]
    publish(part, tmp_path / "elsewhere")  # where nothing is measured yet
    publish(whole, tmp_path / "elsewhere")
    assert json.loads((tmp_path / "elsewhere" / "claims.json").read_text()) == [verdict]


def test_every_epoch_of_a_training_is_published_once(tmp_path: Path) -> None:
    steps = tmp_path / "steps"
    log = {"setting": ["10", "10"], "seed": [3, 3], "step": [5, 10], "epoch": [1.0, 2.0]}
    log |= {"loss": [0.5, 0.25], "dev_accuracy": [0.8, 0.9], "learning_rate": [0.02, 0.01]}
    # The second puts the seeds' tables together and has every epoch again.
    for step in ("sst/dp/3/scores", "sst/dp/scores"):
        (steps / step).mkdir(parents=True)
        pd.DataFrame(log).to_parquet(steps / step / "log.parquet")
    (steps / "journal.jsonl").write_text('{"step": "sst/dp/3/scores", "seconds": 7.04}\n')
    assert publish_logs(tmp_path, tmp_path) == 2
    found = pd.read_csv(tmp_path / "runs.csv.gz")
    assert found["epoch"].tolist() == [1, 2]
    assert found["dev accuracy"].tolist() == [0.8, 0.9]
    assert found.loc[0, ["corpus", "model", "seed", "rate"]].tolist() == ["sst", "dp", 3, 0.02]
    assert (found["seconds of the step"] == 7).all()


def test_a_log_of_all_runs_of_a_corpus_is_published_as_it_is(tmp_path: Path) -> None:
    (tmp_path / "steps/20ng").mkdir(parents=True)
    log = {"kind": ["frozen"], "run": ["30"], "step": [10], "dev": [0.123456], "entropy": [0.5]}
    pd.DataFrame(log).to_parquet(tmp_path / "steps/20ng/log.parquet")
    (tmp_path / "steps/journal.jsonl").write_text("")
    assert publish_logs(tmp_path, tmp_path) == 1
    found = pd.read_csv(tmp_path / "runs.csv.gz")
    assert found.loc[0].tolist() == ["20ng", "frozen", 30, 10, 0.1235, 0.5]


def test_a_log_of_many_seeds_keeps_what_it_has(tmp_path: Path) -> None:
    step = tmp_path / "steps" / "amazon" / "bigru+additive" / "erased"
    step.mkdir(parents=True)
    log = {"seed": [0, 1], "step": [96, 96], "epoch": [1.0, 1.0], "loss": [1.23456, 1.0]}
    log |= {
        "dev_accuracy": [0.5, 0.6],
        "dev_entropy": [0.98765, 1.0],
        "learning_rate": [1e-4, 1e-4],
    }
    pd.DataFrame(log).to_parquet(step / "log.parquet")
    line = '{"step": "amazon/bigru+additive/erased", "seconds": 9.0}\n'
    (tmp_path / "steps" / "journal.jsonl").write_text(line)
    assert publish_logs(tmp_path, tmp_path) == 2
    found = pd.read_csv(tmp_path / "runs.csv.gz")
    assert found["entropy of attention"].tolist() == [0.9876, 1.0]
    assert found["seed"].tolist() == [0, 1]
    assert "λ or setting" not in found


def test_a_study_without_logs_has_no_table_of_them(tmp_path: Path) -> None:
    assert publish_logs(tmp_path, tmp_path) == 0
    assert not (tmp_path / "runs.csv.gz").exists()


STUDIES = ["dynamics", "erasure", "faithful", "polarity", "tracing", "transformers"]


@pytest.mark.parametrize("study", STUDIES)
def test_the_committed_pages_have_no_dead_links(study: str) -> None:
    folder = Path(__file__).parents[2] / "docs" / "results" / study
    links = re.findall(r'(?:href|src)="([^"#:]+)"', (folder / "index.html").read_text())
    assert [link for link in links if not (folder / link).is_file()] == []


def told(page: Path) -> dict[str, object]:
    found = re.search(r'id="told">(.*?)</script>', page.read_text(), re.DOTALL)
    assert found
    numbers: dict[str, object] = json.loads(found[1])
    return numbers


def test_the_page_of_all_claims_is_made_again_from_what_is_committed(tmp_path: Path) -> None:
    """`python docs/publish.py docs/results` makes it; run that after a change of a study."""
    results = Path(__file__).parents[2] / "docs" / "results"
    for name in STUDIES:
        (tmp_path / name).symlink_to(results / name)
    assert claims_page(tmp_path) == tmp_path / "claims.html"
    assert told(tmp_path / "claims.html") == told(results / "claims.html")


def test_a_refreshed_page_shows_the_claims_of_now_and_keeps_the_rest(tmp_path: Path) -> None:
    texts = ("claim", "where", "statistic", "side", "paper", "stand_in_for", "reason")
    known = dict.fromkeys(texts, "") | dict.fromkeys(("ours", "interval", "n"))
    claim = known | {"id": "C-1", "corpus": "sst", "verdict": "undecided", "seeds": 1, "parts": []}
    claims = [claim | {"scale": "paper", "claim": "A < B."}]
    page = StudyPage("Old title", "", {"made": "then"}, (), {}, ("as it was",), (), [], {}, False)
    # As pages were: every step that was skipped on a line of its own.
    lines = "".join(f"<li><b>ng/{n} &amp; more</b>: no notes</li>\n" for n in range(3))
    told = f'{SKIPPED}\n<ul class="plain">\n{lines}</ul>\n</section>\n</main>'
    before = render_study(page).replace("</section>\n</main>", told)
    (tmp_path / "index.html").write_text(before)
    (tmp_path / "claims.json").write_text(json.dumps(claims))
    after = refresh(tmp_path).read_text()
    assert "A &lt; B." in after
    assert "No claim was measured yet." not in after
    assert '<b>ng/0 &amp; more</b> <span class="note">and 2 more</span>: no notes' in after
    assert "ng/1" not in after
    start, end = (before.index(part) for part in ('<section id="artifacts">', SKIPPED))
    assert before[start:end] in after
    assert "<dt>made</dt><dd>then</dd>" in after
    assert refresh(tmp_path).read_text() == after
