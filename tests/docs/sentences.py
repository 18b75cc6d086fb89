"""Every sentence with a number that a command prints or a page shows, and how to find it again.

A sentence is known by its words, with `#` for each number; what the numbers must be is computed
from the rows that the audit kept (which `rows_again` finds again by plain passes). A sentence with
a number that nobody knows fails.
"""

from __future__ import annotations

import html
import re
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from functools import cached_property
from html.parser import HTMLParser
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
import pandas as pd

from heedful.runs import read_json
from tests.docs.intervals_again import Near, Told, among, average, gap, share

NUMBER = re.compile(r"(?<![\w.])(?<![A-Za-z]-)[-+−]?\d+(?:,\d{3})*(?:\.\d+)?(?:e[-+]?\d+)?(?!\w)")
BREAK = re.compile(r"(?<=[.?!])\s+(?=[A-Z→])")
BLOCKS = ("p", "li", "h1", "h2", "h3", "td", "th", "div", "summary", "figcaption", "caption", "tr",
          "section", "dt", "dd", "label", "button", "option", "span")  # fmt: skip
_Number: TypeAlias = "float | Near | range | frozenset[int] | None"
Expected: TypeAlias = "Sequence[float | Told | Near | range | frozenset[int] | None]"
"""In the order of the sentence; a `Told` stands for three numbers, or one without interval, a range
or set for any of its numbers, None for what the clock says."""


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
    page = re.sub(r'<span class="count">[\d,]+</span>', "", page)  # see `check_counts`
    page = re.sub(r'<span class="option">([^<]*)</span>', r"\1", page)
    blocks = _Blocks()
    blocks.feed(re.sub(r"<code>(heedful[^<]*)</code>", r"`\1`", page))
    # Names of models and the number of lines of a list are no sentences.
    whole = [one for one in blocks.found if len(re.findall(r"(?:^| )[^\W\d]{2,}", one)) > 2]
    return sentences("\n".join(html.unescape(one) for one in whole))


def check_counts(page: str) -> None:
    """The number beside the heading of a list is that of its entries."""
    lists = re.findall(
        r'<summary>[^<]*<span class="count">([\d,]+)</span></summary>(.*?)</details>',
        page,
        re.DOTALL,
    )
    assert lists
    for count, inside in lists:
        entries = inside.count("<li>") or inside.partition("<tbody>")[2].count("<tr>")
        assert int(count.replace(",", "")) == entries


def is_told(said: str, value: float, off: float = 0.0) -> bool:
    """Whether a printed number is that value, to the digits that it has."""
    plain = said.replace(",", "").replace("−", "-").lstrip("+")
    if "e" in plain:
        return bool(np.isclose(float(plain), value, rtol=0.06, atol=off))
    digits = len(plain.partition(".")[2])
    return abs(float(plain) - value) <= 0.5000001 * 10.0**-digits + off


def numbers_of(text: str) -> list[float]:
    """The numbers of a text that is known to the letter: a name, a path, a version."""
    return [float(one.replace(",", "").replace("−", "-")) for one in NUMBER.findall(text)]


