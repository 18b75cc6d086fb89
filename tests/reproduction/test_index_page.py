"""The page of a study, from claims and symbols alone."""

import re
from collections.abc import Mapping, Sequence
from typing import Any

from heedful.reproduction.index_page import StudyPage, render_study
from heedful.reproduction.reproduce import _state


def _page(claims: Sequence[tuple[str, str, str]], symbols: Mapping[str, str]) -> str:
    texts = ("claim", "where", "statistic", "side", "paper", "stand_in_for")
    known: dict[str, Any] = dict.fromkeys(texts, "") | dict.fromkeys(("ours", "interval", "n"))
    known |= {"seeds": 1, "scale": "paper"}
    entries = [
        {"id": id, "corpus": corpus, "verdict": verdict, "reason": f"why {corpus}"} | known
        for id, corpus, verdict in claims
    ]
    return render_study(
        StudyPage("title", "reference", {}, (), symbols, (), (), entries, {}, is_smoke=False)
    )


def test_corpora_that_a_claim_lacks_share_one_closed_row():
    lacks = "not measurable"
    page = _page(
        [
            ("C-1", "sst", "confirmed"), ("C-1", "yelp", lacks), ("C-1", "imdb", "refuted"),
            ("C-1", "ag", lacks), ("C-1", "all", lacks), ("C-2", "yelp", lacks),
            ("C-3", "yelp", lacks), ("C-3", "ag", lacks),
        ],
        {},
    )  # fmt: skip
    body = page[page.index('class="claims"') : page.index('id="artifacts"')]
    rows = [re.sub(r"\s+", " ", row) for row in body.split("<tr>")[2:]]
    assert [re.findall(r"why (\w+)", row)[0] for row in rows] == [
        "sst", "imdb", "all", "yelp", "yelp", "yelp", "ag",
    ]  # fmt: skip
    assert ["<details>" in row for row in rows] == [False] * 3 + [True, False, False, True]
    assert "<summary>on yelp, ag</summary>" in rows[3]
    assert "<b>ag</b>: why ag" in rows[3]
    assert f"<b>6</b>{lacks}" in page  # each one still counts


def test_symbols_are_explained_before_the_claims_and_only_where_there_are_any():
    page = _page([], {"ξ<b>": "A <i>meaning</i>."})
    assert "<dt>ξ&lt;b&gt;</dt><dd>A &lt;i&gt;meaning&lt;/i&gt;.</dd>" in page
    assert page.index('id="symbols"') < page.index('id="claims"') < page.index('id="artifacts"')
    assert "Symbols" not in _page([], {})


def test_a_corpus_says_which_of_its_parts_are_missing() -> None:
    missing = {"imdb, mlm+": "missing in T1: no", "sst": "missing in T2: no", "sst, a": "no"}
    assert _state(missing, "ag", "used") == "used"
    assert _state(missing, "imdb", "used") == "used; without mlm+ (see Deviations)"
    assert _state(missing, "sst", "used") == "missing in T2: no; without a (see Deviations)"
