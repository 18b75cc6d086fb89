"""The command `heedful`: runs it and turns errors into one sentence."""

from __future__ import annotations

import os
import sys


def main() -> None:
    """Runs the command line; bad input ends with one sentence and exit code 2."""
    from click.exceptions import Abort, ClickException

    from heedful.cli import app
    from heedful.errors import InputError

    try:
        sys.exit(app(standalone_mode=False))
    except ClickException as error:  # a mistyped option: usage and one sentence
        error.show()
        sys.exit(error.exit_code)
    except InputError as error:
        print(f"heedful: {error}", file=sys.stderr)
        sys.exit(2)
    except (Abort, KeyboardInterrupt):
        print("heedful: stopped; the same command goes on from here.", file=sys.stderr)
        sys.exit(130)
    except BrokenPipeError:  # the reader of our output has gone, e.g. `| head`
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        sys.exit(1)


if __name__ == "__main__":
    main()
