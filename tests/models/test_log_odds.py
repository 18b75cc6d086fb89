"""Log-odds keep their order where probabilities round to one."""

import pytest
import torch

from heedful.models.log_odds import log_odds


@pytest.mark.parametrize("classes", [2, 5])
def test_they_are_log_p_over_the_rest(classes: int) -> None:
    logits = torch.randn(40, classes, dtype=torch.float64, generator=torch.manual_seed(0))
    right = torch.arange(40) % classes
    p = logits.softmax(-1).gather(-1, right[:, None])[:, 0]
    torch.testing.assert_close(log_odds(logits, right), torch.logit(p), rtol=0, atol=1e-12)


def test_sure_units_are_not_tied() -> None:
    sure = torch.tensor([16.0, 18.0, 20.0, 30.0, 40.0])
    logits = torch.stack([torch.zeros(5), sure], -1)
    right = torch.ones(5, dtype=torch.int64)
    assert len(logits.log_softmax(-1)[:, 1].unique()) < 5  # what a log probability would do
    assert log_odds(logits, right).tolist() == sure.tolist()


def test_their_derivative_is_that_of_log_p_over_the_rest_of_p() -> None:
    logits = torch.randn(6, 3, dtype=torch.float64, generator=torch.manual_seed(1))
    logits.requires_grad_()
    right = torch.tensor([0, 1, 2, 0, 1, 2])
    (ours,) = torch.autograd.grad(log_odds(logits, right).sum(), logits)
    log_p = logits.log_softmax(-1).gather(-1, right[:, None])[:, 0]
    (plain,) = torch.autograd.grad(log_p.sum(), logits)
    rest = 1 - log_p.detach().exp()
    torch.testing.assert_close(ours * rest[:, None], plain, rtol=0, atol=1e-12)
