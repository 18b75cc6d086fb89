"""The erasure study's claims on rows made by hand: what is counted, which way, and what hides."""

import math
from typing import Any

import numpy as np
import pandas as pd
import pytest

from heedful.reproduction.ledger import NotMeasurable, Unchanged, above, judge
from heedful.reproduction.results import Results
from heedful.reproduction.study import Plan
from heedful.reproduction.view import View
from heedful.statistics import Estimate, draws
from heedful.studies.erasure import checks, several_claims, single_claims, study
from heedful.studies.erasure import models as erasure_models
from heedful.studies.erasure.examination import NEVER, RANKINGS, Erased
from heedful.studies.erasure.panels import box_grid

CORPUS = "planted-2"
DOCUMENTS = 40


@pytest.fixture
def plan() -> Plan:
    return study.STUDY.plan("smoke", [CORPUS])


def rows(**columns: Any) -> Erased:
    """Documents of ten units that every ranking flips after five, but for the given columns."""
    table: dict[str, Any] = {"instance": [f"document {k}" for k in range(DOCUMENTS)]}
    table |= {"label": 0, "decision": 0, "empty_decision": 1, "units": 10}
    for ranking in RANKINGS:
        table |= {f"removed {ranking}": 5, f"mass {ranking}": 0.5}
        table |= {f"{flips} {ranking}": False for flips in ("top_flips", "other_flips")}
        table[f"legacy_other_flips {ranking}"] = False
    for delta in ("delta_js", "delta_attention", "legacy_delta_js", "legacy_delta_attention"):
        table[delta] = 0.01
    return Erased(pd.DataFrame(table | columns))


def use(monkeypatch: pytest.MonkeyPatch, *, other: Erased | None = None, **models: Erased) -> None:
    usual = rows() if other is None else other

    def of(view: View, step: object, model: str, seed: int) -> pd.DataFrame:
        return models.get(model, usual).table

    monkeypatch.setattr(View, "of", of)


def one_in(count: int) -> np.ndarray:
    """True for one document of so many."""
    return np.arange(DOCUMENTS) % count == 0


def value(part: object) -> float:
    assert isinstance(part, Estimate)
    return part.value


def test_all_models_of_many_documents_are_a_share_with_an_interval() -> None:
    names = [f"document {k}" for k in range(DOCUMENTS)]
    always = [draws.average(np.full(DOCUMENTS, 0.9), names)] * 4
    found = single_claims.share_of_models(always, lambda d: d > 0.5)
    assert isinstance(found, Estimate)
    assert (found.value, found.low, found.high, found.n) == (1.0, 1.0, 1.0, 4)
    few = single_claims.share_of_models([draws.average([0.9] * 5, names[:5])], lambda d: d > 0.5)
    assert isinstance(few, Estimate)
    assert math.isnan(few.low)
    assert isinstance(single_claims.share_of_models([], lambda d: d > 0.5), NotMeasurable)


def test_what_has_no_value_is_not_measurable_rather_than_undecided() -> None:
    found = single_claims.estimates({"nothing": draws.undefined()})
    assert judge(found, above(0)).word == "not measurable"


def test_without_flips_at_the_end_wins_over_them_are_gone(
    monkeypatch: pytest.MonkeyPatch, plan: Plan, tmp_path: Any
) -> None:
    # Three of four wins of the gradient are over an attention that flips with nothing left.
    gradient = np.where(one_in(5), 7, 3)
    attention = np.where(one_in(4), 5, 10)
    use(monkeypatch, other=rows(**{"removed gradient": gradient, "removed attention": attention}))
    found = checks.bias_speaking(View(Results(tmp_path), plan, CORPUS))["ERA-10, HANrnn"]
    assert isinstance(found, Unchanged)
    before, after = value(found.before), value(found.after)
    wins, losses = gradient < attention, gradient > attention
    assert before == wins.sum() / losses.sum()
    early = attention < 10
    assert after == (wins & early).sum() / (losses & early).sum()
    assert after < before


def test_an_upswing_is_compared_only_where_there_is_one(
    monkeypatch: pytest.MonkeyPatch, plan: Plan, tmp_path: Any
) -> None:
    weight = np.linspace(0.0, 0.99, DOCUMENTS)

    def rising(start: float, scale: float = 1.0) -> Erased:
        change = np.where(scale * weight >= start, 0.3, 0.01)
        return rows(delta_js=change, delta_attention=scale * weight)

    flat, short = rising(2.0), rising(2.0, scale=0.4)
    use(monkeypatch, other=flat)
    found = single_claims.upswing_order(View(Results(tmp_path), plan, CORPUS))
    assert all(isinstance(part, NotMeasurable) for part in found.values())
    use(monkeypatch, HANnoenc=rising(0.3), HANconv=rising(0.5), HANrnn=flat,
        FLANnoenc=rising(0.8), FLANconv=rising(0.6), FLANrnn=short)  # fmt: skip
    found = single_claims.upswing_order(View(Results(tmp_path), plan, CORPUS))
    assert value(found["HAN: conv - noenc"]) == pytest.approx(0.2)
    assert value(found["HAN: rnn - conv"]) == pytest.approx(0.5)
    assert value(found["FLAN: conv - noenc"]) == pytest.approx(-0.2)
    assert isinstance(found["FLAN: rnn - conv"], NotMeasurable)


