"""A new user's walk: every command that is printed as advice is pasted, every number recomputed.

Five kinds of subject: a run of heedful's own, a BERT with its pooler, a mean-pooled encoder with
code of its own, a decoder, and any torch module. Advice is read off the terminal and off the page.
Verdicts are set from outside, so that all that can be advised is.
"""

from __future__ import annotations

import html
import re
import shlex
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
import torch
from typer.testing import CliRunner

import heedful
from heedful.audits import verdict as verdicts
from heedful.audits.finding import Finding
from heedful.audits.ranking import Ranking, rank
from heedful.audits.verdict import Verdict
from heedful.cli import app
from heedful.corpora import Corpus, read_file
from heedful.jobs import audit as audit_job
from heedful.models.huggingface import FastTokeniser, Pieces, classifier_of
from heedful.runs import read_json
from tests.docs.known_of_commands import check_said, known_of
from tests.docs.passes_counted import counting, keep
from tests.docs.rows_again import check_rows
from tests.docs.sentences import Run, check, page_sentences
from tests.models.huggingface.test_classifier import MeanPooled
from tests.models.huggingface.test_language_models import language_model
from tests.tiny_transformers import WORDS, enlarged, save, tokenizer

pytestmark = [pytest.mark.slow, pytest.mark.usefixtures("sketched")]
README = Path(__file__).parents[2] / "README.md"
ROWS = 64
CLASSES = ("neg", "pos")
PLACEHOLDER = re.compile(r"\b(RUN|FILE|MODEL|NAME|TEXT|FOLDER|OWN|CLASS)\b")
TINY = """
[model]
embedding_dim = 8
width = 8
[train]
epochs = 25
learning_rate = 0.02
patience = 25
"""


PLAIN = [word for word in WORDS if word.isalpha()]


def texts(count: int, seed: int) -> pd.DataFrame:
    """So many texts, of which one word says the class."""
    rng, rows = np.random.default_rng(seed), []
    for row in range(count):
        words = [*rng.choice(PLAIN, 6), ("bad", "good")[row % 2]]
        rows.append({"text": " ".join(rng.permutation(words)), "label": CLASSES[row % 2]})
    return pd.DataFrame(rows)


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """What a user has: texts with labels, ratings of words, three models."""
    folder = tmp_path_factory.mktemp("walk")
    reviews = texts(ROWS, seed=0)
    reviews.to_csv(folder / "reviews.csv", index=False)
    reviews[:30].to_csv(folder / "new-reviews.csv", index=False)
    ratings = pd.DataFrame({"word": PLAIN, "rating": np.linspace(1, 9, len(PLAIN))})
    ratings.to_csv(folder / "ratings.csv", index=False, header=False)
    (folder / "tiny.toml").write_text(TINY)
    save(folder / "bert", "bert", CLASSES)
    save(folder / "mean", "bert", CLASSES, is_own_code=True)
    save(folder / "decoder", "llama", CLASSES)
    return folder


