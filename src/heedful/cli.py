"""The commands: a thin skin over the functions of `heedful.jobs`."""

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

app = typer.Typer(
    name="heedful",
    help="May I show this model's attention as the reason for its decision?",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
)

QUICK = {"train": {"epochs": 4, "learning_rate": 4e-3}}
QUICK_SIZES = {"train": 800, "dev": 150, "test": 200}

CorpusName = Annotated[
    str, typer.Option("--corpus", help="Name of a corpus; see `heedful corpora`.")
]
DataFile = Annotated[
    Path | None, typer.Option("--data", help="Your own CSV, TSV, JSON Lines or Parquet file.")
]
TextColumn = Annotated[str | None, typer.Option("--text", help="Column of the texts.")]
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
    typer.Option("--config", help="TOML file with the tables [model], [train], [words]."),
]
Vectors = Annotated[
    Path | None, typer.Option("--vectors", help="GloVe text vectors to start from.")
]
Quick = Annotated[bool, typer.Option("--quick", help="A small corpus and few epochs, to try it.")]
AsJson = Annotated[bool, typer.Option("--json", help="Print one JSON object to stdout.")]


@app.command()
def audit(
    model: Annotated[
        str, typer.Argument(help="A run folder, or a recipe, which is trained first.")
    ] = "bilstm+additive",
    corpus: CorpusName = "planted",
    data: DataFile = None,
    text: TextColumn = None,
    label: LabelColumn = None,
    split: SplitColumn = None,
    out: Out = None,
    seed: Seed = 0,
    device: Device = "auto",
    deterministic: Deterministic = False,
    documents: Annotated[
        int, typer.Option("--documents", help="Audit at most this many; 0 audits all.")
    ] = 2000,
    config: Config = None,
    vectors: Vectors = None,
    data_root: DataRoot = None,
    quick: Quick = False,
    json: AsJson = False,
) -> None:
    """Audit a model's attention: verdict, numbers, pictures, one page."""
    from heedful.jobs import audit as audit_job
    from heedful.jobs import deterministic as same_bits

    is_path = Path(model).exists()
    if is_path and data is not None:
        from heedful.corpora import read_texts
        from heedful.jobs import load

        known = load(model)
        found = read_texts(data, known.classes, text, label, tokeniser=known.tokeniser)
        _say(found.said)
        opened: Corpus | EncodedCorpus = found.corpus
        out = out or Path("runs") / f"{Path(model).name}-on-{data.stem}"
    else:
        if is_path and corpus == "planted":
            corpus = _trained_on(Path(model)) or corpus
        opened = _corpus(corpus, data, text, label, split, seed, data_root, quick)
        out = out or (Path(model) if is_path else _place(model, opened.name, seed, quick))
    with same_bits(deterministic):
        result = audit_job(
            model,
            opened,
            out,
            settings=_settings(config, quick),
            vectors=vectors,
            documents=documents,
            seed=seed,
            device=device,
            show=True,
        )
    if json:
        return _print_json(result.to_json())
    from heedful.report.console import print_verdict

    print_verdict(result.verdict.to_json(), result.documents, str(result.report))
    return None


@app.command()
def train(
    recipe: Annotated[
        str, typer.Argument(help="For example bilstm+additive or han:bigru+additive.")
    ],
    corpus: CorpusName = "planted",
    data: DataFile = None,
    text: TextColumn = None,
    label: LabelColumn = None,
    split: SplitColumn = None,
    out: Out = None,
    seed: Seed = 0,
    device: Device = "auto",
    deterministic: Deterministic = False,
    config: Config = None,
    vectors: Vectors = None,
    data_root: DataRoot = None,
    quick: Quick = False,
    json: AsJson = False,
) -> None:
    """Train a model and keep it in a run folder."""
    from heedful.jobs import deterministic as same_bits
    from heedful.jobs import train as train_job
    from heedful.runs import RunFolder

    opened = _corpus(corpus, data, text, label, split, seed, data_root, quick)
    out = out or _place(recipe, opened.name, seed, quick)
    with same_bits(deterministic):
        train_job(
            recipe,
            opened,
            out,
            settings=_settings(config, quick),
            vectors=vectors,
            seed=seed,
            device=device,
            show=True,
        )
    record = RunFolder.open(out).record
    test = record.get("test") or {}
    if json:
        return _print_json({"folder": str(out), "test": test, "best_dev": record["best_dev"]})
    typer.echo(f"Trained {recipe} on {opened.name}: dev {record['best_dev']:.3f}", nl=False)
    typer.echo(f", test accuracy {test['accuracy']:.3f}" if test else "")
    typer.echo(f"The run: {out}\nNext: heedful audit {out}")
    return None


@app.command()
def report(
    run: Annotated[Path, typer.Argument(help="A run folder that was audited.")],
    json: AsJson = False,
) -> None:
    """Write the page again from a run's findings; no model is run."""
    from heedful.runs import RunFolder

    folder = RunFolder.open(run)
    if not (folder.findings / "verdict.json").is_file():
        raise InputError(f"{run} was not audited yet; run `heedful audit {run}` first.")
    from heedful.report import render

    with folder.locked():
        page = render(folder.path)
    if json:
        return _print_json({"report": str(page)})
    typer.echo(f"The page: {page}")
    return None


