"""Pictures of rated words."""

import builtins
import re
from typing import Any

import numpy as np
import pandas as pd
import pytest

from heedful.errors import InputError
from heedful.report.figures import page_style, svg
from heedful.report.lexicon_charts import CLOUD, cloud_layout, clouds, rated_scatter


def picture(figure: Any) -> str:
    with page_style("t"):
        return svg(figure, "t", "title", "words")


def table(n: int) -> pd.DataFrame:
    rng = np.random.default_rng(0)
    valence = rng.uniform(1, 9, n)
    return pd.DataFrame(
        {
            "corpus": np.where(np.arange(n) % 2, "one", "two"),
            "valence": valence,
            "LAT": 0.05 + 0.01 * (valence - 5) ** 2,
            "gradient": 0.05,
        }
    )


def scatter(points: pd.DataFrame) -> str:
    with page_style("t"):
        figure = rated_scatter(
            points, x="valence", scores=("LAT", "gradient"), panel="corpus", below=0.4
        )
    return picture(figure)


@pytest.mark.slow
def test_dense_points_become_a_picture_and_few_stay_drawn() -> None:
    assert "<image" not in scatter(table(60))
    dense = scatter(table(3_000))
    assert dense.count("<image") == 2  # one per panel
    assert len(dense) < 400_000


def test_every_score_has_its_band() -> None:
    few = scatter(table(60))
    assert few.count("FillBetweenPolyCollection") == 4  # two panels of two scores
    assert ">LAT<" in few


@pytest.mark.slow
def test_cloud_sizes_follow_rank_and_words_stay_inside() -> None:
    frequencies = {f"word{i}": 0.5 - 0.02 * i for i in range(20)} | {"faint": 0.004}
    found = cloud_layout(frequencies)
    sizes = {word: font for word, font, _ in found}
    assert "faint" not in sizes
    assert sizes["word0"] == max(sizes.values())
    assert sizes["word0"] >= sizes["word19"]
    for _, _, (top, left) in found:
        assert 0 <= top < CLOUD[1]
        assert 0 <= left < CLOUD[0]
    assert cloud_layout(frequencies) == found
    assert cloud_layout({}) == []


def test_a_cloud_for_every_panel_in_text_that_can_be_searched() -> None:
    words = pd.DataFrame(
        {"corpus": ["a"] * 8 + ["b"] * 8, "word": [f"w{i}" for i in range(16)], "size": 0.2}
    )
    with page_style("t"):
        drawn = picture(clouds(words, word="word", size="size", panel="corpus"))
    assert set(re.findall(r">(w\d+)<", drawn)) == {f"w{i}" for i in range(16)}


def test_without_wordcloud_the_error_names_the_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    real = builtins.__import__

    def without(name: str, *rest: Any) -> Any:
        if name == "wordcloud":
            raise ImportError(name)
        return real(name, *rest)

    monkeypatch.setattr(builtins, "__import__", without)
    with pytest.raises(InputError, match=r"heedful\[lexicon\]"):
        cloud_layout({"word": 0.2})
