"""What the numbers of the other commands must be: training, remedies, comparisons, explanations."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

import heedful
from heedful.corpora import read_file
from heedful.importance import methods_of
from heedful.runs import read_json
from heedful.statistics import Estimate, paired, proportion
from tests.docs.exchange_again import shares
from tests.docs.known_sentences import AUDIT, E, P
from tests.docs.plain_passes import Plain, given_anew
from tests.docs.sentences import Expected, Known, Run, check, page_sentences, sentences, times

Match = re.Match[str]


@dataclass(frozen=True)
class Said(Run):
    """A command as it was typed, all that it printed, and the run that it speaks of."""

    words: tuple[str, ...]
    text: str

    def option(self, name: str) -> str | None:
        """What was given as an option."""
        return self.words[self.words.index(name) + 1] if name in self.words else None

    @cached_property
    def plain(self) -> Plain:
        """Its model."""
        return Plain(self.folder)

    @property
    def data(self) -> Any:
        """The documents that were named, or those of the run."""
        threshold = self.option("--threshold")
        name = self.option("--data") or "reviews.csv"
        return read_file(name, threshold=None if threshold is None else float(threshold)).corpus

    def decided(self, plain: Plain, split: str) -> tuple[np.ndarray, np.ndarray]:
        """What a model decides of a split, and the labels."""
        texts = self.data.splits[split]
        found = [plain.logits(tuple(one.text.split())).argmax() for one in texts]
        return np.array(found), np.array([one.label for one in texts])


def macro_f1(decided: np.ndarray, gold: np.ndarray) -> float:
    """The mean over classes of 2 hits / (decided + true)."""
    found = []
    for label in np.unique(gold):
        hits = ((decided == label) & (gold == label)).sum()
        found.append(2 * hits / ((decided == label).sum() + (gold == label).sum()))
    return float(np.mean(found))


def _splits(said: Said, match: Match) -> Expected:
    return [*(len(said.data.splits[name]) for name in ("train", "dev", "test")), 0]


def _trained(said: Said, match: Match) -> Expected:
    dev, test = (said.decided(said.plain, split) for split in ("dev", "test"))
    right = proportion(int((test[0] == test[1]).sum()), len(test[0]))
    more: list[float | Estimate | None] = [None] * match[1].count("#")
    return [*more, float((dev[0] == dev[1]).mean()), right, len(test[0])]


def _row(said: Said, match: Match) -> Expected:
    return [None] * match[0].count("#")


def check_strengths(said: Said) -> None:
    """F1, and what flattening does to it, of the model without and of the one kept."""
    found = read_json(said.folder / "remedy.json")
    lines = [one.split() for one in said.text.splitlines() if re.match(r" +[\d.]+ +[\d.]+ ", one)]
    table = {float(line[0]): line for line in lines}
    assert len(table) == 1 + len(found["tried"])
    kept = found["chosen"]["strength"]
    assert "kept" in table[kept]
    run = found.get("run") or ""
    is_base = run and "tying" not in run  # else the model without it was trained anew
    base = macro_f1(*said.decided(Plain(Path(run)), "dev")) if is_base else None
    for strength, f1 in ((0.0, base), (kept, macro_f1(*said.decided(said.plain, "dev")))):
        if f1 is not None:
            assert float(table[strength][1]) == pytest.approx(100 * f1, abs=0.06)
    texts = said.data.splits["dev"]
    flat = []
    for one in texts:
        words = tuple(one.text.split())
        flat.append(said.plain.under(words, [given_anew(np.full(len(words), 1 / len(words)))])[0])
    gold = np.array([one.label for one in texts])
    change = macro_f1(np.stack(flat).argmax(-1), gold) - macro_f1(*said.decided(said.plain, "dev"))
    assert float(table[kept][2]) == pytest.approx(100 * change, abs=0.06)


def _kept(said: Said, match: Match) -> Expected:
    found = read_json(said.folder / "remedy.json")
    kept = next(o for o in found["tried"] if o["strength"] == found["chosen"]["strength"])
    cost = 100 * abs(found["base"]["f1"] - kept["f1"])
    limit = [1.5] if "at most #" in match[0] else []
    more: list[float | Estimate | None] = [None, None] if "[#" in match[0] else []
    return [*limit, kept["strength"], cost, *more]


def _no_interval(said: Said, match: Match) -> Expected:
    found = read_json(said.folder / "remedy.json")
    others = [o["strength"] for o in found["tried"]]
    others.remove(found["chosen"]["strength"])
    named = others if "may do as well" in match[0] else []
    return [len(said.data.splits["dev"]), *named[: match[0].count("#") - 1]]


def _probabilities(said: Said, match: Match) -> Expected:
    found = said.plain.probabilities(words_of(said))
    assert re.findall(r"(\w+) #", match[0]) == list(said.data.classes)
    assert match[1] == said.data.classes[found.argmax()]
    return [float(one) for one in found]


def words_of(said: Said) -> tuple[str, ...]:
    """The words of the text that was explained."""
    return tuple(re.findall(r"\w+|[^\w\s]", said.words[2]))


def _method(said: Said, match: Match) -> Expected:
    """Attention is found again here, occlusion in `check_explained`; oracles test the others."""
    if match[1] != "attention":
        return [None] * match[0].count("#")
    weights = np.sort(said.plain.attention(words_of(said)).weights)[::-1]
    return [float(one) for one in weights[: match[0].count("#")]]


def _special(said: Said, match: Match) -> Expected:
    return [100 * said.plain.attention(words_of(said)).outside]


def _best(said: Said, match: Match) -> Expected:
    worth = said.deleted["faithfulness"].mean()
    assert worth[match[1]] == pytest.approx(worth[said.ranked[0]])
    return [len(said.ranked), said.beyond(match[1]), said.documents]


def _more(said: Said, match: Match) -> Expected:
    model = heedful.load(said.folder, trust_remote_code=True)
    told = [one for one in said.text.splitlines() if re.match(r" *[\w-]+  .* -?[\d.]", one)]
    return [len(methods_of(model, costly=True)) - len(told)]


EXPLAIN: Known = [
    (r"Decision: (\w+) \((?:\w+ #(?:, )?)+\)", _probabilities),
    (r"([\w-]+) \S+ #(?:, \S+ #)*", _method),
    (r"above #: speaks for .* · below #: against it .*", lambda s, m: [0, 0]),
    (r"integrated adds up to the rise in probability but for #", lambda s, m: [None]),
    (r"# % of the audited attention lies on special tokens, .*", _special),
    (rf"(\S+) is the best of # explanations in the audit: {E} above a random order, # documents\.",
     _best),
    (r"# more explanations of this model: .*", _more),
]  # fmt: skip

READ: Known = [
    (r"splits: # / # / # \(train and dev and test drawn by seed #\)", _splits),
    (r"documents: #", lambda s, m: [len(pd.read_csv(s.option("--data")))]),
    (r"score is cut at #: .*|classes: below #, from # on|.*--threshold # \(.*",
     lambda s, m: [0] * m[0].count("#")),
    (r"labels #, # are taken for the numbers of the classes neg, pos", lambda s, m: [0, 1]),
    (r"(?:auditing|showing|exchanged words|single heads): #/# \w+, .*|# texts/s, .*|# s a text, .*",
     lambda s, m: [None] * m[0].count("#")),  # the clock's
    (r"(?:The page|The run|What was kept lies in):? \S+", lambda s, m: [None] * m[0].count("#")),
]  # fmt: skip

TRAIN: Known = [
    *READ,
    (rf"Trained (.*): dev accuracy #, test accuracy {E} of # documents", _trained),
    (r"strength dev F1 flat shuffled cost \[# %\] buys \[# %\]", lambda s, m: [95, 95]),
    (r"# # # #(?: # \[.*\] # \[.*\])?(?: kept)?", _row),  # see check_strengths
    (r"All in points of dev F1 .* F1 at # minus F1 here; .* at #\.", lambda s, m: [0, 0]),
    (r"No strength that costs at most # points .*; # was kept, .*|.*# was kept.*", _kept),
    (r"With # dev documents its cost has no interval.*", _no_interval),
    (r"\S+ own tying:# is left out: .*", lambda s, m: [1]),
]  # fmt: skip


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
    """Each test's share, run by run, from the rows of its exchange."""
    for place, heading in enumerate(TESTS):
        for line in compared.blocks[heading]:
            name, told = line.split()[:2]
            rows = compared.runs[name].rows("exchange")
            value = shares(rows)[1 + place].value if len(rows) else np.nan
            if np.isnan(value):
                assert told == "–:"
                continue
            digits = len(told.partition(".")[2])
            assert float(told) == pytest.approx(value, abs=0.51 * 10.0**-digits)


