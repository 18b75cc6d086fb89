"""The documents on a page are harmless, and never too many for it."""

import json
from pathlib import Path
from typing import Any

from heedful.report.html import embedded
from heedful.report.shown_documents import MOST_BYTES, fitting, read_documents
from heedful.runs import write_json


def test_embedded_json_cannot_end_its_element() -> None:
    value = {"</script>": ["<!--", "&", "\u2028", "é"]}
    text = embedded(value)
    assert json.loads(text) == value
    assert not set("<>&") & set(text)
    assert text.isascii()


def entry(id: str, letters: int) -> dict[str, Any]:
    return {"id": id, "units": ["x" * letters]}


def test_all_documents_are_shown_where_they_fit():
    entries = [entry(str(n), 10) for n in range(30)]
    assert fitting(entries, 10_000) == (entries, [])


def test_what_does_not_fit_is_drawn_by_id_and_said():
    entries = [entry(f"{n:02}", 1_000) for n in range(40)] + [entry("huge", MOST_BYTES // 10)]
    kept, (told,) = fitting(entries, 12_000)
    assert len(embedded(kept)) <= 12_000 < len(embedded(kept)) + 1_100
    assert [one["id"] for one in kept] == sorted(one["id"] for one in kept)
    assert kept != entries[: len(kept)]  # not the first ones: files are often sorted by class
    assert told.startswith(f"{len(kept)} of the 41 documents")
    assert "huge" not in [one["id"] for one in fitting(entries, MOST_BYTES // 10)[0]]
    again, _ = fitting(entries[::-1], 12_000)
    assert {one["id"] for one in again} == {one["id"] for one in kept}


def test_words_are_visible_and_of_bounded_length_whatever_they_are(tmp_path: Path):
    words = ["\x1b[2J", "\u202eevil", "x" * 1_000_000, "\ud800"]
    told = {"id": words[2], "units": words, "gaps": words, "flow": {"words": words, "layers": 1}}
    write_json(tmp_path / "instances.json", {"classes": [words[1]], "instances": [told]})
    found = read_documents(tmp_path / "instances.json")
    (shown,) = found["instances"]
    for text in (*shown["units"], *shown["gaps"], *shown["flow"]["words"], *found["classes"]):
        assert text.isprintable()
        assert len(text) <= 201
    assert shown["units"][1] == "�evil"
    assert shown["flow"]["layers"] == 1
    assert len(embedded(found)) < 3_000
