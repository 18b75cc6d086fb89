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
