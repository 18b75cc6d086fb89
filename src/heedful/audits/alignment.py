"""Whether a translator's attention may be shown as a word alignment.

The alignment (known by construction, or by `heedful align`) marks, for each output piece, the
source pieces it goes with; for the audit they are the known evidence of that piece. Beside
attention stand three ways to align that need no model: a piece drawn at random, the same position,
and the diagonal. Between languages of like word order the last two are hard to beat.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Literal

import pandas as pd
import torch
from jaxtyping import Bool, Float, Float64, Int
from torch import Tensor

from heedful.audits.evidence import share_on
from heedful.audits.finding import Audit, Finding, Measure
from heedful.audits.tables import per_ranking, percent
from heedful.corpora.pairs import END, START, pair_of
from heedful.corpora.parallel import Links
from heedful.importance import Importance
from heedful.models.reading import Reading
from heedful.models.verbs import AttentiveModel
from heedful.statistics.estimates import Estimate, per_cent
from heedful.statistics.intervals import pooled

HIT, MASS = "top piece is aligned", "mass on aligned pieces"
ON_MARKS = "top unit is <s> or </s>"
BEYOND = "aligned more often than"
CHANCE, SAME, DIAGONAL = "a piece drawn at random", "the same position", "the diagonal"
BASELINES = (SAME, DIAGONAL, CHANCE)
"""What aligns without a model."""
MORE = 0.0
"""Attention beats a baseline if the interval of the difference, pairs resampled, lies above."""
MOST = 0.5
"""A share of aligned pieces whose interval lies above is enough to show attention."""

Outcome = Literal["yes", "partly", "no"]


def with_links(reading: Reading, links: Sequence[Links]) -> Reading:
    """A translator's reading with the units that each output piece is aligned with as evidence.

    `links[s]` are those of the reading's sentence s; source units count the start symbol as 0.
    """
    if reading.shared is None:
        raise ValueError("links are for a translator's reading, in which sentences are shared")
    marked = torch.zeros_like(reading.mask)
    rows = {
        (sentence, int(step)): row
        for row, (sentence, step) in enumerate(
            zip(reading.shared.tolist(), reading.state.step.tolist(), strict=True)
        )
    }
    for sentence, pairs in enumerate(links):
        for unit, step in pairs:
            if (sentence, step) in rows and unit < marked.shape[1]:
                marked[rows[sentence, step], unit] = True
    return replace(reading, batch=replace(reading.batch, evidence=marked & reading.mask))


def rows(
    model: AttentiveModel, reading: Reading, importance: Importance, seed: int
) -> pd.DataFrame:
    """For each output piece and method: whether the top unit is aligned, and the mass that is.

    Of tied units the top one is drawn at random: a hit is then a probability. Importance may lie on
    the start and end of the source too, where it is never aligned (`mark` is the share of top units
    there); the baselines choose among pieces alone. `tied` is whether there was anything to draw. A
    piece without links has nan. The end of the output is no piece and has no row; nor has a
    classifier's document. `sentence` is the pair that a piece is of.
    """
    if reading.shared is None or reading.evidence is None or not importance:
        return pd.DataFrame()
    mask, ids = reading.mask, reading.batch.ids
    is_piece = mask & (ids != START) & (ids != END)
    found = reading.evidence & is_piece
    has_links = found.any(-1)
    tops = [_tops(score, mask) for score in importance.values()]
    masses = [share_on(score, found, mask) for score in importance.values()]
    columns = {
        "hit": torch.stack([(top * found).sum(-1) for top in tops], 1),
        "mass": torch.stack(masses, 1),
        "mark": torch.stack([(top * ~is_piece).sum(-1) for top in tops], 1),
        "tied": torch.stack([((top > 0).sum(-1) > 1).double() for top in tops], 1),
        CHANCE: (found.sum(-1).double() / is_piece.sum(-1))[:, None],
        SAME: _at(_same_position(reading, is_piece), found),
        DIAGONAL: _at(_diagonal(reading, is_piece), found),
    }
    table = per_ranking(
        reading.names,
        list(importance),
        links=found.sum(-1, keepdim=True),
        is_end=(reading.labels == END)[:, None],
        **{name: one.masked_fill(~has_links[:, None], torch.nan) for name, one in columns.items()},
    )
    table = table[~table.pop("is_end")].reset_index(drop=True)
    return table.assign(sentence=table["instance"].map(pair_of))


def _tops(
    score: Float[Tensor, "batch unit"], mask: Bool[Tensor, "batch unit"]
) -> Float64[Tensor, "batch unit"]:
    """The chance of each unit to be the top one: all of it, unless there are ties."""
    inside = score.double().masked_fill(~mask, -torch.inf)
    is_top = (inside == inside.amax(-1, keepdim=True)) & mask
    return is_top.double() / is_top.sum(-1, keepdim=True)


def _same_position(reading: Reading, is_piece: Bool[Tensor, "batch unit"]) -> Int[Tensor, " batch"]:
    """The piece with the output piece's own number, or the last one."""
    step: Int[Tensor, " batch"] = reading.state.step
    return torch.minimum(step, is_piece.sum(-1) - 1)


