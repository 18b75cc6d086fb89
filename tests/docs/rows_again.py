"""The rows that an audit kept, found again by plain passes of the model."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from heedful.runs import read_json
from tests.docs.intervals_again import orders
from tests.docs.plain_passes import Plain, forbidden, given_anew, odds_of, shuffled


def check_rows(folder: Path, texts: dict[str, str]) -> None:
    """Recomputes decisions, attention, deletions and edits of attention."""
    plain = Plain(folder)
    tables = {path.stem: pd.read_parquet(path) for path in (folder / "findings").glob("*.parquet")}
    by_id = {name: tuple(text.split()) for name, text in texts.items()}
    substitution = tables["substitution"].set_index("instance")
    words = {name: by_id[str(name)] for name in substitution.index}
    for name, row in substitution.iterrows():
        assert row["decision"] == plain.logits(words[str(name)]).argmax()
        assert row["units"] == len(words[str(name)])
    check_attention(plain, tables["concentration"], by_id)
    shown = read_json(folder / "findings" / "instances.json")["instances"]
    importance = {entry["id"]: entry["importance"] for entry in shown}
    check_deletions(plain, tables["input-erasure"], tables["violation"], words, importance)
    check_edits(plain, tables, words)


def check_attention(plain: Plain, rows: pd.DataFrame, words: dict[str, tuple[str, ...]]) -> None:
    """What concentration says of each text."""
    for _, row in rows.iterrows():
        found = plain.attention(words[row["instance"]])
        entropy = -(found.weights * np.log(found.weights)).sum()
        assert row["effective_units"] == pytest.approx(np.exp(entropy), rel=1e-4)
        assert row["largest_weight"] == pytest.approx(found.weights.max(), rel=1e-4)
        if "outside" in row:
            assert row["outside"] == pytest.approx(found.outside, abs=1e-5)
        if "first" in row:
            assert row["first"] == pytest.approx(found.first, abs=1e-5)


def check_deletions(
    plain: Plain,
    rows: pd.DataFrame,
    violation: pd.DataFrame,
    words: dict[str, tuple[str, ...]],
    importance: dict[str, dict[str, list[float]]],
) -> None:
    """What deleting, and keeping, the words that a method puts first does to the decision."""
    deleted = rows[rows["mode"] == "removed"].set_index(["instance", "method", "share"])
    belied = violation.set_index(["instance", "ranking"])
    checked = 0
    for name, methods in importance.items():
        text = words[name]
        before = plain.probabilities(text)
        decision = int(before.argmax())
        for method in ("attention", "integrated", "occlusion", "leave-one-out"):
            if method not in methods:
                continue
            order = np.argsort(-np.array(methods[method]), kind="stable")
            falling = np.array(methods[method])[order]
            for share in (0.05, 0.1, 0.2, 0.5):
                row = deleted.loc[(name, method, share)]
                count = int(np.ceil(share * len(text) - 1e-9))
                assert row["taken"] == count, (row["taken"], share, len(text))
                if count < len(text) and falling[count - 1] - falling[count] < 1e-3 * abs(
                    falling[count - 1]
                ):
                    continue  # the page has four digits of an importance: too few to order these
                top = set(order[:count].tolist())
                without, alone = (
                    plain.probabilities(tuple(w for n, w in enumerate(text) if (n in top) == kept))
                    for kept in (False, True)
                )
                lost = before[decision] - without[decision], before[decision] - alone[decision]
                told = row["comprehensiveness"], row["sufficiency"]
                assert told == pytest.approx(lost, abs=1e-5)
                checked += 1
        weights = np.array(methods["attention"])
        if np.sort(weights)[-1] - np.sort(weights)[-2] > 1e-3:
            top_one = int(weights.argmax())
            left = plain.probabilities(tuple(w for n, w in enumerate(text) if n != top_one))
            effect = belied.loc[(name, "attention"), "effect"]
            assert np.sign(effect) == np.sign(before[decision] - left[decision])
    assert checked >= 2 * len(importance)


def check_edits(
    plain: Plain, tables: dict[str, pd.DataFrame], words: dict[str, tuple[str, ...]]
) -> None:
    """Uniform, shuffled, one word alone, words forbidden."""
    kept = {name: tables[name].set_index("instance") for name in ("substitution", "confidence")}
    by_attention = {
        name: tables[name][tables[name]["ranking"] == "attention"].set_index("instance")
        for name in ("erasure", "single-erasure")
    }
    for name, text in words.items():
        row, n = kept["substitution"].loc[name], len(text)
        decision = int(row["decision"])
        flat = plain.under(text, [given_anew(np.full(n, 1 / n))])[0]
        assert row["uniform"] == flat.argmax()
        alone = plain.under(text, [given_anew(np.eye(n)[unit]) for unit in range(n)])
        assert row["flippable"] == (alone.argmax(-1) != decision).any()
        sure = odds_of(alone)[:, decision]
        assert kept["confidence"].loc[name, "confidence"] == pytest.approx(sure.mean(), abs=1e-5)
        agreeing = (alone.argmax(-1) == decision).mean()
        assert kept["confidence"].loc[name, "agreeing"] == pytest.approx(agreeing)
        drawn = plain.under(text, [shuffled(order) for order in orders(str(name), n)])
        assert list(row["permuted"]) == drawn.argmax(-1).tolist()
        changed = (drawn.argmax(-1) != decision).mean()
        assert row["permuted_changes"] == pytest.approx(changed)
        check_forbidden(plain, text, decision, {k: v.loc[name] for k, v in by_attention.items()})


def check_forbidden(
    plain: Plain, text: Sequence[str], decision: int, rows: dict[str, pd.Series]
) -> None:
    """Attention to one word, and to more and more, forbidden, down the order of attention."""
    words = tuple(text)
    order = np.argsort(-plain.attention(words).weights, kind="stable").tolist()
    one = rows["single-erasure"]
    assert one["top"] == order[0]
    top, other = plain.under(words, [forbidden([one["top"]]), forbidden([one["other"]])])
    assert one["top_flips"] == (top.argmax() != decision)
    assert one["other_flips"] == (other.argmax() != decision)
    down = plain.under(words, [forbidden(order[:count]) for count in range(1, len(words))])
    flips = np.flatnonzero(down.argmax(-1) != decision)
    removed = rows["erasure"]["removed"]
    if len(flips):
        assert removed == flips[0] + 1
        assert rows["erasure"]["fraction"] == pytest.approx((flips[0] + 1) / len(words))
    else:
        assert removed in (-1, len(words))
