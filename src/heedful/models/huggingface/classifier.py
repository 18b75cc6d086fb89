"""A Transformer classifier that can be read and asked: words, their attention, other decisions."""

from __future__ import annotations

import inspect
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn

from heedful.corpora.batches import Batch, collate
from heedful.corpora.documents import Corpus, Document
from heedful.corpora.encoded import EncodedCorpus
from heedful.corpora.texts import unlabelled
from heedful.corpora.vocabulary import SPECIALS, Vocabulary
from heedful.errors import InputError, UnsupportedModel, unknown
from heedful.models.classifier import sentences
from heedful.models.edits import Edit
from heedful.models.followed import Followed, Mixed
from heedful.models.huggingface.attending import attending, handling, pretrained_parts
from heedful.models.huggingface.budgets import batch_tokens, gradient_tokens, pass_tokens
from heedful.models.huggingface.calls import Call, softmax
from heedful.models.huggingface.checking import checked_layout
from heedful.models.huggingface.following import follow, layer_of, value_products
from heedful.models.huggingface.layout import Inputs, logits_of
from heedful.models.huggingface.nodes import Nodes, nodes_of
from heedful.models.huggingface.pieces import (
    CUT,
    LONG,
    Framed,
    Tokeniser,
    among,
    encode_pieces,
    framed,
)
from heedful.models.huggingface.reweighing import Shift
from heedful.models.huggingface.sites import Passes, State, site_of
from heedful.models.huggingface.spans import unit_texts
from heedful.models.huggingface.units_of_keys import on_first, per_unit, unit_of_key
from heedful.models.huggingface.zeroing import mixing
from heedful.models.reading import Reading
from heedful.models.tracing import Explicit, Layer, LayerStack, evenly
from heedful.runs.meter import passed

NOTHING = 1e-300
"""Added before a logarithm is taken of attention that may be 0."""


class Decided(NamedTuple):
    """One forward pass as training and input gradients see it."""

    logits: Float[Tensor, "batch class"]


class Ends(NamedTuple):
    """One forward pass with both ends of the stack of layers, at the pieces of the texts."""

    logits: Float[Tensor, "batch class"]
    first: Float[Tensor, "batch token dim"]
    """What enters the first layer."""
    last: Float[Tensor, "batch token dim"]
    """What leaves the last one."""


