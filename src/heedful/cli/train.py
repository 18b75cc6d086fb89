"""`heedful train`: a model trained and kept in a run folder."""

from __future__ import annotations

from pathlib import Path
from shlex import quote
from typing import Annotated

import typer

from heedful.cli.options import (
    AsJson,
    Config,
    CorpusName,
    DataFile,
    DataRoot,
    Deterministic,
    Device,
    LabelColumn,
    Out,
    Quick,
    RemoteCode,
    SecondColumn,
    Seed,
    SplitColumn,
    TextColumn,
    Vectors,
    named_model,
    open_to_train,
    place,
    print_json,
    settings_named,
    source_named,
)
from heedful.cli.remedy import refuse_beside_from, sweep
from heedful.errors import InputError


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
    from heedful.jobs.fine_tune import objective_of
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
