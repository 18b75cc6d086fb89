"""A checkpoint lives until the result made from it stands on disk."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from safetensors import safe_open
from safetensors.torch import save_file
from torch.optim.optimizer import register_optimizer_step_post_hook

from heedful.corpora import EncodedCorpus, encode, planted
from heedful.corpora.narratives import planted_narratives
from heedful.corpora.pieces import encode_parallel
from heedful.corpora.planted_pairs import planted_pairs
from heedful.dynamics.pair_probes import PairLog
from heedful.errors import InputError
from heedful.jobs import narratives
from heedful.jobs import train as train_job
from heedful.jobs.narratives import train_narrator
from heedful.jobs.settings import settings_of
from heedful.jobs.train import train
from heedful.models import TransformerConfig, build, load_model, parse
from heedful.models.translator import TranslatorConfig, build_translator
from heedful.reproduction import stages
from heedful.reproduction.results import Results, Step
from heedful.runs import Form, read_json, write_json
from heedful.studies.dynamics import translation_steps
from heedful.training import Moment, TrainConfig, fit
from heedful.training.checkpoints import CHECKPOINT
from heedful.training.config import Schedule
from heedful.training.scheduled import fit_scheduled_together
from heedful.training.sequences import SequenceConfig, fit_translator
from heedful.training.together import fit_together

CONFIG = TrainConfig(
    epochs=2, batch_size=8, learning_rate=1e-2, patience=0, clip_norm=0.0, checkpoint_seconds=0.0
)
SCHEDULE = Schedule(7, (0, 3, 7))
"""Of 40 documents five batches of eight are an epoch: the last one stops inside."""
WORDS = {"embedding_dim": 6, "width": 8, "one_logit": True}
BLOCKS = TransformerConfig(
    embedding_dim=8,
    layers=1,
    heads=2,
    head_dim=4,
    feed_forward=4,
    pooling_dims=(4, 4),
    decider_dim=4,
)
PAIRS = {"train": 24, "dev": 5, "test": 3}
PIECES = TranslatorConfig(150, 8, 6)
SEQUENCES = SequenceConfig(2, 8, 1e-2, (0, 4, 6), checkpoint_seconds=0.0)


class Failed(Exception):
    """What goes wrong after a training, such as too little memory."""


@pytest.fixture(scope="module")
def corpus() -> EncodedCorpus:
    return encode(planted(2, "short", sizes={"train": 40, "dev": 9, "test": 6}))


@pytest.fixture
def updates() -> Iterator[list[None]]:
    """An entry for every step of an optimiser."""
    found: list[None] = []
    hook = register_optimizer_step_post_hook(lambda *_: found.append(None))
    yield found
    hook.remove()


def failing_once(monkeypatch: pytest.MonkeyPatch, place: Any, name: str) -> None:
    """Lets a function fail when it is called for the first time."""
    right, calls = getattr(place, name), []

    def fails(*given: Any, **options: Any) -> Any:
        calls.append(None)
        if len(calls) == 1:
            raise Failed
        return right(*given, **options)

    monkeypatch.setattr(place, name, fails)


def weights(*models: torch.nn.Module) -> list[np.ndarray]:
    return [value.numpy().copy() for model in models for value in model.state_dict().values()]


def same(one: list[np.ndarray], two: list[np.ndarray]) -> bool:
    return len(one) == len(two) and all(map(np.array_equal, one, two))


def alone(corpus: EncodedCorpus, folder: Path | None, **settings: Any) -> Any:
    model = build(parse("bigru+additive", **WORDS).model, corpus.vocabulary, corpus.classes, 1)
    history = fit(model, corpus, settings.pop("config", CONFIG), folder=folder, **settings)
    return str(history), weights(model)  # as text: nan is not equal to itself


def by_schedule(corpus: EncodedCorpus, folder: Path | None) -> Any:
    return alone(corpus, folder, schedule=SCHEDULE, is_judged=False)


def crew(corpus: EncodedCorpus, folder: Path | None, config: TrainConfig = CONFIG) -> Any:
    recipe = parse("bilstm+additive-relu", **WORDS).model
    models = [build(recipe, corpus.vocabulary, corpus.classes, seed) for seed in (1, 2)]
    histories = fit_scheduled_together(
        models, corpus, config, seeds=(1, 2), schedule=SCHEDULE, folder=folder
    )
    return str(histories), weights(*models)


def transformers(corpus: EncodedCorpus, folder: Path | None) -> Any:
    models = [build(BLOCKS, corpus.vocabulary, corpus.classes, seed) for seed in (1, 2)]
    histories = fit_together(models, corpus, CONFIG, seeds=(1, 2), folder=folder)
    return str(histories), weights(*models)


def translator(corpus: EncodedCorpus, folder: Path | None) -> Any:
    model = build_translator(PIECES, 3)
    pairs = encode_parallel(planted_pairs(PAIRS), 150)
    history = fit_translator(model, pairs, SEQUENCES, seed=3, folder=folder)
    return str(history), weights(model)


@pytest.mark.slow
@pytest.mark.parametrize("training", [alone, by_schedule, crew, transformers, translator])
def test_a_finished_training_asked_for_again_learns_nothing_and_gives_the_same(
    corpus: EncodedCorpus, tmp_path: Path, updates: list[None], training: Callable[..., Any]
) -> None:
    expected, values = training(corpus, None)
    assert updates
    for is_again in (False, True):
        updates.clear()
        found, here = training(corpus, tmp_path)
        assert found == expected
        assert same(here, values)
        assert bool(updates) is not is_again
        assert (tmp_path / CHECKPOINT).is_file()


def test_patience_that_ended_inside_an_epoch_lets_a_killed_run_finish_it(
    corpus: EncodedCorpus, tmp_path: Path
) -> None:
    # A rate this small changes no decision: the evaluation after step 2 is the last gain.
    config = replace(CONFIG, epochs=9, learning_rate=1e-12, patience=1, evaluate_at=(2, 3))
    seen: list[int] = []

    def dies(moment: Moment) -> None:
        seen.append(moment.step)
        if len(seen) == 3:
            raise Failed

    with pytest.raises(Failed):
        alone(corpus, tmp_path, config=config, observers=[dies])
    found, here = alone(corpus, tmp_path, config=config, observers=[dies])
    expected, values = alone(corpus, None, config=config)
    assert (found, same(here, values)) == (expected, True)
    assert seen == [2, 3, 5, 5]


def test_weights_that_ran_away_are_no_result_the_second_time_either(
    corpus: EncodedCorpus, tmp_path: Path
) -> None:
    config = replace(CONFIG, optimiser="sgd", learning_rate=1e38)
    for _ in range(2):
        with pytest.raises(InputError, match="diverged in epoch 1"):
            crew(corpus, tmp_path, replace(config, batch_size=4))  # 7 of an epoch's 10 steps


@pytest.mark.slow
def test_a_step_that_fails_after_its_training_does_not_train_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, updates: list[None]
) -> None:
    text = translation_steps.encoded("pairs", lambda: planted_pairs(PAIRS), 150, {})
    step = translation_steps.followed_pairs(
        text, "attention", PIECES, 3, SEQUENCES, with_saliency=True
    )
    whole = Results(tmp_path / "whole")[step]
    failing_once(monkeypatch, PairLog, "best_saliency")
    failing_once(monkeypatch, translation_steps, "save_translator")  # when the result is written
    taken = []
    for _ in range(2):
        updates.clear()
        with pytest.raises(Failed):
            Results(tmp_path / "parts")[step]
        taken.append(len(updates))
    assert len(list((tmp_path / "parts/unfinished").rglob(CHECKPOINT))) == 1
    updates.clear()
    found = Results(tmp_path / "parts")[step]
    assert (*taken, len(updates)) == (6, 0, 0)
    assert not list((tmp_path / "parts/unfinished").rglob("*.safetensors"))
    for split, expected in whole.splits.items():
        np.testing.assert_array_equal(found.splits[split].attention, expected.attention)
        assert found.splits[split].scores["bleu"].tolist() == expected.scores["bleu"].tolist()
    for name, delta in whole.saliency.items():
        np.testing.assert_array_equal(found.saliency[name], delta)
    models = [run.translator().model for run in (found, whole)]  # type: ignore[attr-defined]
    assert same(*map(weights, models))


@pytest.mark.slow
def test_a_trained_step_whose_model_could_not_be_saved_does_not_train_again(
    corpus: EncodedCorpus, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, updates: list[None]
) -> None:
    form: Form[Any] = Form(".json", lambda path, _: write_json(path, None), lambda path: corpus)
    text: Step[EncodedCorpus] = Step("planted/corpus", lambda results: corpus, {}, form)
    plan: Any = None  # asked for nothing here
    step = stages.trained(plan, text, "bigru+additive", 1, CONFIG, **WORDS)
    whole = Results(tmp_path / "whole")[step]
    failing_once(monkeypatch, stages, "save_model")
    with pytest.raises(Failed):
        Results(tmp_path / "parts")[step]
    updates.clear()
    assert same(weights(Results(tmp_path / "parts")[step]), weights(whole))
    assert not updates


def test_what_a_step_left_behind_goes_when_its_result_is_there(tmp_path: Path) -> None:
    def compute(results: Results) -> str:
        folder = results.scratch(step)
        tried = len(list(folder.iterdir()))
        (folder / f"try {tried}").touch()
        if not tried:
            raise Failed
        return "done"

    unfinished: list[bool] = []

    def load(path: Path) -> Any:
        unfinished.append((tmp_path / "unfinished").is_dir())
        if len(unfinished) == 1:
            raise Failed  # killed when the result stood already
        return read_json(path)

    step: Step[str] = Step("a/b", compute, {}, Form(".json", write_json, load))
    for _ in range(2):
        with pytest.raises(Failed):
            Results(tmp_path)[step]
        assert len(list((tmp_path / "unfinished").rglob("try *"))) >= 1
    assert Results(tmp_path)[step] == "done"
    assert unfinished == [True, True]
    assert not list((tmp_path / "unfinished").rglob("try *"))


def test_a_run_folder_keeps_its_checkpoint_until_the_run_is_whole(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, updates: list[None]
) -> None:
    corpus = planted(2, "short", sizes={"train": 40, "dev": 9, "test": 6})
    settings = settings_of(
        {"model": {"embedding_dim": 6, "width": 8}, "train": {"epochs": 2, "checkpoint_seconds": 0}}
    )

    def trained(name: str) -> list[np.ndarray]:
        return weights(train("bigru+additive", corpus, tmp_path / name, settings=settings))

    expected, place = trained("whole"), tmp_path / "parts"
    assert not (tmp_path / "whole" / CHECKPOINT).exists()
    failing_once(monkeypatch, train_job, "evaluate")
    with pytest.raises(Failed):
        trained("parts")
    assert (place / CHECKPOINT).is_file()
    updates.clear()
    assert same(trained("parts"), expected)
    assert not updates
    assert not (place / CHECKPOINT).exists()
    assert (place / "metrics.jsonl").read_text() == (tmp_path / "whole/metrics.jsonl").read_text()
    (place / CHECKPOINT).touch()  # killed when the run was whole already
    assert same(trained("parts"), expected)
    assert not (place / CHECKPOINT).exists()


def test_a_narrator_s_run_folder_does_too(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, updates: list[None]
) -> None:
    tales = planted_narratives(0, {"train": 4, "dev": 2, "test": 2}, minutes=0.6)
    sizes = {"embedding_dim": 12, "layers": 1, "heads": 2, "head_dim": 8}
    train = {"epochs": 2, "select": "ccc", "checkpoint_seconds": 0}
    settings = settings_of({"model": sizes, "train": train})
    whole = train_narrator(tales, tmp_path / "whole", settings=settings)
    failing_once(monkeypatch, narratives, "evaluate_narratives")
    with pytest.raises(Failed):
        train_narrator(tales, tmp_path / "parts", settings=settings)
    updates.clear()
    train_narrator(tales, tmp_path / "parts", settings=settings)
    assert not updates
    assert same(weights(load_model(tmp_path / "parts/model")), weights(whole))
    assert not list(tmp_path.rglob(CHECKPOINT))


def test_a_checkpoint_of_an_older_heedful_is_refused_with_what_to_do(tmp_path: Path) -> None:
    corpus = encode(planted(2, "short", sizes={"train": 20, "dev": 5, "test": 5}))
    recipe = parse("none+additive", embedding_dim=4)
    model = build(recipe.model, corpus.vocabulary, corpus.classes)
    fit(model, corpus, TrainConfig(epochs=1), folder=tmp_path)
    path = tmp_path / CHECKPOINT
    with safe_open(path, framework="pt") as file:
        metadata = file.metadata()
        tensors = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118
    del metadata["digest"]
    metadata["progressed"] = metadata.pop("done")
    save_file(tensors, path, metadata)
    with pytest.raises(InputError, match="written by an older heedful; remove it"):
        fit(model, corpus, TrainConfig(epochs=1), folder=tmp_path)


def test_a_checkpoint_with_a_flipped_bit_is_refused(tmp_path: Path) -> None:
    corpus = encode(planted(2, "short", sizes={"train": 20, "dev": 5, "test": 5}))
    recipe = parse("none+additive", embedding_dim=4)
    model = build(recipe.model, corpus.vocabulary, corpus.classes)
    fit(model, corpus, TrainConfig(epochs=1), folder=tmp_path)
    path = tmp_path / CHECKPOINT
    whole = path.read_bytes()
    for place in range(0, len(whole), len(whole) // 60):
        path.write_bytes(whole[:place] + bytes([whole[place] ^ 2]) + whole[place + 1 :])
        with pytest.raises(InputError, match=r"is damaged|cannot be read|other settings|remove it"):
            fit(model, corpus, TrainConfig(epochs=1), folder=tmp_path)
