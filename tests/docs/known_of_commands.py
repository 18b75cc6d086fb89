"""What the numbers of the other commands must be: training, remedies, comparisons, explanations."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

import heedful
from heedful.corpora import read_file
from heedful.importance import methods_of
from tests.docs.effort_again import EFFORT, check_stops, looks
from tests.docs.importance_again import importance, rise
from tests.docs.intervals_again import (
    Near,
    Told,
    drawn,
    leading,
    leads_by_luck,
    percentile,
    share,
    weighted_mean,
)
from tests.docs.known_of_compare import COMPARE, TESTS, Compared, check_tests
from tests.docs.known_sentences import AUDIT, E, P
from tests.docs.lexicon_again import Lexicon
from tests.docs.passes_counted import Counted, keep
from tests.docs.plain_passes import Plain
from tests.docs.sentences import (
    NUMBER,
    Expected,
    Known,
    Run,
    altered,
    check,
    check_counts,
    mistold,
    numbers_of,
    page_sentences,
    sentences,
    unnoticed,
)
from tests.docs.strengths_again import Sweep

Match = re.Match[str]


@dataclass(frozen=True)
class Said(Run):
    """A command as it was typed, all that it printed, and the run that it speaks of."""

    words: tuple[str, ...] = ()
    text: str = ""

    def option(self, name: str) -> str | None:
        """What was given as an option."""
        return self.words[self.words.index(name) + 1] if name in self.words else None

    @cached_property
    def plain(self) -> Plain:
        """Its model."""
        return Plain(Path(self.words[2]) if self.words[1] == "lexicon" else self.folder)

    @cached_property
    def sweep(self) -> Sweep:
        """The search for a strength that the command made."""
        config = "heedful.toml" if Path("heedful.toml").is_file() else "tiny.toml"
        return Sweep(self.folder, self.data.splits["dev"], "reviews.csv", config)

    @property
    def missing(self) -> float:
        """What integrated gradients lack of the rise, as it was told."""
        (told,) = re.findall(r"adds up to the rise in probability but for (\S+)", self.text)
        return float(told)

    @property
    def data(self) -> Any:
        """The documents that were named, or those of the run."""
        threshold = self.option("--threshold")
        name = self.option("--data") or "reviews.csv"
        return read_file(name, threshold=None if threshold is None else float(threshold)).corpus

    def size(self, name: str) -> int:
        """What one reading of a document is."""
        prompt = self.option("--prompt")
        if prompt is None:
            return self.plain.size(tuple(self.texts[name].split()))
        return self.prompted(prompt.replace("{text}", self.texts[name]))

    def prompted(self, prompt: str) -> int:
        """Positions that a pass reads in all layers: of a prompt, and of labels behind it."""
        from transformers import AutoConfig, AutoTokenizer

        folder = self.words[2].removeprefix("lm:")
        layers = AutoConfig.from_pretrained(folder).num_hidden_layers
        cut = AutoTokenizer.from_pretrained(folder)
        labels = [one.partition("=")[2] for one in (self.option("--labels") or "").split(",")]
        behind = [len(cut(one, add_special_tokens=False)["input_ids"]) - 1 for one in labels]
        return int(layers * (len(cut(prompt)["input_ids"]) + sum(behind)))

    @cached_property
    def texts(self) -> dict[str, str]:
        """By name; ratings that nobody cut are cut here, since labels do not matter."""
        try:
            data = self.data
        except heedful.InputError:
            data = read_file(self.option("--data") or "", threshold=0).corpus
        return {one.id: one.text for split in data.splits.values() for one in split}

    def decided(self, plain: Plain, split: str) -> tuple[np.ndarray, np.ndarray]:
        """What a model decides of a split, and the labels."""
        texts = self.data.splits[split]
        found = [plain.logits(tuple(one.text.split())).argmax() for one in texts]
        return np.array(found), np.array([one.label for one in texts])


def _splits(said: Said, match: Match) -> Expected:
    return [*(len(said.data.splits[name]) for name in ("train", "dev", "test")), 0]


def _trained(said: Said, match: Match) -> Expected:
    name, objective = Path(said.words[2]).name, said.option("--objective")
    title = f"{name}+{objective}" if objective else name
    return numbers_of(f"{title} on {Path(said.option('--data') or '').resolve()}")


def _scored(said: Said, match: Match) -> Expected:
    dev, test = (said.decided(said.plain, split) for split in ("dev", "test"))
    right = share(int((test[0] == test[1]).sum()), len(test[0]))
    return [right.times(), len(test[0]), 100 * float((dev[0] == dev[1]).mean())]


def check_strengths(text: str, sweep: Sweep) -> None:
    """Every row: F1, flat, shuffled, cost and what it buys, by models trained again."""
    lines = [one for one in text.splitlines() if re.match(r" +[\d.]+ +[\d.]+ ", one)]
    assert len(lines) == len(sweep.decided)
    for strength, line in zip(sweep.decided, lines, strict=True):
        values: list[float | Told] = [strength, *(100 * one for one in sweep.f1(strength))]
        if strength:
            values += [sweep.cost(strength).times(), sweep.buys(strength).times()]
        assert mistold(line.replace("[-]", ""), values) == [], line
        assert ("kept" in line) == (strength == sweep.kept)
    assert sweep.kept == sweep.best()


def _kept(said: Said, match: Match) -> Expected:
    sweep = said.sweep
    cost, bought = sweep.cost(sweep.kept).times(), sweep.buys(sweep.kept).value
    sign = 1 if cost.value >= 0 else -1
    assert ("costs" if sign > 0 else "gains") + " #" in match[0]
    ends = sorted((sign * cost.low, sign * cost.high)) if "; # documents]" in match[0] else []
    told = [sweep.kept, abs(cost.value), *ends, *([len(sweep.dev)] if ends else [])]
    if match[0].startswith("No strength that costs at most"):
        assert bought <= 0
        return [sweep.limit, *told]
    bought_is = [100 * abs(bought)]
    if match[0].startswith("No strength is cheap enough"):
        return [*told, sweep.limit, *bought_is]
    return [*told, *bought_is]


def _no_other(said: Said, match: Match) -> Expected:
    return [said.sweep.limit]


def _doubt(said: Said, match: Match) -> Expected:
    """What too few dev documents leave open; which of it is said must be right too."""
    sweep = said.sweep
    cost, buys = sweep.cost(sweep.kept), sweep.buys(sweep.kept)
    doubts: list[float | Told | None] = [len(sweep.dev)]
    assert ("its cost has no interval" in match[0]) == np.isnan(cost.low)
    is_open = cost.side(sweep.limit / 100) == "straddles" and not np.isnan(cost.low)
    assert ("its cost may be anything" in match[0]) == is_open
    doubts += [100 * cost.low, 100 * cost.high] if is_open else []
    may_be_none = buys.value > 0 and buys.side(0) == "straddles"
    assert ("it may buy no reliance" in match[0]) == may_be_none
    assert ("buy reliance after all" in match[0]) == (buys.value <= 0 < buys.high)
    rivals = [one for one in sweep.decided if one not in (0, sweep.kept) and sweep.is_rival(one)]
    assert ("may do as well" in match[0]) == bool(rivals)
    return [*doubts, *rivals]


def _probabilities(said: Said, match: Match) -> Expected:
    found = said.plain.probabilities(words_of(said))
    assert re.findall(r"(\w+) #", match[0]) == list(said.data.classes)
    assert match[1] == said.data.classes[found.argmax()]
    return [float(one) for one in found]


def words_of(said: Said) -> tuple[str, ...]:
    """The words of the text that was explained."""
    return tuple(re.findall(r"\w+|[^\w\s]", said.words[2]))


def _method(said: Said, match: Match) -> Expected:
    """The words that a method names, largest first, found again by plain passes."""
    found = importance(said.plain, words_of(said), match[1])
    (line,) = (one for one in said.text.splitlines() if re.match(rf" *{match[1]}  ", one))
    words = [one.strip("[]").lower() for one in re.findall(r"(\S+) -?[\d.]", line.split("  ")[-1])]
    count = min(8, len(found))
    assert len(words) == count
    order = np.argsort(-abs(found), kind="stable")[:count]
    off = said.missing if match[1] == "integrated" else 1e-6 * max(1, abs(found).max())
    for place, unit in enumerate(order):  # words that are as good may change places
        alike = np.flatnonzero(abs(abs(found) - abs(found[unit])) <= 2 * off + 1e-7)
        assert words[place] in {words_of(said)[one].lower() for one in alike}
    return [Near(float(found[unit]), off) for unit in order]


def _adds_up(said: Said, match: Match) -> Expected:
    """What is missing is at most what was promised, unless the path has a bend without a slope."""
    risen = rise(said.plain, words_of(said))
    exact = importance(said.plain, words_of(said), "integrated").sum()
    assert said.missing <= 0.01 or abs(exact - risen) > 0.01
    return [said.missing]


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
    (r"integrated adds up to the rise in probability but for #", _adds_up),
    (r"in log-odds, since the probability is next to #: .*",
     lambda s, m: [round(max(s.plain.probabilities(words_of(s))))]),
    (r"# % of the audited attention lies on special tokens, .*", _special),
    (rf"(\S+) is the first of # explanations in the audit: {E} above a random order, # documents\.",
     _best),
    (r"# more explanations of this model: .*", _more),
]  # fmt: skip


STAGES = "auditing|one unit alone, concentration|weights drawn anew"


def _so_far(said: Said, match: Match) -> Expected:
    """So many of all; speed and time left are the clock's."""
    counts = re.findall(rf"(?:{STAGES}): ([\d,]+)/([\d,]+)", said.text)
    if "audited" not in said.record:  # only trained, on a slow machine
        assert not counts
        return [None] * match[0].count("#")
    effort, count = said.record["audited"]["effort"], said.audited
    asked = (count, looks(effort, count)[-1], looks(effort, min(count, 50), 16)[-1])
    assert all(int(done) <= int(total) for done, total in counts)
    assert {int(total) for _, total in counts} <= set(asked)
    firsts = {looks(effort, count)[0], looks(effort, min(count, 50), 16)[0]}
    told = re.findall(r"\(sooner if (\d+) documents settle it\)", said.text)
    assert {int(first) for first in told} <= firsts
    return [None] * match[0].count("#")


