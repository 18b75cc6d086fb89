"""What is opened as a folder: runs, models of our own, those of transformers; file by file.

An input is the name of a file in the folder, a zero byte, and what that file holds instead.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from random import Random
from typing import Any
from unittest import mock

import torch
from safetensors.torch import load_file

from heedful.cli import app
from heedful.corpora import encode, planted
from heedful.corpora.pieces import train_pieces
from heedful.corpora.planted_pairs import planted_pairs
from heedful.errors import InputError
from heedful.models import build, load_model, parse, read
from heedful.models.huggingface import open_classifier
from heedful.models.saved import read_tensors, save_model, write_tensors
from heedful.models.saved_translator import SavedTranslator, load_translator, save_translator
from heedful.models.translator import TranslatorConfig, build_translator
from heedful.training import TrainConfig, fit
from heedful.training.checkpoints import CHECKPOINT
from tests.demo_run import demo
from tests.tiny_transformers import save, tokenizer
from tests.torture.mutation import damaged, tampered
from tests.torture.reader import Damage, Family, Reader, sentence
from tests.torture.table_files import CLASSES

os.environ["TOKENIZERS_PARALLELISM"] = "false"  # its threads do not survive a fork
SMALL = {"train": 16, "dev": 6, "test": 4}


def of_folder(folder: Path, files: Mapping[str, Damage], opened: Callable[[], object]) -> Reader:
    """A reader of a valid folder in which one file at a time is another."""
    whole = {name: (folder / name).read_bytes() for name in files}

    def damage(seeds: Sequence[bytes], random: Random) -> bytes:
        name = random.choice(list(files))
        return name.encode() + b"\0" + files[name]([whole[name]], random)

    def read_other(data: bytes) -> None:
        named, _, content = data.partition(b"\0")
        name = named.decode("utf-8", "replace")
        name = name if name in files else next(iter(files))
        (folder / name).write_bytes(content)
        try:
            opened()
        finally:
            (folder / name).write_bytes(whole[name])

    return Reader([n.encode() + b"\0" + data for n, data in whole.items()], read_other, damage)


def command(*words: object) -> None:
    """Runs a command in this process, as it is typed."""
    app([str(word) for word in words], standalone_mode=False)


def _tensors(folder: Path) -> Damage:
    """Tensors with other names, shapes, kinds and texts beside them, under a digest that fits."""
    file = folder / "torture.safetensors"

    def damage(seeds: Sequence[bytes], random: Random) -> bytes:
        if random.random() < 0.4:
            return damaged(seeds, random)
        file.write_bytes(seeds[0])
        tensors, said = read_tensors(file)
        name = random.choice(list(tensors))
        value = tensors.pop(name)
        others = (
            value.flatten()[:-1], value[None], value.to(torch.float16).contiguous(),
            value.to(torch.int64), torch.full_like(value, -1), torch.zeros(0),
            torch.full(value.shape, float("nan")),
        )  # fmt: skip
        kind = random.random()
        if kind < 0.5:
            tensors[name] = random.choice(others).contiguous()
        elif kind < 0.7:
            tensors[random.choice(("x", "", "optimiser.x.y", "random.7", "model."))] = value
        for key in list(said):
            if key != "fingerprint" and random.random() < 0.7:
                said[key] = tampered([said[key].encode()], random, True).decode("utf-8", "replace")
        write_tensors(file, tensors, said)
        return file.read_bytes()

    return damage


def run_folder(folder: Path) -> Reader:
    """An audited run of ours: its record, verdict, instances and curves, by three commands."""
    run = folder / "run"
    made = demo(run, test=8, train=40, epochs=1)
    save_model(made.model, run / "model")
    kept = "substitution.json", "erasure.json"
    for path in (run / "findings").glob("*.json"):
        if path.name not in (*kept, "verdict.json", "instances.json"):
            path.unlink()
    commands = (
        ("report", run),
        ("explain", "good food and bad service", "--model", run),
        ("compare", run, run, "--out", folder / "comparison.html"),
    )

    def opened() -> None:
        refused = None
        with mock.patch("heedful.report.page.draw", return_value=""):
            for words in commands:
                try:
                    command(*words)
                except InputError as error:
                    sentence(error)
                    refused = error
        if refused is not None:
            raise refused

    names = ("run.json", *(f"findings/{name}" for name in (*kept, "verdict.json")))
    files: dict[str, Damage] = dict.fromkeys((*names, "findings/instances.json"), tampered)
    return of_folder(run, files | {"metrics.jsonl": damaged}, opened)


def findings(folder: Path) -> Reader:
    """One finding at a time, drawn as it is on the page."""
    run = folder / "run"
    demo(run, test=8, train=40, epochs=1)
    shutil.move(run / "findings", folder / "all")
    (run / "findings").mkdir()
    (run / "metrics.jsonl").unlink()
    shutil.copy(folder / "all" / "verdict.json", run / "findings")
    seeds = [
        path.name.encode() + b"\0" + path.read_bytes()
        for path in sorted((folder / "all").glob("*.json"))
        if path.name not in ("verdict.json", "instances.json")
    ]

    def damage(given: Sequence[bytes], random: Random) -> bytes:
        named, _, content = random.choice(given).partition(b"\0")
        return named + b"\0" + tampered([content], random)

    def read_other(data: bytes) -> None:
        named, _, content = data.partition(b"\0")
        path = run / "findings" / (named.decode() if b"/" not in named else "x.json")
        path.write_bytes(content)
        try:
            command("report", run)
        finally:
            path.unlink()

    return Reader(seeds, read_other, damage)


def checkpoint(folder: Path) -> Reader:
    """The checkpoint of a training that goes on."""
    corpus = encode(planted(2, "short", sizes=SMALL))
    config = TrainConfig(epochs=1, batch_size=8, checkpoint_seconds=0.0)
    place = folder / "run"
    place.mkdir()

    def opened() -> None:
        recipe = parse("none+additive", embedding_dim=4, width=4)
        model = build(recipe.model, corpus.vocabulary, corpus.classes)
        fit(model, corpus, config, folder=place)

    opened()
    return of_folder(place, {CHECKPOINT: _tensors(folder)}, opened)


def own_model(folder: Path) -> Reader:
    """A model of ours: configuration, words and weights."""
    corpus = encode(planted(2, "short", sizes=SMALL))
    recipe = parse("bigru+additive", embedding_dim=4, width=4)
    place = folder / "model"
    save_model(build(recipe.model, corpus.vocabulary, corpus.classes), place)
    weights = place / "model.safetensors"
    write_tensors(weights, load_file(weights), {})  # as older versions did: all gets further
    files = {"config.json": tampered, "vocabulary.json": tampered}

    def opened() -> None:
        model: Any = load_model(place)
        if hasattr(model, "batch"):
            read(model, model.batch(["good food", ""]))

    return of_folder(place, files | {"model.safetensors": _tensors(folder)}, opened)


def translator(folder: Path) -> Reader:
    """A translator of ours with its pieces."""
    pairs = planted_pairs({"train": 30, "dev": 4, "test": 4})
    pieces = train_pieces([text for pair in pairs.splits["train"] for text in pair], 120)
    place = folder / "model"
    model = build_translator(TranslatorConfig(len(pieces), 8, 6), 0)
    save_translator(SavedTranslator(model, pieces), place)
    files = {"config.json": tampered, "pieces.model": damaged, "model.safetensors": damaged}
    return of_folder(
        place, files, lambda: load_translator(place).translate(["one two", ""], beam=1)
    )


def transformers_folder(folder: Path) -> Reader:
    """A classifier of transformers: configuration, tokenizer files and weights."""
    place = save(folder / "model", "bert", CLASSES)
    (place / "special_tokens_map.json").write_text('{"unk_token": "[UNK]", "pad_token": "[PAD]"}')
    files: dict[str, Damage] = dict.fromkeys(
        ("config.json", "tokenizer.json", "tokenizer_config.json", "special_tokens_map.json"),
        tampered,
    )

    def opened() -> None:
        model = open_classifier(place)
        read(model, model.batch(["good food was unbelievable", ""]))

    return of_folder(place, files | {"model.safetensors": damaged}, opened)


def prompts(folder: Path) -> Reader:
    """A prompt, as typed and as a file, with a small language model's tokenizer."""
    from heedful.models.huggingface.prompts import PromptTokeniser, prompt_of, template_of

    cut = tokenizer(is_causal=True)
    path = folder / "prompt.txt"
    seeds = (b"Review: {text}\nSentiment: ", b"the food {text} was", b"{text}")

    def opened(given: str | Path) -> None:
        prompt = prompt_of(template_of(given), cut)
        subwords = PromptTokeniser(cut, prompt, ["good", "bad"], 0)
        subwords.pieces(["the food was good", ""])

    def read_other(data: bytes) -> None:
        path.write_bytes(data)
        try:
            opened(path)
        finally:
            opened(data.decode("utf-8", "replace"))

    return Reader(seeds, read_other)


OPENED: dict[str, Family] = {
    "prompt": Family(prompts, 5_000),
    "own model folder": Family(own_model, 5_000),
    "checkpoint": Family(checkpoint, 2_000),
    "translator folder": Family(translator, 1_000),
    "run folder": Family(run_folder, 1_000),
    "findings": Family(findings, 500),
    "transformers folder": Family(transformers_folder, 1_000),
}
"""Slower than files: fewer inputs each."""
