"""Which attention is edited, and the forward passes that start from there.

`pooled` is the row of the position that the head reads in the last layer: all other rows of that
layer are computed for nobody, so an edit costs one weighted sum and the rest of the layer for one
position. `layer:K` and `all` edit every row of one layer or of all, and run the model from the
first edited layer on, as does `pooled` where the head reads the mean of all rows; `heads:3.1,5.0`
does so for some heads, each by its layer and its number there, both from 0. Edits of one
layer are one product of all its rows with its values: what makes queries, keys and values there is
not run again.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn

from heedful.errors import InputError
from heedful.models.edits import Edit, Permute, Replace, Scale
from heedful.models.huggingface.attending import attending, handling
from heedful.models.huggingface.budgets import pass_tokens
from heedful.models.huggingface.calls import Call, softmax
from heedful.models.huggingface.layout import (
    Inputs,
    Layout,
    keeping_states,
    logits_of,
    skipping,
    starting_at,
)
from heedful.models.huggingface.reweighing import Shift, reweighed
from heedful.runs.meter import passed

PASS_SCORES = 2**25
"""Attention weights of one layer in one forward pass over edited texts."""
SITES = "pooled, layer:K, all or heads:K.H,K.H"

Run = Callable[[Inputs], Any]


@dataclass(frozen=True)
class Site:
    """The calls of attention that are edited, and in which rows."""

    name: str
    calls: tuple[int, ...]
    """Numbers of the edited calls in a whole forward pass."""
    is_one_row: bool
    """Only the pooled position's row is edited."""
    first: int
    """The layer from which a pass over edited texts begins."""
    heads: tuple[tuple[int, ...], ...] = ()
    """The edited heads of each of these calls; none means all of them."""

    @property
    def last(self) -> int:
        """The last edited call: its pooled row is what a reading shows."""
        return self.calls[-1]


def site_of(name: str, layout: Layout) -> Site:
    """The site of that name in a model; layers count from 0."""
    audited = layout.audited
    if name == "pooled":
        calls, is_one_row = audited[-1:], layout.pooled != "every"
    elif name == "all":
        calls, is_one_row = audited, False
    elif name.startswith("layer:") and name[6:].isdigit() and int(name[6:]) < len(audited):
        calls, is_one_row = (audited[int(name[6:])],), False
    elif name.startswith("heads:"):
        return _of_heads(name, layout)
    else:
        raise InputError(
            f"Unknown site {name!r}; expected {SITES}, where K counts this model's "
            f"{len(audited)} layers of attention from 0 to {len(audited) - 1}."
        )
    first = layout.layer_of_call[calls[0]] if layout.is_skippable else 0
    return Site(name, tuple(calls), is_one_row, first)


def _of_heads(name: str, layout: Layout) -> Site:
    """The site of some heads, named by layer and number."""
    audited, chosen = layout.audited, dict[int, set[int]]()
    for one in name.removeprefix("heads:").split(","):
        layer, _, head = one.strip().partition(".")
        if not (layer.isdigit() and head.isdigit() and int(layer) < len(audited)):
            raise InputError(
                f"Expected heads as heads:K.H,K.H, layer and number in it from 0, of this model's "
                f"{len(audited)} layers of attention, got {name!r}."
            )
        chosen.setdefault(audited[int(layer)], set()).add(int(head))
    calls = tuple(sorted(chosen))
    first = layout.layer_of_call[calls[0]] if layout.is_skippable else 0
    return Site(name, calls, False, first, tuple(tuple(sorted(chosen[call])) for call in calls))


@dataclass(frozen=True, eq=False)
class State:
    """What a model needs to go on from a site."""

    inputs: Inputs
    unit_of_key: Int[Tensor, "batch key"]
    """-1 at special tokens and padding."""
    position: Int[Tensor, " batch"]
    """The pooled position."""
    scores: Float[Tensor, "batch head 1 key"]
    """The pooled position's scores at the last edited call, or of the edited heads of all calls; of
    the mean attention of all rows, its logarithm, where the head reads every position."""
    entering: Tensor
    """Hidden states that enter the first edited layer; of the pooled position alone in a short
    pass."""
    outputs: Mapping[int, Tensor]
    """What leaves the layers that others than the next one read."""
    value: Float[Tensor, "batch head key dim"] | None
    """What the last edited call averages; none off the attention interface."""
    beside: Mapping[int, Float[Tensor, "batch 1 head dim"]] | None
    """In a short pass: what the layer's other calls hand on at the pooled position."""
    rows: Float[Tensor, "batch head query key"] | None = None
    """In a pass over one edited layer: the scores of all its rows."""


