import pandas as pd
import pytest

from heedful.corpora.shards import ShardReader, are_shards, fetched, shards_of
from heedful.errors import InputError

CLASSES = ("bad", "good")


def table(text="text", n=4):
    return pd.DataFrame(
        {text: [f"a fine film number {i}" for i in range(n)], "label": ["good", "bad"] * (n // 2)}
    )


@pytest.fixture
def folder(tmp_path):
    table().to_parquet(tmp_path / "b.parquet")
    table().to_csv(tmp_path / "a.csv", index=False)
    (tmp_path / "notes.txt").write_text("not a table")
    return tmp_path


def test_a_pattern_names_tables_in_the_order_of_their_names(folder):
    found = shards_of(str(folder / "*"))
    assert [name.rsplit("/", 1)[1] for name in found] == ["a.csv", "b.parquet"]
    with pytest.raises(InputError, match="names no file"):
        shards_of(str(folder / "*.jsonl"))


def test_patterns_and_stores_are_shards_and_plain_files_are_not(folder):
    assert are_shards("shards/*.parquet")
    assert are_shards("s3://bucket/part-0.parquet")
    assert not are_shards("reviews.csv")
    odd = folder / "what[1].csv"
    odd.write_text("text,label\n")
    assert not are_shards(str(odd))


def test_every_file_must_have_the_columns_of_the_first(folder):
    reader = ShardReader(CLASSES, columns=("text", "label", None, None))
    assert len(reader.read(str(folder / "a.csv")).corpus.splits["test"]) == 4
    table(text="review").to_csv(folder / "c.csv", index=False)
    with pytest.raises(InputError, match=r"c\.csv has no text column 'text'"):
        reader.read(str(folder / "c.csv"))
    table().assign(id=range(4)).to_csv(folder / "d.csv", index=False)
    with pytest.raises(InputError, match=r"d\.csv has other columns.*id in 'id', expected text in"):
        reader.read(str(folder / "d.csv"))


def test_an_object_store_is_read_through_fsspec(folder):
    fsspec = pytest.importorskip("fsspec")
    store = fsspec.filesystem("memory")
    store.pipe("/bucket/part-1.parquet", (folder / "b.parquet").read_bytes())
    store.pipe("/bucket/part-0.csv", (folder / "a.csv").read_bytes())
    files = shards_of("memory://bucket/*")
    assert [name.rsplit("/", 1)[1] for name in files] == ["part-0.csv", "part-1.parquet"]
    here, there = (ShardReader(CLASSES).read(f).corpus for f in (str(folder / "a.csv"), files[0]))
    assert [d.id for d in here.splits["test"]] == [d.id for d in there.splits["test"]]
    with pytest.raises(InputError, match=r"memory://bucket/none\.csv cannot be read"):
        ShardReader(CLASSES).read("memory://bucket/none.csv")
    with pytest.raises(InputError, match="cannot be opened"):
        shards_of("nosuchstore://bucket/*.csv")


def test_a_file_here_is_read_where_it_lies(folder):
    with fetched(str(folder / "a.csv")) as path:
        assert path == folder / "a.csv"
