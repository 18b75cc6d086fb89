"""`heedful audit`: a model's attention put to every test, with a verdict and one page."""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

import heedful
from heedful.cli import options
from heedful.cli.options import Options, parts, print_json, say, settings_named, typed
from heedful.cli.subject import subject_of
from heedful.errors import InputError, VerdictWorse

if TYPE_CHECKING:
    from heedful.jobs.audited import Audited


def audit(
    context: typer.Context,
    model: Annotated[
        str,
        typer.Argument(
            help="A run folder, a folder or hf:NAME of a transformers classifier, lm:FOLDER of a "
            "language model (with --prompt and --labels, or --questions), or a recipe or preset, "
            "which is trained first."
        ),
    ] = "bilstm+additive",
    corpus: options.CorpusName = None,
    data: options.DataFiles = None,
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
    documents: Annotated[
        int,
        typer.Option(
            "--documents",
            help="Draw at most this many; 0 takes all. --effort says how many of them are "
            "looked at.",
        ),
    ] = 2000,
    effort: Annotated[
        str,
        typer.Option(
            "--effort",
            help="quick (50 documents), normal (as many as settle what is asked, at most 400) or "
            "exhaustive (all).",
        ),
    ] = "normal",
    minutes: Annotated[
        float | None,
        typer.Option("--minutes", help="Begin no further look after so many; no limit if none."),
    ] = None,
    only: Annotated[
        str | None, typer.Option("--only", help="verdict: the answer and its tests, nothing else.")
    ] = None,
    estimate: Annotated[
        bool,
        typer.Option("--estimate", help="Say what it would take, time and memory, and do no more."),
    ] = False,
    audits: Annotated[
        str | None,
        typer.Option(
            "--audits",
            help="These tests alone, separated by commas; all if none. An unknown name is "
            "answered with the known ones.",
        ),
    ] = None,
    methods: Annotated[
        str | None,
        typer.Option(
            "--methods",
            help="These explanations alone, separated by commas; all if none. lime and kernel-shap "
            "(extra surrogates) come beside the others.",
        ),
    ] = None,
    site: options.Site = "pooled",
    long: options.Long = "beginning",
    trust_remote_code: options.RemoteCode = False,
    prompt: options.PromptFile = None,
    chat: options.Chat = False,
    prior: options.Prior = "auto",
    questions: Annotated[
        str | None,
        typer.Option(
            "--questions",
            help="Of a language model: JSON Lines with question, passages and perhaps answer, or "
            "needles:WORDS; audits what its answers came from.",
        ),
    ] = None,
    units: Annotated[
        str, typer.Option("--units", help="Sources of answers: passages or sentences.")
    ] = "passages",
    heads: Annotated[
        Path | None,
        typer.Option("--heads", help="An audit with --questions whose chosen heads are used."),
    ] = None,
    config: options.Config = None,
    vectors: options.Vectors = None,
    data_root: options.DataRoot = None,
    quick: options.Quick = False,
    require: Annotated[
        str | None,
        typer.Option(
            "--require", help="yes or partly: end with exit code 3 where the verdict is worse."
        ),
    ] = None,
    baseline: Annotated[
        Path | None,
        typer.Option(
            "--baseline", help="An audited run: end with exit code 3 where its verdict was better."
        ),
    ] = None,
    on: options.On = None,
    json: options.AsJson = False,
) -> None:
    """Audit a model's attention: a verdict, its numbers, one page.

    Exit codes: 0 done, 1 stopped by an error that is not yours, 2 something given cannot be used,
    3 the verdict is worse than --require or --baseline ask for.
    """
    from heedful.corpora.shards import are_shards
    from heedful.jobs.decider import is_trained
    from heedful.jobs.gate import baseline_of, refuse_word

    refuse_word(require)
    before = None if baseline is None else baseline_of(baseline)
    if is_trained(model):
        for name, given in (("--config", config), ("--vectors", vectors), ("--quick", quick)):
            if given:
                raise InputError(f"{model} is trained already; {name} is for training.")
    if questions is not None:
        from heedful.cli.answers import audit_questions

        audit_questions(
            context, model, questions, units, heads, require, json,
            out=out, prompt=prompt, chat=chat, documents=documents, seed=seed, device=device,
            trust_remote_code=trust_remote_code, command=typed(context),
        )  # fmt: skip
        return
    if heads is not None or units != "passages":
        raise InputError("--heads and --units are for answers to --questions; name these.")
    file = None if data is None or are_shards(data) else Path(data)
    asked = Options(
        corpus=corpus, data=file, text=text, text2=text2, label=label, split=split,
        labels=labels, threshold=threshold,
        data_root=data_root, seed=seed, out=out, quick=quick, device=device, site=site, long=long,
        trust_remote_code=trust_remote_code, prompt=prompt, chat=chat,
        prior=prior,
    )  # fmt: skip
    named: dict[str, Any] = {
        "audits": None if audits is None else parts(audits),
        "methods": None if methods is None else parts(methods),
        "documents": documents,
        "seed": seed,
        "device": device,
    }
    asked_for: dict[str, Any] = {"effort": effort, "minutes": minutes, "only": only}
    if data is not None and (on or file is None):
        if estimate or asked_for != {"effort": "normal", "minutes": None, "only": None}:
            raise InputError(
                "--effort, --minutes, --only and --estimate are for an audit of one file; files "
                "that are read one at a time are audited whole."
            )
        result = _of_shards(model, data, asked, labels, threshold, on, named)
    elif on:
        raise InputError("--on is for an audit of files; name them by --data.")
    else:
        subject = subject_of(model, asked)
        if estimate:
            told = heedful.estimate(
                subject.model, subject.documents, subject.place, source=subject.source,
                **named, **asked_for,
            )  # fmt: skip
            print_json(told.to_json()) if json else say(told.lines())
            return
        result = heedful.audit(
            subject.model,
            subject.documents,
            subject.place,
            settings=settings_named(config, quick),
            vectors=vectors,
            deterministic=deterministic,
            run=subject.run,
            source=subject.source,
            command=typed(context),
            show=True,
            **named,
            **asked_for,
        )
    tell_audited(result, json)
    try:
        result.require(require, before)
    except VerdictWorse as worse:
        say([f"heedful: {worse}"])
        raise typer.Exit(3) from worse


