"""Put the words that attention shows of a text into other texts, and see who decides.

A person who reads attention expects that the words shown decide wherever they stand. So the words
shown of each text take the place of those shown in several texts that were decided otherwise: its
decision should come with them. Of several words shown, those that it needs are found
(`needed_units`). Last, attention is forbidden to look at the words: what is left of their effect
goes around it.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import pandas as pd
import torch
from jaxtyping import Bool, Float64, Int

from heedful.audits.asking import Asked
from heedful.audits.examination import Portion
from heedful.audits.hybrids import HALF, Hybrid, contexts, margin, mixed
from heedful.audits.needed_units import Pair, needed_mass
from heedful.audits.unseen_words import overturned
from heedful.corpora.encoded import Encoded
from heedful.models.verbs import AttentiveModel
from heedful.runs.kept_tables import Keep, keep_nothing

CONTEXTS, FIRST, ALIKE = 8, 4, 4
"""Texts decided otherwise into which a text's words are put, of which so many come first: where the
decision comes with them in none of these, no more are tried. Texts decided alike, where no other
will do."""
FAIR = 0.25
"""A text is no fair context if its own shown words decide in fewer of theirs, and it is decided the
same without them: what decides there is not shown, and would be added to another's words."""
MOST_OF = 5 / 6
"""Of the fair contexts in which the decision must come with the words."""
TIE = 0.1
"""Of the less sure of the two texts: what is nearer to a tie does not count."""
LEAST = 0.25
"""Of the margin, that a single shown word must move in its text or in some contexts: a decision
that is the same without it everywhere is one by what is absent."""
TURNS = 3
"""Contexts in which needed words are looked for."""


class _Tried(NamedTuple):
    """A text's shown units in other texts, pair by pair."""

    text: Int[np.ndarray, " pair"]
    base: Int[np.ndarray, " pair"]
    comes: Bool[np.ndarray, " pair"]
    """Whether the text's decision comes with its shown units."""
    says: Bool[np.ndarray, " pair"]
    """Whether the context would be decided less surely, or more so, without them."""
    around: Float64[np.ndarray, " pair"]
    """The share of what they do that is left with attention to them forbidden."""
    border: Float64[np.ndarray, " pair"]
    """The margin of the decision below which it counts as turned."""


def rows(
    model: AttentiveModel,
    documents: Encoded,
    seed: int = 0,
    device: torch.device | str = "cpu",
    at_once: Portion = Portion(),
    head: int | None = None,
    keep: Keep = keep_nothing,
) -> pd.DataFrame:
    """What became of each text's decision when its shown units stood in other texts.

    `comes` is the share of contexts in which the decision came with them, `mattering` the attention
    on units that the decision needs, `around` the share of their effect that passes around
    attention; `overturned` names a word of no text that turns the decision and is not shown. Of a
    model with several heads, `head` asks about what one of them shows. What the model said before a
    kill, `keep` has.
    """
    asked = Asked(model, documents, device, at_once, head, keep)
    texts = asked.texts
    chosen = contexts(texts, seed, CONTEXTS)
    first = _put(asked, [some[:FIRST] for some in chosen])
    came = _share(first.comes, first.text, len(texts)) > 0
    more = [some[FIRST:] if does else [] for does, some in zip(came, chosen, strict=True)]
    others = _joined(first, _put(asked, more))
    decision = np.array([text.decision for text in texts])
    logits, rest = (np.stack([getattr(text, of) for text in texts]) for of in ("logits", "rest"))
    sure, without = margin(logits, decision), margin(rest, decision)
    is_mute = np.array([text.seen.sum() == 1 for text in texts])
    is_mute &= np.abs(sure - without) < LEAST * sure
    is_mute &= _share(others.says, others.text, len(texts)) < FAIR
    others = others._replace(comes=others.comes & ~is_mute[others.text])
    fair = _share(others.comes, others.text, len(texts)) >= FAIR
    fair |= without < HALF * sure
    used = fair[others.base]
    has_fair = np.bincount(others.text[used], minlength=len(texts)) > 0
    alone = _alone(asked, np.flatnonzero(~has_fair))
    alike = contexts(texts, seed, ALIKE, alike=True)
    same = _put(asked, [some if is_one else [] for is_one, some in zip(alone, alike, strict=True)])
    tried = _joined(_Tried(*(one[used] for one in others)), same)
    comes = _share(tried.comes, tried.text, len(texts))
    pairs: list[list[Pair]] = [[] for _ in texts]
    around: list[list[float]] = [[] for _ in texts]
    for text, base, does, _, left, border in zip(*(one.tolist() for one in tried), strict=True):
        if does and comes[text] >= MOST_OF:
            is_other = texts[base].decision != texts[text].decision
            pairs[text].append(Pair(text, base, border, is_other))
            around[text].append(left)
    mattering, is_few = needed_mass(asked, [some[:TURNS] for some in pairs], seed)
    kept = comes >= MOST_OF
    words = overturned(asked, kept, documents, seed) if kept.mean() >= HALF else {}
    return pd.DataFrame(
        {
            "instance": [text.name for text in texts],
            "decided": [model.classes[text.decision] for text in texts],
            "label": [model.classes[one] if one >= 0 else "" for one in documents.labels],
            "units": [len(text.units) for text in texts],
            "seen": [float(text.seen.mean()) for text in texts],
            "largest": [float(text.weights.max()) for text in texts],
            "comes": comes,
            "contexts": np.bincount(tried.text, minlength=len(texts)),
            "is_few": is_few,
            "mattering": mattering,
            "around": [float(np.median(some)) if some else np.nan for some in around],
            "overturned": [words.get(number, "") for number in range(len(texts))],
            "passes": asked.tokens / [text.length for text in texts],
        }
    )


