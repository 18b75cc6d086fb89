"""What an audit is about, made ready: a model that was trained or opened, documents, questions."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

import torch

from heedful import __version__
from heedful.audits import AUDITS
from heedful.audits.concentration import AUDIT as ON_UNITS
from heedful.audits.effort import Effort, Level
from heedful.audits.verdict import AUDIT as EXCHANGE
from heedful.corpora import Corpus, EncodedCorpus
from heedful.corpora.samples import Rows, sampled
from heedful.errors import InputError, unknown, visible
from heedful.importance import METHODS, asked_for
from heedful.jobs.decider import Decider, decider_of, device_of, encoded_of, is_trained, read_by
from heedful.jobs.examination import Examination
from heedful.jobs.priors import settle
from heedful.jobs.settings import Settings, settings_for
from heedful.jobs.sources import documents_of
from heedful.jobs.train import train
from heedful.models import looks_like_recipe
from heedful.models.huggingface import PretrainedClassifier
from heedful.models.huggingface.in_memory import is_in_memory
from heedful.models.huggingface.label_choice import LabelChoice
from heedful.models.saved import weights_digest
from heedful.runs import fingerprint
from heedful.statistics.estimates import Estimate
from heedful.training.presets import PRESETS, nearest

CONCENTRATION = ON_UNITS.name
VERDICT = "verdict"
"""What may be asked for alone: the word and its tests."""


class ReadyAudit(NamedTuple):
    """A model, its documents and what is asked of them."""

    model: Decider
    corpus: EncodedCorpus
    split: str
    documents: int
    audits: tuple[str, ...]
    methods: tuple[str, ...]
    seed: int
    device: torch.device
    effort: Effort
    weights: str
    run: Path | None
    priors: dict[str, Estimate]

    @property
    def chosen(self) -> Rows:
        """The documents that are audited."""
        return sampled(self.corpus.splits[self.split].names, self.documents, self.seed)

    def examined(self) -> Examination:
        """The examination that this asks for."""
        return Examination(
            self.model, self.corpus, self.split, self.chosen, self.audits, self.methods, self.seed,
            self.device, self.effort,
        )  # fmt: skip

    def inputs(self) -> dict[str, Any]:
        """Everything that findings depend on."""
        names = self.corpus.splits[self.split].names
        return (
            {
                "model": self.weights,
                "corpus": self.corpus.fingerprint,
                "split": self.split,
                "documents": fingerprint({"names": [names[i] for i in self.chosen]}),
                "audits": list(self.audits),
                "methods": list(self.methods),
                "seed": self.seed,
                "heedful": __version__,
            }
            | reading_of(self.model)
            | self.effort.inputs
        )


def made_ready(
    *,
    model: Any, corpus: Any, out: str | Path, text: str | None, text2: str | None,
    label: str | None, labels: Any, threshold: float | None, settings: Settings, vectors: Any,
    split: str, audits: Any, methods: Any, documents: int, effort: Level, minutes: float | None,
    only: str | None, seed: int, device: str, deterministic: bool, run: Path | None, source: Any,
    command: str, site: str, long: str, trust_remote_code: bool, show: bool,
) -> ReadyAudit:  # fmt: skip
    """The arguments of `audit`, checked, trained where there is a recipe, opened and read."""
    effort_asked = Effort(effort, minutes)
    if only not in (None, VERDICT):
        raise unknown("part of an audit", str(only), (VERDICT,))
    if only and (audits or methods):
        raise InputError("The verdict alone needs no other tests or methods; name either.")
    if only:
        audits, methods = (EXCHANGE,), ()
    audits = tuple(AUDITS) if audits is None else audits
    audits = (audits,) if isinstance(audits, str) else audits
    methods = (methods,) if isinstance(methods, str) else methods
    for kind, names, known in (
        ("audit", audits, AUDITS),
        ("importance method", methods or (), METHODS),
    ):
        for name in names:
            if name not in known:
                raise unknown(kind, name, known)
    columns: dict[str, Any] = {
        "text": text, "text2": text2, "label": label, "labels": labels, "threshold": threshold,
    }  # fmt: skip
    target = device_of(device)
    said: tuple[str, ...] = ()
    if isinstance(model, str | Path) and is_trained(model):
        run = Path(model)
    elif isinstance(model, str | Path):
        recipe = _recipe(model)
        settings = settings_for(recipe, settings)
        corpus, said = documents_of(corpus, seed=seed, **columns)
        corpus, columns = encoded_of(corpus, settings.words), {}
        model = train(
            recipe,
            corpus,
            out,
            settings=settings,
            vectors=vectors,
            seed=seed,
            device=str(target),
            deterministic=deterministic,
            source=source,
            show=show,
        )
    reading: dict[str, Any] = {"site": site, "long": long, "trust_remote_code": trust_remote_code}
    if is_in_memory(model) and device == "auto":  # it stays where it is
        model = decider_of(model, **reading)
        assert isinstance(model, PretrainedClassifier)
        target = model.device
    model = decider_of(model, str(target), **reading).to(target)
    columns |= {"tokeniser": getattr(model, "tokeniser", "words"), "seed": seed}
    corpus, read = documents_of(corpus, model.classes, **columns)
    for line in (*said, *read) if show else ():
        print(line, file=sys.stderr)
    encoded, accuracy = read_by(model, corpus, _only(model, corpus, split, documents, seed)), {}
    is_asked = isinstance(model, PretrainedClassifier) and model.asking is not None
    if is_asked and CONCENTRATION not in audits:  # what lies on the prompt is said, always
        audits = (*audits, CONCENTRATION)
    if isinstance(model, PretrainedClassifier) and model.asking and len(encoded.splits[split]):
        settled = settle(model, encoded, split, model.asking.prior, seed, documents)
        encoded, accuracy = settled.corpus, settled.accuracy
        for line in settled.lines() if show else ():
            print(visible(line), file=sys.stderr)
    methods = asked_for(model, methods)
    if split not in encoded.splits or not len(encoded.splits[split]):
        raise InputError(f"Corpus {encoded.name} has no {split} documents to audit.")
    if show:
        _tell(encoded, split)
    return ReadyAudit(
        model, encoded, split, documents, tuple(audits), tuple(methods), seed, target, effort_asked,
        weights_digest(model), run, accuracy,
    )  # fmt: skip


def _only(
    model: Decider, corpus: Corpus | EncodedCorpus, split: str, most: int, seed: int
) -> dict[str, Sequence[int]] | None:
    """The documents that are looked at: the audited ones, and what a prior may be fitted on."""
    if not isinstance(corpus, Corpus):
        return None
    if isinstance(model, PretrainedClassifier) and model.asking:
        return {name: range(len(corpus.splits.get(name, ()))) for name in ("dev", split)}
    names = [document.id for document in corpus.splits.get(split, ())]
    return {split: sampled(names, most, seed).tolist()}


def _tell(encoded: EncodedCorpus, split: str) -> None:
    """Says what was done to documents: cut, empty, with words that the model does not know."""
    for name, count in encoded.notes.items():
        if name.startswith(f"{split}: "):
            print(f"documents {name.removeprefix(f'{split}: ')}: {count}", file=sys.stderr)


def reading_of(model: Decider) -> dict[str, Any]:
    """How the model reads, where that can be chosen."""
    if not isinstance(model, PretrainedClassifier):
        return {}
    reading = {"site": model.site.name, "long": model.long, "pieces": model.max_pieces}
    if isinstance(model.model, LabelChoice):
        choice = model.model
        corrected = {"offset": choice.offset.tolist(), "corrected by": choice.prior}
        reading["asked"] = model.asking.to_json() | corrected
    return reading


def _recipe(name: str | Path) -> str:
    """The recipe or preset of that name."""
    recipe = str(name)
    if isinstance(name, Path) or not (looks_like_recipe(recipe) or recipe in PRESETS):
        raise InputError(
            f"{name} is neither an existing folder, nor hf:NAME of a model on the hub, nor a "
            f"recipe such as bilstm+additive. {nearest(recipe)}"
        )
    return recipe
