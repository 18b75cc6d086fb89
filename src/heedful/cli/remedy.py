"""`heedful train --from RUN`: the remedy for a run whose attention is no reason."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from pathlib import Path

from heedful.cli.options import open_source, settings_named, tell
from heedful.errors import InputError


def refuse_beside_from(given: Mapping[str, object]) -> None:
    """Raises where an option was given that a sweep takes from the run."""
    # The folder of corpora that the environment names for all commands was not given to this one.
    set_for_all = os.environ.get("HEEDFUL_DATA")
    ambient = {"--data-root": Path(set_for_all)} if set_for_all else {}
    named = [option for option, value in given.items() if value and value != ambient.get(option)]
    if named:
        raise InputError(
            f"--from takes documents, seed and training from the run; leave {', '.join(named)} out."
        )


def sweep(
    run: Path,
    recipe: str,
    objective: str,
    limit: float | None,
    config: Path | None,
    vectors: Path | None,
    out: Path | None,
    device: str,
    json: bool,
) -> None:
    """Sweeps the strength of an objective on the run's own dev documents and keeps the best."""
    from heedful.jobs import Settings
    from heedful.jobs.remedy import remedy, source_again, swept
    from heedful.jobs.strengths import LIMIT, refuse_limit
    from heedful.models.recipe import typed

    if recipe:
        raise InputError("--from takes its recipe from the run; leave the recipe out.")
    settings = settings_named(config, quick=False)
    if settings != Settings(penalties=settings.penalties):
        raise InputError(
            f"--from takes sizes, training and words from the run; leave all but [penalties] out "
            f"of {config}."
        )
    name, strengths = swept(objective)
    allowed = LIMIT if limit is None else limit
    refuse_limit(allowed)  # before documents are opened, which may take a while
    folder = f"{run.name}-{re.sub('[:,]+', '-', objective)}"
    folder += "" if allowed == LIMIT else f"-limit-{typed(allowed)}"
    found = remedy(
        run,
        open_source(source_again(run)),
        out or run.with_name(folder),
        objective=name,
        strengths=strengths,
        limit=allowed,
        reductions=settings.penalties,
        vectors=vectors,
        device=device,
        show=True,
    )
    tell(found, json)
