"""All agreements of a reference run with others: which vectors enter which column.

See docs/studies/dynamics.md, "Which vectors meet".

The reference is one normal run A at its best checkpoint; comparisons are normal runs of other
seeds, `uniforms` runs whose attention was frozen uniform. Every pair is measured row by row at
every checkpoint of its second vector, so that tables, curves and intervals need nothing else.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from types import MappingProxyType
from typing import Any

import numpy as np
import torch
from jaxtyping import Float, Float64, Int, Shaped

from heedful.dynamics.agreement import (
    admitted,
    agrees,
    agrees_split,
    chance,
    concentration,
    first_largest,
    rank_correlation,
    without,
)
from heedful.dynamics.trajectory import ACCURACY, FollowedRun, Trajectory, saliency_name
from heedful.runs.steps import Form
from heedful.studies.dynamics.agreement_curves import Curve, curve_of

MAIN = ("attention~uniform", "proxy~uniform", "saliency~uniform", "attention~probe")
"""The four columns of the tables; the first vector's largest unit is looked for in the second."""
RANKED = MAIN[:3]
"""Those that rank correlation is computed for."""


@dataclass(frozen=True, eq=False)
class CorpusAgreements:
    """Agreements of one corpus and split, row by row."""

    arrays: Mapping[str, Shaped[np.ndarray, "checkpoint row"]]
    """By `measure:pair`; a pair without a trajectory has one checkpoint."""
    item: Int[np.ndarray, " row"]
    steps: Int[np.ndarray, " checkpoint"]
    best: int
    """The reference's checkpoint."""
    performance: Mapping[str, Float64[np.ndarray, " checkpoint"]]
    """By run: `reference`, and the names of the comparisons and uniform runs."""
    facts: Mapping[str, Any] = field(default_factory=dict)

    def has(self, key: str) -> bool:
        """Whether the pair was measured that way."""
        return key in self.arrays

    def curve(self, key: str) -> Curve:
        """The agreement of a pair over training."""
        rows = None
        if "inner" in key.partition(":")[0]:
            rows = np.flatnonzero(self.arrays["rows inner"][0])
        return curve_of(self.arrays[key], self.item, rows)

    def runs(self, prefix: str) -> list[str]:
        """The runs that a pair was measured with: `attention~attention/` gives the comparisons."""
        return [key.removeprefix(prefix) for key in self.arrays if key.startswith(prefix)]


def compare(
    reference: FollowedRun,
    comparisons: Mapping[str, FollowedRun],
    uniforms: Mapping[str, FollowedRun],
    predictors: Mapping[str, Float[np.ndarray, " flat"]],
    split: str,
    *,
    performance: str = ACCURACY,
    frozen: Mapping[str, FollowedRun] = MappingProxyType({}),
    is_brief: bool = False,
    is_ranked: bool = True,
    device: torch.device | str = "cpu",
) -> CorpusAgreements:
    """Every column of the tables and every curve of the claims, for one split.

    `predictors` are vectors from words alone: `proxy`, `logistic`, `counts`, `em`.
    The first comparison and the first uniform run are those of the published columns; what a
    column is over other runs stands under `paired` (`_paired`). A brief comparison leaves out the
    checks, one that is not ranked the rank correlations.
    """
    run = reference.splits[split]
    best = run.best(performance)
    attention, lengths = run.attention[best], run.lengths
    first = next(iter(uniforms))
    beta_uf = uniforms[first].splits[split].probe
    firsts = {"attention": attention} | dict(predictors)
    # Translators have two best checkpoints, by accuracy and by BLEU, and Δ is taken at each.
    key = saliency_name(split, performance)
    if key in reference.saliency:
        firsts["saliency"] = reference.saliency[key]
        firsts["-saliency"] = -reference.saliency[key]
    found: dict[str, np.ndarray] = {}
    pairs: dict[str, tuple[np.ndarray, np.ndarray]] = {
        f"{name}~uniform": (vector, beta_uf) for name, vector in firsts.items()
    }
    for other in list(comparisons.values())[:1]:
        pairs["attention~probe"] = attention, other.splits[split].probe
    pairs["own attention~own probe"] = run.attention, run.probe
    for name in ("saliency", *predictors):
        if name in firsts:
            pairs[f"attention~{name}"] = attention, firsts[name][None]
    if "proxy" in predictors:
        pairs["uniform~proxy"] = beta_uf, predictors["proxy"]
        pairs["proxy~own probe"] = predictors["proxy"], run.probe
    for name, (u, v) in pairs.items():
        found[f"top:{name}"] = agrees(u, np.atleast_2d(v), lengths)
    for name, other in comparisons.items():
        theirs = other.splits[split]
        found[f"top:attention~attention/{name}"] = agrees(attention, theirs.attention, lengths)
        if is_ranked:
            found[f"tau:attention~attention/{name}"] = rank_correlation(
                attention, theirs.attention, lengths, device
            )
        found[f"correct:{name}"] = theirs.correct
    for name in RANKED:
        if name in pairs and is_ranked:
            found[f"tau:{name}"] = rank_correlation(*pairs[name], lengths, device)
    found["correct:reference"] = run.correct
    found["chance:uniform"] = chance(beta_uf, lengths)
    if "attention~probe" in pairs:
        found["chance:probe"] = chance(pairs["attention~probe"][1], lengths)
    if "attention~saliency" in pairs:
        found["chance:saliency"] = chance(pairs["attention~saliency"][1], lengths)
    if not is_brief:
        found |= _checks(run, pairs, comparisons, uniforms, split, attention, predictors)
    attending = [reference, *comparisons.values()]
    kept = [one for one in frozen.values() if split in one.splits]
    found |= _paired(
        attending, list(uniforms.values()), kept, predictors, split, performance,
        is_brief=is_brief, is_ranked=is_ranked, device=device,
    )  # fmt: skip
    runs = {"reference": run} | {n: f.splits[split] for n, f in comparisons.items()}
    runs |= {f"uniform {n}": f.splits[split] for n, f in uniforms.items()}
    return CorpusAgreements(
        arrays=found,
        item=run.item,
        steps=run.steps,
        best=best,
        performance={name: one.performance(performance) for name, one in runs.items()},
        facts={
            "performance": performance,
            "rows": len(lengths),
            "units": int(lengths.sum()),
            "special": _on_special(run, {"attention": attention, "probe of uniform": beta_uf[-1]}),
        },
    )


