"""What uniform and permuted attention do to the decision.

See docs/studies/faithful.md, "Uniform and permuted", "Identities".

A model whose attention can be replaced by a flat or a shuffled row without harm does not decide by
where it attends.
"""

from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
import torch
from jaxtyping import Bool, Float, Float64, Int
from torch import Tensor

from heedful.audits.finding import Audit, Finding, Measure, frame
from heedful.audits.tables import counted, histogram, percent
from heedful.importance import Importance
from heedful.models.edits import Permute, uniform
from heedful.models.reading import Reading
from heedful.models.verbs import AttentiveModel, alone, decide
from heedful.runs.randomness import keys, random_permutations
from heedful.statistics.divergence import total_variation
from heedful.statistics.estimates import Estimate, per_cent
from heedful.statistics.intervals import bootstrap, mean, proportion
from heedful.statistics.scores import score_differences, score_estimates
from heedful.statistics.sums import OfSums

DRAWS = 100
CHUNK = 20
"""Permutations weighed at once; fixed, because each chunk has its own key."""
DECIDED_BY_ATTENTION = "decisions changed if attention decided everything"
CAN_CHANGE = "decisions that some attention changes"


class PermutationMoments(NamedTuple):
    """Mean and variance over all n! permutations of the weights."""

    mean: Float[Tensor, "batch class"]
    variance: Float[Tensor, "batch class"]


def permutation_moments(
    attention: Float[Tensor, "batch unit"],
    said: Float[Tensor, "batch unit class"],
    mask: Bool[Tensor, "batch unit"],
) -> PermutationMoments:
    """Exact moments of Σ_i α_π(i) z_i when π is uniform over the permutations of the units.

    The mean is that of uniform attention; the variance Σ(α - 1/n)² Σ(z - z̄)² / (n - 1), and 0 for
    one unit. `said` may be any linear function of the logits, e.g. a margin.
    """
    units = mask.sum(-1, keepdim=True).to(attention)
    real = mask[..., None]
    centre = (said * real).sum(1) / units
    spread = ((said - centre[:, None]) * real).square().sum(1)
    uneven = ((attention - 1 / units) * mask).square().sum(-1, keepdim=True)
    return PermutationMoments(centre, uneven * spread / (units - 1).clamp_min(1))


def permuted_logits(
    model: AttentiveModel, reading: Reading, seed: int, draws: int = DRAWS
) -> Float[Tensor, "batch draw class"]:
    """Logits under randomly permuted attention, keyed by (seed, instance, chunk of draws)."""
    parts = []
    for start in range(0, draws, CHUNK):
        chunk_keys = keys(seed, reading.names, "permuted attention", start)
        order = random_permutations(chunk_keys, reading.mask, min(CHUNK, draws - start))
        parts.append(decide(model, reading, Permute(order)))
    return torch.cat(parts, 1)


def flippable(model: AttentiveModel, reading: Reading) -> Bool[Tensor, " batch"]:
    """Whether some attention changes the decision.

    With a linear head, exact for any number of classes: the decision changes where the largest
    ℓ_c - ℓ_y over the other classes c is above 0, and that is a convex function of attention, so
    its maximum lies on a single unit. With any other head a lower bound.
    """
    differs = alone(model, reading).argmax(-1) != reading.decision[:, None]
    return (differs & reading.mask).any(-1)


