"""The commands: a thin skin over the functions of `heedful.jobs`."""

from __future__ import annotations

import re
from pathlib import Path
from shlex import quote
from typing import Annotated, Any

import typer

from heedful.cli_align import align
from heedful.cli_explain import explain
from heedful.cli_lexicon import lexicon
from heedful.cli_narratives import narratives
from heedful.cli_options import (
    AsJson,
    Config,
    CorpusName,
    DataFile,
    DataRoot,
    Deterministic,
    Device,
    LabelColumn,
    Long,
    Out,
    Quick,
    RemoteCode,
    SecondColumn,
    Seed,
    Site,
    SplitColumn,
    TextColumn,
    Vectors,
    for_run,
    for_transformer,
    named_model,
    open_to_train,
    parts,
    place,
    print_json,
    settings_named,
    source_named,
    tell,
)
from heedful.cli_remedy import refuse_beside_from, sweep
from heedful.cli_translator import translator
from heedful.errors import InputError
from heedful.papers import STUDIES

app = typer.Typer(
    name="heedful",
    help="May I show this model's attention as the reason for its decision?",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
)


@app.command()
def audit(
    model: Annotated[
        str,
        typer.Argument(
            help="A run folder, a folder or hf:NAME of a transformers classifier, or a recipe or "
            "preset, which is trained first."
        ),
    ] = "bilstm+additive",
    corpus: CorpusName = None,
    data: DataFile = None,
    text: TextColumn = None,
    text2: SecondColumn = None,
    label: LabelColumn = None,
    split: SplitColumn = None,
    out: Out = None,
    seed: Seed = 0,
    device: Device = "auto",
    deterministic: Deterministic = False,
    documents: Annotated[
        int, typer.Option("--documents", help="Audit at most this many; 0 audits all.")
    ] = 2000,
    site: Site = "pooled",
    long: Long = "beginning",
    trust_remote_code: RemoteCode = False,
    config: Config = None,
    vectors: Vectors = None,
    data_root: DataRoot = None,
    quick: Quick = False,
    json: AsJson = False,
) -> None:
    """Audit a model's attention: verdict, numbers, pictures, one page."""
    from heedful.jobs import audit as audit_job
    from heedful.jobs import load
    from heedful.models.huggingface import is_transformer

    columns, source = (text, label, split), None
    audited: Any = model
    is_pretrained = is_transformer(model)
    if is_pretrained or Path(model).exists():
        for name, given in (("--config", config), ("--vectors", vectors), ("--quick", quick)):
            if given:
                raise InputError(f"{model} is trained already; {name} is for training.")
    if is_pretrained:
        audited = load(model, device, site=site, long=long, allows_remote_code=trust_remote_code)
        places = (corpus, data, columns, data_root, seed, out, text2)
        opened, out = for_transformer(audited, *places)
    elif Path(model).exists():
        opened, out = for_run(Path(model), corpus, data, columns, data_root, seed, out, text2)
    else:
        source = source_named(corpus, data, columns, data_root, seed, quick, text2)
        opened = open_to_train(source)
        out = out or place(model, source.name, seed, quick)
    result = audit_job(
        audited,
        opened,
        out,
        settings=settings_named(config, quick),
        vectors=vectors,
        documents=documents,
        seed=seed,
        device=device,
        is_deterministic=deterministic,
        source=source,
        site=site,
        show=True,
    )
    if json:
        return print_json(result.to_json())
    from heedful.report.console import print_verdict
    from heedful.report.quality import in_words

    said = in_words(result.quality)
    page = str(result.report)
    print_verdict(result.verdict.to_json(), result.documents, page, said, result.outside)
    return None


