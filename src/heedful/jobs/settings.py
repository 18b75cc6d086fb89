"""Everything about a model and its training that is not the recipe, from options or a TOML file."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, fields
from pathlib import Path
from typing import Any

from heedful.corpora.documents import SPLITS
from heedful.corpora.encoded import MAX_TOKENS
from heedful.errors import InputError, unknown
from heedful.models.recipe import REDUCTIONS, Penalties, with_settings
from heedful.runs.entries import refuse_pipe
from heedful.training.config import TrainConfig
from heedful.training.presets import PRESETS


@dataclass(frozen=True)
class WordSettings:
    """Which words a model knows."""

    min_count: int = 2
    """Words seen less often in training documents read as unknown."""
    max_size: int | None = None
    """Most words kept."""
    max_tokens: int = MAX_TOKENS
    """Longer documents are cut here, and counted."""
    words_of: tuple[str, ...] = ("train",)
    """Splits whose words are known; dev and test words without training keep random vectors."""

    def __post_init__(self) -> None:
        for name in ("min_count", "max_size", "max_tokens"):
            if (value := getattr(self, name)) is not None and value < (name != "min_count"):
                raise InputError(f"{name} is a number of words from 1 up, got {value}.")
        for split in self.words_of:
            if split not in SPLITS:
                raise unknown("split", split, SPLITS)


@dataclass(frozen=True)
class Settings:
    """The tables of a configuration file."""

    model: Mapping[str, Any] = field(default_factory=dict)
    """Fields of ModelConfig that the recipe does not set."""
    train: TrainConfig = field(default_factory=TrainConfig)
    words: WordSettings = field(default_factory=WordSettings)
    penalties: Mapping[str, Any] = field(default_factory=dict)
    """Fields of Penalties that the recipe does not set: how each is reduced."""


def settings_of(tables: Mapping[str, Any], usual: TrainConfig = TrainConfig()) -> Settings:
    """Settings from nested tables; unknown tables and keys are refused by name.

    What [train] does not say is as in `usual`.
    """
    known = {entry.name for entry in fields(Settings)}
    for name, table in tables.items():
        if name not in known:
            raise unknown("table", name, known)
        if not isinstance(table, Mapping):
            raise InputError(f"[{name}] must be a table of settings, got {table!r}.")
    penalties = dict(tables.get("penalties", {}))
    for name in penalties:
        if name not in REDUCTIONS:
            raise unknown(
                "setting of [penalties] (strengths are said by recipes)", name, REDUCTIONS
            )
    with_settings(Penalties, penalties)
    return Settings(
        dict(tables.get("model", {})),
        with_settings(TrainConfig, asdict(usual) | dict(tables.get("train", {}))),
        with_settings(WordSettings, tables.get("words", {})),
        penalties,
    )


def preset_settings(name: str) -> Settings:
    """The settings that come with a preset's recipe."""
    preset = PRESETS[name]
    return Settings(preset.model, preset.train, with_settings(WordSettings, preset.words))


def settings_for(recipe: str, given: Settings) -> Settings:
    """The settings to train a recipe by: a preset brings its own unless others are given."""
    return preset_settings(recipe) if recipe in PRESETS and given == Settings() else given


def read_settings(path: Path, usual: TrainConfig = TrainConfig()) -> Settings:
    """The settings of a TOML file with the tables [model], [train], [words] and [penalties]."""
    refuse_pipe(path)
    try:
        tables = tomllib.loads(path.read_text("utf-8"))
    except FileNotFoundError:
        raise InputError(f"{path} does not exist; expected a TOML file of settings.") from None
    except (ValueError, RecursionError) as error:  # also bytes that are not UTF-8, huge numbers
        raise InputError(f"{path} is not valid TOML: {error}.") from None
    return settings_of(tables, usual)
