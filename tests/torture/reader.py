"""A reader as it is tried: valid inputs to start from, what reads them, what damages them."""

from __future__ import annotations

import unicodedata
from collections.abc import Callable, Sequence
from pathlib import Path
from random import Random
from typing import NamedTuple

from heedful.errors import LONGEST, InputError
from tests.torture.mutation import damaged

_DIRECTIONS = frozenset(["LRE", "RLE", "LRO", "RLO", "PDF", "LRI", "RLI", "FSI", "PDI"])


def sentence(error: InputError) -> str:
    """What an error says, if it is one line of bounded length that a terminal shows, not obeys."""
    said = str(error)
    if not 10 < len(said) < LONGEST + 10 or any(
        unicodedata.category(letter) in ("Cc", "Cs", "Zl", "Zp")
        or unicodedata.bidirectional(letter) in _DIRECTIONS
        or letter in "\u061c\u200e\u200f"
        for letter in said
    ):
        raise AssertionError(f"no sentence: {said[:300]!r}")
    return said


Damage = Callable[[Sequence[bytes], Random], bytes]


class Reader(NamedTuple):
    """How one kind of file is read, and valid ones to start from."""

    seeds: Sequence[bytes]
    read: Callable[[bytes], object]
    damage: Damage = damaged


class Family(NamedTuple):
    """A reader that is made in an empty folder of its own, and how many inputs a long run tries."""

    make: Callable[[Path], Reader]
    inputs: int


def each(*attempts: Callable[[], object]) -> None:
    """Makes every attempt, whether those before it were refused or not; counts is the first."""
    refused = []
    for number, attempt in enumerate(attempts):
        try:
            attempt()
        except InputError as error:
            sentence(error)
            refused += [] if number else [error]
    if refused:
        raise refused[0]
