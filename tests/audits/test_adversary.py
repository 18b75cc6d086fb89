"""The farthest attention with the same output: exact, bounded and searched."""

from __future__ import annotations

import sys
from itertools import combinations
from math import log
from pathlib import Path

import numpy as np
import pytest
import torch
from torch import Tensor, nn

from heedful.audits import adversary
from heedful.audits.exact_adversary import farthest, largest_jsd
from heedful.audits.searched_adversary import CANDIDATES, SPREAD, search
from heedful.models import Replace, alone, decide, read
from heedful.runs.randomness import uniform_noise
from heedful.statistics.divergence import js_divergence, total_variation
from tests.tiny import NonLinear, batch_of, chosen, classifier, padded

sys.path.insert(0, str(Path(__file__).parents[2]))  # the benchmarks hold the published search

from benchmarks.naive import Site, published_search
from benchmarks.short import margins

EPSILON = 0.01


def problem(
    batch: int, units: int, classes: int, seed: int = 0, spread: float = 2.0
) -> tuple[Tensor, Tensor, Tensor]:
    """Random attention, unit logits and a full mask."""
    generator = torch.Generator().manual_seed(seed)
    scores = 1.5 * torch.randn(batch, units, generator=generator, dtype=torch.float64)
    said = spread * torch.randn(batch, units, classes, generator=generator, dtype=torch.float64)
    return scores.softmax(-1), said, torch.ones(batch, units, dtype=torch.bool)


def jsd(p: Tensor, q: Tensor) -> Tensor:
    return js_divergence(p.log(), q.log())


def tvd(rows: Tensor, attention: Tensor, said: Tensor) -> Tensor:
    """Distance between the outputs of many rows [document row unit] and the trained ones."""
    start = torch.bmm(attention[:, None], said).softmax(-1)
    return total_variation(torch.bmm(rows, said).softmax(-1), start)


def naive_best(attention: np.ndarray, margin: np.ndarray) -> float:
    """Every vertex of slab and simplex written out for one document."""
    probability = 1 / (1 + np.exp(-attention @ margin))
    faces = [
        np.log(p / (1 - p)) for p in (probability - EPSILON, probability + EPSILON) if 0 < p < 1
    ]
    corners = [
        row
        for row in np.eye(len(margin))
        if abs(1 / (1 + np.exp(-row @ margin)) - probability) <= EPSILON
    ]
    for face in faces:
        for i, j in combinations(range(len(margin)), 2):
            if (margin[i] - face) * (margin[j] - face) < 0:
                row = np.zeros(len(margin))
                row[j] = (face - margin[i]) / (margin[j] - margin[i])
                row[i] = 1 - row[j]
                corners.append(row)
    a = torch.from_numpy(attention)
    return max(float(jsd(torch.from_numpy(corner), a)) for corner in corners)


@pytest.mark.parametrize("units", [2, 3, 7, 20])
@pytest.mark.parametrize("spread", [0.01, 2.0, 30.0])
def test_with_two_classes_it_is_the_best_vertex(units: int, spread: float) -> None:
    attention, said, mask = problem(20, units, 2, seed=units, spread=spread)
    found = farthest(attention, said, mask)
    margin = (said[..., 1] - said[..., 0]).numpy()
    expected = [naive_best(a, d) for a, d in zip(attention.numpy(), margin, strict=True)]
    np.testing.assert_allclose(found.jsd, expected, atol=1e-9)
    assert bool(found.is_exact.all())


@pytest.mark.parametrize("units", [3, 4, 5, 6])
def test_no_random_attention_with_the_same_output_is_farther(units: int) -> None:
    attention, said, mask = problem(30, units, 2, seed=units)
    found = farthest(attention, said, mask)
    generator = np.random.default_rng(units)
    beaten = 0
    for concentration in (0.05, 0.2, 1.0):
        drawn = generator.dirichlet([concentration] * units, (30, 1200))
        rows = torch.from_numpy(drawn)
        # Most random rows change the output: mixing them with the trained one brings some back.
        for stay in (0.0, 0.5, 0.9):
            mixed = (1 - stay) * rows + stay * attention[:, None]
            keeps = tvd(mixed, attention, said) <= EPSILON
            far = jsd(mixed, attention[:, None].expand_as(mixed))
            assert bool((far.masked_fill(~keeps, 0) <= found.jsd[:, None] + 1e-9).all())
            beaten += int(keeps.sum())
    assert beaten > 300


