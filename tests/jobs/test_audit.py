"""An audit does each thing once: encoding, opening the model, judging."""

import errno
import os
import shutil
from collections import Counter
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from heedful.corpora import encoded, planted
from heedful.errors import InputError
from heedful.jobs import audit as job
from heedful.jobs import decider, ready
from heedful.jobs.audit import audit
from heedful.jobs.decider import device_of
from heedful.jobs.settings import settings_of
from heedful.jobs.train import train
from heedful.runs import RunFolder, locked, write_json

CORPUS = planted(2, "short", sizes={"train": 60, "dev": 20, "test": 20})
TINY = settings_of({"model": {"embedding_dim": 6}, "train": {"epochs": 1}})
WORDS: dict[str, Any] = {"settings": TINY, "audits": ["erasure"], "methods": ["attention"]}


@pytest.fixture
def calls(monkeypatch: pytest.MonkeyPatch) -> Counter[str]:
    """How often was encoded, opened and judged."""
    found: Counter[str] = Counter()

    def counted(place: Any, name: str) -> None:
        function: Callable[..., Any] = getattr(place, name)

        def counting(*given: Any, **named: Any) -> Any:
            found[name] += 1
            return function(*given, **named)

        monkeypatch.setattr(place, name, counting)

    counted(encoded, "encode_documents")
    counted(decider, "load_model")
    counted(ready, "weights_digest")
    counted(job, "judge")
    counted(job, "render")
    return found


def test_a_recipe_is_encoded_and_judged_once_and_never_opened_again(
    tmp_path: Path, calls: Counter[str]
) -> None:
    audit("none+additive", CORPUS, tmp_path / "run", **WORDS)
    splits = len(CORPUS.splits)
    assert calls == {"encode_documents": splits, "weights_digest": 1, "judge": 1, "render": 1}


def test_what_was_found_before_is_judged_but_not_drawn(tmp_path: Path, calls: Counter[str]) -> None:
    first = audit("none+additive", CORPUS, tmp_path / "run", **WORDS)
    calls.clear()
    assert audit(tmp_path / "run", CORPUS, tmp_path / "run", **WORDS) == first
    splits = len(CORPUS.splits)
    assert calls == {"encode_documents": splits, "load_model": 1, "weights_digest": 1, "judge": 1}
    write_json(tmp_path / "run" / "findings" / "verdict.json", {"word": "of an older rule"})
    audit(tmp_path / "run", CORPUS, tmp_path / "run", **WORDS)
    assert calls["render"] == 1


def test_a_model_that_the_folder_does_not_hold_is_refused(
    tmp_path: Path, calls: Counter[str]
) -> None:
    model = train("none+additive", CORPUS, tmp_path / "run", settings=TINY)
    other = train("none+additive", CORPUS, settings=TINY, seed=1)
    audit(model, CORPUS, tmp_path / "run", **WORDS)
    assert not calls["load_model"]  # the record says which weights the run holds
    with pytest.raises(job.InputError, match="choose another --out"):
        audit(other, CORPUS, tmp_path / "run", **WORDS)
    run = RunFolder.open(tmp_path / "run")
    run.update(weights=None)  # as a run of an older version
    assert audit(model, CORPUS, tmp_path / "run", **WORDS).folder == run.path


@pytest.fixture(scope="module")
def audited(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("audited") / "run"
    audit("none+additive", CORPUS, folder, **WORDS)
    return folder


def test_an_audit_killed_while_its_page_is_drawn_does_not_pass_for_the_one_before(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Killed(BaseException):
        pass

    def killed(folder: Path) -> Path:
        raise Killed

    run = tmp_path / "run"
    first = audit("none+additive", CORPUS, run, **WORDS)
    with monkeypatch.context() as patch:
        patch.setattr(job, "render", killed)
        with pytest.raises(Killed):
            audit(run, CORPUS, run, documents=8, **WORDS)
    again = audit(run, CORPUS, run, **WORDS)
    assert (again.documents, again.findings) == (first.documents, first.findings)


@pytest.mark.slow
@pytest.mark.parametrize("moment", range(0, 40, 3))
def test_an_audit_killed_at_any_file_ends_with_the_numbers_of_the_one_before(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, moment: int, audited: Path
) -> None:
    class Killed(BaseException):
        pass

    left = moment

    def counted(of: str) -> None:
        done = getattr(Path, of)

        def killed(self: Path, *arguments: Any, **named: Any) -> Any:
            nonlocal left
            left -= 1
            if left == -1:
                raise Killed
            return done(self, *arguments, **named)

        patch.setattr(Path, of, killed)

    run = tmp_path / "run"
    shutil.copytree(audited, run)
    first = audit(run, CORPUS, run, **WORDS)
    with monkeypatch.context() as patch:
        counted("replace")
        counted("unlink")
        with suppress(Killed):
            audit(run, CORPUS, run, documents=8, **WORDS)
    again = audit(run, CORPUS, run, **WORDS)
    assert (again.documents, again.findings) == (first.documents, first.findings)
    assert again.report.read_text() == (audited / "report.html").read_text()
    assert not (run / ".lock").exists()


def test_shards_are_kept_until_the_audit_is_recorded(
    tmp_path: Path, audited: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Killed(BaseException):
        pass

    def killed(*_: Any, **__: Any) -> None:
        raise Killed

    run = tmp_path / "run"
    shutil.copytree(audited, run)
    with monkeypatch.context() as patch:
        patch.setattr(RunFolder, "finish", killed)
        with pytest.raises(Killed):
            audit(run, CORPUS, run, documents=8, **WORDS)
    monkeypatch.setattr("heedful.jobs.examination.examine", killed)  # nothing is left to examine
    assert audit(run, CORPUS, run, documents=8, **WORDS).documents == 8
    assert not list(run.glob("work*"))


def test_a_file_of_the_user_among_the_findings_stays(tmp_path: Path, audited: Path) -> None:
    run = tmp_path / "run"
    shutil.copytree(audited, run)
    (run / "findings" / "notes.txt").write_text("mine")
    audit(run, CORPUS, run, documents=8, **WORDS)
    assert (run / "findings" / "notes.txt").read_text() == "mine"


def test_a_folder_that_another_process_makes_is_not_looked_at(tmp_path: Path) -> None:
    with locked(tmp_path / "run"), pytest.raises(InputError, match="in use by process"):
        audit("none+additive", CORPUS, tmp_path / "run", **WORDS)
    assert not (tmp_path / "run" / "run.json").exists()


def test_a_finished_audit_opens_from_a_disk_that_cannot_be_written(
    tmp_path: Path, audited: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = tmp_path / "moved"  # so that the advice names another folder
    shutil.copytree(audited, run)
    first = audit(audited, CORPUS, audited, **WORDS)
    before = {path: path.read_bytes() for path in run.rglob("*") if path.is_file()}

    def refused(*_: Any, **__: Any) -> None:
        raise OSError(errno.EROFS, os.strerror(errno.EROFS))

    for name in ("unlink", "touch", "replace", "rename"):
        monkeypatch.setattr(Path, name, refused)
    monkeypatch.setattr("heedful.runs.locks._acquired", refused)
    monkeypatch.setattr(Path, "mkdir", lambda *_, **__: None)
    again = audit(run, CORPUS, run, **WORDS)
    assert (again.verdict.word, again.findings) == (first.verdict.word, first.findings)
    assert before == {path: path.read_bytes() for path in run.rglob("*") if path.is_file()}


def test_a_device_without_numbers_is_refused() -> None:
    with pytest.raises(InputError, match="Device 'meta' cannot be used here"):
        device_of("meta")
