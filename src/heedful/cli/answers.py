"""`heedful audit lm:FOLDER --questions FILE`: what the answers of a language model came from."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import typer

from heedful.cli.options import print_json, say, typed_options
from heedful.errors import InputError, VerdictWorse

OPTIONS = (
    "--questions", "--units", "--heads", "--prompt", "--chat", "--documents", "--seed", "--device",
    "--trust-remote-code", "--out", "--require", "--json",
)  # fmt: skip
"""Those of `heedful audit` that are for answers."""


def audit_questions(
    context: typer.Context,
    model: str,
    questions: str,
    units: str,
    heads: Path | None,
    least: str | None,
    as_json: bool,
    *,
    out: Path | None,
    **named: Any,
) -> None:
    """Audits the answers and prints what was found; options that are not for answers are refused.

    Ends with exit code 3 where the verdict is worse than the least one asked for.
    """
    from heedful.jobs.answers import audit_answers
    from heedful.models.huggingface.language_models import PREFIX, is_language_model
    from heedful.report.answers_console import print_answers

    if not is_language_model(model):
        raise InputError(
            f"--questions are for a language model, named as {PREFIX}FOLDER; got {model}."
        )
    for option in typed_options(context):
        if option.startswith("-") and option not in OPTIONS:
            raise InputError(f"{option} is not for answers to --questions; leave one of them out.")
    title = f"{Path(model.removeprefix(PREFIX)).name}-{Path(questions).stem}"
    title += "" if units == "passages" else f"-{units}"
    place = out or Path("runs") / re.sub(r"[^\w.+-]+", "-", title)
    result = audit_answers(model, questions, place, units=units, heads=heads, show=True, **named)
    if as_json:
        print_json(result.to_json())
    else:
        print_answers(result.verdict.to_json(), result.finding, result.answers, str(result.report))
    try:
        result.require(least)
    except VerdictWorse as worse:
        say([f"heedful: {worse}"])
        raise typer.Exit(3) from worse