class Passes:
    """The forward passes of one model at one site."""

    def __init__(self, model: nn.Module, run: Run, layout: Layout, site: Site) -> None:
        self.model, self.run, self.layout, self.site = model, run, layout, site
        self.before = layout.layer_of_call.index(site.first)
        """Calls of attention that a pass from the site on does not make."""
        self.is_short = (
            site.is_one_row
            and layout.is_on_interface
            and layout.is_skippable
            and not layout.behind
            and site.first == len(layout.layers) - 1
        )
        mine, *later = layout.projections[site.first :]
        is_shared = bool(set(mine) & set().union(*later))  # a model of one layer, entered often
        is_whole = len(site.calls) == 1 and not site.heads
        self.skipped = mine if is_whole and not is_shared else ()
        self.is_one_layer = bool(self.skipped) and not site.is_one_row

    def read_again(self, state: State) -> float:
        """Positions that go through all layers, or the like part of more, for one edit.

        A short pass is the last layer of one position of each text.
        """
        units = state.unit_of_key
        positions = len(units) if self.is_short else units.numel()
        return positions * (1 - self.site.first / len(self.layout.layers))

    def read(
        self, inputs: Inputs, unit_of_key: Int[Tensor, "batch key"], is_fused: bool
    ) -> tuple[State, Float[Tensor, "batch class"]]:
        """What the site saw and did, and the logits by the same arithmetic as after an edit."""
        position = self.layout.position(inputs["attention_mask"])
        mine = [n for n, layer in enumerate(self.layout.layer_of_call) if layer == self.site.first]
        kept: dict[int, Tensor] = {}
        beside: dict[int, Tensor] = {}
        of_heads: list[Tensor] = []

        def handle(call: Call) -> Tensor:
            output = call.output()
            if self.site.heads and call.number in self.site.calls:
                row = self._row(call.scores, inputs, position)
                of_heads.append(row[:, self._chosen(call.number, row)])
            if call.number == self.site.last:
                kept[0], kept[1] = self._row(call.scores, inputs, position), call.value
                if self.is_one_layer:
                    kept[2] = call.scores()
            elif self.is_short and call.number in mine:
                beside[call.number] = _at(output, position)
            return output

        def change(number: int, scores: Tensor) -> Tensor:
            if number in self.site.calls:
                kept[0] = self._row(lambda *rows: scores, inputs, position, is_whole=True)
                if self.site.heads:
                    of_heads.append(kept[0][:, self._chosen(number, kept[0])])
            return softmax(scores)

        with keeping_states(self.layout, self.site.first) as (entering, outputs):
            if self.layout.is_on_interface:
                with handling(self.model, handle, is_fused and self.is_short):
                    logits = logits_of(self.run(inputs))
            else:
                with attending(self.model, change):
                    logits = logits_of(self.run(inputs))
        if of_heads:
            kept[0] = torch.cat(of_heads, 1)
        states = entering[self.site.first]
        if self.is_short:
            states = _at(states, position)
        state = State(
            inputs, unit_of_key, position, kept[0], states, outputs, kept.get(1),
            beside if self.is_short else None, kept.get(2),
        )  # fmt: skip
        if self.is_short:
            units = max(int(unit_of_key.max()) + 1, 1)
            nothing = torch.ones(len(position), 1, units, device=position.device)
            logits = self._short(state, Scale(nothing))
            passed(self.read_again(state))
        return state, logits

    def answer(self, state: State, edit: Edit | Shift) -> Float[Tensor, "batch edit class"]:
        """Logits of every text under each edit, in passes of bounded size."""
        texts, edits = len(state.position), _count(edit)
        row = torch.arange(texts * edits, device=state.position.device)
        keys = state.unit_of_key.shape[1]
        queries = 1 if self.is_short else keys
        most = PASS_SCORES // (state.scores.shape[1] * queries * keys)
        most = max(min(most, pass_tokens(row.device) // queries), 1)
        parts = []
        passed(edits * self.read_again(state))
        if self.is_short:
            # All edits of a text stand together, so that its values are not copied.
            for start in range(0, edits, max(most // texts, 1)):
                some = _columns(edit, slice(start, start + max(most // texts, 1)))
                parts.append(self._short(state, some).view(texts, _count(some), -1))
            return torch.cat(parts, 1)
        for rows in torch.split(row, most):
            text, number = rows // edits, rows % edits
            parts.append(self._long(state, text, _rows(edit, text, number)))
        return torch.cat(parts).view(texts, edits, -1)

    def _chosen(self, call: int, scores: Tensor) -> list[int]:
        """The edited heads of a call; one that the model does not have is said."""
        chosen = list(self.site.heads[self.site.calls.index(call)])
        if chosen[-1] >= scores.shape[1]:
            raise InputError(
                f"{self.site.name!r} names head {chosen[-1]} of a layer whose {scores.shape[1]} "
                f"heads count from 0 to {scores.shape[1] - 1}."
            )
        return chosen

    def _of_chosen(
        self, call: int, scores: Tensor, edit: Edit | Shift, units: Int[Tensor, "row key"]
    ) -> Float[Tensor, "row head query key"]:
        """The attention of a call of which some heads are edited."""
        place, chosen = self.site.calls.index(call), self._chosen(call, scores)
        if isinstance(edit, Shift):
            start = sum(map(len, self.site.heads[:place]))
            edit = Shift(edit.added[:, start : start + len(chosen)])
        index = torch.tensor(chosen, device=scores.device)
        weights = softmax(scores)
        return weights.index_copy(1, index, reweighed(scores[:, chosen], edit, units).to(weights))

    def _row(
        self,
        scores: Callable[..., Tensor],
        inputs: Inputs,
        position: Tensor,
        is_whole: bool = False,
    ) -> Float[Tensor, "batch head 1 key"]:
        """The scores of the pooled row; the log of the mean attention where all rows are read."""
        if self.layout.pooled == "every":
            real = inputs["attention_mask"].bool()[:, None, :, None]
            weights = softmax(scores()) * real
            return (weights.sum(2, keepdim=True) / real.sum(2, keepdim=True)).log()
        return _at(scores(), position, 2) if is_whole else scores(position)

    def _short(self, state: State, edit: Edit | Shift) -> Float[Tensor, "batch*edit class"]:
        """The rest of the last layer and the head, for the pooled position alone."""
        texts, edits = len(state.position), _count(edit)
        beside = state.beside
        assert state.value is not None
        assert beside is not None
        scores = state.scores.repeat_interleave(edits, 0)
        units = state.unit_of_key.repeat_interleave(edits, 0)
        one_each = _rows(edit, *_grid(texts, edits, units.device))
        weights = reweighed(scores, one_each, units)[:, :, 0].to(state.value.dtype)
        weights = weights.view(texts, edits, *weights.shape[1:]).transpose(1, 2)
        context = (weights @ state.value).transpose(1, 2).flatten(0, 1)[:, None]

        def handle(call: Call) -> Tensor:
            number = call.number + self.before
            if number == self.site.last:
                return context
            return beside[number].repeat_interleave(edits, 0)

        place = state.position[:, None]
        inputs = {
            name: given.gather(1, place).repeat_interleave(edits, 0)
            for name, given in state.inputs.items()
        }
        entering = state.entering.repeat_interleave(edits, 0)
        outputs = {
            layer: hidden[:, :1].repeat_interleave(edits, 0)
            for layer, hidden in state.outputs.items()
        }
        with (
            starting_at(self.layout, self.site.first, entering, outputs),
            handling(self.model, handle, False),
        ):
            return logits_of(self.run(inputs))

    def _long(
        self, state: State, text: Int[Tensor, " row"], edit: Edit | Shift
    ) -> Float[Tensor, "row class"]:
        """The model from the first edited layer on, all positions."""
        units, position = state.unit_of_key[text], state.position[text]

        def change(number: int, scores: Tensor) -> Tensor:
            if number + self.before not in self.site.calls:
                return softmax(scores)
            if self.site.heads:
                return self._of_chosen(number + self.before, scores, edit, units)
            if not self.site.is_one_row:
                return reweighed(scores, edit, units)
            weights = softmax(scores)
            index = position.view(-1, 1, 1, 1).expand(-1, scores.shape[1], 1, scores.shape[3])
            row = reweighed(scores.gather(2, index), edit, units)
            return weights.scatter(2, index, row.to(weights))

        def handle(call: Call) -> Tensor:
            if call.number + self.before != self.site.last:
                return call.output()
            assert state.rows is not None
            assert state.value is not None
            weights = reweighed(state.rows[text], edit, units).to(state.value.dtype)
            return (weights @ state.value[text]).transpose(1, 2)

        if self.is_one_layer:
            lent = handling(self.model, handle, False)
        else:
            lent = attending(self.model, change)
        axis = self.layout.batch_axis
        entering = state.entering.index_select(axis, text)
        outputs = {
            layer: hidden.index_select(axis, text) for layer, hidden in state.outputs.items()
        }
        inputs = {name: given[text] for name, given in state.inputs.items()}
        with (
            starting_at(self.layout, self.site.first, entering, outputs),
            skipping(self.skipped if self.is_one_layer else ()),
            lent,
        ):
            return logits_of(self.run(inputs))


def _at(values: Tensor, position: Int[Tensor, " batch"], axis: int = 1) -> Tensor:
    """One position of each text, the axis kept."""
    shape = [1] * values.dim()
    shape[0] = len(position)
    wide = list(values.shape)
    wide[axis] = 1
    return values.gather(axis, position.view(shape).expand(wide))


def _tensor(edit: Edit | Shift) -> Tensor:
    match edit:
        case Scale(weights):
            return weights
        case Replace(attention):
            return attention
        case Permute(order):
            return order
        case Shift(added):
            return added


def _count(edit: Edit | Shift) -> int:
    """Edits per text; a shift is one edit, its axis being heads."""
    return 1 if isinstance(edit, Shift) else _tensor(edit).shape[1]


def _rows(edit: Edit | Shift, text: Tensor, number: Tensor) -> Edit | Shift:
    """One edit per row, [row 1 unit]; a shift keeps its heads."""
    if isinstance(edit, Shift):
        return Shift(edit.added[text])
    return type(edit)(_tensor(edit)[text, number][:, None])


def _columns(edit: Edit | Shift, some: slice) -> Edit | Shift:
    """Some of the edits of every text."""
    return edit if isinstance(edit, Shift) else type(edit)(_tensor(edit)[:, some])


def _grid(texts: int, edits: int, device: torch.device) -> Iterator[Tensor]:
    """The text and the edit of each row, all edits of a text together."""
    row = torch.arange(texts * edits, device=device)
    yield row // edits
    yield row % edits
