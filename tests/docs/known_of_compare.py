"""What the numbers of `heedful compare` must be, from the rows of the runs."""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import pandas as pd

from tests.docs.exchange_again import shares
from tests.docs.intervals_again import Told, gap
from tests.docs.known_sentences import P, borders
from tests.docs.sentences import NUMBER, Expected, Known, Run, mistold, numbers_of

Match = re.Match[str]


@dataclass(frozen=True)
class Compared:
    """The runs that were compared, by name."""

    runs: dict[str, Run]
    text: str

    @cached_property
    def blocks(self) -> dict[str, list[str]]:
        """What is printed under each heading."""
        found: dict[str, list[str]] = {}
        heading = ""
        for line in self.text.splitlines():
            if line.endswith(":") and not line.startswith(" "):
                heading = line
            elif line.startswith("  "):
                found.setdefault(heading, []).append(line)
        return found


TESTS = ("The decision goes with the words shown:",
         "Most of the attention lies on words that matter:",
         "Their effect passes through attention:")  # fmt: skip


def check_tests(compared: Compared) -> None:
    """Each test's share with its interval and n, run by run, from the rows of its exchange."""
    for place, heading in enumerate(TESTS):
        for line in compared.blocks[heading]:
            name, told = line.split(maxsplit=1)
            found = shares(compared.runs[name].rows("exchange"))[1 + place]
            if np.isnan(found.value):
                assert told.startswith("–:")
            else:
                assert mistold(told, [found.times(), found.n]) == [], line
                at = borders()
                ends = (found.low, found.value, found.high)
                sides = {"supports" if at["yes"] <= end else "contradicts" if end <= at["no"]
                         else "mixed" for end in ends}  # fmt: skip
                if {"supports", "contradicts"} <= sides:
                    sides.add("mixed")
                assert sorted(re.split(", | or ", told.rpartition(": ")[2])) == sorted(sides), line


def _named(compared: Compared, match: Match) -> Expected:
    for name, run in compared.runs.items():
        recipe = run.record["configuration"]["recipe"]
        told = f"{name} {run.verdict['word']} {recipe} on reviews.csv"
        if NUMBER.sub("#", told) == match.string:
            return numbers_of(told)
    return numbers_of(next(one for one in compared.runs if match.string.startswith(one)))


def _right(compared: Compared, match: Match) -> Expected:
    run = compared.runs[match[1]]
    return [run.right().times(), run.right().n]


def _gain(compared: Compared, match: Match) -> Expected:
    tables = [run.labelled().set_index("instance") for run in compared.runs.values()]
    right = pd.concat([t["label"] == t["decision"] for t in tables], axis=1, join="inner")
    right = right.sort_index().astype(float)
    gain = gap(right.iloc[:, 1], right.iloc[:, 0], 1)
    sign = 1 if gain.value >= 0 else -1
    ends = sorted((sign * gain.low, sign * gain.high))
    told = Told(abs(gain.value), ends[0], ends[1], gain.n)
    if gain.value == 0:
        assert "as often as" in match[0]
        has_ends = gain.low == gain.low
        return [len(right), *([100 * ends[0], 100 * ends[1]] if has_ends else [])]
    assert (" more " in match[0]) == (sign > 0)
    return [len(right), told.times()]


COMPARE: Known = [
    (rf"(\S+) {P} of # documents", _right),
    # See `check_tests`.
    (rf"\S+ {P}, n #: \w+(?:, \w+)*(?: or \w+)?", lambda c, m: [None] * m[0].count("#")),
    (r"\S+ (?:yes|partly|no|cannot tell) \S+ on \S+|\S+ –: unknown", _named),
    (r"The runs were audited on different numbers of documents: #, #\.",
     lambda c, m: [run.documents for run in c.runs.values()]),
    (r"On the # documents that all runs were audited on, \S+ is right .*", _gain),
]  # fmt: skip
