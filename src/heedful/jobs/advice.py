"""What is advised for an audited model: commands that work when pasted, made of what it can do."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from math import sqrt
from os.path import isdir, isfile  # which a folder that may not be looked into does not upset
from pathlib import Path
from shlex import quote
from typing import NamedTuple

from heedful.audits.verdict import FEWEST_DOCUMENTS, Verdict
from heedful.corpora import Corpus, EncodedCorpus
from heedful.errors import InputError
from heedful.jobs.decider import Decider, lacking
from heedful.jobs.sources import DocumentSource, nearby, source_of
from heedful.models.huggingface import PretrainedClassifier
from heedful.models.huggingface.opening import PREFIX, brings_code
from heedful.models.recipe import typed
from heedful.models.transformer_config import TRANSFORMER
from heedful.runs import RunFolder, read_json
from heedful.training.fine_tuning import ties

RESULT = "remedy.json"
TYING = "1"
"""Strength of tying that is advised for a pretrained model, the middle of those that are tried."""
CODE = " --trust-remote-code"
ONE_HEAD = re.compile(r"Show head (\d+) of the audited layer instead")


@dataclass(frozen=True)
class Situation:
    """What was audited, as far as advice depends on it."""

    model: Decider
    folder: Path
    """Of the audit."""
    run: Path | None
    """The run that trained the model."""
    source: DocumentSource | None
    """Where the audited documents came from, if they can be opened again."""
    corpus: EncodedCorpus
    audited: int
    """How many documents were."""
    of: int
    """How many the split has."""

    @property
    def name(self) -> str:
        """What the model is called on a command line; nothing for one that is in memory only."""
        if self.run is not None:
            return str(self.run)
        recipe = str(self.model.recipe)
        if not isinstance(self.model, PretrainedClassifier) or not recipe.startswith(PREFIX):
            return ""
        place = recipe.removeprefix(PREFIX)
        return nearby(place) if isdir(place) else recipe

    @property
    def flags(self) -> str:
        """How the model has to be opened and read, as options."""
        if not isinstance(self.model, PretrainedClassifier):
            return ""
        site, long = self.model.site.name, self.model.long
        said = f" --site {site}" if site != "pooled" else ""
        said += f" --long {long}" if long != "beginning" else ""
        return said + (CODE if brings_code(self.model) else "")

    @property
    def documents(self) -> str:
        """The audited documents as options; nothing where they are the run's own."""
        is_own = self.run is not None and self.folder == self.run
        return "" if is_own or self.source is None else f" {self.source.options()}"


def advice(verdict: Verdict, situation: Situation) -> tuple[str, ...]:
    """What follows from a verdict for this model: what holds for all, and what can be done here."""
    if verdict.word == "yes":
        return verdict.advice
    if verdict.word == "cannot tell":
        return (_more(situation),)
    ways = (_head(verdict, situation), _shown(verdict, situation), _trained(situation))
    return (*verdict.advice, *filter(None, ways))


def _more(situation: Situation) -> str:
    """How more documents could be audited."""
    said = "Audit more documents, a few hundred are usually enough"
    if situation.audited >= situation.of:
        return (
            f"{said}: all {situation.of:,} that there are were audited, so name a larger file or "
            "corpus, labelled or not, by --data or --corpus."
        )
    if not situation.name or (situation.run is None and situation.source is None):
        call = f"heedful.audit(model, corpus, {nearby(situation.folder)!r}, documents=0)"
        return f"{said}: `{call}` takes all {situation.of:,}."
    command = f"heedful audit {quote(situation.name)}{situation.documents}{situation.flags}"
    command += f" --out {quote(nearby(situation.folder))} --documents 0"
    few = " Where that is still too few, name a larger file or corpus by --data or --corpus."
    return (
        f"{said}: `{command}` takes all {situation.of:,}.{few * (situation.of < FEWEST_DOCUMENTS)}"
    )


def _head(verdict: Verdict, situation: Situation) -> str:
    """How to see the head that may be shown; nothing where none may, or no option names it."""
    found = next(filter(None, map(ONE_HEAD.match, verdict.advice)), None)
    model = situation.model
    if found is None or not isinstance(model, PretrainedClassifier) or not situation.name:
        return ""
    if len(model.site.calls) > 1 or model.site.heads:
        return ""
    layer = model.layout.audited.index(model.site.last)
    code = CODE if brings_code(model) else ""
    return (
        f"To see that head on a text: `heedful explain 'your text' --model "
        f"{quote(nearby(situation.folder))} --method attention --site "
        f"heads:{layer}.{found[1]}{code}`."
    )


