"""What is computed of one text that was typed: its steps, from the first look to the slowest
explanation, and what the model decides once somebody edits it."""

from __future__ import annotations

import math
from collections import OrderedDict, deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import partial
from itertools import pairwise
from typing import Any, NamedTuple

import torch
from jaxtyping import Float
from torch import Tensor

from heedful.errors import InputError
from heedful.explorer.worker import Event, WorkStep
from heedful.importance import METHODS, methods_of, one_by_one, sentence_of
from heedful.jobs.audited_attention import audited_attention
from heedful.jobs.decider import Decider
from heedful.jobs.explain import batch_of, best_first, unknown_words
from heedful.jobs.instance_layers import describe_heads, flows_of
from heedful.jobs.instances import COARSE, EXACT, describe_one, rounded
from heedful.models import Replace, curve, decide, erase, ranked, read
from heedful.models.huggingface import PretrainedClassifier, unit_spans
from heedful.models.reading import Reading
from heedful.models.rereading import read_again

MOST_CHARACTERS = 20_000
"""Of one text."""
MOST_UNITS = 1_000
"""Words, or sentences, that the page can show side by side by every method."""
KEPT_READINGS = 16
"""Texts whose reading is kept for the edits that follow."""
SLOW = ("integrated", "value-zeroing", "occlusion", "attention-flow")
"""Methods that read a text many times; what is not here and not costly comes before them."""
MOST_UNITS_AGAIN = 120
"""Where every erasure runs the model again, longer texts have no curve."""


class TextAsked(NamedTuple):
    """A text, or a pair of texts."""

    text: str
    second: str | None = None

    @classmethod
    def checked(cls, text: Any, second: Any = None) -> TextAsked:
        """The text that a client sent, if it is one and not too long."""
        for one in (text, "." if second is None else second):
            if not isinstance(one, str) or not one.strip():
                raise InputError("Expected a text with at least one word; type or paste one.")
            if len(one) > MOST_CHARACTERS:
                raise InputError(
                    f"The text has {len(one):,} characters, this page takes at most "
                    f"{MOST_CHARACTERS:,}; paste a part of it."
                )
        # Half surrogate pairs can be typed in JSON, but are no text that a tokenizer can read.
        whole = [None if one is None else one.encode("utf-8", "replace").decode() for one in
                 (text, second)]  # fmt: skip
        return cls(str(whole[0]), whole[1])


class WordEdit(NamedTuple):
    """What was done to the words of a text: some removed, or the attention to all of them moved."""

    erased: tuple[int, ...] = ()
    weights: tuple[float, ...] | None = None

    @classmethod
    def checked(cls, erased: Any, weights: Any) -> WordEdit:
        """The edit that a client sent, if its numbers are ones."""
        if not isinstance(erased, list) or not all(type(unit) is int for unit in erased):
            raise InputError("Expected `erased` to be a list of the numbers of words.")
        if weights is None:
            return cls(tuple(sorted(set(erased))))
        is_row = isinstance(weights, list) and all(type(w) in (int, float) for w in weights)
        if not is_row or not all(math.isfinite(w) and 0 <= w <= 1e6 for w in weights):
            raise InputError("Expected `weights` to be a list of numbers from 0 on, one per word.")
        return cls(tuple(sorted(set(erased))), tuple(map(float, weights)))


@dataclass(frozen=True, eq=False)
class ExploredModel:
    """A model that is lent to the page, with the readings of the latest texts."""

    name: str
    model: Decider
    recommended: str
    """The explanation to look at first."""
    why: str
    """Why that one."""
    standing: str = ""
    """What an audit makes of it; nothing where none was measured."""
    _readings: OrderedDict[TextAsked, Reading] = field(default_factory=OrderedDict)

    def about(self) -> dict[str, Any]:
        """The model as the page names it."""
        return {
            "name": self.name,
            "classes": list(self.model.classes),
            "recommended": self.recommended,
            "why": self.why,
            "standing": self.standing,
            "audited": audited_attention(self.model)._asdict(),
            "pairs": isinstance(self.model, PretrainedClassifier)
            and self.model.subwords.pair is not None,
        }

    def reading(self, asked: TextAsked) -> Reading:
        """The text as the model reads it, read once; too many words are refused."""
        if asked in self._readings:
            self._readings.move_to_end(asked)
            return self._readings[asked]
        found = read(self.model, batch_of(self.model, [asked]))
        units = int(found.units[0])
        if units > MOST_UNITS:
            raise InputError(
                f"The text has {units:,} words, this page shows at most {MOST_UNITS:,}; paste a "
                "part of it."
            )
        self._readings[asked] = found
        if len(self._readings) > KEPT_READINGS:
            self._readings.popitem(last=False)
        return found