def _numbers(compared: Compared, match: Match) -> Expected:
    return [None] * match[0].count("#")


def _right(compared: Compared, match: Match) -> Expected:
    run = compared.runs[match[1]]
    return [run.right(), run.right().n]


def _gain(compared: Compared, match: Match) -> Expected:
    tables = [run.rows("substitution").set_index("instance") for run in compared.runs.values()]
    right = pd.concat([t["label"] == t["decision"] for t in tables], axis=1, join="inner")
    right = right.sort_index().astype(float)
    gain = paired(right.iloc[:, 1], right.iloc[:, 0], [str(n) for n in right.index], most=1)
    sign = 1 if gain.value >= 0 else -1
    ends = sorted((sign * gain.low, sign * gain.high))
    told = Estimate(abs(gain.value), ends[0], ends[1], gain.n, gain.method)
    if gain.value == 0:
        assert "as often as" in match[0]
        has_ends = gain.low == gain.low
        return [len(right), *([100 * ends[0], 100 * ends[1]] if has_ends else [])]
    assert (" more " in match[0]) == (sign > 0)
    return [len(right), times(told)]


COMPARE: Known = [
    (rf"(\S+) {E}, # documents", _right),
    (rf"\S+ {E}, n #: \w+", _numbers),  # see check_tests
    (r"\S+ (?:yes|partly|no|cannot tell) \S+ on \S+", _numbers),
    (r"\S+ –: unknown", _numbers),
    (r"The runs were audited on different numbers of documents: #, #\.",
     lambda c, m: [run.documents for run in c.runs.values()]),
    (r"On the # documents that all runs were audited on, \S+ is right .*", _gain),
]  # fmt: skip


