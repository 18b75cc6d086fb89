"""Train a model whose attention can be believed: the strength of the remedy chosen on dev.

The run's model is trained again untreated and at every strength; `strengths` says what each costs
and buys and which is kept.
"""

from __future__ import annotations

import re
import shutil
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from math import inf
from pathlib import Path
from typing import Any, NamedTuple

from heedful.corpora import Corpus, EncodedCorpus
from heedful.errors import InputError, unknown
from heedful.jobs.advice import RESULT, hindrance, next_objective
from heedful.jobs.decider import Decider, device_of, encoded_of, read_by
from heedful.jobs.fine_tuning import fine_tune
from heedful.jobs.settings import Settings, settings_of
from heedful.jobs.sources import DocumentSource, source_of
from heedful.jobs.strengths import (
    LIMIT,
    Remedy,
    choose,
    on_dev,
    prices,
    refuse_dev,
    refuse_limit,
)
from heedful.jobs.train import train, vectors_digest
from heedful.models import ModelConfig, Penalties, Recipe
from heedful.models.recipe import PENALTIES, REDUCTIONS, typed, with_settings
from heedful.runs import RunFolder, locked, read_json, remove_leftovers, write_json

OBJECTIVES: Mapping[str, tuple[str, tuple[float, ...]]] = {
    "tying": ("tying", (1.0, 3.0, 10.0, 30.0)),
    "mlm": ("masked_words", (0.1, 0.3, 1.0, 3.0)),
}
"""The penalty of each objective and the strengths tried unless others are given."""
CANDIDATES, DECIDED = "candidates", "decided.json"
"""Where strengths are trained, and what was decided until the chosen run is in its place."""
TUNED = (0.1, 0.3, 1.0, 3.0)
"""Strengths of tying for a pretrained model: fine-tuning is too short to give way to more."""


def swept(text: str) -> tuple[str, tuple[float, ...]]:
    """The objective and the strengths of `tying:3,10`; without strengths the usual are tried."""
    name, colon, listed = text.partition(":")
    if name not in OBJECTIVES:
        raise unknown("objective", name, OBJECTIVES)
    try:
        strengths = tuple(float(one) for one in listed.split(",")) if colon else ()
    except ValueError:
        raise InputError(f"Strengths to try read {name}:5 or {name}:3,10; got {text!r}.") from None
    _refuse_strengths(strengths)
    return name, strengths


def source_again(run: Path) -> DocumentSource:
    """What a run was trained on, to train on it once more."""
    trained = _training(run)
    source = source_of(run)
    if source is None:
        raise InputError(
            f"{run} was trained on {trained.configuration.get('corpus')} from Python and cannot "
            "open them again; call heedful.remedy with these documents."
        )
    return source


