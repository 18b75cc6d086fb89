"""Ratings of words: matching, the U over them, and the controls that can take it away."""

import builtins
import re
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from heedful.audits.finding import Finding
from heedful.audits.lexicon import LEAST_WORDS, arms, bend, rated, regressions, summarise
from heedful.corpora.lexicon import Match, match, read_lexicon, read_ratings
from heedful.errors import InputError
from heedful.report.charts import draw
from heedful.statistics.regression import SQUARE


def words(n: int = 400, bend: float = 0.004, noise: float = 0.01) -> pd.DataFrame:
    """Word averages with a U of that strength."""
    rng = np.random.default_rng(5)
    rating = rng.uniform(1.3, 8.5, n)
    inverse = rng.uniform(0.03, 0.1, n)
    ratio = 1 + 8 * bend * (rating - 5) ** 2 + rng.normal(0, 10 * noise, n)
    return pd.DataFrame(
        {
            "word": [f"w{i}" for i in range(n)],
            "count": rng.integers(2, 30, n),
            "rating": rating,
            "entry": [f"w{i // 2}" for i in range(n)],
            "how": np.where(np.arange(n) % 4, "exact", "lemma"),
            "inverse length": inverse,
            "softmax": inverse * ratio,
            "ratio": ratio,
            "gradient": inverse + rng.normal(0, noise / 10, n),
        }
    )


def test_words_are_matched_as_they_stand_and_by_their_lemma() -> None:
    lexicon = {"movie": 7.0, "bad": 2.0, "be": 5.0, "TV": 6.0, "true": 7.5}
    found = match(["movies", "Bad", "bad", "is", "tv", "TRUE", "qwx"], lexicon)
    assert found["movies"] == Match("movie", 7.0, "lemma")
    assert found["Bad"] == found["bad"] == Match("bad", 2.0, "exact")
    assert found["is"].entry == "be"
    assert found["TRUE"].rating == 7.5
    assert "tv" not in found  # entries that kept their capitals have a twin without
    assert "qwx" not in found
    assert set(match(["movies", "bad"], lexicon, has_lemmas=False)) == {"bad"}


def test_exact_matching_needs_no_package(monkeypatch: pytest.MonkeyPatch) -> None:
    real = builtins.__import__

    def without(name: str, *rest: Any) -> Any:
        if name == "simplemma":
            raise ImportError(name)
        return real(name, *rest)

    monkeypatch.setattr(builtins, "__import__", without)
    assert match(["bad"], {"bad": 2.0}, has_lemmas=False)["bad"].rating == 2.0
    with pytest.raises(InputError, match=r"simplemma .*--no-lemmas matches words as they stand"):
        match(["bad"], {"bad": 2.0})


def test_spreadsheet_damage_and_endings_are_read(tmp_path: Path) -> None:
    file = tmp_path / "damaged.csv"
    file.write_bytes(b"aardvark,6.26\rTRUE,7.51\rFALSE,3.27\rTV,5.6\rtv,6.2\rCoke,5.0\r")
    found = read_lexicon(file)
    assert found["aardvark"] == 6.26  # the first row is no header
    assert (found["true"], found["false"], found["coke"]) == (7.51, 3.27, 5.0)
    assert match(["TV", "tv"], found, has_lemmas=False)["TV"].rating == 6.2
    file.write_text("good,nan,1\n")
    with pytest.raises(InputError, match="line 1: expected a word and a number"):
        read_lexicon(file)


def test_too_few_words_and_constant_ratings_say_what_is_needed() -> None:
    table = words(LEAST_WORDS)[["word", "count", "softmax", "ratio", "inverse length"]]
    matches = {f"w{i}": Match(f"w{i}", i % 9, "exact") for i in range(LEAST_WORDS)}
    assert len(rated(table, matches)) == LEAST_WORDS
    few = dict(list(matches.items())[:7])
    with pytest.raises(InputError, match=f"rates 7 of the words .* at least {LEAST_WORDS} are"):
        rated(table, few)
    same = {word: Match(word, 5.0, "exact") for word in matches}
    with pytest.raises(InputError, match="1 different ratings; a U needs at least 3"):
        rated(table, same)
    once = table.assign(count=1)
    with pytest.raises(InputError, match="rates 0 of the words seen 2 times"):
        rated(once, matches)


