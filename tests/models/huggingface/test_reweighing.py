"""Edits of words on rows of attention to pieces, by the rules written out word by word."""

import pytest
import torch

from heedful.models.edits import Edit, Permute, Replace, Scale
from heedful.models.huggingface.calls import HIDDEN, softmax
from heedful.models.huggingface.reweighing import reweighed
from tests.models.huggingface.test_architectures import edited_row

UNITS = torch.tensor([[-1, 0, 1, 1, 2, -1]])  # a special token at each end, a word of two pieces
WEIGHTS = torch.tensor([[[0.2, 0.7, 0.1]]], dtype=torch.float64)
ORDER = torch.tensor([[[2, 0, 1]]])


@pytest.mark.parametrize("hidden", [[], [2], [4], [1, 5]])
@pytest.mark.parametrize(
    ("kind", "edit"),
    [("scale", Scale(WEIGHTS)), ("replace", Replace(WEIGHTS)), ("permute", Permute(ORDER))],
)
def test_a_row_is_edited_word_by_word_and_special_tokens_keep_their_share(
    kind: str, edit: Edit, hidden: list[int]
) -> None:
    generator = torch.Generator().manual_seed(0)
    scores = torch.randn(1, 2, 3, 6, generator=generator, dtype=torch.float64)
    scores[..., hidden] = torch.finfo(torch.float64).min
    before, found = softmax(scores), reweighed(scores, edit, UNITS)
    asked = (ORDER if kind == "permute" else WEIGHTS)[0, 0].numpy()
    for row, weights in zip(found.reshape(-1, 6), before.reshape(-1, 6), strict=True):
        visible = (scores[0, 0, 0] > HIDDEN).numpy()
        wanted = edited_row(weights.numpy(), UNITS[0].numpy(), visible, kind, asked)
        torch.testing.assert_close(row, torch.from_numpy(wanted), atol=1e-14, rtol=0)
