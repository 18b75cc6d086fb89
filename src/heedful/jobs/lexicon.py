"""Lay what people feel about words beside what a model attends to: `heedful lexicon RUN`."""

from __future__ import annotations

import os
import time
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
import torch

from heedful.audits import head_shares
from heedful.audits import lexicon as rated_words
from heedful.audits.examination import examine
from heedful.audits.finding import Finding
from heedful.audits.word_means import normalised, word_means
from heedful.corpora import Corpus, Encoded, EncodedCorpus, load_lexicon
from heedful.corpora.lexicon import Match, has_lemmatiser, match, read_ratings
from heedful.errors import InputError, UnsupportedModel, unknown
from heedful.importance import METHODS, Importance, methods_of
from heedful.importance.traced import stack_of
from heedful.jobs.audit import folder_of
from heedful.jobs.decider import Decider, decider_of, device_of, read_by
from heedful.models import (
    AttentionClassifier,
    AttentiveModel,
    Classifier,
    Reading,
    TransformerClassifier,
    build,
)
from heedful.models.huggingface import PretrainedClassifier
from heedful.models.saved import weights_digest
from heedful.models.tracing import lat
from heedful.report import render
from heedful.runs import TABLE, RunFolder, held, write_json, writing

MASS = 8.0
"""What importances of a text are scaled to before the softmax: published ones sum to 8 heads."""
SCALE = (1.0, 9.0)
"""Of Warriner's ratings."""
ENDS = (2.5 / 8, 5.5 / 8)
"""Where on a lexicon's scale words begin to count as very low and very high: 3.5 and 6.5 of 1–9."""


@dataclass(frozen=True)
class Rated:
    """What laying a lexicon beside a model leaves."""

    findings: Mapping[str, Finding]
    words: pd.DataFrame
    """Word averages of the rated words."""
    folder: Path
    report: Path
    said: tuple[str, ...] = ()
    """How the lexicon was read."""

    def to_json(self) -> dict[str, Any]:
        """The result as plain data, without the charts' data."""
        found = {name: finding.to_json() for name, finding in self.findings.items()}
        for finding in found.values():
            finding.pop("drawn")
        told = {"said": list(self.said), "findings": found}
        return {"folder": str(self.folder), "report": str(self.report)} | told

    def lines(self) -> list[str]:
        """The answers for the terminal."""
        said = [finding.answer for finding in self.findings.values()]
        return [*self.said, *said, f"The page: {self.report}"]