def _joined(one: _Tried, other: _Tried) -> _Tried:
    return _Tried(*(np.concatenate(both) for both in zip(one, other, strict=True)))


def _share(
    holds: Bool[np.ndarray, " pair"], text: Int[np.ndarray, " pair"], count: int
) -> Float64[np.ndarray, " text"]:
    """The share of each text's pairs; 0 where it has none."""
    every = np.bincount(text, minlength=count)
    return np.asarray(np.bincount(text[holds], minlength=count) / np.maximum(every, 1))


def _alone(asked: Asked, rows: Int[np.ndarray, " some"]) -> Bool[np.ndarray, " text"]:
    """Which of these texts are decided as they are by their shown units alone, and by nothing not.

    Asked of texts without a fair context: what the texts that are decided alike say unseen must not
    help.
    """
    texts = [asked.texts[row] for row in rows]
    shown = [np.flatnonzero(one.seen).tolist() for one in texts]
    hybrids = [
        Hybrid([one.units[u] for u in some], one.side[some], np.ones(len(some), dtype=bool))
        for one, some in zip(texts, shown, strict=True)
    ]
    nothing = Hybrid([], np.zeros(0, dtype=int), np.zeros(0, dtype=bool))
    said = asked([*hybrids, nothing], [*rows.tolist(), 0]).logits
    found = np.zeros(len(asked.texts), dtype=bool)
    if len(rows):
        logits = np.stack([one.logits for one in texts])
        own = logits.argmax(1)
        now = margin(said[:-1], own)
        without = margin(np.tile(said[-1:], (len(rows), 1)), own)
        found[rows] = (now > TIE * margin(logits, own)) & (without <= HALF * now)
    return found


def _put(asked: Asked, chosen: Sequence[Sequence[int]]) -> _Tried:
    """Each text's shown units in the chosen texts, in the places of these texts' own.

    The decision comes with them if the hybrid is decided as the text is, no near tie, and at least
    half of the attention that they had is on them; where both texts are decided alike, also at most
    half as surely so without them. What they do is the way from there, and what attention has no
    part in is the way that is left when it may not look at them.
    """
    texts = asked.texts
    text = np.array([row for row, some in enumerate(chosen) for _ in some], dtype=int)
    base = np.array([other for some in chosen for other in some], dtype=int)
    nothing = [one.only([]) for one in texts]
    hybrids = [
        mixed(texts[b], texts[t], texts[t].seen, nothing[b], asked.longest)
        for t, b in zip(text, base, strict=True)
    ]
    said = asked(hybrids, text.tolist(), forbidding=True)
    logits, rest, blocked = (
        np.stack([getattr(one, of) for one in texts]) for of in ("logits", "rest", "blocked")
    )
    decision = logits.argmax(1)
    sure, own = margin(logits, decision), decision[text]
    now, without = margin(said.logits, own), margin(rest[base], own)
    is_alike = decision[base] == own
    is_brought = without <= HALF * now
    comes = now > TIE * np.minimum(sure[text], sure[base])
    comes &= is_brought | ~is_alike
    # What attention shows of the text it should show of them here.
    before = np.array([one.weights[one.seen].sum() for one in texts])[text]
    shown = [given[one.is_new].sum() for given, one in zip(said.weights, hybrids, strict=True)]
    comes &= np.array(shown) >= HALF * before
    says = np.abs(now - without) >= LEAST * np.abs(now)
    # Against the context's decision, or the strongest other class where both are decided alike.
    second = np.where(np.arange(logits.shape[1]) == own[:, None], -np.inf, rest[base]).argmax(1)
    rival = np.where(is_alike, second, decision[base])[:, None]

    def ahead(of: Float64[np.ndarray, "pair class"]) -> Float64[np.ndarray, " pair"]:
        both = (np.take_along_axis(of, which, 1)[:, 0] for which in (own[:, None], rival))
        return np.asarray(np.subtract(*both))

    # From the context without the words, or where that says the same, from the context as it was.
    start = np.where(is_brought[:, None], rest[base], logits[base])
    kept = np.where(is_brought[:, None], rest[base], blocked[base])
    effect, left = ahead(said.logits - start), ahead(said.blocked - kept)
    around = np.full(len(text), np.nan)
    np.divide(left, effect, out=around, where=np.abs(effect) > 1e-9)
    return _Tried(text, base, comes, says, around, np.where(is_alike, HALF * now, 0.0))
