"""Which instances the page shows, and that it decides from them as the model does."""

from collections import Counter
from typing import Any

import numpy as np
import pandas as pd
import pytest
import torch

from heedful.importance import explain
from heedful.jobs.instances import (
    DELETED,
    DELETED_TOGETHER,
    DISAGREES,
    FLIPS,
    PLAIN,
    SHOWN_UNITS,
    WRONG,
    choose,
    describe,
    shown_units,
)
from heedful.models import decide, erase, identity, ranked, read, uniform
from tests.tiny import NonLinear, batch_of, chosen, classifier


def rows_of(flips: set[str], apart: set[str], wrong: set[str], names: list[str]) -> dict[str, Any]:
    single = pd.DataFrame({"instance": names, "ranking": "attention"})
    single["top_flips"] = [name in flips for name in names]
    agreed = pd.DataFrame({"instance": names, "first": "attention", "second": "leave-one-out"})
    agreed["tau"] = [0.0 if name in apart else 0.9 for name in names]
    decided = pd.DataFrame({"instance": names, "label": 0})
    decided["decision"] = [int(name in wrong) for name in names]
    return {"single-erasure": single, "agreement": agreed, "confidence": decided}


def test_instances_are_tagged_by_what_the_audits_found() -> None:
    names = list("abcd")
    tags = choose(rows_of({"a"}, {"a", "b"}, {"c"}, names), names, 10)
    assert tags == {"a": (FLIPS, DISAGREES), "b": (DISAGREES,), "c": (WRONG,), "d": (PLAIN,)}


def test_every_kind_gets_its_share_and_the_draw_is_keyed() -> None:
    names = [f"n{i}" for i in range(1000)]
    rows = rows_of(set(names[:500]), set(), set(names[500:503]), names)
    tags = choose(rows, names, 40, seed=1)
    assert len(tags) == 40
    kinds = Counter(tag for found in tags.values() for tag in found)
    assert kinds[WRONG] == 3  # all that there are
    assert kinds[FLIPS] >= 12
    assert kinds[PLAIN] >= 10
    assert list(tags) == [name for name in names if name in tags]
    assert tags == choose(rows, names, 40, seed=1)
    assert set(tags) != set(choose(rows, names, 40, seed=2))
    # The draw goes by id, so the order of the corpus does not matter.
    assert set(tags) == set(choose(rows, names[::-1], 40, seed=1))


def test_without_rows_everything_is_plain() -> None:
    assert choose({}, ["a", "b"], 1).popitem()[1] == (PLAIN,)


# ---------------------------------------------------------------- numbers the page decides by


def page_probabilities(entry: dict[str, Any], weights: Any, is_flat: bool = False) -> np.ndarray:
    """The page's arithmetic: softmax(offset + Σ w z / Σ w)."""
    said = [list(z) for z in entry["unit_logits"]]
    if is_flat and "rest" in entry:
        said[-1] = entry["rest"]["flat"]
    weights = np.asarray(weights, dtype=float)
    logits = np.array(entry["offset"]) + weights @ np.array(said) / weights.sum()
    return np.exp(logits - logits.max()) / np.exp(logits - logits.max()).sum()


def test_entries_decide_as_the_model_does() -> None:
    model = classifier("bigru+additive")
    reading = read(model, batch_of())
    entries = describe(model, reading, explain(model, reading), {"document 1": ("x",)})
    assert [entry["id"] for entry in entries] == list(reading.names)
    assert entries[1]["tags"] == ["x"]
    for row, entry in enumerate(entries):
        n = len(entry["units"])
        whole = decide(model, reading, identity(reading))[row, 0].softmax(-1).numpy()
        assert page_probabilities(entry, entry["attention"]) == pytest.approx(whole, abs=1e-8)
        assert entry["probabilities"] == pytest.approx(whole, abs=1e-8)
        assert entry["units"] == list(reading.texts[row])
        for unit in range(n if n > 1 else 0):
            gone = torch.zeros(len(entries), 1, reading.mask.shape[1], dtype=torch.bool)
            gone[row, 0, unit] = True
            expected = decide(model, reading, erase(gone))[row, 0].softmax(-1).numpy()
            weights = [0 if i == unit else w for i, w in enumerate(entry["attention"])]
            assert page_probabilities(entry, weights) == pytest.approx(expected, abs=1e-8)


