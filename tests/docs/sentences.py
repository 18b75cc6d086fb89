"""Every sentence with a number that a command prints or a page shows, and how to find it again.

A sentence is known by its words, with `#` for each number; what the numbers must be is computed
from the rows that the audit kept (which `rows_again` finds again by plain passes). A sentence with
a number that nobody knows fails.
"""

from __future__ import annotations

import html
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from html.parser import HTMLParser
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
import pandas as pd

from heedful.runs import read_json
from heedful.statistics import Estimate, mean, paired, proportion

NUMBER = re.compile(r"(?<![\w.])(?<![A-Za-z]-)[-+−]?\d+(?:,\d{3})*(?:\.\d+)?(?:e[-+]?\d+)?(?!\w)")
BREAK = re.compile(r"(?<=[.?!])\s+(?=[A-Z→])")
BLOCKS = ("p", "li", "h1", "h2", "h3", "td", "th", "div", "summary", "figcaption", "caption", "tr",
          "section", "dt", "dd", "label", "button", "option", "span")  # fmt: skip
Expected: TypeAlias = "Sequence[float | Estimate | None]"
"""In the order of the sentence; an estimate stands for three numbers, or one without interval."""


def sentences(text: str) -> list[str]:
    """The sentences of a text for the terminal that hold a number; commands are left out."""
    found = []
    for line in text.splitlines():
        line = re.sub(r"`heedful[^`]*`|^(Next|Then): heedful .*", "", line).replace("`", "")
        line = re.sub(r"^[ →✓~✗?]+", "", " ".join(line.split()))
        found += [one for one in BREAK.split(line) if NUMBER.search(one)]
    return found


class _Blocks(HTMLParser):
    """The text of a page, block by block, without scripts, charts and tables of numbers."""

    def __init__(self) -> None:
        super().__init__()
        self.found, self.here, self.hidden = list[str](), "", list[str]()

    def handle_starttag(self, tag: str, attributes: Any) -> None:
        if tag in ("script", "style", "svg", "table", "pre", "select", "title"):
            self.hidden.append(tag)
        self._end(tag)

    def handle_endtag(self, tag: str) -> None:
        self._end(tag)
        if self.hidden and self.hidden[-1] == tag:
            self.hidden.pop()

    def handle_data(self, data: str) -> None:
        self.here += "" if self.hidden else data

    def _end(self, tag: str) -> None:
        if tag in BLOCKS and tag != "span":
            self.found.append(" ".join(self.here.split()))
            self.here = ""


def page_sentences(page: str) -> list[str]:
    """The sentences with a number that a page shows."""
    blocks = _Blocks()
    blocks.feed(re.sub(r"<code>(heedful[^<]*)</code>", r"`\1`", page))
    # Names of models and the number of lines of a list are no sentences.
    whole = [one for one in blocks.found if len(re.findall(r"(?:^| )[^\W\d]{2,}", one)) > 2]
    return sentences("\n".join(html.unescape(one) for one in whole))


def is_told(said: str, value: float) -> bool:
    """Whether a printed number is that value, to the digits that it has."""
    plain = said.replace(",", "").replace("−", "-").lstrip("+")
    if "e" in plain:
        return bool(np.isclose(float(plain), value, rtol=0.06))
    digits = len(plain.partition(".")[2])
    return abs(float(plain) - value) <= 0.5000001 * 10.0**-digits