def _paired(
    attending: Sequence[FollowedRun],
    uniforms: Sequence[FollowedRun],
    frozen: Sequence[FollowedRun],
    predictors: Mapping[str, np.ndarray],
    split: str,
    performance: str,
    *,
    is_brief: bool,
    is_ranked: bool,
    device: torch.device | str,
) -> dict[str, np.ndarray]:
    """Every column over several trainings: `paired top:attention~uniform/3` is that of the fourth.

    The k-th run with attention, where it performs best, meets the k-th with uniform attention and
    the k-th on a frozen probe, so that no run is in two pairs; and the probe of the next run with
    attention, the last one's next being the first: there each is in two.
    """
    found: dict[str, np.ndarray] = {}
    runs = [one.splits[split] for one in attending]
    lengths = runs[0].lengths
    left = None if is_brief else without(runs[0].is_special, lengths)

    def add(name: str, number: int, u: np.ndarray, v: np.ndarray) -> None:
        v = np.atleast_2d(v)
        found[f"paired top:{name}/{number}"] = agrees(u, v, lengths)
        if is_ranked and name in RANKED:
            found[f"paired tau:{name}/{number}"] = rank_correlation(u, v, lengths, device)
        if left is not None and name in (*MAIN, "attention~saliency"):
            found[f"paired split:{name}/{number}"] = agrees_split(u, v, lengths)
            inner = u[..., left.is_kept], v[..., left.is_kept]
            found[f"paired inner:{name}/{number}"] = agrees(*inner, left.lengths)

    def add_chance(second: str, number: int, v: np.ndarray) -> None:
        v = np.atleast_2d(v)
        found[f"paired chance:{second}/{number}"] = chance(v, lengths)
        if left is not None and second in ("uniform", "probe", "saliency"):
            inner = v[..., left.is_kept]
            found[f"paired inner chance:{second}/{number}"] = chance(inner, left.lengths)

    bests = [run.attention[run.best(performance)] for run in runs]
    deltas = [one.saliency.get(saliency_name(split, performance)) for one in attending]
    for number, uniform in enumerate(uniforms):
        beta = uniform.splits[split].probe
        add_chance("uniform", number, beta)
        for name, vector in predictors.items():
            add(f"{name}~uniform", number, vector, beta)
        if "proxy" in predictors:
            add("uniform~proxy", number, beta, predictors["proxy"])
        if number >= len(attending):
            continue
        add("attention~uniform", number, bests[number], beta)
        delta = deltas[number]
        if delta is not None:
            add("saliency~uniform", number, delta, beta)
            add("-saliency~uniform", number, -delta, beta)
    for number, one in enumerate(frozen[: len(attending)]):
        add("attention~frozen", number, bests[number], one.splits[split].attention)
    for number, run in enumerate(runs):
        if len(runs) > 1:
            following = runs[(number + 1) % len(runs)].probe
            add("attention~probe", number, bests[number], following)
            add_chance("probe", number, following)
        own = run.probe[run.best(performance)]
        add("own attention~own probe", number, bests[number], own)
        add_chance("own probe", number, own)
        delta = deltas[number]
        if delta is not None:
            add("attention~saliency", number, bests[number], delta)
            add_chance("saliency", number, delta)
        for other, their in enumerate(runs):
            if other != number and not is_brief:
                agreed = agrees(bests[number], their.attention, lengths)
                found[f"context:{number}/{other}"] = agreed
        found[f"context correct:{number}"] = run.correct
    return found


