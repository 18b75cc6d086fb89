"""Steps of a study of fine-tuned encoders: the encoder, its pieces, models under tying, audits."""

from __future__ import annotations

import os
import shutil
from collections.abc import Mapping, Sequence
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import pandas as pd

from heedful.corpora import EncodedCorpus, load_prepared
from heedful.corpora.prepared import write_prepared
from heedful.corpora.samples import sampled, subset
from heedful.errors import InputError
from heedful.jobs.strengths import Strength, choose, on_dev
from heedful.models import Penalties
from heedful.models.huggingface import PretrainedClassifier, open_classifier
from heedful.models.huggingface.starting import start_from, write_classifier
from heedful.models.huggingface.tiny import write_tiny_encoder
from heedful.reproduction.results import Results, Step, named
from heedful.reproduction.study import Plan, Scale
from heedful.runs import JSON, TABLES, Form
from heedful.studies.transformers.corpora import ENCODERS
from heedful.training import FINE_TUNING, TrainConfig, fit

WHERE = "HEEDFUL_ENCODERS"
"""The variable that names the folder of the encoders' folders where that is not the data root."""
STRENGTHS: Mapping[Scale, tuple[float, ...]] = {
    "smoke": (1.0, 10.0),
    "paper": (0.3, 1.0, 3.0),
}
LARGE = "minilm"
"""all-MiniLM-L6-v2, six layers."""
TIED_AT = 1.0
"""The strength of tying whose layers are looked at one by one."""
TRAIN: Mapping[Scale, TrainConfig] = {
    "smoke": replace(FINE_TUNING, epochs=2, batch_size=16, learning_rate=3e-3),
    "paper": replace(FINE_TUNING, learning_rate=1e-4, precision="bfloat16"),
}
AUDIT_NAMES = ("exchange", "substitution", "input-erasure", "violation")
AUDITED: Mapping[str, int] = {"planted": 100, "sst": 400, "sst-l3": 400, "imdb": 100}
"""Test documents that the audits look at; accuracy and the sweep look at all."""
QUICK = ("random", "attention", "gradient", "leave-one-out", "rollout")
"""Methods of the smoke scale; at paper scale all that the model offers."""
MODELS = ("plain", "tied")
PLAIN, TIED = MODELS
TOKENS = 16_384
"""Documents × longest document of one batch that is read."""


def _copied(folder: Path, source: Path) -> None:
    shutil.copytree(source, folder, dirs_exist_ok=True)


def _written(folder: Path, model: PretrainedClassifier) -> None:
    write_classifier(model, folder)


FOLDER: Form[Path] = Form("", _copied, Path)
CLASSIFIER: Form[PretrainedClassifier] = Form("", _written, open_classifier)
PIECES: Form[EncodedCorpus] = Form(
    "", lambda folder, corpus: write_prepared(corpus, folder), load_prepared
)


def encoder(plan: Plan, name: str) -> Step[Path]:
    """The folder of the encoder, without a head; at smoke scale a tiny one for that corpus.

    It is part of the results, so that a machine without the original can go on from it.
    """

    which = ENCODERS.get(name, LARGE)

    def compute(results: Results) -> Path:
        if plan.scale == "smoke":
            return _tiny(plan, name, results.folder / "unfinished" / "tiny")
        places = [os.environ.get(WHERE), plan.data_root]
        for folder in [Path(place) / which for place in places if place is not None]:
            if (folder / "config.json").is_file():
                return folder
        made_by = "minilm" if which == LARGE else "onnx_encoder"
        raise InputError(
            f"The encoder {which} is not here: `python -m benchmarks.{made_by}` makes its folder "
            f"from a package; put it into the data root, or name the folder it is in by {WHERE}."
        )

    place = named(name, "encoder") if plan.scale == "smoke" else named("encoders", which)
    return Step(place, compute, {"scale": plan.scale, "encoder": which}, FOLDER)


def _tiny(plan: Plan, name: str, folder: Path) -> Path:
    source = plan.source(name)
    assert source.load is not None
    corpus = source.load(plan)
    words = sorted({word for document in corpus.splits["train"] for word in document.tokens})
    write_tiny_encoder(words, folder, polarity=corpus.lexicon)
    return folder


def max_pieces_of(plan: Plan) -> int:
    """Pieces that a model reads of a document."""
    return plan.pick(64, 256)


def pieces(plan: Plan, name: str) -> Step[EncodedCorpus]:
    """The corpus as pieces of the encoder's tokenizer, in the order of its own labels."""
    start, source, max_pieces = encoder(plan, name), plan.source(name), max_pieces_of(plan)

    def compute(results: Results) -> EncodedCorpus:
        if source.load is None:
            raise InputError(f"{source.title} has no documents to prepare.")
        corpus = source.load(plan)
        model = start_from(results[start], corpus.classes, max_pieces=max_pieces).model
        return model.encode(corpus)

    inputs = {"corpus": name, "scale": plan.scale, "source": source.inputs, "pieces": max_pieces}
    return Step(named(name, "corpus"), compute, inputs, PIECES, (start,))


