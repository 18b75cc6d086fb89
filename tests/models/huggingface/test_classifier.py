"""Words, pairs, long texts, slopes, other modules; and the model given back as it was."""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor, nn
from transformers import AutoConfig, AutoModel, AutoModelForSequenceClassification

from heedful.corpora import document_of
from heedful.errors import InputError, UnsupportedModel
from heedful.models import Replace, alone, decide, erase, identity, keep, read, without_each
from heedful.models.huggingface import FastTokeniser, attending, classifier_of, unit_spans
from heedful.models.huggingface.calls import Call, call_of, softmax
from heedful.models.huggingface.modules import PlainTokeniser
from heedful.models.huggingface.pieces import Pieces, encode_pieces, framed
from heedful.models.huggingface.reweighing import Shift
from heedful.models.tracing import lat, layers_of
from tests.models.huggingface.test_architectures import KINDS, edited_row, opened
from tests.tiny_transformers import (
    END,
    LIMIT,
    START,
    TEXTS,
    UNKNOWN,
    VOCABULARY,
    enlarged,
    reader,
    tokenizer,
    tokenizer_of,
    transformer,
)

PAIRS = (("good food", "the staff was slow"), ("very bad", "unbelievable!"))


@cache
def bert() -> Any:
    return opened("bert")[0]


def test_units_are_the_words_of_the_original_text() -> None:
    _, reading = opened("bert")
    assert " ".join(reading.texts[0]) == "The food was unbelievable , unbelievably good !"
    spans = unit_spans(reading.batch, reading.unit_of_token)
    assert [TEXTS[0][start:stop] for start, stop in spans[0]] == list(reading.texts[0])
    pieces = (reading.unit_of_token[0] == 3) & reading.batch.mask[0]
    assert int(pieces.sum()) == 3  # un ##believ ##able


def test_words_that_share_a_piece_are_one_unit() -> None:
    # Our rule cuts did|n't, this tokeniser didn|'t: no border is common to both.
    cut = PlainTokeniser(lambda text: Pieces([5, 6, 7], [(0, 4), (4, 6), (7, 11)]))
    encoded, _ = encode_pieces([document_of("a", "didn't work")], cut, 10)
    assert encoded.sentence.tolist() == [0, 0, 1]


def test_a_piece_of_white_space_belongs_to_what_follows() -> None:
    cut = PlainTokeniser(lambda text: Pieces([5, 6, 7], [(0, 4), (4, 5), (5, 9)]))
    encoded, _ = encode_pieces([document_of("a", "good food")], cut, 10)
    assert encoded.sentence.tolist() == [0, 1, 1]


@pytest.mark.parametrize("kind", ["bert", "gpt2", "xlnet"])
def test_framing_equals_the_tokenizer(kind: str) -> None:
    subwords, model = FastTokeniser(tokenizer_of(kind)), reader(kind)
    single = framed(model.batch(TEXTS), subwords)
    expected = tokenizer_of(kind)(list(TEXTS), padding=True, return_tensors="pt")
    assert torch.equal(single.ids, expected["input_ids"])
    assert torch.equal(single.mask, expected["attention_mask"])
    if kind != "gpt2":
        pair = framed(model.batch(PAIRS), subwords)
        expected = tokenizer_of(kind)(*zip(*PAIRS, strict=True), padding=True, return_tensors="pt")
        real = expected["attention_mask"].bool()
        assert torch.equal(pair.ids, expected["input_ids"])
        assert torch.equal(pair.types[real], expected["token_type_ids"][real])


def test_a_pair_stays_a_pair_when_its_second_text_is_taken_away() -> None:
    batch = bert().batch(PAIRS[:1])
    first = batch.keeping(batch.mask & (torch.arange(batch.mask.shape[1]) < 2))
    framed_ids = framed(first, bert().subwords).ids[0].tolist()
    assert framed_ids == [START, *first.ids[0].tolist(), END, END]
    reading = read(bert(), batch)
    assert reading.texts[0] == ("good", "food", "the", "staff", "was", "slow")


