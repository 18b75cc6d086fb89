"""One text explained: what the model could and could not read."""

from heedful.jobs.explain import explain
from heedful.models import example


def test_words_outside_the_vocabulary_are_named_once_in_the_order_of_the_text() -> None:
    found = explain(example(), "good zebra and unicorn food zebra", ["attention"])
    assert found.unknown == ("zebra", "unicorn")
    assert found.to_json()["unknown"] == ["zebra", "unicorn"]
    assert found.units == ("good", "zebra", "and", "unicorn", "food", "zebra")
    alike = dict(zip(found.units, found.importance["attention"], strict=True))
    assert alike["zebra"] == alike["unicorn"]  # both are read as the same symbol


def test_a_text_of_known_words_has_none() -> None:
    assert explain(example(), "good food", ["attention"]).unknown == ()
