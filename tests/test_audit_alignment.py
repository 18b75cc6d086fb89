"""Agreement of a translator's attention with an alignment."""

import numpy as np
import pandas as pd
import pytest
import torch

from heedful.audits import AUDITS
from heedful.audits.alignment import CHANCE, with_links
from heedful.corpora.pairs import PairSplit, Side, collate_pairs
from heedful.importance import explain
from heedful.models import read
from heedful.models.translator import TranslatorConfig, build_translator
from heedful.statistics import proportion

LINKS = (((1, 0), (2, 1)), ((1, 0), (2, 0)))
"""Source units count the start symbol; the second pair's first word has two links."""


@pytest.fixture
def reading():
    split = PairSplit(
        Side.of([[5, 6, 7], [8, 9]]), Side.of([[5, 6], [9]]), ("a", "b"), ("x y", "z")
    )
    model = build_translator(TranslatorConfig(12, 8, 8, 1, dropout=0.0))
    return model, read(model, collate_pairs(split, [0, 1]))


def test_links_become_the_evidence_of_output_words(reading):
    _, found = reading
    marked = with_links(found, LINKS).evidence
    by_name = dict(zip(found.names, marked.tolist(), strict=True))
    assert by_name["a:0"] == [False, True, False, False, False]
    assert by_name["a:1"] == [False, False, True, False, False]
    assert by_name["a:2"] == [False] * 5  # the end has no link
    assert by_name["b:0"] == [False, True, True, False, False]


def test_hits_mass_and_chance_are_counted_by_hand(reading):
    model, found = reading
    aligned = with_links(found, LINKS)
    table = AUDITS["alignment"].rows(model, aligned, explain(model, aligned, ["attention"]), 0)
    table = table.set_index("instance")
    for name, attention, links, mask in zip(
        found.names, found.attention, aligned.evidence, found.mask, strict=True
    ):
        if not links.any():
            assert torch.isnan(torch.tensor(table.loc[name, "hit"]))
            continue
        assert table.loc[name, "hit"] == float(links[attention.argmax()])
        assert table.loc[name, "mass"] == pytest.approx(float(attention[links].sum()))
        assert table.loc[name, "chance"] == pytest.approx(float(links.sum() / mask.sum()))


def test_even_attention_hits_as_often_as_chance(reading):
    model, found = reading
    aligned = with_links(found, LINKS)
    even = aligned.mask.double() / aligned.mask.sum(-1, keepdim=True)
    table = AUDITS["alignment"].rows(model, aligned, {"attention": even}, 0)
    table = table[table["links"] > 0]
    assert table["hit"].tolist() == pytest.approx(table["chance"].tolist())
    assert table["mass"].tolist() == pytest.approx(table["chance"].tolist())


def test_the_finding_tells_hits_beside_chance(reading):
    model, found = reading
    aligned = with_links(found, LINKS)
    audit = AUDITS["alignment"]
    table = audit.rows(model, aligned, explain(model, aligned, ["attention", "random"]), 0)
    finding = audit.summarise(table)
    assert finding.get("top unit is aligned", CHANCE).value == pytest.approx((0.2 + 0.2 + 0.5) / 3)
    assert "output words" in finding.answer
    assert set(table["sentence"]) == {"a", "b"}
    assert "have no aligned source word" in finding.notes[0]


def test_words_are_resampled_with_their_sentence():
    sentences, words = 60, 12
    is_hit = np.arange(sentences) % 2 == 0  # all words of a sentence or none
    rows = pd.DataFrame(
        {
            "instance": [f"{s}:{t}" for s in range(sentences) for t in range(words)],
            "sentence": np.repeat(np.arange(sentences).astype(str), words),
            "ranking": "attention",
            "links": 1,
            "hit": np.repeat(is_hit.astype(float), words),
            "mass": 0.5,
            "chance": 0.1,
        }
    )
    found = AUDITS["alignment"].summarise(rows).get("top unit is aligned", "attention")
    alone = proportion(sentences // 2, sentences)  # what the words add is nothing
    assert found.value == 0.5
    assert found.n == sentences
    assert found.high - found.low == pytest.approx(alone.high - alone.low, rel=0.15)


def test_without_links_there_is_nothing_to_measure(reading):
    model, found = reading
    audit = AUDITS["alignment"]
    assert not len(audit.rows(model, found, {"attention": found.attention}, 0))
    assert "Nothing could be measured" in audit.summarise(audit.rows(model, found, {}, 0)).answer
