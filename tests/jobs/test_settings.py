"""Settings that make no sense are refused in a sentence, not trained with."""

from pathlib import Path

import pytest

from heedful.errors import InputError
from heedful.jobs.settings import read_settings, settings_of
from heedful.models.recipe import parse


@pytest.mark.parametrize(
    ("table", "name", "value", "said"),
    [
        ("train", "clip_norm", -1, "clip_norm is a number from 0 up, got -1"),
        ("train", "clip_norm", float("nan"), "clip_norm is a number from 0 up, got nan"),
        ("train", "clip_value", -0.5, "clip_value is a number from 0 up"),
        ("train", "weight_decay", -1e-4, "weight_decay is a number from 0 up"),
        ("train", "learning_rate", float("inf"), "learning_rate must be above 0"),
        ("train", "learning_rate", float("nan"), "learning_rate must be above 0"),
        ("train", "max_batch_tokens", 0, "max_batch_tokens must be at least 1"),
        ("train", "evaluate_at", "12", "evaluate_at must be a list, got '12'"),
        ("train", "evaluate_at", ["12"], "evaluate_at must be a list"),
        ("train", "evaluate_at", [-1], "evaluate_at lists steps from 0 up"),
        ("train", "epochs", True, "epochs must be int, got True"),
        ("words", "max_tokens", 0, "max_tokens is a number of words from 1 up, got 0"),
        ("words", "max_size", 0, "max_size is a number of words from 1 up, got 0"),
        ("words", "min_count", -1, "min_count is a number of words"),
        ("words", "words_of", "train", "words_of must be a list, got 'train'"),
        ("words", "words_of", ["tset"], "Unknown split 'tset'"),
    ],
)
def test_what_cannot_be_meant_is_refused(table: str, name: str, value: object, said: str) -> None:
    with pytest.raises(InputError, match=said):
        settings_of({table: {name: value}})


def test_lists_become_what_the_settings_hold() -> None:
    found = settings_of({"train": {"evaluate_at": [3, 0]}, "words": {"words_of": ["train", "dev"]}})
    assert found.train.evaluate_at == (3, 0)
    assert found.words.words_of == ("train", "dev")


@pytest.mark.parametrize(
    ("recipe", "sizes"),
    [("bilstm*1000000000+additive", {}), ("none+dot", {"embedding_dim": 10**15})],
)
def test_sizes_that_no_machine_holds_are_refused_at_once(
    recipe: str, sizes: dict[str, int]
) -> None:
    with pytest.raises(InputError, match=r"1 to 1,?000"):
        parse(recipe, **sizes)


@pytest.mark.parametrize(
    "content", [b"[train]\nepochs = " + b"9" * 5000, b"[" * 5000, b'a = "\xff"', b"a = [" * 3000]
)
def test_a_file_that_is_no_toml_is_a_sentence(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "x.toml").write_bytes(content)
    with pytest.raises(InputError, match=r"x\.toml is not valid TOML"):
        read_settings(tmp_path / "x.toml")