def test_an_upswing_beyond_all_weights_is_not_measurable(
    monkeypatch: pytest.MonkeyPatch, plan: Plan, tmp_path: Any
) -> None:
    use(monkeypatch, HANrnn=rows(delta_attention=np.linspace(0.3, 0.5, DOCUMENTS)))
    found = single_claims.late_upswing(View(Results(tmp_path), plan, CORPUS))
    assert isinstance(found["upswing"], NotMeasurable)
    assert value(found["close to zero"]) == 1.0


def test_differences_are_of_the_first_minus_the_second(
    monkeypatch: pytest.MonkeyPatch, plan: Plan, tmp_path: Any
) -> None:
    removed = {"removed random": 9, "removed attention": 6, "removed gradient": 4}
    use(monkeypatch, other=rows(**removed, **{"removed product": 3}))
    found = several_claims.earlier_than_attention(View(Results(tmp_path), plan, CORPUS))
    assert value(found["FLANrnn: attention - random"]) == pytest.approx(-0.3)
    assert value(found["FLANrnn: gradient - attention"]) == pytest.approx(-0.2)
    assert value(found["FLANrnn: product - attention"]) == pytest.approx(-0.3)


def test_both_denominators_differ_by_what_never_flips(
    monkeypatch: pytest.MonkeyPatch, plan: Plan, tmp_path: Any
) -> None:
    # A quarter never flips; of the rest two thirds are earlier by the gradient: half of all.
    kind = np.arange(DOCUMENTS) % 4
    gradient = np.choose(kind, [NEVER, 3, 3, 5])
    attention = np.choose(kind, [NEVER, 5, 5, 5])
    use(monkeypatch, other=rows(**{"removed gradient": gradient, "removed attention": attention}))
    view = View(Results(tmp_path), plan, CORPUS)
    assert several_claims.gradient_share(view, "HANrnn").value == pytest.approx(2 / 3)
    found = checks.both_denominators(View(Results(tmp_path), plan, CORPUS))["models"]
    assert isinstance(found, Unchanged)
    assert (value(found.before), value(found.after)) == (0.0, 1.0)


def test_the_gain_is_split_by_whether_one_item_is_enough(
    monkeypatch: pytest.MonkeyPatch, plan: Plan, tmp_path: Any
) -> None:
    # By eights: five wins of the gradient (four among several), two of attention, one tie.
    kind = np.arange(DOCUMENTS) % 8
    gradient = np.choose(kind, [2, 2, 2, 2, 1, 4, 4, 3])
    attention = np.choose(kind, [5, 5, 5, 5, 5, 2, 1, 3])
    use(monkeypatch, other=rows(**{"removed gradient": gradient, "removed attention": attention}))
    found = several_claims.where_the_gain_lies(View(Results(tmp_path), plan, CORPUS))
    assert value(found["HANconv: several"]) == 4.0
    assert value(found["HANconv: several - one"]) == 4.0 - 1.0


def test_wrong_way_flips_are_a_share_of_those_by_exactly_one(
    monkeypatch: pytest.MonkeyPatch, plan: Plan, tmp_path: Any
) -> None:
    kind = np.arange(DOCUMENTS) % 8  # both, three times the top alone, once the other, neither
    flips = {"top_flips attention": kind < 4, "other_flips attention": np.isin(kind, (0, 4))}
    use(monkeypatch, other=rows(**flips))
    view = View(Results(tmp_path), plan, CORPUS)
    assert single_claims.wrong_way(view, "HANrnn").value == pytest.approx(0.25)
    found = single_claims.top_beats_random(View(Results(tmp_path), plan, CORPUS))
    assert value(found["HANrnn"]) == pytest.approx(2 / 8)
    assert single_claims.top_rarely_flips(
        View(Results(tmp_path), plan, CORPUS)
    ).value == pytest.approx(0.5)


@pytest.mark.parametrize("models", [("HANrnn",), erasure_models.MODELS])
def test_names_of_the_corpora_stand_whole_below_the_boxes(models: tuple[str, ...]) -> None:
    corpora = study.STUDY.plan("paper").corpora
    box = {"low": 0.1, "q1": 0.2, "median": 0.5, "q3": 0.8, "high": 0.9, "outliers": ""}
    pairs = [{"corpus": c, "model": m, "ranking": "Random"} | box for c in corpora for m in models]
    figure = box_grid(pd.DataFrame(pairs), hue="ranking")
    shown = [label.get_text() for label in figure.axes[-1].get_xticklabels()]
    assert shown == list(corpora)
