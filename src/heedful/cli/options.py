"""What the commands share: their options, and how they print."""

from __future__ import annotations

import sys
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from heedful.cli.plain_streams import takes_all
from heedful.errors import InputError, escaped, visible

if TYPE_CHECKING:
    from heedful.jobs.decider import Decider
    from heedful.jobs.settings import Settings
    from heedful.jobs.sources import DocumentSource
    from heedful.models.huggingface.language_models import Asking

QUICK = {"train": {"epochs": 4, "learning_rate": 4e-3}}
QUICK_TUNING = {"train": {"epochs": 1}, "words": {"max_tokens": 64}}
QUICK_SIZES = {"train": 800, "dev": 150, "test": 200}

CorpusName = Annotated[
    str | None,
    typer.Option("--corpus", help="Name of a corpus (planted if none); see `heedful corpora`."),
]
DataFile = Annotated[
    Path | None, typer.Option("--data", help="Your own CSV, TSV, JSON Lines or Parquet file.")
]
DataFiles = Annotated[
    str | None,
    typer.Option(
        "--data",
        help="Your own CSV, TSV, JSON Lines or Parquet file; or a pattern, as in "
        "'shards/*.parquet', whose files are read one at a time.",
    ),
]
On = Annotated[
    str | None,
    typer.Option("--on", help="Where it is computed: ray (this machine's), or ray://HOST:PORT."),
]
TextColumn = Annotated[str | None, typer.Option("--text", help="Column of the texts.")]
SecondColumn = Annotated[
    str | None, typer.Option("--text2", help="Column of the second text, for models of pairs.")
]
Site = Annotated[
    str,
    typer.Option(
        "--site",
        help="A transformers model's attention: pooled, layer:K, all, or heads:K.H,K.H (layer and "
        "number of each, from 0).",
    ),
]
Long = Annotated[
    str,
    typer.Option(
        "--long", help="Keep of a text too long for the model: beginning, end, both; or refuse."
    ),
]
RemoteCode = Annotated[
    bool, typer.Option("--trust-remote-code", help="Run the code that a model brings with it.")
]
PromptFile = Annotated[
    str | None,
    typer.Option("--prompt", help="Of a language model: a template with {text}, or its file."),
]
Chat = Annotated[
    bool, typer.Option("--chat", help="Put the prompt into the language model's chat form.")
]
Prior = Annotated[
    str,
    typer.Option(
        "--prior",
        help="What a language model's prompt alone makes likely: none leaves it, empty subtracts "
        "it as seen on texts without content, dev fits it on labelled documents, auto is dev where "
        "there are enough of these.",
    ),
]
LabelColumn = Annotated[str | None, typer.Option("--label", help="Column of the labels.")]
Labels = Annotated[
    str | None,
    typer.Option(
        "--labels",
        help="Classes of other names: neg=LABEL_0,pos=LABEL_1. The words that a language model "
        "chooses among: positive,negative, or 1=positive,0=negative.",
    ),
]
Threshold = Annotated[
    float | None,
    typer.Option("--threshold", help="Make two classes of ratings: below it, and from it on."),
]
Lemmas = Annotated[
    bool | None,
    typer.Option(
        "--lemmas/--no-lemmas",
        help="Match inflected words too, as in movies, movie; done where the packages "
        "for it are installed.",
    ),
]
SplitColumn = Annotated[
    str | None, typer.Option("--split", help="Column that says train, dev or test.")
]
DataRoot = Annotated[
    Path | None,
    typer.Option("--data-root", envvar="HEEDFUL_DATA", help="Folder of the real corpora."),
]
Out = Annotated[Path | None, typer.Option("--out", help="Run folder to write.")]
Seed = Annotated[int, typer.Option("--seed", help="Everything random follows from it.")]
Device = Annotated[str, typer.Option("--device", help="cpu, cuda, or auto.")]
Deterministic = Annotated[
    bool, typer.Option("--deterministic", help="The same bits every time on a GPU too (slower).")
]
Config = Annotated[
    Path | None,
    typer.Option("--config", help="TOML file of [model], [train], [words] and [penalties]."),
]
Vectors = Annotated[
    Path | None, typer.Option("--vectors", help="GloVe text vectors to start from.")
]
Quick = Annotated[bool, typer.Option("--quick", help="A small corpus and few epochs, to try it.")]
AsJson = Annotated[bool, typer.Option("--json", help="Print one JSON object to stdout.")]


