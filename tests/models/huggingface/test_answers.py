"""Answers behind shortened prompts, against plain passes over what is left, in float64."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from heedful.errors import InputError
from heedful.models.huggingface.answers import answer_log_probabilities
from tests.models.huggingface.test_language_models import FAMILIES, close, language_model

PARTS = [[5, 9], [6, 7, 8], [10, 11], [12, 13, 14, 15], [6, 7, 8], [20, 21]]
"""What stands before, four sources of which two are the same, and what asks."""
ANSWER = [16, 17, 18]


def by_hand(kind: str, kept: list[bool]) -> list[float]:
    """One plain pass over the parts that are kept, without a cache."""
    prompt = [piece for part, keeps in zip(PARTS, kept, strict=True) if keeps for piece in part]
    with torch.no_grad():
        logits = language_model(kind)(torch.tensor([[*prompt, *ANSWER]]), use_cache=False).logits
    said = logits[0].double().log_softmax(-1)
    return [float(said[len(prompt) - 1 + n, piece]) for n, piece in enumerate(ANSWER)]


def removals() -> torch.Tensor:
    """Nothing removed, each source, pairs, and all of them."""
    rows = torch.ones(10, len(PARTS), dtype=torch.bool)
    for row, gone in enumerate([[], [1], [2], [3], [4], [1, 3], [2, 4], [3, 4], [1, 2, 3, 4], []]):
        rows[row, gone] = False
    return rows


@pytest.mark.parametrize("kind", FAMILIES)
def test_an_answer_by_cache_is_that_of_a_plain_pass(kind: str) -> None:
    found = answer_log_probabilities(language_model(kind), PARTS, ANSWER, removals())
    expected = [by_hand(kind, row) for row in removals().tolist()]
    np.testing.assert_allclose(found, expected, rtol=close(kind))
    assert np.ptp(np.asarray(expected).sum(1)) > 1e-2


def test_what_precedes_a_removed_source_is_read_once(monkeypatch: pytest.MonkeyPatch) -> None:
    model, lengths = language_model("llama"), []
    plain = model.forward
    monkeypatch.setattr(
        model,
        "forward",
        lambda **given: lengths.append(given["input_ids"].shape[1]) or plain(**given),
    )
    kept = torch.ones(5, len(PARTS), dtype=torch.bool)
    kept[range(1, 5), range(1, 5)] = False
    answer_log_probabilities(model, PARTS, ANSWER, kept)
    whole, behind = sum(map(len, PARTS)) + 2, 4
    # Whole, then without the last source, the one before it, …: what follows, and nothing else.
    assert lengths == [whole, behind, 3 + behind, 4 + 3 + behind, 2 + 4 + 3 + behind]


@pytest.mark.parametrize(
    ("answer", "keeps", "said"),
    [([], True, "it has no probability"), (ANSWER, False, "Nothing is left of the prompt")],
)
def test_no_answer_or_no_prompt_is_one_sentence(answer: list[int], keeps: bool, said: str) -> None:
    kept = torch.full((1, len(PARTS)), keeps)
    with pytest.raises(InputError, match=said):
        answer_log_probabilities(language_model("gpt2"), PARTS, answer, kept)


@pytest.mark.parametrize("kind", ["mistral", "gemma3_text"])
def test_a_window_shorter_than_the_prompt_can_be_cut_back(
    kind: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    config = language_model(kind).config
    wide = [by_hand(kind, row) for row in removals().tolist()]
    monkeypatch.setattr(config, "sliding_window", 4)
    narrow = [by_hand(kind, row) for row in removals().tolist()]
    found = answer_log_probabilities(language_model(kind), PARTS, ANSWER, removals())
    np.testing.assert_allclose(found, narrow, rtol=close(kind))
    assert np.abs(np.subtract(wide, narrow)).max() > 1e-3
