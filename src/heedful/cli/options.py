"""What the commands share: their options, and what these name."""

from __future__ import annotations

import re
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from heedful.errors import InputError

if TYPE_CHECKING:
    from heedful.corpora import Corpus, EncodedCorpus
    from heedful.jobs import Settings
    from heedful.jobs.sources import Source
    from heedful.models.huggingface import PretrainedClassifier

QUICK = {"train": {"epochs": 4, "learning_rate": 4e-3}}
QUICK_TUNING = {"train": {"epochs": 1}, "words": {"max_tokens": 64}}
QUICK_SIZES = {"train": 800, "dev": 150, "test": 200}

CorpusName = Annotated[
    str | None,
    typer.Option("--corpus", help="Name of a corpus (planted if none); see `heedful corpora`."),
]
DataFile = Annotated[
    Path | None, typer.Option("--data", help="Your own CSV, TSV, JSON Lines or Parquet file.")
]
TextColumn = Annotated[str | None, typer.Option("--text", help="Column of the texts.")]
SecondColumn = Annotated[
    str | None, typer.Option("--text2", help="Column of the second text, for models of pairs.")
]
Site = Annotated[
    str,
    typer.Option("--site", help="A transformers model's attention: pooled, layer:K or all."),
]
Long = Annotated[
    str,
    typer.Option(
        "--long", help="Keep of a text too long for the model: beginning, end, both; or refuse."
    ),
]
RemoteCode = Annotated[
    bool, typer.Option("--trust-remote-code", help="Run the code that a model brings with it.")
]
LabelColumn = Annotated[str | None, typer.Option("--label", help="Column of the labels.")]
SplitColumn = Annotated[
    str | None, typer.Option("--split", help="Column that says train, dev or test.")
]
DataRoot = Annotated[
    Path | None,
    typer.Option("--data-root", envvar="HEEDFUL_DATA", help="Folder of the real corpora."),
]
Out = Annotated[Path | None, typer.Option("--out", help="Run folder to write.")]
Seed = Annotated[int, typer.Option("--seed", help="Everything random follows from it.")]
Device = Annotated[str, typer.Option("--device", help="cpu, cuda, or auto.")]
Deterministic = Annotated[
    bool, typer.Option("--deterministic", help="The same bits every time on a GPU too (slower).")
]
Config = Annotated[
    Path | None,
    typer.Option("--config", help="TOML file of [model], [train], [words] and [penalties]."),
]
Vectors = Annotated[
    Path | None, typer.Option("--vectors", help="GloVe text vectors to start from.")
]
Quick = Annotated[bool, typer.Option("--quick", help="A small corpus and few epochs, to try it.")]
AsJson = Annotated[bool, typer.Option("--json", help="Print one JSON object to stdout.")]


Columns = tuple[str | None, str | None, str | None]
"""Columns of the text, the label and the split, where they were named."""


def source_named(
    corpus: str | None,
    data: Path | None,
    columns: Columns,
    data_root: Path | None,
    seed: int,
    quick: bool,
    second: str | None = None,
) -> Source:
    """What the options name."""
    from heedful.jobs.sources import Source

    if corpus is None and data is None:
        corpus = "planted"
    text, label, split = columns
    sizes = QUICK_SIZES if quick and corpus is not None and corpus.startswith("planted") else None
    file, root = (None if path is None else str(path.resolve()) for path in (data, data_root))
    if corpus is not None and Path(corpus).is_dir():
        corpus = str(Path(corpus).resolve())
    return Source(corpus, file, text, label, split, seed, sizes, root, second)


def open_source(source: Source) -> Corpus | EncodedCorpus:
    """The documents of a source; what was guessed about a file is said."""
    opened, said = source.open()
    say(said)
    return opened


def open_to_train(source: Source) -> Corpus | EncodedCorpus:
    """The documents of a source; classes that dev numbers cannot speak of are said."""
    from heedful.jobs.subject import lacking

    opened = open_source(source)
    absent = lacking(opened, "dev")
    if 0 < len(absent) < len(opened.classes):
        labels = " or ".join(repr(name) for name in absent)
        said = f"Warning: no dev document is labelled {labels}; dev numbers say nothing of these."
        say((said,))
    return opened


