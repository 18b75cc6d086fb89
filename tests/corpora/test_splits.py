"""Splits drawn again hold the same documents, each whole and once."""

import numpy as np
import pytest

from heedful.corpora import Encoded, EncodedCorpus, encode, planted, redrawn
from heedful.corpora.samples import subset
from heedful.corpora.splits import together
from heedful.errors import InputError

SIZES = {"train": 60, "dev": 20, "test": 20}


@pytest.fixture(scope="module")
def corpus() -> EncodedCorpus:
    return encode(planted(2, "short", sizes=SIZES), words_of=("train", "dev", "test"))


def texts(part: Encoded) -> dict[str, tuple[int, list[int], list[int]]]:
    """Every document by its id: label, words and sentences."""
    return {
        name: (
            int(part.labels[row]),
            part.ids[part.starts[row] : part.starts[row + 1]].tolist(),
            part.sentence[part.starts[row] : part.starts[row + 1]].tolist(),
        )
        for row, name in enumerate(part.names)
    }


def test_every_document_is_in_one_split_as_it_was(corpus: EncodedCorpus) -> None:
    again = redrawn(corpus, 3)
    assert {split: len(part) for split, part in again.splits.items()} == SIZES
    before = {k: v for part in corpus.splits.values() for k, v in texts(part).items()}
    after = {k: v for part in again.splits.values() for k, v in texts(part).items()}
    assert before == after
    assert again.vocabulary is corpus.vocabulary
    assert again.splits["test"].names != corpus.splits["test"].names


def test_seeds_draw_other_splits_and_one_seed_the_same(corpus: EncodedCorpus) -> None:
    names = [set(redrawn(corpus, seed).splits["test"].names) for seed in (0, 0, 1)]
    assert names[0] == names[1] != names[2]


def test_classes_keep_their_shares(corpus: EncodedCorpus) -> None:
    again = redrawn(corpus, 5)
    for split, part in again.splits.items():
        whole = np.concatenate([one.labels for one in corpus.splits.values()]).mean()
        assert part.labels.mean() == pytest.approx(whole, abs=1 / SIZES[split])


def test_pools_are_drawn_from_by_themselves_and_a_rest_is_left_out(corpus: EncodedCorpus) -> None:
    pools = {
        "train+dev": {"train": 0.75, "dev": 0.25},
        "test": {"test": 0.5, "left out": 0.5},
    }
    again = redrawn(corpus, 0, pools)
    assert [len(again.splits[s]) for s in ("train", "dev", "test")] == [60, 20, 10]
    assert set(again.splits["test"].names) <= set(corpus.splits["test"].names)
    assert not set(again.splits["train"].names) & set(corpus.splits["test"].names)
    with pytest.raises(InputError, match="no split 'other'"):
        redrawn(corpus, 0, {"other": {"train": 1.0}})


def test_choosing_and_joining_undo_each_other(corpus: EncodedCorpus) -> None:
    part = corpus.splits["train"]
    first, second = range(25), range(25, 60)
    whole = together([subset(part, first), subset(part, second)])
    assert texts(whole) == texts(part)
    assert np.array_equal(whole.starts, part.starts)
    assert len(subset(part, [])) == 0
