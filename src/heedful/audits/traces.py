"""Where a trained Transformer's attention ends up: tables of tokens, of layers and of texts.

Traces are computed in float64 from a copy of the model, so that what is lost on the way is rounding
and nothing else.
"""

from __future__ import annotations

from collections.abc import Mapping
from copy import deepcopy
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import torch
from jaxtyping import Bool, Float
from torch import Tensor

from heedful.audits.forgetting import cosine, forgetting, streams
from heedful.corpora import Encoded, batches
from heedful.corpora.narrative_batches import EncodedNarratives, narrative_batches, word_texts
from heedful.corpora.narratives import WINDOW
from heedful.importance.traced import squared_slopes
from heedful.models import NarrativeTransformer, TransformerClassifier
from heedful.models.tracing import Explicit, Layer, LayerStack, Trace, evenly, lat, rollout, trace
from heedful.models.verbs import evaluating
from heedful.statistics.agreement import ccc
from heedful.training.kinds import follow, narrative_ratings

if TYPE_CHECKING:
    import pandas as pd

BATCH_TOKENS = 16_384
"""Documents × longest document of a traced batch: the entropies need its matrices."""
LOWEST = {"lowest_1": 1, "lowest_2": 2, "lowest_3": 3}
"""Traces through so many of the lowest layers alone, begun at all positions alike."""
IMPORTANCES = (
    "lat", "gradient", "gradient_predicted", "pooling", "averaged", "rollout", "top_layer",
    "even_start", *LOWEST,
)  # fmt: skip
"""Columns of the token table beside those of the heads."""
Columns = dict[str, np.ndarray[Any, Any]]


class Traced(NamedTuple):
    """A batch followed all the way down."""

    stack: LayerStack
    trace: Trace
    others: Mapping[str, Float[Tensor, "batch token"]]
    """Other ways down, summed over heads: `averaged` has heads averaged in every layer, `rollout`
    also keeps half, `top_layer` ends after one layer, `even_start` begins at all positions alike,
    as do those of `LOWEST`.
    """


def token_tables(
    model: TransformerClassifier, encoded: Encoded, device: torch.device | str = "cpu"
) -> dict[str, pd.DataFrame]:
    """Tables `tokens`, `cells` and `documents` of a split, rows in the order of its documents.

    `tokens`: instance, position, word, length, label_of_word, lat, gradient, gradient_predicted,
    pooling and the other ways down, head_0 …; `cells`, one row per layer (1 is the lowest), head
    and document: mean entropy of the layer's rows over log N, peak share of A^l and of A^(l+1), and
    how much of the unit is lost; `documents`: length, label, prediction and the columns of
    `heedful.audits.forgetting`.
    """
    import pandas as pd

    exact = deepcopy(model).double().to(device).eval()
    order = {name: row for row, name in enumerate(encoded.names)}
    tokens, cells, documents = [], [], []
    for batch in batches(encoded, 512, max_tokens=BATCH_TOKENS):
        here = batch.to(device)
        with evaluating(exact), streams(exact.encoder.layers) as heights:
            logits, encoded_texts, pooled = exact(here)
        weights = pooled.scores.softmax(-1)
        traced = follow_down(LayerStack(encoded_texts.layers, weights, here.mask))
        decided = logits.argmax(-1)
        stack = traced.stack
        rows = np.array([order[name] for name in batch.names])
        columns = token_columns(traced, squared_slopes(exact, here))
        predicted = squared_slopes(exact, here, decided)[here.mask].cpu().numpy()
        columns["gradient_predicted"] = predicted
        tokens.append(columns | {"row": np.repeat(rows, batch.lengths.numpy())})
        cells.append(cell_columns(traced) | {"row": _per_cell(rows, stack)})
        documents.append(
            {"row": rows, "label": batch.labels.numpy(), "prediction": decided.cpu().numpy()}
            | {name: x.float().cpu().numpy() for name, x in forgetting(stack, traced.trace).items()}
            | {
                f"cosine {height}": cosine(states, here.mask).float().cpu().numpy()
                for height, states in enumerate([*heights, encoded_texts.states])
            }
        )
    table = _sorted(tokens)
    names = np.array(encoded.names, dtype=object)
    words = np.array(model.vocabulary.words, dtype=object)
    labels = np.full(len(encoded.ids), -1) if encoded.word_labels is None else encoded.word_labels
    shown: dict[str, Any] = {
        "instance": names[table.pop("row")],
        "position": table.pop("position").astype(np.int32),
        "word": _spoken(encoded, words),
        "length": table.pop("length").astype(np.int32),
        "label_of_word": labels.astype(np.int8),
    }
    kept = _sorted(documents)
    about = {"instance": names[kept["row"]], "length": encoded.lengths[kept["row"]]}
    about |= {name: column for name, column in kept.items() if name != "row"}
    return {
        "tokens": pd.DataFrame(shown | _ordered(table)),
        "cells": _cells(cells, names),
        "documents": pd.DataFrame(about),
    }