def _diagonal(reading: Reading, is_piece: Bool[Tensor, "batch unit"]) -> Int[Tensor, " batch"]:
    """The piece as far into the source as the output piece is into the output, both by middles."""
    step, sentence = reading.state.step, reading.shared
    assert sentence is not None, "a translator's reading shares its values"
    sizes = torch.bincount(sentence)[sentence] - 1  # without the end
    units = is_piece.sum(-1)
    place = (2 * step + 1) * units // (2 * sizes.clamp_min(1))
    return torch.minimum(place, units - 1)


def _at(
    place: Int[Tensor, " batch"], found: Bool[Tensor, "batch unit"]
) -> Float64[Tensor, "batch 1"]:
    """Whether the piece of that number is aligned; the start symbol is unit 0."""
    return found.gather(1, place[:, None] + 1).double()


def summarise(rows: pd.DataFrame) -> Finding:
    """The finding over all output pieces with links, beside what needs no model.

    Pieces of a sentence hang together: whole sentences are resampled, and n counts them.
    """
    of = int(rows["instance"].nunique()) if len(rows) else 0
    rows = rows[rows["links"] > 0] if of else rows
    kept = int(rows["instance"].nunique()) if len(rows) else 0
    left_out = f"{of - kept:,} of {of:,} output pieces have no aligned source piece: left out."
    notes: tuple[str, ...] = (left_out,) if of > kept else ()
    if not kept:
        nothing = "Nothing could be measured: no output piece has an aligned source piece."
        return AUDIT.finding(nothing, notes=notes)
    methods = {str(name): own for name, own in rows.groupby("ranking", sort=False)}
    first = "attention" if "attention" in methods else next(iter(methods))
    own = methods[first]
    sentences = own["sentence"].tolist()
    measures = [
        Measure(name, pooled(one[column], one["sentence"].tolist()), method)
        for column, name in {"hit": HIT, "mass": MASS, "mark": ON_MARKS}.items()
        for method, one in methods.items()
    ]
    shares = [Measure(HIT, pooled(own[name], sentences), name) for name in BASELINES]
    beyond = [
        Measure(BEYOND, pooled(own["hit"] - own[name], sentences, is_difference=True), name)
        for name in BASELINES
    ]
    measures = [*measures[: len(methods)], *shares, *measures[len(methods) :], *beyond]
    on_marks = next(m.estimate for m in measures if m.name == ON_MARKS and m.method == first)
    is_tied = bool(own["tied"].all())
    largest = (
        "A unit drawn from the tied ones is" if is_tied else f"{first.capitalize()} is largest on"
    )
    notes += (
        f"{largest} <s> or </s> for {percent(on_marks)} of the output pieces; there it counts as "
        "not aligned.",
    )
    finding = AUDIT.finding("", tuple(measures), notes=notes)
    top = f"the piece with most {first}"
    if is_tied:  # as it is everywhere when attention is uniform
        top = f"{first} is largest on several units at once, and one of them drawn at random"
    return replace(finding, answer=_answer(finding, first, top))


def outcome(finding: Finding, method: str = "attention") -> Outcome | None:
    """Whether attention may be shown: `yes`, `partly` or `no`; none where nothing is measured.

    Yes: surely aligned more often than every baseline, and surely more than half of the time.
    Partly: the first alone.
    """
    share = finding.get(HIT, method)
    if share is None:
        return None
    if _unbeaten(finding):
        return "no"
    return "yes" if share.side(MOST) == "above" else "partly"


def _unbeaten(finding: Finding) -> dict[str, Estimate]:
    """The shares of the baselines that are not surely beaten, the best first."""
    beyond = {m.method: m.estimate for m in finding.measures if m.name == BEYOND}
    shares = baselines(finding)
    return {name: shares[name] for name in shares if beyond[name].side(MORE) != "above"}


def baselines(finding: Finding) -> Mapping[str, Estimate]:
    """How often each baseline is aligned, the best first."""
    found = [m for m in finding.measures if m.name == HIT and m.method in BASELINES]
    return {m.method: m.estimate for m in sorted(found, key=lambda m: -m.estimate.value)}


def _answer(finding: Finding, method: str, top: str) -> str:
    share = finding.get(HIT, method)
    assert share is not None, "what is answered was measured"
    said = f"{top} is aligned with {percent(share)} of the output pieces"
    best, found = next(iter(baselines(finding).items()))
    match outcome(finding, method):
        case "yes":
            return f"Yes: {said}, more often than {best} ({percent(found)}), the best baseline."
        case "partly":
            return (
                f"Partly: {said}, more often than {best} ({percent(found)}), the best baseline, "
                f"but not surely more than {per_cent(MOST)}."
            )
    best, found = next(iter(_unbeaten(finding).items()))
    beyond = finding.get(BEYOND, best)
    is_less = beyond is not None and beyond.side(MORE) == "below"
    how = "less often than" if is_less else "not surely more often than"
    return f"No: {said}, {how} {best} ({percent(found)}), which needs no model."


AUDIT = Audit(
    rows,
    summarise,
    name="alignment",
    title="Agreement with an alignment",
    question="May attention be shown as a word alignment?",
    place=14,
    needs=("alignment",),
)
