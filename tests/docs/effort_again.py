"""How many documents an audit looked at, and why no more, found again from its rows."""

from __future__ import annotations

import re
from collections.abc import Callable

import numpy as np

from tests.docs.intervals_again import Told, among, average, hashed
from tests.docs.sentences import Expected, Known, Run

Match = re.Match[str]
LOOKED = (
    r"# of # documents, drawn by key, were looked at: (what it is for is settled|no more are "
    r"asked for)\."
)
READ = ("concentration", "confidence")
"""What takes one reading of a document."""
OWN_NUMBER = {"exchange": 200, "single-heads": 40}
"""What sets texts against each other asks for so many at every effort."""


def looks(effort: str, documents: int, first: int = 50) -> list[int]:
    """After how many documents there is a look: doublings, none that adds less than half."""
    if effort == "exhaustive":
        return [documents]
    if effort == "quick":
        return [min(first, documents)]
    most = min(documents, 400)
    found = [first * 2**times for times in range(4)]
    return [*(count for count in found if 1.5 * count < most), most]


def _is_known(told: Told, border: float = 0, width: float = 0.1) -> bool:
    return (
        bool(np.isnan(told.low))
        or told.side(border) != "straddles"
        or (told.high - told.low <= width)
    )


def _explained(run: Run, seen: set[str], count: int) -> bool:
    """Whether every explanation's place is known: beside a random order, and attention's."""
    some = Run(run.folder, frozenset(seen))
    with among(count):
        worth = some.deleted["faithfulness"].mean()
        told = [
            some.beyond(method, kind)
            for method in worth.index.drop("random")
            for kind in ("faithfulness", "comprehensiveness", "sufficiency")
        ]
        told += [some.beyond("attention", than=str(worth.drop("attention").idxmax()))]
    return all(map(_is_known, told))


def _kept(run: Run, seen: set[str], count: int) -> bool:
    """Whether it is known of each order if it is kept where all weights are drawn anew."""
    rows = run.rows("randomisation")
    rows = rows[(rows["step"] == rows["step"].max()) & rows["instance"].isin(seen)]
    table = rows.pivot(index="instance", columns="ranking", values="tau").astype(float)
    with among(count):
        return all(_is_known(average(table[name], -1), 0.5, 0.2) for name in table)


def _stopped(
    run: Run, order: list[str], at: list[int], is_settled: Callable[[Run, set[str], int], bool]
) -> tuple[int, str]:
    """The first look that settles it, or the last."""
    for count in at[:-1]:
        if is_settled(run, set(order[:count]), len(at)):
            return count, "what it is for is settled"
    return at[-1], "there are no more" if at[-1] == len(order) else "no more are asked for"


def stops(run: Run) -> dict[str, tuple[int, int, str]]:
    """Documents, possible looks and the reason of every audit."""
    names = sorted(set(run.rows("concentration")["instance"]))
    assert len(names) == run.audited, "few enough for all to be read"
    order = [names[place] for place in np.argsort(hashed(names, ("audited",)).astype(np.int64))]
    effort = run.record["audited"]["effort"]
    found = {}
    for name in run.record["audited"]["looked at"]:
        at, rule = looks(effort, len(order)), _explained
        if name == "randomisation":
            at, rule = looks(effort, min(50, len(order)), 16), _kept
        if name in READ:
            at = [len(order)]
        if name in OWN_NUMBER:
            at = [min(OWN_NUMBER[name], len(order))]
        count, why = _stopped(run, order, at, rule)
        found[name] = (count, len(at), why)
        seen = set(run.rows(name)["instance"]) if len(run.rows(name)) else set(order[:count])
        assert seen == set(order[:count]), f"{name} looked at other documents than the first drawn"
    return found


def check_stops(run: Run, page: list[str]) -> None:
    """The record tells what was found again, and the page tells of each that saw less than all."""
    found = stops(run)
    told = {
        name: (stop["documents"], stop["looks"], stop["why"])
        for name, stop in run.record["audited"]["looked at"].items()
    }
    assert told == found
    less = sorted(
        f"{count:,} of {run.audited:,} documents, drawn by key, were looked at: {why}."
        for count, _, why in found.values()
        if why != "there are no more"
    )
    assert sorted(one for one in page if "were looked at: " in one) == less


def _looked(run: Run, match: Match) -> Expected:
    counts = {count for count, _, why in stops(run).values() if why == match[1]}
    return [frozenset(counts), run.audited]


def _explained_shown(run: Run, match: Match) -> Expected:
    return [run.documents, run.audited]


EFFORT: Known = [
    (LOOKED, _looked),
    (r"All # that were explained, of # documents\.", _explained_shown),
]
