import csv
import gzip
import json
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from heedful.corpora import FileReading, files, keyed_split, read_file, read_texts
from heedful.corpora.splits import draw
from heedful.corpora.tables import read_table
from heedful.errors import InputError

ROWS = [
    {"review": f"Review number {i} is {'good' if i % 2 else 'bad'}, she said.", "stars": 1 + i % 2}
    for i in range(40)
]
Records = list[dict[str, Any]]


def csv_of(path: Path, rows: Records, separator: str = ",") -> Path:
    with path.open("w", encoding="utf-8", newline="") as file:
        writer = csv.DictWriter(file, list(rows[0]), delimiter=separator)
        writer.writeheader()
        writer.writerows(rows)
    return path


def jsonl_of(path: Path, rows: Records) -> Path:
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    return path


def json_of(path: Path, rows: Records) -> Path:
    path.write_text(json.dumps(rows), encoding="utf-8")
    return path


def parquet_of(path: Path, rows: Records) -> Path:
    pd.DataFrame(rows).to_parquet(path)
    return path


WRITERS: dict[str, Callable[[Path, Records], Path]] = {
    "reviews.csv": csv_of,
    "reviews.tsv": lambda path, rows: csv_of(path, rows, "\t"),
    "reviews.jsonl": jsonl_of,
    "reviews.json": json_of,
    "reviews.parquet": parquet_of,
}


def all_documents(reading: FileReading) -> dict[str, tuple[str, str, int]]:
    return {
        document.id: (split, document.text, document.label)
        for split, documents in reading.corpus.splits.items()
        for document in documents
    }


@pytest.mark.parametrize("name", WRITERS)
def test_every_format_gives_the_same_corpus(tmp_path: Path, name: str) -> None:
    reading = read_file(WRITERS[name](tmp_path / name, ROWS))
    plain = read_file(csv_of(tmp_path / "other.csv", ROWS))
    assert reading.corpus.classes == ("1", "2")
    assert reading.corpus.fingerprint == plain.corpus.fingerprint
    assert {split: len(d) for split, d in reading.corpus.splits.items()} == {
        "train": 28, "dev": 6, "test": 6,
    }  # fmt: skip
    assert "text column: review (guessed)" in reading.said
    assert "label column: stars (guessed)" in reading.said


def test_text_formats_may_be_gzipped(tmp_path: Path) -> None:
    plain = csv_of(tmp_path / "a.csv", ROWS)
    packed = tmp_path / "b.csv.gz"
    packed.write_bytes(gzip.compress(plain.read_bytes()))
    assert read_file(packed).corpus.fingerprint == read_file(plain).corpus.fingerprint
    packed.write_bytes(packed.read_bytes()[:-9])
    with pytest.raises(InputError, match="not a whole gzip file"):
        read_file(packed)


def test_columns_can_be_named_and_are_then_not_guessed(tmp_path: Path) -> None:
    rows = [{"text": "x", "label": 1, "body": f"body {i}", "kind": "ab"[i % 2]} for i in range(12)]
    reading = read_file(csv_of(tmp_path / "a.csv", rows), text="body", label="kind")
    assert reading.said[:2] == ("text column: body", "label column: kind")
    assert reading.corpus.classes == ("a", "b")
    assert all(d.text.startswith("body") for d in reading.corpus.splits["train"])


def test_columns_without_usual_names_are_guessed_by_content(tmp_path: Path) -> None:
    rows = [{"when": f"day {i}", "q": f"a longer text {i}", "k": "ab"[i % 2]} for i in range(12)]
    columns = read_file(csv_of(tmp_path / "a.csv", rows)).columns
    assert (columns.text, columns.label, columns.id) == ("q", "k", None)
    assert set(columns.guessed) == {"text", "label"}


