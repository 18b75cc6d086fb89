"""A user's two files: which pairs are used, which measured on, and how their words are linked."""

from pathlib import Path

import pytest

from heedful.corpora.pair_files import (
    UsablePairs,
    as_said,
    dev_rows,
    fitting,
    learnt_pieces,
    piece_links,
    read_links,
    usable_pairs,
)
from heedful.corpora.pieces import PieceTokeniser
from heedful.corpora.planted_pairs import planted_pairs
from heedful.errors import InputError

PAIRS = list(planted_pairs({"train": 60, "dev": 1}).splits["train"])


@pytest.fixture(scope="module")
def pieces() -> PieceTokeniser:
    return learnt_pieces(PAIRS, 90)


def usable(*pairs: tuple[str, str]) -> UsablePairs:
    return UsablePairs(pairs, tuple(range(len(pairs))), 0, 0, len(pairs))


def test_unusable_lines_are_left_out_and_counted(tmp_path: Path) -> None:
    one, two = tmp_path / "a", tmp_path / "b"
    one.write_text("\ufeffein Hund\n\neine Katze\nzu lang " + "x " * 9 + "\n", "utf-8")
    two.write_text("a dog\na cow\n \nlong\n", "utf-8")
    found = usable_pairs(one, two, max_words=8)
    assert found == UsablePairs((("ein Hund", "a dog"),), (0,), 2, 1, 4, 8)
    assert found.said("given") == (
        "2 of 4 given pairs have an empty side: left out.",
        "1 of 4 given pairs has a line of more than 8 words (--max-words): left out.",
    )


def test_what_pieces_cannot_tell_apart_is_said_alike() -> None:
    odd = ("ﬁne  words\u200b here…", "\u3000Ｓo\xa0 be it ")
    assert as_said([odd]) == [("fine words here...", "So be it")]
    assert as_said([("So", "a")]) != as_said([("so", "a")])


def test_dev_pairs_are_drawn_by_what_they_say() -> None:
    pairs = [(f"a {n}", f"b {n}") for n in range(40)] * 2
    rows = dev_rows(pairs, 0.25, seed=3)
    assert len(rows) == 10
    assert max(rows) < 40  # of copies the first
    dev = {pairs[row] for row in rows}
    assert {pairs[::-1][row] for row in dev_rows(pairs[::-1], 0.25, seed=3)} == dev
    assert {pairs[row] for row in dev_rows(pairs, 0.25, seed=4)} != dev
    spaced = [(f"a  {n}", f"b {n}") for n in range(40)]
    assert dev_rows([*pairs[:40], *spaced], 0.25, seed=3) == rows


def test_pieces_are_as_many_as_asked_for_or_as_the_text_supports() -> None:
    assert len(learnt_pieces(PAIRS, 90)) == 90
    words = sum(len(text.split()) for pair in PAIRS for text in pair)
    characters = {letter for pair in PAIRS for text in pair for letter in text}
    assert len(learnt_pieces(PAIRS)) <= max(words // 10, len(characters) + 8)


def test_pairs_without_a_piece_are_empty_and_not_too_long(pieces: PieceTokeniser) -> None:
    good, long, nothing = PAIRS[0], (" ".join([PAIRS[0][0]] * 9), "x"), ("\u200b", "x")
    most = max(len(row) for row in pieces.encode(good))
    found = fitting(usable(good, long, nothing), pieces, most)
    assert found == UsablePairs((good,), (0,), 1, 0, 3, many=1, max_pieces=most)
    assert f"has a line of more than {most} pieces (the limit)" in found.said("dev")[1]
    with pytest.raises(InputError, match="nothing but blanks"):
        fitting(usable(nothing), pieces)
    with pytest.raises(
        InputError, match=f"more than {most} pieces on a side, the limit; raise --pieces"
    ):
        fitting(usable(long, nothing), pieces, most)


def test_links_are_read_for_the_usable_lines(tmp_path: Path) -> None:
    found = UsablePairs((("a b", "c d"), ("e", "f")), (0, 2), 1, 0, 3)
    (tmp_path / "links").write_text("0-1 1-0\n9-9\n\n")
    assert read_links(tmp_path / "links", found) == [((0, 1), (1, 0)), ()]


@pytest.mark.parametrize(
    ("lines", "said"),
    [
        ("0-0\n", "has 1 lines, the sentences it should link 2"),
        ("0-0\n0-0 1:1\n", "line 2: expected links such as 0-0 1-2, got '1:1'"),
        ("0-0\n0-99\n", "line 2: link 0-99 goes beyond the sentences"),
        (None, "is not a file"),
    ],
)
def test_a_bad_alignment_is_told_by_its_line(tmp_path: Path, lines: str | None, said: str) -> None:
    if lines is not None:
        (tmp_path / "links").write_text(lines)
    with pytest.raises(InputError, match=said):
        read_links(tmp_path / "links", usable(("a b", "c d"), ("e f", "g")))


def test_links_of_words_become_links_of_their_pieces(pieces: PieceTokeniser) -> None:
    pair = PAIRS[0]
    counts = [[len(row) for row in pieces.encode(text.split())] for text in pair]
    (found,) = piece_links([pair], [((0, 1),)], pieces)
    before = counts[1][0]
    assert found == tuple((i, before + j) for i in range(counts[0][0]) for j in range(counts[1][1]))
    whole = tuple((i, 0) for i in range(len(counts[0])))
    (every,) = piece_links([pair], [whole], pieces)
    assert {i for i, _ in every or ()} == set(range(len(pieces.encode([pair[0]])[0])))


def test_words_that_are_cut_otherwise_in_their_sentence_have_no_links(
    pieces: PieceTokeniser,
) -> None:
    def cut(words: list[str]) -> list[int]:
        return [number for row in pieces.encode(words) for number in row]

    # Python sees two words where pieces see one: as many ids, but not the same ones.
    letters = [chr(number) for number in range(ord("a"), ord("z") + 1)]
    odd = next(
        text
        for text in (f"{one}\x85{two}" for one in letters for two in letters)
        if len(cut(text.split())) == len(cut([text]))
    )
    assert cut(odd.split()) != cut([odd])
    pairs = [("a b", "c d"), (odd, "c d"), ("a b", odd), ("a b", "c d")]
    first, *others = piece_links(pairs, [((1, 1),)] * 4, pieces)
    assert first
    assert others == [None, None, first]


@pytest.mark.parametrize("size", [0, -3, 10**9])
def test_a_number_of_pieces_that_cannot_be_is_named(size: int) -> None:
    with pytest.raises(InputError, match=f"--pieces must be from 1 to 1,000,000, got {size:,}"):
        learnt_pieces(PAIRS, size)


@pytest.mark.parametrize(
    ("data", "line"),
    [
        ("ein Hund\nfür\n".encode("latin-1"), 2),
        ("ein Hund\n".encode("utf-16"), 1),
        ("ein Hund\n".encode("utf-16-le"), 1),
        (b"a dog\na cow\n\x00\x01\x02\n", 3),
    ],
)
def test_what_is_not_utf8_text_is_told_by_its_line(tmp_path: Path, data: bytes, line: int) -> None:
    one, two = tmp_path / "a", tmp_path / "b"
    one.write_bytes(data)
    two.write_text("x\n")
    with pytest.raises(InputError, match=rf"a is not UTF-8 text \(line {line}\); convert it"):
        usable_pairs(one, two)
