import gzip
from pathlib import Path

import numpy as np
import pytest

from heedful.corpora import Vocabulary, load_vectors
from heedful.corpora.vocabulary import SPECIALS
from heedful.errors import InputError

VOCABULARY = Vocabulary((*SPECIALS, "good", "bad", "new york", "absent"))
LINES = "other 9 9 9\ngood 1 2 3\nbad -1 0.5 1e-2\nnew york 4 5 6\ngood 7 7 7\n"


def written(folder: Path, text: str, name: str = "v.txt") -> Path:
    path = folder / name
    data = text.encode()
    path.write_bytes(gzip.compress(data) if name.endswith(".gz") else data)
    return path


@pytest.mark.parametrize("name", ["v.txt", "v.txt.gz"])
@pytest.mark.parametrize("header", ["", "5 3\n"])
def test_only_needed_words_are_read_and_missing_ones_are_nan(
    tmp_path: Path, name: str, header: str
) -> None:
    matrix, found = load_vectors(written(tmp_path, header + LINES, name), VOCABULARY)
    assert matrix.shape == (len(VOCABULARY), 3)
    assert found == 3
    assert matrix[VOCABULARY.ids["good"]].tolist() == [1, 2, 3]  # the first of two lines counts
    assert matrix[VOCABULARY.ids["bad"]] == pytest.approx([-1, 0.5, 0.01])
    assert matrix[VOCABULARY.ids["new york"]].tolist() == [4, 5, 6]
    assert np.isnan(matrix[VOCABULARY.ids["absent"]]).all()
    assert np.isnan(matrix[: len(SPECIALS)]).all()


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("good 1 2 3\nbad 1 2\n", r"line 2: expected a word and 3 numbers, found 2"),
        ("good 1 2 3\nbad 1 2 3 4\n", r"line 2: expected a word and 3 numbers, found 4"),
        ("good 1 2 x\n", r"line 1: expected 3 numbers"),
        ("good\n", r"line 1: expected a word and its numbers"),
        ("", r"is empty"),
    ],
)
def test_ragged_files_are_refused_by_line(tmp_path: Path, text: str, message: str) -> None:
    with pytest.raises(InputError, match=message):
        load_vectors(written(tmp_path, text), VOCABULARY)


def test_missing_and_cut_files_are_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="No such file"):
        load_vectors(tmp_path / "absent.txt", VOCABULARY)
    path = written(tmp_path, LINES * 100, "v.txt.gz")
    path.write_bytes(path.read_bytes()[:-20])
    with pytest.raises(InputError, match="not a whole gzip file"):
        load_vectors(path, VOCABULARY)
