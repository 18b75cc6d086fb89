"""Small models for the tests of the live page, and a running server."""

from __future__ import annotations

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[2]))  # the benchmarks lie beside the package

from benchmarks.served import Client, events_in, served
from heedful.corpora.planted import planted
from heedful.explorer.documents import OfferedDocuments, offered
from heedful.explorer.texts import ExploredModel
from heedful.models import example
from tests import tiny_transformers as tiny


def linear(name: str = "linear") -> ExploredModel:
    """A model with a linear head that knows a few words."""
    return ExploredModel(name, example(), "leave-one-out", "It was measured.")


def layered(name: str = "layered") -> ExploredModel:
    """A Transformer of two layers."""
    return ExploredModel(name, tiny.reader("bert"), "occlusion", "")


def documents(count: int = 30) -> OfferedDocuments:
    return offered(planted(2, "short", 0, {"test": count}))


__all__ = ["Client", "documents", "events_in", "layered", "linear", "served"]
