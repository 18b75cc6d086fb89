"""What hostile inputs once brought down, each as the smallest input that did it."""

from __future__ import annotations

import gzip
import io
import json
import tarfile
from collections.abc import Callable
from pathlib import Path
from unittest import mock

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from heedful.corpora import eraser, load_corpus, load_prepared, load_vectors, planted, prepare
from heedful.corpora.columns import find_columns
from heedful.corpora.files import read_file
from heedful.corpora.lexicon import read_ratings
from heedful.corpora.narratives import read_narratives
from heedful.corpora.pair_files import read_links, usable_pairs
from heedful.corpora.root import text_of
from heedful.corpora.vocabulary import SPECIALS, Vocabulary
from heedful.errors import InputError, intact
from heedful.models.huggingface import open_classifier
from heedful.models.huggingface.prompts import template_of
from heedful.runs import read_csv, read_json, write_csv
from tests.tiny_transformers import save
from tests.torture.opened import checkpoint
from tests.torture.reader import sentence
from tests.torture.readers import rationales

ROWS = "text,label\n" + "good food,a\nbad food,b\n" * 6
Made = Callable[[Path], object]


@pytest.fixture(autouse=True)
def _small_traps(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("heedful.corpora.tables._UNPACKED", 1_000_000)


def written(path: Path, data: str | bytes) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(data.encode() if isinstance(data, str) else data)
    return path


def _zeros(folder: Path, name: str) -> Path:
    """A small file that unpacks to more than 200 times its size."""
    return written(folder / name, gzip.compress(bytes(5_000_000)))


def _narrative(folder: Path, words: str) -> Path:
    for split in ("train", "dev"):
        written(folder / split / "words" / "1.tsv", words)
        written(folder / split / "ratings" / "1.csv", "time,rating\n1,50\n9,60\n")
    return folder


def _links(folder: Path) -> object:
    one, two = (written(folder / name, "a b\n" * 12) for name in ("a.txt", "b.txt"))
    links = written(folder / "links.txt", f"{'9' * 5_000}-0\n" * 12)
    return read_links(links, usable_pairs(one, two))


def _parquet(folder: Path) -> object:
    table = pa.table({"text": ["a"] * 12, "label": ["x", "y"] * 6})
    file = io.BytesIO()
    pq.write_table(table, file)
    return read_file(written(folder / "a.parquet", file.getvalue().replace(b"label", b"lab\xf5l")))


@pytest.mark.parametrize(
    "made",
    [
        pytest.param(_parquet, id="a column name that is no UTF-8"),
        pytest.param(
            lambda f: read_file(written(f / "a.csv", ROWS.replace(",a", f",{'9' * 400}.0"))),
            id="a label of 400 digits",
        ),
        pytest.param(
            lambda f: read_file(written(f / "a.csv", ROWS.replace(",a", "," + "x" * 1_000))),
            id="a label of 1,000 letters",
        ),
        pytest.param(
            lambda f: read_ratings(written(f / "l.csv", "good," + "7" * 140_000)),
            id="a lexicon of one long cell",
        ),
        pytest.param(
            lambda f: read_narratives(_narrative(f, f"time\tword\n1\t{'a' * 140_000}\n")),
            id="a narrative of one long word",
        ),
        pytest.param(_links, id="a link of 5,000 digits"),
        pytest.param(
            lambda f: read_narratives(_narrative(f, "time\tword\n1\ta\n1e300\tb\n")),
            id="a narrative of 1e300 seconds",
        ),
        pytest.param(
            lambda f: load_corpus(f"20newsgroups:{'x' * 3_000},hockey", f), id="a long name"
        ),
        pytest.param(lambda f: template_of("x" * 5_000), id="a long prompt without its slot"),
        pytest.param(
            lambda f: read_json(written(f / "a.json", "[" * 100_000)), id="JSON nested deeply"
        ),
        pytest.param(
            lambda f: load_vectors(
                _zeros(f, "v.txt.gz"), Vocabulary((*SPECIALS, "good"))
            ),
            id="vectors of one line without end",
        ),
        pytest.param(lambda f: text_of(_zeros(f, "train.txt.gz")), id="a packed corpus of zeros"),
    ],
)  # fmt: skip
def test_it_is_refused_in_a_sentence(made: Made, tmp_path: Path) -> None:
    with pytest.raises(InputError) as refused:
        made(tmp_path)
    sentence(refused.value)


@pytest.mark.slow
def test_columns_in_a_message_are_visible_and_cut() -> None:
    table = {name: ["1"] for name in ("\x1b[2J", "\u202e", *map(str, range(100_000)))}
    with pytest.raises(InputError, match="has no text column 'review'; its columns are") as refused:
        find_columns(table, "a.csv", text="review")
    sentence(refused.value)


def _archive(files: dict[str, bytes]) -> bytes:
    held = io.BytesIO()
    with tarfile.open(fileobj=held, mode="w:gz") as archive:
        for name, data in files.items():
            entry = tarfile.TarInfo(name)
            entry.size = len(data)
            archive.addfile(entry, io.BytesIO(data))
    return held.getvalue()


@pytest.mark.parametrize(
    "line",
    [b"{", b"7", b"{}", b'{"classification": [], "annotation_id": "a"}',
     b'{"classification": "POS", "annotation_id": "a", "evidences": ""}',
     b'{"classification": "POS", "annotation_id": "a", "evidences": [[7]]}',
     b'{"classification": "POS", "annotation_id": "b", "evidences": []}', b"[" * 100_000],
)  # fmt: skip
def test_a_rationale_of_another_form_is_refused(line: bytes, tmp_path: Path) -> None:
    parts = {f"movies/{part}.jsonl": line for part in ("train", "val", "test")}
    written(tmp_path / eraser.ENTRY.files[0], _archive(parts | {"movies/docs/a": b"good food"}))
    with mock.patch.object(eraser, "expect"), pytest.raises(InputError) as refused:
        load_corpus("eraser_movies", tmp_path)
    sentence(refused.value)


def test_an_archive_that_unpacks_to_more_than_text_does_is_refused(tmp_path: Path) -> None:
    reader = rationales(tmp_path)
    with pytest.raises(InputError, match="unpacks to more than 1 MB"):
        reader.read(_archive({"movies/docs/zeros": bytes(5_000_000)}))
    held = io.BytesIO()
    with tarfile.open(fileobj=held, mode="w", format=tarfile.PAX_FORMAT) as archive:
        entry = tarfile.TarInfo("movies/docs/holes")
        entry.pax_headers = {
            "GNU.sparse.major": "0", "GNU.sparse.minor": "1", "GNU.sparse.map": "0,0",
            "GNU.sparse.size": str(10**12), "GNU.sparse.name": "movies/docs/holes",
        }  # fmt: skip
        archive.addfile(entry)
    with pytest.raises(InputError, match="is larger than the archive"):
        reader.read(gzip.compress(held.getvalue()))


@pytest.mark.parametrize(
    ("name", "value"),
    [("sha256", None), ("splits", 7), ("classes", [1, 2]), ("classes", ["one"]), ("notes", None)],
)
def test_a_prepared_corpus_of_another_form_is_refused(
    name: str, value: object, tmp_path: Path
) -> None:
    prepare(planted(2, "short", 0, {"train": 6, "dev": 2, "test": 2}), tmp_path / "p")
    header = json.loads((tmp_path / "p" / "header.json").read_text())
    written(tmp_path / "p" / "header.json", json.dumps(header | {name: value}))
    with pytest.raises(InputError, match=r"is no prepared corpus|missing or damaged") as refused:
        load_prepared(tmp_path / "p")
    sentence(refused.value)


@pytest.mark.slow
def test_a_checkpoint_of_another_form_is_refused(tmp_path: Path) -> None:
    from heedful.models.saved import read_tensors, write_tensors

    reader = checkpoint(tmp_path)
    file = tmp_path / "changed.safetensors"
    changes: tuple[tuple[str, object], ...] = (
        ("epoch", "two"), ("learning_rate", [1]), ("loss", [1.0, 2.0]), ("models", [7]),
        ("step", 10**400), ("summed", -1),
    )  # fmt: skip
    whole = reader.seeds[0].partition(b"\0")[2]
    for name, value in changes:
        tensors, said = read_tensors(written(file, whole))
        said["done"] = json.dumps(json.loads(said["done"]) | {name: value})
        write_tensors(file, tensors, said)
        with pytest.raises(InputError, match="is not one of this training") as refused:
            reader.read(b"\0" + file.read_bytes())
        sentence(refused.value)
    for name in [name for name in tensors if not name.startswith("random.")]:
        tensors, said = read_tensors(written(file, whole))
        write_tensors(file, {n: value for n, value in tensors.items() if n != name}, said)
        with pytest.raises(InputError, match="is not one of this training"):
            reader.read(b"\0" + file.read_bytes())


def test_what_templates_and_tables_stumble_over_is_a_changed_run() -> None:
    from jinja2 import UndefinedError

    with pytest.raises(InputError, match="did not write"), intact("run"):
        raise UndefinedError("'float' has no attribute 'caption'")
    with pytest.raises(OSError, match="disk"), intact("run"):
        raise OSError("disk")


def test_a_tokenizer_over_which_its_library_panics_is_refused(tmp_path: Path) -> None:
    folder = save(tmp_path / "model", "bert", ("neg", "pos"))
    file = folder / "tokenizer.json"
    said = json.loads(file.read_text())
    said["post_processor"]["special_tokens"].pop("[SEP]")
    file.write_text(json.dumps(said))
    with pytest.raises(InputError, match="tokenizers library broke down") as refused:
        open_classifier(folder)
    sentence(refused.value)


def test_words_in_a_csv_are_no_formulas(tmp_path: Path) -> None:
    words = ["=1+1", "+1", "-1", "@SUM(A1)", " =1", "\t=1", "＝1", "fine", "a=1", None]
    table = pd.DataFrame({"word": words, "=value": np.arange(-5.0, 5.0)})
    write_csv(tmp_path / "words.csv", table)
    given = read_csv(tmp_path / "words.csv")
    assert list(given) == list(table)
    assert given["word"][:9].tolist() == words[:9]
    again = pd.read_csv(tmp_path / "words.csv")
    assert list(again) == ["word", "'=value"]
    assert again["word"][:7].str.startswith("'").all()
    assert again["word"][7:9].tolist() == words[7:9]
    assert again["'=value"].tolist() == table["=value"].tolist()
