"""Explaining a Transformer of the shape of MiniLM: against its own passes, and against captum."""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable
from functools import partial
from typing import Any

import torch
from torch import Tensor

from benchmarks.cases import Disagreement
from benchmarks.table import Row
from benchmarks.timing import Timed, side_by_side
from heedful.importance import explain
from heedful.importance.inputs import integrated_gradients
from heedful.models import Reading, read, without_each
from heedful.models.huggingface import FastTokeniser, PretrainedClassifier, attending
from heedful.models.huggingface.calls import softmax
from heedful.models.huggingface.pieces import framed
from heedful.runs.randomness import seeded

WORDS = 2_000
FUSED = ("trace", "rollout", "attention-gradient", "received-attention", "value-norm")
"""Summaries of all layers that need no attention matrix."""
RERUN = 4
"""Erasures that are also done by running the model again; the time is scaled to all of them."""
BATCHES = (1, 8, 16, 64)
"""Perturbations per pass that captum is tried with; its best counts."""
NOISE = 1.05
"""No slower than a peer that runs the same passes, with a twentieth for the noise of the clock."""
STEPS = 15
"""Points of integrated gradients."""


def random_bert(
    layers: int = 6, dim: int = 384, heads: int = 12, tokens: int = 512
) -> PretrainedClassifier:
    """A random BERT, float32, that reads words `w0` to `w1999` as one piece each; as MiniLM."""
    from tokenizers import Tokenizer, models, pre_tokenizers, processors
    from transformers import BertConfig, BertForSequenceClassification, PreTrainedTokenizerFast

    names = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", *(f"w{index}" for index in range(WORDS))]
    made = Tokenizer(models.WordLevel({w: i for i, w in enumerate(names)}, unk_token="[UNK]"))
    made.pre_tokenizer = pre_tokenizers.Whitespace()
    made.post_processor = processors.TemplateProcessing(
        single="[CLS] $A [SEP]", pair=None, special_tokens=[("[CLS]", 2), ("[SEP]", 3)]
    )
    tokenizer = PreTrainedTokenizerFast(
        tokenizer_object=made, unk_token="[UNK]", pad_token="[PAD]", model_max_length=tokens,
        model_input_names=["input_ids", "attention_mask"],
    )  # fmt: skip
    config = BertConfig(
        vocab_size=len(names), hidden_size=dim, num_hidden_layers=layers, num_labels=2,
        num_attention_heads=heads, intermediate_size=4 * dim, initializer_range=0.06,
        max_position_embeddings=tokens,
    )  # fmt: skip
    with seeded(0):
        model = BertForSequenceClassification(config).eval()
    subwords = FastTokeniser(tokenizer)
    return PretrainedClassifier(model, subwords, ("no", "yes"), max_pieces=tokens)


def transformer_rows(tokens: int, short: int, repeats: int, layers: int = 6) -> list[Row]:
    """All cases: a text of `tokens` pieces, special ones included, and one of `short` words."""
    model = random_bert(layers)
    long, brief = (reading_of(model, count) for count in (tokens - 2, short))
    with torch.enable_grad():
        return [
            *_fused_rows(model, long, repeats),
            _registered_row(model, long, repeats),
            _pooled_row(model, long, repeats),
            _occlusion_row(model, brief, 2 * repeats - 1),
            _integrated_row(model, brief, 2 * repeats - 1),
        ]


def reading_of(model: PretrainedClassifier, words: int) -> Reading:
    """What the model read in one text of random words."""
    generator = torch.Generator().manual_seed(words)
    drawn = torch.randint(0, WORDS, (words,), generator=generator).tolist()
    return read(model, model.batch([" ".join(f"w{index}" for index in drawn)]))


def _fused_rows(model: PretrainedClassifier, reading: Reading, repeats: int) -> list[Row]:
    """Every fused summary as a multiple of one forward and backward pass."""
    batch = reading.batch

    def both_ways() -> None:
        model.zero_grad(set_to_none=True)
        model(batch).logits.softmax(-1)[:, 0].sum().backward()

    functions: dict[str, Callable[[], Any]] = {"both": both_ways}
    for name in FUSED:
        functions[name] = partial(_explained, model, reading, name)
    timed = side_by_side(functions, repeats)
    model.zero_grad(set_to_none=True)
    wanted = _by_matrices(model, reading)
    for name, theirs in wanted.items():
        _check(name, timed[name].result, theirs, 1e-4)
    both = timed["both"].seconds
    tokens = int(reading.batch.lengths[0]) + 2
    return [
        Row(
            f"{name}, {tokens} tokens, {len(model.layout.layers)} layers",
            1e3 * timed[name].seconds,
            timed[name].seconds / both,
            "forward and backward",
            f"{1 / timed[name].seconds:.1f} texts per second, on fused kernels and without a "
            f"matrix; {timed[name].seconds / both / 1.5:.2f} of what is allowed"
            + (". The same numbers as from the matrices." if name in wanted else "."),
            naive=1e3 * both,
            at_most=1.5,
        )
        for name in FUSED
    ]


