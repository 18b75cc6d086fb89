"""What the numbers of an audit's sentences must be, from its rows; `#` stands for a number."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping

import numpy as np
import pandas as pd
import pytest

import heedful
from heedful.audits.verdict import calibration
from tests.docs.exchange_again import shares
from tests.docs.intervals_again import Told, average, gap, rank_correlation, resampled, share
from tests.docs.passes_counted import cost
from tests.docs.sentences import Expected, Known, Run, numbers_of

E = r"#(?: \[#, #\])?"
"""An estimate."""
P = r"# %(?: \[#, #\])?"
"""An estimate in per cent."""
ABOVE = rf"\({E} above a random order\)"
Match = re.Match[str]
Rule = Callable[[Run, Match], Expected]


def _of(audit: str) -> Callable[[Rule], Rule]:
    """A rule whose intervals are as sure as those of an audit."""

    def found(rule: Rule) -> Rule:
        def leveled(run: Run, match: Match) -> Expected:
            with run.level(audit):
                return rule(run, match)

        return leveled

    return found


def _accuracy(run: Run, match: Match) -> Expected:
    found: list[float | Told | None] = [run.right().times(), run.right().n]
    for name in re.findall(r"prior (\w+)", match[0]):
        told = run.record["audited"]["priors"][name]
        found += [*(100 * told[end] for end in ("value", "low", "high")), told["n"]]
    if "dev" in match[0]:
        found.append(100 * run.record["best_dev"])
    return found


def _outside(run: Run, match: Match) -> Expected:
    rows = run.rows("concentration").set_index("instance")
    names = ["outside"] + (["first"] if "the first token" in match[0] else [])
    return [average(rows[name]).times() for name in names]


def _concentration(run: Run, match: Match) -> Expected:
    rows = run.rows("concentration").set_index("instance")
    of_all = rows["effective_units"] / rows["units"]
    rest = [average(values).times() for values in (of_all, rows["largest_weight"])]
    return [float(rows["effective_units"].mean()), *rest]


def _ranking(run: Run, match: Match) -> Expected:
    return [len(run.better), len(run.ranked), len(run.deleted["faithfulness"])]


def _standing(run: Run, match: Match) -> Expected:
    worth = run.deleted["faithfulness"].mean()
    assert worth[match[1]] == pytest.approx(worth[run.ranked[0]])
    return [run.places("attention"), run.beyond("attention"), run.beyond(match[1])]


def _place(run: Run, match: Match) -> Expected:
    method = match[1]
    if method == "random":
        return [run.worth(method)]
    return [run.places(method), run.beyond(method), run.worth(method)]


def _costs(run: Run, match: Match) -> Expected:
    lost, worth = (run.deleted[name].mean() for name in ("comprehensiveness", "faithfulness"))
    assert worth[match[1]] == pytest.approx(worth[run.ranked[0]])
    return [100 * lost[match[1]], *([100 * lost["attention"]] if "those of" in match[0] else [])]


@_of("input-erasure")
def _deleting(run: Run, match: Match) -> Expected:
    lost = run.deleted["comprehensiveness"]
    if match[1]:
        assert lost[match[1]].mean() == pytest.approx(lost.mean().max())
    named = ["attention", "random", *([match[1]] if match[1] else [])]
    return [average(lost[name], -1).times() for name in named]


def _adding_up(run: Run, match: Match) -> Expected:
    off = run.rows("input-erasure").groupby("instance")["missing"].max().dropna()
    return [0.01, int((off <= 0.01).sum()), len(off), float(f"{off.max():.2g}")]


@_of("substitution")
def _shuffling(run: Run, match: Match) -> Expected:
    rows = run.rows("substitution").set_index("instance")
    decided = pd.get_dummies(rows["decision"]).to_numpy(dtype=float)

    def anew(weights: np.ndarray) -> np.ndarray:
        return np.asarray(1 - ((weights @ decided / weights.sum(1)[:, None]) ** 2).sum(1))

    return [average(rows["permuted_changes"]).times(), resampled(anew, list(rows.index)).times()]


@_of("substitution")
def _uniform(run: Run, match: Match) -> Expected:
    rows = run.rows("substitution")
    flat = int((rows["uniform"] != rows["decision"]).sum())
    return [share(n, len(rows)).times() for n in (flat, int(rows["flippable"].sum()))]


def _accuracies(run: Run, match: Match) -> Expected:
    rows = run.rows("substitution")
    rows = rows[rows["label"] >= 0]
    gold = rows["label"].to_numpy()
    shuffled = np.stack(list(rows["permuted"])) == gold[:, None]
    flat = rows["uniform"] == gold
    right = (rows["decision"] == gold).mean()
    return [100 * float(v) for v in (right, flat.mean(), shuffled.mean())]


@_of("erasure")
def _removed(run: Run, match: Match) -> Expected:
    rows = run.rows("erasure")
    rows = rows.assign(part=rows["fraction"].where(rows["removed"] >= 0, 1.0))
    table = rows.pivot(index="instance", columns="ranking", values="part").astype(float)
    named = ["attention", "random", *(["greedy"] if "best order" in match[0] else [])]
    return [average(table[name]).times() for name in named]


def _counts(column: str) -> object:
    def counts(run: Run, match: Match) -> Expected:
        rows = run.rows("erasure")
        kept = rows[rows["removed"] < 0] if column == "never" else rows[rows["at_end"]]
        by_ranking = kept.groupby("ranking").size()
        named = re.findall(r"([\w-]+) #(?=[,.;])", match[0].partition(": ")[2])
        assert sorted(named) == sorted(by_ranking.index)
        more = [1] if column == "never" else []
        return [rows["instance"].nunique(), *(int(by_ranking[name]) for name in named), *more]

    return counts


@_of("single-erasure")
def _one_removed(run: Run, match: Match) -> Expected:
    rows = run.rows("single-erasure")
    rows = rows[rows["ranking"] == "attention"]
    flips = (int(rows[name].sum()) for name in ("top_flips", "other_flips"))
    return [share(hits, len(rows)).times() for hits in flips]


@_of("violation")
def _belied(run: Run, match: Match) -> Expected:
    table = run.table("violation", "violated")
    named = ["attention", "random", *([match[2]] if match[2] else [])]
    if match[2]:
        assert table[match[2]].mean() == pytest.approx(table.mean().min())
    beside = gap(table["attention"], table["random"], 1).side(0)
    words = {"above": "more often than", "below": "less often than"}
    assert match[1] == words.get(beside, "not clearly more or less often than")
    return [average(table[name]).times() for name in named]


@_of("randomisation")
def _anew(run: Run, match: Match) -> Expected:
    rows = run.rows("randomisation")
    rows = rows[rows["step"] == rows["step"].max()]
    table = rows.pivot(index="instance", columns="ranking", values="tau")
    kept = {name: average(table[name], -1) for name in table if name != "random"}
    found: list[float | Told | None] = [kept["attention"], 1, 0]
    blind = {name for name, one in kept.items() if one.low > 0.5}
    if "much the same" in match[0]:
        assert set(match[1].split(", ")) == blind
    elif "most is kept by" in match[0]:
        assert not blind
        most = max(np.nan_to_num(one.value, nan=-2) for one in kept.values())
        assert kept[match[2]].value == pytest.approx(most)
        found.append(kept[match[2]])
    return found


@_of("adversary")
def _moved(run: Run, match: Match) -> Expected:
    rows = run.rows("adversary")
    rows = rows[(rows["units"] > 1) & rows["exact_jsd"].notna()]
    far = int((rows["exact_jsd"] >= 0.9 * rows["largest_jsd"]).sum())
    distance = float(rows["exact_jsd"].mean())
    return [share(far, len(rows)).times(), 0.01, distance, float(np.log(2))]


def _searched(run: Run, match: Match) -> Expected:
    rows = run.rows("adversary")
    return [int(rows["is_searched"].sum()), int((rows["units"] > 1).sum())]


def _alone(run: Run, match: Match) -> Expected:
    rows = run.rows("confidence").set_index("instance")
    return [average(rows["confidence"]).times(), average(rows["agreeing"]).times(), 100]


@_of("agreement")
def _agreeing(run: Run, match: Match) -> Expected:
    rows = run.rows("agreement")
    is_ours = (rows["first"] == "attention") | (rows["second"] == "attention")
    rows = rows[is_ours]
    other = rows["second"].where(rows["first"] == "attention", rows["first"])
    table = rows.assign(other=other).pivot(index="instance", columns="other", values="tau")
    taus = table.mean().drop("random")
    assert (taus[match[1]], taus[match[2]]) == pytest.approx((taus.max(), taus.min()))
    return [average(table[name], -1) for name in (match[1], match[2], "random")]


def _words(run: Run, match: Match) -> Expected:
    words = run.rows("words")
    words = words[words["times"] >= 3].sort_values("times", ascending=False, kind="stable")
    size = words["polarity"].abs()
    return [rank_correlation(size.to_numpy(), words["score"].to_numpy(), list(words["word"]))]


def _frequent(run: Run, match: Match) -> Expected:
    words = run.rows("words")
    return [int((words["times"] >= 3).sum()), len(words), 3]


def _level(run: Run, match: Match) -> Expected:
    rows = run.rows("randomisation")
    return [int(rows.groupby("instance")["tau"].apply(lambda tau: tau.isna().any()).sum()),
            rows["instance"].nunique()]  # fmt: skip


def _heads(run: Run, match: Match) -> Expected:
    rows = run.rows("single-heads")
    found = {int(head): shares(some).every for head, some in rows.groupby("head")}
    most = max(one.value for one in found.values())
    best = [head for head, one in found.items() if one.value == most]
    named = [] if len(best) == len(found) > 1 else best
    return [len(found), *named, found[best[0]].times(), rows["instance"].nunique()]


def _test(place: int) -> object:
    def test(run: Run, match: Match) -> Expected:
        found = shares(run.rows("exchange"))[1 + place].times()
        at = borders()
        if "supports from" in match[0]:
            return [found.value, 100 * at["yes"], 100 * at["no"], found]
        return [found]

    return test


def borders() -> Mapping[str, float]:
    """Of the verdict."""
    kept = calibration()
    assert kept is not None
    return {side: float(kept["borders"][side]["value"]) for side in ("yes", "no")}


def _calibrated(run: Run, match: Match) -> Expected:
    """Each third: how often the word was right (steps of a dial are one), and wrongly yes."""
    kept, found = calibration(), list[float | Told | None]()
    assert kept is not None
    table = pd.DataFrame(kept["table"]["rows"], columns=kept["table"]["columns"])
    for part in re.findall(r"(\w+): right on", match[0]):
        one = kept["scores"][part.lower()]["right"]
        ends = share(round(one["value"] * one["n"]), one["n"])
        rows = table[table["kind of mechanism"].str.endswith(f"({part.lower()})")]
        wrongly = rows[rows["right word"].isin(["no", "cannot tell"])]["yes"].sum()
        found += [100 * one["value"], 100 * ends.low, 100 * ends.high, one["n"], int(wrongly)]
    return found


def _exchanged(run: Run, match: Match) -> Expected:
    _, *each = shares(run.rows("exchange"))
    return [one.times() for one in each if not np.isnan(one.value)]


def _texts(run: Run, match: Match) -> Expected:
    rows = run.rows("exchange")
    return [len(rows), float(rows["passes"].mean())]


def _rare(run: Run, match: Match) -> Expected:
    decided = run.rows("exchange")["decided"].value_counts()
    assert decided.idxmin() == match[1]
    return [int(decided.min())]


def _at_chance(run: Run, match: Match) -> Expected:
    rows = run.rows("exchange")
    rows = rows[rows["label"] != ""]
    common = rows["label"].value_counts()
    assert common[match[1]] == common.max()
    right = share(int((rows["decided"] == rows["label"]).sum()), len(rows))
    return [right.times(), 100 * common.max() / len(rows)]


def _shown(run: Run, match: Match) -> Expected:
    assert run.documents > 200
    return [200, run.documents]


def _of_all(run: Run, match: Match) -> Expected:
    return [run.audited, run.record["audited"]["of"], *([0] if "--documents" in match[0] else [])]


def _made_by(run: Run, match: Match) -> Expected:
    day = str(run.record["created"])[:10]
    return numbers_of(f"Made by heedful {heedful.__version__} on {day}.")


AUDIT: Known = [
    (r"This audit cost as much as reading its # documents # times forward and # times backward "
     r"\(most of it: [a-z-]+.*\)\.?", cost),
    (r"All three tests hold at once in # % of the texts\.",
     lambda r, m: [100 * shares(r.rows("exchange")).every.value]),
    (r"(?:[\w, ]+ The decision goes with the words shown )?Put into texts that were decided "
     r"otherwise, .* in # % of the texts.*", _test(0)),
    (r"(?:[\w, ]+ Most of .* matter )?Where they do, most of the attention lies on words that "
     r"the decision needs in # % of the texts\..*", _test(1)),
    (r"(?:[\w, ]+ Their effect .* attention )?Where they do, most of their effect is gone .*in # % "
     r"of the texts\..*", _test(2)),
    (rf"The decision goes with the words shown in {P} of the texts, most of the attention lies on "
     rf"words that matter in (?:{P}|an undefined share) of these, and their effect passes through "
     rf"attention in (?:{P}|an undefined share)\.",
     _exchanged),
    (r"unknown .* could not be measured here\. supports from # % on, contradicts up to # % not "
     r"measured", lambda r, m: [100 * borders()["yes"], 100 * borders()["no"]]),
    (r"Yes if all of this holds in at least # % of the texts.*, no if in at most # %, partly .*",
     lambda r, m: [100 * borders()["yes"], 100 * borders()["no"]]),
    (r"# texts; each was read # times, .*", _texts),
    (rf"The model decides {P} of these texts rightly, where always saying (\w+) would be right in "
     r"# %: .*", _at_chance),
    (r"Only # texts? (?:were|was) decided as (\w+): .*", _rare),
    (r"Open: right on .*; blind: right on .*; opponent: right on .* called yes\.", _calibrated),
    (rf"(?:Of # heads, head # does best|Of # heads, head #(?:, head #)+ do best|All # heads do "
     rf"alike): all three tests hold in {P} of # texts\.", _heads),
    (rf"(?:Accuracy: )?test {P} of # documents(?:, prior \w+ {P} of # documents)*"
     r"(?:, dev # % \(best while training\))?\.?", _accuracy),
    (rf"Of the audited attention {P} lies on what is no word of the text: .*", _outside),
    (rf"On average attention is spread as if over # units, {P} of a text; the largest weight is "
     rf"{P} of all attention\.", _concentration),
    (r"Tests on (?:# of )?# documents:", lambda r, m: [
        *([len(r.rows("exchange"))] if " of " in m[0] else []), r.audited]),
    (r"# of # explanations of this model (?:are|is) better than a random order on # documents: .*",
     _ranking),
    (rf"Attention is number #, .* {ABOVE}, and (?:not clearly )?behind (\S+) {ABOVE}\.", _standing),
    (rf"Attention is the best of them {ABOVE}\.", lambda r, m: [r.beyond(r.ranked[0])]),
    (rf"(?:# )?(?:[▲△·▼?] )?([\w-]+) {E}(?: {E})?", _place),
    (r"Show (\S+) instead of attention: deleting the words it names costs the decision # % of "
     r"probability(, those of attention # %)?.* \(see Deleting words\)\.", _costs),
    (rf"Deleting the words that attention puts first costs the decision {P} of probability on "
     rf"average, deleting random words {P}(?:, and by the best ranking, (\S+), {P})?\.", _deleting),
    (r"Integrated gradients add up to the rise in probability within # on # of # documents, .*",
     _adding_up),
    (r"The top #, #, #, # % of a text's tokens.*", lambda r, m: [5, 10, 20, 50]),
    (rf"Shuffling attention changes {P} of the decisions; if attention decided everything it would "
     rf"be about {P}\.", _shuffling),
    (rf"Uniform attention changes {P}; some attention could change {P}\.", _uniform),
    (r"Accuracy: # % as trained, # % uniform, # % shuffled\.", _accuracies),
    (r"Shuffled attention: # random permutations per document, scores averaged\.",
     lambda r, m: [len(r.rows("substitution")["permuted"].iloc[0])]),
    (rf"Attention had to be removed from {P} of a text, by attention, before the decision changed"
     rf"; in a random order {P}(?:; in the best order found {P})?\.", _removed),
    (r"Decisions that never changed, of # documents: .*; they count as fraction # in .*",
     _counts("never")),
    (r"Decisions that changed only when nothing was left .*, of # documents: .*", _counts("end")),
    (rf"Removing attention to the unit ranked first by attention changed {P} of the decisions, to "
     rf"a random other one {P}: .*", _one_removed),
    (rf"The unit that attention puts first speaks against its claim in {P} of the documents, "
     rf"(.*often than) a random unit does \({P}\)(?:; least often by (\S+), {P})?\.",
     _belied),
    (rf"With all weights drawn anew, attention keeps its order with a Kendall τ of {E} \(#: it "
     rf"never looked at the weights, #: nothing is left\)(?:; (.*) would say much the same of any "
     rf"model|; most is kept by (\S+), {E})?\.", _anew),
    (rf"In (?:at least )?{P} of the documents attention could be moved almost completely and the "
     r"output would change by at most #; the farthest such attention is (?:at least )?# nats away "
     r"on average, of at most #\.", _moved),
    (r"Almost completely: at least # % of the divergence .*", lambda r, m: [90]),
    (r"# of # documents, chosen by key, were also searched by gradient\.", _searched),
    (r"None of the # documents was among the few that the gradient search is given, .*",
     lambda r, m: [int((r.rows("adversary")["units"] > 1).sum())]),
    (rf"Attended alone, a unit gives the decision a probability of {P} on average, and {P} of a "
     r"text's units would decide alike: the nearer to # %, .*", _alone),
    (rf"Attention agrees most with (\S+) \(Kendall τ {E}\) and least with (\S+) \({E}\); with a "
     rf"random order {E}\.", _agreeing),
    (rf"Scores follow the size of polarity with a rank correlation of {E}\.", _words),
    (r"# of # words occur # times or more in \w+ texts\.", _frequent),
    (r"# of # documents have no label and .*", lambda r, m: [
        int((r.rows("substitution")["label"] < 0).sum()), r.documents]),
    (r"# of # documents have units that a method puts all level; no τ there\.", _level),
    (r"# of # rankings are undefined because .*", lambda r, m: [
        int(r.rows("agreement")["tau"].isna().sum()), len(r.rows("agreement"))]),
    (r"# of (?:# documents|the # documents that were explained), chosen to show decisions that "
     r"flip, .*", _shown),
    (r"All # documents\.", lambda r, m: [r.documents]),
    (r"# of # test documents were audited, drawn by the seed; .*", _of_all),
    (r".*takes all #\.(?: Where that is still too few, .*)?",
     lambda r, m: [r.record["audited"]["of"]]),
    (r"(?:Each line shows|Faithfulness: what the decision loses) .*# % interval.*",
     lambda r, m: [95]),
    (r"What .* attention costs, F1 \(below #: a gain\)", lambda r, m: [0]),
    (r"Serrano and Smith #, Table #: .*", lambda r, m: [2019, 2]),
    (r"Tutek and Šnajder #, Table #, .*; theirs is .*", lambda r, m: [2020, 1]),
    (r"Tutek and Šnajder #, Table #, .*; the lower, .*", lambda r, m: [2020, 3]),
    (r"Made by heedful \S+ on .*", _made_by),
]  # fmt: skip
"""Of the terminal and the page of an audit."""
