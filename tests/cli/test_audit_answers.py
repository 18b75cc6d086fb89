"""Answers from passages audited by the command a person types, against plain passes in float64."""

from __future__ import annotations

import copy
import json
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
import torch
from typer.testing import CliRunner

from heedful.audits.answer_measures import EVIDENCE, FORESEEN, FOUND, ORACLE, PRECISION
from heedful.cli import app
from heedful.corpora.questions import PromptSource, Question
from heedful.errors import InputError
from heedful.importance.sources import CHOSEN, LEARNT, METHODS
from heedful.jobs.answers import audit_answers
from heedful.models.huggingface.language_models import Opened
from heedful.runs import plain
from heedful.statistics.weighted import rank_correlation
from tests.models.huggingface.test_language_models import language_model
from tests.schemas import conforms
from tests.tiny_transformers import VOCABULARY, tokenizer

WORDS = ("good", "bad", "food", "service", "very", "slow", "staff", "friend", "not", "was")
PROMPT = "the {passages} was {question} and"
COUNT, SOURCES = 14, 6


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A tiny Llama in float64 with its tokenizer, and questions with six passages."""
    place = tmp_path_factory.mktemp("answers")
    language_model("llama").save_pretrained(place / "llama")
    tokenizer(is_causal=True).save_pretrained(place / "llama")
    drawn = np.random.default_rng(0)
    with (place / "q.jsonl").open("w") as file:
        for n in range(COUNT):
            texts = [" ".join(drawn.choice(WORDS, 2)) for _ in range(SOURCES)]
            passages = [{"text": t, "evidence": k == n % SOURCES} for k, t in enumerate(texts)]
            asked = {"id": f"q{n}", "question": "slow", "passages": passages, "answer": "bad food"}
            if n == 0:
                asked.pop("answer")
            file.write(json.dumps(asked) + "\n")
    return place


def run(*arguments: Any) -> Any:
    return CliRunner().invoke(app, [str(argument) for argument in arguments])


@pytest.fixture(scope="module")
def audited(folder: Path) -> tuple[Path, dict[str, Any]]:
    """The run folder of an audit, and what it printed as JSON."""
    out = folder / "run"
    result = run(
        "audit", f"lm:{folder / 'llama'}", "--questions", folder / "q.jsonl", "--prompt", PROMPT,
        "--out", out, "--json",
    )  # fmt: skip
    assert result.exit_code == 0, result.output
    return out, conforms("audit", result.stdout)


def by_hand(question: dict[str, Any], kept: list[bool]) -> float:
    """log p of the answer in one plain pass over the prompt of the passages that are kept."""
    cut, model = tokenizer(is_causal=True), language_model("llama")
    texts = [one["text"] for one, keeps in zip(question["passages"], kept, strict=True) if keeps]
    prompt = cut(f"the {' '.join(texts)} was {question['question']} and")["input_ids"]
    answer = cut(question["answer"])["input_ids"]
    with torch.no_grad():
        logits = model(torch.tensor([[*prompt, *answer]]), use_cache=False).logits[0].double()
    said = logits.log_softmax(-1)
    return sum(float(said[len(prompt) - 1 + n, piece]) for n, piece in enumerate(answer))


def test_effects_drops_and_scores_are_those_of_plain_passes(
    folder: Path, audited: tuple[Path, dict[str, Any]]
) -> None:
    out, _ = audited
    asked = {q["id"]: q for q in map(json.loads, (folder / "q.jsonl").read_text().splitlines())}
    rows = pd.read_parquet(out / "findings" / "answers.parquet").set_index(["instance", "ranking"])
    shown = json.loads((out / "findings" / "instances.json").read_text())["answers"]
    seen = [one for one in shown if one["is_given"]]
    assert len(seen) >= 8
    for one in seen:
        question, every = asked[one["name"]], [True] * SOURCES
        whole = by_hand(question, every)
        effects = np.array(
            [
                whole - by_hand(question, [n != gone for n in range(SOURCES)])
                for gone in range(SOURCES)
            ]
        )
        np.testing.assert_allclose(one["scores"][ORACLE], effects, rtol=1e-4, atol=1e-7)
        assert sum(one["said"]) == pytest.approx(whole, rel=1e-4)
        for name, scores in one["scores"].items():
            row = rows.loc[one["name"], name]
            order = np.argsort(-np.array(scores), kind="stable")
            for k in (3, 5):
                kept = [n not in order[:k] for n in range(SOURCES)]
                assert row[f"drop at {k}"] == pytest.approx(whole - by_hand(question, kept))
            if name == "random":
                assert row["drop at 1"] == pytest.approx(effects.mean())
                assert row["found"] == 0
            else:
                assert row["drop at 1"] == pytest.approx(effects[order[0]])
                assert row["found"] == pytest.approx(effects[order[0]] - effects.mean())
        assert rows.loc[one["name"], ORACLE]["found"] == pytest.approx(
            effects.max() - effects.mean()
        )
        gold = [p["evidence"] for p in question["passages"]]
        share = np.array(one["scores"]["attention"])
        expected = share[gold].sum() / share.sum()
        assert rows.loc[one["name"], "attention"][EVIDENCE] == pytest.approx(expected, rel=1e-3)


def test_every_explanation_is_measured_and_heads_come_from_dev(
    audited: tuple[Path, dict[str, Any]],
) -> None:
    out, found = audited
    names = {one["method"] for one in found["measures"] if one["measure"] == FOUND}
    assert names == {*METHODS, CHOSEN, LEARNT, ORACLE}
    measured = {one["measure"] for one in found["measures"]}
    assert {"drop at 1", "drop at 3", "drop at 5", FORESEEN, PRECISION} <= measured | {PRECISION}
    assert found["answers"] == COUNT - COUNT // 3
    assert found["verdict"]["word"] == "cannot tell"  # few answers
    assert "decoders built by hand" in found["verdict"]["sentence"]
    stored = json.loads((out / "findings" / "heads.json").read_text())
    assert [one["name"] for one in stored["heads"]] == [CHOSEN, LEARNT]
    assert not (out / "work-answers").exists()


def test_again_is_the_same_and_heads_of_a_run_serve_other_questions(
    folder: Path, audited: tuple[Path, dict[str, Any]]
) -> None:
    out, found = audited
    written = (out / "findings" / "answers.json").stat().st_mtime_ns
    again = audit_answers(f"lm:{folder / 'llama'}", folder / "q.jsonl", out, prompt=PROMPT)
    assert plain(again.to_json())["measures"] == found["measures"]
    assert (out / "findings" / "answers.json").stat().st_mtime_ns == written
    anew = audit_answers(
        f"lm:{folder / 'llama'}", folder / "q.jsonl", folder / "anew", prompt=PROMPT
    )
    assert plain(anew.to_json())["measures"] == found["measures"]
    other = run(
        "audit", f"lm:{folder / 'llama'}", "--questions", folder / "q.jsonl", "--prompt", PROMPT,
        "--heads", out, "--out", folder / "other", "--units", "sentences",
    )  # fmt: skip
    assert other.exit_code == 0, other.output
    assert f"{COUNT} answers" in other.output
    assert CHOSEN in other.output
    assert "Heads are those that run chose" in other.output
    page = run("report", folder / "other")
    assert page.exit_code == 0
    assert (folder / "other" / "report.html").is_file()


def test_random_removals_are_foreseen_as_a_rank_correlation(
    audited: tuple[Path, dict[str, Any]],
) -> None:
    rows = pd.read_parquet(audited[0] / "findings" / "answers.parquet")
    oracle = rows[rows["ranking"] == ORACLE][FORESEEN]
    assert ((oracle >= -1) & (oracle <= 1)).all()
    assert oracle.mean() > 0
    one = np.ones((1, 4))
    assert rank_correlation([1, 2, 3, 4], [1, 2, 4, 3])(one)[0] == pytest.approx(0.8)


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (("bilstm+additive", "--questions", "q.jsonl"), "--questions are for a language model"),
        (("lm:llama", "--questions", "q.jsonl", "--data", "x.csv"), "--data is not for answers"),
        (
            ("lm:llama", "--questions", "q.jsonl", "--effort", "quick"),
            "--effort is not for answers",
        ),
        (("lm:llama", "--questions", "q.jsonl", "--estimate"), "--estimate is not for answers"),
        (("lm:llama", "--questions", "q.jsonl", "--site", "all"), "--site is not for answers"),
        (("lm:llama", "--heads", "run"), "--heads and --units are for answers"),
        (("lm:llama", "--questions", "needles:3"), "Expected needles:WORDS"),
        (("lm:llama", "--questions", "q.jsonl", "--units", "words"), "kind of source"),
        (("lm:llama", "--questions", "q.jsonl", "--heads", "nowhere"), "does not exist"),
        (("lm:llama", "--questions", "q.jsonl", "--prompt", "{passages}"), "must hold {passages}"),
        (("lm:llama", "--questions", "q.jsonl", "--chat"), "no chat template"),
    ],
)
def test_what_cannot_be_audited_is_one_sentence(
    folder: Path, monkeypatch: pytest.MonkeyPatch, options: tuple[str, ...], said: str
) -> None:
    monkeypatch.chdir(folder)
    result = run("audit", *options)
    assert isinstance(result.exception, InputError)
    assert said in str(result.exception)


def test_questions_longer_than_the_model_are_counted(folder: Path, tmp_path: Path) -> None:
    long = {"question": "slow", "passages": ["good " * 80, "bad"], "answer": "bad"}
    (tmp_path / "long.jsonl").write_text(json.dumps(long) + "\n")
    result = run(
        "audit", f"lm:{folder / 'llama'}", "--questions", tmp_path / "long.jsonl", "--prompt",
        PROMPT, "--out", tmp_path / "run",
    )  # fmt: skip
    assert isinstance(result.exception, InputError)
    assert "longer than the 40 pieces" in str(result.exception)


def test_answers_that_cannot_be_measured_are_counted(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One source alone, and an answer that the model never gives; the missing start is said."""
    model, cut = copy.deepcopy(language_model("llama")), copy.deepcopy(tokenizer(is_causal=True))
    cut.bos_token = "[CLS]"
    never = torch.tensor([VOCABULARY["friend"]])
    model.lm_head.register_forward_hook(
        lambda _module, _inputs, logits: logits.index_fill(-1, never, -torch.inf)
    )
    monkeypatch.setattr(
        "heedful.jobs.answers.opened", lambda *_, **__: Opened(model, cut, "tiny", ())
    )
    sources = tuple(PromptSource(word) for word in WORDS[:4])
    asked = [
        Question("usual", "slow", sources, "bad food"),
        Question("alone", "slow", sources[:1], "bad food"),
        Question("never", "slow", sources, "bad friend"),
    ]
    found = audit_answers("lm:tiny", asked, tmp_path / "run", prompt=PROMPT)
    assert found.answers == 1
    notes = " ".join(found.finding.notes)
    assert "1 of 3 questions have one source alone, nothing to choose among, left out." in notes
    assert "1 of 2 answers have a probability of 0, or none" in notes
    assert "prompts do not begin with '[CLS]'" in notes
    with pytest.raises(InputError, match="No answer can be audited: 1 of 1 answers have a prob"):
        audit_answers("lm:tiny", asked[2:], tmp_path / "none", prompt=PROMPT)
