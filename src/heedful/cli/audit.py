"""`heedful audit`: a model's attention put to every test, with a verdict and one page."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

import heedful
from heedful.cli import options
from heedful.cli.options import Options, parts, print_json, say, settings_named, typed
from heedful.cli.subject import subject_of
from heedful.errors import InputError, VerdictWorse


def audit(
    context: typer.Context,
    model: Annotated[
        str,
        typer.Argument(
            help="A run folder, a folder or hf:NAME of a transformers classifier, lm:FOLDER of a "
            "language model (with --prompt and --labels), or a recipe or preset, which is trained "
            "first."
        ),
    ] = "bilstm+additive",
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
    documents: Annotated[
        int, typer.Option("--documents", help="Audit at most this many; 0 audits all.")
    ] = 2000,
    audits: Annotated[
        str | None,
        typer.Option("--audits", help="These tests alone, separated by commas; all if none."),
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
    json: options.AsJson = False,
) -> None:
    """Audit a model's attention: verdict, numbers, pictures, one page.

    Exit codes: 0 done, 1 stopped by an error that is not yours, 2 something given cannot be used,
    3 the verdict is worse than --require or --baseline ask for.
    """
    from heedful.jobs.decider import is_trained
    from heedful.jobs.gate import baseline_of, refuse_word

    refuse_word(require)
    before = None if baseline is None else baseline_of(baseline)
    if is_trained(model):
        for name, given in (("--config", config), ("--vectors", vectors), ("--quick", quick)):
            if given:
                raise InputError(f"{model} is trained already; {name} is for training.")
    asked = Options(
        corpus=corpus, data=data, text=text, text2=text2, label=label, split=split,
        labels=labels, threshold=threshold,
        data_root=data_root, seed=seed, out=out, quick=quick, device=device, site=site, long=long,
        trust_remote_code=trust_remote_code, prompt=prompt, chat=chat,
        prior=prior,
    )  # fmt: skip
    subject = subject_of(model, asked)
    result = heedful.audit(
        subject.model,
        subject.documents,
        subject.place,
        settings=settings_named(config, quick),
        vectors=vectors,
        audits=None if audits is None else parts(audits),
        methods=None if methods is None else parts(methods),
        documents=documents,
        seed=seed,
        device=device,
        deterministic=deterministic,
        run=subject.run,
        source=subject.source,
        command=typed(context),
        show=True,
    )
    if json:
        print_json(result.to_json())
    else:
        from heedful.report.console import print_verdict
        from heedful.report.quality import in_words

        said = in_words(result.quality)
        page = str(result.report)
        print_verdict(result.verdict.to_json(), result.documents, page, said, result.outside)
    try:
        result.require(require, before)
    except VerdictWorse as worse:
        say([f"heedful: {worse}"])
        raise typer.Exit(3) from worse
