"""Classifiers trained side by side by a schedule end as they would alone."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import torch
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves

from heedful.corpora import EncodedCorpus, encode, planted
from heedful.corpora.batches import mixed_batches
from heedful.dynamics.probes import ProbeLog, ProbeLogs, _read_together, kept_saliency
from heedful.dynamics.trajectory import kept_checkpoints
from heedful.errors import InputError
from heedful.models import AttentionClassifier, build, parse
from heedful.models.classifier_stack import ClassifierStack
from heedful.runs.randomness import numpy_generator
from heedful.training import TrainConfig, fit, loop, scheduled
from heedful.training.checkpoints import CHECKPOINT
from heedful.training.config import Schedule
from heedful.training.loop import Moment
from heedful.training.resident import OwnBatch, ResidentDocuments
from heedful.training.scheduled import ScheduledTask, fit_scheduled_together

CONFIG = TrainConfig(batch_size=8, learning_rate=1e-2, clip_norm=0.0, patience=0)
SCHEDULE = Schedule(23, (0, 4, 9, 23))
"""Of 46 documents five batches of eight are an epoch."""
SEEDS = (20, 13, 14)


@pytest.fixture(scope="module")
def corpus() -> EncodedCorpus:
    return encode(planted(2, "short", sizes={"train": 46, "dev": 12, "test": 4}))


def member(
    corpus: EncodedCorpus, recipe: str, seed: int, vectors: bool = False, **settings: object
) -> AttentionClassifier:
    """A model in float64, with some given word vectors where asked for."""
    sizes = {"embedding_dim": 6, "width": 8, "attention_dim": 5, "one_logit": True} | settings
    given = None
    if vectors:
        shape = len(corpus.vocabulary), 6
        given = np.random.default_rng(0).standard_normal(shape).astype(np.float32)
        given[::3] = np.nan
    config = parse(recipe, **sizes).model
    return build(config, corpus.vocabulary, corpus.classes, seed, given).double()


def crew(corpus: EncodedCorpus, recipe: str = "bilstm+additive-relu") -> list[AttentionClassifier]:
    return [member(corpus, recipe, seed) for seed in SEEDS]


def difference(one: AttentionClassifier, two: AttentionClassifier) -> float:
    pairs = zip(one.parameters(), two.parameters(), strict=True)
    return max(float((a - b).detach().abs().max()) for a, b in pairs)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("recipe", "config", "settings"),
    [
        ("bilstm+additive-relu", CONFIG, {}),
        ("bilstm+uniform", CONFIG, {}),
        ("bilstm+additive-relu", CONFIG, {"vectors": True}),
        ("bilstm+uniform", CONFIG, {"vectors": True, "freeze_embeddings": True}),
        ("bilstm+additive", replace(CONFIG, clip_norm=0.05, order_seed=7), {"one_logit": False}),
        ("lstm+scaled-dot", replace(CONFIG, clip_value=1e-3, weight_decay=1e-2), {}),
        ("affine-tanh+additive", replace(CONFIG, optimiser="adagrad", batch_size=64), {}),
        ("none+dot", replace(CONFIG, optimiser="sgd", batch_size=1), {}),
    ],
)
def test_each_model_ends_as_it_would_alone(
    corpus: EncodedCorpus, recipe: str, config: TrainConfig, settings: dict[str, Any]
) -> None:
    models = [member(corpus, recipe, seed, **settings) for seed in SEEDS]
    histories = fit_scheduled_together(models, corpus, config, seeds=SEEDS, schedule=SCHEDULE)
    for seed, model, history in zip(SEEDS, models, histories, strict=True):
        alone = member(corpus, recipe, seed, **settings)
        expected = fit(alone, corpus, config, seed=seed, schedule=SCHEDULE, is_judged=False)
        assert difference(model, alone) < 1e-9
        assert difference(model, member(corpus, recipe, seed, **settings)) > 1e-4
        assert [entry["step"] for entry in history.entries] == [0, 4, 9, 23]
        for ours, theirs in zip(history.entries, expected.entries, strict=True):
            assert ours == pytest.approx(theirs, rel=1e-9)
    # Afterwards they share nothing.
    pointers = {p.untyped_storage().data_ptr() for m in models for p in m.parameters()}
    assert len(pointers) == sum(len(list(m.parameters())) for m in models)


def test_every_model_reads_its_own_batches_in_the_order_of_its_seed(
    corpus: EncodedCorpus, monkeypatch: pytest.MonkeyPatch
) -> None:
    train, seen = corpus.splits["train"], []
    batch = ResidentDocuments.batch

    def noted(self: ResidentDocuments, rows: torch.Tensor, longest: int) -> OwnBatch:
        seen.append(batch(self, rows, longest))
        return seen[-1]

    monkeypatch.setattr(ResidentDocuments, "batch", noted)
    fit_scheduled_together(
        crew(corpus, "none+uniform"), corpus, CONFIG, seeds=SEEDS, schedule=Schedule(8, (8,))
    )
    assert len(seen) == 8
    for row, seed in enumerate(SEEDS):
        orders = [numpy_generator(seed, "epoch", epoch) for epoch in (0, 1)]
        expected = [one for order in orders for one in mixed_batches(train, 8, order)][:8]
        for own, one in zip(seen, expected, strict=True):
            width = one.ids.shape[1]
            assert torch.equal(own.ids[row, :, :width], one.ids)
            assert torch.equal(own.mask[row, :, :width], one.mask)
            assert torch.equal(own.labels[row], one.labels)
            assert not own.mask[row, :, width:].any()
            assert not own.ids[row, :, width:].any()
    # Padded to the longest of all, and no further.
    assert all(bool(own.mask[..., -1].any()) for own in seen)
    assert any(not own.mask[row, :, -1].any() for own in seen for row in range(len(SEEDS)))


class Called(TorchDispatchMode):
    """Notes the operations that are called."""

    def __init__(self) -> None:
        super().__init__()
        self.names: set[str] = set()

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        self.names.add(str(func))
        is_masked = "index" in str(func) and any(
            isinstance(one, torch.Tensor) and one.dtype == torch.bool
            for group in args
            if isinstance(group, list | tuple)
            for one in group
        )
        if is_masked:
            self.names.add("a mask as index")
        return func(*args, **(kwargs or {}))


def test_no_step_asks_the_device_for_a_number(
    corpus: EncodedCorpus, monkeypatch: pytest.MonkeyPatch
) -> None:
    """On a GPU the host would wait for each answer; the optimiser has its own way there."""
    called, learn = Called(), ScheduledTask.learn

    def noted(self: ScheduledTask, batch: Any, epoch: int) -> torch.Tensor:
        with called:
            return learn(self, batch, epoch)

    monkeypatch.setattr(ScheduledTask, "learn", noted)
    monkeypatch.setattr(torch.optim.Adam, "step", lambda self: None)
    config = replace(CONFIG, clip_norm=1.0, clip_value=1.0)
    fit_scheduled_together(crew(corpus), corpus, config, seeds=SEEDS, schedule=Schedule(2, (2,)))
    assert {"aten.index_add_.default", "aten.index_select.default"} <= called.names
    asking = ("_local_scalar_dense", "nonzero", "masked_select", "is_nonzero", "unique", "a mask")
    assert not [name for name in called.names if any(word in name for word in asking)]


def test_nothing_of_a_step_or_a_look_stays_on_the_host(corpus: EncodedCorpus) -> None:
    """On a device without memory every operation that takes numbers from two places shows."""
    stack = ClassifierStack(
        [member(corpus, "bilstm+additive-relu", seed).float() for seed in SEEDS], "meta"
    )
    task = ScheduledTask(stack, corpus, CONFIG, SEEDS)
    places = Places()
    with places:
        task.learn((torch.zeros(3, 8, dtype=torch.long, device="meta"), 7), 0)
    assert places.seen == {("meta",)}
    assert all(weight.grad is not None for weight in stack.weights.values())
    with places, torch.no_grad():
        seen = list(_read_together(stack, corpus.splits["dev"], "meta"))
    assert seen[0].probe.device.type == "meta"
    assert ("cpu", "meta") not in places.seen


class Places(TorchDispatchMode):
    """Notes where the tensors lie that operations are given."""

    def __init__(self) -> None:
        super().__init__()
        self.seen: set[tuple[str, ...]] = set()

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        given = [one for one in tree_leaves((args, kwargs)) if isinstance(one, torch.Tensor)]
        if given:
            self.seen.add(tuple(sorted({one.device.type for one in given})))
        return func(*args, **(kwargs or {}))


class Killed(Exception):
    """What ends a training in these tests."""


@pytest.mark.slow
@pytest.mark.parametrize(
    ("last", "is_fused"), [(1, False), (4, False), (5, True), (6, False), (14, True), (22, False)]
)
def test_a_killed_training_ends_with_the_same_numbers(
    corpus: EncodedCorpus,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    last: int,
    is_fused: bool,
) -> None:
    """Killed inside an epoch, at its end, right after an evaluation and in the last step.

    With the optimiser of a GPU too, which counts its steps beside the weights.
    """
    made = scheduled.optimiser_for
    monkeypatch.setattr(
        scheduled, "optimiser_for",
        lambda named, config, **_: made(named, config, is_fused=is_fused),
    )  # fmt: skip
    config, names = replace(CONFIG, checkpoint_seconds=0.0), [str(seed) for seed in SEEDS]
    documents = {"dev": corpus.splits["dev"]}

    def train(folder: Path) -> tuple[list[AttentionClassifier], Any]:
        models = crew(corpus)
        log = ProbeLogs(folder, names, documents, names[:1])
        found = fit_scheduled_together(
            models, corpus, config, seeds=SEEDS, schedule=SCHEDULE, observers=[log], folder=folder
        )
        return models, found

    whole, expected = train(tmp_path / "whole")
    learn, taken = ScheduledTask.learn, []

    def dies(self: ScheduledTask, batch: Any, epoch: int) -> torch.Tensor:
        if len(taken) == last:
            raise Killed
        taken.append(None)
        return learn(self, batch, epoch)

    with monkeypatch.context() as patch:
        patch.setattr(ScheduledTask, "learn", dies)
        with pytest.raises(Killed):
            train(tmp_path / "parts")
    assert (tmp_path / "parts" / CHECKPOINT).is_file()
    models, histories = train(tmp_path / "parts")
    assert [one.entries for one in histories] == [one.entries for one in expected]
    assert max(difference(one, two) for one, two in zip(models, whole, strict=True)) == 0.0
    for name in names:
        one, two = (kept_checkpoints(tmp_path / part / name, "dev") for part in ("whole", "parts"))
        assert one.steps.tolist() == two.steps.tolist() == [0, 4, 9, 23]
        np.testing.assert_array_equal(one.attention, two.attention)


@pytest.mark.slow
def test_checkpoints_go_by_the_clock_and_never_take_long(
    corpus: EncodedCorpus, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    saved: list[int] = []
    monkeypatch.setattr(loop, "save_checkpoint", lambda path, done, *_: saved.append(done.step))
    settings: dict[str, Any] = {"seeds": SEEDS, "schedule": SCHEDULE, "folder": tmp_path}
    fit_scheduled_together(crew(corpus), corpus, CONFIG, **settings)
    assert not saved
    # A clock that ticks once a look: a step takes 1, writing takes 1, so 20 steps lie between.
    ticks = iter(range(10_000))
    monkeypatch.setattr(loop, "time", SimpleNamespace(monotonic=lambda: next(ticks)))
    often = replace(CONFIG, checkpoint_seconds=3.0)
    fit_scheduled_together(crew(corpus), corpus, often, **settings)
    assert saved == [3, 23]


@pytest.mark.slow
def test_what_is_kept_of_a_crew_is_what_is_kept_of_each_run(
    corpus: EncodedCorpus, tmp_path: Path
) -> None:
    documents = {split: corpus.splits[split] for split in ("dev", "train")}
    names = [str(seed) for seed in SEEDS]
    log = ProbeLogs(tmp_path / "crew", names, documents, ["13"])
    fit_scheduled_together(
        crew(corpus), corpus, CONFIG, seeds=SEEDS, schedule=SCHEDULE, observers=[log]
    )
    for seed in SEEDS:
        alone = ProbeLog(tmp_path / str(seed), documents, with_saliency=seed == 13)
        alone.folder.mkdir()
        fit(
            member(corpus, "bilstm+additive-relu", seed), corpus, CONFIG, seed=seed,
            schedule=SCHEDULE, is_judged=False, observers=[alone],
        )  # fmt: skip
        here = tmp_path / "crew" / str(seed)
        assert sorted(p.name for p in here.iterdir()) == sorted(
            p.name for p in alone.folder.iterdir()
        )
        for split in documents:
            ours, theirs = (kept_checkpoints(folder, split) for folder in (here, alone.folder))
            np.testing.assert_allclose(ours.attention, theirs.attention, atol=1e-7)
            np.testing.assert_allclose(ours.probe, theirs.probe, atol=1e-6)
            np.testing.assert_array_equal(ours.correct, theirs.correct)
            if seed == 13:
                delta = (kept_saliency(folder, split) for folder in (here, alone.folder))
                np.testing.assert_allclose(*delta, atol=1e-6)


def test_what_cannot_be_trained_this_way_is_said(corpus: EncodedCorpus, tmp_path: Path) -> None:
    def train(config: TrainConfig = CONFIG, seeds: Any = SEEDS, **settings: Any) -> None:
        recipe = settings.pop("recipe", "bilstm+uniform")
        given = settings.pop("corpus", corpus)
        folder = settings.pop("folder", None)
        models = [member(corpus, recipe, seed, **settings) for seed in SEEDS]
        fit_scheduled_together(models, given, config, seeds=seeds, schedule=SCHEDULE, folder=folder)

    with pytest.raises(InputError, match=r"^dropout cannot"):
        train(dropout=0.5)
    with pytest.raises(InputError, match=r"^head_dropout cannot"):
        train(head_dropout=0.5)
    for name in ("balanced", "halve_on_plateau", "linear_decay"):
        with pytest.raises(InputError, match=f"{name} cannot be stacked"):
            train(replace(CONFIG, **{name: True}))
    with pytest.raises(InputError, match="bigru"):
        train(recipe="bigru+uniform")
    with pytest.raises(InputError, match="one seed for each of 3"):
        train(seeds=(1, 2))
    split = corpus.splits["train"]
    unlabelled = replace(split, labels=np.where(np.arange(len(split)) == 3, -1, split.labels))
    with pytest.raises(InputError, match="needs a label"):
        train(corpus=replace(corpus, splits={**corpus.splits, "train": unlabelled}))
    with pytest.raises(InputError, match="needs dev documents"):
        train(corpus=replace(corpus, splits={"train": split}))
    with pytest.raises(InputError, match="diverged in epoch 1"):
        train(replace(CONFIG, optimiser="sgd", learning_rate=1e300))


def test_a_checkpoint_of_another_training_is_refused(corpus: EncodedCorpus, tmp_path: Path) -> None:
    def stop(moment: Moment) -> None:
        if moment.step == 9:
            raise Killed

    def train(config: TrainConfig) -> None:
        fit_scheduled_together(
            crew(corpus), corpus, config, seeds=SEEDS, schedule=SCHEDULE, observers=[stop],
            folder=tmp_path,
        )  # fmt: skip

    config = replace(CONFIG, checkpoint_seconds=0.0)
    with pytest.raises(Killed):
        train(config)
    with pytest.raises(InputError, match="other settings"):
        train(replace(config, learning_rate=1e-3))
