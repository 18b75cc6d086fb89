"""Models of transformers from a folder: what is opened, and what is refused in one sentence."""

from __future__ import annotations

import json
import pickle
import re
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import load_file, save_file
from transformers import AutoConfig, AutoModel, AutoModelForSequenceClassification
from typer.testing import CliRunner

from heedful.cli import app
from heedful.corpora import Corpus, document_of, match_labels, read_texts
from heedful.errors import InputError, UnsupportedModel
from heedful.jobs.decider import load, read_by
from heedful.models import read
from heedful.models.huggingface import PretrainedClassifier, is_transformer, open_classifier
from heedful.models.huggingface.opening import limit_of
from heedful.models.huggingface.starting import start_from
from tests.tiny_transformers import CONFIGS, LIMIT, TEXTS, save, tokenizer, transformer


def saved(folder: Path, **changes: Any) -> Path:
    """A tiny BERT with its tokenizer in a folder, its configuration changed afterwards."""
    model = transformer("bert").float()
    model.config.id2label = {0: "NEGATIVE", 1: "NEUTRAL", 2: "POSITIVE"}
    model.save_pretrained(folder)
    tokenizer().save_pretrained(folder)
    changed(folder, **changes)
    return folder


def changed(folder: Path, **changes: Any) -> None:
    config = json.loads((folder / "config.json").read_text())
    (folder / "config.json").write_text(json.dumps(config | changes))


def test_a_folder_is_opened_and_read(tmp_path: Path) -> None:
    folder = saved(tmp_path / "model")
    assert is_transformer(folder)
    assert is_transformer("hf:anything")
    assert not is_transformer(tmp_path)
    model = load(folder, site="layer:1")
    assert isinstance(model, PretrainedClassifier)
    assert model.classes == ("NEGATIVE", "NEUTRAL", "POSITIVE")
    assert model.max_pieces == LIMIT
    reading = read(model, model.batch(TEXTS))
    with torch.no_grad():
        untouched = model(reading.batch).logits
    assert torch.allclose(reading.logits, untouched.double(), atol=1e-4)


def test_a_model_without_a_head_is_refused(tmp_path: Path) -> None:
    config = AutoConfig.for_model("bert", **CONFIGS["bert"]())
    AutoModel.from_config(config).save_pretrained(tmp_path)
    tokenizer().save_pretrained(tmp_path)
    with pytest.raises(InputError, match=r"no trained classification head: classifier\.bias"):
        open_classifier(tmp_path)


@pytest.mark.parametrize(
    ("changes", "sentence"),
    [
        ({"problem_type": "multi_label_classification"}, "several labels at once"),
        ({"problem_type": "regression"}, "predicts a number"),
    ],
)
def test_heads_that_do_not_decide_are_refused(
    tmp_path: Path, changes: dict[str, Any], sentence: str
) -> None:
    with pytest.raises(UnsupportedModel, match=sentence):
        open_classifier(saved(tmp_path, **changes))


def test_a_tokenizer_that_does_not_match_is_refused(tmp_path: Path) -> None:
    config = AutoConfig.for_model("bert", **(CONFIGS["bert"]() | {"vocab_size": 10}))
    AutoModelForSequenceClassification.from_config(config).save_pretrained(tmp_path)
    tokenizer().save_pretrained(tmp_path)
    with pytest.raises(InputError, match="vectors for 10 pieces, but its tokenizer knows ids up"):
        open_classifier(tmp_path)


@pytest.mark.parametrize(
    ("file", "content", "sentence"),
    [
        ("tokenizer.json", None, "its tokenizer knows only 5: its files are missing"),
        ("model.safetensors", b"abc", "cannot be opened as a text classifier: .*header"),
        ("model.safetensors", None, "no file named model.safetensors"),
        ("config.json", b"{not json", "is not a valid JSON file"),
    ],
)
def test_files_that_are_missing_or_damaged_are_one_sentence(
    tmp_path: Path, file: str, content: bytes | None, sentence: str
) -> None:
    folder = saved(tmp_path / "model")
    if content is None:
        (folder / file).unlink()
        if file == "tokenizer.json":  # what it would be rebuilt from
            for other in folder.glob("*token*"):
                other.unlink()
    else:
        (folder / file).write_bytes(content)
    assert is_transformer(folder)
    with pytest.raises(InputError, match=sentence) as error:
        open_classifier(folder)
    assert "\n" not in str(error.value)


