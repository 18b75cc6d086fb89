"""Tiny Transformers with random, enlarged weights and tokenizers made on the spot."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from functools import cache
from pathlib import Path
from typing import Any

import torch
from torch import nn

WORDS = ("good", "bad", "food", "service", "un", "##believ", "##able", "##ly", "very", "the", "was",
         "and", "slow", "friend", "not", "staff", "a", ".", ",", "!", "one", "two", "three", "four",
         "five", "six", "seven", "eight", "did", "n", "'", "t", "##s")  # fmt: skip
PAD, START, END, UNKNOWN, MASK = range(5)
SPECIALS = ("[PAD]", "[CLS]", "[SEP]", "[UNK]", "[MASK]")
VOCABULARY = {word: place for place, word in enumerate((*SPECIALS, *WORDS))}
LIMIT = 40
TEXTS = (
    "The food was unbelievable, unbelievably good!",
    "bad",
    "the staff was slow and the service was not good.",
    "very very bad food",
)


@cache
def tokenizer(padding_side: str = "right", is_causal: bool = False, is_last: bool = False) -> Any:
    """A WordPiece tokenizer: `[CLS] … [SEP]`, nothing (causal), or `… [SEP] [CLS]`."""
    from tokenizers import Tokenizer, models, normalizers, pre_tokenizers, processors
    from transformers import PreTrainedTokenizerFast

    made = Tokenizer(models.WordPiece(VOCABULARY, unk_token="[UNK]"))
    made.normalizer = normalizers.Lowercase()
    made.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    around, pair = "[CLS] $A [SEP]", "[CLS] $A [SEP] $B:1 [SEP]:1"
    if is_last:
        around, pair = "$A [SEP] [CLS]:2", "$A [SEP] $B:1 [SEP]:1 [CLS]:2"
    if not is_causal:
        made.post_processor = processors.TemplateProcessing(
            single=around, pair=pair, special_tokens=[("[CLS]", START), ("[SEP]", END)]
        )
    names = ["input_ids", "attention_mask"]
    return PreTrainedTokenizerFast(
        tokenizer_object=made, unk_token="[UNK]", pad_token="[PAD]", cls_token="[CLS]",
        sep_token="[SEP]", mask_token="[MASK]", padding_side=padding_side, model_max_length=LIMIT,
        model_input_names=names if is_causal else ["input_ids", "token_type_ids", "attention_mask"],
    )  # fmt: skip


def _sizes(**more: Any) -> dict[str, Any]:
    return {
        "vocab_size": len(VOCABULARY), "hidden_size": 16, "num_hidden_layers": 2,
        "num_attention_heads": 2, "intermediate_size": 24, "max_position_embeddings": LIMIT + 2,
        "num_labels": 3, "pad_token_id": PAD, "bos_token_id": START, "eos_token_id": END,
        "type_vocab_size": 3,
    } | more  # fmt: skip


def _bart_sizes() -> dict[str, Any]:
    return {
        "vocab_size": len(VOCABULARY), "d_model": 16, "encoder_layers": 2, "decoder_layers": 2,
        "encoder_attention_heads": 2, "decoder_attention_heads": 2, "encoder_ffn_dim": 24,
        "decoder_ffn_dim": 24, "max_position_embeddings": LIMIT + 2, "num_labels": 3,
        "pad_token_id": PAD, "bos_token_id": START, "eos_token_id": END,
        "decoder_start_token_id": END, "forced_eos_token_id": END,
    }  # fmt: skip


CONFIGS: dict[str, Callable[[], dict[str, Any]]] = {
    "bert": _sizes,
    "roberta": _sizes,
    "distilbert": lambda: _sizes(dim=16, n_layers=2, n_heads=2, hidden_dim=24),
    "electra": lambda: _sizes(embedding_size=8),
    "albert": lambda: _sizes(embedding_size=8),
    "xlm-roberta": _sizes,
    "modernbert": lambda: _sizes(
        cls_token_id=START, sep_token_id=END, local_attention=4, global_attn_every_n_layers=2
    ),
    "gpt2": lambda: _sizes(n_embd=16, n_layer=2, n_head=2, n_positions=LIMIT + 2),
    "llama": lambda: _sizes(num_key_value_heads=1),
    "bart": _bart_sizes,
    "t5": lambda: {
        "vocab_size": len(VOCABULARY),
        "d_model": 16,
        "d_kv": 8,
        "d_ff": 24,
        "num_layers": 2,
        "num_decoder_layers": 2,
        "num_heads": 2,
        "num_labels": 3,
        "pad_token_id": PAD,
        "eos_token_id": END,
        "decoder_start_token_id": PAD,
    },
    "mpnet": _sizes,
    "deberta-v2": lambda: _sizes(
        relative_attention=True, pos_att_type=["p2c", "c2p"], position_buckets=8
    ),
    "xlnet": lambda: {
        name: value
        for name, value in _sizes(d_model=16, n_layer=2, n_head=2, d_inner=24).items()
        if name != "max_position_embeddings"
    },
    "rembert": lambda: _sizes(input_embedding_size=8),
}
"""Settings of each architecture; every one has two layers and two heads."""
OFF_INTERFACE = ("mpnet", "deberta-v2", "xlnet", "rembert")
CAUSAL = ("gpt2", "llama")


def enlarged(model: nn.Module, seed: int = 0, factor: float = 20.0) -> nn.Module:
    """The model with random weights large enough that attention is far from even."""
    generator = torch.Generator().manual_seed(seed)
    with torch.no_grad():
        for weight in model.parameters():
            noise = torch.randn(weight.shape, generator=generator).to(weight)
            if weight.dim() > 1:
                weight.copy_(noise * 0.02 * factor)
            else:
                weight.add_(noise * 0.1)
    return model.double().eval()


def transformer(kind: str, seed: int = 0, **more: Any) -> Any:
    """A random classifier of that architecture, in float64."""
    from transformers import AutoConfig, AutoModelForSequenceClassification

    config = AutoConfig.for_model(kind, **CONFIGS[kind](), **more)
    return enlarged(AutoModelForSequenceClassification.from_config(config), seed)


def tokenizer_of(kind: str) -> Any:
    """The tokenizer that suits an architecture."""
    if kind == "xlnet":
        return tokenizer("left", is_last=True)
    return tokenizer(is_causal=kind in CAUSAL)


def reader(kind: str, site: str = "pooled", **more: Any) -> Any:
    """A random classifier of that architecture that can be read and asked."""
    from heedful.models.huggingface import FastTokeniser, PretrainedClassifier

    classes = ("negative", "neutral", "positive")
    subwords = FastTokeniser(tokenizer_of(kind))
    subwords.has_types &= kind not in NO_TYPES
    return PretrainedClassifier(
        transformer(kind), subwords, classes, site=site, max_pieces=LIMIT, **more
    )


NO_TYPES = ("distilbert", "modernbert", "bart", "t5", "mpnet")
TWO_STACKS = ("bart", "t5")

OWN_CODE = """
from torch import nn
from transformers import BertModel, BertPreTrainedModel
from transformers.modeling_outputs import SequenceClassifierOutput


