"""The attention farthest from the trained one that leaves the output where it was.

See docs/studies/faithful.md, "Exact adversary".

Written for linear heads, where the output depends on attention through Σ α_i z_i alone.
"""

from math import log
from typing import NamedTuple

import numpy as np
import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from heedful.statistics.divergence import total_variation

TOLERANCE = 0.01
"""ε: how far the output may move, in total variation."""
MOST_UNITS = 400
"""Up to so many units all pairs are searched, above it those of the least attended units."""
MOST_MIXED = 64
"""With more than two classes pairs have no closed form, and fewer units are paired."""
PAIRS = 2**17
"""Pairs of units looked at in one go, so that memory stays bounded."""
HALVINGS = 20
"""Bisection steps for a mixing weight without a closed form."""


class Adversary(NamedTuple):
    """An alternative attention for each document, and how far it and its output have moved."""

    attention: Float[Tensor, "batch unit"]
    jsd: Float[Tensor, " batch"]
    """Jensen-Shannon divergence to the trained attention, in nats."""
    tvd: Float[Tensor, " batch"]
    """Total variation between the outputs."""
    is_exact: Bool[Tensor, " batch"]
    """True where no attention within the tolerance lies farther; else a lower bound."""


class _Side(NamedTuple):
    """Some units of each document, the least attended first."""

    unit: Int[Tensor, "batch place"]
    is_there: Bool[Tensor, "batch place"]
    """False where a document has no more of them."""

    def part(self, rows: slice) -> "_Side":
        """Those of some documents."""
        return _Side(self.unit[rows], self.is_there[rows])


class _Pair(NamedTuple):
    """The best two-unit attention found so far: the smaller the overlap, the farther away."""

    overlap: Float[Tensor, " batch"]
    units: Int[Tensor, "batch 2"]
    share: Float[Tensor, " batch"]
    """Weight of the second unit; the first has the rest."""


def largest_jsd(
    attention: Float[Tensor, "batch unit"], mask: Bool[Tensor, "batch unit"]
) -> Float[Tensor, " batch"]:
    """The divergence of the farthest attention of all: everything on the least attended unit."""
    least = attention.masked_fill(~mask, torch.inf).amin(-1)
    return log(2) - _overlap(torch.ones_like(least), least) / 2


def farthest(
    attention: Float[Tensor, "batch unit"],
    said: Float[Tensor, "batch unit class"],
    mask: Bool[Tensor, "batch unit"],
    tolerance: float = TOLERANCE,
    most_units: int = MOST_UNITS,
) -> Adversary:
    """The attention of greatest divergence whose output moves by at most the tolerance.

    `said` are the logits of each unit alone, offset included. With two classes the attentions that
    keep the output form a slab of the simplex; the divergence is convex, so it is greatest at a
    vertex, which holds one unit within the slab or two units that meet one of its faces: exact.
    With more classes a lower bound: the better of one vertex of the polytope inside the tolerance
    and the best two-unit attention among the 64 least attended units.

    Above `most_units` units, a pair's unit below a face is one of the `most_units / 2` least
    attended ones there, and likewise above; single units are all looked at. The result is then a
    lower bound too, unless neither side has more.
    """
    start = torch.bmm(attention[:, None], said)[:, 0]
    trained = start.softmax(-1)
    best = _best_single(attention, said, mask, trained, tolerance)
    if said.shape[-1] == 2:
        best, is_exact = _two_classes(attention, said, mask, start, tolerance, most_units, best)
        moved = _as_rows(best, attention)
    else:
        is_exact = torch.zeros_like(mask[:, 0])
        vertex = _polytope_vertices(attention, said, mask, start, tolerance)
        enough = _overlap(vertex, attention).sum(-1)
        best = _more_classes(attention, said, mask, trained, tolerance, best, enough)
        moved = torch.where((best.overlap < enough)[:, None], _as_rows(best, attention), vertex)
    tvd = total_variation(_output(moved, said), trained)
    return Adversary(moved, _jsd(moved, attention), tvd, is_exact)


