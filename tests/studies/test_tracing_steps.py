"""Compact tables from traces: what a study keeps of a model."""

from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from scipy.stats import pearsonr, spearmanr

from heedful.audits.head_shares import tags
from heedful.audits.traces import LOWEST
from heedful.audits.word_means import normalised
from heedful.corpora import Corpus, encode
from heedful.corpora.texts import document_of
from heedful.reproduction.results import Results, Step
from heedful.runs import TABLES, Form
from heedful.runs.steps import TABLE
from heedful.statistics.association import correlated
from heedful.studies.tracing import models, steps
from heedful.studies.tracing.study import STUDY
from heedful.studies.tracing.texts import RANKED, TOGETHER, summaries, sums_of

HEADS, LAYERS = 2, 3
WORDS = ("good", "bad", "film", "the", "was")
PLAN = STUDY.plan("smoke")


def made(texts: int = 30) -> dict[str, pd.DataFrame]:
    """Traces of nobody: shares that sum to one, gradients, cells."""
    rng = np.random.default_rng(2)
    tokens, cells = [], []
    for number in range(texts):
        n = int(rng.integers(1, 8))
        held = rng.dirichlet(np.ones(n), HEADS)
        words = rng.choice(WORDS, n)
        part = pd.DataFrame({f"head_{h}": held[h] for h in range(HEADS)})
        labels = [{"good": 4, "bad": 0}.get(word, 2) for word in words]
        part = part.assign(
            instance=f"t{number}", position=range(n), word=words, length=n, label_of_word=labels,
            lat=held.sum(0), gradient=rng.uniform(0, 1e-3, n),
            gradient_predicted=rng.uniform(0, 1e-3, n), pooling=held[0], averaged=held[1],
            rollout=held[0], top_layer=held[1], even_start=held[0],
            **dict.fromkeys(LOWEST, held[1]),
        )  # fmt: skip
        tokens.append(part)
        for layer in range(1, LAYERS + 1):
            for head in range(HEADS):
                cells.append(
                    {"instance": f"t{number}", "layer": layer, "head": head,
                     "entropy": rng.uniform() if n > 1 else np.nan, "peak": rng.uniform(),
                     "peak_above": rng.uniform(), "lost": 1e-16 * layer}
                )  # fmt: skip
    documents = pd.DataFrame({"instance": [f"t{n}" for n in range(texts)], "label": 1})
    training = pd.DataFrame({"accuracy": [0.5]})
    log = pd.DataFrame({"epoch": [1], "dev_accuracy": [0.5]})
    return {"tokens": pd.concat(tokens, ignore_index=True), "cells": pd.DataFrame(cells),
            "documents": documents, "training": training, "log": log}  # fmt: skip


def step(tables: dict[str, pd.DataFrame]) -> Step:
    return Step("toy/model/0/traces", lambda results: tables, {}, TABLES)


def test_correlations_from_sums_are_those_of_the_tokens() -> None:
    tables = made()
    tokens = tables["tokens"]
    found = summaries(tokens, tables["cells"], tags(tokens))
    one, two = normalised(tokens, "lat"), normalised(tokens, "gradient")
    once = np.ones((1, len(found)))
    ranked = correlated(sums_of(found, RANKED))(once)[0]
    assert ranked == pytest.approx(spearmanr(one, two).statistic)
    given = 1 / tokens["length"]
    rest = [v - np.polyval(np.polyfit(given, v, 1), given) for v in (one, two)]
    partial = correlated(sums_of(found, TOGETHER))(once)[0]
    assert partial == pytest.approx(pearsonr(*rest).statistic)


