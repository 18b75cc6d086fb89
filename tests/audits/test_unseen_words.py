"""Words that no text has are tried, and those that overturn decisions unseen are named."""

import numpy as np

from heedful.audits import exchange
from heedful.audits.exchanges import rows
from heedful.audits.unseen_words import unseen_words
from heedful.audits.verdict import judge
from heedful.calibration.compiled_words import weighing
from heedful.calibration.mechanism import Text, corpus_of
from heedful.calibration.mechanisms import MECHANISMS


def test_a_gate_that_no_text_turns_is_noticed_and_one_that_turns_nothing_is_not() -> None:
    words = {}
    for name in ("a gate that no text turns", "a gate that turns nothing"):
        built = MECHANISMS[name].build(0, 100)
        finding = exchange.summarise(rows(built.model, built.corpus.splits["test"]))
        words[name] = judge({"exchange": finding}, 100)
    noticed = words["a gate that no text turns"]
    assert noticed.word == "cannot tell"
    assert "which none of them has" in noticed.sentence
    assert words["a gate that turns nothing"].word == "yes"


def test_unseen_words_are_those_of_the_vocabulary_that_no_document_has() -> None:
    corpus = corpus_of(
        lambda rng, label: Text(["good", "table"], label),
        {"test": 2},
        0,
        words=("table", "good", "x"),
    )
    model = weighing(corpus, {}, {"good": [0.0, 1.0]})
    found = unseen_words(model, corpus.splits["test"])
    assert list(found.values()) == ["x"]
    built = MECHANISMS["a gate that turns nothing"].build(0, 20)
    documents = built.corpus.splits["test"]
    there = set(np.unique(documents.ids).tolist())
    assert not there & unseen_words(built.model, documents).keys()
