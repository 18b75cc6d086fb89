"""Two files of sentences to a watched, translated and audited translator: `heedful translator`.

The study's own translators are steps of `studies.dynamics.translation_steps`; here a user's are
made and kept in a run folder.
"""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

import torch

from heedful.audits.finding import Finding
from heedful.audits.tables import percent
from heedful.corpora.pair_files import DEV_SHARE, MAX_WORDS, piece_links
from heedful.corpora.pairs import EncodedPairs
from heedful.corpora.parallel import Links
from heedful.corpora.pieces import PieceTokeniser
from heedful.dynamics.watch import PAIRS, PairWatch
from heedful.errors import InputError
from heedful.jobs.decider import device_of
from heedful.jobs.translator_audit import Checked, check, examples, scored
from heedful.jobs.translator_texts import Texts
from heedful.models.saved_translator import (
    SavedTranslator,
    load_translator,
    save_translator,
    translations,
)
from heedful.models.translator import TranslatorConfig, build_translator
from heedful.runs import (
    RunFolder,
    digest,
    fingerprint,
    held,
    plain,
    read_json,
    write_json,
    write_text,
)
from heedful.runs.watched import FILE
from heedful.statistics.estimates import Estimate
from heedful.training.checkpoints import CHECKPOINT, remove_checkpoint
from heedful.training.loop import History, Observer
from heedful.training.sequences import SequenceConfig, fit_translator

BEAM = 5
MOMENTS = 20
"""Evaluations of a training after its start."""
PAGE, FINDINGS, TRANSLATIONS = "index.html", "findings.json", "translations.tsv"
KEPT = "training goes on from its last checkpoint (one a minute)."
NOT_KEPT = "training has no checkpoint yet (one a minute) and would start again."
SHOWN = 12
"""Translations on the page; the file has all."""
AUDIT = 3
"""The version of what is measured and shown; a run of another one is audited anew."""
IBM = "IBM Model 1"
GUESSED = (
    "The links are guesses: IBM Model 1 made them from these pairs. Set punctuation apart for "
    "better ones, or give your own by --alignment."
)


@dataclass(frozen=True)
class TranslatedFiles:
    """What a translator of two files left behind."""

    folder: Path
    found: Mapping[str, Any]
    """What `findings.json` holds."""
    is_trained: bool = True
    """Whether this call trained it; else it read what an earlier one had done."""

    @property
    def page(self) -> Path:
        """The page."""
        return self.folder / PAGE

    @property
    def finding(self) -> Finding:
        """The audit of attention against the alignment."""
        return Finding.from_json(self.found["audit"])

    def estimate(self, name: str) -> Estimate:
        """One of the numbers: `bleu`, `token accuracy`, `gain`, `beyond chance` …"""
        return Estimate.from_json(self.found[name])

    def to_json(self) -> dict[str, Any]:
        """The result as plain data, without what is drawn."""
        shown = {n: v for n, v in self.found.items() if n not in ("curves", "examples")}
        made = {"folder": str(self.folder), "page": str(self.page), "trained": self.is_trained}
        return made | shown

    def lines(self) -> list[str]:
        """The result for the terminal."""
        found = self.found
        done = f"Nothing was trained: {self.folder} holds the finished translator."
        return [
            *(() if self.is_trained else (done,)),
            found["sizes"],
            *found["notes"],
            f"BLEU on dev, beam {BEAM}: {self.estimate('bleu')}. {found['told']}",
            f"{self.finding.question} {self.finding.answer}",
            *((found["guessed"],) if found["guessed"] else ()),
            f"The page: {self.page}",
        ]


