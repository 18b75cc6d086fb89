"""What is advised for a run whose attention is no reason: a command that works when pasted."""

from __future__ import annotations

from collections.abc import Sequence
from math import sqrt
from os.path import isdir, isfile  # which a folder that may not be looked into does not upset
from pathlib import Path
from shlex import quote
from typing import NamedTuple

from heedful.audits.verdict import training
from heedful.corpora import Corpus, EncodedCorpus
from heedful.jobs.decider import lacking
from heedful.jobs.sources import source_of
from heedful.models.huggingface.opening import PREFIX
from heedful.models.recipe import typed
from heedful.models.transformer_config import TRANSFORMER
from heedful.runs import RunFolder, read_json

RESULT = "remedy.json"


class Command(NamedTuple):
    """A command for the shell, or a call for Python."""

    text: str
    said: str = ""
    """What a word in capitals stands for, which the run does not know."""


def again(run: Path, objective: str, limit: float | None = None) -> Command:
    """The command that trains a run's model again under an objective, with all that it demands."""
    record = RunFolder.open(run).record if (run / "run.json").is_file() else {}
    if record and source_of(run) is None:
        return Command(_called(run, objective, limit), "in Python, where its documents are")
    text = f"heedful train --from {quote(str(run))} --objective {objective}"
    text += "" if limit is None else f" --limit {typed(limit)}"
    started = record.get("configuration", {}).get("vectors")
    if not started:
        return Command(text)
    place = record.get("vectors")
    if place and isfile(place):
        return Command(f"{text} --vectors {quote(place)}")
    name = started.rpartition(" ")[0] or started  # a digest follows, but for old runs
    return Command(f"{text} --vectors FILE", f"FILE: the vectors {name} that it started from")


def _called(run: Path, objective: str, limit: float | None) -> str:
    """The same for a run that was trained from Python, and cannot open its documents by itself."""
    name, _, strength = objective.partition(":")
    options = [f"objective={name!r}"]
    options += [f"strengths=[{strength}]"] if strength else []
    options += [] if limit is None else [f"limit={typed(limit)}"]
    return f"remedy({str(run)!r}, corpus, out, {', '.join(options)})"


def advised(run: Path, audited: EncodedCorpus | None = None) -> str:
    """The advice to train a run's model again, or why that cannot be done.

    Of `audited` dev documents count, if these are the run's own.
    """
    objective, own = next_objective(run), RunFolder.open(run).record.get("corpus")
    reasons = (
        hindrance(run, objective.partition(":")[0]),
        _gone(run),
        silence(audited) if audited is not None and audited.fingerprint == own else "",
    )
    if reason := next(filter(None, reasons), ""):
        return f"`heedful train --from` is no way out here: {reason}"
    found = read_json(run / RESULT) if (run / RESULT).is_file() else {}
    command = again(run, objective, found.get("asked", {}).get("limit"))
    return training(command.text, command.said, is_sweep=":" not in objective)


def hindrance(run: Path, objective: str) -> str:
    """Why a run's model cannot be trained again under an objective; empty where it can."""
    found = RunFolder.open(run)
    start = found.record.get("start")
    if start is not None:
        if str(start).startswith(PREFIX) or isdir(start):
            return ""
        return f"{run} began from {start}, which is no longer there."
    if found.configuration["recipe"] == TRANSFORMER:
        return (
            f"{run} holds heedful's own Transformer, for which there is no {objective}; train a "
            "recipe such as bilstm+additive, or a model of transformers."
        )
    if found.configuration["model"]["encoder"] == "none":
        return (
            f"{run} has no encoder: each state is its own word already, so {objective} would "
            "change nothing."
        )
    return ""


def _gone(run: Path) -> str:
    """Why a run cannot open its own documents again: their file or folder is gone."""
    source = source_of(run)
    if source is None:
        return ""
    file, folder = source.data, source.corpus  # a corpus of no path is known by name
    gone = file if file and not isfile(file) else None
    if folder and Path(folder).is_absolute() and not isdir(folder):
        gone = folder
    return f"{run} was trained on {gone}, which is no longer there." if gone else ""


def silence(corpus: Corpus | EncodedCorpus) -> str:
    """Why dev documents tell nothing of a strength: they are all of one of two classes."""
    absent = lacking(corpus, "dev")
    if not absent or len(corpus.classes) != 2:
        return ""
    return (
        f"No dev document has the label {absent[-1]!r}, so F1 there says nothing; put some into "
        "the dev split."
    )


def next_objective(run: Path) -> str:
    """What to train a run under next: tying, or a strength that the sweep which kept it left out.

    >>> next_objective(Path("no such run"))
    'tying'
    """
    if not (run / RESULT).is_file():
        return "tying"
    found = read_json(run / RESULT)
    strengths = [one["strength"] for one in found["tried"]]
    return f"{found['objective']}:{untried(strengths, **found['chosen'])}"


def untried(tried: Sequence[float], strength: float, is_within: bool) -> str:
    """A strength to try after a sweep: weaker than all if all cost too much, else stronger.

    `strength` is the one kept, `is_within` whether its cost is within the limit.

    >>> untried([0.1, 1], 0.1, is_within=False), untried([1, 10], 1, is_within=True)
    ('0.033', '3.2')
    >>> untried([1, 1.1], 1, is_within=True)  # rounded no further than to be new
    '1.05'
    """
    stronger = [one for one in tried if one > strength]
    if not is_within:
        following = min(tried) / 3
    else:
        following = sqrt(strength * min(stronger)) if stronger else 3 * strength
    rounded = (float(f"{following:.{digits}g}") for digits in range(2, 18))
    return typed(next((one for one in rounded if one not in tried), following))