def _took(said: Said, match: Match) -> Expected:
    """The time that the record keeps."""
    seconds = said.record["steps"]["audit"]["seconds"]
    return [seconds / {"s": 1, "min": 60}[match[1]]]


READ: Known = [
    (r"splits: # / # / # \(train and dev and test drawn by seed #\)", _splits),
    (r"documents: #", lambda s, m: [len(pd.read_csv(s.option("--data")))]),
    (r"score is cut at #: .*|classes: below #, from # on|.*--threshold # \(.*",
     lambda s, m: [0] * m[0].count("#")),
    (r"labels #, # are taken for the numbers of the classes neg, pos", lambda s, m: [0, 1]),
    (rf"(?:{STAGES}|training|showing|exchanged words|single heads): #/# \w+, .*", _so_far),
    (r"All tests took # (s|min)\.", _took),
    (r"(?:The page|The run|What was kept lies in):? \S+", lambda s, m: numbers_of(str(s.folder))),
]  # fmt: skip

TRAIN: Known = [
    *READ,
    (r"Trained (.*)\.", _trained),
    (rf"Accuracy: test {P} of # documents, dev # % \(best while training\)\.", _scored),
    (r"strength dev F1 flat shuffled cost \[# %\] buys \[# %\]", lambda s, m: [95, 95]),
    (r"# # # #(?: # \[.*\] # \[.*\])?(?: kept)?",
     lambda s, m: [None] * m[0].count("#")),  # see `check_strengths`
    (r"All in points of dev F1 .* F1 at # minus F1 here; .* at #\.", lambda s, m: [0, 0]),
    (r"No strength that costs at most # points .*; # was kept, .*|No strength is cheap enough: "
     r".*|tying at # (?:costs|gains) # .* points of reliance .*\.", _kept),
    (r"No other one that costs at most # points buys more\.", _no_other),
    (r"With # dev documents .*; more dev documents would tell strengths apart\.", _doubt),
    (r"\S+ own tying:# is left out: .*", lambda s, m: [1]),
]  # fmt: skip