def train_translator(
    source: Path | str,
    target: Path | str,
    out: Path | str,
    *,
    dev: tuple[Path | str, Path | str] | None = None,
    dev_share: float | None = None,
    alignment: Path | str | None = None,
    pieces: int | None = None,
    max_words: int = MAX_WORDS,
    model: TranslatorConfig = TranslatorConfig(),
    training: SequenceConfig = SequenceConfig(),
    seed: int = 0,
    device: str = "auto",
    observers: Sequence[Observer] = (),
    show: bool = False,
) -> TranslatedFiles:
    """A translator of two line-parallel files: trained, watched, scored, audited, on one page.

    Dev pairs are drawn (`dev_share`, a tenth unless told) or read from two more files. `pieces` is
    the exact number of sentencepieces; without it as many as the text supports. `alignment` holds
    links `i-j` between the words of the files that the dev pairs are from; without it IBM Model 1
    makes them. The vocabulary of `model` and the grid of `training` follow from the files. The same
    call again goes on where it was killed, or reads what is done.
    """
    from heedful.report.translator_page import render_translator

    where = device_of(device)
    if dev is not None and dev_share is not None:
        raise InputError("--dev names the dev pairs, --dev-share draws them; give one of the two.")
    share = DEV_SHARE if dev_share is None else dev_share
    files = [Path(file) for file in (source, target, *(dev or ()))]
    alignment = None if alignment is None else Path(alignment)
    if alignment is not None and not alignment.is_file():
        raise InputError(f"{alignment} is not a file; `heedful align` writes alignments.txt.")
    texts = Texts.read(files, None if dev else share, max_words, seed)
    known = IBM if alignment is None else digest(alignment)

    def opened() -> RunFolder:
        asked = _configuration(files, share, max_words, pieces, model, training, seed)
        given = fingerprint({"files": [digest(file) for file in files]})
        seeds = {"all": seed}
        return RunFolder.create(out, asked, seeds=seeds, device=str(where), corpus=given)

    if (Path(out) / "run.json").is_file() and _is_audited(run := opened(), known):
        return TranslatedFiles(run.path, read_json(run.path / FINDINGS), is_trained=False)
    # What can be refused is looked at before there is a folder.
    texts, corpus = texts.encoded(pieces, f"{files[0].name} → {files[1].name}")
    links = texts.links(alignment, seed)
    with held(out):
        run = opened()
        is_trained = not run.is_finished("train")
        if not is_trained:
            saved = load_translator(run.model, where)
        else:
            saved = _train(run, corpus, model, training, seed, where, observers, show)
        remove_checkpoint(run.path)
        (run.path / FILE).unlink(missing_ok=True)  # its entries are in the metrics
        started = time.perf_counter()
        named = IBM if alignment is None else alignment.name
        guessed = GUESSED if alignment is None else ""
        found, rows = _audited(run, corpus, saved, texts, links, where, seed)
        found |= {"alignment": named, "guessed": guessed}
        done = TranslatedFiles(run.path, plain(found), is_trained)
        page = render_translator(done.found, run.record)
        # Until all files are those of this alignment, the record tells of no audit.
        run.forget("audit")
        write_text(run.path / TRANSLATIONS, _tsv([("source", "reference", "translation"), *rows]))
        write_json(run.path / FINDINGS, done.found)
        write_text(done.page, page)
        run.finish("audit", time.perf_counter() - started, alignment=known, version=AUDIT)
    return done


def _is_audited(run: RunFolder, alignment: str) -> bool:
    """Whether everything is done, against this very alignment, as this version does it."""
    done = run.record["steps"].get("audit", {})
    is_same = done.get("alignment") == alignment and done.get("version") == AUDIT
    return bool(run.is_finished("audit") and is_same)


def grid_of(updates: int) -> tuple[int, ...]:
    """Steps at which a training of so many updates is watched: dense at first, its end included."""
    return tuple(sorted({round(updates * (n / MOMENTS) ** 2) for n in range(MOMENTS + 1)}))


