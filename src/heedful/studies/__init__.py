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
    from heedful.reproduction.request import StudyRequest
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
    jobs: int | None = None,
) -> Reproduced:
    """The artifacts and claims of a study, or of `all`, rebuilt under `<out>/<study>/`.

    Of `all` there is one page more, `<out>/claims.html`: every claim beside every corpus.
    The options are those of `heedful.reproduction.request.StudyRequest` and `reproduce_study`.
    `jobs` processes work on the steps of all studies at once: as many as there are cores on a GPU,
    which they keep busy, and for `all`; otherwise one.
    """
    from heedful.reproduction.matrix_page import write_matrix
    from heedful.reproduction.reproduce import Reproduced, reproduce_study
    from heedful.reproduction.request import StudyRequest

    request = StudyRequest(tuple(only), scale, tuple(corpora), seeds, out, data_root, device)
    names = names_of(study, request)
    chosen = [study_of(name) for name in names]
    if jobs is None and len(names) == 1 and not request.here().device.startswith("cuda"):
        jobs = 1
    if jobs != 1 and compute:
        from heedful.reproduction.workers import compute_together

        # Beside large products the small kernels of other studies take ten times as long.
        for fills_card in (False, True):
            alike = [
                name
                for name, one in zip(names, chosen, strict=True)
                if one.fills_card is fills_card
            ]
            compute_together([STUDIES[name] for name in alike], jobs, request, show)
    shown: dict[str, Any] = {"show": show, "figures": figures, "compute": compute}
    done = tuple(reproduce_study(one, request, **shown) for one in chosen)
    return Reproduced(done, write_matrix(Path(out), chosen) if figures and len(done) > 1 else None)


def names_of(study: str, request: StudyRequest) -> list[str]:
    """The study, or every one for `all`."""
    if study != "all":
        return [study]
    if request.only or request.corpora:
        raise InputError("--only and --corpora name parts of one study; give its name, not all.")
    return list(STUDIES)


__all__ = ["STUDIES", "reproduce", "study_of"]
