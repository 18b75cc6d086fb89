"""What the walk recomputes intervals with, beside `heedful.statistics`: each can show the other."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from heedful.statistics import bootstrap, mean, paired, proportion, resampling_weights
from heedful.statistics.association import spearman
from heedful.statistics.level import among_looks
from tests.docs import intervals_again as again

BANNED = ("heedful.statistics", "heedful.audits", "heedful.importance", "heedful.dynamics",
          "heedful.models.tracing", "heedful.models.verbs", "heedful.jobs.strengths")  # fmt: skip
NAMES = [f"text {number}" for number in range(40)]
RNG = np.random.default_rng(3)
SAMPLES = {
    "skewed": RNG.exponential(size=40),
    "few events": np.where(np.arange(40) < 3, -0.5, 0.25),
    "yes or no": (np.arange(40) < 9).astype(float),
    "equal": np.full(40, 0.3),
    "with gaps": np.where(np.arange(40) % 7 == 0, np.nan, RNG.normal(size=40)),
}


@pytest.fixture(params=[1, 4], ids=["one look", "one of four looks"])
def _looks(request: pytest.FixtureRequest) -> Iterator[None]:
    with among_looks(request.param), again.among(request.param):
        yield


@pytest.mark.usefixtures("_looks")
@pytest.mark.parametrize("kind", SAMPLES)
def test_means_and_differences_agree(kind: str) -> None:
    values = SAMPLES[kind]
    other = values * 0.5 - RNG.normal(size=40)
    for size in (40, 9):
        names = NAMES[:size]
        series = pd.Series(values[:size], names)
        ours = mean(series.to_numpy(), names, least=-1, most=4)
        told = again.average(series, -1, 4)
        assert told[:3] == pytest.approx((ours.value, ours.low, ours.high), abs=1e-9, nan_ok=True)
        ours = paired(series, other[:size], names, most=4)
        told = again.gap(series, pd.Series(other[:size], names), 4)
        assert told[:3] == pytest.approx((ours.value, ours.low, ours.high), abs=1e-9, nan_ok=True)


@pytest.mark.usefixtures("_looks")
def test_draws_shares_and_resampled_numbers_agree() -> None:
    assert (again.drawn(NAMES) == resampling_weights(NAMES)).all()
    for hits in (0, 7, 40):
        ours = proportion(hits, 40)
        assert again.share(hits, 40)[:3] == pytest.approx((ours.value, ours.low, ours.high))
    x, y = SAMPLES["skewed"], SAMPLES["skewed"] + RNG.normal(size=40).round(1)
    correlated = spearman(x, y, NAMES)
    told = again.rank_correlation(x, y, NAMES)
    assert told[:3] == pytest.approx((correlated.value, correlated.low, correlated.high))
    ratio = lambda w: (w @ x) / (w @ x**2)  # noqa: E731
    ours = bootstrap(ratio, NAMES, method="bca")
    assert again.resampled(ratio, NAMES)[:3] == pytest.approx((ours.value, ours.low, ours.high))


def test_nothing_that_recomputes_calls_what_is_recomputed() -> None:
    here = Path(__file__).parent
    computing = {*here.glob("*_again.py"), *here.glob("known_*.py"), here / "plain_passes.py"}
    computing = {one for one in computing if not one.name.startswith("test_")}
    assert len(computing) >= 9
    for path in (*computing, here / "sentences.py"):
        tree = ast.parse(path.read_text())
        imported = {n.module for n in ast.walk(tree) if isinstance(n, ast.ImportFrom)}
        banned = {m for m in imported if m and m.startswith(BANNED)}
        # The borders, and which methods there are, are read, not computed.
        assert banned <= {"heedful.audits.verdict", "heedful.importance"}, path.name
        if "heedful.importance" in banned:
            assert "import methods_of\n" in path.read_text()
