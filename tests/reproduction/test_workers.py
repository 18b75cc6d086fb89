"""Several processes over the steps of one study."""

import json
import os
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from heedful.errors import InputError
from heedful.reproduction import workers
from heedful.reproduction.request import StudyRequest
from heedful.reproduction.results import Results, Skipped, Step
from heedful.reproduction.workers import WORKING, _Share, compute_together
from heedful.runs import locked
from tests.forked import Worker

STUDY = """
import os, time
from heedful.errors import InputError
from heedful.reproduction.results import Step
from heedful.reproduction.study import Artifact, Made, Source, Study
from pathlib import Path
import pandas as pd

def text(plan, corpus):
    def compute(results):
        if corpus == "absent":
            raise InputError("absent is not here")
        return {"size": 3}
    return Step(f"{corpus}/text", compute, {"corpus": corpus})

def one(plan, corpus, seed):
    source = text(plan, corpus)
    def compute(results):
        time.sleep(0.05)
        # Nobody goes on before two processes are at work, or a minute is over.
        here, until = Path(__file__).parent, time.monotonic() + 60
        (here / f"{os.getpid()}.seen").touch()
        while len(list(here.glob("*.seen"))) < 2 and time.monotonic() < until:
            time.sleep(0.02)
        return {"value": results[source]["size"] + seed, "process": os.getpid()}
    return Step(f"{corpus}/{seed}/value", compute, {"seed": seed}, needs=(source,))

def needs(plan, corpus):
    return [one(plan, corpus, seed) for seed in plan.seeds]

def make(views):
    found = views.each(lambda view: [view.of(one, seed)["value"] for seed in view.seeds])
    return Made(pd.DataFrame({"value": [v for values in found.values() for v in values]}))

STUDY = Study(
    name="spread", title="Spread", reference="none",
    sources=(Source("here", "here"), Source("absent", "absent")),
    artifacts=(Artifact("T1", "values", "nowhere", "table", make, needs),),
    claims=(), seeds={"smoke": 6, "paper": 6},
)
"""


@pytest.fixture
def module(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    name = "spread_study"
    (tmp_path / "code").mkdir()
    (tmp_path / "code" / f"{name}.py").write_text(STUDY)
    monkeypatch.syspath_prepend(str(tmp_path / "code"))
    paths = [str(tmp_path / "code"), *sys.path]
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join(paths))
    sys.modules.pop(name, None)
    return name


@pytest.fixture
def forked(monkeypatch: pytest.MonkeyPatch) -> None:
    """Workers that are forks, which need not import everything; the first test starts real ones."""
    monkeypatch.setattr(workers, "subprocess", SimpleNamespace(Popen=Worker, PIPE=subprocess.PIPE))


@pytest.mark.slow
def test_every_step_is_done_once_by_some_worker(module: str, tmp_path: Path) -> None:
    out = tmp_path / "out"
    left = compute_together([module], 2, StudyRequest(out=out))
    assert left == 2 + 2 * 6
    steps = out / "spread" / "steps"
    journal = Results(steps).journal()
    assert sorted(one["step"] for one in journal) == sorted(
        ["here/text", *(f"here/{seed}/value" for seed in range(6))]
    )
    found = [json.loads((steps / f"here/{seed}/value.json").read_text()) for seed in range(6)]
    assert [one["value"] for one in found] == [3, 4, 5, 6, 7, 8]
    assert len({one["process"] for one in found}) == 2
    assert not (steps / ".working").exists()
    # What needs the absent corpus is skipped, with its reason, by whoever comes next.
    from heedful.reproduction.reproduce import reproduce_study

    import_study = __import__(module).STUDY
    result = reproduce_study(import_study, StudyRequest(out=out), figures=False)
    assert "absent is not here" in result.skipped["absent/0/value"]
    assert len(Results(steps).journal()) == 7
    assert compute_together([module], 2, StudyRequest(out=out, corpora=("here",))) == 0


def test_a_folder_in_use_and_no_jobs_are_refused(module: str, tmp_path: Path) -> None:
    with pytest.raises(InputError, match="at least 1"):
        compute_together([module], 0, StudyRequest(out=tmp_path))
    with locked(tmp_path / "spread"), pytest.raises(InputError, match="in use"):
        compute_together([module], 2, StudyRequest(out=tmp_path))


@pytest.mark.slow
@pytest.mark.usefixtures("forked")
def test_a_bug_in_a_worker_is_not_swallowed(module: str, tmp_path: Path) -> None:
    broken = STUDY.replace('{"size": 3}', "1 / 0")
    (tmp_path / "code" / "spread_study.py").write_text(broken)
    sys.modules.pop(module, None)
    with pytest.raises(RuntimeError, match="a worker ended with code"):
        compute_together([module], 1, StudyRequest(out=tmp_path / "out", corpora=("here",)))


def share(folder: Path, *steps: Step[Any], seconds: dict[str, float] | None = None) -> _Share:
    (folder / "steps" / WORKING).mkdir(parents=True, exist_ok=True)
    return _Share(Results(folder / "steps"), list(steps), "some", seconds or {})