def window_tables(
    model: NarrativeTransformer, encoded: EncodedNarratives, device: torch.device | str = "cpu"
) -> dict[str, pd.DataFrame]:
    """The same tables of narratives: an instance is a window, `narrative/number` from 0.

    The gradient of a narrative's summed ratings reaches a window from all later ones through the
    LSTM. There is no predicted class: `gradient_predicted` repeats `gradient`.
    """
    import pandas as pd

    if model.config.reads != "windows":
        raise ValueError("tables are of models that read windows")
    exact = deepcopy(model).double().to(device).eval()
    tokens, cells = [], []
    done = 0
    for batch in narrative_batches(encoded, 32):
        here = batch.to(device)
        with evaluating(exact):
            stack = exact.layers_of(here)
        traced = follow_down(stack)
        rows = np.arange(done, done := done + int(batch.windows.sum()))
        columns = token_columns(traced, narrative_slopes(exact, here))
        columns["gradient_predicted"] = columns["gradient"]
        tokens.append(columns | {"row": np.repeat(rows, stack.mask.sum(-1).cpu().numpy())})
        cells.append(cell_columns(traced) | {"row": _per_cell(rows, stack)})
    table = _sorted(tokens)
    named = zip(encoded.names, encoded.windows.tolist(), strict=True)
    names = np.array([f"{name}/{w}" for name, n in named for w in range(n)], dtype=object)
    shown: dict[str, Any] = {
        "instance": names[table.pop("row")],
        "position": table.pop("position").astype(np.int32),
        "word": np.array(word_texts(encoded, model.vocabulary), dtype=object),
        "length": table.pop("length").astype(np.int32),
        "label_of_word": np.full(len(encoded.ids), -1, dtype=np.int8),
    }
    return {"tokens": pd.DataFrame(shown | _ordered(table)), "cells": _cells(cells, names)}


def followed_tables(
    model: NarrativeTransformer, encoded: EncodedNarratives, device: torch.device | str = "cpu"
) -> dict[str, pd.DataFrame]:
    """Tables `windows` (narrative, window, rating, guess, seconds) and `narratives` (ccc)."""
    import pandas as pd

    guesses = follow(model.to(device), encoded, device)
    ratings = narrative_ratings(encoded)
    windows = pd.DataFrame(
        {
            "narrative": np.repeat(np.array(encoded.names, dtype=object), encoded.windows),
            "window": np.concatenate([np.arange(n) for n in encoded.windows]),
            "rating": np.concatenate(ratings),
            "guess": np.concatenate(guesses),
        }
    )
    windows["seconds"] = WINDOW * (windows["window"] + 1)
    agreement = [ccc(a, b) for a, b in zip(guesses, ratings, strict=True)]
    narratives = pd.DataFrame({"narrative": encoded.names, "ccc": agreement})
    return {"windows": windows, "narratives": narratives}


def follow_down(stack: LayerStack) -> Traced:
    """LAT of one batch, and other ways down."""
    # Entropies need the matrices anyway: made once, all traces go by them.
    stack = stack._replace(layers=tuple(Explicit(layer.matrix()) for layer in stack.layers))
    start = evenly(stack.mask).to(stack.pooling)
    others = {
        "averaged": trace(stack.layers, stack.pooling, heads="averaged"),
        "rollout": rollout(stack),
        "top_layer": trace(stack.layers[-1:], stack.pooling),
        "even_start": trace(stack.layers, start),
    }
    others |= {name: trace(stack.layers[:few], start) for name, few in LOWEST.items()}
    return Traced(stack, lat(stack), {name: one.total for name, one in others.items()})


