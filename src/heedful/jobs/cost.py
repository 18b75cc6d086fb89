"""What an audit cost, in passes of its documents through the model."""

from __future__ import annotations

from typing import Any

from heedful.audits.examination import joined
from heedful.corpora.samples import subset
from heedful.jobs.examination import Examination, Looked
from heedful.models.verbs import specials_of
from heedful.runs.meter import COLUMNS

TOLD = 3
"""Parts of the cost that are named in the sentence."""


def cost_of(looked: Looked, examined: Examination) -> dict[str, Any]:
    """Passes forward and backward, as often as all documents were read once: in all and by part.

    `parts` are those of each audit and method, the dearest first, and `page`: what is read again
    of the texts that are shown. `documents` counts what one pass is. What is read counts: special
    tokens and a prompt, and in each pass its padding.
    """
    documents = subset(examined.documents, examined.chosen)
    one = int(documents.lengths.sum()) + len(documents) * specials_of(examined.model)
    table = joined([part for part in looked.cost if len(part)])
    if "forward" not in table:
        table = table.assign(**{name: [] for name in COLUMNS})
    summed = table.groupby(["audit", "method"], as_index=False)[["forward", "backward"]].sum()
    summed[["forward", "backward"]] /= max(one, 1)
    summed["both"] = summed["forward"] + summed["backward"]
    parts = [
        {"of": _named(str(row["audit"]), str(row["method"])), **{
            way: round(float(row[way]), 3) for way in ("forward", "backward")
        }}
        for row in summed.sort_values("both", ascending=False).to_dict("records")
    ]  # fmt: skip
    forward, backward = (round(float(summed[way].sum()), 3) for way in ("forward", "backward"))
    told = {
        "documents": len(documents), "forward": forward, "backward": backward, "parts": parts,
    }  # fmt: skip
    return told | {"sentence": _sentence(told)}


def _named(audit: str, method: str) -> str:
    """What the model was read for; reading and explaining the documents belongs to no audit."""
    return ": ".join(part for part in (audit, method) if part) or "reading"


def _sentence(told: dict[str, Any]) -> str:
    first = [
        f"{part['of']} {part['forward'] + part['backward']:,.1f} times"
        for part in told["parts"][:TOLD]
    ]
    said = (
        f"This audit cost as much as reading its {told['documents']:,} documents "
        f"{told['forward']:,.1f} times forward and {told['backward']:,.1f} times backward"
    )
    return f"{said} (most of it: {', '.join(first)})." if first else f"{said}."