@dataclass(frozen=True)
class Run:
    """What an audit left, as its sentences speak of it."""

    folder: Path

    @cached_property
    def verdict(self) -> Mapping[str, Any]:
        """As it was stored."""
        found: Mapping[str, Any] = read_json(self.folder / "findings" / "verdict.json")
        return found

    @cached_property
    def record(self) -> Mapping[str, Any]:
        """Of the run."""
        found: Mapping[str, Any] = read_json(self.folder / "run.json")
        return found

    @cached_property
    def documents(self) -> int:
        """How many were audited."""
        return len(self.rows("substitution"))

    def rows(self, audit: str) -> pd.DataFrame:
        """The rows of an audit."""
        return pd.read_parquet(self.folder / "findings" / f"{audit}.parquet")

    def table(self, audit: str, column: str, of: str = "ranking") -> pd.DataFrame:
        """One column, by instance and method."""
        return self.rows(audit).pivot(index="instance", columns=of, values=column).astype(float)

    @cached_property
    def deleted(self) -> dict[str, pd.DataFrame]:
        """What deleting words costs, by instance and method, the mean over shares."""
        rows = self.rows("input-erasure")
        rows = rows[rows["mode"] == "removed"]
        kept = rows.groupby(["instance", "method"])[["comprehensiveness", "sufficiency"]].mean()
        found = {name: kept[name].unstack("method") for name in kept}
        found["faithfulness"] = found["comprehensiveness"] - found["sufficiency"]
        return found

    def worth(self, method: str) -> Estimate:
        """How faithful a method is."""
        return average(self.deleted["faithfulness"][method], -2, 2)

    def beyond(self, method: str, kind: str = "faithfulness", than: str = "random") -> Estimate:
        """How far a method lies above another, paired by document."""
        table = self.deleted[kind]
        most = 4 if kind == "faithfulness" else 2
        return paired(table[method], table[than], list(table.index), most=most)

    @cached_property
    def ranked(self) -> list[str]:
        """The methods but the random one, best first."""
        order = self.deleted["faithfulness"].mean().drop("random").sort_values(ascending=False)
        return [str(name) for name in order.index]

    @cached_property
    def better(self) -> list[str]:
        """Methods whose words are needed and enough, more than random ones are."""
        found = []
        for method in self.ranked:
            worth, needed, enough = (
                self.beyond(method, kind).side(0)
                for kind in ("faithfulness", "comprehensiveness", "sufficiency")
            )
            found += [method] if (worth, needed, enough) == ("above", "above", "below") else []
        return found

    def right(self) -> Estimate:
        """Accuracy on the audited documents that have labels."""
        rows = self.rows("substitution")
        rows = rows[rows["label"] >= 0]
        return proportion(int((rows["label"] == rows["decision"]).sum()), len(rows))


def average(values: pd.Series[Any], least: float = 0, most: float = 1) -> Estimate:
    """The mean over instances, with its interval."""
    names = [str(name) for name in values.index]
    return mean(values.to_numpy(dtype=float), names, least=least, most=most)


def times(estimate: Estimate, factor: float = 100) -> Estimate:
    """A share in per cent."""
    ends = (factor * end for end in (estimate.value, estimate.low, estimate.high))
    return Estimate(*ends, estimate.n, estimate.method)


Known: TypeAlias = "list[tuple[str, Callable[[Any, re.Match[str]], Expected]]]"


def check(said: Sequence[str], known: Known, about: Any) -> None:
    """Recomputes every sentence; all that are unknown or wrong are told at once."""
    wrong = [
        f"{fault}: {sentence}" for sentence in said for fault in faults(sentence, known, about)
    ]
    assert not wrong, "\n".join(dict.fromkeys(wrong))


def faults(sentence: str, known: Known, about: Any) -> list[str]:
    """What is wrong with a sentence: that nobody knows it, or numbers that are others."""
    skeleton = NUMBER.sub("#", sentence)
    rules = [(m, compute) for p, compute in known if (m := re.fullmatch(p, skeleton))]
    if len(rules) != 1:
        return [f"{len(rules)} rules know this sentence"]
    ((match, compute),) = rules
    told, expected = NUMBER.findall(sentence), list[float | None]()
    for value in compute(about, match):
        if isinstance(value, Estimate):
            expected += [value.value, *([value.low, value.high] if value.low == value.low else [])]
        else:
            expected.append(value)
    if len(told) != len(expected):
        return [f"{len(expected)} numbers expected, {len(told)} told"]
    pairs = zip(told, expected, strict=True)
    return [f"{said} for {value}" for said, value in pairs
            if value is not None and not is_told(said, value)]  # fmt: skip