def _explained(model: PretrainedClassifier, reading: Reading, name: str) -> Tensor:
    return explain(model, reading, [name])[name]


def _by_matrices(model: PretrainedClassifier, reading: Reading) -> dict[str, Tensor]:
    """Attention times gradient, and attention received, from the matrices themselves."""
    weights: list[Tensor] = []

    def keep(number: int, scores: Tensor) -> Tensor:
        weights.append(softmax(scores))
        weights[-1].retain_grad()
        return weights[-1]

    frame = framed(reading.batch, model.subwords)
    with attending(model.model, keep):
        logits = model(reading.batch).logits
    logits.softmax(-1).gather(1, reading.decision[:, None]).sum().backward()
    model.zero_grad(set_to_none=True)
    product = sum((w * w.grad).sum((1, 2)) for w in weights if w.grad is not None)
    received = sum(w.mean((1, 2)) for w in weights) / len(weights)
    assert isinstance(product, Tensor)
    assert isinstance(received, Tensor)
    return {
        "attention-gradient": frame.at_pieces(product.detach()),
        "received-attention": frame.at_pieces(received.detach()),
    }


def _registered_row(model: PretrainedClassifier, reading: Reading, repeats: int) -> Row:
    """Our attention function that changes nothing, as a multiple of the library's eager pass."""
    inputs = model.inputs_of(framed(reading.batch, model.subwords))

    def ours() -> Tensor:
        with attending(model.model, lambda number, scores: softmax(scores)):
            logits: Tensor = model.model(**inputs).logits
        return logits

    def eager() -> Tensor:
        logits: Tensor = model.model(**inputs).logits
        return logits

    with torch.no_grad():
        model.model.set_attn_implementation("eager")
        try:
            timed = side_by_side({"ours": ours, "eager": eager}, max(repeats, 3))
        finally:
            model.model.set_attn_implementation("sdpa")
    _check("the registered function", timed["ours"].result, timed["eager"].result, 1e-6)
    ratio = timed["ours"].seconds / timed["eager"].seconds
    return Row(
        f"the registered attention function, {inputs['input_ids'].shape[1]} tokens, float32",
        1e3 * timed["ours"].seconds,
        ratio,
        "eager pass",
        "The same scores, softmax and weighted sum as the library's, with room for an edit between "
        f"them: {ratio / 1.3:.2f} of what is allowed.",
        naive=1e3 * timed["eager"].seconds,
        at_most=1.3,
    )


def _pooled_row(model: PretrainedClassifier, reading: Reading, repeats: int) -> Row:
    """Every word erased from the pooled row, against running the model again for each."""
    inputs = model.inputs_of(framed(reading.batch, model.subwords))
    last = len(model.layout.layers) - 1

    def rerun() -> Tensor:
        def change(number: int, scores: Tensor) -> Tensor:
            if number == last:
                scores = scores.clone()
                for row in range(RERUN):
                    scores[row, :, 0, 1 + row] = -torch.inf
            return softmax(scores)

        with attending(model.model, change):
            many = {name: given.expand(RERUN, -1) for name, given in inputs.items()}
            logits: Tensor = model.model(**many).logits
        return logits

    with torch.no_grad():
        timed = side_by_side(
            {"ours": lambda: without_each(model, reading), "rerun": rerun}, repeats
        )
    words = int(reading.units[0])
    _check("erasures", timed["ours"].result[0, :RERUN], timed["rerun"].result.double(), 1e-4)
    again = timed["rerun"].seconds * words / RERUN
    ratio = again / timed["ours"].seconds
    return Row(
        f"{words} erasures at the pooled row, {len(model.layout.layers)} layers",
        1e3 * timed["ours"].seconds,
        ratio,
        "running the model for each",
        "An edit of one row of the last layer costs a weighted sum and the rest of that layer for "
        f"one position; {RERUN} erasures were also made by whole passes, with the same logits, and "
        f"their time scaled to {words}. {ratio / 20:.1f} times the limit of 20.",
        naive=1e3 * again,
        at_least=20,
    )


