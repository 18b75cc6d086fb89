"""What a label column says of classes, and what is never guessed from it in silence."""

import re
from pathlib import Path
from shlex import quote

import pandas as pd
import pytest

from heedful.corpora import match_labels, read_file, read_texts
from heedful.corpora.labels import Labelling, suggested
from heedful.errors import InputError

NAMES = ("negative", "positive")


def file_of(folder: Path, **columns: list[object]) -> Path:
    path = folder / "data.csv"
    pd.DataFrame({"text": [f"text {row}" for row in range(12)]} | columns).to_csv(path, index=False)
    return path


@pytest.mark.parametrize("values", [[0, 1], [0.0, 1.0]])
def test_whole_numbers_are_those_of_the_classes_and_said(tmp_path: Path, values: list[int]) -> None:
    found = read_texts(file_of(tmp_path, label=values * 6), NAMES)
    assert [document.label for document in found.corpus.splits["test"]] == [0, 1] * 6
    assert "labels 0, 1 are taken for the numbers of the classes negative, positive" in found.said
    assert read_file(tmp_path / "data.csv").corpus.classes == ("0", "1")


def test_a_column_of_classes_is_guessed_by_names_and_one_of_numbers_is_named(
    tmp_path: Path,
) -> None:
    found = read_texts(file_of(tmp_path, verdict=["Positive", "negative"] * 6), NAMES)
    assert "label column: verdict (guessed)" in found.said
    assert [document.label for document in found.corpus.splits["test"]] == [1, 0] * 6
    path = file_of(tmp_path, spam=[0, 1] * 6, age=[20, 30] * 6)
    found = read_texts(path, NAMES)
    assert {document.label for document in found.corpus.splits["test"]} == {-1}
    (hint,) = [line for line in found.said if "--label" in line]
    option = re.findall(r"--label (\S+)", hint)
    assert option == ["spam"]
    named = read_texts(path, NAMES, label=option[0])
    assert [document.label for document in named.corpus.splits["test"]] == [0, 1] * 6


def test_ratings_are_no_classes_until_somebody_says_where_to_cut(tmp_path: Path) -> None:
    path = file_of(tmp_path, rating=[-3.25, 0.0, 1.5, 4.0] * 3)
    with pytest.raises(InputError, match=r"numbers with decimals.*--threshold 0 "):
        read_file(path)
    cut = read_file(path, threshold=0.0)
    assert cut.corpus.classes == ("below 0", "from 0 on")
    assert "rating is cut at 0: less is taken for 'below 0', the rest for 'from 0 on'" in cut.said
    assert cut.corpus.counts("train")["below 0"] == 1
    unlabelled = read_texts(path, NAMES)
    assert {document.label for document in unlabelled.corpus.splits["test"]} == {-1}
    assert any("not read as labels" in line and "--threshold 0" in line for line in unlabelled.said)
    with pytest.raises(InputError, match="--threshold 0"):
        read_texts(path, NAMES, label="rating")
    judged = read_texts(path, NAMES, threshold=0.0)
    assert [document.label for document in judged.corpus.splits["test"]] == [0, 1, 1, 1] * 3
    with pytest.raises(InputError, match="this model has 3"):
        read_texts(path, ("a", "b", "c"), threshold=0.0)


def test_stars_that_a_model_of_two_classes_does_not_know_get_the_hint(tmp_path: Path) -> None:
    path = file_of(tmp_path, stars=[1, 2, 4, 5] * 3)
    with pytest.raises(InputError, match="--threshold 3 "):
        read_texts(path, NAMES)
    found = read_texts(path, NAMES, threshold=3)
    assert [document.label for document in found.corpus.splits["test"]] == [0, 0, 1, 1] * 3
    with pytest.raises(InputError, match="for ratings, and column 'text' holds 'text 0'"):
        read_texts(path, NAMES, text="stars", label="text", threshold=3)


def test_labels_of_another_spelling_get_a_suggestion_that_works(tmp_path: Path) -> None:
    path, classes = file_of(tmp_path, label=["neg", "pos"] * 6), ("LABEL_0", "LABEL_1")
    with pytest.raises(InputError, match="add: --labels neg=LABEL_0,pos=LABEL_1") as refused:
        read_texts(path, classes)
    pasted = str(refused.value).rpartition("--labels ")[2]
    found = read_texts(path, classes, labels=pasted)
    assert [document.label for document in found.corpus.splits["test"]] == [0, 1] * 6
    assert read_file(path, labels=pasted).corpus.classes == classes


@pytest.mark.parametrize(
    ("classes", "labels", "pairs"),
    [
        (NAMES, ("neg", "pos"), "neg=negative,pos=positive"),
        (("positive", "negative"), ("LABEL_0", "LABEL_1"), "LABEL_0=negative,LABEL_1=positive"),
        (NAMES, ("False", "True"), "False=negative,True=positive"),
        (("LABEL_0", "LABEL_1", "LABEL_2"), ("a", "c", "b"), "a=LABEL_0,b=LABEL_1,c=LABEL_2"),
        (("1 star", "2 stars"), ("1", "2"), "1=1 star,2=2 stars"),
        (("ham", "spam"), ("bad", "good"), ""),
    ],
)
def test_what_is_suggested_is_one_to_one(
    classes: tuple[str, ...], labels: tuple[str, ...], pairs: str
) -> None:
    assert suggested(classes, labels) == pairs
    with pytest.raises(InputError, match=re.escape(quote(pairs) if pairs else "OWN=CLASS")):
        match_labels(classes, labels)


def test_names_that_say_nothing_are_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="OWN=CLASS"):
        Labelling.of("neg,pos")
    with pytest.raises(InputError, match="no row has the label 'bad'"):
        read_texts(file_of(tmp_path, label=["neg", "pos"] * 6), NAMES, labels={"bad": "negative"})
    with pytest.raises(InputError, match="name the column of the labels"):
        read_texts(file_of(tmp_path), NAMES, labels={"bad": "negative"})


def test_one_and_one_point_nothing_are_the_same_class(tmp_path: Path) -> None:
    path = tmp_path / "mixed.csv"
    path.write_text("text,label\n" + "a,1\nb,1.0\nc,01.\nd,0\n" * 6)
    assert read_file(path, label="label").corpus.classes == ("0", "1")
    path.write_text("text,label\n" + "a,12345678901234567891.0\nd,0\n" * 6)
    assert read_file(path, label="label").corpus.classes == ("0", "12345678901234567891")
