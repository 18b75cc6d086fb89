"""Translators followed over training, and the steps that a study makes of them."""

from pathlib import Path

import numpy as np
import pytest
import torch

from heedful.corpora.pairs import END, START, EncodedPairs, collate_pairs
from heedful.corpora.pieces import PieceTokeniser, bleu, bleu_of_counts, encode_parallel
from heedful.corpora.planted_pairs import planted_pairs
from heedful.dynamics.pair_probes import PairLog, pair_rows, probed_pairs, saliency_of_pairs
from heedful.dynamics.proxy import ProxyConfig
from heedful.dynamics.trajectory import kept_checkpoints
from heedful.models import saved_translator
from heedful.models.likelihoods import attended, saliency
from heedful.models.saved_translator import translations
from heedful.models.translator import TranslatorConfig, build_translator
from heedful.reproduction.results import Results
from heedful.studies.dynamics import translation_steps
from heedful.training.loop import Moment
from heedful.training.sequences import SequenceConfig

SIZES = {"train": 48, "dev": 7, "test": 5}
TRAINING = SequenceConfig(epochs=2, batch_size=8, learning_rate=1e-2, grid=(0, 4, 12))


@pytest.fixture(scope="module")
def corpus() -> EncodedPairs:
    return encode_parallel(planted_pairs(SIZES), 150)


@pytest.fixture(scope="module")
def results(tmp_path_factory: pytest.TempPathFactory) -> Results:
    return Results(tmp_path_factory.mktemp("steps"))


TEXT = translation_steps.encoded(
    "planted-pairs", lambda: planted_pairs(SIZES), 150, {"sizes": SIZES}
)
CONFIG = TranslatorConfig(150, 8, 6)
LINEAR = TranslatorConfig(150, 8, 6, output="linear")


@pytest.mark.slow
def test_a_trajectory_lists_words_sentence_by_sentence(corpus: EncodedPairs) -> None:
    model = build_translator(TranslatorConfig(150, 8, 6)).double()
    split = corpus.splits["dev"]
    found, delta = probed_pairs(model, split, step=3), saliency_of_pairs(model, split)
    lengths, item = pair_rows(split)
    assert np.array_equal(found.lengths, lengths)
    assert np.array_equal(found.item, item)
    assert found.steps.tolist() == [3]
    start = first = 0
    for row in range(len(split)):
        pairs = collate_pairs(split, [row])
        alone = attended(model, pairs)
        words, units = pairs.target.shape[1], pairs.source.shape[1]
        part = slice(start, start + words * units)
        shape = words, units
        np.testing.assert_allclose(
            found.attention[0, part].reshape(shape), alone.attention[0], atol=1e-6
        )
        np.testing.assert_allclose(found.probe[0, part].reshape(shape), alone.probe[0], atol=1e-5)
        np.testing.assert_allclose(delta[part].reshape(shape), saliency(model, pairs)[0], atol=1e-6)
        special = np.isin(pairs.source[0].numpy(), (START, END))
        assert np.array_equal(found.is_special[part].reshape(shape), [special] * words)
        right = found.correct[0, first : first + words]
        assert np.array_equal(right, alone.is_right[0].numpy())
        start, first = start + words * units, first + words
    assert start == found.attention.shape[1]


@pytest.mark.slow
def test_a_log_keeps_every_moment_and_the_best_weights(
    corpus: EncodedPairs, tmp_path: Path
) -> None:
    splits = translation_steps.followed_splits(corpus)
    assert len(splits["train"]) == len(splits["dev"])
    pieces = PieceTokeniser(corpus.model)
    models = [build_translator(CONFIG, seed) for seed in range(3)]
    for step, model in enumerate(models):  # a new log each time, as after a kill
        PairLog(tmp_path, splits, pieces)(Moment(step, 0.0, model, corpus, "cpu"))
    kept = kept_checkpoints(tmp_path, "dev")
    assert kept.steps.tolist() == [0, 1, 2]
    found = PairLog(tmp_path, splits, pieces).best_saliency(build_translator(CONFIG), "cpu")
    assert set(found) == {"dev", "train", "dev bleu", "train bleu"}
    for kind, name in (("accuracy", "dev"), ("bleu", "dev bleu")):
        best = models[int(kept.steps[kept.best(kind)])]
        np.testing.assert_array_equal(found[name], saliency_of_pairs(best, splits["dev"]))


def test_a_log_without_saliency_keeps_the_same_moment_and_no_weights(
    corpus: EncodedPairs, tmp_path: Path
) -> None:
    splits, pieces = {"dev": corpus.splits["dev"]}, PieceTokeniser(corpus.model)
    moment = Moment(0, 0.0, build_translator(CONFIG), corpus, "cpu")
    for kept in ("with", "without"):
        (tmp_path / kept).mkdir()
        PairLog(tmp_path / kept, splits, pieces, kept == "with")(moment)
    one, two = (kept_checkpoints(tmp_path / kept, "dev") for kept in ("with", "without"))
    np.testing.assert_array_equal(one.probe, two.probe)
    assert one.performance("bleu") == two.performance("bleu")
    assert len(list((tmp_path / "with").glob("weights*"))) == 2
    assert not list((tmp_path / "without").glob("weights*"))