@pytest.mark.parametrize("classes", [2, 3, 5])
def test_what_is_found_is_an_attention_and_keeps_the_output(classes: int) -> None:
    attention, said, mask = problem(40, 9, classes)
    found = farthest(attention, said, mask)
    assert bool((found.attention >= 0).all())
    torch.testing.assert_close(found.attention.sum(-1), torch.ones(40).double())
    reached = tvd(found.attention[:, None], attention, said)[:, 0]
    torch.testing.assert_close(reached, found.tvd, rtol=0, atol=1e-12)
    assert float(reached.max()) <= EPSILON + 1e-12
    torch.testing.assert_close(jsd(found.attention, attention), found.jsd, rtol=0, atol=1e-9)
    assert bool((found.jsd <= largest_jsd(attention, mask) + 1e-12).all())
    assert bool((found.attention > 0).sum(-1).le(2 if classes == 2 else classes + 1).all())


def test_with_more_classes_it_is_at_least_the_best_of_a_fine_grid_of_pairs() -> None:
    attention, said, mask = problem(12, 6, 3, spread=1.0)
    found = farthest(attention, said, mask)
    share = torch.linspace(0, 1, 2001, dtype=torch.float64)
    best = torch.zeros(12, dtype=torch.float64)
    for i, j in combinations(range(6), 2):
        rows = torch.zeros(12, 2001, 6, dtype=torch.float64)
        rows[..., i], rows[..., j] = 1 - share, share
        far = jsd(rows, attention[:, None].expand_as(rows))
        keeps = tvd(rows, attention, said) <= EPSILON
        best = torch.maximum(best, far.masked_fill(~keeps, 0).amax(-1))
    assert bool((found.jsd >= best - 1e-6).all())
    assert float(best.max()) > 0
    assert float(found.jsd.min()) > 0.1  # pairs alone often keep no output: the vertex does
    assert not bool(found.is_exact.any())


def test_two_classes_as_three_are_bounded_by_the_exact_answer() -> None:
    attention, said, mask = problem(20, 8, 2)
    never = torch.full_like(said[..., :1], -500.0)
    exact = farthest(attention, said, mask)
    bound = farthest(attention, torch.cat([said, never], -1), mask)
    assert bool((bound.jsd <= exact.jsd + 1e-9).all())
    assert float((exact.jsd - bound.jsd).max()) < 1e-3  # pairs are the whole story here


def test_hand_worked_two_units() -> None:
    # p = 1/2 at equal weights; ε = 1/4 allows margins within ±ln 3, weights (1 ± ln 3 / 4) / 2.
    attention = torch.tensor([[0.5, 0.5]]).double()
    said = torch.tensor([[[0.0, 4.0], [4.0, 0.0]]]).double()
    found = farthest(attention, said, torch.ones(1, 2, dtype=torch.bool), tolerance=0.25)
    weight = (1 + log(3) / 4) / 2
    assert sorted(found.attention[0].tolist()) == pytest.approx([1 - weight, weight])
    assert float(found.tvd) == pytest.approx(0.25)


def test_one_unit_has_no_other_attention() -> None:
    for classes in (2, 3):
        attention, said, mask = problem(3, 1, classes)
        found = farthest(attention, said, mask)
        assert found.jsd.tolist() == [0.0] * 3
        assert found.tvd.tolist() == pytest.approx([0.0] * 3, abs=1e-12)
        assert largest_jsd(attention, mask).tolist() == pytest.approx([0.0] * 3, abs=1e-12)


def test_a_unit_without_attention_can_take_it_all_when_every_unit_says_the_same() -> None:
    attention = torch.tensor([[0.7, 0.3, 0.0]]).double()
    said = torch.tensor([[[1.0, 2.0]]]).double().expand(1, 3, 2)
    found = farthest(attention, said, torch.ones(1, 3, dtype=torch.bool))
    assert found.attention.tolist() == [[0.0, 0.0, 1.0]]
    assert float(found.jsd) == pytest.approx(log(2))


def test_a_saturated_output_has_one_face_only() -> None:
    attention, said, mask = problem(10, 6, 2)
    said = said + torch.tensor([0.0, 60.0])
    found = farthest(attention, said, mask)
    torch.testing.assert_close(found.jsd, largest_jsd(attention, mask))


