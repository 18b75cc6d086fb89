"""Many models trained at once, and what is kept of each as tables."""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from heedful.corpora import EncodedCorpus, encode, planted, redrawn, with_rare_unknown
from heedful.models import build, parse
from heedful.reproduction.results import Results, Step
from heedful.runs import Form, fingerprint
from heedful.studies.polarity.path_steps import watched
from heedful.studies.polarity.word_steps import StackMember, scored
from heedful.training import TrainConfig, evaluate, fit

CONFIG = TrainConfig(
    epochs=2, batch_size=20, optimiser="adagrad", learning_rate=0.05, clip_norm=0.0, patience=0
)
SIZES = {"train": 80, "dev": 20, "test": 40}


def text() -> Step[EncodedCorpus]:
    """A tiny corpus as a step; nothing is written of it."""

    def compute(results: Results) -> EncodedCorpus:
        return encode(planted(2, "short", sizes=SIZES), words_of=("train", "dev", "test"))

    form: Form[Any] = Form(".none", lambda path, value: path.touch(), lambda path: compute(None))  # type: ignore[arg-type]
    return Step("tiny/corpus", compute, {}, form)


def members(seeds: Sequence[int]) -> list[StackMember]:
    """Two λ for each seed."""
    sizes: dict[str, Any] = {"embedding_dim": 6, "dropout": 0.5, "one_logit": True}
    return [
        StackMember(scale, parse(f"none+scaled-dot@{scale}", **sizes), seed)
        for seed in seeds
        for scale in ("1", "10")
    ]


def tables(folder: Path, step: Step[Any]) -> dict[str, pd.DataFrame]:
    return dict(Results(folder)[step])


def test_a_seed_is_the_same_whatever_others_stand_beside_it(tmp_path: Path) -> None:
    both = tables(tmp_path / "both", scored(text(), "dp", members((0, 1)), CONFIG, ("10",)))
    one = tables(tmp_path / "one", scored(text(), "dp", members((1,)), CONFIG, ("10",)))
    for name in ("runs", "words", "log"):
        chosen = both[name][both[name]["seed"] == 1].reset_index(drop=True)
        pd.testing.assert_frame_equal(chosen, one[name])
    runs = both["runs"].set_index(["seed", "setting"])
    assert len(runs) == 4
    assert len(both["log"]) == 4 * CONFIG.epochs
    best = both["log"].groupby(["seed", "setting"])["dev_accuracy"].max()
    assert best.to_dict() == pytest.approx(runs["dev"].to_dict())


def test_more_seeds_leave_the_steps_of_the_others_as_they_are() -> None:
    few, many = (scored(text(), "dp", members(range(n)), CONFIG, ()) for n in (2, 3))
    keys = [{part.name: fingerprint(part.key) for part in step.needs} for step in (few, many)]
    assert keys[0].items() <= keys[1].items()
    assert fingerprint(few.key) != fingerprint(many.key)
    paths = watched(text(), "dp", members((0, 1)), CONFIG, (), 1)
    assert [part.name for part in paths.needs] == ["tiny/dp/0/path", "tiny/dp/1/path"]


def test_a_run_is_the_training_of_one_model_with_its_seed(tmp_path: Path) -> None:
    found = tables(tmp_path, scored(text(), "dp", members((0, 3)), CONFIG, ()))["runs"]
    corpus = text().compute(Results(tmp_path))
    for member in members((0, 3)):
        model = build(member.recipe.model, corpus.vocabulary, corpus.classes, member.seed)
        history = fit(model, corpus, CONFIG, seed=member.seed)
        row = found[(found["seed"] == member.seed) & (found["setting"] == member.setting)]
        assert row["dev"].item() == pytest.approx(history.best)
        expected = evaluate(model, corpus.splits["test"]).accuracy
        assert row["accuracy"].item() == pytest.approx(expected)


def test_redrawn_splits_are_each_seeds_own(tmp_path: Path) -> None:
    pools = {"train+dev+test": {"train": 80.0, "dev": 20.0, "test": 40.0}}
    step = scored(text(), "dp,redrawn", members((0, 1)), CONFIG, (), pools=pools)
    found = tables(tmp_path, step)["runs"].set_index(["seed", "setting"])
    whole = text().compute(Results(tmp_path))
    for seed in (0, 1):
        corpus = redrawn(whole, seed, pools)
        recipe = members((seed,))[0].recipe
        model = build(recipe.model, corpus.vocabulary, corpus.classes, seed)
        fit(model, corpus, CONFIG, seed=seed)
        expected = evaluate(model, corpus.splits["test"]).accuracy
        assert found.loc[(seed, "1"), "accuracy"] == pytest.approx(expected)


def test_words_unseen_in_training_change_how_test_is_read_and_nothing_of_training() -> None:
    corpus = text().compute(None)  # type: ignore[arg-type]
    known = with_rare_unknown(corpus, 1)
    assert np.array_equal(known.splits["train"].ids, corpus.splits["train"].ids)
    twice = with_rare_unknown(corpus, 2)
    assert not np.array_equal(twice.splits["train"].ids, corpus.splits["train"].ids)
    models = []
    for one in (corpus, known):
        recipe = members((2,))[0].recipe
        model = build(recipe.model, corpus.vocabulary, corpus.classes, 2)
        # The last epoch's weights: which epoch is kept may hang on how dev is read.
        fit(model, replace(one, splits=one.splits | {"dev": corpus.splits["dev"]}), CONFIG, seed=2)
        models.append(model)
    for a, b in zip(models[0].parameters(), models[1].parameters(), strict=True):
        assert (a == b).all()
