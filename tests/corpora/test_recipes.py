"""What a recipe does to documents: filters, marks, caps."""

from heedful.corpora.documents import Document
from heedful.corpora.recipes import CorpusRecipe, arrange
from heedful.corpora.texts import document_of


def lengths(*counts: int) -> list[Document]:
    return [document_of(f"d{i}", "w " * count, i % 2) for i, count in enumerate(counts)]


def test_length_filters_are_strict_and_ends_are_lost_only_where_said() -> None:
    given = {"train": lengths(*[1, 2, 3, 4, 5, 6] * 4), "test": lengths(2, 3, 9)}
    splits, notes = arrange(given, CorpusRecipe(longer_than=2, shorter_than=5, dev_share=0), 0)
    assert {len(d.tokens) for d in splits["train"]} == {3, 4}
    assert [len(d.tokens) for d in splits["test"]] == [3]
    assert notes["dropped by the recipe's length filter"] == 16 + 2
    splits, _ = arrange(given, CorpusRecipe(loses_ends=True, dev_share=0), 0)
    assert {len(d.tokens) for d in splits["train"]} == {2, 3, 4, 5}
    assert [len(d.tokens) for d in splits["test"]] == [3]


def test_marks_and_integers_of_the_dynamics_recipe() -> None:
    given = {"train": [document_of("a", "In 1999 and 7", 0)], "test": [document_of("b", "x", 1)]}
    recipe = CorpusRecipe(has_marks=True, drops_integers=True, checked_on=5)
    splits, _ = arrange(given, recipe, 0)
    document = splits["train"][0]
    assert document.tokens == ("<bos>", "in", "<unk>", "and", "7", "<eos>")
    assert document.spans[[0, -1]].tolist() == [[0, 0], [13, 13]]
    assert [d.id for d in splits["dev"]] == [d.id for d in splits["test"]] == ["b"]


def test_caps_drop_long_documents_from_train_only() -> None:
    long, short = document_of("a", "One two three. Four. Five.", 0), document_of("b", "One two.", 1)
    given = {"train": [long, short], "dev": [long], "test": [long]}
    splits, _ = arrange(given, CorpusRecipe(caps=(2, 10)), 0)
    assert [len(splits[split]) for split in ("train", "dev", "test")] == [1, 1, 1]
    splits, _ = arrange(given, CorpusRecipe(caps=(3, 3)), 0)
    assert [d.id for d in splits["train"]] == ["b"]
