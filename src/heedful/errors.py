"""Errors a person can act on: one sentence with what was expected, what came and what to do."""

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from difflib import get_close_matches


class InputError(ValueError):
    """Something the user gave cannot be used; the command line shows it without a traceback.

    It is one visible line, whatever names and values of the user's files are quoted in it.
    """

    def __init__(self, said: str) -> None:
        super().__init__(one_line(said))


class UnsupportedModel(InputError):
    """A model, or a part of one, that the asked-for measurement does not support."""


class VerdictWorse(Exception):
    """A verdict is worse than was required; the command line ends with exit code 3."""


@contextmanager
def intact(place: object) -> Iterator[None]:
    """Says that files were changed or are too old, where code that only reads them stumbles."""
    try:
        yield
    except (InputError, OSError, MemoryError):
        raise
    except Exception as error:  # tables, templates and charts each have errors of their own
        raise InputError(
            f"{place} holds something that this heedful did not write ({type(error).__name__}: "
            f"{error}); audit the model again into a new folder."
        ) from error


_MARKS = (0x61C, 0x200E, 0x200F, *range(0x2028, 0x202F), *range(0x2066, 0x206A))
_HIDDEN = {code: chr(0x2400 + code) for code in range(0x20)} | {0x7F: "\u2421"}
_HIDDEN |= dict.fromkeys((*range(128, 160), *_MARKS, *range(0xD800, 0xE000)), "�")
LONGEST = 2000
"""Characters of a message; a file with 100,000 columns must not fill the screen."""


def visible(text: str) -> str:
    """The text with a sign in place of everything that a terminal would obey instead of show.

    Control characters, line breaks, marks of direction and halves of characters; lengths stay as
    they are.
    """
    return text.translate(_HIDDEN)


def escaped(json: str) -> str:
    """JSON that says the same without what a terminal would obey (it escapes the first 32)."""
    return json.translate({code: f"\\u{code:04x}" for code in _HIDDEN if code >= 0x7F})


def one_line(text: str) -> str:
    """A message as one visible line, with what is too long left out in its middle."""
    if len(text) > LONGEST:
        text = f"{text[: LONGEST * 3 // 4]} … {text[-LONGEST // 4 :]}"
    return visible(text)


def unknown(kind: str, name: str, known: Iterable[str]) -> InputError:
    """Returns the error for a name that is not among the known ones, with the closest match."""
    known = sorted(known)
    close = get_close_matches(name, known, n=1)
    hint = f" Did you mean {close[0]!r}?" if close else ""
    return InputError(f"Unknown {kind} {name!r}; known: {', '.join(known)}.{hint}")
