"""Train a model whose attention can be believed: the strength of the remedy chosen on dev.

Every strength costs some F1 and buys reliance on attention: what is lost when attention is
flattened or shuffled. Of those within 1.5 points of F1 of the untreated model the one that relies
most on attention is kept (faithful.md §2.4).
"""

from __future__ import annotations

import shutil
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from shlex import quote
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from heedful.audits import substitution
from heedful.corpora import Corpus, EncodedCorpus, batches
from heedful.errors import InputError, unknown
from heedful.jobs.fine_tuning import fine_tune
from heedful.jobs.opening import Decider, device_of, encoded_of, lacking, read_by
from heedful.jobs.settings import Settings, settings_of
from heedful.jobs.sources import Source, source_of
from heedful.jobs.training import train
from heedful.models import ModelConfig, Penalties, Recipe, read
from heedful.models.huggingface.opening import PREFIX
from heedful.models.recipe import REDUCTIONS, typed, with_settings
from heedful.runs import RunFolder, locked, read_json, write_json
from heedful.statistics import classification_scores

OBJECTIVES: Mapping[str, tuple[str, tuple[float, ...]]] = {
    "tying": ("tying", (1.0, 3.0, 10.0, 30.0)),
    "mlm": ("masked_words", (0.1, 0.3, 1.0, 3.0)),
}
"""The penalty of each objective and the strengths tried unless others are given."""
TUNED = (0.1, 0.3, 1.0, 3.0)
"""Strengths of tying for a pretrained model: fine-tuning is too short to give way to more."""
TOLERANCE = 0.015
"""How much dev F1 a strength may cost."""
RESULT = "remedy.json"


@dataclass(frozen=True)
class Strength:
    """What one strength costs and buys on dev."""

    strength: float
    f1: float
    """F1 of the last class of two; of more classes the mean over classes."""
    uniform: float
    """Change of F1 when attention is flattened."""
    permuted: float
    """Change of F1 when attention is shuffled."""

    @property
    def reliance(self) -> float:
        """F1 lost by flattening plus F1 lost by shuffling."""
        return -(self.uniform + self.permuted)


@dataclass(frozen=True)
class Chosen:
    """The strength that the rule keeps."""

    strength: float
    is_within: bool
    """Whether it costs no more F1 than allowed; else it is the one that costs least."""


@dataclass(frozen=True)
class Remedy:
    """What a search for the strength leaves."""

    objective: str
    base: Strength
    tried: tuple[Strength, ...]
    chosen: Chosen
    folder: Path
    """The run of the model that was kept."""
    notes: tuple[str, ...] = ()

    def to_json(self) -> dict[str, Any]:
        """The search as plain data."""
        return {
            "objective": self.objective,
            "base": asdict(self.base),
            "tried": [asdict(one) | {"reliance": one.reliance} for one in self.tried],
            "chosen": asdict(self.chosen),
            "folder": str(self.folder),
            "notes": list(self.notes),
        }

    def lines(self) -> list[str]:
        """The search for the terminal: a line per strength, then what was kept."""
        found = [
            *self.notes,
            f"{'strength':>10} {'dev F1':>7} {'cost':>6} {'flat':>6} {'shuffled':>9}",
        ]
        for one in (self.base, *self.tried):
            is_kept = one.strength == self.chosen.strength
            found.append(
                f"{one.strength:>10g} {100 * one.f1:>7.1f} {100 * (one.f1 - self.base.f1):>+6.1f} "
                f"{100 * one.uniform:>+6.1f} {100 * one.permuted:>+9.1f}"
                + ("   kept" if is_kept else "")
            )
        kept = next(one for one in self.tried if one.strength == self.chosen.strength)
        cost, bought = self.base.f1 - kept.f1, kept.reliance - self.base.reliance
        price = f"{'costs' if cost >= 0 else 'gains'} {100 * abs(cost):.1f} points of dev F1"
        said = (
            f"{self.objective} at {kept.strength:g} {price} and buys {100 * bought:.1f} points of "
            "reliance on attention (flattening and shuffling together)."
        )
        if self.chosen.is_within:
            said += f" No other one that costs at most {100 * TOLERANCE:g} points buys more."
        if bought <= 0:
            said = (
                f"No strength makes decisions rely more on attention; {kept.strength:g} was kept, "
                f"which {price}."
            )
        if not self.chosen.is_within:
            allowed = f"{100 * TOLERANCE:g} points"
            said += f" Every strength costs more than {allowed}; the cheapest was kept."
        return [*found, said, f"Next: heedful audit {quote(str(self.folder))}"]


