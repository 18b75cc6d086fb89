"""Why this text: the importance of its words by every method."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any, NamedTuple

import pandas as pd
import torch
from jaxtyping import Float
from torch import Tensor

from heedful.audits.ranking import PLACE
from heedful.corpora.batches import Batch
from heedful.corpora.vocabulary import UNKNOWN
from heedful.errors import InputError, intact, unknown
from heedful.importance import METHODS, alike, methods_of
from heedful.importance import explain as importance_of
from heedful.importance.inputs import missing, occluded
from heedful.jobs.decider import Decider, Model, decider_of
from heedful.models import Reading, read, without_each
from heedful.models.huggingface import RULE, PretrainedClassifier, unit_spans
from heedful.models.log_odds import log_odds
from heedful.runs import plain, read_json
from heedful.statistics import Estimate

TOP = 5
"""Words that the short form names."""
SURE = 0.99
"""From this probability on what a word costs is told in log-odds: probabilities hardly move."""
ROUNDED = 1e-9
"""Below this a probability's slope in 64 bits is mostly rounding."""
LOSSES: Mapping[str, Callable[[Decider, Reading], Float[Tensor, "batch unit class"]]] = {
    "leave-one-out": without_each,
    "occlusion": occluded,
}
"""Methods whose number is probability lost, and the logits without each unit."""
SLOPES = (
    "gradient", "product", "centred", "input-gradient", "gradient-input", "attention-gradient",
)  # fmt: skip
"""Methods whose number is proportional to a slope of the probability."""


@dataclass(frozen=True, repr=False)
class Explanation:
    """One text, its decision and what each method says mattered.

    A notebook shows it coloured; `to_json` gives it as a dict, `to_frame` as a table.
    """

    units: tuple[str, ...]
    """Words, or sentences in a hierarchical model."""
    decision: str
    probabilities: dict[str, float]
    importance: dict[str, tuple[float, ...]]
    """One number per unit by each method, higher = more important; the recommended one first."""
    target: str = ""
    """The class whose reasons are told: the decision, unless another one was asked for."""
    log_odds: tuple[str, ...] = ()
    """Methods whose numbers are of the log-odds, since the probability is next to 0 or 1."""
    spans: tuple[tuple[int, int], ...] = ()
    """First character of each unit in the text, and one past its last."""
    unknown: tuple[str, ...] = ()
    """Words of the text that the model does not know: all read as one symbol."""
    outside: float | None = None
    """The share of the audited attention that lies on special tokens, in a Transformer."""
    words: str = ""
    """How pieces of words became words, in a Transformer."""
    missing: float | None = None
    """How far integrated gradients are from adding up to the rise in probability."""
    text: str = ""
    """The text, or the pair of texts, that `spans` speak of."""

    def to_json(self) -> dict[str, Any]:
        """The explanation as plain data."""
        told: dict[str, Any] = plain(asdict(self))
        return told

    def to_frame(self) -> pd.DataFrame:
        """One row for each unit, one column for each method."""
        return pd.DataFrame(self.importance, index=pd.Index(self.units, name="unit"))

    def __repr__(self) -> str:
        method, values = next(iter(self.importance.items()), ("", ()))
        best = sorted(zip(self.units, values, strict=False), key=lambda one: -abs(one[1]))[:TOP]
        named = ", ".join(f"{unit} {value:.3g}" for unit, value in best)
        sure = self.probabilities[self.decision]
        return f"Explanation({self.decision} {sure:.3f}; {method}: {named})"

    def _repr_html_(self) -> str:
        """The text coloured by each method, for a notebook."""
        from heedful.report.notebook import explanation_card

        sentences = {name: METHODS[name].sentence for name in self.importance}
        return explanation_card(self.to_json(), sentences)


class Recommended(NamedTuple):
    """The explanation to look at first."""

    method: str
    why: str
    standing: str = ""
    """What an audit makes of it: recommended, or first there; nothing where none was measured."""


