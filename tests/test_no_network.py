"""The commands work where there is no network: not even the loopback of this machine is up."""

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROWS = "text,label\n" + "".join(
    f"the {'good' if n % 2 else 'bad'} food of day {n},{'pos' if n % 2 else 'neg'}\n"
    for n in range(60)
)
SETTINGS = "[model]\nembedding_dim = 8\nwidth = 8\n[train]\nepochs = 1\n"
COMMANDS = """
import socket, sys
try:
    socket.create_connection(("127.0.0.1", 9), timeout=1)
except OSError as error:
    assert error.errno == 101, error  # network is unreachable: not refused by a host
else:
    raise SystemExit("there is a network here")
from heedful.cli import app
given = ["--data", "reviews.csv", "--config", "small.toml"]
for words in (
    ["train", "none+additive", *given, "--out", "run"],
    ["audit", "run", "--documents", "6"],
    ["report", "run"],
    ["explain", "good food", "--model", "run"],
):
    app(words, standalone_mode=False)
    print("done", words[0])
"""


@pytest.mark.slow
def test_train_audit_report_and_explain_work_without_a_network(tmp_path: Path) -> None:
    alone = ["unshare", "--map-root-user", "--net"]
    may = shutil.which("unshare") and subprocess.run([*alone, "true"], capture_output=True)
    if not may or may.returncode:
        pytest.skip("a namespace without a network cannot be made here (unshare)")
    (tmp_path / "reviews.csv").write_text(ROWS)
    (tmp_path / "small.toml").write_text(SETTINGS)
    told = subprocess.run(
        [*alone, sys.executable, "-c", COMMANDS], cwd=tmp_path, capture_output=True, text=True
    )
    assert told.returncode == 0, told.stderr[-2_000:]
    done = [line.split()[1] for line in told.stdout.splitlines() if line.startswith("done ")]
    assert done == ["train", "audit", "report", "explain"]
