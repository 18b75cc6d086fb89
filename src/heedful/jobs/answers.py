"""Audit the sources of a language model's answers: read, explain, remove, judge, show."""

from __future__ import annotations

import shutil
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from heedful import __version__
from heedful.audits.answer_measures import NAME
from heedful.audits.answer_verdict import AnswerVerdict, judge
from heedful.audits.answers import summarise
from heedful.audits.finding import Finding
from heedful.corpora.planted_needles import are_needles, needles
from heedful.corpora.questions import Question, read_questions
from heedful.corpora.samples import Rows, drawn, sampled
from heedful.errors import InputError
from heedful.importance.sources import FEWEST_DEV, HeadWeights, heads_on_dev
from heedful.jobs.decider import device_of
from heedful.jobs.gate import require
from heedful.jobs.one_answer import AskedQuestion, examined, heads_and_effects
from heedful.models.huggingface.language_models import PREFIX, note_of_start, opened
from heedful.models.huggingface.opening import limit_of
from heedful.models.huggingface.question_prompts import (
    LONGEST,
    AnswerPrompt,
    QuestionTokeniser,
    question_template,
)
from heedful.models.saved import weights_digest
from heedful.report.page import ANSWERS, render
from heedful.runs import RunFolder, fingerprint, held, read_json, write_json, writing
from heedful.runs.progress import ticking
from heedful.runs.steps import step

MOST_QUESTIONS = 200
DEV_SHARE, MOST_DEV = 3, 50
"""One question in three, at most so many, is for choosing heads, and is not audited."""
REMOVALS = 32
"""Random removals that every explanation has to foresee."""
SHOWN = 40
"""Answers on the page."""
ZERO = "have a probability of 0, or none, as they are or with a source removed, left out."
HEADS_FILE = "heads.json"
WORK = "work-answers"
"""Folder of what was computed of single questions until the audit is finished."""


@dataclass(frozen=True)
class AuditedAnswers:
    """What an audit of answers leaves."""

    verdict: AnswerVerdict
    finding: Finding
    folder: Path
    report: Path
    answers: int

    def to_json(self) -> dict[str, Any]:
        """The audit as plain data."""
        return {
            "verdict": self.verdict.to_json(),
            "answers": self.answers,
            "folder": str(self.folder),
            "report": str(self.report),
            "answer": self.finding.answer,
            "measures": self.finding.table().to_dict("records"),
            "notes": list(self.finding.notes),
        }

    def require(self, least: str | None = None) -> AuditedAnswers:
        """The audit itself, if its verdict is as good as asked for; else `VerdictWorse`."""
        require(self.verdict.gate, least, None, "")
        return self


class _Kept(NamedTuple):
    """What an audit found of its answers."""

    rows: pd.DataFrame
    shown: list[dict[str, Any]]
    notes: list[str]
    heads: Sequence[HeadWeights]


class _Chosen(NamedTuple):
    """The questions that are asked, and what became of the others."""

    asked: list[AskedQuestion]
    notes: list[str]


def audit_answers(
    place: str | Path,
    questions: str | Path | Sequence[Question],
    out: str | Path = "runs/answers",
    *,
    units: str = "passages",
    prompt: str | Path | None = None,
    chat: bool = False,
    heads: str | Path | None = None,
    documents: int = MOST_QUESTIONS,
    removals: int = REMOVALS,
    seed: int = 0,
    device: str = "auto",
    trust_remote_code: bool = False,
    show: bool = False,
    command: str = "",
) -> AuditedAnswers:
    """Whether what a language model attended to may be shown as the reason for its answers.

    `questions` is a JSON Lines file (`read_questions`) or questions in memory; those without an
    answer get the one that the model gives greedily. `units` are passages or sentences. A third of
    the questions is for choosing heads and not audited, unless `heads` names an earlier run, whose
    heads are used. The run folder `out` gets findings and `report.html`; the same call goes on
    where it was stopped.
    """
    started, target = time.perf_counter(), device_of(device)
    if isinstance(questions, str | Path):
        source, questions = _read(questions, units, seed)
    else:
        source, questions = "questions in memory", list(questions)
    template = question_template(prompt)
    found = opened(place, device=target, trust_remote_code=trust_remote_code)
    tokeniser = QuestionTokeniser(found.tokenizer, template, chat)
    weights = weights_digest(found.model)
    chosen = None if heads is None else heads_of_run(heads, weights)
    configuration = {
        "kind": ANSWERS, "recipe": f"{PREFIX}{found.name}", "model": weights, "corpus": source,
        "units": units, "prompt": template, "chat": chat, "seed": seed,
    }  # fmt: skip
    asked = fingerprint({"questions": [asdict(question) for question in questions]})
    rows = sampled([question.name for question in questions], documents, seed)
    mark = fingerprint(
        {"removals": removals, "rows": rows.tolist(), "heads": _mark(chosen), "of": __version__}
    )
    with held(out):
        run = RunFolder.create(
            out, configuration, seeds={"all": seed}, device=str(target), corpus=asked
        )
        if run.record["steps"].get("audit", {}).get("fingerprint") != mark:
            job = _Job(found.model, tokeniser, run, weights, removals, seed, show)
            kept = job.audited(questions, rows, chosen, Path(heads).name if heads else "")
            get = f"heedful audit {PREFIX}{found.name} --questions NEW.jsonl --heads {run.path}"
            start = note_of_start(found.tokenizer, found.name, tokeniser.start()[:1])
            finding = summarise(kept.rows, [*found.said, *start, *kept.notes])
            run.forget("audit")
            _keep(run, kept, finding, judge(finding, get), _about(found.model, weights))
            counts = {"answers": len(kept.shown), "of": len(questions)}
            run.update(audited=counts | {"command": command})
            render(run.path)
            run.finish("audit", time.perf_counter() - started, fingerprint=mark)
            shutil.rmtree(run.path / WORK)
        told = read_json(run.findings / "verdict.json")
        finding = Finding.from_json(read_json(run.findings / f"{NAME}.json"))
        count = run.record["audited"]["answers"]
    verdict = AnswerVerdict(**told)
    return AuditedAnswers(verdict, finding, run.path, run.report, count)