def _thirds(said: Said, match: Match) -> Expected:
    words = pd.read_parquet(said.folder / "findings" / "lexicon.parquet").sort_values("rating")
    cut = words["rating"].quantile([1 / 3, 2 / 3]).to_numpy()
    is_low, is_high = words["rating"] <= cut[0], words["rating"] >= cut[1]
    found: list[float | Estimate | None] = []
    for rows in (is_low, ~is_low & ~is_high, is_high):
        found += [float(words["ratio"][rows].mean()), None, None]
    return [*found, len(words)]


LEXICON: Known = [
    *READ,
    (rf".*words rated low get {E} times an even share of \w+, those between {E}, those rated high "
     rf"{E} \(# words, a third each\)\.", _thirds),
    (r"Words rated high or low: # of # heads above chance, .*", _row),
]  # fmt: skip


def check_said(command: Sequence[str], text: str) -> None:
    """Recomputes every sentence with a number that a command printed, and of the page it wrote."""
    verb = command[1]
    if verb == "compare":
        compared = Compared({Path(one).name: Run(Path(one)) for one in command[2:]}, text)
        check(sentences(text), COMPARE, compared)
        check_tests(compared)
        return
    page = re.search(r"The page: (\S+)/report.html", text)
    kept = re.search(r"(?:The run: |What was kept lies in )(\S+?)\.?$", text, re.MULTILINE)
    named = page or kept
    words = tuple(command)
    folder = Path(named[1] if named else words[words.index("--model") + 1])
    said = Said(folder, words, text)
    check(sentences(text), known_of(verb), said)
    if verb == "audit":
        check(page_sentences((folder / "report.html").read_text()), known_of(verb), said)
    if (folder / "remedy.json").is_file() and verb == "train":
        check_strengths(said)


def known_of(verb: str) -> Known:
    """The sentences of a command."""
    if verb == "audit":
        return [*AUDIT, *READ, (rf"accuracy, prior (\w+).*: {P} of #", _prior), (
            r"Audit more documents, .*: all # that there are were audited, .*",
            lambda r, m: [r.documents])]  # fmt: skip
    return {"explain": EXPLAIN, "train": TRAIN, "compare": COMPARE, "lexicon": LEXICON}[verb]


def _prior(run: Run, match: Match) -> Expected:
    told = run.record["audited"]["priors"][match[1]]
    return [*(100 * told[end] for end in ("value", "low", "high")), told["n"]]