@dataclass(frozen=True)
class Options:
    """What a command was told of documents, of how a model reads them and of where its run goes."""

    corpus: str | None = None
    data: Path | None = None
    text: str | None = None
    text2: str | None = None
    label: str | None = None
    split: str | None = None
    labels: str | None = None
    threshold: float | None = None
    data_root: Path | None = None
    seed: int = 0
    out: Path | None = None
    quick: bool = False
    device: str = "auto"
    site: str = "pooled"
    long: str = "beginning"
    trust_remote_code: bool = False
    prompt: str | None = None
    chat: bool = False
    prior: str = "auto"

    def asking(self, name: str | Path) -> Asking | None:
        """How a language model is asked; none where nothing was said of it.

        About the sentiment of a corpus it is asked in the usual way, if nothing is said.
        """
        from heedful.models.huggingface.language_models import (
            USUAL_CLASSES,
            USUAL_PROMPT,
            Asking,
            is_language_model,
        )

        if self.prompt is None:
            is_usual = is_language_model(name) and self.corpus is not None and self.labels is None
            if not is_usual or set(self.source().open()[0].classes) != set(USUAL_CLASSES):
                return None
            say([f"Asked by --prompt {USUAL_PROMPT!r} --labels {','.join(USUAL_CLASSES)}."])
            words = {one: one for one in USUAL_CLASSES}
            return Asking(USUAL_PROMPT, words, self.chat, self.prior)
        if self.labels is None:
            raise InputError("A language model needs both --prompt and --labels.")
        named = [part.partition("=") for part in parts(self.labels)]
        words = {name.strip(): (word or name).strip() for name, _, word in named}
        if self.data is not None:  # whose labels become these words when it is read
            words = {word: word for word in words.values()}
        return Asking(self.prompt, words, self.chat, self.prior)

    @property
    def renamed(self) -> str | None:
        """Labels of the data that have other names in the model."""
        if self.prompt is None:
            return self.labels
        # A language model's labels say of a corpus's classes which words they are.
        return self.labels if self.data is not None and "=" in (self.labels or "") else None

    def __post_init__(self) -> None:
        if self.data is None and self.threshold is not None:
            raise InputError("--threshold is for files; name yours by --data.")
        is_alone = self.data is None and self.corpus is None and self.prompt is None
        if is_alone and self.labels is not None:
            raise InputError("--labels is for the documents of --data or --corpus; name them.")

    def source(self) -> DocumentSource:
        """Where the documents come from; planted ones where none are named."""
        from heedful.jobs.sources import DocumentSource

        corpus = "planted" if self.corpus is None and self.data is None else self.corpus
        is_small = self.quick and corpus is not None and corpus.startswith("planted")
        if corpus is not None and Path(corpus).is_dir():
            corpus = str(Path(corpus).resolve())
        file, root = (
            None if path is None else str(path.resolve()) for path in (self.data, self.data_root)
        )
        columns = self.text, self.label, self.split
        sizes = QUICK_SIZES if is_small else None
        said = self.renamed, self.threshold
        return DocumentSource(corpus, file, *columns, self.seed, sizes, root, self.text2, *said)

    def decider(self, name: str | Path) -> Decider:
        """The trained model of that name, as the options say it should be read."""
        from heedful.jobs.decider import decider_of

        reading = {"site": self.site, "long": self.long, "asking": self.asking(name)}
        return decider_of(name, self.device, trust_remote_code=self.trust_remote_code, **reading)


def settings_named(config: Path | None, quick: bool, is_tuned: bool = False) -> Settings:
    """The settings of the configuration file, or those of a quick try, or the usual ones.

    Those of a pretrained model that is fine-tuned are others.
    """
    from heedful.jobs.settings import read_settings, settings_of
    from heedful.training import FINE_TUNING, TrainConfig

    if config is not None and quick:
        raise InputError("Give either --config or --quick; both say how to train.")
    usual, short = (FINE_TUNING, QUICK_TUNING) if is_tuned else (TrainConfig(), QUICK)
    if config is not None:
        return read_settings(config, usual)
    return settings_of(short if quick else {}, usual)


def parts(listed: str) -> tuple[str, ...]:
    """The parts of a list separated by commas."""
    return tuple(part.strip() for part in listed.split(",") if part.strip())


def typed(context: typer.Context) -> str:
    """The command that runs, with the options that were given."""
    from shlex import join

    said = ["heedful", str(context.info_name)]
    for one, value in typed_options(context).items():
        flag = [one] if one.startswith("-") else []
        said += flag if value is True else [*flag, str(value)]
    return join(said)


def typed_options(context: typer.Context) -> dict[str, Any]:
    """What was given on the command line, by its flag; an argument by its name."""
    found = {}
    for one in context.command.params:
        name = str(one.name)
        if getattr(context.get_parameter_source(name), "name", "") == "COMMANDLINE":
            is_argument = one.param_type_name == "argument"
            found[name if is_argument else one.opts[0]] = context.params[name]
    return found


def say(lines: Iterable[str]) -> None:
    """Prints to stderr what the user should know but no pipe should read."""
    for line in filter(None, lines):
        typer.echo(visible(line), err=True)


def tell(found: Any, as_json: bool) -> None:
    """Prints what a job gives back: its lines, or one JSON object."""
    if as_json:
        print_json(found)
    else:
        for line in found.lines():
            typer.echo(visible(line))


def print_json(value: Any) -> None:
    """Prints one JSON value to stdout."""
    import json

    from heedful.runs import plain

    bare = not takes_all(sys.stdout.encoding)  # JSON has a way of its own to write any character
    sys.stdout.write(escaped(json.dumps(plain(value), indent=2, ensure_ascii=bare)) + "\n")
