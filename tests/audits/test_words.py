"""The word view names the planted words, and pictures of words are drawn."""

from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import heedful
from heedful.audits import words
from heedful.audits.finding import Finding
from heedful.corpora import EncodedCorpus, encode, planted
from heedful.dynamics import FlowLog
from heedful.jobs.settings import settings_of
from heedful.models import AttentionClassifier, build, parse
from heedful.report.panels import growth
from heedful.training import TrainConfig, fit
from tests.tiny import classifier

SIZES = {"train": 400, "dev": 60, "test": 80}


@pytest.fixture(scope="module")
def corpus() -> EncodedCorpus:
    return encode(planted(2, "short", sizes=SIZES))


@pytest.fixture(scope="module")
def log() -> FlowLog:
    return FlowLog(["wonderful", "the"])


@pytest.fixture(scope="module")
def model(corpus: EncodedCorpus, log: FlowLog) -> AttentionClassifier:
    """DP after a few epochs, its flow logged."""
    config = parse("none+scaled-dot@10", embedding_dim=16, one_logit=True, head_bias=False).model
    found = build(config, corpus.vocabulary, corpus.classes)
    fit(found, corpus, TrainConfig(epochs=4, learning_rate=0.02), observers=[log])
    return found.eval()


def test_the_view_finds_the_words_that_carry_the_label(
    model: AttentionClassifier, corpus: EncodedCorpus
) -> None:
    table = words.table(model, corpus, corpus.splits["test"])
    assert len(table) == len(corpus.vocabulary) - 5
    finding = words.summarise(table, corpus.classes)
    again = Finding.from_json(finding.to_json())
    assert again.answer == finding.answer
    signs = finding.get("class words with the sign of their class")
    assert signs is not None
    assert signs.low > 0.8
    apart = finding.get("AUC of scores, class words against neutral words")
    assert apart is not None
    assert 0 <= apart.value <= 1
    assert set(finding.drawn["named"]) <= set(finding.drawn["points"]["word"])
    tied = table[table["class"] == "positive"]
    assert (tied["association"] > 0.5).all()
    assert (tied["times"] > 5).all()


def test_a_class_without_words_is_named_and_little_text_is_no_crash(
    model: AttentionClassifier, corpus: EncodedCorpus
) -> None:
    table = words.table(model, corpus, corpus.splits["test"])
    none = table.assign(**{"class": np.where(table["class"] == "positive", "", table["class"])})
    finding = words.summarise(none, corpus.classes)
    assert any("'positive'" in note for note in finding.notes)
    rare = words.summarise(table.assign(times=1), corpus.classes)
    assert rare.answer.startswith("Nothing could be measured")
    # Without training texts the audited ones are counted.
    bare = EncodedCorpus(
        corpus.name, corpus.classes, corpus.vocabulary, {"test": corpus.splits["test"]}, "", {}
    )
    counted = words.table(model, bare, corpus.splits["test"])
    assert set(counted["counted in"]) == {"audited"}
    assert counted["times"].sum() < table["times"].sum()


def test_only_flat_models_have_words() -> None:
    assert words.has_words(classifier("bilstm+additive"))
    assert not words.has_words(classifier("han:none+dot"))


@pytest.mark.slow
def test_every_report_of_a_flat_model_shows_its_words(tmp_path: Path) -> None:
    small = settings_of({"train": {"epochs": 1}, "model": {"embedding_dim": 8, "width": 8}})
    corpus = planted(3, "short", sizes={"train": 100, "dev": 20, "test": 30})
    audited = heedful.audit(
        "lstm+additive", corpus, tmp_path / "run", settings=small, audits=["concentration"]
    )
    assert set(audited.findings) == {"concentration", "words"}
    assert "Which words does the model attend to" in audited.report.read_text()
    table = pd.read_parquet(tmp_path / "run/findings/words.parquet")
    assert {"word", "score", "weight", "towards"} <= set(table.columns)
    assert (tmp_path / "run/figures/words.svg").is_file()


def test_growth_has_a_line_for_every_term(model: AttentionClassifier, log: FlowLog) -> None:
    table = log.table()
    assert len(table) == 8
    figure = growth(table)
    panels = figure.get_axes()
    assert len(panels) == 8
    assert len(panels[1].get_lines()) == 1 + 3  # zero, and A, B, C
    grown = table[table["word"] == "wonderful"]["polarity"]
    assert grown.iloc[-1] > grown.iloc[0]
