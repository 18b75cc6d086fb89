"""The strength of a remedy chosen on the user's own dev set."""

import shutil
from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

import pytest

from heedful.corpora import Corpus, encode, planted
from heedful.errors import InputError
from heedful.jobs.decider import load
from heedful.jobs.remedy import OBJECTIVES, _own, remedy, swept
from heedful.jobs.settings import settings_of
from heedful.jobs.sources import DocumentSource, source_of
from heedful.jobs.strengths import choose
from heedful.jobs.train import train
from heedful.runs import RunFolder, read_json, write_json

SMALL = settings_of(
    {
        "model": {"embedding_dim": 12, "width": 16},
        "train": {"epochs": 2, "learning_rate": 1e-2, "batch_size": 16},
        "words": {"min_count": 1},
    }
)


@pytest.fixture(scope="module")
def corpus() -> Corpus:
    return planted(2, "short", 4, {"train": 100, "dev": 40, "test": 30})


@pytest.fixture(scope="module")
def run(corpus: Corpus, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("remedy") / "run"
    train("bilstm+additive", corpus, folder, settings=SMALL)
    return folder


@pytest.mark.slow
def test_the_chosen_model_is_kept_as_a_run_and_says_what_it_costs(
    run: Path, corpus: Corpus, tmp_path: Path
) -> None:
    out = tmp_path / "out"
    found = remedy(run, corpus, out, strengths=(3.0, 1.0))
    assert [one.strength for one in found.tried] == [1.0, 3.0]
    assert found.base.strength == 0
    assert found.chosen == choose(found.base.f1, found.tried)
    configuration = RunFolder.open(out).configuration
    assert configuration["recipe"] == f"bilstm+additive+tying:{found.chosen.strength:g}"
    assert configuration["model"]["width"] == configuration["model"]["embedding_dim"] == 12
    assert load(out).config.width == 12
    assert not (out / "candidates").exists()
    text = "\n".join(found.lines())
    assert "Width 16 became 12" in text
    assert "kept" in text
    assert "points of dev F1" in text
    assert [price.cost.n for price in found.prices] == [40, 40]
    for one, price in zip(found.tried, found.prices, strict=True):
        assert price.cost.value == pytest.approx(found.base.f1 - one.f1)
        assert price.buys.value == pytest.approx(one.reliance - found.base.reliance)
    (out / "candidates" / "tying-1").mkdir(parents=True)  # as a kill of the code before left it
    again = remedy(run, corpus, out, strengths=(1.0, 3.0), limit=1.5)
    assert again == found
    assert not (out / "candidates").exists()
    with pytest.raises(InputError, match="another search"):
        remedy(run, corpus, out, strengths=(1.0,))
    with pytest.raises(InputError, match="another search"):
        remedy(run, corpus, out, strengths=(1.0, 3.0), limit=3)


@pytest.mark.slow
def test_a_search_killed_while_it_moves_files_ends_as_if_it_had_not_been(
    run: Path, corpus: Corpus, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Killed(BaseException):
        pass

    def moving(left: int) -> Callable[..., Path]:
        done = Path.rename

        def killed(self: Path, target: Path) -> Path:
            nonlocal left
            if target.parent.name != "out":
                return done(self, target)
            left -= 1
            if left < 0:
                raise Killed
            return done(self, target)

        return killed

    out, before = tmp_path / "out", tmp_path / "before"
    with monkeypatch.context() as patch:
        patch.setattr(Path, "rename", moving(0))
        with pytest.raises(Killed):
            remedy(run, corpus, out, strengths=(1.0,))
    out.rename(before)
    found, files = None, None
    for moment in range(1, 8):
        shutil.copytree(before, out)
        with monkeypatch.context() as patch, suppress(Killed):
            patch.setattr(Path, "rename", moving(moment))
            remedy(run, corpus, out, strengths=(1.0,))
        again = remedy(run, corpus, out, strengths=(1.0,))
        names = sorted(path.relative_to(out).as_posix() for path in out.rglob("*"))
        assert again == (found or again)
        assert names == (files or names)
        assert load(out).config.width == 12
        found, files = again, names
        shutil.rmtree(out)
    assert files is not None
    assert not {"candidates", "decided.json", "model/model", ".lock"} & set(files)


def test_a_sweep_that_the_code_before_left_half_moved_is_refused(
    run: Path, corpus: Corpus, tmp_path: Path
) -> None:
    # It moved metrics.jsonl, model and run.json in this order, then wrote remedy.json.
    out = tmp_path / "out"
    kept = out / "candidates" / "tying-1"
    shutil.copytree(run, kept)
    for moved in ("model", "run.json"):
        (kept / moved).rename(out / moved)
        with pytest.raises(InputError, match="an older heedful was killed in; choose a new"):
            remedy(run, corpus, out, strengths=(1.0,))
        assert not (out / ".lock").exists()


@pytest.mark.slow
def test_the_limit_decides_what_is_kept_and_is_part_of_what_was_asked(
    run: Path, corpus: Corpus, tmp_path: Path
) -> None:
    kept = {}
    for limit in (0, 100):
        out = tmp_path / f"{limit}"
        found = remedy(run, corpus, out, strengths=(1.0, 1000.0), limit=limit)
        assert found.chosen == choose(found.base.f1, found.tried, limit)
        assert read_json(out / "remedy.json")["asked"]["limit"] == limit
        assert remedy(run, corpus, out, strengths=(1.0, 1000.0), limit=limit) == found
        assert any(f" {limit} points" in line for line in found.lines())
        kept[limit] = found
        with pytest.raises(InputError, match="another search"):
            remedy(run, corpus, out, strengths=(1.0, 1000.0))
    assert kept[0].tried == kept[100].tried
    assert kept[100].chosen.is_within


@pytest.mark.slow
def test_a_search_from_before_there_were_intervals_still_opens(
    run: Path, corpus: Corpus, tmp_path: Path
) -> None:
    found = remedy(run, corpus, tmp_path, strengths=(1.0,))
    stored = read_json(tmp_path / "remedy.json")
    assert set(stored["asked"]) == {"run", "objective", "strengths"}
    del stored["limit"]
    for name in ("cost", "buys", "behind"):
        del stored["tried"][0][name]
    write_json(tmp_path / "remedy.json", stored)
    assert remedy(run, corpus, tmp_path, strengths=(1.0,)) == replace(found, prices=())


@pytest.mark.slow
def test_masked_words_freeze_the_embeddings_of_all_models(
    run: Path, corpus: Corpus, tmp_path: Path
) -> None:
    found = remedy(run, corpus, tmp_path / "out", objective="mlm", strengths=(0.3,))
    assert RunFolder.open(tmp_path / "out").configuration["model"]["freeze_embeddings"]
    assert any("frozen" in note for note in found.notes)


def test_bad_requests_are_refused(run: Path, corpus: Corpus, tmp_path: Path) -> None:
    with pytest.raises(InputError, match="objective"):
        remedy(run, corpus, tmp_path / "a", objective="prayer")
    for strength in (-1.0, 0.0, float("nan"), float("inf")):
        with pytest.raises(InputError, match=f"strengths above 0 .*; got {strength:g}"):
            remedy(run, corpus, tmp_path / "a", strengths=(1.0, strength))
    for limit in (-0.5, float("nan"), float("inf")):
        with pytest.raises(InputError, match=f"from 0 to 100; got {limit}"):
            remedy(run, corpus, tmp_path / "a", limit=limit)
    other = planted(2, "short", 5, {"train": 100, "dev": 40, "test": 30})
    with pytest.raises(InputError, match="give the same corpus"):
        remedy(run, other, tmp_path / "a")
    assert not (tmp_path / "a").exists()


@pytest.mark.slow
def test_a_remedied_run_opens_the_documents_of_the_run_it_came_from(
    corpus: Corpus, tmp_path: Path
) -> None:
    source = DocumentSource("planted:2:short", None, None, None, None, 4, {"train": 100, "dev": 40})
    train("bilstm+additive", corpus, tmp_path / "run", settings=SMALL, source=source)
    found = remedy(tmp_path / "run", corpus, tmp_path / "tied", strengths=[1.0])
    assert source_of(found.folder) == source
    assert RunFolder.open(found.folder).record["corpus"] == corpus.fingerprint


@pytest.mark.parametrize("label", [0, 1])
def test_a_dev_split_of_one_class_is_refused_before_anything_is_trained(
    corpus: Corpus, tmp_path: Path, label: int
) -> None:
    dev = [document for document in corpus.splits["dev"] if document.label == label]
    one = replace(corpus, splits={**corpus.splits, "dev": dev})
    train("bilstm+additive", one, tmp_path / "run", settings=SMALL)
    with pytest.raises(
        InputError, match=f"No dev document has the label '{one.classes[1 - label]}"
    ):
        remedy(tmp_path / "run", one, tmp_path / "out")
    assert not (tmp_path / "out").exists()


@pytest.mark.slow
def test_a_run_keeps_its_reductions_and_the_remedy_takes_them_from_there(
    corpus: Corpus, tmp_path: Path
) -> None:
    summed = replace(SMALL, penalties={"tying_over": "sum"})
    train("bilstm+additive", corpus, tmp_path / "run", settings=summed)
    assert RunFolder.open(tmp_path / "run").configuration["penalties"] == {"tying_over": "sum"}
    found = remedy(tmp_path / "run", corpus, tmp_path / "sum")
    # Of vectors with 12 dimensions a sum is 12 times the mean.
    assert [one.strength for one in found.tried] == pytest.approx(
        [1 / 12, 3 / 12, 10 / 12, 30 / 12]
    )
    assert RunFolder.open(tmp_path / "sum").configuration["penalties"] == {"tying_over": "sum"}
    with pytest.raises(InputError, match="is what a sweep of tying kept"):
        remedy(tmp_path / "sum", corpus, tmp_path / "again")
    more = remedy(tmp_path / "sum", corpus, tmp_path / "more", limit=50)  # not the same sweep
    assert more.base == found.base
    mean = {"tying_over": "mean"}
    remedy(tmp_path / "run", corpus, tmp_path / "mean", strengths=[0.3], reductions=mean)
    assert RunFolder.open(tmp_path / "mean").configuration["penalties"] == {}
    with pytest.raises(InputError, match="another search"):
        remedy(tmp_path / "run", corpus, tmp_path / "mean", strengths=[0.3])


def test_the_sum_over_dimensions_is_the_mean_times_their_number(corpus: Corpus) -> None:
    sizes = {"embedding_dim": 8, "width": 8}
    tables = {"model": sizes, "train": {"epochs": 1}, "words": {"min_count": 1}}
    summed = settings_of(tables | {"penalties": {"tying_over": "sum"}})
    first = train("bilstm+additive+tying:0.5", corpus, settings=summed)
    second = train("bilstm+additive+tying:4", corpus, settings=settings_of(tables))
    weights = zip(first.parameters(), second.parameters(), strict=True)
    assert all(one.allclose(other, atol=1e-5) for one, other in weights)


def test_an_encoded_corpus_counts_its_classes_as_the_corpus_does(corpus: Corpus) -> None:
    encoded = encode(corpus)
    for split in ("train", "dev", "test"):
        assert encoded.counts(split) == corpus.counts(split)
    few = replace(corpus, splits={"train": corpus.splits["train"]})
    assert encode(few).counts("dev") == few.counts("dev") == {"negative": 0, "positive": 0}


def test_strengths_are_read_from_the_objective() -> None:
    assert swept("tying") == ("tying", ())
    assert swept("tying:5") == ("tying", (5.0,))
    assert swept("mlm:0.3,1") == ("mlm", (0.3, 1.0))
    for wrong in ("tying:", "tying:3,", "tying:strong"):
        with pytest.raises(InputError, match="tying:3,10"):
            swept(wrong)
    with pytest.raises(InputError, match=r"strengths above 0 .*; got -1"):
        swept("mlm:1,-1")  # before documents are opened
    with pytest.raises(InputError, match="known: mlm, tying"):
        swept("prayer:3")


@pytest.mark.parametrize(
    ("kept", "is_within", "following"),
    [(1.0, False, "0.33"), (1.0, True, "1.7"), (10.0, True, "17"), (30.0, True, "90")],
)
def test_after_a_sweep_a_strength_that_it_did_not_try_is_named(
    run: Path, tmp_path: Path, kept: float, is_within: bool, following: str
) -> None:
    tried = [{"strength": strength} for strength in OBJECTIVES["tying"][1]]
    chosen = {"strength": kept, "is_within": is_within}
    shutil.copytree(run, tmp_path / "kept")
    swept_once = {"objective": "tying", "tried": tried, "chosen": chosen}
    write_json(tmp_path / "kept" / "remedy.json", swept_once)
    with pytest.raises(InputError, match=f"such as --objective tying:{following}, or"):
        remedy(tmp_path / "kept", planted(2, "short", 4, {"train": 9}), tmp_path / "again")


@pytest.mark.slow
def test_other_penalties_of_the_run_stay_and_its_own_strength_is_left_out(
    corpus: Corpus, tmp_path: Path
) -> None:
    tied = tmp_path / "tied"
    even = replace(SMALL, model={"embedding_dim": 12, "width": 12})
    train("bilstm+additive+tying:3", corpus, tied, settings=even)
    masked = remedy(tied, corpus, tmp_path / "masked", objective="mlm", strengths=[0.1])
    recipe = RunFolder.open(tmp_path / "masked").configuration["recipe"]
    assert recipe == "bilstm+additive+tying:3+mlm:0.1"
    said = f"{tied}'s own tying:3 stays in all of these models, also in the one at 0."
    assert said in masked.lines()
    stored = read_json(tmp_path / "masked" / "remedy.json")
    assert said in stored["notes"]
    assert stored["asked"]["stays"] == {"tying": 3.0}
    other = remedy(tied, corpus, tmp_path / "other", strengths=[1.0])
    assert RunFolder.open(tmp_path / "other").configuration["recipe"] == "bilstm+additive+tying:1"
    left = f"{tied}'s own tying:3 is left out: strengths are compared with the model without it."
    assert other.notes == (left,)
    # The untreated model beside mlm is tied: it is not the one beside tying.
    frozen = replace(even, model=even.model | {"freeze_embeddings": True})
    train("bilstm+additive", corpus, tmp_path / "plain", settings=frozen)
    plain = remedy(tmp_path / "plain", corpus, tmp_path / "no", objective="mlm", strengths=[0.1])
    assert plain.notes == ()
    assert plain.tried != masked.tried


@pytest.mark.slow
def test_other_vectors_than_the_run_started_from_are_refused(
    corpus: Corpus, tmp_path: Path
) -> None:
    first, second = tmp_path / "first.txt", tmp_path / "second.txt"
    first.write_text("the " + "0.1 " * 11 + "0.1\n")
    second.write_text("the " + "0.2 " * 11 + "0.2\n")
    train("bilstm+additive", corpus, tmp_path / "run", settings=SMALL, vectors=first)
    with pytest.raises(InputError, match=f"again with --vectors {first}"):
        remedy(tmp_path / "run", corpus, tmp_path / "out")
    with pytest.raises(InputError, match="holds others; give the same"):
        remedy(tmp_path / "run", corpus, tmp_path / "out", vectors=second)
    with pytest.raises(InputError, match=r"nosuch\.txt does not exist"):
        remedy(tmp_path / "run", corpus, tmp_path / "out", vectors=tmp_path / "nosuch.txt")
    assert not (tmp_path / "out").exists()
    first.rename(second)  # the same under another name
    remedy(tmp_path / "run", corpus, tmp_path / "out", vectors=second, strengths=[1.0])
    record = read_json(tmp_path / "run" / "run.json")
    record["configuration"]["vectors"] = "first.txt"  # as runs had it before there were digests
    write_json(tmp_path / "run" / "run.json", record)
    with pytest.raises(InputError, match="holds others; give the same"):
        remedy(tmp_path / "run", corpus, tmp_path / "by name", vectors=second)
    second.rename(first)
    remedy(tmp_path / "run", corpus, tmp_path / "by name", vectors=first, strengths=[1.0])


@pytest.mark.parametrize(
    ("recipe", "own"),
    [
        ("bilstm+additive+tying:3+mlm:1e-05", {"tying": 3, "mlm": 1e-5}),
        ("hf:bert+tying:final", {}),  # a name
        ("hf:bert+tying:final+tying:0.5", {"tying": 0.5}),
        ("bilstm+additive@2+concat", {}),
    ],
)
def test_penalties_are_read_off_the_end_of_a_recipe(
    recipe: str, own: dict[str, float], tmp_path: Path
) -> None:
    write_json(
        tmp_path / "run.json", {"format": 1, "configuration": {"recipe": recipe}, "steps": {}}
    )
    assert _own(RunFolder.open(tmp_path)) == own
