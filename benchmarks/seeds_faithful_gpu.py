"""Seeds of `bilstm+additive` at once and one after the other, on texts of the size of SST.

`python -m benchmarks.seeds_faithful_gpu --device cuda` prints one JSON in less than a minute: an
epoch of five seeds by `fit` in turn, as one stack, and in five processes; and one LSTM layer at the
length of IMDB as a kernel, as a loop of launches and by cuDNN.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from multiprocessing.queues import SimpleQueue
from multiprocessing.synchronize import Barrier
from typing import Any

import torch
from torch import nn

from benchmarks import timing
from benchmarks.flow import sentences
from heedful.corpora import EncodedCorpus, Vocabulary
from heedful.corpora.vocabulary import SPECIALS
from heedful.models import AttentionClassifier, build, parse, recurrent
from heedful.training import TrainConfig, fit
from heedful.training.presets import FAITHFUL_MODEL, FAITHFUL_TRAIN
from heedful.training.stacked import fit_stacked

DIM = 100
CONFIG: TrainConfig = replace(FAITHFUL_TRAIN, epochs=1, order_seed=0)


def corpus_of(documents: int, words: int) -> EncodedCorpus:
    """Texts of the lengths of SST in two classes."""
    known = Vocabulary(SPECIALS + tuple(f"word{number}" for number in range(words)))
    splits = {"train": sentences(documents, words), "dev": sentences(documents // 8, words, 1)}
    return EncodedCorpus("sst-like", ("no", "yes"), known, splits, "generated", {})


def fresh(corpus: EncodedCorpus, seed: int) -> AttentionClassifier:
    """The base model of the study with this random start."""
    sizes: dict[str, Any] = {"embedding_dim": DIM, "width": DIM} | FAITHFUL_MODEL
    model = parse("bilstm+additive", **sizes).model
    return build(model, corpus.vocabulary, corpus.classes, seed)


def in_turn(corpus: EncodedCorpus, seeds: int, device: str) -> None:
    """One model after the other."""
    for seed in range(seeds):
        fit(fresh(corpus, seed), corpus, CONFIG, seed=seed, device=device)


def stacked(corpus: EncodedCorpus, seeds: int, device: str) -> None:
    """All models as one."""
    models = [fresh(corpus, seed) for seed in range(seeds)]
    fit_stacked(models, corpus, CONFIG, seeds=range(seeds), device=device)


@contextmanager
def without_kernel() -> Iterator[None]:
    """Lends a stack that walks through texts by a loop of launches."""
    before = recurrent._kernel
    recurrent._kernel = lambda dim, device: None  # type: ignore[assignment]
    try:
        yield
    finally:
        recurrent._kernel = before


def at_once(documents: int, words: int, seeds: int, device: str) -> float:
    """Seconds of as many processes as seeds, each with one model, from a common start."""
    told = timing.at_once(_one, [(seed, documents, words, device) for seed in range(seeds)])
    return float(max(end for _, end in told) - min(begun for begun, _ in told))


def _one(
    seed: int,
    documents: int,
    words: int,
    device: str,
    barrier: Barrier,
    answers: SimpleQueue[tuple[float, float]],
) -> None:
    torch.set_num_threads(1)
    corpus = corpus_of(documents, words)
    fit(fresh(corpus, seed), corpus_of(64, words), CONFIG, device=device)  # warms up
    barrier.wait(120)
    begun = time.time()
    fit(fresh(corpus, seed), corpus, CONFIG, seed=seed, device=device)
    _settle(device)
    answers.put((begun, time.time()))


def layers(device: str, models: int, batch: int, units: int, dim: int) -> dict[str, Any]:
    """Milliseconds of one layer forward and back: a kernel, a loop of launches, cuDNN in turn."""
    gates = torch.randn(models, batch, units, 4 * dim, device=device, requires_grad=True)
    hidden = (torch.randn(models, dim, 4 * dim, device=device) / dim**0.5).requires_grad_()
    start = torch.zeros(2, models, batch, dim, device=device)
    cells = [nn.LSTM(4 * dim, dim, batch_first=True).to(device) for _ in range(models)]
    kernel = recurrent._kernel(dim, device) if device != "cpu" else None

    def walked(function: Callable[..., tuple[torch.Tensor, torch.Tensor]]) -> None:
        function(gates, hidden, start)[0].sum().backward()  # type: ignore[no-untyped-call]

    def library() -> None:
        for one, read in zip(cells, gates, strict=True):
            one(read)[0].sum().backward()

    cases: dict[str, Callable[[], None]] = {
        "loop of launches": lambda: walked(recurrent.in_steps),
        "cuDNN, one model after the other": library,
    }
    if kernel is not None:
        cases["kernel"] = lambda: walked(kernel)
    found: dict[str, Any] = {"has_kernel": kernel is not None}
    for name, case in cases.items():
        found[f"{name}, ms"] = round(1e3 * min(_timed(case, device) for _ in range(3)), 3)
    return found


def measured(device: str, seeds: int, documents: int, words: int) -> dict[str, Any]:
    """Seconds of every way, and what each gains over one after the other."""
    corpus = corpus_of(documents, words)
    small = corpus_of(64, words)
    stacked(small, seeds, device)
    in_turn(small, 1, device)
    found = {"one after the other": _timed(lambda: in_turn(corpus, seeds, device), device)}
    found["one stack"] = _timed(lambda: stacked(corpus, seeds, device), device)
    with without_kernel():
        found["one stack, loop of launches"] = _timed(
            lambda: stacked(corpus, seeds, device), device
        )
    found["processes"] = at_once(documents, words, seeds, device)
    alone = found["one after the other"]
    return {
        "seeds": seeds,
        "documents": documents,
        "seconds": {name: round(seconds, 2) for name, seconds in found.items()},
        "gain": {name: round(alone / seconds, 2) for name, seconds in found.items()},
    }


def main() -> int:
    """Prints one JSON object."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--device", default="cuda")
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--documents", type=int, default=6_920)
    parser.add_argument("--words", type=int, default=14_750)
    parser.add_argument("--units", type=int, default=273)
    options = parser.parse_args()
    name = "cpu" if options.device == "cpu" else torch.cuda.get_device_name(options.device)
    found: dict[str, Any] = {"device": name, "torch": torch.__version__}
    found["layer"] = layers(options.device, 2 * options.seeds, 32, options.units, DIM // 2)
    found |= measured(options.device, options.seeds, options.documents, options.words)
    print(json.dumps(found, indent=1))
    return 0


def _settle(device: str) -> None:
    if device != "cpu":
        torch.cuda.synchronize()


def _timed(function: Callable[[], None], device: str) -> float:
    _settle(device)
    started = time.perf_counter()
    function()
    _settle(device)
    return time.perf_counter() - started


if __name__ == "__main__":
    sys.exit(main())
