"""Put a model to every test, document by document: the rows an audit is judged from."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
import torch

from heedful.audits import AUDITS, Finding
from heedful.audits.effort import (
    ALL,
    EXHAUSTIVE,
    MOST_ASKED,
    MOST_READ,
    NAMED_FIRST,
    TIME_UP,
    Effort,
    Stop,
)
from heedful.audits.examination import Portion, examine, joined, looked_at, readings
from heedful.audits.finding import RowsOf
from heedful.audits.ranking import named_in, rank
from heedful.audits.verdict import AUDIT as EXCHANGE
from heedful.corpora import Encoded, EncodedCorpus
from heedful.corpora.batches import groups
from heedful.corpora.samples import Rows, drawn, subset
from heedful.importance import Importance, sentence_of
from heedful.jobs.audited_attention import audited_attention
from heedful.jobs.decider import Decider
from heedful.jobs.instances import choose, describe
from heedful.models import AttentiveModel, Reading
from heedful.models.huggingface import PretrainedClassifier
from heedful.runs import TABLES, fingerprint, step
from heedful.runs.kept_tables import COST, ROWS, KeptTables
from heedful.runs.memory import halving
from heedful.runs.meter import metering, spent_on
from heedful.runs.progress import Ticker, ticking
from heedful.runs.randomness import key
from heedful.runs.steps import is_done
from heedful.statistics.level import among_looks

SHARD_SECONDS = 15.0
"""Batches whose rows are kept together took about so long; a killed audit loses no more."""
IMPORTANCE = "importance"
"""The table of what every method said of every document."""
BATCHES = "batches"
"""The table that says which batches a shard holds."""
SHOWN = 200
"""Instances on the page."""
FLOWS = 40
"""Instances on the page whose attention through the layers is drawn, where there are layers."""


@dataclass(frozen=True)
class Examination:
    """One model, the documents that it reads and the audits that look on."""

    model: Decider
    corpus: EncodedCorpus
    split: str
    chosen: Rows
    """The documents of the split that are audited."""
    audits: Sequence[str]
    methods: Sequence[str]
    seed: int
    device: torch.device
    effort: Effort = EXHAUSTIVE

    @property
    def documents(self) -> Encoded:
        """All documents of the split, audited or not."""
        return self.corpus.splits[self.split]

    def applicable(self) -> list[str]:
        """The audits whose needs the corpus meets."""
        has = {
            "labels": bool((self.documents.labels >= 0).any()),
            "evidence": self.documents.evidence is not None,
            "heads": isinstance(self.model, PretrainedClassifier),
            "alignment": False,  # of translators' readings: see audits.alignment.with_links
        }
        return [name for name in self.audits if all(has[need] for need in AUDITS[name].needs)]

    def look(self, work: Path, inputs: Mapping[str, Any], show: bool) -> Looked:
        """What every audit saw, and the importances, in shards; finished ones are read.

        `inputs` is everything that they depend on. Which documents are read side by side is fixed
        by these; how many of such batches make up a shard is a matter of time alone.
        """
        found = Looked({}, {}, [])
        applicable, is_whole = self.applicable(), self.effort.level == "exhaustive"
        later = [n for n in applicable if AUDITS[n].of_named and not is_whole]
        whole = [n for n in applicable if AUDITS[n].whole]
        for name in whole[:1]:
            found.add(self._whole(name, work, inputs, show))
        read = [n for n in applicable if AUDITS[n].is_of_readings and not is_whole]
        first = [n for n in applicable if n not in (*later, *whole, *read)]
        if read:
            unexplained, most = replace(self, methods=()), min(MOST_READ, len(self.chosen))
            asked = {**inputs, "methods": []}
            found.add(unexplained._stage(read, (most,), "read", work, asked, show))
        if first or self.methods:
            looks = self.effort.looks(len(self.chosen))
            found.add(self._stage((*first, IMPORTANCE), looks, "shard", work, inputs, show))
        else:  # the word alone: no document is explained, and none is shown
            found.rows[IMPORTANCE] = pd.DataFrame({"instance": []})
        if later:
            ranked = rank({name: summarised(name, found) for name in first})
            named = replace(self, methods=named_in(ranked, self.methods))
            most = min(AUDITS[later[0]].most or len(self.chosen), len(self.chosen))
            looks = self.effort.looks(most, NAMED_FIRST)
            asked = {**inputs, "methods": list(named.methods)}
            found.add(named._stage(later, looks, "named", work, asked, show))
        for name in whole[1:]:
            found.add(self._whole(name, work, inputs, show))
        return found

    def _whole(self, name: str, work: Path, inputs: Mapping[str, Any], show: bool) -> Looked:
        """What an audit saw that sets texts against each other."""
        count, of = len(self.looked_at_by(name)), len(self.chosen)
        if self.effort.is_over and name != EXCHANGE:
            return Looked({name: pd.DataFrame({"instance": []})}, {name: Stop(0, of, TIME_UP)}, [])
        rows, cost = self.whole_rows(name, work, inputs, show)
        why = ALL if count == of else MOST_ASKED
        return Looked({name: rows}, {name: Stop(count, of, why)}, [cost])

    def _stage(
        self,
        names: Sequence[str],
        looks: tuple[int, ...],
        tag: str,
        work: Path,
        inputs: Mapping[str, Any],
        show: bool,
    ) -> Looked:
        """What audits of single documents saw, look by look, until it is settled."""
        found, stop, done = Looked({}, {}, []), None, 0
        order = self.chosen
        if len(looks) > 1 or looks[0] < len(order):
            order = drawn(self.documents.names, order, looks[-1], self.seed)
        started, of = time.monotonic(), len(self.chosen)
        # A stage beside the main one bears the names of its audits: each counts from 0.
        titles = ", ".join(AUDITS[name].title.lower() for name in names if name in AUDITS)
        label = "auditing" if IMPORTANCE in names else titles
        with ticking(label, looks[-1], show=show) as ticker:
            if len(looks) > 1:
                ticker.note = f"(sooner if {looks[0]:,} documents settle it)"
            for number, count in enumerate(looks):
                prefix = f"{tag}-{number}" if number else tag
                batches = self._batches(order[done:count], names)
                done = count
                found.add(Looked(*self._shards(batches, names, prefix, work, inputs, ticker)))
                seconds = time.monotonic() - started
                settled = number + 1 < len(looks) and self._are_settled(found, names, len(looks))
                stop = self.effort.stop(looks, number, of, settled, seconds)
                if stop is not None:
                    break
        assert stop is not None
        seen = set(order[:done].tolist())
        for name in names:
            if name in AUDITS:
                count = len(seen & set(self.looked_at_by(name).tolist()))
                why = stop.why if count == done else MOST_ASKED
                found.stops[name] = Stop(count, of, why, stop.looks)
        return found

    def _are_settled(self, found: Looked, names: Sequence[str], looks: int) -> bool:
        """Whether what was seen so far settles what the audits are for."""
        asked = [(name, AUDITS[name].settled) for name in names if name in AUDITS]
        rules = [(name, rule) for name, rule in asked if rule is not None]
        return bool(rules) and all(rule(found.finding(name, looks)) for name, rule in rules)

    def _shards(
        self,
        batches: Sequence[_Batch],
        names: Sequence[str],
        prefix: str,
        work: Path,
        inputs: Mapping[str, Any],
        ticker: Ticker,
    ) -> tuple[dict[str, pd.DataFrame], dict[str, Stop], list[pd.DataFrame]]:
        """The rows of some batches, and what they cost."""
        held = [[self.documents.names[row] for row in batch.rows] for batch in batches]
        inputs = {**inputs, BATCHES: fingerprint({"names": held})}
        parts: dict[str, list[pd.DataFrame]] = {name: [] for name in (*names, COST)}
        start = skipped = 0
        while start < len(batches):
            name = f"{prefix}-{start:05d}"
            was_done = is_done(work, name, inputs=inputs, form=TABLES)
            if not was_done:
                ticker.skip(skipped)
                skipped = 0
            compute = partial(self._shard, batches, names, start, ticker)
            tables = step(work, name, compute, inputs=inputs, form=TABLES)
            for audit, found in parts.items():
                found.append(tables[audit])
            stop = start + len(tables[BATCHES])
            skipped += was_done * sum(len(batch.rows) for batch in batches[start:stop])
            start = stop
        ticker.skip(skipped)
        cost = parts.pop(COST)
        return {name: joined(tables) for name, tables in parts.items()}, {}, cost

    def whole_rows(
        self, name: str, work: Path, inputs: Mapping[str, Any], show: bool
    ) -> tuple[pd.DataFrame, pd.DataFrame]:
        """The rows of an audit that sets texts against each other, and what they cost.

        Finished parts are read; of a part that was begun, what the model answered is kept about
        every 15 s.
        """
        audit, some = AUDITS[name], subset(self.documents, self.looked_at_by(name))
        assert audit.whole is not None
        ask = partial(audit.whole, self.model, some, self.seed, self.device, self.portion)
        asked, total, unit = {name: ask}, len(some), "documents"
        if audit.parts:
            total, unit = audit.parts(self.model, some, self.device, self.portion), "heads"
            asked = {f"{name}-{part:03d}": partial(ask, part) for part in range(total)}
        kept = [part for part in asked if is_done(work, part, inputs=inputs, form=TABLES)]
        found, show = [], show and len(kept) < len(asked)
        read = 0
        with ticking(audit.title.lower(), total, unit, show=show) as ticker:

            def told(count: int) -> None:
                nonlocal read
                read += count
                ticker.remark(f"({read:,} altered texts read)")

            ticker.skip(len(kept))
            for part, answer in asked.items():
                keep = KeptTables(work, f"{part}-answers", inputs, SHARD_SECONDS, told)
                if part not in kept and keep.rows:
                    ticker.say(f"{ticker.label}: {keep.rows:,} altered texts were read before.")
                metered = partial(_metered, name, partial(answer, keep=keep))
                found.append(step(work, part, metered, inputs=inputs, form=TABLES))
                if part not in kept:
                    ticker.advance(total // len(asked))
        return joined([one[ROWS] for one in found]), joined([one[COST] for one in found])

    def instances(self, rows: Mapping[str, pd.DataFrame], show: bool = False) -> dict[str, Any]:
        """What the page shows of single documents; `rows` are those of `rows`."""
        every = self.documents.names
        said = rows[IMPORTANCE].set_index("instance")
        looked = [every[row] for row in self.chosen if every[row] in said.index]
        tags = choose(rows, looked, SHOWN, self.seed)
        picked = np.array([row for row in self.chosen if every[row] in tags])
        described: list[dict[str, Any]] = []
        shown = subset(self.documents, picked)
        with ticking("showing", len(picked), show=show) as ticker:
            for reading in readings(self.model, shown, self.device, self.portion):
                importance = _importance_again(said, self.methods, reading)
                described += describe(self.model, reading, importance, tags)
                ticker.advance(len(reading.names))
        order = {name: position for position, name in enumerate(tags)}
        described.sort(key=lambda entry: order[entry["id"]])
        for entry in described[FLOWS:]:  # a page holds the flow of the first few
            entry.pop("flow", None)
        return {
            "classes": list(self.model.classes),
            "methods": [{"name": n, "sentence": sentence_of(n)} for n in self.methods],
            "linear": all("unit_logits" in entry for entry in described),
            "audited": audited_attention(self.model)._asdict(),
            "documents": len(self.chosen),
            "explained": len(said.index.unique()),
            "instances": described,
        }

    def _batches(self, documents: Rows, names: Sequence[str]) -> list[_Batch]:
        """Documents of similar length that the same audits look at, in an order drawn by key."""
        at_once = self.portion
        among = {name: self.looked_at_by(name) for name in names if name in AUDITS}
        found = [
            _Batch(rows[group], asked)
            for rows, asked in looked_at(documents, names, among)
            for group in groups(
                subset(self.documents, rows), at_once.documents, max_tokens=at_once.tokens
            )
        ]
        # Not by length, so that the first batches tell how long all will take.
        every = self.documents.names
        return sorted(found, key=lambda batch: key(self.seed, "batch", every[batch.rows[0]]))

    def _shard(
        self, batches: Sequence[_Batch], names: Sequence[str], start: int, ticker: Ticker
    ) -> dict[str, pd.DataFrame]:
        """As many batches as fit the time; the first shard is one."""
        functions = {
            name: AUDITS[name].rows if name in AUDITS else importance_rows for name in names
        }
        costs: list[pd.DataFrame] = []
        parts: dict[str, list[pd.DataFrame]] = {name: [] for name in functions}
        started, stop = time.monotonic(), start
        for batch in batches[start:]:
            ask = partial(self._examined, {name: functions[name] for name in batch.audits})
            with metering() as meter:
                found = halving(ask, batch.rows, _below)
            costs.append(meter.table())
            for name, table in found.items():
                parts[name].append(table)
            stop += 1
            ticker.advance(len(batch.rows))
            if not start or time.monotonic() - started > SHARD_SECONDS:
                break
        tables = {name: joined(found) for name, found in parts.items()}
        tables |= {COST: joined(costs)}
        return tables | {BATCHES: pd.DataFrame({"batch": range(start, stop)})}

    def _examined(self, functions: Mapping[str, RowsOf], rows: Rows) -> dict[str, pd.DataFrame]:
        """What some audits see of some documents, read side by side."""
        return examine(
            self.model,
            subset(self.documents, rows),
            functions,
            self.methods,
            seed=self.seed,
            device=self.device,
            at_once=Portion(len(rows), None),
        )

    def looked_at_by(self, name: str) -> Rows:
        """The documents that an audit is for: all, or those a smaller audit would have drawn."""
        most = AUDITS[name].most
        if not 0 < most < len(self.chosen):
            return self.chosen
        return drawn(self.documents.names, self.chosen, most, self.seed)

    @property
    def portion(self) -> Portion:
        """A model that needs more memory for a token says how many it takes."""
        usual = Portion()
        return usual._replace(tokens=getattr(self.model, "batch_tokens", usual.tokens))


@dataclass(frozen=True)
class Looked:
    """What audits saw of how many documents."""

    rows: dict[str, pd.DataFrame]
    """Of every audit, and the importances."""
    stops: dict[str, Stop]
    cost: list[pd.DataFrame]
    """Tables of tokens that were read (`runs.meter`)."""
    found: dict[tuple[str, int, int], Finding] = field(default_factory=dict)
    """What an audit found of so many rows, with its intervals shared out among so many looks."""

    def add(self, other: Looked) -> None:
        """Takes in what was seen of other documents, or by other audits."""
        for name, table in other.rows.items():
            self.rows[name] = joined([self.rows[name], table]) if name in self.rows else table
        self.stops.update(other.stops)
        self.cost.extend(other.cost)
        self.found.update(other.found)

    def finding(self, name: str, looks: int) -> Finding:
        """What an audit found, reckoned once."""
        rows = self.rows[name]
        known = name, looks, len(rows)
        if known not in self.found:
            with among_looks(looks):
                self.found[known] = AUDITS[name].summarise(rows)
        return self.found[known]


def summarised(name: str, looked: Looked) -> Finding:
    """What an audit found, with how many documents it looked at where these are not all."""
    stop = looked.stops[name]
    found = looked.finding(name, stop.looks)
    return found if stop.why == ALL else replace(found, notes=(stop.sentence(), *found.notes))


def _metered(name: str, compute: Callable[[], pd.DataFrame]) -> dict[str, pd.DataFrame]:
    """The rows that are computed for an audit, and what they cost."""
    with spent_on(name), metering() as meter:
        rows = compute()
    return {ROWS: rows, COST: meter.table()}


def _below(parts: Sequence[Mapping[str, pd.DataFrame]]) -> dict[str, pd.DataFrame]:
    """The tables of several parts below each other, by name."""
    return {name: joined([part[name] for part in parts]) for name in parts[0]}


class _Batch(NamedTuple):
    """Documents that are read side by side, and what is asked about them."""

    rows: Rows
    audits: tuple[str, ...]


def importance_rows(
    model: AttentiveModel, reading: Reading, importance: Importance, seed: int
) -> pd.DataFrame:
    """What every method says of the units of each document, kept for the page."""
    found: dict[str, list[Any]] = {"instance": list(reading.names)}
    units = reading.units.tolist()
    for name, scores in importance.items():
        rows = scores.detach().cpu().double().numpy()
        found[name] = [row[:count] for row, count in zip(rows, units, strict=True)]
    return pd.DataFrame(found)


def _importance_again(
    said: pd.DataFrame, methods: Sequence[str], reading: Reading
) -> dict[str, torch.Tensor]:
    """The same as tensors over the units of a reading."""
    found = {}
    for name in methods:
        rows = np.zeros(reading.mask.shape)
        for place, instance in enumerate(reading.names):
            values: Any = said.at[instance, name]
            rows[place, : len(values)] = values
        found[name] = torch.from_numpy(rows)
    return found