def rows(
    model: AttentiveModel, reading: Reading, importance: Importance, seed: int, draws: int = DRAWS
) -> pd.DataFrame:
    """Decisions and distances of each document under uniform and under permuted attention.

    `permuted` lists the decision of every draw. The margin is the decided class's logit minus that
    of the runner-up; its exact moments, and those of every class's logit, are nan unless the head
    is linear.
    """
    flat = decide(model, reading, uniform(reading))[:, 0]
    shuffled = permuted_logits(model, reading, seed, draws)
    trained = reading.logits.softmax(-1)
    exact = _exact_moments(reading)
    margins = torch.cat([shuffled, _margin(shuffled, reading.logits)], -1)
    last = len(model.classes)
    columns = {
        "label": reading.labels,
        "decision": reading.decision,
        "units": reading.units,
        "uniform": flat.argmax(-1),
        "uniform_tvd": total_variation(trained, flat.softmax(-1)),
        "permuted": shuffled.argmax(-1).to(torch.int16),
        "permuted_tvd": total_variation(trained[:, None], shuffled.softmax(-1)).mean(-1),
        "permuted_changes": (shuffled.argmax(-1) != reading.decision[:, None]).double().mean(-1),
        "flippable": flippable(model, reading),
        "margin": _margin(reading.logits, reading.logits)[:, 0],
        "uniform_margin": _margin(flat, reading.logits)[:, 0],
        "exact_margin_mean": exact.mean[:, last],
        "exact_margin_variance": exact.variance[:, last],
        "sampled_margin_mean": margins.mean(1)[:, last],
        "sampled_margin_variance": _variance(margins)[:, last],
        "exact_logit_mean": exact.mean[:, :last],
        "exact_logit_variance": exact.variance[:, :last],
        "sampled_logit_mean": shuffled.mean(1),
        "sampled_logit_variance": _variance(shuffled),
    }
    # The summary never sees the model, and F1 belongs to classes that have names.
    classes = np.tile(np.asarray(model.classes, dtype=object), (len(reading.names), 1))
    arrays = {name: column.cpu().numpy() for name, column in columns.items()}
    return frame(reading.names, **arrays, classes=classes)


def summarise(rows: pd.DataFrame) -> Finding:
    """The finding over all rows: F1 and accuracy where labels are known, changes everywhere."""
    if not len(rows):
        nothing = "Nothing could be measured: there are no documents."
        return AUDIT.finding(nothing)
    names = [str(name) for name in rows["instance"]]
    decision = rows["decision"].to_numpy()
    changed = {
        "uniform": mean(rows["uniform"].to_numpy() != decision, names),
        "permuted": _mean(rows, "permuted_changes", names, 0, 1),
    }
    can_flip = proportion(int(rows["flippable"].sum()), len(rows))
    measures = [Measure("decisions changed", e, m) for m, e in changed.items()]
    changes = {
        "uniform": (rows["uniform"].to_numpy() != decision).astype(np.float64),
        "permuted": rows["permuted_changes"].to_numpy(dtype=np.float64),
    }
    measures += [
        Measure("decisions changed, against chance", against_chance(c, decision, names), edit)
        for edit, c in changes.items()
    ]
    anew = drawn_anew(decision, names)
    measures.append(Measure(DECIDED_BY_ATTENTION, anew))
    measures.append(Measure(CAN_CHANGE, can_flip))
    measures += [
        Measure("TVD to the trained output", _mean(rows, f"{edit}_tvd", names, 0, 1), edit)
        for edit in changed
    ]
    scored = _scores(rows, names)
    measures += [
        Measure(name, estimate, edit)
        for edit, scores in scored.items()
        for name, estimate in scores.items()
    ]
    for moment in ("mean", "variance"):
        measures += [
            Measure(
                f"{moment} of the permuted margin",
                _mean(rows, f"{source}_margin_{moment}", names),
                source,
            )
            for source in ("exact", "sampled")
        ]
    return AUDIT.finding(
        measures=tuple(measures),
        drawn=_drawn(rows, changed, scored),
        notes=_notes(rows),
    )


def decisions(rows: pd.DataFrame) -> dict[str, Int[np.ndarray, "draw instance"]]:
    """What was decided under the trained, the uniform and each permuted attention."""
    return {
        "trained": rows["decision"].to_numpy(dtype=np.int64)[None],
        "uniform": rows["uniform"].to_numpy(dtype=np.int64)[None],
        "permuted": np.stack(list(rows["permuted"])).astype(np.int64).T,
    }


