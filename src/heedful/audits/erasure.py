"""How much must be removed before the decision changes, under every ranking.

See docs/studies/erasure.md, "Rankings", "First flip".

The attention of the units is erased from the top of a ranking, the rest renormalised, until the
decision differs. A ranking that knows what mattered gets there early.
"""

from typing import Any

import numpy as np
import pandas as pd
import torch
from jaxtyping import Float64

from heedful.audits.finding import Audit, Finding, Measure
from heedful.audits.rankings import GREEDY_UNITS, area, first_flip, greedy_order
from heedful.audits.tables import Wide, counted, of_several_units, per_ranking, percent, wide
from heedful.importance import Importance
from heedful.models.reading import Reading
from heedful.models.verbs import AttentiveModel, curve, ranked
from heedful.statistics.estimates import Estimate
from heedful.statistics.intervals import bootstraps, mean, proportion
from heedful.statistics.sums import OfSums


def rows(
    model: AttentiveModel, reading: Reading, importance: Importance, seed: int
) -> pd.DataFrame:
    """When each ranking flips each decision: units, fraction and attention mass removed.

    `removed` is -1, `fraction` and `mass` nan where the decision never changes. With a linear head
    the ranking `greedy` is added for documents of at most 256 units.
    """
    orders = {name: ranked(scores, reading) for name, scores in importance.items()}
    if reading.unit_logits is not None:
        orders["greedy"] = greedy_order(reading)
    if not orders:
        return pd.DataFrame()
    order = torch.stack(list(orders.values()), 1)
    logits = curve(model, reading, order)
    flip = first_flip(reading, order, logits)
    units, decision = reading.units[:, None], reading.decision[:, None]
    decided = decision[:, None, :, None].expand(*logits.shape[:3], 1)
    probability = logits.softmax(-1).gather(3, decided)[..., 0]
    found = per_ranking(
        reading.names,
        list(orders),
        units=units,
        decision=decision,
        empty_decision=logits[:, :1, -1].argmax(-1),
        removed=flip.removed,
        fraction=(flip.removed.double() / units).masked_fill(flip.removed < 0, torch.nan),
        mass=flip.mass,
        area=area(probability, reading.units),
        at_end=flip.removed == units,
        underflow=flip.underflow,
    )
    too_long = (found["ranking"] == "greedy") & (found["units"] > GREEDY_UNITS)
    return found[~too_long].reset_index(drop=True)


def flips_first(removed: Wide, first: str, second: str) -> Float64[np.ndarray, " instance"]:
    """1 where `first` flips with fewer units than `second`, -1 with more, 0 with as many.

    A ranking that flips is earlier than one that never does; nan where neither flips, or
    where one of the two was not measured.
    """
    one, other = (np.where(removed[name] < 0, np.inf, removed[name]) for name in (first, second))
    with np.errstate(invalid="ignore"):
        return np.where(np.isinf(one) & np.isinf(other), np.nan, np.sign(other - one))


def five_numbers(values: Float64[np.ndarray, " instance"]) -> dict[str, float | int | None]:
    """What a box plot draws: quartiles by linear interpolation, whiskers within 1.5 IQR."""
    values = values[~np.isnan(values)]
    if not len(values):
        return dict.fromkeys(("low", "q1", "median", "q3", "high"), None) | {"n": 0}
    q1, median, q3 = np.quantile(values, [0.25, 0.5, 0.75])
    reach = 1.5 * (q3 - q1)
    return {
        "low": float(values[values >= q1 - reach].min()),
        "q1": float(q1),
        "median": float(median),
        "q3": float(q3),
        "high": float(values[values <= q3 + reach].max()),
        "n": len(values),
    }


def summarise(rows: pd.DataFrame) -> Finding:
    """The finding over all rows.

    The headline counts a decision that never changes as fraction 1, so that every ranking is
    compared on the same instances; the published way, without them, stands beside it.
    """
    all_instances = int(rows["instance"].nunique()) if len(rows) else 0
    rows, left_out = of_several_units(rows)
    if not len(rows):
        nothing = "Nothing could be measured: no document has more than one unit."
        return AUDIT.finding(nothing, notes=left_out)
    removed, flipped = wide(rows, "removed"), wide(rows, "fraction", 0, 1)
    whole = Wide(flipped.table.mask(removed.table < 0, 1.0), 0, 1)
    measures = [Measure("fraction removed", e, m) for m, e in whole.means().items()]
    for baseline in ("random", "attention"):
        measures += [Measure("fraction removed", e, m) for m, e in whole.minus(baseline).items()]
    measures += [Measure("efficiency", e, m) for m, e in efficiency(whole).items()]
    measures += [Measure("area", e, m) for m, e in wide(rows, "area", 0, 1).means().items()]
    measures += [
        Measure("fraction removed, flipped only", e, m) for m, e in flipped.means().items()
    ]
    for baseline in ("random", "attention"):
        measures += [
            Measure("fraction removed, both flipped", e, m)
            for m, e in flipped.minus(baseline).items()
        ]
    measures += [Measure("mass removed", e, m) for m, e in wide(rows, "mass", 0, 1).means().items()]
    measures += [Measure("units removed", e, m) for m, e in _means_of_flipped(removed).items()]
    measures += _shares(rows, removed, flipped)
    measures += _comparisons(removed, all_instances)
    return AUDIT.finding(
        measures=tuple(measures),
        drawn=_drawn(whole, flipped),
        notes=left_out + _notes(rows, removed),
    )


