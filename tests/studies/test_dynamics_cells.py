"""What the dynamics study says of its numbers: digits, asterisks, seeds, ξ that is never passed."""

import re
from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd
import pytest

from heedful.report.figures import page_style
from heedful.reproduction.ledger import NotMeasurable, judge
from heedful.reproduction.results import Results, Skipped
from heedful.reproduction.view import Views
from heedful.statistics import Estimate
from heedful.statistics.seeds import deviation
from heedful.studies.dynamics import corpora, figures, measures, steps, tables
from heedful.studies.dynamics import printed as numbers
from heedful.studies.dynamics.cells import briefly, half_up, span, written
from heedful.studies.dynamics.claims import CLAIMS
from heedful.studies.dynamics.comparisons import CorpusAgreements
from heedful.studies.dynamics.study import STUDY

PLAN = STUDY.plan("paper")
SHORT = PLAN.only(("sms", "sst"))
A7 = next(claim for claim in CLAIMS if claim.id == "DYN-A7")


@pytest.mark.parametrize(
    ("number", "digits", "wanted"),
    [(94.5, 0, 95.0), (92.5, 0, 93.0), (100 * 0.285, 0, 29.0), (-0.5, 0, -1.0), (1.005, 2, 1.01)],
)
def test_a_half_is_rounded_up(number: float, digits: int, wanted: float) -> None:
    assert half_up(number, digits) == wanted


def test_numbers_are_written_with_the_digits_asked_for() -> None:
    assert [written(0.7, 2), written(-0.001, 1), written(np.nan)] == ["0.70", "0.0", "–"]
    assert span([17.0, np.nan, 27.4]) == "17 to 27"


def test_a_cell_has_ours_the_papers_and_both_asterisks() -> None:
    table = pd.DataFrame(
        {
            "corpus": ["ag-news", "yelp"],
            "ξ(α,β)": [94.5, np.nan],
            "ξ(α,β), paper": [94.5, 93.59],
            "ξ*": [96.0, np.nan],
            "A": [17.2, np.nan], "A low": [15.9, np.nan], "A high": [18.1, np.nan],
            "never passed": ["ξ(α,β)", np.nan],
            "never passed, paper": ["ξ(α,βuf)", "ξ(α,β)"],
        }
    )  # fmt: skip
    shown = briefly(table, ["ξ(α,β)", "ξ*", "A", "not measured"], 0, has_intervals=True)
    assert shown.to_numpy().tolist() == [
        ["ag-news", "95* (95)", "96", "17 [16, 18]"],
        ["yelp", "– (94*)", "–", "–"],
    ]


def test_parallel_corpora_have_both_lengths_in_one_cell() -> None:
    table = pd.DataFrame(
        {
            "corpus": ["sst", "multi30k", "iwslt14", "planted-pairs"],
            "length": [19, 13, np.nan, 7], "length, paper": [16, 14, 23, np.nan],
            "of targets": [np.nan, 12, np.nan, 6], "of targets, paper": [np.nan, 15, 24, np.nan],
        }
    )  # fmt: skip
    shown = briefly(table, ["length"], 0, seconds={"length": "of targets"})
    assert shown["length"].tolist() == ["19 (16)", "13 / 12 (14 / 15)", "– / – (23 / 24)", "7 / 6"]


def test_table_2_has_the_papers_rows_and_the_planted_ones() -> None:
    table = next(one for one in tables.TABLES if one.id == "T2")
    assert set(table.corpora or ()) == set(numbers.MAIN["corpus"]) | {"planted", "planted-pairs"}


def test_runs_whose_bleu_is_shown_are_translated_by_a_beam_of_five() -> None:
    """T4, T6 and T8: the runs with attention; nothing shows the BLEU of the uniform ones."""
    runs = steps.runs(PLAN, "multi30k")
    attending = [runs.reference, *runs.comparisons.values()]
    assert {run.step.inputs["beam"] for run in attending} == {5}
    assert {run.step.inputs["beam"] for run in runs.uniforms.values()} == {1}


def test_every_symbol_of_the_columns_is_explained() -> None:
    said = " ".join(numbers.VALIDATION.columns.drop(["corpus", "never passed"]))
    said += " ".join([*numbers.FROZEN, *numbers.LOGISTIC])
    for symbol in set(re.findall(r"[αβ]\w*|Δ|Â|ξ\*", said)):
        assert symbol in STUDY.symbols
    assert all(meaning.endswith(".") for meaning in STUDY.symbols.values())


