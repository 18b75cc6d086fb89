"""Data beside a module."""

from pathlib import Path

from heedful.runs.data_files import data_beside


def test_lists_are_tuples_at_every_depth(tmp_path: Path) -> None:
    (tmp_path / "words.toml").write_text(
        'kept = [[1, 2], ["a"]]\n[inner]\nfew = ["é"]\nall = 1.5\n', "utf-8"
    )
    found = data_beside(str(tmp_path / "words.py"))
    assert found == {"kept": ((1, 2), ("a",)), "inner": {"few": ("é",), "all": 1.5}}