@pytest.fixture(autouse=True)
def _here(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Few documents do here, and paths are as a user types them."""
    monkeypatch.chdir(place)
    monkeypatch.delenv("HEEDFUL_DATA", raising=False)
    monkeypatch.setenv("COLUMNS", "10000")  # a sentence is a line
    monkeypatch.setattr(verdicts, "FEWEST_DOCUMENTS", 5)


def pasted(command: str) -> str:
    """What a command prints, which must work; every number in its sentences is recomputed."""
    first, *words = shlex.split(command, comments=True)
    assert first == "heedful"
    with counting() as counted:
        done = CliRunner().invoke(app, words)
    assert done.exit_code == 0, f"{command}\n{done.output}\n{done.exception!r}"
    check_said([first, *words], done.output, counted)
    return done.output


def advised(said: str) -> list[str]:
    """The commands that a text for the terminal, or a page, tells its reader to run."""
    said = re.sub(r'<span class="option">([^<]*)</span>', r"\1", said)
    said = re.sub(r"</?code>", "`", html.unescape(said))
    found = re.findall(r"`(heedful [^`]+)`", said)
    found += re.findall(r"^(?:Next|Then): (heedful .+?)(?: \([^()]*\))?$", said, re.MULTILINE)
    return list(dict.fromkeys(found))


def judged(word: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Lets every audit come to that word, with an explanation that is better than attention."""

    def recommending(findings: dict[str, Finding], may_show: bool = False) -> Ranking | None:
        ranking = rank(findings, may_show)
        best = ranking and next(one for one in ranking.places if one.place == 1)
        return best and replace(ranking, recommendation=f"Show `{best.method}` instead.")  # type: ignore[type-var]

    def judge(findings: dict[str, Finding], documents: int, *rest: Any) -> Verdict:
        found = verdicts.judge(findings, documents, *rest)
        ranking = recommending(findings)
        told = verdicts._advice(word, ranking)  # type: ignore[arg-type]
        return replace(found, word=word, advice=told, ranking=ranking)  # type: ignore[arg-type]

    monkeypatch.setattr(audit_job, "judge", judge)


def walked(first: str, folder: Path, steps: int) -> Iterator[tuple[str, str]]:
    """Every command that is advised from the first one on, with what it prints."""
    seen, ahead = set[str](), [(first, 0)]
    while ahead:
        command, depth = ahead.pop(0)
        if command in seen:
            continue
        seen.add(command)
        said = pasted(command)
        yield command, said
        page = folder / "report.html"
        shown = page.read_text() if command == first and page.is_file() else ""
        following = advised(said)
        assert set(advised(shown)) <= set(following)  # the page advises what the terminal does
        for one in following:
            assert not PLACEHOLDER.search(one), one
        if depth < steps:
            ahead[:0] = [(one, depth + 1) for one in following]


SUBJECTS = {
    "own": "heedful audit bilstm+additive --data reviews.csv --config tiny.toml --out runs/own",
    "bert": "heedful audit bert --data reviews.csv --documents 12 --out runs/bert",
    "mean": "heedful audit mean --data reviews.csv --documents 12 --out runs/mean "
    "--trust-remote-code",
    "decoder": "heedful audit decoder --data reviews.csv --documents 12 --out runs/decoder",
}


@pytest.mark.parametrize("kind", SUBJECTS)
def test_every_advice_works_when_pasted(kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = Path("runs") / kind
    pasted(SUBJECTS[kind])
    code = " --trust-remote-code" if kind == "mean" else ""
    pasted(f"heedful explain 'the staff was not good' --model {folder} --all{code}")
    documents = read_file("reviews.csv").corpus.splits.values()
    check_rows(folder, {one.id: one.text for split in documents for one in split})
    judged("no", monkeypatch)
    told = dict(walked(SUBJECTS[kind], folder, 1))
    commands = list(told)[1:]
    assert [command.split()[1] for command in commands] == ["explain", "train", "audit", "compare"]
    is_own = kind == "own"
    assert ("--from" in commands[1]) == is_own
    assert all(("--trust-remote-code" in c) == (kind == "mean") for c in commands[:3])
    explained = told[commands[0]]
    method = commands[0].split()[commands[0].split().index("--method") + 1]
    assert explained.splitlines()[1].strip().startswith(method)
    for following in advised(told[commands[1]]):
        pasted(following)
    if is_own:
        check_price(told[commands[1]])
    judged("cannot tell", monkeypatch)
    unsure = dict(walked(SUBJECTS[kind], folder, 1))
    if is_own:  # all of its test documents were audited
        assert len(unsure) == 1
        assert "--documents 0" not in "".join(unsure.values())
    else:
        (_, more) = unsure
        assert "--documents 0" in more
        assert read_json(folder / "run.json")["audited"]["documents"] == ROWS


@pytest.mark.parametrize("effort", ["quick", "normal"])
def test_an_audit_of_some_documents_says_of_how_many_and_why(effort: str, place: Path) -> None:
    table = pd.concat([texts(60, seed=1), texts(60, seed=2)])
    table.to_csv("many.csv", index=False)
    if not (place / "runs" / "efforts").is_dir():
        pasted("heedful train bilstm+additive --data reviews.csv --config tiny.toml "
               "--out runs/efforts")  # fmt: skip
    folder = Path("runs") / effort
    said = pasted(f"heedful audit runs/efforts --data many.csv --effort {effort} --out {folder}")
    assert "Tests on 120 documents" in said
    documents = read_file("many.csv").corpus.splits.values()
    check_rows(folder, {one.id: one.text for split in documents for one in split})
    stops = read_json(folder / "run.json")["audited"]["looked at"]
    assert stops["erasure"]["documents"] == 50
    assert {one["why"] for one in stops.values()} == {
        "there are no more",
        {"quick": "no more are asked for", "normal": "what it is for is settled"}[effort],
    }


def check_price(said: str) -> None:
    """Recomputes what a sweep says that the strength it keeps costs on dev."""
    found = read_json(Path("runs/own-tying/remedy.json"))
    kept = next(o for o in found["tried"] if o["strength"] == found["chosen"]["strength"])
    cost = 100 * (found["base"]["f1"] - kept["f1"])
    dev = len(read_file("reviews.csv").corpus.splits["dev"])
    told = re.search(r"(costs|gains) ([\d.]+)( \[.*?\])? points of dev F1", said)
    assert told is not None
    assert told[1] == ("costs" if cost >= 0 else "gains")
    assert float(told[2]) == pytest.approx(abs(cost), abs=0.06)
    if kept["cost"]["low"] is None:
        assert "its cost has no interval" in said
        return
    ends = re.fullmatch(r" \[([-\d.]+), ([-\d.]+); (\d+) documents\]", told[3])
    assert ends is not None
    assert float(ends[1]) <= float(told[2]) <= float(ends[2])
    assert int(ends[3]) == dev


def refused(command: str) -> str:
    """The sentence that a command is refused with."""
    done = CliRunner().invoke(app, shlex.split(command)[1:])
    assert isinstance(done.exception, heedful.InputError), done.output
    return str(done.exception)


def test_what_a_refusal_or_a_guess_suggests_works(place: Path) -> None:
    table = pd.read_csv("reviews.csv")
    is_good = table["label"] == "pos"
    others = {
        "spelt": {"label": is_good.map({True: "positive", False: "negative"})},
        "rated": {"score": np.where(is_good, 1.75, -3.25)},
        "numbered": {"spam": is_good.astype(int)},
    }
    for name, column in others.items():
        table[["text"]].assign(**column).to_csv(f"{name}.csv", index=False)
    save(place / "unnamed", "bert", ("LABEL_0", "LABEL_1"))
    accuracies = set()
    for name, subject, option in (
        ("spelt", "unnamed", "--labels negative=LABEL_0,positive=LABEL_1"),
        ("rated", "bert", "--threshold 0"),
        ("numbered", "bert", "--label spam"),
    ):
        command = f"heedful audit {subject} --data {name}.csv --documents 8"
        said = refused(command) if name == "spelt" else pasted(command)
        assert f"{option}" in said
        assert "Accuracy:" not in said
        told = pasted(f"{command} {option}")
        accuracies |= set(re.findall(r"Accuracy: (.*)", told))
    assert len(accuracies) == 1  # the labels are the same ones, and so are the models
    trained = "heedful train bilstm+additive --data rated.csv --config tiny.toml"
    assert "make two classes of them by --threshold 0" in refused(trained)
    said = pasted(f"{trained} --threshold 0")
    (n,) = re.findall(r"Accuracy: test .* of (\d+) documents", said)
    assert int(n) == len(read_file("rated.csv", threshold=0).corpus.splits["test"])
    for verb in ("audit mean", "lexicon mean --lexicon ratings.csv", "train mean"):
        command = f"heedful {verb} --data reviews.csv --out runs/code-{verb.split()[0]}"
        assert "allow it with --trust-remote-code" in refused(command)
    assert "--trust-remote-code" in refused("heedful explain 'good food' --model mean")
    pasted("heedful lexicon mean --lexicon ratings.csv --data reviews.csv --trust-remote-code "
           "--no-lemmas --out runs/code-lexicon")  # fmt: skip


def test_a_module_of_the_users_own_is_advised_in_python(monkeypatch: pytest.MonkeyPatch) -> None:
    def cut(text: str) -> Pieces:
        return FastTokeniser(tokenizer(is_causal=True)).pieces([text])[0]

    model = classifier_of(enlarged(MeanPooled()), cut, CLASSES)
    whole = read_file("reviews.csv").corpus
    corpus = Corpus("mine", whole.classes, {"test": whole.splits["train"][:14]})
    texts = {one.id: one.text for one in corpus.splits["test"]}
    known = {"heedful": heedful, "model": model, "corpus": corpus}
    for word, calls in (("no", ["explain"]), ("cannot tell", ["audit"])):
        judged(word, monkeypatch)
        with counting() as counted:
            found = heedful.audit(model, corpus, "runs/module", documents=10)
        keep(Run(found.folder), counted, lambda name: 2 * len(texts[name].split()))
        check(page_sentences(found.report.read_text()), known_of("audit"), Run(found.folder))
        said = "\n".join(found.verdict.advice)
        assert advised(said) == []  # no command could open it
        code = re.findall(r"`(heedful\.[^`]+)`", said)
        assert [re.findall(r"heedful\.(\w+)", line)[0] for line in code] == calls
        for line in code:
            assert html.escape(line, quote=False).replace("'", "&#39;") in found.report.read_text()
            eval(line, dict(known))


def test_the_commands_of_the_readme_work_as_written(place: Path) -> None:
    save(place / "my-model", "bert", CLASSES)
    language_model("llama").save_pretrained(place / "my-language-model")
    tokenizer(is_causal=True).save_pretrained(place / "my-language-model")
    (place / "heedful.toml").write_text(TINY)
    blocks = re.findall(r"```console\n(.*?)```", README.read_text(), re.DOTALL)
    lines = [line for block in blocks for line in block.splitlines() if line.startswith("heedful")]
    assert len(lines) >= 6
    for line in lines:
        said = pasted(line)
        if " explain " in line and "my-model" in line:
            check_explained(said, line, place / "my-model")


def check_explained(said: str, line: str, folder: Path) -> None:
    """Recomputes probabilities and what replacing a word costs, by the library's own classes."""
    from transformers import AutoModelForSequenceClassification, AutoTokenizer

    text = shlex.split(line)[2]
    model = AutoModelForSequenceClassification.from_pretrained(folder).eval()
    cut = AutoTokenizer.from_pretrained(folder)
    given = cut(text, return_tensors="pt", return_offsets_mapping=True)
    spans = given.pop("offset_mapping")[0].tolist()
    with torch.no_grad():
        before = model(**given).logits[0].double().softmax(-1)
        for name, value in zip(CLASSES, before.tolist(), strict=True):
            assert f"{name} {value:.3f}" in said
        target = int(before.argmax())
        for word in re.findall(r"(\w+) -?[\d.e-]+", said.splitlines()[1])[:3]:
            start = re.search(rf"\b{word}\b", text, re.IGNORECASE)
            assert start is not None
            ids = given["input_ids"].clone()
            inside = [start.start() <= a < b <= start.end() for a, b in spans]
            ids[0, torch.tensor(inside)] = cut.unk_token_id
            after = model(**{**given, "input_ids": ids}).logits[0].double().softmax(-1)
            lost = float(before[target] - after[target])
            told = re.search(rf"\b{word} (-?[\d.e-]+)", said.splitlines()[1])
            assert told is not None
            assert float(told[1]) == pytest.approx(lost, rel=6e-3, abs=1e-5)
