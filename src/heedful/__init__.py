"""May I show this model's attention as the reason for its decision?

    import heedful

    corpus = heedful.load_corpus("planted")
    model = heedful.train("bilstm+additive", corpus)
    result = heedful.audit(model, corpus, out="runs/mine")
    print(result.verdict.word, result.report)

Everything below is also a command: `heedful --help`.
"""

from importlib import import_module
from importlib.metadata import PackageNotFoundError, version
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from heedful.corpora import load_corpus
    from heedful.errors import InputError
    from heedful.jobs import load
    from heedful.jobs.audit import audit
    from heedful.jobs.explain import explain
    from heedful.jobs.train import train
    from heedful.models import curve, decide, parse, read

try:
    __version__ = version("heedful")
except PackageNotFoundError:  # running from a source tree that was never installed
    __version__ = "0.1.0"

_ROOMS = {
    "InputError": "heedful.errors",
    "audit": "heedful.jobs",
    "curve": "heedful.models",
    "decide": "heedful.models",
    "explain": "heedful.jobs",
    "load": "heedful.jobs",
    "load_corpus": "heedful.corpora",
    "parse": "heedful.models",
    "read": "heedful.models",
    "train": "heedful.jobs",
}

__all__ = [
    "InputError",
    "audit",
    "curve",
    "decide",
    "explain",
    "load",
    "load_corpus",
    "parse",
    "read",
    "train",
]


def __getattr__(name: str) -> Any:
    """Imports a public name when it is first used, so that `import heedful` stays instant."""
    if name not in _ROOMS:
        raise AttributeError(f"module 'heedful' has no attribute {name!r}")
    return getattr(import_module(_ROOMS[name]), name)
