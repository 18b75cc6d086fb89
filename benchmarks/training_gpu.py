"""What limits training of the erasure study: a profile of its own loop, as one JSON.

`python -m benchmarks.training_gpu --device cuda` needs no corpus: documents have the lengths of
IMDB reviews and random words. The kernels are timed under the profiler, the wall clock without it,
since profiling slows the host and not the card.
"""

from __future__ import annotations

import argparse
import json
import re
import shutil
import subprocess
import sys
import tempfile
import time
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from multiprocessing.queues import SimpleQueue
from multiprocessing.synchronize import Barrier
from os import environ
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import nn
from torch.profiler import ProfilerActivity, profile

from benchmarks.stacking import measured as stacking
from benchmarks.timing import at_once
from heedful.corpora import Batch, Encoded, EncodedCorpus, Vocabulary, batches
from heedful.corpora.vocabulary import SPECIALS
from heedful.models import AttentionClassifier, build, parse
from heedful.runs import write_json
from heedful.training import TrainConfig, fit
from heedful.training.presets import PRESETS

MODELS = ("erasure/han-rnn", "erasure/flan-rnn", "erasure/flan-conv", "erasure/flan-noenc")
CLASSES = tuple(f"{stars} stars" for stars in range(1, 9))
GROUPS: Mapping[str, str] = {
    # What an operator is counted as: the first pattern that its name fits.
    "recurrent cells (cuDNN)": r"rnn|gru|lstm",
    "optimiser": r"foreach|fused_|adam|linalg_vector_norm",
    "embedding, gather, scatter": r"embedding|index|gather|scatter|nonzero|pack|masked_select",
    "matrix products, convolutions": r"mm$|matmul|linear|conv",
    "copies between host and card": r"copy|memcpy|_local_scalar",
}
ELEMENTWISE = "elementwise, softmax, sums"
TRACED = 6
"""Steps under the profiler; what it counts is scaled to all by the words read."""


@dataclass(frozen=True)
class Size:
    """How much is trained."""

    steps: int = 30
    words: int = 32_000
    mean: float = 280.0
    """Words per document; their logarithm spreads by 0.65, as in IMDB."""
    sentence: float = 21.0
    """Words per sentence."""


def reviews(size: Size, documents: int, seed: int = 0) -> Encoded:
    """Documents of the lengths of IMDB reviews, their words drawn by Zipf's law."""
    draw = np.random.default_rng(seed)
    spread = 0.65
    drawn = draw.lognormal(np.log(size.mean) - spread**2 / 2, spread, documents)
    lengths = np.clip(drawn, 10, 2_000).astype(int)
    total = int(lengths.sum())
    frequency = 1 / np.arange(3, size.words + 3)
    ids = draw.choice(size.words, total, p=frequency / frequency.sum()) + len(SPECIALS)
    starts = np.concatenate([[0], np.cumsum(lengths)])
    ends = np.cumsum(draw.random(total) < 1 / size.sentence)
    return Encoded(
        ids=ids.astype(np.int32),
        starts=starts,
        labels=draw.integers(0, len(CLASSES), documents),
        sentence=(ends - np.repeat(ends[starts[:-1]], lengths)).astype(np.int32),
        names=tuple(f"{seed}/{row}" for row in range(documents)),
    )


