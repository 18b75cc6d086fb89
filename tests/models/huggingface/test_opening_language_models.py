"""Language models opened from a folder, or one sentence about why not."""

from __future__ import annotations

from copy import deepcopy
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from heedful.errors import InputError, UnsupportedModel
from heedful.models import read
from heedful.models.huggingface.language_models import (
    Asking,
    dequantised,
    note_of_start,
    open_language_model,
)
from tests.models.huggingface.test_language_models import (
    PROMPT,
    SHORT,
    SIZES,
    chooser,
    language_model,
)
from tests.tiny_transformers import CONFIGS, END, START, TEXTS, enlarged, tokenizer


def saved(model: Any, place: Path) -> str:
    """The name of a folder with the model and its tokenizer."""
    model.save_pretrained(place)
    tokenizer(is_causal=True).save_pretrained(place)
    return f"lm:{place}"


@pytest.mark.parametrize(
    ("kind", "said"),
    [
        ("bert", "reads what follows a word"),
        ("distilbert", "is a distilbert, which is no causal language model"),
        ("t5", "is a t5, which is no causal language model"),
    ],
)
def test_an_encoder_is_no_language_model(tmp_path: Path, kind: str, said: str) -> None:
    from transformers import AutoConfig, AutoModelForMaskedLM, AutoModelForSeq2SeqLM

    config = AutoConfig.for_model(kind, **CONFIGS[kind]())
    found = AutoModelForSeq2SeqLM if kind == "t5" else AutoModelForMaskedLM
    name = saved(enlarged(found.from_config(config)).float(), tmp_path)
    with pytest.raises(UnsupportedModel, match=said):
        open_language_model(name, Asking(PROMPT, SHORT))


def test_weights_that_were_never_trained_to_go_on_with_a_text_are_refused(tmp_path: Path) -> None:
    """The library would make up what is missing."""
    from transformers import AutoConfig, AutoModel, AutoModelForSequenceClassification

    config = AutoConfig.for_model("llama", **SIZES)
    for place, kind in (("a", AutoModel), ("b", AutoModelForSequenceClassification)):
        name = saved(kind.from_config(config), tmp_path / place)
        with pytest.raises(InputError, match=r"no trained language model: lm_head\.weight is"):
            open_language_model(name, Asking(PROMPT, SHORT))


def test_a_head_that_shares_the_word_vectors_is_not_missing(tmp_path: Path) -> None:
    from transformers import AutoConfig, AutoModelForCausalLM

    config = AutoConfig.for_model("llama", **SIZES, tie_word_embeddings=True)
    model = enlarged(AutoModelForCausalLM.from_config(config))
    opened = open_language_model(saved(model, tmp_path), Asking(PROMPT, SHORT))
    head = opened.model.base.get_output_embeddings().weight
    torch.testing.assert_close(head, model.get_input_embeddings().weight)


def test_a_file_that_is_not_there_is_said(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"model\.gguf is not there; expected a GGUF file"):
        open_language_model(f"lm:{tmp_path / 'model.gguf'}", Asking(PROMPT, SHORT))


def test_damaged_weights_and_another_models_tokenizer_are_said(tmp_path: Path) -> None:
    from transformers import AutoConfig, AutoModelForCausalLM

    kind: Any = AutoModelForCausalLM
    broken = kind.from_config(AutoConfig.for_model("llama", **SIZES))
    with torch.no_grad():
        broken.model.layers[0].mlp.up_proj.weight[0, 0] = torch.nan
    small = kind.from_config(AutoConfig.for_model("llama", **(SIZES | {"vocab_size": 20})))
    for model, said in ((broken, "not finite numbers"), (small, "do not belong together")):
        with pytest.raises(InputError, match=said):
            open_language_model(saved(model, tmp_path / said), Asking(PROMPT, SHORT))


class Quantised:
    """What the library gives for stored 8-bit weights, as far as they are made numbers again."""

    dtype = torch.float32

    def __init__(self, is_reversible: bool) -> None:
        self.hf_quantizer: object = self
        self.is_reversible = is_reversible

    def dequantize(self) -> Quantised:
        if not self.is_reversible:
            raise NotImplementedError
        self.hf_quantizer = None
        return self


def test_what_was_dequantised_is_said() -> None:
    stored = {"quant_method": "bitsandbytes", "load_in_8bit": True, "load_in_4bit": False}
    model, said = dequantised(Quantised(True), stored)
    assert model.hf_quantizer is None
    assert said == "bitsandbytes weights of 8 bits are read as 32-bit numbers."
    model, said = dequantised(Quantised(False), {"quant_method": "gptq", "bits": 4})
    assert model.hf_quantizer is not None
    assert said == "gptq weights of 4 bits are used as they are stored."


def test_a_missing_first_token_is_noticed() -> None:
    cut = deepcopy(tokenizer(is_causal=True))
    assert note_of_start(cut, "tiny", ()) == ()  # it knows none
    cut.bos_token = "[CLS]"
    assert note_of_start(cut, "tiny", (START,)) == ()
    (said,) = note_of_start(cut, "tiny", (END,))
    assert "do not begin with '[CLS]', which tiny knows as the first token" in said


def test_a_folder_is_opened_and_nothing_is_said_of_it(tmp_path: Path) -> None:
    language_model("llama").save_pretrained(tmp_path)
    cut = tokenizer(is_causal=True)
    cut.save_pretrained(tmp_path)
    model = open_language_model(f"lm:{tmp_path}", Asking(PROMPT, SHORT))
    logits = read(model, model.batch(TEXTS)).logits
    np.testing.assert_allclose(logits, read(chooser("llama", SHORT), model.batch(TEXTS)).logits)
    assert model.said == ()


def test_a_piece_that_was_added_needs_no_vector(tmp_path: Path) -> None:
    """As Gemma's tokenizer names a picture that its text model has no vector for."""
    language_model("llama").save_pretrained(tmp_path)
    cut = deepcopy(tokenizer(is_causal=True))
    cut.add_tokens(["<picture>"], special_tokens=True)
    cut.save_pretrained(tmp_path)
    assert open_language_model(f"lm:{tmp_path}", Asking(PROMPT, SHORT)).classes == ("good", "bad")


@pytest.mark.parametrize("name", ["/nowhere/model", "./nowhere", "runs/of/nobody"])
def test_a_path_that_is_not_there_is_said_to_be_a_path(name: str) -> None:
    with pytest.raises(InputError, match=f"{name} does not exist; expected the folder"):
        open_language_model(f"lm:{name}", Asking(PROMPT, SHORT))
