"""May I show this model's attention as the reason for its decision?

    import heedful

    corpus = heedful.load_corpus("planted")
    model = heedful.train("bilstm+additive", corpus)
    result = heedful.audit(model, corpus, out="runs/mine")
    print(result.verdict.word, result.report)

    reading = heedful.read(model, model.batch(["The soup was dreadful."]))
    heedful.decide(model, reading, heedful.uniform(reading))

What trains, audits, compares and rebuilds is also a command: `heedful --help`.
"""

from importlib import import_module
from importlib.metadata import PackageNotFoundError, version
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from heedful.calibration.calibrate import calibrate
    from heedful.cluster.shards import audit_shards
    from heedful.cluster.sweep import sweep
    from heedful.corpora import load_corpus
    from heedful.errors import InputError, VerdictWorse
    from heedful.jobs.answers import audit_answers
    from heedful.jobs.audit import audit, estimate
    from heedful.jobs.compare import compare
    from heedful.jobs.decider import load
    from heedful.jobs.explain import explain
    from heedful.jobs.remedy import remedy
    from heedful.jobs.train import train
    from heedful.models import Permute as permute
    from heedful.models import Replace as replace
    from heedful.models import curve, decide, erase, keep, parse, read, uniform
    from heedful.models.huggingface.language_models import Asking
    from heedful.studies import reproduce

try:
    __version__ = version("heedful")
except PackageNotFoundError:  # running from a source tree that was never installed
    __version__ = "0.1.0"

_HOMES = {
    "Asking": "heedful.models.huggingface.language_models.Asking",
    "InputError": "heedful.errors.InputError",
    "VerdictWorse": "heedful.errors.VerdictWorse",
    "audit": "heedful.jobs.audit.audit",
    "audit_answers": "heedful.jobs.answers.audit_answers",
    "audit_shards": "heedful.cluster.shards.audit_shards",
    "calibrate": "heedful.calibration.calibrate.calibrate",
    "compare": "heedful.jobs.compare.compare",
    "curve": "heedful.models.curve",
    "decide": "heedful.models.decide",
    "erase": "heedful.models.erase",
    "estimate": "heedful.jobs.audit.estimate",
    "explain": "heedful.jobs.explain.explain",
    "keep": "heedful.models.keep",
    "load": "heedful.jobs.decider.load",
    "load_corpus": "heedful.corpora.load_corpus",
    "parse": "heedful.models.parse",
    "permute": "heedful.models.Permute",
    "read": "heedful.models.read",
    "remedy": "heedful.jobs.remedy.remedy",
    "replace": "heedful.models.Replace",
    "reproduce": "heedful.studies.reproduce",
    "sweep": "heedful.cluster.sweep.sweep",
    "train": "heedful.jobs.train.train",
    "uniform": "heedful.models.uniform",
}
"""Where each public name is defined."""

__all__ = [
    "Asking",
    "InputError",
    "VerdictWorse",
    "audit",
    "audit_answers",
    "audit_shards",
    "calibrate",
    "compare",
    "curve",
    "decide",
    "erase",
    "estimate",
    "explain",
    "keep",
    "load",
    "load_corpus",
    "parse",
    "permute",
    "read",
    "remedy",
    "replace",
    "reproduce",
    "sweep",
    "train",
    "uniform",
]


def __getattr__(name: str) -> Any:
    """Imports a public name when it is first used, so that `import heedful` stays instant."""
    if name not in _HOMES:
        raise AttributeError(f"module 'heedful' has no attribute {name!r}")
    room, _, own_name = _HOMES[name].rpartition(".")
    return getattr(import_module(room), own_name)


def __dir__() -> list[str]:
    """The public names, also those that were not used yet."""
    return [*__all__, "__version__"]
