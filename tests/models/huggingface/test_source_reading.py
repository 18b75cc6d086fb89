"""Sources of an answer, against the library's own attention matrices in float64."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import torch

from heedful.models.huggingface.answers import greedy_answer
from heedful.models.huggingface.question_prompts import AnswerPrompt, QuestionTokeniser
from heedful.models.huggingface.source_reading import (
    gradient_by_input,
    read_both,
    read_sources,
)
from tests.models.huggingface.test_language_models import FAMILIES, close, language_model
from tests.tiny_transformers import tokenizer

PROMPT = AnswerPrompt((5, 9), ((6, 7, 8), (10, 11), (12, 13, 14)), (20, 21), (16, 17, 18))
SPANS = ((2, 5), (5, 7), (7, 10))


def matrices(kind: str) -> tuple[Any, Any]:
    """All attention matrices [layer head query key] and logits, from the library itself."""
    model = language_model(kind)
    before = model.config._attn_implementation
    ids = torch.tensor([[*PROMPT.pieces, *PROMPT.answer[:-1]]])
    try:
        model.set_attn_implementation("eager")
        with torch.no_grad():
            out = model(ids, output_attentions=True, use_cache=False)
    finally:
        model.set_attn_implementation(before)
    return torch.stack(out.attentions)[:, 0].double(), out.logits[0].double()


@pytest.mark.parametrize("kind", FAMILIES)
def test_sources_get_what_the_answers_rows_give_them(kind: str) -> None:
    found = read_sources(language_model(kind), PROMPT)
    attention, logits = matrices(kind)
    rows = attention[:, :, -3:]
    # Eager attention of the library takes its softmax in float32 whatever the model is in.
    expected = torch.stack([rows[..., a:b].sum(-1) for a, b in SPANS], -1)
    np.testing.assert_allclose(found.attention, expected, atol=1e-6)
    np.testing.assert_allclose(found.first, rows[..., 0], atol=1e-6)
    said = logits.log_softmax(-1)[-3:][range(3), list(PROMPT.answer)]
    np.testing.assert_allclose(found.log_probabilities, said, rtol=max(close(kind), 1e-5))
    here = torch.zeros(attention.shape[-1], dtype=torch.float64)
    here[-3:] = 1 / 3
    heads = here.expand(attention.shape[1], -1)
    for layer in attention.flip(0):
        here = 0.5 * here + 0.5 * (here @ layer.mean(0))
        heads = torch.einsum("hq,hqk->hk", heads, layer)
    for traced, path in ((found.rollout, here), (found.trace, heads.sum(0))):
        np.testing.assert_allclose(traced, [path[a:b].sum() for a, b in SPANS], atol=1e-6)


@pytest.mark.parametrize("kind", FAMILIES)
def test_a_question_without_content_is_read_behind_what_is_known(kind: str) -> None:
    free = replace(PROMPT, after=(22, 23, 24))
    model = language_model(kind)
    found = read_both(model, PROMPT, free)
    expected = [read_sources(model, PROMPT), read_sources(model, free, is_followed=False)]
    for one, whole in zip(found, expected, strict=True):
        for here, there in zip(one, whole, strict=True):
            np.testing.assert_allclose(here, there, rtol=max(close(kind), 1e-6), atol=1e-9)


@pytest.mark.parametrize("kind", ["mistral", "gemma3_text"])
def test_a_window_is_read_behind_what_is_known_too(
    kind: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    model, free = language_model(kind), replace(PROMPT, after=(22, 23, 24))
    monkeypatch.setattr(model.config, "sliding_window", 4)
    _, found = read_both(model, PROMPT, free)
    expected = read_sources(model, free, is_followed=False)
    np.testing.assert_allclose(found.attention, expected.attention, rtol=1e-6, atol=1e-9)


def test_values_count_by_their_length() -> None:
    found = read_sources(language_model("llama"), PROMPT)
    ratio = found.values / found.attention
    assert (ratio > 0).all()
    assert ratio.std() > 1e-3


@pytest.mark.parametrize("kind", ["gpt2", "llama", "gemma3_text"])
def test_gradient_by_input_is_the_slope_of_stretching_a_source(kind: str) -> None:
    model = language_model(kind)
    found = gradient_by_input(model, PROMPT)
    ids = torch.tensor([[*PROMPT.pieces, *PROMPT.answer[:-1]]])
    # The library's norms round to float32, which a difference over a small step would magnify.
    step, close_by = (1e-5, 1e-6) if kind == "gpt2" else (3e-3, 1e-3)
    for place, (a, b) in enumerate(SPANS):
        values = []
        for sign in (1, -1):
            inputs = model.get_input_embeddings()(ids).detach().clone()
            inputs[:, a:b] *= 1 + sign * step
            with torch.no_grad():
                said = model(inputs_embeds=inputs).logits[0].log_softmax(-1)[-3:]
            values.append(float(said[range(3), list(PROMPT.answer)].sum()))
        assert found[place] == pytest.approx((values[0] - values[1]) / (2 * step), abs=close_by)


def test_a_greedy_answer_is_the_likeliest_piece_each_time() -> None:
    model, read, expected = language_model("llama"), PROMPT.pieces, []
    for _ in range(5):
        with torch.no_grad():
            expected.append(int(model(torch.tensor([read])).logits[0, -1].argmax()))
        read = [*read, expected[-1]]
    assert greedy_answer(model, PROMPT.pieces, 5, lambda said, piece: False) == expected
    end = expected[2]
    stops = expected[: expected.index(end)]
    assert greedy_answer(model, PROMPT.pieces, 5, lambda said, piece: piece == end) == stops


def test_an_answer_ends_with_its_first_line_and_not_before(monkeypatch: pytest.MonkeyPatch) -> None:
    cut = tokenizer(is_causal=True)
    made = QuestionTokeniser(cut, "the {passages} was {question} and")
    words = {20: "\n", 21: " Ada", 22: "\n\n", 23: " "}
    said = list[int]()
    monkeypatch.setattr(cut, "decode", lambda ids: "".join(words[one] for one in ids))
    module = "heedful.models.huggingface.question_prompts.greedy_answer"

    def greedy(model: Any, prompt: Any, most: int, is_end: Any) -> list[int]:
        found = list[int]()
        for piece in said:
            if is_end(found, piece):
                break
            found.append(piece)
        return found

    monkeypatch.setattr(module, greedy)
    for pieces, expected in (([20, 21, 22, 21], (20, 21)), ([20, 23, 20], ()), ([21], (21,))):
        said[:] = pieces
        assert made.made(language_model("llama"), PROMPT) == expected


def test_a_prompt_is_made_of_parts() -> None:
    cut = tokenizer(is_causal=True)
    made = QuestionTokeniser(cut, "the {passages} was {question} and")
    prompt = made.prompt("slow", ["good food", "bad staff"])
    words = [cut.convert_ids_to_tokens(list(part)) for part in prompt.parts]
    assert words == [["the"], ["good", "food"], ["bad", "staff"], ["was", "slow", "and"]]
    assert cut.convert_ids_to_tokens(list(made.given("very bad"))) == ["very", "bad"]
    assert made.free(prompt).sources == prompt.sources
