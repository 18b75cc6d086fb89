"""Sequence tasks that make their own data: copying permutations, and finding a keyword.

Fresh samples at every step, drawn on the device that trains on them. A sample is a hash of (seed,
purpose, step, its number), so the data of a seed is the same alone, in a stack and on every
machine.

Symbols are numbered from 0; a copying task of V symbols has two more: V ends a sequence, V + 1
starts one.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, NamedTuple

import torch
from jaxtyping import Int
from torch import Tensor

from heedful.errors import InputError
from heedful.runs.randomness import key, random_permutations, uniform_noise

KEYWORD = 0
"""The symbol whose presence makes a sequence of the keyword task positive."""

Purpose = Literal["train", "evaluate"]


class Sequences(NamedTuple):
    """Pairs of sequences of one length for several seeds, ready for teacher forcing."""

    source: Int[Tensor, "seed batch unit"]
    """The symbols, then the end."""
    before: Int[Tensor, "seed batch step"]
    """What the decoder has written: the start, then the target's symbols."""
    target: Int[Tensor, "seed batch step"]
    """What it should write next: the target's symbols, then the end."""


class Keywords(NamedTuple):
    """Sequences of the keyword task for several seeds."""

    ids: Int[Tensor, "seed batch unit"]
    labels: Int[Tensor, "seed batch"]
    """1 where the keyword occurs."""
    place: Int[Tensor, "seed batch"]
    """Where it occurs; -1 where it does not."""


@dataclass(frozen=True)
class Copying:
    """Copy `length` distinct symbols out of `symbols`, in random order.

    See docs/studies/dynamics.md, "Copying".
    """

    symbols: int = 60
    """How many symbols there are."""
    length: int = 40
    """How many of them a sequence holds."""
    blocks: int = 1
    """More than one: a mixture, every sequence is drawn from one of so many disjoint blocks."""
    is_reordered: bool = False
    """Whether the target is the source under a permutation of positions, fixed for each seed."""

    def __post_init__(self) -> None:
        if self.length < 1 or self.blocks < 1 or self.symbols % self.blocks:
            raise InputError(
                f"a copying task needs a length of at least 1 and blocks of equal size, got "
                f"{self.length} of {self.symbols} symbols in {self.blocks} blocks."
            )
        if self.length > self.symbols // self.blocks:
            raise InputError(
                f"{self.length} distinct symbols cannot be drawn from "
                f"{self.symbols // self.blocks}; lower length or raise symbols."
            )

    @property
    def name(self) -> str:
        """As the paper calls it: 40-of-60, mixture of 2 x 40, reordered 40-of-60."""
        block = self.symbols // self.blocks
        drawn = f"{self.length}-of-{block}"
        found = drawn if self.blocks == 1 else f"mixture of {self.blocks} x {drawn}"
        return f"reordered {found}" if self.is_reordered else found

    @property
    def end(self) -> int:
        """The symbol that ends a sequence."""
        return self.symbols

    @property
    def start(self) -> int:
        """The symbol that starts one."""
        return self.symbols + 1

    @property
    def vocabulary(self) -> int:
        """Symbols with start and end."""
        return self.symbols + 2

    @property
    def chance(self) -> float:
        """Accuracy without attention of who remembers what was written, the end included.

        1 / (n + 1) (1 + Σ 1 / (symbols left)) over the symbols left of a block at each step; .13
        for 40-of-40.
        """
        block = self.symbols // self.blocks
        return (1 + sum(1 / (block - t) for t in range(self.length))) / (self.length + 1)

    def keys(
        self,
        seeds: Sequence[int],
        step: int,
        purpose: Purpose = "train",
        device: torch.device | str = "cpu",
    ) -> Int[Tensor, " seed"]:
        """One number per seed that the samples of a step follow from."""
        parts = "copying", self.symbols, self.length, self.blocks, purpose, step
        return torch.tensor([key(seed, *parts) for seed in seeds], device=device)

    def orders(
        self, seeds: Sequence[int], device: torch.device | str = "cpu"
    ) -> Int[Tensor, "seed unit"]:
        """Where each target symbol stands in the source: in place, or by a seed's permutation."""
        here = torch.arange(self.length, device=device).expand(len(seeds), -1)
        if not self.is_reordered:
            return here
        fixed = torch.tensor([key(seed, "reordered", self.length) for seed in seeds], device=device)
        return random_permutations(fixed, torch.ones_like(here, dtype=torch.bool), 1)[:, 0]

    def sample(
        self, keys: Int[Tensor, " seed"], batch: int, orders: Int[Tensor, "seed unit"]
    ) -> Sequences:
        """So many pairs for every seed, on the keys' device."""
        block = self.symbols // self.blocks
        everything = torch.ones(len(keys), block, dtype=torch.bool, device=keys.device)
        drawn = random_permutations(keys, everything, batch)[..., : self.length]
        if self.blocks > 1:
            # ~keys is another key, so the choice of block and the order are independent.
            chosen = uniform_noise(~keys, batch) * self.blocks
            drawn = drawn + block * chosen.long()[..., None]
        copied = drawn.gather(2, orders[:, None].expand_as(drawn))
        ends = drawn.new_full((len(keys), batch, 1), self.end)
        starts = torch.full_like(ends, self.start)
        return Sequences(
            source=torch.cat([drawn, ends], -1),
            before=torch.cat([starts, copied], -1),
            target=torch.cat([copied, ends], -1),
        )


@dataclass(frozen=True)
class Keyword:
    """Does the keyword occur? Positives hold it exactly once.

    See docs/studies/dynamics.md, "Keyword".
    """

    symbols: int = 40
    length: int = 40

    def __post_init__(self) -> None:
        if self.symbols < 2 or self.length < 2:
            raise InputError(
                f"the keyword task needs two symbols and two positions, got {self.symbols} and "
                f"{self.length}."
            )

    def keys(
        self,
        seeds: Sequence[int],
        step: int,
        purpose: Purpose = "train",
        device: torch.device | str = "cpu",
    ) -> Int[Tensor, " seed"]:
        """One number per seed that the samples of a step follow from."""
        parts = "keyword", self.symbols, self.length, purpose, step
        return torch.tensor([key(seed, *parts) for seed in seeds], device=device)

    def sample(self, keys: Int[Tensor, " seed"], batch: int) -> Keywords:
        """So many sequences for every seed, every other one positive.

        Other symbols everywhere, the keyword written over one of them: the law of drawing until it
        occurs exactly once.
        """
        noise = uniform_noise(keys, batch, self.length)
        ids = 1 + (noise * (self.symbols - 1)).long()
        chosen = (uniform_noise(~keys, batch) * self.length).long()
        labels = (torch.arange(batch, device=keys.device) % 2).expand(len(keys), -1)
        place = torch.where(labels == 1, chosen, -1)
        here = torch.arange(self.length, device=keys.device) == place[..., None]
        return Keywords(ids.masked_fill(here, KEYWORD), labels, place)
