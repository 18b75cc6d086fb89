import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from heedful.corpora.sentences import sentence_numbers
from heedful.corpora.texts import document_of
from heedful.corpora.tokens import TOKENISERS, tokenise
from heedful.corpora.vocabulary import SPECIALS
from heedful.errors import InputError


def test_words_cut_contractions_hyphens_numbers_and_marks() -> None:
    tokens = tokenise(
        "It’s well-made, isn't it?! $3.50 or 1,000... at 5 o'clock; can't wait"
    ).tokens
    assert tokens == (
        "it", "'s", "well", "-", "made", ",", "is", "n't", "it", "?", "!", "$", "3.50", "or",
        "1,000", "...", "at", "5", "o'clock", ";", "ca", "n't", "wait",
    )  # fmt: skip


def test_named_rules_differ_as_stated() -> None:
    text = "Don't pay $20 for this-!! ok"
    assert tokenise(text, "polarity").tokens == ("don", "t", "pay", "20", "for", "this", "ok")
    assert tokenise(text, "unmarked").tokens == ("don't", "pay", "20", "for", "this", "ok")
    assert tokenise("'Tis rock’n’roll, well-made", "unmarked").tokens == (
        "tis", "rock'n'roll", "well", "made",
    )  # fmt: skip
    assert tokenise(text, "jw").tokens == (
        "don", "'", "t", "pay", "$", "qqq", "for", "this", "-!!", "ok",
    )  # fmt: skip
    assert tokenise(text, "whitespace").tokens == ("don't", "pay", "$20", "for", "this-!!", "ok")


def test_words_are_unicode_aware() -> None:
    assert tokenise("Das Café kostet ÄRGER – наука 東京").tokens == (
        "das", "café", "kostet", "ärger", "–", "наука", "東京",
    )  # fmt: skip


def test_unknown_rule_is_refused_with_the_known_ones() -> None:
    with pytest.raises(InputError, match="Did you mean 'words'"):
        tokenise("x", "word")


@pytest.mark.parametrize("rule", TOKENISERS)
@settings(max_examples=150, deadline=None)
@given(text=st.text(st.characters(), max_size=60))
def test_any_string_gives_ordered_spans_that_cover_its_tokens(rule: str, text: str) -> None:
    tokens, spans = tokenise(text, rule)
    assert spans.shape == (len(tokens), 2)
    assert (spans[:, 0] < spans[:, 1]).all()
    assert (spans[1:, 0] >= spans[:-1, 1]).all()
    for token, (start, end) in zip(tokens, spans.tolist(), strict=True):
        assert token in (text[start:end].lower().replace("’", "'"), "qqq")
    sentence = sentence_numbers(text, spans)
    assert len(sentence) == len(tokens)
    assert set(np.diff(sentence).tolist()) <= {0, 1}
    assert not len(sentence) or sentence[0] == 0


@given(st.text("ab .,!'", max_size=40))
def test_words_lose_nothing_but_white_space(text: str) -> None:
    _, spans = tokenise(text)
    covered = "".join(text[a:b] for a, b in spans.tolist())
    assert covered == "".join(text.split())


def test_a_special_symbol_in_the_text_reads_as_unknown() -> None:
    assert tokenise("a <pad> b <unk>", "whitespace").tokens == ("a", "<unk>", "b", "<unk>")
    assert not set(tokenise("a <pad> <eos>").tokens) & set(SPECIALS)


@pytest.mark.parametrize(
    ("text", "sentences"),
    [
        ("It was good. I liked it! Did you? Yes", 4),
        ("Dr. Smith met J. R. Jones at 3.50 p.m. on the way.", 1),
        ('He said "no." Then he left.', 2),
        ("well... it was so slow. and then nothing", 2),
        ("a title\n\nThe text", 2),
        ("wrapped at\nthe margin. New", 2),
        ("bread, eggs, etc. and more. So.", 2),
        ("好。不好！", 2),
        ("", 0),
    ],
)
def test_sentence_rule(text: str, sentences: int) -> None:
    numbers = document_of("x", text).sentence
    assert (int(numbers[-1]) + 1 if len(numbers) else 0) == sentences


def test_a_page_of_dots_takes_linear_time() -> None:
    document = document_of("x", "." * 200_000 + "\n" * 200_000 + "n't" * 50_000)
    assert document.tokens[0] == "." * 200_000
