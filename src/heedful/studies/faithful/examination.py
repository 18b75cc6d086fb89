"""All that the faithful study asks of one trained model, from one reading of each text.

Scores under trained, uniform and permuted attention, single-unit probabilities, the exact adversary
and leakage are arithmetic on the same cached unit logits; nothing is encoded twice.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from functools import partial
from typing import Any

import numpy as np
import pandas as pd
import torch
from jaxtyping import Float64, Int

from heedful.audits import (
    adversary,
    concentration,
    confidence,
    evidence,
    input_erasure,
    substitution,
)
from heedful.audits.confidence import NEAR
from heedful.audits.examination import Portion, examine
from heedful.audits.finding import RowsOf, frame
from heedful.audits.tables import of_several_units
from heedful.corpora import Encoded, EncodedCorpus
from heedful.corpora.batches import collate
from heedful.importance import Importance
from heedful.models import AttentionClassifier, read
from heedful.models.reading import Reading
from heedful.models.verbs import AttentiveModel, alone
from heedful.statistics import classification_scores
from heedful.studies.faithful import information

DISTANCES = (0, 1, 2, 3, 5, 9, 17)
"""Where bins of distance start, in units; the last one is open."""
NEWTON_STEPS = 50


def distance_names() -> list[str]:
    """The bins in words: `0`, `1`, `2`, `3-4`, …"""
    ends = [*DISTANCES[1:], None]
    return [
        f"{a}+" if b is None else str(a) if b == a + 1 else f"{a}-{b - 1}"
        for a, b in zip(DISTANCES, ends, strict=True)
    ]


def leakage_rows(
    model: AttentiveModel, reading: Reading, importance: Importance, seed: int
) -> pd.DataFrame:
    """The units of each document that decide alike, by distance to its most attended unit.

    What attention did not look at should not know the answer (docs/studies/faithful.md, "Controls
    of our own").
    `alike` and `there` list, for every bin of distance, how many units decide alike and how many
    there are; `undecided` is the share of units within 0.1 of even odds when attended alone.
    """
    logits, mask = alone(model, reading), reading.mask
    agrees = (logits.argmax(-1) == reading.decision[:, None]) & mask
    top = reading.attention.masked_fill(~mask, -1).argmax(-1, keepdim=True)
    away = (torch.arange(mask.shape[1], device=mask.device) - top).abs()
    bounds = torch.tensor(DISTANCES, device=mask.device)
    place = torch.bucketize(away, bounds, right=True) - 1
    empty = torch.zeros(len(mask), len(DISTANCES), dtype=torch.long, device=mask.device)
    even = (logits.softmax(-1) - 1 / logits.shape[-1]).abs().amax(-1)
    undecided = ((even <= NEAR) & mask).sum(-1).double() / reading.units
    return frame(
        reading.names,
        alike=empty.scatter_add(1, place, agrees.long()).to(torch.int32).cpu().numpy(),
        there=empty.scatter_add(1, place, mask.long()).to(torch.int32).cpu().numpy(),
        undecided=undecided.cpu().numpy(),
    )


def refitted_bias(
    margins: Float64[np.ndarray, " instance"], labels: Int[np.ndarray, " instance"]
) -> float:
    """The shift b that makes σ(margin + b) fit two-class labels best, by Newton's method.

    Flat attention may only move the logits past the threshold. What is lost even after the bias was
    fitted again, on other documents than those scored, is lost information.
    The loss is convex in b; where one class is absent or the margins separate the classes without
    need of a shift, the steps are bounded and b stays finite.
    """
    is_second = labels == 1
    shift = 0.0
    for _ in range(NEWTON_STEPS):
        probability = 1 / (1 + np.exp(-np.clip(margins + shift, -500, 500)))
        slope = float((probability - is_second).mean())
        curvature = float((probability * (1 - probability)).mean())
        step = float(np.clip(slope / max(curvature, 1e-6), -5, 5))
        shift -= step
        if abs(step) < 1e-10:
            break
    return shift


METHODS = ("random", "attention")
READ = {"cpu": Portion(256, 2**15), "cuda": Portion(1_024, 2**18)}
"""What is read at once: a card takes hardly longer for many."""
SCORES = ("accuracy", "macro_f1", "f1", "f1 of class 0")
"""What is scored: `f1` is that of class 1, the last."""


@dataclass(frozen=True)
class Measuring:
    """What is measured beside the scores."""

    draws: int = 100
    """Permutations of attention per document."""
    erasure: bool = False
    """Delete the most attended and random words, and read again."""
    types: int = 0
    """Word types, and clusters, of the mutual information; 0 leaves it out."""
    pairs: int = 100_000
    """Most pairs of embedding and state."""
    clusterings: int = 1
    """Seeds of k-means."""
    sentences: int = 0
    """Dev documents whose single words are kept."""
    is_exact: bool = True
    """Find the exact adversary of each document."""
    documents: bool = True
    """Keep a row for each test document."""


Tables = Mapping[str, pd.DataFrame]


def measure(
    model: AttentionClassifier,
    corpus: EncodedCorpus,
    asked: Measuring = Measuring(),
    seed: int = 0,
    device: torch.device | str = "cpu",
) -> dict[str, pd.DataFrame]:
    """The tables of one two-class model.

    `numbers` (name, value) for dev and test; `distance`, the leakage by distance to the most
    attended word; where asked `instances`, one row per test document, `information`, `sentences`.
    """
    model, at_once = model.to(device), READ.get(torch.device(device).type, READ["cpu"])
    ask = partial(examine, model, seed=seed, device=device, at_once=at_once)
    numbers: dict[str, float] = {}
    substituted = {"substitution": partial(substitution.rows, draws=asked.draws)}
    dev = ask(corpus.splits["dev"], substituted)["substitution"]
    shift = refitted_bias(_signed(dev), dev["label"].to_numpy())
    numbers |= _scored("dev", dev, shift)
    test = corpus.splits["test"]
    has_evidence = test.evidence is not None
    methods = METHODS if asked.erasure or has_evidence else ()
    rows = ask(test, audits_of(asked, has_evidence), methods)
    numbers |= _scored("test", rows["substitution"], shift) | {"refitted bias": shift}
    numbers |= _single(rows)
    found = {"distance": _distances(rows["leakage"])}
    if asked.documents:
        found["instances"] = _instances(rows)
    if asked.types:
        found["information"] = informed(model, corpus, asked, device)
    if asked.sentences:
        found["sentences"] = single_words(model, corpus.splits["dev"], asked.sentences, device)
    found["numbers"] = pd.DataFrame({"name": list(numbers), "value": list(numbers.values())})
    return found


def number(tables: Tables, name: str) -> float:
    """One of the numbers."""
    table = tables["numbers"]
    found = table.loc[table["name"] == name, "value"]
    if len(found) != 1:
        raise KeyError(f"{name!r} is not among {', '.join(table['name'])}")
    return float(found.iloc[0])


def informed(
    model: AttentionClassifier,
    corpus: EncodedCorpus,
    asked: Measuring,
    device: torch.device | str = "cpu",
) -> pd.DataFrame:
    """Mutual information on train by sample and clustering.

    The places depend on the corpus alone, so that every model is asked about the same words.
    """
    train = corpus.splits["train"]
    samples = [
        information.sample(train, kind, asked.types, asked.pairs) for kind in information.KINDS
    ]
    # One pass over the texts serves both samples and every clustering.
    places = np.unique(np.concatenate([chosen.tokens for chosen in samples]))
    _, values = information.states_at(model, train, places, device)
    rows = []
    for chosen in samples:
        here = values[np.searchsorted(places, chosen.tokens)]
        for clustering in range(asked.clusterings):
            got = information.of_values(model, chosen, here, asked.types, clustering, device)
            rows.append({"sample": chosen.kind, "clustering": clustering} | asdict(got))
    return pd.DataFrame(rows)


def probed_words(
    model: AttentionClassifier,
    corpus: EncodedCorpus,
    asked: Measuring,
    device: torch.device | str = "cpu",
) -> pd.DataFrame:
    """How well a linear probe names words of test texts, from their values and their embeddings.

    It is fitted on the most frequent words of train. Embeddings are the ceiling: they hold the word
    and nothing else.
    """
    model = model.to(device)
    train, test = corpus.splits["train"], corpus.splits["test"]
    known = information.sample(train, "MF", asked.types, asked.pairs)
    asked_of = information.occurrences(test, np.unique(known.words), asked.pairs)
    documents = np.repeat(np.array(test.names), test.lengths)[asked_of.tokens]
    learnt = information.states_at(model, train, known.tokens, device)
    given = information.states_at(model, test, asked_of.tokens, device)
    rows = []
    for source, fit_on, tell in zip(("embedding", "state"), learnt, given, strict=True):
        fitted = information.fitted(fit_on, known.words)
        got = information.probed(fitted, tell, asked_of.words, documents.tolist(), device)
        for name in ("accuracy", "baseline", "gain"):
            estimate = getattr(got, name)
            ends = {"value": estimate.value, "low": estimate.low, "high": estimate.high}
            row = {"source": source, "measure": name} | ends
            rows.append(row | {"documents": estimate.n, "places": got.places, "types": got.types})
    return pd.DataFrame(rows)


def single_words(
    model: AttentionClassifier, encoded: Encoded, documents: int, device: torch.device | str = "cpu"
) -> pd.DataFrame:
    """The probability of class 1 from each word alone, for the first documents of a split."""
    rows = range(min(documents, len(encoded)))
    reading = read(model, collate(encoded, rows).to(device))
    said = alone(model, reading).softmax(-1)[..., 1].cpu().numpy()
    whole = reading.logits.softmax(-1)[:, 1].tolist()
    attention = reading.attention.cpu().numpy()
    found: list[dict[str, Any]] = []
    for row, words in enumerate(reading.texts):
        for place, word in enumerate(words):
            found.append(
                {
                    "instance": reading.names[row],
                    "label": int(reading.labels[row]),
                    "sentence": whole[row],
                    "position": place,
                    "word": word,
                    "probability": said[row, place],
                    "attention": attention[row, place],
                }
            )
    return _small(pd.DataFrame(found))


def audits_of(asked: Measuring, has_evidence: bool = False) -> dict[str, RowsOf]:
    """Every audit that is asked, all of one reading; only erased words are read again."""
    found: dict[str, RowsOf] = {
        "substitution": partial(substitution.rows, draws=asked.draws),
        "confidence": confidence.rows,
        "leakage": leakage_rows,
        "concentration": concentration.rows,
    }
    if asked.is_exact:
        found["adversary"] = partial(adversary.rows, searched=0.0)
    if asked.erasure:
        found["erased"] = partial(input_erasure.rows, shares=(0.1, 0.2), modes=("removed",))
    return found | ({"evidence": evidence.rows} if has_evidence else {})


def _signed(rows: pd.DataFrame) -> np.ndarray[Any, np.dtype[np.float64]]:
    """The logit of class 1 minus that of class 0 under uniform attention."""
    margin = rows["uniform_margin"].to_numpy(dtype=np.float64)
    return np.where(rows["decision"].to_numpy() == 1, margin, -margin)


def _scored(split: str, rows: pd.DataFrame, shift: float) -> dict[str, float]:
    """Scores under each attention, by `split edit score`; permuted ones are means over draws."""
    gold = rows["label"].to_numpy(dtype=np.int64)
    edits = substitution.decisions(rows)
    edits["refitted"] = (_signed(rows) + shift > 0).astype(np.int64)[None]
    edits["one draw"] = edits["permuted"][:1]
    found = {}
    for edit in ("trained", "uniform", "refitted", "permuted", "one draw"):
        scores = classification_scores(edits[edit], gold, 2)
        values = scores.accuracy, scores.macro_f1, scores.f1[..., 1], scores.f1[..., 0]
        for score, value in zip(SCORES, values, strict=True):
            found[f"{split} {edit} {score}"] = float(value.mean())
    return found


def _single(rows: Mapping[str, pd.DataFrame]) -> dict[str, float]:
    """What units alone say, and how even attention is."""
    sure, spread = rows["confidence"], rows["concentration"]
    choosing, _ = of_several_units(sure)  # a document's only unit decides alike by necessity
    correct = sure[sure["label"] == sure["decision"]]
    units = correct["units"].to_numpy(dtype=np.float64)
    several, _ = of_several_units(spread)
    return {
        "confidence": float(correct["confidence"].mean()),
        "confidence, pooled": float((correct["confidence"] * units).sum() / max(units.sum(), 1)),
        "agreeing": float(choosing["agreeing"].mean()),
        "near": float(choosing["near"].mean()),
        "undecided": float(rows["leakage"]["undecided"].mean()),
        "flippable": float(rows["substitution"]["flippable"].mean()),
        "entropy": float(several["entropy"].mean()),
    }


def _instances(rows: Mapping[str, pd.DataFrame]) -> pd.DataFrame:
    """One row per document, in few bytes: the draws themselves stay behind."""
    changed = rows["substitution"]
    found = changed[
        ["instance", "label", "units", "decision", "uniform", "permuted_changes", "flippable"]
    ].copy()
    found["uniform_changes"] = (changed["uniform"] != changed["decision"]).astype(float)
    for name, columns in {
        "confidence": ["probability", "confidence", "near", "agreeing"],
        "leakage": ["undecided"],
        "concentration": ["entropy"],
        "adversary": ["exact_jsd", "largest_jsd"],
    }.items():
        if name in rows:
            found = found.merge(rows[name][["instance", *columns]], on="instance")
    found.loc[found["units"] == 1, ["near", "agreeing"]] = np.nan
    if "erased" in rows:
        flips = rows["erased"].groupby(["instance", "method"])["flip"].mean().unstack()
        found = found.merge(flips.add_prefix("flip_").reset_index(), on="instance")
    if "evidence" in rows:
        for column in ("auprc", "f1", "mass"):
            wide = rows["evidence"].pivot(index="instance", columns="ranking", values=column)
            found = found.merge(wide.add_prefix(f"{column}_").reset_index(), on="instance")
    return _small(found)


def _distances(rows: pd.DataFrame) -> pd.DataFrame:
    alike, there = (np.stack(list(rows[name])).sum(0) for name in ("alike", "there"))
    return pd.DataFrame({"distance": distance_names(), "alike": alike, "units": there})


def _small(table: pd.DataFrame) -> pd.DataFrame:
    """The same numbers in 32 bits: five seeds of forty models travel."""
    wide = dict.fromkeys(table.select_dtypes("float64"), "float32")
    whole = dict.fromkeys(table.select_dtypes("int64"), "int32")
    return table.astype(wide | whole)