def explain(
    model: Model,
    text: str,
    methods: str | Sequence[str] | None = None,
    *,
    target: str | None = None,
    text2: str | None = None,
    seed: int = 0,
    site: str = "pooled",
    long: str = "beginning",
    trust_remote_code: bool = False,
) -> Explanation:
    """What each importance method says of each word of a text, or of a pair of texts.

    `target` is the class whose reasons are asked for, if it is not the decision; `site`, `long` and
    `trust_remote_code` are those of `load`. Where the model is next to sure, probabilities lost and
    slopes of the probability are given in log-odds.

    >>> import heedful
    >>> from heedful.jobs.settings import settings_of
    >>> corpus = heedful.load_corpus("planted:2:short", sizes={"train": 200, "dev": 50})
    >>> small = settings_of({"train": {"epochs": 1}})
    >>> model = heedful.train("none+additive", corpus, settings=small)
    >>> explanation = heedful.explain(model, "The soup was dreadful.", "attention")
    >>> explanation.units
    ('the', 'soup', 'was', 'dreadful', '.')
    """
    if not isinstance(text, str) or not text.strip():
        raise InputError(f"Expected a text to explain, got {text!r}.")
    opened = decider_of(model, site=site, long=long, trust_remote_code=trust_remote_code)
    if target is not None and target not in opened.classes:
        raise unknown("class", target, opened.classes)
    reading = read(opened, batch_of(opened, [(text, text2)]))
    if target is not None:
        place = torch.full_like(reading.decision, opened.classes.index(target))
        reading = replace(reading, explained=place)
    if methods is None:
        offered = methods_of(opened, costly=True, units=int(reading.units[0]))
        best = recommended(model, opened).method
        extra = [best] if METHODS[best].is_extra else []  # which an audit was asked to judge
        methods = list(best_first(dict.fromkeys([*offered, *extra]), best))
    found = importance_of(opened, reading, methods, seed)
    told = {name: _in_log_odds(name, v, opened, reading) for name, v in found.items()}
    probabilities = reading.logits[0].softmax(-1).tolist()
    return Explanation(
        units=reading.texts[0],
        decision=opened.classes[int(reading.decision[0])],
        probabilities=dict(zip(opened.classes, probabilities, strict=True)),
        importance={name: tuple(values[0].tolist()) for name, values in told.items()},
        target=opened.classes[int(reading.target[0])],
        log_odds=tuple(name for name in told if told[name] is not found[name]),
        spans=tuple(unit_spans(reading.batch, reading.unit_of_token)[0]),
        text=reading.batch.documents[0].text if reading.batch.documents else "",
        unknown=unknown_words(opened, reading),
        outside=None if reading.outside is None else float(reading.outside[0]),
        words=RULE if isinstance(opened, PretrainedClassifier) else "",
        missing=float(missing(opened, reading, found["integrated"])[0])
        if "integrated" in found
        else None,
    )


def recommended(place: Model, model: Decider) -> Recommended:
    """The best explanation by the audit in the run folder that was named, else the plainest one."""
    if isinstance(place, str | Path) and (Path(place) / "findings" / "verdict.json").is_file():
        with intact(place):
            return _recommended(read_json(Path(place) / "findings" / "verdict.json"), model)
    return _recommended({}, model)


def _recommended(verdict: Mapping[str, Any], model: Decider) -> Recommended:
    stored = verdict.get("ranking")
    ranking: Mapping[str, Any] = stored or {"places": []}
    named = [one for one in ranking["places"] if one["place"]]
    if not named:
        return Recommended(
            "occlusion" if "occlusion" in methods_of(model, costly=True) else "leave-one-out",
            "Which explanation fits this model best was not measured here: audit it, and name the "
            "folder of that audit as --model.",
        )
    best = min(named, key=lambda one: one["place"])
    beyond = Estimate.from_json(best["beyond_random"] or best["faithfulness"])
    method, said = alike(model).get(best["method"], best["method"]), ranking["recommendation"]
    told = (
        f"{method} is the first of {len(named)} explanations in the audit: {beyond} above a random "
        f"order, {beyond.n:,} documents."
    )
    if ranking.get("recommended") == best["method"]:
        return Recommended(method, told, "recommended")
    return Recommended(method, f"{told} {said.replace(PLACE, '')}", "first in the audit")


def best_first(found: Mapping[str, Any], best: str) -> dict[str, Any]:
    """What is told by method, the best method first and the random order last."""
    order = sorted(found, key=lambda name: (name != best, name == "random"))
    return {name: found[name] for name in order}


def _in_log_odds(
    name: str, values: Float[Tensor, "batch unit"], model: Decider, reading: Reading
) -> Float[Tensor, "batch unit"]:
    """What a method says of one text, in log-odds log p/q where the model is next to sure.

    Losses are those of the log-odds, from the logits again; a slope ∂p becomes ∂p / pq.
    """
    odds = log_odds(reading.logits.double(), reading.target)[:, None]
    p, q = odds.sigmoid(), (-odds).sigmoid()
    if float(torch.minimum(p, q)) > 1 - SURE:
        return values
    if name in LOSSES:
        without = LOSSES[name](model, reading).double()
        left = log_odds(without, reading.target[:, None].expand(without.shape[:2]))
        return (odds - left).masked_fill(~reading.mask, 0)
    is_slope = name in SLOPES and float(torch.minimum(p, q)) > ROUNDED
    return values / (p * q) if is_slope else values


def batch_of(model: Decider, texts: Sequence[tuple[str, str | None]]) -> Batch:
    """Texts, or pairs of texts, as the model reads them."""
    if isinstance(model, PretrainedClassifier):
        return model.batch([one if two is None else (one, two) for one, two in texts])
    if any(two is not None for _, two in texts):
        raise InputError("This model reads one text; two are for models of transformers.")
    return model.batch([one for one, _ in texts])


def unknown_words(model: Decider, reading: Reading) -> tuple[str, ...]:
    """The words that are not in the model's vocabulary, each once."""
    batch = reading.batch
    if isinstance(model, PretrainedClassifier):
        if not model.subwords.has_unknown:
            return ()
        is_strange = batch.ids[0] == model.subwords.unknown
        units = reading.unit_of_token[0][is_strange].tolist()
        return tuple(dict.fromkeys(reading.texts[0][unit] for unit in units))
    (words,) = batch.words(model.vocabulary)
    ids = model.vocabulary.encode(words)
    return tuple(dict.fromkeys(w for w, i in zip(words, ids, strict=True) if i == UNKNOWN and w))
