"""`heedful train --from RUN`: the remedy for a run whose attention is no reason."""

from __future__ import annotations

from pathlib import Path

from heedful.cli_options import open_source, tell
from heedful.errors import InputError


def sweep(
    run: Path,
    recipe: str,
    objective: str,
    vectors: Path | None,
    out: Path | None,
    device: str,
    json: bool,
) -> None:
    """Sweeps the strength of an objective on the run's own dev documents and keeps the best."""
    from heedful.jobs.remedy import remedy
    from heedful.jobs.sources import source_of

    source = source_of(run)
    if recipe or source is None:
        why = (
            "takes its recipe from the run"
            if recipe
            else f"does not find what {run} was trained on"
        )
        raise InputError(f"--from {why}; leave the recipe out and name a run made by this heedful.")
    out = out or run.with_name(f"{run.name}-{objective}")
    found = remedy(
        run,
        open_source(source),
        out,
        objective=objective,
        vectors=vectors,
        device=device,
        show=True,
    )
    tell(found, json)
