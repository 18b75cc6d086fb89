"""Classifiers of `transformers`, from a folder or by name, or one sentence about why not."""

from __future__ import annotations

import inspect
import json
import logging
import re
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch
from torch import nn

from heedful.corpora.encoded import MAX_TOKENS
from heedful.corpora.labels import MOST_LETTERS
from heedful.errors import InputError, UnsupportedModel
from heedful.models.huggingface.classifier import PretrainedClassifier
from heedful.models.huggingface.pieces import FastTokeniser, without_panic
from heedful.models.recipe import MOST_LAYERS
from heedful.models.saved import refuse_large, refuse_undefined
from heedful.runs import is_out_of_memory

if TYPE_CHECKING:
    from transformers import PretrainedConfig

PREFIX = "hf:"
"""What a name on the hub, or a folder, begins with where it could be taken for something else."""
_TOKENIZERS = ("tokenizer.json", "tokenizer_config.json", "vocab.txt", "vocab.json")
_UNLIMITED = 1_000_000
"""A tokenizer that says its model reads more pieces than this does not know."""


OWN_CODE = (
    "{name} brings code of its own, which would run on this machine; read it, and allow it with "
    "--trust-remote-code (in Python trust_remote_code=True) if you trust its authors."
)
PICKLES = (".bin", ".pt", ".pth", ".pkl", ".ckpt", ".h5", ".msgpack")
PICKLED = (
    "{name} holds its weights in {file} and not as safetensors; such files can run code when they "
    'are read. If you trust its authors, convert it once: python -c "from transformers import '
    "{kind} as M; M.from_pretrained('{name}').save_pretrained('{name}')\""
)
MOST = {"layer|block|depth|expert|stage": MOST_LAYERS, "num_labels": 100_000}
"""Of parts that a configuration can ask for: making more would take hours to fail."""
KNOWN = 0.5
"""Share of the model's pieces that its tokenizer must know; some rows are often left spare."""


def is_transformer(place: str | Path) -> bool:
    """Whether this names a model of `transformers`: `hf:NAME`, or a folder with its config.json."""
    if str(place).startswith(PREFIX):
        return True
    config = Path(place) / "config.json"
    if not config.is_file():
        return False
    try:
        stored = json.loads(config.read_text())
    except (OSError, ValueError):  # damaged: whose it is, the files beside it tell
        return any((config.parent / file).is_file() for file in _TOKENIZERS)
    return isinstance(stored, dict) and ("model_type" in stored or "architectures" in stored)


def open_classifier(
    place: str | Path,
    *,
    site: str = "pooled",
    device: torch.device | str = "cpu",
    long: str = "beginning",
    max_pieces: int | None = None,
    trust_remote_code: bool = False,
) -> PretrainedClassifier:
    """The classifier of a folder or of a name on the hub, in evaluation mode.

    Weights are read as safetensors only; code that comes with a model runs only where it is
    allowed. A model without a trained head, for several labels at once or for a number is refused
    by name. Half precision becomes float32 on a CPU, which computes no faster in it.
    """
    name = str(place).removeprefix(PREFIX)
    remote = {"trust_remote_code": trust_remote_code}
    with in_sentences(name), quietly():
        from transformers import AutoConfig, AutoModelForSequenceClassification, AutoTokenizer

        refuse_counts(name)
        config = AutoConfig.from_pretrained(name, **remote)
        refuse(config, name)
        refuse_code(config, name, trust_remote_code)
        kind: Any = AutoModelForSequenceClassification
        refuse_large(lambda: kind.from_config(config, **remote), name, 1)
        model, loaded = AutoModelForSequenceClassification.from_pretrained(
            name, config=config, output_loading_info=True, use_safetensors=True, **remote
        )
        tokenizer = AutoTokenizer.from_pretrained(name, **remote)
    if torch.device(device).type == "cpu" and model.dtype in (torch.float16, torch.bfloat16):
        model = model.float()
    refuse_undefined(model, name)
    missing = sorted(loaded["missing_keys"])
    if missing:
        raise InputError(
            f"{name} has no trained classification head: {', '.join(missing[:3])} "
            f"{'are' if len(missing) > 1 else 'is'} not among its weights. Fine-tune it first, or "
            "name a model that was."
        )
    reading: dict[str, Any] = {"site": site, "long": long, "max_pieces": max_pieces}
    with in_sentences(name):
        return reader_of(model.to(device), tokenizer, name, **reading)


