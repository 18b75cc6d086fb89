"""How well a model decides, from what its run and its findings say."""

import math

import pandas as pd

from heedful.audits.finding import Finding, Measure
from heedful.report.quality import accuracy_of, in_words, quality_of
from heedful.statistics import Estimate

ACCURACY = Estimate(0.904, 0.882, 0.924, 2_000, "wilson")
FINDINGS = {
    "substitution": Finding(
        "substitution", "?", "!", (Measure("accuracy", ACCURACY, "trained"),), "measures"
    )
}
RECORD = {
    "configuration": {"train": {"select": "accuracy"}},
    "audited": {"split": "test"},
    "best_dev": 0.912,
    "test": {"accuracy": 0.9},
}


def test_the_audited_documents_have_an_interval_and_dev_is_what_training_noted() -> None:
    found = quality_of(RECORD, FINDINGS)
    assert list(found) == ["test accuracy", "dev accuracy"]
    assert in_words(found) == (
        "test 90.4\xa0% [88.2, 92.4] of 2,000 documents, dev 91.2\xa0% (best while training)"
    )
    assert found["test accuracy"]["n"] == 2_000


def test_accuracy_is_of_the_most_documents_that_one_audit_read() -> None:
    few = pd.DataFrame({"label": [0, 1], "decision": [0, 1]})
    many = pd.DataFrame({"label": [0, 1, 1, -1], "decision": [0, 0, 0, 1]})  # one has no label
    other = pd.DataFrame({"instance": ["a"] * 9})
    found = accuracy_of({"few": few, "many": many, "other": other})
    assert found is not None
    assert (found.value, found.n, found.method) == (1 / 3, 3, "wilson")
    assert accuracy_of({"many": many[3:], "other": other}) is None
    told = {**RECORD, "audited": {"split": "test", "accuracy": found.to_json()}}
    assert quality_of(told, FINDINGS)["test accuracy"]["n"] == 3


def test_without_substitution_it_is_the_accuracy_that_training_noted() -> None:
    assert in_words(quality_of(RECORD, {})) == "test 90.0\xa0%, dev 91.2\xa0% (best while training)"


def test_another_split_and_another_metric_keep_their_names() -> None:
    record = RECORD | {"configuration": {"train": {"select": "f1"}}, "audited": {"split": "dev"}}
    assert in_words(quality_of(record, FINDINGS)) == (
        "dev 90.4\xa0% [88.2, 92.4] of 2,000 documents, dev f1 91.2\xa0% (best while training)"
    )
    lost = RECORD | {"configuration": {"train": {"select": "loss"}}, "best_dev": -0.25}
    assert in_words(quality_of(lost, {})).endswith("dev loss 0.250")


def test_a_model_from_elsewhere_without_labels_has_nothing_to_say() -> None:
    assert in_words(quality_of({"configuration": {}}, {})) == ""


def test_an_interval_that_could_not_be_made_is_left_out() -> None:
    nan = math.nan
    assert in_words({"test accuracy": {"value": 0.5, "low": nan, "high": nan}}) == "test 50.0\xa0%"
