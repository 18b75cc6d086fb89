"""Training a translator: it learns, and a killed run ends with the same numbers."""

from pathlib import Path

import pytest
import torch

from heedful.corpora.pairs import EncodedPairs, load_pairs, save_pairs
from heedful.corpora.pieces import encode_parallel
from heedful.corpora.planted_pairs import planted_pairs
from heedful.errors import InputError
from heedful.models.translator import Translator, TranslatorConfig, build_translator
from heedful.training import Moment
from heedful.training.sequences import (
    GRIDS,
    SequenceConfig,
    evaluate_translator,
    fit_translator,
)

CONFIG = SequenceConfig(epochs=2, batch_size=8, learning_rate=5e-3, grid=(0, 3, 10, 16))


@pytest.fixture(scope="module")
def corpus() -> EncodedPairs:
    """Sixty-four pairs: eight steps an epoch."""
    return encode_parallel(planted_pairs({"train": 64, "dev": 12}), 150)


def fresh(corpus: EncodedPairs) -> Translator:
    return build_translator(TranslatorConfig(len(corpus.pieces), 12, 10))


class Killed(Exception):
    """Stands for a kill."""


@pytest.mark.slow
def test_it_learns_and_is_watched_at_the_grid(corpus: EncodedPairs, tmp_path: Path) -> None:
    seen: list[int] = []
    model = fresh(corpus)
    before = evaluate_translator(model, corpus.splits["dev"])
    config = SequenceConfig(epochs=6, batch_size=8, learning_rate=1e-2, grid=(0, 3, 20, 48, 500))
    history = fit_translator(
        model, corpus, config, folder=tmp_path, observers=[lambda moment: seen.append(moment.step)]
    )
    assert seen == [0, 3, 20, 48]  # before any update, after the last, none beyond
    assert history.entries[0]["dev_accuracy"] == pytest.approx(before.accuracy)
    after = evaluate_translator(model, corpus.splits["dev"])
    assert after.accuracy == pytest.approx(history.best)
    assert after.accuracy > before.accuracy + 0.1
    assert len((tmp_path / "metrics.jsonl").read_text().splitlines()) == 4


@pytest.mark.slow
@pytest.mark.parametrize("stop", [3, 10, 16])
def test_a_killed_run_ends_with_the_same_weights(
    corpus: EncodedPairs, tmp_path: Path, stop: int
) -> None:
    whole = fresh(corpus)
    expected = fit_translator(whole, corpus, CONFIG, seed=5)

    def killing(moment: Moment) -> None:
        if moment.step == stop:
            raise Killed

    often = SequenceConfig(
        CONFIG.epochs, CONFIG.batch_size, CONFIG.learning_rate, CONFIG.grid, checkpoint_seconds=0.0
    )
    with pytest.raises(Killed):
        fit_translator(fresh(corpus), corpus, often, seed=5, folder=tmp_path, observers=[killing])
    resumed = fresh(corpus)
    found = fit_translator(resumed, corpus, often, seed=5, folder=tmp_path)
    for one, two in zip(whole.parameters(), resumed.parameters(), strict=True):
        assert torch.equal(one, two)
    assert found.entries == expected.entries


@pytest.mark.slow
def test_another_run_s_checkpoint_is_refused(corpus: EncodedPairs, tmp_path: Path) -> None:
    def killing(moment: Moment) -> None:
        if moment.step == 10:
            raise Killed

    often = SequenceConfig(2, 8, grid=(0, 10), checkpoint_seconds=0.0)
    with pytest.raises(Killed):
        fit_translator(fresh(corpus), corpus, often, seed=1, folder=tmp_path, observers=[killing])
    with pytest.raises(InputError, match="other settings"):
        fit_translator(fresh(corpus), corpus, often, seed=2, folder=tmp_path)


def test_the_published_grids_have_their_checkpoints() -> None:
    assert len(GRIDS["multi30k"]) == 11 + 5 + 4
    assert GRIDS["multi30k"][-1] == 36_000 < SequenceConfig().steps(29_000)
    assert GRIDS["iwslt14"][-1] == 300_000
    assert GRIDS["it-pt"][-1] == 52_000
    for grid in GRIDS.values():
        assert list(grid) == sorted(set(grid))


def test_a_prepared_corpus_comes_back(corpus: EncodedPairs, tmp_path: Path) -> None:
    save_pairs(corpus, tmp_path)
    back = load_pairs(tmp_path)
    assert back.fingerprint == corpus.fingerprint
    assert back.pieces == corpus.pieces
    assert back.splits["dev"].texts == corpus.splits["dev"].texts
    assert back.model == corpus.model


def test_bad_input_is_one_sentence(corpus: EncodedPairs) -> None:
    with pytest.raises(InputError, match="rising steps"):
        SequenceConfig(grid=(5, 3))
    with pytest.raises(InputError, match="pieces; build it"):
        fit_translator(build_translator(TranslatorConfig(9, 4, 4)), corpus, CONFIG)
    without = EncodedPairs("none", {"train": corpus.splits["train"]}, corpus.pieces, corpus.model)
    with pytest.raises(InputError, match="needs dev pairs"):
        fit_translator(fresh(corpus), without, CONFIG)
