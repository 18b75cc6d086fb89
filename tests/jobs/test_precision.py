"""What products with 10 bits (TF32, as a card makes them) change: nothing that an audit says.

There is no card where the tests run: what goes into products is rounded as a card rounds it, sums
are those of float32.
"""

from typing import Any

import numpy as np
import torch
from scipy.stats import kendalltau
from torch import Tensor
from torch.nn import functional
from torch.overrides import TorchFunctionMode

from heedful.audits import AUDITS
from heedful.importance import explain
from heedful.jobs.decider import quick_products
from heedful.models import read
from tests.tiny_transformers import VOCABULARY, reader

WORDS = [word for word in VOCABULARY if word.isalpha()]
TEXTS = tuple(
    " ".join(WORDS[(7 * number + 5 * place) % len(WORDS)] for place in range(10))
    for number in range(12)
)
METHODS = (
    "random", "attention", "gradient", "input-gradient", "gradient-input", "integrated",
    "occlusion", "leave-one-out", "attention-gradient", "value-zeroing", "rollout",
)  # fmt: skip
PRODUCTS = {
    functional.linear, functional.scaled_dot_product_attention, torch.matmul, torch.bmm,
    Tensor.matmul, Tensor.__matmul__, Tensor.bmm,
}  # fmt: skip


def rounded(value: Any) -> Any:
    """A float32 tensor with 10 bits behind the point, to the nearest; the slope is that of 1."""
    if not isinstance(value, Tensor) or value.dtype != torch.float32:
        return value
    bits = value.detach().contiguous().view(torch.int32)
    near = ((bits + 0x1000) & ~0x1FFF).view(torch.float32)
    return value + (near - value).detach()


class TenBits(TorchFunctionMode):
    """Products as a card makes them in TF32."""

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        """The function of rounded factors where it is a product, else the function."""
        if func in PRODUCTS:
            factors = 3 if func is functional.scaled_dot_product_attention else 2
            args = (*map(rounded, args[:factors]), *args[factors:])
        return func(*args, **(kwargs or {}))


def found() -> tuple[Any, Any, Any]:
    model = reader("bert")
    model.model.float()
    reading = read(model, model.batch(TEXTS))
    importance = explain(model, reading, METHODS)
    rows = AUDITS["input-erasure"].rows(model, reading, importance, 0)
    rows["worth"] = rows["comprehensiveness"] - rows["sufficiency"]
    return reading, importance, rows[rows["mode"] == "removed"].groupby("method")["worth"].mean()


def test_rankings_and_what_deletion_says_of_them_stay() -> None:
    reading, exact, worth = found()
    with quick_products(torch.device("cuda")), TenBits():
        coarse_reading, coarse, coarse_worth = found()
    moved = (reading.logits - coarse_reading.logits).abs().max()
    assert 0 < moved < 2e-2  # it does round
    assert torch.equal(reading.decision, coarse_reading.decision)
    for name in METHODS:
        taus = [
            kendalltau(exact[name][row, :units], coarse[name][row, :units])[0]
            for row, units in enumerate(reading.units.tolist())
        ]
        assert np.mean(taus) > 0.93, name
    spread = worth.max() - worth.min()
    assert (worth - coarse_worth).abs().max() < 0.1 * spread
    # Whoever is clearly ahead of another stays so.
    for one in METHODS:
        for other in METHODS:
            if worth[one] - worth[other] > 0.2 * spread:
                assert coarse_worth[one] > coarse_worth[other]


def test_a_card_is_lent_quick_products_and_given_back_as_it_was() -> None:
    before = torch.get_float32_matmul_precision()
    with quick_products(torch.device("cuda")):
        assert torch.get_float32_matmul_precision() == "high"
    with quick_products(torch.device("cpu")):
        assert torch.get_float32_matmul_precision() == before
    assert torch.get_float32_matmul_precision() == before
