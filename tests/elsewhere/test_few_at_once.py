import pytest

import heedful.jobs.examination  # noqa: F401  it reads
from heedful.corpora import batches, encode, planted
from heedful.corpora.batches import groups
from tests.elsewhere.few_at_once import few, put


def test_documents_are_read_so_many_at_a_time(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("READ_AT_ONCE", "7")
    encoded = encode(planted(2, "short", sizes={"train": 20, "dev": 20, "test": 20})).splits["test"]
    places = put(groups, few)
    try:
        assert {"heedful.corpora.batches.groups", "heedful.jobs.examination.groups"} <= set(places)
        assert [len(batch) for batch in batches(encoded, 64)] == [7, 7, 6]
    finally:
        assert put(few, groups) == places
    assert [len(batch) for batch in batches(encoded, 64)] == [20]
