"""Sets of the hub, through what its package would return."""

import sys
from types import SimpleNamespace
from typing import Any

import pytest

from heedful.corpora import load_corpus
from heedful.errors import InputError


class FakeSet(dict[str, list[Any]]):
    """What the hub's package returns for one split, as far as we use it."""

    def __init__(self, columns: dict[str, list[Any]], names: list[str] | None) -> None:
        super().__init__(columns)
        self.column_names = list(columns)
        self.features = {name: SimpleNamespace() for name in columns}
        self.features["label"] = SimpleNamespace(names=names)

    def __len__(self) -> int:
        return len(self["text"])


def test_hub_sets_by_name(monkeypatch: pytest.MonkeyPatch) -> None:
    def load_dataset(path: str, config: str | None) -> dict[str, FakeSet]:
        if path != "someone/reviews":
            raise FileNotFoundError(f"no set {path}\nwith a long trace")
        assert config == "small"
        names = ["neg", "pos"]
        texts, labels = [f"text {i}" for i in range(40)], [i % 2 for i in range(40)]
        return {
            "train": FakeSet({"text": texts, "label": labels}, names),
            "validation": FakeSet({"text": ["a", "b"], "label": [1, 0]}, names),
            "unsupervised": FakeSet({"text": ["c"], "label": [-1]}, names),
        }

    monkeypatch.setitem(sys.modules, "datasets", SimpleNamespace(load_dataset=load_dataset))
    corpus = load_corpus("hf:someone/reviews:small")
    assert corpus.classes == ("neg", "pos")
    assert [d.label for d in corpus.splits["dev"]] == [1, 0]
    assert len(corpus.splits["train"]) + len(corpus.splits["test"]) == 40
    assert len(corpus.splits["test"]) == 8  # 3.53 of each 20, rounded up
    with pytest.raises(InputError, match=r"cannot be loaded: no set nobody/none$"):
        load_corpus("hf:nobody/none")


def test_hidden_labels_of_a_shared_task_cost_only_their_split(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    names = ["neg", "pos"]
    texts, labels = [f"text {i}" for i in range(40)], [i % 2 for i in range(40)]
    parts = {
        "test": FakeSet({"text": ["x", "y", "z"], "label": [-1, -1, -1]}, names),
        "train": FakeSet({"text": texts, "label": labels, "source": ["web"] * 40}, names),
        "validation": FakeSet({"text": ["a", "b"], "label": [1, 0]}, names),
    }
    fake = SimpleNamespace(load_dataset=lambda path, config: parts)
    monkeypatch.setitem(sys.modules, "datasets", fake)
    corpus = load_corpus("hf:glue:sst2")
    assert corpus.notes["test documents without any label, left out"] == 3
    assert {d.text for d in corpus.splits["test"]} < set(texts)  # drawn from train instead
    assert [(d.text, d.label) for d in corpus.splits["dev"]] == [("a", 1), ("b", 0)]
    for document in [*corpus.splits["train"], *corpus.splits["test"]]:
        assert document.label == int(document.text.split()[1]) % 2
    parts["validation"] = FakeSet({"text": ["a", "b"], "label": [1, -1]}, names)
    with pytest.raises(InputError, match=r"1 missing label"):
        load_corpus("hf:glue:sst2")


def test_a_hub_column_that_one_part_lacks_does_not_shift_the_rows(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    texts, labels = [f"text {i}" for i in range(40)], [i % 2 for i in range(40)]
    parts = {
        "train": FakeSet({"text": texts, "label": labels}, ["neg", "pos"]),
        "validation": FakeSet({"text": ["a", "b"], "label": [1, 0], "id": ["v", "w"]}, ["n", "p"]),
        "test": FakeSet({"text": ["c"], "label": [1], "id": ["t"]}, ["neg", "pos"]),
    }
    fake = SimpleNamespace(load_dataset=lambda path, config: parts)
    monkeypatch.setitem(sys.modules, "datasets", fake)
    corpus = load_corpus("hf:odd", text="text", label="label")
    assert corpus.classes == ("neg", "pos")
    assert [d.text for d in corpus.splits["train"]] == texts
    assert [(d.text, d.label) for d in corpus.splits["test"]] == [("c", 1)]


def test_minus_one_is_a_class_where_training_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    rows = FakeSet({"text": [f"text {i}" for i in range(40)], "label": [-1, 1] * 20}, None)
    fake = SimpleNamespace(load_dataset=lambda path, config: {"train": rows})
    monkeypatch.setitem(sys.modules, "datasets", fake)
    assert load_corpus("hf:signs").classes == ("-1", "1")


def test_without_the_package_the_extra_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "datasets", None)
    with pytest.raises(InputError, match=r"heedful\[hub\]"):
        load_corpus("hf:imdb")


@pytest.mark.parametrize("name", ["hf:", "hf::config"])
def test_a_set_without_a_name_is_said(name: str) -> None:
    with pytest.raises(InputError, match="names no data set; give hf:NAME"):
        load_corpus(name)