def efficiency(fraction: Wide) -> dict[str, Estimate]:
    """How far each ranking comes from a random order (0) to the best one found (1).

    (random - ranking) / (random - greedy), each the mean fraction removed over the documents that
    have a greedy order; below 0 for a ranking worse than chance.
    """
    if "random" not in fraction or "greedy" not in fraction:
        return {}
    table = fraction.table.dropna()
    values = table.to_numpy(dtype=np.float64)
    random, greedy = (list(table.columns).index(name) for name in ("random", "greedy"))

    def finish(
        total: Float64[np.ndarray, "replicate ranking"],
    ) -> Float64[np.ndarray, "replicate ranking"]:
        gained = total[:, [random]] - total
        room = gained[:, [greedy]]
        share = np.full(total.shape, np.nan)
        np.divide(gained, room, out=share, where=room > 0)
        return share

    names = [str(name) for name in table.index]
    found = bootstraps(OfSums(values, finish), names, method="bca")
    return dict(zip(fraction.rankings, found, strict=True))


def _means_of_flipped(removed: Wide) -> dict[str, Estimate]:
    return Wide(removed.table.mask(removed.table < 0), least=0).means()


def _shares(rows: pd.DataFrame, removed: Wide, flipped: Wide) -> list[Measure]:
    at_end = wide(rows, "at_end")
    found = []
    for ranking in removed.rankings:
        measured = ~np.isnan(removed[ranking])
        never = removed[ranking][measured] < 0
        fraction = flipped[ranking][measured][~never]
        n = int(measured.sum())
        found += [
            Measure("never flips", proportion(int(never.sum()), n), ranking),
            Measure(
                "flips only when nothing is left",
                proportion(int(np.nansum(at_end[ranking])), n),
                ranking,
            ),
            Measure(
                "more than half removed",
                proportion(int((fraction > 0.5).sum()), len(fraction)),
                ranking,
            ),
        ]
    first = rows.drop_duplicates("instance")
    same = (first["decision"] == first["empty_decision"]).to_numpy()
    found.append(Measure("decides as with nothing left", mean(same, list(first["instance"]))))
    return found


def _comparisons(removed: Wide, all_instances: int) -> list[Measure]:
    if "attention" not in removed:
        return []
    found = []
    for ranking in removed.rankings:
        if ranking == "attention":
            continue
        sign = flips_first(removed, ranking, "attention")
        comparable = int((~np.isnan(sign)).sum())
        for word, value in (("before", 1), ("after", -1), ("together with", 0)):
            hits, name = int((sign == value).sum()), f"flips {word} attention"
            found.append(Measure(name, proportion(hits, comparable), ranking))
            of_all = proportion(hits, all_instances)
            found.append(Measure(f"{name}, of all documents", of_all, ranking))
    return found


def _drawn(whole: Wide, flipped: Wide) -> dict[str, Any]:
    return {
        "rankings": whole.rankings,
        "boxes": {name: five_numbers(whole[name]) for name in whole.rankings},
        "boxes, flipped only": {name: five_numbers(flipped[name]) for name in flipped.rankings},
    }


def tell(found: Finding) -> str:
    """How much had to be removed, by attention, at random and at best."""
    headline = found.by_method("fraction removed")
    if not any(never.value < 1 for never in found.by_method("never flips").values()):
        return "No decision ever changed, wherever attention was removed: it does not decide here."
    first = "attention" if "attention" in headline else next(iter(headline))
    answer = (
        f"Attention had to be removed from {percent(headline[first])} of a text, by {first}, "
        "before the decision changed"
    )
    if "random" in headline and first != "random":
        answer += f"; in a random order {percent(headline['random'])}"
    if "greedy" in headline:
        answer += f"; in the best order found {percent(headline['greedy'])}"
    return f"{answer}."


def _notes(rows: pd.DataFrame, removed: Wide) -> tuple[str, ...]:
    instances = len(removed.names)
    never = {m: int((removed[m] < 0).sum()) for m in removed.rankings}
    listed = ", ".join(f"{ranking} {count}" for ranking, count in never.items() if count)
    ended = rows[rows["at_end"]].groupby("ranking", sort=False).size()
    ends = ", ".join(f"{ranking} {count}" for ranking, count in ended.items())
    underflow = int(rows.loc[rows["underflow"], "instance"].nunique())
    greedy = int(np.isnan(removed["greedy"]).sum()) if "greedy" in removed else 0
    notes: tuple[str, ...] = ()
    if listed:
        notes += (
            f"Decisions that never changed, of {instances} documents: {listed}; they count as "
            "fraction 1 in `fraction removed` and are left out of `flipped only`, mass and units.",
        )
    if ends:
        notes += (
            f"Decisions that changed only when nothing was left (the head's bias decides then), of "
            f"{instances} documents: {ends}.",
        )
    notes += counted(
        underflow, instances, "had so little attention left that it was computed from the scores."
    )
    notes += counted(greedy, instances, f"have more than {GREEDY_UNITS} units and no greedy order.")
    if "greedy" not in removed:
        notes += ("No greedy order: it needs a linear head and short documents.",)
    return notes


AUDIT = Audit(
    rows,
    summarise,
    name="erasure",
    title="Removing attention down a ranking",
    question="From how much of a text must attention be removed, most important first, before the "
    "decision changes?",
    place=3,
    chart="erasure",
    tell=tell,
)