def test_the_papers_asterisks_are_kept_and_table_2_has_its_own_rows() -> None:
    never = numbers.VALIDATION.set_index("corpus")["never passed"]
    assert set(never[never != ""].index) == {"ag-news", "sst", "amazon"}
    assert set(never[never != ""]) == {"ξ(βuf,βpx)"}
    twice = numbers.TRAINING.set_index("corpus").loc["sst", "never passed"]
    assert twice == "ξ(βuf,βpx); ξ(α,β)"
    # Whole per cents of Table 5, where Table 2 has the row; the others are not invented.
    printed, whole = numbers.MAIN.set_index("corpus"), numbers.VALIDATION.set_index("corpus")
    assert not {"yelp", "amazon", "en-nl", "en-pt"} & set(printed.index)
    rounded = whole.loc[printed.index, list(printed)].map(half_up)
    pd.testing.assert_frame_equal(rounded, printed)


def _made(runs: dict[str, float], documents: int = 400) -> CorpusAgreements:
    """A comparison in which each run's last attention agrees in that share of the documents."""
    arrays = {
        f"top:final attention~attention/{name}": (np.arange(documents) < share * documents)[None]
        for name, share in runs.items()
    }
    return CorpusAgreements(arrays, np.arange(documents), np.array([0]), 0, {})


class _Given(dict[str, CorpusAgreements]):
    """Results that hold the comparisons of these corpora."""

    def __getitem__(self, step: Any) -> CorpusAgreements:
        return super().__getitem__(step.name)

    def each(self, corpora: Any, make: Any) -> Any:
        return {corpus: make(corpus) for corpus in corpora}


def _given(**made: CorpusAgreements) -> Any:
    return _Given({steps.compared(PLAN, corpus).name: found for corpus, found in made.items()})


def test_seeds_that_disagree_widen_the_interval_of_sms() -> None:
    both = {"13": 0.94, "14": 0.1, "15": 0.95, "16": 0.94, "17": 0.1}
    alike = dict.fromkeys(both, 0.4)
    found = measures.seeds_disagree(Views(_given(sms=_made(both), sst=_made(alike)), SHORT))
    assert isinstance(found, dict)
    (told, estimate), *others = found.items()
    assert not others
    assert "0.94, 0.10, 0.95, 0.94, 0.10" in told
    assert isinstance(estimate, Estimate)
    assert estimate.value == pytest.approx(0.4 - np.mean(list(both.values())))
    # Over documents alone it would be ± 0.05 and refute the claim.
    assert estimate.low < -0.4
    assert estimate.high > 0
    # One of five apart: a mean of pairs that share run A does not tell what another run A would.
    one = both | {"14": 0.95}
    found = measures.seeds_disagree(Views(_given(sms=_made(one), sst=_made(alike)), SHORT))
    assert isinstance(found, dict)
    assert next(iter(found.values())).high > 0.2  # type: ignore[union-attr]
    even = measures.seeds_disagree(
        Views(_given(sms=_made(dict.fromkeys(both, 0.6)), sst=_made(alike)), SHORT)
    )
    assert isinstance(even, dict)
    assert next(iter(even.values())).high < 0  # type: ignore[union-attr]


def test_one_column_that_moves_is_enough_and_is_named() -> None:
    spread = {
        "still": [50.0, 51.0, 50.5, 50.2, 50.8, 50.1],
        "moving": [20.0, 60.0, 35.0, 80.0, 5.0],
    }
    found = measures.largest_spread(spread)
    assert found is not None
    name, estimate = found
    assert name == "moving"
    assert estimate.value == pytest.approx(np.std(spread["moving"], ddof=1))
    alone = deviation(spread["moving"])
    assert estimate.low < alone.low < alone.high < estimate.high  # looked for among two
    judged = judge(measures._moved(spread), A7.side)
    assert judged.word == "confirmed"
    assert "moving (5.0 to 80.0)" in judged.reason
    assert measures.largest_spread({"alone": [1.0]}) is None
    assert isinstance(measures._moved({"alone": [1.0]}), NotMeasurable)


def test_the_largest_of_equal_spreads_is_not_confirmed_by_luck() -> None:
    generator = np.random.default_rng(0)
    wrong = 0
    for _ in range(400):
        spread = {str(n): generator.normal(50, 6.9, 5).tolist() for n in range(5)}
        wrong += judge(measures._moved(spread), A7.side).word == "confirmed"
    assert wrong <= 20  # 5 %; with each one's own interval it would be about 45


