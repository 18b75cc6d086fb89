"""Observers of training: how the scores of words grew, and which term pushed them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import pandas as pd
import torch

from heedful.corpora.encoded import Encoded, EncodedCorpus
from heedful.dynamics.flow import Flow, flow
from heedful.dynamics.token_classes import TokenClasses
from heedful.errors import InputError
from heedful.models.classifier import AttentionClassifier
from heedful.training.loop import Moment


def word_terms(
    model: AttentionClassifier, encoded: Encoded, words: Sequence[str], output: int = -1
) -> pd.DataFrame:
    """A row for each word: its two scores, and the terms that push each of them.

    Columns `polarity A`, `attention D`, … hold the terms; `output` is the class whose polarity is
    looked at in a model of more than two classes.
    """
    unseen = [word for word in words if word not in model.vocabulary.ids]
    if unseen:
        raise InputError(f"the model does not know the word {unseen[0]!r}; choose another.")
    found = flow(model, encoded)
    said = found.scores.logits[:, output]
    columns = {"polarity": found.scores.polarity if len(model.classes) == 2 else said}
    columns |= {"attention": found.scores.scores}
    columns |= {f"polarity {name}": term for name, term in found.towards(output).items()}
    columns |= {f"attention {name}": term for name, term in found.attention.items()}
    places = [model.vocabulary.ids[word] for word in words]
    values = {name: column[places].tolist() for name, column in columns.items()}
    return pd.DataFrame({"word": list(words)} | values)


@dataclass
class FlowLog:
    """Scores and terms of chosen words at every evaluation: `fit(observers=[FlowLog(["good"])])`.

    `output` is the class whose polarity is followed in a model with one logit per class; the
    last one unless given.
    """

    words: Sequence[str]
    split: str = "train"
    output: int = -1
    tables: list[pd.DataFrame] = field(default_factory=list)

    def __call__(self, moment: Moment) -> None:
        """Logs the moment."""
        self.log(moment.step, moment.epoch, moment.model, moment.corpus)

    def log(
        self, step: int, epoch: float, model: AttentionClassifier, corpus: EncodedCorpus
    ) -> None:
        """One entry for each word."""
        found = word_terms(model, corpus.splits[self.split], self.words, self.output)
        found.insert(0, "epoch", epoch)
        found.insert(0, "step", step)
        self.tables.append(found)

    def table(self) -> pd.DataFrame:
        """One row per word and evaluation, one column per term."""
        return pd.concat(self.tables, ignore_index=True) if self.tables else pd.DataFrame()


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