def tell_audited(result: Audited, json: bool) -> None:
    """Prints what an audit found."""
    if json:
        print_json(result.to_json())
    else:
        from heedful.report.console import print_verdict
        from heedful.report.quality import in_words

        said = in_words(result.quality)
        page = str(result.report)
        print_verdict(result.verdict.to_json(), result.documents, page, said, result.outside)


def _of_shards(
    model: str,
    data: str,
    asked: Options,
    labels: str | None,
    threshold: float | None,
    on: str | None,
    named: dict[str, Any],
) -> Audited:
    """The audit of files that are read one at a time."""
    from heedful.cluster.shards import audit_shards
    from heedful.jobs.decider import is_trained

    if not is_trained(model):
        raise InputError(
            f"{model} has to be trained first, on documents that fit into memory: `heedful train "
            f"{model} --data FILE`; then audit the run on all files."
        )
    if asked.prompt is not None:
        raise InputError("A language model is asked about one file, not about a pattern of files.")
    columns = {
        "text": asked.text, "label": asked.label, "split": asked.split, "second": asked.text2,
        "labels": labels, "threshold": threshold,
    }  # fmt: skip
    title = re.sub(r"[^\w.+-]+", "-", data).strip("-")
    return audit_shards(
        model,
        data,
        asked.out or Path("runs") / f"{Path(model).name}-on-{title}",
        on=on,
        columns={name: value for name, value in columns.items() if value is not None},
        reading={
            "site": asked.site, "long": asked.long, "trust_remote_code": asked.trust_remote_code,
        },
        show=True,
        **named,
    )  # fmt: skip
