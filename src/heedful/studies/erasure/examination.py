"""Everything erasing attention says about one model, one small row per document.

See docs/studies/erasure.md, "Measures".

`erase` measures a batch; `Erased` answers questions about all rows. Every question gives one number
per document, nan where the study leaves the document out, so that statistics of several models can
be compared document by document.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
import pandas as pd
import torch
from jaxtyping import Bool, Float64

from heedful.audits import erasure, single_erasure
from heedful.audits.examination import Portion
from heedful.audits.finding import RowsOf
from heedful.audits.rankings import first_flip
from heedful.importance import Importance, explain, methods
from heedful.models.reading import Reading
from heedful.models.verbs import AttentiveModel, curve, ranked

RANKINGS = ("random", "attention", "gradient", "product")
"""The published rankings, in the order of the figures."""
OURS = ("centred", "greedy")
"""Rankings that are not in the paper (docs/studies/erasure.md, "Rankings of our own")."""
METHODS = (*RANKINGS, "centred")
"""What `erase` is given; the greedy order is made as it goes."""
READ = Portion(256, 65_536)
"""What is read and erased at once."""
RANDOM_ORDERS = 5
"""Random orders per document: one for the figures, the others for how much the order matters."""
NOT_MEASURED, NEVER = -2, -1
"""What stands for units removed where there is no such ranking, and where nothing ever flips."""
LEFT = ("zero vector", "training mean", "b = 0")
"""What the head reads when nothing is left: nothing but its bias, the mean attended vector of the
training documents, or nothing at all, the bias being left out of every decision."""
_SINGLE = ("top_flips", "other_flips", "legacy_other_flips")
_DELTAS = ("delta_js", "legacy_delta_js", "delta_attention", "legacy_delta_attention")


def erasing(left: Float64[np.ndarray, " class"]) -> RowsOf:
    """`erase` for a model whose mean training document has these logits."""

    def of(
        model: AttentiveModel, reading: Reading, importance: Importance, seed: int
    ) -> pd.DataFrame:
        return erase(model, reading, importance, seed).assign(
            mean_decision=np.int16(left.argmax()), **_without_bias(model, reading, seed)
        )

    return of


def _without_bias(model: AttentiveModel, reading: Reading, seed: int) -> dict[str, np.ndarray]:
    """The decision without the head's bias, and k* of every ranking of that decision.

    With nothing left nothing is decided then: what has not flipped before never does.
    """
    assert reading.offset is not None
    bare = replace(
        reading, offset=torch.zeros_like(reading.offset), logits=reading.logits - reading.offset
    )
    importance = explain(model, bare, RANKINGS, seed)
    order = torch.stack([ranked(scores, bare) for scores in importance.values()], 1)
    found = first_flip(bare, order, curve(model, bare, order)).removed
    removed = found.masked_fill(found == bare.units[:, None], NEVER).cpu().numpy()
    columns = {
        f"unbiased removed {name}": removed[:, place].astype(np.int32)
        for place, name in enumerate(importance)
    }
    return columns | {"unbiased_decision": bare.decision.cpu().numpy().astype(np.int16)}


def erase(
    model: AttentiveModel, reading: Reading, importance: Importance, seed: int
) -> pd.DataFrame:
    """The rows of one batch: when every ranking flips, and what single erasures do.

    Columns are `removed RANKING`, `mass RANKING`, `top_flips RANKING` …; of ΔJS and Δα only those
    of the attention ranking, which the study uses. Numbers are as small as their meaning allows:
    a corpus of 25,000 documents takes a few megabytes.
    """
    single = single_erasure.rows(model, reading, importance, seed)
    # A generator of its own for each order: seeds of other trainings are small numbers.
    orders = {
        f"random {number}": methods.random(model, reading, seed=seed + 1_000_003 * number)
        for number in range(2, RANDOM_ORDERS + 1)
    }
    erased = erasure.rows(model, reading, {**importance, **orders}, seed)
    columns: dict[str, np.ndarray] = {
        "label": reading.labels.cpu().numpy().astype(np.int16),
        "decision": reading.decision.cpu().numpy().astype(np.int16),
        "empty_decision": _first(erased, "empty_decision").astype(np.int16),
        "units": reading.units.cpu().numpy().astype(np.int32),
        "tokens": reading.batch.lengths.cpu().numpy().astype(np.int32),
    }
    names = list(reading.names)
    for column, kind in (("removed", np.int32), ("mass", np.float32)):
        for ranking, values in _by_ranking(erased, column, names):
            if column == "mass" and ranking.startswith("random "):
                continue
            filled = np.nan_to_num(values, nan=NOT_MEASURED) if column == "removed" else values
            columns[f"{column} {ranking}"] = filled.astype(kind)
    lost = erased.groupby("instance", sort=False)["underflow"].any()
    columns["underflow"] = lost[names].to_numpy()
    for column in _SINGLE:
        for ranking, values in _by_ranking(single, column, names):
            columns[f"{column} {ranking}"] = values.astype(bool)
    chosen = single[single["ranking"] == "attention"]
    columns |= {column: chosen[column].to_numpy(dtype=np.float32) for column in _DELTAS}
    return pd.DataFrame({"instance": names} | columns)


def _by_ranking(
    rows: pd.DataFrame, column: str, names: Sequence[str]
) -> Iterator[tuple[str, Float64[np.ndarray, " instance"]]]:
    """A column's values for each ranking in the batch's order; nan where a row is missing."""
    place = pd.Index(names).get_indexer(pd.Index(rows["instance"]))
    number, rankings = pd.factorize(rows["ranking"])
    values = np.full((len(rankings), len(names)), np.nan)
    values[number, place] = rows[column].to_numpy(dtype=np.float64)
    return zip(map(str, rankings), values, strict=True)


def _first(rows: pd.DataFrame, column: str) -> np.ndarray:
    return rows.drop_duplicates("instance")[column].to_numpy()


@dataclass(frozen=True, eq=False)
class Erased:
    """The rows of one trained model over a test set.

    Documents of one unit are left out of everything but accuracy (docs/studies/erasure.md, "What is
    left out").
    """

    table: pd.DataFrame

    def __len__(self) -> int:
        return len(self.table)

    @cached_property
    def names(self) -> tuple[str, ...]:
        """Documents."""
        return tuple(self.table["instance"].astype(object).map(str))

    @cached_property
    def several(self) -> Bool[np.ndarray, " instance"]:
        """Which documents have more than one unit."""
        return self._column("units") > 1

    @cached_property
    def units(self) -> Float64[np.ndarray, " instance"]:
        """Units of each document; nan for one."""
        return self._kept(self._column("units"))

    @property
    def right(self) -> Float64[np.ndarray, " instance"]:
        """1 where the model decides as the label says; all documents; nan without a label."""
        right = self._column("decision") == self._column("label")
        return np.where(self._column("label") >= 0, right, np.nan)

    @property
    def as_empty(self) -> Float64[np.ndarray, " instance"]:
        """1 where the decision is what the bias alone would say: only these can never flip."""
        return self._kept(self._column("decision") == self._column("empty_decision"))

    def removed(self, ranking: str) -> Float64[np.ndarray, " instance"]:
        """k*: units removed when the decision flips; infinite where it never does."""
        count = self._column(f"removed {ranking}")
        count = np.where(count == NEVER, np.inf, np.where(count == NOT_MEASURED, np.nan, count))
        return self._kept(count)

    def fraction(self, ranking: str, never: float = 1.0) -> Float64[np.ndarray, " instance"]:
        """k*/n; a document that never flips needs everything (nan leaves it out, as published)."""
        share = self.removed(ranking) / self.units
        return np.where(np.isinf(share), never, share)

    def mass(self, ranking: str, never: float = 1.0) -> Float64[np.ndarray, " instance"]:
        """Original attention of the removed units; all of it where nothing flips."""
        found = self._kept(self._column(f"mass {ranking}"))
        return np.where(self.never(ranking) == 1, never, found)

    def never(self, ranking: str) -> Float64[np.ndarray, " instance"]:
        """1 where the decision never flips."""
        return self._where(np.isinf, self.removed(ranking))

    def at_end(self, ranking: str) -> Float64[np.ndarray, " instance"]:
        """1 where it flips only when nothing is left: the bias speaks, not the units."""
        removed = self.removed(ranking)
        return np.where(np.isnan(removed), np.nan, removed == self.units)

    def all_flip(self) -> Bool[np.ndarray, " instance"]:
        """Whether every published ranking flips the document."""
        removed = [self.removed(ranking) for ranking in RANKINGS]
        return np.asarray(np.isfinite(removed).all(0))

    def earlier(self, first: str, second: str) -> Float64[np.ndarray, " instance"]:
        """1 where `first` flips with fewer units, -1 with more, 0 with as many.

        What never flips needs all units, as what flips only when nothing is left.
        """
        return np.asarray(np.sign(self.fraction(second) - self.fraction(first)))

    def both_flip(self, first: str, second: str) -> Bool[np.ndarray, " instance"]:
        """Where both rankings flip the decision."""
        return np.asarray(np.isfinite(self.removed(first)) & np.isfinite(self.removed(second)))

    def under(self, left: str) -> Erased:
        """The rows, had something else been left where nothing is left: one of `LEFT`.

        The mean training context in place of the zero vector decides anew what flips at the end;
        without bias nothing is decided there, and every decision before it is another one.
        """
        table = self.table
        if left == LEFT[0]:
            return self
        changed: dict[str, np.ndarray] = {}
        for ranking in RANKINGS:
            if left == LEFT[2]:
                changed[f"removed {ranking}"] = self._column(f"unbiased removed {ranking}")
                continue
            count, units = self._column(f"removed {ranking}"), self._column("units")
            flips = self._column("mean_decision") != self._column("decision")
            at_end = (count == units) | (count == NEVER)
            changed[f"removed {ranking}"] = np.where(at_end, np.where(flips, units, NEVER), count)
        if left == LEFT[2]:
            changed["decision"] = self._column("unbiased_decision")
        return Erased(table.assign(**changed))

    def delta_js(self, legacy: bool = False) -> Float64[np.ndarray, " instance"]:
        """ΔJS of the top-attention unit against the random other one."""
        return self._kept(self._column(_rule("delta_js", legacy)))

    def delta_attention(self) -> Float64[np.ndarray, " instance"]:
        """Δα of the same two units."""
        return self._kept(self._column("delta_attention"))

    def top_flips(self, ranking: str) -> Float64[np.ndarray, " instance"]:
        """1 where erasing the ranking's first unit flips the decision."""
        return self._kept(self._column(f"top_flips {ranking}"))

    def other_flips(self, ranking: str, legacy: bool = False) -> Float64[np.ndarray, " instance"]:
        """1 where erasing the random other unit does."""
        return self._kept(self._column(f"{_rule('other_flips', legacy)} {ranking}"))

    def contingency(self, ranking: str, legacy: bool = False) -> single_erasure.Contingency:
        """The 2×2 table of single erasures over documents of several units."""
        top = self.top_flips(ranking)[self.several].astype(bool)
        other = self.other_flips(ranking, legacy)[self.several].astype(bool)
        cells = (top & other, top & ~other, ~top & other, ~top & ~other)
        return single_erasure.Contingency(*(int(cell.sum()) for cell in cells))

    def thinned(self, per_bin: int, bins: int = 200) -> Bool[np.ndarray, " instance"]:
        """Which documents a scatter shows: at most so many for each bin of Δα, the same each time.

        Drawn without replacement, and the largest ΔJS always stays (the release drops it).
        """
        weight, change = self.delta_attention(), self.delta_js()
        place = np.clip((np.nan_to_num(weight) * bins).astype(int), 0, bins - 1)
        shuffled = np.random.default_rng(0).permutation(len(weight))
        shuffled = shuffled[~np.isnan(change)[shuffled]]
        if not len(shuffled):
            return np.zeros(len(weight), dtype=bool)
        top = int(np.nanargmax(change))
        shuffled = np.concatenate([[top], shuffled[shuffled != top]])
        rank = pd.Series(place[shuffled]).groupby(place[shuffled]).cumcount().to_numpy()
        found = np.zeros(len(weight), dtype=bool)
        found[shuffled[rank < per_bin]] = True
        return found

    def _column(self, name: str) -> np.ndarray:
        return self.table[name].to_numpy()

    def _kept(self, values: np.ndarray) -> Float64[np.ndarray, " instance"]:
        return np.where(self.several, values.astype(np.float64), np.nan)

    def _where(self, test: np.ufunc, values: np.ndarray) -> Float64[np.ndarray, " instance"]:
        return np.where(np.isnan(values), np.nan, test(values).astype(np.float64))


def _rule(column: str, legacy: bool) -> str:
    return f"legacy_{column}" if legacy else column


def coarsened(
    fraction: Float64[np.ndarray, " instance"], units: Float64[np.ndarray, " instance"]
) -> Float64[np.ndarray, " instance"]:
    """A fraction as it would be seen in steps of 1/n: rounded up to the next multiple."""
    # What is a multiple already must not be pushed over by rounding.
    return np.asarray(np.ceil(fraction * units - 1e-9) / units)