def against_chance(
    changes: Float64[np.ndarray, " instance"],
    decision: Int[np.ndarray, " instance"],
    names: list[str],
) -> Estimate:
    """Changed decisions as a share of those that would change if classes were drawn anew.

    So 1 means that attention settles the decision and 0 that it does not matter, whatever the
    number of classes; undefined where all documents are decided alike.
    """

    def share(
        sums: Float64[np.ndarray, "replicate column"],
    ) -> Float64[np.ndarray, " replicate"]:
        found = np.full(len(sums), np.nan)
        with np.errstate(divide="ignore", invalid="ignore"):
            chance, changed = _differing(sums[:, 1:]), sums[:, 0] / sums[:, 1]
            np.divide(changed, chance, out=found, where=chance > 1e-9)
        return found

    values = np.concatenate([changes[:, None], _decided(decision)], 1)
    return bootstrap(OfSums(values, share), names, method="bca")


def drawn_anew(decision: Int[np.ndarray, " instance"], names: list[str]) -> Estimate:
    """How many decisions would change if classes were drawn anew in the same proportions p.

    1 - Σ_c p_c²: half with two even classes, 80 % with five. This is what shuffling would do where
    attention decides everything.
    """
    return bootstrap(OfSums(_decided(decision), _differing), names, method="bca")


def _decided(decision: Int[np.ndarray, " instance"]) -> Float64[np.ndarray, "instance column"]:
    """A column of ones, then one for each class that says whether it was decided on."""
    classes = np.arange(decision.max(initial=-1) + 1)
    decided = (decision[:, None] == classes).astype(np.float64)
    return np.concatenate([np.ones((len(decision), 1)), decided], 1)


def _differing(
    sums: Float64[np.ndarray, "replicate column"],
) -> Float64[np.ndarray, " replicate"]:
    """1 - Σ_c p_c² of weighted decisions."""
    with np.errstate(divide="ignore", invalid="ignore"):
        shares = sums[:, 1:] / sums[:, :1]
    found: Float64[np.ndarray, " replicate"] = 1 - np.square(shares).sum(1)
    return found


def _exact_moments(reading: Reading) -> PermutationMoments:
    """Moments of each class's logit, then of the margin as one more column."""
    if reading.unit_logits is None or reading.offset is None:
        unknown = torch.full_like(reading.logits[:, :1], torch.nan)
        unknown = unknown.expand(-1, reading.logits.shape[-1] + 1)
        return PermutationMoments(unknown, unknown)
    said = reading.unit_logits + reading.offset[:, None]
    said = torch.cat([said, _margin(said, reading.logits)], -1)
    return permutation_moments(reading.attention, said, reading.mask)


def _margin(
    logits: Float[Tensor, "batch *any class"], trained: Float[Tensor, "batch class"]
) -> Float[Tensor, "batch *any 1"]:
    """Logit of the class decided on minus that of its runner-up, both of the trained attention."""
    first = trained.argmax(-1)
    second = trained.scatter(1, first[:, None], -torch.inf).argmax(-1)

    def of(chosen: Int[Tensor, " batch"]) -> Tensor:
        index = chosen.view(-1, *[1] * (logits.ndim - 1)).expand(*logits.shape[:-1], 1)
        return logits.gather(-1, index)

    return of(first) - of(second)


def _variance(x: Float[Tensor, "batch draw class"]) -> Float[Tensor, "batch class"]:
    return x.var(1) if x.shape[1] > 1 else torch.full_like(x[:, 0], torch.nan)


def _mean(
    rows: pd.DataFrame,
    column: str,
    names: list[str],
    least: float = -np.inf,
    most: float = np.inf,
) -> Estimate:
    return mean(rows[column].to_numpy(dtype=np.float64), names, least=least, most=most)


