"""Agreement of a translator's attention with an alignment."""

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
import torch

from heedful.audits import AUDITS
from heedful.audits.alignment import (
    BASELINES,
    BEYOND,
    CHANCE,
    DIAGONAL,
    HIT,
    MOST,
    ON_MARKS,
    SAME,
    outcome,
    with_links,
)
from heedful.audits.finding import Finding
from heedful.corpora.pairs import PairSide, PairSplit, collate_pairs
from heedful.importance import explain
from heedful.models import read
from heedful.models.translator import TranslatorConfig, build_translator
from heedful.statistics import proportion

LINKS = (((1, 0), (2, 1)), ((1, 0), (2, 0)))
"""Source units count the start symbol; the second pair's first word has two links."""


@pytest.fixture
def reading():
    split = PairSplit(
        PairSide.of([[5, 6, 7], [8, 9]]), PairSide.of([[5, 6], [9]]), ("a", "b"), ("x y", "z")
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
    assert list(table.index) == ["a:0", "a:1", "b:0"]  # the end of an output is no piece
    for name, attention, links, mask in zip(
        found.names, found.attention, aligned.evidence, found.mask, strict=True
    ):
        if name not in table.index:
            continue
        assert table.loc[name, "hit"] == float(links[attention.argmax()])
        assert table.loc[name, "mass"] == pytest.approx(float(attention[links].sum()))
        assert table.loc[name, CHANCE] == pytest.approx(float(links.sum() / (mask.sum() - 2)))
        is_mark = attention.argmax() in (0, mask.sum() - 1)
        assert table.loc[name, "mark"] == float(is_mark)


def test_even_attention_loses_what_lies_on_the_marks(reading):
    model, found = reading
    aligned = with_links(found, LINKS)
    even = aligned.mask.double() / aligned.mask.sum(-1, keepdim=True)
    table = AUDITS["alignment"].rows(model, aligned, {"attention": even}, 0)
    # Three pieces between two marks, and two.
    lost = [table[CHANCE][0] * 3 / 5, table[CHANCE][1] * 3 / 5, table[CHANCE][2] * 2 / 4]
    assert table["hit"].tolist() == pytest.approx(lost)
    assert table["mass"].tolist() == pytest.approx(lost)
    assert table["mark"].tolist() == pytest.approx([2 / 5, 2 / 5, 2 / 4])


def test_even_attention_has_no_top_piece_and_says_so(reading):
    model, found = reading
    aligned = with_links(found, LINKS)
    even = aligned.mask.double() / aligned.mask.sum(-1, keepdim=True)
    for importance, is_tied in ((even, True), (aligned.attention, False)):
        table = AUDITS["alignment"].rows(model, aligned, {"attention": importance}, 0)
        finding = AUDITS["alignment"].summarise(table)
        assert ("largest on several units at once" in finding.answer) == is_tied
        assert ("the piece with most attention" in finding.answer) != is_tied
        assert ("Attention is largest on <s>" in finding.notes[-1]) != is_tied


def test_attention_that_only_avoids_the_marks_is_at_chance(reading):
    model, found = reading
    aligned = with_links(found, LINKS)
    inside = aligned.mask & (aligned.batch.ids > 4)
    table = AUDITS["alignment"].rows(model, aligned, {"attention": inside.double()}, 0)
    assert table["hit"].tolist() == pytest.approx(table[CHANCE].tolist())
    assert table["mass"].tolist() == pytest.approx(table[CHANCE].tolist())
    assert not table["mark"].any()


def test_attention_on_a_mark_is_never_aligned(reading):
    model, found = reading
    aligned = with_links(found, (((0, 0), (4, 1)), ((1, 0),)))  # links to marks are none
    first = torch.zeros_like(aligned.attention)
    first[:, 0] = 1
    table = AUDITS["alignment"].rows(model, aligned, {"attention": first}, 0)
    assert table["links"].tolist() == [0, 0, 1]
    assert table["hit"].dropna().tolist() == [0.0]
    finding = AUDITS["alignment"].summarise(table)
    assert finding.get(ON_MARKS, "attention").value == 1
    assert "2 of 3 output pieces have no aligned source piece" in finding.notes[0]
    assert "largest on <s> or </s> for 100\xa0%" in finding.notes[1]


def _baselines(sources, targets):
    """What positions alone choose, with a link from every output piece to one source piece."""
    split = PairSplit(
        PairSide.of([list(range(5, 5 + n)) for n in sources]),
        PairSide.of([list(range(5, 5 + n)) for n in targets]),
        tuple(map(str, sources)), ("",) * len(sources),
    )  # fmt: skip
    model = build_translator(TranslatorConfig(30, 8, 8, 1, dropout=0.0))
    found = read(model, collate_pairs(split, range(len(sources))))
    chosen = {SAME: [], DIAGONAL: []}
    for unit in range(max(sources)):
        links = [tuple((unit + 1, step) for step in range(n)) for n in targets]
        table = AUDITS["alignment"].rows(
            model, with_links(found, links), {"attention": found.attention}, 0
        )
        for name, places in chosen.items():
            places += [(one, unit) for one in table["instance"][table[name] == 1]]
    return {name: [unit for _, unit in sorted(places)] for name, places in chosen.items()}


def test_positions_are_those_counted_by_hand():
    found = _baselines([3], [6])
    assert found[SAME] == [0, 1, 2, 2, 2, 2]
    assert found[DIAGONAL] == [0, 0, 1, 1, 2, 2]
    found = _baselines([6], [3])
    assert found[SAME] == [0, 1, 2]
    assert found[DIAGONAL] == [1, 3, 5]
    found = _baselines([4], [4])
    assert found[SAME] == found[DIAGONAL] == [0, 1, 2, 3]
    assert _baselines([5], [1])[DIAGONAL] == [2]


def test_the_finding_tells_hits_beside_chance(reading):
    model, found = reading
    aligned = with_links(found, LINKS)
    audit = AUDITS["alignment"]
    table = audit.rows(model, aligned, explain(model, aligned, ["attention"]), 0)
    finding = audit.summarise(table)
    assert finding.get(HIT, CHANCE).value == pytest.approx((1 / 3 + 1 / 3 + 1) / 3)
    assert finding.get(HIT, SAME).value == 1
    assert finding.get(HIT, DIAGONAL).value == pytest.approx(2 / 3)  # of two pieces into three
    assert "output pieces" in finding.answer
    assert set(table["sentence"]) == {"a", "b"}
    assert "left out" not in finding.notes[0]  # the ends are not counted as pieces without links


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
            "mark": 0.0,
            "tied": 0.0,
            CHANCE: 0.1,
            SAME: 0.2,
            DIAGONAL: 0.2,
        }
    )
    found = AUDITS["alignment"].summarise(rows).get(HIT, "attention")
    alone = proportion(sentences // 2, sentences)  # what the words add is nothing
    assert found.value == 0.5
    assert found.n == sentences
    assert found.high - found.low == pytest.approx(alone.high - alone.low, rel=0.15)


def test_without_links_there_is_nothing_to_measure(reading):
    model, found = reading
    audit = AUDITS["alignment"]
    assert not len(audit.rows(model, found, {"attention": found.attention}, 0))
    assert "Nothing could be measured" in audit.summarise(audit.rows(model, found, {}, 0)).answer


def _found(hit, diagonal, chance=0.1):
    """A finding over 60 sentences of ten pieces."""
    rng = np.random.default_rng(0)
    sentences, words = 60, 10

    def drawn(share):
        return (rng.random(sentences * words) < share).astype(float)

    rows = pd.DataFrame(
        {
            "instance": [f"{s}:{t}" for s in range(sentences) for t in range(words)],
            "sentence": np.repeat(np.arange(sentences).astype(str), words),
            "ranking": "attention",
            "links": 1,
            "hit": drawn(hit),
            "mass": 0.5,
            "mark": 0.0,
            "tied": 0.0,
            CHANCE: chance,
            SAME: drawn(0.2),
            DIAGONAL: drawn(diagonal),
        }
    )
    return AUDITS["alignment"].summarise(rows)


@pytest.mark.parametrize(
    ("hit", "diagonal", "wanted"),
    [
        (0.8, 0.35, "yes"),
        (0.4, 0.25, "partly"),
        (0.51, 0.25, "partly"),  # above a half, but not surely
        (0.23, 0.37, "no"),  # beyond chance, yet behind the diagonal
        (0.37, 0.37, "no"),
        (0.8, 0.9, "no"),
    ],
)
def test_the_answer_is_yes_partly_or_no(hit, diagonal, wanted):
    finding = _found(hit, diagonal)
    assert outcome(finding) == wanted
    assert finding.answer.startswith(wanted.capitalize() + ": ")
    assert "\n" not in finding.answer
    assert finding.answer.count(".") == 1  # one sentence
    assert DIAGONAL in finding.answer  # the best baseline
    beats_all = all(finding.get(BEYOND, name).side(0) == "above" for name in BASELINES)
    assert beats_all == (wanted != "no")
    is_most = finding.get(HIT, "attention").side(MOST) == "above"
    assert (beats_all and is_most) == (wanted == "yes")


def test_a_lost_comparison_is_told_apart_from_an_open_one():
    assert "less often than the diagonal" in _found(0.23, 0.37).answer
    assert "not surely more often than the diagonal" in _found(0.42, 0.37).answer


def test_the_finding_survives_json_and_parquet(reading, tmp_path):
    model, found = reading
    audit = AUDITS["alignment"]
    table = audit.rows(model, with_links(found, LINKS), {"attention": found.attention}, 0)
    finding = audit.summarise(table)
    keys = [(measure.name, measure.method) for measure in finding.measures]
    assert len(set(keys)) == len(keys)
    table.to_parquet(tmp_path / "rows.parquet")
    again = audit.summarise(pd.read_parquet(tmp_path / "rows.parquet"))
    assert repr(again.to_json()) == repr(finding.to_json())  # nan equals nan in words
    assert repr(Finding.from_json(finding.to_json())) == repr(finding)


def test_rows_do_not_depend_on_batches_or_padding():
    model = build_translator(TranslatorConfig(12, 8, 8, 1, dropout=0.0))
    split = PairSplit(
        PairSide.of([[5, 6, 7], [8, 9]]), PairSide.of([[5, 6], [9]]), ("a", "b"), ("x y", "z")
    )

    def rows(numbers):
        here = with_links(read(model, collate_pairs(split, numbers)), [LINKS[n] for n in numbers])
        return AUDITS["alignment"].rows(model, here, {"attention": here.attention}, 0)

    apart = pd.concat([rows([1]), rows([0])], ignore_index=True)
    together = rows([1, 0])
    assert set(together["instance"]) == {"a:0", "a:1", "b:0"}
    pd.testing.assert_frame_equal(apart, together, rtol=1e-6)


def test_a_classifiers_document_has_no_rows(reading):
    model, found = reading
    document = replace(with_links(found, LINKS), shared=None)
    assert not len(AUDITS["alignment"].rows(model, document, {"attention": found.attention}, 0))
