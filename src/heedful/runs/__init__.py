"""Run folders, whole-or-nothing writes, locks and steps that are done once."""

from heedful.runs.atomic import (
    plain,
    read_csv,
    read_json,
    remove_leftovers,
    write_csv,
    write_json,
    write_text,
    writing,
    writing_folder,
)
from heedful.runs.folder import RunFolder, held
from heedful.runs.locks import locked
from heedful.runs.memory import give_back_memory, is_out_of_memory
from heedful.runs.provenance import commit, now, versions
from heedful.runs.steps import JSON, TABLE, TABLES, Form, digest, fingerprint, is_done, step

__all__ = [
    "JSON",
    "TABLE",
    "TABLES",
    "Form",
    "RunFolder",
    "commit",
    "digest",
    "fingerprint",
    "give_back_memory",
    "held",
    "is_done",
    "is_out_of_memory",
    "locked",
    "now",
    "plain",
    "read_csv",
    "read_json",
    "remove_leftovers",
    "step",
    "versions",
    "write_csv",
    "write_json",
    "write_text",
    "writing",
    "writing_folder",
]
