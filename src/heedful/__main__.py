"""The command `heedful`: runs it and turns errors into one sentence."""

from __future__ import annotations

import os
import sys


def main() -> None:
    """Runs the command line; bad input ends with one sentence and exit code 2."""
    from heedful.runs.threads import share_cores

    share_cores()
    from heedful.cli import app
    from heedful.errors import InputError

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
        if not (hasattr(error, "show") and hasattr(error, "exit_code")):
            raise
        error.show()
        code = error.exit_code
    if code == 130:  # Ctrl-C
        print("heedful: stopped; the same command goes on from what was kept.", file=sys.stderr)
    sys.exit(code)


if __name__ == "__main__":
    main()