def rate(
    model: Decider | str | Path,
    corpus: Corpus | EncodedCorpus,
    lexicon: str | Path | Mapping[str, float] | None = None,
    out: str | Path | None = None,
    *,
    run: Path | None = None,
    method: str | None = None,
    lemmas: bool | None = None,
    language: str = "en",
    split: str = "test",
    data_root: str | Path | None = None,
    seed: int = 0,
    device: str = "auto",
    trust_remote_code: bool = False,
) -> Rated:
    """Whether words that people feel strongly about get more of a model's importance.

    `model` is a run folder, what else `load` takes, or a model, of that `run` if it is named;
    findings and the page go to the run, or to `out`, which is made a run of its own. `lexicon` is a
    file of words and ratings, `warriner` of the data root, or a mapping; without one it is the
    corpus's own, else Warriner's. `lemmas` says whether inflected words are matched too; unless
    told, they are where the package for it is here. Without a `method`, attention is traced where
    the model has layers, else it is the attention itself. `trust_remote_code` is that of `load`.
    """
    started = time.perf_counter()
    target = device_of(device)
    run = Path(model) if isinstance(model, str | Path) else run
    opened = decider_of(model, str(target), trust_remote_code=trust_remote_code)
    if isinstance(opened, AttentionClassifier) and opened.words is not None:
        raise UnsupportedModel(
            "This model attends to sentences, and a lexicon rates words; take a flat model."
        )
    method = method or ("trace" if METHODS["trace"].suits(opened) else "attention")
    _check_method(method, opened)
    if lexicon is None:
        lexicon = (corpus.lexicon if isinstance(corpus, Corpus) else None) or "warriner"
    if lexicon == "warriner" and data_root is None and not os.environ.get("HEEDFUL_DATA"):
        raise InputError(
            "No lexicon is at hand: name a file of words and ratings by --lexicon, or by "
            "--data-root the folder of real corpora that holds Warriner's."
        )
    rated = lexicon_of(lexicon, data_root, lemmas)
    encoded = read_by(opened, corpus)
    if split not in encoded.splits or not len(encoded.splits[split]):
        raise InputError(f"Corpus {encoded.name} has no {split} documents to read.")
    place = run if out is None else Path(out)
    if place is None:
        raise InputError("A model that is no run needs a folder for its page; name one by out.")
    is_own = run is not None and place.resolve() == run.resolve()
    texts = encoded.splits[split]
    with held(place):
        # The folder of an audit of the same documents, where there is one: both on one page.
        digest = weights_digest(opened)
        folder = (
            RunFolder.open(place)
            if is_own
            else folder_of(place, opened, digest, encoded, seed, target)
        )
        tokens = token_table(opened, texts, method, target)
        matches = rated.matches(tokens["word"], language)
        fresh, start = _untrained(opened, seed), None
        if fresh is not None:
            start = token_table(fresh.to(target), texts, method, target)
        words = averages(tokens, matches)
        findings = findings_of(tokens, matches, rated.scale, method, start)
        with writing(folder.findings / "lexicon.parquet") as path:
            TABLE.save(path, words)
        for name, finding in findings.items():
            write_json(folder.findings / f"{name}.json", finding)
        folder.finish("lexicon", time.perf_counter() - started, method=method)
        render(folder.path)
    return Rated(findings, words, folder.path, folder.report, rated.said)


class Lexicon(NamedTuple):
    """Words that people rated, and how words of texts find their ratings."""

    ratings: Mapping[str, float]
    scale: tuple[float, float]
    """The ends of the ratings."""
    lemmas: bool
    """Whether inflected words are matched by their lemma."""
    said: tuple[str, ...]

    def matches(self, words: Iterable[str], language: str = "en") -> dict[str, Match]:
        """The words that have a rating."""
        return match(sorted(set(words)), self.ratings, self.lemmas, language)


def lexicon_of(
    lexicon: str | Path | Mapping[str, float],
    data_root: str | Path | None = None,
    lemmas: bool | None = None,
) -> Lexicon:
    """The lexicon of a file, a name or a mapping; lemmas are used where they are to be had."""
    said: tuple[str, ...] = ()
    if isinstance(lexicon, Mapping):
        ratings = lexicon
    elif lexicon == "warriner":
        ratings = load_lexicon("warriner", data_root)
    else:
        ratings, said = read_ratings(lexicon)
    # Warriner's scale is known; of another lexicon only its ratings are.
    scale = SCALE if lexicon == "warriner" else (min(ratings.values()), max(ratings.values()))
    if lemmas is None and not has_lemmatiser():
        said += (
            "Words are matched as they stand: for inflected ones the package simplemma is needed "
            "(pip install heedful[lexicon]).",
        )
    return Lexicon(ratings, scale, has_lemmatiser() if lemmas is None else lemmas, said)


