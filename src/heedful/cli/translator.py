"""`heedful translator`: a translator of two files, watched while it learns and audited."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from heedful.cli.options import AsJson, Device, Seed, tell
from heedful.errors import unknown

ATTENTIONS = {"learnt": "dot", "uniform": "uniform"}
OUTPUTS = ("relu", "tanh", "linear")


def translator(
    source: Annotated[Path, typer.Argument(help="Source sentences, one per line, words apart.")],
    target: Annotated[Path, typer.Argument(help="Their translations, line by line.")],
    out: Annotated[Path, typer.Option("--out", help="The run folder.")],
    dev: Annotated[
        tuple[Path, Path] | None,
        typer.Option(
            "--dev",
            help="Two more files to measure on, instead of a share.",
            metavar="SOURCE TARGET",
        ),
    ] = None,
    dev_share: Annotated[
        float | None,
        typer.Option(
            "--dev-share", help="Pairs kept to measure on: 0.1 unless told, at most 2,000."
        ),
    ] = None,
    alignment: Annotated[
        Path | None,
        typer.Option(
            "--alignment",
            help="Links i-j between words as `heedful align` writes them, a line for each line of "
            "the files (of those of --dev, if given); without, IBM Model 1 makes them.",
        ),
    ] = None,
    pieces: Annotated[
        int | None,
        typer.Option("--pieces", help="Sentencepieces; else what the text supports, up to 8,000."),
    ] = None,
    max_words: Annotated[
        int, typer.Option("--max-words", help="Leave out pairs with a longer line.")
    ] = 100,
    epochs: Annotated[int, typer.Option("--epochs", help="Passes over the pairs.")] = 20,
    batch_size: Annotated[int, typer.Option("--batch-size", help="Pairs of an update.")] = 16,
    learning_rate: Annotated[float, typer.Option("--learning-rate", help="Of Adam.")] = 1e-3,
    width: Annotated[int, typer.Option("--width", help="Of piece vectors and LSTMs.")] = 256,
    layers: Annotated[int, typer.Option("--layers", help="Of encoder and decoder.")] = 2,
    dropout: Annotated[float, typer.Option("--dropout", help="Between the layers.")] = 0.5,
    heads: Annotated[int, typer.Option("--heads", help="Of attention.")] = 1,
    output: Annotated[
        str, typer.Option("--output", help="Between context and pieces: relu, tanh or linear.")
    ] = "relu",
    attention: Annotated[
        str, typer.Option("--attention", help="learnt, or uniform: frozen, to compare with.")
    ] = "learnt",
    seed: Seed = 0,
    device: Device = "auto",
    json: AsJson = False,
) -> None:
    """Train a translator, and audit where its attention looks.

    It is trained on two files, and its attention is watched while it is learnt.

    Example: heedful translator text.de text.en --out runs/de-en --epochs 10
    """
    if attention not in ATTENTIONS:
        raise unknown("--attention", attention, ATTENTIONS)
    if output not in OUTPUTS:
        raise unknown("--output", output, OUTPUTS)
    from heedful.jobs.translator import train_translator
    from heedful.models.translator import TranslatorConfig
    from heedful.training.sequences import SequenceConfig

    done = train_translator(
        source,
        target,
        out,
        dev=dev,
        dev_share=dev_share,
        alignment=alignment,
        pieces=pieces,
        max_words=max_words,
        model=TranslatorConfig(
            embedding_dim=width,
            width=width,
            layers=layers,
            dropout=dropout,
            heads=heads,
            output=output,  # type: ignore[arg-type]
            attention=ATTENTIONS[attention],  # type: ignore[arg-type]
        ),
        training=SequenceConfig(epochs, batch_size, learning_rate),
        seed=seed,
        device=device,
        show=True,
    )
    tell(done, json)
