"""How single-head attention learns: first which words tell the answer, then where they stand.

    heedful reproduce dynamics                               smoke: planted reviews and pairs, tasks
    heedful reproduce dynamics --scale paper --device cuda   the real corpora

Steps are in `steps`, tables in `tables`, figures in `figures`, worked
examples in `examples`, tasks in `tasks`, claims in `claims`.
"""

from __future__ import annotations

from heedful.reproduction.study import Artifact, Plan, Study
from heedful.studies.dynamics import corpora, steps, task_figures, tasks, translation
from heedful.studies.dynamics.claims import CLAIMS
from heedful.studies.dynamics.examples import EXAMPLES, SOURCE
from heedful.studies.dynamics.figures import FIGURES
from heedful.studies.dynamics.printed import PAPER
from heedful.studies.dynamics.tables import TABLES


def _deviations(plan: Plan) -> tuple[str, ...]:
    return PAPER.deviations(plan, frozen=", ".join(map(str, steps.FROZEN)))


def _order(one: Artifact) -> tuple[int, int, str]:
    digits = "".join(character for character in one.id[1:] if character.isdigit())
    return "TFEX".index(one.id[0]), int(digits or 0), one.id


ARTIFACTS = (*TABLES, *FIGURES, *EXAMPLES, *task_figures.ARTIFACTS, translation.LINEAR)
STUDY = Study(
    name="dynamics",
    title="Approximating how single-head attention learns",
    reference=PAPER.reference,
    sources=(*corpora.SOURCES, *translation.SOURCES, *tasks.SOURCES, SOURCE),
    artifacts=tuple(sorted(ARTIFACTS, key=_order)),
    claims=CLAIMS,
    seeds={"smoke": 2, "paper": 5},
    deviations=_deviations,
    symbols=PAPER.said["symbols"],
)
