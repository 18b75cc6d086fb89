"""Explanations side by side: which beat a random order, and what is advised."""

from __future__ import annotations

from pathlib import Path

import pytest

from heedful.audits.finding import Finding, Measure
from heedful.audits.randomisation import KEPT
from heedful.audits.ranking import Ranking, rank
from heedful.report import render
from heedful.report.console import print_verdict
from heedful.runs import RunFolder, write_json
from heedful.statistics.estimates import Estimate


def around(value: float, half: float = 0.02) -> Estimate:
    return Estimate(value, value - half, value + half, 200, "bootstrap-t")


def erased(needed: dict[str, float], enough: dict[str, float], half: float = 0.02) -> Finding:
    """Comprehensiveness and sufficiency of each method, as the audit would summarise them."""
    worth = {method: needed[method] - enough[method] for method in needed}
    best = max(worth, key=lambda method: worth[method])
    measures = []
    for name, values in (
        ("comprehensiveness", needed),
        ("sufficiency", enough),
        ("faithfulness", worth),
    ):
        measures += [Measure(name, around(value, half), method) for method, value in values.items()]
        for baseline in dict.fromkeys(("random", "attention", best)):
            measures += [
                Measure(name, around(value - values[baseline], half), f"{method} - {baseline}")
                for method, value in values.items()
                if method != baseline and baseline in values
            ]
    return Finding("input-erasure", "?", "!", tuple(measures), "input_erasure")


NEEDED = {"random": 0.1, "attention": 0.2, "gradient": 0.05, "occlusion": 0.6, "half": 0.35}
ENOUGH = {"random": 0.4, "attention": 0.3, "gradient": 0.5, "occlusion": 0.1, "half": 0.4}


def found(**others: Finding) -> Ranking:
    ranking = rank({"input-erasure": erased(NEEDED, ENOUGH), **others})
    assert ranking is not None
    return ranking


def test_places_go_from_the_best_down_and_random_has_none() -> None:
    ranking = found()
    assert [(p.place, p.method) for p in ranking.places] == [
        (1, "occlusion"), (2, "half"), (3, "attention"), (0, "random"), (4, "gradient"),
    ]  # fmt: skip
    assert [p.standing for p in ranking.places] == [
        "better than random", "better in part", "better than random", "as random",
        "worse than random",
    ]  # fmt: skip


def test_the_sentence_says_where_attention_stands() -> None:
    ranking = found()
    assert ranking.sentence.startswith(
        "2 of 4 explanations of this model are better than a random order"
    )
    place = "Attention is number 3, better than a random order (0.200 [0.180, 0.220] above a"
    assert place in ranking.sentence
    assert "behind occlusion" in ranking.sentence
    assert ranking.recommendation.startswith("Show `occlusion` instead of attention: deleting")
    assert "60\xa0% of probability, those of attention 20\xa0%" in ranking.recommendation
    assert ranking.recommended == "occlusion"


def test_the_ranking_never_says_what_only_the_verdict_may() -> None:
    told = found()
    assert "faithful" not in told.sentence + told.recommendation
    not_enough = "To be better than a random order is not enough to be shown as the reason."
    assert told.sentence.endswith(not_enough)
    allowed = rank({"input-erasure": erased(NEEDED, ENOUGH)}, may_show=True)
    assert allowed is not None
    assert not_enough not in allowed.sentence


def test_the_sentence_says_when_the_costly_explanation_was_not_tried() -> None:
    without = [{k: v for k, v in kind.items() if k != "occlusion"} for kind in (NEEDED, ENOUGH)]
    ranking = rank({"input-erasure": erased(*without)})
    assert ranking is not None
    assert "Occlusion, which reads a text again for every word, was not tried." in ranking.sentence
    assert "was not tried" not in found().sentence


def test_what_is_not_clearly_worse_than_the_best_is_as_good() -> None:
    close = NEEDED | {"half": 0.88}
    ranking = rank({"input-erasure": erased(close, ENOUGH, half=0.05)})
    assert ranking is not None
    assert [p.is_best for p in ranking.places[:3]] == [True, True, False]
    assert "`half` does about as well" in ranking.recommendation
    tied = rank({"input-erasure": erased(NEEDED | {"attention": 0.79}, ENOUGH)})
    assert tied is not None
    assert "No other explanation" in tied.recommendation
    assert tied.recommended == ""  # the verdict forbids attention, and nothing is clearly better


def test_chance_is_recommended_to_nobody() -> None:
    flat = dict.fromkeys(NEEDED, 0.1)
    ranking = rank({"input-erasure": erased(flat, dict.fromkeys(NEEDED, 0.1))})
    assert ranking is not None
    assert ranking.recommendation.startswith("Show none of them")
    assert ranking.sentence.startswith("0 of 4")
    small = {method: value / 1000 for method, value in NEEDED.items()}
    little = rank({"input-erasure": erased(small, dict.fromkeys(NEEDED, 0.0), half=1e-6)})
    assert little is not None
    assert "hardly loses any probability" in little.recommendation


def test_an_explanation_that_does_not_read_the_weights_is_recommended_with_caution() -> None:
    kept = Finding("randomisation", "?", "!", (Measure(KEPT, around(0.9), "occlusion"),), "")
    ranking = found(randomisation=kept)
    assert "But `occlusion` ranks words much the same" in ranking.recommendation
    place = ranking.of("occlusion")
    assert place is not None
    assert place.beside[KEPT].value == 0.9


def test_without_deleted_words_there_is_no_ranking() -> None:
    assert rank({}) is None
    only = erased({"random": 0.1}, {"random": 0.2})
    assert rank({"input-erasure": only}) is None


def test_the_terminal_lists_every_explanation(capsys: pytest.CaptureFixture[str]) -> None:
    verdict = {
        "word": "no", "provisional": False, "sentence": "No.", "tests": [], "advice": [],
        "ranking": found().to_json(),
    }  # fmt: skip
    print_verdict(verdict, 200, "page.html")
    shown = capsys.readouterr().out
    assert "1  ▲  occlusion" in shown
    assert not set("✓✗") & set(shown.splitlines()[-2])  # marks of the tests behind the verdict
    assert "0.500 [0.480, 0.520]" in shown
    assert "4  ▼  gradient" in shown
    assert "→ Show `occlusion`" in shown


def test_the_page_lists_every_explanation_and_escapes_names(tmp_path: Path) -> None:
    run = RunFolder.create(tmp_path / "run", {"kind": "audit", "recipe": "r", "corpus": "c"})
    evil = "<b>occlusion</b>"
    needed, enough = (
        {evil if m == "half" else m: v for m, v in x.items()} for x in (NEEDED, ENOUGH)
    )
    ranking = rank({"input-erasure": erased(needed, enough)})
    assert ranking is not None
    verdict = {"word": "no", "sentence": "No.", "advice": [ranking.recommendation]}
    write_json(run.findings / "verdict.json", verdict | {"ranking": ranking.to_json()})
    page = render(run.path).read_text()
    assert "The ways to explain this model, best first" in page
    assert "&lt;b&gt;occlusion&lt;/b&gt;" in page
    assert evil not in page
    assert page.count("Show <code>occlusion</code> instead of attention") == 1  # not said twice
    assert "worse than random" in page
    assert "−0.45<small>[−0.47, −0.43]</small>" in page
    assert page.count(">recommended<") == 1
