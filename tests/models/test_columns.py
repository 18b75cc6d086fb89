"""The column product equals the one with the attention matrix, for every mask and dtype."""

from __future__ import annotations

import pytest
import torch

from heedful.models.columns import column_product


def by_matrix(query, key, above, mask=None, is_causal=False, scale=None):
    """Pᵀ r with the matrix written out in float64."""
    scale = query.shape[-1] ** -0.5 if scale is None else scale
    scores = query.double() @ key.double().transpose(-1, -2) * scale
    if mask is not None:
        mask = mask.expand(scores.shape)
        scores = (
            scores.masked_fill(~mask, -torch.inf) if mask.dtype == torch.bool else scores + mask
        )
    if is_causal:
        allowed = torch.ones(scores.shape[-2:], dtype=torch.bool).tril()
        scores = scores.masked_fill(~allowed, -torch.inf)
    return (above.double()[..., None, :] @ scores.softmax(-1))[..., 0, :]


@pytest.fixture
def parts():
    random = torch.Generator().manual_seed(0)
    query = torch.randn(3, 2, 7, 16, generator=random, dtype=torch.float64) * 2
    key = torch.randn(3, 2, 7, 16, generator=random, dtype=torch.float64) * 2
    above = torch.rand(3, 2, 7, generator=random, dtype=torch.float64)
    return query, key, above / above.sum(-1, keepdim=True)


@pytest.mark.parametrize("scale", [None, 0.3])
@pytest.mark.parametrize("masked", ["none", "keys", "pairs", "added", "causal"])
def test_it_is_the_product_with_the_matrix(parts, masked, scale):
    above = parts[2]
    random = torch.Generator().manual_seed(1)
    lengths = torch.tensor([7, 4, 1])
    mask = {
        "keys": (torch.arange(7) < lengths[:, None])[:, None, None],
        "pairs": torch.eye(7, dtype=torch.bool) | (torch.rand(7, 7, generator=random) < 0.5),
        "added": torch.randn(3, 2, 7, 7, generator=random, dtype=torch.float64),
    }.get(masked)
    options = {"mask": mask, "is_causal": masked == "causal", "scale": scale}
    found, wanted = column_product(*parts, **options), by_matrix(*parts, **options)
    assert torch.allclose(found, wanted, atol=1e-14)
    assert torch.allclose(found.sum(-1), above.sum(-1), atol=1e-14)


@pytest.mark.parametrize(
    ("dtype", "close"), [(torch.float32, 2e-6), (torch.bfloat16, 2e-2), (torch.float16, 4e-3)]
)
def test_lower_precision_comes_near_and_keeps_the_dtype_of_the_vector(parts, dtype, close):
    query, key, above = (part.to(dtype) for part in parts)
    found = column_product(query, key, above)
    assert found.dtype == dtype
    assert column_product(query, key, above.float()).dtype == torch.float32
    wanted = by_matrix(query, key, above)
    assert float((found - wanted).norm() / wanted.norm()) < close


def test_float16_keeps_shares_too_small_for_it():
    tokens = 2048
    query = torch.zeros(1, 1, tokens, 8, dtype=torch.float16)
    above = torch.full((1, 1, tokens), 1 / tokens / 64)  # 7e-6: below what float16 holds well
    found = column_product(query, query, above)
    assert torch.allclose(found, above, rtol=2e-3)


def test_gradients_of_the_caller_are_left_alone(parts):
    query, key, above = parts
    query.requires_grad_()
    with torch.no_grad():
        found = column_product(query, key, above)
    assert not found.requires_grad
    assert query.grad is None


def test_keys_may_be_of_another_number_than_queries(parts):
    query, key, above = parts
    found = column_product(query[:, :, :3], key, above[:, :, :3])
    assert torch.allclose(found, by_matrix(query[:, :, :3], key, above[:, :, :3]), atol=1e-14)