@pytest.mark.slow
def test_a_followed_run_is_what_comparisons_read(results: Results) -> None:
    step = translation_steps.followed_pairs(TEXT, "attention", CONFIG, 20, TRAINING, True)
    run = results[step]
    assert run.splits["dev"].steps.tolist() == [0, 4, 12]
    assert run.splits["dev"].performance("bleu").shape == (3,)
    assert run.saliency["train"].shape == run.splits["train"].attention.shape[1:]
    assert isinstance(run, translation_steps.TranslatedRun)
    saved = run.translator()
    best = run.splits["dev"].best()
    here = probed_pairs(saved.model, results[TEXT].splits["dev"])
    np.testing.assert_allclose(here.attention[0], run.splits["dev"].attention[best], atol=1e-6)
    written = results[translation_steps.translated(TEXT, step, "test", 2)]
    expected = bleu(written["translation"], written["reference"]).score
    found = float(bleu_of_counts(written, np.ones((1, len(written))))[0])
    assert found == pytest.approx(expected, abs=1e-6)
    assert len(written) == SIZES["test"]


def test_counts_give_the_corpus_bleu_back() -> None:
    from heedful.corpora.pieces import bleu_counts

    written = ["the cat sat on the mat today", "a dog ran over the old bridge"]
    right = ["the cat sat on the mat", "a dog ran over the bridge"]
    counts = bleu_counts(written, right)
    whole = bleu_of_counts(counts, np.array([[1.0, 1.0], [2.0, 0.0]]))
    assert whole[0] == pytest.approx(bleu(written, right).score)
    assert whole[1] == pytest.approx(bleu(written[:1] * 2, right[:1] * 2).score)


@pytest.mark.parametrize(
    "written",
    [
        ["the cat sat under a tree", "dogs run"],  # no match of four words
        ["a mat the on", "bridge over"],  # none of two, three and four
        ["nothing", "here"],  # none at all, and no four words to match
        ["", ""],
    ],
)
def test_counts_are_smoothed_as_sacrebleu_does(written: list[str]) -> None:
    from heedful.corpora.pieces import bleu_counts

    right = ["the cat sat on the mat", "a dog ran over the bridge"]
    found = bleu_of_counts(bleu_counts(written, right), np.array([[1.0, 1.0], [3.0, 1.0]]))
    assert found[0] == pytest.approx(bleu(written, right).score)
    more = [[texts[0]] * 3 + texts[1:] for texts in (written, right)]
    assert found[1] == pytest.approx(bleu(*more).score)


@pytest.mark.slow
def test_the_best_attention_of_a_linear_model_is_certified(results: Results) -> None:
    runs = [
        translation_steps.followed_pairs(TEXT, "linear", LINEAR, seed, TRAINING)
        for seed in (20, 13)
    ]
    table = results[translation_steps.optimal(TEXT, *runs, 3)]
    assert (table["gap"] <= 1e-4).all()
    assert (table["loss"] <= table["own loss"] + 1e-4).all()
    assert (table["loss"] < table["own loss"]).any()
    assert table["item"].tolist() == sorted(table["item"])
    # Wherever the search begins it ends at the same loss, and a long plain one comes near.
    assert (table["gap from uniform"] <= 1e-4).all()
    is_vertex = table["stayed"] == 1
    assert (table["from uniform"] == table["agreement"])[is_vertex].all()
    nonlinear = build_translator(CONFIG)
    with pytest.raises(ValueError, match="convex"):
        translation_steps._best_attention(nonlinear, results[TEXT].splits["dev"], "cpu")


@pytest.mark.slow
def test_words_alone_predict_every_followed_position(results: Results) -> None:
    found = results[translation_steps.pair_predictors(TEXT, ProxyConfig(8, 2, 16, 1e-2))]
    run = results[translation_steps.followed_pairs(TEXT, "attention", CONFIG, 20, TRAINING, True)]
    for split in ("dev", "train"):
        flat = run.splits[split].attention.shape[1]
        for name in ("proxy", "counts", "em"):
            assert found.splits[split][name].shape == (flat,)
    corpus = results[TEXT]
    dev = corpus.splits["dev"]
    # Row 0 is the first target word against start, all source pieces, end.
    words = [START, *dev.source.row(0), END]
    train = corpus.splits["train"]
    counts = {}
    total: dict[int, float] = {}
    for row in range(len(train)):
        source = [START, *train.source.row(row), END]
        for word in source:
            for target in [*train.target.row(row), END]:
                key = (word, target)
                counts[key] = counts.get(key, 0.0) + 1 / len(source)
                total[word] = total.get(word, 0.0) + 1 / len(source)
    right = dev.target.row(0)[0]
    expected = [counts.get((word, right), 0.0) / total.get(word, 1.0) for word in words]
    np.testing.assert_allclose(found.splits["dev"]["counts"][: len(words)], expected, atol=1e-6)


def test_sizes_and_tables_are_those_of_the_corpus(results: Results) -> None:
    sizes = results[translation_steps.pair_sizes(TEXT)]
    assert sizes["vocabulary"] == 150
    assert sizes["dev"]["documents"] == SIZES["dev"]
    assert results[translation_steps.pair_tables(TEXT)]["largest difference"] < 1e-12


def test_a_translator_follows_on_the_device_it_is_given(corpus: EncodedPairs) -> None:
    model = build_translator(CONFIG)
    found = probed_pairs(model, corpus.splits["dev"], torch.device("cpu"))
    assert found.attention.dtype == np.float32


@pytest.mark.parametrize("beam", [1, 2])
def test_translations_are_the_same_however_many_are_made_together(
    corpus: EncodedPairs, monkeypatch: pytest.MonkeyPatch, beam: int
) -> None:
    model, pieces = build_translator(CONFIG, 3).double().eval(), PieceTokeniser(corpus.model)
    for weight in model.parameters():
        weight.data *= 6  # untrained, it would write the same whatever it reads
    split = corpus.splits["dev"]
    together = translations(model, split, pieces, beam)
    monkeypatch.setitem(saved_translator.SENTENCES, "cpu", 2)
    assert translations(model, split, pieces, beam) == together
    assert len(set(together)) > 1