def choose(base: float, tried: Sequence[Strength], tolerance: float = TOLERANCE) -> Chosen:
    """The strength with the most reliance among those within the tolerance of the base's F1.

    Where none is, the one with the highest F1. Ties go to the weaker strength.
    """
    if not tried:
        raise InputError("There is no strength to choose from; give at least one.")
    rising = sorted(tried, key=lambda one: one.strength)
    within = [one for one in rising if one.f1 >= base - tolerance]
    if within:
        return Chosen(max(within, key=lambda one: one.reliance).strength, True)
    return Chosen(max(rising, key=lambda one: one.f1).strength, False)


def swept(text: str) -> tuple[str, tuple[float, ...]]:
    """The objective and the strengths of `tying:3,10`; without strengths the usual are tried."""
    name, colon, listed = text.partition(":")
    if name not in OBJECTIVES:
        raise unknown("objective", name, OBJECTIVES)
    try:
        return name, tuple(float(one) for one in listed.split(",")) if colon else ()
    except ValueError:
        raise InputError(f"Strengths to try read {name}:5 or {name}:3,10; got {text!r}.") from None


def source_again(run: Path) -> Source:
    """What a run was trained on, to train on it once more."""
    trained = _training(run)
    source = source_of(run)
    if source is None:
        raise InputError(
            f"{run} was trained on {trained.configuration.get('corpus')} from Python and cannot "
            "open them again; call heedful.jobs.remedy.remedy with these documents."
        )
    return source


def refuse_dev(corpus: Corpus | EncodedCorpus) -> None:
    """Raises at dev documents that are all of one of two classes."""
    absent = lacking(corpus, "dev")
    if absent and len(corpus.classes) == 2:
        raise InputError(
            f"No dev document has the label {absent[-1]!r}, so F1 there says nothing; put some "
            "into the dev split."
        )


def on_dev(
    model: Decider, corpus: EncodedCorpus, strength: float, seed: int, device: str
) -> Strength:
    """Dev F1 with trained, flattened and shuffled attention, from one reading."""
    refuse_dev(corpus)
    tables = [
        substitution.rows(model, read(model, batch.to(device)), {}, seed)
        for batch in batches(corpus.splits["dev"], 256, max_tokens=32_768)
    ]
    rows = pd.concat(tables, ignore_index=True)
    gold = rows["label"].to_numpy(dtype=np.int64)

    def f1(decided: np.ndarray[Any, Any]) -> float:
        scores = classification_scores(decided, gold, len(model.classes))
        chosen = scores.f1[..., 1] if len(model.classes) == 2 else scores.macro_f1
        return float(chosen.mean())

    trained = f1(rows["decision"].to_numpy()[None])
    flat = f1(rows["uniform"].to_numpy()[None])
    shuffled = f1(np.stack(list(rows["permuted"])).astype(np.int64).T)
    return Strength(strength, trained, flat - trained, shuffled - trained)


