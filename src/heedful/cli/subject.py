"""What the user named, resolved in one place: a model, its documents, a folder for the findings."""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from heedful.cli.options import Options, say
from heedful.errors import InputError

OWN = {name: name for name in ("text", "label", "split", "labels", "threshold")}
OWN |= {"text2": "second"}
"""Options that say how a file is read, and what a run calls them that was trained on it."""
if TYPE_CHECKING:
    from heedful.corpora import Corpus, EncodedCorpus
    from heedful.jobs.decider import Decider
    from heedful.jobs.sources import DocumentSource


@dataclass(frozen=True)
class Subject:
    """What a command is about."""

    model: Decider | str
    """A trained model, or what is trained first: a recipe, a preset, a model to fine-tune."""
    documents: Corpus | EncodedCorpus
    place: Path
    """The run folder to write."""
    run: Path | None = None
    """The run that a trained model is from."""
    source: DocumentSource | None = None
    """Where the documents came from, if they are not a run's own."""


def subject_of(name: str, options: Options) -> Subject:
    """The trained model of that name, or the recipe that is trained first."""
    from heedful.jobs.decider import is_trained

    return trained(name, options) if is_trained(name) else to_train(name, name, options)


def to_train(name: str, title: str, options: Options) -> Subject:
    """What is to be trained, and called so; classes that dev numbers cannot speak of are said."""
    from heedful.jobs.decider import lacking

    source = options.source()
    documents = documents_of(source)
    absent = lacking(documents, "dev")
    if 0 < len(absent) < len(documents.classes):
        labels = " or ".join(repr(name) for name in absent)
        said = f"Warning: no dev document is labelled {labels}; dev numbers say nothing of these."
        say([said])
    place = options.out or _place(title, source.name, options)
    return Subject(name, documents, place, source=source)


def trained(name: str, options: Options) -> Subject:
    """A trained model: that of a run, or one of `transformers` from elsewhere."""
    from heedful.models.huggingface import is_transformer
    from heedful.models.huggingface.language_models import is_language_model

    is_elsewhere = is_transformer(name) or is_language_model(name)
    return _pretrained(name, options) if is_elsewhere else _of_run(Path(name), options)


def _pretrained(name: str, options: Options) -> Subject:
    """A model from elsewhere, which has no documents of its own."""
    from heedful.corpora import match_labels
    from heedful.models.huggingface import PretrainedClassifier

    model = options.decider(name)
    assert isinstance(model, PretrainedClassifier)
    say(model.said)
    title = Path(model.recipe.partition(":")[2] or model.recipe).name
    title += "" if model.site.name == "pooled" else f"-{model.site.name}"
    documents, read = _others(model, options)
    if options.data is None:
        say([match_labels(model.classes, documents.classes).said])
    place = options.out or _place(title, read, options)
    return Subject(model, documents, place, source=options.source())


def _of_run(run: Path, options: Options) -> Subject:
    """A run's model with the run's own test documents, unless others are named.

    What is found on those goes to a folder of its own.
    """
    from heedful.jobs.decider import refuse_translator
    from heedful.jobs.sources import source_of
    from heedful.runs import RunFolder

    refuse_translator(run)
    own = source_of(run)
    is_same = own is not None and options.data is not None and own.is_same_file(options.data)
    if own is not None and (is_same or (options.data is None and options.corpus is None)):
        _refuse_another_reading(run, own, options)
    if is_same:
        say([f"{options.data} is the file the run was trained on: auditing its test documents."])
        options = replace(options, data=None, labels=None, threshold=None)
    if options.corpus is None and options.data is None:
        record = RunFolder.open(run).record
        if own is not None:
            documents = documents_of(own)
            if documents.fingerprint != record["corpus"]:
                raise InputError(
                    f"{own.data or own.corpus} has changed since {run} was trained, so its test "
                    "documents can no longer be told from training ones; give new documents by "
                    "--data."
                )
            return Subject(options.decider(run), documents, options.out or run, run)
        if record["configuration"].get("kind") == "audit":
            raise InputError(
                f"{run} is an audit and holds no model to audit again; name the model, or give "
                "other documents by --data."
            )
        known = str(record["configuration"].get("corpus", "documents"))
        if known.partition(":")[0] != "planted":
            raise InputError(
                f"{run} was trained on {known} from Python and cannot open them again; name the "
                "documents to audit it on by --data FILE or --corpus NAME."
            )
    model = options.decider(run)
    documents, title = _others(model, options)
    place = options.out or run.with_name(f"{run.name}-on-{title}")
    return Subject(model, documents, place, run, options.source())


def _refuse_another_reading(run: Path, own: DocumentSource, options: Options) -> None:
    """Raises where a run's own documents would have to be read otherwise than it was trained.

    What was guessed in training may be named now, and a list spelt differently.
    """
    from heedful.runs import RunFolder

    kept = own.to_json()
    asked = {field: getattr(options, name) for name, field in OWN.items()}
    other = {f: value for f, value in asked.items() if value is not None and value != kept.get(f)}
    if not other:
        return
    try:
        found = replace(own, **other).open()[0].fingerprint
    except InputError:  # they cannot be read like this at all
        found = None
    if found != RunFolder.open(run).record["corpus"]:
        field = next(iter(other))
        name = next(name for name, of in OWN.items() if of == field)
        before = f"by --{name} {kept[field]}" if field in kept else f"without --{name}"
        raise InputError(
            f"{run} was trained {before}, and its own documents are read in the same way; "
            f"leave --{name} out, or give other documents by --data."
        )


def _others(model: Decider, options: Options) -> tuple[Corpus | EncodedCorpus, str]:
    """The documents that the options name for a trained model, and what these are called."""
    from heedful.corpora import read_texts

    if options.data is None:
        source = options.source()
        return documents_of(source), source.name
    found = read_texts(
        options.data,
        model.classes,
        options.text,
        options.label,
        tokeniser=getattr(model, "tokeniser", "words"),
        second=options.text2,
        split=options.split,
        labels=options.renamed,
        threshold=options.threshold,
    )
    say(found.said)
    # Other labels are other documents, and get a folder of their own.
    cut = None if options.threshold is None else f"{options.threshold:g}"
    return found.corpus, "-".join(filter(None, (options.data.stem, options.label, cut)))


def documents_of(source: DocumentSource) -> Corpus | EncodedCorpus:
    """The documents of a source; what was guessed about a file is said."""
    documents, said = source.open()
    say(said)
    return documents


def _place(model: str, corpus: str, options: Options) -> Path:
    """A run folder's default name."""
    parts = [model, corpus, f"seed{options.seed}", *(["quick"] if options.quick else [])]
    return Path("runs") / re.sub(r"[^\w.+-]+", "-", "-".join(parts))