def _train(
    run: RunFolder,
    corpus: EncodedPairs,
    config: TranslatorConfig,
    training: SequenceConfig,
    seed: int,
    device: torch.device,
    observers: Sequence[Observer],
    show: bool,
) -> SavedTranslator:
    started = time.perf_counter()
    pairs = len(corpus.splits["train"])
    model = build_translator(replace(config, vocabulary=len(corpus.pieces)), seed)
    watch = PairWatch(corpus, run.path, seed)
    try:
        history = fit_translator(
            model,
            corpus,
            replace(training, grid=grid_of(training.steps(pairs))),
            seed=seed,
            device=device,
            observers=[watch, *observers],
            folder=run.path,
            show=show,
        )
    except KeyboardInterrupt:
        if show:
            has_checkpoint = (run.path / CHECKPOINT).is_file()
            print(f"heedful: {KEPT if has_checkpoint else NOT_KEPT}", file=sys.stderr)
        raise
    saved = SavedTranslator(model.eval(), PieceTokeniser(corpus.model))
    save_translator(saved, run.model)
    _write_metrics(run, history, watch, -(-pairs // training.batch_size))
    run.update(best_dev=history.best, best_step=history.best_step)
    run.finish("train", time.perf_counter() - started)
    return saved


def _write_metrics(run: RunFolder, history: History, watch: PairWatch, per_epoch: int) -> None:
    """What training and watch saw at each step, on one line."""
    seen = {entry["step"]: entry for entry in watch.entries}
    lines = [
        entry | {"epoch": round(entry["step"] / per_epoch, 4)} | seen[entry["step"]]
        for entry in history.entries
    ]
    write_text(run.metrics, "".join(json.dumps(line) + "\n" for line in lines))


def _audited(
    run: RunFolder,
    corpus: EncodedPairs,
    saved: SavedTranslator,
    texts: Texts,
    links: Sequence[Links],
    device: torch.device,
    seed: int,
) -> tuple[dict[str, Any], list[tuple[str, str, str]]]:
    """All that the page shows, and source, reference and translation of every dev pair."""
    train, dev = corpus.splits["train"], corpus.splits["dev"]
    pairs = texts.dev_pairs
    of_pieces = piece_links(pairs, links, saved.pieces)
    checked = check(saved.model, train, dev, of_pieces, device, seed)
    written = translations(saved.model, dev, saved.pieces, BEAM)
    rows = [(*pair, text) for pair, text in zip(pairs, written, strict=True)]
    uncut = sum(one is None for one in of_pieces)
    notes = texts.said()
    if uncut:
        notes.append(
            f"{uncut:,} of {len(dev):,} dev pairs {'is' if uncut == 1 else 'are'} not audited: cut "
            "into other pieces as a sentence than word by word."
        )
    told = checked.told
    pairs_named = "pair" if len(dev) == 1 else "pairs"
    found = {
        "sizes": f"{len(train):,} training and {len(dev):,} dev {pairs_named}, "
        f"{len(corpus.pieces):,} pieces.",
        "train": len(train),
        "dev": len(dev),
        "watched": min(PAIRS, len(dev)),
        "pieces": len(corpus.pieces),
        "bleu": scored(written, dev).to_json(),
        "token accuracy": told.accuracy.to_json(),
        "most frequent": corpus.pieces[told.frequent],
        "most frequent share": told.frequent_share.to_json(),
        "gain": told.gain.to_json(),
        "is learnt": told.is_learnt,
        "told": _told(checked),
        "audit": checked.finding.to_json(),
        "beyond chance": checked.beyond_chance.to_json(),
        "may show": checked.may_show,
        "notes": notes,
        "curves": [json.loads(line) for line in run.metrics.read_text("utf-8").splitlines()],
        "examples": examples(saved.model, dev, of_pieces, corpus.pieces, device, seed),
        "translations": [list(row) for row in rows[:SHOWN]],
    }
    return found, rows


def _told(checked: Checked) -> str:
    told = checked.told
    share, usual = percent(told.accuracy), percent(told.frequent_share)
    if told.is_learnt:
        return f"{share} of the next pieces are right, with always the most frequent one {usual}."
    return (
        f"The task was not learnt: {share} of the next pieces are right, no better than always the "
        f"most frequent one ({usual}); train longer, or give more pairs."
    )


def _tsv(rows: Sequence[Sequence[str]]) -> str:
    return "".join("\t".join(text.replace("\t", " ") for text in row) + "\n" for row in rows)


def _configuration(
    files: Sequence[Path],
    dev_share: float,
    max_words: int,
    pieces: int | None,
    model: TranslatorConfig,
    training: SequenceConfig,
    seed: int,
) -> dict[str, Any]:
    shape, learning = asdict(model), asdict(training)
    del (
        shape["vocabulary"],
        learning["grid"],
        learning["checkpoint_seconds"],
    )  # follow, or no matter
    return {
        "kind": "translator",
        "files": [file.name for file in files],
        "dev_share": dev_share if len(files) == 2 else None,
        "max_words": max_words,
        "pieces": pieces,
        "model": shape,
        "train": learning,
        "seed": seed,
    }
