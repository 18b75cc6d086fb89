"""Language models that choose among labels, against plain forward passes in float64."""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor

from heedful.errors import InputError
from heedful.jobs.priors import fitted, said_to_nothing, settle
from heedful.models import decide, erase, read
from heedful.models.huggingface.attending import attending
from heedful.models.huggingface.calls import softmax
from heedful.models.huggingface.label_choice import LabelChoice
from heedful.models.huggingface.language_models import (
    Asking,
    asked,
)
from heedful.models.huggingface.pieces import framed
from heedful.models.huggingface.prompts import FREE, prompt_of
from heedful.models.tracing import layers_of, rollout
from tests.tiny_transformers import (
    TEXTS,
    VOCABULARY,
    enlarged,
    tokenizer,
)

PROMPT = "the service was {text} and the staff was"
WHOLE = {"good": "good", "odd": "unbelievable", "bad": "unbelievable slow food"}
"""Labels of one, three and five pieces; two of them begin alike."""
SHORT = {"good": "good", "bad": "bad"}
SIZES = {
    "vocab_size": len(VOCABULARY), "hidden_size": 16, "num_hidden_layers": 2,
    "num_attention_heads": 2, "num_key_value_heads": 1, "intermediate_size": 24, "head_dim": 8,
    "max_position_embeddings": 64, "pad_token_id": 0, "bos_token_id": 1, "eos_token_id": 2,
}  # fmt: skip
FAMILIES: dict[str, dict[str, Any]] = {
    "gpt2": {"n_embd": 16, "n_layer": 2, "n_head": 2, "n_positions": 64},
    "llama": {},
    "qwen2": {},
    "qwen3": {},
    "gemma2": {"attn_logit_softcapping": 2.0, "final_logit_softcapping": 5.0, "sliding_window": 64},
    "gemma3_text": {"sliding_window": 64},
    "mistral": {"sliding_window": 64},
    "olmo2": {},
    "phi3": {"rope_parameters": {"rope_type": "default", "rope_theta": 10000.0}},
    "gpt_neox": {},
}


@cache
def language_model(kind: str) -> Any:
    """A random language model of that family, in float64.

    Gemma 2's own attention takes its softmax in float32, where a mask of float64 is not finite.
    """
    from transformers import AutoConfig, AutoModelForCausalLM

    known = {name: size for name, size in SIZES.items() if kind != "gpt2" or "head" not in name}
    config = AutoConfig.for_model(kind, **(known | FAMILIES[kind]))
    model = enlarged(AutoModelForCausalLM.from_config(config))
    return model.float() if kind == "gemma2" else model


def close(kind: str) -> float:
    """How near two computations of a log-probability of about 10 must be: in float64, but for one.

    A few hundred terms in each of two layers, times the unit roundoff.
    """
    return 1e-4 if kind == "gemma2" else 1e-10


def chooser(kind: str, labels: dict[str, str], site: str = "pooled") -> Any:
    """It, asked by the prompt."""
    cut = tokenizer(is_causal=True)
    return asked(language_model(kind), cut, kind, Asking(PROMPT, labels), site=site)


def prompted(text: str, label: str = "") -> list[int]:
    """The pieces of a whole prompt, cut as one text."""
    ids = tokenizer(is_causal=True)(f"{PROMPT.replace('{text}', text)} {label}")["input_ids"]
    return list(ids)


def by_hand(kind: str, text: str, label: str) -> float:
    """log p(label | prompt): one plain pass over this prompt and this label alone."""
    prompt, whole = prompted(text), prompted(text, label)
    with torch.no_grad():
        said = language_model(kind)(torch.tensor([whole])).logits[0].double().log_softmax(-1)
    return sum(float(said[at - 1, whole[at]]) for at in range(len(prompt), len(whole)))