def tuned(plan: Plan, name: str, strength: float, seed: int) -> Step[PretrainedClassifier]:
    """The encoder fine-tuned on the pieces under tying of that strength; 0 is plain."""
    text, start = pieces(plan, name), encoder(plan, name)
    config, max_pieces = TRAIN[plan.scale], max_pieces_of(plan)

    def compute(results: Results) -> PretrainedClassifier:
        corpus = results[text]
        model = start_from(results[start], corpus.classes, seed=seed, max_pieces=max_pieces).model
        # Seconds of training on a GPU: writing checkpoints would take longer than losing one.
        fit(model, corpus, config, Penalties(tying=strength), seed=seed, device=results.device)
        return model

    inputs = {"tying": strength, "seed": seed, "train": config.described()}
    place = named(name, f"tying={strength:g}", seed, "model")
    return Step(place, compute, inputs, CLASSIFIER, (text, start))


def strengths(plan: Plan) -> tuple[float, ...]:
    """Those of tying, 0 first."""
    return (0.0, *STRENGTHS[plan.scale])


def weighed(plan: Plan, name: str, strength: float, seed: int) -> Step[dict[str, Any]]:
    """What the strength costs and buys on dev: F1 with trained, flat and shuffled attention."""
    model = tuned(plan, name, strength, seed)
    text = model.needs[0]

    def compute(results: Results) -> dict[str, Any]:
        opened = results[model].to(results.device)
        positive = 1 if len(opened.classes) == 2 else None  # as in the paper
        found = on_dev(opened, results[text], seed, results.device, positive)
        return asdict(found.at(strength))

    return Step(model.beside("dev"), compute, {"strength": strength}, JSON, (model, text))


def chosen(plan: Plan, name: str) -> Step[dict[str, Any]]:
    """The strength that the remedy's rule keeps, by the means over seeds on dev."""
    dev = [weighed(plan, name, one, seed) for one in strengths(plan) for seed in plan.seeds]

    def compute(results: Results) -> dict[str, Any]:
        found: dict[float, list[Strength]] = {}
        for step in dev:
            one = Strength(**results[step])
            found.setdefault(one.strength, []).append(one)
        base, *tried = (_averaged(found[strength]) for strength in sorted(found))
        return asdict(choose(base.f1, tried))

    return Step(named(name, "chosen"), compute, {"rule": "remedy"}, JSON, tuple(dev))


def _averaged(seeds: Sequence[Strength]) -> Strength:
    def average(field: str) -> float:
        return sum(float(getattr(one, field)) for one in seeds) / len(seeds)

    return replace(seeds[0], **{field: average(field) for field in ("f1", "uniform", "permuted")})


def swept(plan: Plan, name: str, strength: float, seed: int) -> Step[Mapping[str, pd.DataFrame]]:
    """Decisions of all test documents with trained, flat and shuffled attention."""
    model = tuned(plan, name, strength, seed)
    return examined(model, ("substitution",), ("random",), 0, {}, seed, "substituted")


def audited(plan: Plan, name: str, model: str, seed: int) -> Step[Mapping[str, pd.DataFrame]]:
    """The rows of all audits of the plain or the tied model."""
    methods = plan.pick(QUICK, None)
    sizes: tuple[int, dict[str, int]] = AUDITED[name], {}
    base = tuned(plan, name, 0.0, seed)
    if model != TIED:
        return examined(base, AUDIT_NAMES, methods, *sizes, seed)
    among = [tuned(plan, name, one, seed) for one in STRENGTHS[plan.scale]]
    return examined(base, AUDIT_NAMES, methods, *sizes, seed, "tied", among, chosen(plan, name))


def examined(
    model: Step[PretrainedClassifier],
    audits: Sequence[str],
    methods: Sequence[str] | None,
    documents: int,
    fewer: Mapping[str, int],
    seed: int,
    tag: str = "rows",
    among: Sequence[Step[PretrainedClassifier]] = (),
    chooses: Step[dict[str, Any]] | None = None,
) -> Step[Mapping[str, pd.DataFrame]]:
    """The rows of each audit over some test documents; `fewer` says of which audits how many.

    Without names all methods that the model offers. Where a step `chooses` the strength, the model
    is taken from `among` others of the same seed by it.
    """
    text = model.needs[0]

    def compute(results: Results) -> Mapping[str, pd.DataFrame]:
        from heedful.audits import AUDITS
        from heedful.audits.examination import Portion, examine

        picked = model
        if chooses is not None:
            strength = results[chooses]["strength"]
            picked = next(one for one in among if one.inputs["tying"] == strength)
        test = results[text].splits["test"]
        # Every model is asked about the same documents with the same random orders: seed 0.
        opened, at_once = results[picked].to(results.device), Portion(tokens=TOKENS)
        among_these = {name: sampled(test.names, fewer.get(name, documents), 0) for name in audits}
        found = examine(
            opened,
            test,
            {name: AUDITS[name].rows for name in audits},
            methods,
            device=results.device,
            among=among_these,
            at_once=at_once,
        )
        for name in audits:
            if (whole := AUDITS[name].whole) is not None:
                some = subset(test, among_these[name])
                found[name] = whole(opened, some, 0, results.device, at_once)
        return found

    inputs: dict[str, Any] = {"audits": list(audits), "documents": documents, "fewer": dict(fewer)}
    inputs |= {"methods": None if methods is None else list(methods), "seed": seed}
    needs: tuple[Step[Any], ...] = (text, model) if chooses is None else (text, chooses, *among)
    return Step(model.beside(tag), compute, inputs, TABLES, needs)