@pytest.mark.slow
def test_code_that_comes_with_a_model_does_not_run(tmp_path: Path) -> None:
    folder = saved(tmp_path / "model")
    ran = tmp_path / "ran"
    (folder / "own.py").write_text(f"open({str(ran)!r}, 'w').close()\n")
    named = {"AutoConfig": "own.C", "AutoModelForSequenceClassification": "own.M"}
    changed(folder, model_type="mine", auto_map=named)
    with pytest.raises(InputError, match="--trust-remote-code"):
        open_classifier(folder)
    assert not ran.exists()
    asked = ["train", str(folder), "--out", str(tmp_path / "run"), "--quick"]
    told = CliRunner().invoke(app, asked)
    assert told.exit_code
    assert "--trust-remote-code" in str(told.exception)
    assert not ran.exists()
    CliRunner().invoke(app, [*asked, "--trust-remote-code"])
    assert ran.exists()  # which is all that this code does


class _Bomb:
    def __reduce__(self) -> tuple[Any, ...]:
        return (Path.touch, (Path("exploded"),))


@pytest.mark.parametrize("is_harmless", [True, False])
def test_a_pickle_is_refused_with_the_way_to_convert_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, is_harmless: bool
) -> None:
    monkeypatch.chdir(tmp_path)
    folder = saved(tmp_path / "model")
    weights = load_file(folder / "model.safetensors")
    (folder / "model.safetensors").unlink()
    with (folder / "pytorch_model.bin").open("wb") as file:
        torch.save(weights, file) if is_harmless else pickle.dump(_Bomb(), file)
    with pytest.raises(InputError, match=r"pytorch_model\.bin and not as safetensors") as refused:
        open_classifier(folder)
    assert not (tmp_path / "exploded").exists()
    if is_harmless:
        told = re.search(r'python -c "(.*)"', str(refused.value))
        assert told is not None
        exec(told[1])  # the way out that it names is one
        assert open_classifier(folder).classes[0] == "NEGATIVE"


def test_a_missing_model_is_one_sentence(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="does not exist"):
        load(tmp_path / "nowhere")
    saved(tmp_path / "model")
    (tmp_path / "model" / "model.safetensors").unlink()
    with pytest.raises(InputError, match="cannot be opened as a text classifier"):
        open_classifier(tmp_path / "model")


def test_longformer_is_refused_by_name(tmp_path: Path) -> None:
    with pytest.raises(UnsupportedModel, match="Longformer"):
        open_classifier(saved(tmp_path, model_type="longformer", attention_window=[4, 4]))


def test_limits_are_those_of_positions_and_tokenizer() -> None:
    assert limit_of(transformer("bert")) == LIMIT + 2
    assert limit_of(transformer("bert"), tokenizer()) == LIMIT
    assert limit_of(transformer("roberta")) == LIMIT + 2 - 1  # the table begins after the pad id
    assert limit_of(transformer("xlnet")) == 2_000


def test_labels_are_matched_or_refused_with_both_lists() -> None:
    names = ("NEGATIVE", "POSITIVE")
    assert match_labels(names, ("NEGATIVE",)).said == ""
    assert match_labels(names, ("Positive", "negative")).places == {"Positive": 1, "negative": 0}
    assert match_labels(names, ("0", "1")).places == {"0": 0, "1": 1}
    for strange in (("1", "2"), ("bad", "good"), ("NEGATIVE", "other"), ("1",)):
        with pytest.raises(InputError, match="it knows 'NEGATIVE', 'POSITIVE'"):
            match_labels(names, strange)


def test_a_corpus_is_read_by_the_models_own_pieces(tmp_path: Path) -> None:
    model = open_classifier(saved(tmp_path))
    long = document_of("a", "good " * 100, 1)
    corpus = Corpus("mine", ("positive", "negative"), {"test": [long, document_of("b", "", 0)]})
    encoded = read_by(model, corpus)
    assert encoded.splits["test"].labels.tolist() == [0, 2]
    assert encoded.splits["test"].lengths.tolist() == [LIMIT - 2, 1]
    assert encoded.notes == {
        "test: cut to what the model reads (beginning kept)": 1,
        "test: empty, read as one unknown word": 1,
    }


def test_evidence_follows_its_word_to_the_pieces(tmp_path: Path) -> None:
    from dataclasses import replace

    import numpy as np

    document = document_of("a", "very unbelievable food", 0)
    known = replace(document, evidence=np.array([False, True, False]))
    encoded = open_classifier(saved(tmp_path)).encode(Corpus("c", ("NEGATIVE",), {"test": [known]}))
    assert encoded.splits["test"].evidence is not None
    assert encoded.splits["test"].evidence.tolist() == [False, True, True, True, False]


def test_two_columns_make_pairs(tmp_path: Path) -> None:
    path = tmp_path / "pairs.csv"
    path.write_text("a,b,label\ngood food,bad staff,positive\nbad,,negative\n")
    found = read_texts(path, ("NEGATIVE", "POSITIVE"), "a", "label", second="b")
    first, other = found.corpus.splits["test"]
    assert (first.text[: first.second], first.text[first.second :]) == ("good food\n", "bad staff")
    assert (other.label, other.second) == (0, 4)
    assert "second text column: b" in found.said


