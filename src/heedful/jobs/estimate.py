"""What an audit will take, measured on a few of its documents before it starts."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any

import numpy as np
import pandas as pd
import torch

from heedful.audits import AUDITS
from heedful.audits.effort import NAMED_FIRST
from heedful.audits.examination import examine
from heedful.audits.verdict import AUDIT as EXCHANGE
from heedful.audits.verdict import HEADS
from heedful.corpora.samples import Rows, drawn, subset
from heedful.jobs.examination import SHOWN, Examination, importance_rows
from heedful.runs.memory import peak_memory
from heedful.runs.progress import duration

TRIED, TRIED_WORD = 12, 32
"""Documents that are looked at, and texts whose words are exchanged, to see how long it takes."""
NAMED = 5
"""Methods that a ranking names, about."""
TOLD = 3.0
"""Times as long as telling what the few say: what more documents say, and the page, about."""


@dataclass(frozen=True)
class Estimated:
    """Seconds and bytes that an audit will take."""

    word: float
    """Until the word is there."""
    least: float
    """Until everything is, if the first look settles it."""
    most: float
    """The same if it takes all the looks there are."""
    looks: tuple[int, ...]
    """Documents at the first and at the last look."""
    memory: int
    device: str

    def lines(self) -> list[str]:
        """The same for people."""
        first, last = self.looks
        all_of_it = f"Everything after about {duration(self.least)}"
        if first != last:
            all_of_it += f" where {first:,} documents settle it, {duration(self.most)} where it "
            all_of_it += f"takes {last:,}"
        return [
            f"The word after about {duration(self.word)}.",
            f"{all_of_it}; {last:,} documents at most.",
            f"Memory: about {self.memory / 1e9:,.1f} GB on the {self.device}.",
        ]

    def to_json(self) -> dict[str, Any]:
        """The same as plain data."""
        return asdict(self)


def estimated(examined: Examination) -> Estimated:
    """What the examination will take: a few documents are put to all of it, and reckoned up.

    Time goes with documents and with their length; reading a text again for each of its words, with
    the square of it. Drawn by key as the audit's own are, a few stand for the others.
    """
    applicable = examined.applicable()
    single = [name for name in applicable if not AUDITS[name].whole and not AUDITS[name].of_named]
    rows = drawn(examined.documents.names, examined.chosen, TRIED, examined.seed)
    _timed(examined, lambda: _examine(examined, rows[:1], single, examined.methods))  # warms up
    seen: dict[str, pd.DataFrame] = {}
    each = _timed(
        examined, lambda: seen.update(_examine(examined, rows, single, examined.methods))
    ) / len(rows)
    told = _timed(examined, lambda: [AUDITS[name].summarise(seen[name]) for name in single])
    seconds = {"word": 0.0}
    if EXCHANGE in applicable:
        some = drawn(examined.documents.names, examined.chosen, TRIED_WORD, examined.seed)
        whole = AUDITS[EXCHANGE].whole
        assert whole is not None
        took = _timed(
            examined,
            lambda: whole(
                examined.model, subset(examined.documents, some), examined.seed, examined.device,
                examined.portion,
            ),
        )  # fmt: skip
        seconds["word"] = took / len(some) * len(examined.looked_at_by(EXCHANGE))
        if HEADS in applicable:
            parts = AUDITS[HEADS].parts
            assert parts is not None
            heads = parts(
                examined.model, subset(examined.documents, some), examined.device, examined.portion
            )
            seconds["heads"] = heads * took / len(some) * len(examined.looked_at_by(HEADS))
    later = [name for name in applicable if AUDITS[name].of_named]
    redrawn = 0.0
    if later:
        methods = examined.methods
        if examined.effort.level != "exhaustive":
            methods = tuple(dict.fromkeys((*methods[:2], *_dearest(methods))))[:NAMED]
        few = rows[:4]
        redrawn = _timed(examined, lambda: _examine(examined, few, later, methods)) / len(few)
    looks = examined.effort.looks(len(examined.chosen))
    named = AUDITS[later[0]].most if later else 0
    ends = []
    for count in (looks[0], looks[-1]):
        asked = count if examined.effort.level == "exhaustive" else NAMED_FIRST
        shown = _shown(examined, rows[:4]) * min(count, SHOWN)
        ends.append(each * count + redrawn * min(asked, named) + shown)
    fixed = TOLD * told + sum(seconds.values())
    return Estimated(
        seconds["word"],
        fixed + ends[0],
        fixed + ends[1],
        (looks[0], looks[-1]),
        peak_memory(examined.device.type),
        "card" if examined.device.type == "cuda" else "processor",
    )


def _examine(
    examined: Examination, rows: Rows, audits: Sequence[str], methods: Sequence[str]
) -> dict[str, pd.DataFrame]:
    functions = {name: AUDITS[name].rows for name in audits}
    return examine(
        examined.model,
        subset(examined.documents, rows),
        functions | {"importance": importance_rows},
        methods,
        seed=examined.seed,
        device=examined.device,
        at_once=examined.portion,
    )


def _dearest(methods: Sequence[str]) -> list[str]:
    """Those that take the most passes, of those that are likely to be named."""
    return [name for name in ("occlusion", "integrated", "leave-one-out") if name in methods]


def _shown(examined: Examination, rows: Rows) -> float:
    """Seconds for each document that is shown on the page."""
    some = replace(examined, chosen=np.sort(rows))
    table = examine(
        some.model, subset(some.documents, some.chosen), {"importance": importance_rows},
        some.methods[:2], seed=some.seed, device=some.device,
    )  # fmt: skip
    for name in some.methods[2:]:
        table["importance"][name] = table["importance"][some.methods[0]]
    return _timed(some, lambda: some.instances(table)) / len(rows)


def _timed(examined: Examination, ask: Callable[[], object]) -> float:
    """Seconds that it takes, the card's work included."""
    started = time.perf_counter()
    ask()
    if examined.device.type == "cuda":
        torch.cuda.synchronize()
    return time.perf_counter() - started