def test_a_finished_step_is_marked_for_the_others_and_a_skipped_one_is_not(tmp_path: Path) -> None:
    def absent(results: Results) -> None:
        raise InputError("absent is not here")

    done, skipped = Step("done", lambda results: 1, {}), Step("skipped", absent, {})
    ours, theirs = (share(tmp_path, done, skipped) for _ in range(2))
    assert ours.took(done)
    assert ours.took(skipped)
    assert ours.mark(done, "done").is_file()
    assert not ours.mark(skipped, "done").exists()
    assert theirs.left() == []
    assert theirs.results.skipped == {"skipped": "absent is not here"}
    other = Step("done", lambda results: 1, {"seed": 1})
    assert ours.mark(done, "done") != ours.mark(other, "done")


def test_long_steps_come_first_and_then_the_corpus_just_read(tmp_path: Path) -> None:
    names = ["sst/0/rows", "imdb/0/run", "sst/0/run", "imdb/0/rows", "imdb/0/new", "sst/0/probe"]
    steps = [Step(name, lambda results: 1, {}) for name in names]
    ours = share(tmp_path, *steps, seconds={"run": 60.0, "rows": 2.2, "probe": 3.0})
    for corpus, other in (("imdb", "sst"), ("sst", "imdb")):
        order = [one.name for one in sorted(steps, key=lambda one: ours.turn(one, corpus))]
        assert order[:2] == [f"{corpus}/0/run", f"{other}/0/run"]
        about_as_long = [name for name in names if name.split("/")[2] in ("rows", "probe")]
        own = [name for name in about_as_long if name.startswith(corpus)]
        assert order[2:5] == [*own, *(name for name in about_as_long if name not in own)]
        assert order[5] == "imdb/0/new"  # nobody knows how long


@pytest.mark.slow
@pytest.mark.usefixtures("forked")
def test_steps_of_all_studies_are_done_by_the_same_workers_and_told_in_one_place(
    module: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    other = STUDY.replace('name="spread"', 'name="other"').replace('"smoke": 6', '"smoke": 3')
    (tmp_path / "code" / "other_study.py").write_text(other)
    sys.modules.pop("other_study", None)
    out = tmp_path / "out"
    left = compute_together([module, "other_study"], 2, StudyRequest(out=out), show=True)
    assert left == (2 + 2 * 6) + (2 + 2 * 3)
    done = [Results(out / name / "steps").journal() for name in ("spread", "other")]
    assert [len(journal) for journal in done] == [1 + 6, 1 + 3]
    lines = capsys.readouterr().err.splitlines()
    assert len(lines) == left
    assert [line.split(",")[0] for line in lines] == [
        f"step {n}/{left}" for n in range(1, left + 1)
    ]
    assert sum("skipped: absent is not here" in line for line in lines) == 1 + 6 + 1 + 3
    assert sum(": other/here/" in line and line.endswith(" s") for line in lines) == 1 + 3


def test_time_left_is_reckoned_from_the_same_device(tmp_path: Path) -> None:
    results = Results(tmp_path / "steps")
    results.folder.mkdir()
    lines = [{"step": "a/run", "device": device, "seconds": s} for device, s in CARD_AND_CPU]
    (results.folder / "journal.jsonl").write_text("".join(json.dumps(one) + "\n" for one in lines))
    assert results.seconds() == {"run": [9.0, 11.0]}


CARD_AND_CPU = [("NVIDIA H200", 1.0), ("cpu", 9.0), ("cpu", 11.0)]


HEAVY = STUDY.replace(
    """        time.sleep(0.05)
""",
    """        time.sleep(0.05)
        full = Path(os.environ["FULL"])
        if seed == 0 and int(full.read_text()) > 0:
            full.write_text(str(int(full.read_text()) - 1))
            raise torch.OutOfMemoryError("CUDA out of memory")
""",
).replace("import os, time", "import os, time, torch")


@pytest.mark.slow
@pytest.mark.usefixtures("forked")
@pytest.mark.parametrize("times", [1, 99])
def test_a_step_without_room_waits_until_it_is_alone(
    module: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, times: int
) -> None:
    """One that has no room even then is skipped with a sentence; no other step is lost to it."""
    (tmp_path / "code" / f"{module}.py").write_text(HEAVY)
    (tmp_path / "full").write_text(str(times))  # how often the step finds the card full
    monkeypatch.setenv("FULL", str(tmp_path / "full"))
    compute_together([module], 2, StudyRequest(out=tmp_path / "out", corpora=("here",)))
    results = Results(tmp_path / "out" / "spread" / "steps")
    order = [one["step"] for one in results.journal()]
    light = {f"here/{seed}/value" for seed in range(1, 6)} | {"here/text"}
    assert set(order[:6]) == light
    assert order[6:] == (["here/0/value"] if times == 1 else [])
    if times == 99:
        assert int((tmp_path / "full").read_text()) == 97  # tried beside others, and alone
        steps = __import__(module)
        one = steps.one(steps.STUDY.plan("smoke"), "here", 0)
        with pytest.raises(Skipped, match="here/0/value found no memory left on cpu"):
            results[one]
