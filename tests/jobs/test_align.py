"""Word alignment as a person uses it."""

import json

import pytest
from typer.testing import CliRunner

from heedful.cli import app
from heedful.errors import InputError
from heedful.jobs.align import align
from tests.schemas import conforms

SOURCE = "das Haus\ndas Buch\nein Buch\n"
TARGET = "the house\nthe book\na book\n"


@pytest.fixture
def files(tmp_path):
    def write(source=SOURCE, target=TARGET):
        paths = tmp_path / "text.de", tmp_path / "text.en"
        for path, text in zip(paths, (source, target), strict=True):
            path.write_text(text, "utf-8")
        return paths

    return write


@pytest.mark.slow
def test_the_command_writes_links_counts_and_probabilities(files, tmp_path):
    source, target = files()
    out = tmp_path / "out"
    options = ["--out", str(out), "--iterations", "20", "--no-empty-word", "--json"]
    done = CliRunner().invoke(app, ["align", str(source), str(target), *options])
    assert done.exit_code == 0, done.output
    assert (out / "alignments.txt").read_text().splitlines() == ["0-0 1-1"] * 3
    counts = (out / "counts.tsv").read_text().splitlines()
    assert counts[0] == "source\ttarget\tcount"
    assert "das\tthe\t1" in counts
    assert "das\thouse\t0.5" in counts
    best = (out / "translations.tsv").read_text().splitlines()[1]
    assert best.startswith("das\tthe\t0.9")
    printed = conforms("align", done.stdout[done.stdout.index("{") :])
    assert printed["pairs"] == 3
    assert printed == json.loads((out / "alignment.json").read_text())


def test_empty_and_long_lines_have_no_links_and_are_counted(files, tmp_path):
    source, target = files(SOURCE + "\n" + "das " * 9, TARGET + "nothing\n" + "the " * 9)
    done = align(source, target, tmp_path / "out", max_tokens=8)
    assert (done.pairs, done.empty, done.long) == (5, 1, 1)
    lines = (tmp_path / "out" / "alignments.txt").read_text().split("\n")
    assert lines[3:] == ["", "", ""]
    assert any("empty line" in line for line in done.lines())


def test_words_that_the_empty_word_takes_are_told(files, tmp_path):
    one = files("das Haus\n", "the house\n")
    done = align(*one, tmp_path / "a", iterations=1)
    assert (done.links, done.unlinked) == (0, 2)
    said = list(done.lines())
    assert said[0].startswith("1 pair, 2 × 2 words")
    assert said[1].startswith("1 iteration, ")
    assert said[2].startswith("2 target words have no link: the empty word")
    assert said[3].startswith("0 links: ")
    without = align(*one, tmp_path / "b", has_empty_word=False)
    assert (without.links, without.unlinked) == (2, 0)
    assert not any("empty word" in line for line in without.lines())


def test_lower_case_joins_words(files, tmp_path):
    source, target = files("Das Haus\ndas Buch\n", "The house\nthe book\n")
    assert align(source, target, tmp_path / "a").source_words == 4
    assert align(source, target, tmp_path / "b", lower=True).source_words == 3


@pytest.mark.parametrize(
    ("source", "target", "options", "said"),
    [
        ("a\nb\n", "a\n", {}, "has 2 lines and .* has 1"),
        ("\n", "\n", {}, "no pair of lines"),
        ("a a\n", "a\n", {"max_tokens": 1}, "no pair of lines"),
        ("a\n", "a\n", {"iterations": 0}, "at least 1"),
    ],
)
def test_bad_input_is_told_in_a_sentence(files, tmp_path, source, target, options, said):
    with pytest.raises(InputError, match=said):
        align(*files(source, target), tmp_path / "out", **options)
    assert not (tmp_path / "out").exists()


def test_a_missing_file_is_named(tmp_path):
    (tmp_path / "a").write_text("x\n")
    with pytest.raises(InputError, match="b is not a file"):
        align(tmp_path / "a", tmp_path / "b", tmp_path / "out")