def remedy(
    run: str | Path,
    corpus: Corpus | EncodedCorpus,
    out: str | Path,
    *,
    objective: str = "tying",
    strengths: Sequence[float] = (),
    limit: float = LIMIT,
    reductions: Mapping[str, str] | None = None,
    vectors: str | Path | None = None,
    device: str = "auto",
    show: bool = False,
    trust_remote_code: bool = False,
) -> Remedy:
    """The run's model trained again under an objective, at the strength that dev chooses.

    `corpus` is what the run was trained on. The untreated model is trained again too, with the same
    sizes, so that costs are its own. The chosen run ends in `out` with `remedy.json`, which says
    what every strength costs and buys; the same call again goes on or gives it back. A strength may
    cost `limit` points of dev F1. `reductions` are those of the table [penalties], where they are
    not the run's. Of penalties that the run was trained under, that of the objective is left out of
    the untreated model and others stay in all; `notes` say so. A model that brings code of its own
    needs `trust_remote_code`.
    """
    if objective not in OBJECTIVES:
        raise unknown("objective", objective, OBJECTIVES)
    refuse_limit(limit)
    _refuse_strengths(strengths)
    source, out = _training(run), Path(out)
    if (source.path / RESULT).is_file() and not strengths:
        _refuse_kept(source, objective, limit)
    over = source.configuration.get("penalties", {}) | dict(reductions or {})
    over = settings_of({"penalties": over}).penalties
    over = {name: how for name, how in over.items() if how != REDUCTIONS[name][0]}
    is_tuned = "start" in source.record
    penalty, usual = OBJECTIVES[objective]
    usual = TUNED if is_tuned else usual
    if objective == "tying" and over.get("tying_over") == "sum" and not strengths:
        usual = _per_dimension(usual, source)
    wanted = tuple(sorted(set(strengths or usual)))
    own = _own(source)
    stays = {PENALTIES[key]: strength for key, strength in own.items() if key != objective}
    asked_of = {
        strength: with_settings(Penalties, {**stays, **over, penalty: strength})
        for strength in (0.0, *wanted)
    }
    seed, target = int(source.configuration["seed"]), str(device_of(device))
    if corpus.fingerprint != source.record["corpus"]:
        raise InputError(
            f"{source.path} was trained on {source.configuration.get('corpus')}, not on these "
            "documents; give the same corpus."
        )
    asked: dict[str, Any] = {
        "run": str(source.configuration),
        "objective": objective,
        "strengths": list(wanted),
    }
    asked |= {"penalties": over} if over else {}
    asked |= {"stays": stays} if stays else {}
    # What is usual is left out, so that folders from before it could be asked for are found.
    asked |= {"limit": float(limit)} if limit != LIMIT else {}
    if _is_decided(out):
        with locked(out):
            return _settled(out, asked)
    refuse_dev(corpus)
    if reason := hindrance(source.path, objective):
        raise InputError(reason)
    asking = _Asking(source, objective, corpus, vectors, seed, target, show, trust_remote_code)
    again = asking.tuned() if is_tuned else asking.trained()
    notes = (*_told(own, objective, source.path), *again.notes)
    place = out / CANDIDATES
    with locked(out):
        if _is_decided(out):  # by a process that held the folder until now
            return _settled(out, asked)
        if any((out / name).exists() for name in ("run.json", "model")):
            raise InputError(
                f"{out} holds a run, or a sweep that an older heedful was killed in; choose a new "
                "or empty folder for --out."
            )
        if place.is_dir():
            remove_leftovers(out)
        decided = []
        for strength, penalties in asked_of.items():
            folder = place / f"{objective}-{typed(strength)}"
            found = again.learn(penalties, folder)
            decided.append(on_dev(found, read_by(found, again.corpus), seed, target))
        base, *tried = (one.at(s) for one, s in zip(decided, asked_of, strict=True))
        chosen = choose(base.f1, tried, limit)
        priced = prices(decided[0], decided[1:], wanted.index(chosen.strength))
        searched = (out, notes, float(limit), priced, str(run))
        result = Remedy(objective, base, tuple(tried), chosen, *searched)
        kept = f"{objective}-{typed(chosen.strength)}"
        write_json(out / DECIDED, {"asked": asked, "kept": kept} | result.to_json())
        return _settled(out, asked)


def _refuse_strengths(strengths: Sequence[float]) -> None:
    """Raises at a strength that is none."""
    for strength in strengths:
        if not 0 < strength < inf:
            raise InputError(
                f"Give strengths above 0 (0, the untreated model, is always trained beside them); "
                f"got {strength:g}."
            )


def _refuse_kept(run: RunFolder, objective: str, limit: float) -> None:
    """Raises where a run is what the same sweep kept: it would only be made once more."""
    found = read_json(run.path / RESULT)
    if (found["objective"], found.get("limit", LIMIT)) == (objective, limit):
        kept = found["chosen"]["strength"]
        raise InputError(
            f"{run.path} is what a sweep of {objective} kept, at {kept:g}; to go on, name a "
            f"strength that it did not try, such as --objective {next_objective(run.path)}, or "
            "set what one may cost with --limit."
        )


def _own(run: RunFolder) -> dict[str, float]:
    """The strength of each penalty that a run was trained under, by its key in recipes."""
    found: dict[str, float] = {}
    for part in reversed(str(run.configuration["recipe"]).split("+")):  # they stand at its end
        key, _, strength = part.partition(":")
        if key not in PENALTIES or not re.fullmatch(r"[\d.]+(e-?\d+)?", strength):
            break
        found = {key: float(strength)} | found
    return found


def _told(own: Mapping[str, float], objective: str, run: Path) -> tuple[str, ...]:
    """What becomes of the run's own penalties, a line each."""
    fates = (
        "is left out: strengths are compared with the model without it",
        "stays in all of these models, also in the one at 0",
    )
    return tuple(
        f"{run}'s own {key}:{typed(strength)} {fates[key != objective]}."
        for key, strength in own.items()
    )


def _per_dimension(usual: Sequence[float], run: RunFolder) -> tuple[float, ...]:
    """The usual strengths, which are for a mean over dimensions, where distances are summed."""
    dimensions = run.configuration["model"].get("embedding_dim")
    if dimensions is None:
        raise InputError(
            "The usual strengths are for tying_over = mean; with sum give your own, such as "
            "--objective tying:0.001,0.01."
        )
    return tuple(strength / dimensions for strength in usual)


def _training(run: str | Path) -> RunFolder:
    """The run, if a model was trained in it."""
    found = RunFolder.open(run)
    if found.configuration.get("kind") == "train":
        return found
    audited = found.record.get("audited", {}).get("run")
    raise InputError(
        f"{found.path} holds no training to start from; give "
        + (
            f"{audited}, the run that was audited."
            if audited
            else "a run made by `heedful train` or by `heedful audit RECIPE`."
        )
    )


