"""The words themselves taken away, and the model read again.

Erasing attention leaves a word's traces in the other states; erasing the word does not. For each
ranking the top 5, 10, 20 and 50 % of a document's tokens are removed, or replaced by `<unk>`:

    comprehensiveness = p(y | text) - p(y | text without them)      high: they were needed
    sufficiency       = p(y | text) - p(y | them alone)             low: they were enough

with y the decision on the whole text, averaged over the shares: the area over the perturbation
curve, AOPC (DeYoung et al. 2020, §5.2, who also take the top 1 %, and count a share of 0, at which
nothing is lost, into the average). What a ranking is worth in one number is

    faithfulness = comprehensiveness - sufficiency

by which explanations are ranked: 1 at best, below 0 for a random order, because at most half of the
text is ever taken and few words alone rarely decide as all do. Hence the paired difference to it.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np
import pandas as pd
import torch
from jaxtyping import Bool, Float64
from torch import Tensor

from heedful.audits.effort import is_known
from heedful.audits.finding import Audit, Finding, Measure, frame
from heedful.audits.tables import Wide, of_several_units, percent
from heedful.importance import Importance
from heedful.importance.inputs import STATED_ERROR, missing, starts_from_inputs
from heedful.models.reading import Reading
from heedful.models.rereading import probability, read_again
from heedful.models.verbs import AttentiveModel, ranked
from heedful.statistics.estimates import Estimate, per_cent
from heedful.statistics.intervals import bootstraps, means
from heedful.statistics.sums import OfSums

SHARES = (0.05, 0.1, 0.2, 0.5)
MODES = ("removed", "replaced")
QUANTITIES = ("comprehensiveness", "sufficiency", "flip")


def rows(
    model: AttentiveModel,
    reading: Reading,
    importance: Importance,
    seed: int,
    shares: Sequence[float] = SHARES,
    modes: Sequence[str] = MODES,
    symbol: int | None = None,
) -> pd.DataFrame:
    """What each ranking's top tokens cost the decision, by method, share and mode.

    `flip` says whether the decision changed without them. `symbol` takes a token's place in mode
    `replaced`, the model's own for an unknown word unless given. A text without any token left
    reads as that symbol alone.
    """
    if not importance:
        return pd.DataFrame()
    top = top_tokens(reading, importance, shares)
    edited = torch.stack([reading.batch.mask[:, None, None] & ~top, top], 1)
    before = probability(reading.logits[:, None], reading.decision)
    off = torch.full(top.shape[:3], torch.nan, dtype=before.dtype, device=before.device)
    if "integrated" in importance and starts_from_inputs(model):
        missed = missing(model, reading, importance["integrated"])
        off[:, list(importance).index("integrated")] = missed[:, None]
    parts = []
    for mode in modes:
        logits = read_again(model, reading.batch, edited.flatten(1, 3), mode, symbol)
        after = probability(logits, reading.decision).view(edited.shape[:4])
        flip = (logits.argmax(-1) != reading.decision[:, None]).view(edited.shape[:4])
        parts.append(
            _tidy(
                reading,
                list(importance),
                shares,
                mode,
                comprehensiveness=before[..., None] - after[:, 0],
                sufficiency=before[..., None] - after[:, 1],
                flip=flip[:, 0],
                taken=top.sum(-1),
                missing=off,
            )
        )
    return pd.concat(parts, ignore_index=True)


def top_tokens(
    reading: Reading, importance: Importance, shares: Sequence[float] = SHARES
) -> Bool[Tensor, "batch method share token"]:
    """The tokens of the first units of each ranking that together reach a share of the document.

    At least one unit; the last one may go beyond the share, which with sentences can be a lot.
    """
    order = torch.stack([ranked(scores, reading) for scores in importance.values()], 1)
    size = reading.per_unit(reading.batch.mask.double())[:, None].expand(order.shape)
    before = size.gather(2, order).cumsum(2) - size.gather(2, order)
    share = torch.tensor(shares, dtype=size.dtype, device=size.device)
    wanted = reading.batch.lengths[:, None] * share
    # A hair less, so that a twentieth of 40 tokens is 2 of them whatever the rounding.
    is_top = before[:, :, None] < (wanted - 1e-9)[:, None, :, None]
    is_top &= reading.mask.gather(1, order.flatten(1)).view(order.shape)[:, :, None]
    index = order[:, :, None].expand(is_top.shape)
    by_unit = torch.zeros_like(is_top).scatter(3, index, is_top)
    of_token = reading.unit_of_token[:, None, None].expand(*by_unit.shape[:3], -1)
    return by_unit.gather(3, of_token) & reading.batch.mask[:, None, None]


def _tidy(
    reading: Reading,
    methods: list[str],
    shares: Sequence[float],
    mode: str,
    **columns: Tensor,
) -> pd.DataFrame:
    """One row per instance, method and share."""
    count = len(methods) * len(shares)
    flat = {name: column.cpu().numpy().ravel() for name, column in columns.items()}
    return frame(
        np.repeat(np.asarray(reading.names, dtype=object), count).tolist(),
        method=np.tile(
            np.repeat(np.asarray(methods, dtype=object), len(shares)), len(reading.names)
        ),
        share=np.tile(np.asarray(shares), len(methods) * len(reading.names)),
        mode=np.full(count * len(reading.names), mode, dtype=object),
        units=np.repeat(reading.units.cpu().numpy(), count),
        tokens=np.repeat(reading.batch.lengths.cpu().numpy(), count),
        **flat,
    )


def summarise(rows: pd.DataFrame) -> Finding:
    """The finding over all rows; documents with one unit leave nothing to rank.

    The measures without a suffix are those of removed words; `, replaced` marks the others.
    """
    rows, notes = of_several_units(rows)
    if not len(rows):
        nothing = "Nothing could be measured: no document has more than one unit."
        return AUDIT.finding(nothing, notes=notes)
    modes = [mode for mode in MODES if mode in set(rows["mode"])]
    measures = []
    for mode in modes:
        tables: dict[str, Wide] = {}
        for quantity in QUANTITIES:
            over_shares = _over_shares(rows[rows["mode"] == mode], quantity)
            tables[quantity] = over_shares
            name = _name(quantity) + ("" if mode == "removed" else f", {mode}")
            found = over_shares.means()
            measures += [Measure(name, e, method) for method, e in found.items()]
            measures += [Measure(name, e, m) for m, e in over_shares.minus("random").items()]
            if quantity == "sufficiency":
                worth = Wide(tables["comprehensiveness"].table - over_shares.table, -2, 2)
                measures += _worth(worth, name.removeprefix(quantity))
                avoided = "loss avoided" + name.removeprefix(quantity)
                measures += [Measure(avoided, e, m) for m, e in loss_avoided(over_shares).items()]
    return AUDIT.finding(
        measures=tuple(measures),
        drawn=_drawn(rows, modes),
        notes=(_policy(rows), *_completeness(rows), *notes),
    )


def _worth(worth: Wide, suffix: str) -> list[Measure]:
    """Each ranking's faithfulness, and how far it is from random, attention and the best one."""
    found = worth.means()
    best = max(found, key=lambda method: np.nan_to_num(found[method].value, nan=-np.inf))
    for baseline in dict.fromkeys(("random", "attention", best)):
        found |= worth.minus(baseline)
    return [Measure(f"faithfulness{suffix}", e, method) for method, e in found.items()]


