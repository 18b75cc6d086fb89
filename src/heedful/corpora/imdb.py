"""Film reviews: the Large Movie Review Dataset and the 10-class IMDB of Diao et al."""

from __future__ import annotations

import json
from collections import Counter
from dataclasses import replace
from pathlib import Path
from typing import Any

from heedful.corpora.documents import Corpus
from heedful.corpora.entries import CATALOGUE
from heedful.corpora.recipes import Row, Wanted, build
from heedful.corpora.root import expect, fields_of, find, locate, text_of
from heedful.errors import InputError

ENTRY, DIAO = CATALOGUE["imdb"], CATALOGUE["imdb_diao"]
STARS = ENTRY.names["stars"]


def read_imdb(wanted: Wanted) -> Corpus:
    """IMDB by sign or by stars (8 classes); `<br />` is a line break unless the recipe keeps it."""
    rows: dict[str, list[Row]] = {}
    for file in ENTRY.files:
        split = Path(file).name.split(".")[0]
        path = find(wanted.root, file, ENTRY.source)
        reviews = list(fields_of(path, 4))
        found = Counter(f"reviews of {stars} stars" for _, stars, _, _ in reviews)
        expected = zip(STARS, ENTRY.counts[split], strict=True)
        expect(path, found, {f"reviews of {stars} stars": count for stars, count in expected})
        rows[split] = [
            Row(
                f"{split}-{sign}-{id}",
                text if wanted.recipe.keeps_breaks else text.replace("<br />", "\n"),
                int(sign == "pos") if wanted.task == "2" else STARS.index(stars),
            )
            for sign, stars, id, text in reviews
        ]
    stand_in_for = ENTRY.stand_in_for if wanted.task == "stars" else None
    return build(wanted, ENTRY.names[wanted.task], rows, stand_in_for=stand_in_for)


def read_imdb_diao(wanted: Wanted) -> Corpus:
    """IMDB in 10 classes, split 80/10/10 by the seed (docs/studies/erasure.md, "Corpora").

    `imdb_diao/data.json`, or its parts `data1.json`, `data2.json`, ...: JSON lists (or JSON Lines)
    of objects with `rating` (1 to 10) and `review` (or `text`); other keys are ignored.
    """
    parts = [f"imdb_diao/data{number}.json" for number in range(1, 100)]
    files = [part for part in parts if locate(wanted.root, part)] or list(DIAO.files)
    rows = []
    path = wanted.root
    for file in files:
        path = find(wanted.root, file, DIAO.source)
        for number, record in enumerate(_records(path)):
            try:
                rating, text = int(record["rating"]), record.get("review", record.get("text"))
            except (KeyError, TypeError, ValueError, AttributeError):
                rating, text = 0, None
            if not 1 <= rating <= 10 or not isinstance(text, str):
                raise InputError(
                    f"{path}, record {number + 1}: expected an object with a `rating` from 1 to "
                    "10 and a `review`."
                )
            rows.append(Row(f"{path.name.split('.')[0]}-{number}", text, rating - 1))
    expect(path.parent, {"reviews": len(rows)}, DIAO.counts)
    classes = [str(rating) for rating in range(1, 11)]
    # 80/10/10: a tenth to test, then a ninth of the rest to dev.
    tenths = replace(wanted.recipe, test_share=0.1, dev_share=1 / 9)
    return build(wanted._replace(recipe=tenths), classes, {"train": rows})


def _records(path: Path) -> list[Any]:
    text = text_of(path)
    try:
        if text.lstrip().startswith("["):
            return list(json.loads(text))
        return [json.loads(line) for line in text.splitlines() if line.strip()]
    except ValueError as error:
        raise InputError(f"{path} is not well-formed JSON ({error}); fetch it again.") from error
