"""The two stages of a translator: agreements counted by hand, entries that survive a kill."""

from pathlib import Path

import numpy as np
import pytest

from heedful.corpora.pairs import END, START, EncodedPairs, collate_pairs
from heedful.corpora.pieces import encode_parallel
from heedful.corpora.planted_pairs import planted_pairs
from heedful.dynamics.pair_watch import PairWatch, pair_sides
from heedful.models.likelihoods import attended
from heedful.models.translator import TranslatorConfig, build_translator
from heedful.training.loop import Moment


@pytest.fixture(scope="module")
def corpus() -> EncodedPairs:
    return encode_parallel(planted_pairs({"train": 40, "dev": 9}), 150)


def test_agreement_is_that_of_every_word_counted_by_hand(corpus: EncodedPairs) -> None:
    model = build_translator(TranslatorConfig(150, 8, 8, 1, dropout=0.0))
    watch = PairWatch(corpus)
    found = watch.agreements(model, "cpu")
    agreed, by_chance, entropy = [], [], []
    for row in range(len(watch.split)):
        pairs = collate_pairs(watch.split, [row])
        seen = attended(model, pairs)
        for weights, told in zip(seen.attention[0].numpy(), seen.probe[0].numpy(), strict=True):
            units = len(weights)
            top = np.argsort(-told)[: -(-units // 20)]
            agreed.append(weights.argmax() in top)
            by_chance.append(len(top) / units)
            entropy.append(-(weights * np.log(weights)).sum() / np.log(units))
    assert found["attention ~ probe"] == pytest.approx(np.mean(agreed))
    assert found["chance"] == pytest.approx(np.mean(by_chance))
    assert found["entropy of attention"] == pytest.approx(np.mean(entropy), abs=1e-5)


def test_uniform_attention_agrees_with_everything_by_chance(corpus: EncodedPairs) -> None:
    model = build_translator(TranslatorConfig(150, 8, 8, 1, dropout=0.0, attention="uniform"))
    found = PairWatch(corpus).agreements(model, "cpu")
    for name in ("attention ~ probe", "attention ~ counts", "attention ~ IBM 1"):
        assert found[name] == pytest.approx(found["chance"])
    assert found["entropy of attention"] == pytest.approx(1)


@pytest.mark.slow
def test_entries_are_kept_and_later_ones_of_a_killed_run_dropped(
    corpus: EncodedPairs, tmp_path: Path
) -> None:
    model = build_translator(TranslatorConfig(150, 8, 8, 1, dropout=0.0))
    watch = PairWatch(corpus, tmp_path)
    for step in (0, 5, 9):
        watch(Moment(step, 0.0, model, corpus, "cpu"))
    again = PairWatch(corpus, tmp_path)
    assert again.entries == watch.entries
    again(Moment(5, 0.0, model, corpus, "cpu"))
    assert [entry["step"] for entry in again.entries] == [0, 5]
    assert again.entries == watch.entries[:2]
    assert 0 <= again.entries[0]["greedy bleu"] <= 100


def test_units_are_between_start_and_end_and_words_have_an_end(corpus: EncodedPairs) -> None:
    split = corpus.splits["dev"]
    source, target = pair_sides(split, 150)
    assert source.ids[0] == START
    assert source.ids[source.starts[1] - 1] == END
    assert target.ids[target.starts[1] - 1] == END
    assert source.lengths.tolist() == (split.source.lengths + 2).tolist()
    assert target.lengths.tolist() == (split.target.lengths + 1).tolist()
