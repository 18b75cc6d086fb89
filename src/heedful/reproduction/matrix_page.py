"""The page of all studies: every claim beside every corpus, each verdict opening its numbers."""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from heedful.report.html import asset, bundled, embedded, script_hash, template
from heedful.reproduction.ledger import EVERY, Side, sides_of
from heedful.reproduction.study import Study
from heedful.runs import read_json, write_text

NAME = "claims.html"
"""Its file, beside the folders of the studies."""
MARKS = {"confirmed": "✓", "refuted": "✗", "undecided": "?", "not measurable": "·"}
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


class Shown(NamedTuple):
    """The claims of one study as they were judged, and which of its pictures there are."""

    study: Study
    claims: Sequence[Mapping[str, Any]]
    """The objects of `claims.json`."""
    pictures: frozenset[str]
    """Ids of the artifacts that have one."""


def write_matrix(folder: Path, studies: Iterable[Study]) -> Path | None:
    """Writes the page of those studies that have claims in the folder; its path, if there are any.

    It is made of files alone and links to the studies' own pages.
    """
    shown = []
    for study in studies:
        own = folder / study.name
        if (own / "claims.json").is_file():
            pictures = frozenset(file.stem for file in own.glob("*.svg"))
            shown.append(Shown(study, read_json(own / "claims.json"), pictures))
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
    cells = {_key(one.study, claim): _cell(one, claim) for one in studies for claim in one.claims}
    return template("matrix.html").render(
        css=Markup(asset("page.css")),
        script=Markup(script),
        script_hash=script_hash(script),
        columns=_columns(claims),
        studies=[_rows(one) for one in studies],
        counts=[(word, MARKS[word], counts[word]) for word in MARKS],
        cells=Markup(embedded(cells)),
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
    """A study's part of the table: one row a claim, its sentence once, its verdicts by column."""
    rows: dict[str, dict[str, Any]] = {}
    for claim in shown.claims:
        new = {"id": claim["id"], "claim": claim["claim"], "marks": {}}
        mark = {
            "key": _key(shown.study, claim),
            "corpus": claim["corpus"],
            "verdict": claim["verdict"],
            "css_class": claim["verdict"].replace(" ", "-"),
            "sign": MARKS[claim["verdict"]],
        }
        marks = rows.setdefault(claim["id"], new)["marks"]
        marks.setdefault(column_of(claim["corpus"]), []).append(mark)
    return {
        "name": shown.study.name,
        "title": shown.study.title,
        "reference": shown.study.reference,
        "rows": list(rows.values()),
    }


def _key(study: Study, claim: Mapping[str, Any]) -> str:
    """What a verdict is called in an address: `claims.html#erasure/ERA-1/imdb-stars`."""
    return f"{study.name}/{claim['id']}/{claim['corpus']}"


def _cell(shown: Shown, claim: Mapping[str, Any]) -> dict[str, Any]:
    """What an opened verdict shows."""
    own = ("side", "verdict", "ours", "interval", "n")
    parts = claim["parts"] or [{"part": claim["corpus"], **{name: claim[name] for name in own}}]
    corpora = "" if claim["corpus"] == EVERY else f" --corpora {claim['corpus']}"
    told = ("id", "corpus", "claim", "where", "statistic", "side", "paper", "verdict", "reason")
    return {
        **{name: claim[name] for name in (*told, "ours", "interval", "n", "seeds")},
        "stand_in_for": claim["stand_in_for"] or "",
        "study": shown.study.name,
        "command": f"heedful reproduce {shown.study.name} --scale {claim['scale']} "
        f"--only {claim['id']}{corpora}",
        "parts": [_part(part, claim["side"]) for part in parts],
        "pictures": pictured(claim["where"], shown.pictures),
    }


def _part(part: Mapping[str, Any], claimed: str) -> dict[str, Any]:
    """A number of a verdict, with what the claim allows it to be: from and to, null without end."""
    told = {name: part[name] for name in ("part", "verdict", "ours", "interval", "n")}
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
