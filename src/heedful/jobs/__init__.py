"""Whole pieces of work: train, audit, explain."""

from heedful.jobs.auditing import Audited, audit
from heedful.jobs.explaining import Explanation, explain
from heedful.jobs.narrating import trace_narratives, train_narrator
from heedful.jobs.opening import deterministic, device_of, load
from heedful.jobs.settings import Settings, read_settings, settings_of
from heedful.jobs.training import train
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
