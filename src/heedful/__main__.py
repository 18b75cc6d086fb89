"""The command `heedful`: runs it and turns errors into one sentence."""

from __future__ import annotations

import os
import sys
from typing import Any


def main() -> None:
    """Runs the command line; bad input ends with one sentence and exit code 2."""
    from heedful.runs.memory import use_system_memory
    from heedful.runs.threads import share_cores

    sys.unraisablehook = unheard
    share_cores()
    use_system_memory()
    from heedful.cli import app
    from heedful.cli.plain_streams import use_plain_characters
    from heedful.errors import InputError, one_line

    use_plain_characters()
    try:
        code = app(standalone_mode=False)
    except InputError as error:
        print(f"heedful: {error}", file=sys.stderr)
        code = 2
    except BrokenPipeError:  # the reader of our output has gone, e.g. `| head`
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        code = 1
    except Exception as error:
        # Typer's own errors (a mistyped option) are click's in some versions and its own in
        # others; both say how to show themselves and which code to end with.
        if hasattr(error, "show") and hasattr(error, "exit_code"):
            setattr(error, "message", one_line(str(getattr(error, "message", error))))  # noqa: B010
            error.show()
            code = error.exit_code
        elif said := explained(error):
            print(f"heedful: {one_line(said)}", file=sys.stderr)
            code = 2
        else:
            raise
    if code == 130:  # Ctrl-C
        print("heedful: stopped; the same command goes on from what was kept.", file=sys.stderr)
    sys.exit(code)


def unheard(lost: Any) -> None:
    """Says nothing of memory that ran out where no error can be raised: who asks next is told.

    Python's own way has no memory to say what it began, and our sentence would end its line.
    """
    if not isinstance(lost.exc_value, MemoryError):
        sys.__unraisablehook__(lost)


def explained(error: Exception) -> str | None:
    """A sentence for what the machine refuses wherever it happens; none for mistakes of ours."""
    from heedful.runs.memory import is_out_of_memory

    if isinstance(error, MemoryError) or is_out_of_memory(error):
        return (
            f"The memory of this machine does not suffice ({str(error) or 'none is left'}); give "
            "fewer documents, shorter texts or a smaller model."
        )
    if isinstance(error, RecursionError):
        return "What was given is nested too deeply to be read; give a flatter file."
    if isinstance(error, OSError):
        place = f" {error.filename}" if error.filename else ""
        return f"Cannot read or write{place}: {error.strerror or error}; check path and disk."
    return None


if __name__ == "__main__":
    main()
