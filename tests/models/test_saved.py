"""A model comes back as it was written, or not at all."""

import json
from pathlib import Path

import pytest
import torch
from safetensors import safe_open
from safetensors.torch import load_file, save_file

from heedful.errors import InputError
from heedful.models.recipe import parse
from heedful.models.saved import (
    CONFIG,
    WEIGHTS,
    WORDS,
    build,
    example,
    load_model,
    read_tensors,
    save_model,
    write_tensors,
)


def test_a_model_whose_numbers_were_changed_is_refused(tmp_path: Path) -> None:
    save_model(example(), tmp_path)
    load_model(tmp_path)
    path = tmp_path / WEIGHTS
    whole = path.read_bytes()
    start = len(whole) - 4 * sum(value.numel() for value in load_file(path).values())
    for place in range(start, len(whole), 7):
        path.write_bytes(whole[:place] + bytes([whole[place] ^ 4]) + whole[place + 1 :])
        with pytest.raises(InputError, match="is damaged: its numbers are not those"):
            load_model(tmp_path)


@pytest.mark.parametrize("name", [CONFIG, WORDS])
def test_a_model_with_another_letter_beside_its_weights_is_refused(
    name: str, tmp_path: Path
) -> None:
    save_model(example(), tmp_path)
    with safe_open(tmp_path / WEIGHTS, framework="pt") as file:
        assert len(file.metadata()) == 1  # of several the order is another in each process
    whole = (tmp_path / name).read_bytes()
    for place in range(len(whole)):
        if chr(whole[place]).isalnum():
            (tmp_path / name).write_bytes(
                whole[:place] + bytes([whole[place] ^ 4]) + whole[place + 1 :]
            )
            with pytest.raises(InputError):
                load_model(tmp_path)
    (tmp_path / name).write_bytes(whole)
    load_model(tmp_path)


def test_what_is_said_of_tensors_belongs_to_their_digest(tmp_path: Path) -> None:
    tensors = {"a": torch.arange(3.0)}
    write_tensors(tmp_path / "x.safetensors", tensors, {"step": "12"})
    found, said = read_tensors(tmp_path / "x.safetensors")
    assert said == {"step": "12"}
    assert torch.equal(found["a"], tensors["a"])
    whole = (tmp_path / "x.safetensors").read_bytes()
    (tmp_path / "x.safetensors").write_bytes(whole.replace(b'"12"', b'"13"'))
    with pytest.raises(InputError, match="is damaged"):
        read_tensors(tmp_path / "x.safetensors")


def test_weights_without_a_digest_are_read_and_undefined_ones_refused_by_name(
    tmp_path: Path,
) -> None:
    model = example()
    save_model(model, tmp_path)
    weights = load_file(tmp_path / WEIGHTS)
    save_file(weights, tmp_path / WEIGHTS)  # as an older version did
    load_model(tmp_path)
    stored = json.loads((tmp_path / CONFIG).read_text())
    for name, value in (("max_tokens", [[]]), ("classes", "ab"), ("tokeniser", None)):
        (tmp_path / CONFIG).write_text(json.dumps(stored | {name: value}))
        with pytest.raises(InputError, match="is not a model heedful can read"):
            load_model(tmp_path)
    (tmp_path / CONFIG).write_text(json.dumps(stored))
    weights["head.bias"][1] = torch.nan
    save_file(weights, tmp_path / WEIGHTS)
    with pytest.raises(InputError, match=r"head\.bias holds values that are not finite"):
        load_model(tmp_path)


@pytest.mark.parametrize(
    ("recipe", "sizes"),
    [
        ("bilstm+additive", {"width": 1_000_000}),
        ("lstm*1000+dot", {"width": 100_000}),
        ("none+additive", {"embedding_dim": 1_000_000, "attention_dim": 1_000_000}),
    ],
)
def test_a_recipe_beyond_this_machine_is_refused_before_anything_is_taken(
    recipe: str, sizes: dict[str, int]
) -> None:
    known = example()
    with pytest.raises(InputError, match=r"This model needs [\d,.]+ GB of memory, and .* are free"):
        build(parse(recipe, **sizes).model, known.vocabulary, known.classes)
