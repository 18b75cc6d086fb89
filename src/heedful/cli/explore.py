"""`heedful explore`: a page on this machine where any text is typed, explained and edited."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from heedful.cli.options import (
    Chat,
    CorpusName,
    DataFile,
    DataRoot,
    Device,
    LabelColumn,
    Labels,
    Long,
    Options,
    PromptFile,
    RemoteCode,
    SecondColumn,
    Seed,
    Site,
    SplitColumn,
    TextColumn,
    Threshold,
    say,
)
from heedful.errors import InputError

if TYPE_CHECKING:
    from heedful.explorer.documents import OfferedDocuments


def explore(
    models: Annotated[
        list[str],
        typer.Argument(
            metavar="MODEL...",
            help="A run folder, the folder of an audit, a folder or hf:NAME of a transformers "
            "classifier, or lm:FOLDER of a language model; several can be set side by side.",
        ),
    ],
    port: Annotated[
        int, typer.Option("--port", min=0, max=65535, help="0 takes one that is free.")
    ] = 8517,
    host: Annotated[
        str, typer.Option("--host", help="Others reach any but this machine's, with a token.")
    ] = "127.0.0.1",
    browser: Annotated[
        bool, typer.Option("--browser/--no-browser", help="Open the page in a browser.")
    ] = True,
    corpus: CorpusName = None,
    data: DataFile = None,
    text: TextColumn = None,
    text2: SecondColumn = None,
    label: LabelColumn = None,
    split: SplitColumn = None,
    labels: Labels = None,
    threshold: Threshold = None,
    data_root: DataRoot = None,
    site: Site = "pooled",
    long: Long = "beginning",
    trust_remote_code: RemoteCode = False,
    prompt: PromptFile = None,
    chat: Chat = False,
    device: Device = "auto",
    seed: Seed = 0,
) -> None:
    """Open a live page: type texts, see why, move attention.

    Every explanation is shown as it arrives; several models can be set side by side.
    """
    from importlib.util import find_spec

    if find_spec("starlette") is None or find_spec("uvicorn") is None:
        raise InputError("The live page needs two packages: pip install 'heedful[explore]'.")
    options = Options(
        corpus=corpus, data=data, text=text, text2=text2, label=label, split=split, labels=labels,
        threshold=threshold, data_root=data_root, site=site, long=long, device=device, seed=seed,
        trust_remote_code=trust_remote_code, prompt=prompt, chat=chat,
    )  # fmt: skip
    from heedful.explorer.safety import Door
    from heedful.explorer.server import Explorer, application, serve
    from heedful.explorer.texts import ExploredModel
    from heedful.jobs.explain import recommended

    opened = []
    for name, title in zip(models, _titles(models), strict=True):
        model = options.decider(name)
        say(getattr(model, "said", ()))
        opened.append(ExploredModel(title, model, *recommended(name, model)))
    explorer = Explorer(opened, _documents(models[0], options), seed=seed)
    door = Door.at(host)
    serve(application(explorer, door), door, port, opens_browser=browser, say=say)


def _titles(names: list[str]) -> list[str]:
    """What the models are called on the page: without folders, and each otherwise."""
    titles: list[str] = []
    for name in names:
        title = Path(name.partition(":")[2] if name.startswith(("hf:", "lm:")) else name).name
        again = sum(one.partition(" (")[0] == title for one in titles)
        titles.append(f"{title} ({again + 1})" if again else title)
    return titles


def _documents(name: str, options: Options) -> OfferedDocuments:
    """The documents that were named, or a run's own; none where a run cannot open them again."""
    from heedful.cli.subject import documents_of, trained
    from heedful.explorer.documents import OfferedDocuments, offered
    from heedful.jobs.sources import source_of

    if options.corpus is not None or options.data is not None:
        return offered(trained(name, options).documents)
    own = source_of(Path(name))
    if own is None:
        return OfferedDocuments()
    try:
        return offered(documents_of(own))
    except (InputError, OSError) as error:
        say([f"The page goes without documents: {error}"])
        return OfferedDocuments()