def _occlusion_row(model: PretrainedClassifier, reading: Reading, repeats: int) -> Row:
    """Every word replaced, against captum with its best number of perturbations per pass."""
    from captum.attr import FeatureAblation

    inputs = model.inputs_of(framed(reading.batch, model.subwords))
    decided, units = int(reading.decision[0]), int(reading.units[0])
    groups = torch.arange(-1, units + 1)[None].clamp(0, units)
    groups[0, 0] = units  # special tokens are one more feature, which is not asked for

    def top(ids: Tensor) -> Tensor:
        logits: Tensor = model.model(ids, attention_mask=torch.ones_like(ids)).logits
        return logits.softmax(-1)[:, decided]

    def captum(size: int) -> Tensor:
        ids = inputs["input_ids"]
        found: Tensor = FeatureAblation(top).attribute(
            ids, baselines=1, feature_mask=groups, perturbations_per_eval=size
        )
        return found[:, 1:-1]

    functions = _peers(partial(_explained, model, reading, "occlusion"), captum)
    with torch.no_grad():
        timed = _raced(functions, repeats)
    return _against_captum(f"occlusion of {units} words", timed, "replaced word")


def _integrated_row(model: PretrainedClassifier, reading: Reading, repeats: int) -> Row:
    """Integrated gradients, against captum with its best number of points per pass."""
    from captum.attr import IntegratedGradients

    batch, decided = reading.batch, int(reading.decision[0])

    def top(inputs: Tensor) -> Tensor:
        logits = model.from_inputs(inputs, batch.repeated(len(inputs))).logits
        return logits.softmax(-1)[:, decided]

    def captum(size: int) -> Tensor:
        found: Tensor = IntegratedGradients(top).attribute(
            reading.inputs.detach(),
            n_steps=STEPS,
            method="gausslegendre",
            internal_batch_size=size,
            return_convergence_delta=True,  # which ours looks at too
        )[0]
        return found.sum(-1)

    ours = partial(integrated_gradients, model, reading, error=0.0, most=STEPS)
    functions = _peers(ours, captum)
    timed = _raced(functions, repeats)
    units = int(reading.units[0])
    return _against_captum(
        f"integrated gradients of {units} words, {STEPS} points", timed, "point of the path"
    )


def _peers(ours: Callable[[], Any], captum: Callable[[int], Any]) -> dict[str, Callable[[], Any]]:
    def quiet(size: int) -> Any:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return captum(size)

    return {"ours": ours} | {f"captum {size}": lambda size=size: quiet(size) for size in BATCHES}


def _raced(functions: dict[str, Callable[[], Any]], repeats: int) -> dict[str, Timed]:
    """Ours and captum at its best batch, timed afresh once that is known.

    The least of several noisy times is too small; the time of the one that it names is not.
    """
    first = side_by_side(functions, repeats, time.process_time)
    best = min((name for name in first if name != "ours"), key=lambda n: first[n].seconds)
    both = {name: functions[name] for name in ("ours", best)}
    return side_by_side(both, 2 * repeats - 1, time.process_time)


def _against_captum(case: str, timed: dict[str, Timed], what: str) -> Row:
    (best,) = (name for name in timed if name != "ours")
    _check(case, timed["ours"].result, timed[best].result.double(), 1e-4)
    ours, theirs = timed["ours"].seconds, timed[best].seconds
    return Row(
        case,
        1e3 * ours,
        ours / theirs,
        "captum at its best batch",
        f"{1 / ours:.2f} texts per second. The same numbers; both run the model once for every "
        f"{what}, captum fastest with {best.removeprefix('captum ')} in a pass. Time of the "
        "processor, not of the wall clock; as fast is the limit, with a twentieth for noise.",
        peer=1e3 * theirs,
        at_most=NOISE,
    )


def _check(what: str, ours: Tensor, theirs: Tensor, allowed: float) -> None:
    worst = float((ours - theirs).abs().max() / theirs.abs().max().clamp_min(1e-12))
    if not worst <= allowed:
        raise Disagreement(f"{what}: ours and the other differ by {worst:.2g}.")
