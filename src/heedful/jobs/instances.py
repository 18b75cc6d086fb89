"""The instances shown on the page: which ones, and the numbers it needs to decide them itself."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
import torch
from jaxtyping import Float, Int
from scipy.special import logsumexp

from heedful.importance import Importance
from heedful.jobs.instance_layers import describe_heads, flows_of
from heedful.models.edits import SMALLEST_MASS
from heedful.models.huggingface import unit_spans
from heedful.models.reading import Reading
from heedful.models.rereading import read_again
from heedful.models.verbs import AttentiveModel, curve, ranked, without_each
from heedful.runs.randomness import key
from heedful.statistics.agreement import kendall_tau_b

SHOWN_UNITS = 400
"""Units of one document that the page shows one by one; the rest is folded into one more."""
FAR_UNITS = 20
"""Of these, how many may lie beyond the beginning of the document: its most attended ones."""
EXACT, COARSE = 10, 4
"""Significant digits of what decisions are computed from, and of what is only coloured."""
DELETED, DELETED_TOGETHER = 120, 20
"""Units deleted one by one, and together from the most attended on, of one document. The audit of
deleted words reads a document about as often, and reads ten times as many documents."""
WRITTEN_GAP = 40
"""Characters between two units that are shown as they were written; an ellipsis for more."""

FLIPS = "flips when attention to its top unit is removed"
DISAGREES = "attention and leave-one-out disagree"
WRONG = "wrong decision"
PLAIN = "plain case"
LITTLE_AGREEMENT = 0.2
"""Attention and leave-one-out disagree where their Kendall τ is below this."""
SHARES = {FLIPS: 0.3, DISAGREES: 0.25, WRONG: 0.2, PLAIN: 0.25}
"""What part of the page each kind gets, as far as the corpus has it."""


def choose(
    rows: Mapping[str, pd.DataFrame], documents: Sequence[str], count: int = 200, seed: int = 0
) -> dict[str, tuple[str, ...]]:
    """The instances to show, by id in corpus order, each with the tags that hold for it.

    Every kind of SHARES gets its part by a draw keyed by (seed, id); what a kind cannot fill goes
    to the others. `rows` are the audits' rows of the same documents; without them all are plain.
    """
    tags = {FLIPS: _flipping(rows), DISAGREES: _disagreeing(rows), WRONG: _wrong(rows)}
    tagged = set().union(*tags.values())
    tags[PLAIN] = {name for name in documents if name not in tagged}
    drawn = sorted(dict.fromkeys(documents), key=lambda name: key(seed, "instances", name))
    chosen: dict[str, None] = {}
    for tag, share in SHARES.items():
        kind = [name for name in drawn if name in tags[tag] and name not in chosen]
        chosen.update(dict.fromkeys(kind[: min(math.ceil(share * count), count - len(chosen))]))
    rest = [name for name in drawn if name not in chosen]
    chosen.update(dict.fromkeys(rest[: count - len(chosen)]))
    return {
        name: tuple(tag for tag in SHARES if name in tags[tag])
        for name in dict.fromkeys(documents)
        if name in chosen
    }


def describe(
    model: AttentiveModel,
    reading: Reading,
    importance: Importance,
    tags: Mapping[str, Sequence[str]] | None = None,
) -> list[dict[str, Any]]:
    """What the page needs of each document of the reading, as plain data.

    With a linear head the unit logits, so that the page decides exactly as `decide` does; otherwise
    the probabilities with attention removed from each unit, and from the first 0..n by attention.
    Beside these, those on the text without the unit, or without the first few, read again.
    """
    answers = {} if _is_linear(reading) else _answers(model, reading)
    deleted = _deleted(model, reading)
    disagreement = _disagreement(reading, importance)
    flows, heads = flows_of(model, reading), describe_heads(model, reading)
    entries = []
    for row, (name, written) in enumerate(zip(reading.names, _written(reading), strict=True)):
        n = int(reading.units[row])
        attention = reading.attention[row, :n].cpu().double().numpy()
        shown = shown_units(attention)
        claims = {m: v[row, :n].detach().cpu().double().numpy() for m, v in importance.items()}
        entry = _as_read(reading, row, written, shown) | {
            "importance": {m: rounded(values[shown], COARSE) for m, values in claims.items()},
            "disagreement": disagreement[row],
            "tags": list((tags or {}).get(name, ())),
            "deleted": rounded(deleted.single[row, shown], COARSE),
            "deleted_together": rounded(deleted.together[row, : min(n, DELETED_TOGETHER)], COARSE),
        }
        if reading.unit_logits is not None and _is_linear(reading):
            if len(shown) < n:
                said = reading.unit_logits[row, :n].cpu().double().numpy()
                _fold(entry, shown, reading.scores[row, :n].cpu().double().numpy(), said)
        else:
            for kind, values in answers.items():
                kept = values[row, : n + 1] if kind == "cumulative" else values[row, shown]
                entry[kind] = rounded(kept[: SHOWN_UNITS + 1], COARSE + 2)
            if len(shown) < n:
                entry["positions"] = shown.tolist()
        if row in flows:
            entry["flow"] = flows[row]
        if row in heads and len(shown) == n:
            entry["heads"] = heads[row]
        entries.append(entry)
    return entries


def describe_one(reading: Reading) -> dict[str, Any]:
    """What the page needs of a single text before anything is asked about it: all its units."""
    return _as_read(reading, 0, _written(reading)[0], np.arange(int(reading.units[0])))


def _as_read(
    reading: Reading, row: int, written: _Written, shown: Int[np.ndarray, " shown"]
) -> dict[str, Any]:
    """What one forward pass says of a document, of the units that are shown."""
    n = int(reading.units[row])
    attention = reading.attention[row, :n].cpu().double().numpy()
    evidence = None if reading.evidence is None else reading.evidence[row].cpu().numpy()
    entry: dict[str, Any] = {
        "id": reading.names[row],
        "units": [written.units[unit] for unit in shown],
        "gold": int(reading.labels[row]),
        "decision": int(reading.decision[row]),
        "probabilities": rounded(reading.logits[row].softmax(-1).cpu().numpy(), EXACT),
        "attention": rounded(attention[shown], EXACT),
        "evidence": None if evidence is None else evidence[shown].tolist(),
        "length": n,
    }
    if written.gaps:
        entry["gaps"] = [written.gaps[unit] for unit in shown]
    if reading.outside is not None:
        entry["outside"] = float(f"{float(reading.outside[row]):.{COARSE}g}")
    if reading.unit_logits is not None and reading.offset is not None:
        said = reading.unit_logits[row, :n].cpu().double().numpy()
        entry["unit_logits"] = rounded(said[shown], EXACT)
        entry["offset"] = rounded(reading.offset[row].cpu().double().numpy(), EXACT)
        if attention.min() < SMALLEST_MASS:
            entry["scores"] = rounded(reading.scores[row, :n].cpu().numpy()[shown], EXACT)
    return entry


def _is_linear(reading: Reading) -> bool:
    """Whether the page can decide by itself."""
    return reading.unit_logits is not None and reading.offset is not None


class _Written(NamedTuple):
    """The units of a document as they stand in its text, and what stands before each."""

    units: Sequence[str]
    gaps: Sequence[str]
    """Empty where the text is not at hand."""


def _written(reading: Reading) -> list[_Written]:
    """Each document as it was written, its white space as one space; else as the model reads it.

    What is no unit is kept where it is short; what was cut out of a long text is an ellipsis.
    """
    documents = reading.batch.documents
    if documents is None:
        return [_Written(texts, ()) for texts in reading.texts]
    found = []
    spans = unit_spans(reading.batch, reading.unit_of_token)
    for document, here, texts in zip(documents, spans, reading.texts, strict=True):
        if len(here) != len(texts):  # an empty text is read as one unknown word
            found.append(_Written(texts, ()))
            continue
        ends = [0, *(stop for _, stop in here)]
        between = [document.text[end:start] for end, (start, _) in zip(ends, here, strict=False)]
        units = [" ".join(document.text[start:stop].split()) for start, stop in here]
        gaps = [gap if len(gap) <= WRITTEN_GAP else " … " for gap in map(_spaced, between)]
        found.append(_Written(units, [gaps[0].lstrip(), *gaps[1:]]))
    return found


def _spaced(text: str) -> str:
    """The text with every run of white space as one space."""
    return re.sub(r"\s+", " ", text)


def shown_units(attention: Float[np.ndarray, " unit"]) -> Int[np.ndarray, " shown"]:
    """The positions shown one by one: all, or the beginning and the most attended of the rest."""
    if len(attention) <= SHOWN_UNITS:
        return np.arange(len(attention))
    beginning = SHOWN_UNITS - FAR_UNITS
    far = beginning + np.argsort(-attention[beginning:], kind="stable")[:FAR_UNITS]
    return np.concatenate([np.arange(beginning), np.sort(far)])


def _fold(
    entry: dict[str, Any],
    shown: Int[np.ndarray, " shown"],
    scores: Float[np.ndarray, " unit"],
    said: Float[np.ndarray, "unit class"],
) -> None:
    """Adds one unit that stands for those not shown, so that the page's arithmetic stays exact.

    Its weight is theirs together and it says what they say on average: weighted by attention, and
    for uniform attention (`flat`) by none. `members` are their shares of it, for distances alone.
    """
    hidden = np.setdiff1d(np.arange(len(scores)), shown)
    together = logsumexp(scores[hidden])
    members = np.exp(scores[hidden] - together)
    entry["units"].append(f"… {len(hidden)} more")
    entry["attention"] += rounded(np.exp([together - logsumexp(scores)]), EXACT)
    entry["unit_logits"].append(rounded(members @ said[hidden], EXACT))
    if entry["evidence"] is not None:
        entry["evidence"].append(False)
    for values in (*entry["importance"].values(), entry["deleted"]):
        values.append(None)
    if "gaps" in entry:
        entry["gaps"].append(" ")
    if "scores" in entry:
        entry["scores"] += rounded(np.array([together]), EXACT)
    entry["positions"] = [*shown.tolist(), len(scores)]
    entry["rest"] = {
        "count": len(hidden),
        "flat": rounded(said[hidden].mean(0), EXACT),
        "members": rounded(members, COARSE),
    }


def _flipping(rows: Mapping[str, pd.DataFrame]) -> set[str]:
    """Documents whose decision changes when the most attended unit is erased."""
    found = rows.get("single-erasure", pd.DataFrame())
    if not {"instance", "ranking", "top_flips"} <= set(found.columns):
        return set()
    return set(found["instance"][(found["ranking"] == "attention") & found["top_flips"]])


def _disagreeing(rows: Mapping[str, pd.DataFrame]) -> set[str]:
    """Documents that attention and leave-one-out rank differently."""
    found = rows.get("agreement", pd.DataFrame())
    if not {"instance", "first", "second", "tau"} <= set(found.columns):
        return set()
    pair = {"attention", "leave-one-out"}
    is_pair = found["first"].isin(pair) & found["second"].isin(pair)
    return set(found["instance"][is_pair & (found["tau"] < LITTLE_AGREEMENT)])


def _wrong(rows: Mapping[str, pd.DataFrame]) -> set[str]:
    """Documents that are decided against their label, by any audit that kept both."""
    for found in rows.values():
        if {"instance", "label", "decision"} <= set(found.columns):
            is_wrong = (found["label"] >= 0) & (found["label"] != found["decision"])
            return set(found["instance"][is_wrong])
    return set()


def _answers(
    model: AttentiveModel, reading: Reading
) -> dict[str, Float[np.ndarray, "batch step class"]]:
    """Probabilities that a page without unit logits shows instead of computing them."""
    order = ranked(reading.attention, reading)[:, None]
    cumulative = curve(model, reading, order)[:, 0].softmax(-1)
    single = without_each(model, reading).softmax(-1)
    return {"erasures": single.cpu().numpy(), "cumulative": cumulative.cpu().numpy()}


class _Deleted(NamedTuple):
    """Probabilities on a text without some of its units, read again; nan where not computed."""

    single: Float[np.ndarray, "batch unit class"]
    together: Float[np.ndarray, "batch step class"]
    """Without the first 1, 2, … units by attention."""


def _deleted(model: AttentiveModel, reading: Reading) -> _Deleted:
    """Every unit deleted by itself, the most attended ones where there are many; and together."""
    order = ranked(reading.attention, reading)
    alone, steps = order[:, :DELETED], min(order.shape[1], DELETED_TOGETHER)
    place_of_token = order.argsort(-1).gather(1, reading.unit_of_token)
    step = torch.arange(1, steps + 1, device=order.device)
    kept = torch.cat(
        [
            reading.unit_of_token[:, None] != alone[..., None],
            place_of_token[:, None] >= step[:, None],
        ],
        1,
    )
    found = read_again(model, reading.batch, kept, "removed").softmax(-1)
    single = found.new_full((*order.shape, found.shape[-1]), torch.nan)
    index = alone[..., None].expand(-1, -1, found.shape[-1])
    single.scatter_(1, index, found[:, : alone.shape[1]])
    return _Deleted(single.cpu().numpy(), found[:, alone.shape[1] :].cpu().numpy())


def _disagreement(reading: Reading, importance: Importance) -> list[float | None]:
    """(1 - τ) / 2 between attention and leave-one-out: 0 the same order, 1 the reverse."""
    other = importance.get("leave-one-out")
    if other is None:
        return [None] * len(reading.names)
    attention = reading.attention.double().cpu()
    tau = kendall_tau_b(attention, other.detach().double().cpu(), reading.mask.cpu())
    return [None if math.isnan(one) else round((1 - one) / 2, 4) for one in tau.tolist()]


def rounded(values: Any, digits: int) -> Any:
    """The array as nested lists of numbers with that many significant digits; None where nan."""
    if values.ndim > 1:
        return [rounded(row, digits) for row in values]
    return [float(f"{x:.{digits}g}") if math.isfinite(x) else None for x in values.tolist()]