class _Again(NamedTuple):
    """How the run's model is trained once more under penalties."""

    learn: Callable[[Penalties, Path], Decider]
    corpus: Corpus | EncodedCorpus
    notes: tuple[str, ...] = ()


@dataclass(frozen=True)
class _Asking:
    """What a remedy was asked for."""

    run: RunFolder
    objective: str
    corpus: Corpus | EncodedCorpus
    vectors: str | Path | None
    seed: int
    device: str
    show: bool
    trust_remote_code: bool

    def trained(self) -> _Again:
        """A model of our own, from its sizes."""
        model, settings, notes = _parts(self.run, self.objective)
        encoded = encoded_of(self.corpus, settings.words)
        self._refuse_vectors(encoded)

        def learn(penalties: Penalties, folder: Path) -> Decider:
            return train(
                Recipe(model, penalties), encoded, folder, settings=settings, seed=self.seed,
                vectors=self.vectors, device=self.device, source=source_of(self.run.path),
                show=self.show,
            )  # fmt: skip

        return _Again(learn, encoded, notes)

    def _refuse_vectors(self, encoded: EncodedCorpus) -> None:
        """Raises where the vectors that the run started from are not at hand."""
        started = str(self.run.configuration.get("vectors") or "")
        said = f"{self.run.path} started from the vectors {started}"
        if not started or (self.vectors is None and encoded.vectors is not None):
            return
        if self.vectors is None:
            place = self.run.record.get("vectors") or "FILE"
            raise InputError(f"{said}; give them again with --vectors {place}.")
        if not Path(self.vectors).is_file():
            raise InputError(f"{said}; {self.vectors} does not exist.")
        name, _, mark = started.rpartition(" ")
        given = vectors_digest(self.vectors).rpartition(" ")
        # By content, whatever the file is called now; old runs know the name only.
        if (given[2] if name else given[0]) != mark:
            raise InputError(f"{said}, and {self.vectors} holds others; give the same.")

    def tuned(self) -> _Again:
        """A model of `transformers`, from where its fine-tuning began."""
        if self.objective != "tying":
            raise InputError(
                f"{self.objective} needs heedful's own models; a model of transformers can be "
                "trained under tying."
            )
        found, start = self.run.configuration, str(self.run.record["start"])
        settings = settings_of({"train": found["train"], "words": found["words"]})

        def learn(penalties: Penalties, folder: Path) -> Decider:
            return fine_tune(
                start, self.corpus, folder, settings=settings, penalties=penalties, seed=self.seed,
                device=self.device, source=source_of(self.run.path), show=self.show,
                trust_remote_code=self.trust_remote_code,
            )  # fmt: skip

        return _Again(learn, self.corpus)


def _parts(run: RunFolder, objective: str) -> tuple[ModelConfig, Settings, tuple[str, ...]]:
    """The run's model with sizes that the objective allows, its settings, and what was changed."""
    found = run.configuration
    model = with_settings(ModelConfig, found["model"])
    settings = settings_of({"train": found["train"], "words": found["words"]})
    notes = []
    if model.width != model.embedding_dim and model.encoder != "none":
        notes.append(
            f"Width {model.width} became {model.embedding_dim}, that of the embeddings, with which "
            "states are compared."
        )
        model = replace(model, width=model.embedding_dim)
    if objective == "mlm" and not model.freeze_embeddings:
        notes.append("Embeddings are frozen in all of these models: input and output share them.")
        model = replace(model, freeze_embeddings=True)
    return model, settings, tuple(notes)


def _is_decided(out: Path) -> bool:
    """Whether all strengths were tried here and one was chosen."""
    return any((out / name).is_file() for name in (RESULT, DECIDED))


def _settled(out: Path, asked: Mapping[str, Any]) -> Remedy:
    """What a search found, with the chosen run moved to its place; another search is refused.

    Goes on where a killed process left off: until all is done the decision stands in a file of its
    own, and what was moved is no longer among the candidates.
    """
    stored = read_json(out / (RESULT if (out / RESULT).is_file() else DECIDED))
    if stored["asked"] != asked:
        raise InputError(
            f"{out} holds another search for a remedy (other strengths, limit or objectives that "
            "stay); choose another --out."
        )
    if (out / DECIDED).is_file():
        for entry in sorted((out / CANDIDATES / stored["kept"]).glob("*")):
            if not entry.name.startswith("."):
                entry.rename(out / entry.name)
    shutil.rmtree(out / CANDIDATES, ignore_errors=True)
    if (out / DECIDED).is_file():
        (out / DECIDED).rename(out / RESULT)
    remove_leftovers(out)
    return Remedy.from_json(stored, out)
