"""Texts as the pieces of a tokenizer, grouped into the words of the original text.

The units of a Transformer are words. A word of the text (as `corpora.tokens` cuts it) owns every
piece that touches its characters; words that share a piece are one unit, so that no piece is ever
cut in two. Special tokens belong to no word: a batch holds the pieces of the text alone, and the
special tokens are put around them when the model reads.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any, NamedTuple, Protocol

import numpy as np
import torch
from jaxtyping import Bool, Int
from torch import Tensor

from heedful.corpora.batches import Batch
from heedful.corpora.documents import Document
from heedful.corpora.encoded import Encoded
from heedful.errors import InputError

RULE = "a word owns every piece that touches it; words that share a piece are one unit"
FIRST, SECOND = 1 << 20, 1 << 21
"""Where the numbers of words begin in the two texts of a pair; those of a single text at 0."""
CUT, EMPTY = "cut to what the model reads", "empty, read as one unknown word"
STRANGE = "with words that the tokenizer does not know"
"""What is counted of the texts of a corpus."""
LONG = ("beginning", "end", "both", "refuse")
"""What is done with a text that is longer than a model reads: which part of it is kept."""


@contextmanager
def without_panic() -> Iterator[None]:
    """Turns a panic of the tokenizers library into one sentence; it is no `Exception` in Python."""
    try:
        yield
    except BaseException as error:
        if type(error).__name__ != "PanicException":
            raise
        raise InputError(
            f"The tokenizers library broke down over this tokenizer's files ({error}); they are "
            "damaged: save the tokenizer that the model was trained with."
        ) from error


class Pieces(NamedTuple):
    """The pieces of one text."""

    ids: list[int]
    spans: Sequence[tuple[int, int] | None]
    """The characters of the text that each piece stands for; none where it is no word."""


class Frame(NamedTuple):
    """The special tokens around the pieces of a text or of a pair, with their type ids."""

    before: tuple[int, ...]
    between: tuple[int, ...]
    after: tuple[int, ...]
    types: tuple[tuple[int, ...], int, tuple[int, ...], int, tuple[int, ...]]
    """Type ids of: before, the first text, between, the second text, after."""

    @property
    def length(self) -> int:
        """Number of special tokens."""
        return len(self.before) + len(self.between) + len(self.after)


class Tokeniser(Protocol):
    """How a model's texts become ids; `FastTokeniser` is that of a `transformers` tokenizer."""

    @property
    def single(self) -> Frame:
        """The special tokens around one text."""

    @property
    def pair(self) -> Frame | None:
        """Those around two texts; none where the model has no way to read two."""

    @property
    def padding(self) -> int:
        """The id of padding."""

    @property
    def unknown(self) -> int:
        """The id that stands for a word that is not there."""

    @property
    def has_unknown(self) -> bool:
        """Whether that id stands for nothing else."""

    @property
    def is_left_padded(self) -> bool:
        """Whether padding stands before the text."""

    @property
    def has_types(self) -> bool:
        """Whether the model is told which of two texts a piece belongs to."""

    @property
    def needs_pair(self) -> bool:
        """Whether every document must have a second text."""

    def pieces(self, texts: Sequence[str], is_second: bool = False) -> list[Pieces]:
        """The pieces of each text, the first or second of its document, without special tokens."""

    def name(self, piece: int) -> str:
        """A piece in letters, for people."""


