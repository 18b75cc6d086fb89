"""The erasure study's claims on rows made by hand: what is counted, which way, and what hides."""

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
from heedful.studies.erasure.figures import box_grid

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

    def of(view: View, step: object, model: str) -> dict[str, pd.DataFrame]:
        return {"rows": models.get(model, usual).table.assign(seed=0)}

    monkeypatch.setattr(View, "of", of)


def one_in(count: int) -> np.ndarray:
    """True for one document of so many."""
    return np.arange(DOCUMENTS) % count == 0


def value(part: object) -> float:
    assert isinstance(part, Estimate)
    return part.value


def test_all_models_of_many_documents_are_a_share_with_an_interval() -> None:
    names = [f"document {k}" for k in range(DOCUMENTS)]
    half = np.arange(DOCUMENTS) % 2 * 0.9

    def of(values: np.ndarray) -> draws.Draws:
        return draws.average(values, names)

    models = [of(half + 0.4), of(half + 0.3), of(half + 0.05), of(half - 0.2)]
    found = single_claims.share_of_models(models, above(0.5))
    assert isinstance(found, Estimate)
    # Two are certain, the third may be above (it lies at 0.5), the fourth is not.
    assert (found.low, found.value, found.high, found.n) == (0.5, 0.5, 0.75, 4)
    assert above(0.4).judge(found) == "confirmed"
    assert above(0.6).judge(found) == "undecided"
    assert above(0.8).judge(found) == "refuted"
    assert isinstance(single_claims.share_of_models([], above(0.5)), NotMeasurable)


def test_no_number_of_models_would_decide_what_their_seeds_leave_open() -> None:
    names = [f"document {k}" for k in range(DOCUMENTS)]
    open_one = draws.average(np.arange(DOCUMENTS) % 2 * 1.0, names)
    found = judge(single_claims.share_of_models([open_one] * 3, above(0.45)), above(0.5))
    assert found.word == "undecided"
    assert "no n would decide it" in found.reason


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
    assert several_claims.gradient_share(view, "HANrnn").value == pytest.approx(1 / 2)
    found = checks.both_denominators(View(Results(tmp_path), plan, CORPUS))["models"]
    assert isinstance(found, Unchanged)
    assert (value(found.before), value(found.after)) == (0.0, 1.0)


def test_what_never_flips_needs_everything_and_is_told_apart(
    monkeypatch: pytest.MonkeyPatch, plan: Plan, tmp_path: Any
) -> None:
    # As FLANnoenc on Amazon: by attention half never flips; where both flip attention is earlier.
    never = one_in(2)
    attention, gradient = np.where(never, NEVER, 2), np.where(never, 9, 4)
    use(monkeypatch, other=rows(**{"removed gradient": gradient, "removed attention": attention}))
    view = View(Results(tmp_path), plan, CORPUS)
    found = checks.never_flipping(view)
    part = found["FLANrnn: ratio, both flip"]
    assert isinstance(part, Unchanged)
    assert value(part.before) == 1.0  # 20 documents each way
    assert value(part.after) == 0.0
    gap = found["FLANrnn: gradient - attention, left out"]
    assert isinstance(gap, Unchanged)
    assert value(gap.before) == pytest.approx((-0.1 + 0.2) / 2)
    assert value(gap.after) == pytest.approx(0.2)
    one = several_claims.mean(view, "FLANrnn", Erased.fraction, "attention")
    assert one.value == pytest.approx((1 + 0.2) / 2)


def test_what_is_left_decides_what_happens_at_the_end() -> None:
    table = rows(**{"removed attention": np.resize([3, 10, NEVER, 10], DOCUMENTS)}).table
    table = table.assign(decision=np.resize([0, 0, 0, 2], DOCUMENTS), mean_decision=2)
    for ranking in RANKINGS:
        table[f"unbiased removed {ranking}"] = NEVER
    table["unbiased_decision"] = 1
    one = Erased(table)
    assert one.under("zero vector").removed("attention")[:4].tolist() == [3, 10, np.inf, 10]
    assert one.under("training mean").removed("attention")[:4].tolist() == [3, 10, 10, np.inf]
    assert one.under("b = 0").removed("attention")[:4].tolist() == [np.inf] * 4
    same = [one.under(left).fraction("attention") for left in ("zero vector", "training mean")]
    np.testing.assert_array_equal(*same)


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
