"""`heedful explore` as a user meets it: what it opens, what it says, what it refuses."""

from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from heedful.cli import explore as command
from heedful.cli.explore import explore
from heedful.errors import InputError
from heedful.explorer import server
from heedful.explorer.texts import TextAsked, WordEdit, edited, explanation_steps
from heedful.models import example, save_model
from tests import tiny_transformers as tiny
from tests.models.huggingface.test_language_models import language_model


@pytest.fixture
def served(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """What would have been served."""
    found: list[Any] = []
    monkeypatch.setattr(server, "serve", lambda app, door, port, **how: found.append((door, port)))
    made = command_explorer(monkeypatch)
    found.append(made)
    return found


def command_explorer(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    made: list[Any] = []
    kept = server.application

    def application(explorer: Any, door: Any) -> Any:
        made.append(explorer)
        return kept(explorer, door)

    monkeypatch.setattr(server, "application", application)
    return made


def test_models_and_documents_are_opened_once(tmp_path: Path, served: list[Any]) -> None:
    save_model(example(), tmp_path / "own")
    tiny.save(tmp_path / "bert", "bert", ("negative", "positive"))
    table = pd.DataFrame({"text": ["good food", "bad"], "label": ["positive", "negative"]})
    table.to_csv(tmp_path / "mine.csv", index=False)
    names = [str(tmp_path / "own"), str(tmp_path / "bert"), str(tmp_path / "own")]
    explore(names, data=tmp_path / "mine.csv", device="cpu", port=0)
    (explorer,), (door, port) = served
    assert [model.name for model in explorer.models] == ["own", "bert", "own (2)"]
    assert [d.asked.text for d in explorer.documents.documents] == ["good food", "bad"]
    assert (door.host, door.token, port) == ("127.0.0.1", "", 0)


def test_without_documents_the_page_goes_without(tmp_path: Path, served: list[Any]) -> None:
    save_model(example(), tmp_path / "own")
    explore([str(tmp_path / "own")], device="cpu", host="0.0.0.0")
    (explorer,), (door, _) = served
    assert not explorer.documents.documents
    assert door.token


def test_what_is_no_model_and_what_is_not_installed_is_one_sentence(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with pytest.raises(InputError, match="does not exist"):
        explore([str(tmp_path / "nothing")], device="cpu")
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    with pytest.raises(InputError, match=r"pip install 'heedful\[explore\]'"):
        command.explore(["x"])


@pytest.mark.slow
def test_a_language_model_is_explored_like_a_classifier(
    tmp_path: Path, served: list[Any]
) -> None:  # fmt: skip
    language_model("llama").save_pretrained(tmp_path / "llama")
    tiny.tokenizer(is_causal=True).save_pretrained(tmp_path / "llama")
    prompt = "the service was {text} and the staff was"
    name = f"lm:{tmp_path / 'llama'}"
    explore([name], prompt=prompt, labels="good,bad", device="cpu")
    table = pd.DataFrame({"text": ["good food", "bad"] * 4, "label": ["pos", "neg"] * 4})
    table.to_csv(tmp_path / "mine.csv", index=False)
    data = tmp_path / "mine.csv"
    explore([name], prompt=prompt, labels="pos=good,neg=bad", data=data, device="cpu")
    first, second = served[0]
    assert first.models[0].model.classes == second.models[0].model.classes == ("good", "bad")
    assert len(second.documents.documents) == 8
    asked = TextAsked("good food was very slow")
    steps = explanation_steps(first.models[0], asked)
    told = []
    while steps:
        told.append(steps[0].compute())
        steps.popleft()
    assert told[0]["entry"]["units"] == asked.text.split()
    assert len(told) == told[0]["steps"]
    found = edited(first.models[0], asked, WordEdit((0,)))
    assert sum(found["attention"]) == pytest.approx(1)
    assert sum(found["text"]) == pytest.approx(1)