class MeanPooledClassifier(BertPreTrainedModel):
    def __init__(self, config):
        super().__init__(config)
        self.num_labels = config.num_labels
        self.bert = BertModel(config, add_pooling_layer=False)
        self.classifier = nn.Linear(config.hidden_size, config.num_labels)
        self.post_init()

    def forward(self, input_ids=None, attention_mask=None, **kwargs):
        passed = self.bert(input_ids, attention_mask=attention_mask, **kwargs)
        mask = attention_mask[..., None].to(passed.last_hidden_state)
        mean = (passed.last_hidden_state * mask).sum(1) / mask.sum(1)
        logits = self.classifier(mean)
        return SequenceClassifierOutput(logits=logits, hidden_states=passed.hidden_states)
"""


def save(folder: Path, kind: str, classes: Sequence[str], is_own_code: bool = False) -> Path:
    """Writes a random classifier with its tokenizer; or one that pools by code of its own."""
    named = {"id2label": dict(enumerate(classes)), "num_labels": len(classes)}
    sizes = CONFIGS[kind]() | named | {"label2id": {name: n for n, name in enumerate(classes)}}
    from transformers import AutoConfig, AutoModelForSequenceClassification

    model = AutoModelForSequenceClassification.from_config(AutoConfig.for_model(kind, **sizes))
    enlarged(model, factor=10).float().save_pretrained(folder)
    tokenizer_of(kind).save_pretrained(folder)
    if is_own_code:
        (folder / "own.py").write_text(OWN_CODE)
        config = json.loads((folder / "config.json").read_text())
        config["auto_map"] = {"AutoModelForSequenceClassification": "own.MeanPooledClassifier"}
        config["architectures"] = ["MeanPooledClassifier"]
        (folder / "config.json").write_text(json.dumps(config))
    return folder