def test_texts_hold_entropies_gains_losses_and_places() -> None:
    tables = made()
    tokens, cells = tables["tokens"], tables["cells"]
    found = summaries(tokens, cells, tags(tokens)).set_index("instance")
    assert list(found.index) == list(dict.fromkeys(tokens["instance"]))
    first = cells[cells["instance"] == "t3"]
    assert found.loc["t3", "entropy 2"] == pytest.approx(
        first[first["layer"] == 2]["entropy"].mean(), nan_ok=True
    )
    cell = first[(first["layer"] == 3) & (first["head"] == 1)].iloc[0]
    assert found.loc["t3", "gain 3.2"] == pytest.approx(cell["peak"] - cell["peak_above"])
    assert found.loc["t3", "lost"] == 3e-16
    part = tokens[tokens["instance"] == "t3"].reset_index()
    felt = part["label_of_word"].isin([0, 4])
    place = (part["lat"].rank() - 0.5) / len(part)
    assert found.loc["t3", "percentile"] == pytest.approx(place[felt].mean(), nan_ok=True)


def test_the_steps_give_every_score_and_travel_without_the_tokens(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    traces = step(made())
    monkeypatch.setattr(models, "traces", lambda plan, corpus, variant, seed: traces)
    results = Results(tmp_path)
    with monkeypatch.context() as patch:
        patch.setattr(steps, "FILLER", "was")
        word_scores = steps.words(PLAN, "planted", 0)
        words = results[word_scores]
    assert set(steps.SCORES) <= set(words)
    assert "was" not in set(words["word"])
    assert {"count", "inverse length", "lat sd"} <= set(words)
    tokens = results[traces]["tokens"]
    kept = tokens[tokens["word"] != "was"].reset_index(drop=True)
    expected = kept.assign(x=normalised(kept, "lat")).groupby("word")["x"].mean()
    np.testing.assert_allclose(words.set_index("word")["lat"], expected, rtol=1e-6)
    assert (
        results[steps.heads(PLAN, "planted", 0)]["v.pos"].sum() == (tokens["word"] == "good").sum()
    )
    assert len(results[steps.texts(PLAN, "planted", 0)]) == tokens["instance"].nunique()
    assert set(results[models.decisions(PLAN, "planted", "published", 0)]) == {
        "documents",
        "training",
        "log",
    }
    (tmp_path / "toy/model/0/traces.step.json").unlink()  # the traces stayed where they were
    drawing = Results(tmp_path, may_compute=False)
    pd.testing.assert_frame_equal(drawing[word_scores], words)


def test_ratings_are_matched_once_and_come_back_the_same(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    corpus = encode(Corpus("toy", ("a", "b"), {"train": [document_of("d", "Movies bad film", 0)]}))
    form = Form("", lambda folder, value: None, lambda folder: corpus)
    text = Step("toy/corpus", lambda results: corpus, {}, form)
    lexicon = {"movie": 7.0, "bad": 2.0}
    monkeypatch.setattr(steps, "either", lambda plan, corpus: text)
    monkeypatch.setattr(steps, "load_lexicon", lambda name, root: lexicon)
    monkeypatch.setattr(steps, "_own", lambda: lexicon)
    results = Results(tmp_path)
    table = results[steps.ratings(PLAN, "sst")]
    assert {word: one.how for word, one in steps.matches_of(table).items()} == {
        "bad": "exact", "movies": "lemma",
    }  # fmt: skip
    exact = steps.ratings(PLAN, "planted")  # a made corpus has words as they stand in its lexicon
    assert results[exact]["word"].tolist() == ["bad"]


def test_tags_by_rating_need_no_labels(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    traces = step(made())
    known = pd.DataFrame({"word": ["film"], "rating": [8.0]})
    rated = Step("toy/ratings", lambda results: known, {}, TABLE)
    monkeypatch.setattr(models, "traces", lambda plan, corpus, variant, seed: traces)
    monkeypatch.setattr(steps, "ratings", lambda plan, corpus: rated)
    results = Results(tmp_path)
    found = results[steps.heads(PLAN, "narratives", 0)]
    assert found["v.pos"].sum() == (results[traces]["tokens"]["word"] == "film").sum()
    assert found["v.neg"].sum() == 0
