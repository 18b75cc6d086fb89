"""How time per document grows with its units, in batches of constant units as audits make them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

from benchmarks.cases import flips, orders
from benchmarks.sizes import Sizes
from benchmarks.subjects import batch_of, bilstm
from benchmarks.table import Row
from benchmarks.timing import exponent, side_by_side
from heedful.audits.exact_adversary import MOST_UNITS, farthest
from heedful.audits.substitution import permutation_moments, permuted_logits
from heedful.models import (
    AttentionClassifier,
    Reading,
    alone,
    decide,
    read,
    uniform,
    without_each,
)
from heedful.statistics.agreement import kendall_tau_b
from heedful.statistics.estimates import per_cent


def _curves(model: AttentionClassifier, reading: Reading) -> None:
    flips(model, reading, orders(model, reading))


def _substituted(model: AttentionClassifier, reading: Reading) -> None:
    decide(model, reading, uniform(reading))
    assert reading.unit_logits is not None
    permutation_moments(reading.attention, reading.unit_logits, reading.mask)


def _shuffled(model: AttentionClassifier, reading: Reading) -> None:
    permuted_logits(model, reading, 0)


def _kendall(model: AttentionClassifier, reading: Reading) -> None:
    assert reading.unit_logits is not None
    kendall_tau_b(reading.attention, reading.unit_logits[..., 0], reading.mask)


def _adversary(model: AttentionClassifier, reading: Reading) -> Any:
    said = alone(model, reading).masked_fill(~reading.mask[..., None], 0)
    return farthest(reading.attention, said, reading.mask)


LINEAR: dict[str, tuple[Callable[[AttentionClassifier, Reading], Any], str]] = {
    "rankings, curves, first flips": (_curves, "the sort of the rankings is n log n, the rest n"),
    "leave-one-out": (without_each, "two scans"),
    "uniform + permutation moments": (_substituted, "sums over units"),
    "100 sampled permutations": (
        _shuffled,
        "sorting noise is most of it, and n log n alone gives 1.14",
    ),
    "Kendall τ": (_kendall, "two sorts and one pass per bit are n log n, which alone gives 1.14"),
}


def growth_rows(sizes: Sizes) -> list[Row]:
    """Fitted exponents of everything that should be linear, then of the pair adversary."""
    model = bilstm(sizes.classes)
    in_batch = sizes.documents * min(sizes.lengths)
    readings = {n: read(model, batch_of([n] * max(in_batch // n, 1))) for n in sizes.lengths}
    functions = {
        (name, n): partial(function, model, reading)
        for name, (function, _) in LINEAR.items()
        for n, reading in readings.items()
    }
    timed = side_by_side({f"{name} {n}": f for (name, n), f in functions.items()}, sizes.repeats)
    rows = []
    for name, (_, why) in LINEAR.items():
        each = {
            n: timed[f"{name} {n}"].seconds / len(reading.mask) for n, reading in readings.items()
        }
        # A correlation of ranks sorts, and n log n alone grows with exponent 1.14 over this range.
        rows.append(_row(name, each, why, 1.2 if name == "Kendall τ" else 1.1))
    return rows + pair_rows(sizes)


def pair_rows(sizes: Sizes) -> list[Row]:
    """The pair adversary: every pair up to a number of units, a subset above it."""
    model = bilstm(2)
    above = [n for n in sizes.lengths if n > MOST_UNITS] or list(sizes.lengths)
    lengths = sorted({*sizes.pair_lengths, *above})
    readings = {n: read(model, batch_of([n] * sizes.pair_documents)) for n in lengths}
    timed = side_by_side(
        {str(n): partial(_adversary, model, reading) for n, reading in readings.items()},
        sizes.slow_repeats,
    )
    each = {n: timed[str(n)].seconds / sizes.pair_documents for n in lengths}
    exact = {n: float(timed[str(n)].result.is_exact.double().mean()) for n in lengths}
    return [
        _row(
            "pair adversary, every pair",
            {n: each[n] for n in sizes.pair_lengths},
            "quadratic: every pair on either side of a face, "
            f"{per_cent(exact[max(sizes.pair_lengths)])} of the results exact",
            None,
        ),
        _row(
            f"pair adversary, above {MOST_UNITS} units",
            {n: each[n] for n in above},
            f"a subset: the {MOST_UNITS // 2} least attended units on either side of a face, so "
            f"the number of pairs no longer grows; {per_cent(exact[max(above)])} of the results at "
            f"{max(above):,} units are exact, the rest lower bounds",
            1.1,
        ),
    ]


def _row(name: str, each: dict[int, float], why: str, limit: float | None) -> Row:
    lengths: Sequence[int] = list(each)
    slope = exponent(each)
    spelt = ", ".join(f"{1e3 * seconds:.3g} ms at {n:,}" for n, seconds in each.items())
    distance = "no limit set" if limit is None else f"{limit - slope:+.2f} from the limit"
    return Row(
        f"growth of {name}, n = {min(lengths):,} to {max(lengths):,}",
        1e3 * each[max(lengths)],
        slope,
        "fitted exponent",
        f"Per document {spelt}: exponent {slope:.2f}, {distance}; {why}.",
        at_most=limit,
    )
