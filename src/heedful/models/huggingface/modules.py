"""Any module of the user's, read like a model of `transformers`: what it must offer.

1. *Tokenise*: a function from a text to its pieces, ids with the characters they stand for. Tokens
   that are no words ([CLS], [SEP]) have no characters: span None or (0, 0).
2. *Forward*: called with what it takes of `input_ids` and `attention_mask` [batch token], the
   module returns logits [batch class], or an object that has them.
3. *Where attention is* need not be said: it is found wherever the module calls torch's
   `scaled_dot_product_attention` or `MultiheadAttention`, takes a softmax over [batch head query
   key], or holds a model of `transformers`. Layers are the members of its `ModuleList`s. What the
   head reads (one position, or all) is measured.

`docs/any-module.md` has an example.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from torch import nn

from heedful.errors import InputError
from heedful.models.huggingface.classifier import PretrainedClassifier
from heedful.models.huggingface.pieces import Frame, Pieces

NO_FRAME = Frame((), (), (), ((), 0, (), 0, ()))
"""No special tokens around a text."""
EXAMPLE = "one two three"
"""The text whose tokens that are no words are taken for those of every text."""


@dataclass(frozen=True)
class PlainTokeniser:
    """A tokeniser made of a function from a text to its pieces."""

    cut: Callable[[str], Pieces]
    padding: int = 0
    unknown: int = 1
    single: Frame = NO_FRAME
    pair: Frame | None = None
    has_unknown: bool = True
    is_left_padded: bool = False
    has_types: bool = False
    needs_pair: bool = False

    def pieces(self, texts: Sequence[str], is_second: bool = False) -> list[Pieces]:
        """The pieces of each text, without the tokens around it that are no words."""
        return [self._inside(text) for text in texts]

    def _inside(self, text: str) -> Pieces:
        before, inside, after = parted(text, self.cut(text))
        around = (self.single.before, self.single.after)
        is_same = (before, after) == around
        if not is_same and (inside.ids or before not in ((), sum(around, ()))):
            raise InputError(
                f"The tokens that are no words are {list(before)} and {list(after)} around "
                f"{text[:40]!r}, but {list(around[0])} and {list(around[1])} around other texts; "
                "put the same ones around every text."
            )
        return inside

    def name(self, piece: int) -> str:
        """The number of the piece: nobody told its letters."""
        return str(piece)


def parted(text: str, pieces: Pieces) -> tuple[tuple[int, ...], Pieces, tuple[int, ...]]:
    """The ids before the words of a text, its pieces, and the ids after; wrong spans are refused.

    >>> parted("a cat", Pieces([101, 7, 8, 102], [None, (0, 1), (2, 5), (0, 0)]))
    ((101,), Pieces(ids=[7, 8], spans=[(0, 1), (2, 5)]), (102,))
    """
    ids, spans = list(pieces.ids), list(pieces.spans)
    if len(ids) != len(spans):
        raise InputError(f"{text[:40]!r} has {len(ids)} ids and {len(spans)} spans; give one each.")
    inside = [place for place, span in enumerate(spans) if span is not None and any(span)]
    first, stop = (inside[0], inside[-1] + 1) if inside else (len(ids), len(ids))
    end, last = 0, (-1, -1)
    for place in range(first, stop):
        span = spans[place]
        if span is None or not any(span):
            raise InputError(
                f"Token {place} of {text[:40]!r} is no word (span {span}) and stands between "
                "words; tokens that are no words may stand before and after a text."
            )
        # The bytes of one character may be pieces by themselves, all with its span.
        if not (end <= span[0] <= span[1] <= len(text) or tuple(span) == last):
            raise InputError(
                f"Token {place} of {text[:40]!r} has the span {tuple(span)}, expected one within "
                f"the text's {len(text)} characters that begins at {end} or later: spans must not "
                "overlap, and tokens that are no words have the span None."
            )
        end, last = span[1], (span[0], span[1])
    return tuple(ids[:first]), Pieces(ids[first:stop], spans[first:stop]), tuple(ids[stop:])


def classifier_of(
    module: nn.Module,
    cut: Callable[[str], Pieces],
    classes: Sequence[str],
    *,
    site: str = "pooled",
    padding: int = 0,
    unknown: int = 1,
    max_pieces: int = 512,
) -> PretrainedClassifier:
    """The module as a classifier that can be read, asked, traced and audited.

    >>> import re, torch
    >>> from heedful.models import erase, decide, read
    >>> class MeanPooled(nn.Module):
    ...     def __init__(self):
    ...         super().__init__()
    ...         layer = nn.TransformerEncoderLayer(8, 2, 16, batch_first=True)
    ...         self.table = nn.Embedding(1000, 8)
    ...         self.encoder = nn.TransformerEncoder(layer, 2, enable_nested_tensor=False)
    ...         self.head = nn.Linear(8, 2)
    ...     def forward(self, input_ids, attention_mask):
    ...         mask = attention_mask.bool()
    ...         states = self.encoder(self.table(input_ids), src_key_padding_mask=~mask)
    ...         return self.head((states * mask[..., None]).sum(1) / mask.sum(1, keepdim=True))
    >>> def cut(text):
    ...     found = list(re.finditer(r"\\w+", text))
    ...     ids = [2 + sum(map(ord, word.group())) % 998 for word in found]
    ...     return Pieces(ids, [word.span() for word in found])
    >>> model = classifier_of(MeanPooled().eval(), cut, ("no", "yes"))
    >>> reading = read(model, model.batch(["attention is not all", "you need"]))
    >>> reading.texts[0], model.layout.pooled
    (('attention', 'is', 'not', 'all'), 'every')
    >>> decide(model, reading, erase(torch.eye(4, dtype=torch.bool).expand(2, 4, 4))).shape
    torch.Size([2, 4, 2])
    """
    before, _, after = parted(EXAMPLE, cut(EXAMPLE))
    kinds = (tuple(0 for _ in before), 0, (), 0, tuple(0 for _ in after))
    subwords = PlainTokeniser(cut, padding, unknown, Frame(before, (), after, kinds))
    name = type(module).__name__
    return PretrainedClassifier(
        module, subwords, classes, site=site, max_pieces=max_pieces, recipe=name
    )
