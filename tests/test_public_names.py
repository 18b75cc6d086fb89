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
    work |= {"sweep", "audit_answers", "audit_shards"}
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


def test_an_option_has_the_name_of_its_parameter() -> None:
    from inspect import signature

    from heedful.cli import audit, explain, lexicon, train
    from heedful.jobs.lexicon import rate

    documents = {"corpus", "data", "text", "label", "split", "labels", "threshold", "data_root"}
    elsewhere = {
        "audit": {
            "context",
            "config",
            "quick",
            "prompt",
            "chat",
            "prior",
            "require",
            "baseline",
            "on",
            "questions",
            "units",
            "heads",
            "estimate",  # a function of its own
        },
        "explain": {"texts", "method", "every", "device", "prompt", "chat"},
        "lexicon": set(),
        "train": {"text2", "config", "quick", "run", "objective", "limit"},
    }  # what a file of settings, another function or the printing is for
    commands = {"audit": audit.audit, "explain": explain.explain, "train": train.train}
    functions = {name: getattr(heedful, name) for name in commands} | {"lexicon": rate}
    for name, command in (commands | {"lexicon": lexicon.lexicon}).items():
        own = set(signature(functions[name]).parameters)
        typed = set(signature(command).parameters) - documents - elsewhere[name] - {"json"}
        assert typed <= own | {"text", "data_root"}, (name, typed - own)
