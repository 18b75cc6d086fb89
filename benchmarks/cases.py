"""The cases at one length: curves, everything at once, captum, and what costs more."""

from __future__ import annotations

import warnings

import torch
from jaxtyping import Int
from scipy.stats import kendalltau
from torch import Tensor

from benchmarks.naive import ablation, batched_loop, removal_loop, site
from benchmarks.sizes import Sizes
from benchmarks.subjects import RANKINGS, batch_of, bilstm
from benchmarks.table import Row
from benchmarks.timing import side_by_side
from heedful.audits.exact_adversary import farthest
from heedful.audits.rankings import Flip, first_flip
from heedful.audits.searched_adversary import search
from heedful.audits.substitution import permutation_moments, permuted_logits
from heedful.importance import explain, methods
from heedful.models import (
    AttentionClassifier,
    Reading,
    alone,
    curve,
    decide,
    ranked,
    read,
    uniform,
    without_each,
)
from heedful.models.verbs import weigh
from heedful.runs.randomness import keys
from heedful.statistics.agreement import kendall_tau_b
from heedful.statistics.estimates import per_cent


class Disagreement(AssertionError):
    """Two ways to compute the same numbers gave different ones: nothing may be timed then."""


def orders(model: AttentionClassifier, reading: Reading) -> Int[Tensor, "batch ranking unit"]:
    """The four rankings of the erasure study."""
    importance = explain(model, reading, RANKINGS)
    return torch.stack([ranked(scores, reading) for scores in importance.values()], 1)


def flips(model: AttentionClassifier, reading: Reading, order: Tensor) -> Flip:
    """When each ranking flips each decision."""
    return first_flip(reading, order, curve(model, reading, order))


def curve_rows(sizes: Sizes, bytes_per_second: float) -> list[Row]:
    """Curves against the removal loop: one document at a time, and batched over documents."""
    model, reading = _read(sizes, sizes.classes)
    order, at = orders(model, reading), site(model, reading, torch.float64)
    timed = side_by_side(
        {
            "curve": lambda: curve(model, reading, order),
            "curve and first flip": lambda: flips(model, reading, order),
            "loop": lambda: removal_loop(at, order),
            "batched": lambda: batched_loop(at, order),
        },
        sizes.slow_repeats,
    )
    ours = timed["curve and first flip"].result.removed
    for name in ("loop", "batched"):
        if not torch.equal(ours, timed[name].result):
            differ = int((ours != timed[name].result).sum())
            raise Disagreement(f"{differ} of {ours.numel()} first flips differ from the {name}.")
    rankings, units, dim = len(RANKINGS), sizes.units, at.values.shape[-1]
    steps = sizes.documents * rankings * (units + 1)
    least = steps * 8 * (1 + 2 * (sizes.classes + 1) + 2 * sizes.classes) / bytes_per_second
    quick, seconds = timed["curve"].seconds, timed["curve and first flip"].seconds
    loop, batched = timed["loop"].seconds, timed["batched"].seconds
    middle = float((ours > 0).double().mean())
    case = f"curve, {rankings} rankings, n = {units}, {sizes.classes} classes, float64"
    why = (
        f"First flips of all {ours.numel()} rankings are identical ({per_cent(middle)} flip). "
        f"The loop reads {units} × {dim} values for each of {units} steps, the curve "
        f"{sizes.classes + 1} numbers per step: "
        f"{units * dim / (sizes.classes + 1):,.0f} times fewer. "
    )
    floor = (
        f"Moving its data once each way would take {1e3 * least:.2f} ms at the speed of a big "
        f"copy, and curve takes {1e3 * quick:.2f} ms ({quick / least:.1f} times that): gather, "
        "scan, division and flip each pass over the data."
    )
    return [
        Row(
            case,
            1e3 * quick,
            loop / quick,
            "loop, one document at a time",
            why + _distance(loop / quick, 150) + " " + floor,
            naive=1e3 * loop,
            at_least=150,
        ),
        Row(
            f"{case}, with the first flip",
            1e3 * seconds,
            loop / seconds,
            "loop, one document at a time",
            f"The loop also decides at every step; with finding the flip counted on our side too, "
            f"the ratio is {loop / seconds:.0f}.",
            naive=1e3 * loop,
        ),
        Row(
            f"{case}, against a batched loop",
            1e3 * quick,
            batched / quick,
            "loop batched over documents",
            f"Batching {sizes.documents} documents spares the loop the overhead of small calls, "
            "not its reading of every value at every step.",
            naive=1e3 * batched,
        ),
    ]