def test_a_u_is_found_and_survives_its_controls() -> None:
    table = words()
    flat = table.assign(softmax=table["inverse length"], ratio=1.0)
    finding = summarise(table, "attention", untrained=flat)
    assert finding.answer.startswith("Yes: words rated low and words rated high get more attention")
    assert finding.get("b2", "attention").low > 0  # type: ignore[union-attr]
    assert finding.get("b2", "attention - untrained model").low > 0  # type: ignore[union-attr]
    shuffled = finding.get("b2", "shuffled ratings")
    assert shuffled is not None
    assert shuffled.low < 0 < shuffled.high
    assert Finding.from_json(finding.to_json()) == finding
    assert draw(finding).startswith("<svg")


def test_no_bend_is_no() -> None:
    assert summarise(words(bend=0.0), "attention").answer.startswith("No: attention does not rise")


def test_a_bend_that_length_makes_is_told() -> None:
    """Words of extreme ratings stand in short texts; importance itself is even."""
    table = words(bend=0.0, noise=1e-4)
    inverse = 0.05 + 0.004 * (table["rating"] - 5) ** 2
    table = table.assign(softmax=inverse * table["ratio"], **{"inverse length": inverse})
    answer = summarise(table, "attention").answer
    assert answer.startswith("Partly")
    assert "length of texts" in answer
    assert "counted in even shares the rise goes away" in answer


def test_an_untrained_model_with_the_same_bend_is_told() -> None:
    table = words()
    assert "untrained model shows it too" in summarise(table, "attention", table).answer


def test_a_slope_with_a_bend_is_not_called_a_u() -> None:
    table = words(bend=0.0)
    softmax = 0.05 + 0.02 * np.maximum(5 - table["rating"], 0) * table["ratio"]
    answer = summarise(table.assign(softmax=softmax, ratio=softmax), "attention").answer
    assert "towards one end only" in answer
    assert "words with low ratings get more" in answer


def test_the_rows_beside_the_published_fit() -> None:
    table = words()
    found = regressions(table, "softmax")
    assert found["exact matches only"].n == 300
    assert found["with mean 1/N"].df == found["as published"].df - 1
    assert found["HC3"].term(SQUARE).b == pytest.approx(found["as published"].term(SQUARE).b)
    assert bend(table, "softmax").value == pytest.approx(found["as published"].term(SQUARE).b)
    assert bend(table, "softmax", is_standardised=True).value == pytest.approx(
        found["as published"].term(SQUARE).t
    )
    left, right = arms(table, "softmax", 5.0)
    assert left.value < 0 < right.value


def test_forms_of_one_entry_are_drawn_together() -> None:
    """Twins carry no news: doubling every word must not shrink the interval."""
    table = words(200).assign(entry=[f"e{i}" for i in range(200)])
    twice = pd.concat([table, table], ignore_index=True)
    once, double = bend(table, "softmax").estimate(), bend(twice, "softmax").estimate()
    # b2 itself grows with the square root of the number of words.
    assert double.value == pytest.approx(np.sqrt(2) * once.value)
    assert double.high - double.low == pytest.approx(np.sqrt(2) * (once.high - once.low), rel=0.02)


def test_the_numbers_of_the_answer_are_means_of_thirds() -> None:
    table = words(301)
    answer = summarise(table, "attention").answer
    ordered = table.sort_values("rating")
    cut = table["rating"].quantile([1 / 3, 2 / 3]).to_numpy()
    groups = np.split(ordered["ratio"].to_numpy(), np.searchsorted(ordered["rating"], cut))
    said = re.findall(r"(\d\.\d+) \[", answer)
    assert [float(number) for number in said] == pytest.approx(
        [group.mean() for group in groups], abs=5e-3
    )
    assert "301 words" in answer


def test_a_word_listed_twice_and_vaders_own_format_are_read(tmp_path: Path) -> None:
    file = tmp_path / "vader.txt"
    file.write_text(
        ':"(\t-1.9\t0.53852\t[-2, -2, -1, -3, -2, -1, -2, -2, -2, -2]\n'
        "abandon\t-1.9\t0.53852\t[-2, -2, -2, -2, -2, -3, -2, -1, -2, -1]\n"
        "warmth\t2.0\t0.4\t[2, 2]\nwarmth\t1.0\t0.4\t[1, 1]\n"
    )
    found = read_ratings(file)
    assert found.words == {':"(': -1.9, "abandon": -1.9, "warmth": 1.5}
    assert found.said == ("Listed more than once, so that the mean was taken: warmth (1 in all).",)
    file.write_text("word,valence,arousal\ngood,7.5,3\nbad,2.5,5\n")
    assert read_ratings(file) == ({"good": 7.5, "bad": 2.5}, ())
    file.write_text("id,word\n1,good\n")
    with pytest.raises(InputError, match="line 2: expected"):
        read_ratings(file)
