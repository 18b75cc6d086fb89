"""The planted parallel corpus, readers of others, and what is said of bad files."""

import gzip
from pathlib import Path

import pytest

from heedful.corpora import load_parallel
from heedful.corpora.parallel import Parallel, paired_lines
from heedful.corpora.pieces import encode_parallel
from heedful.corpora.planted_pairs import planted_pairs
from heedful.errors import InputError


def test_every_word_has_one_translation_where_the_alignment_says() -> None:
    corpus = planted_pairs({"train": 60, "dev": 20})
    assert corpus.alignments is not None
    other: dict[str, str] = {}
    moved = 0
    for split in ("train", "dev"):
        for (source, target), links in zip(
            corpus.splits[split], corpus.alignments[split], strict=True
        ):
            sources, targets = source.split(), target.split()
            assert sorted(i for i, _ in links) == list(range(len(sources)))
            assert sorted(j for _, j in links) == list(range(len(targets)))
            for i, j in links:
                assert other.setdefault(targets[j], sources[i]) == sources[i]
                moved += i != j
    assert len(set(other.values())) == len(other)  # no two words share a translation
    assert moved > 50
    assert planted_pairs({"train": 60, "dev": 20}) == corpus
    assert planted_pairs({"train": 5}, seed=1).splits != planted_pairs({"train": 5}).splits


def test_files_that_do_not_belong_together_are_one_sentence(tmp_path: Path) -> None:
    one, two = tmp_path / "a.de", tmp_path / "a.en"
    one.write_text("ein Hund\neine Katze\n")
    two.write_text("a dog\na cat\n")
    assert paired_lines(one, two) == (["ein Hund", "eine Katze"], ["a dog", "a cat"])
    two.write_text("a dog\n")
    with pytest.raises(InputError, match=r"has 2 lines and .* has 1; line by line"):
        paired_lines(one, two)
    one.write_text("")
    two.write_text("")
    with pytest.raises(InputError, match="are empty"):
        paired_lines(one, two)
    with pytest.raises(InputError, match="is not a file"):
        paired_lines(tmp_path / "none", two)


def test_iwslt_drops_the_empty_pair_at_its_end(tmp_path: Path) -> None:
    folder = tmp_path / "iwslt14"
    folder.mkdir()
    for split in ("train", "valid", "test"):
        (folder / f"{split}.de").write_text("ein Hund\n\n")
        with gzip.open(folder / f"{split}.en.gz", "wt") as file:
            file.write("a dog\n\n")
    found = load_parallel("iwslt14", tmp_path)
    assert found.languages == ("de", "en")
    assert found.splits == {s: [("ein Hund", "a dog")] for s in ("train", "dev", "test")}
    (folder / "test.de").write_text("ein Hund\n")
    with pytest.raises(InputError, match="fetch both again"):
        load_parallel("iwslt14", tmp_path)


def test_news_commentary_is_split_nine_to_one_without_numbers(tmp_path: Path) -> None:
    folder = tmp_path / "news-commentary"
    folder.mkdir()
    english = [f"sentence {n}" for n in range(100)] + ["12.5", "2001"]
    dutch = [f"zin {n}" for n in range(100)] + ["12,5", "in 2001"]
    (folder / "en-nl.en").write_text("\n".join(english) + "\n")
    (folder / "en-nl.nl").write_text("\n".join(dutch) + "\n")
    found = load_parallel("news-commentary", tmp_path)
    assert len(found.splits["train"]) + len(found.splits["dev"]) == 101
    assert len(found.splits["dev"]) == 10
    assert ("2001", "in 2001") in [*found.splits["train"], *found.splits["dev"]]
    with pytest.raises(InputError, match=r"en-pt\.en is not in the data root"):
        load_parallel("news-commentary", tmp_path, ("en", "pt"))


@pytest.mark.slow
def test_unknown_corpora_and_unfit_ones_are_told(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="Did you mean 'iwslt14'"):
        load_parallel("iwslt15", tmp_path)
    assert load_parallel("planted").name == "planted"
    with pytest.raises(InputError, match="no training pairs"):
        encode_parallel(Parallel("none", ("a", "b"), {"dev": [("a", "b")]}))
    long = planted_pairs({"train": 30})
    with pytest.raises(InputError, match="pieces, more than the limit of 5"):
        encode_parallel(long, 120, max_pieces=5)
