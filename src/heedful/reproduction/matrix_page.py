"""The page of all studies: every claim beside every corpus, each verdict opening its numbers."""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import Any, NamedTuple

from heedful.report.html import asset, bundled, embedded, script_hash, template
from heedful.reproduction.ledger import EVERY, Side, sides_of
from heedful.reproduction.results import named
from heedful.reproduction.study import Artifact, Claim, Study
from heedful.runs import read_json, write_text

NAME = "claims.html"
"""Its file, beside the folders of the studies."""
LACKING = "not measurable"
MARKS = {"confirmed": "✓", "refuted": "✗", "undecided": "?", LACKING: "·"}
"""Verdicts, and the sign of each."""
COLUMNS: dict[str, tuple[str, ...]] = {
    "all corpora": (EVERY,),
    "SST": ("sst", "sst-l3"),
    "IMDB": ("imdb", "imdb-stars"),
    "AG News": ("ag-news", "ag"),
    "20 News\N{SOFT HYPHEN}groups": ("20newsgroups", "20ng", "ng", "20news-1", "20news-2"),
    "Amazon": ("amazon", "amazon-stars"),
    "transla\N{SOFT HYPHEN}tion": ("multi30k", "iwslt14", "en-nl", "en-pt", "it-pt"),
    "made up": (
        "copying",
        "heads",
        "keyword",
        "toy",
        "data1",
        "three",
        "narratives",
        "evidence",
        "evidence-l3",
    ),
}
"""Studies call the same texts by names of their own; what is named nowhere stands under OTHER."""
OTHER = "others"


ALIKE, MOST_ALIKE = 0.3, 2
"""From which share of common steps on a picture is of what a claim rests on, and how many such."""


class Shown(NamedTuple):
    """The claims of one study as they were judged, and which of its pictures there are."""

    study: Study
    claims: Sequence[Mapping[str, Any]]
    """The objects of `claims.json`."""
    pictures: frozenset[str]
    """Ids of the artifacts that have one."""
    alike: Mapping[str, Sequence[str]] = MappingProxyType({})
    """Where the paper has no picture for a claim, those of the steps that it rests on."""


def write_matrix(folder: Path, studies: Iterable[Study]) -> Path | None:
    """Writes the page of those studies that have claims in the folder; its path, if there are any.

    It is made of files alone and links to the studies' own pages.
    """
    shown = []
    for study in studies:
        own = folder / study.name
        if (own / "claims.json").is_file():
            pictures = frozenset(file.stem for file in own.glob("*.svg"))
            claims = read_json(own / "claims.json")
            shown.append(Shown(study, claims, pictures, pictures_alike(study, claims, pictures)))
    if not shown:
        return None
    write_text(folder / NAME, render_matrix(shown))
    return folder / NAME


def render_matrix(studies: Sequence[Shown]) -> str:
    """The page as HTML that opens from disk: no network, all text escaped."""
    from markupsafe import Markup

    script = bundled(["matrix.js"])
    claims = [claim for one in studies for claim in one.claims]
    counts = Counter(claim["verdict"] for claim in claims)
    told = {
        "claims": {
            f"{one.study.name}/{c['id']}": _said(one, c) for one in studies for c in one.claims
        },
        "cells": {_key(one.study, c): _cell(one, c) for one in studies for c in one.claims},
    }
    return template("matrix.html").render(
        css=Markup(asset("page.css")),
        script=Markup(script),
        script_hash=script_hash(script),
        columns=_columns(claims),
        studies=[_rows(one) for one in studies],
        counts=[(word, MARKS[word], counts[word]) for word in MARKS],
        told=Markup(embedded(told)),
        is_smoke=any(claim["scale"] == "smoke" for claim in claims),
    )


def column_of(corpus: str) -> str:
    """The column in which a corpus stands.

    >>> column_of("imdb-stars"), column_of("send")
    ('IMDB', 'others')
    """
    return next((name for name, corpora in COLUMNS.items() if corpus in corpora), OTHER)


def _columns(claims: Iterable[Mapping[str, Any]]) -> list[str]:
    """The columns that have a verdict, in their order."""
    used = {column_of(claim["corpus"]) for claim in claims}
    return [name for name in (*COLUMNS, OTHER) if name in used]


def _rows(shown: Shown) -> dict[str, Any]:
    """A study's part of the table: one row a claim, its sentence once, its verdicts by column.

    Corpora of one column on which a claim cannot be measured share one mark, the last.
    """
    rows: dict[str, dict[str, Any]] = {}
    for claim in shown.claims:
        new = {"id": claim["id"], "claim": claim["claim"], "marks": {}}
        marks = rows.setdefault(claim["id"], new)["marks"]
        marks.setdefault(column_of(claim["corpus"]), []).append(claim)
    for row in rows.values():
        row["marks"] = {name: _marks(shown, claims) for name, claims in row["marks"].items()}
    return {
        "name": shown.study.name,
        "title": shown.study.title,
        "reference": shown.study.reference,
        "rows": list(rows.values()),
    }


