"""Tiny translators and pairs for tests."""

import torch

from heedful.corpora.pairs import Pairs, PairSide, PairSplit, collate_pairs
from heedful.models.translator import Translator, TranslatorConfig, build_translator

FORMS: dict[str, TranslatorConfig] = {
    "published": TranslatorConfig(12, 6, 5),
    "linear": TranslatorConfig(12, 6, 5, output="linear"),
    "uniform": TranslatorConfig(12, 6, 5, attention="uniform"),
    "one direction, tanh": TranslatorConfig(12, 6, 5, 1, False, 0.0, output="tanh"),
    "sum of heads": TranslatorConfig(12, 6, 5, heads=3),
    "mean of gru heads": TranslatorConfig(
        12, 6, 5, 1, False, 0.0, "gru", "dot", "tanh", 3, "mean", True, False
    ),
}


def split() -> PairSplit:
    """Four pairs of different lengths."""
    sources = [[4, 5, 6, 7], [8], [9, 10, 4], [5, 5]]
    targets = [[11, 4], [5, 6, 7, 8], [9], [10, 11, 4]]
    names = ("a", "b", "c", "d")
    return PairSplit(PairSide.of(sources), PairSide.of(targets), names, ("A", "B", "C", "D"))


def pairs(rows: tuple[int, ...] = (0, 1, 2, 3)) -> Pairs:
    """Those pairs as a batch."""
    return collate_pairs(split(), rows)


def translator(name: str, seed: int = 0) -> Translator:
    """A model in float64 with weights large enough to tell answers apart."""
    model = build_translator(FORMS[name], seed).double()
    with torch.no_grad():
        for parameter in model.parameters():
            parameter *= 1.7
    return model.eval()