def reader_of(
    model: Any,
    tokenizer: Any,
    name: str,
    *,
    site: str = "pooled",
    long: str = "beginning",
    max_pieces: int | None = None,
) -> PretrainedClassifier:
    """A model of `transformers` with its tokenizer as a classifier that can be read and asked."""
    config = model.config
    subwords = FastTokeniser(tokenizer, config.get_text_config().pad_token_id)
    subwords.has_types &= _takes_types(model)
    refuse_strange_ids(model, tokenizer, name)
    most = limit_of(model, tokenizer)
    return PretrainedClassifier(
        model,
        subwords,
        class_names(config),
        site=site,
        max_pieces=most if max_pieces is None else min(max_pieces, most),
        long=long,
        recipe=f"{PREFIX}{name}",
        layers=_expected(config),
    )


def class_names(config: Any) -> tuple[str, ...]:
    """The labels that a model was made for, in their order; each needs a name of its own."""
    names = tuple(str(config.id2label[place]) for place in range(config.num_labels))
    long = max(names, key=len, default="")
    if len(long) > MOST_LETTERS:
        raise InputError(
            f"A class in id2label of the model's config.json has a name of {len(long):,} letters; "
            f"give it one of {MOST_LETTERS} at most."
        )
    repeated = [name for name, count in Counter(names).items() if count > 1]
    if repeated:
        raise InputError(
            f"{repeated[0]!r} names more than one class in id2label of the model's config.json; "
            "give each class a name of its own."
        )
    return names


def limit_of(model: nn.Module, tokenizer: Any = None) -> int:
    """How many pieces the model reads, special tokens included.

    The smaller of what its tokenizer and its table of positions say; RoBERTa's table begins after
    the padding id. A model without either reads as many as our own models do.
    """
    config: Any = getattr(model, "config", None)
    said = int(getattr(tokenizer, "model_max_length", None) or _UNLIMITED)
    try:
        positions = int(getattr(config, "max_position_embeddings", None) or -1)
        positions = positions if positions > 0 else _UNLIMITED  # XLNet says -1
    except NotImplementedError:
        positions = _UNLIMITED
    for name, module in model.named_modules():
        if name.endswith("position_embeddings") and isinstance(module, nn.Embedding):
            positions = min(positions, module.num_embeddings)
            if module.padding_idx is not None:
                positions = module.num_embeddings - module.padding_idx - 1
    most = min(said, positions)
    return int(most) if most < _UNLIMITED else MAX_TOKENS


def refuse(config: PretrainedConfig, name: str) -> None:
    """Raises for a model that does not decide for one class, or that cannot be read."""
    kind, labels = config.problem_type, int(config.num_labels or 0)
    if kind == "multi_label_classification":
        raise UnsupportedModel(
            f"{name} gives a text several labels at once (multi_label_classification); heedful "
            "audits models that decide for one class."
        )
    if kind == "regression" or labels < 2:
        raise UnsupportedModel(
            f"{name} predicts a number (regression, outputs: {labels}); heedful audits models that "
            "decide between classes."
        )
    if config.model_type == "longformer":
        raise UnsupportedModel(
            f"{name} is a Longformer, whose attention is a band of keys and not a row over all of "
            "them; it is not supported (docs/architectures.md)."
        )


def refuse_counts(name: str, kind: str = "AutoModelForSequenceClassification") -> None:
    """Raises for what the library would count up to before anyone could look; and for pickles."""
    from transformers import PretrainedConfig

    folder = Path(name)
    if folder.is_dir() and not any(folder.glob("*.safetensors")):
        for file in sorted(folder.iterdir()):
            if file.suffix in PICKLES:
                raise InputError(PICKLED.format(name=name, file=file.name, kind=kind))
    raw, _ = PretrainedConfig.get_config_dict(name)
    for key, value in _numbers(raw):
        most = next((most for part, most in MOST.items() if re.search(part, key)), None)
        if most is not None and value > most:
            raise InputError(
                f"{name} asks for {value:,} {key} in its config.json; {most:,} are the most."
            )


def _numbers(value: Any, key: str = "") -> Iterator[tuple[str, int]]:
    """The whole numbers of nested settings, each with its name."""
    if isinstance(value, dict):
        for name, one in value.items():
            yield from _numbers(one, str(name))
    elif isinstance(value, list):
        for one in value:
            yield from _numbers(one, key)
    elif isinstance(value, int | float) and abs(value) < float("inf"):
        yield key, int(value)