def _lexicon(said: Said) -> Lexicon:
    documents = [one for split in said.data.splits.values() for one in split]
    return Lexicon(said.plain, documents, said.option("--lexicon") or "")


def _thirds(said: Said, match: Match) -> Expected:
    thirds = _lexicon(said).thirds
    found: list[float | Told] = []
    for words in thirds:
        values = words["mean"].to_numpy()
        found.append(percentile(weighted_mean(values), list(words.index)))
    return [*found, sum(map(len, thirds))]


def _heads(said: Said, match: Match) -> Expected:
    """How many heads are above chance, and how far the largest leads: beyond luck or not."""
    found: list[float | Told] = []
    for kind, leads in re.findall(
        r"ords rated ([a-z ]+): # of # heads give .*? does, (?:yet|and) (one|none) ", match.string
    ):
        held, chance, names = _lexicon(said).held(kind)
        drawn_weights = drawn(names).astype(float)
        above = [
            weighted_mean(h)(drawn_weights) - weighted_mean(chance)(drawn_weights) for h in held.T
        ]
        lead = percentile(leading(held), names)
        found += [sum(np.nanquantile(one, 0.025) > 0 for one in above), held.shape[1], lead]
        kept = ~np.isnan(held[:, 0])
        kind_of = {"high": "v.pos", "low": "v.neg", "high or low": "both"}[kind]
        known = [name for name, is_kept in zip(names, kept, strict=True) if is_kept]
        luck = np.quantile(leads_by_luck(held[kept], known, kind_of), 0.95)
        assert (leads == "one") == (lead.low > luck)
    return found


