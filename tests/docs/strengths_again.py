"""What a remedy's strengths cost and buy on dev: every one trained again, and asked plainly."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

import heedful
from heedful.jobs.settings import read_settings
from heedful.runs import read_json
from tests.docs.intervals_again import Told, macro_f1, orders, resampled
from tests.docs.plain_passes import Plain, given_anew, shuffled

LIMIT = 1.5


@dataclass(frozen=True)
class Decided:
    """What a model decides of the dev documents."""

    gold: np.ndarray
    trained: np.ndarray
    flat: np.ndarray
    drawn: np.ndarray
    """Under each order that its attention was shuffled into, [draw document]."""

    def f1(self, weights: np.ndarray) -> np.ndarray:
        """As trained, flat, and shuffled: the mean over draws, [replicate 3]."""
        plain, flat = (macro_f1(one, self.gold, weights) for one in (self.trained, self.flat))
        each = np.array([macro_f1(one, self.gold, weights) for one in self.drawn])
        known = ~np.isnan(each)
        with np.errstate(divide="ignore", invalid="ignore"):
            mixed = np.where(known, each, 0).sum(0) / known.sum(0)
        return np.stack([plain, flat, mixed], 1)

    def reliance(self, weights: np.ndarray) -> np.ndarray:
        """What flattening and shuffling take away together."""
        found = self.f1(weights)
        return np.asarray(2 * found[:, 0] - found[:, 1] - found[:, 2])


@dataclass(frozen=True)
class Sweep:
    """A search for a strength, and the documents that it was judged on."""

    folder: Path
    dev: Sequence[Any]
    data: str
    config: str

    @cached_property
    def found(self) -> Mapping[str, Any]:
        """What was stored; only which strengths and which run are taken from it."""
        told: Mapping[str, Any] = read_json(self.folder / "remedy.json")
        return told

    @cached_property
    def kept(self) -> float:
        """The strength that was kept."""
        return float(self.found["chosen"]["strength"])

    @cached_property
    def limit(self) -> float:
        """How many points a strength might cost."""
        return float(self.found.get("limit", LIMIT))

    @cached_property
    def decided(self) -> dict[float, Decided]:
        """By strength, 0 for the model without the remedy."""
        strengths = [0.0, *(float(one["strength"]) for one in self.found["tried"])]
        return {strength: self._decided(strength) for strength in strengths}

    def _decided(self, strength: float) -> Decided:
        """A model that is trained once more, as a user would train it at that strength."""
        if strength == self.kept:
            folder = self.folder
        else:
            recipe = read_json(Path(self.found["run"]) / "run.json")["configuration"]["recipe"]
            recipe = re.sub(r"\+tying:[\d.]+", "", recipe)
            recipe += f"+tying:{strength:g}" if strength else ""
            folder = Path("again") / recipe
            settings = read_settings(Path(self.config))
            heedful.train(recipe, heedful.load_corpus(self.data), folder, settings=settings)
        plain = Plain(folder)
        trained, flat, drawn = [], [], []
        for one in self.dev:
            words, n = tuple(one.text.split()), len(one.text.split())
            edits = [given_anew(np.full(n, 1 / n)), *(shuffled(o) for o in orders(one.id, n))]
            said = plain.under(words, edits).argmax(-1)
            trained.append(plain.logits(words).argmax())
            flat.append(said[0])
            drawn.append(said[1:])
        gold = np.array([one.label for one in self.dev])
        return Decided(gold, np.array(trained), np.array(flat), np.array(drawn).T)

    @property
    def names(self) -> list[str]:
        """Of the documents."""
        return [one.id for one in self.dev]

    def f1(self, strength: float) -> tuple[float, float, float]:
        """F1, and its change when attention is flattened and shuffled."""
        (plain, flat, mixed) = self.decided[strength].f1(np.ones((1, len(self.dev))))[0]
        return float(plain), float(flat - plain), float(mixed - plain)

    def cost(self, strength: float) -> Told:
        """F1 at 0 minus F1 here."""
        return resampled(
            lambda w: self.decided[0.0].f1(w)[:, 0] - self.decided[strength].f1(w)[:, 0], self.names
        )

    def buys(self, strength: float) -> Told:
        """Reliance here minus that at 0."""
        return resampled(
            lambda w: self.decided[strength].reliance(w) - self.decided[0.0].reliance(w), self.names
        )

    def behind(self, strength: float) -> Told:
        """Reliance of the one kept minus that here."""
        return resampled(
            lambda w: self.decided[self.kept].reliance(w) - self.decided[strength].reliance(w),
            self.names,
        )

    def best(self) -> float:
        """The one that buys most of those that are cheap enough, the cheapest where none is."""
        tried = sorted(one for one in self.decided if one)
        f1 = {one: self.f1(one)[0] for one in (0.0, *tried)}
        cheap = [one for one in tried if f1[one] >= f1[0.0] - self.limit / 100 - 1e-12]
        if not cheap:
            return max(tried, key=lambda one: f1[one])
        return max(cheap, key=lambda one: -sum(self.f1(one)[1:]))

    def is_rival(self, strength: float) -> bool:
        """Whether it may cost no more than the limit and rely no less than the one kept."""
        cheap = self.cost(strength).side(self.limit / 100) != "above"
        return cheap and self.behind(strength).side(0) != "above"
