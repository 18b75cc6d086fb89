"""Explanations judged by what none of them optimises: evidence that was planted, and retraining."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from functools import partial
from itertools import pairwise
from typing import Any

import numpy as np
import pandas as pd
import torch

from heedful.audits.examination import Portion, readings
from heedful.corpora import Encoded
from heedful.importance import explain
from heedful.models import Penalties
from heedful.models.huggingface import PretrainedClassifier
from heedful.models.huggingface.starting import start_from
from heedful.report.panels import bars
from heedful.reproduction.ledger import Measured, NotMeasurable, Parts
from heedful.reproduction.measures import trained_average, trained_contrast
from heedful.reproduction.results import Results, Step
from heedful.reproduction.study import Made, Plan
from heedful.reproduction.tables import row, row_by_row
from heedful.reproduction.view import View, Views
from heedful.runs.steps import TABLE
from heedful.statistics.estimates import per_cent
from heedful.studies.transformers import steps
from heedful.training import fit

SHARE = 0.3
"""Of the words of every text that are taken out before training again."""
OCCLUSION, RANDOM = "occlusion", "random"
RIVALS = ("attention-gradient", "leave-one-out", "attention")
RETRAINED = (RANDOM, OCCLUSION, *RIVALS)
DOCUMENTS = 300
"""Planted test documents that are explained."""


def pointed(plan: Plan, name: str, seed: int) -> Step[Mapping[str, pd.DataFrame]]:
    """How well each method of the plain model points at the planted evidence."""
    methods = plan.pick((*steps.QUICK, OCCLUSION, "attention-gradient"), None)
    base = steps.tuned(plan, name, 0.0, seed)
    return steps.examined(base, ("evidence",), methods, DOCUMENTS, {}, seed, "evidence")


def needs_evidence(plan: Plan, name: str) -> list[Step[Any]]:
    """Of every seed."""
    return [pointed(plan, name, seed) for seed in plan.seeds]


def _pointing(view: View) -> list[pd.DataFrame]:
    tables = [view.of(pointed, seed)["evidence"] for seed in view.seeds]
    # A text that is evidence throughout is found by any order.
    return [t[(t["evidence_units"] > 0) & (t["evidence_units"] < t["units"])] for t in tables]


def found_evidence(views: Views) -> Made:
    """Agreement of every method with the planted evidence."""

    def of(view: View) -> Iterator[dict[str, Any]]:
        tables = _pointing(view)
        for method in dict.fromkeys(tables[0]["ranking"]):
            ours = [table[table["ranking"] == method] for table in tables]
            keys = {"corpus": view.corpus, "method": method, "judged by": "planted evidence"}
            yield row(keys, AUPRC=trained_average(ours, "auprc"), F1=trained_average(ours, "f1"))

    table = views.table(of).sort_values(["corpus", "AUPRC"], ascending=[True, False])
    said = row_by_row(table.groupby("corpus", sort=False).head(3), "{corpus}: {method} {AUPRC:.2f}")
    draw = partial(bars, x="method", y="AUPRC", hue="judged by", panel="corpus")
    return Made(table, draw, f"Nearest to the evidence: {said}.")


def occlusion_points_best(view: View) -> Measured:
    """AUPRC of occlusion minus that of each rival, texts and trainings."""
    tables = _pointing(view)
    if OCCLUSION not in set(tables[0]["ranking"]):
        return NotMeasurable(f"{OCCLUSION} was not tried")
    ours = [table[table["ranking"] == OCCLUSION] for table in tables]
    return Parts(
        {
            f"minus {rival}": trained_contrast(
                ours, [table[table["ranking"] == rival] for table in tables], "auprc"
            )
            for rival in RIVALS
            if rival in set(tables[0]["ranking"])
        }
    )


def attention_points(view: View) -> Measured:
    """AUPRC of attention minus that of a random order."""
    tables = _pointing(view)
    one, two = (
        [table[table["ranking"] == name] for table in tables] for name in ("attention", RANDOM)
    )
    return trained_contrast(one, two, "auprc")


def without_top(
    model: PretrainedClassifier, encoded: Encoded, method: str, seed: int, device: str
) -> Encoded:
    """The documents without the `SHARE` of their words that the method puts highest."""
    place = {name: number for number, name in enumerate(encoded.names)}
    kept = np.ones(len(encoded.ids), dtype=bool)
    for reading in readings(model, encoded, device, Portion(tokens=steps.TOKENS)):
        score = explain(model, reading, (method,), seed)[method].double()
        score = score.masked_fill(~reading.mask, -torch.inf)
        order = score.argsort(-1, descending=True).cpu().numpy()
        words = reading.mask.sum(-1).cpu().numpy()
        for number, name in enumerate(reading.names):
            start, end = encoded.starts[place[name]], encoded.starts[place[name] + 1]
            own = np.unique(encoded.sentence[start:end], return_inverse=True)[1]
            out = order[number, : round(SHARE * int(words[number]))]
            kept[start:end] = ~np.isin(own, out)
    return kept_only(encoded, kept)


def kept_only(encoded: Encoded, kept: np.ndarray[Any, np.dtype[np.bool_]]) -> Encoded:
    """The documents with some of their pieces; words are numbered anew."""
    counts = np.add.reduceat(kept, encoded.starts[:-1])
    starts = np.concatenate([[0], np.cumsum(counts)])
    words = encoded.sentence[kept].copy()
    for start, end in pairwise(starts):
        words[start:end] = np.unique(words[start:end], return_inverse=True)[1]
    return replace(
        encoded,
        ids=encoded.ids[kept],
        starts=starts,
        sentence=words,
        evidence=None if encoded.evidence is None else encoded.evidence[kept],
        word_labels=None if encoded.word_labels is None else encoded.word_labels[kept],
        documents=None,
    )


def retrained(plan: Plan, name: str, method: str, seed: int) -> Step[pd.DataFrame]:
    """Test decisions of a model trained on texts without their top words by a method of another.

    The other is the plain model of the same seed; train, dev and test lose their words alike.
    """
    text, start = steps.pieces(plan, name), steps.encoder(plan, name)
    base, config = steps.tuned(plan, name, 0.0, seed), steps.TRAIN[plan.scale]

    def compute(results: Results) -> pd.DataFrame:
        corpus, explained = results[text], results[base].to(results.device)
        device = results.device
        splits = {
            split: without_top(explained, encoded, method, seed, device)
            for split, encoded in corpus.splits.items()
        }
        fewer = replace(corpus, splits=splits, fingerprint=f"{corpus.fingerprint} {method} {seed}")
        model = start_from(
            results[start], corpus.classes, seed=seed, max_pieces=steps.max_pieces_of(plan)
        ).model
        fit(model, fewer, config, Penalties(), seed=seed, device=device)
        return decided(model.to(device), splits["test"], device)

    inputs = {"method": method, "share": SHARE, "seed": seed, "train": config.described()}
    return Step(base.beside(f"without-{method}"), compute, inputs, TABLE, (text, start, base))


def decided(model: PretrainedClassifier, encoded: Encoded, device: str) -> pd.DataFrame:
    """Whether each document is decided right."""
    rows = []
    for reading in readings(model, encoded, device, Portion(tokens=steps.TOKENS)):
        right = (reading.decision == reading.batch.labels).double().cpu().numpy()
        rows.append(pd.DataFrame({"instance": list(reading.names), "right": right}))
    return pd.concat(rows, ignore_index=True)


def needs_retrained(plan: Plan, name: str) -> list[Step[Any]]:
    """Every method and seed, and what the models trained on whole texts decide."""
    found = [retrained(plan, name, method, seed) for method in RETRAINED for seed in plan.seeds]
    return [*found, *(steps.swept(plan, name, 0.0, seed) for seed in plan.seeds)]


def _right(view: View, method: str) -> list[pd.DataFrame]:
    return [view.of(retrained, method, seed) for seed in view.seeds]


def retraining(views: Views) -> Made:
    """Accuracy after training again without each method's top words, and minus random words'."""

    def of(view: View) -> Iterator[dict[str, Any]]:
        whole = [view.of(steps.swept, 0.0, seed)["substitution"] for seed in view.seeds]
        right = [t.assign(right=(t["decision"] == t["label"]).astype(float)) for t in whole]
        keys = {"corpus": view.corpus, "judged by": "retraining"}
        yield row(keys | {"method": "whole texts"}, accuracy=trained_average(right, "right"))
        for method in RETRAINED:
            yield row(
                keys | {"method": method},
                accuracy=trained_average(_right(view, method), "right"),
                **{
                    "minus random": trained_contrast(
                        _right(view, method), _right(view, RANDOM), "right"
                    )
                },
            )

    table = views.table(of)
    said = row_by_row(
        table.assign(accuracy=[per_cent(one, 1) for one in table["accuracy"]]),
        "{corpus}, {method}: {accuracy}",
    )
    draw = partial(bars, x="method", y="accuracy", hue="judged by", panel="corpus")
    told = f"Accuracy after training again without {per_cent(SHARE)} of the words: {said}."
    return Made(table, draw, told)


def occlusion_takes_most(view: View) -> Measured:
    """Accuracy after training without each rival's words minus that without occlusion's."""
    ours = _right(view, OCCLUSION)
    return Parts(
        {f"{rival} minus occlusion": trained_contrast(_right(view, rival), ours, "right")
         for rival in RIVALS}
    )  # fmt: skip


def attention_takes_more_than_luck(view: View) -> Measured:
    """Accuracy after training without random words minus that without attention's top words."""
    return trained_contrast(_right(view, RANDOM), _right(view, "attention"), "right")