def _shown(verdict: Verdict, situation: Situation) -> str:
    """How to see the better explanation on a text; nothing where none is recommended."""
    ranking = verdict.ranking
    best = next((place for place in ranking.places if place.place == 1), None) if ranking else None
    if ranking is None or best is None or f"`{best.method}`" not in ranking.recommendation:
        return ""
    if not situation.name:
        call = f"heedful.explain(model, 'your text', {best.method!r})"
        return f"To see {best.method} on a text: `{call}` in Python."
    code = CODE if brings_code(situation.model) else ""
    second = " --text2 'second text'" if situation.source and situation.source.second else ""
    return (
        f"To see {best.method} on a text: `heedful explain 'your text'{second} --model "
        f"{quote(nearby(situation.folder))} --method {best.method}{code}`."
    )


def _trained(situation: Situation) -> str:
    """How to train a model whose attention can be believed; nothing where that is not offered."""
    if situation.run is not None:
        return advised(situation.run, situation.corpus, situation)
    model = situation.model
    if (
        not situation.name
        or not isinstance(model, PretrainedClassifier)
        or situation.source is None
    ):
        return ""
    if not ties(model) or not _is_labelled(situation.source):
        return ""
    code = CODE if brings_code(model) else ""
    out = f"{nearby(situation.folder)}-tying-{TYING}"
    command = f"heedful train {quote(situation.name)} {situation.source.options()}"
    command += f" --objective tying:{TYING} --out {quote(out)}{code}"
    return (
        f"Fine-tune it under a penalty that keeps a state about its own word: `{command}`. "
        f"Whether its attention can then be believed, `heedful audit {quote(out)}{code}` tells, "
        f"and `heedful compare {quote(nearby(situation.folder))} {quote(out)}` what it costs."
    )


def _is_labelled(source: DocumentSource) -> bool:
    """Whether the documents can be trained on: labelled, and enough of every class."""
    if source.data is None:
        return True
    try:
        source.open()
    except InputError:
        return False
    return True


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
    text = f"heedful train --from {quote(nearby(run))} --objective {objective}"
    text += "" if limit is None else f" --limit {typed(limit)}"
    text += code_of(run)
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
    return (
        f"heedful.remedy({nearby(run)!r}, corpus, {nearby(kept_in(run, objective, limit))!r}, "
        + (f"{', '.join(options)})")
    )


def kept_in(run: Path, objective: str, limit: float | None = None) -> Path:
    """The folder of what a sweep keeps, unless another one is named."""
    folder = f"{run.name}-{re.sub('[:,]+', '-', objective)}"
    return run.with_name(folder + ("" if limit is None else f"-limit-{typed(limit)}"))


def code_of(run: Path) -> str:
    """The option without which a run's model, which brings code of its own, is not opened."""
    config = run / "model" / "config.json"
    return CODE if config.is_file() and "auto_map" in read_json(config) else ""


def advised(
    run: Path, audited: EncodedCorpus | None = None, situation: Situation | None = None
) -> str:
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
    limit = found.get("asked", {}).get("limit")
    command, kept = again(run, objective, limit), kept_in(run, objective, limit)
    tries = (
        "tries several strengths on your dev documents, says what each costs in F1 and buys in "
        "reliance on attention, and keeps the best"
        if ":" not in objective
        else "tries that strength on your dev documents, and says what it costs in F1 and buys in "
        "reliance on attention"
    )
    said = (
        f"Train a model whose attention can be believed: `{command.text}`"
        f"{command.said and f' ({command.said})'} {tries}."
    )
    elsewhere = situation is not None and situation.folder != run
    if situation is None or (elsewhere and situation.source is None):
        return f"{said} Then audit what it keeps as this one was, and compare both."
    folder, out = situation.folder, kept
    place = ""
    if elsewhere:
        out = folder.with_name(f"{folder.name}-{kept.name.removeprefix(f'{run.name}-')}")
        place = f"{situation.documents} --out {quote(nearby(out))}"
    return (
        f"{said} Then `heedful audit {quote(nearby(kept))}{place}{situation.flags}` audits what it "
        f"keeps, and `heedful compare {quote(nearby(folder))} {quote(nearby(out))}` tells what it "
        "costs."
    )


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