class FastTokeniser:
    """A `transformers` tokenizer, as far as a reader of words needs it."""

    needs_pair = False

    @without_panic()
    def __init__(self, tokenizer: Any, padding: int | None = None) -> None:
        if not getattr(tokenizer, "is_fast", False):
            raise InputError(
                f"{type(tokenizer).__name__} does not say which characters its pieces stand for; "
                "load the fast tokenizer of this model (tokenizer.json)."
            )
        self.tokenizer = tokenizer
        padding = tokenizer.pad_token_id if padding is None else padding
        if padding is None:
            raise InputError(
                "The model has no padding token, so texts cannot stand side by side; set "
                "pad_token_id in its config.json (GPT-2 and Llama often use eos_token_id)."
            )
        self.padding = int(padding)
        known = (tokenizer.unk_token_id, tokenizer.mask_token_id, tokenizer.eos_token_id)
        # Not the padding: a causal model looks for the last token that is none, and decides there.
        known += tuple(tokenizer(" .", add_special_tokens=False)["input_ids"][:1])
        usable = (one for one in known if one not in (None, self.padding))
        self.unknown = int(next(usable, self.padding))
        self.has_unknown = self.unknown in (tokenizer.unk_token_id, tokenizer.mask_token_id)
        self.is_left_padded = tokenizer.padding_side == "left"
        self.has_types = "token_type_ids" in tokenizer.model_input_names
        self.single = self._frame("a", None)
        try:
            self.pair: Frame | None = self._frame("a", "a")
        except (ValueError, NotImplementedError):
            self.pair = None

    @without_panic()
    def pieces(self, texts: Sequence[str], is_second: bool = False) -> list[Pieces]:
        """The pieces of each text, without special tokens."""
        if not texts:
            return []
        found = self.tokenizer(
            list(texts),
            add_special_tokens=False,
            return_offsets_mapping=True,
            return_attention_mask=False,
            return_token_type_ids=False,
            verbose=False,
        )
        return [
            Pieces(*row) for row in zip(found["input_ids"], found["offset_mapping"], strict=True)
        ]

    @without_panic()
    def name(self, piece: int) -> str:
        """A piece in letters, for people."""
        return str(self.tokenizer.convert_ids_to_tokens(piece))

    def _frame(self, first: str, second: str | None) -> Frame:
        """What the tokenizer puts around texts, seen on a pair of one-letter texts."""
        found = self.tokenizer(first, second, return_token_type_ids=True)
        owner = found.sequence_ids(0)
        ids, types = found["input_ids"], found["token_type_ids"]
        places = [place for place, text in enumerate(owner) if text is not None]
        start, stop = places[0], places[-1] + 1
        seconds = [place for place in places if owner[place] == 1]
        inner = range(places[owner.count(0) - 1] + 1, seconds[0]) if seconds else range(0)

        def part(some: range) -> tuple[tuple[int, ...], tuple[int, ...]]:
            return tuple(ids[i] for i in some), tuple(types[i] for i in some)

        before, between, after = part(range(start)), part(inner), part(range(stop, len(ids)))
        of_second = types[seconds[0]] if seconds else 0
        kinds = (before[1], types[start], between[1], of_second, after[1])
        return Frame(before[0], between[0], after[0], kinds)


@dataclass(frozen=True, eq=False)
class Framed:
    """A batch as the model reads it, special tokens and padding included."""

    ids: Int[Tensor, "batch key"]
    mask: Int[Tensor, "batch key"]
    types: Int[Tensor, "batch key"]
    place: Int[Tensor, "batch token"]
    """Where each piece of the batch stands among the keys."""

    def at_pieces(self, values: Tensor) -> Tensor:
        """What belongs to the pieces, of something [batch key …]; padding repeats the first key."""
        index = self.place.view(*self.place.shape, *[1] * (values.dim() - 2))
        return values.gather(1, index.expand(*self.place.shape, *values.shape[2:]))


def framed(batch: Batch, tokeniser: Tokeniser) -> Framed:
    """The pieces with special tokens around them, padded on the side that the tokenizer says."""
    is_second = (batch.sentence >= SECOND) & batch.mask
    lengths, device = batch.lengths, batch.ids.device
    # A card is waited for once: whether there are pairs, and how long the longest text is.
    told = torch.stack([(batch.sentence >= FIRST).any().long(), lengths.amax()]).tolist()
    frame = tokeniser.pair if told[0] else tokeniser.single
    if frame is None:
        raise InputError(
            "This model is not made to read two texts; give one column, or a language model a "
            "prompt with a place for the second, {text2}."
        )
    total, width = lengths + frame.length, told[1] + frame.length
    shift = width - total if tokeniser.is_left_padded else torch.zeros_like(total)
    firsts = lengths - is_second.sum(-1)

    def base(value: int) -> Tensor:
        # One column more than is read: what is written for padding goes there.
        return torch.full((len(batch), width + 1), value, device=device)

    ids, types = base(tokeniser.padding), base(0)
    before, first, between, second, after = frame.types

    def write(place: Tensor, tokens: Sequence[int], kinds: Sequence[int]) -> None:
        for step, (token, kind) in enumerate(zip(tokens, kinds, strict=True)):
            ids.scatter_(1, (place + step)[:, None], token)
            types.scatter_(1, (place + step)[:, None], kind)

    write(shift, frame.before, before)
    inner = shift + len(frame.before) + firsts
    write(inner, frame.between, between)
    write(inner + len(frame.between) + lengths - firsts, frame.after, after)
    position = torch.arange(batch.ids.shape[1], device=device)
    place = shift[:, None] + len(frame.before) + position + len(frame.between) * is_second
    put = place.masked_fill(~batch.mask, width)
    ids.scatter_(1, put, batch.ids)
    kinds = torch.full_like(batch.ids, first).masked_fill(is_second, second)
    types.scatter_(1, put, kinds)
    keys = torch.arange(width, device=device)
    mask = ((keys >= shift[:, None]) & (keys < (shift + total)[:, None])).long()
    return Framed(ids[:, :width], mask, types[:, :width], place.masked_fill(~batch.mask, 0))


