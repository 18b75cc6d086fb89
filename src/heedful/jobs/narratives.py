"""Train a model that follows narratives, and trace its attention to their words."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, cast

import pandas as pd
import torch

from heedful.audits.finding import Finding
from heedful.audits.traces import followed_tables, window_tables
from heedful.audits.word_means import normalised, word_means
from heedful.corpora.narrative_batches import EncodedNarratives, encode_narratives
from heedful.corpora.narratives import (
    FILLER,
    Narratives,
    planted_narratives,
    read_narratives,
    read_send,
)
from heedful.corpora.root import root_of
from heedful.errors import InputError, UnsupportedModel, unknown
from heedful.jobs.decider import device_of
from heedful.jobs.lexicon import findings_of, lexicon_of
from heedful.jobs.settings import Settings, preset_settings
from heedful.jobs.training_run import kept
from heedful.models import (
    NarrativeTransformer,
    TransformerConfig,
    build_narrator,
    load_model,
    save_model,
)
from heedful.models.recipe import with_settings
from heedful.runs import TABLE, RunFolder, held, write_csv, write_json
from heedful.statistics import draws
from heedful.statistics.estimates import Estimate
from heedful.training import History, fit
from heedful.training.kinds import evaluate_narratives

PRESET = "tracing/send"
CORPORA = ("planted", "send")


def narratives_of(
    corpus: str | Path | Narratives, data_root: str | Path | None = None, seed: int = 0
) -> Narratives:
    """The narratives of a name (`planted`, `send`) or of a folder."""
    if isinstance(corpus, Narratives):
        return corpus
    if corpus == "planted":
        return planted_narratives(seed)
    if corpus == "send":
        return read_send(root_of(data_root))
    if not Path(corpus).is_dir():
        raise unknown("corpus or folder of narratives", str(corpus), CORPORA)
    return read_narratives(Path(corpus))


def train_narrator(
    corpus: str | Path | Narratives = "planted",
    out: str | Path | None = None,
    *,
    settings: Settings | None = None,
    vectors: str | Path | None = None,
    data_root: str | Path | None = None,
    seed: int = 0,
    device: str = "auto",
    show: bool = False,
) -> NarrativeTransformer:
    """A Transformer trained to follow ratings over time; with `out`, kept in a run folder.

    `corpus` is `planted`, `send` (read from the data root), a folder or narratives; the settings
    are those of the preset `tracing/send` unless others are given.
    """
    corpus = narratives_of(corpus, data_root, seed)
    settings = preset_settings(PRESET) if settings is None else settings
    encoded = encode_narratives(corpus, vectors)
    width = {} if encoded.vectors is None else {"embedding_dim": encoded.vectors.shape[1]}
    config = with_settings(TransformerConfig, width | dict(settings.model))
    target = device_of(device)
    model = build_narrator(config, encoded.vocabulary, seed, encoded.vectors)

    def learn(folder: Path | None) -> tuple[NarrativeTransformer, History]:
        history = fit(
            model, encoded, settings.train, seed=seed, device=target, folder=folder, show=show
        )
        return model.eval(), history

    return kept(
        out,
        {"kind": "narratives", "model": asdict(config), "train": settings.train.described()},
        encoded,
        learn=learn,
        save=save_model,
        reopen=lambda folder: cast(NarrativeTransformer, load_model(folder, target)),
        measure=evaluate_narratives,
        seed=seed,
        device=target,
    )


@dataclass(frozen=True)
class NarrativeFindings:
    """What a model makes of the test narratives."""

    folder: Path
    ccc: Estimate
    """Concordance of the model's ratings with the people's, mean over narratives."""
    findings: Mapping[str, Finding]
    """`lexicon` and `heads`, where a lexicon was given."""

    def to_json(self) -> dict[str, Any]:
        """The result as plain data."""
        answers = {name: finding.answer for name, finding in self.findings.items()}
        return {"folder": str(self.folder), "ccc": self.ccc.to_json(), "answers": answers}

    def lines(self) -> list[str]:
        """The answers for the terminal."""
        said = [f"Concordance with the ratings, mean over test narratives: {self.ccc}."]
        said += [finding.answer for finding in self.findings.values()]
        return [*said, f"Tables of windows, words and traced tokens: {self.folder}"]


def trace_narratives(
    run: str | Path,
    corpus: str | Path | Narratives = "planted",
    lexicon: str | Path | Mapping[str, float] | None = None,
    *,
    data_root: str | Path | None = None,
    lemmas: bool | None = None,
    seed: int = 0,
    device: str = "auto",
) -> NarrativeFindings:
    """How a trained narrator follows the test narratives, and the words its attention reaches.

    Tables go to the run's folder `traced`: `windows.csv` (rating and guess over time), `words.csv`
    (averages) and `tokens.parquet`. With a lexicon the words are laid beside what people feel about
    them, with an untrained model of the same shape as a control.
    """
    folder, target = RunFolder.open(run), device_of(device)
    model = load_model(folder.model, target)
    if not isinstance(model, NarrativeTransformer):
        raise UnsupportedModel(f"{run} holds no model of narratives; see `heedful lexicon`.")
    told = narratives_of(corpus, data_root, seed)
    encoded = encode_narratives(told, vocabulary=model.vocabulary)
    if not len(encoded.splits.get("test", ())):
        raise InputError(f"{encoded.name} has no test narratives to trace.")
    test = encoded.splits["test"]
    seen = followed_tables(model, test, target)
    fresh = build_narrator(model.config, model.vocabulary, seed)
    fresh.set_vectors(model.vectors.table.cpu().numpy())
    tokens, untrained = (_tokens(one, test, target) for one in (model, fresh))
    place = folder.path / "traced"
    findings: dict[str, Finding] = {}
    with held(folder.path):
        place.mkdir(exist_ok=True)
        write_csv(place / "windows.csv", seen["windows"])
        TABLE.save(place / "tokens.parquet", tokens)
        scores = {name: normalised(tokens, name) for name in ("importance", "gradient")}
        write_csv(place / "words.csv", word_means(tokens, scores))
        if lexicon is not None:
            rated = lexicon_of(lexicon, data_root, lemmas)
            matches = rated.matches(tokens["word"])
            findings = findings_of(tokens, matches, rated.scale, "trace", untrained)
            for name, finding in findings.items():
                write_json(place / f"{name}.json", finding)
    agreement = seen["narratives"]
    mean = draws.average(agreement["ccc"], [str(name) for name in agreement["narrative"]])
    return NarrativeFindings(place, mean.estimate(), findings)


def _tokens(
    model: NarrativeTransformer, test: EncodedNarratives, device: torch.device
) -> pd.DataFrame:
    """The traced words of every window, fillers of empty windows left out."""
    table = window_tables(model, test, device)["tokens"].rename(columns={"lat": "importance"})
    return table[table["word"] != FILLER].reset_index(drop=True)