@pytest.mark.parametrize("kind", FAMILIES)
def test_a_label_is_as_likely_as_its_whole_words(kind: str) -> None:
    model = chooser(kind, WHOLE)
    found = read(model, model.batch(TEXTS)).logits
    expected = [[by_hand(kind, text, label) for label in WHOLE.values()] for text in TEXTS]
    np.testing.assert_allclose(found, expected, rtol=close(kind))
    assert model.layout.behind == 2 + 4


@pytest.mark.slow
@pytest.mark.parametrize("kind", FAMILIES)
@pytest.mark.parametrize("site", ["pooled", "layer:0", "all"])
@pytest.mark.parametrize("labels", [SHORT, WHOLE], ids=["short", "whole"])
def test_erasing_a_word_hides_its_pieces_from_the_site(
    kind: str, site: str, labels: dict[str, str]
) -> None:
    model = chooser(kind, labels, site)
    reading = read(model, model.batch(TEXTS[2:3]))
    units = reading.mask.shape[1]
    found = decide(model, reading, erase(torch.eye(units, dtype=torch.bool)[None]))
    hidden = [_hidden(kind, model, reading, unit, site) for unit in range(units)]
    np.testing.assert_allclose(found[0], torch.stack(hidden), rtol=close(kind))
    assert (found[0] - reading.logits).abs().max() > 1e-3


@pytest.mark.parametrize("kind", FAMILIES)
def test_erasing_a_word_from_some_heads_is_what_removing_their_weights_does(kind: str) -> None:
    """Against attention edited here, head by head, in a plain pass."""
    model = chooser(kind, SHORT, "heads:0.1,1.0")
    reading = read(model, model.batch(TEXTS[2:3]))
    units = reading.mask.shape[1]
    assert reading.heads is not None
    assert reading.heads.shape[1] == 2
    found = decide(model, reading, erase(torch.eye(units, dtype=torch.bool)[None]))
    frame = framed(reading.batch, model.subwords)
    for unit in range(units):
        keys = frame.place[0][(reading.unit_of_token[0] == unit) & reading.batch.mask[0]]

        def change(number: int, scores: Tensor, keys: Tensor = keys) -> Tensor:
            scores, head = scores.clone(), {0: 1, 1: 0}[number]
            hidden = scores[:, head]
            hidden[..., keys] = -torch.inf
            is_blind = (hidden < -1e4).all(-1, keepdim=True)
            weights = softmax(scores)
            weights[:, head] = weights[:, head].masked_fill(is_blind, 0)
            return weights

        with attending(model.model, change), torch.no_grad():
            expected = model.run(model.inputs_of(frame)).logits
        np.testing.assert_allclose(found[0, unit], expected[0].double(), rtol=close(kind))
    assert (found[0] - reading.logits).abs().max() > 1e-4


PAIRED = "the service was {text} but the staff was {text2} and it was"


@pytest.mark.parametrize("kind", FAMILIES)
def test_two_texts_in_a_prompt_are_read_in_their_places(kind: str) -> None:
    cut = tokenizer(is_causal=True)
    model = asked(language_model(kind), cut, kind, Asking(PAIRED, WHOLE))
    pairs = [("good food", "slow"), ("bad", "not very good")]
    reading = read(model, model.batch(pairs))
    for row, (first, second) in enumerate(pairs):
        prompt = PAIRED.replace("{text2}", second).replace("{text}", first)
        ids = list(cut(prompt)["input_ids"])
        for place, label in enumerate(WHOLE.values()):
            whole = [*ids, *cut(label)["input_ids"]]
            with torch.no_grad():
                logits = language_model(kind)(torch.tensor([whole])).logits[0].double()
            said = logits.log_softmax(-1)
            expected = sum(float(said[at - 1, whole[at]]) for at in range(len(ids), len(whole)))
            assert reading.logits[row, place] == pytest.approx(expected, rel=close(kind))
    assert list(reading.texts[0]) == ["good", "food", "slow"]
    assert model.subwords.cut_across == 0
    with pytest.raises(InputError, match="name the column of the other by --text2"):
        model.batch(["good"])
    assert np.isfinite(said_to_nothing(model)).all()


