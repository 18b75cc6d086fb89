"""The walks of docs/architecture.md: what they name is there, and is called in that order."""

from __future__ import annotations

import re
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from importlib import import_module
from pathlib import Path
from types import CodeType, FrameType
from typing import Any

import pandas as pd
import pytest
from typer.testing import CliRunner

import heedful
from heedful.cli import app
from heedful.corpora import planted
from tests import tiny_transformers as tiny

SOURCE = Path(heedful.__file__).parent
PAGE = Path(__file__).parents[2] / "docs" / "architecture.md"
WALKS = ("Audit a CSV", "Audit a Transformer", "Reproduce a study")
TINY = """
[model]
embedding_dim = 8
width = 8
[train]
epochs = 1
"""


def walk(title: str) -> list[str]:
    """The functions that a walk names, in its order: `room.module.function` at the start of a
    numbered line."""
    _, _, after = PAGE.read_text().partition(f"\n### {title}\n")
    section, _, _ = after.partition("\n#")
    return re.findall(r"^\d+\. `([\w.]+)`", section, re.MULTILINE)


def code_of(name: str) -> CodeType:
    """The code of a function, or of a method: `models.verbs.read`, `runs.folder.RunFolder.open`."""
    parts = name.split(".")
    known = next(
        count
        for count in range(len(parts), 0, -1)
        if (SOURCE.joinpath(*parts[:count])).with_suffix(".py").is_file()
        or SOURCE.joinpath(*parts[:count], "__init__.py").is_file()
    )
    found: Any = import_module(".".join(["heedful", *parts[:known]]))
    for part in parts[known:]:
        found = getattr(found, part)
    while hasattr(found, "__wrapped__"):
        found = found.__wrapped__
    code: CodeType = getattr(found, "__func__", found).__code__
    assert Path(code.co_filename).is_relative_to(SOURCE), name
    return code


@contextmanager
def watched() -> Iterator[list[CodeType]]:
    """Every function that is called, by its first call."""
    called: dict[CodeType, None] = {}

    def note(frame: FrameType, event: str, _: object) -> None:
        called.setdefault(frame.f_code)  # returns no tracer, so that lines are not followed

    found: list[CodeType] = []
    before = sys.gettrace()
    sys.settrace(note)
    try:
        yield found
    finally:
        sys.settrace(before)
        found += called


def csv(folder: Path) -> list[str]:
    """A classifier is trained on a CSV and audited."""
    corpus = planted(length="short", seed=1, sizes={"train": 90})
    rows = [{"text": d.text, "label": corpus.classes[d.label]} for d in corpus.splits["train"]]
    pd.DataFrame(rows).to_csv(folder / "reviews.csv", index=False)
    (folder / "tiny.toml").write_text(TINY)
    given = {"--data": "reviews.csv", "--config": "tiny.toml", "--out": "run"}
    return ["audit", "bilstm+additive", *_options(folder, given)]


def transformer(folder: Path) -> list[str]:
    """A classifier of transformers, from its folder, is audited on a CSV."""
    tiny.transformer("bert").save_pretrained(folder / "model")
    tiny.tokenizer().save_pretrained(folder / "model")
    rows = [{"text": text, "label": f"LABEL_{i % 3}"} for i, text in enumerate(tiny.TEXTS * 3)]
    pd.DataFrame(rows).to_csv(folder / "texts.csv", index=False)
    given = {"--data": "texts.csv", "--out": "run"}
    return ["audit", str(folder / "model"), *_options(folder, given)]


def study(folder: Path) -> list[str]:
    """A table and a claim of a study are rebuilt, on examples that train nothing."""
    given = ["--scale", "smoke", "--corpora", "toy", "--only", "E4,DYN-14"]
    return ["reproduce", "dynamics", *given, *_options(folder, {"--out": "out"})]


def _options(folder: Path, given: dict[str, str]) -> list[str]:
    return [word for option, name in given.items() for word in (option, str(folder / name))]


@pytest.mark.parametrize("title", WALKS)
def test_what_a_walk_names_is_there(title: str) -> None:
    names = walk(title)
    assert len(names) >= 8
    assert len({code_of(name) for name in names}) == len(names)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("title", "command"), [*zip(WALKS, (csv, transformer, study), strict=True)], ids=WALKS
)
def test_a_walk_is_in_the_order_of_calls(
    title: str, command: Callable[[Path], list[str]], tmp_path: Path
) -> None:
    words = command(tmp_path)
    with watched() as called:
        done = CliRunner().invoke(app, words)
    assert done.exit_code == 0, done.output
    names = walk(title)
    never = [name for name in names if code_of(name) not in called]
    assert not never, f"never called: {never}"
    assert sorted(names, key=lambda name: called.index(code_of(name))) == names