@app.command()
def explain(
    text: Annotated[str, typer.Argument(help="The text to explain.")],
    model: Annotated[Path, typer.Option("--model", help="A run folder.")],
    method: Annotated[
        list[str] | None, typer.Option("--method", help="Importance method; may be repeated.")
    ] = None,
    seed: Seed = 0,
    json: AsJson = False,
) -> None:
    """Show which words of a text mattered, by every method."""
    from heedful.importance import METHODS
    from heedful.jobs import explain as explain_job

    found = explain_job(model, text, method or tuple(METHODS), seed=seed)
    if json:
        return _print_json(found.to_json())
    from heedful.report.console import print_explanation

    print_explanation(found.to_json())
    return None


@app.command()
def corpora(data_root: DataRoot = None, json: AsJson = False) -> None:
    """List the corpora that are here, and where to get the others."""
    from heedful.corpora import available
    from heedful.report.console import print_corpora

    rows = available(data_root)
    if json:
        return _print_json(rows)
    print_corpora(rows)
    return None


@app.command()
def prepare(
    names: Annotated[list[str], typer.Argument(help="Corpora by name; see `heedful corpora`.")],
    out: Annotated[Path, typer.Option("--out", help="Folder for the prepared files.")] = Path(
        "prepared"
    ),
    vectors: Vectors = None,
    min_count: Annotated[
        int | None, typer.Option(help="Keep words seen at least so often; else as the recipe says.")
    ] = None,
    data_root: DataRoot = None,
    seed: Seed = 0,
    json: AsJson = False,
) -> None:
    """Tokenise corpora once to compact files that training elsewhere can start from."""
    from heedful.corpora import load_corpus, recipe_of
    from heedful.corpora import prepare as prepare_corpus

    done = []
    for name in names:
        found = load_corpus(name, data_root=data_root, seed=seed)
        folder = out / re.sub(r"[^\w.-]+", "-", name)
        least = recipe_of(name).min_count if min_count is None else min_count
        prepare_corpus(found, folder, vectors=vectors, min_count=least)
        size = sum(path.stat().st_size for path in folder.rglob("*") if path.is_file())
        done.append({"corpus": name, "folder": str(folder), "bytes": size})
        if not json:
            typer.echo(f"{name}: {folder} ({size / 1e6:.1f} MB)")
    if json:
        _print_json(done)


@app.command()
def reproduce(
    study: Annotated[str, typer.Argument(help="A study, or all.")],
    only: Annotated[
        str, typer.Option("--only", help="Ids of artifacts and claims, separated by commas.")
    ] = "",
    scale: Annotated[str, typer.Option("--scale", help="smoke or paper.")] = "smoke",
    corpora: Annotated[
        str, typer.Option("--corpora", help="Corpora to use, separated by commas.")
    ] = "",
    seeds: Annotated[int | None, typer.Option("--seeds", help="How many seeds.")] = None,
    out: Annotated[Path, typer.Option("--out", help="Folder for the results.")] = Path("results"),
    jobs: Annotated[int, typer.Option("--jobs", help="Processes that compute side by side.")] = 1,
    figures: Annotated[bool, typer.Option(help="Draw figures and the index page.")] = True,
    compute: Annotated[
        bool, typer.Option(help="Compute missing steps; without, only redraw finished ones.")
    ] = True,
    data_root: DataRoot = None,
    device: Device = "auto",
    json: AsJson = False,
) -> None:
    """Rebuild the tables, figures and claims of a study."""
    from heedful.papers import reproduce as reproduce_job

    done = reproduce_job(
        study,
        only=_parts(only),
        scale=scale,
        corpora=_parts(corpora),
        seeds=seeds,
        out=out,
        jobs=jobs,
        figures=figures,
        compute=compute,
        data_root=data_root,
        device=device,
        show=True,
    )
    if json:
        return _print_json(done.to_json())
    for line in done.lines():
        typer.echo(line)
    return None


def _corpus(
    name: str,
    data: Path | None,
    text: str | None,
    label: str | None,
    split: str | None,
    seed: int,
    data_root: Path | None,
    quick: bool,
) -> Corpus | EncodedCorpus:
    """The corpus that the options name; what was guessed about a file is said."""
    from heedful.corpora import load_corpus, load_prepared, read_file

    if data is not None:
        found = read_file(data, text, label, split, seed=seed)
        _say(found.said)
        return found.corpus
    if Path(name).is_dir():
        return load_prepared(Path(name))
    options = {"sizes": QUICK_SIZES} if quick and name.startswith("planted") else {}
    return load_corpus(name, data_root, seed, **options)


def _trained_on(run: Path) -> str | None:
    """The corpus a run was trained on, so that auditing the run needs no second naming."""
    from heedful.runs import RunFolder

    if not (run / "run.json").is_file():
        return None
    name: str | None = RunFolder.open(run).configuration.get("corpus")
    return name


def _settings(config: Path | None, quick: bool) -> Settings:
    from heedful.jobs import Settings, read_settings, settings_of

    if config is not None:
        return read_settings(config)
    return settings_of(QUICK) if quick else Settings()


def _place(model: str, corpus: str, seed: int, quick: bool) -> Path:
    """A run folder's default name."""
    parts = [model, corpus, f"seed{seed}"] + (["quick"] if quick else [])
    return Path("runs") / re.sub(r"[^\w.+-]+", "-", "-".join(parts))


def _parts(listed: str) -> tuple[str, ...]:
    return tuple(part.strip() for part in listed.split(",") if part.strip())


def _say(lines: tuple[str, ...]) -> None:
    for line in lines:
        typer.echo(line, err=True)


def _print_json(value: Any) -> None:
    import json

    from heedful.runs import plain

    json.dump(plain(value), sys.stdout, indent=2, ensure_ascii=False)
    sys.stdout.write("\n")
