"""What the live page is told of a text: the numbers of the verbs, in the order of their cost."""

from typing import Any

import numpy as np
import pytest
import torch

from heedful.errors import InputError
from heedful.explorer.texts import (
    KEPT_READINGS,
    MOST_CHARACTERS,
    MOST_UNITS,
    SLOW,
    ExploredModel,
    TextAsked,
    WordEdit,
    edited,
    explanation_steps,
)
from heedful.importance import explain, methods_of
from heedful.models import Replace, curve, decide, erase, ranked, read
from tests.explorer.serving_models import layered, linear

TEXT = "good food and bad service"


@pytest.fixture(params=["linear", "layered"])
def explored(request: pytest.FixtureRequest) -> ExploredModel:
    return linear() if request.param == "linear" else layered()


def told(explored: ExploredModel, text: str = TEXT) -> list[dict[str, Any]]:
    steps = explanation_steps(explored, TextAsked(text))
    events = []
    while steps:
        events.append(steps[0].compute())
        steps.popleft()
    return events


def close(expected: torch.Tensor, digits: float) -> Any:
    return pytest.approx(expected.detach().double().numpy(), rel=digits, abs=1e-12)


def test_every_method_and_curve_is_that_of_the_verbs(explored: ExploredModel) -> None:
    model = explored.model
    reading = read(model, model.batch([TEXT]))
    names = methods_of(model, costly=True, units=5)
    wanted = explain(model, reading, names)
    first, *events = told(explored)
    entry = first["entry"]
    assert entry["attention"] == close(reading.attention[0], 1e-9)
    assert entry["probabilities"] == close(reading.logits[0].softmax(-1), 1e-9)
    assert {one["name"] for one in first["methods"]} == set(names)
    assert first["methods"][0]["name"] == explored.recommended
    assert first["steps"] == len(events) + 1
    said = {e["method"]: e["importance"] for e in events if "importance" in e}
    curves = {e["method"]: e["curve"] for e in events if "curve" in e}
    assert set(said) == set(curves) == set(names)
    decision = int(reading.decision[0])
    for name in names:
        assert said[name] == close(wanted[name][0], 6e-4)
        logits = curve(model, reading, ranked(wanted[name], reading)[:, None])[0, 0]
        assert curves[name]["probability"] == close(logits.softmax(-1)[:, decision], 6e-4)
        flips = np.flatnonzero(logits.argmax(-1).numpy() != decision)
        assert curves[name]["flip"] == (flips[0] if len(flips) else None)


def test_attention_comes_first_and_what_is_slow_last(explored: ExploredModel) -> None:
    first, *events = told(explored)
    order = [event["method"] for event in events if "importance" in event]
    assert order == first["order"]
    assert order[0] == "attention"
    is_slow = [name in SLOW for name in order]
    assert is_slow == sorted(is_slow)


def test_layers_and_flow_are_told_of_a_transformer_alone() -> None:
    (own,) = [event for event in told(linear()) if "heads" in event]
    (theirs,) = [event for event in told(layered()) if "heads" in event]
    assert own == {"flow": None, "heads": None}
    assert theirs["flow"]["layers"] == theirs["heads"]["layers"] == 2


def test_removed_words_decide_as_erase_and_as_the_text_without_them(
    explored: ExploredModel,
) -> None:
    model = explored.model
    reading = read(model, model.batch([TEXT]))
    found = edited(explored, TextAsked(TEXT), WordEdit((0, 3)))
    gone = torch.zeros(1, 1, 5, dtype=torch.bool)
    gone[..., [0, 3]] = True
    wanted = decide(model, reading, erase(gone))[0, 0].softmax(-1)
    assert found["attention"] == close(wanted, 1e-9)
    again = read(model, model.batch(["food and service"])).logits[0].softmax(-1)
    assert found["text"] == close(again, 1e-6)


def test_moved_attention_decides_as_replace(explored: ExploredModel) -> None:
    model = explored.model
    reading = read(model, model.batch([TEXT]))
    weights = torch.tensor([0.1, 0.2, 0.0, 0.4, 0.1], dtype=torch.float64)
    found = edited(explored, TextAsked(TEXT), WordEdit((4,), tuple(weights.tolist())))
    row = weights.clone()
    row[4] = 0
    wanted = decide(model, reading, Replace(row[None, None] / row.sum()))[0, 0].softmax(-1)
    assert found["attention"] == close(wanted, 1e-9)
    alone = edited(explored, TextAsked(TEXT), WordEdit((), tuple(weights.tolist())))
    assert alone["text"] is None


def test_with_every_word_removed_there_is_still_a_decision(explored: ExploredModel) -> None:
    for weights in (None, (0.2,) * 5):
        found = edited(explored, TextAsked(TEXT), WordEdit((0, 1, 2, 3, 4), weights))
        assert sum(found["attention"]) == pytest.approx(1)
        assert sum(found["text"]) == pytest.approx(1)


@pytest.mark.parametrize(
    "edit", [WordEdit((5,)), WordEdit((-1,)), WordEdit((), (0.5, 0.5)), WordEdit((), (1.0,) * 6)]
)
def test_an_edit_of_another_text_is_refused(edit: WordEdit) -> None:
    with pytest.raises(InputError, match="5 words"):
        edited(linear(), TextAsked(TEXT), edit)


@pytest.mark.parametrize(
    ("erased", "weights"),
    [("0", None), ([True], None), ([0.5], None), ([], "x"), ([], [-1.0]), ([], [float("nan")]),
     ([], [None]), ([], [1e300])],
)  # fmt: skip
def test_what_is_no_edit_is_refused(erased: Any, weights: Any) -> None:
    with pytest.raises(InputError, match="Expected"):
        WordEdit.checked(erased, weights)


@pytest.mark.parametrize("text", [None, 3, "", "  \n", ["a"]])
def test_what_is_no_text_is_refused(text: Any) -> None:
    with pytest.raises(InputError, match="Expected a text"):
        TextAsked.checked(text)


def test_long_texts_are_refused_in_a_sentence() -> None:
    with pytest.raises(InputError, match="20,001 characters"):
        TextAsked.checked("x" * (MOST_CHARACTERS + 1))
    with pytest.raises(InputError, match="1,001 words"):
        linear().reading(TextAsked("a " * (MOST_UNITS + 1)))


def test_half_a_surrogate_pair_is_read_as_a_mark(explored: ExploredModel) -> None:
    asked = TextAsked.checked("good \ud800 food")
    assert asked.text == "good ? food"
    assert told(explored, asked.text)[0]["entry"]["units"][0] == "good"


def test_readings_are_kept_for_the_latest_texts_only() -> None:
    explored = linear()
    first = explored.reading(TextAsked("good 0"))
    assert explored.reading(TextAsked("good 0")) is first
    for number in range(1, KEPT_READINGS + 1):
        explored.reading(TextAsked(f"good {number}"))
    assert explored.reading(TextAsked("good 0")) is not first


def test_what_the_model_does_not_know_or_does_not_read_is_said() -> None:
    (first, *_) = told(linear(), "good xyzzy")
    assert first["unknown"] == ["xyzzy"]
    assert first["unread"] == 0
    (cut, *_) = told(layered(), "good food " * 30)
    assert cut["unread"] > 50