def corpus_of(size: Size, config: TrainConfig) -> EncodedCorpus:
    """Training documents for the wanted number of steps, and one document of dev."""
    documents, steps = config.batch_size * size.steps, size.steps + 1
    while steps > size.steps:  # long texts come in smaller batches
        train = reviews(size, documents)
        steps = sum(1 for _ in batches(train, config.batch_size, None, config.max_batch_tokens))
        documents = max(documents * size.steps // steps, 1)
    words = Vocabulary(SPECIALS + tuple(f"word{number}" for number in range(size.words)))
    splits = {"train": train, "dev": reviews(size, 1, seed=1)}
    return EncodedCorpus("reviews", CLASSES, words, splits, "generated", {})


def training(name: str, size: Size) -> tuple[AttentionClassifier, EncodedCorpus, TrainConfig]:
    """A model of the study at paper size, what it reads and how it learns: one epoch."""
    preset = PRESETS[name]
    config = replace(preset.train, epochs=1)
    corpus = corpus_of(size, config)
    recipe = parse(preset.recipe, **preset.model)
    return build(recipe.model, corpus.vocabulary, corpus.classes), corpus, config


def group_of(event: Any) -> str:
    """The group that an operator's kernels count to: its own, or that of the operator it serves.

    Filling the gradient of the word vectors with zeros, say, serves the embedding.
    """
    while event is not None:
        for group, pattern in GROUPS.items():
            if re.search(pattern, event.name.lower()):
                return group
        event = event.cpu_parent
    return ELEMENTWISE


def covered(spans: Sequence[tuple[float, float]]) -> float:
    """Length of the union of intervals."""
    total, end = 0.0, -np.inf
    for start, stop in sorted(spans):
        total += max(stop - max(start, end), 0.0)
        end = max(end, stop)
    return float(total)


def operations(model: AttentionClassifier, train: Encoded) -> float:
    """Floating-point operations of one epoch: two per weight and unit forward, four backward."""

    def weights(part: nn.Module) -> int:
        return sum(p.numel() for p in part.parameters() if p.dim() > 1)

    documents, tokens = len(train), len(train.ids)
    found = weights(model.head) * documents
    if model.words is None:
        found += weights(model.level) * tokens
    else:
        changes = np.diff(train.sentence, prepend=-1) != 0
        changes[train.starts[:-1]] = True
        found += weights(model.words) * tokens + weights(model.level) * int(changes.sum())
    return 6.0 * found


def least_bytes(model: AttentionClassifier, config: TrainConfig) -> float:
    """Bytes that one step of Adam must move: weight, gradient and two averages, three written.

    Clipping the norm reads the gradients, then reads and writes them.
    """
    count = sum(p.numel() for p in model.parameters() if p.requires_grad)
    return 4.0 * count * (7 + (3 if config.clip_norm else 0))


def profiled(name: str, size: Size, device: str) -> dict[str, Any]:
    """One model: where the time of its training goes."""
    model, corpus, config = training(name, size)
    train = corpus.splits["train"]
    fit(model, corpus, config, device=device)  # warms up: cuDNN, the allocator
    seconds = min(_timed(lambda: fit(model, corpus, config, device=device)) for _ in range(2))

    def fixed() -> Iterator[Batch]:
        return batches(train, config.batch_size, None, config.max_batch_tokens)

    def feed() -> None:
        for batch in fixed():
            batch.to(device)

    feed()
    fed = _timed(feed)
    is_card = device != "cpu"
    activities = [ProfilerActivity.CPU] + [ProfilerActivity.CUDA] * is_card
    # Reading a trace takes longer than training: a few steps of it are enough.
    few = training(name, replace(size, steps=min(size.steps, TRACED)))[1]
    with profile(activities=activities, record_shapes=True) as profiler:
        fit(model, few, config, device=device)
    share = len(few.splits["train"].ids) / len(train.ids)
    spent: dict[str, float] = defaultdict(float)
    slowest: dict[str, float] = defaultdict(float)
    moved, spans = 0.0, []
    events = profiler.events() or []
    for event in events:
        if event.device_type.name != "CPU":
            continue
        kernels = [(kernel.name, kernel.duration) for kernel in event.kernels]
        if not is_card:
            kernels = [(event.name, event.self_cpu_time_total)]
        group = group_of(event)
        for kernel, microseconds in kernels:
            spent[group] += 1e-6 * microseconds
            slowest[kernel[:90]] += 1e-6 * microseconds
        if group == ELEMENTWISE and kernels and event.input_shapes:
            sizes = [float(np.prod(shape)) for shape in event.input_shapes if shape]
            moved += 4 * (sum(sizes) + max(sizes, default=0.0))
    for event in events:
        if event.device_type.name != "CPU" and event.name[:90] in slowest:
            spans.append((1e-6 * event.time_range.start, 1e-6 * event.time_range.end))
    names: dict[str, float] = dict(Counter(event.name for event in events))
    shapes = [batch.ids.numel() for batch in fixed()]
    steps, padded = len(shapes), sum(shapes)
    busy = (covered(spans) if is_card else sum(spent.values())) / share
    moved /= share
    spent, slowest, names = ({k: v / share for k, v in d.items()} for d in (spent, slowest, names))
    spent = defaultdict(float, spent)
    return {
        "steps": steps,
        "documents": len(train),
        "tokens": len(train.ids),
        "padding_share": round(1 - len(train.ids) / padded, 4),
        "milliseconds_per_step": round(1e3 * seconds / steps, 3),
        "documents_per_second": round(len(train) / seconds, 1),
        "share_of_wall": {
            group: round(spent[group] / seconds, 4) for group in (*GROUPS, ELEMENTWISE)
        },
        "card_idle_share": round(max(1 - busy / seconds, 0), 4) if is_card else None,
        "input_share": round(fed / seconds, 4),
        "launches_per_step": round(sum(names[n] for n in names if "Launch" in n) / steps, 1),
        "waits_for_the_card_per_step": round(
            sum(names[n] for n in names if "Synchronize" in n) / steps, 1
        ),
        "teraflops": round(operations(model, train) / seconds / 1e12, 4),
        "teraflops_while_cells_run": _rate(
            operations(model, train), spent["recurrent cells (cuDNN)"], 1e12
        ),
        "optimiser_gigabytes_per_second": _rate(
            least_bytes(model, config) * steps, spent["optimiser"], 1e9
        ),
        "elementwise_gigabytes_per_second": _rate(moved, spent[ELEMENTWISE], 1e9),
        "slowest_kernels": {
            kernel: round(slowest[kernel] / seconds, 4)
            for kernel in sorted(slowest, key=lambda kernel: -slowest[kernel])[:8]
        },
    }


def peaks(device: str) -> dict[str, float]:
    """What the device reaches on big plain work: the limits to compare with."""
    count = 8_192 if device != "cpu" else 512
    a = torch.randn(count, count, device=device)
    b = torch.randn_like(a)
    big = torch.empty(2**28 if device != "cpu" else 2**22, device=device)
    found = {}
    for name, precision in (("float32", "highest"), ("tf32", "high")):
        before = torch.get_float32_matmul_precision()
        torch.set_float32_matmul_precision(precision)
        try:
            seconds = min(_timed(lambda: a @ b) for _ in range(5))
        finally:
            torch.set_float32_matmul_precision(before)
        found[f"{name}_teraflops"] = round(2 * count**3 / seconds / 1e12, 2)
    target = torch.empty_like(big)
    seconds = min(_timed(lambda: target.copy_(big)) for _ in range(5))
    return found | {"copy_gigabytes_per_second": round(8 * len(big) / seconds / 1e9, 1)}


def together(names: Sequence[str], size: Size, device: str, processes: int) -> dict[str, float]:
    """Documents per second of several processes that train the same model side by side.

    Each process is started once and takes the models in turn, waiting for the others before each.
    """
    told = at_once(_one_of_many, [(names, size, device)] * processes)
    found = {}
    for name in names:
        begun, ended = min(one[name][0] for one in told), max(one[name][1] for one in told)
        found[name] = sum(one[name][2] for one in told) / (ended - begun)
    return found


def _one_of_many(
    names: Sequence[str],
    size: Size,
    device: str,
    barrier: Barrier,
    answers: SimpleQueue[dict[str, tuple[float, float, int]]],
) -> None:
    torch.set_num_threads(1)
    told = {}
    for name in names:
        model, corpus, config = training(name, size)
        fit(model, *training(name, replace(size, steps=3))[1:], device=device)  # warms up
        barrier.wait(300)
        begun = time.time()
        fit(model, corpus, config, device=device)
        _settle()
        told[name] = (begun, time.time(), len(corpus.splits["train"]))
    answers.put(told)


@contextmanager
def sharing(is_wanted: bool) -> Iterator[bool]:
    """Whether NVIDIA's multi-process service runs meanwhile: kernels of processes then overlap.

    Without it the card runs one process at a time and switches between them.
    """
    control = shutil.which("nvidia-cuda-mps-control")
    if not is_wanted or control is None:
        yield False
        return
    with tempfile.TemporaryDirectory() as folder:
        places = {"CUDA_MPS_PIPE_DIRECTORY": folder, "CUDA_MPS_LOG_DIRECTORY": folder}
        begun = subprocess.run([control, "-d"], env=environ | places, check=False)
        environ.update(places)  # the processes started here inherit it
        try:
            yield begun.returncode == 0
        finally:
            subprocess.run([control], input="quit\n", text=True, check=False)
            for place in places:
                environ.pop(place, None)


def gains(names: Sequence[str], size: Size, device: str, counts: Sequence[int]) -> dict[str, Any]:
    """Documents per second of every model by how many processes train at once."""
    rates = {count: together(names, size, device, count) for count in counts}
    return {
        name: {str(count): round(rate[name], 1) for count, rate in rates.items()}
        | {"gain": round(max(rate[name] for rate in rates.values()) / rates[counts[0]][name], 2)}
        for name in names
    }


def main() -> int:
    """Prints one JSON object."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--device", default="cuda")
    parser.add_argument("--models", nargs="*", default=list(MODELS))
    parser.add_argument("--steps", type=int, default=30)
    parser.add_argument("--processes", type=int, nargs="*", default=[1, 8])
    parser.add_argument("--no-service", action="store_true", help="do not try NVIDIA's MPS")
    parser.add_argument("--no-stacking", action="store_true")
    parser.add_argument("--out", type=Path, help="also kept here after every part")
    options = parser.parse_args()
    size = Size(steps=options.steps)
    is_card = options.device != "cpu"
    found: dict[str, Any] = {
        "device": torch.cuda.get_device_name(options.device) if is_card else "cpu",
        "torch": torch.__version__,
        "peaks": peaks(options.device),
        "models": {},
    }

    def keep() -> None:
        if options.out is not None:
            write_json(options.out, found)

    for name in options.models:
        found["models"][name] = profiled(name, size, options.device)
        print(name, file=sys.stderr, flush=True)
        keep()
    if not options.no_stacking:
        found["stacking"] = stacking(options.device, instances=3_000, repeats=1)
        keep()
    if options.processes:
        given = (options.models, size, options.device, options.processes)
        found["processes"] = gains(*given)
        keep()
        with sharing(is_card and not options.no_service) as is_shared:
            if is_shared:
                found["processes with MPS"] = gains(*given)
                keep()
    print(json.dumps(found, indent=1))
    return 0


def _settle() -> None:
    if torch.cuda.is_available():
        torch.cuda.synchronize()


def _timed(function: Any) -> float:
    _settle()
    started = time.perf_counter()
    function()
    _settle()
    return time.perf_counter() - started


def _rate(amount: float, seconds: float, unit: float) -> float | None:
    return round(amount / seconds / unit, 3) if seconds > 0 else None


if __name__ == "__main__":
    sys.exit(main())
