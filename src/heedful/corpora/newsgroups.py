"""20 Newsgroups, the bydate version, with headers, footers and quotes removed unless kept."""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Sequence

from heedful.corpora.documents import Corpus
from heedful.corpora.entries import CATALOGUE
from heedful.corpora.recipes import Row, Wanted, build
from heedful.corpora.root import expect, find, lines_of
from heedful.errors import InputError, unknown

ENTRY = CATALOGUE["20newsgroups"]
GROUPS = ENTRY.names[""]
REMOVABLE = ("headers", "footers", "quotes")

# A quoted line: ">", "|" or ":" at the start, perhaps after the initials of who is quoted.
_QUOTED = re.compile(r"^\s*(?:[A-Za-z]{1,4})?[>|]|^\s*:\s")
# The line that leads a quote in: "In article <...>", "someone@somewhere writes:".
_LEAD_IN = re.compile(r"^\s*In article\b|\b(?:writes|wrote|said|says)\s*:\s*$", re.IGNORECASE)
_RULE = re.compile(r"^\s*[-_=*~#+]{2,}\s*$")
_SIGNATURE_LINES = 12


def without_headers(post: str) -> str:
    """The post after its first empty line."""
    head, found, body = post.partition("\n\n")
    return body if found else head


def without_quotes(post: str) -> str:
    """The post without quoted lines and the lines that lead them in."""
    lines = post.split("\n")
    return "\n".join(
        line for line in lines if not _QUOTED.search(line) and not _LEAD_IN.search(line)
    )


def without_footers(post: str) -> str:
    """The post up to a signature: what follows the last ruled line near its end."""
    lines = post.rstrip().split("\n")
    first = max(len(lines) - _SIGNATURE_LINES, 1)
    for number in range(first, len(lines)):
        if _RULE.match(lines[number]):
            return "\n".join(lines[:number])
    return post


def strip_post(post: str, keep: Collection[str] = ()) -> str:
    """The post without headers, footers and quotes, but for those to keep."""
    for name in keep:
        if name not in REMOVABLE:
            raise unknown("part of a post to keep", name, REMOVABLE)
    if "headers" not in keep:
        post = without_headers(post)
    if "footers" not in keep:
        post = without_footers(post)
    if "quotes" not in keep:
        post = without_quotes(post)
    return post.strip()


def groups_of(task: str) -> tuple[str, ...]:
    """The groups that a task names, in its order; the last part of a name will do (`hockey`)."""
    if not task:
        return GROUPS
    groups = []
    for name in task.split(","):
        matching = [group for group in GROUPS if group == name or group.endswith(f".{name}")]
        if len(matching) != 1:
            raise unknown("newsgroup", name, GROUPS)
        groups += matching
    if len(set(groups)) < 2:
        raise InputError(f"20newsgroups:{task} has one group only; name two or more, with commas.")
    return tuple(dict.fromkeys(groups))


def read_newsgroups(
    wanted: Wanted, keep: Sequence[str] = (), stand_in_for: str | None = None
) -> Corpus:
    """The posts of the named groups, or of all twenty; the group is the class."""
    groups = groups_of(wanted.task)
    label_of = {group: label for label, group in enumerate(groups)}
    rows: dict[str, list[Row]] = {}
    empty = 0
    for file in ENTRY.files:
        split = "train" if "train" in file else "test"
        path = find(wanted.root, file, ENTRY.source)
        try:
            posts = [json.loads(line) for line in lines_of(path)]
        except ValueError as error:
            raise InputError(f"{path} is not JSON Lines ({error}); fetch it again.") from error
        expect(path, {"posts": len(posts)}, {"posts": ENTRY.counts[split]})
        rows[split] = [
            Row(
                f"{split}-{post['label']}-{post['id']}",
                strip_post(post["text"], keep),
                label_of[post["label"]],
            )
            for post in posts
            if post["label"] in label_of
        ]
        empty += sum(not row.text for row in rows[split])
    notes = {"posts that are empty without headers, footers and quotes": empty} if empty else {}
    return build(wanted, groups, rows, notes, stand_in_for)