def test_long_documents_are_folded_without_changing_a_decision() -> None:
    model = classifier("none+additive")
    reading = read(model, batch_of(((SHOWN_UNITS + 50,), (3,))))
    long, short = describe(model, reading, explain(model, reading, ("attention", "random")))
    assert "rest" not in short
    assert len(long["units"]) == SHOWN_UNITS + 1
    assert long["units"][-1] == "… 50 more"
    assert long["rest"]["count"] == 50
    assert sum(long["attention"]) == pytest.approx(1, abs=1e-8)
    assert sum(long["rest"]["members"]) == pytest.approx(1, abs=1e-3)
    whole = reading.logits[0].softmax(-1).numpy()
    assert page_probabilities(long, long["attention"]) == pytest.approx(whole, abs=1e-8)
    flat = decide(model, reading, uniform(reading))[0, 0].softmax(-1).numpy()
    even = [1] * SHOWN_UNITS + [50]
    assert page_probabilities(long, even, is_flat=True) == pytest.approx(flat, abs=1e-8)
    top = int(reading.attention[0].argmax())
    assert top in long["positions"]


def test_the_most_attended_units_are_shown_wherever_they_stand() -> None:
    attention = np.full(SHOWN_UNITS + 100, 1e-4)
    attention[-3] = 0.5
    assert len(attention) - 3 in shown_units(attention)
    assert len(shown_units(attention)) == SHOWN_UNITS
    assert shown_units(np.ones(5)).tolist() == [0, 1, 2, 3, 4]


def test_weights_too_small_for_a_double_keep_their_scores() -> None:
    model = classifier("none+dot", sharpness=60.0)
    reading = read(model, batch_of())
    found = describe(model, reading, {})
    tiny = [bool((reading.attention[i][reading.mask[i]] < 1e-290).any()) for i in range(4)]
    assert any(tiny)
    assert ["scores" in entry for entry in found] == tiny


def test_another_head_brings_its_answers_along() -> None:
    model = NonLinear(classifier("bigru+additive"), torch.nn.Tanh())
    reading = read(model, batch_of())
    entry = describe(model, reading, {"attention": reading.attention})[2]
    assert "unit_logits" not in entry
    n = len(entry["units"])
    assert np.shape(entry["erasures"]) == (n, 3)
    assert np.shape(entry["cumulative"]) == (n + 1, 3)
    first = int(reading.attention[2].argmax())
    assert entry["erasures"][first] == pytest.approx(entry["cumulative"][1], abs=1e-6)
    assert entry["cumulative"][0] == pytest.approx(entry["probabilities"], abs=1e-5)


# ------------------------------------------------------- the words themselves: deleted, and shown


@pytest.mark.parametrize("recipe", ["bigru+additive", "han:bigru+additive"])
def test_deleted_units_are_those_of_the_shorter_text_read_again(recipe: str) -> None:
    model = classifier(recipe).double()
    batch = batch_of()
    reading = read(model, batch)
    for row, entry in enumerate(describe(model, reading, {})):
        n = len(entry["units"])
        order = ranked(reading.attention, reading)[row, :n].tolist()
        together = [set(order[: step + 1]) for step in range(n)]
        found = [*entry["deleted"], *entry["deleted_together"]]
        for gone, said in zip([*({u} for u in range(n)), *together], found, strict=True):
            kept = [u not in gone for u in reading.unit_of_token[row].tolist()]
            shorter = chosen(batch, [row]).keeping(torch.tensor([kept])[:, : batch.lengths[row]])
            wanted = read(model, shorter).logits.softmax(-1)[0]
            assert said == pytest.approx(wanted.tolist(), rel=6e-4)  # four digits are kept


def test_of_a_long_text_the_most_attended_units_are_deleted() -> None:
    model = classifier("none+additive")
    reading = read(model, batch_of(((SHOWN_UNITS + 5,), (3,))))
    long, short = describe(model, reading, {})
    known = [unit for unit, said in enumerate(long["deleted"]) if said and said[0] is not None]
    positions = {long["positions"][unit] for unit in known}
    first = ranked(reading.attention, reading)[0, :DELETED].tolist()
    assert positions == {unit for unit in first if unit in long["positions"]}
    assert long["deleted"][-1] is None  # the block of those not shown
    assert len(long["deleted_together"]) == DELETED_TOGETHER
    assert len(short["deleted"]) == len(short["deleted_together"]) == 3


def test_words_are_shown_as_they_were_written() -> None:
    model = classifier("none+additive")
    text = '"I  didn\'t LIKE it",\nshe SAID - (never)!'
    (entry,) = describe(model, read(model, model.batch([text])), {})
    assert "LIKE" in entry["units"]
    shown = "".join(gap + unit for gap, unit in zip(entry["gaps"], entry["units"], strict=True))
    assert shown == '"I didn\'t LIKE it", she SAID - (never)!'


def test_a_sentence_is_one_unit_as_it_was_written_and_an_empty_text_is_shown() -> None:
    model = classifier("han:none+additive")
    entries = describe(model, read(model, model.batch(["Not GOOD. Very  Bad!", ""])), {})
    assert entries[0]["units"] == ["Not GOOD.", "Very Bad!"]
    assert entries[1]["units"] == [""]
    assert "gaps" not in entries[1]
