"""What reaches a terminal is one visible line, whatever a file, a label or a path holds."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from heedful.__main__ import explained
from heedful.errors import LONGEST, InputError, escaped, intact, one_line, visible

HOSTILE = "a\x1b]0;title\x07b\r\nc\x9b2Jd\u202ee\u2028f\x7fg"


def test_what_a_terminal_would_obey_is_shown_instead():
    shown = visible(HOSTILE)
    assert len(shown) == len(HOSTILE)
    assert shown.startswith("a␛]0;title␇b␍␊c")
    assert shown.isprintable()
    assert visible("plain, é, 漢, 😀") == "plain, é, 漢, 😀"


def test_a_message_is_one_line_of_bounded_length_with_its_end():
    said = one_line("x" * 800_000 + "\nchoose another --out.")
    assert len(said) < LONGEST + 10
    assert said.endswith("␊choose another --out.")


def test_escaped_json_says_the_same():
    text = json.dumps({HOSTILE: HOSTILE}, ensure_ascii=False)
    assert json.loads(escaped(text)) == {HOSTILE: HOSTILE}
    assert escaped(text).isprintable()


def test_a_verdict_and_an_explanation_print_no_control_character(
    capsys: pytest.CaptureFixture[str],
):
    from heedful.report.console import print_explanation

    words = {"attention": [0.5, 0.5]}
    said = {"decision": HOSTILE, "probabilities": {HOSTILE: 1.0}, "units": [HOSTILE, "b"]}
    print_explanation({**said, "importance": words, "unknown": [HOSTILE]})
    assert capsys.readouterr().out.replace("\n", "").isprintable()


def test_files_that_were_changed_are_a_sentence_and_our_own_errors_stay():
    said = r"run holds something .* did not write \(KeyError: 'word"
    with pytest.raises(InputError, match=said), intact("run"):
        raise KeyError("word")
    with pytest.raises(InputError, match=r"^choose another$"), intact("run"):
        raise InputError("choose another")


@pytest.mark.parametrize(
    ("error", "said"),
    [
        (MemoryError(), "memory of this machine does not suffice (none is left)"),
        (RuntimeError("DefaultCPUAllocator: can't allocate memory: 8 TB"), "can't allocate memory"),
        (ImportError("x.so: failed to map segment from shared object"), "does not suffice"),
        (RuntimeError("can't start new thread"), "does not suffice"),
        (RecursionError("maximum recursion depth exceeded"), "nested too deeply"),
        (OSError(36, "File name too long", "x" * 300), "xx: File name too long; check path"),
        (PermissionError(13, "Permission denied"), "Cannot read or write: Permission denied"),
    ],
)
def test_what_the_machine_refuses_is_a_sentence(error: Exception, said: str):
    found = explained(error)
    assert found is not None
    assert said in found
    assert explained(ValueError("a mistake of ours")) is None


def test_a_file_name_with_control_characters_and_a_path_too_long_are_one_sentence(tmp_path: Path):
    command = "import sys, heedful.__main__ as m; sys.argv[1:1] = ['report']; m.main()"
    for name in ("a\x1b[2J\nb", "x" * 300):
        words = [sys.executable, "-c", command, str(tmp_path / name)]
        done = subprocess.run(words, capture_output=True, text=True, check=False)
        assert done.returncode == 2
        assert done.stderr.startswith("heedful: ")
        assert done.stderr.rstrip("\n").isprintable()


LOST = """
import sys
import heedful.__main__ as m
class Lost:
    def __init__(self, error): self.error = error
    def __del__(self): raise self.error
def work(**options):
    Lost(MemoryError()), Lost(ValueError("ours"))
    raise MemoryError
import heedful.cli
heedful.cli.app = work
m.main()
"""


def test_memory_that_ends_where_nothing_can_be_raised_does_not_begin_our_line():
    done = subprocess.run([sys.executable, "-c", LOST], capture_output=True, text=True)
    lines = done.stderr.splitlines()
    assert done.returncode == 2
    assert lines[-1].startswith("heedful: The memory of this machine does not suffice")
    assert sum("Exception ignored" in line for line in lines) == 1  # of the other error
    assert "ValueError: ours" in lines
