"""What goes through the models while an audit is metered, counted by the modules themselves."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeAlias

import torch
from torch.nn.modules.module import register_module_forward_hook

from heedful.runs import meter
from tests.docs.intervals_again import Near
from tests.docs.sentences import Expected, Run

Counted: TypeAlias = "dict[str, list[float]]"
"""Positions times layers, forward and backward, by what they were read for."""


@contextmanager
def counting() -> Iterator[Counted]:
    """Counts every layer's reading of every position, padding and special tokens included."""
    found: Counted = defaultdict(lambda: [0.0, 0.0])

    def count(module: torch.nn.Module, given: Any, made: Any) -> None:
        name = type(module).__name__
        is_layer = name == "Recurrent" or name.endswith(("BertAttention", "LlamaAttention"))
        if not is_layer or meter._meter.get() is None:
            return
        made = made[0] if isinstance(made, tuple) else made
        spent = found[": ".join(part for part in meter._whom.get() if part) or "reading"]
        positions = made.shape[0] * made.shape[1]
        spent[0] += positions
        if made.requires_grad:
            made.register_hook(lambda slope: spent.__setitem__(1, spent[1] + positions))

    handle = register_module_forward_hook(count)
    try:
        yield found
    finally:
        handle.remove()


@dataclass(frozen=True)
class Spent:
    """What a run's audits read, and how much one reading of a document is."""

    counted: Counted
    size: Callable[[str], int]
    """Of a document by its name: positions times layers."""


_spent: dict[tuple[Path, int], Spent] = {}


def keep(run: Run, counted: Counted, size: Callable[[str], int]) -> None:
    """Notes what an audit read; what it kept of an earlier one of as many documents stays so."""
    audit = run.folder.absolute(), run.audited
    before = _spent[audit].counted if audit in _spent else {}
    _spent[audit] = Spent({**before, **counted}, size)


def cost(run: Run, match: re.Match[str]) -> Expected:
    """What an audit read, in readings of its documents: in all, then the dearest parts."""
    spent = _spent[run.folder.absolute(), run.audited]
    one = sum(map(spent.size, run.rows("concentration")["instance"].unique()))
    forward, backward = (sum(part[way] for part in spent.counted.values()) for way in (0, 1))
    named = re.findall(
        r"([a-z][a-z-]*(?:: [a-z-]+)?) # times", match[0].partition("(most of it: ")[2]
    )
    parts = [sum(spent.counted[name]) for name in named]
    rest = [sum(part) for name, part in spent.counted.items() if name not in named]
    assert len(named) == 3
    assert min(parts) >= max(rest)
    return [run.audited, *(Near(read / one, 0.001) for read in (forward, backward, *parts))]
