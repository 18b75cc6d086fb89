"""The worker: what is urgent first, what is cancelled ends, and not too much at once."""

import threading
from collections import deque
from collections.abc import Callable, Iterator
from typing import Any

import pytest
import torch
from torch import nn

from heedful.errors import InputError
from heedful.explorer.worker import (
    EDIT,
    FIRST,
    LATER,
    MOST_INTERRUPTIONS,
    Busy,
    Interrupted,
    Job,
    Worker,
    WorkStep,
    interruptible,
)


class Told(list[Any]):
    """What a job tells, and when it ended."""

    def __init__(self) -> None:
        super().__init__()
        self.ended = threading.Event()

    def __call__(self, event: Any) -> None:
        if event is None:
            self.ended.set()
        else:
            self.append(event)


@pytest.fixture
def worker() -> Iterator[Worker]:
    made = Worker(most=3)
    made.start()
    yield made
    made.stop()


def job(told: Told, *computing: Callable[[], Any], urgency: int = FIRST, model: Any = None) -> Job:
    part = model or nn.Identity()
    return Job(deque(WorkStep(part, compute) for compute in computing), told, urgency)


class Endless(nn.Module):
    """A model that is called again and again until it is let go."""

    def __init__(self) -> None:
        super().__init__()
        self.part = nn.Identity()
        self.began, self.let_go, self.begun = threading.Event(), threading.Event(), 0

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        self.begun += 1
        self.began.set()
        while not self.let_go.wait(0.001):
            x = self.part(x)
        return x

    def compute(self) -> dict[str, int]:
        self(torch.zeros(1))
        return {"done": 1}


def test_steps_are_told_in_order(worker: Worker) -> None:
    told = Told()
    worker.submit(job(told, lambda: {"a": 1}, lambda: {"b": 2}))
    assert told.ended.wait(5)
    assert told == [{"a": 1}, {"b": 2}]
    assert worker.in_flight == 0


def test_what_is_urgent_overtakes_a_step_that_is_under_way(worker: Worker) -> None:
    slow, quick, model = Told(), Told(), Endless()
    worker.submit(job(slow, model.compute, urgency=LATER, model=model))
    assert model.began.wait(5)
    worker.submit(job(quick, lambda: {"quick": 1}, urgency=EDIT))
    assert quick.ended.wait(5)
    assert not slow.ended.is_set()
    model.let_go.set()
    assert slow.ended.wait(5)
    assert slow == [{"done": 1}]
    assert model.begun == 2


def test_after_a_few_interruptions_a_step_is_left_in_peace(worker: Worker) -> None:
    slow, model = Told(), Endless()
    worker.submit(job(slow, model.compute, urgency=LATER, model=model))
    for _ in range(MOST_INTERRUPTIONS):
        assert model.began.wait(5)
        model.began.clear()
        quick = Told()
        worker.submit(job(quick, dict, urgency=EDIT))
        assert quick.ended.wait(5)
    assert model.began.wait(5)
    quick = Told()
    worker.submit(job(quick, dict, urgency=EDIT))
    assert not quick.ended.wait(0.1)
    model.let_go.set()
    assert slow.ended.wait(5)
    assert quick.ended.wait(5)


def test_a_cancelled_job_ends_and_makes_room(worker: Worker) -> None:
    model = Endless()
    jobs = [job(Told(), model.compute, model=model) for _ in range(3)]
    for one in jobs:
        worker.submit(one)
    with pytest.raises(Busy):
        worker.submit(job(Told(), dict))
    assert model.began.wait(5)
    for one in jobs:
        worker.cancel(one)
    told = Told()
    worker.submit(job(told, lambda: {"after": 1}))
    assert told.ended.wait(5)
    assert told == [{"after": 1}]


def test_bad_input_is_said_and_a_mistake_of_ours_is_not_shown(
    worker: Worker, caplog: pytest.LogCaptureFixture
) -> None:
    def refused() -> dict[str, Any]:
        raise InputError("Expected words.")

    def broken() -> dict[str, Any]:
        raise KeyError("secret")

    bad, ours, fine = Told(), Told(), Told()
    worker.submit(job(bad, refused))
    worker.submit(job(ours, broken))
    worker.submit(job(fine, lambda: {"fine": 1}))
    assert fine.ended.wait(5)
    assert bad == [{"error": "Expected words."}]
    assert ours[0]["ours"]
    assert "secret" not in str(ours)
    assert "secret" in caplog.text
    assert fine == [{"fine": 1}]


def test_a_model_is_given_back_without_what_watched_it() -> None:
    model = nn.Sequential(nn.Linear(2, 2), nn.ReLU())
    with pytest.raises(Interrupted), interruptible(model, lambda: True):
        model(torch.zeros(1, 2))
    assert not any(part._forward_pre_hooks for part in model.modules())
    with interruptible(model, lambda: False):
        assert model(torch.zeros(1, 2)).shape == (1, 2)