def forward_rows(sizes: Sizes) -> list[Row]:
    """Everything at once, and what costs more, as multiples of one forward pass."""
    model, reading = _read(sizes, sizes.classes)
    batch, importance = reading.batch, explain(model, reading, RANKINGS)
    assert reading.unit_logits is not None
    said = reading.unit_logits

    def everything() -> None:
        flips(model, reading, orders(model, reading))
        without_each(model, reading)
        decide(model, reading, uniform(reading))
        permutation_moments(reading.attention, said, reading.mask)
        methods.single_unit(model, reading)

    pair = importance["attention"], importance["gradient"]
    timed = side_by_side(
        {
            "forward": lambda: read(model, batch),
            "everything": everything,
            "permuted": lambda: permuted_logits(model, reading, 0),
            "kendall": lambda: kendall_tau_b(*pair, reading.mask),
            "scipy": lambda: [kendalltau(a, b).statistic for a, b in _arrays(*pair)],
        },
        sizes.repeats,
    )
    theirs = torch.tensor(timed["scipy"].result, dtype=torch.float64)
    _check_close("Kendall's τ and scipy's", timed["kendall"].result, theirs)
    forward = timed["forward"].seconds
    together = timed["everything"].seconds
    tau, peer = timed["kendall"].seconds, timed["scipy"].seconds
    permuted = timed["permuted"].seconds
    where = f"{sizes.documents} documents, n = {sizes.units}, {sizes.classes} classes"
    return [
        Row(
            f"curves + leave-one-out + uniform + permutation moments + single unit, {where}",
            1e3 * together,
            together / forward,
            "forward pass",
            f"All of it takes {together / forward:.2f} of the forward pass: it touches "
            f"{sizes.classes} logits per unit and ranking, the BiLSTM multiplies matrices of "
            "several ten thousand weights at every word, one word after the other.",
            naive=1e3 * forward,
            at_most=1,
        ),
        Row(
            f"100 sampled permutations, {where}",
            1e3 * permuted,
            permuted / forward,
            "forward pass",
            f"No limit set. {100 * sizes.units:,} weights per document are drawn, sorted and "
            f"weighed, {1e9 * permuted / (100 * sizes.units * sizes.documents):.0f} ns each, most "
            "of it the sort; the exact moments above need none of this.",
            naive=1e3 * forward,
        ),
        Row(
            f"Kendall τ of two rankings, {where}",
            1e3 * tau,
            tau / forward,
            "forward pass",
            "No limit set. Two sorts (three with ties) and one pass per bit of n, for the whole "
            f"batch at once; scipy (peer), one document at a time, takes {peer / tau:.1f} times "
            "as long and gives the same numbers.",
            naive=1e3 * forward,
            peer=1e3 * peer,
        ),
    ]


