"""Watching a training, and its picture."""

import json
from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

from heedful.cli import app
from heedful.corpora import encode, planted
from heedful.corpora.pairs import END, START, EncodedPairs, collate_pairs
from heedful.corpora.pieces import encode_parallel
from heedful.corpora.planted_pairs import planted_pairs
from heedful.dynamics.agreement import agrees
from heedful.dynamics.probes import probed
from heedful.dynamics.watch import PairWatch, Watch, pair_sides
from heedful.errors import InputError
from heedful.models import build, parse
from heedful.models.likelihoods import attended
from heedful.models.translator import TranslatorConfig, build_translator
from heedful.report.watch_charts import draw_watched, halfway, told
from heedful.runs.watched import FILE, read_watched
from heedful.training import TrainConfig, fit
from heedful.training.loop import Moment


@pytest.fixture(scope="module")
def corpus():
    return encode(planted(2, "short", sizes={"train": 160, "dev": 40, "test": 20}))


def _model(corpus, recipe="none+additive"):
    config = parse(recipe, embedding_dim=16, width=16).model
    return build(config, corpus.vocabulary, corpus.classes, 0)


def test_an_entry_is_kept_for_every_evaluation_and_survives_a_resumed_run(corpus, tmp_path):
    model, watch = _model(corpus), Watch(corpus, tmp_path)
    watch.log(0, 0.0, model, "cpu")
    fit(model, corpus, TrainConfig(epochs=2, learning_rate=1e-2), observers=[watch])
    assert [entry["step"] for entry in read_watched(tmp_path / FILE)] == [0, 5, 10]
    again = Watch(corpus, tmp_path)
    again.log(5, 1.0, model, "cpu")  # what came after the checkpoint is done again
    assert [entry["step"] for entry in read_watched(tmp_path / FILE)] == [0, 5]


def test_the_agreement_of_attention_and_probe_is_that_of_the_rows(corpus):
    model = _model(corpus, "bilstm+additive")
    found = Watch(corpus).agreements(model, "cpu")
    rows = probed(model, corpus.splits["dev"])
    wanted = agrees(rows.attention[0], rows.probe[0], rows.lengths).mean()
    assert found["attention ~ probe"] == pytest.approx(wanted)
    assert 0 < found["chance"] < 0.3
    assert found["entropy of attention"] == pytest.approx(1.0, abs=0.05)


def test_a_probe_of_single_words_comes_to_agree_with_the_bag_of_words(corpus):
    model, watch = _model(corpus), Watch(corpus)
    watch.log(0, 0.0, model, "cpu")
    fit(model, corpus, TrainConfig(epochs=12, learning_rate=2e-2, patience=0), observers=[watch])
    first, last = watch.entries[0], watch.entries[-1]
    assert last["probe ~ bag of words"] > first["probe ~ bag of words"] + 0.2


def test_sentences_of_a_hierarchical_model_say_what_their_words_say(corpus):
    found = Watch(corpus).agreements(_model(corpus, "han:none+additive"), "cpu")
    assert set(found) == {
        "probe ~ bag of words", "attention ~ probe", "attention ~ bag of words", "chance",
        "entropy of attention",
    }  # fmt: skip
    assert all(np.isfinite(value) for value in found.values())


@pytest.mark.slow
@pytest.mark.usefixtures("sketched")
def test_the_command_watches_and_the_page_shows_it(tmp_path):
    run = str(tmp_path / "run")
    runner = CliRunner()
    done = runner.invoke(
        app, ["train", "none+additive", "--corpus", "planted:2:short", "--out", run, "--quick",
              "--watch"],
    )  # fmt: skip
    assert done.exit_code == 0, done.output
    done = runner.invoke(app, ["audit", run, "--documents", "40"])
    assert done.exit_code == 0, done.output
    page = (tmp_path / "run" / "report.html").read_text("utf-8")
    assert "What words tell and where attention lies, over training" in page
    assert (tmp_path / "run" / "figures" / "watched.svg").is_file()


def test_the_picture_tells_which_came_first(tmp_path):
    rows = [
        {"step": step, "epoch": step / 10, "chance": 0.05, "entropy of attention": 1.0,
         "probe ~ bag of words": words, "attention ~ probe": attention,
         "attention ~ bag of words": 0.1}
        for step, words, attention in ((0, 0.1, 0.1), (10, 0.6, 0.1), (20, 0.7, 0.6))
    ]  # fmt: skip
    (tmp_path / FILE).write_text("".join(json.dumps(row) + "\n" for row in rows))
    assert draw_watched(tmp_path / FILE).startswith("<svg")
    assert "half way up at step 20, after the first (step 10)" in told(rows)
    assert draw_watched(tmp_path / "none.jsonl") == ""
    (tmp_path / FILE).write_text("{")
    with pytest.raises(InputError, match="damaged"):
        draw_watched(tmp_path / FILE)


