"""What words alone say of the right answer: the proxy, a regression, and tables of counts."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from heedful.corpora import Encoded, EncodedCorpus
from heedful.corpora.samples import subset
from heedful.dynamics.cooccurrence import (
    EM,
    CorpusSide,
    cooccurrence,
    looked_up,
    normalised,
    side,
    table_bytes,
    translation_table,
)
from heedful.dynamics.proxy import PENALTIES, Proxy, ProxyConfig, logistic_sweep, train_proxy
from heedful.reproduction.results import Results, Step
from heedful.runs import TABLE, Form
from heedful.runs.randomness import numpy_generator

LOG_ODDS = 2
"""Version of the steps that keep probes: as log-odds, where the first kept log probabilities, which
tie as soon as a model is sure."""


def followed_documents(corpus: EncodedCorpus) -> dict[str, Encoded]:
    """The dev documents, and as many training documents drawn by seed 1."""
    dev, train = corpus.splits["dev"], corpus.splits["train"]
    order = numpy_generator(1, "followed training documents").permutation(len(train))
    return {"dev": dev, "train": subset(train, np.sort(order[: len(dev)]))}


class Predictors(NamedTuple):
    """What words alone say of the right answer, unit by unit of the followed documents."""

    splits: Mapping[str, Mapping[str, np.ndarray]]
    """By split and name: `proxy`, `logistic`, `counts` and `em`."""
    words: pd.DataFrame
    """A row per word: its count in train and what the proxy and the regression say of it."""
    epochs: pd.DataFrame
    """A row per epoch of the proxy: its dev loss and the seconds since the first began."""


def predictors(
    text: Step[EncodedCorpus],
    config: ProxyConfig,
    penalties: Sequence[float] = PENALTIES,
    seed: int = 0,
) -> Step[Predictors]:
    """The proxy, the logistic regression and the count tables of a classification corpus."""

    def compute(results: Results) -> Predictors:
        corpus = results[text]
        train, dev = corpus.splits["train"], corpus.splits["dev"]
        types, classes = len(corpus.vocabulary), len(corpus.classes)
        bags, held = words_of(train, types), words_of(dev, types)
        answers, held_answers = (side(part.labels[:, None], classes) for part in (train, dev))
        proxy = train_proxy(
            bags, answers, (held, held_answers), config, seed=seed, device=results.device
        )
        regression = logistic_sweep(bags, train.labels, held, dev.labels, penalties)
        tables = {"counts": translation_table(bags, answers, 1)}
        tables["em"] = translation_table(bags, answers, EM)
        splits = {}
        for name, part in followed_documents(corpus).items():
            right = np.repeat(part.labels, part.lengths)
            splits[name] = {
                "proxy": proxy.probe(part.ids, right),
                "logistic": regression.probe(part.ids, right),
            } | {key: looked_up(table, part.ids, right) for key, table in tables.items()}
        every = np.arange(types)
        words = pd.DataFrame({"id": every, "count": np.bincount(train.ids, minlength=types)})
        for name, model in (("proxy", proxy), ("logistic", regression)):
            words[name] = model.probe(every, np.full(types, classes - 1))
        return Predictors(splits, words, proxy_epochs(proxy))

    inputs: dict[str, Any] = {"proxy": asdict(config), "penalties": list(penalties), "em": EM}
    form = PREDICTORS
    name = text.beside("predictors")
    return Step(name, compute, inputs | {"seed": seed}, form, (text,), LOG_ODDS)


def words_of(encoded: Encoded, types: int) -> CorpusSide:
    """The words of documents as one side of a count table."""
    return CorpusSide(encoded.ids.astype(np.int64), encoded.starts, types)


def proxy_epochs(proxy: Proxy) -> pd.DataFrame:
    """A row per epoch of a proxy's training."""
    count = len(proxy.losses)
    return pd.DataFrame(
        {"epoch": range(1, count + 1), "loss": proxy.losses, "seconds": proxy.seconds}
    )


def count_tables(sources: CorpusSide, answers: CorpusSide) -> dict[str, Any]:
    """How far the proxy's count table is from Model 1's first step, both normalised (DYN-15)."""
    counted = normalised(cooccurrence(sources, answers))
    learnt = translation_table(sources, answers, 1)
    difference = abs(counted - learnt)
    return {
        "largest difference": float(difference.max()) if difference.nnz else 0.0,
        "entries": int(learnt.nnz),
        "bytes": table_bytes(learnt),
    }


def _save_predictors(folder: Any, found: Predictors) -> None:
    from safetensors.numpy import save_file

    for split, vectors in found.splits.items():
        arrays = {name: np.ascontiguousarray(v.astype(np.float32)) for name, v in vectors.items()}
        save_file(arrays, str(folder / f"{split}.safetensors"))
    TABLE.save(folder / "words.parquet", found.words)
    TABLE.save(folder / "epochs.parquet", found.epochs)


def _load_predictors(folder: Any) -> Predictors:
    from safetensors.numpy import load_file

    splits = {path.stem: load_file(str(path)) for path in sorted(folder.glob("*.safetensors"))}
    tables = (TABLE.load(folder / f"{name}.parquet") for name in ("words", "epochs"))
    return Predictors(splits, *tables)


PREDICTORS: Form[Predictors] = Form("", _save_predictors, _load_predictors)
"""How predictors lie on disk as the result of a step."""
