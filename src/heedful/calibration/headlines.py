"""What the audits say of one constructed model: one headline measure for each thing they ask."""

from __future__ import annotations

import time
from collections.abc import Mapping
from functools import partial
from typing import Any, NamedTuple

import numpy as np
import torch

from heedful.audits import AUDITS, adversary, input_erasure
from heedful.audits.examination import Portion, examine, readings
from heedful.audits.finding import Audit, Finding, RowsOf
from heedful.audits.randomisation import KEPT
from heedful.audits.ranking import FAITHFULNESS
from heedful.audits.verdict import BORDERS
from heedful.calibration.constructions import ConstructedModel, construct
from heedful.corpora.encoded import EncodedCorpus
from heedful.jobs.decider import Decider

METHODS = ("random", "attention", "leave-one-out")
READ = Portion(64, None)


class Headline(NamedTuple):
    """The measure that speaks for an audit, and whether more of it speaks for attention."""

    audit: str
    measure: str
    method: str = ""
    rises: bool = True


OF_ATTENTION: dict[str, Headline] = {
    **{border.key: Headline(border.audit, border.measure, border.method) for border in BORDERS},
    "uniform": Headline("substitution", "decisions changed, against chance", "uniform"),
    "efficiency": Headline("erasure", "efficiency", "attention"),
    "mass": Headline("erasure", "mass removed", "greedy"),
    "one unit": Headline("single-erasure", "only top - only random", "attention"),
    "comprehensiveness": Headline("input-erasure", "comprehensiveness", "attention - random"),
    "sufficiency": Headline("input-erasure", "loss avoided", "attention"),
    "adversary": Headline("adversary", "attention can be moved almost completely", rises=False),
    "confidence": Headline("confidence", "units that decide alike", rises=False),
    "concentration": Headline("concentration", "largest weight"),
    "agreement": Headline("agreement", "Kendall τ", "attention ~ leave-one-out"),
    "evidence": Headline("evidence", "AUPRC", "attention - random"),
}
"""Audits of attention; the verdict rests on some of them."""
OF_EXPLANATIONS: dict[str, Headline] = {
    "faithfulness": Headline("input-erasure", FAITHFULNESS, "attention - random"),
    "violations": Headline("violation", "violations", "attention - random", rises=False),
    "order kept": Headline("randomisation", KEPT, "attention", rises=False),
}
"""Audits that set explanations side by side, asked about attention; no verdict rests on them."""
MEASURES = OF_ATTENTION | OF_EXPLANATIONS
FEW = 64
"""Slow audits get only the so many shortest documents of each model."""


def measure(
    setting: ConstructedModel, documents: int, device: torch.device | str = "cpu"
) -> dict[str, Any]:
    """One constructed model with the estimates of the measures of attention."""
    started = time.process_time()
    known = construct(setting, documents)
    model = known.model.to(device)
    findings = _findings(model, known.corpus, setting.seed, device, OF_ATTENTION)
    accuracy, evidence = _deciding(model, known.corpus, device)
    return {
        "name": setting.name,
        "construction": setting.construction,
        "kind": known.kind,
        "word": known.word,
        "reliance": known.reliance,
        "apart": known.apart,
        "classes": setting.classes,
        "accuracy": accuracy,
        "evidence": evidence,
        "estimates": _estimates(findings, OF_ATTENTION),
        "cpu_seconds": round(time.process_time() - started, 3),
    }


def measure_explanations(
    setting: ConstructedModel, documents: int, device: torch.device | str = "cpu"
) -> dict[str, Any]:
    """The estimates of the audits that set explanations side by side, on the same model."""
    started = time.process_time()
    known = construct(setting, documents)
    model = known.model.to(device)
    findings = _findings(model, known.corpus, setting.seed, device, OF_EXPLANATIONS)
    return {
        "estimates": _estimates(findings, OF_EXPLANATIONS),
        "cpu_seconds": round(time.process_time() - started, 3),
    }


def _estimates(
    findings: Mapping[str, Finding], headlines: Mapping[str, Headline]
) -> dict[str, Any]:
    """What was found under each headline; an audit that refuses the model has none."""
    found = {
        name: findings[headline.audit].get(headline.measure, headline.method)
        for name, headline in headlines.items()
    }
    return {name: estimate.to_json() for name, estimate in found.items() if estimate is not None}


def _deciding(
    model: Decider, corpus: EncodedCorpus, device: torch.device | str
) -> tuple[float, float]:
    """Accuracy, and attention on the evidence."""
    right, on_evidence = [], []
    for reading in readings(model, corpus.splits["test"], device, READ):
        assert reading.evidence is not None
        right.append((reading.decision == reading.labels).cpu().numpy())
        on_evidence.append((reading.attention * reading.evidence).sum(-1).cpu().numpy())
    return float(np.concatenate(right).mean()), float(np.concatenate(on_evidence).mean())


def _findings(
    model: Decider,
    corpus: EncodedCorpus,
    seed: int,
    device: torch.device | str,
    headlines: Mapping[str, Headline],
) -> dict[str, Finding]:
    """The findings of the audits that the headlines speak for."""
    audits = {headline.audit: AUDITS[headline.audit] for headline in headlines.values()}
    documents = corpus.splits["test"]
    shortest = np.argsort(documents.lengths, kind="stable")
    tables = examine(
        model,
        documents,
        {name: _rows(audit) for name, audit in audits.items()},
        METHODS,
        seed=seed,
        device=device,
        among={name: shortest[:FEW] for name, audit in audits.items() if audit.is_slow},
        at_once=READ,
    )
    if "substitution" in tables:
        tables["substitution"]["label"] = -1  # F1 under each attention is not needed here
    return {name: audits[name].summarise(table) for name, table in tables.items()}


def _rows(audit: Audit) -> RowsOf:
    """What an audit does with a batch, without the parts that cost much and are not needed here."""
    cheaper: dict[str, RowsOf] = {
        "input-erasure": partial(input_erasure.rows, modes=("removed",)),
        "adversary": partial(adversary.rows, searched=0.0),
    }
    rows = cheaper.get(audit.name, audit.rows)
    if not audit.is_per_ranking:
        return rows
    return lambda model, reading, importance, seed: rows(
        model, reading, {name: importance[name] for name in ("random", "attention")}, seed
    )