def _hidden(kind: str, model: Any, reading: Any, unit: int, site: str) -> Tensor:
    """The logits when chosen layers are told, by a mask written here, not to see a unit."""
    base = language_model(kind)
    frame = framed(reading.batch, model.subwords)
    keys = frame.place[0][(reading.unit_of_token[0] == unit) & reading.batch.mask[0]]
    layers = next(m for m in base.modules() if isinstance(m, torch.nn.ModuleList))
    chosen = {"pooled": [1], "layer:0": [0], "all": [0, 1]}[site]
    end = int(frame.mask.sum()) - 1 - model.layout.behind

    def hide(module: Any, args: Any, kwargs: dict[str, Any]) -> Any:
        given = kwargs["attention_mask"]
        size, dtype = int(frame.mask.sum()), next(base.parameters()).dtype
        if given is None or given.dtype == torch.bool:  # one text without padding: causal alone
            seen = torch.ones(size, size, dtype=torch.bool).tril()
            given = torch.zeros(1, 1, size, size, dtype=dtype).masked_fill(~seen, -torch.inf)
        mask = given.clone()
        mask[:, :, slice(end, end + 1) if site == "pooled" else slice(None), keys] = -torch.inf
        return args, kwargs | {"attention_mask": mask}

    names = ("self_attn", "attention", "attn")
    attentions = [next(filter(None, (getattr(x, n, None) for n in names))) for x in layers]
    hooks = [attentions[n].register_forward_pre_hook(hide, with_kwargs=True) for n in chosen]
    try:
        with torch.no_grad():
            return LabelChoice(base, model.subwords.labels)(frame.ids, frame.mask).logits[0]
    finally:
        for hook in hooks:
            hook.remove()


def test_units_are_the_words_of_the_text_alone() -> None:
    model = chooser("llama", WHOLE)
    reading = read(model, model.batch(TEXTS))
    assert reading.texts[0] == (
        "The",
        "food",
        "was",
        "unbelievable",
        ",",
        "unbelievably",
        "good",
        "!",
    )
    assert reading.outside is not None
    assert bool((reading.outside > 0.05).all())
    np.testing.assert_allclose(reading.attention.sum(-1), 1)


def test_tracing_goes_down_from_the_end_of_the_prompt() -> None:
    model = chooser("gemma2", WHOLE)
    batch = model.batch(TEXTS)
    beside, alone = (layers_of(model, one) for one in (batch, model.batch(TEXTS[:1])))
    words = int(batch.mask[0].sum())
    first, second = (rollout(stack).total[0, stack.place[0, :words]] for stack in (beside, alone))
    np.testing.assert_allclose(first, second, rtol=1e-4)
    assert int(beside.pooling[0].argmax()) == beside.pooling.shape[1] - 1 - model.layout.behind


def test_what_the_first_token_holds_is_known() -> None:
    model = chooser("llama", SHORT)
    reading = read(model, model.batch(TEXTS))
    row = reading.state.scores.softmax(-1)[:, :, 0].mean(1)
    frame = framed(reading.batch, model.subwords)
    starts = frame.mask.long().argmax(-1)
    np.testing.assert_allclose(reading.first, row[torch.arange(len(TEXTS)), starts], rtol=1e-12)


def test_a_prompt_is_read_as_it_is_written() -> None:
    model = chooser("llama", SHORT)
    frame = framed(model.batch(TEXTS), model.subwords)
    for row, text in enumerate(TEXTS):
        assert frame.ids[row][frame.mask[row].bool()].tolist() == prompted(text)
    assert model.subwords.cut_across == 0


