"""The dynamics study: every artifact and claim from runs of a few steps."""

import json
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from heedful.dynamics.agreement import agrees, chance
from heedful.dynamics.cooccurrence import translation_table
from heedful.dynamics.trajectory import FollowedRun, Trajectory
from heedful.statistics.draws import average
from heedful.studies import reproduce
from heedful.studies.dynamics import (
    corpora,
    examples,
    measures,
    printed,
    steps,
    tables,
    translation,
)
from heedful.studies.dynamics.claims import CLAIMS
from heedful.studies.dynamics.comparisons import COMPARED, MAIN, CorpusAgreements, compare, mean_of
from heedful.studies.dynamics.study import ARTIFACTS, STUDY
from heedful.training.config import Schedule
from heedful.training.sequences import SequenceConfig

CORPORA = ("planted", "planted-pairs", "toy")


@pytest.fixture(scope="module")
def out(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    patch = pytest.MonkeyPatch()
    folder = tmp_path_factory.mktemp("study")
    for place, name, value in (
        (steps, "SMOKE_SCHEDULE", Schedule(4, (0, 2, 4))),
        (corpora, "PLANTED", {"train": 64, "dev": 32, "test": 4}),
        (steps, "SMOKE_SIZES", {"embedding_dim": 6, "width": 6, "one_logit": True}),
        (translation, "PAIRS", {"train": 120, "dev": 6, "test": 4}),
        (translation, "SMOKE_PIECES", 200),
        (translation, "training", lambda plan, corpus: SequenceConfig(1, 40, 1e-2, (0, 2, 3))),
        (examples, "DIMS", (64, 256, 65_536)),
    ):
        patch.setattr(place, name, value)
    try:
        reproduce("dynamics", corpora=CORPORA, out=folder)
    finally:
        patch.undo()
    return folder / "dynamics"


@pytest.mark.slow
def test_every_artifact_of_the_corpora_is_there(out: Path) -> None:
    for artifact in ARTIFACTS:
        if artifact.corpora is None or set(artifact.corpora) & set(CORPORA):
            made = json.loads((out / f"{artifact.id}.json").read_text())
            assert (out / f"{artifact.id}.csv").is_file(), made
    assert (out / "index.html").is_file()


@pytest.mark.slow
def test_every_claim_has_a_verdict_on_every_corpus_at_hand(out: Path) -> None:
    verdicts = json.loads((out / "claims.json").read_text())
    objects = verdicts["claims"] if isinstance(verdicts, dict) else verdicts
    found = {(one["id"], one["corpus"]): one for one in objects}
    for claim in CLAIMS:
        if claim.measure is None:
            continue
        for corpus in set(claim.corpora or ()) & set(CORPORA):
            one = found[claim.id, corpus]
            assert one["verdict"] != "not measurable", one["reason"]


def test_all_claims_and_artifacts_of_the_specification_are_declared() -> None:
    claims = {claim.id for claim in STUDY.claims}
    assert claims == {f"DYN-{n}" for n in range(1, 23)} | {f"DYN-A{n}" for n in range(1, 8)}
    artifacts = {artifact.id for artifact in STUDY.artifacts}
    wanted = {f"T{n}" for n in range(2, 12)} | {f"F{n}" for n in range(1, 9)}
    assert wanted | {f"E{n}" for n in range(1, 5)} <= artifacts


def test_the_published_grid_has_22_checkpoints() -> None:
    assert len(steps.SCHEDULE.evaluate_at) == 22
    assert steps.SCHEDULE.evaluate_at[-1] == steps.SCHEDULE.steps == 4_000


def _trajectory(seed: int, lengths: np.ndarray, checkpoints: int = 3) -> Trajectory:
    generator = np.random.default_rng(seed)
    flat = int(lengths.sum())
    special = np.zeros(flat, dtype=bool)
    special[np.cumsum(lengths) - 1] = True
    return Trajectory(
        steps=np.arange(checkpoints) * 10,
        attention=generator.random((checkpoints, flat), dtype=np.float32),
        probe=generator.random((checkpoints, flat), dtype=np.float32),
        correct=generator.random((checkpoints, len(lengths))) < 0.6,
        lengths=lengths,
        item=np.arange(len(lengths)) // 2,
        is_special=special,
    )


@pytest.fixture(scope="module")
def compared() -> tuple[CorpusAgreements, dict[str, Trajectory]]:
    lengths = np.random.default_rng(0).integers(4, 50, 40)
    runs = {name: _trajectory(seed, lengths) for seed, name in enumerate("ABCUV")}
    followed = {name: FollowedRun({"dev": run}, {}) for name, run in runs.items()}
    generator = np.random.default_rng(9)
    delta = generator.standard_normal(int(lengths.sum())).astype(np.float32)
    followed["A"] = FollowedRun({"dev": runs["A"]}, {"dev": delta})
    proxy = generator.standard_normal(int(lengths.sum())).astype(np.float32)
    found = compare(
        followed["A"], {"B": followed["B"], "C": followed["C"]},
        {"U": followed["U"], "V": followed["V"]}, {"proxy": proxy}, "dev",
        frozen={"C": followed["C"]},
    )  # fmt: skip
    return found, runs | {"delta": delta, "proxy": proxy}


def test_columns_hold_the_published_vectors(
    compared: tuple[CorpusAgreements, dict[str, Trajectory]],
) -> None:
    found, runs = compared
    best = runs["A"].performance().argmax()
    attention, lengths = runs["A"].attention[best], runs["A"].lengths
    firsts = {MAIN[0]: attention, MAIN[1]: runs["proxy"], MAIN[2]: runs["delta"]}
    for pair, first in firsts.items():
        wanted = agrees(first, runs["U"].probe, lengths)
        np.testing.assert_array_equal(found.arrays[f"top:{pair}"], wanted)
    # A(α,β) takes the attention of run A and the probe of run B.
    wanted = agrees(attention, runs["B"].probe, lengths)
    np.testing.assert_array_equal(found.arrays[f"top:{MAIN[3]}"], wanted)
    same = agrees(runs["A"].attention, runs["A"].probe, lengths)
    np.testing.assert_array_equal(found.arrays["top:own attention~own probe"], same)


def test_beyond_chance_is_taken_where_agreement_is_highest(
    compared: tuple[CorpusAgreements, dict[str, Trajectory]],
) -> None:
    found, runs = compared
    curve = found.curve("top:attention~uniform").means
    at = int(curve.argmax())
    expected = curve[at] - chance(runs["U"].probe[at], runs["U"].lengths).mean()
    assert measures.beyond(found, "attention~uniform")[0].value == pytest.approx(expected)


def test_a_column_has_a_curve_of_every_pair_of_runs(
    compared: tuple[CorpusAgreements, dict[str, Trajectory]],
) -> None:
    """No run is in two pairs, but of A(α,β), where the next run of three has the probe."""
    found, runs = compared
    lengths = runs["A"].lengths
    best = {name: runs[name].attention[runs[name].best()] for name in "ABC"}
    for number, (one, two) in enumerate(("AU", "BV")):
        wanted = agrees(best[one], runs[two].probe, lengths)
        key = f"paired top:attention~uniform/{number}"
        np.testing.assert_array_equal(found.arrays[key], wanted)
        assert found.has(f"paired split:proxy~uniform/{number}")
    for number, (one, two) in enumerate(("AB", "BC", "CA")):
        wanted = agrees(best[one], runs[two].probe, lengths)
        np.testing.assert_array_equal(found.arrays[f"paired top:attention~probe/{number}"], wanted)
    frozen = agrees(best["A"], runs["C"].attention, lengths)
    np.testing.assert_array_equal(found.arrays["paired top:attention~frozen/0"], frozen)
    assert list(measures.paired(found, "attention~uniform")) == ["0", "1"]


def test_an_interval_over_runs_holds_how_far_they_differ() -> None:
    names = [str(number) for number in range(200)]
    wide, narrow = (
        [average(np.full(200, mean) + np.arange(200) % 2 / 100, names) for mean in means]
        for means in ((0.3, 0.4, 0.5), (0.4, 0.4, 0.4001))
    )
    one = measures.over_runs(narrow[:1])
    assert one == narrow[0].estimate()  # a single run has the interval of its documents
    assert measures.over_runs(narrow).high - measures.over_runs(narrow).low < 0.01
    found = measures.over_runs(wide)
    assert found.value == pytest.approx(0.405)
    student = 4.3027 * 0.1 / np.sqrt(3)
    assert found.high - found.value == pytest.approx(student, rel=0.01)
    # Where every run is in two of the pairs, their mean may vary twice as much.
    twice = measures.over_runs(wide, "attention~probe")
    assert twice.high - twice.value == pytest.approx(np.sqrt(2) * student, rel=0.01)
    assert measures.over_runs(wide, "attention~probe", least=0.2).low == 0.2


def test_xi_is_read_from_the_comparison_runs(
    compared: tuple[CorpusAgreements, dict[str, Trajectory]],
) -> None:
    found, runs = compared
    value = found.curve("top:attention~uniform").means.max()
    curves = [found.curve(f"top:attention~attention/{name}") for name in "BC"]
    context = mean_of(curves).means
    performed = np.mean([runs[name].performance() for name in "BC"], axis=0)
    passed = np.flatnonzero(context > value)
    wanted = performed[passed[0]] if len(passed) else runs["A"].performance().max()
    assert measures.xi(found, "attention~uniform").performance == pytest.approx(wanted)


def test_leaving_out_marks_keeps_the_other_units(
    compared: tuple[CorpusAgreements, dict[str, Trajectory]],
) -> None:
    found, runs = compared
    run = runs["A"]
    inner = ~run.is_special
    wanted = agrees(run.attention[found.best][inner], runs["U"].probe[:, inner], run.lengths - 1)
    np.testing.assert_array_equal(found.arrays["inner:attention~uniform"], wanted)


def test_every_agreement_is_spread_over_seeds(
    compared: tuple[CorpusAgreements, dict[str, Trajectory]],
) -> None:
    found, runs = compared
    spread = measures.spread_of_seeds(found)
    run = runs["A"]
    attention = run.attention[found.best]

    def best(first: np.ndarray, name: str) -> float:
        return 100 * float(agrees(first, runs[name].probe, run.lengths).mean(1).max())

    assert spread["A(Δ,βuf) over uniform runs"] == [best(runs["delta"], n) for n in "UV"]
    assert spread["A(βuf,βpx) over uniform runs"] == [best(runs["proxy"], n) for n in "UV"]
    assert spread["A(α,β) over comparison runs"] == [best(attention, n) for n in "BC"]
    assert set(map(len, spread.values())) == {2, 3}


def test_a_brief_comparison_still_has_all_that_the_training_tables_need(
    compared: tuple[CorpusAgreements, dict[str, Trajectory]],
) -> None:
    whole, runs = compared
    followed = {name: FollowedRun({"dev": runs[name]}, {}) for name in "BU"}
    found = compare(
        FollowedRun({"dev": runs["A"]}, {"dev": runs["delta"]}), {"B": followed["B"]},
        {"U": followed["U"]}, {"proxy": runs["proxy"]}, "dev", is_brief=True, is_ranked=False,
    )  # fmt: skip
    columns = measures.all_columns(found)
    assert len(columns) == 5
    first = whole.arrays["paired top:attention~uniform/0"]
    np.testing.assert_array_equal(found.arrays["paired top:attention~uniform/0"], first)
    left_out = "tau:", "split:", "inner", "paired tau", "paired split", "paired inner", "context:"
    assert not any(key.startswith(left_out) for key in found.arrays)


def test_only_small_results_are_needed_to_draw() -> None:
    plan = STUDY.plan("paper", ["sst"])
    wanted = [
        step
        for part in (*STUDY.artifacts, *STUDY.claims)
        for corpus in plan.only(part.corpora).corpora
        for step in part.needs(plan, corpus)
    ]
    kinds = {step.name.split("/")[-1] for step in wanted}
    # Followed runs, predictors and corpora stay where they were made.
    assert kinds == {"agreements", "log", "sizes", "tables", "words"}


def test_agreements_come_back_from_their_file(
    compared: tuple[CorpusAgreements, dict[str, Trajectory]], tmp_path: Path
) -> None:
    found, _ = compared
    COMPARED.save(tmp_path / "a.safetensors", found)
    again = COMPARED.load(tmp_path / "a.safetensors")
    assert again.best == found.best
    for key in ("top:attention~uniform", "split:proxy~uniform"):
        np.testing.assert_allclose(again.curve(key).means, found.curve(key).means, rtol=1e-6)


def test_the_counterexample_and_the_worked_example_are_the_papers() -> None:
    found = examples.counterexample()
    assert [round(found[f"α{n}"], 6) for n in (1, 2, 3)] == [0.0, 0.5, 0.5]
    assert found["p"] == pytest.approx(0.8590, abs=1e-4)
    film, weight = examples.movie_example()
    assert (round(film, 2), round(weight, 2)) == (0.32, 0.74)


def test_the_papers_tables_have_a_row_for_every_corpus_of_theirs() -> None:
    corpora = set(tables.ROWS) - {"planted", "planted-pairs", "multi30k-en-de"}
    for table in (printed.VALIDATION, printed.KENDALL, printed.TRAINING):
        assert set(table["corpus"]) == corpora
    assert set(printed.SIZES["corpus"]) == corpora | {"sms"}
    for table in (printed.BLEU, printed.KENDALL_BLEU, printed.TRAINING_BLEU):
        assert set(table["corpus"]) == set(translation.PUBLISHED)
    assert not printed.VALIDATION.isna().any().any()


def test_multi30k_is_read_both_ways_with_the_same_settings() -> None:
    plan = STUDY.plan("paper")
    there, back = (translation.training(plan, name) for name in ("multi30k", "multi30k-en-de"))
    assert there == back
    assert translation.READ["multi30k-en-de"][1] == translation.READ["multi30k"][1][::-1]


def test_count_tables_of_permutations_are_those_expected() -> None:
    six = translation_table(examples._permutations(6, 4), examples._permutations(6, 4)).toarray()
    np.testing.assert_allclose(np.diag(six), 1 / 4)
    np.testing.assert_allclose(six[~np.eye(6, dtype=bool)], 3 / 20)
    two = translation_table(examples._mixture(3), examples._mixture(3)).toarray()
    np.testing.assert_allclose(two, np.kron(np.eye(2), np.full((3, 3), 1 / 3)))