def heads_of_run(place: str | Path, weights: str) -> list[HeadWeights]:
    """The heads that an earlier audit of the same model chose and weighed."""
    path = RunFolder.open(place).findings / HEADS_FILE
    if not path.is_file():
        raise InputError(f"{place} has no {HEADS_FILE}: expected an audit with --questions.")
    stored = read_json(path)
    if stored["model"] != weights:
        raise InputError(f"{place} chose heads of another model; audit this model first.")
    if not stored["heads"]:
        raise InputError(f"{place} had too few dev questions to choose heads; give it more.")
    return [
        HeadWeights(one["name"], np.array(one["weights"]), one["penalty"])
        for one in stored["heads"]
    ]


def _read(place: str | Path, units: str, seed: int) -> tuple[str, list[Question]]:
    """The questions of a file, or those that are made, and what they are called."""
    if are_needles(place):
        return str(place), needles(str(place), seed)
    return Path(place).name, read_questions(place, units)


def _for_dev(names: Sequence[str], rows: Rows, seed: int) -> list[int]:
    """The questions that heads are chosen on: none where they would be too few."""
    count = min(len(rows) // DEV_SHARE, MOST_DEV)
    if count < FEWEST_DEV:
        return []
    return sorted(drawn([f"dev {name}" for name in names], rows, count, seed).tolist())


def _said_of_heads(heads: Sequence[HeadWeights], dev: int, named: str) -> list[str]:
    if named:
        return [f"Heads are those that {named} chose and weighed."]
    if heads:
        return [f"Heads were chosen and weighed on {dev} dev questions, which are not audited."]
    few = "No head was chosen or weighed: "
    return [f"{few}{dev} dev questions told too little; ask more questions, or name --heads RUN."]


def _mark(heads: Sequence[HeadWeights] | None) -> str:
    return fingerprint({one.name: one.weights.tolist() for one in heads or ()})


def _about(model: Any, weights: str) -> dict[str, Any]:
    """Whose heads they are, and how they are numbered: layer by layer."""
    config = model.config.get_text_config()
    sizes = {"layers": config.num_hidden_layers, "heads of a layer": config.num_attention_heads}
    return {"model": weights} | sizes


@dataclass(frozen=True)
class _Job:
    """One audit of answers: each question is a step, done once."""

    model: Any
    tokeniser: QuestionTokeniser
    run: RunFolder
    weights: str
    removals: int
    seed: int
    show: bool

    def audited(
        self,
        questions: Sequence[Question],
        rows: Rows,
        heads: Sequence[HeadWeights] | None,
        named: str,
    ) -> _Kept:
        """Dev questions choose heads, where none are given; the others are examined."""
        names = [question.name for question in questions]
        for_dev = [] if heads is not None else _for_dev(names, rows, self.seed)
        dev = self.asked([questions[row] for row in for_dev], "dev questions")
        audited = self.asked([questions[row] for row in sorted({*rows} - {*for_dev})], "questions")
        if not audited.asked:
            raise InputError(f"No question can be audited: {' '.join(audited.notes)}")
        if heads is None:
            heads = self.heads(dev.asked)
        every = self.records(audited.asked, heads)
        records = [record for record in every if record["rows"]]
        zero = f"{len(every) - len(records)} of {len(every)} answers {ZERO}"
        if not records:
            raise InputError(f"No answer can be audited: {zero}")
        if len(records) < len(every):
            audited.notes.append(zero)
        table = pd.DataFrame([row for record in records for row in record["rows"]])
        # A measure that no answer has is stored as nothing, which is no number.
        measured = table.columns.difference(["instance", "ranking"])
        return _Kept(
            table.astype(dict.fromkeys(measured, np.float64)),
            [record["shown"] for record in records],
            [*dev.notes, *audited.notes, *_said_of_heads(heads, len(dev.asked), named)],
            heads,
        )

    def asked(self, questions: Sequence[Question], what: str) -> _Chosen:
        """The prompts of questions, with answers; what cannot be asked is counted."""
        found, most = list[AskedQuestion](), limit_of(self.model, self.tokeniser.tokenizer)
        too_long = silent = alone = 0
        with ticking(f"asking {what}", len(questions), "questions", self.show) as ticker:
            for question in questions:
                ticker.advance()
                if len(question.sources) < 2:
                    alone += 1
                    continue
                prompt = self.tokeniser.prompt(question.text, [s.line for s in question.sources])
                given = question.answer
                answer = () if given is None else self.tokeniser.given(given)
                room = most - len(prompt.pieces) - len(answer)
                if room < 0 or (given is None and room < LONGEST):
                    too_long += 1
                    continue
                if given is None:
                    answer = self._made(question, prompt)
                if not answer:
                    silent += 1
                    continue
                found.append(
                    AskedQuestion(question, replace(prompt, answer=answer), given is not None)
                )
        notes = [
            f"{count} of {len(questions)} {what} {why}"
            for count, why in (
                (too_long, f"are longer than the {most} pieces that the model reads, left out."),
                (silent, "get no answer from the model, left out."),
                (alone, "have one source alone, nothing to choose among, left out."),
            )
            if count
        ]
        return _Chosen(found, notes)

    def heads(self, dev: Sequence[AskedQuestion]) -> list[HeadWeights]:
        """Heads chosen and weighed on dev questions."""
        found = []
        with ticking("heads", len(dev), "questions", self.show and bool(dev)) as ticker:
            for one in dev:
                found.append(self._step(one, "dev", partial(heads_and_effects, self.model, one)))
                ticker.advance()
        attention = [np.array(one["heads"]) for one in found]
        return heads_on_dev(attention, [np.array(one["effects"]) for one in found])

    def records(
        self, asked: Sequence[AskedQuestion], heads: Sequence[HeadWeights]
    ) -> list[dict[str, Any]]:
        """What is found of every answer."""
        model, tokeniser, found = self.model, self.tokeniser, []
        mark = _mark(heads)
        with ticking("answers", len(asked), "answers", self.show) as ticker:
            for one in asked:
                compute = partial(examined, model, tokeniser, one, heads, self.removals, self.seed)
                found.append(self._step(one, "answers", compute, heads=mark, count=self.removals))
                ticker.advance()
        return found

    def _made(self, question: Question, prompt: AnswerPrompt) -> tuple[int, ...]:
        """The answer that the model gives."""

        def compute() -> list[int]:
            return list(self.tokeniser.made(self.model, prompt))

        found = self._step(AskedQuestion(question, prompt, False), "made", compute)
        return tuple(found)

    def _step(self, one: AskedQuestion, kind: str, compute: Callable[[], Any], **more: Any) -> Any:
        """What is computed of one question, once."""
        pieces = [list(part) for part in one.prompt.parts], list(one.prompt.answer)
        inputs = {
            "model": self.weights,
            "pieces": pieces,
            "seed": self.seed,
            "heedful": __version__,
        }
        name = fingerprint({"name": one.question.name})
        return step(self.run.path / WORK, f"{kind}-{name}", compute, inputs=inputs | more)


def _keep(
    run: RunFolder,
    kept: _Kept,
    finding: Finding,
    verdict: AnswerVerdict,
    about: Mapping[str, Any],
) -> None:
    """Writes what was found."""
    heads = [
        {"name": one.name, "weights": one.weights.tolist(), "penalty": one.penalty}
        for one in kept.heads
    ]
    with writing(run.findings / f"{NAME}.parquet") as path:
        kept.rows.to_parquet(path, index=False)
    write_json(run.findings / f"{NAME}.json", finding)
    write_json(run.findings / "verdict.json", verdict)
    write_json(run.findings / "instances.json", {"answers": kept.shown[:SHOWN]})
    write_json(run.findings / HEADS_FILE, {**about, "heads": heads})
