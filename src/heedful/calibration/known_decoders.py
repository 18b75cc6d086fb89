"""Decoders built by hand that answer from one source, so that it is known what may be shown.

One layer of GPT-2 without its feed-forward part. A source is one piece that holds a key and a
value; the question is a key, the answer a value. What reads them is one of four:

* `all heads`: every head looks for the source with the question's key and copies its value.
* `some heads`: so do one or two of eight; the others look for another source and copy nothing.
* `loud value`: attention is even, and one source's value outweighs the others; no attention shows
  which. Nobody can be shown it by weighing heads.
* `no source`: the answer is the same whatever the sources say.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pandas as pd
import torch

from heedful.audits.answers import AnswerVerdict, Word, judge, summarise
from heedful.corpora.questions import PromptSource, Question
from heedful.importance.sources import heads_on_dev
from heedful.jobs.one_answer import AskedQuestion, examined, heads_and_effects
from heedful.models.huggingface.question_prompts import AnswerPrompt

RIGHT: dict[str, Word] = {
    "all heads": "attention as it is",
    "some heads": "these heads, so weighted",
    "loud value": "no",
    "no source": "cannot tell",
}
"""The word that each kind should get."""
KEYS = VALUES = 8
HEADS, DIM = 8, 8
QUIET = 0.05
"""What a source that is not loud gives of its value."""
START, FIRST_QUESTION, FIRST_VALUE, FIRST_SOURCE = 0, 1, 1 + KEYS, 1 + KEYS + VALUES
FREE = FIRST_SOURCE + 2 * KEYS * VALUES
"""The question without content."""
DEV, AUDITED = 16, 40


@dataclass(frozen=True)
class KnownDecoder:
    """A decoder and how its heads were drawn."""

    kind: str
    model: Any
    seed: int


def known_decoder(kind: str, seed: int = 0) -> KnownDecoder:
    """The decoder of a kind: which heads look and how sharply is drawn by the seed."""
    from transformers import GPT2Config, GPT2LMHeadModel

    drawn = np.random.default_rng(seed)
    width = HEADS * DIM
    config = GPT2Config(
        vocab_size=FREE + 1, n_positions=32, n_embd=width, n_layer=1, n_head=HEADS, n_inner=1,
        tie_word_embeddings=False, bos_token_id=START, eos_token_id=START,
    )  # fmt: skip
    kind_of_model: Any = GPT2LMHeadModel
    model = kind_of_model(config).double().eval()
    with torch.no_grad():
        for weight in model.parameters():
            weight.zero_()
        block = model.transformer.h[0]
        for norm in (block.ln_1, block.ln_2, model.transformer.ln_f):
            norm.weight.fill_(1)
        _embed(model.transformer.wte.weight, kind)
        model.lm_head.weight[FIRST_VALUE : FIRST_VALUE + VALUES, 24:32] = torch.eye(VALUES) * 2
        looking = range(HEADS)
        if kind == "some heads":
            looking = drawn.choice(HEADS, int(drawn.integers(1, 3)), replace=False).tolist()
        for head in range(HEADS):
            sharp = 0.0 if kind in ("loud value", "no source") else float(drawn.uniform(1.5, 3))
            _head(block.attn, head, sharp, is_looking=head in looking, copies=kind != "no source")
        if kind == "no source":
            model.transformer.wpe.weight[:, 24] = 0.1
    return KnownDecoder(kind, model, seed)


def _embed(table: torch.Tensor, kind: str) -> None:
    """Keys at 0 to 7, values at 8 to 15, questions at 16 to 23; what heads copy goes to 24 on."""
    table[START, 40] = table[FREE, 41] = 1
    for key in range(KEYS):
        table[FIRST_QUESTION + key, 16 + key] = 1
        for value in range(VALUES):
            for loud in range(2):
                source = table[_source(key, value, bool(loud))]
                source[key] = 1
                source[8 + value] = QUIET if kind == "loud value" and not loud else 1


def _source(key: int, value: int, is_loud: bool) -> int:
    return FIRST_SOURCE + (2 * key + is_loud) * VALUES + value


def _head(attention: Any, head: int, sharp: float, is_looking: bool, copies: bool) -> None:
    """A head that looks for the question's key, or for the one after it, and perhaps copies."""
    width, here = HEADS * DIM, slice(head * DIM, (head + 1) * DIM)
    query, key, value = (
        attention.c_attn.weight[:, part * width : (part + 1) * width][:, here] for part in range(3)
    )
    sought = torch.eye(KEYS).roll(0 if is_looking else 1, dims=1).to(query)
    query[16:24] = sharp * sought
    key[0:8] = torch.eye(KEYS).to(key)
    value[8:16] = torch.eye(VALUES).to(value)
    if is_looking and copies:
        attention.c_proj.weight[here, 24:32] = torch.eye(VALUES).to(value) / HEADS


def known_questions(decoder: KnownDecoder, count: int) -> list[AskedQuestion]:
    """Questions with the source that holds the answer among six or more, and its value."""
    drawn = np.random.default_rng((decoder.seed, 1))
    asked = []
    for number in range(count):
        sources = int(drawn.integers(6, KEYS + 1))
        keys = drawn.permutation(KEYS)[:sources].tolist()
        values = drawn.permutation(VALUES)[:sources].tolist()
        right = int(drawn.integers(sources))
        pieces = tuple(
            (_source(key, value, place == right),)
            for place, (key, value) in enumerate(zip(keys, values, strict=True))
        )
        prompt = AnswerPrompt(
            (START,), pieces, (FIRST_QUESTION + keys[right],), (FIRST_VALUE + values[right],)
        )
        known = tuple(PromptSource("", is_evidence=place == right) for place in range(sources))
        asked.append(AskedQuestion(Question(f"known-{number}", "", known), prompt, True))
    return asked


class _Pieces:
    """What an examination needs of a tokenizer."""

    def free(self, prompt: AnswerPrompt) -> AnswerPrompt:
        return replace(prompt, after=(FREE,))

    def shown(self, pieces: Sequence[int]) -> list[str]:
        return [str(piece) for piece in pieces]


def word_of(decoder: KnownDecoder, audited: int = AUDITED, removals: int = 16) -> AnswerVerdict:
    """What an audit of this decoder's answers says."""
    pieces: Any = _Pieces()
    asked = known_questions(decoder, DEV + audited)
    dev = [heads_and_effects(decoder.model, one) for one in asked[:DEV]]
    heads = heads_on_dev(
        [np.array(one["heads"]) for one in dev], [np.array(one["effects"]) for one in dev]
    )
    rows = [
        row
        for one in asked[DEV:]
        for row in examined(decoder.model, pieces, one, heads, removals, decoder.seed)["rows"]
    ]
    return judge(summarise(pd.DataFrame(rows)))