def refuse_code(config: PretrainedConfig, name: str, trust_remote_code: bool) -> None:
    """Raises where a model decides by a class of its own, whose code may not run.

    Without it the library would put the weights into the class that it has for such a `model_type`.
    """
    import transformers

    named = (getattr(config, "auto_map", None) or {}).get("AutoModelForSequenceClassification")
    if named and not trust_remote_code and not hasattr(transformers, named.rpartition(".")[2]):
        raise InputError(OWN_CODE.format(name=name))


def brings_code(model: object) -> bool:
    """Whether a classifier runs code that came with its weights."""
    return type(getattr(model, "model", None)).__module__.startswith("transformers_modules")


def refuse_strange_ids(
    model: nn.Module, tokenizer: Any, name: str, is_causal: bool = False
) -> None:
    """Raises where the tokenizer is not the one that the model was trained with.

    A language model may lack vectors of pieces beside its vocabulary (Gemma's for a picture), but
    not of those that begin, end and fill texts.
    """
    table: Any = model.get_input_embeddings()  # type: ignore[operator]
    known = tokenizer.get_vocab()
    used = set(known.values())
    if is_causal:
        needed = {getattr(tokenizer, f"{kind}_token_id") for kind in ("bos", "eos", "pad", "unk")}
        used -= set(tokenizer.added_tokens_decoder) - needed
    rows, largest = len(table.weight), max(used, default=0)
    if len(known) < KNOWN * rows:
        # Where tokenizer files are missing, the library makes a tokenizer that knows no words.
        raise InputError(
            f"{name} has vectors for {rows} pieces, but its tokenizer knows only {len(known)}: its "
            "files are missing or another model's. Save the tokenizer the model was trained with."
        )
    if largest >= rows:
        raise InputError(
            f"{name} has vectors for {rows} pieces, but its tokenizer knows ids up to {largest}: "
            "they do not belong together. Save the tokenizer that the model was trained with."
        )


def _takes_types(model: nn.Module) -> bool:
    config: Any = model.config
    takes = "token_type_ids" in inspect.signature(model.forward).parameters
    return takes and getattr(config, "type_vocab_size", 2) > 1


def _expected(config: PretrainedConfig) -> int:
    """How often the model attends in one forward pass."""
    text = config.get_text_config()
    if config.is_encoder_decoder:
        encoder = getattr(config, "encoder_layers", None) or text.num_hidden_layers
        decoder = getattr(config, "decoder_layers", None) or getattr(
            config, "num_decoder_layers", text.num_hidden_layers
        )
        return int(encoder + 2 * decoder)
    return int(text.num_hidden_layers)


@contextmanager
def in_sentences(
    name: str, what: str = "text classifier", kind: str = "AutoModelForSequenceClassification"
) -> Iterator[None]:
    """Turns what the library raises into one sentence; `kind` is the class that opens a model."""
    try:
        with without_panic():
            yield
    except ImportError as error:
        raise InputError(
            f"{name} needs a package that is not here ({_first_line(error)}); install it."
        ) from error
    except InputError:
        raise
    except Exception as error:  # a damaged folder makes the library stumble anywhere
        if is_out_of_memory(error):
            raise
        said = str(error)
        if "couldn't connect" in said or "offline" in said.lower():
            raise InputError(
                f"{name} is not on this machine, and the hub cannot be reached; download it where "
                "there is a network and name its folder."
            ) from error
        if "trust_remote_code" in said:
            raise InputError(OWN_CODE.format(name=name)) from error
        if "safetensors" in said and "pytorch_model.bin" in said:
            raise InputError(
                PICKLED.format(name=name, file="pytorch_model.bin", kind=kind)
            ) from error
        raise InputError(f"{name} cannot be opened as a {what}: {_first_line(error)}") from error


def _first_line(error: BaseException) -> str:
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    line = lines[0] if lines else type(error).__name__
    return line if line.endswith(".") else f"{line}."


@contextmanager
def quietly() -> Iterator[None]:
    """Without the library's log and progress bars: what matters becomes an error here."""
    from transformers.utils import logging as library

    logs = [logging.getLogger(name) for name in ("transformers", "huggingface_hub")]
    levels, has_bars = [log.level for log in logs], library.is_progress_bar_enabled()
    for log in logs:
        log.setLevel(logging.ERROR)
    library.disable_progress_bar()  # type: ignore[no-untyped-call]
    try:
        yield
    finally:
        for log, level in zip(logs, levels, strict=True):
            log.setLevel(level)
        if has_bars:
            library.enable_progress_bar()  # type: ignore[no-untyped-call]
