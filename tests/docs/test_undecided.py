"""What is undecided: counted from claims.json, each with what would decide it."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path
from typing import Any

from undecided import KINDS, MARK, STUDIES, counts, listed, undecided, with_counts

RESULTS = Path(__file__).parents[2] / "docs" / "results"


def claim(corpus: str, verdict: str, **more: Any) -> dict[str, Any]:
    """Ten trainings, 1 [-1, 3]: s / √10 is 2 over Student's 2.262."""
    numbers = {"ours": 1.0, "interval": [-1.0, 3.0], "n": 10, "side": "> 0", "reason": "1 [-1, 3]"}
    base = {"id": "X-1", "corpus": corpus, "verdict": verdict, "stand_in_for": None, "parts": []}
    return base | numbers | more


def written(folder: Path, claims: list[dict[str, Any]]) -> Path:
    (folder / "polarity").mkdir()
    (folder / "polarity" / "claims.json").write_text(json.dumps(claims))
    return folder


def test_verdicts_are_counted_by_what_they_were_measured_on(tmp_path: Path) -> None:
    claims = [
        claim("sst", "undecided"),
        claim("imdb", "confirmed"),
        claim("ag", "undecided", stand_in_for="Yahoo"),
        claim("all", "undecided", side="a > 0; b < 0"),
    ]
    results = written(tmp_path, claims)
    assert [one.kind for one in undecided(results)] == list(KINDS)
    assert "| polarity | 1 | 1 | 1 |" in counts(results)
    assert "| sum | 1 | 1 | 1 |" in counts(results)
    assert with_counts(f"a\n{MARK}\nold\n{MARK}\nz", results) == (
        f"a\n{MARK}\n{counts(results)}\n{MARK}\nz"
    )


def test_what_would_decide_is_as_published_or_reckoned(tmp_path: Path) -> None:
    part = claim("sst", "undecided") | {"part": "uniform"}
    before = (
        "undecided before (0 [-1, 1], claimed > 0), confirmed after (1 [0.5, 1.5], claimed > 0)"
    )
    claims = [
        claim("sst", "undecided", reason="1 [-1, 3], claimed > 0; n = 77 would decide it"),
        claim("sst", "undecided", parts=[part, part | {"verdict": "confirmed"}]),
        claim("sst", "undecided", parts=[part | {"interval": [0.5, 1.5], "reason": before}]),
        claim("sst", "undecided", interval=None),
    ]
    told = [one.parts[0] for one in undecided(written(tmp_path, claims))]
    assert told[0].endswith("claimed > 0; n = 77 would decide it")
    # (t(n - 1) + 0.842) s / √n ≤ 1 with s = 2 √10 / 2.262 = 2.796: 64 trainings, not 63.
    assert told[1] == (
        "uniform: 1.0 [-1.0, 3.0], claimed > 0; n = 64 would decide it with a chance of 80\u00a0%"
    )
    assert told[2].endswith("hangs on the verdict that it repeats")
    assert told[3] == "no interval; no n would decide it"


def test_the_published_list_and_counts_are_those_of_the_published_claims() -> None:
    """`python docs/publish.py docs/results` mends it."""
    assert (RESULTS / "undecided.md").read_text() == listed(RESULTS)
    readme = (RESULTS / "README.md").read_text()
    assert readme == with_counts(readme, RESULTS)
    found = Counter(one.study for one in undecided(RESULTS))
    for study in STUDIES:
        claims = json.loads((RESULTS / study / "claims.json").read_text())
        assert found[study] == sum(one["verdict"] == "undecided" for one in claims)


def test_every_undecided_verdict_on_one_corpus_has_a_power_line() -> None:
    ends = ("would decide it", "at this value", "that it repeats")
    for one in undecided(RESULTS):
        if one.kind != KINDS[2]:
            assert one.parts, f"{one.claim} on {one.corpus}"
            assert all(any(end in part for end in ends) for part in one.parts), one.claim