def test_numeric_labels_are_ordered_by_number_and_others_by_letter(tmp_path: Path) -> None:
    numbers = [{"text": f"t{i}", "label": [10, 9, 1.0, 2][i % 4]} for i in range(24)]
    assert read_file(jsonl_of(tmp_path / "a.jsonl", numbers)).corpus.classes == (
        "1", "2", "9", "10",
    )  # fmt: skip
    words = [{"text": f"t{i}", "label": ["b", "10", "a"][i % 3]} for i in range(24)]
    assert read_file(jsonl_of(tmp_path / "b.jsonl", words)).corpus.classes == ("10", "a", "b")
    truths = [{"text": f"t{i}", "label": bool(i % 2)} for i in range(24)]
    assert read_file(parquet_of(tmp_path / "c.parquet", truths)).corpus.classes == (
        "False", "True",
    )  # fmt: skip


def test_the_split_does_not_depend_on_the_order_of_rows_but_on_the_seed(tmp_path: Path) -> None:
    forward = read_file(csv_of(tmp_path / "a.csv", ROWS), seed=3)
    backward = read_file(csv_of(tmp_path / "b.csv", ROWS[::-1]), seed=3)
    other = read_file(tmp_path / "a.csv", seed=4)
    assert all_documents(forward) == all_documents(backward)
    assert all_documents(forward) != all_documents(other)