def loss_avoided(sufficiency: Wide) -> dict[str, Estimate]:
    """How much of the loss by keeping random words each ranking's words avoid: 1 all, 0 none.

    1 - sufficiency / sufficiency of random words, each the mean over documents; below 0 where the
    words that a ranking puts first say less of the decision than random ones. Undefined where
    random words alone lose nothing.
    """
    if "random" not in sufficiency:
        return {}
    values = sufficiency.table.to_numpy(dtype=np.float64)
    values = np.concatenate([np.ones((len(values), 1)), values], 1)
    random = sufficiency.rankings.index("random")

    def finish(
        sums: Float64[np.ndarray, "replicate column"],
    ) -> Float64[np.ndarray, "replicate method"]:
        drawn, total = sums[:, :1], sums[:, 1:]
        lost = total[:, [random]]
        share = np.full(total.shape, np.nan)
        np.divide(lost - total, lost, out=share, where=lost > 1e-9 * drawn)
        return share

    found = bootstraps(OfSums(values, finish), sufficiency.names, method="bca")
    return dict(zip(sufficiency.rankings, found, strict=True))


def _name(quantity: str) -> str:
    return "flips" if quantity == "flip" else quantity


def _over_shares(rows: pd.DataFrame, quantity: str) -> Wide:
    """The mean over shares, by instance and method."""
    order = list(dict.fromkeys(rows["method"]))
    values = rows.assign(value=rows[quantity].astype(np.float64))
    table = values.groupby(["instance", "method"], sort=False)["value"].mean().unstack("method")
    return Wide(table[order], 0 if quantity == "flip" else -1, 1)


