"""`heedful lexicon`: what people feel about words beside the importance a model gives them."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from heedful.cli.options import (
    AsJson,
    CorpusName,
    DataFile,
    DataRoot,
    Device,
    LabelColumn,
    Out,
    Seed,
    SplitColumn,
    TextColumn,
    for_run,
    for_transformer,
    tell,
)


def lexicon(
    model: Annotated[
        str,
        typer.Argument(help="A run folder, or a folder or hf:NAME of a transformers classifier."),
    ],
    lexicon: Annotated[
        str | None,
        typer.Option(
            "--lexicon", help="A file of words and ratings; the corpus's own, or warriner."
        ),
    ] = None,
    method: Annotated[
        str | None, typer.Option("--method", help="Importance; trace or attention if none.")
    ] = None,
    lemmas: Annotated[bool, typer.Option(help="Match inflected words by their lemma too.")] = True,
    corpus: CorpusName = None,
    data: DataFile = None,
    text: TextColumn = None,
    label: LabelColumn = None,
    split: SplitColumn = None,
    out: Out = None,
    seed: Seed = 0,
    device: Device = "auto",
    data_root: DataRoot = None,
    json: AsJson = False,
) -> None:
    """Lay what people feel about words beside the importance they get."""
    from heedful.jobs.lexicon import rate
    from heedful.models.huggingface import is_transformer, open_classifier

    named = corpus, data, (text, label, split), data_root, seed, out
    rated: Any = model
    if is_transformer(model):
        rated = open_classifier(model)
        opened, place = for_transformer(rated, *named)
    else:
        opened, place = for_run(Path(model), *named)
    found = rate(
        rated,
        opened,
        lexicon,
        place,
        method=method,
        has_lemmas=lemmas,
        data_root=data_root,
        seed=seed,
        device=device,
    )
    tell(found, json)