def token_table(
    model: Decider, texts: Encoded, method: str, device: torch.device | str
) -> pd.DataFrame:
    """One row per token: `instance`, `word`, `length`, `importance`, `gradient`, and each head.

    The gradient is that of the summed outputs where a model says what it gives out, else that of
    the decision. Heads are those of a trace, as shares of what reaches words; `held` is the trace
    as a share of one unit, of which special tokens of a pretrained model keep the rest.
    """
    beside = "squared gradient" if METHODS["squared gradient"].suits(model) else "input-gradient"

    def rows(
        model: AttentiveModel, reading: Reading, importance: Importance, seed: int
    ) -> pd.DataFrame:
        mask = reading.mask.cpu()
        lengths = mask.sum(1).numpy()
        columns: dict[str, Any] = {
            "instance": np.repeat(np.array(reading.names, dtype=object), lengths),
            "word": [word.lower() for words in reading.texts for word in words],
            "length": np.repeat(lengths, lengths),
            "importance": importance[method].cpu()[mask].double().numpy(),
            "gradient": importance[beside].cpu()[mask].double().numpy(),
        }
        if method == "trace":
            stack = stack_of(model, reading)
            columns["held"] = columns["importance"] / stack.layers[-1].heads
            for head, share in enumerate(lat(stack).input.unbind(1)):
                held = reading.per_unit(stack.of_batch(share).double()).cpu()
                columns[f"head_{head}"] = (held / held.sum(1, keepdim=True))[mask].numpy()
        return pd.DataFrame(columns)

    return examine(model, texts, {"tokens": rows}, (method, beside), device=device)["tokens"]


def findings_of(
    tokens: pd.DataFrame,
    matches: Mapping[str, Match],
    scale: tuple[float, float],
    method: str,
    untrained: pd.DataFrame | None = None,
) -> dict[str, Finding]:
    """`lexicon`, and `heads` where the token table has any; `untrained` has the same tokens."""
    start = None if untrained is None else averages(untrained, matches)
    texts, apart = tokens["instance"].nunique(), kept_by_specials(tokens)
    words = averages(tokens, matches)
    found = {"lexicon": rated_words.summarise(words, method, start, texts, apart)}
    if "head_0" in tokens:
        found["heads"] = _heads(tokens, matches, scale)
    return found


def averages(tokens: pd.DataFrame, matches: Mapping[str, Match]) -> pd.DataFrame:
    """Word averages of the rated words."""
    scores = {
        "softmax": normalised(tokens, "importance", mass=MASS),
        "ratio": normalised(tokens, "importance", "ratio"),
        "gradient": normalised(tokens, "gradient", "ratio"),
    }
    if kept_by_specials(tokens) > 0:
        scores["held"] = normalised(tokens.assign(held=MASS * tokens["held"]), "held")
    return rated_words.rated(word_means(tokens, scores), matches)


def kept_by_specials(tokens: pd.DataFrame) -> float:
    """The mean share of traced attention that ends on special tokens, which are no words."""
    if "held" not in tokens:
        return 0.0
    lost = 1 - float(tokens.groupby("instance")["held"].sum().mean())
    return lost if lost > 1e-4 else 0.0  # less is rounding


def _heads(
    tokens: pd.DataFrame, matches: Mapping[str, Match], scale: tuple[float, float]
) -> Finding:
    low, high = (scale[0] + end * (scale[1] - scale[0]) for end in ENDS)
    by_word = pd.Series({word: one.rating for word, one in matches.items()}, dtype=float)
    return head_shares.summarise(
        head_shares.masses(tokens, head_shares.tags(tokens, by_word, (low, high)))
    )


def _check_method(method: str, model: Decider) -> None:
    """Raises unless the method gives shares: numbers from zero up, more for what matters more."""
    if method not in METHODS:
        raise unknown("importance method", method, METHODS)
    if METHODS[method].is_signed or not METHODS[method].suits(model):
        known = [n for n in methods_of(model) if not METHODS[n].is_signed and n != "random"]
        raise InputError(
            f"Word averages need an importance without sign that this model offers, not {method}; "
            f"there are {', '.join(known)}."
        )


def _untrained(model: Decider, seed: int) -> Classifier | None:
    """A fresh model of the same shape; word vectors that are never learnt stay as they are.

    None for a pretrained model, whose start nobody knows here.
    """
    if isinstance(model, PretrainedClassifier):
        return None
    names = model.vocabulary, model.classes
    if isinstance(model, TransformerClassifier):
        fresh = build(model.config, *names, seed)
        fresh.set_vectors(model.vectors.table.detach().cpu().numpy())
        return fresh
    return build(model.config, *names, seed)