@pytest.mark.slow
@pytest.mark.parametrize("site", ["pooled", "all"])
@pytest.mark.usefixtures("sketched")
def test_the_command_audits_a_folder(tmp_path: Path, site: str) -> None:
    folder = saved(tmp_path / "model")
    lines = [f"{text},the staff,{label}" for text in TEXTS[1:2] * 3 for label in (0, 1, 2)]
    (tmp_path / "data.csv").write_text("text,other,label\n" + "\n".join(lines * 2) + "\n")
    command = ["audit", str(folder), "--data", str(tmp_path / "data.csv"), "--site", site]
    command += ["--text", "text", "--text2", "other", "--out", str(tmp_path / "run"), "--json"]
    done = CliRunner().invoke(app, command)
    assert done.exit_code == 0, done.output
    assert (tmp_path / "run" / "report.html").is_file()
    assert "All tests took" in done.stderr
    shown = json.loads((tmp_path / "run" / "findings" / "instances.json").read_text())
    assert shown["instances"][0]["units"] == ["bad", "the", "staff"]
    assert not shown["linear"]


def test_code_of_its_own_is_asked_for_and_not_a_head(tmp_path: Path) -> None:
    """Its model_type is known to the library, which would open another class in silence."""
    folder = save(tmp_path, "bert", ("no", "yes"), is_own_code=True)
    for opened in (open_classifier, lambda place: start_from(place, ("no", "yes"))):
        with pytest.raises(InputError, match=r"code of its own.*trust_remote_code=True"):
            opened(folder)
    changed(folder, auto_map={"AutoModelForSequenceClassification": "own.BertForTokens"})
    with pytest.raises(InputError, match="code of its own"):
        open_classifier(folder)
    # Where the library has that very class, its own is the model's.
    named = {"AutoModelForSequenceClassification": "own.BertForSequenceClassification"}
    changed(folder, auto_map=named, architectures=["BertForSequenceClassification"])
    assert open_classifier(folder).classes == ("no", "yes")


def test_two_classes_of_one_name_and_a_billion_layers_are_refused(tmp_path: Path) -> None:
    folder = saved(tmp_path / "model", id2label={"0": "good", "1": "bad", "2": "good"})
    with pytest.raises(InputError, match="'good' names more than one class in id2label"):
        open_classifier(folder)
    for name in ("num_hidden_layers", "n_layers", "num_labels"):
        changed(folder, **{name: 10**9})
        with pytest.raises(InputError, match=f"asks for 1,000,000,000 {name} in its config"):
            open_classifier(folder)
        changed(folder, **{name: 2})


@pytest.mark.parametrize(
    "sizes",
    [{"max_position_embeddings": 10**13}, {"vocab_size": 10**12}, {"hidden_size": 10**16}],
)
def test_sizes_beyond_this_machine_are_refused_before_they_are_taken(
    tmp_path: Path, sizes: dict[str, int]
) -> None:
    folder = saved(tmp_path / "model", **sizes)
    with pytest.raises(InputError, match=r"needs .* GB of memory, and|cannot be made"):
        open_classifier(folder)


def test_weights_that_are_no_numbers_are_refused_by_name(tmp_path: Path) -> None:
    folder = saved(tmp_path / "model")
    weights = load_file(folder / "model.safetensors")
    weights["classifier.weight"][1, 2] = torch.inf
    save_file(weights, folder / "model.safetensors", {"format": "pt"})
    with pytest.raises(InputError, match=r"classifier\.weight holds values that are not finite"):
        open_classifier(folder)


@pytest.mark.parametrize(
    ("file", "name", "value"),
    [
        ("config.json", "attention_probs_dropout_prob", {}),
        ("config.json", "num_attention_heads", -1),
        ("config.json", "pad_token_id", -1),
        ("config.json", "id2label", []),
        ("config.json", "dtype", 10**30),
        ("config.json", "vocab_size", 0),
        ("tokenizer_config.json", "model_max_length", ""),
        ("tokenizer.json", "post_processor", {"type": "x"}),
    ],
)
def test_a_folder_with_settings_of_another_kind_is_one_sentence(
    tmp_path: Path, file: str, name: str, value: object
) -> None:
    folder = saved(tmp_path / "model")
    stored = json.loads((folder / file).read_text())
    (folder / file).write_text(json.dumps(stored | {name: value}))
    with pytest.raises(InputError) as refused:
        open_classifier(folder)
    assert "\n" not in str(refused.value)
