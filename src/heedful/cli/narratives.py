"""`heedful narratives`: a model that follows ratings over time, trained and traced to its words."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from heedful.cli.options import AsJson, Config, DataRoot, Device, Lemmas, Seed, Vectors, tell


def narratives(
    corpus: Annotated[
        str, typer.Argument(help="A folder of narratives (see docs/tracing.md), planted or send.")
    ],
    out: Annotated[Path, typer.Option("--out", help="The run folder.")],
    lexicon: Annotated[
        str | None, typer.Option("--lexicon", help="A file of words and ratings, or warriner.")
    ] = None,
    lemmas: Lemmas = None,
    config: Config = None,
    vectors: Vectors = None,
    seed: Seed = 0,
    device: Device = "auto",
    data_root: DataRoot = None,
    json: AsJson = False,
) -> None:
    """Train a Transformer on ratings over time, and trace it.

    Its attention is followed through the layers down to the words.
    """
    from heedful.jobs.narratives import PRESET, trace_narratives, train_narrator
    from heedful.jobs.settings import read_settings
    from heedful.training.presets import PRESETS

    usual = PRESETS[PRESET].train
    train_narrator(
        corpus,
        out,
        settings=None if config is None else read_settings(config, usual),
        vectors=vectors,
        data_root=data_root,
        seed=seed,
        device=device,
        show=True,
    )
    found = trace_narratives(
        out, corpus, lexicon, data_root=data_root, lemmas=lemmas, seed=seed, device=device
    )
    tell(found, json)