def explanation_steps(explored: ExploredModel, asked: TextAsked, seed: int = 0) -> deque[WorkStep]:
    """All that the page shows of a text, the quick before the slow.

    The first step reads the text, tells the decision and the attention, and adds the others.
    """
    steps: deque[WorkStep] = deque()
    model = explored.model

    def look() -> Event:
        reading = explored.reading(asked)
        offered = methods_of(model, costly=True, units=int(reading.units[0]))
        asks = one_by_one(model, reading, offered, seed)
        slow = [name for name in offered if name in SLOW or METHODS[name].is_costly(model)]
        quick = [name for name in offered if name not in slow]
        quick.sort(key=lambda name: (name != "attention", name != explored.recommended))
        importance: dict[str, Float[Tensor, "batch unit"]] = {}
        curves = _has_curves(model, reading)

        def explain(name: str) -> Event:
            importance[name] = asks[name]().detach()
            values = importance[name][0, : int(reading.units[0])].cpu().double().numpy()
            return {"method": name, "importance": rounded(values, COARSE)}

        def erase_by(name: str) -> Event:
            return {"method": name, "curve": erasure_curve(model, reading, importance[name])}

        def both(names: Sequence[str]) -> list[Callable[[], Event]]:
            asked = [(partial(explain, n), partial(erase_by, n)) for n in names]
            return [ask for pair in asked for ask in pair[: 2 if curves else 1]]

        between: Callable[[], Event] = partial(layers, model, reading)
        added = [*both(quick), between, *both(slow)]
        steps.extend(WorkStep(model, compute) for compute in added)
        return {
            "entry": describe_one(reading) | {"importance": {}, "tags": []},
            "methods": [
                {"name": name, "sentence": sentence_of(name)}
                for name in best_first(dict.fromkeys(offered), explored.recommended)
            ],
            "order": [*quick, *slow],
            "linear": reading.unit_logits is not None and reading.offset is not None,
            "unknown": list(unknown_words(model, reading)),
            "unread": _unread(reading),
            "steps": len(added) + 1,
        }

    steps.append(WorkStep(model, look))
    return steps


def layers(model: Decider, reading: Reading) -> Event:
    """The flow of attention and the heads of every layer, where the text is short enough."""
    return {"flow": flows_of(model, reading).get(0), "heads": describe_heads(model, reading).get(0)}


def erasure_curve(
    model: Decider, reading: Reading, importance: Float[Tensor, "batch unit"]
) -> dict[str, Any]:
    """The decision's probability without the first 0, 1, … units, and when the decision flips."""
    order = ranked(importance, reading)[:, None]
    logits = curve(model, reading, order)[0, 0]
    decision = int(reading.decision[0])
    flipped = (logits.argmax(-1) != decision).nonzero().flatten().tolist()
    probability = logits.softmax(-1)[:, decision].cpu().numpy()
    return {"probability": rounded(probability, COARSE), "flip": flipped[0] if flipped else None}


def edited(explored: ExploredModel, asked: TextAsked, edit: WordEdit) -> Event:
    """Probabilities under the edited attention, and on the text without the removed words.

    Removed words alone are `erase`; moved attention is `Replace`, over what is not removed.
    """
    reading, model = explored.reading(asked), explored.model
    units = int(reading.units[0])
    is_inside = all(0 <= unit < units for unit in edit.erased)
    if not is_inside or len(edit.weights or ()) not in (0, units):
        raise InputError(f"The edit is not one of this text, which has {units} words.")
    gone = torch.zeros(1, 1, units, dtype=torch.bool, device=reading.mask.device)
    gone[0, 0, list(edit.erased)] = True
    weights = torch.tensor(edit.weights or [0.0] * units, dtype=torch.float64).to(gone.device)
    weights = weights.expand(gone.shape).masked_fill(gone, 0.0)
    is_moved = edit.weights is not None and float(weights.sum()) > 0
    change = Replace(weights / weights.sum()) if is_moved else erase(gone)
    logits = decide(model, reading, change)[0, 0]
    found: Event = {"attention": rounded(logits.softmax(-1).cpu().numpy(), EXACT), "text": None}
    if edit.erased:
        kept = ~gone[0, 0][reading.unit_of_token][:, None]
        again = read_again(model, reading.batch, kept, "removed")[0, 0]
        found["text"] = rounded(again.softmax(-1).cpu().numpy(), EXACT)
    return found


def _has_curves(model: Decider, reading: Reading) -> bool:
    """Whether erasure curves are drawn, which would take too long for some models and texts."""
    is_cheap = not isinstance(model, PretrainedClassifier) or model.site.is_one_row
    return is_cheap or int(reading.units[0]) <= MOST_UNITS_AGAIN


def _unread(reading: Reading) -> int:
    """Characters of the text that the model does not read, since the text is too long for it."""
    spans = unit_spans(reading.batch, reading.unit_of_token)[0]
    (document,) = reading.batch.documents or (None,)
    if document is None or not spans:
        return 0
    before, after = document.text[: spans[0][0]], document.text[spans[-1][1] :]
    inner = sum(b[0] - a[1] for a, b in pairwise(spans) if b[0] - a[1] > 200)
    return len(before.strip()) + len(after.strip()) + inner