def remedy(
    run: str | Path,
    corpus: Corpus | EncodedCorpus,
    out: str | Path,
    *,
    objective: str = "tying",
    strengths: Sequence[float] = (),
    reductions: Mapping[str, str] | None = None,
    vectors: str | Path | None = None,
    device: str = "auto",
    show: bool = False,
) -> Remedy:
    """The run's model trained again under an objective, at the strength that dev chooses.

    `corpus` is what the run was trained on. The untreated model is trained again too, with the same
    sizes, so that costs are its own. The chosen run ends in `out` with `remedy.json`, which says
    what every strength costs and buys; the same call again goes on or gives it back. `reductions`
    are those of the table [penalties], where they are not the run's.
    """
    if objective not in OBJECTIVES:
        raise unknown("objective", objective, OBJECTIVES)
    source, out = _training(run), Path(out)
    if (source.path / RESULT).is_file() and not strengths:
        _refuse_kept(source, objective)
    over = source.configuration.get("penalties", {}) | dict(reductions or {})
    over = settings_of({"penalties": over}).penalties
    over = {name: how for name, how in over.items() if how != REDUCTIONS[name][0]}
    is_tuned = "start" in source.record
    penalty, usual = OBJECTIVES[objective]
    usual = TUNED if is_tuned else usual
    if objective == "tying" and over.get("tying_over") == "sum" and not strengths:
        usual = _per_dimension(usual, source)
    wanted = tuple(sorted(set(strengths or usual)))
    asked_of = {
        strength: with_settings(Penalties, {**over, penalty: strength})
        for strength in (0.0, *wanted)
    }
    if wanted[0] == 0:
        raise InputError("A strength of 0 is the untreated model; give strengths above 0.")
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
    if (out / RESULT).is_file():
        return _found(out, asked)
    refuse_dev(corpus)
    asking = _Asking(source, objective, corpus, vectors, seed, target, show)
    again = asking.tuned() if is_tuned else asking.trained()
    place = out / "candidates"
    with locked(out):
        measured = []
        for strength, penalties in asked_of.items():
            folder = place / f"{objective}-{typed(strength)}"
            found = again.learn(penalties, folder)
            encoded = read_by(found, again.corpus)
            measured.append(on_dev(found, encoded, strength, seed, target))
        base, *tried = measured
        chosen = choose(base.f1, tried)
        for entry in sorted((place / f"{objective}-{typed(chosen.strength)}").iterdir()):
            if not entry.name.startswith("."):
                shutil.move(entry, out / entry.name)
        result = Remedy(objective, base, tuple(tried), chosen, out, again.notes)
        write_json(out / RESULT, {"asked": asked} | result.to_json())
        shutil.rmtree(place)
    return result


def _refuse_kept(run: RunFolder, objective: str) -> None:
    """Raises where a run is what the same sweep kept: it would only be made once more."""
    found = read_json(run.path / RESULT)
    if found["objective"] == objective:
        kept = found["chosen"]["strength"]
        raise InputError(
            f"{run.path} is what a sweep of {objective} kept, at {kept:g}; to go farther name "
            f"strengths, such as --objective {objective}:{3 * kept:g}, and see what they cost."
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

    def trained(self) -> _Again:
        """A model of our own, from its sizes."""
        model, settings, notes = _parts(self.run, self.objective)
        if model.encoder == "none":
            raise InputError(
                f"{self.run.path} has no encoder: each state is its own word already, so "
                f"{self.objective} would change nothing; its attention needs no such remedy."
            )
        encoded = encoded_of(self.corpus, settings.words)
        started = self.run.configuration.get("vectors")
        if started and self.vectors is None and encoded.vectors is None:
            raise InputError(
                f"{self.run.path} started from the vectors {started}; give them again with "
                "--vectors."
            )

        def learn(penalties: Penalties, folder: Path) -> Decider:
            return train(
                Recipe(model, penalties), encoded, folder, settings=settings, seed=self.seed,
                vectors=self.vectors, device=self.device, source=source_of(self.run.path),
                show=self.show,
            )  # fmt: skip

        return _Again(learn, encoded, notes)

    def tuned(self) -> _Again:
        """A model of `transformers`, from where its fine-tuning began."""
        if self.objective != "tying":
            raise InputError(
                f"{self.objective} needs heedful's own models; a model of transformers can be "
                "trained under tying."
            )
        found, start = self.run.configuration, str(self.run.record["start"])
        settings = settings_of({"train": found["train"], "words": found["words"]})
        if not start.startswith(PREFIX) and not Path(start).is_dir():
            raise InputError(f"{self.run.path} began from {start}, which is no longer there.")

        def learn(penalties: Penalties, folder: Path) -> Decider:
            return fine_tune(
                start, self.corpus, folder, settings=settings, penalties=penalties, seed=self.seed,
                device=self.device, source=source_of(self.run.path), show=self.show,
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


def _found(out: Path, asked: Mapping[str, Any]) -> Remedy:
    stored = read_json(out / RESULT)
    if stored["asked"] != asked:
        raise InputError(f"{out} holds another search for a remedy; choose another --out.")
    tried = tuple(
        Strength(**{k: v for k, v in one.items() if k != "reliance"}) for one in stored["tried"]
    )
    return Remedy(
        stored["objective"],
        Strength(**stored["base"]),
        tried,
        Chosen(**stored["chosen"]),
        out,
        tuple(stored["notes"]),
    )
