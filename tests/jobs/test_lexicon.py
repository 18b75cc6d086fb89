"""`heedful lexicon`: ratings of words beside what a trained model attends to."""

import json
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from typer.testing import CliRunner

from heedful.cli import app
from heedful.corpora import Corpus, planted
from heedful.corpora.texts import document_of
from heedful.errors import InputError
from heedful.jobs.audit import audit
from heedful.jobs.decider import deciding, load, read_by
from heedful.jobs.lexicon import kept_by_specials, rate, token_table
from heedful.jobs.settings import settings_of
from heedful.jobs.train import train
from heedful.statistics.estimates import per_cent
from tests.schemas import conforms

SIZES = {"train": 120, "dev": 30, "test": 120}
SMALL = {"embedding_dim": 12, "layers": 2, "heads": 3, "head_dim": 4, "feed_forward": 8}


@pytest.fixture(scope="module")
def corpus() -> Corpus:
    return planted(2, "short", sizes=SIZES)


@pytest.fixture(scope="module")
def flat(corpus: Corpus, tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("runs") / "flat"
    train("none+additive", corpus, out, settings=settings_of({"train": {"epochs": 2}}))
    return out


@pytest.fixture(scope="module")
def layered(corpus: Corpus, tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("runs") / "layered"
    settings = settings_of({"model": SMALL, "train": {"epochs": 1}})
    train("transformer", corpus, out, settings=settings)
    return out


@pytest.mark.slow
def test_a_flat_model_is_rated_by_its_attention_and_the_page_says_so(
    flat: Path, corpus: Corpus
) -> None:
    found = rate(flat, corpus, device="cpu")
    assert set(conforms("lexicon", found)["findings"]) == {"lexicon"}
    finding = found.findings["lexicon"]
    assert finding.answer.split(":")[0] in ("Yes", "Partly", "No")
    assert finding.get("b2", "attention") is not None
    assert finding.get("b2", "untrained model") is not None
    assert "attention" in finding.answer
    stored = pd.read_parquet(flat / "findings" / "lexicon.parquet")
    assert {"word", "count", "rating", "how", "softmax", "ratio", "gradient"} <= set(stored)
    assert stored["rating"].between(-3, 3).all()  # the corpus's own lexicon
    assert "Do words that people feel strongly about" in found.report.read_text()


@pytest.mark.slow
def test_a_layered_model_is_traced_and_its_heads_are_told_apart(
    layered: Path, corpus: Corpus
) -> None:
    found = rate(layered, corpus, device="cpu")
    assert set(found.findings) == {"lexicon", "heads"}
    heads = found.findings["heads"]
    assert heads.get("share on words rated high", "chance") is not None
    assert heads.get("share on words rated low", "head 2") is not None
    assert heads.get("share on words rated low", "head 3") is None  # three heads, from 0
    assert (layered / "figures" / "heads.svg").is_file()
    model = deciding(load(layered))
    tokens = token_table(model, read_by(model, corpus).splits["test"], "trace", "cpu")
    columns = [f"head_{h}" for h in range(3)]
    np.testing.assert_allclose(tokens["importance"], tokens[columns].sum(axis=1), atol=1e-6)
    np.testing.assert_allclose(tokens.groupby("instance")[columns].sum(), 1, atol=1e-5)
    np.testing.assert_allclose(
        tokens.groupby("instance").size(), tokens.groupby("instance")["length"].first()
    )


@pytest.mark.slow
def test_a_file_of_two_columns_does_by_the_command(flat: Path, tmp_path: Path) -> None:
    file = tmp_path / "mine.tsv"
    words = ["good", "bad", "dull", "great", "awful", "excellent", "poor", "nice"]
    file.write_text("word\tfeeling\n" + "".join(f"{w}\t{i % 5}\n" for i, w in enumerate(words)))
    given = ["lexicon", str(flat), "--lexicon", str(file), "--corpus", "planted:2:short",
             "--out", str(tmp_path / "out"), "--json"]  # fmt: skip
    result = CliRunner().invoke(app, given)
    assert isinstance(result.exception, InputError)
    assert "rates 8 of the words" in str(result.exception)
    assert "at least 20 are needed" in str(result.exception)
    given[3] = "planted.csv"
    with pytest.raises(InputError, match=r"planted.csv cannot be read"):
        CliRunner().invoke(app, given, catch_exceptions=False)


def test_other_documents_make_a_run_of_their_own(flat: Path, tmp_path: Path) -> None:
    other = planted(2, "short", seed=5, sizes={"test": 150})
    lexicon = dict(planted(2, sizes={"train": 1}).lexicon or {})
    found = rate(flat, other, lexicon, tmp_path / "other", method="input-gradient", device="cpu")
    assert found.folder == tmp_path / "other"
    assert json.loads((found.folder / "run.json").read_text())["configuration"]["kind"] == "audit"
    assert found.findings["lexicon"].get("b2", "input-gradient") is not None
    with pytest.raises(InputError, match="without sign"):
        rate(flat, other, lexicon, tmp_path / "third", method="gradient", device="cpu")


@pytest.mark.slow
def test_a_pretrained_model_is_traced_over_words_not_pieces(tmp_path: Path) -> None:
    from tests.tiny_transformers import reader

    model = reader("bert")
    words = ["good", "bad", "food", "service", "unbelievable", "unbelievably", "slow", "not"]
    words += ["staff", "friend", "one", "two", "three", "four", "five", "six", "seven", "eight"]
    words += ["very", "friends", "the", "was"]
    rng = np.random.default_rng(0)
    texts = [" ".join(rng.choice(words, 6)) for _ in range(60)]
    documents = [document_of(f"d{i}", text, i % 3) for i, text in enumerate(texts)]
    corpus = Corpus("toy", tuple(model.classes), {"test": documents})
    lexicon = {word: float(1 + 8 * i / len(words)) for i, word in enumerate(words)}
    found = rate(model, corpus, lexicon, tmp_path / "out", device="cpu")
    assert set(found.words["word"]) == set(words)
    assert found.findings["lexicon"].get("b2", "untrained model") is None
    assert "untrained" not in found.findings["lexicon"].answer
    tokens = token_table(model, read_by(model, corpus).splits["test"], "trace", "cpu")
    assert tokens["length"].eq(6).all()  # special tokens are no words
    np.testing.assert_allclose(tokens.groupby("instance")["head_1"].sum(), 1)
    share = kept_by_specials(tokens)
    assert 0 < share < 1
    held = tokens.groupby("instance")["held"].sum()
    assert share == pytest.approx(1 - held.mean())
    assert found.findings["lexicon"].get("b2", "special tokens counted") is not None
    assert any(
        f"hold {per_cent(share)} of the traced" in note for note in found.findings["lexicon"].notes
    )
    with pytest.raises(InputError, match="needs a folder for its page"):
        rate(model, corpus, lexicon, device="cpu")


@pytest.mark.slow
@pytest.mark.usefixtures("sketched")
def test_a_later_audit_keeps_what_the_lexicon_told(flat: Path, corpus: Corpus) -> None:
    rate(flat, corpus, corpus.lexicon, device="cpu")
    before = (flat / "findings" / "lexicon.json").read_text()
    (flat / "findings" / "mine.json").write_text("{}")
    (flat / "findings" / "deletion.json").write_text(before)  # an audit of an earlier heedful
    audit(flat, corpus, flat, documents=10, device="cpu")
    assert (flat / "findings" / "lexicon.json").read_text() == before
    assert (flat / "findings" / "mine.json").read_text() == "{}"
    assert not (flat / "findings" / "deletion.json").exists()
    assert "Do words that people feel strongly about" in (flat / "report.html").read_text()


def test_sentences_have_no_rating(corpus: Corpus, tmp_path: Path) -> None:
    out = tmp_path / "run"
    train("han:none+additive", corpus, out, settings=settings_of({"train": {"epochs": 1}}))
    with pytest.raises(InputError, match="attends to sentences"):
        rate(out, corpus, device="cpu")
