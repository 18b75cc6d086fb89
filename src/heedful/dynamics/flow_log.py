"""Observers of training: how the scores of words grew, and which term pushed them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import pandas as pd
import torch

from heedful.corpora.encoded import EncodedCorpus
from heedful.dynamics.flow import Flow, flow
from heedful.dynamics.token_classes import TokenClasses
from heedful.errors import InputError
from heedful.models.classifier import AttentionClassifier
from heedful.training.loop import Moment


@dataclass
class FlowLog:
    """Scores and terms of chosen words at every evaluation: `fit(observers=[FlowLog(["good"])])`.

    `output` is the class whose polarity is followed in a model with one logit per class; the
    last one unless given.
    """

    words: Sequence[str]
    split: str = "train"
    output: int = -1
    entries: list[dict[str, Any]] = field(default_factory=list)

    def __call__(self, moment: Moment) -> None:
        """Logs the moment."""
        self.log(moment.step, moment.epoch, moment.model, moment.corpus)

    def log(
        self, step: int, epoch: float, model: AttentionClassifier, corpus: EncodedCorpus
    ) -> None:
        """One entry for each word."""
        unseen = [word for word in self.words if word not in model.vocabulary.ids]
        if unseen:
            raise InputError(f"the model does not know the word {unseen[0]!r}; choose another.")
        found = flow(model, corpus.splits[self.split])
        for word in self.words:
            place = model.vocabulary.ids[word]
            entry: dict[str, Any] = {"step": step, "epoch": epoch, "word": word}
            is_binary = len(model.classes) == 2
            said = found.scores.polarity if is_binary else found.scores.logits[:, self.output]
            entry["polarity"] = float(said[place])
            entry["attention"] = float(found.scores.scores[place])
            for name, term in found.towards(self.output).items():
                entry[f"polarity {name}"] = float(term[place])
            for name, term in found.attention.items():
                entry[f"attention {name}"] = float(term[place])
            self.entries.append(entry)

    def table(self) -> pd.DataFrame:
        """One row per word and evaluation, one column per term."""
        return pd.DataFrame(self.entries)


def by_class(found: Flow, classes: TokenClasses, output: int = -1) -> pd.DataFrame:
    """Each term over the words of each class: its mean, mean size and share of positive values."""
    terms = found.towards(output)
    terms |= {f"attention {k}" if k in terms else k: v for k, v in found.attention.items()}
    rows = []
    for name in classes.names:
        chosen = torch.from_numpy(classes.of(name)).to(found.rho.device)
        count = int(chosen.sum())
        for term, values in terms.items():
            here = values[chosen]
            rows.append(
                {
                    "class": name,
                    "term": term,
                    "n": count,
                    "mean": float(here.mean()) if count else float("nan"),
                    "size": float(here.abs().mean()) if count else float("nan"),
                    "positive": int((here > 0).sum()),
                    "negative": int((here < 0).sum()),
                }
            )
    return pd.DataFrame(rows)
