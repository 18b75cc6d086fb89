"""The front door: what is importable from `heedful`, and at what price."""

import re
import subprocess
import sys
from pathlib import Path

import heedful

README = Path(__file__).parents[1] / "README.md"


def test_every_public_name_is_listed_and_found() -> None:
    assert set(heedful.__all__) < set(dir(heedful))
    for name in heedful.__all__:
        assert callable(getattr(heedful, name)), name


def test_whatever_edits_attention_or_works_for_a_command_is_public() -> None:
    edits = {"erase", "keep", "uniform", "permute", "replace"}
    work = {"train", "audit", "explain", "remedy", "compare", "calibrate", "reproduce"}
    assert edits | work <= set(heedful.__all__)


def test_the_readme_uses_public_names_alone() -> None:
    (example,) = re.findall(r"```python\n(.*?)```", README.read_text(), re.DOTALL)
    assert "from heedful" not in example
    assert set(re.findall(r"heedful\.(\w+)", example)) <= set(heedful.__all__)


def test_importing_heedful_imports_none_of_its_rooms() -> None:
    code = (
        "import sys, heedful; dir(heedful)\n"
        "assert [m for m in sys.modules if m.startswith('heedful')] == ['heedful']\n"
        "assert not {'torch', 'numpy', 'pandas', 'typer'} & set(sys.modules)"
    )
    subprocess.run([sys.executable, "-c", code], check=True)
