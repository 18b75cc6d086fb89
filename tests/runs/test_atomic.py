import json
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pytest
import torch

from heedful.errors import InputError
from heedful.runs import (
    plain,
    read_json,
    remove_leftovers,
    write_json,
    write_text,
    writing,
    writing_folder,
)


def files(folder):
    return sorted(str(path.relative_to(folder)) for path in folder.rglob("*"))


def half_written(target):
    with writing(target) as temporary:
        temporary.write_text("half of the ne")
        raise ZeroDivisionError


def half_written_folder(target):
    with writing_folder(target) as temporary:
        (temporary / "third.txt").write_text("third")
        raise ZeroDivisionError


def test_a_file_appears_only_when_the_block_ends(tmp_path):
    target = tmp_path / "deep" / "er" / "table.csv"
    with writing(target) as temporary:
        temporary.write_text("a,b\n")
        assert not target.exists()
        assert (temporary.parent.parent, temporary.suffix) == (target.parent, ".csv")
    assert target.read_text() == "a,b\n"
    assert files(tmp_path / "deep" / "er") == ["table.csv"]


def test_an_error_leaves_the_old_file_and_nothing_else(tmp_path):
    target = tmp_path / "result.json"
    write_text(target, "old")
    with pytest.raises(ZeroDivisionError):
        half_written(target)
    assert target.read_text() == "old"
    assert files(tmp_path) == ["result.json"]


def test_a_folder_is_replaced_as_a_whole(tmp_path):
    target = tmp_path / "model"
    for content in ("first", "second"):
        with writing_folder(target) as temporary:
            (temporary / f"{content}.txt").write_text(content)
    assert files(tmp_path) == ["model", "model/second.txt"]
    with pytest.raises(ZeroDivisionError):
        half_written_folder(target)
    assert files(tmp_path) == ["model", "model/second.txt"]


def test_leftovers_of_a_killed_writer_are_cleared(tmp_path):
    with writing(tmp_path / "kept.json") as temporary:
        temporary.write_text("{}")
    name = temporary.parent.name
    (tmp_path / name).write_text("ha")  # as older versions left it
    (tmp_path / "sub" / name).mkdir(parents=True)
    (tmp_path / "sub" / name / ".tmp4qBhQx").write_text("written by a library")
    remove_leftovers(tmp_path)
    assert files(tmp_path) == ["kept.json", "sub"]


@pytest.mark.parametrize("write", [write_text, write_json])
def test_an_unwritable_place_is_a_sentence(tmp_path, write):
    (tmp_path / "file").write_text("not a folder")
    with pytest.raises(InputError, match=r"Cannot write .*; choose another --out\."):
        write(tmp_path / "file" / "result.json", "x")
    with pytest.raises(InputError, match="Cannot write"):
        write(tmp_path, "x")
    with pytest.raises(InputError, match="Cannot write"), writing_folder(tmp_path / "file"):
        pass
    assert files(tmp_path) == ["file"]


def test_a_full_disk_is_a_sentence_and_other_errors_pass(tmp_path):
    with pytest.raises(InputError, match="No space left"), writing(tmp_path / "a"):
        raise OSError(28, "No space left on device")
    with pytest.raises(FileNotFoundError), writing(tmp_path / "a"):
        raise FileNotFoundError(2, "the caller's own business")
    assert files(tmp_path) == []


@dataclass(frozen=True)
class Point:
    x: float
    y: np.ndarray


class Described:
    def to_json(self):
        return {"described": np.float32(0.5)}


def test_json_keeps_order_and_converts_what_numpy_and_torch_give(tmp_path):
    value = {
        "z": float("nan"),
        "a": (np.float64(0.1), np.int64(3), np.bool_(True), float("inf")),
        "tensor": torch.tensor([[1.5, float("nan")]]),
        "scalar": torch.tensor(7),
        "point": Point(1.0, np.arange(2)),
        "estimate": Described(),
        "path": Path("runs/a"),
        3: "whole numbers become keys",
        "text": "naïve \ud800",
    }
    write_json(tmp_path / "x.json", value)
    found = read_json(tmp_path / "x.json")
    assert list(found) == ["z", "a", "tensor", "scalar", "point", "estimate", "path", "3", "text"]
    assert found == {
        "z": None,
        "a": [0.1, 3, True, None],
        "tensor": [[1.5, None]],
        "scalar": 7,
        "point": {"x": 1.0, "y": [0, 1]},
        "estimate": {"described": 0.5},
        "path": "runs/a",
        "3": "whole numbers become keys",
        "text": "naïve \ud800",
    }


@pytest.mark.parametrize("value", [{1, 2}, {"a": object()}, {(1, 2): "tuple key"}, Point])
def test_what_cannot_be_read_back_is_not_written(tmp_path, value):
    with pytest.raises(TypeError):
        write_json(tmp_path / "x.json", value)
    assert files(tmp_path) == []


def test_floats_survive_exactly(tmp_path):
    values = np.random.default_rng(0).normal(size=50).tolist()
    write_json(tmp_path / "x.json", values)
    assert read_json(tmp_path / "x.json") == values
    assert plain(np.float32(0.1)) == float(np.float32(0.1))


@pytest.mark.parametrize("content", [b"", b"{", b"\xff\xfe\x00", b'{"a": 1} rest'])
def test_a_broken_file_is_named(tmp_path, content):
    (tmp_path / "run.json").write_bytes(content)
    with pytest.raises(InputError, match=r"run\.json is not valid JSON"):
        read_json(tmp_path / "run.json")


def test_a_missing_or_unreadable_file_is_named(tmp_path):
    with pytest.raises(InputError, match=r"gone\.json does not exist"):
        read_json(tmp_path / "gone.json")
    with pytest.raises(InputError, match="Cannot read"):
        read_json(tmp_path)


def test_files_end_with_a_newline_and_are_plain_utf8(tmp_path):
    write_json(tmp_path / "x.json", {"text": "naïve"})
    assert (tmp_path / "x.json").read_text(encoding="utf-8") == '{\n  "text": "naïve"\n}\n'
    assert json.loads((tmp_path / "x.json").read_bytes()) == {"text": "naïve"}


@pytest.mark.parametrize(
    "error",
    [
        OSError(28, "No space left on device"),
        RuntimeError('Error while serializing: IoError(Os { message: "No space left on device" })'),
        ValueError("[errno 27] File too large"),
    ],
)
def test_a_full_disk_is_a_sentence_whichever_library_says_so(tmp_path, error):
    path = tmp_path / "x.bin"
    path.write_text("before")
    said = r"Cannot write .*x\.bin: (No space|File too)"
    with pytest.raises(InputError, match=said), writing(path):
        raise error
    assert path.read_text() == "before"
    assert [one.name for one in tmp_path.iterdir()] == ["x.bin"]
