"""Tiny BERT and GPT-2 classifiers of `transformers` with hand-set weights that run a program.

The lower of two layers passes on what marks say, as in `known_transformers`; in the upper one the
position that the head reads attends to words and takes over what they say and remember. What it
held before is not read, unless the decision is to go *around* attention through the residual
stream. A last layer norm, and BERT's tanh, change how sure a decision is, never which class wins.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor, nn

from heedful.calibration.compiled_stream import words_between_spaces
from heedful.calibration.known_classifiers import Program
from heedful.calibration.known_documents import vocabulary_of
from heedful.calibration.known_transformers import STEEP, SURE, Coded
from heedful.corpora.vocabulary import END, PAD, START
from heedful.models.huggingface import PretrainedClassifier

LONGEST = 64
"""Words of a document and special tokens together."""
SMALL = 0.25
"""What the loudest word leaves in the context: small beside what a layer norm keeps constant."""
FLAT = 0.1
"""How far into BERT's tanh that is."""


def fresh(kind: str, classes: int, dim: int, seed: int = 0) -> PretrainedClassifier:
    """A classifier of two layers with random weights over the words of the known corpora."""
    from transformers import AutoConfig, AutoModelForSequenceClassification

    from heedful.runs.randomness import seeded

    vocabulary = vocabulary_of(classes)
    sizes: dict[str, Any] = {
        "vocab_size": len(vocabulary),
        "hidden_size": dim,
        "num_hidden_layers": 2,
        "num_attention_heads": 1,
        "max_position_embeddings": LONGEST,
        "num_labels": classes,
        "pad_token_id": PAD,
        "bos_token_id": START,
        "eos_token_id": END,
    }
    if kind == "gpt2":
        sizes |= {"n_inner": dim, "resid_pdrop": 0.0, "embd_pdrop": 0.0, "attn_pdrop": 0.0}
    else:
        sizes |= {
            "intermediate_size": dim,
            "type_vocab_size": 1,
            "hidden_dropout_prob": 0.0,
            "attention_probs_dropout_prob": 0.0,
        }
    with seeded(seed):
        config = AutoConfig.for_model(kind, **sizes)
        # Eager, so that a training can look at the weights it wants small.
        make: Any = AutoModelForSequenceClassification.from_config
        module = make(config, attn_implementation="eager")
    names = tuple(f"class {index}" for index in range(classes))
    words = words_between_spaces(vocabulary, has_frame=kind != "gpt2")
    model = PretrainedClassifier(
        module.eval(), words, names, max_pieces=LONGEST, recipe=kind, layers=2
    )
    model.tokeniser = "whitespace"
    return model


def hand_set_pretrained(
    kind: str, classes: int, program: Program, *, is_around: bool = False
) -> PretrainedClassifier:
    """A BERT (audited: what `[CLS]` attends to) or a GPT-2 (the last word) running a program.

    With `is_around` the head reads what the position itself remembers, and attention is idle.
    """
    coded = Coded(classes, program)
    # Found with random weights: where a model attends is watched on unknown words.
    model = fresh(kind, classes, 2 * coded.places.count)
    with torch.no_grad():
        for name, weight in model.model.named_parameters():
            is_norm = "LayerNorm.weight" in name or (".ln_" in name and name.endswith("weight"))
            weight.fill_(1.0 if is_norm else 0.0)
        _SET[kind](model.model, coded, is_around)
    return model


def _words(table: Tensor, coded: Coded) -> None:
    """The residual stream that each word starts with; special tokens say nothing."""
    count = len(coded.words)
    table[:-count] = torch.from_numpy(coded.nothing(is_special=False))
    table[[START, END]] = torch.from_numpy(coded.nothing(is_special=True)).to(table)
    table[-count:] = torch.from_numpy(coded.vectors())


def _asks(query: Tensor, key: Tensor, coded: Coded, is_copying: bool) -> None:
    """Sets one row of each: every position asks alike, for marks or for scores.

    Weights are [out, in]; scores are divided by the root of the dim.
    """
    places, program = coded.places, coded.program
    query[0, places.one] = math.sqrt(len(query))
    if is_copying:
        key[0, places.mark] = SURE
        return
    key[0, places.score], key[0, places.match] = coded.range, program.match
    key[0, places.special] = -SURE


