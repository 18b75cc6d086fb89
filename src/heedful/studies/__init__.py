"""The studies: every table, figure and claim as data, and the function that rebuilds them.

from heedful.studies import reproduce

reproduce("quicklook", out="runs/reproduce").lines()
"""

from __future__ import annotations

from collections.abc import Iterable
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any

from heedful.errors import InputError, unknown

if TYPE_CHECKING:
    from heedful.reproduction.reproduce import Reproduced
    from heedful.reproduction.study import Study

STUDIES: dict[str, str] = {
    "quicklook": "heedful.studies.quicklook",
    "erasure": "heedful.studies.erasure.study",
    "faithful": "heedful.studies.faithful.study",
    "polarity": "heedful.studies.polarity.study",
    "dynamics": "heedful.studies.dynamics.study",
    "tracing": "heedful.studies.tracing.study",
    "transformers": "heedful.studies.transformers.study",
}
"""The module of each study, which calls it STUDY; imported when it is asked for."""


def study_of(name: str) -> Study:
    """The study of that name."""
    if name not in STUDIES:
        raise unknown("study", name, [*STUDIES, "all"])
    found: Study = import_module(STUDIES[name]).STUDY
    return found


def reproduce(
    study: str,
    *,
    only: Iterable[str] = (),
    scale: str = "smoke",
    corpora: Iterable[str] = (),
    seeds: int | None = None,
    out: Path | str = "runs/reproduce",
    data_root: Path | str | None = None,
    device: str = "cpu",
    show: bool = False,
    figures: bool = True,
    compute: bool = True,
    jobs: int = 1,
) -> Reproduced:
    """The artifacts and claims of a study, or of `all`, rebuilt under `<out>/<study>/`.

    See `heedful.reproduction.reproduce.reproduce_study` for the options. With several `jobs` so
    many processes work on the steps at once, which keeps a GPU busy with small models.
    """
    from heedful.reproduction.reproduce import Reproduced, reproduce_study

    only, corpora = tuple(only), tuple(corpora)
    if study == "all" and (only or corpora):
        raise InputError("--only and --corpora name parts of one study; give its name, not all.")
    names = list(STUDIES) if study == "all" else [study]
    chosen = [study_of(name) for name in names]
    settings: dict[str, Any] = {
        "only": only, "scale": scale, "corpora": corpora, "seeds": seeds, "out": out,
        "data_root": data_root, "device": device,
    }  # fmt: skip
    if jobs != 1 and compute:
        from heedful.reproduction.workers import compute_together

        for name in names:
            compute_together(STUDIES[name], jobs, **settings)
    shown: dict[str, Any] = {"show": show, "figures": figures, "compute": compute}
    return Reproduced(tuple(reproduce_study(one, **settings, **shown) for one in chosen))


__all__ = ["STUDIES", "reproduce", "study_of"]
