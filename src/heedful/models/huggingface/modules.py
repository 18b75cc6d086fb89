"""Any module of the user's, read like a model of `transformers`: what it must offer.

1. *Tokenise*: a function from a text to its pieces, ids with the characters they stand for.
2. *Forward*: called with `input_ids` and `attention_mask` [batch token], the module returns logits
   [batch class], or an object that has them.
3. *Where attention is* need not be said: it is found wherever the module calls torch's
   `scaled_dot_product_attention` or `MultiheadAttention`, takes a softmax over [batch head query
   key], or holds a model of `transformers`. Layers are the members of its `ModuleList`s. What the
   head reads (one position, or all) is measured.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from torch import nn

from heedful.models.huggingface.classifier import PretrainedClassifier
from heedful.models.huggingface.pieces import Frame, Pieces

NO_FRAME = Frame((), (), (), ((), 0, (), 0, ()))
"""No special tokens around a text."""


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

    def pieces(self, texts: Sequence[str]) -> list[Pieces]:
        """The pieces of each text."""
        return [self.cut(text) for text in texts]

    def name(self, piece: int) -> str:
        """The number of the piece: nobody told its letters."""
        return str(piece)


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
    subwords = PlainTokeniser(cut, padding, unknown)
    name = type(module).__name__
    return PretrainedClassifier(
        module, subwords, classes, site=site, max_pieces=max_pieces, recipe=name
    )
