"""Questions read from files: passages or sentences as sources, and one sentence where not."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from heedful.corpora.questions import PromptSource, read_questions
from heedful.errors import InputError

WHOLE = {
    "id": "a",
    "question": " Who wrote it? ",
    "answer": "Ada",
    "passages": [
        {"title": "Notes", "sentences": ["Ada wrote it.", " ", "It was long."], "evidence": [0]},
        {"text": "Dr. Bell did not. Nobody else did.", "evidence": False},
        "A text alone.",
    ],
}


def written(folder: Path, *questions: Any) -> Path:
    path = folder / "q.jsonl"
    path.write_text("".join(json.dumps(one) + "\n" for one in questions))
    return path


def test_passages_are_sources(tmp_path: Path) -> None:
    (found,) = read_questions(written(tmp_path, WHOLE))
    assert (found.name, found.text, found.answer) == ("a", "Who wrote it?", "Ada")
    assert found.sources == (
        PromptSource("Ada wrote it. It was long.", "Notes", True),
        PromptSource("Dr. Bell did not. Nobody else did.", "", False),
        PromptSource("A text alone.", "", None),
    )
    assert found.sources[0].line == "Notes: Ada wrote it. It was long."


def test_sentences_are_sources_and_the_first_has_the_title(tmp_path: Path) -> None:
    (found,) = read_questions(written(tmp_path, WHOLE), "sentences")
    assert found.sources == (
        PromptSource("Ada wrote it.", "Notes", True),
        PromptSource("It was long.", "", False),
        PromptSource("Dr. Bell did not.", "", False),
        PromptSource("Nobody else did.", "", False),
        PromptSource("A text alone.", "", None),
    )


def test_what_is_left_out_is_none_or_counted(tmp_path: Path) -> None:
    found = read_questions(written(tmp_path, WHOLE, {"question": "x?", "passages": ["y"]}))
    assert [(one.name, one.answer) for one in found] == [("a", "Ada"), ("2", None)]


@pytest.mark.parametrize(
    ("changed", "said"),
    [
        ({"question": None}, 'needs a "question"'),
        ({"question": " "}, 'needs a "question"'),
        ({"passages": []}, 'needs "passages"'),
        ({"passages": ["  "]}, "has an empty passage"),
        ({"passages": [{"title": "x"}]}, "has an empty passage"),
        ({"passages": [3]}, "neither a text nor an object"),
        ({"answer": " "}, 'an "answer" that is no text'),
        ({"passages": [{"text": "y", "evidence": [4]}]}, 'an "evidence" that is neither'),
        ({"passages": [{"text": "y", "evidence": "no"}]}, 'an "evidence" that is neither'),
    ],
)
def test_what_cannot_be_asked_is_one_sentence(
    tmp_path: Path, changed: dict[str, Any], said: str
) -> None:
    with pytest.raises(InputError, match=said):
        read_questions(written(tmp_path, WHOLE | changed))


def test_files_without_questions_are_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match='has no "passages"'):
        read_questions(written(tmp_path, {"question": "x?"}))
    with pytest.raises(InputError, match="two questions with the id"):
        read_questions(written(tmp_path, WHOLE, WHOLE))
    with pytest.raises(InputError, match="Unknown kind of source"):
        read_questions(written(tmp_path, WHOLE), "words")