@app.command()
def train(
    recipe: Annotated[
        str,
        typer.Argument(
            help="A recipe such as bilstm+additive, a preset, or a transformers model to fine-tune."
        ),
    ] = "",
    corpus: CorpusName = None,
    data: DataFile = None,
    text: TextColumn = None,
    text2: SecondColumn = None,
    label: LabelColumn = None,
    split: SplitColumn = None,
    out: Out = None,
    seed: Seed = 0,
    device: Device = "auto",
    deterministic: Deterministic = False,
    config: Config = None,
    vectors: Vectors = None,
    data_root: DataRoot = None,
    run: Annotated[
        Path | None, typer.Option("--from", help="A run whose attention should become faithful.")
    ] = None,
    objective: Annotated[
        str,
        typer.Option(
            "--objective",
            help="With --from: tying or mlm, several strengths tried on dev; tying:3,10 tries only "
            "these (and 0, to compare). For a transformers model: tying:STRENGTH.",
        ),
    ] = "",
    limit: Annotated[
        float | None,
        typer.Option(
            "--limit",
            help="With --from: points of dev F1 that a strength may cost to be kept; usually 1.5.",
        ),
    ] = None,
    watch: Annotated[
        bool, typer.Option("--watch", help="Log how attention follows what words tell.")
    ] = False,
    trust_remote_code: RemoteCode = False,
    quick: Quick = False,
    json: AsJson = False,
) -> None:
    """Train a model and keep it in a run folder."""
    if run is not None:
        refuse_beside_from(
            {"--corpus": corpus, "--data": data, "--text": text, "--text2": text2, "--label": label}
            | {"--split": split, "--seed": seed, "--quick": quick, "--watch": watch}
            | {"--deterministic": deterministic, "--data-root": data_root}
            | {"--trust-remote-code": trust_remote_code}
        )
        return sweep(run, recipe, objective or "tying", limit, config, vectors, out, device, json)
    if limit is not None:
        raise InputError("--limit is for --from RUN: it bounds what a strength may cost there.")
    if not recipe:
        raise InputError("Expected a recipe such as bilstm+additive, or --from RUN.")
    from heedful.jobs import train as train_job
    from heedful.jobs.fine_tuning import objective_of
    from heedful.models.huggingface import is_transformer
    from heedful.runs import RunFolder

    is_tuned = is_transformer(recipe)
    model = named_model(recipe, objective, is_tuned)
    if text2 is not None and not is_tuned:
        raise InputError(f"--text2 is for models of transformers; {recipe} reads one text.")
    source = source_named(corpus, data, (text, label, split), data_root, seed, quick, text2)
    opened = open_to_train(source)
    out = out or place(model, source.name, seed, quick)
    train_job(
        recipe,
        opened,
        out,
        settings=settings_named(config, quick, is_tuned),
        vectors=vectors,
        seed=seed,
        device=device,
        is_deterministic=deterministic,
        source=source,
        show=True,
        watch=watch,
        penalties=objective_of(objective),
        allows_remote_code=trust_remote_code,
    )
    record = RunFolder.open(out).record
    test, chosen = record.get("test") or {}, record["configuration"]["train"]["select"]
    if json:
        return print_json({"folder": str(out), "test": test, "best_dev": record["best_dev"]})
    typer.echo(
        f"Trained {model} on {opened.name}: dev {chosen} {abs(record['best_dev']):.3f}", nl=False
    )
    typer.echo(f", test accuracy {test['accuracy']:.3f}" if test else "")
    typer.echo(f"The run: {out}\nNext: heedful audit {quote(str(out))}")
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
        from heedful.jobs.opening import refuse_translator

        refuse_translator(run)
        raise InputError(f"{run} was not audited yet; run `heedful audit {run}` first.")
    from heedful.report import render

    with folder.locked():
        page = render(folder.path)
    if json:
        return print_json({"report": str(page)})
    typer.echo(f"The page: {page}")
    return None


app.command()(explain)
app.command()(lexicon)
app.command()(narratives)


@app.command()
def compare(
    runs: Annotated[list[Path], typer.Argument(help="Run folders that were audited.")],
    out: Annotated[Path, typer.Option("--out", help="The page to write.")] = Path(
        "comparison.html"
    ),
    json: AsJson = False,
) -> None:
    """Put the verdicts of several runs side by side in one page."""
    from heedful.jobs.compare import compare as compare_job

    done = compare_job(runs, out)
    tell(done, json)


@app.command()
def calibrate(
    scale: Annotated[str, typer.Option("--scale", help="quick or full.")] = "quick",
    out: Annotated[Path, typer.Option("--out", help="Folder for the tables.")] = Path(
        "results/calibration"
    ),
    seeds: Annotated[int | None, typer.Option("--seeds", help="How many seeds.")] = None,
    device: Device = "auto",
    json: AsJson = False,
) -> None:
    """Test the verdict on models whose right answer is known."""
    from heedful.jobs.calibrate import calibrate as calibrate_job

    done = calibrate_job(out, scale=scale, seeds=seeds, device=device, show=True)
    tell(done, json)


@app.command()
def corpora(data_root: DataRoot = None, json: AsJson = False) -> None:
    """List the corpora that are here, and where to get the others."""
    from heedful.corpora import available
    from heedful.report.console import print_corpora

    rows = available(data_root)
    if json:
        return print_json(rows)
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
        print_json(done)


app.command()(align)
app.command()(translator)


@app.command()
def reproduce(
    study: Annotated[str, typer.Argument(help=f"{', '.join(STUDIES)}, or all.")],
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
        only=parts(only),
        scale=scale,
        corpora=parts(corpora),
        seeds=seeds,
        out=out,
        jobs=jobs,
        figures=figures,
        compute=compute,
        data_root=data_root,
        device=device,
        show=True,
    )
    tell(done, json)
