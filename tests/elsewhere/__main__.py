"""`python -m tests.elsewhere machines|libraries|numbers`: the tables of other processors."""

from __future__ import annotations

import argparse
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from xml.etree import ElementTree

from tests.elsewhere.bits import ROOT, bits_on, changed
from tests.elsewhere.moved import table_of_moves
from tests.elsewhere.processors import COMPUTING, HERE, SINGLE, WHOLE, Processor, environment_of

BY_FILE = ("--dist", "loadfile", "--no-loadscope-reorder")
"""As the Makefile runs tests."""
ALL = ("--doctest-modules", "src", "tests")
TAIL = 1500
"""Characters of a failure that are told."""


def main() -> None:
    """Whole machines run the whole suite, single libraries what computes; exit code 1 if red."""
    parser = argparse.ArgumentParser(prog="make test-elsewhere")
    parser.add_argument("what", choices=["machines", "libraries", "numbers"])
    parser.add_argument("--jobs", default="2", help="tests or audits side by side")
    parser.add_argument("--only", default="", help="one processor, by its name")
    given = parser.parse_args()
    if given.what == "numbers":
        print(table_of_moves([*WHOLE, *SINGLE], int(given.jobs)))
        return
    processors, which = (WHOLE, ALL) if given.what == "machines" else (SINGLE, COMPUTING)
    reds, here = 0, bits_on(HERE)
    print("| processor | computes otherwise | tests | passed | failed | seconds |")
    print("|---" * 6 + "|", flush=True)
    for processor in processors:
        if given.only in ("", processor.name):
            otherwise = changed(here, bits_on(processor))
            reds += suite(processor, otherwise, which, given.jobs)
    sys.exit(reds > 0)


def suite(processor: Processor, otherwise: str, which: Sequence[str], jobs: str) -> int:
    """Runs tests under a processor's settings and prints one row; gives the number that failed.

    What a failing test said is told at the end of the row, on stderr: it may not fail again.
    """
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "tests.xml"
        command = [sys.executable, "-m", "pytest", "-q", "-n", jobs, *BY_FILE, *which]
        started = time.perf_counter()
        done = subprocess.run(
            [*command, f"--junitxml={file}"],
            cwd=ROOT,
            env=environment_of(processor),
            capture_output=True,
            text=True,
        )
        seconds = time.perf_counter() - started
        if not file.is_file():
            sys.exit(f"pytest ended with {done.returncode} and no results:\n{done.stdout[-2000:]}")
        tests = ElementTree.parse(file).getroot().findall(".//testcase")
    red = [t for t in tests if t.find("failure") is not None or t.find("error") is not None]
    skipped = sum(t.find("skipped") is not None for t in tests)
    part = "all" if which == ALL else "what computes"
    passed = len(tests) - len(red) - skipped
    cells = (processor.name, otherwise, part, passed, len(red), f"{seconds:.0f}")
    print("|", " | ".join(map(str, cells)), "|", flush=True)
    for test in red:
        said = next(tag.text or "" for tag in test if tag.tag in ("failure", "error"))
        print(f"  {test.get('classname')}::{test.get('name')}\n{said[-TAIL:]}", file=sys.stderr)
    return len(red)


if __name__ == "__main__":
    main()
