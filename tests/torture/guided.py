"""`python -m tests.torture.guided READER SECONDS`: inputs that are led by the lines they reach.

Needs `pip install atheris`, which no other part does; where it is not to be had, say so and end.
An input that is not survived is written to `crash-…` in the working folder.
"""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path


def main() -> None:
    """Lets the coverage-guided fuzzer look for inputs that one reader does not survive."""
    name, seconds = sys.argv[1], sys.argv[2]
    try:
        import atheris
    except ImportError:
        sys.exit("atheris is not installed here: pip install atheris.")
    with atheris.instrument_imports(include=["heedful"]):
        from tests.torture.inputs import ALL, attempt
    with tempfile.TemporaryDirectory() as folder:
        place, seeds = (Path(folder, part) for part in ("place", "seeds"))
        place.mkdir()
        seeds.mkdir()
        reader = ALL[name].make(place)
        for number, seed in enumerate(reader.seeds):
            (seeds / str(number)).write_bytes(seed)

        def one(data: bytes) -> None:
            attempt(reader, data)

        limits = ["-timeout=5", "-rss_limit_mb=3000", f"-max_total_time={seconds}"]
        atheris.Setup([sys.argv[0], str(seeds), *limits, "-print_final_stats=1"], one)
        atheris.Fuzz()


if __name__ == "__main__":
    main()
