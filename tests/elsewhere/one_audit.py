"""`python -m tests.elsewhere.one_audit FOLDER WHAT`: prints an audit's findings as JSON."""

from __future__ import annotations

import json
import shutil
import sys
import tempfile
from pathlib import Path
from typing import Any

import tests.elsewhere.few_at_once  # isort: skip  # noqa: F401  before what reads
import heedful
from heedful.corpora.planted import planted
from heedful.jobs.settings import settings_of

SIZES = {"train": 1500, "dev": 60, "test": 120}
SETTINGS = {
    "model": {"embedding_dim": 24, "width": 24},
    "train": {"epochs": 3, "learning_rate": 0.01},
}
METHODS = ("random", "attention", "gradient", "leave-one-out", "integrated")


def main(folder: Path, what: str) -> dict[str, Any]:
    """The findings of an audit; models that are kept in `folder` are trained the first time."""
    corpus = planted(2, "short", 0, SIZES)
    settings = settings_of(SETTINGS)
    kept = folder / what.replace("+", "-")
    if what == "transformer" and not kept.exists():
        from tests.cli.test_audit_transformer import trained

        trained(kept, corpus)
    if what == "bilstm+additive" and not kept.exists():
        heedful.train(what, corpus, out=kept, settings=settings)
    with tempfile.TemporaryDirectory() as place:
        run: Any = Path(place) / "run"
        if what == "anew":
            result = heedful.audit(
                "bilstm+additive", corpus, run, settings=settings, methods=METHODS
            )
        elif what == "transformer":
            result = heedful.audit(kept, corpus, run, methods=METHODS)
        else:
            shutil.copytree(kept, run)
            result = heedful.audit(
                heedful.load(run), corpus, Path(place) / "audit", methods=METHODS
            )
    answer = result.to_json()
    return {name: answer[name] for name in ("verdict", "quality", "findings")}


if __name__ == "__main__":
    print(json.dumps(main(Path(sys.argv[1]), sys.argv[2])))
