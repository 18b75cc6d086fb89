"""A translator's pass with a kernel a layer is the library's, values and gradients."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch
from torch.utils._python_dispatch import TorchDispatchMode

from heedful.corpora.pairs import EncodedPairs, collate_pairs
from heedful.corpora.pieces import encode_parallel
from heedful.corpora.planted_pairs import planted_pairs
from heedful.models.translator import Translator, TranslatorConfig, build_translator
from heedful.models.translator_walk import walked, walks
from heedful.training import sequences
from heedful.training.loop import Moment
from heedful.training.sequences import SequenceConfig, fit_translator, mean_loss


@pytest.fixture(scope="module")
def corpus() -> EncodedPairs:
    return encode_parallel(planted_pairs({"train": 48, "dev": 8}), 150)


def made(corpus: EncodedPairs, **settings: Any) -> Translator:
    shape = TranslatorConfig(len(corpus.pieces), 12, 10, 2, dropout=0.0)
    return build_translator(replace(shape, **settings), 3).double()


@pytest.mark.slow
@pytest.mark.parametrize(
    "settings",
    [
        {},
        {"attention": "uniform"},
        {"output": "linear", "layers": 3},
        {"is_bidirectional": False, "is_embedding_shared": False, "heads": 2},
    ],
)
def test_logits_and_gradients_are_those_of_the_model(
    corpus: EncodedPairs, settings: dict[str, Any]
) -> None:
    model = made(corpus, **settings)
    pairs = collate_pairs(corpus.splits["train"], range(9))
    assert pairs.has_padding
    found, expected = walked(model, pairs), model(pairs).logits
    real = pairs.target_mask
    torch.testing.assert_close(found[real], expected[real], rtol=0, atol=1e-12)
    names, weights = zip(*model.named_parameters(), strict=True)
    slopes = [
        torch.autograd.grad(mean_loss(one, pairs.target), weights, allow_unused=True)
        for one in (found, expected)
    ]
    for name, one, two in zip(names, *slopes, strict=True):
        is_idle = name.startswith("query") and model.config.attention == "uniform"
        assert [one is None, two is None] == [is_idle, is_idle]
        if one is not None:
            torch.testing.assert_close(one, two, rtol=0, atol=1e-12, msg=str(name))


def test_no_two_gradients_share_memory(corpus: EncodedPairs) -> None:
    """Clipping one of them in place would clip the other."""
    model = made(corpus)
    pairs = collate_pairs(corpus.splits["train"], range(9))
    mean_loss(walked(model, pairs), pairs.target).backward()  # type: ignore[no-untyped-call]
    gradients = [weight.grad for weight in model.parameters() if weight.grad is not None]
    before = [gradient.clone() for gradient in gradients]
    for gradient in gradients:
        gradient *= 2
    for gradient, one in zip(gradients, before, strict=True):
        assert torch.equal(gradient, 2 * one)


def test_dropout_lies_between_layers_and_only_in_training(corpus: EncodedPairs) -> None:
    pairs = collate_pairs(corpus.splits["train"], range(5))
    for layers, is_random in ((1, False), (2, True)):
        model = made(corpus, dropout=0.5, layers=layers)
        one, two = walked(model, pairs), walked(model, pairs)
        assert torch.equal(one, two) != is_random
        model.eval()
        torch.testing.assert_close(walked(model, pairs), walked(model, pairs), rtol=0, atol=0)
    # Everything dropped: a second layer reads nothing, so the words read make no difference.
    model = made(corpus, dropout=1.0)
    other = replace(pairs, before=pairs.before.flip(0))
    assert torch.equal(walked(model, pairs), walked(model, other))


def test_the_library_has_its_way_without_a_kernel(corpus: EncodedPairs) -> None:
    assert not walks(made(corpus))
    assert not walks(made(corpus, cell="gru"))


class Asking(TorchDispatchMode):
    """Notes operations for whose answer the host would wait."""

    def __init__(self) -> None:
        super().__init__()
        self.names: set[str] = set()
        self.count = 0

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        self.count += 1
        words = ("_local_scalar_dense", "nonzero", "masked_select", "is_nonzero", "unique")
        if any(word in str(func) for word in words):
            self.names.add(str(func))
        return func(*args, **(kwargs or {}))


@pytest.mark.slow
def test_no_update_asks_the_device_for_a_number(corpus: EncodedPairs) -> None:
    model = made(corpus, dropout=0.5)
    pairs = collate_pairs(corpus.splits["train"], range(9))
    asking = Asking()
    with asking:
        mean_loss(walked(model, pairs), pairs.target).backward()  # type: ignore[no-untyped-call]
    assert asking.count > 50
    assert not asking.names


@pytest.mark.slow
def test_a_run_that_walks_ends_as_one_that_does_not_and_goes_on_after_a_kill(
    corpus: EncodedPairs, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    config = SequenceConfig(2, 8, 5e-3, (0, 5, 12), checkpoint_seconds=0.0)
    plain = made(corpus)
    expected = fit_translator(plain, corpus, config, seed=5)
    monkeypatch.setattr(sequences, "walks", lambda model: True)
    quick = made(corpus)
    found = fit_translator(quick, corpus, config, seed=5)
    for one, two in zip(plain.parameters(), quick.parameters(), strict=True):
        torch.testing.assert_close(one, two, rtol=0, atol=1e-8)
    for name in ("step", "dev_loss", "dev_accuracy"):
        ours, theirs = ([entry[name] for entry in h.entries] for h in (found, expected))
        assert ours == pytest.approx(theirs, rel=1e-6)

    def killing(moment: Moment) -> None:
        if moment.step == 5:
            raise KeyboardInterrupt

    whole, parts = made(corpus, dropout=0.5), made(corpus, dropout=0.5)
    fit_translator(whole, corpus, config, seed=5)
    with pytest.raises(KeyboardInterrupt):
        fit_translator(parts, corpus, config, seed=5, folder=tmp_path, observers=[killing])
    again = made(corpus, dropout=0.5)
    fit_translator(again, corpus, config, seed=5, folder=tmp_path)
    for one, two in zip(whole.parameters(), again.parameters(), strict=True):
        assert torch.equal(one, two)