@dataclass(frozen=True)
class Run:
    """What an audit left, as its sentences speak of it."""

    folder: Path
    only: frozenset[str] | None = None
    """Documents whose rows are looked at; all if none."""

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
        """How many were put to the tests of single documents."""
        return len(self.rows("substitution"))

    @cached_property
    def audited(self) -> int:
        """How many were read: those that could have been put to these tests."""
        return len(self.rows("concentration"))

    def rows(self, audit: str) -> pd.DataFrame:
        """The rows of an audit."""
        found = pd.read_parquet(self.folder / "findings" / f"{audit}.parquet")
        return found if self.only is None else found[found["instance"].isin(self.only)]

    def level(self, audit: str) -> AbstractContextManager[None]:
        """Inside, intervals are as sure as those of an audit, which may have been looked at often.

        Of some of the documents they are what the caller says.
        """
        stops = self.record["audited"].get("looked at", {})
        if self.only is not None or audit not in stops:
            return nullcontext()
        return among(stops[audit]["looks"])

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

    def worth(self, method: str) -> Told:
        """How faithful a method is."""
        with self.level("input-erasure"):
            return average(self.deleted["faithfulness"][method], -2, 2)

    def beyond(self, method: str, kind: str = "faithfulness", than: str = "random") -> Told:
        """How far a method lies above another, paired by document."""
        table = self.deleted[kind]
        most = 4 if kind == "faithfulness" else 2
        with self.level("input-erasure"):
            return gap(table[method], table[than], most)

    @cached_property
    def ranked(self) -> list[str]:
        """The methods but the random one, best first."""
        order = self.deleted["faithfulness"].mean().drop("random").sort_values(ascending=False)
        return [str(name) for name in order.index]

    def places(self, method: str) -> range:
        """The places that a method can have: several where others are as good."""
        worth = self.deleted["faithfulness"].mean().drop("random")
        better = int((worth > worth[method] + 1e-12).sum())
        return range(1 + better, 1 + int((worth > worth[method] - 1e-12).sum()))

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

    def labelled(self) -> pd.DataFrame:
        """The most rows with a label that one test has read."""
        tests = sorted(path.stem for path in (self.folder / "findings").glob("*.parquet"))
        tables = [self.rows(test) for test in tests]
        told = [rows for rows in tables if {"label", "decision"} <= set(rows.columns)]
        return max((rows[rows["label"] >= 0] for rows in told), key=len)

    def right(self) -> Told:
        """Accuracy on these."""
        rows = self.labelled()
        return share(int((rows["label"] == rows["decision"]).sum()), len(rows))


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
    return mistold(sentence, compute(about, match))


def mistold(sentence: str, values: Expected) -> list[str]:
    """Which numbers of a sentence are others."""
    told, expected = NUMBER.findall(sentence), _numbers(values)
    if len(told) != len(expected):
        return [f"{len(expected)} numbers expected, {len(told)} told"]
    pairs = zip(told, expected, strict=True)
    return [f"{said} for {value}" for said, value in pairs if not _agrees(said, value)]


def _numbers(values: Expected) -> list[_Number]:
    """One for each number of the sentence."""
    found: list[_Number] = []
    for value in values:
        if isinstance(value, Told):
            found += [value.value, *([value.low, value.high] if value.low == value.low else [])]
        else:
            found.append(value)
    return found


def unnoticed(said: Sequence[str], known: Known, about: Any) -> list[str]:
    """Sentences of which one number was altered, and the rule that knows them found no fault.

    Numbers that a rule leaves to others (None) are left to them here too.
    """
    found = []
    for sentence in dict.fromkeys(said):
        skeleton = NUMBER.sub("#", sentence)
        ((match, compute),) = [(m, c) for p, c in known if (m := re.fullmatch(p, skeleton))]
        values = compute(about, match)
        for told, value in zip(NUMBER.finditer(sentence), _numbers(values), strict=True):
            if value is not None:
                other = sentence[: told.start()] + altered(told[0], value) + sentence[told.end() :]
                found += [] if mistold(other, values) else [other]
    return found


def altered(told: str, value: _Number = 0.0) -> str:
    """Another number than the one that is told, as near as its digits and what is known allow."""
    if isinstance(value, range | frozenset):
        return str(max(value) + 7)
    digits, power, _ = told.partition("e")
    if isinstance(value, Near) and value.off:
        places = len(digits.partition(".")[2])
        plain = float(told.replace(",", "").replace("−", "-"))
        return f"{plain + 3 * value.off + 5 * 10.0**-places:.{max(places, 6)}f}"
    if power:  # told to a few per cent
        return re.sub(r"[1-9]", lambda first: str((int(first[0]) + 3) % 9 + 1), told, count=1)
    return digits[:-1] + str((int(digits[-1]) + 5) % 10)


def _agrees(said: str, value: _Number) -> bool:
    if value is None:
        return True
    if isinstance(value, range | frozenset):
        return float(said.replace(",", "")) in value
    return is_told(said, *value) if isinstance(value, Near) else is_told(said, value)
