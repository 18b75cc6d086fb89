"""The small protocol for any module: tokens that are no words, spans, what forward takes."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor

from heedful.errors import InputError
from heedful.models import read, without_each
from heedful.models.huggingface import FastTokeniser, Pieces, PretrainedClassifier, classifier_of
from tests.models.huggingface.test_classifier import MeanPooled
from tests.tiny_transformers import TEXTS, enlarged, tokenizer

CLASSES = ("no", "yes")


def specials(nothing: object, texts: FastTokeniser | None = None) -> object:
    """Cuts a text with its special tokens, whose span is `nothing`."""
    subwords = texts or FastTokeniser(tokenizer())

    def cut(text: str) -> Pieces:
        (inside,) = subwords.pieces([text])
        before, after = subwords.single.before, subwords.single.after
        spans = [*[nothing] * len(before), *inside.spans, *[nothing] * len(after)]
        return Pieces([*before, *inside.ids, *after], spans)

    return cut


@pytest.mark.parametrize("nothing", [None, (0, 0)])
def test_tokens_that_are_no_words_take_part_and_are_no_units(nothing: object) -> None:
    inner = enlarged(MeanPooled())
    plain = classifier_of(inner, specials(nothing), CLASSES)
    known = PretrainedClassifier(inner, FastTokeniser(tokenizer()), CLASSES)
    ours, theirs = (read(model, model.batch(TEXTS)) for model in (plain, known))
    assert ours.texts == theirs.texts
    for name in ("attention", "heads", "logits"):
        torch.testing.assert_close(getattr(ours, name), getattr(theirs, name))
    torch.testing.assert_close(
        without_each(plain, ours), without_each(known, theirs), equal_nan=True
    )
    assert float(ours.outside.min()) > 0


def test_a_text_without_words_is_read_as_an_unknown_one() -> None:
    subwords = FastTokeniser(tokenizer())
    model = classifier_of(enlarged(MeanPooled()), specials(None), CLASSES, unknown=subwords.unknown)
    assert read(model, model.batch(["", TEXTS[0]])).units.tolist()[0] == 1


def test_a_module_is_called_with_what_its_forward_takes() -> None:
    subwords = FastTokeniser(tokenizer())
    assert subwords.has_types  # and MeanPooled takes no token_type_ids
    model = PretrainedClassifier(enlarged(MeanPooled()), subwords, CLASSES)
    with torch.no_grad():
        logits = model(model.batch(TEXTS)).logits
    assert logits.shape == (len(TEXTS), 2)

    class OnlyIds(MeanPooled):
        def forward(self, input_ids: Tensor) -> Tensor:
            return super().forward(input_ids, (input_ids != subwords.padding).long())

    inner = enlarged(OnlyIds())
    alone = PretrainedClassifier(inner, subwords, CLASSES)
    with torch.no_grad():
        assert alone(alone.batch(TEXTS)).logits.shape == (len(TEXTS), 2)


@pytest.mark.parametrize(
    ("spans", "said"),
    [
        ([(0, 3), (2, 7)], "must not overlap"),
        ([(4, 7), (0, 3)], "must not overlap"),
        ([(0, 3), (4, 99)], "within the text's 7 characters"),
        ([(0, 3), None, (4, 7)], "stands between words"),
        ([(0, 3), (0, 0), (4, 7)], "stands between words"),
        ([(0, 3)], "2 ids and 1 spans"),
    ],
)
def test_spans_that_cannot_be_words_are_refused(spans: list[object], said: str) -> None:
    ids = [7] * max(len(spans), 2)

    def cut(text: str) -> Pieces:
        return Pieces(ids, spans) if text == "one two" else specials(None)(text)

    model = classifier_of(enlarged(MeanPooled()), specials(None), CLASSES)
    object.__setattr__(model.subwords, "cut", cut)
    with pytest.raises(InputError, match=said):
        model.batch(["one two"])


def test_other_tokens_around_one_text_are_refused() -> None:
    model = classifier_of(enlarged(MeanPooled()), specials(None), CLASSES)
    object.__setattr__(model.subwords, "cut", lambda text: Pieces([7], [(0, 3)]))
    with pytest.raises(InputError, match="the same ones around every text"):
        model.batch(["one"])


def test_the_bytes_of_one_character_may_share_its_span() -> None:
    from heedful.models.huggingface.modules import parted

    spans = [(0, 1), (0, 1), (0, 1), (1, 3)]
    assert parted("€ok", Pieces([1, 2, 3, 4], spans))[1].spans == spans