def token_columns(traced: Traced, gradient: Float[Tensor, "batch token"]) -> Columns:
    """One entry per token that exists, document after document."""
    mask = traced.stack.mask
    position = torch.arange(mask.shape[1], device=mask.device).expand(mask.shape)
    length = mask.sum(-1, keepdim=True).expand(mask.shape)
    columns = {
        "position": position,
        "length": length,
        "lat": traced.trace.total,
        "gradient": gradient,
        "pooling": traced.stack.pooling,
        **traced.others,
    }
    columns |= {f"head_{h}": share for h, share in enumerate(traced.trace.input.unbind(1))}
    return {name: values[mask].cpu().numpy() for name, values in columns.items()}


def cell_columns(traced: Traced) -> Columns:
    """One entry per layer, head and document, in this order."""
    shares, mask = traced.trace.shares, traced.stack.mask
    layers, batch, heads = len(shares) - 1, *shares.shape[1:3]
    peaks = shares.amax(-1)
    lost = (shares.sum(-1) - 1).abs()
    spread = torch.stack([row_entropy(layer, mask) for layer in traced.stack.layers])

    def flat(x: Float[Tensor, "layer batch head"]) -> np.ndarray[Any, Any]:
        return x.transpose(1, 2).flatten().cpu().numpy()

    return {
        "layer": np.repeat(np.arange(1, layers + 1), heads * batch),
        "head": np.tile(np.repeat(np.arange(heads), batch), layers),
        "entropy": flat(spread),
        "peak": flat(peaks[:-1]),
        "peak_above": flat(peaks[1:]),
        "lost": flat(lost[:-1]),
    }


def row_entropy(layer: Layer, mask: Bool[Tensor, "batch token"]) -> Float[Tensor, "batch head"]:
    """Mean entropy of a layer's rows over real queries, divided by log N; nan where N = 1."""
    rows = torch.special.entr(layer.matrix()).sum(-1)
    count = mask.sum(-1)
    mean = (rows * mask[:, None]).sum(-1) / count[:, None]
    return torch.where(count > 1, mean.T / count.to(mean).log(), torch.nan).T


def narrative_slopes(model: NarrativeTransformer, batch: Any) -> Float[Tensor, "window token"]:
    """Σ_d (∂o / ∂x_d)² of every word, with o the sum of all ratings."""
    layout = model.layout(batch)
    # cuDNN has no backward pass for recurrent cells in evaluation mode.
    with evaluating(model), torch.enable_grad(), torch.backends.cudnn.flags(enabled=False):
        inputs = model.vectors(layout.ids).detach().requires_grad_()
        summed = model.from_inputs(inputs, batch, layout).ratings.sum()
        slope: Tensor = torch.autograd.grad(summed, inputs)[0]
    return slope.square().sum(-1).masked_fill(~layout.mask, 0)


def _per_cell(rows: np.ndarray[Any, Any], stack: LayerStack) -> np.ndarray[Any, Any]:
    return np.tile(rows, len(stack.layers) * stack.layers[0].heads)


def _sorted(parts: list[Columns]) -> Columns:
    """All batches as one, rows in the order of the split."""
    joined = {name: np.concatenate([part[name] for part in parts]) for name in parts[0]}
    order = np.argsort(joined["row"], kind="stable")
    return {name: values[order] for name, values in joined.items()}


def _ordered(table: Columns) -> Columns:
    """Importances in the promised order, in 32 bits: what is lost is in `cells`."""
    names = (*IMPORTANCES, *(name for name in table if name.startswith("head_")))
    return {name: table[name].astype(np.float32) for name in names}


def _cells(parts: list[Columns], names: np.ndarray[Any, Any]) -> pd.DataFrame:
    import pandas as pd

    table = _sorted(parts)
    found: dict[str, Any] = {"instance": names[table["row"]]}
    found |= {name: table[name].astype(np.int8) for name in ("layer", "head")}
    found |= {name: table[name].astype(np.float32) for name in ("entropy", "peak", "peak_above")}
    return pd.DataFrame(found | {"lost": table["lost"]})


def _spoken(encoded: Encoded, words: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """Every token of the split as text: as written where the documents are at hand."""
    if encoded.documents is None:
        return np.array([word.lower() for word in words[encoded.ids]], dtype=object)
    spoken = [word.lower() for document in encoded.documents for word in document.tokens or ("",)]
    return np.array(spoken, dtype=object)


def accuracy(documents: pd.DataFrame) -> float:
    """Share of labelled documents that are decided right."""
    known = documents[documents["label"] >= 0]
    return float((known["label"] == known["prediction"]).mean())
