"""`heedful train`: a model trained and kept in a run folder."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from shlex import quote
from typing import TYPE_CHECKING, Annotated

import typer

import heedful
from heedful.cli import options
from heedful.cli.options import Options, print_json, settings_named, tell
from heedful.cli.subject import documents_of, to_train
from heedful.errors import InputError, visible

if TYPE_CHECKING:
    from heedful.jobs.strengths import Remedy


def train(
    recipe: Annotated[
        str,
        typer.Argument(
            help="A recipe such as bilstm+additive, a preset, or a transformers model to fine-tune."
        ),
    ] = "",
    corpus: options.CorpusName = None,
    data: options.DataFile = None,
    text: options.TextColumn = None,
    text2: options.SecondColumn = None,
    label: options.LabelColumn = None,
    split: options.SplitColumn = None,
    labels: options.Labels = None,
    threshold: options.Threshold = None,
    out: options.Out = None,
    seed: options.Seed = 0,
    device: options.Device = "auto",
    deterministic: options.Deterministic = False,
    config: options.Config = None,
    vectors: options.Vectors = None,
    data_root: options.DataRoot = None,
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
            help="With --from: points of dev F1 that a strength may cost to be kept; 1.5 if none.",
        ),
    ] = None,
    watch: Annotated[
        bool, typer.Option("--watch", help="Log how attention comes to follow what words tell.")
    ] = False,
    trust_remote_code: options.RemoteCode = False,
    quick: options.Quick = False,
    json: options.AsJson = False,
) -> None:
    """Train a model and keep it in a run folder."""
    if run is not None:
        _refuse_beside_from(
            {"--corpus": corpus, "--data": data, "--text": text, "--text2": text2, "--label": label}
            | {"--split": split, "--labels": labels, "--threshold": threshold is not None}
            | {"--seed": seed, "--quick": quick, "--watch": watch}
            | {"--deterministic": deterministic, "--data-root": data_root}
        )
        if recipe:
            raise InputError("--from takes its recipe from the run; leave the recipe out.")
        asked = Options(out=out, device=device, trust_remote_code=trust_remote_code)
        return tell(_remedy(run, objective or "tying", limit, config, vectors, asked), json)
    if limit is not None:
        raise InputError("--limit is for --from RUN: it bounds what a strength may cost there.")
    if not recipe:
        raise InputError("Expected a recipe such as bilstm+additive, or --from RUN.")
    from heedful.jobs.advice import code_of
    from heedful.jobs.fine_tuning import objective_of
    from heedful.models.huggingface import is_transformer
    from heedful.report.quality import in_words
    from heedful.runs import RunFolder
    from heedful.statistics import proportion

    is_tuned = is_transformer(recipe)
    title = _title(recipe, objective, is_tuned)
    if text2 is not None and not is_tuned:
        raise InputError(f"--text2 is for models of transformers; {recipe} reads one text.")
    asked = Options(
        corpus=corpus, data=data, text=text, text2=text2, label=label, split=split,
        labels=labels, threshold=threshold,
        data_root=data_root, seed=seed, out=out, quick=quick,
    )  # fmt: skip
    subject = to_train(recipe, title, asked)
    heedful.train(
        recipe,
        subject.documents,
        subject.place,
        settings=settings_named(config, quick, is_tuned),
        vectors=vectors,
        seed=seed,
        device=device,
        deterministic=deterministic,
        source=subject.source,
        show=True,
        watch=watch,
        penalties=objective_of(objective),
        trust_remote_code=trust_remote_code,
    )
    record, place = RunFolder.open(subject.place).record, str(subject.place)
    test, chosen = record.get("test") or {}, record["configuration"]["train"]["select"]
    if json:
        return print_json({"folder": place, "test": test, "best_dev": record["best_dev"]})
    scored = {}
    if test:
        n = len(subject.documents.splits["test"])
        right = proportion(round(n * test["accuracy"]), n)
        scored["test accuracy"] = {
            "value": right.value,
            "low": right.low,
            "high": right.high,
            "n": n,
        }
    scored[f"dev {chosen}"] = {"value": abs(record["best_dev"])}
    typer.echo(visible(f"Trained {title} on {subject.documents.name}."))
    typer.echo(visible(f"Accuracy: {in_words(scored)}."))
    typer.echo(visible(f"The run: {place}"))
    typer.echo(visible(f"Next: heedful audit {quote(place)}{code_of(subject.place)}"))
    return None


def _title(recipe: str, objective: str, is_tuned: bool) -> str:
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


def _refuse_beside_from(given: Mapping[str, object]) -> None:
    """Raises where an option was given that a sweep takes from the run."""
    # The folder of corpora that the environment names for all commands was not given to this one.
    set_for_all = os.environ.get("HEEDFUL_DATA")
    ambient = {"--data-root": Path(set_for_all)} if set_for_all else {}
    named = [option for option, value in given.items() if value and value != ambient.get(option)]
    if named:
        raise InputError(
            f"--from takes documents, seed and training from the run; leave {', '.join(named)} out."
        )


def _remedy(
    run: Path,
    objective: str,
    limit: float | None,
    config: Path | None,
    vectors: Path | None,
    asked: Options,
) -> Remedy:
    """The best strength of an objective, swept on the run's own dev documents."""
    from heedful.jobs.advice import kept_in
    from heedful.jobs.remedy import source_again, swept
    from heedful.jobs.settings import Settings
    from heedful.jobs.strengths import LIMIT, refuse_limit

    settings = settings_named(config, quick=False)
    if settings != Settings(penalties=settings.penalties):
        raise InputError(
            f"--from takes sizes, training and words from the run; leave all but [penalties] out "
            f"of {config}."
        )
    name, strengths = swept(objective)
    allowed = LIMIT if limit is None else limit
    refuse_limit(allowed)  # before documents are opened, which may take a while
    return heedful.remedy(
        run,
        documents_of(source_again(run)),
        asked.out or kept_in(run, objective, None if allowed == LIMIT else allowed),
        objective=name,
        strengths=strengths,
        limit=allowed,
        reductions=settings.penalties,
        vectors=vectors,
        device=asked.device,
        show=True,
        trust_remote_code=asked.trust_remote_code,
    )