def test_a_split_column_is_followed_and_missing_parts_are_drawn_from_train(tmp_path: Path) -> None:
    named = ["train", "Validation", "test"]
    rows = [row | {"split": named[(i // 2) % 3]} for i, row in enumerate(ROWS)]
    reading = read_file(csv_of(tmp_path / "a.csv", rows))
    assert "split column: split (guessed)" in reading.said
    texts = {d.text for d in reading.corpus.splits["dev"]}
    assert texts == {row["review"] for row in rows if row["split"] == "Validation"}
    rows = [row | {"split": "test" if i >= 30 else "train"} for i, row in enumerate(ROWS)]
    reading = read_file(csv_of(tmp_path / "b.csv", rows))
    assert len(reading.corpus.splits["test"]) == 10
    assert len(reading.corpus.splits["train"]) + len(reading.corpus.splits["dev"]) == 30
    assert len(reading.corpus.splits["dev"]) == 6
    assert reading.said[-1].endswith("(dev drawn by seed 0)")


def test_ids_come_from_a_unique_id_column_or_from_the_text(tmp_path: Path) -> None:
    rows = [row | {"id": 100 + i} for i, row in enumerate(ROWS)]
    reading = read_file(csv_of(tmp_path / "a.csv", rows))
    assert set(all_documents(reading)) == {str(100 + i) for i in range(40)}
    twice = read_file(csv_of(tmp_path / "b.csv", [*ROWS, ROWS[0], ROWS[0]]))
    assert len(all_documents(twice)) == 42
    assert twice.corpus.notes["the same text as an earlier one, kept"] == 2
    with pytest.raises(InputError, match="the id '7' occurs more than once"):
        read_file(csv_of(tmp_path / "c.csv", [row | {"n": 7} for row in ROWS]), id="n")


def test_a_byte_order_mark_is_accepted(tmp_path: Path) -> None:
    path = csv_of(tmp_path / "a.csv", ROWS)
    plain = read_file(path).corpus.fingerprint
    path.write_bytes(b"\xef\xbb\xbf" + path.read_bytes())
    assert read_file(path).corpus.fingerprint == plain


@pytest.mark.slow
def test_odd_documents_are_kept_and_counted(tmp_path: Path) -> None:
    rows: Records = [dict(row) for row in ROWS]
    rows[0]["review"], rows[1]["review"], rows[2]["review"] = None, "", "Wow"
    rows[3]["review"], rows[4]["review"] = "word " * 100_000, "!"
    rows[5]["review"] = 'comma, "quote"\nand line'
    reading = read_file(jsonl_of(tmp_path / "a.jsonl", rows))
    documents = all_documents(reading)
    assert len(documents) == 40
    assert dict(reading.corpus.notes) == {
        "missing text, read as empty": 1,
        "without any token, kept": 2,
        "of one token, kept": 2,
        "the same text as an earlier one, kept": 1,
    }
    longest = max(len(d.tokens) for s in reading.corpus.splits.values() for d in s)
    assert longest == 100_000


def test_a_stray_byte_is_replaced_and_counted(tmp_path: Path) -> None:
    path = csv_of(tmp_path / "a.csv", ROWS)
    path.write_bytes(path.read_bytes().replace(b"number 7", b"number \xff7"))
    notes = read_file(path).corpus.notes
    assert dict(notes) == {"with an undecodable character, replaced": 1}


def faulty(path: Path, content: bytes | str) -> Path:
    path.write_bytes(content.encode() if isinstance(content, str) else content)
    return path


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("a.csv", "", "is empty"),
        ("a.csv", " \n\n", "is empty"),
        ("a.csv", "text,label\n", "no rows below its header"),
        ("a.jsonl", "\n", "is empty"),
        ("a.json", "[]", "no rows"),
        ("a.csv", "text,text,label\na,b,1\n", "more than one column named 'text'"),
        ("a.csv", 'text,label\n"a,1\nb,2\n', "not a well-formed table"),
        ("a.csv", "text,label\na,1,2\n", "not a well-formed table"),
        ("a.jsonl", '{"text": "a"\n', "line 1: not well-formed JSON"),
        ("a.jsonl", '{"text": "a", "text": "b"}\n', "'text' occurs twice"),
        ("a.jsonl", "[1, 2]\n", "record 1: expected a JSON object, got int"),
        ("a.csv", "text,label\n" + "a,1\n" * 5, "one class only"),
        ("a.csv", "text,label\na,1\nb,\nc,NaN\nd,2\n", r"2 missing label.*row 2, 3"),
        ("a.csv", "text,label\n" + "a,1\nb,2\n" * 5 + "c,3\n", "class '3' has 1 document"),
        ("a.csv", "text,label\na,1\nb,2\n".encode("utf-16"), "UTF-16 text, expected UTF-8"),
        ("a.csv", b"text,label\na\0b,1\n", "binary data"),
        ("a.csv", b"text,label\n" + bytes(range(128, 256)) * 9, "not UTF-8 text"),
        ("a.txt", "hello", r"suffix '.txt'; expected one of .csv"),
        ("a.parquet", "hello", "not a readable Parquet file"),
        ("a.csv", "n,m\n1,2\n3,4\n", "no column that looks like a label"),
    ],
)  # fmt: skip
def test_faulty_files_are_refused_in_one_sentence(
    tmp_path: Path, name: str, content: bytes | str, message: str
) -> None:
    with pytest.raises(InputError, match=message) as refused:
        read_file(faulty(tmp_path / name, content))
    assert str(tmp_path / name) in str(refused.value)
    assert "\n" not in str(refused.value)


def test_a_missing_column_is_refused_with_those_present_and_the_closest(tmp_path: Path) -> None:
    path = csv_of(tmp_path / "a.csv", ROWS)
    with pytest.raises(InputError, match=r"review, stars. Did you mean 'review'\?"):
        read_file(path, text="reviews")


def test_missing_files_and_folders_are_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="does not exist"):
        read_file(tmp_path / "absent.csv")
    with pytest.raises(InputError, match="is a folder"):
        read_file(tmp_path)


def test_a_bad_split_column_is_refused(tmp_path: Path) -> None:
    rows = [row | {"part": "train" if i else "tarin"} for i, row in enumerate(ROWS)]
    with pytest.raises(InputError, match="row 1: split column 'part' says 'tarin'"):
        read_file(csv_of(tmp_path / "a.csv", rows), split="part")
    rows = [row | {"split": "test" if row["stars"] == 1 else "train"} for row in ROWS]
    with pytest.raises(InputError, match="class '1' occurs in test but not in train"):
        read_file(csv_of(tmp_path / "b.csv", rows))
    rows = [row | {"split": "test"} for row in ROWS]
    with pytest.raises(InputError, match="no train rows"):
        read_file(csv_of(tmp_path / "c.csv", rows))


def test_texts_for_a_trained_model_keep_its_class_order(tmp_path: Path) -> None:
    rows: Records = [{"text": "one", "label": "no"}, {"text": "two", "label": "yes"}]
    rows.append({"text": "three", "label": None})
    reading = read_texts(jsonl_of(tmp_path / "a.jsonl", rows), ("yes", "no"))
    assert [d.label for d in reading.corpus.splits["test"]] == [1, 0, -1]
    assert reading.corpus.notes["without a label"] == 1
    with pytest.raises(InputError, match="does not know: 'no'; it knows 'yes', 'maybe'"):
        read_texts(tmp_path / "a.jsonl", ("yes", "maybe"))
    unlabelled = csv_of(tmp_path / "b.csv", [{"text": "alone"}, {"text": "again"}])
    assert [d.label for d in read_texts(unlabelled, ("yes", "no")).corpus.splits["test"]] == [
        -1,
        -1,
    ]


@given(
    st.lists(st.integers(0, 3), min_size=1, max_size=60),
    st.integers(0, 5),
    st.permutations(range(60)),
)
def test_keyed_split_is_a_stratified_partition_whatever_the_order(
    labels: list[int], seed: int, order: list[int]
) -> None:
    ids = [f"id{i}" for i in range(len(labels))]
    parts = keyed_split(ids, labels, seed=seed)
    assert sorted(row for rows in parts.values() for row in rows) == list(range(len(labels)))
    for label, count in Counter(labels).items():
        sizes = [sum(labels[row] == label for row in rows) for rows in parts.values()]
        if count >= 3:
            assert min(sizes) >= 1
        if count >= 10:
            assert all(
                abs(size - share * count) <= 1
                for size, share in zip(sizes, (0.7, 0.15, 0.15), strict=True)
            )
    shuffled = [i for i in order if i < len(labels)]
    again = keyed_split([ids[i] for i in shuffled], [labels[i] for i in shuffled], seed=seed)
    for split in parts:
        assert {ids[row] for row in parts[split]} == {ids[shuffled[row]] for row in again[split]}


def test_draw_takes_a_seeded_sample_in_file_order() -> None:
    ids = [f"id{i}" for i in range(100)]
    assert draw(ids, 10, seed=1) == sorted(draw(ids, 10, seed=1))
    assert draw(ids, 10, seed=1) != draw(ids, 10, seed=2)
    assert set(draw(ids, 10, seed=1)) < set(draw(ids, 20, seed=1))
    assert draw(ids, 1_000) == list(range(100))


def test_half_surrogates_become_the_replacement_character_and_are_counted(tmp_path: Path) -> None:
    rows = [{"text": f"text {i}", "label": "yes" if i % 2 else "no\ud800"} for i in range(20)]
    rows[0]["text"] = "broken \ud83d emoji \udc00"
    reading = read_file(jsonl_of(tmp_path / "a.jsonl", rows))
    assert reading.corpus.classes == ("no�", "yes")
    assert reading.corpus.notes["with an undecodable character, replaced"] == 1
    assert reading.corpus.notes["with an undecodable character in the label, replaced"] == 10
    every = [d for documents in reading.corpus.splits.values() for d in documents]
    assert "broken � emoji �" in {document.text for document in every}
    table = pd.DataFrame([{"id": d.id, "text": d.text, "tokens": list(d.tokens)} for d in every])
    table.to_parquet(tmp_path / "out.parquet")
    found = read_texts(tmp_path / "a.jsonl", reading.corpus.classes)
    assert [d.label for d in found.corpus.splits["test"]] == [0, 1] * 10


def test_a_trained_model_is_asked_about_the_test_rows_of_a_file(tmp_path: Path) -> None:
    parts = ["train", "test", "dev", "test", "train"]
    rows = [f"text {n},yes,{part}" for n, part in enumerate(parts)]
    path = tmp_path / "reviews.csv"
    path.write_text("\n".join(["text,label,split", *rows]))
    found = read_texts(path, ("no", "yes"))
    assert [document.text for document in found.corpus.splits["test"]] == ["text 1", "text 3"]
    assert found.said[-1] == "documents: 2 (the test rows of 5)"
    path.write_text("\n".join(["text,label,part", *rows]))
    assert len(read_texts(path, ("no", "yes")).corpus.splits["test"]) == 5  # not taken for a split
    assert len(read_texts(path, ("no", "yes"), split="part").corpus.splits["test"]) == 2
    path.write_text("text,label,split\na b,yes,train\nb c,no,dev\n")
    untested = read_texts(path, ("no", "yes"))
    assert untested.said[-1] == "documents: 2 (none is marked test: all rows)"


def test_one_mistyped_split_is_refused_and_does_not_undo_the_others(tmp_path: Path) -> None:
    words = [("a fine day", "pos"), ("a bad day", "neg")]
    rows = [(*word, split) for split in ("train", "test") for word in words * 15]
    rows[17] = ("a bad day", "neg", "tset")
    path = tmp_path / "x.csv"
    path.write_text("text,label,split\n" + "".join(f"{','.join(row)}\n" for row in rows))
    with pytest.raises(InputError, match=r"row 18: split column 'split' says 'tset', expected"):
        read_file(path)
    path.write_text(path.read_text().replace("split\n", "set\n").replace("tset", "train"))
    assert len(read_file(path).corpus.splits["test"]) == 30


@pytest.mark.parametrize(("first", "second"), [(3, 4), (3, 40), (10, 200)])
@pytest.mark.parametrize("suffix", [".csv", ".tsv"])
def test_stray_quotes_do_not_swallow_rows(
    tmp_path: Path, first: int, second: int, suffix: str
) -> None:
    lines = [f"text number {n} is here\t{'pos' if n % 2 else 'neg'}" for n in range(300)]
    lines[first] = f'"{lines[first]}'
    lines[second] = lines[second].replace("\t", '"\t')
    path = tmp_path / f"x{suffix}"
    separator = "," if suffix == ".csv" else "\t"
    path.write_text("text\tlabel\n".replace("\t", separator)
                    + "\n".join(lines).replace("\t", separator))  # fmt: skip
    if suffix == ".tsv":  # every line has its tab, so that all are rows, with the quotes they have
        corpus = read_file(path).corpus
        texts = {document.text for split in corpus.splits.values() for document in split}
        assert texts == {line.split("\t")[0] for line in lines}
        return
    with pytest.raises(InputError, match=rf"row {first + 1}: a cell goes on after .* a quote"):
        read_file(path)


def test_quoted_cells_between_tabs_are_read_as_quoted(tmp_path: Path) -> None:
    path = tmp_path / "x.tsv"
    path.write_text("text\tlabel\n" + '"He said ""so""\nand left"\tpos\n"a\tb"\tneg\n' * 10)
    corpus = read_file(path).corpus
    texts = {document.text for split in corpus.splits.values() for document in split}
    assert texts == {'He said "so"\nand left', "a\tb"}


def test_a_file_without_a_line_of_names_is_told_so(tmp_path: Path) -> None:
    path = tmp_path / "x.tsv"
    path.write_text("ham\tsee you\n" + "spam\twin a prize\nham\tat home now\n" * 10)
    with pytest.raises(
        InputError, match=r"first line has 'ham' as 10 other rows do\. Put one such"
    ):
        read_file(path)


def test_cells_of_several_lines_are_read(tmp_path: Path) -> None:
    path = tmp_path / "x.csv"
    text = 'One line, then\nanother, longer; he said ""so"", and left,\n\nat the end'
    path.write_text("text,label\n" + f'"{text}",pos\nplain,neg\n' * 10)
    corpus = read_file(path).corpus
    assert sum(len(split) for split in corpus.splits.values()) == 20


def test_lists_are_no_labels_and_letters_written_in_two_ways_are_one_class(tmp_path: Path) -> None:
    path = tmp_path / "x.jsonl"
    path.write_text('{"text": "a b", "label": ["pos", "neg"]}\n' * 9)
    with pytest.raises(InputError, match="row 1: column 'label' holds a list"):
        read_file(path)
    path = tmp_path / "x.csv"
    composed, decomposed = "caf\u00e9", "cafe\u0301"
    path.write_text("text,label\n" + f"a,{composed}\nb,{decomposed}\nc,bar\n" * 6)
    assert read_file(path).corpus.classes == ("bar", composed)


def test_a_gzip_that_unpacks_to_far_more_than_text_does_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("heedful.corpora.tables._UNPACKED", 1_000_000)
    path = tmp_path / "bomb.csv.gz"
    path.write_bytes(gzip.compress(b"text,label\n" + b"a,1\n" * 2_000_000))
    with pytest.raises(InputError, match=r"unpacks to more than \d+ MB, 200 times its size"):
        read_file(path)


def test_parquet_values_that_python_does_not_have_are_read_as_text(tmp_path: Path) -> None:
    import pyarrow as pa
    import pyarrow.parquet as parquet

    data = pa.array([b"a fine day", b"a b\xe4d day"] * 9, pa.binary())
    columns = {
        "text": pa.Array.from_buffers(pa.string(), len(data), data.buffers()),  # not UTF-8
        "label": pa.array(["pos", "neg"] * 9),
        "when": pa.array([2**60, -(2**60)] * 9, pa.timestamp("ms")),
        "day": pa.array([2**31 - 1] * 18, pa.date32()),
    }
    path = tmp_path / "x.parquet"
    parquet.write_table(pa.table(columns), path)
    corpus = read_file(path, text="text", label="label").corpus
    assert corpus.notes["with an undecodable character, replaced"] == 9
    assert corpus.classes == ("neg", "pos")


def test_a_parquet_file_of_too_many_cells_is_refused_before_it_is_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    import pyarrow as pa
    import pyarrow.parquet as parquet

    monkeypatch.setattr("heedful.corpora.tables._CELLS", 1000)
    parquet.write_table(
        pa.table({"text": ["a"] * 2000, "label": ["b"] * 2000}), tmp_path / "x.parquet"
    )
    with pytest.raises(InputError, match="2,000 rows of 2 columns; more than 1,000 cells"):
        read_file(tmp_path / "x.parquet")


def test_a_large_file_is_read_packed_with_the_same_documents_and_says_how_far_it_is(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    rows = [
        {"text": f"Good, number {n}. It isn't bad!" * (n % 3), "label": "ab"[n % 2]}
        for n in range(3000)
    ]
    path = jsonl_of(tmp_path / "a.jsonl", rows)
    whole = read_file(path).corpus
    monkeypatch.setattr(files, "LARGE", 1000)
    monkeypatch.setattr("heedful.corpora.tables._LONG", 1000)
    monkeypatch.setattr("heedful.runs.progress.QUIET_SECONDS", 0.0)
    assert capsys.readouterr().err == ""
    packed = read_file(path).corpus
    said = capsys.readouterr().err
    assert f"reading {path}" in said
    assert f"cutting {path} into words" in said
    assert packed.fingerprint == whole.fingerprint
    assert packed.notes == whole.notes
    for one, other in zip(packed.splits["dev"], whole.splits["dev"], strict=True):
        assert one.locate is not None
        assert other.locate is None
        assert (one.text, one.tokens, one.label) == (other.text, other.tokens, other.label)
        assert (one.spans == other.spans).all()
        assert (one.sentence == other.sentence).all()
        assert one.cut(2).tokens == other.tokens[:2]
        assert (one.cut(2).spans == other.spans[:2]).all()
        assert one.evidence is None


def test_keys_that_come_late_are_missing_before(tmp_path: Path) -> None:
    (tmp_path / "a.jsonl").write_text('{"a": 1}\n\n  \n{"b": 2, "a": 3}\n{"b": 4}')
    assert read_table(tmp_path / "a.jsonl") == {"a": [1, 3, None], "b": [None, 2, 4]}
