"""How soon the live page tells its first explanation of a long text."""

from __future__ import annotations

import time
from itertools import count
from statistics import median

import torch

from benchmarks.explaining import random_bert
from benchmarks.served import served
from benchmarks.table import Row
from heedful.explorer.server import Explorer
from heedful.explorer.texts import ExploredModel

PASSES = 10
"""Plain passes within which the first explanation is to be there."""


def live_row(tokens: int, layers: int, repeats: int) -> Row:
    """From the question sent to the first explanation told, against passes of the bare model.

    Every text is new, since the server keeps the readings of the latest; the two take turns.
    """
    model = random_bert(layers)
    numbers = count()

    def text() -> str:
        start = next(numbers)
        return " ".join(f"w{(start * 37 + index * 11) % 2000}" for index in range(tokens - 2))

    ours, plain = [], []
    with served(Explorer([ExploredModel("bert", model, "occlusion", "")])) as client:
        for _ in range(repeats + 1):
            batch = model.batch([text()])
            started = time.perf_counter()
            with torch.no_grad():
                model(batch)
            plain.append(time.perf_counter() - started)
            ours.append(client.first({"text": text()}, "importance"))
            client.json("/api/decide", {"text": "w1"})  # what was cancelled has ended then
    seconds, one = median(ours[1:]), median(plain[1:])
    return Row(
        f"first explanation on the live page, {tokens} tokens, {layers} layers",
        1e3 * seconds,
        seconds / one,
        "forward pass",
        "From the request to attention, its numbers and the decision at the client, over HTTP; "
        f"{seconds / one / PASSES:.2f} of what is allowed.",
        naive=1e3 * one,
        at_most=PASSES,
    )
