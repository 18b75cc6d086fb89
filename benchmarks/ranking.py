"""The ranking of explanations, against the same one made with captum and deletion by hand."""

from __future__ import annotations

import math
import time
import warnings
from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import partial
from statistics import median

import numpy as np
import torch
from torch import Tensor

from benchmarks.cases import Disagreement
from benchmarks.table import Row
from heedful.audits.effort import FIRST, MOST, Effort
from heedful.audits.examination import examine
from heedful.audits.input_erasure import AUDIT, SHARES
from heedful.audits.ranking import FAITHFULNESS
from heedful.corpora.batches import Batch, collate
from heedful.corpora.encoded import Encoded
from heedful.corpora.samples import drawn, subset
from heedful.importance import explain
from heedful.importance.inputs import STATED_ERROR
from heedful.models import AttentionClassifier, read
from heedful.statistics.level import among_looks

METHODS = ("random", "attention", "integrated", "occlusion", "gradient-input")
SAME = ("random", "attention", "occlusion", "gradient-input")
"""Those that are the same numbers; of the integral captum computes a fixed number of points."""
POINTS, MOST_POINTS = 50, 800
"""Of captum's integral, unless it is told otherwise; and who wants it exact doubles them so far."""
BATCH = 64
"""Altered texts in a pass, for who batches by hand."""
AIM = 10
"""Times as fast as by hand it should be."""
HANDS: Mapping[str, tuple[int, float, float]] = {
    "as it comes": (1, math.inf, 1.5),
    "as exact as ours": (1, STATED_ERROR, 2),
    "as exact as ours, in batches": (BATCH, STATED_ERROR, 0.5),
}
"""By hand: how many texts in a pass, how far an integral may be off, and the least ratio."""

Worth = dict[str, list[float]]
"""Of each method, the faithfulness on each document."""


def ranking_rows(model: AttentionClassifier, documents: Encoded, count: int) -> list[Row]:
    """The same ranking on the documents of the first look, made by us and made by hand.

    Intervals of an audit at effort normal are wider, since its 5 % are shared out among looks: our
    time is that of as many more documents as make them as narrow as those of one look.
    """
    rows = drawn(documents.names, np.arange(len(documents)), count, 0)
    some = subset(documents, np.sort(rows))
    started = time.process_time()
    asked = {"input-erasure": partial(AUDIT.rows, modes=("removed",))}
    table = examine(model, some, asked, METHODS)["input-erasure"]
    ours = time.process_time() - started
    of_share = table["comprehensiveness"] - table["sufficiency"]
    worth = of_share.groupby([table["instance"], table["method"]]).mean().unstack()
    wider = _wider(AUDIT.summarise, table)
    found = []
    for how, (at_once, error, least) in HANDS.items():
        started = time.process_time()
        theirs, off = by_hand(model, some, at_once, error)
        took = time.process_time() - started
        for name in SAME:
            furthest = np.abs(worth.loc[list(some.names), name] - theirs[name]).max()
            if not furthest < 1e-4:
                raise Disagreement(f"faithfulness of {name} differs by up to {furthest:.2g}.")
        ratio = took / (ours * wider**2)
        found.append(
            Row(
                case=f"ranking of {len(METHODS)} explanations by deletion, {count} planted "
                f"documents, captum {how}",
                ours=1000 * ours,
                peer=1000 * took,
                ratio=ratio,
                against="captum and deletion by hand, at equal width of the intervals",
                at_least=least,
                sentence=(
                    f"Integrated gradients, occlusion, gradient × input, attention and a random "
                    f"order, and words deleted by each: {took / ours:.1f} times as fast on the "
                    f"same documents. An interval at effort normal is {wider:.2f} times as wide "
                    f"as one of a single look, so that it takes {wider**2:.2f} times the "
                    f"documents. Faithfulness is the same to 1e-4 on every document, save that of "
                    f"integrated gradients: captum's are off by up to {off:.2g} of probability, "
                    f"ours by {STATED_ERROR} at most. Aimed at: {AIM} times as fast. Both read as "
                    "many altered texts with the same cells: what we spare is small passes, the "
                    "points of paths that are known already, and edits that rankings share. Time "
                    "of the processor."
                ),
            )
        )
    return found