def _overlap(t: Float[Tensor, "..."], a: Float[Tensor, "..."]) -> Float[Tensor, "..."]:
    """(t + a) ln(t + a) - t ln t - a ln a, by which units with weight t and attention a agree.

    The divergence of two distributions is ln 2 minus half of its sum over the units, and a unit
    without weight adds nothing: with two units it costs O(1). Rises with a at every t.
    """
    return torch.xlogy(t + a, t + a) - torch.xlogy(t, t) - torch.xlogy(a, a)


def _jsd(p: Float[Tensor, "batch unit"], q: Float[Tensor, "batch unit"]) -> Float[Tensor, " batch"]:
    return (log(2) - _overlap(p, q).sum(-1) / 2).clamp_min(0)


def _output(
    attention: Float[Tensor, "batch unit"], said: Float[Tensor, "batch unit class"]
) -> Float[Tensor, "batch class"]:
    return torch.bmm(attention[:, None], said)[:, 0].softmax(-1)


def _as_rows(pair: _Pair, trained: Float[Tensor, "batch unit"]) -> Float[Tensor, "batch unit"]:
    """The pair as an attention row; the trained one where no pair was found."""
    weights = torch.stack([1 - pair.share, pair.share], -1)
    rows = torch.zeros_like(trained).scatter_add(1, pair.units, weights)
    return torch.where(pair.overlap.isinf()[:, None], trained, rows)


def _better(first: _Pair, second: _Pair) -> _Pair:
    is_second = second.overlap < first.overlap
    return _Pair(
        torch.where(is_second, second.overlap, first.overlap),
        torch.where(is_second[:, None], second.units, first.units),
        torch.where(is_second, second.share, first.share),
    )


def _best_single(
    attention: Float[Tensor, "batch unit"],
    said: Float[Tensor, "batch unit class"],
    mask: Bool[Tensor, "batch unit"],
    trained: Float[Tensor, "batch class"],
    tolerance: float,
) -> _Pair:
    """The least attended unit that alone keeps the output; overlap inf where none does."""
    keeps = total_variation(said.softmax(-1), trained[:, None]) <= tolerance
    overlap = _overlap(torch.ones_like(attention), attention).masked_fill(
        ~(keeps & mask), torch.inf
    )
    least, unit = overlap.min(-1)
    return _Pair(least, unit[:, None].expand(-1, 2), torch.zeros_like(least))


def _least_attended(
    attention: Float[Tensor, "batch unit"],
    among: Bool[Tensor, "batch unit"],
    most: Int[Tensor, " batch"],
) -> _Side:
    """The least attended of some units, at most so many of each document."""
    count = torch.minimum(among.sum(-1), most)
    place = torch.arange(max(int(count.max()), 1), device=count.device)
    unit = attention.masked_fill(~among, torch.inf).argsort(dim=-1, stable=True)
    return _Side(unit[:, : len(place)], place < count[:, None])