def _marks(shown: Shown, claims: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    known = [[claim] for claim in claims if claim["verdict"] != LACKING]
    lacking = [claim for claim in claims if claim["verdict"] == LACKING]
    return [
        {
            "opens": " ".join(_key(shown.study, claim) for claim in together),
            "corpora": ", ".join(claim["corpus"] for claim in together),
            "verdict": together[0]["verdict"],
            "css_class": together[0]["verdict"].replace(" ", "-"),
            "sign": MARKS[together[0]["verdict"]] + (f"{len(together)}" if together[1:] else ""),
        }
        for together in [*known, *([lacking] if lacking else [])]
    ]


def _key(study: Study, claim: Mapping[str, Any]) -> str:
    """What a verdict is called in an address: `claims.html#erasure/ERA-1/imdb-stars`."""
    return f"{study.name}/{claim['id']}/{claim['corpus']}"


def _said(shown: Shown, claim: Mapping[str, Any]) -> dict[str, Any]:
    """What an opened verdict says of its claim, the same on every corpus."""
    pictures = pictured(claim["where"], shown.pictures)
    return {
        **{name: claim[name] for name in ("id", "claim", "where", "statistic", "side")},
        "study": shown.study.name,
        "pictures": pictures,
        "alike": list(shown.alike.get(claim["id"], ())),
        "command": f"heedful reproduce {shown.study.name} --scale {claim['scale']} "
        f"--only {claim['id']}",
    }


def _cell(shown: Shown, claim: Mapping[str, Any]) -> dict[str, Any]:
    """What an opened verdict shows of its corpus."""
    own = ("side", "verdict", "ours", "interval", "n")
    parts = claim["parts"] or [{"part": claim["corpus"], **{name: claim[name] for name in own}}]
    told = ("corpus", "paper", "verdict", "reason", "n", "seeds")
    return {
        **{name: claim[name] for name in told},
        "ours": _digits(claim["ours"]),
        "interval": _ends(claim["interval"]),
        "of": f"{shown.study.name}/{claim['id']}",
        "stand_in_for": claim["stand_in_for"] or "",
        "parts": [_part(part, claim["side"]) for part in parts],
    }


def _digits(number: float | None) -> float | None:
    """As many as anybody reads."""
    return None if number is None else float(f"{number:.6g}")


def _ends(interval: Sequence[float] | None) -> list[float | None] | None:
    return None if interval is None else [_digits(end) for end in interval]


def _part(part: Mapping[str, Any], claimed: str) -> dict[str, Any]:
    """A number of a verdict, with what the claim allows it to be: from and to, null without end."""
    told = {name: part[name] for name in ("part", "verdict", "n")}
    told |= {"ours": _digits(part["ours"]), "interval": _ends(part["interval"])}
    allowed = _side(part.get("side", claimed))
    ends = (-math.inf, math.inf) if allowed is None else (allowed.low, allowed.high)
    return told | {"allowed": [end if math.isfinite(end) else None for end in ends]}


def _side(text: str) -> Side | None:
    """The side that was written so; none where each part has one of its own."""
    try:
        side = sides_of(text)
    except ValueError:
        return None
    return side if isinstance(side, Side) else None


def pictured(where: str, names: Iterable[str]) -> list[str]:
    """The pictures among `names` that show what the paper's own tables and figures show.

    >>> pictured("4.1, Figs. 3, 7; Table 2", ["F3", "F7", "F71", "T2", "X1"])
    ['F3', 'F7', 'T2']
    >>> pictured("5, Fig. 4a; suppl. Figs. 10, 19", ["M-F4", "S-F4", "S-F10", "M-F19"])
    ['M-F4', 'S-F10']
    """
    found = []
    for place in where.split(";"):
        prefix = "S-" if "suppl" in place else "(M-)?"
        for word, numbers in re.findall(r"(Fig|Table)[a-z]*\.? ((?:\d+[a-z,-]*,? ?)+)", place):
            for number in re.findall(r"\d+", numbers):
                wanted = re.compile(f"{prefix}{'F' if word == 'Fig' else 'T'}{number}[a-z]?")
                found += sorted(name for name in names if wanted.fullmatch(name))
    return list(dict.fromkeys(found))


def pictures_alike(
    study: Study, claims: Sequence[Mapping[str, Any]], names: Iterable[str]
) -> dict[str, list[str]]:
    """By claim for which the paper has no picture, those of the steps that it rests on."""
    plan, drawn = study.plan(claims[0]["scale"]), set(names)

    def steps(part: Artifact | Claim) -> set[str]:
        return {step.name for step in plan.steps([part])}

    pictures = {one.id: steps(one) for one in study.artifacts if named(one.id) in drawn}
    found = {}
    for claim in study.claims:
        if pictured(claim.where, drawn):
            continue
        own = steps(claim)
        common = {
            name: len(own & shown) / len(own | shown) for name, shown in pictures.items() if own
        }
        best = sorted(common, key=lambda name: -common[name])  # of equal ones in the study's order
        found[claim.id] = [named(name) for name in best if common[name] >= ALIKE][:MOST_ALIKE]
    return found
