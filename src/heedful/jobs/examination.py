"""Put a model to every test, document by document: the rows an audit is judged from."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
import torch

from heedful.audits import AUDITS
from heedful.audits.examination import Portion, examine, joined, looked_at, readings
from heedful.corpora import Encoded, EncodedCorpus
from heedful.corpora.batches import groups
from heedful.corpora.samples import Rows, drawn, subset
from heedful.importance import Importance, sentence_of
from heedful.jobs.audited_attention import audited_attention
from heedful.jobs.decider import Decider
from heedful.jobs.instances import choose, describe
from heedful.models import AttentiveModel, Reading
from heedful.models.huggingface import PretrainedClassifier
from heedful.runs import TABLE, TABLES, fingerprint, step
from heedful.runs.kept_tables import KeptTables
from heedful.runs.progress import Ticker, ticking
from heedful.runs.randomness import key
from heedful.runs.steps import is_done

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

    def rows(self, work: Path, inputs: Mapping[str, Any], show: bool) -> dict[str, pd.DataFrame]:
        """The rows of every audit and the importances, in shards; finished ones are read.

        `inputs` is everything that they depend on. Which documents are read side by side is fixed
        by these; how many of such batches make up a shard is a matter of time alone.
        """
        whole = {
            name: self.whole_rows(name, work, inputs, show)
            for name in self.applicable()
            if AUDITS[name].whole
        }
        batches = self._batches()
        held = [[self.documents.names[row] for row in batch.rows] for batch in batches]
        inputs = {**inputs, BATCHES: fingerprint({"names": held})}
        parts: dict[str, list[pd.DataFrame]] = {n: [] for n in (*self._by_batch, IMPORTANCE)}
        start = skipped = 0
        with ticking("auditing", len(self.chosen), show=show) as ticker:
            while start < len(batches):
                name = f"shard-{start:05d}"
                was_done = is_done(work, name, inputs=inputs, form=TABLES)
                if not was_done:
                    ticker.skip(skipped)
                    skipped = 0
                compute = partial(self._shard, batches, start, ticker)
                tables = step(work, name, compute, inputs=inputs, form=TABLES)
                for audit, found in parts.items():
                    found.append(tables[audit])
                stop = start + len(tables[BATCHES])
                skipped += was_done * sum(len(batch.rows) for batch in batches[start:stop])
                start = stop
        return whole | {name: joined(tables) for name, tables in parts.items()}

    @property
    def _by_batch(self) -> list[str]:
        """The audits that look at one batch at a time."""
        return [name for name in self.applicable() if not AUDITS[name].whole]

    def whole_rows(
        self, name: str, work: Path, inputs: Mapping[str, Any], show: bool
    ) -> pd.DataFrame:
        """The rows of an audit that sets texts against each other; finished parts are read.

        Of a part that was begun, what the model answered is kept about every 15 s.
        """
        audit, some = AUDITS[name], subset(self.documents, self._looked_at(name))
        assert audit.whole is not None
        ask = partial(audit.whole, self.model, some, self.seed, self.device, self._portion)
        asked, total, unit = {name: ask}, len(some), "documents"
        if audit.parts:
            total, unit = audit.parts(self.model, some, self.device, self._portion), "heads"
            asked = {f"{name}-{part:03d}": partial(ask, part) for part in range(total)}
        kept = [part for part in asked if is_done(work, part, inputs=inputs, form=TABLE)]
        found, show = [], show and len(kept) < len(asked)
        read = 0
        with ticking(audit.title.lower(), total, unit, show=show) as ticker:

            def told(count: int) -> None:
                nonlocal read
                read += count
                ticker.remark(f"({read:,} altered texts read)")

            ticker.skip(len(kept))
            for part, compute in asked.items():
                keep = KeptTables(work, f"{part}-answers", inputs, SHARD_SECONDS, told)
                if part not in kept and keep.rows:
                    ticker.say(f"{ticker.label}: {keep.rows:,} altered texts were read before.")
                compute = partial(compute, keep=keep)
                found.append(step(work, part, compute, inputs=inputs, form=TABLE))
                if part not in kept:
                    ticker.advance(total // len(asked))
        return joined(found)

    def instances(self, rows: Mapping[str, pd.DataFrame], show: bool = False) -> dict[str, Any]:
        """What the page shows of single documents; `rows` are those of `rows`."""
        every = self.documents.names
        tags = choose(rows, [every[row] for row in self.chosen], SHOWN, self.seed)
        picked = np.array([row for row in self.chosen if every[row] in tags])
        described: list[dict[str, Any]] = []
        shown = subset(self.documents, picked)
        said = rows[IMPORTANCE].set_index("instance")
        with ticking("showing", len(picked), show=show) as ticker:
            for reading in readings(self.model, shown, self.device, self._portion):
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
            "instances": described,
        }

    def _batches(self) -> list[_Batch]:
        """Documents of similar length that the same audits look at, in an order drawn by key."""
        names, portion = self._by_batch, self._portion
        among = {name: self._looked_at(name) for name in names}
        found = [
            _Batch(rows[group], asked)
            for rows, asked in looked_at(self.chosen, (*names, IMPORTANCE), among)
            for group in groups(
                subset(self.documents, rows), portion.documents, max_tokens=portion.tokens
            )
        ]
        # Not by length, so that the first batches tell how long all will take.
        every = self.documents.names
        return sorted(found, key=lambda batch: key(self.seed, "batch", every[batch.rows[0]]))

    def _shard(
        self, batches: Sequence[_Batch], start: int, ticker: Ticker
    ) -> dict[str, pd.DataFrame]:
        """As many batches as fit the time; the first shard is one."""
        functions = {name: AUDITS[name].rows for name in self._by_batch}
        functions[IMPORTANCE] = _importance_rows
        parts: dict[str, list[pd.DataFrame]] = {name: [] for name in functions}
        started, stop = time.monotonic(), start
        for batch in batches[start:]:
            found = examine(
                self.model,
                subset(self.documents, batch.rows),
                {name: functions[name] for name in batch.audits},
                self.methods,
                seed=self.seed,
                device=self.device,
                at_once=Portion(len(batch.rows), None),
            )
            for name, table in found.items():
                parts[name].append(table)
            stop += 1
            ticker.advance(len(batch.rows))
            if not start or time.monotonic() - started > SHARD_SECONDS:
                break
        tables = {name: joined(found) for name, found in parts.items()}
        return tables | {BATCHES: pd.DataFrame({"batch": range(start, stop)})}

    def _looked_at(self, name: str) -> Rows:
        """The documents that an audit is for: all, or those a smaller audit would have drawn."""
        most = AUDITS[name].most
        if not 0 < most < len(self.chosen):
            return self.chosen
        return drawn(self.documents.names, self.chosen, most, self.seed)

    @property
    def _portion(self) -> Portion:
        """A model that needs more memory for a token says how many it takes."""
        usual = Portion()
        return usual._replace(tokens=getattr(self.model, "batch_tokens", usual.tokens))


class _Batch(NamedTuple):
    """Documents that are read side by side, and what is asked about them."""

    rows: Rows
    audits: tuple[str, ...]


def _importance_rows(
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
