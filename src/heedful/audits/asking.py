"""Ask a model about texts that nobody wrote, and count what was read."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from functools import partial
from typing import NamedTuple

import numpy as np
import pandas as pd
import torch
from jaxtyping import Float64

from heedful.audits.examination import Portion, readings
from heedful.audits.hybrids import (
    Hybrid,
    ReadText,
    Units,
    encoded_hybrids,
    mixed,
    seen,
    texts_in,
)
from heedful.corpora.batches import Batch, collate, groups
from heedful.corpora.encoded import Encoded
from heedful.models.edits import erase
from heedful.models.reading import Reading
from heedful.models.verbs import AttentiveModel, decide, read
from heedful.runs.kept_tables import Keep, keep_nothing

ON_A_CARD = 4
"""How many times more altered texts than documents a card reads at once."""


class Answers(NamedTuple):
    """What the model says of hybrids."""

    logits: Float64[np.ndarray, "hybrid class"]
    blocked: Float64[np.ndarray, "hybrid class"]
    """With attention to the new units forbidden; nan where that was not asked."""
    weights: list[Float64[np.ndarray, " unit"]]
    """The attention that is shown."""


class Asked:
    """A model, its texts as read, and how many tokens were read for each."""

    def __init__(
        self,
        model: AttentiveModel,
        documents: Encoded,
        device: torch.device | str = "cpu",
        at_once: Portion = Portion(),
        head: int | None = None,
        keep: Keep = keep_nothing,
    ) -> None:
        """`keep` may have been told before what the model says of a batch of hybrids."""
        self.model, self.unknown, self.head = model, documents.unknown, head
        self.device, self.at_once, self.keep = device, at_once, keep
        found: list[ReadText] = []
        for reading in readings(model, documents, device, at_once):
            weights = self._shown(reading)
            blocked = self._forbidding(reading, [seen(row) for row in weights])
            found += texts_in(reading, weights, blocked)
        place = {text.name: number for number, text in enumerate(found)}
        texts = [found[place[name]] for name in documents.names]
        longest = max((text.length for text in texts), default=0)
        self.longest = longest if hasattr(model, "max_pieces") else None
        self.tokens = np.array([text.length for text in texts], dtype=np.float64)
        """Tokens that were read for each text."""
        nothing = [text.only([]) for text in texts]
        rests = [mixed(one, one, none, none) for one, none in zip(texts, nothing, strict=True)]
        said = self(rests, range(len(texts)))
        self.texts = [
            text._replace(rest=logits) for text, logits in zip(texts, said.logits, strict=True)
        ]

    def __call__(
        self, hybrids: Sequence[Hybrid], of: Sequence[int], forbidding: bool = False
    ) -> Answers:
        """What the model says of hybrids, each read for the text of that number."""
        shape = len(hybrids), len(self.model.classes)
        found = Answers(np.zeros(shape), np.zeros(shape), [np.zeros(0)] * len(hybrids))
        if not hybrids:
            return found
        documents = encoded_hybrids(hybrids, self.unknown)
        size, most = self.at_once
        if torch.device(self.device).type == "cuda":  # these are but read, so that more have room
            size, most = ON_A_CARD * size, most and ON_A_CARD * most
        for group in groups(documents, size, max_tokens=most):
            batch, places = collate(documents, group), group.tolist()
            forbidden = [hybrids[place].is_new for place in places] if forbidding else []
            said = self.keep(_key(batch, forbidden), partial(self._said, batch, forbidden))
            found.logits[places] = np.stack(said["logits"].tolist())
            found.blocked[places] = np.stack(said["blocked"].tolist())
            for place, weights in zip(places, said["weights"], strict=True):
                found.weights[place] = weights
        units = np.array([len(hybrid.units) for hybrid in hybrids])
        tokens = documents.lengths * (units > 0)
        self.tokens += np.bincount(np.asarray(of), tokens, len(self.tokens))
        return found

    def _said(self, batch: Batch, forbidden: Sequence[Units]) -> pd.DataFrame:
        """What the model says of each hybrid of a batch; columns are those of `Answers`."""
        reading = read(self.model, batch.to(self.device))
        logits = reading.logits.cpu().numpy()
        blocked = (
            self._forbidding(reading, forbidden) if forbidden else np.full_like(logits, np.nan)
        )
        columns = (list(logits), list(blocked), self._shown(reading))
        return pd.DataFrame(dict(zip(Answers._fields, columns, strict=True)))

    def _shown(self, reading: Reading) -> list[Float64[np.ndarray, " unit"]]:
        """The audited attention, or that of one head, as a person is shown it."""
        shown = reading.attention
        if self.head is not None:
            assert reading.heads is not None
            shown = reading.heads[:, self.head]
        shown = shown / shown.sum(-1, keepdim=True).clamp_min(1e-300)
        counts = reading.units.tolist()
        return [row[:n] for row, n in zip(shown.cpu().numpy(), counts, strict=True)]

    def _forbidding(
        self, reading: Reading, forbidden: Sequence[Units]
    ) -> Float64[np.ndarray, "text class"]:
        """Logits with attention to the marked units forbidden and the rest renormalised."""
        gone = torch.zeros(len(forbidden), 1, reading.mask.shape[1], dtype=torch.bool)
        for row, marked in enumerate(forbidden):
            gone[row, 0, : len(marked)] = torch.from_numpy(marked)
        found = decide(self.model, reading, erase(gone.to(reading.mask.device)))
        return np.asarray(found[:, 0].cpu().numpy())


def _key(batch: Batch, forbidden: Sequence[Units]) -> str:
    """What the model is asked, in a few digits."""
    told = hashlib.sha256(repr((tuple(batch.ids.shape), len(forbidden))).encode())
    marked = np.concatenate(forbidden) if forbidden else np.zeros(0, dtype=bool)
    for part in (batch.ids.numpy(), batch.mask.numpy(), batch.sentence.numpy(), marked):
        told.update(part.tobytes())
    return told.hexdigest()[:32]