def test_long_and_empty_texts_are_read_by_an_explicit_policy() -> None:
    subwords = FastTokeniser(tokenizer())
    long = document_of("long", "good bad " * 5000)
    kept = {}
    for policy in ("beginning", "end", "both"):
        encoded, notes = encode_pieces([long], subwords, 5, policy)
        assert notes == {"cut to what the model reads": 1}
        assert encoded.documents is not None
        kept[policy] = encoded.documents[0].spans[:, 0].tolist()
    assert kept["beginning"] == [0, 5, 9, 14, 18]
    assert kept["end"][-1] == len(long.text) - 4
    assert kept["both"][:3] == kept["beginning"][:3]
    assert kept["both"][3:] == kept["end"][3:]
    with pytest.raises(InputError, match="10000 pieces, the model reads 5"):
        encode_pieces([long], subwords, 5, "refuse")
    encoded, notes = encode_pieces([document_of("none", "")], subwords, 5)
    assert encoded.ids.tolist() == [UNKNOWN]
    assert notes == {"empty, read as one unknown word": 1}
    reading = read(bert(), bert().batch(["", "good bad " * 5000]))
    assert reading.units.tolist() == [1, LIMIT - 2]


def test_attention_is_that_of_the_pooled_row_over_words() -> None:
    model, reading = opened("bert")
    rows: dict[int, Tensor] = {}

    def keep_rows(number: int, scores: Tensor) -> Tensor:
        rows[number] = softmax(scores)
        return rows[number]

    with torch.no_grad(), attending(model.model, keep_rows):
        model.run(reading.state.inputs)
    first = rows[1][0, :, 0]  # heads, of [CLS]
    words = torch.stack([first[:, 4:7].sum(-1), first[:, 3]], -1)  # pieces of word 3, and word 2
    assert reading.heads is not None
    assert torch.allclose(reading.heads[0, :, [3, 2]], words)
    share = first[:, 1 : 1 + int(reading.batch.lengths[0])].sum(-1)
    assert torch.allclose(reading.heads[0].sum(-1), share)
    assert torch.allclose(reading.attention.sum(-1), torch.ones(len(TEXTS), dtype=torch.float64))
    assert torch.allclose(reading.attention[0, 3], words[:, 0].mean() / share.mean())


def test_edits_that_change_nothing_give_the_reading_to_the_bit() -> None:
    model, reading = opened("bert")
    assert torch.equal(decide(model, reading, identity(reading))[:, 0], reading.logits)
    # Giving every head the mean row is no such edit.
    moved = decide(model, reading, Replace(reading.attention[:, None]))[:, 0]
    assert float((moved - reading.logits).abs().max()) > 1e-6


def test_without_special_tokens_nothing_may_be_left() -> None:
    model, reading = opened("gpt2")
    nothing = keep(torch.zeros(len(TEXTS), 1, reading.mask.shape[1], dtype=torch.bool))
    assert torch.isfinite(decide(model, reading, nothing)).all()


def test_erasing_a_word_is_masking_its_pieces() -> None:
    model, reading = opened("bert")
    erased = torch.zeros(len(TEXTS), 1, reading.mask.shape[1], dtype=torch.bool)
    erased[0, 0, 3] = True
    inputs = {name: value[:1] for name, value in reading.state.inputs.items()}

    def mask(number: int, scores: Tensor) -> Tensor:
        scores = scores.clone()
        if number == 1:
            scores[0, :, 0, 4:7] = -torch.inf
        return softmax(scores)

    with torch.no_grad(), attending(model.model, mask):
        expected = model.run(inputs).logits[0]
    assert torch.allclose(decide(model, reading, erase(erased))[0, 0], expected, atol=1e-12)


@pytest.mark.parametrize(
    ("kind", "site"), [("bert", "pooled"), ("gpt2", "all"), ("mpnet", "layer:0")]
)
def test_slopes_are_finite_differences(kind: str, site: str) -> None:
    model, reading = opened(kind, site)
    slopes = model.slopes(reading)
    step = torch.zeros_like(reading.heads)
    step[2, 1, 4] = 1e-6
    with torch.no_grad():
        sides = [model.passes.answer(reading.state, Shift(sign * step))[2, 0] for sign in (1, -1)]
    high, low = (logits.softmax(-1)[reading.decision[2]] for logits in sides)
    assert float(slopes[2, 1, 4]) == pytest.approx(float((high - low) / 2e-6), rel=1e-5, abs=1e-9)


@pytest.mark.parametrize("kind", KINDS)
def test_a_pass_from_word_vectors_is_the_pass_from_words(kind: str) -> None:
    model, reading = opened(kind)
    with torch.no_grad():
        logits = model.from_inputs(reading.inputs, reading.batch).logits
        moved = model.from_inputs(reading.inputs * 0.5, reading.batch).logits
    assert torch.allclose(logits, reading.logits, atol=1e-12)
    assert float((moved - logits).abs().max()) > 1e-3


