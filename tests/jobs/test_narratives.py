"""Narratives: how they are cut, read from disk, followed and traced."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import torch

import heedful
from heedful.audits.traces import window_tables
from heedful.corpora.narrative_batches import (
    collate_narratives,
    encode_narratives,
    load_narratives,
    narrative_batches,
    save_narratives,
    word_texts,
)
from heedful.corpora.narratives import (
    Narrative,
    Narratives,
    planted_narratives,
    read_send,
    windowed,
)
from heedful.errors import InputError, UnsupportedModel
from heedful.jobs.audit import audit
from heedful.jobs.narratives import train_narrator
from heedful.jobs.settings import settings_of
from heedful.models import TransformerConfig, build_narrator, lat, load_model, save_model
from heedful.models.tracing import layers_of
from heedful.runs import read_json
from heedful.training import TrainConfig, fit
from heedful.training.kinds import evaluate_narratives, follow
from tests.schemas import conforms

SMALL = TransformerConfig(
    embedding_dim=12, layers=2, heads=2, head_dim=8, feed_forward=8, pooling_dims=(8, 4),
    decider_dim=8,
)  # fmt: skip


def narrative(times, words=None, end=30.0, id="one"):
    times = np.array(times, dtype=float)
    rated = np.arange(0.5, end, 0.5)
    words = words or tuple(f"w{number}" for number in range(len(times)))
    return Narrative(id, tuple(words), times, rated, np.linspace(-1, 1, len(rated)))


def test_a_word_at_the_boundary_belongs_to_the_window_that_it_ends():
    cut = windowed(narrative([1, 5, 5.01, 10, 12]))
    assert cut.words == (("w0", "w1"), ("w2", "w3"))  # the window of w4 is never closed
    assert cut.is_filled == (False, False)


def test_an_empty_window_repeats_the_word_before_or_the_first():
    cut = windowed(narrative([7, 8, 22, 31], end=40))
    assert cut.words == (("w0",), ("w0", "w1"), ("w1",), ("w1",), ("w2",), ("w2",))
    assert cut.is_filled == (True, False, True, True, False, True)
    encoded = encode_narratives(Narratives("x", {"train": [narrative([7, 8, 22, 31], end=40)]}))
    shown = word_texts(encoded.splits["train"], encoded.vocabulary)
    assert shown == ["null", "w0", "w1", "null", "null", "w2", "null"]


def test_words_and_ratings_are_cut_to_the_shorter():
    cut = windowed(narrative([1, 6, 11, 16, 21], end=12.0))
    assert len(cut.words) == len(cut.ratings) == 2
    scale = np.linspace(-1, 1, 23)
    assert cut.ratings == pytest.approx([scale[:10].mean(), scale[10:20].mean()])


def test_a_narrative_without_a_whole_window_is_refused():
    with pytest.raises(InputError, match="no whole window"):
        windowed(narrative([1, 2, 3]))
    gap = narrative([1, 6, 11, 16])
    gap = replace(gap, rating_times=np.array([1.0, 12.0, 17.0]), ratings=np.zeros(3))
    with pytest.raises(InputError, match="between 5 and 10"):
        windowed(gap)


def test_planted_narratives_depend_on_the_seed_alone_and_say_what_is_rated():
    sizes = {"train": 12, "dev": 2}
    first, second = planted_narratives(3, sizes), planted_narratives(3, sizes)
    assert first.fingerprint == second.fingerprint
    assert first.fingerprint != planted_narratives(4, sizes).fingerprint
    valence = first.lexicon
    said, rated = [], []
    for one in first.splits["train"]:
        for words, rating in zip(*windowed(one)[1::2], strict=True):
            known = [valence[word] for word in words if word in valence]
            if known:
                said.append(np.mean(known))
                rated.append(rating)
    assert np.corrcoef(said, rated)[0, 1] > 0.6


@pytest.fixture
def folder(tmp_path):
    for split, names in (("train", ("1_1", "2_3")), ("dev", ("3_1",))):
        for part in ("words", "ratings"):
            (tmp_path / "send" / split / part).mkdir(parents=True)
        for name in names:
            words = "time\tword\n1.0\tHello\n4.0\tthere,\n7.5\tFriends\n11.0\tbye\n"
            rated = "".join(f"{t / 2},{50 + t}\n" for t in range(1, 25))
            (tmp_path / "send" / split / "words" / f"{name}.tsv").write_text(words)
            (tmp_path / "send" / split / "ratings" / f"{name}.csv").write_text(
                "time,evaluatorWeightedEstimate\n" + rated
            )
    return tmp_path


def test_send_is_read_from_its_folder(folder):
    found = read_send(folder)
    assert [one.id for one in found.splits["train"]] == ["1_1", "2_3"]
    one = found.splits["train"][0]
    assert one.words == ("hello", "there", "friends", "bye")
    assert one.ratings[0] == pytest.approx(51 / 50 - 1)
    assert windowed(one).words == (("hello", "there"), ("friends",))


def test_missing_ratings_are_named(folder):
    (folder / "send/train/ratings/2_3.csv").unlink()
    with pytest.raises(InputError, match="lacks the ratings of 2_3"):
        read_send(folder)


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("time,score\n1,50\n", "time and rating"),
        ("time,rating\n1,many\n", "expected a number, got 'many'"),
        ("time,rating\n2,50\n1,50\n", "rising times"),
        ("time,rating\n1,500\n", "between 0 and 100"),
        ("time,rating\n", "rising times, found 0"),
    ],
)
def test_ratings_that_cannot_be_read_are_told_by_file(folder, text, sentence):
    (folder / "send/train/ratings/2_3.csv").write_text(text)
    with pytest.raises(InputError, match=sentence):
        read_send(folder)


def test_a_missing_corpus_says_what_stands_in(tmp_path):
    with pytest.raises(InputError, match="planted narratives stand in"):
        read_send(tmp_path)


@pytest.fixture(scope="module")
def corpus():
    return encode_narratives(planted_narratives(0, {"train": 6, "dev": 3, "test": 4}, minutes=0.8))


@pytest.fixture(params=["windows", "narrative"])
def model(request, corpus):
    made = build_narrator(replace(SMALL, reads=request.param), corpus.vocabulary, seed=1)
    with torch.no_grad():
        for layer in made.encoder.layers:
            layer.query.weight *= 6
    return made.double().eval()


def test_a_batch_of_narratives_equals_single_ones(model, corpus):
    test = corpus.splits["test"]
    together = follow(model, test)
    for row, found in enumerate(together):
        alone = model(collate_narratives(test, [row])).ratings[0].detach().numpy()
        assert found == pytest.approx(alone, abs=1e-12)
    batch = next(narrative_batches(test, 4))
    assert not model(batch).ratings[~batch.windows].any()


def test_later_windows_do_not_change_earlier_ratings(corpus):
    model = build_narrator(SMALL, corpus.vocabulary, seed=1).double().eval()
    batch = collate_narratives(corpus.splits["test"], [0])
    changed = batch.ids.clone()
    changed[:, -1] = changed[:, 0, :1]
    before, after = (model(one).ratings[0] for one in (batch, replace(batch, ids=changed)))
    assert torch.equal(before[:-1], after[:-1])


def test_the_loss_is_the_mean_over_windows_that_exist(model, corpus):
    batch = next(narrative_batches(corpus.splits["test"], 4))
    found = np.concatenate(follow(model, corpus.splits["test"]))
    wanted = np.mean((found - corpus.splits["test"].ratings) ** 2)
    assert float(model.loss(batch).detach()) == pytest.approx(
        wanted, abs=1e-6
    )  # ratings in float32


def test_tracing_keeps_the_unit_in_every_window(model, corpus):
    stack = layers_of(model, next(narrative_batches(corpus.splits["test"], 4)))
    found = lat(stack)
    assert (found.shares.sum(-1) - 1).abs().max() < 1e-12
    is_whole = model.config.reads == "narrative"
    assert len(stack.mask) == (4 if is_whole else corpus.splits["test"].windows.sum())


def test_whole_narratives_are_read_across_windows(corpus):
    batch = collate_narratives(corpus.splits["test"], [0])
    changed = batch.ids.clone()
    changed[0, 2, 0] = corpus.vocabulary.ids["terrible"]
    for reads, differs in (("windows", False), ("narrative", True)):
        model = build_narrator(replace(SMALL, reads=reads), corpus.vocabulary).double().eval()
        first, other = (
            model(one).pooled.context[0] for one in (batch, replace(batch, ids=changed))
        )
        assert torch.equal(first, other) != differs


def test_tables_have_a_row_for_every_word(corpus):
    model = build_narrator(SMALL, corpus.vocabulary)
    tables = window_tables(model, corpus.splits["test"])
    tokens, test = tables["tokens"], corpus.splits["test"]
    assert len(tokens) == len(test.ids)
    assert tokens.groupby("instance")["lat"].sum().to_numpy() == pytest.approx(2, abs=1e-5)
    filled = np.repeat(test.is_filled, test.words)
    assert (tokens["word"].to_numpy()[filled] == "null").all()
    assert tables["cells"]["lost"].max() < 1e-12


def test_training_chooses_the_best_concordance_and_resumes_to_the_bit(corpus, tmp_path):
    train = TrainConfig(epochs=3, batch_size=3, patience=0, select="ccc", learning_rate=3e-3)
    whole = build_narrator(SMALL, corpus.vocabulary)
    history = fit(whole, corpus, train)
    assert history.best == max(entry["dev_ccc"] for entry in history.entries)
    assert evaluate_narratives(whole, corpus.splits["dev"]).ccc == pytest.approx(history.best)

    def kill(moment):
        if moment.epoch == 2:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        fit(build_narrator(SMALL, corpus.vocabulary), corpus, train, folder=tmp_path,
            observers=[kill])  # fmt: skip
    again = build_narrator(SMALL, corpus.vocabulary)
    fit(again, corpus, train, folder=tmp_path)
    for name, value in whole.state_dict().items():
        assert torch.equal(value, again.state_dict()[name])
    with pytest.raises(InputError, match="ccc"):
        fit(again, corpus, replace(train, select="accuracy"))


def test_audits_are_refused_in_one_sentence(corpus, tmp_path):
    save_model(build_narrator(SMALL, corpus.vocabulary), tmp_path / "model")
    assert load_model(tmp_path / "model").config == SMALL
    with pytest.raises(UnsupportedModel, match="decides nothing"):
        audit(tmp_path / "model", "planted:2:short", tmp_path / "out")


@pytest.mark.slow
def test_a_narrator_is_trained_into_a_run_folder(tmp_path):
    tales = planted_narratives(0, {"train": 4, "dev": 2, "test": 2}, minutes=0.6)
    sizes = {"embedding_dim": 12, "layers": 1, "heads": 2, "head_dim": 8}
    settings = settings_of({"model": sizes, "train": {"epochs": 1, "select": "ccc"}})
    model = train_narrator(tales, tmp_path / "run", settings=settings)
    again = heedful.load(tmp_path / "run")
    assert again.config == model.config
    assert read_json(tmp_path / "run/run.json")["test"]["ccc"] is not None
    with pytest.raises(InputError, match="planted, send"):
        train_narrator("tales")
    with pytest.raises(InputError, match="train_narrator"):
        heedful.train("tracing/send", "planted:2:short")


def test_prepared_narratives_come_back_as_they_were(corpus, tmp_path):
    save_narratives(tmp_path, corpus)
    again = load_narratives(tmp_path)
    assert again.vocabulary == corpus.vocabulary
    for split, part in corpus.splits.items():
        for name in ("ids", "words", "windows", "ratings", "is_filled"):
            assert (getattr(again.splits[split], name) == getattr(part, name)).all()


def test_a_rating_that_is_no_number_or_below_zero_is_told(folder):
    """A minus sign is part of a rating, not punctuation around a word."""
    path = folder / "send/train/ratings/2_3.csv"
    for text, sentence in (("-5", "between 0 and 100"), ("nan", "expected a number, got 'nan'")):
        path.write_text(f"time,rating\n1,50\n2,{text}\n")
        with pytest.raises(InputError, match=sentence):
            read_send(folder)


@pytest.mark.slow
def test_a_folder_of_narratives_is_trained_and_traced_by_the_command(tmp_path):
    from typer.testing import CliRunner

    from heedful.cli import app

    tales = planted_narratives(0, {"train": 5, "dev": 2, "test": 8}, minutes=1.5)
    for split, narratives in tales.splits.items():
        for number, one in enumerate(narratives):
            for part in ("words", "ratings"):
                (tmp_path / "tales" / split / part).mkdir(parents=True, exist_ok=True)
            said = "".join(f"{t}\t{w}\n" for t, w in zip(one.times, one.words, strict=True))
            rated = zip(one.rating_times, 50 * (one.ratings + 1), strict=True)
            place = tmp_path / "tales" / split
            (place / "words" / f"{number}.tsv").write_text("time\tword\n" + said)
            (place / "ratings" / f"{number}.csv").write_text(
                "time,rating\n" + "".join(f"{t},{min(max(r, 0), 100)}\n" for t, r in rated)
            )
    (tmp_path / "small.toml").write_text(
        "[model]\nembedding_dim = 12\nlayers = 2\nheads = 2\nhead_dim = 8\nfeed_forward = 8\n"
        "pooling_dims = [8, 4]\ndecider_dim = 8\n[train]\nepochs = 1\nbatch_size = 3\n"
    )
    ratings = tmp_path / "ratings.csv"
    ratings.write_text("word,rating\n" + "".join(f"{w},{v}\n" for w, v in tales.lexicon.items()))
    run = tmp_path / "run"
    command = ["narratives", str(tmp_path / "tales"), "--out", str(run), "--lexicon", str(ratings)]
    command += ["--config", str(tmp_path / "small.toml"), "--no-lemmas", "--device", "cpu"]
    done = CliRunner().invoke(app, command)
    assert done.exit_code == 0, done.output
    assert "Concordance with the ratings" in done.output
    conforms("narratives", CliRunner().invoke(app, [*command, "--json"]).stdout)
    assert read_json(run / "traced" / "lexicon.json")["question"]
    import pandas as pd

    tokens = pd.read_parquet(run / "traced" / "tokens.parquet")
    assert "null" not in set(tokens["word"])
    sums = tokens.groupby("instance")["importance"].sum()
    np.testing.assert_allclose(sums, 2, rtol=1e-5)  # two heads
    windows = pd.read_csv(run / "traced" / "windows.csv")
    assert windows["narrative"].nunique() == 8
    with pytest.raises(InputError, match="folder of narratives"):
        train_narrator("tales")