def encode_pieces(
    documents: Sequence[Document], tokeniser: Tokeniser, most: int, long: str = "beginning"
) -> tuple[Encoded, dict[str, int]]:
    """Documents as pieces, and the counts of what was done to them.

    A text of more than `most` pieces is cut as `long` says; one without pieces is kept as a single
    unknown one, so that every instance has a decision.
    """
    notes = {CUT: 0, EMPTY: 0, STRANGE: 0}
    if tokeniser.needs_pair and any(d.second is None for d in documents):
        raise InputError(
            "The prompt has a place for a second text, {text2}, and a document has one text alone; "
            "name the column of the other by --text2, or leave {text2} out."
        )
    firsts = [d.text if d.second is None else d.text[: d.second] for d in documents]
    seconds = iter(
        tokeniser.pieces([d.text[d.second :] for d in documents if d.second is not None], True)
    )
    rows, ids = [], []
    for document, first in zip(documents, tokeniser.pieces(firsts), strict=True):
        second = Pieces([], []) if document.second is None else next(seconds)
        whole = _joined(document, first, second)
        if len(whole.ids) > most:
            if long == "refuse":
                raise InputError(
                    f"A text ({document.text[:40].strip()!r} …) has {len(whole.ids)} pieces, the "
                    f"model reads {most} beside its special tokens; cut it, or let heedful keep "
                    "its beginning, its end or both (--long)."
                )
            notes[CUT] += 1
            whole = whole.kept(_kept(whole.parts, most, long))
        is_strange = tokeniser.has_unknown and bool((whole.ids == tokeniser.unknown).any())
        notes[STRANGE] += is_strange
        if not len(whole.ids):
            notes[EMPTY] += 1
            whole = _Row(
                np.array([tokeniser.unknown]), np.zeros((1, 2), np.int32),
                np.array([0 if document.second is None else FIRST]),
                None if document.evidence is None else np.zeros(1, bool),
            )  # fmt: skip
        ids.append(whole.ids)
        texts = tuple(document.text[start:stop] for start, stop in whole.spans)
        rows.append(
            replace(
                document,
                tokens=texts,
                spans=whole.spans,
                sentence=whole.parts,
                evidence=whole.evidence,
                word_labels=None,
            )
        )
    evidence = [row.evidence for row in rows if row.evidence is not None]
    encoded = Encoded(
        ids=np.concatenate(ids) if ids else np.zeros(0, np.int64),
        starts=np.cumsum([0] + [len(row) for row in ids]),
        labels=np.array([d.label for d in documents], dtype=np.int64),
        sentence=np.concatenate([row.sentence for row in rows]) if rows else np.zeros(0, np.int64),
        names=tuple(d.id for d in documents),
        evidence=np.concatenate(evidence) if rows and len(evidence) == len(rows) else None,
        documents=rows,
        unknown=tokeniser.unknown,
    )
    return encoded, {name: count for name, count in notes.items() if count}