@pytest.mark.parametrize("kind", ["bert", "mpnet"])
def test_the_model_is_given_back_as_it_was(kind: str) -> None:
    model = reader(kind).train()
    inner = model.model
    before = inner.config._attn_implementation
    read(model, model.batch(TEXTS))

    def fail(number: int, scores: Tensor) -> Tensor:
        raise RuntimeError("on purpose")

    with pytest.raises(RuntimeError, match="on purpose"), attending(inner, fail):
        model.run(model.inputs_of(framed(model.batch(TEXTS), model.subwords)))
    assert inner.config._attn_implementation == before
    assert torch.backends.mha.get_fastpath_enabled()
    for module in inner.modules():
        assert "forward" not in module.__dict__
        assert not module._forward_hooks
        assert not module._forward_pre_hooks
    assert inner.training


def test_arguments_that_would_be_ignored_are_refused_by_name() -> None:
    head = torch.zeros(1, 2, 3, 4)
    given = {"s_aux": torch.zeros(2), "position_ids": torch.zeros(1)}
    with pytest.raises(UnsupportedModel, match="passes s_aux to its attention"):
        call_of(0, nn.Identity(), head, head, head, None, False, given)
    with pytest.raises(UnsupportedModel, match="head_mask"):
        call_of(0, nn.Identity(), head, head, head, None, False, {"head_mask": 1.0})


def test_fused_and_written_out_attention_agree() -> None:
    generator = torch.Generator().manual_seed(0)
    query = torch.randn(2, 4, 5, 8, generator=generator, dtype=torch.float64)
    key, value = torch.randn(2, 2, 2, 5, 8, generator=generator, dtype=torch.float64).unbind()
    bias = torch.randn(1, 4, 5, 5, generator=generator, dtype=torch.float64)

    def call(**given: Any) -> Call:
        return call_of(0, nn.Identity(), query, key, value, None, True, given)

    for one in (call(is_causal=True), call(is_causal=False, position_bias=bias)):
        assert torch.allclose(one.output(), one.mixed(one.weights()), atol=1e-12)
        place = torch.tensor([4, 2])
        rows = one.scores(place)[:, :, 0]
        assert torch.equal(rows, one.scores()[torch.arange(2), :, place])


def test_a_head_that_reads_every_position_edits_every_row() -> None:
    """ModernBERT with mean pooling: the site `pooled` is the whole last layer."""
    from heedful.models.huggingface import PretrainedClassifier
    from tests.tiny_transformers import CONFIGS

    config = AutoConfig.for_model(
        "modernbert", **CONFIGS["modernbert"](), classifier_pooling="mean"
    )
    inner = enlarged(AutoModelForSequenceClassification.from_config(config))
    subwords = FastTokeniser(tokenizer())
    subwords.has_types = False
    model = PretrainedClassifier(inner, subwords, ("a", "b", "c"), max_pieces=LIMIT)
    assert model.layout.pooled == "every"
    assert not model.passes.is_short
    reading = read(model, model.batch(TEXTS))
    whole = read(model, model.batch(TEXTS[2:3]))
    assert torch.allclose(whole.attention[0], reading.attention[2, : len(whole.attention[0])])
    pooling = model.layers_of(reading.batch).pooling
    assert pooling.dtype == torch.float64
    assert torch.allclose(pooling.sum(-1), torch.ones(len(TEXTS)).double(), rtol=0, atol=1e-15)
    found = without_each(model, whole)[0, 4]
    units = whole.state.unit_of_key[0].numpy()
    factors = np.ones(whole.mask.shape[1])
    factors[4] = 0

    def change(number: int, scores: Tensor) -> Tensor:
        weights = softmax(scores)
        if number == 1:
            for head, query in np.ndindex(*weights.shape[1:3]):
                seen = scores[0, head, query].numpy() > -1e4
                row = edited_row(weights[0, head, query].numpy(), units, seen, "scale", factors)
                weights[0, head, query] = torch.from_numpy(row)
        return weights

    with torch.no_grad(), attending(inner, change):
        expected = inner(**whole.state.inputs).logits[0]
    assert torch.allclose(found, expected, atol=1e-12)


class MeanPooled(nn.Module):
    """An encoder of the library with a linear head on the mean of its states."""

    def __init__(self) -> None:
        super().__init__()
        from tests.tiny_transformers import CONFIGS

        config = AutoConfig.for_model("bert", **CONFIGS["bert"]())
        self.encoder = AutoModel.from_config(config)
        self.head = nn.Linear(16, 2)

    def forward(self, input_ids: Tensor, attention_mask: Tensor) -> Tensor:
        states = self.encoder(input_ids, attention_mask=attention_mask).last_hidden_state
        mask = attention_mask[..., None]
        return self.head((states * mask).sum(1) / mask.sum(1))


