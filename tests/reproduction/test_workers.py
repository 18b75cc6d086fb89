"""Several processes over the steps of one study."""

import json
import os
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest

from heedful.errors import InputError
from heedful.reproduction import workers
from heedful.reproduction.results import Results, Skipped, Step
from heedful.reproduction.workers import _finished, _took, compute_together
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
    left = compute_together(module, 2, out=out)
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
    result = reproduce_study(import_study, out=out, figures=False)
    assert "absent is not here" in result.skipped["absent/0/value"]
    assert len(Results(steps).journal()) == 7
    assert compute_together(module, 2, out=out, corpora=["here"]) == 0


def test_a_folder_in_use_and_no_jobs_are_refused(module: str, tmp_path: Path) -> None:
    with pytest.raises(InputError, match="at least 1"):
        compute_together(module, 0, out=tmp_path)
    with locked(tmp_path / "spread"), pytest.raises(InputError, match="in use"):
        compute_together(module, 2, out=tmp_path)


@pytest.mark.slow
@pytest.mark.usefixtures("forked")
def test_a_bug_in_a_worker_is_not_swallowed(module: str, tmp_path: Path) -> None:
    broken = STUDY.replace('{"size": 3}', "1 / 0")
    (tmp_path / "code" / "spread_study.py").write_text(broken)
    sys.modules.pop(module, None)
    with pytest.raises(RuntimeError, match="a worker ended with code"):
        compute_together(module, 1, out=tmp_path / "out", corpora=["here"])


def test_a_finished_step_is_marked_for_the_others_and_a_skipped_one_is_not(tmp_path: Path) -> None:
    results, shared = Results(tmp_path / "steps"), tmp_path / "shared"
    shared.mkdir()

    def absent(results: Results) -> None:
        raise InputError("absent is not here")

    done, skipped = Step("done", lambda results: 1, {}), Step("skipped", absent, {})
    assert _took(results, shared, done)
    assert _took(results, shared, skipped)
    assert _finished(shared, done).is_file()
    assert not _finished(shared, skipped).exists()
    assert _finished(shared, done) != _finished(
        shared, Step("done", lambda results: 1, {"seed": 1})
    )


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
    compute_together(module, 2, out=tmp_path / "out", corpora=["here"])
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
