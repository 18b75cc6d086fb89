"""Poisson resampling keyed by instance: the resampled sums of shards add up to the whole's."""

from collections.abc import Sequence
from functools import lru_cache
from math import exp, factorial

import numpy as np
from jaxtyping import UInt8

from heedful.runs.randomness import keys, uniform_noise

# P(Poisson(1) <= k); beyond k = 17 no double below 1 can reach.
_CUMULATIVE = np.cumsum([exp(-1) / factorial(k) for k in range(18)])
_CHUNK = 1024  # instances hashed at once: 1,000 replicates of them take 8 MiB


def resampling_weights(
    names: Sequence[str], seed: int = 0, replicates: int = 1000
) -> UInt8[np.ndarray, "replicate instance"]:
    """How often each replicate draws each instance: Poisson(1), a hash of (seed, name, replicate).

    In the usual bootstrap the counts of all instances hang together; here each instance has its
    own, so a shard can be resampled without the others. Equal names get equal weights, which
    resamples them together. The array is read-only and shared by the last few callers.
    """
    return _weights(tuple(names), seed, replicates)


@lru_cache(maxsize=4)
def _weights(
    names: tuple[str, ...], seed: int, replicates: int
) -> UInt8[np.ndarray, "replicate instance"]:
    import torch

    instances = torch.from_numpy(keys(seed, names, "resampling"))
    thresholds = torch.from_numpy(_CUMULATIVE)
    weights = np.empty((replicates, len(names)), dtype=np.uint8)
    for start in range(0, len(names), _CHUNK):
        noise = uniform_noise(instances[start : start + _CHUNK], replicates)
        counts = torch.bucketize(noise, thresholds, right=True, out_int32=True)
        weights[:, start : start + _CHUNK] = counts.numpy().T
    weights.setflags(write=False)
    return weights