class OwnAttention(nn.Module):
    """Torch's own encoder layers, read at their first token."""

    def __init__(self) -> None:
        super().__init__()
        self.table = nn.Embedding(60, 8)
        layer = nn.TransformerEncoderLayer(8, 2, 16, batch_first=True)
        self.encoder = nn.TransformerEncoder(layer, 2, enable_nested_tensor=False)
        self.head = nn.Linear(8, 2)

    def forward(self, input_ids: Tensor, attention_mask: Tensor) -> Tensor:
        hidden = attention_mask == 0
        states = self.encoder(self.table(input_ids), src_key_padding_mask=hidden)
        return self.head(states[:, 0])


@pytest.mark.parametrize("module", [MeanPooled, OwnAttention])
@pytest.mark.parametrize("site", ["pooled", "all"])
def test_any_module_can_be_read(module: type[nn.Module], site: str) -> None:
    def cut(text: str) -> Pieces:
        return FastTokeniser(tokenizer(is_causal=True)).pieces([text])[0]

    inner = enlarged(module())
    model = classifier_of(inner, cut, ("no", "yes"), site=site)
    reading = read(model, model.batch(TEXTS))
    with torch.no_grad():
        assert torch.allclose(reading.logits, model(reading.batch).logits, atol=1e-12)
    single = read(model, model.batch(TEXTS[2:3]))
    units = single.mask.shape[1]
    beside = without_each(model, reading)[2, :units]
    assert torch.allclose(without_each(model, single)[0], beside, atol=1e-12)
    assert float((beside - reading.logits[2]).abs().max()) > 1e-3
    assert torch.isfinite(alone(model, single)).all()
    stack = layers_of(model, reading.batch)
    assert torch.allclose(lat(stack).total.sum(-1), torch.tensor(2.0, dtype=torch.float64))


def test_a_model_of_one_layer_begins_at_it() -> None:
    from heedful.models.huggingface import PretrainedClassifier
    from tests.tiny_transformers import CONFIGS

    config = AutoConfig.for_model("bert", **(CONFIGS["bert"]() | {"num_hidden_layers": 1}))
    inner = enlarged(AutoModelForSequenceClassification.from_config(config))
    model = PretrainedClassifier(inner, FastTokeniser(tokenizer()), ("a", "b", "c"))
    reading = read(model, model.batch(TEXTS))
    assert model.passes.is_short
    with torch.no_grad():
        assert torch.allclose(reading.logits, model(reading.batch).logits, atol=1e-12)


def test_a_head_that_reads_padding_is_refused() -> None:
    class Careless(MeanPooled):
        def forward(self, input_ids: Tensor, attention_mask: Tensor) -> Tensor:
            states = self.encoder(input_ids, attention_mask=attention_mask).last_hidden_state
            return self.head(states.mean(1))

    def cut(text: str) -> Pieces:
        return FastTokeniser(tokenizer(is_causal=True)).pieces([text])[0]

    with pytest.raises(UnsupportedModel, match="padding is read"):
        classifier_of(enlarged(Careless()), cut, ("no", "yes"))


def test_a_module_without_visible_attention_is_refused() -> None:
    class NoAttention(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.table = nn.Embedding(60, 2)

        def forward(self, input_ids: Tensor, attention_mask: Tensor) -> Tensor:
            return (self.table(input_ids) * attention_mask[..., None]).sum(1)

    def cut(text: str) -> Pieces:
        return FastTokeniser(tokenizer(is_causal=True)).pieces([text])[0]

    with pytest.raises(UnsupportedModel, match="attended 0 times"):
        classifier_of(NoAttention(), cut, ("no", "yes"))


def test_sites_are_named_or_refused() -> None:
    with pytest.raises(InputError, match="from 0 to 1"):
        reader("bert", "layer:2")
    assert transformer("bert").config.num_hidden_layers == 2


def test_the_symbol_for_a_missing_word_is_never_the_padding() -> None:
    from transformers import PreTrainedTokenizerFast

    names = {"unk_token": "[PAD]", "pad_token": "[PAD]", "eos_token": "[PAD]"}
    inner = tokenizer(is_causal=True).backend_tokenizer
    found = FastTokeniser(PreTrainedTokenizerFast(tokenizer_object=inner, **names))
    assert found.padding == VOCABULARY["[PAD]"]
    assert found.unknown == VOCABULARY["."]
    assert not found.has_unknown  # it is a word too
    usual = FastTokeniser(tokenizer())
    assert (usual.unknown, usual.has_unknown) == (VOCABULARY["[UNK]"], True)
