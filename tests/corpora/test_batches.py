import numpy as np
import pytest
import torch

from heedful.corpora import Corpus, batches, collate, document_of, encode, planted
from heedful.corpora.vocabulary import END, MASK, PAD, SPECIALS, START, UNKNOWN, Vocabulary

TEXTS = ("a b c. d", "e", "", "f g")


def tiny() -> Corpus:
    documents = [document_of(f"d{i}", text, i % 2) for i, text in enumerate(TEXTS)]
    return Corpus("tiny", ("x", "y"), {"train": documents})


def test_padding_by_hand() -> None:
    encoded = encode(tiny())
    batch = collate(encoded.splits["train"], [1, 0, 2])
    ids = encoded.vocabulary.ids
    assert batch.ids.tolist() == [
        [ids["e"], PAD, PAD, PAD, PAD],
        [ids["a"], ids["b"], ids["c"], ids["."], ids["d"]],
        [UNKNOWN, PAD, PAD, PAD, PAD],
    ]
    assert batch.mask.tolist() == [[True] + [False] * 4, [True] * 5, [True] + [False] * 4]
    assert batch.sentence.tolist() == [[0] * 5, [0, 0, 0, 0, 1], [0] * 5]
    assert batch.labels.tolist() == [1, 0, 0]
    assert batch.names == ("d1", "d0", "d2")
    assert batch.lengths.tolist() == [1, 5, 1]
    assert encoded.notes == {"train: empty, read as one unknown word": 1}


def test_words_are_those_of_the_document_or_of_the_vocabulary() -> None:
    encoded = encode(tiny())
    batch = collate(encoded.splits["train"], [0, 2])
    assert batch.words(encoded.vocabulary) == [("a", "b", "c", ".", "d"), ("",)]
    kept = batch.keeping(torch.tensor([[1, 0, 0, 0, 1], [1, 0, 0, 0, 0]]).bool())
    assert kept.words(encoded.vocabulary) == [("a", "d"), ("<unk>",)]


def test_keeping_moves_tokens_together_and_leaves_unknown_for_nothing() -> None:
    encoded = encode(tiny())
    ids = encoded.vocabulary.ids
    batch = collate(encoded.splits["train"], [0, 3])
    # the marks on padding must not count
    kept = batch.keeping(torch.tensor([[0, 1, 0, 0, 1], [0, 0, 1, 1, 1]]).bool())
    assert kept.ids.tolist() == [[ids["b"], ids["d"]], [UNKNOWN, PAD]]
    assert kept.mask.tolist() == [[True, True], [True, False]]
    assert kept.sentence[0].tolist() == [0, 1]
    assert kept.documents is None
    everything = batch.keeping(batch.mask)
    assert torch.equal(everything.ids, batch.ids)
    assert torch.equal(everything.mask, batch.mask)


def test_replacing_changes_the_marked_tokens_only() -> None:
    batch = collate(encode(tiny()).splits["train"], [0, 3])
    marked = torch.zeros_like(batch.mask)
    marked[:, 1:] = True
    replaced = batch.replacing(marked, MASK)
    assert replaced.ids.tolist() == [
        [int(batch.ids[0, 0]), MASK, MASK, MASK, MASK],
        [int(batch.ids[1, 0]), MASK, PAD, PAD, PAD],
    ]
    assert torch.equal(replaced.mask, batch.mask)


@pytest.mark.parametrize("seed", [None, 0, 1])
@pytest.mark.parametrize("max_tokens", [None, 200, 1])
def test_every_document_comes_exactly_once(seed: int | None, max_tokens: int | None) -> None:
    split = encode(planted(2, sizes={"train": 101})).splits["train"]
    generator = None if seed is None else np.random.default_rng(seed)
    seen = list(batches(split, 8, generator, max_tokens))
    names = [name for batch in seen for name in batch.names]
    assert sorted(names) == sorted(split.names)
    assert max(len(batch) for batch in seen) <= 8
    if max_tokens is not None:
        # a document longer than the bound comes alone
        assert all(batch.ids.numel() <= max_tokens or len(batch) == 1 for batch in seen)


def test_batches_agree_with_single_documents() -> None:
    split = encode(planted(2, sizes={"train": 40})).splits["train"]
    row_of = {name: row for row, name in enumerate(split.names)}
    for batch in batches(split, 7, np.random.default_rng(0)):
        assert batch.evidence is not None
        for index, name in enumerate(batch.names):
            alone = collate(split, [row_of[name]])
            length = int(alone.lengths)
            assert alone.evidence is not None
            for part in ("ids", "mask", "sentence", "evidence"):
                assert torch.equal(getattr(batch, part)[index, :length], getattr(alone, part)[0]), (
                    part
                )
            assert not batch.mask[index, length:].any()
            assert not batch.evidence[index, length:].any()
            assert int(batch.labels[index]) == int(alone.labels)


def test_lengths_are_similar_within_a_batch_and_order_is_random_but_seeded() -> None:
    split = encode(planted(2, sizes={"train": 320})).splits["train"]
    seen = list(batches(split, 16, np.random.default_rng(0)))
    again = list(batches(split, 16, np.random.default_rng(0)))
    other = list(batches(split, 16, np.random.default_rng(1)))
    assert [b.names for b in seen] == [b.names for b in again]
    assert [b.names for b in seen] != [b.names for b in other]
    spread = np.mean([float(b.lengths.float().std()) for b in seen])
    assert spread < 0.5 * np.std(split.lengths)
    fixed = [int(b.lengths.max()) for b in batches(split, 16)]
    assert fixed == sorted(fixed)


def test_long_documents_are_cut_and_counted() -> None:
    encoded = encode(tiny(), max_tokens=3)
    assert encoded.splits["train"].lengths.tolist() == [3, 1, 1, 2]
    assert encoded.notes["train: cut to the token limit"] == 1


def test_vocabulary_counts_in_order_and_a_special_symbol_of_the_text_is_no_padding() -> None:
    documents = [document_of("x", "b a <pad> b c <pad>", 0, "whitespace")]
    vocabulary = Vocabulary.of(documents)
    assert vocabulary.words[5:] == ("b", "a", "c")
    assert vocabulary.encode(documents[0].tokens) == [5, 6, UNKNOWN, 5, 7, UNKNOWN]
    assert vocabulary.encode(SPECIALS) == [UNKNOWN, UNKNOWN, MASK, START, END]
    assert Vocabulary.of(documents, min_count=2).words[5:] == ("b",)
    assert Vocabulary.of(documents, max_size=2).words[5:] == ("b", "a")
