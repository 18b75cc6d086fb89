"""`heedful lexicon`: what people feel about words beside the importance a model gives them."""

from __future__ import annotations

from typing import Annotated

import typer

from heedful.cli import options
from heedful.cli.options import Options, tell
from heedful.cli.subject import trained


def lexicon(
    model: Annotated[
        str,
        typer.Argument(help="A run folder, or a folder or hf:NAME of a transformers classifier."),
    ],
    lexicon: Annotated[
        str | None,
        typer.Option(
            "--lexicon", help="A file of words and ratings, or warriner; the corpus's own if none."
        ),
    ] = None,
    method: Annotated[
        str | None,
        typer.Option("--method", help="Explanation to compare; trace or attention if none."),
    ] = None,
    lemmas: options.Lemmas = None,
    corpus: options.CorpusName = None,
    data: options.DataFile = None,
    text: options.TextColumn = None,
    label: options.LabelColumn = None,
    split: options.SplitColumn = None,
    labels: options.Labels = None,
    threshold: options.Threshold = None,
    out: options.Out = None,
    seed: options.Seed = 0,
    device: options.Device = "auto",
    data_root: options.DataRoot = None,
    trust_remote_code: options.RemoteCode = False,
    json: options.AsJson = False,
) -> None:
    """Lay people's ratings of words beside their importance."""
    from heedful.jobs.lexicon import rate

    asked = Options(
        corpus=corpus, data=data, text=text, label=label, split=split,
        labels=labels, threshold=threshold,
        data_root=data_root, seed=seed, out=out, device=device, trust_remote_code=trust_remote_code,
    )  # fmt: skip
    subject = trained(model, asked)
    found = rate(
        subject.model,
        subject.documents,
        lexicon,
        subject.place,
        run=subject.run,
        method=method,
        lemmas=lemmas,
        data_root=data_root,
        seed=seed,
        device=device,
    )
    tell(found, json)
