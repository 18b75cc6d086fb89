"""Noise that belongs to an instance: keyed by (seed, name), never by batch, padding or device.

A value is a hash of its address, so nothing has to be drawn in order: shards, machines and batch
sizes cannot change it. torch is imported where tensors are made: keys alone do not need it.
"""

from __future__ import annotations

import hashlib
import operator
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, SupportsIndex

import numpy as np
from jaxtyping import Bool, Float, Int, Int64

from heedful.errors import InputError

if TYPE_CHECKING:
    import torch
    from torch import Tensor

# SplitMix64: the increment and the two multipliers of its finaliser, as signed numbers.
_GOLDEN = 0x9E3779B97F4A7C15 - 2**64
_FIRST = 0xBF58476D1CE4E5B9 - 2**64
_SECOND = 0x94D049BB133111EB - 2**64
_POSITIONS = 2**20 - 1
"""Low bits of a packed number that hold a unit's position: up to a million units."""


def key(seed: SupportsIndex, *parts: str | SupportsIndex) -> int:
    """A 64-bit key (signed) of a seed and any strings and whole numbers, the same everywhere."""
    return _finished(_started(seed, parts))


def keys(
    seed: SupportsIndex, names: Sequence[str], *parts: str | SupportsIndex
) -> Int64[np.ndarray, " batch"]:
    """The key of each instance: `key(seed, *parts, name)` for every name.

    `parts` say what the noise is for, so that two uses of one seed are independent.
    """
    start = _started(seed, parts)
    found = np.empty(len(names), dtype=np.int64)
    for row, name in enumerate(names):
        state = start.copy()
        state.update(_part(name))
        found[row] = _finished(state)
    return found


def uniform_noise(
    keys: Int[Tensor, " batch"] | Int[np.ndarray, " batch"],
    *shape: int,
    device: torch.device | str | None = None,
) -> Float[Tensor, " batch *shape"]:
    """Uniform numbers in [0, 1) in float64, each a hash of (key, index on axis 1, index on 2, …).

    Every axis is hashed in turn, so a longer axis (padding, more draws) keeps the values of a
    shorter one. Without a device, the one the keys are on.
    """
    import torch

    # The upper 53 bits fill a double's mantissa exactly.
    return _shifted(_hashed(keys, shape, device), 11).to(torch.float64) * 2.0**-53


def random_permutations(
    keys: Int[Tensor, " batch"] | Int[np.ndarray, " batch"],
    mask: Bool[Tensor, "batch unit"],
    draws: int,
) -> Int[Tensor, "batch draw unit"]:
    """Uniformly random orders of each instance's units; padding keeps its order at the end.

    Each unit's noise is packed with its position into one whole number, so that a plain sort, much
    faster than an argsort, carries the positions along.
    """
    import torch

    position = torch.arange(mask.shape[-1], device=mask.device)
    noise = _shifted(_hashed(keys, (draws, mask.shape[-1]), mask.device), 1)
    noise.masked_fill_(~mask[:, None], torch.iinfo(torch.int64).max)
    packed = (noise & ~_POSITIONS) | position
    if packed.device.type == "cpu":  # numpy's sort uses the processor's vector units
        packed.numpy().sort(axis=-1)
    else:
        packed = packed.sort(dim=-1).values
    return packed & _POSITIONS


def numpy_generator(seed: SupportsIndex, *parts: str | SupportsIndex) -> np.random.Generator:
    """A numpy generator for sequential drawing, keyed like everything else."""
    return np.random.default_rng(key(seed, *parts) % 2**64)


@contextmanager
def seeded(seed: int) -> Iterator[None]:
    """torch's global generators (CPU and every CUDA device) seeded inside, as before outside.

    For layers that draw from the global generator (dropout, initialisation) and take no other.
    """
    import torch

    if not -(2**63) <= seed < 2**63:
        raise InputError(f"A seed is a whole number of at most 63 bits, got {seed}.")
    devices = range(torch.cuda.device_count()) if torch.cuda.is_available() else ()
    with torch.random.fork_rng(devices=list(devices)):
        torch.manual_seed(seed)
        yield


def _hashed(
    keys: Int[Tensor, " batch"] | Int[np.ndarray, " batch"],
    shape: Sequence[int],
    device: torch.device | str | None,
) -> Int64[Tensor, " batch *shape"]:
    """64 random bits for every (key, index, index, …); the keys are hashes already."""
    import torch

    state = torch.as_tensor(keys).to(device=device, dtype=torch.int64)
    for size in shape:
        index = torch.arange(1, size + 1, device=state.device)
        state = _mixed(state[..., None] + index * _GOLDEN)
    return state


def _started(seed: SupportsIndex, parts: Sequence[str | SupportsIndex]) -> hashlib.blake2b:
    return hashlib.blake2b(_part(seed) + b"".join(map(_part, parts)), digest_size=8)


def _finished(state: hashlib.blake2b) -> int:
    return int.from_bytes(state.digest(), "little", signed=True)


def _part(part: str | SupportsIndex) -> bytes:
    """A part with its kind and length, so that ("ab", "c"), ("a", "bc") and 1, "1" all differ."""
    if isinstance(part, str):
        text = part.encode("utf-8", "surrogatepass")
        return b"s%d:%s" % (len(text), text)
    return b"i%d;" % operator.index(part)


def _shifted(state: Int64[Tensor, "*shape"], bits: int) -> Int64[Tensor, "*shape"]:
    """A logical right shift: torch's is arithmetic, so the copies of the sign are masked off."""
    return (state >> bits).bitwise_and_((1 << (64 - bits)) - 1)


def _mixed(state: Int64[Tensor, "*shape"]) -> Int64[Tensor, "*shape"]:
    """SplitMix64's finaliser, in place; multiplication wraps around in int64."""
    state.bitwise_xor_(_shifted(state, 30)).mul_(_FIRST)
    state.bitwise_xor_(_shifted(state, 27)).mul_(_SECOND)
    return state.bitwise_xor_(_shifted(state, 31))
