"""Erasing one unit: the top of a ranking against a random other one.

See docs/studies/erasure.md, "One unit".
"""

from dataclasses import replace
from math import log
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
import torch
from jaxtyping import Float, Int
from torch import Tensor

from heedful.audits.finding import Audit, Finding, Measure
from heedful.audits.tables import histogram, of_several_units, per_ranking, percent, wide
from heedful.importance import Importance
from heedful.models.reading import Reading
from heedful.models.verbs import AttentiveModel, ranked, without_each
from heedful.runs.randomness import keys, numpy_generator, uniform_noise
from heedful.statistics.divergence import js_divergence
from heedful.statistics.estimates import Estimate
from heedful.statistics.intervals import mean, paired, proportion, sign_test
from heedful.statistics.sums import Additive, Sums, is_adding

POINTS = 1_000
"""At most so many points are drawn."""
CELLS = ("both", "only top", "only random", "neither")


class Others(NamedTuple):
    """The unit that each rule erases for comparison; -1 where there is only one unit."""

    random: Int[Tensor, "batch ranking"]
    """Uniform over all units but the top one."""
    legacy: Int[Tensor, "batch ranking"]
    """Uniform on positions 1 … n-1: the rule behind the published tables (docs/studies/erasure.md,
    "Errata").

    It never erases the first unit and may erase the top one.
    """


def random_others(
    top: Int[Tensor, "batch ranking"],
    units: Int[Tensor, " batch"],
    noise: Float[Tensor, "batch ranking"],
) -> Others:
    """Another unit to erase beside each top one, from one number in [0, 1) each.

    Both rules use the same number, so that they differ by the rule alone.
    """
    others = units[:, None] - 1
    draw = (noise * others).long().clamp_max(others - 1)
    alone = others == 0
    random = draw + (draw >= top).long()
    return Others(random.masked_fill(alone, -1), (draw + 1).masked_fill(alone, -1))


def rows(
    model: AttentiveModel, reading: Reading, importance: Importance, seed: int
) -> pd.DataFrame:
    """What erasing the top unit of each ranking, and a random other one, does to each document.

    The columns that start with `legacy_` hold the published rule for the random unit. ΔJS and Δα
    are those of the top unit minus those of the other, nan in documents of one unit.
    """
    if not importance:
        return pd.DataFrame()
    top = torch.stack([ranked(scores, reading)[:, 0] for scores in importance.values()], 1)
    noise = [
        uniform_noise(keys(seed, reading.names, "single erasure", name), 1, device=top.device)
        for name in importance
    ]
    others = random_others(top, reading.units, torch.cat(noise, 1))
    without = without_each(model, reading)
    flips = (without.argmax(-1) != reading.decision[:, None]) & reading.mask
    before, after = reading.logits.log_softmax(-1)[:, None], without.log_softmax(-1)
    divergence = js_divergence(before.expand_as(after), after)
    alone = (reading.units == 1)[:, None]

    def at(per_unit: Tensor, unit: Int[Tensor, "batch ranking"]) -> Tensor:
        return per_unit.gather(1, unit.clamp_min(0))

    def difference(per_unit: Tensor, other: Int[Tensor, "batch ranking"]) -> Tensor:
        return (at(per_unit, top) - at(per_unit, other)).masked_fill(alone, torch.nan)

    return per_ranking(
        reading.names,
        list(importance),
        units=reading.units[:, None],
        top=top,
        other=others.random,
        legacy_other=others.legacy,
        top_flips=at(flips, top) & ~alone,
        other_flips=at(flips, others.random) & ~alone,
        legacy_other_flips=at(flips, others.legacy) & ~alone,
        delta_js=difference(divergence, others.random),
        legacy_delta_js=difference(divergence, others.legacy),
        delta_attention=difference(reading.attention, others.random),
        legacy_delta_attention=difference(reading.attention, others.legacy),
    )


class Contingency(NamedTuple):
    """How often the decision flips by the top unit and by the other one."""

    both: int
    only_top: int
    only_random: int
    neither: int

    @property
    def n(self) -> int:
        """Documents."""
        return sum(self)

    @property
    def p(self) -> float:
        """The exact paired test that one flips as often as the other (McNemar's, binomial)."""
        return sign_test(self.only_top, self.only_random)


def contingency(rows: pd.DataFrame, ranking: str, legacy_random: bool = False) -> Contingency:
    """The 2×2 table of one ranking over documents of more than one unit."""
    rows = rows[(rows["ranking"] == ranking) & (rows["units"] > 1)]
    top = rows["top_flips"].to_numpy(dtype=bool)
    other = rows[_rule("other_flips", legacy_random)].to_numpy(dtype=bool)
    cells = (top & other, top & ~other, ~top & other, ~top & ~other)
    return Contingency(*(int(cell.sum()) for cell in cells))


