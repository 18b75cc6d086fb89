"""Whole pieces of work: train, audit, explain."""

from heedful.jobs.audit import Audited, audit
from heedful.jobs.explain import Explanation, explain
from heedful.jobs.narratives import trace_narratives, train_narrator
from heedful.jobs.settings import Settings, read_settings, settings_of
from heedful.jobs.subject import deterministic, device_of, load
from heedful.jobs.train import train
from heedful.jobs.translator import train_translator

__all__ = [
    "Audited",
    "Explanation",
    "Settings",
    "audit",
    "deterministic",
    "device_of",
    "explain",
    "load",
    "read_settings",
    "settings_of",
    "trace_narratives",
    "train",
    "train_narrator",
    "train_translator",
]
