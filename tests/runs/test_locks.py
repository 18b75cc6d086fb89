import errno
import os
import signal
import subprocess
import sys

import pytest

from heedful.errors import InputError
from heedful.runs import locked

HOLD = """
import sys
from heedful.runs import locked
with locked(sys.argv[1]):
    print("held", flush=True)
    sys.stdin.read()
"""


@pytest.fixture
def holder(tmp_path):
    process = subprocess.Popen(
        [sys.executable, "-c", HOLD, str(tmp_path / "run")],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    assert process.stdout.readline() == "held\n"
    yield process
    process.kill()
    process.communicate()


def test_the_second_process_is_told_who_holds_the_folder(tmp_path, holder):
    said = rf"in use by process {holder.pid} on .* since 20.*; wait for it or choose another --out"
    with pytest.raises(InputError, match=said), locked(tmp_path / "run"):
        pytest.fail("two processes hold one folder")


def test_a_killed_process_frees_its_folder(tmp_path, holder):
    holder.send_signal(signal.SIGKILL)
    holder.wait()
    assert (tmp_path / "run" / ".lock").exists()
    with locked(tmp_path / "run"):
        assert str(os.getpid()) in (tmp_path / "run" / ".lock").read_text()
    assert list((tmp_path / "run").iterdir()) == []


def test_a_lock_is_free_after_an_end_or_an_error(tmp_path, holder):
    holder.communicate("")
    for _ in range(2):
        with pytest.raises(ZeroDivisionError), locked(tmp_path / "run"):
            raise ZeroDivisionError


def test_one_process_cannot_hold_a_folder_twice(tmp_path):
    with locked(tmp_path), pytest.raises(InputError, match="in use"), locked(tmp_path):
        pytest.fail("held twice")
    with locked(tmp_path / "a"), locked(tmp_path / "b"):
        pass


def test_a_folder_that_cannot_be_made_is_a_sentence(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(InputError, match="Cannot write"), locked(tmp_path / "file" / "run"):
        pytest.fail("locked a file")


@pytest.mark.parametrize("kind", ["link", "link to nothing", "hard link", "file", "folder", "pipe"])
def test_what_is_not_our_lock_is_refused_and_stays(tmp_path, kind):
    mine, lock = tmp_path / "mine", tmp_path / "run" / ".lock"
    mine.write_text("mine")
    lock.parent.mkdir()
    if kind == "link":
        lock.symlink_to(mine)
    elif kind == "link to nothing":
        lock.symlink_to(tmp_path / "nothing")
    elif kind == "hard link":
        lock.hardlink_to(mine)
    elif kind == "file":
        lock.write_text("mine")
    elif kind == "folder":
        lock.mkdir()
    else:
        os.mkfifo(lock)
    with pytest.raises(InputError, match=r"\.lock is a link or|Cannot write"), locked(lock.parent):
        pytest.fail("locked")
    assert mine.read_text() == "mine"
    assert lock.is_symlink() or lock.exists()
    assert kind != "file" or lock.read_text() == "mine"
    assert not (tmp_path / "nothing").exists()


def test_a_disk_that_cannot_be_written_needs_no_lock(tmp_path, monkeypatch):
    (tmp_path / "result").write_text("done")

    def refuse(*_, **__):
        raise OSError(errno.EROFS, os.strerror(errno.EROFS))

    with monkeypatch.context() as patch:
        patch.setattr(os, "open", refuse)
        with locked(tmp_path):
            assert (tmp_path / "result").exists()
    monkeypatch.setattr("pathlib.Path.mkdir", refuse)
    with pytest.raises(InputError, match=r"Cannot write .*Read-only"), locked(tmp_path / "new"):
        pytest.fail("made")


def test_a_full_disk_still_locks(tmp_path, monkeypatch):
    def full(*_):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(os, "pwrite", full)
    with locked(tmp_path), pytest.raises(InputError, match="in use by"), locked(tmp_path):
        pytest.fail("held twice")


@pytest.mark.slow
def test_of_many_processes_one_at_a_time_gets_in(tmp_path):
    # Each appends one byte on entry and takes it away on exit; more than one byte is a collision.
    contend = """
import sys, time
from pathlib import Path
from heedful.errors import InputError
from heedful.runs import locked
folder, inside = Path(sys.argv[1]), Path(sys.argv[1] + ".inside")
entered = 0
end = time.monotonic() + 20
while entered < 30 and time.monotonic() < end:
    try:
        with locked(folder):
            inside.open("x").close()
            entered += 1
            inside.unlink()
    except InputError:
        pass
print(entered)
"""
    command = [sys.executable, "-c", contend, str(tmp_path / "run")]
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}
    processes = [subprocess.Popen(command, **pipes) for _ in range(3)]
    answers = [process.communicate() for process in processes]
    assert answers == [("30\n", "")] * 3