def summarise(rows: pd.DataFrame, legacy_random: bool = False) -> Finding:
    """The finding over all rows; `legacy_random` takes the published rule for the random unit."""
    rows, left_out = of_several_units(rows)
    if not len(rows):
        nothing = "Nothing could be measured: no document has more than one unit."
        return AUDIT.finding(nothing, notes=left_out)
    change, weight = (
        wide(rows, _rule(column, legacy_random)) for column in ("delta_js", "delta_attention")
    )
    tables = {name: contingency(rows, name, legacy_random) for name in change.rankings}
    top, other = wide(rows, "top_flips"), wide(rows, _rule("other_flips", legacy_random))
    measures = []
    for name, table in tables.items():
        measures += [
            Measure(cell, proportion(hits, table.n), name)
            for cell, hits in zip(CELLS, table, strict=True)
        ]
        negative = int((change[name] < 0).sum())
        measures += [
            Measure("top flips", proportion(table.both + table.only_top, table.n), name),
            Measure("random flips", proportion(table.both + table.only_random, table.n), name),
            Measure(
                "only top - only random",
                paired(top[name], other[name], top.names, most=1),
                name,
            ),
            Measure("p, exact paired test", _tested(table), name),
            Measure("ΔJS", mean(change[name], change.names, least=-log(2), most=log(2)), name),
            Measure("ΔJS below 0", proportion(negative, table.n), name),
        ]
    if legacy_random:
        left_out += ("The other unit was drawn by the published rule: positions 1 to n-1.",)
    shown = "attention" if "attention" in tables else change.rankings[0]
    return AUDIT.finding(
        measures=tuple(measures),
        drawn=_drawn(shown, change[shown], weight[shown], tables),
        notes=left_out,
    )


def _rule(column: str, legacy_random: bool) -> str:
    return f"legacy_{column}" if legacy_random else column


def _tested(table: Contingency) -> Estimate:
    """The test's p, which has no interval."""
    estimate = Estimate(table.p, float("nan"), float("nan"), table.n, "none")
    if not is_adding():
        return estimate
    cells = np.array([table], dtype=np.float64)
    again = Additive(
        Sums(cells, table.n),
        lambda sums: _tested(Contingency(*(int(cell) for cell in sums.totals[0]))),
    )
    return replace(estimate, additive=again)


def tell(found: Finding) -> str:
    """What removing attention to the first unit does, beside a random other one."""
    rankings = list(found.by_method(CELLS[0]))
    ranking = "attention" if "attention" in rankings else rankings[0]
    cells = [found.by_method(cell)[ranking] for cell in CELLS]
    table = Contingency(*(round(cell.value * cell.n) if cell.n else 0 for cell in cells))
    top = proportion(table.both + table.only_top, table.n)
    other = proportion(table.both + table.only_random, table.n)
    answer = (
        f"Removing attention to the unit ranked first by {ranking} changed {percent(top)} of the "
        f"decisions, to a random other one {percent(other)}"
    )
    if table.p < 0.05:
        more = "more" if table.only_top > table.only_random else "less"
        return f"{answer}: the first unit matters {more} than another."
    return f"{answer}: no difference that chance could not make."


def _drawn(
    ranking: str,
    change: np.ndarray,
    weight: np.ndarray,
    tables: dict[str, Contingency],
) -> dict[str, Any]:
    """Thinned points without replacement; the largest ones are as likely to stay as any other."""
    chosen = np.arange(len(change))
    if len(chosen) > POINTS:
        generator = numpy_generator(0, "single erasure points")
        chosen = np.sort(generator.choice(len(change), POINTS, replace=False))
    return {
        "ranking": ranking,
        "delta_attention": weight[chosen].tolist(),
        "delta_js": change[chosen].tolist(),
        "points": len(chosen),
        "of": len(change),
        # Fixed edges 0.00, 0.02, …, 1.00, strictly negative ΔJS only.
        "delta_attention where ΔJS < 0": histogram(weight[change < 0], bins=50),
        "contingency": {name: table._asdict() for name, table in tables.items()},
    }


AUDIT = Audit(
    rows,
    summarise,
    name="single-erasure",
    title="Removing attention to one unit",
    question="Does removing attention to the most important unit change the decision more often "
    "than to another one?",
    place=4,
    chart="single_erasure",
    tell=tell,
)
