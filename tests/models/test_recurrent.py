"""Recurrent layers of many models agree with the library's, values and gradients."""

import torch
from torch import nn

from heedful.models.recurrent import _kernel, gru, in_steps, lstm

MODELS, BATCH, UNITS, INPUTS, DIM = 3, 4, 5, 6, 7


def test_lstm_and_its_gradients_are_the_librarys() -> None:
    torch.manual_seed(0)
    layers = [nn.LSTM(INPUTS, DIM, batch_first=True).double() for _ in range(MODELS)]
    x = torch.randn(MODELS, BATCH, UNITS, INPUTS, dtype=torch.float64, requires_grad=True)
    start = torch.randn(2, MODELS, BATCH, DIM, dtype=torch.float64, requires_grad=True)
    weigh = torch.randn(MODELS, BATCH, UNITS, DIM, dtype=torch.float64)
    alone = []
    for number, layer in enumerate(layers):
        states, (_, cell) = layer(x[number], (start[0, number][None], start[1, number][None]))
        alone.append((states * weigh[number]).sum() + cell.square().sum())
    expected = torch.autograd.grad(sum(alone), [x, start, *[one.weight_hh_l0 for one in layers]])
    inward = torch.stack([one.weight_ih_l0 for one in layers])
    outward = torch.stack([one.weight_hh_l0 for one in layers]).detach().requires_grad_()
    bias = torch.stack([one.bias_ih_l0 + one.bias_hh_l0 for one in layers])
    gates = torch.einsum("mbui,mgi->mbug", x, inward) + bias[:, None, None]
    states, cell = lstm(gates, outward.transpose(1, 2), start[0], start[1])
    total = (states * weigh).sum() + cell.square().sum()
    torch.testing.assert_close(total, sum(alone), rtol=0, atol=1e-12)
    found = torch.autograd.grad(total, [x, start, outward])
    torch.testing.assert_close(found[0], expected[0], rtol=0, atol=1e-12)
    torch.testing.assert_close(found[1], expected[1], rtol=0, atol=1e-12)
    torch.testing.assert_close(found[2], torch.stack(expected[2:]), rtol=0, atol=1e-12)


def test_gru_and_its_gradients_are_the_librarys() -> None:
    torch.manual_seed(1)
    layers = [nn.GRU(INPUTS, DIM, batch_first=True).double() for _ in range(MODELS)]
    x = torch.randn(MODELS, BATCH, UNITS, INPUTS, dtype=torch.float64, requires_grad=True)
    start = torch.randn(MODELS, BATCH, DIM, dtype=torch.float64, requires_grad=True)
    weigh = torch.randn(MODELS, BATCH, UNITS, DIM, dtype=torch.float64)
    alone = [
        (layer(x[number], start[number][None])[0] * weigh[number]).sum()
        for number, layer in enumerate(layers)
    ]
    learnt = [w for one in layers for w in (one.weight_hh_l0, one.bias_hh_l0)]
    expected = torch.autograd.grad(sum(alone), [x, start, *learnt])
    inward = torch.stack([one.weight_ih_l0 for one in layers])
    outward = torch.stack([one.weight_hh_l0 for one in layers]).detach().requires_grad_()
    own = torch.stack([one.bias_hh_l0 for one in layers]).detach().requires_grad_()
    gates = torch.einsum("mbui,mgi->mbug", x, inward)
    gates = gates + torch.stack([one.bias_ih_l0 for one in layers])[:, None, None]
    total = (gru(gates, outward.transpose(1, 2), own, start) * weigh).sum()
    torch.testing.assert_close(total, sum(alone), rtol=0, atol=1e-12)
    found = torch.autograd.grad(total, [x, start, outward, own])
    torch.testing.assert_close(found[:2], expected[:2], rtol=0, atol=1e-12)
    torch.testing.assert_close(found[2], torch.stack(expected[2::2]), rtol=0, atol=1e-12)
    torch.testing.assert_close(found[3], torch.stack(expected[3::2]), rtol=0, atol=1e-12)


def test_without_a_start_layers_start_from_zero() -> None:
    gates = torch.randn(2, 3, 4, 8, dtype=torch.float64)
    hidden = torch.randn(2, 2, 8, dtype=torch.float64)
    empty = torch.zeros(2, 3, 2, dtype=torch.float64)
    assert torch.equal(lstm(gates, hidden)[0], lstm(gates, hidden, empty, empty)[0])
    gates, hidden = gates[..., :6], hidden[..., :6]
    bias = torch.randn(2, 6, dtype=torch.float64)
    assert torch.equal(gru(gates, hidden, bias), gru(gates, hidden, bias, empty))


def test_without_a_card_the_layer_is_the_loop() -> None:
    assert _kernel(2, "cpu") is None
    gates = torch.randn(2, 3, 4, 8)
    hidden = torch.randn(2, 2, 8)
    assert torch.equal(lstm(gates, hidden)[0], in_steps(gates, hidden, torch.zeros(2, 2, 3, 2))[0])