def for_run(
    run: Path,
    corpus: str | None,
    data: Path | None,
    columns: Columns,
    data_root: Path | None,
    seed: int,
    out: Path | None,
    second: str | None = None,
) -> tuple[Corpus | EncodedCorpus, Path]:
    """The documents a run is audited on, and where the audit goes.

    Its own test documents unless others are named; those then get a folder of their own.
    """
    from heedful.corpora import read_texts
    from heedful.jobs import load
    from heedful.jobs.sources import source_of
    from heedful.jobs.subject import refuse_translator
    from heedful.runs import RunFolder

    refuse_translator(run)
    own = source_of(run)
    if own is not None and data is not None and own.is_same_file(data):
        say((f"{data} is the file the run was trained on: auditing its test documents.",))
        data = None
    if corpus is None and data is None and own is not None:
        documents = open_source(own)
        if documents.fingerprint != RunFolder.open(run).record["corpus"]:
            raise InputError(
                f"{own.data or own.corpus} has changed since {run} was trained, so its test "
                "documents can no longer be told from training ones; give new documents by --data."
            )
        return documents, out or run
    if corpus is None and data is None:
        trained = str(RunFolder.open(run).configuration.get("corpus", "documents"))
        if trained.partition(":")[0] != "planted":
            raise InputError(
                f"{run} was trained on {trained} from Python and cannot open them again; name the "
                "documents to audit it on by --data FILE or --corpus NAME."
            )
    if data is None:
        source = source_named(corpus, None, columns, data_root, seed, False)
        return open_source(source), out or run.with_name(f"{run.name}-on-{source.name}")
    known, (text, label, split) = load(run), columns
    rule = getattr(known, "tokeniser", "words")
    found = read_texts(data, known.classes, text, label, tokeniser=rule, second=second, split=split)
    say(found.said)
    return found.corpus, out or run.with_name(f"{run.name}-on-{data.stem}")


def for_transformer(
    model: PretrainedClassifier,
    corpus: str | None,
    data: Path | None,
    columns: Columns,
    data_root: Path | None,
    seed: int,
    out: Path | None,
    second: str | None = None,
) -> tuple[Corpus | EncodedCorpus, Path]:
    """The documents a model from elsewhere is audited on, and where the audit goes."""
    from heedful.corpora import match_labels, read_texts

    name = Path(model.recipe.removeprefix("hf:")).name
    name += "" if model.site.name == "pooled" else f"-{model.site.name}"
    if data is None:
        source = source_named(corpus, None, columns, data_root, seed, False)
        opened = open_source(source)
        say((match_labels(model.classes, opened.classes).said,))
        return opened, out or place(name, source.name, seed, False)
    text, label, split = columns
    found = read_texts(data, model.classes, text, label, second=second, split=split)
    say(found.said)
    return found.corpus, out or place(name, data.stem, seed, False)


def settings_named(config: Path | None, quick: bool, is_tuned: bool = False) -> Settings:
    """The settings of the configuration file, or those of a quick try, or the usual ones.

    Those of a pretrained model that is fine-tuned are others.
    """
    from heedful.jobs import read_settings, settings_of
    from heedful.training import FINE_TUNING, TrainConfig

    if config is not None and quick:
        raise InputError("Give either --config or --quick; both say how to train.")
    usual, short = (FINE_TUNING, QUICK_TUNING) if is_tuned else (TrainConfig(), QUICK)
    if config is not None:
        return read_settings(config, usual)
    return settings_of(short if quick else {}, usual)


def named_model(recipe: str, objective: str, is_tuned: bool) -> str:
    """What a model in training is called; an objective beside a recipe is refused."""
    if not is_tuned and objective:
        from heedful.jobs.remedy import OBJECTIVES, swept

        key, strengths = swept(objective)
        strength = (*strengths, OBJECTIVES[key][1][2])[0]
        raise InputError(
            f"A recipe says its own objective; write {recipe}+{key}:{strength:g}, or name a run by "
            "--from."
        )
    name = Path(recipe.removeprefix("hf:")).name if is_tuned else recipe
    return f"{name}+{objective}" if objective else name


def place(model: str, corpus: str, seed: int, quick: bool) -> Path:
    """A run folder's default name."""
    parts = [model, corpus, f"seed{seed}"] + (["quick"] if quick else [])
    return Path("runs") / re.sub(r"[^\w.+-]+", "-", "-".join(parts))


def parts(listed: str) -> tuple[str, ...]:
    """The parts of a list separated by commas."""
    return tuple(part.strip() for part in listed.split(",") if part.strip())


def say(lines: tuple[str, ...]) -> None:
    """Prints to stderr what the user should know but no pipe should read."""
    for line in filter(None, lines):
        typer.echo(line, err=True)


def tell(found: Any, as_json: bool) -> None:
    """Prints what a job gives back: its lines, or one JSON object."""
    if as_json:
        print_json(found.to_json())
    else:
        for line in found.lines():
            typer.echo(line)


def print_json(value: Any) -> None:
    """Prints one JSON value to stdout."""
    import json

    from heedful.runs import plain

    json.dump(plain(value), sys.stdout, indent=2, ensure_ascii=False)
    sys.stdout.write("\n")
