"""Damaged copies of valid files, each made from a number alone so that it can be made again."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from copy import deepcopy
from random import Random
from typing import Any

CHUNKS = (
    b"\0", b"\xff", b"\xfe\xff", b"\xef\xbb\xbf", b"\xed\xa0\x80", b"\r", b"\n", b"\r\n", b"\t",
    b" ", b",", b'"', b'""', b"'", b"\\", b"=", b"-", b"+", b"*", b"@", b":", b"/", b"../", b"#",
    b"(", b")", b"[", b"]", b"{", b"}", b"{text}", b"<script>", b"\x1b]0;x\x07", b"\x7f", b"\x85",
    "\u2028".encode(), "\u202e".encode(), "\u00e9".encode(), "e\u0301".encode(),
    "\U0001f600".encode(), "\u0661".encode(), "\u00b2".encode(), b"NaN", b"nan", b"Infinity",
    b"-inf", b"1e999", b"-0", b"1_0", b"0x1", b"9" * 30, b"9" * 5_000, b"1" + b"0" * 400, b"null",
    b"true", b"false", b"\\ud800", b"\\u0000", b"[" * 3_000, b'{"a":' * 3_000, b"(" * 3_000,
    b"a" * 70_000, b"train", b"dev", b"tset", b"han:", b"text", b"label", b"id", b"split",
)  # fmt: skip
"""What readers stumble over."""
VALUES: tuple[Any, ...] = (
    None, True, False, 0, 1, -1, 2, 3.5, -1e-9, 1e308, float("nan"), float("inf"), 10**9, 2**31,
    2**63, 10**30, 10**400, "", " ", "a", "0", "nan", "\x1b[2J\n", "\u202e", "\ud800", "x" * 3_000,
    "../../x", "/", "=1+1", "<b>", [], [[]], [None], ["a"], [0, 1], {}, {"a": 1}, {"": None},
)  # fmt: skip
"""What stands in a file in place of what belongs there."""
_BYTES = bytes(range(256))


def damaged(seeds: Sequence[bytes], random: Random) -> bytes:
    """A seed after one to eight random cuts, copies, insertions and flipped bits."""
    data = bytearray(random.choice(seeds))
    for _ in range(random.choice((1, 1, 1, 2, 2, 3, 5, 8))):
        random.choice(_STEPS)(data, random, seeds)
    return bytes(data)


def _flip(data: bytearray, random: Random, seeds: Sequence[bytes]) -> None:
    if data:
        data[random.randrange(len(data))] ^= 1 << random.randrange(8)


def _set(data: bytearray, random: Random, seeds: Sequence[bytes]) -> None:
    if data:
        data[random.randrange(len(data))] = random.choice(_BYTES)


def _insert(data: bytearray, random: Random, seeds: Sequence[bytes]) -> None:
    place = random.randint(0, len(data))
    data[place:place] = random.choice(CHUNKS)


def _replace(data: bytearray, random: Random, seeds: Sequence[bytes]) -> None:
    start, end = _range(data, random)
    data[start:end] = random.choice(CHUNKS)


def _delete(data: bytearray, random: Random, seeds: Sequence[bytes]) -> None:
    start, end = _range(data, random)
    del data[start:end]


def _copy(data: bytearray, random: Random, seeds: Sequence[bytes]) -> None:
    start, end = _range(data, random)
    place = random.randint(0, len(data))
    data[place:place] = data[start:end] * random.choice((1, 1, 2, 20))


def _cut(data: bytearray, random: Random, seeds: Sequence[bytes]) -> None:
    del data[random.randint(0, len(data)) :]


def _splice(data: bytearray, random: Random, seeds: Sequence[bytes]) -> None:
    other = random.choice(seeds)
    place = random.randint(0, min(len(data), len(other)))
    data[place:] = other[place:]


def _range(data: bytearray, random: Random) -> tuple[int, int]:
    start = random.randint(0, len(data))
    return start, min(len(data), start + random.choice((1, 1, 2, 4, 16, 64)))


_STEPS: tuple[Callable[[bytearray, Random, Sequence[bytes]], None], ...] = (
    _flip, _set, _insert, _insert, _replace, _delete, _copy, _cut, _splice,
)  # fmt: skip


def tampered(seeds: Sequence[bytes], random: Random, is_whole: bool = False) -> bytes:
    """JSON with one to three values, keys or whole parts exchanged; now and then damaged bytes."""
    if not is_whole and random.random() < 0.1:
        return damaged(seeds, random)
    value = json.loads(random.choice(seeds))
    for _ in range(random.choice((1, 1, 1, 2, 3))):
        value = _tampered(value, random)
    return json.dumps(value, ensure_ascii=random.random() < 0.9).encode("utf-8", "replace")


def _tampered(value: Any, random: Random) -> Any:
    """The value with one place in it changed: each level is as likely as the one below it."""
    if not isinstance(value, dict | list) or not value or random.random() < 0.15:
        return deepcopy(random.choice(VALUES))
    place = random.choice(list(value) if isinstance(value, dict) else range(len(value)))
    how = random.random()
    if how < 0.1:
        del value[place]
    elif how < 0.2 and isinstance(value, list):
        value.append(deepcopy(value[place]))
    elif how < 0.2:
        value[random.choice(("", "a", "\x1b", "x" * 300))] = value[place]
    elif how < 0.25 and isinstance(value[place], int | float):
        value[place] = value[place] * random.choice((-1, 0, 10, 0.5, 10**9))
    else:
        value[place] = _tampered(value[place], random)
    return value