def _scores(rows: pd.DataFrame, names: list[str]) -> dict[str, dict[str, Estimate]]:
    """Accuracy and F1 of each attention, and their change; nothing where no label is known."""
    gold = rows["label"].to_numpy(dtype=np.int64)
    if not (gold >= 0).any():
        return {}
    classes = [str(name) for name in rows["classes"].iloc[0]]
    predicted = decisions(rows)
    predicted["permuted, one draw"] = predicted["permuted"][:1]
    found = {
        edit: score_estimates(drawn, gold, classes, names) for edit, drawn in predicted.items()
    }
    for edit in ("uniform", "permuted"):
        found[f"{edit} - trained"] = score_differences(
            predicted[edit], predicted["trained"], gold, classes, names
        )
    return {edit: {_named(k): e for k, e in scores.items()} for edit, scores in found.items()}


def _named(score: str) -> str:
    plain = {"accuracy": "accuracy", "macro_f1": "macro F1"}
    return plain.get(score) or f"F1 of {score.removeprefix('f1:')}"


def tell(found: Finding) -> str:
    """What shuffled and uniform attention change, and what they do to the accuracy."""
    changed, accuracy = found.by_method("decisions changed"), found.by_method("accuracy")
    can_flip, anew = (found.by_method(name)[""] for name in (CAN_CHANGE, DECIDED_BY_ATTENTION))
    answer = (
        f"{in_words(changed['permuted'], anew)} Uniform attention changes "
        f"{percent(changed['uniform'])}; some attention could change {percent(can_flip)}"
    )
    if accuracy:
        trained, flat, shuffled = (
            per_cent(accuracy[edit].value) for edit in ("trained", "uniform", "permuted")
        )
        answer += f". Accuracy: {trained} as trained, {flat} uniform, {shuffled} shuffled"
    return f"{answer}."


def in_words(changed: Estimate, anew: Estimate) -> str:
    """What shuffling changes, beside what it would change if attention decided everything."""
    return (
        f"Shuffling attention changes {percent(changed)} of the decisions; if attention decided "
        f"everything it would be about {percent(anew)}."
    )


def _drawn(
    rows: pd.DataFrame,
    changed: Mapping[str, Estimate],
    scored: Mapping[str, Mapping[str, Estimate]],
) -> dict[str, Any]:
    edits = ("trained", "uniform", "permuted")
    return {
        "changed": {edit: estimate.to_json() for edit, estimate in changed.items()},
        "scores": {
            edit: {name: estimate.to_json() for name, estimate in scored[edit].items()}
            for edit in edits
            if edit in scored
        },
        "permuted_changes": histogram(rows["permuted_changes"].to_numpy(dtype=np.float64)),
        "uniform_tvd": histogram(rows["uniform_tvd"].to_numpy(dtype=np.float64)),
        "permuted_tvd": histogram(rows["permuted_tvd"].to_numpy(dtype=np.float64)),
    }


def _notes(rows: pd.DataFrame) -> tuple[str, ...]:
    draws = len(rows["permuted"].iloc[0])
    shuffles = f"Shuffled attention: {draws} random permutations per document, scores averaged."
    notes: tuple[str, ...] = (shuffles,)
    notes += counted(
        int((rows["units"] == 1).sum()), len(rows), "have one unit: no attention can change them."
    )
    notes += counted(
        int((rows["label"] < 0).sum()),
        len(rows),
        "have no label and are left out of accuracy and F1.",
    )
    if bool(rows["exact_margin_mean"].isna().all()):
        notes += (
            "The head is not linear: exact moments do not exist, and what some attention could "
            "change is a lower bound.",
        )
    return notes


AUDIT = Audit(
    rows,
    summarise,
    name="substitution",
    title="Uniform and shuffled attention",
    question="Would the model decide the same with its attention flattened or shuffled?",
    place=2,
    chart="substitution",
    tell=tell,
)
