"""A BERT too small to know anything, for trials: its pieces are the words of a corpus."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import torch

from heedful.models.huggingface.opening import quietly
from heedful.runs.atomic import writing_folder
from heedful.runs.randomness import seeded

SPREAD = 0.15
"""Of the random weights; the library's 0.02 is for large models and would keep a tiny one still."""
SPECIALS = ("[PAD]", "[CLS]", "[SEP]", "[UNK]", "[MASK]")


def write_tiny_encoder(
    words: Iterable[str],
    folder: str | Path,
    *,
    seed: int = 0,
    width: int = 32,
    layers: int = 2,
    heads: int = 2,
    limit: int = 128,
    polarity: Mapping[str, float] | None = None,
) -> None:
    """Writes a folder of `transformers` with a random encoder, without a head, and its tokenizer.

    With `polarity` its word vectors know one thing already, as after a pretraining: how good or bad
    a word is stands in their first dimension.

    >>> import tempfile
    >>> from heedful.models.huggingface.starting import start_from
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     write_tiny_encoder(["good", "bad", "food"], folder + "/tiny")
    ...     model, head = start_from(folder + "/tiny", ("no", "yes"))
    >>> head, model.classes
    ('fresh', ('no', 'yes'))
    """
    with quietly():
        from tokenizers import Tokenizer, models, normalizers, pre_tokenizers, processors
        from transformers import BertConfig, BertModel, PreTrainedTokenizerFast

    known = dict.fromkeys((*SPECIALS, *(word.lower() for word in words)))
    vocabulary = {word: place for place, word in enumerate(known)}
    rules = Tokenizer(models.WordPiece(vocabulary, unk_token="[UNK]"))
    rules.normalizer = normalizers.Lowercase()
    rules.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    around = [(name, vocabulary[name]) for name in ("[CLS]", "[SEP]")]
    rules.post_processor = processors.TemplateProcessing(
        single="[CLS] $A [SEP]", pair="[CLS] $A [SEP] $B:1 [SEP]:1", special_tokens=around
    )
    tokenizer = PreTrainedTokenizerFast(  # type: ignore[no-untyped-call]
        tokenizer_object=rules, unk_token="[UNK]", pad_token="[PAD]", cls_token="[CLS]",
        sep_token="[SEP]", mask_token="[MASK]", model_max_length=limit,
        model_input_names=["input_ids", "token_type_ids", "attention_mask"],
    )  # fmt: skip
    config = BertConfig(
        vocab_size=len(vocabulary), hidden_size=width, num_hidden_layers=layers,
        num_attention_heads=heads, intermediate_size=2 * width, max_position_embeddings=limit,
        pad_token_id=0, initializer_range=SPREAD,
    )  # fmt: skip
    with seeded(seed), torch.no_grad():
        model: Any = BertModel(config)  # type: ignore[no-untyped-call]
        table = model.get_input_embeddings().weight
        for word, worth in (polarity or {}).items():
            if word in vocabulary:
                table[vocabulary[word], 0] = worth
    with writing_folder(folder) as written, quietly():
        model.save_pretrained(written)
        tokenizer.save_pretrained(written)
