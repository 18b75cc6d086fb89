"""Tables that were kept come back to the bit; what was asked otherwise is computed."""

from pathlib import Path

import numpy as np
import pandas as pd

from heedful.runs.kept_tables import KeptTables, keep_nothing


def answer(number: int) -> pd.DataFrame:
    logits = [np.array([number / 3, np.nan], dtype=np.float32)] * 2
    return pd.DataFrame({"logits": logits, "weights": [np.array([1 / 7]), np.array([0.1, 0.9])]})


def refuse() -> pd.DataFrame:
    raise AssertionError("this was kept")


def test_what_was_kept_comes_back_to_the_bit_in_any_order(tmp_path: Path) -> None:
    heard: list[int] = []
    first = KeptTables(tmp_path, "answers", {}, 0.0)
    for number in range(3):
        first(str(number), lambda number=number: answer(number))
    again = KeptTables(tmp_path, "answers", {}, 0.0, heard.append)
    assert again.rows == 6
    for number in (2, 0, 1):
        table = again(str(number), refuse)
        for column, values in answer(number).items():
            for one, other in zip(table[column], values, strict=True):
                assert one.dtype == other.dtype
                assert one.tobytes() == other.tobytes()
    assert heard == [2, 2, 2]


def test_what_comes_in_a_short_time_is_not_written(tmp_path: Path) -> None:
    keep = KeptTables(tmp_path, "answers", {}, 60.0)
    keep("0", lambda: answer(0))
    assert list(tmp_path.iterdir()) == []
    assert keep_nothing("0", lambda: answer(1)).equals(answer(1))


def test_other_inputs_and_damaged_files_do_not_count(tmp_path: Path) -> None:
    keep = KeptTables(tmp_path, "answers", {"seed": 0}, 0.0)
    for number in range(3):
        keep(str(number), lambda number=number: answer(number))
    assert KeptTables(tmp_path, "answers", {"seed": 1}).rows == 0
    (tmp_path / "answers-001" / "rows.parquet").write_bytes(b"")
    damaged = KeptTables(tmp_path, "answers", {"seed": 0}, 0.0)
    assert damaged.rows == 2
    assert damaged("1", lambda: answer(5))["logits"][0][0] == np.float32(5 / 3)
    assert KeptTables(tmp_path, "answers", {"seed": 0}).rows == 6  # written anew
