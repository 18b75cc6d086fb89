"""The files of an artifact: CSV with what is drawn, SVG, and JSON with what it says."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from heedful.reproduction.results import Results, Skipped, named
from heedful.reproduction.study import Artifact, Made, Plan, Study
from heedful.reproduction.view import Views
from heedful.runs import commit, read_csv, read_json, write_csv, write_json, write_text

if TYPE_CHECKING:
    from heedful.reproduction.index_page import ShownArtifact


def write_artifact(
    folder: Path, artifact: Artifact, plan: Plan, results: Results, figures: bool = True
) -> dict[str, Any]:
    """The artifact's JSON, written with its CSV and SVG.

    One that cannot be made now keeps the files of an earlier run that made it.
    """
    name = named(artifact.id)
    record_file = folder / f"{name}.json"
    plan = plan.only(artifact.corpora)
    with results.noting() as missing:
        try:
            made = artifact.make(Views(results, plan))
            is_made = made.table is None or len(made.table) > 0
        except Skipped as skipped:
            if not missing:
                missing["all"] = skipped.reason
            made, is_made = Made(), False
        if not is_made and not results.may_compute and record_file.is_file():
            earlier: dict[str, Any] = read_json(record_file)
            if set(earlier["files"]) != {"json"}:
                return earlier
        written = _write_data(folder, name, made)
        picture = folder / f"{name}.svg"
        if figures and is_made:
            write_text(picture, _picture(artifact, name, made))
        elif not is_made:
            picture.unlink(missing_ok=True)
        if picture.is_file():
            written["svg"] = picture.name
        record = {
            "id": artifact.id,
            "title": artifact.title,
            "where": artifact.where,
            "kind": artifact.kind,
            "paper": artifact.paper,
            "sentence": made.sentence,
            "deviations": list(made.deviations),
            "missing": dict(missing),
            "scale": plan.scale,
            "seeds": len(plan.seeds),
            "corpora": [c for c in plan.corpora if c not in missing],
            "columns": [] if made.table is None else [str(c) for c in made.table.columns],
            "rows": 0 if made.table is None else len(made.table),
            "commit": commit(),
            "files": {**written, "json": record_file.name},
        }
    write_json(record_file, record)
    return record


def load_artifacts(folder: Path, study: Study, pictures: bool) -> list[ShownArtifact]:
    """The artifacts that lie in the folder, in the study's order, from their files alone."""
    from heedful.reproduction.index_page import ShownArtifact

    found = []
    for artifact in study.artifacts:
        name = named(artifact.id)
        if not (folder / f"{name}.json").is_file():
            continue
        table, svg = None, ""
        if pictures:
            shown = [folder / f"{name}{end}" for end in (".shown.csv", ".csv")]
            table = next((read_csv(path) for path in shown if path.is_file()), None)
            path = folder / f"{name}.svg"
            svg = path.read_text("utf-8") if path.is_file() else ""
        found.append(ShownArtifact(read_json(folder / f"{name}.json"), table, svg))
    return found


def _write_data(folder: Path, name: str, made: Made) -> dict[str, str]:
    """Writes the tables; those of an earlier run that are no longer made go away."""
    written = {}
    tables = {"csv": (f"{name}.csv", made.table), "shown": (f"{name}.shown.csv", made.shown)}
    for kind, (file, table) in tables.items():
        if table is None or not len(table):
            (folder / file).unlink(missing_ok=True)
            continue
        write_csv(folder / file, table, "%.10g")
        written[kind] = file
    return written


def _picture(artifact: Artifact, name: str, made: Made) -> str:
    """The SVG file: what `draw` makes of the table, the table itself, or the drawing."""
    from heedful.report.drawing import standalone
    from heedful.report.figures import page_style, svg
    from heedful.reproduction.readable_tables import picture

    if made.svg:
        return made.svg
    if made.table is None:
        raise ValueError(f"artifact {artifact.id} has neither a table nor a drawing")
    if made.draw is None:
        shown = made.table if made.shown is None else made.shown
        return standalone(picture(shown, f"{artifact.id}: {artifact.title}"))
    prefix = f"fig-{name}"
    with page_style(prefix):
        figure = made.draw(made.table)
        return standalone(svg(figure, prefix, f"{artifact.id}: {artifact.title}", made.sentence))
