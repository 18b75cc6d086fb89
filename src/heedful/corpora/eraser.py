"""ERASER movies: film reviews with the spans that people marked as reasons."""

from __future__ import annotations

import json
import tarfile
import zlib
from collections import Counter
from io import BytesIO
from pathlib import Path

import numpy as np

from heedful.corpora.documents import Corpus, Document
from heedful.corpora.entries import CATALOGUE
from heedful.corpora.recipes import Wanted, arrange
from heedful.corpora.root import expect, find
from heedful.corpora.tables import bytes_of
from heedful.corpora.tokens import tokenise
from heedful.errors import InputError

ENTRY = CATALOGUE["eraser_movies"]
RULE = "whitespace"
"""The token rule: the release comes in tokens, and its rationales count them."""
_SPLITS = {"train": "train", "val": "dev", "test": "test"}


def _members(path: Path) -> dict[str, str]:
    """The texts of the archive by name; nothing is unpacked to disk."""
    texts = {}
    try:
        data = bytes_of(path)
        with tarfile.open(fileobj=BytesIO(data), mode="r:") as archive:
            for member in archive:
                file = archive.extractfile(member) if member.isfile() else None
                if file is not None:
                    if member.size > len(data):  # a file of holes claims any size
                        raise tarfile.ReadError(f"{member.name} is larger than the archive")
                    texts[member.name] = file.read().decode("utf-8")
    except (tarfile.TarError, EOFError, OSError, zlib.error, ValueError) as error:
        if isinstance(error, InputError):
            raise
        reason = str(error).splitlines()[0]
        raise InputError(
            f"{path} is damaged ({reason}); fetch it again from {ENTRY.source}."
        ) from error
    return texts


def _document(record: dict[str, object], text: str, label: int, path: Path) -> Document:
    """A review whose lines are sentences, with the marked spans as evidence."""
    tokens, spans = tokenise(text, RULE)
    breaks = np.flatnonzero(np.array(list(text)) == "\n")
    passed = np.searchsorted(breaks, spans[:, 0])
    sentence = np.cumsum(np.diff(passed, prepend=passed[:1]) > 0, dtype=np.int32)
    evidence = np.zeros(len(tokens), dtype=bool)
    groups = record["evidences"]
    if not isinstance(groups, list):
        raise TypeError("evidences are a list")
    for group in groups:
        for span in group:
            start, end = span["start_token"], span["end_token"]
            if " ".join(tokens[start:end]) != span["text"].lower():
                raise InputError(
                    f"{path}: a rationale of {record['annotation_id']} does not fit its review at "
                    f"tokens {start} to {end}."
                )
            evidence[start:end] = True
    return Document(str(record["annotation_id"]), text, tokens, spans, label, sentence, evidence)


def read_eraser(wanted: Wanted) -> Corpus:
    """Film reviews with rationales as evidence; tokens and sentences are those of the release."""
    path = find(wanted.root, ENTRY.files[0], ENTRY.source)
    members = _members(path)
    splits = {}
    for part, split in _SPLITS.items():
        lines = members.get(f"movies/{part}.jsonl", "").splitlines()
        records = [json.loads(line) for line in lines]
        expect(path, Counter(record["classification"] for record in records), ENTRY.counts[part])
        splits[split] = [
            _document(
                record,
                members[f"movies/docs/{record['annotation_id']}"],
                int(record["classification"] == "POS"),
                path,
            )
            for record in records
        ]
    arranged, notes = arrange(splits, wanted.recipe, wanted.seed)
    classes = ENTRY.names[wanted.task]
    return Corpus(
        name=wanted.name, classes=classes, splits=arranged, notes=dict(+notes), tokeniser=RULE
    )