def among(every: Sequence[Document], rows: Sequence[int], encoded: Encoded) -> Encoded:
    """All documents, of which these rows (in order) are encoded and others have no piece."""
    lengths, documents = np.zeros(len(every), np.int64), list(every)
    lengths[list(rows)] = encoded.lengths
    for row, document in zip(rows, encoded.documents or (), strict=True):
        documents[row] = document
    return replace(
        encoded,
        starts=np.cumsum([0, *lengths]),
        labels=np.array([document.label for document in every], dtype=np.int64),
        names=tuple(document.id for document in every),
        documents=documents,
    )


class _Row(NamedTuple):
    """One document as pieces."""

    ids: Int[np.ndarray, " piece"]
    spans: Int[np.ndarray, "piece 2"]
    parts: Int[np.ndarray, " piece"]
    evidence: Bool[np.ndarray, " piece"] | None

    def kept(self, index: Int[np.ndarray, "kept"]) -> _Row:
        evidence = None if self.evidence is None else self.evidence[index]
        return _Row(self.ids[index], self.spans[index], self.parts[index], evidence)


def _joined(document: Document, first: Pieces, second: Pieces) -> _Row:
    """The pieces of both texts with spans in the whole text, word numbers and evidence."""
    spans = np.array(first.spans, dtype=np.int32).reshape(-1, 2)
    others = np.array(second.spans, dtype=np.int32).reshape(-1, 2) + (document.second or 0)
    spans = np.concatenate([spans, others])
    is_second = np.arange(len(spans)) >= len(first.ids)
    parts, touched = words_of_pieces(document, spans)
    if document.second is not None:
        parts = parts + np.where(is_second, SECOND, FIRST)
    evidence = None
    if document.evidence is not None:
        known = np.concatenate([[0], np.cumsum(document.evidence)])
        evidence = known[touched[:, 1] + 1] > known[touched[:, 0]]
    ids = np.array([*first.ids, *second.ids], dtype=np.int64)
    return _Row(ids, spans, parts, evidence)


def words_of_pieces(
    document: Document, spans: Int[np.ndarray, "piece 2"]
) -> tuple[Int[np.ndarray, " piece"], Int[np.ndarray, "piece 2"]]:
    """The unit of each piece, and the first and last word it touches.

    A new unit begins where a piece begins in a word that no earlier piece touches. White space at
    a piece's ends counts for nothing; characters between words belong to the word before.
    """
    if not len(spans):
        return np.zeros(0, np.int64), np.zeros((0, 2), np.int64)
    if not len(document.tokens):
        return np.zeros(len(spans), np.int64), np.zeros((len(spans), 2), np.int64)
    ends = np.array([_without_space(document.text, start, stop) for start, stop in spans])
    starts = document.spans[:, 0]
    first = np.searchsorted(starts, ends[:, 0], side="right") - 1
    last = np.searchsorted(starts, np.maximum(ends[:, 1] - 1, ends[:, 0]), side="right") - 1
    first, last = np.maximum(first, 0), np.maximum(last, 0)
    reached = np.maximum.accumulate(last)
    is_new = np.concatenate([[False], first[1:] > reached[:-1]])
    return np.cumsum(is_new), np.stack([first, last], 1)


def _without_space(text: str, start: int, stop: int) -> tuple[int, int]:
    inside = text[start:stop]
    bare = inside.strip()
    if not bare:
        return stop, stop  # nothing but space: part of what follows
    begin = start + inside.index(bare)
    return begin, begin + len(bare)


def _kept(parts: Int[np.ndarray, " piece"], most: int, long: str) -> Int[np.ndarray, " kept"]:
    """Which pieces of a long text are kept; a pair gives each text its half, or what it needs."""
    texts = [np.flatnonzero(parts < SECOND), np.flatnonzero(parts >= SECOND)]
    second = min(len(texts[1]), max(most // 2, most - len(texts[0])))
    rooms = (most - second, second)
    return np.concatenate([_part(t, room, long) for t, room in zip(texts, rooms, strict=True)])


def _part(index: Int[np.ndarray, " piece"], room: int, long: str) -> Int[np.ndarray, " kept"]:
    if len(index) <= room:
        return index
    if long == "end":
        return index[len(index) - room :]
    if long == "both":
        head = (room + 1) // 2
        return np.concatenate([index[:head], index[len(index) - (room - head) :]])
    return index[:room]