LEXICON: Known = [
    *READ,
    (rf".*words rated low get {E} times an even share of \w+, those between {E}, those rated high "
     rf"{E} \(# words, a third each\)\.", _thirds),
    (r"Words rated [a-z ]+: # of # heads give them more attention than chance does, .*", _heads),
]  # fmt: skip


def check_said(command: Sequence[str], text: str, counted: Counted) -> None:
    """Recomputes every sentence with a number that a command printed, and of the page it wrote."""
    verb = command[1]
    if verb == "compare":
        compared = Compared({Path(one).name: Run(Path(one)) for one in command[2:]}, text)
        check_all(sentences(text), COMPARE, compared)
        rows = [line for lines in map(compared.blocks.get, TESTS) for line in lines or ()]
        check_rows_told(text, rows, lambda other: check_tests(replace(compared, text=other)))
        return
    page = re.search(r"The page: (\S+)/report.html", text)
    kept = re.search(
        r"(?:The run: |What was kept lies in |Next: heedful audit )(\S+?)\.?$", text, re.MULTILINE
    )
    named = page or kept
    words = tuple(command)
    folder = Path(named[1] if named else words[words.index("--model") + 1])
    said = Said(folder, words=words, text=text)
    if verb == "audit":
        keep(said, counted, said.size)
    check_all(sentences(text), known_of(verb), said)
    if verb == "audit":
        shown = (folder / "report.html").read_text()
        check_all(page_sentences(shown), known_of(verb), said)
        check_stops(said, page_sentences(shown))
        check_counts(shown)
    if (folder / "remedy.json").is_file() and verb == "train":
        rows = [one for one in text.splitlines() if re.match(r" +[\d.]+ +[\d.]+ ", one)]
        check_rows_told(text, rows, lambda other: check_strengths(other, said.sweep))


def check_all(said: Sequence[str], known: Known, about: object) -> None:
    """Recomputes every sentence; each number, were it another, would be noticed."""
    check(said, known, about)
    assert unnoticed(said, known, about) == []


def check_rows_told(text: str, rows: Sequence[str], check: Callable[[str], None]) -> None:
    """Checks rows of numbers, as they are and with each number altered."""
    check(text)
    assert rows
    for row in rows:
        for told in NUMBER.finditer(row):
            other = row[: told.start()] + altered(told[0]) + row[told.end() :]
            with pytest.raises(AssertionError):
                check(text.replace(row, other))


def known_of(verb: str) -> Known:
    """The sentences of a command."""
    if verb == "audit":
        return [*AUDIT, *EFFORT, *READ, (rf"accuracy, prior (\w+).*: {P} of #", _prior), (
            r"Audit more documents, .*: all # that there are were audited, .*",
            lambda r, m: [r.documents])]  # fmt: skip
    return {"explain": EXPLAIN, "train": TRAIN, "compare": COMPARE, "lexicon": LEXICON}[verb]


def _prior(run: Run, match: Match) -> Expected:
    told = run.record["audited"]["priors"][match[1]]
    return [*(100 * told[end] for end in ("value", "low", "high")), told["n"]]
