"""Steps of runs trained side by side, and the agreements made of them."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from heedful.corpora import Corpus, EncodedCorpus, planted
from heedful.corpora.prepared import load_prepared, prepare
from heedful.corpora.recipes import with_marks
from heedful.dynamics.probes import ProbeLog, kept_saliency
from heedful.dynamics.proxy import ProxyConfig
from heedful.dynamics.trajectory import kept_checkpoints, load_followed, save_followed
from heedful.errors import InputError
from heedful.models import build, parse
from heedful.reproduction.results import Results, Skipped, Step
from heedful.runs import Form
from heedful.studies.dynamics import run_steps, word_predictors
from heedful.studies.dynamics.run_steps import CrewRun, Runs
from heedful.training import TrainConfig, fit, loop
from heedful.training.config import Schedule

SIZES = {"embedding_dim": 6, "width": 8, "attention_dim": 5, "one_logit": True}
CONFIG = TrainConfig(batch_size=8, learning_rate=1e-2, clip_norm=0.0, patience=0)
SCHEDULE = Schedule(6, (0, 3, 6))
RECIPE = parse("bilstm+additive-relu", **SIZES)
UNIFORM = parse("bilstm+uniform", **SIZES)
SEEDS = (20, 13)


def _planted(results: Results) -> Any:
    return with_marks(planted(2, "short", sizes={"train": 40, "dev": 9, "test": 4}))


def _prepared(folder: Path, read: Corpus) -> None:
    prepare(read, folder, None, min_count=1)


TEXT: Step[EncodedCorpus] = Step("planted/corpus", _planted, {}, Form("", _prepared, load_prepared))


def crew(name: str = "attention", **settings: Any) -> Step[Any]:
    given = {"recipe": RECIPE if name == "attention" else UNIFORM, "seeds": SEEDS} | settings
    recipe, seeds = given.pop("recipe"), given.pop("seeds")
    return run_steps.crew(TEXT, name, recipe, seeds, CONFIG, SCHEDULE, **given)


@pytest.fixture(scope="module")
def results(tmp_path_factory: pytest.TempPathFactory) -> Results:
    return Results(tmp_path_factory.mktemp("steps"))


@pytest.mark.slow
def test_every_run_of_a_crew_is_what_it_would_be_alone(results: Results, tmp_path: Path) -> None:
    step = crew(with_saliency=[20])
    assert step.name == "planted/attention/runs"
    found, corpus = results[step], results[TEXT]
    assert list(found) == ["13", "20"]
    assert len(found) == 2
    documents = word_predictors.followed_documents(corpus)
    for seed in SEEDS:
        folder = tmp_path / str(seed)
        folder.mkdir()
        log = ProbeLog(folder, documents, with_saliency=True)
        model = build(RECIPE.model, corpus.vocabulary, corpus.classes, seed)
        fit(
            model, corpus, CONFIG, seed=seed, observers=[log], schedule=SCHEDULE, is_judged=False
        )  # fmt: skip
        run = found[str(seed)]
        for split in ("dev", "train"):
            ours, theirs = run.splits[split], kept_checkpoints(folder, split)
            assert ours.steps.tolist() == [0, 3, 6]
            np.testing.assert_array_equal(ours.item, theirs.item)
            np.testing.assert_allclose(ours.attention, theirs.attention, atol=1e-5)
            np.testing.assert_allclose(ours.probe, theirs.probe, atol=1e-5)
        assert set(run.saliency) == ({"dev", "train"} if seed == 20 else set())
        for split, delta in run.saliency.items():
            np.testing.assert_allclose(delta, kept_saliency(folder, split), atol=1e-5)
    with pytest.raises(KeyError):
        found["99"]
    # A run is read when it is asked for, and of it the split that is: none stays in memory.
    assert found["13"] is not found["13"]
    run = found["13"]
    for path in (results.folder / "planted/attention/runs/13").glob("train*"):
        path.rename(path.with_suffix(".away"))
    assert run.splits["dev"] is run.splits["dev"]
    assert "train" in run.splits
    with pytest.raises(InputError, match="holds no trajectory"):
        run.splits["train"]
    for path in (results.folder / "planted/attention/runs/13").glob("train*"):
        path.rename(path.with_suffix(".safetensors"))
    assert not list((results.folder / "unfinished").rglob("*.safetensors"))


@pytest.mark.slow
def test_a_crew_that_was_killed_goes_on(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    config = replace(CONFIG, checkpoint_seconds=0.0)
    step = run_steps.crew(TEXT, "attention", RECIPE, SEEDS, config, SCHEDULE)
    whole = Results(tmp_path / "whole")[step]
    update, steps = loop._Run._update, []

    def dies(self: loop._Run, batch: Any) -> None:
        steps.append(self.done.step)
        if len(steps) == 5:
            raise KeyboardInterrupt
        update(self, batch)

    monkeypatch.setattr(loop._Run, "_update", dies)
    with pytest.raises(KeyboardInterrupt):
        Results(tmp_path / "parts")[step]
    found = Results(tmp_path / "parts")[step]
    assert steps == [0, 1, 2, 3, 4, 4, 5]
    for seed in map(str, SEEDS):
        for split, expected in whole[seed].splits.items():
            np.testing.assert_array_equal(found[seed].splits[split].probe, expected.probe)


def test_agreements_are_the_same_of_a_crew_and_of_runs_by_themselves(results: Results) -> None:
    """Runs of one step each are what a translator has."""
    attending, uniform = crew(with_saliency=[20]), crew("uniform", seeds=(12,))

    def alone(step: Step[Any], seed: int) -> Step[Any]:
        def compute(results: Results) -> Any:
            return results[step][str(seed)]

        form: Form[Any] = Form("", save_followed, load_followed)
        return Step(f"planted/alone/{seed}/run", compute, {}, form, (step,))

    predictors = word_predictors.predictors(TEXT, ProxyConfig(4, 1, 8, 1e-2), (1.0,))
    together = Runs(
        CrewRun(attending, 20),
        {"13": CrewRun(attending, 13)},
        {"12": CrewRun(uniform, 12)},
        predictors,
    )
    apart = Runs(
        CrewRun(alone(attending, 20)), {"13": CrewRun(alone(attending, 13))},
        {"12": CrewRun(alone(uniform, 12))}, predictors,
    )  # fmt: skip
    # Each step once, the longest work of one processor first.
    assert [step.name for step in together.steps] == [
        "planted/predictors", "planted/attention/runs", "planted/uniform/runs",
    ]  # fmt: skip
    assert together.names == [
        "planted/attention/runs/20", "planted/attention/runs/13", "planted/uniform/runs/12",
        "planted/predictors",
    ]  # fmt: skip
    steps = [
        run_steps.agreements(runs, "dev", tag=tag)
        for runs, tag in ((together, ""), (apart, "apart"))
    ]
    assert steps[0].name == "planted/dev-accuracy/agreements"
    one, two = (results[step] for step in steps)
    assert one.arrays.keys() == two.arrays.keys()
    assert one.has("top:saliency~uniform")
    for name, values in one.arrays.items():
        np.testing.assert_array_equal(values, two.arrays[name])


def test_runs_with_penalties_or_without_their_vectors_are_skipped(results: Results) -> None:
    tied = parse("bilstm+additive-relu+tying:0.1", **(SIZES | {"embedding_dim": 8}))
    with pytest.raises(Skipped, match="penalties"):
        results[crew("tied", recipe=tied)]
    with pytest.raises(Skipped, match="without word vectors"):
        results[crew("vectors", with_vectors=True)]
