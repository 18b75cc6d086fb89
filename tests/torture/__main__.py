"""`python -m tests.torture kills …`: the long tests, and the rows that they give to the docs."""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence

from tests.forked import CONTEXT, PRELOADED
from tests.torture import faults, inputs, kills, load, pairs

PARTS: dict[str, Callable[[Sequence[str]], int]] = {
    "kills": kills.main,
    "faults": faults.main,
    "pairs": pairs.main,
    "load": load.main,
    "inputs": inputs.main,
}
"""What can be run: each prints a table and gives the number of failures."""


def main() -> None:
    """Runs the named part with the words that follow it."""
    name, *words = sys.argv[1:] or [""]
    if name not in PARTS:
        sys.exit(f"usage: python -m tests.torture {'|'.join(PARTS)} [--help]")
    CONTEXT.set_forkserver_preload([*PRELOADED, "tests.torture.late_imports"])
    sys.exit(PARTS[name](words) > 0)


if __name__ == "__main__":
    main()
