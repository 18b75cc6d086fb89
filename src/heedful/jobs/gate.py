"""A check for pipelines: is the verdict as good as was asked for, or as it was before?"""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

from heedful.errors import InputError, VerdictWorse
from heedful.runs import RunFolder, read_json

ORDER = ("cannot tell", "no", "partly", "yes")
"""Words from worst to best: not to know is worse than any answer that can be asked for."""
ASKED = ("yes", "partly")
"""What can be asked for."""


class Baseline(NamedTuple):
    """An earlier run, as far as a later one is held against it."""

    run: str
    word: str
    documents: str
    """Fingerprint of what it was audited on."""


def baseline_of(run: str | Path) -> Baseline:
    """The verdict that an audited run holds now; read it before that folder is audited again."""
    folder = RunFolder.open(run)
    kept = folder.findings / "verdict.json"
    if not kept.is_file():
        raise InputError(f"{run} holds no verdict to compare with; audit it first.")
    word = str(read_json(kept).get("word"))
    if word not in ORDER:
        raise InputError(f"{kept} holds no verdict ({', '.join(ORDER)}); audit the run again.")
    return Baseline(str(run), word, str(folder.record.get("corpus", "")))


def refuse_word(word: str | None) -> None:
    """Raises at a word that cannot be asked for."""
    if word is not None and word not in ASKED:
        raise InputError(f"Expected {' or '.join(ASKED)} to be required, got {word!r}.")


def require(
    word: str, least: str | None, baseline: Baseline | None = None, documents: str = ""
) -> None:
    """Raises `VerdictWorse` where a word is worse than the least one, or than an earlier run's.

    `documents` is the fingerprint of those that were audited: others are said.

    >>> require("partly", "partly")
    >>> require("cannot tell", "partly")
    Traceback (most recent call last):
    heedful.errors.VerdictWorse: The verdict is CANNOT TELL, and PARTLY or better was required.
    """
    refuse_word(least)
    if least is not None and ORDER.index(word) < ORDER.index(least):
        better = "" if least == ORDER[-1] else " or better"
        raise VerdictWorse(
            f"The verdict is {word.upper()}, and {least.upper()}{better} was required."
        )
    if baseline is not None and ORDER.index(word) < ORDER.index(baseline.word):
        other = documents != baseline.documents
        raise VerdictWorse(
            f"The verdict is {word.upper()}, and it was {baseline.word.upper()} in {baseline.run}"
            + (", which was audited on other documents." if other else ".")
        )