def _curve(words, attention):
    return [
        {"step": 1_000 * n, "probe ~ bag of words": one, "attention ~ probe": two}
        for n, (one, two) in enumerate(zip(words, attention, strict=True))
    ]


def test_half_way_up_is_where_a_curve_stays_and_a_spike_is_not():
    rows = _curve((0.1, 0.5, 0.6, 0.7), (0.1, 0.9, 0.1, 0.5))
    assert halfway(rows, "attention ~ probe") == 3_000
    assert "half way up at step 3,000, after the first (step 1,000)" in told(rows)


def test_a_curve_that_does_not_rise_is_told_so():
    flat = (0.05, 0.05, 0.05)
    assert told(_curve((0.1, 0.4, 0.5), flat)).endswith(
        "the first is half way up at step 1,000, the second did not rise."
    )
    assert told(_curve(flat, (0.1, 0.1, 0.5))).endswith(
        "the second is half way up at step 2,000, the first did not rise."
    )
    assert told(_curve(flat, (0.1, 0.9, 0.12))).endswith("neither rose.")
    assert told(_curve((0.5,), (0.5,))).endswith("neither rose.")


@pytest.fixture(scope="module")
def pairs() -> EncodedPairs:
    return encode_parallel(planted_pairs({"train": 40, "dev": 9}), 150)


def test_agreement_is_that_of_every_word_counted_by_hand(pairs: EncodedPairs) -> None:
    model = build_translator(TranslatorConfig(150, 8, 8, 1, dropout=0.0))
    watch = PairWatch(pairs)
    found = watch.agreements(model, "cpu")
    agreed, by_chance, entropy = [], [], []
    for row in range(len(watch.split)):
        batch = collate_pairs(watch.split, [row])
        seen = attended(model, batch)
        for weights, said in zip(seen.attention[0].numpy(), seen.probe[0].numpy(), strict=True):
            units = len(weights)
            top = np.argsort(-said)[: -(-units // 20)]
            agreed.append(weights.argmax() in top)
            by_chance.append(len(top) / units)
            entropy.append(-(weights * np.log(weights)).sum() / np.log(units))
    assert found["attention ~ probe"] == pytest.approx(np.mean(agreed))
    assert found["chance"] == pytest.approx(np.mean(by_chance))
    assert found["entropy of attention"] == pytest.approx(np.mean(entropy), abs=1e-5)


def test_uniform_attention_agrees_with_everything_by_chance(pairs: EncodedPairs) -> None:
    model = build_translator(TranslatorConfig(150, 8, 8, 1, dropout=0.0, attention="uniform"))
    found = PairWatch(pairs).agreements(model, "cpu")
    for name in ("attention ~ probe", "attention ~ counts", "attention ~ IBM 1"):
        assert found[name] == pytest.approx(found["chance"])
    assert found["entropy of attention"] == pytest.approx(1)


@pytest.mark.slow
def test_entries_are_kept_and_later_ones_of_a_killed_run_dropped(
    pairs: EncodedPairs, tmp_path: Path
) -> None:
    model = build_translator(TranslatorConfig(150, 8, 8, 1, dropout=0.0))
    watch = PairWatch(pairs, tmp_path)
    for step in (0, 5, 9):
        watch(Moment(step, 0.0, model, pairs, "cpu"))
    again = PairWatch(pairs, tmp_path)
    assert again.entries == watch.entries
    again(Moment(5, 0.0, model, pairs, "cpu"))
    assert [entry["step"] for entry in again.entries] == [0, 5]
    assert again.entries == watch.entries[:2]
    assert 0 <= again.entries[0]["greedy bleu"] <= 100


def test_units_are_between_start_and_end_and_words_have_an_end(pairs: EncodedPairs) -> None:
    split = pairs.splits["dev"]
    source, target = pair_sides(split, 150)
    assert source.ids[0] == START
    assert source.ids[source.starts[1] - 1] == END
    assert target.ids[target.starts[1] - 1] == END
    assert source.lengths.tolist() == (split.source.lengths + 2).tolist()
    assert target.lengths.tolist() == (split.target.lengths + 1).tolist()
