"""`python -m tests.elsewhere.mutations`: errors put into the core one at a time.

A sign turned round, an index off by one, a mask forgotten: each is written into a copy of the
source, and the quick tests of the rooms that compute run on it until one fails. An error that none
of them notices is a hole in the suite, and the exit code is 1.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import NamedTuple

from tests.elsewhere.processors import COMPUTING, KEEP_BYTE_CODE

ROOT = Path(__file__).parents[2]


class Mutation(NamedTuple):
    """One wrong line: the file, what it says, and what it is made to say."""

    file: str
    right: str
    wrong: str


MUTATIONS = (
    Mutation("models/verbs.py", "order.flip(-1) + first_row", "order + first_row"),
    Mutation("models/verbs.py", "return before + after", "return before - after"),
    Mutation("models/verbs.py", "x[:, 1:], zero], 1))", "x[:, :-1], zero], 1))"),
    Mutation("models/verbs.py", "filled = (-filled).masked", "filled = filled.masked"),
    Mutation("models/edits.py", "Scale((~erased).double())", "Scale(erased.double())"),
    Mutation("models/edits.py", "weights * reading.attention[:, None]", "weights"),
    Mutation("models/tracing.py", "self.query @ self.key", "self.key @ self.query"),
    Mutation("importance/methods.py", "* (said - expected)", "* (said + expected)"),
    Mutation("importance/methods.py", "(before - after).masked", "(after - before).masked"),
    Mutation("audits/substitution.py", "/ (units - 1).clamp_min(1)", "/ units"),
    Mutation("audits/exact_adversary.py", "- _overlap(torch.ones", "+ _overlap(torch.ones"),
    Mutation("statistics/divergence.py", "(divergence / 2)", "divergence"),
    Mutation("statistics/divergence.py", "masked_fill(~mask, 0)).sum(-1)", "clone()).sum(-1)"),
    Mutation("statistics/intervals.py", "scale * t[::-1])", "scale * t)"),
    Mutation("training/objectives.py", "penalties.tying * apart", "-penalties.tying * apart"),
    Mutation("models/huggingface/calls.py", "softmax(-1", "softmax(-2"),
    Mutation("models/huggingface/reweighing.py", "= visible & (unit", "= visible | (unit"),
    Mutation("models/huggingface/label_choice.py", "list(label)].sum(-1)", "list(label)].mean(-1)"),
    Mutation("audits/exchanges.py", "comes[text] >= MOST_OF", "comes[text] < MOST_OF"),
    Mutation("audits/exchanges.py", "others.comes & ~is_mute", "others.comes & is_mute"),
    Mutation("audits/hybrids.py", "zero(decision != label)", "zero(decision == label)"),
    Mutation("audits/verdict.py", '.side(at["yes"]) == "above"', '.side(at["yes"]) != "below"'),
)  # fmt: skip


def main() -> None:
    """A row for each error; ends with 1 if one was not caught."""
    jobs = sys.argv[1] if len(sys.argv) > 1 else "2"
    print("| file | instead of | stands | caught by | seconds |\n|---|---|---|---|---|", flush=True)
    missed = [mutation for mutation in MUTATIONS if not _is_caught(mutation, jobs)]
    sys.exit(len(missed) > 0)


def _is_caught(mutation: Mutation, jobs: str) -> bool:
    """Runs the quick tests on a source with one wrong line and prints the row."""
    with tempfile.TemporaryDirectory() as folder:
        source = Path(folder) / "src"
        shutil.copytree(ROOT / "src", source)
        file = source / "heedful" / mutation.file
        text = file.read_text()
        file.write_text(text.replace(mutation.right, mutation.wrong))
        started = time.perf_counter()
        done = subprocess.run(
            [sys.executable, "-m", "pytest", "-q", "-x", "-n", jobs, "-p", "no:cacheprovider",
             *COMPUTING],
            cwd=ROOT, env=os.environ | KEEP_BYTE_CODE | {"PYTHONPATH": str(source)},
            capture_output=True, text=True,
        )  # fmt: skip
    by = re.search(r"^(?:FAILED|ERROR) (\S+)", done.stdout, re.MULTILINE)
    who = by.group(1).split("[")[0].removeprefix("tests/") if by else "**nobody**"
    right, wrong = (f"`{line}`" for line in mutation[1:])
    seconds = time.perf_counter() - started
    print(f"| {mutation.file} | {right} | {wrong} | {who} | {seconds:.0f} |", flush=True)
    return by is not None


if __name__ == "__main__":
    main()
