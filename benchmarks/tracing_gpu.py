"""What tracing costs on long texts of a GPU, as one JSON.

`python -m benchmarks.tracing_gpu` traces 6 layers of 12 heads in bfloat16 without any matrix: its
time against that of the same fused attention alone, its memory above a forward pass, and how the
memory grows with the number of tokens.
"""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Callable, Sequence

import torch
from torch import Tensor
from torch.nn import functional

from benchmarks.timing import exponent
from heedful.models.tracing import Fused, Layer, LayerStack, lat, rollout, trace
from heedful.models.transformer import Encoder, EncoderLayer
from heedful.models.transformer_config import TransformerConfig

LAYERS, HEADS, DIM = 6, 12, 64
TIMES, ABOVE, GROWTH = 6.0, 2**30, 1.1
"""Limits: times the fused attention alone, bytes above the forward pass, exponent of memory."""


def layers_of(tokens: int, device: str, dtype: torch.dtype) -> list[Fused]:
    """Random queries and keys of every layer."""
    generator = torch.Generator(device).manual_seed(0)

    def drawn() -> Tensor:
        shape = (1, HEADS, tokens, DIM)
        return torch.randn(shape, generator=generator, device=device, dtype=dtype)

    return [Fused(drawn(), drawn()) for _ in range(LAYERS)]


def seconds(function: Callable[[], object], device: str, repeats: int) -> float:
    """Median seconds of a call, after two that warm up."""
    samples = []
    for number in range(repeats + 2):
        started = time.perf_counter()
        function()
        if device == "cuda":
            torch.cuda.synchronize()
        if number > 1:
            samples.append(time.perf_counter() - started)
    return sorted(samples)[len(samples) // 2]


def times(tokens: int, device: str, dtype: torch.dtype, repeats: int) -> dict[str, float]:
    """Seconds of the fused attention of all layers alone, of LAT and of rollout."""
    layers = layers_of(tokens, device, dtype)
    value = torch.randn_like(layers[0].query)
    start = torch.rand(1, tokens, device=device)
    start = start / start.sum()

    def attention() -> None:
        for layer in layers:
            functional.scaled_dot_product_attention(layer.query, layer.key, value)

    stack = LayerStack(tuple(layers), start, torch.ones(1, tokens, dtype=torch.bool, device=device))
    with torch.no_grad():
        found = {
            "attention": seconds(attention, device, repeats),
            "lat": seconds(lambda: lat(stack), device, repeats),
            "rollout": seconds(lambda: rollout(stack), device, repeats),
        }
    return found | {"lat over attention": found["lat"] / found["attention"]}


def memory(tokens: int, dtype: torch.dtype) -> dict[str, float]:
    """Peak bytes of a forward pass, and of the same pass with everything kept and traced."""
    config = TransformerConfig(
        embedding_dim=HEADS * DIM, layers=LAYERS, heads=HEADS, head_dim=DIM, feed_forward=3072
    )
    encoder = Encoder(config).to("cuda", dtype).eval()
    inputs = torch.randn(1, tokens, config.embedding_dim, device="cuda", dtype=dtype)
    mask = torch.ones(1, tokens, dtype=torch.bool, device="cuda")

    def forward() -> Tensor:
        stream = inputs
        for layer in encoder.layers:
            assert isinstance(layer, EncoderLayer)
            stream = layer(stream, layer.attention(stream, None))
        return encoder.pool(encoder.norm(stream), mask).scores

    def traced() -> Tensor:
        states, layers = encoder(inputs, mask)
        pooling = encoder.pool(states, mask).scores.float().softmax(-1)
        kept: Sequence[Layer] = layers
        return trace(kept, pooling).total

    return {"forward": _peak(forward), "traced": _peak(traced)}


def _peak(function: Callable[[], object]) -> float:
    with torch.no_grad():
        function()
        torch.cuda.synchronize()
        torch.cuda.empty_cache()
        before = torch.cuda.memory_allocated()
        torch.cuda.reset_peak_memory_stats()
        function()
        torch.cuda.synchronize()
    return float(torch.cuda.max_memory_allocated() - before)


def precision(tokens: int, device: str, dtype: torch.dtype) -> dict[str, float]:
    """Relative error of LAT against float64 on the same queries and keys, and what is lost."""
    layers = layers_of(tokens, device, dtype)
    start = torch.full((1, tokens), 1 / tokens, device=device)
    found = trace(layers, start).total.double()
    exact = [Fused(one.query.double(), one.key.double()) for one in layers]
    wanted = trace(exact, start.double()).total
    error = float((found - wanted).norm() / wanted.norm())
    return {"relative error": error, "lost": float((found.sum() - HEADS).abs() / HEADS)}


def measured(lengths: Sequence[int], device: str, repeats: int) -> dict[str, object]:
    """Everything, with what passes; memory only where there is a GPU."""
    dtype = torch.bfloat16
    longest = lengths[-1]
    found: dict[str, object] = {
        "device": torch.cuda.get_device_name() if device == "cuda" else device,
        "dtype": "bfloat16", "layers": LAYERS, "heads": HEADS, "dim": DIM, "tokens": list(lengths),
        "seconds": {n: times(n, device, dtype, repeats) for n in lengths},
        "precision": precision(min(2048, longest), device, dtype),
    }  # fmt: skip
    slower = times(longest, device, dtype, repeats)["lat over attention"]
    passes = {f"at most {TIMES:g} times the fused attention": slower <= TIMES}
    if device == "cuda":
        peaks = {n: memory(n, dtype) for n in lengths}
        above = {n: peak["traced"] - peak["forward"] for n, peak in peaks.items()}
        growth = exponent({n: peak["traced"] for n, peak in peaks.items()})
        found |= {"bytes": peaks, "bytes above": above, "exponent of memory": growth}
        found["bytes of the matrices"] = 2 * LAYERS * HEADS * longest**2
        passes["less than 1 GiB above the forward pass"] = above[longest] < ABOVE
        passes["memory linear in tokens"] = growth <= GROWTH
    return found | {"passes": passes}


def main() -> int:
    """Exit status 1 when a limit is missed."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.tracing_gpu", description=__doc__)
    parser.add_argument("--device", default="cuda")
    parser.add_argument("--lengths", default="2048,4096,8192,16384", help="tokens, rising")
    parser.add_argument("--repeats", type=int, default=5)
    options = parser.parse_args()
    lengths = [int(length) for length in options.lengths.split(",")]
    found = measured(lengths, options.device, options.repeats)
    print(json.dumps(found, indent=2))
    passes = found["passes"]
    assert isinstance(passes, dict)
    return int(not all(passes.values()))


if __name__ == "__main__":
    raise SystemExit(main())
