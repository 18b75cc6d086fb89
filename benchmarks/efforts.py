"""Whether an audit at effort normal says what an exhaustive one says, model by model.

`python -m benchmarks.efforts OUT [RECIPE | RECIPE@@CORPUS@@CONFIG@@VECTORS]…` trains each, audits
it at both efforts on the same documents and writes OUT/efforts.csv: the words, the orders of the
rankings and every pair of explanations that changes places, with what all documents say of it.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from itertools import combinations
from pathlib import Path
from typing import Any

import pandas as pd
import torch

import heedful
from heedful.audits.ranking import FAITHFULNESS
from heedful.jobs.settings import read_settings, settings_of
from heedful.runs import RunFolder, read_json
from heedful.runs.atomic import write_csv
from heedful.statistics.estimates import Estimate
from heedful.statistics.intervals import paired

PLANTED = (
    "none+additive", "none+dot", "affine+additive", "conv+additive", "bigru+dot",
    "bigru+additive", "bilstm+additive", "bilstm+additive+residual", "bilstm+additive+tying:10",
    "bilstm+uniform", "han:bigru+additive",
)  # fmt: skip
"""Recipes that are trained on planted reviews in seconds."""
DOCUMENTS = 400


def compared(
    recipe: str, corpus: Any, settings: Any, vectors: str | None, out: Path
) -> dict[str, Any]:
    """What the two audits of one model say, and where they differ."""
    heedful.train(recipe, corpus, out=out / "trained", settings=settings, vectors=vectors)
    found: dict[str, Path] = {}
    for effort in ("normal", "exhaustive"):
        made = heedful.audit(
            out / "trained", corpus, out / effort, documents=DOCUMENTS, effort=effort
        )
        found[effort] = made.folder
    told = {effort: read_json(run / "findings" / "verdict.json") for effort, run in found.items()}
    places = {effort: _places(one) for effort, one in told.items()}
    worth = _worth(found["exhaustive"])
    few, every = (list(places[effort]) for effort in ("normal", "exhaustive"))
    swapped = [
        (a, b, _apart(worth, a, b))
        for a, b in combinations(every, 2)
        if a in few and b in few and few.index(a) > few.index(b)
    ]
    clear = [(a, b, apart) for a, b, apart in swapped if apart.side(0) == "above"]
    stood = [
        f"{method}: {places['normal'][method]} | {standing}"
        for method, standing in places["exhaustive"].items()
        if places["normal"].get(method) != standing
    ]
    looked = RunFolder.open(found["normal"]).record["audited"]["looked at"]["input-erasure"]
    return {
        "model": recipe,
        "documents at normal": looked["documents"],
        "documents": looked["of"],
        "word at normal": told["normal"]["word"],
        "word": told["exhaustive"]["word"],
        "order at normal": " ".join(few),
        "order": " ".join(every),
        "pairs": len(every) * (len(every) - 1) // 2,
        "pairs swapped": len(swapped),
        "of which told apart by all documents": len(clear),
        "largest swap": max((apart.value for *_, apart in swapped), default=0.0),
        "swapped and told apart": "; ".join(f"{a} > {b} by {e}" for a, b, e in clear),
        "advised at normal": (told["normal"]["ranking"] or {}).get("recommended", ""),
        "advised": (told["exhaustive"]["ranking"] or {}).get("recommended", ""),
        "standing, normal | exhaustive": "; ".join(stood),
    }


def _places(verdict: dict[str, Any]) -> dict[str, str]:
    """Explanations with their standing, best first."""
    ranking = verdict["ranking"]
    return {place["method"]: place["standing"] for place in ranking["places"]} if ranking else {}


def _worth(run: Path) -> pd.DataFrame:
    """Faithfulness of each method on each document."""
    rows = pd.read_parquet(run / "findings" / "input-erasure.parquet")
    rows = rows[rows["mode"] == "removed"]
    rows[FAITHFULNESS] = rows["comprehensiveness"] - rows["sufficiency"]
    return rows.pivot_table(FAITHFULNESS, "instance", "method")


def _apart(worth: pd.DataFrame, one: str, other: str) -> Estimate:
    """By how much one is more faithful than the other, paired by document."""
    names = [str(name) for name in worth.index]
    return paired(worth[one].to_numpy(), worth[other].to_numpy(), names)


def main(out: Path, asked: Sequence[str]) -> None:
    """One row after the other, written as it is known."""
    torch.set_num_threads(1)
    rows = []
    for number, one in enumerate(asked or PLANTED):
        recipe, corpus, config, vectors = (*one.split("@@"), "", "", "")[:4]
        if corpus:
            data = heedful.load_corpus(corpus)
        else:
            sizes = {"train": 1600, "dev": 100, "test": DOCUMENTS}
            data = heedful.load_corpus("planted:2", sizes=sizes)
        usual = settings_of({} if corpus else {"train": {"epochs": 4}})
        settings = read_settings(Path(config)) if config else usual
        row = compared(recipe, data, settings, vectors or None, out / f"{number:02d}")
        rows.append({"corpus": corpus or "planted", **row})
        write_csv(out / "efforts.csv", pd.DataFrame(rows), "%.4g")
        said = ("model", "word at normal", "word", "pairs swapped", "swapped and told apart")
        print(*(f"{name}: {row[name]}" for name in said), sep=", ", flush=True)


if __name__ == "__main__":
    main(Path(sys.argv[1]), sys.argv[2:])
