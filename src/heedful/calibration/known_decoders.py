"""Decoders built by hand that answer from their sources, so that it is known what may be shown.

GPT-2 without its feed-forward parts, in float64. A source is one piece with a key and a value; the
question is one piece that asks for a key, the answer a value. What each head looks for and whether
it hands the values on is said in `decoders.toml`, decoder by decoder.
"""

from __future__ import annotations

import math
import tomllib
from dataclasses import dataclass, field
from functools import cache
from itertools import product
from pathlib import Path
from typing import Any, Literal, NamedTuple, TypeAlias

import numpy as np
import torch
from jaxtyping import Float64

from heedful.errors import InputError
from heedful.runs.randomness import numpy_generator

KEYS, VALUES = 16, 8
LENGTH = 32
"""Pieces of the longest prompt."""
NORM = 8.0
"""Of every piece's vector, so that a layer's norm multiplies all of them by the same number."""
Feature: TypeAlias = Literal[
    "key", "value", "asked", "also", "next", "hop", "said",
    "start", "source", "loud", "marked", "question", "place", "first", "balance",
]  # fmt: skip
SIZES: dict[Feature, int] = {
    "key": KEYS, "value": VALUES, "asked": KEYS, "also": KEYS, "next": KEYS, "hop": KEYS,
    "said": VALUES, "start": 1, "source": 1, "loud": 1, "marked": 1, "question": 1, "place": 1,
    "first": 1, "balance": 2,
}  # fmt: skip
"""What a piece's vector says, and in how many numbers."""
STARTS = dict(zip(SIZES, np.cumsum([0, *SIZES.values()]).tolist(), strict=False))
STEP = 0.1
"""How much later a place is than the one before it."""


class Piece(NamedTuple):
    """What one piece of a prompt says; -1 is nothing."""

    kind: Literal["start", "free", "source", "question", "value"]
    key: int = -1
    value: int = -1
    """Of a question: what the model remembers of it."""
    other: int = -1
    """Of a source the key that it names, of a question the second key that it asks for."""
    is_loud: bool = False
    is_marked: bool = False


@dataclass(frozen=True)
class Heads:
    """Heads of one layer that do the same."""

    does: Literal[
        "asked", "also", "hop", "wrong", "marked", "loud", "first", "last", "even", "fond", "start"
    ]
    """What they look for: the source with the asked key (or another), by mark, by place, …"""
    count: int = 1
    layer: int = 0
    margin: float = 6.0
    """By how many nats what they look for is ahead of another source."""
    copies: float = 0.0
    """How much of the value that they see they hand on, all together."""
    links: float = 0.0
    """How much of the key that is named in what they see."""
    noise: float = 0.0
    """Spread of a fondness for single keys, in nats, each head its own."""


