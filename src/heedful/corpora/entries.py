"""What is known of every named corpus before it is read, from `entries.toml`."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from heedful.corpora.recipes import RECIPES, CorpusRecipe
from heedful.runs.data_files import data_beside


@dataclass(frozen=True)
class Entry:
    """A corpus that has a name."""

    name: str
    what: str
    """One line for a person."""
    classes: str = ""
    """Number of classes, of each task."""
    files: tuple[str, ...] = ()
    """What must lie in the data root; none for embedded corpora."""
    source: str = "embedded"
    """Where the files come from."""
    tasks: tuple[str, ...] = ()
    """Named tasks, the default first; empty when tasks are free or there is one."""
    free_task: bool = False
    """Whether other tasks than the named ones may be asked for (groups, pairs of classes)."""
    alternatives: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    """Other files that will do in place of one of `files`."""
    stand_in_for: str | None = None
    """The published corpus that this one stands in for in the erasure study."""
    names: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    """The classes of each task; that of a corpus with one task has the name ""."""
    counts: Mapping[str, Any] = field(default_factory=dict)
    """What the published files hold, as their reader counts it."""

    @property
    def variants(self) -> dict[str, CorpusRecipe]:
        """The recipes that can follow the name after a slash."""
        return RECIPES.get(self.name, {})


CATALOGUE: dict[str, Entry] = {
    name: Entry(name, **facts) for name, facts in data_beside(__file__).items()
}
"""All named corpora, in the order of `heedful corpora`."""
