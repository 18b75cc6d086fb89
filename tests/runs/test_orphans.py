"""Workers end when the process that started them is killed."""

import subprocess
import sys

import pytest

POOL = """
import multiprocessing, time
from concurrent.futures import ProcessPoolExecutor
from heedful.runs.orphans import end_with_pool

if __name__ == "__main__":
    spawn = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(2, mp_context=spawn, initializer=end_with_pool) as pool:
        pool.submit(print, "works", flush=True)
        pool.submit(time.sleep, 600).result()
"""
PIPE = """
import subprocess, sys
code = "import time; from heedful.runs.orphans import end_with_parent as end; end();"
code += "print('works', flush=True); time.sleep(600)"
subprocess.Popen([sys.executable, "-c", code], stdin=subprocess.PIPE).wait()
"""

IMPORTING = """
import subprocess, sys
words = [sys.executable, "-m", "heedful.runs.orphans", "slow_module", "told"]
subprocess.Popen(words, stdin=subprocess.PIPE).wait()
"""
"""A worker that imports for a long time before anything of its own runs."""
SLOW_MODULE = """
import sys, time
print("works" if sys.argv[1:] == ["told"] else sys.argv, flush=True)
time.sleep(600)
"""


@pytest.mark.slow
@pytest.mark.parametrize("parent", [POOL, PIPE, IMPORTING], ids=["pool", "pipe", "importing"])
def test_a_worker_ends_with_a_killed_parent(tmp_path, parent):
    (tmp_path / "slow_module.py").write_text(SLOW_MODULE)
    (tmp_path / "parent.py").write_text(parent)
    command = [sys.executable, str(tmp_path / "parent.py")]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True, cwd=tmp_path)
    assert process.stdout is not None
    assert process.stdout.readline() == "works\n"
    process.kill()
    # The workers have the same output: it ends when all have ended.
    assert process.communicate(timeout=30)[0] == ""
