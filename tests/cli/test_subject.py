"""What the user named becomes a model, its documents and a folder."""

import shutil
from dataclasses import replace
from pathlib import Path

import pandas as pd
import pytest

from heedful.cli.options import Options
from heedful.cli.subject import Subject, subject_of, to_train, trained
from heedful.corpora import planted
from heedful.errors import InputError
from heedful.jobs.settings import settings_of
from heedful.jobs.sources import source_of
from heedful.jobs.train import train
from heedful.models import AttentionClassifier
from heedful.runs import read_json, write_json
from tests.tiny_transformers import save

TINY = settings_of({"model": {"embedding_dim": 6}, "train": {"epochs": 1}})


@pytest.fixture(scope="module")
def reviews(tmp_path_factory: pytest.TempPathFactory) -> Path:
    documents = planted(length="short", seed=1, sizes={"train": 90}).splits["train"]
    file = tmp_path_factory.mktemp("subject") / "reviews.csv"
    rows = [{"text": d.text, "label": ("bad", "good")[d.label]} for d in documents]
    pd.DataFrame(rows).to_csv(file, index=False)
    return file


@pytest.fixture(scope="module")
def run(reviews: Path) -> Path:
    subject = subject_of("none+additive", Options(data=reviews, out=reviews.with_name("run")))
    train("none+additive", subject.documents, subject.place, settings=TINY, source=subject.source)
    return subject.place


def test_a_recipe_gets_documents_a_source_and_a_folder_named_after_all_three(reviews: Path) -> None:
    subject = subject_of("bilstm+additive", Options(data=reviews, seed=3))
    assert subject.model == "bilstm+additive"
    assert subject.run is None
    assert subject.source is not None
    assert subject.source.data == str(reviews)
    assert subject.place == Path("runs/bilstm+additive-reviews-seed3")
    quick = to_train("none+dot", "title", Options(quick=True))
    assert quick.place == Path("runs/title-planted-seed0-quick")
    assert len(quick.documents.splits["train"]) == 800


def test_a_run_brings_its_own_documents_and_folder(run: Path, reviews: Path) -> None:
    for options in (Options(), Options(data=reviews), Options(seed=7)):
        subject = subject_of(str(run), options)
        assert isinstance(subject.model, AttentionClassifier)
        assert (subject.place, subject.run) == (run, run)
        own = source_of(run)
        assert own is not None
        assert subject.documents.fingerprint == own.open()[0].fingerprint


@pytest.mark.parametrize("name", ["text", "text2", "label", "split"])
def test_a_run_s_own_documents_are_not_read_otherwise_in_silence(
    name: str, run: Path, reviews: Path
) -> None:
    column = "text" if name == "label" else "label"
    for options in (Options(), Options(data=reviews)):
        with pytest.raises(InputError, match=f"was trained without --{name}, and its own"):
            subject_of(str(run), replace(options, **{name: column}))
    for other in (Options(data=reviews, threshold=0.0), Options(data=reviews, labels="a=bad")):
        with pytest.raises(InputError, match=r"was trained without --(threshold|labels)"):
            subject_of(str(run), other)


@pytest.mark.parametrize("source", [{"nosuch": 1}, {"data": "a.csv", "corpus": "planted"}])
def test_a_run_that_says_strangely_where_its_documents_are_is_refused(
    source: dict[str, object], run: Path, tmp_path: Path
) -> None:
    copied = shutil.copytree(run, tmp_path / "run")
    record = read_json(copied / "run.json")
    write_json(copied / "run.json", record | {"source": source})
    with pytest.raises(InputError):
        subject_of(str(copied), Options())


def test_a_run_s_own_documents_may_be_named_with_the_columns_of_its_training(
    run: Path, reviews: Path, tmp_path: Path
) -> None:
    named = Options(data=reviews, text="text", label="label", out=tmp_path / "run")
    # What was guessed in training may be named afterwards.
    assert subject_of(str(run), replace(named, out=None)).place == run
    subject = subject_of("none+additive", named)
    train("none+additive", subject.documents, subject.place, settings=TINY, source=subject.source)
    again = subject_of(str(subject.place), named)
    assert (again.place, again.run) == (subject.place, subject.place)
    with pytest.raises(InputError, match="was trained by --text text, and its own"):
        subject_of(str(subject.place), replace(named, text="label"))


def test_other_documents_get_a_folder_of_their_own(run: Path, tmp_path: Path) -> None:
    new = tmp_path / "new.csv"
    pd.DataFrame({"text": ["a fine soup", "a bad bar"]}).to_csv(new, index=False)
    named: dict[str, Options] = {
        "run-on-new": Options(data=new),
        "run-on-planted:2:short": Options(corpus="planted:2:short"),
    }
    for folder, options in named.items():
        subject = trained(str(run), options)
        assert subject.place == run.with_name(folder)
        assert subject.run == run
        assert subject.source == options.source()
    elsewhere: Subject = trained(str(run), Options(data=new, out=tmp_path / "out"))
    assert elsewhere.place == tmp_path / "out"


def test_documents_are_named_one_way_for_training(reviews: Path) -> None:
    with pytest.raises(InputError, match="either --corpus or --data"):
        subject_of("none+dot", Options(corpus="planted", data=reviews))


def test_labels_of_a_corpus_are_matched_as_those_of_a_file(tmp_path: Path) -> None:
    folder = str(save(tmp_path / "bert", "bert", ("LABEL_0", "LABEL_1")))
    asked = Options(corpus="planted:2:short", quick=True)
    with pytest.raises(InputError) as refused:
        subject_of(folder, asked)
    pairs = str(refused.value).rpartition("add: --labels ")[2]
    subject = subject_of(folder, replace(asked, labels=pairs))
    assert subject.documents.classes == ("LABEL_0", "LABEL_1")
    assert subject.source is not None
    assert f"--labels {pairs}" in subject.source.options()
    assert subject.source.open()[0].classes == ("LABEL_0", "LABEL_1")
    with pytest.raises(InputError, match="Unknown label 'bad'"):
        subject_of(folder, replace(asked, labels="bad=LABEL_0"))
    with pytest.raises(InputError, match="--labels is for the documents of --data or --corpus"):
        Options(labels=pairs)
