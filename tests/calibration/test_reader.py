"""The simulated reader: right where attention shows what decides, at chance where it does not."""

import numpy as np
import pytest

from heedful.audits.asking import Asked
from heedful.calibration.mechanisms import MECHANISMS
from heedful.calibration.reader import _mixture, reader_success


def asked(name: str, documents: int = 60) -> Asked:
    built = MECHANISMS[name].build(0, documents)
    return Asked(built.model, built.corpus.splits["test"])


@pytest.mark.parametrize(
    ("name", "low", "high"),
    [("honest word, silent context", 1.0, 1.0), ("decoy with 0.90 of the mass", 0.35, 0.65)],
)
def test_a_reader_foresees_what_attention_shows(name: str, low: float, high: float) -> None:
    found = reader_success(asked(name))
    assert found is not None
    assert low <= found.attention.value <= high
    assert found.even.value < 0.9


def test_nobody_reads_where_all_is_decided_alike() -> None:
    assert reader_success(asked("always the same class")) is None


def test_a_mixture_is_of_both_texts_and_brings_what_its_units_weighed() -> None:
    first, second = asked("honest word, silent context", 4).texts[:2]
    hybrid, (weighed, even) = _mixture(first, second, np.random.default_rng(0))
    stayed = [unit for unit, is_new in zip(hybrid.units, hybrid.is_new, strict=True) if not is_new]
    assert 0 < len(stayed) < len(hybrid.units)
    assert even[0] == len(stayed) / len(first.units)
    assert even[1] == sum(hybrid.is_new) / len(second.units)
    assert all(0 <= one <= 1 for one in weighed)