def _checks(
    run: Trajectory,
    pairs: Mapping[str, tuple[np.ndarray, np.ndarray]],
    comparisons: Mapping[str, FollowedRun],
    uniforms: Mapping[str, FollowedRun],
    split: str,
    attention: np.ndarray,
    predictors: Mapping[str, np.ndarray],
) -> dict[str, np.ndarray]:
    """Ties split, marks left out, other seeds, chance of further vectors, entropy."""
    lengths = run.lengths
    found: dict[str, np.ndarray] = {}
    left = without(run.is_special, lengths)
    found["rows inner"] = np.isin(np.arange(len(lengths)), left.rows)[None]
    for name in (*MAIN, "attention~saliency"):
        if name in pairs:
            u, v = pairs[name][0], np.atleast_2d(pairs[name][1])
            found[f"split:{name}"] = agrees_split(u, v, lengths)
            inner_u, inner_v = u[..., left.is_kept], v[..., left.is_kept]
            found[f"inner:{name}"] = agrees(inner_u, inner_v, left.lengths)
    for name in ("uniform", "probe") if comparisons else ("uniform",):
        vector = pairs[f"attention~{name}"][1][..., left.is_kept]
        found[f"inner chance:{name}"] = chance(vector, left.lengths)
    if "attention~saliency" in pairs:
        delta = pairs["attention~saliency"][1][..., left.is_kept]
        found["inner chance:saliency"] = chance(delta, left.lengths)
    for name in predictors:
        found[f"chance:{name}"] = chance(predictors[name][None], lengths)
    found["chance:own probe"] = chance(run.probe, lengths)
    found["chance:without ties"] = (admitted(lengths) / lengths)[None]
    for name, other in list(uniforms.items())[1:]:
        beta = other.splits[split].probe
        found[f"top:attention~uniform/{name}"] = agrees(attention, beta, lengths)
        for other_name in ("proxy", "saliency"):
            if f"{other_name}~uniform" in pairs:
                vector = pairs[f"{other_name}~uniform"][0]
                found[f"top:{other_name}~uniform/{name}"] = agrees(vector, beta, lengths)
    beta_uf = next(iter(uniforms.values())).splits[split].probe
    for name, other in comparisons.items():
        theirs = other.splits[split]
        best = theirs.attention[theirs.best()]
        found[f"top:attention/{name}~uniform"] = agrees(best, beta_uf, lengths)
        found[f"top:attention~probe/{name}"] = agrees(attention, theirs.probe, lengths)
        found[f"top:final attention~attention/{name}"] = agrees(
            run.attention[-1], theirs.attention[-1:], lengths
        )
    found["entropy:attention"] = concentration(run.attention, lengths)
    return found


def _on_special(run: Trajectory, vectors: Mapping[str, np.ndarray]) -> dict[str, float]:
    """The share of rows whose largest unit is a start or end symbol."""
    return {
        name: float(run.is_special[first_largest(vector, run.lengths)].mean())
        for name, vector in vectors.items()
    }


def _save(path: Path, compared: CorpusAgreements) -> None:
    from safetensors.numpy import save_file

    arrays = {}
    for name, values in compared.arrays.items():
        kind = np.uint8 if values.dtype == bool else np.float32
        arrays[name] = np.ascontiguousarray(values.astype(kind))
    arrays["item"] = compared.item.astype(np.int32)
    arrays["steps"] = compared.steps.astype(np.int32)
    about = {
        "best": compared.best,
        "performance": {name: list(map(float, v)) for name, v in compared.performance.items()},
        "facts": dict(compared.facts),
    }
    save_file(arrays, str(path), {"about": json.dumps(about)})


def _load(path: Path) -> CorpusAgreements:
    from safetensors import safe_open

    with safe_open(str(path), framework="numpy") as file:
        arrays = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118
        about = json.loads(file.metadata()["about"])
    item, steps = arrays.pop("item"), arrays.pop("steps")
    return CorpusAgreements(
        arrays=arrays,
        item=item.astype(np.int64),
        steps=steps.astype(np.int64),
        best=about["best"],
        performance={name: np.array(v) for name, v in about["performance"].items()},
        facts=about["facts"],
    )


COMPARED: Form[CorpusAgreements] = Form(".safetensors", _save, _load)
"""How agreements lie on disk as the result of a step."""


def mean_of(curves: Iterable[Curve]) -> Curve:
    """The mean of several runs' curves over the same rows."""
    several = list(curves)
    sums = np.mean([curve.sums for curve in several], axis=0)
    counts = np.mean([curve.counts for curve in several], axis=0)
    return Curve(sums, counts, several[0].names)
