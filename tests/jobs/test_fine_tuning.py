"""Fine-tuning: it learns, a killed run ends alike, and what it leaves opens again everywhere."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
import torch
from typer.testing import CliRunner

import heedful
from heedful.cli import app
from heedful.corpora import Corpus, planted
from heedful.errors import InputError
from heedful.jobs.decider import load, read_by
from heedful.jobs.fine_tuning import fine_tune, objective_of
from heedful.jobs.remedy import remedy
from heedful.jobs.settings import Settings, settings_of
from heedful.models import Penalties, decide, read, uniform
from heedful.models.huggingface.starting import save_classifier, start_from
from heedful.models.huggingface.tiny import write_tiny_encoder
from heedful.runs import RunFolder
from heedful.training import FINE_TUNING, Moment, TrainConfig, evaluate, fit
from heedful.training.fine_tuning import loss
from tests.tiny_transformers import TEXTS, reader, tokenizer

SIZES = {"train": 240, "dev": 60, "test": 80}
QUICK = replace(FINE_TUNING, learning_rate=3e-3, epochs=3, batch_size=16)
SHORT = Settings(train=replace(QUICK, epochs=1))


class Killed(Exception):
    pass


@pytest.fixture(scope="module")
def corpus() -> Corpus:
    return planted(2, "short", seed=3, sizes=SIZES)


@pytest.fixture(scope="module")
def encoder(corpus: Corpus, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("models") / "tiny"
    words = sorted({word for document in corpus.splits["train"] for word in document.tokens})
    write_tiny_encoder(words, folder, polarity=corpus.lexicon)
    return folder


@pytest.mark.slow
def test_fine_tuning_learns_and_leaves_a_folder_that_transformers_opens(
    corpus: Corpus, encoder: Path, tmp_path: Path
) -> None:
    from transformers import AutoModelForSequenceClassification, AutoTokenizer

    start = start_from(encoder, corpus.classes).model
    before = evaluate(start, read_by(start, corpus).splits["test"])
    tuned = heedful.train(str(encoder), corpus, tmp_path / "run", settings=Settings(train=QUICK))
    encoded = read_by(tuned, corpus)
    after = evaluate(tuned, encoded.splits["test"])
    assert after.loss < before.loss
    assert after.accuracy > max(0.7, before.accuracy + 0.2)
    record = RunFolder.open(tmp_path / "run").record
    assert record["test"]["accuracy"] == after.accuracy
    assert record["configuration"]["recipe"] == "hf:tiny"
    folder = tmp_path / "run" / "model"
    assert not list(folder.glob("*.bin"))  # safetensors alone, no pickle
    model = AutoModelForSequenceClassification.from_pretrained(folder)
    cut = AutoTokenizer.from_pretrained(folder)
    assert tuple(model.config.id2label.values()) == corpus.classes
    texts = [document.text for document in corpus.splits["test"][:5]]
    ours = tuned(tuned.batch(texts)).logits
    theirs = model(**cut(texts, padding=True, return_tensors="pt")).logits
    assert torch.allclose(ours, theirs, atol=1e-5)
    again = load(tmp_path / "run")
    assert torch.equal(again(again.batch(texts)).logits, ours)
    assert heedful.train(
        str(encoder), corpus, tmp_path / "run", settings=Settings(train=QUICK)
    ).recipe.startswith("hf:")  # the finished run is given back


@pytest.mark.slow
@pytest.mark.usefixtures("sketched")
def test_a_tuned_run_is_audited_by_its_own_documents(
    corpus: Corpus, encoder: Path, tmp_path: Path
) -> None:
    fine_tune(encoder, corpus, tmp_path / "run", settings=SHORT)
    found = heedful.audit(
        tmp_path / "run", corpus, tmp_path / "run", audits=["input-erasure", "substitution"],
        methods=["random", "attention", "gradient"],
    )  # fmt: skip
    assert found.documents == SIZES["test"]
    assert {p.method for p in found.verdict.ranking.places} == {"random", "attention", "gradient"}


@pytest.mark.slow
def test_a_killed_tuning_ends_with_the_same_weights(
    corpus: Corpus, encoder: Path, tmp_path: Path
) -> None:
    config = replace(QUICK, epochs=2, evaluate_at=(3, 14), checkpoint_seconds=0.0)
    penalties = Penalties(tying=1.0)

    def fresh():
        return start_from(encoder, corpus.classes, seed=4).model

    whole = fresh()
    encoded = read_by(whole, corpus)
    expected = fit(whole, encoded, config, penalties, seed=7)
    assert whole.model.config.hidden_dropout_prob > 0

    def kill(moment: Moment) -> None:
        if moment.step == 14:
            raise Killed

    with pytest.raises(Killed):
        fit(fresh(), encoded, config, penalties, seed=7, observers=[kill], folder=tmp_path)
    resumed = fresh()
    assert fit(resumed, encoded, config, penalties, seed=7, folder=tmp_path) == expected
    pairs = zip(whole.state_dict().values(), resumed.state_dict().values(), strict=True)
    assert all(torch.equal(a, b) for a, b in pairs)


@pytest.mark.slow
def test_the_rate_rises_then_falls_to_nothing(corpus: Corpus, encoder: Path) -> None:
    model = start_from(encoder, corpus.classes).model
    config = replace(QUICK, epochs=2, batch_size=24, warm_up=0.25, evaluate_at=(1, 5, 10, 20))
    history = fit(model, read_by(model, corpus), config)
    rates = {
        entry["step"]: entry["learning_rate"] / config.learning_rate for entry in history.entries
    }
    # 20 steps; the warm-up ends at 5. A step's rate is that of its middle.
    assert rates[1] == pytest.approx(0.5 / 5)
    assert rates[5] == pytest.approx(4.5 / 5)
    assert rates[10] == pytest.approx(1 - 4.5 / 15)
    assert rates[20] == pytest.approx(0.5 / 15)
    assert TrainConfig().rate(0.7) == 1.0


@pytest.mark.parametrize("kind", ["bert", "roberta", "electra", "albert", "llama", "deberta-v2"])
def test_tying_is_the_mean_squared_distance_of_each_piece_to_its_start(kind: str) -> None:
    model = reader(kind)
    batch = model.batch(TEXTS)
    batch = replace(batch, labels=torch.tensor([0, 1, 2, 0]))
    with torch.no_grad():
        plain = loss(model, batch, Penalties())
        added = loss(model, batch, Penalties(tying=2.5)) - plain
        summed = loss(model, batch, Penalties(tying=2.5, tying_over="sum")) - plain
    total, count = 0.0, 0
    for text in TEXTS:  # one text at a time, with the library's own tokenizer
        is_causal = kind == "llama"
        inputs = tokenizer(is_causal=is_causal)(text, return_tensors="pt")
        if not model.subwords.has_types:
            inputs.pop("token_type_ids", None)
        states = model.model(**inputs, output_hidden_states=True).hidden_states
        inside = slice(None) if is_causal else slice(1, -1)
        for first, last in zip(states[0][0, inside], states[-1][0, inside], strict=True):
            total += sum((a - b) ** 2 for a, b in zip(first.tolist(), last.tolist(), strict=True))
            count += len(first)
    assert float(added) == pytest.approx(2.5 * total / count, rel=1e-5)
    assert float(summed) == pytest.approx(2.5 * total / count * states[0].shape[-1], rel=1e-5)


@pytest.mark.slow
def test_a_sweep_of_tying_begins_where_the_run_began(
    corpus: Corpus, encoder: Path, tmp_path: Path
) -> None:
    fine_tune(encoder, corpus, tmp_path / "run", settings=SHORT)
    found = remedy(tmp_path / "run", corpus, tmp_path / "tied", strengths=[0.5, 20.0])
    assert [one.strength for one in found.tried] == [0.5, 20.0]
    record = RunFolder.open(tmp_path / "tied").record
    assert record["configuration"]["recipe"] == f"hf:tiny+tying:{found.chosen.strength:g}"
    model = load(tmp_path / "tied")
    batch = model.batch(["good food"])
    reading = read(model, batch)
    assert decide(model, reading, uniform(reading)).shape == (1, 1, 2)


@pytest.mark.slow
def test_a_summed_distance_is_kept_in_the_run(
    corpus: Corpus, encoder: Path, tmp_path: Path
) -> None:
    summed = replace(SHORT, penalties={"tying_over": "sum"})
    tied = Penalties(tying=0.01)
    fine_tune(encoder, corpus, tmp_path / "run", settings=summed, penalties=tied)
    assert RunFolder.open(tmp_path / "run").configuration["penalties"] == {"tying_over": "sum"}
    with pytest.raises(InputError, match="tying_over"):
        fine_tune(encoder, corpus, tmp_path / "run", settings=SHORT, penalties=tied)


def test_heads_are_kept_for_their_own_labels_and_made_anew_for_others(
    corpus: Corpus, encoder: Path, tmp_path: Path
) -> None:
    model = start_from(encoder, ("negative", "positive"), seed=1).model
    save_classifier(model, tmp_path / "made")
    kept = start_from(tmp_path / "made", ("POSITIVE", "NEGATIVE"), seed=2)
    assert (kept.head, kept.model.classes) == ("kept", ("negative", "positive"))
    assert torch.equal(kept.model.model.classifier.weight, model.model.classifier.weight)
    for labels in (("spam", "ham"), ("a", "b", "c")):
        first, second = (start_from(tmp_path / "made", labels, seed=seed) for seed in (1, 2))
        assert first.head == "fresh"
        assert first.model.classes == labels
        assert not torch.equal(
            first.model.model.classifier.weight, second.model.model.classifier.weight
        )
        encoders = (one.model.model.base_model.state_dict() for one in (first, second))
        assert all(torch.equal(*pair) for pair in zip(*(e.values() for e in encoders), strict=True))


def test_weight_decay_spares_biases_and_norms(corpus: Corpus, encoder: Path) -> None:
    from heedful.training.optimisers import optimiser_of

    model = start_from(encoder, corpus.classes).model
    decayed, free = optimiser_of(model, FINE_TUNING).param_groups
    assert {weight.dim() for weight in decayed["params"]} == {2}
    assert {weight.dim() for weight in free["params"]} == {1}
    assert (decayed["weight_decay"], free["weight_decay"]) == (0.01, 0.0)


@pytest.mark.parametrize(
    ("call", "said"),
    [
        (lambda e, c: fine_tune(e, c, penalties=Penalties(masked_words=1.0)), "and no other"),
        (lambda e, c: fine_tune(e, c, settings=settings_of({"model": {"width": 8}})), "own sizes"),
        (lambda e, c: fine_tune(e, c, settings=settings_of({"words": {"min_count": 5}})), "pieces"),
        (lambda e, c: heedful.train(str(e), c, vectors="glove.txt"), "own models"),
        (lambda e, c: heedful.train("none+dot", c, penalties=Penalties(tying=1.0)), "says its"),
        (lambda e, c: fine_tune("nowhere/at/all", c), "cannot be opened"),
        (lambda e, c: objective_of("tying"), "tying:STRENGTH"),
        (lambda e, c: objective_of("mlm:1"), "tying:STRENGTH"),
        (lambda e, c: TrainConfig(warm_up=1.5), "warm_up"),
        (lambda e, c: TrainConfig(precision="int8"), "precision"),
    ],
)  # fmt: skip
def test_what_cannot_be_is_said_in_a_sentence(
    call, said: str, encoder: Path, corpus: Corpus
) -> None:
    with pytest.raises(InputError, match=said):
        call(encoder, corpus)


def test_an_encoder_whose_weights_are_missing_is_refused(encoder: Path, tmp_path: Path) -> None:
    import shutil

    from safetensors.torch import load_file, save_file

    broken = tmp_path / "broken"
    shutil.copytree(encoder, broken)
    weights = load_file(broken / "model.safetensors")
    some = {name: value for name, value in weights.items() if "layer.1." not in name}
    save_file(some, broken / "model.safetensors", {"format": "pt"})
    with pytest.raises(InputError, match="lacks weights"):
        start_from(broken, ("no", "yes"))


def test_later_settings_do_not_change_what_older_results_are_known_by() -> None:
    later = {"warm_up", "linear_decay", "precision", "halve_after", "length_seed"}
    assert not later & set(TrainConfig().described())
    assert FINE_TUNING.described()["warm_up"] == 0.1
    assert set(TrainConfig().described()) | later == set(TrainConfig.__dataclass_fields__)


@pytest.mark.slow
@pytest.mark.usefixtures("sketched")
def test_pairs_of_a_file_are_trained_on_and_its_test_rows_audited(
    tmp_path: Path, encoder: Path
) -> None:
    parts = ["train"] * 12 + ["dev"] * 4 + ["test"] * 4
    rows = [f"the food,good {n},{'yes' if n % 2 else 'no'},{p}" for n, p in enumerate(parts)]
    data, run = tmp_path / "pairs.csv", tmp_path / "run"
    data.write_text("\n".join(["left,right,same,split", *rows]))
    named = ["--data", str(data), "--text", "left", "--text2", "right", "--label", "same"]
    call = CliRunner().invoke
    train = ["train", f"hf:{encoder}", *named, "--quick", "--out", str(run), "--device", "cpu"]
    assert "splits: 12 / 4 / 4" in call(app, train).stderr
    seen = tmp_path / "seen"
    audit = ["audit", str(run / "model"), *named, "--out", str(seen), "--device", "cpu"]
    assert "documents: 4 (the test rows of 20)" in call(app, audit).stderr
    assert "a word owns every piece that touches it" in (seen / "report.html").read_text()
    refused = call(app, ["train", "bilstm+additive", *named])
    assert isinstance(refused.exception, InputError)
    assert "reads one text" in str(refused.exception)