def _wider(summarise: Callable[..., object], table: object) -> float:
    """How much wider intervals are where the 5 % are shared out among the looks of an audit."""
    widths = []
    for looks in (len(Effort("normal").looks(MOST, FIRST)), 1):
        with among_looks(looks):
            told = summarise(table)
        estimates = [told.get(FAITHFULNESS, f"{m} - random") for m in METHODS[1:]]  # type: ignore[attr-defined]
        widths.append([e.high - e.low for e in estimates])
    return median(a / b for a, b in zip(*widths, strict=True))


def by_hand(
    model: AttentionClassifier, documents: Encoded, at_once: int, error: float
) -> tuple[Worth, float]:
    """Faithfulness of each method on each document, as one writes it down with captum.

    Every text by itself, with so many altered copies in a pass, and points of the path doubled
    until it adds up within `error`; and how far captum's integral is from adding up, at most.
    """
    found: Worth = {name: [] for name in METHODS}
    furthest = 0.0
    model.eval()
    for row in range(len(documents)):
        batch = collate(documents, [row])
        importance, off = _explained(model, batch, at_once, error)
        furthest = max(furthest, off)
        for name, worth in _deleted(model, batch, importance, at_once).items():
            found[name].append(worth)
    return found, furthest


def _explained(
    model: AttentionClassifier, batch: Batch, at_once: int, error: float
) -> tuple[dict[str, Tensor], float]:
    """The importances of one text, and how far the integral is from adding up."""
    from captum.attr import FeatureAblation, InputXGradient, IntegratedGradients

    reading = read(model, batch)
    decided, vectors = int(reading.decision[0]), reading.inputs.detach()

    def of_vectors(inputs: Tensor) -> Tensor:
        logits = model.from_inputs(inputs, batch.repeated(len(inputs))).logits
        return logits.double().softmax(-1)[:, decided]

    def of_ids(ids: Tensor) -> Tensor:
        with torch.no_grad():
            logits = model(replace(batch.repeated(len(ids)), ids=ids)).logits
        return logits.double().softmax(-1)[:, decided]

    with warnings.catch_warnings(), torch.enable_grad():
        warnings.simplefilter("ignore")
        points, off = POINTS, torch.tensor(math.inf)
        while float(off.abs().max()) > error or points == POINTS:
            integrated, off = IntegratedGradients(of_vectors).attribute(
                vectors, n_steps=points, internal_batch_size=at_once, return_convergence_delta=True
            )
            points *= 2
            if points > MOST_POINTS:
                break
        product = InputXGradient(of_vectors).attribute(vectors.clone().requires_grad_())
        occluded = FeatureAblation(of_ids).attribute(
            batch.ids, baselines=batch.unknown, perturbations_per_eval=at_once
        )
    ours = explain(model, reading, ("random", "attention"))  # nothing to compute by hand
    found = ours | {"integrated": integrated.sum(-1), "gradient-input": product.sum(-1)}
    return found | {"occlusion": occluded}, float(off.abs().max())


def _deleted(
    model: AttentionClassifier, batch: Batch, importance: Mapping[str, Tensor], at_once: int
) -> dict[str, float]:
    """Comprehensiveness less sufficiency of each order of one text's words."""
    words = batch.ids[0].tolist()
    texts: list[list[int]] = [words]
    for scores in importance.values():
        order = scores[0].double().argsort(descending=True, stable=True).tolist()
        for share in SHARES:
            top = set(order[: max(math.ceil(share * len(words) - 1e-9), 1)])
            texts.append([word for place, word in enumerate(words) if place not in top])
            texts.append([word for place, word in enumerate(words) if place in top])
    said: list[Tensor] = []
    for start in range(0, len(texts), at_once):
        part = [text or [batch.unknown] for text in texts[start : start + at_once]]
        longest = max(map(len, part))
        ids = torch.tensor([text + [0] * (longest - len(text)) for text in part])
        mask = torch.arange(longest) < torch.tensor(list(map(len, part)))[:, None]
        names = batch.names * len(part)
        asked = replace(
            batch, ids=ids, mask=mask, sentence=torch.zeros_like(ids), names=names,
            labels=batch.labels.repeat(len(part)), evidence=None, documents=None,
        )  # fmt: skip
        with torch.no_grad():
            said.append(model(asked).logits.double().softmax(-1))
    every = torch.cat(said)
    of_decision = every[:, int(every[0].argmax())]
    lost = (of_decision[0] - of_decision[1:]).view(len(importance), len(SHARES), 2)
    worth = (lost[..., 0] - lost[..., 1]).mean(1)
    return dict(zip(importance, worth.tolist(), strict=True))