@pytest.mark.parametrize("classes", [2, 3])
def test_padding_and_neighbours_do_not_change_the_adversary(classes: int) -> None:
    attention, said, mask = problem(6, 9, classes)
    for row, units in enumerate((1, 2, 4, 9, 6, 3)):
        mask[row, units:] = False
    attention = attention.masked_fill(~mask, 0)
    attention = attention / attention.sum(-1, keepdim=True)
    whole = farthest(attention, said, mask, most_units=4)
    for row, units in enumerate(mask.sum(-1).tolist()):
        part = (slice(row, row + 1), slice(units))
        one = farthest(attention[part], said[part], mask[part], most_units=4)
        torch.testing.assert_close(one.jsd[0], whole.jsd[row], rtol=0, atol=1e-9)
        torch.testing.assert_close(one.attention[0], whole.attention[row, :units])
        assert float(whole.attention[row, units:].sum()) == 0
        assert bool(one.is_exact[0]) == bool(whole.is_exact[row])


def test_long_documents_are_searched_in_part_and_say_so() -> None:
    attention, said, mask = problem(10, 60, 2)
    exact, part = farthest(attention, said, mask), farthest(attention, said, mask, most_units=20)
    assert bool(exact.is_exact.all())
    assert not bool(part.is_exact.any())
    assert bool((part.jsd <= exact.jsd + 1e-12).all())
    assert float((exact.jsd - part.jsd).max()) < 0.01


def test_chunks_do_not_change_the_adversary(monkeypatch: pytest.MonkeyPatch) -> None:
    for classes in (2, 3):
        inputs = problem(7, 8, classes)
        whole = farthest(*inputs)
        monkeypatch.setattr("heedful.audits.exact_adversary.PAIRS", 5)
        torch.testing.assert_close(farthest(*inputs).jsd, whole.jsd)
        monkeypatch.undo()


@pytest.mark.parametrize("classes", [2, 3])
def test_the_search_keeps_the_output_and_never_beats_the_exact_adversary(classes: int) -> None:
    attention, said, mask = problem(12, 7, classes)
    found = search(attention, said, mask, torch.arange(12) * 7919**4, steps=300)
    met = found.jsd.isfinite()
    assert int(met.sum()) >= 10
    assert float(found.tvd[met].max()) <= EPSILON
    torch.testing.assert_close(jsd(found.attention, attention)[met], found.jsd[met])
    if classes == 2:
        assert bool((found.jsd[met] <= farthest(attention, said, mask).jsd[met] + 1e-9).all())
    assert float(found.jsd[met].mean()) > 0.2


@pytest.mark.slow
def test_the_published_search_is_never_farther_at_the_bound_it_reached() -> None:
    """Two classes: with more, the pair adversary is a lower bound and says so."""
    # 1 to 12 units, and outputs from barely moved to saturated by one unit.
    documents, longest = 120, 12
    attention, said, _ = problem(documents, longest, 2, seed=5, spread=1.0)
    mask = torch.arange(longest) < (1 + torch.arange(documents) % longest)[:, None]
    attention = attention * mask / (attention * mask).sum(-1, keepdim=True)
    spread = torch.logspace(-1, 1, 7, dtype=torch.float64)[torch.arange(documents) % 7]
    said = said * spread[:, None, None] * mask[..., None]
    at = Site(said, attention, torch.eye(2).double(), torch.zeros(2).double())
    ended = published_search(at, mask, EPSILON, steps=500)
    assert ended.dtype == torch.float64
    reached, far = tvd(ended, attention, said), jsd(ended, attention[:, None].expand_as(ended))
    exact = torch.empty_like(far)
    for row in range(documents):
        one = (attention[[row]], said[[row]], mask[[row]])
        for candidate in range(CANDIDATES):
            found = farthest(*one, tolerance=max(EPSILON, float(reached[row, candidate])))
            exact[row, candidate] = found.jsd[0]
            assert bool(found.is_exact)
    assert bool((exact >= far - 1e-9).all())
    torch.testing.assert_close(margins(attention, said, mask, ended), exact - far)
    # The bound is needed, the search is a fair one, and it is beaten for real.
    assert int((reached > EPSILON).sum()) > 10
    assert float((exact - far)[mask.sum(-1) > 2].min()) < 1e-3
    assert float((exact - far).median()) > 0.05