class PretrainedClassifier(nn.Module):
    """A module that decides from attention over pieces of words, read word by word.

    `model` is called with what its `forward` takes of `input_ids`, `attention_mask` and
    `token_type_ids` (where its tokeniser has them) and returns logits, or an object with them: a
    model of `transformers`, or any module.
    Where it attends is found by watching it; see `attending`. `site` says which attention is read
    and edited: `pooled`, `layer:K` (from 0) or `all`.
    """

    def __init__(
        self,
        model: nn.Module,
        subwords: Tokeniser,
        classes: Sequence[str],
        *,
        site: str = "pooled",
        max_pieces: int = 512,
        long: str = "beginning",
        recipe: str = "transformer",
        layers: int | None = None,
    ) -> None:
        super().__init__()
        self.training = model.training
        if len(classes) < 2:
            raise InputError(f"A classifier needs at least two classes, got {list(classes)}.")
        if long not in LONG:
            raise unknown("policy for long texts", long, LONG)
        self.model, self.subwords, self.classes = model, subwords, tuple(classes)
        self.max_pieces, self.long, self.recipe = max_pieces, long, recipe
        self.asking: Any = None
        """How a language model is asked; none for a classifier."""
        self.said: tuple[str, ...] = ()
        """What a user should know of how the model was opened."""
        self.tokeniser = "words"
        """The rule that cuts words, which pieces are grouped into."""
        probe = [self.inputs_of(framed(self.like(texts), subwords)) for texts in PROBES]
        self.layout = checked_layout(model, self.run, probe, layers)
        self.site = site_of(site, self.layout)

    @property
    def passes(self) -> Passes:
        """The forward passes at the site."""
        return Passes(self.model, self.run, self.layout, self.site)

    @property
    def device(self) -> torch.device:
        """Where the weights are."""
        return next(self.model.parameters()).device

    def batch(self, texts: Sequence[str | tuple[str, str]]) -> Batch:
        """The texts (or pairs of texts) as pieces, padded, ready to be read."""
        documents = unlabelled(texts)
        encoded, _ = encode_pieces(documents, self.subwords, self._room(documents), self.long)
        return collate(encoded, range(len(documents))).to(self.device)

    def like(self, texts: Sequence[str]) -> Batch:
        """Made-up texts ready to be read; beside themselves, where the model needs two."""
        return self.batch([(one, one) if self.subwords.needs_pair else one for one in texts])

    def encode(
        self, corpus: Corpus, only: Mapping[str, Sequence[int]] | None = None
    ) -> EncodedCorpus:
        """The corpus as pieces of this model's tokenizer, with what was cut in its notes.

        With `only`, just these documents of each split (in order) have pieces: cutting takes time.
        """
        splits, notes = {}, dict(corpus.notes)
        for split, every in corpus.splits.items():
            rows = range(len(every)) if only is None else only.get(split, ())
            documents = [every[row] for row in rows]
            room = self._room(documents)
            encoded, counted = encode_pieces(documents, self.subwords, room, self.long)
            splits[split] = among(every, rows, encoded)
            for name, count in counted.items():
                kept = f" ({self.long} kept)" if name == CUT else ""
                notes[f"{split}: {name}{kept}"] = count
        return EncodedCorpus(
            corpus.name,
            corpus.classes,
            Vocabulary(SPECIALS),  # the ids are the tokenizer's
            splits,
            corpus.fingerprint,
            notes,
            tokeniser=corpus.tokeniser,
        )

    def inputs_of(self, frame: Framed) -> Inputs:
        """What the model is called with: what its `forward` takes of what there is."""
        inputs = {"input_ids": frame.ids, "attention_mask": frame.mask}
        if self.subwords.has_types and self._takes("token_type_ids"):
            inputs["token_type_ids"] = frame.types
        return inputs

    def _takes(self, name: str) -> bool:
        """Whether the model's own forward pass has an argument of that name, or any."""
        taken = inspect.signature(self.model.forward).parameters
        return name in taken or any(one.kind is one.VAR_KEYWORD for one in taken.values())

    def run(self, inputs: Inputs, **options: bool) -> Any:
        """The model's own forward pass; nothing is cached for a next token."""
        if "use_cache" in inspect.signature(self.model.forward).parameters:
            options["use_cache"] = False
        # What it goes without is still needed to tell texts from padding.
        given = {name: value for name, value in inputs.items() if self._takes(name)}
        return self.model(**given, **options)

    def forward(self, batch: Batch) -> Decided:
        """The decision, untouched."""
        return Decided(logits_of(self.run(self.inputs_of(framed(batch, self.subwords)))))

    def ends(self, batch: Batch) -> Ends:
        """The decision with what enters the first layer and what leaves the last."""
        frame = framed(batch, self.subwords)
        passed = self.run(self.inputs_of(frame), output_hidden_states=True)
        first, *_, last = map(frame.at_pieces, passed.hidden_states)
        return Ends(logits_of(passed), first, last)

    def embed(self, batch: Batch) -> Float[Tensor, "batch token dim"]:
        """The vectors of the pieces, before positions are added."""
        frame = framed(batch, self.subwords)
        return frame.at_pieces(self.layout.table(frame.ids))

    def from_inputs(self, inputs: Float[Tensor, "batch token dim"], batch: Batch) -> Decided:
        """The decision from vectors of the pieces; special tokens keep their own."""
        frame = framed(batch, self.subwords)
        # Padding is written into a column more than is read.
        place = frame.place.masked_fill(~batch.mask, frame.ids.shape[1])[..., None]
        is_put = False

        def put(module: nn.Module, args: Any, vectors: Tensor) -> Tensor:
            nonlocal is_put
            if is_put:  # a decoder looks up its own input with the same table
                return vectors
            is_put = True
            if self.layout.batch_axis:
                vectors = vectors.transpose(0, 1)
            longer = torch.cat([vectors, vectors[:, :1]], 1)
            vectors = longer.scatter(1, place.expand(inputs.shape), inputs.to(vectors.dtype))
            vectors = vectors[:, :-1]
            return vectors.transpose(0, 1) if self.layout.batch_axis else vectors

        handle = self.layout.table.register_forward_hook(put)
        try:
            return Decided(logits_of(self.run(self.inputs_of(frame))))
        finally:
            handle.remove()

    def read(self, batch: Batch) -> Reading:
        """Reads a batch and keeps what the audited attention saw and did.

        `attention` is the pooled position's row of the last edited layer, over words: the mean over
        heads, summed over pieces, and divided by what all words get together, so that it sums to
        one; special tokens have the rest. `heads` is what each head gives to each word, as it is.
        """
        frame = framed(batch, self.subwords)
        layout = sentences(batch)
        units = unit_of_key(batch, frame, layout.unit_of_token)
        state, logits = self.passes.read(self.inputs_of(frame), units, self.is_fused)
        weights = softmax(state.scores.double())[:, :, 0]
        heads = per_unit(weights, units, layout.mask.shape[1])
        mean = heads.mean(1)
        attention = mean / mean.sum(-1, keepdim=True).clamp_min(NOTHING)
        values = frame.at_pieces(self._values(state))
        within = frame.at_pieces(weights.mean(1)) * batch.mask
        within = within / mean.gather(1, layout.unit_of_token).clamp_min(NOTHING)
        averaged = values.new_zeros(*layout.mask.shape, values.shape[-1]).scatter_add(
            1,
            layout.unit_of_token[..., None].expand(values.shape),
            values * within[..., None].to(values),
        )
        return Reading(
            batch=batch,
            texts=unit_texts(batch, layout.unit_of_token),
            mask=layout.mask,
            values=averaged,
            scores=(attention + NOTHING).log().masked_fill(~layout.mask, -torch.inf),
            attention=attention,
            logits=logits.double(),
            inputs=self.embed(batch),
            unit_of_token=layout.unit_of_token,
            heads=heads,
            first=on_first(weights.mean(1), units, frame),
            state=state,
        )

    @property
    def specials(self) -> int:
        """Positions around every text: special tokens, a prompt, labels."""
        return self.subwords.single.length

    def answer(self, reading: Reading, edit: Edit) -> Float[Tensor, "batch edit class"]:
        """Logits under the edited attention, from the first edited layer on."""
        return self.passes.answer(reading.state, edit).double()

    def slopes(self, reading: Reading) -> Float[Tensor, "batch head unit"]:
        """∂p_y / ∂α: how the target class's probability moves with each head's weight on a word.

        At the attention as it is, the weight a free variable; the pieces of a word share it in
        their proportions. At a site of several rows or layers: with all of them at once.
        """
        with torch.enable_grad():
            assert reading.heads is not None
            added = torch.zeros_like(reading.heads).requires_grad_()
            logits = self.passes.answer(reading.state, Shift(added))[:, 0].double()
            top = logits.softmax(-1).gather(1, reading.target[:, None]).sum()
            (slope,) = torch.autograd.grad(top, added)
        passed(0, backward=self.passes.read_again(reading.state))
        return slope.masked_fill(~reading.mask[:, None], 0)

    def layers_of(self, batch: Batch) -> LayerStack:
        """Queries and keys of every layer over the keys of a batch, special tokens included.

        The model stays on its fused kernels. `Framed.at_pieces` and `Reading.per_unit` bring what
        is traced from keys to words.
        """
        if self.layout.ends:
            raise UnsupportedModel(
                "Tracing follows one stack of layers; an encoder with a decoder (BART) has two "
                "that attend to each other. Audit its cross-attention instead."
            )
        frame = framed(batch, self.subwords)
        layers: list[Layer] = []

        def handle(call: Call) -> Tensor:
            layers.append(self.layer_of(call))
            return call.output()

        def change(number: int, scores: Tensor) -> Tensor:
            weights = softmax(scores)
            layers.append(Explicit(weights))
            return weights

        if self.layout.is_on_interface:
            lent = handling(self.model, handle, self.is_fused)
        else:
            lent = attending(self.model, change)
        with lent:
            self.run(self.inputs_of(frame))
        return self.stack_of(layers, frame)

    def followed(self, batch: Batch) -> Followed:
        """The same with the values of every layer."""
        return follow(self, batch)

    def value_products(
        self, batch: Batch, target: Int[Tensor, "batch"]
    ) -> Float[Tensor, "batch layer*head token"]:
        """⟨v_k, ∂p_y/∂v_k⟩ of every layer and head: attention times its gradient."""
        return value_products(self, batch, target)

    def mixed(self, batch: Batch) -> Mixed:
        """How the words of each text, then its special tokens, take part in one another."""
        frame = framed(batch, self.subwords)
        units = unit_of_key(batch, frame, sentences(batch).unit_of_token)
        is_special = (units < 0) & frame.mask.bool()
        group = units.amax(-1, keepdim=True) + is_special.cumsum(-1)
        group = torch.where(is_special, group, units)
        pooling = self.stack_of((), frame).pooling.double()
        summed = pooling.new_zeros(len(batch), int(group.max()) + 2)
        summed = summed.scatter_add(1, group + 1, pooling)[:, 1:]
        return Mixed(mixing(self, frame, group), summed)

    def layer_of(self, call: Call) -> Layer:
        """A call of attention as tracing sees it."""
        return layer_of(call)

    def stack_of(self, layers: Sequence[Layer], frame: Framed) -> LayerStack:
        """The layers with where the decision is read and where the pieces stand."""
        mask = frame.mask.bool()
        if self.layout.pooled == "every":
            pooling = evenly(mask)
        else:
            place = self.layout.position(frame.mask)[:, None]
            pooling = torch.zeros(mask.shape, device=mask.device).scatter_(1, place, 1.0)
        is_double = bool(layers) and layers[0].dtype == torch.float64
        dtype = torch.float64 if is_double else torch.float32
        return LayerStack(tuple(layers), pooling.to(dtype), mask, frame.place)

    @property
    def batch_tokens(self) -> int:
        """Tokens of a corpus that are best read together."""
        return batch_tokens(self.model, self.layout, self.max_pieces, self.device)

    @property
    def gradient_tokens(self) -> int:
        """Tokens that gradients on inputs are taken of at once."""
        return gradient_tokens(self.model, self.layout, self.device)

    @property
    def pass_tokens(self) -> int:
        """Tokens of edited texts that are read again at once."""
        return pass_tokens(self.device)

    def nodes(self, reading: Reading) -> Nodes:
        """The words and special tokens of every text as what its layers pass attention among."""
        return nodes_of(reading, framed(reading.batch, self.subwords), self.subwords)

    @property
    def is_traceable(self) -> bool:
        """Whether the layers are one stack, that attention can be followed through."""
        return not self.layout.ends

    @property
    def shows_values(self) -> bool:
        """Whether what the keys of every layer hand on can be seen."""
        layout = self.layout
        return self.is_traceable and layout.is_on_interface and layout.is_skippable

    @property
    def is_fused(self) -> bool:
        """Whether the model runs on fused kernels."""
        parts = pretrained_parts(self.model)
        return bool(parts) and parts[0].config._attn_implementation != "eager"

    def _room(self, documents: Sequence[Document]) -> int:
        """Pieces of a text that fit beside the special tokens."""
        is_pair = any(document.second is not None for document in documents)
        frame = self.subwords.pair if is_pair else self.subwords.single
        return self.max_pieces - (frame.length if frame is not None else 0)

    def _values(self, state: State) -> Float[Tensor, "batch key dim"]:
        """What the audited attention averages: values of all heads side by side."""
        if state.value is not None:
            return state.value.transpose(1, 2).flatten(2)
        return state.entering.transpose(0, 1) if self.layout.batch_axis else state.entering


PROBES: tuple[tuple[str, ...], ...] = (
    ("one two three four five six seven eight", "one two", "one two three"),
    ("one two",),
)
"""Texts that a model is checked on: three beside each other, and one of them alone."""
