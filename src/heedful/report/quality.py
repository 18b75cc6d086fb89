"""How well an audited model decides: what stands beside the verdict on it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pandas as pd

from heedful.audits.finding import Finding
from heedful.statistics.estimates import Estimate, per_cent
from heedful.statistics.intervals import proportion

Quality = Mapping[str, Mapping[str, float]]
"""By split and metric: `value`, and `low`, `high` and `n` where there is an interval."""


def accuracy_of(tables: Mapping[str, pd.DataFrame]) -> Estimate | None:
    """The share of right decisions, of the most documents that one audit read; none without labels.

    What is asked of many readings stops early, what is asked of one has nearly all documents.
    """
    most = most_decided(tables)
    return proportion(int(most["right"].sum()), len(most)) if len(most) else None


def most_decided(tables: Mapping[str, pd.DataFrame]) -> pd.DataFrame:
    """Rows of documents with labels, and whether each is `right`, by the audit that read most."""
    told = [rows for rows in tables.values() if {"label", "decision"} <= set(rows.columns)]
    known = [rows[rows["label"] >= 0] for rows in told]
    most = max(known, key=len, default=pd.DataFrame(columns=["instance", "label", "decision"]))
    return most.assign(right=most["label"] == most["decision"])


def quality_of(record: Mapping[str, Any], findings: Mapping[str, Finding]) -> dict[str, Any]:
    """The accuracy on the documents that were read, and what training noted on dev.

    A run that was trained elsewhere has no dev; an audit that read no document for this takes what
    substitution says of its own, or else the accuracy on test that training noted.
    """
    found: dict[str, dict[str, float]] = {}
    substitution = findings.get("substitution")
    accuracy = substitution.get("accuracy", "trained") if substitution else None
    if said := record.get("audited", {}).get("accuracy"):
        accuracy = Estimate.from_json(said)
    if accuracy is not None:
        split = record.get("audited", {}).get("split", "test")
        ends = {"value": accuracy.value, "low": accuracy.low, "high": accuracy.high}
        found[f"{split} accuracy"] = ends | {"n": accuracy.n}
    elif record.get("test"):
        found["test accuracy"] = {"value": record["test"]["accuracy"]}
    for name, share in record.get("audited", {}).get("priors", {}).items():
        found[f"accuracy, prior {name}"] = {k: share[k] for k in ("value", "low", "high", "n")}
    if record.get("best_dev") is not None:
        chosen = record["configuration"].get("train", {}).get("select", "accuracy")
        found[f"dev {chosen}"] = {"value": abs(record["best_dev"])}
    return found


def in_words(quality: Quality) -> str:
    """The quality in a line, in per cent, with the documents it was measured on.

    >>> in_words({"test accuracy": {"value": 0.9, "low": 0.88, "high": 0.92, "n": 311}})
    'test 90.0\\xa0% [88.0, 92.0] of 311 documents'
    """
    parts = []
    for name, number in quality.items():
        if name.endswith("loss"):
            parts.append(f"{name} {number['value']:.3f}")
            continue
        name_alone = name.removesuffix(" accuracy").removeprefix("accuracy, ")
        said = f"{name_alone} {right_of(number)}"
        said += " (best while training)" if name.startswith("dev") and "n" not in number else ""
        parts.append(said)
    return ", ".join(parts)


def right_of(number: Mapping[str, Any]) -> str:
    """One share of right decisions, with its interval and the documents where they are known."""
    said = per_cent(number["value"], 1)
    low, high = number.get("low"), number.get("high")
    if low is not None and high is not None and low == low and high == high:
        said += f" [{100 * low:.1f}, {100 * high:.1f}]"
    return said + (f" of {number['n']:,} documents" if "n" in number else "")