@dataclass(frozen=True)
class DecoderProgram:
    """A decoder as `decoders.toml` has it."""

    name: str
    family: str
    """Decoders of one family are one observation."""
    says: str
    """What decides, so that a stranger can predict the right word."""
    heads: tuple[Heads, ...]
    sources: tuple[int, int] = (6, 10)
    """Fewest and most."""
    agree: int = 1
    """Sources with the asked key that say the answer."""
    against: int = 0
    """Sources with the asked key that say another value."""
    is_asked_also: bool = False
    """Whether a source with a second key says the answer too."""
    is_chain: bool = False
    """Whether the source with the asked key names another, which has the value."""
    marked: Literal["none", "wrong", "right"] = "none"
    loud: Literal["none", "wrong", "right"] = "none"
    quiet: float = 1.0
    """What a source that is not loud gives of its value."""
    place: Literal["anywhere", "first", "last"] = "anywhere"
    """Where the source with the answer stands."""
    memory: float = 0.0
    """How much the question alone says a value."""
    remembered: Literal["another", "the answer"] = "another"
    from_memory: float = 0.0
    """Share of the questions that ask for a key of no source and are answered from memory."""
    sink: float = 0.0
    """By how many nats the first token is ahead of a source, for every head."""
    temper: float = 6.0
    """Nats between a value that is said wholly and one that is not."""
    all_matter: bool = False
    """Whether every source may matter, not those alone that the question is about."""
    layers: int = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "layers", 1 + max(one.layer for one in self.heads))
        if len({sum(h.count for h in self.heads if h.layer == n) for n in range(self.layers)}) > 1:
            raise InputError(f"{self.name}: all layers must have the same number of heads.")

    @property
    def per_layer(self) -> int:
        """Heads of a layer."""
        return sum(one.count for one in self.heads if one.layer == 0)

    @property
    def width(self) -> int:
        """Numbers in a piece's vector: as many as it says, and for each head more than keys."""
        return self.per_layer * max(KEYS + VALUES, -(-sum(SIZES.values()) // self.per_layer))


@dataclass(frozen=True)
class KnownDecoder:
    """A decoder and which of its heads do what."""

    program: DecoderProgram
    model: Any
    seed: int
    groups: tuple[tuple[int, ...], ...]
    """Heads by number (layer by layer) of each line of the program."""


@cache
def pieces() -> dict[Piece, int]:
    """Every piece there is, with its number."""
    nothing, keys, values = (-1,), range(KEYS), range(VALUES)
    flags = (False, True)
    told = [Piece("start"), Piece("free"), *(Piece("value", value=value) for value in values)]
    told += [
        Piece("source", *one) for one in product((-1, *keys), (-1, *values), nothing, flags, flags)
    ]
    told += [Piece("source", key, -1, other) for key, other in product(keys, keys)]
    told += [Piece("question", *one) for one in product((-1, *keys), (-1, *values), (-1, *keys))]
    return {one: number for number, one in enumerate(told)}


@cache
def programs() -> dict[str, DecoderProgram]:
    """All decoders of `decoders.toml`, by name."""
    stored = tomllib.loads(Path(__file__).with_name("decoders.toml").read_text(encoding="utf-8"))
    found = {}
    for name, given in stored.items():
        heads = tuple(Heads(**one) for one in given.pop("heads"))
        sources = tuple(given.pop("sources", (6, 10)))
        found[name] = DecoderProgram(name=name, heads=heads, sources=sources, **given)
    return found


def known_decoder(program: DecoderProgram, seed: int = 0) -> KnownDecoder:
    """The decoder of a program: which heads do what is drawn by the seed."""
    from transformers import GPT2Config, GPT2LMHeadModel

    drawn = numpy_generator(seed, "decoder", program.name)
    config = GPT2Config(
        vocab_size=len(pieces()), n_positions=LENGTH, n_embd=program.width, n_layer=program.layers,
        n_head=program.per_layer, n_inner=1, tie_word_embeddings=False, bos_token_id=0,
        eos_token_id=0,
    )  # fmt: skip
    kind_of_model: Any = GPT2LMHeadModel
    model = kind_of_model(config).double().eval()
    with torch.no_grad():
        for weight in model.parameters():
            weight.zero_()
        body = model.transformer
        for norm in (*(n for block in body.h for n in (block.ln_1, block.ln_2)), body.ln_f):
            norm.weight.fill_(NORM / math.sqrt(program.width))  # so that a feature stays what it is
        body.wte.weight.copy_(torch.from_numpy(_vectors(program)))
        for place in range(LENGTH):
            body.wpe.weight[place, STARTS["place"]] = STEP * place
        body.wpe.weight[1, STARTS["first"]] = 1
        first, said = pieces()[Piece("value", value=0)], _block("said")
        model.lm_head.weight[first : first + VALUES, said] = torch.eye(VALUES).double()
        model.lm_head.weight *= program.temper
        groups = _write_heads(body.h, program, drawn)
    return KnownDecoder(program, model, seed, groups)


def _block(name: Feature) -> slice:
    return slice(STARTS[name], STARTS[name] + SIZES[name])


def _vectors(program: DecoderProgram) -> Float64[np.ndarray, "piece number"]:
    """What every piece says, with what makes its mean 0 and its norm that of all others."""
    found = np.zeros((len(pieces()), program.width))
    for row, piece in enumerate(pieces()):
        said = _said(piece, program)
        for (name, number), much in said.items():
            if number >= 0:
                found[row, STARTS[name] + number] = much
    total, square = found.sum(1), np.square(found).sum(1)
    # a + b = −total and a² + b² = NORM² − square
    middle = -total / 2
    apart = np.sqrt((NORM**2 - square) / 2 - middle**2)
    found[:, _block("balance")] = np.stack([middle + apart, middle - apart], 1)
    return found


def _said(piece: Piece, program: DecoderProgram) -> dict[tuple[Feature, int], float]:
    """What one piece says, by feature and number; a number of -1 is nothing."""
    if piece.kind == "start":
        return {("start", 0): 1.0}
    if piece.kind == "value":
        return {}
    if piece.kind == "source":
        return {
            ("source", 0): 1.0,
            ("key", piece.key): 1.0,
            ("value", piece.value): 1.0 if piece.is_loud else program.quiet,
            ("next", piece.other): 1.0,
            ("loud", 0): float(piece.is_loud),
            ("marked", 0): float(piece.is_marked),
        }
    return {
        ("question", 0): 1.0,
        ("asked", piece.key): 1.0,
        ("also", piece.other): 1.0,
        ("said", piece.value): program.memory,
    }


def _write_heads(
    blocks: Any, program: DecoderProgram, drawn: np.random.Generator
) -> tuple[tuple[int, ...], ...]:
    """Every head's weights; which head of its layer does what is drawn."""
    places = [drawn.permutation(program.per_layer).tolist() for _ in range(program.layers)]
    groups = []
    for line in program.heads:
        chosen = [places[line.layer].pop() for _ in range(line.count)]
        for head in chosen:
            _write_head(blocks[line.layer].attn, head, line, program, drawn)
        groups.append(tuple(line.layer * program.per_layer + head for head in chosen))
    return tuple(groups)


def _write_head(
    attention: Any, head: int, line: Heads, program: DecoderProgram, drawn: np.random.Generator
) -> None:
    """What a head looks for, in nats, and what it hands on.

    Its first numbers compare keys; the one behind them weighs what holds of a piece whoever asks.
    """
    size = program.width // program.per_layer
    here, root = slice(head * size, (head + 1) * size), math.sqrt(size)
    weights, bias = attention.c_attn.weight, attention.c_attn.bias
    query, key, value = (weights[:, part * program.width :][:, here] for part in range(3))
    every, values = torch.eye(KEYS).to(query), torch.eye(VALUES).to(query)
    key[_block("key"), :KEYS] = every
    seeks: dict[str, Feature] = {"asked": "asked", "also": "also", "hop": "hop", "wrong": "asked"}
    if line.does in seeks:
        shift = 1 if line.does == "wrong" else 0
        query[_block(seeks[line.does]), :KEYS] = every.roll(shift, dims=1) * line.margin * root
    spread = line.noise + (line.margin if line.does == "fond" else 0)
    bias[here][:KEYS] = torch.from_numpy(drawn.normal(size=KEYS)) * spread * root
    bias[here][KEYS] = root
    weighed: dict[Feature, float] = {"start": program.sink, "question": -8.0}
    if line.does in ("marked", "loud", "first", "start"):
        weighed[line.does] = line.margin
    if line.does == "last":  # three nats' worth of places make the margin
        weighed |= {"place": line.margin / 3 / STEP, "question": -8.0 - LENGTH * line.margin / 3}
    for name, much in weighed.items():
        key[STARTS[name], KEYS] = much
    handed = attention.c_proj.weight[here]
    if line.links:
        value[_block("next"), :KEYS] = every
        handed[:KEYS, _block("hop")] = every * line.links / line.count
    else:
        value[_block("value"), :VALUES] = values
        handed[:VALUES, _block("said")] = values * line.copies / line.count
