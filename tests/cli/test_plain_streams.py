"""What is printed where not every character can be: plainer ones, and JSON that stays JSON."""

import io
import json
import os
import subprocess
import sys

import pytest

from heedful.cli.options import print_json
from heedful.cli.plain_streams import takes_all, use_plain_characters

SAID = "18\u00a0% [−3, 12] ✗ ▲ → “größer” 日"


@pytest.mark.parametrize(
    ("encoding", "said"),
    [
        ("ascii", '18 % [-3, 12] x ^ -> "grosser" ?'),
        ("latin-1", '18\u00a0% [-3, 12] x ^ -> "größer" ?'),
        ("utf-8", SAID),
    ],
)
def test_characters_that_an_encoding_lacks_become_plainer(
    encoding: str, said: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    raw = io.BytesIO()
    monkeypatch.setattr(sys, "stdout", io.TextIOWrapper(raw, encoding, write_through=True))
    use_plain_characters()
    print(SAID.replace("ß", "ss") if encoding == "ascii" else SAID)
    print_json({"said": SAID})
    first, *rest = raw.getvalue().decode(encoding).splitlines()
    assert first == said
    assert json.loads("\n".join(rest)) == {"said": SAID}


@pytest.mark.parametrize(("name", "whole"), [("utf8", True), ("UTF-16", True), ("cp1252", False)])
def test_which_encodings_have_all_characters(name: str, whole: bool) -> None:
    assert takes_all(name) is whole
    assert not takes_all("no-such-encoding")


def test_the_command_speaks_where_nothing_but_ascii_is_heard() -> None:
    environment = os.environ | {"PYTHONIOENCODING": "ascii"}
    command = [sys.executable, "-m", "heedful", "audit", "größer-als-日"]
    found = subprocess.run(command, env=environment, capture_output=True, check=False)
    assert found.returncode == 2
    assert found.stderr.startswith(b"heedful: ")
    assert b"Traceback" not in found.stderr