def test_the_search_takes_the_steps_of_torchs_own_optimiser(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    attention, said, mask = problem(3, 5, 3)
    keys = torch.tensor([11, 22, 33]) * 7919**4
    noise = uniform_noise(keys, CANDIDATES, 5)
    logits = (SPREAD * torch.special.ndtri(noise)).requires_grad_()
    optimiser = torch.optim.Adam([logits], lr=0.01, amsgrad=True)
    wide = attention[:, None].expand(-1, CANDIDATES, -1)
    for _ in range(25):
        rows = logits.softmax(-1)
        objective = jsd(rows, wide).sum()
        for i, j in combinations(range(CANDIDATES), 2):
            apart = jsd(rows[:, i], rows[:, j]).sum()
            objective = objective + apart / (CANDIDATES * (CANDIDATES - 1))
        outside = (tvd(rows, attention, said) - EPSILON).clamp_min(0).sum()
        optimiser.zero_grad()
        (500 / CANDIDATES * outside - objective).backward()  # type: ignore[no-untyped-call]
        optimiser.step()
    steps: list[Tensor] = []

    def noted(log_p: Tensor, log_q: Tensor) -> Tensor:
        steps.append(log_p)
        return js_divergence(log_p, log_q)

    monkeypatch.setattr("heedful.audits.searched_adversary.js_divergence", noted)
    search(attention, said, mask, keys, steps=25)
    torch.testing.assert_close(steps[-1], logits.detach().log_softmax(-1), rtol=1e-8, atol=1e-8)


def test_rows_say_what_decide_would_say() -> None:
    model = classifier("bilstm+additive", 2)
    batch = batch_of(((1,), (9,), (6,), (12,)))
    reading = read(model, batch)
    rows = adversary.rows(model, reading, {}, seed=0, searched=1.0)
    found = farthest(reading.attention, alone(model, reading).nan_to_num(0), reading.mask)
    logits = decide(model, reading, Replace(found.attention[:, None]))[:, 0]
    moved = total_variation(logits.softmax(-1), reading.logits.softmax(-1))
    np.testing.assert_allclose(rows["exact_tvd"], moved, atol=1e-12)
    assert list(rows["instance"]) == list(batch.names)
    assert rows["is_searched"].tolist() == [False, True, True, True]
    assert rows["searched_jsd"].isna().tolist()[0]
    assert (rows["searched_jsd"].dropna() <= rows["exact_jsd"].loc[1:] + 1e-9).all()


@pytest.mark.parametrize("recipe", ["conv+additive", "han:gru+dot"])
def test_batches_do_not_change_the_rows(recipe: str) -> None:
    model = classifier(recipe, 2)
    batch = batch_of(((3, 1), (2, 5, 2), (1,), (4, 4)))
    whole = adversary.rows(model, read(model, batch), {}, seed=3, searched=0.5)
    for document in range(4):
        alone_batch = padded(chosen(batch, [document]), 2)
        one = adversary.rows(model, read(model, alone_batch), {}, seed=3, searched=0.5).iloc[0]
        assert one["is_searched"] == whole["is_searched"][document]
        for column in ("exact_jsd", "exact_tvd", "largest_jsd", "searched_jsd"):
            assert one[column] == pytest.approx(whole[column][document], abs=1e-5, nan_ok=True)


def test_the_finding_counts_what_it_leaves_out() -> None:
    model = classifier("none+dot", 2)
    batch = batch_of(((1,), (9,), (6,), (12,)))
    rows = adversary.rows(model, read(model, batch), {}, seed=0, searched=1.0)
    finding = adversary.summarise(rows)
    moved = finding.get("attention can be moved almost completely")
    assert moved is not None
    kept = rows[rows["units"] > 1]
    assert moved.n == 3
    assert moved.value == (kept["exact_jsd"] >= 0.9 * kept["largest_jsd"]).mean()
    assert any(note.startswith("1 of 4 documents have one unit") for note in finding.notes)
    assert "3 of 3 documents, chosen by key, were also searched by gradient." in finding.notes
    unsearched = adversary.summarise(rows.assign(is_searched=False, searched_jsd=np.nan))
    assert any(note.startswith("None of the 3 documents was among") for note in unsearched.notes)
    assert unsearched.get("JSD", "searched") is None
    assert sum(finding.drawn["exact_jsd"]["counts"]) == 3
    assert finding.to_json()["audit"] == "adversary"
    assert "at most 0.01" in finding.answer


def test_nothing_to_measure_is_said() -> None:
    model = classifier("none+dot", 2)
    reading = read(model, batch_of(((1,),)))
    rows = adversary.rows(model, reading, {}, seed=0)
    for empty in (rows, rows.head(0)):
        assert adversary.summarise(empty).answer.startswith("Nothing could be measured")
    bent = NonLinear(model, nn.Identity())
    rows = adversary.rows(bent, read(bent, batch_of(((4,),))), {}, seed=0)
    assert rows["exact_jsd"].isna().all()
