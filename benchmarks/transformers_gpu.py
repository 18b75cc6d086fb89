"""Transformers on an accelerator: parity by precision, long texts, cost of edits and explanations.

`python -m benchmarks.transformers_gpu --device cuda --out transformers.jsonl` needs no corpus and
no weights: random models of the size of BERT-base over random pieces. Every case is one JSON line,
printed and written as soon as it is measured; no case begins after `--seconds`. `--size tiny` runs
anywhere.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import torch

from heedful.importance import explain
from heedful.models import read, without_each
from heedful.models.huggingface import Pieces, PretrainedClassifier, attending, classifier_of
from heedful.models.huggingface.calls import softmax
from heedful.models.huggingface.layout import logits_of
from heedful.models.huggingface.pieces import framed

TOLERANCES = {"float32": 1e-4, "bfloat16": 5e-2, "float16": 5e-3}
"""Relative difference of logits allowed against fused kernels; against eager it must be 0."""
FUSED = ("trace", "rollout", "attention-gradient", "received-attention", "value-norm")
"""Importance from the fused kernels, without a matrix."""
ALLOWED = {"explanation": 1.5, "attention function": 1.3, "erasures": 20.0}
"""Times forward and backward, times the eager pass, and times faster than running again."""
RERUN = 64
"""Erasures that are also made by running the model again, as one batch; their time is scaled."""
MEBIBYTE = 2**20
LIMIT = 2 * 1024
"""Mebibytes above the forward pass that an explanation of the longest text may take."""


class Size(NamedTuple):
    """How large models and texts are."""

    layers: int
    dim: int
    heads: int
    texts: int
    words: int
    """Of the texts that are timed."""
    longest: int
    """Of the one text whose memory is measured."""


SIZES = {
    "base": Size(12, 768, 12, 16, 510, 16_382),
    "tiny": Size(3, 32, 2, 3, 20, 60),
}


def cut(text: str) -> Pieces:
    """Words as ids; the random model knows no words anyway."""
    ids, spans, start = [], [], 0
    for word in text.split(" "):
        ids.append(5 + hash_of(word) % 900)
        spans.append((start, start + len(word)))
        start += len(word) + 1
    return Pieces(ids, spans)


def hash_of(word: str) -> int:
    """The same number for a word on every machine."""
    return sum(place * ord(letter) for place, letter in enumerate(word, 1))


def text_of(words: int, seed: int = 0) -> str:
    """Random words."""
    generator = torch.Generator().manual_seed(seed)
    numbers = torch.randint(0, 5000, (words,), generator=generator).tolist()
    return " ".join(f"w{number}" for number in numbers)


def model_of(
    size: Size, positions: int, device: str, dtype: torch.dtype, kind: str = "bert"
) -> PretrainedClassifier:
    """A random classifier with weights enlarged, so that attention is not even."""
    from transformers import AutoConfig, AutoModelForSequenceClassification

    torch.manual_seed(0)
    config = AutoConfig.for_model(
        kind,
        vocab_size=1000,
        hidden_size=size.dim,
        num_hidden_layers=size.layers,
        num_attention_heads=size.heads,
        intermediate_size=4 * size.dim,
        max_position_embeddings=positions,
        num_labels=2,
        pad_token_id=0,
    )
    with torch.device(device):  # drawn where it is used: the CPU would take longer than all else
        model = AutoModelForSequenceClassification.from_config(config)
    with torch.no_grad():
        for name, weight in model.named_parameters():
            if "query" in name or "key" in name:
                weight *= 4
    model = model.to(dtype=dtype).eval()
    return classifier_of(model, cut, ("no", "yes"), max_pieces=positions)


Case = dict[str, Any]
"""What is known of one case, as plain data; `holds` where there is a limit."""


def seconds_of(work: Callable[[], Any], device: str, times: int = 3) -> float:
    """The fastest of several runs, the first not counted."""
    found = []
    for _ in range(times + 1):
        _wait(device)
        started = time.perf_counter()
        work()
        _wait(device)
        found.append(time.perf_counter() - started)
    return min(found[1:])


def peak_of(work: Callable[[], Any], device: str) -> float:
    """Mebibytes above what is held before; 0 where the device does not count."""
    if device == "cpu":
        work()
        return 0.0
    torch.cuda.empty_cache()
    torch.cuda.reset_peak_memory_stats()
    held = torch.cuda.memory_allocated()
    kept = work()
    peak = torch.cuda.max_memory_allocated() - held
    del kept
    return peak / MEBIBYTE


def _wait(device: str) -> None:
    if device != "cpu":
        torch.cuda.synchronize()


def parity(size: Size, device: str) -> Iterator[Case]:
    """Logits with attention in our hands against eager and fused kernels, by precision.

    Also a text beside longer ones against the same text alone.
    """
    for name, allowed in TOLERANCES.items():
        model = model_of(size, size.words + 2, device, getattr(torch, name))
        texts = [text_of(max(size.words // (1 + row % 4), 2), row) for row in range(size.texts)]
        batch = model.batch(texts)
        inputs = model.inputs_of(framed(batch, model.subwords))
        inner: Any = model.model
        with torch.no_grad():
            fused = logits_of(model.run(inputs)).float()
            with attending(inner, lambda number, scores: softmax(scores)):
                ours = logits_of(model.run(inputs)).float()
            inner.set_attn_implementation("eager")
            eager = logits_of(model.run(inputs)).float()
            inner.set_attn_implementation("sdpa")
        reading, alone = read(model, batch), read(model, model.batch(texts[-1:]))
        scale = float(fused.abs().max())
        found: Case = {
            "ours against eager": float((ours - eager).abs().max()) / scale,
            "ours against fused": float((ours - fused).abs().max()) / scale,
            "reading against fused": float((reading.logits - fused).abs().max()) / scale,
            "alone against beside others": float((alone.logits - reading.logits[-1:]).abs().max())
            / scale,
        }
        is_close = max(list(found.values())[1:]) <= allowed
        found["holds"] = found["ours against eager"] == 0 and is_close
        yield {"case": f"parity, {name}", "allowed against fused": allowed} | found


def long_text(size: Size, device: str) -> Iterator[Case]:
    """Memory of every explanation of one long text above that of a forward pass."""
    model = model_of(size, size.longest + 2, device, _half(device))
    batch = model.batch([text_of(size.longest)])
    inputs = model.inputs_of(framed(batch, model.subwords))
    reading = read(model, batch)

    def forward() -> None:
        with torch.no_grad():
            model.run(inputs)

    least = peak_of(forward, device)
    for name in FUSED:
        work = partial(explain, model, reading, [name])
        above = peak_of(work, device) - least
        yield {
            "case": f"{size.longest + 2:,} tokens, {size.layers} layers, {name}",
            "forward MiB": least,
            "above MiB": above,
            "allowed MiB": LIMIT,
            "seconds": seconds_of(work, device, 1),
            "holds": above <= LIMIT,
        }


def erasures(size: Size, device: str) -> Iterator[Case]:
    """Every single erasure at the pooled row of one text, against the model run again for each."""
    model = model_of(size, size.words + 2, device, torch.float32)
    reading = read(model, model.batch([text_of(size.words)]))
    some = min(size.words, RERUN)
    inputs = {name: value.expand(some, -1) for name, value in reading.state.inputs.items()}

    def again() -> None:
        with torch.no_grad():
            model.run(inputs)

    ours = seconds_of(lambda: without_each(model, reading), device)
    naive = seconds_of(again, device) * size.words / some
    yield {
        "case": f"{size.words} erasures at the pooled row, float32",
        "seconds": ours,
        "seconds of running again": naive,
        "times faster": naive / ours,
        "holds": naive / ours >= ALLOWED["erasures"],
    }


def speed(size: Size, device: str) -> Iterator[Case]:
    """Our attention against the eager pass, and explanations against forward and backward."""
    precisions = ("float32",) if device == "cpu" else ("float32", "bfloat16")
    for precision in precisions:
        model = model_of(size, size.words + 2, device, getattr(torch, precision))
        batch = model.batch([text_of(size.words, row) for row in range(size.texts)])
        reading, inputs = read(model, batch), model.inputs_of(framed(batch, model.subwords))
        inner: Any = model.model

        def forward() -> None:
            with torch.no_grad():
                model.run(inputs)  # noqa: B023  called at once

        def both_ways() -> None:
            logits_of(model.run(inputs)).float().softmax(-1)[:, 0].sum().backward()  # noqa: B023
            inner.zero_grad(set_to_none=True)  # noqa: B023

        def ours() -> None:
            with torch.no_grad(), attending(inner, lambda number, scores: softmax(scores)):  # noqa: B023
                model.run(inputs)  # noqa: B023

        where = f"{size.texts} texts of {size.words + 2} tokens, {precision}"
        taken = seconds_of(ours, device)
        inner.set_attn_implementation("eager")
        eager = seconds_of(forward, device)
        inner.set_attn_implementation("sdpa")
        found: Case = {"seconds": taken, "eager pass": eager, "ratio": taken / eager}
        if precision == "float32":
            found["holds"] = taken / eager <= ALLOWED["attention function"]
        yield {"case": f"the registered attention function, {where}"} | found
        both = seconds_of(both_ways, device)
        for name in FUSED:
            taken = seconds_of(partial(explain, model, reading, [name]), device)
            yield {
                "case": f"{name}, {where}",
                "seconds": taken,
                "texts per second": size.texts / taken,
                "forward and backward": both,
                "ratio": taken / both,
                "holds": taken / both <= ALLOWED["explanation"],
            }


def _half(device: str) -> torch.dtype:
    return torch.float32 if device == "cpu" else torch.bfloat16


def measured(size: Size, device: str, most: float) -> Iterator[Case]:
    """Every case as soon as it is known; what matters most comes first."""
    import transformers

    began = time.perf_counter()
    versions = {"torch": torch.__version__, "transformers": transformers.__version__}
    name = torch.cuda.get_device_name() if device != "cpu" else "cpu"
    yield {"case": "begin", "device": name, "versions": versions, "size": size._asdict()}
    for part in (parity, long_text, erasures, speed):
        for case in part(size, device):
            spent = time.perf_counter() - began
            yield case | {"after": round(spent, 1)}
            if spent > most:
                yield {"case": "stopped", "in": part.__name__, "after": round(spent, 1)}
                return
        if device != "cpu":
            torch.cuda.empty_cache()
    yield {"case": "end", "after": round(time.perf_counter() - began, 1)}


def main() -> int:
    """Exit status 1 when a limit is missed."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--device", default="cuda" if torch.cuda.is_available() else "cpu")
    parser.add_argument("--size", choices=SIZES, default="base")
    parser.add_argument("--out", type=Path, default=Path("transformers.jsonl"))
    parser.add_argument("--seconds", type=float, default=50.0, help="no case begins after that")
    asked = parser.parse_args()
    is_missed = False
    with asked.out.open("w", encoding="utf-8") as file:
        for case in measured(SIZES[asked.size], asked.device, asked.seconds):
            is_missed |= case.get("holds") is False
            for stream in (file, sys.stdout):
                print(json.dumps(case), file=stream, flush=True)
    return int(is_missed)


if __name__ == "__main__":
    sys.exit(main())