def adversary_rows(sizes: Sizes) -> list[Row]:
    """The exact adversary and the gradient search as multiples of one forward pass."""
    rows = []
    for classes in (2, sizes.classes):
        model, reading = _read(sizes, classes)
        said = alone(model, reading).masked_fill(~reading.mask[..., None], 0)
        attention, mask, batch = reading.attention, reading.mask, reading.batch
        start = torch.from_numpy(keys(0, reading.names, "adversary search"))
        timed = side_by_side(
            {
                "forward": lambda m=model, b=batch: read(m, b),
                "exact": lambda a=attention, s=said, m=mask: farthest(a, s, m),
                "search": lambda a=attention, s=said, m=mask, k=start: search(
                    a, s, m, k, steps=sizes.steps
                ),
            },
            sizes.slow_repeats,
        )
        forward = timed["forward"].seconds
        where = f"{sizes.documents} documents, n = {sizes.units}, {classes} classes"
        pairs = (
            "It looks at every pair of units on either side of two faces, in closed form."
            if classes == 2
            else "A linear programme per document, then bisections on the 64 least attended units."
        )
        closest = "exact adversary" if classes == 2 else "adversary, a lower bound"
        named = {"exact": closest, "search": "gradient search"}
        for name, why in (
            ("exact", pairs),
            (
                "search",
                f"{sizes.steps} steps of five candidates, 25 logarithms per unit each.",
            ),
        ):
            seconds = timed[name].seconds
            rows.append(
                Row(
                    f"{named[name]}, {where}",
                    1e3 * seconds,
                    seconds / forward,
                    "forward pass",
                    f"No limit set. {why}",
                    naive=1e3 * forward,
                )
            )
    return rows


def captum_rows(sizes: Sizes) -> list[Row]:
    """Leave-one-out against captum's FeatureAblation over attention, on values and unit logits."""
    model, reading = _read(sizes, sizes.classes)
    at = site(model, reading, torch.float64)
    assert reading.unit_logits is not None
    assert reading.offset is not None
    said, offset = reading.unit_logits, reading.offset

    def from_values(weights: Tensor) -> Tensor:
        return torch.bmm(weights[:, None], at.values)[:, 0] @ at.weight.T + at.bias

    def from_logits(weights: Tensor) -> Tensor:
        return weigh(weights[:, None], said)[:, 0] + offset

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        timed = side_by_side(
            {
                "ours": lambda: without_each(model, reading),
                "values": lambda: ablation(reading.attention, from_values, reading.decision),
                "logits": lambda: ablation(reading.attention, from_logits, reading.decision),
            },
            sizes.slow_repeats,
        )
    decided = reading.decision[:, None, None].expand(-1, sizes.units, 1)
    lost = reading.logits.gather(1, reading.decision[:, None]) - timed["ours"].result.gather(
        2, decided
    ).squeeze(-1)
    for name in ("values", "logits"):
        _check_close(f"leave-one-out and captum's on {name}", lost, timed[name].result)
    ours = timed["ours"].seconds
    case = f"leave-one-out, n = {sizes.units}, {sizes.classes} classes"
    ratios = {name: timed[name].seconds / ours for name in ("values", "logits")}
    return [
        Row(
            f"{case}, captum on the model's values",
            1e3 * ours,
            ratios["values"],
            "captum FeatureAblation",
            f"Same numbers to 1e-9. captum runs the head {sizes.units + 1} times, we take two "
            f"scans. {_distance(ratios['values'], 100)}",
            peer=1e3 * timed["values"].seconds,
            at_least=100,
        ),
        Row(
            f"{case}, captum on our unit logits",
            1e3 * ours,
            ratios["logits"],
            "captum FeatureAblation",
            "Given our shortcut through unit logits, captum still asks once per unit; what is left "
            "of the ratio is that.",
            peer=1e3 * timed["logits"].seconds,
        ),
    ]


def _read(sizes: Sizes, classes: int) -> tuple[AttentionClassifier, Reading]:
    model = bilstm(classes)
    return model, read(model, batch_of([sizes.units] * sizes.documents))


def _arrays(*importances: Tensor) -> list[tuple[object, ...]]:
    return list(zip(*(importance.numpy() for importance in importances), strict=True))


def _check_close(what: str, ours: Tensor, theirs: Tensor) -> None:
    worst = float((ours - theirs).abs().max())
    if not worst < 1e-9:
        raise Disagreement(f"{what} differ by {worst:.2g}.")


def _distance(ratio: float, limit: float) -> str:
    return f"{ratio / limit:.1f} times the limit of {limit:g}."