def _two_classes(
    attention: Float[Tensor, "batch unit"],
    said: Float[Tensor, "batch unit class"],
    mask: Bool[Tensor, "batch unit"],
    start: Float[Tensor, "batch class"],
    tolerance: float,
    most_units: int,
    best: _Pair,
) -> tuple[_Pair, Bool[Tensor, " batch"]]:
    """The best vertex of slab and simplex, and whether every pair was looked at."""
    margin = said[..., 1] - said[..., 0]
    probability = (start[:, 1] - start[:, 0]).sigmoid()
    is_exact = torch.ones_like(mask[:, 0])
    units = mask.sum(-1)
    most = torch.where(units <= most_units, units, max(most_units // 2, 1))
    for sign in (-1, 1):
        found = []
        # Beyond 0 or 1 there is no face: the logit is nan, and no margin compares with nan.
        face = torch.logit(probability + sign * tolerance)[:, None]
        below, above = mask & (margin < face), mask & (margin > face)
        is_exact = is_exact & (below.sum(-1) <= most) & (above.sum(-1) <= most)
        low, high = _least_attended(attention, below, most), _least_attended(attention, above, most)
        size = max(PAIRS // (low.unit.shape[1] * high.unit.shape[1]), 1)
        for start_row in range(0, len(mask), size):
            part = slice(start_row, start_row + size)
            crossing = _best_crossing(
                attention[part], margin[part], face[part], low.part(part), high.part(part)
            )
            found.append(crossing)
        best = _better(best, _Pair(*(torch.cat(x) for x in zip(*found, strict=True))))
    return best, is_exact


def _best_crossing(
    attention: Float[Tensor, "batch unit"],
    margin: Float[Tensor, "batch unit"],
    face: Float[Tensor, "batch 1"],
    below: _Side,
    above: _Side,
) -> _Pair:
    """The best mixture of a unit below a face and one above it that lies on the face."""
    (low, is_low), (high, is_high) = below, above
    under = face - margin.gather(1, low)
    over = margin.gather(1, high) - face
    gap = (under[:, :, None] + over[:, None]).clamp_min(torch.finfo(margin.dtype).tiny)
    share = under[:, :, None] / gap
    overlap = _overlap(over[:, None] / gap, attention.gather(1, low)[:, :, None])
    overlap += _overlap(share, attention.gather(1, high)[:, None])
    overlap = overlap.masked_fill(~(is_low[:, :, None] & is_high[:, None]), torch.inf)
    least, place = overlap.flatten(1).min(-1)
    first, second = place // high.shape[1], place % high.shape[1]
    units = torch.stack([_at(low, first), _at(high, second)], -1)
    # Where there is no pair at all the share may be nan; it is never used.
    return _Pair(least, units, _at(share.flatten(1), place).nan_to_num(0.0))


def _at(x: Float[Tensor, "batch place"], place: Int[Tensor, " batch"]) -> Float[Tensor, " batch"]:
    return x.gather(1, place[:, None])[:, 0]


def _more_classes(
    attention: Float[Tensor, "batch unit"],
    said: Float[Tensor, "batch unit class"],
    mask: Bool[Tensor, "batch unit"],
    trained: Float[Tensor, "batch class"],
    tolerance: float,
    best: _Pair,
    enough: Float[Tensor, " batch"],
) -> _Pair:
    """The best two-unit attention found within the tolerance, if its overlap is below `enough`.

    Along the mixtures of two units KL(trained ‖ output) is convex: bisection finds where it is
    least. Where the output is within the tolerance there, both ends of the stretch within it are
    bisected, since the divergence is convex and greatest at an end. Pairs whose better unit, alone,
    would not beat the best attention so far are left out before all that.
    """
    most = torch.full_like(mask[:, 0], MOST_MIXED, dtype=torch.long)
    unit, is_there = _least_attended(attention, mask, most)
    first, second = torch.triu_indices(unit.shape[1], unit.shape[1], 1, device=unit.device)
    size = max(PAIRS // max(len(unit), 1), 1)
    alone = _overlap(torch.ones_like(attention), attention)
    for start in range(0, len(first), size):
        places = torch.stack([first, second], -1)[start : start + size]
        pair = unit[:, places]
        document = torch.arange(len(unit), device=unit.device)[:, None, None].expand_as(pair)
        could_win = alone[document, pair].amin(-1) < torch.minimum(best.overlap, enough)[:, None]
        could_win &= is_there[:, places].all(-1)
        document, place = could_win.nonzero(as_tuple=True)
        if len(document):
            best = _better(
                best,
                _best_mixture(pair[document, place], document, attention, said, trained, tolerance),
            )
    return best


def _best_mixture(
    pair: Int[Tensor, "pair 2"],
    document: Int[Tensor, " pair"],
    attention: Float[Tensor, "batch unit"],
    said: Float[Tensor, "batch unit class"],
    trained: Float[Tensor, "batch class"],
    tolerance: float,
) -> _Pair:
    origin = said[document, pair[:, 0]]
    towards = said[document, pair[:, 1]] - origin
    goal = trained[document]

    def output(share: Float[Tensor, "pair"]) -> Float[Tensor, "pair class"]:
        return (origin + share[:, None] * towards).softmax(-1)

    low, high = torch.zeros_like(goal[:, 0]), torch.ones_like(goal[:, 0])
    for _ in range(HALVINGS):
        middle = (low + high) / 2
        falls = (towards * (output(middle) - goal)).sum(-1) < 0
        low, high = torch.where(falls, middle, low), torch.where(falls, high, middle)
    nearest = (low + high) / 2
    within = total_variation(output(nearest), goal) <= tolerance
    pair, document, nearest = pair[within], document[within], nearest[within]
    origin, towards, goal = origin[within], towards[within], goal[within]
    found = _nothing(trained)
    for end in (0.0, 1.0):
        inside, outside = nearest, torch.full_like(nearest, end)
        for _ in range(HALVINGS):
            middle = (inside + outside) / 2
            is_inside = total_variation(output(middle), goal) <= tolerance
            inside = torch.where(is_inside, middle, inside)
            outside = torch.where(is_inside, outside, middle)
        a = attention[document[:, None], pair]
        overlap = _overlap(1 - inside, a[:, 0]) + _overlap(inside, a[:, 1])
        found = _better(found, _least_per_document(overlap, pair, inside, document, trained))
    return found


def _nothing(trained: Float[Tensor, "batch class"]) -> _Pair:
    none = torch.full_like(trained[:, 0], torch.inf)
    units = torch.zeros(len(trained), 2, dtype=torch.long, device=trained.device)
    return _Pair(none, units, torch.zeros_like(none))


def _least_per_document(
    overlap: Float[Tensor, " pair"],
    pair: Int[Tensor, "pair 2"],
    share: Float[Tensor, " pair"],
    document: Int[Tensor, " pair"],
    trained: Float[Tensor, "batch class"],
) -> _Pair:
    """Of many mixtures the one with the least overlap for each document."""
    found = _nothing(trained)
    order = overlap.argsort(dim=0, descending=True, stable=True)
    # Written from the largest to the least: the last one to write is the one that stays.
    chosen = torch.full_like(found.units[:, 0], -1)
    for_document = found.overlap.scatter_reduce(0, document, overlap, "amin")
    is_least = overlap[order] == for_document[document[order]]
    chosen[document[order][is_least]] = order[is_least]
    has = chosen >= 0
    picked = chosen[has]
    return _Pair(
        found.overlap.masked_scatter(has, overlap[picked]),
        found.units.masked_scatter(has[:, None], pair[picked]),
        found.share.masked_scatter(has, share[picked]),
    )


def _polytope_vertices(
    attention: Float[Tensor, "batch unit"],
    said: Float[Tensor, "batch unit class"],
    mask: Bool[Tensor, "batch unit"],
    start: Float[Tensor, "batch class"],
    tolerance: float,
) -> Float[Tensor, "batch unit"]:
    """For each document the attention with the least trained attention under it.

    A linear programme per document: Σ α̃_i a_i is made as small as it gets while every logit stays,
    up to one common shift κ, within δ = 2 artanh(ε) of where it was, which keeps the total
    variation within tanh(δ / 2) = ε. A vertex has about as many units as there are classes.
    """
    from scipy.optimize import linprog  # of more than two classes; takes long to import

    # A millionth inside, since the solver keeps its constraints to about 1e-7 only.
    slack = (1 - 1e-6) * 2 * np.arctanh(min(tolerance, 0.999))
    classes = said.shape[-1]
    rows = attention.clone()
    for document, units in enumerate(mask.sum(-1).tolist()):
        z = said[document, mask[document]].T.cpu().numpy()
        a = attention[document, mask[document]].cpu().numpy()
        moved = np.hstack([z, -np.ones((classes, 1))])
        centre = start[document].cpu().numpy()
        found = linprog(
            np.append(a, 0.0),
            A_ub=np.vstack([moved, -moved]),
            b_ub=np.concatenate([centre + slack, slack - centre]),
            A_eq=np.append(np.ones(units), 0.0)[None],
            b_eq=[1.0],
            bounds=[(0, None)] * units + [(None, None)],
        )
        if found.x is not None:
            row = torch.from_numpy(np.clip(found.x[:-1], 0, None)).to(attention)
            rows[document, mask[document]] = row / row.sum()
    within = total_variation(_output(rows, said), start.softmax(-1)) <= tolerance
    return torch.where(within[:, None], rows, attention)