def settled(found: Finding) -> bool:
    """Whether the place of every ranking is known: above or below random, and attention's place.

    What three differences to random say is its standing; attention is compared with the best.
    """
    kinds = ("faithfulness", "comprehensiveness", "sufficiency")
    told = [one for one in found.measures if one.name in kinds and one.method.endswith(" - random")]
    told += [
        m for m in found.measures if m.name == kinds[0] and m.method.startswith("attention - ")
    ]
    return all(is_known(one.estimate) for one in told)


def tell(finding: Finding) -> str:
    """What deleting words costs, by attention, at random and by the best ranking."""
    name = "comprehensiveness"
    found = finding.by_method(name) or finding.by_method(f"{name}, replaced")
    first = "attention" if "attention" in found else next(iter(found))
    answer = (
        f"Deleting the words that {first} puts first costs the decision {percent(found[first])}"
    )
    answer += " of probability on average"
    if "random" in found and first != "random":
        answer += f", deleting random words {percent(found['random'])}"
    best = max(found, key=lambda method: np.nan_to_num(found[method].value, nan=-np.inf))
    if best not in (first, "random"):
        answer += f", and by the best ranking, {best}, {percent(found[best])}"
    return f"{answer}."


def _drawn(rows: pd.DataFrame, modes: list[str]) -> dict[str, Any]:
    """Per mode and quantity, for each method one estimate per share."""
    methods = list(dict.fromkeys(rows["method"]))
    shares = sorted(set(rows["share"]))
    drawn: dict[str, Any] = {"methods": methods, "shares": shares}
    for mode in modes:
        here = rows[rows["mode"] == mode]
        drawn[mode] = {}
        for quantity in QUANTITIES:
            table = here.assign(value=here[quantity].astype(np.float64)).pivot(
                index="instance", columns=["method", "share"], values="value"
            )
            columns = [(method, share) for method in methods for share in shares]
            names = [str(name) for name in table.index]
            found = [e.to_json() for e in means(table[columns].to_numpy(np.float64), names)]
            drawn[mode][_name(quantity)] = {
                method: found[place * len(shares) : (place + 1) * len(shares)]
                for place, method in enumerate(methods)
            }
    return drawn


def _completeness(rows: pd.DataFrame) -> tuple[str, ...]:
    """How nearly integrated gradients add up to what they share out, where they were tried."""
    off = rows.groupby("instance")["missing"].max() if "missing" in rows else pd.Series(dtype=float)
    off = off.dropna()
    if not len(off):
        return ()
    return (
        f"Integrated gradients add up to the rise in probability within {STATED_ERROR:g} on "
        f"{int((off <= STATED_ERROR).sum()):,} of {len(off):,} documents, and are off by "
        f"{off.max():.2g} at most.",
    )


def _policy(rows: pd.DataFrame) -> str:
    *shares, most = sorted(set(rows["share"]))
    named = ", ".join([*(f"{100 * share:g}" for share in shares), per_cent(most)])
    return (
        f"The top {named} of a text's tokens, at least one unit, averaged over these shares; "
        "where units are sentences, whole ones until the share is reached."
    )


AUDIT = Audit(
    rows,
    summarise,
    name="input-erasure",
    title="Deleting words",
    question="If the words that a ranking puts first are deleted, does the decision suffer?",
    place=5,
    chart="input_erasure",
    tell=tell,
    settled=settled,
)
