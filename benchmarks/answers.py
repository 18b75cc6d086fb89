"""What sources of an answer cost: leave one out by the shared cache, all attention explanations.

`python -m benchmarks.answers --device cuda` measures prompts of 4k to 32k tokens on a GPU, as JSON.
"""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Callable
from typing import Any

import torch

from benchmarks.table import Row
from benchmarks.timing import exponent, side_by_side
from heedful.jobs.one_answer import likelihoods, single_removals
from heedful.models.huggingface.answers import of_the_last, said_of
from heedful.models.huggingface.question_prompts import AnswerPrompt
from heedful.models.huggingface.source_reading import read_both

SOURCES, ASKED, ANSWERED = 16, 16, 8
MOST_SHARED, MOST_PASSES, GROWTH = 0.6, 3.0, 1.1
"""Limits: of S plain passes, in plain passes, exponent of memory over tokens."""
LENGTHS = (4_096, 8_192, 16_384, 32_768)


def language_model(layers: int, vocabulary: int = 8_192, longest: int = 40_000) -> Any:
    """A Llama with the layers of SmolLM2-135M and random weights."""
    from transformers import AutoModelForCausalLM, LlamaConfig

    config = LlamaConfig(
        vocab_size=vocabulary, hidden_size=576, intermediate_size=1_536, num_hidden_layers=layers,
        num_attention_heads=9, num_key_value_heads=3, max_position_embeddings=longest,
        initializer_range=0.1,
    )  # fmt: skip
    torch.manual_seed(0)
    return AutoModelForCausalLM.from_config(config).eval()


def prompts_of(tokens: int, vocabulary: int = 8_192) -> tuple[AnswerPrompt, AnswerPrompt]:
    """A prompt of sixteen sources, and the same behind another question."""
    generator = torch.Generator().manual_seed(0)

    def drawn(count: int) -> tuple[int, ...]:
        return tuple(torch.randint(5, vocabulary, (count,), generator=generator).tolist())

    one = max((tokens - 2 * ASKED) // SOURCES, 1)
    before, sources = drawn(ASKED), tuple(drawn(one) for _ in range(SOURCES))
    answer = drawn(ANSWERED)
    return (
        AnswerPrompt(before, sources, drawn(ASKED), answer),
        AnswerPrompt(before, sources, drawn(ASKED), answer),
    )


def plain_pass(model: Any, prompt: AnswerPrompt) -> torch.Tensor:
    """log p of the answer in one pass over the whole prompt, on the model's own kernels."""
    ids = torch.tensor([[*prompt.pieces, *prompt.answer[:-1]]], device=model.device)
    with torch.no_grad():
        logits = model(input_ids=ids, use_cache=False, **of_the_last(model, ANSWERED)).logits[0]
    return said_of(logits, prompt.answer)


def answer_rows(tokens: int, layers: int, repeats: int) -> list[Row]:
    """Leave one out by the shared cache, and every explanation by attention, in plain passes."""
    model = language_model(layers)
    prompt, free = prompts_of(tokens)
    kept = single_removals(SOURCES)[1:]
    functions: dict[str, Callable[[], Any]] = {
        "plain": lambda: plain_pass(model, prompt),
        "removals": lambda: likelihoods(model, prompt, kept),
        "attention": lambda: read_both(model, prompt, free),
    }
    timed = side_by_side(functions, repeats, time.process_time)
    one = timed["plain"].seconds
    shared = timed["removals"].seconds / (SOURCES * one)
    passes = timed["attention"].seconds / one
    off = _off(model, prompt, timed["removals"].result)
    about = f"{SOURCES} sources, {tokens} tokens, {layers} layers"
    return [
        Row(
            f"each source removed, {about}",
            1e3 * timed["removals"].seconds,
            shared,
            f"{SOURCES} forward passes",
            f"What precedes a source is read once; off by {off:.0e} from plain passes.",
            naive=1e3 * SOURCES * one,
            at_most=MOST_SHARED,
        ),
        Row(
            f"attention of all heads, traced, and behind an empty question, {about}",
            1e3 * timed["attention"].seconds,
            passes,
            "forward pass",
            "Nine explanations of one answer, no attention matrix kept.",
            naive=1e3 * one,
            at_most=MOST_PASSES,
        ),
    ]


def _off(model: Any, prompt: AnswerPrompt, found: Any) -> float:
    """How far two of the removals are from plain passes over what is left."""
    far = 0.0
    for gone in (0, SOURCES // 2):
        rest = tuple(one for n, one in enumerate(prompt.sources) if n != gone)
        expected = plain_pass(model, AnswerPrompt(prompt.before, rest, prompt.after, prompt.answer))
        far = max(far, float((torch.from_numpy(found[gone]) - expected.double().cpu()).abs().max()))
    return far


def on_a_gpu(device: str, lengths: tuple[int, ...], layers: int) -> dict[str, Any]:
    """Seconds and peak memory of long prompts: plain, all explanations, and removals."""
    model = language_model(layers).to(device)
    resting = torch.cuda.memory_allocated(device)
    found: dict[str, Any] = {"device": torch.cuda.get_device_name(device), "layers": layers}
    peaks = {}
    for tokens in lengths:
        prompt, free = prompts_of(tokens)
        kept = single_removals(SOURCES)[1:]
        plain = _seconds(lambda prompt=prompt: plain_pass(model, prompt))
        torch.cuda.reset_peak_memory_stats(device)
        read = _seconds(lambda prompt=prompt, free=free: read_both(model, prompt, free))
        peaks[tokens] = float(torch.cuda.max_memory_allocated(device) - resting)
        removals = _seconds(lambda prompt=prompt, kept=kept: likelihoods(model, prompt, kept), 1)
        found[str(tokens)] = {
            "plain pass, s": plain,
            "explanations, plain passes": read / plain,
            "each source removed, of S plain passes": removals / (SOURCES * plain),
            "peak above rest, MiB": peaks[tokens] / 2**20,
        }
    found["exponent of memory"] = exponent(peaks)
    return found


def _seconds(function: Callable[[], Any], repeats: int = 3) -> float:
    """Median seconds of a call on a GPU, after one that warms up."""
    samples = []
    for _ in range(repeats + 1):
        torch.cuda.synchronize()
        started = time.perf_counter()
        function()
        torch.cuda.synchronize()
        samples.append(time.perf_counter() - started)
    return sorted(samples[1:])[repeats // 2]


if __name__ == "__main__":
    parser = argparse.ArgumentParser(prog="python -m benchmarks.answers", description=__doc__)
    parser.add_argument("--device", default="cuda")
    parser.add_argument("--layers", type=int, default=30)
    asked = parser.parse_args()
    print(json.dumps(on_a_gpu(asked.device, LENGTHS, asked.layers), indent=1))
