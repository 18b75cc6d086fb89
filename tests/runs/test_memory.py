"""What a process may still take, and what is refused because it is more."""

import subprocess
import sys

import pytest

from heedful.errors import InputError
from heedful.runs import memory
from heedful.runs.memory import free_memory, refuse_larger


def test_what_is_free_is_refused_beyond_and_told() -> None:
    free = free_memory()
    assert free > 10**6
    refuse_larger(free // 2, "A model")
    with pytest.raises(
        InputError, match=r"A model needs [\d,.]+ GB of memory, and .* choose small"
    ):
        refuse_larger(100 * free, "A model")


def test_a_model_leaves_room_for_what_its_libraries_take(monkeypatch: pytest.MonkeyPatch) -> None:
    # 4 MB were left: of the threads that read the weights of a Transformer the first began, the
    # second did not, and the first ended the process, with code 127, while we said so.
    monkeypatch.setattr(memory, "free_memory", lambda: memory.BESIDE + 1000)
    refuse_larger(1000, "A model")
    with pytest.raises(
        InputError, match=r"A model needs 0\.07 GB of memory, and 0\.07 GB are free"
    ):
        refuse_larger(1001, "A model")


def test_a_limit_of_the_process_counts() -> None:
    code = (
        "from resource import RLIMIT_AS, setrlimit; setrlimit(RLIMIT_AS, (3 << 29, 3 << 29));"
        "from heedful.runs.memory import free_memory; print(free_memory())"
    )
    told = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert 0 < int(told.stdout) < 3 << 29