def test_offsets_fitted_on_dev_make_the_right_labels_likeliest() -> None:
    generator = np.random.default_rng(0)
    labels = generator.integers(0, 3, 400)
    logits = generator.normal(size=(400, 3)) + 2 * np.eye(3)[labels] + np.array([3.0, 0.0, -1.0])
    offset = fitted(logits, labels)
    np.testing.assert_allclose(offset - offset[1], [-3, 0, 1], atol=0.5)

    def likelihood(added: Any) -> float:
        moved = logits + added
        said = moved - np.log(np.exp(moved).sum(1, keepdims=True))
        even = added - np.log(np.exp(added).sum())
        return float(said[np.arange(400), labels].sum() + even.sum())

    for nudge in 0.05 * np.eye(3):
        assert likelihood(offset) > likelihood(offset + nudge)
        assert likelihood(offset) > likelihood(offset - nudge)


def test_what_a_prompt_alone_says_is_subtracted() -> None:
    model = chooser("gpt2", SHORT)
    free = [[by_hand("gpt2", text, label) for label in SHORT.values()] for text in FREE]
    rows = torch.tensor(free, dtype=torch.float64).log_softmax(-1)
    np.testing.assert_allclose(said_to_nothing(model), rows.mean(0), rtol=1e-10)


def test_dev_documents_are_not_audited() -> None:
    from heedful.corpora.planted import planted

    model = chooser("gpt2", {"negative": "bad", "positive": "good"})
    corpus = planted(2, "short", 0, {"train": 0, "dev": 0, "test": 100})
    settled = settle(model, model.encode(corpus), "test", "dev", 0, 40)
    assert len(settled.corpus.splits["test"]) == 75
    assert list(settled.accuracy) == ["none", "empty", "dev"]
    assert {share.n for share in settled.accuracy.values()} == {40}
    assert bool((model.model.offset != 0).all())


@pytest.mark.parametrize(
    ("asking", "said"),
    [
        (Asking("no slot at all", SHORT), "Expected a prompt with {text} in it"),
        (Asking("{text} {text}", SHORT), "once, where the text goes; found it 2 times"),
        (Asking(PROMPT, {"good": "good"}), "two labels or more to choose among, got good"),
        (Asking(PROMPT, {"a": "good", "b": "Good"}), "the same to the model's tokenizer"),
        (Asking(PROMPT, {"a": "good", "b": " "}), "A label is empty"),
        (Asking(PROMPT, {"a": "good", "b": "zebra"}), "'zebra' is no word that the model knows"),
        (Asking(PROMPT, SHORT, chat=True), "has no chat template"),
        (Asking("the " * 80 + "{text}", SHORT), "Shorten the prompt"),
    ],
)
def test_bad_prompts_get_one_sentence(asking: Asking, said: str) -> None:
    with pytest.raises(InputError, match=said.replace("{", r"\{").replace("}", r"\}")):
        asked(language_model("llama"), tokenizer(is_causal=True), "tiny", asking)


def test_a_label_without_probability_is_said() -> None:
    from heedful.corpora.planted import planted

    model = chooser("llama", {"negative": "bad", "positive": "good"})
    good = VOCABULARY["good"]

    def never(_module: Any, _inputs: Any, logits: Tensor) -> Tensor:
        return logits.index_fill(-1, torch.tensor([good]), -torch.inf)

    corpus = model.encode(planted(2, "short", 0, {"train": 0, "dev": 0, "test": 30}))
    hook = model.model.base.lm_head.register_forward_hook(never)
    try:
        with pytest.raises(InputError, match="'positive' has a probability of 0, or none, behind"):
            settle(model, corpus, "test", "none", 0, 30)
    finally:
        hook.remove()


def test_spaces_before_a_label_belong_to_the_label() -> None:
    prompt = prompt_of("Review: {text}\nIt was  ", None)
    assert (prompt.after, prompt.lead) == ("\nIt was", " ")
    assert prompt_of("{text}\n", None).lead == ""
