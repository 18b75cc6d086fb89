"""What is kept of a translator while it learns."""

import numpy as np
import pytest

from heedful.corpora.pairs import END, START, collate_pairs
from heedful.corpora.pieces import PieceTokeniser, encode_parallel
from heedful.corpora.planted_pairs import planted_pairs
from heedful.dynamics.cooccurrence import grid
from heedful.dynamics.pair_probes import PairLog, pair_rows, probed_pairs, saliency_of_pairs
from heedful.dynamics.trajectory import kept_checkpoints
from heedful.dynamics.watch import pair_sides
from heedful.models.likelihoods import attended, saliency
from heedful.models.translator import TranslatorConfig, build_translator
from heedful.training.sequences import SequenceConfig, fit_translator


@pytest.fixture(scope="module")
def corpus():
    return encode_parallel(planted_pairs({"train": 60, "dev": 8, "test": 4}), 160)


def _model(corpus):
    return build_translator(TranslatorConfig(len(corpus.pieces), 8, 8, 1, dropout=0.0), 3)


def test_rows_are_the_words_of_the_pairs_in_order(corpus):
    dev = corpus.splits["dev"]
    model = _model(corpus)
    found = probed_pairs(model, dev)
    lengths, item = pair_rows(dev)
    np.testing.assert_array_equal(found.lengths, lengths)
    np.testing.assert_array_equal(found.item, item)
    start = 0
    for row in range(len(dev)):
        pairs = collate_pairs(dev, [row])
        did = attended(model, pairs)
        size = did.attention[0].numel()
        np.testing.assert_allclose(
            found.attention[0, start : start + size], did.attention[0].numpy().ravel(), atol=1e-6
        )
        np.testing.assert_allclose(
            found.probe[0, start : start + size], did.probe[0].numpy().ravel(), atol=1e-5
        )
        is_special = np.isin(pairs.source[0].numpy(), (START, END))
        np.testing.assert_array_equal(
            found.is_special[start : start + size], np.tile(is_special, pairs.target.shape[1])
        )
        start += size


def test_predictors_of_words_lie_on_the_same_rows(corpus):
    dev = corpus.splits["dev"]
    cells = grid(*pair_sides(dev, len(corpus.pieces)))
    lengths, item = pair_rows(dev)
    np.testing.assert_array_equal(cells.lengths, lengths)
    np.testing.assert_array_equal(cells.item, item)


@pytest.mark.slow
def test_every_evaluation_is_kept_with_its_bleu_and_the_best_weights(corpus, tmp_path):
    model = _model(corpus)
    dev = corpus.splits["dev"]
    log = PairLog(tmp_path, {"dev": dev}, PieceTokeniser(corpus.model))
    training = SequenceConfig(2, 16, 1e-2, (0, 3, 8))
    fit_translator(model, corpus, training, observers=[log])
    kept = kept_checkpoints(tmp_path, "dev")
    assert kept.steps.tolist() == [0, 3, 8]
    assert kept.performance("bleu").shape == (3,)
    found = log.best_saliency(_model(corpus))
    assert set(found) == {"dev", "dev bleu"}
    # Training leaves the weights of the best accuracy behind: those that Δ is taken from.
    np.testing.assert_allclose(found["dev"], saliency_of_pairs(model, dev), atol=1e-5)


def test_saliency_of_a_split_is_that_of_its_pairs(corpus):
    model, dev = _model(corpus), corpus.splits["dev"]
    found = saliency_of_pairs(model, dev)
    first = saliency(model, collate_pairs(dev, [0]))[0].detach().numpy().ravel()
    np.testing.assert_allclose(found[: len(first)], first, atol=1e-5)