def _hands_on(value: Tensor, out: Tensor, coded: Coded, is_copying: bool) -> None:
    """What attended words hand on, and where it goes: the memory, or the context."""
    places, program = coded.places, coded.program
    for index in range(coded.classes):
        if is_copying:
            value[index, places.write[index]] = 1
        else:
            value[index, places.own[index]] = SMALL
            value[index, places.memory[index]] = SMALL * program.memory / coded.loudest
        target = places.memory if is_copying else places.context
        out[:, index] = coded.mirrored(target[index], 1.0)


def _matches(inner: Tensor, bias: Tensor, outer: Tensor, coded: Coded) -> None:
    """A feed-forward part that finds words that say what is remembered."""
    below, height = coded.matching
    for index in range(coded.classes):
        inner[index, coded.places.says[index]] = inner[index, coded.places.memory[index]] = STEEP
        inner[index, coded.places.mark] = -STEEP
        bias[index] = below
        outer[:, index] = coded.mirrored(coded.places.match, height)


def _read_by_head(coded: Coded, is_around: bool) -> tuple[range, float]:
    """The attributes that the head reads, and what brings them to logits."""
    places, program = coded.places, coded.program
    if is_around:
        return places.memory, program.sharpness * program.memory
    return places.context, program.sharpness * coded.loudest / SMALL


def _set_bert(module: Any, coded: Coded, is_around: bool) -> None:
    _words(module.bert.embeddings.word_embeddings.weight, coded)
    lower, upper = module.bert.encoder.layer
    for layer, is_copying in ((lower, True), (upper, False)):
        if is_copying and not coded.remembers:
            continue
        attention = layer.attention.self
        _asks(attention.query.weight, attention.key.weight, coded, is_copying)
        _hands_on(attention.value.weight, layer.attention.output.dense.weight, coded, is_copying)
    # BERT norms what was added to: the memory has lengthened it by a known factor, for good.
    for norm in (lower.attention.output.LayerNorm, lower.output.LayerNorm):
        norm.weight.mul_(coded.growth)
    if coded.program.match:
        dense = lower.intermediate.dense
        _matches(dense.weight, dense.bias, lower.output.dense.weight, coded)
    read, times = _read_by_head(coded, is_around)
    flat = FLAT / (1.0 if is_around else SMALL)
    for index in range(coded.classes):
        module.bert.pooler.dense.weight[index, read[index]] = flat
        module.classifier.weight[index, index] = times / flat


def _set_gpt2(module: Any, coded: Coded, is_around: bool) -> None:
    _words(module.transformer.wte.weight, coded)
    lower, upper = module.transformer.h
    dim = 2 * coded.places.count
    for layer, is_copying in ((lower, True), (upper, False)):
        if is_copying and not coded.remembers:
            continue
        query, key, value, out = torch.zeros(4, dim, dim)
        _asks(query, key, coded, is_copying)
        _hands_on(value, out, coded, is_copying)
        layer.attn.c_attn.weight.copy_(torch.cat([query, key, value]).T)  # stored as [in, out]
        layer.attn.c_proj.weight.copy_(out.T)
    if coded.program.match:
        inner, outer = torch.zeros(2, dim, dim)
        _matches(inner, lower.mlp.c_fc.bias, outer, coded)
        lower.mlp.c_fc.weight.copy_(inner.T)
        lower.mlp.c_proj.weight.copy_(outer.T)
    for norm in (lower.ln_2, upper.ln_1, module.transformer.ln_f):
        norm.weight.mul_(coded.growth)
    read, times = _read_by_head(coded, is_around)
    for index in range(coded.classes):
        module.score.weight[index, read[index]] = times


_SET: dict[str, Callable[[nn.Module, Coded, bool], None]] = {"bert": _set_bert, "gpt2": _set_gpt2}