def _f2(passed: bool) -> pd.DataFrame:
    rows = [
        {"corpus": corpus, "step": step, "curve": curve, figures.BOTH: 0.5}
        for corpus in ("imdb", "ag-news")
        for curve in ("agreement with run A", "performance", "A(α,βuf)")
        for step in (0, 10)
    ]
    for corpus in ("imdb", "ag-news") if passed else ("imdb",):
        xi = {"corpus": corpus, "step": 10, "curve": "ξ"}
        rows += [xi | {figures.BOTH: value} for value in (0.4, 0.6)]
    return pd.DataFrame(rows)


def _titles(table: pd.DataFrame) -> list[str]:
    with page_style("test"):
        return [axes.get_title("left") for axes in figures.contextualised(table).axes]


def test_a_panel_without_a_crossing_says_so_and_has_no_line() -> None:
    assert _titles(_f2(passed=True)) == ["imdb", "ag-news"]
    assert _titles(_f2(passed=False)) == ["imdb", "ag-news: ξ never passed"]


def test_the_first_figure_draws_no_crossing_where_there_is_none() -> None:
    documents = np.arange(40)
    always, half = np.ones((2, 40), bool), np.repeat([documents < 20], 2, axis=0)
    arrays = {
        "top:attention~uniform": always, "top:attention~attention/13": half,
        "correct:reference": half, "correct:13": half,
    }  # fmt: skip
    never = CorpusAgreements(
        arrays, documents, np.array([0, 10]), 1,
        {"reference": np.array([0.5, 0.6]), "13": np.array([0.5, 0.5])},
    )  # fmt: skip
    passed = replace(never, arrays=arrays | {"top:attention~uniform": np.zeros((2, 40), bool)})
    for found, has_line in ((never, False), (passed, True)):
        made = figures._contextualised(Views(_given(imdb=found), PLAN.only(("imdb",))))
        assert made.table is not None
        assert ("ξ" in set(made.table["curve"])) == has_line
        assert ("never passes" in made.sentence) != has_line
        assert ("vertical line" in made.sentence) == has_line
        assert ("A(α,βuf) is 0 per cent" in made.sentence) == has_line
        assert ("imdb 50 (step 0)" in made.sentence) == has_line


def test_absent_corpora_say_where_they_come_from_and_keep_their_keys(
    tmp_path: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("HEEDFUL_DATA", raising=False)
    results = Results(tmp_path, may_compute=False)
    for corpus, word in (("yelp", "Zhang"), ("iwslt14", "IWSLT"), ("en-pt", "OPUS")):
        wanted = steps.compared(PLAN, corpus)
        results.finish([wanted])
        with pytest.raises(Skipped, match=f"data absent: .*{word}"):
            results[wanted]
    at_hand = corpora.text(PLAN, "yelp")
    assert replace(at_hand, absent="").key == at_hand.key
    (tmp_path / "yelp_full").mkdir()
    (tmp_path / "yelp_full" / "train.csv").touch()
    assert corpora.text(STUDY.plan("paper", data_root=tmp_path), "yelp").absent == ""


def test_sizes_that_differ_are_told() -> None:
    sizes = pd.DataFrame(
        {"corpus": ["sms", "imdb"], "train": [4738, 100], "val": [836, 50],
         "train-length": [15, 20], "vocabulary": [2654, 10]}
    )  # fmt: skip
    printed = {"train": [3500.0, 100], "val": [np.nan, 50], "train-length": [13.0, 20]}
    printed["vocabulary"] = [4691.0, 10]
    for name, values in printed.items():
        sizes[f"{name}, paper"] = values
        sizes[f"{name}, difference"] = sizes[name] - sizes[f"{name}, paper"]
    (told,) = tables._differing(sizes)
    assert told.startswith("sms has 4,738 training texts (3,500), 15 words")
    assert "2,654 words in the vocabulary (4,691)" in told


def test_a_curve_that_does_not_rise_is_named_and_not_counted() -> None:
    halves = pd.DataFrame(
        {"probe": {"imdb": 100, "sst": None}, "attention": {"imdb": 150, "sst": 10}}
    )
    said = figures._order_told(halves)
    assert "at step 100" in said
    assert "later one on 1 of 1 corpora" in said
    assert said.endswith("A curve does not rise on sst.")
    assert figures._order_told(halves.loc[["sst"]]) == "A curve does not rise on sst."
