"""Steps of a study of fine-tuned encoders: the encoder, its pieces, models under tying, audits."""

from __future__ import annotations

import os
import shutil
from collections.abc import Mapping, Sequence
from dataclasses import asdict, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from heedful.corpora import EncodedCorpus, load_prepared
from heedful.corpora.prepared import write_prepared
from heedful.corpora.samples import sampled
from heedful.errors import InputError
from heedful.jobs.strengths import Strength, choose, on_dev
from heedful.models import Penalties
from heedful.models.huggingface import PretrainedClassifier, open_classifier
from heedful.models.huggingface.starting import start_from, write_classifier
from heedful.models.huggingface.tiny import write_tiny_encoder
from heedful.reproduction.results import Results, Step, named
from heedful.reproduction.study import Plan
from heedful.runs import JSON, TABLES, Form
from heedful.training import TrainConfig, fit

if TYPE_CHECKING:
    import pandas as pd

WHERE = "HEEDFUL_ENCODER"
"""The variable that names the encoder's folder where it is not `minilm` under the data root."""
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

    def compute(results: Results) -> Path:
        if plan.scale == "smoke":
            return _tiny(plan, name, results.folder / "unfinished" / "tiny")
        places = [
            os.environ.get(WHERE),
            None if plan.data_root is None else plan.data_root / "minilm",
        ]
        for folder in [Path(place) for place in places if place is not None]:
            if (folder / "config.json").is_file():
                return folder
        raise InputError(
            "The encoder is not here: `python -m benchmarks.minilm` makes its folder from a "
            f"package; put it into the data root as minilm, or name it by {WHERE}."
        )

    place = named(name, "encoder") if plan.scale == "smoke" else "encoder"
    return Step(place, compute, {"scale": plan.scale}, FOLDER)


def _tiny(plan: Plan, name: str, folder: Path) -> Path:
    source = plan.source(name)
    assert source.load is not None
    corpus = source.load(plan)
    words = sorted({word for document in corpus.splits["train"] for word in document.tokens})
    write_tiny_encoder(words, folder, polarity=corpus.lexicon)
    return folder


def pieces(plan: Plan, name: str, max_pieces: int) -> Step[EncodedCorpus]:
    """The corpus as pieces of the encoder's tokenizer, in the order of its own labels."""
    start, source = encoder(plan, name), plan.source(name)

    def compute(results: Results) -> EncodedCorpus:
        if source.load is None:
            raise InputError(f"{source.title} has no documents to prepare.")
        corpus = source.load(plan)
        model = start_from(results[start], corpus.classes, max_pieces=max_pieces).model
        return model.encode(corpus)

    inputs = {"corpus": name, "scale": plan.scale, "source": source.inputs, "pieces": max_pieces}
    return Step(named(name, "corpus"), compute, inputs, PIECES, (start,))


def tuned(
    plan: Plan,
    name: str,
    strength: float,
    seed: int,
    config: TrainConfig,
    max_pieces: int,
) -> Step[PretrainedClassifier]:
    """The encoder fine-tuned on the pieces under tying of that strength; 0 is plain."""
    text, start = pieces(plan, name, max_pieces), encoder(plan, name)

    def compute(results: Results) -> PretrainedClassifier:
        corpus = results[text]
        model = start_from(results[start], corpus.classes, seed=seed, max_pieces=max_pieces).model
        # Seconds of training on a GPU: writing checkpoints would take longer than losing one.
        fit(model, corpus, config, Penalties(tying=strength), seed=seed, device=results.device)
        return model

    inputs = {"tying": strength, "seed": seed, "train": config.described()}
    place = named(name, f"tying={strength:g}", seed, "model")
    return Step(place, compute, inputs, CLASSIFIER, (text, start))


def weighed(model: Step[PretrainedClassifier], strength: float, seed: int) -> Step[dict[str, Any]]:
    """What the strength costs and buys on dev: F1 with trained, flat and shuffled attention."""
    text = model.needs[0]

    def compute(results: Results) -> dict[str, Any]:
        opened = results[model].to(results.device)
        positive = 1 if len(opened.classes) == 2 else None  # as in the paper
        found = on_dev(opened, results[text], seed, results.device, positive)
        return asdict(found.at(strength))

    return Step(_beside(model, "dev"), compute, {"strength": strength}, JSON, (model, text))


def chosen(plan: Plan, name: str, dev: Sequence[Step[dict[str, Any]]]) -> Step[dict[str, Any]]:
    """The strength that the remedy's rule keeps, by the means over seeds on dev."""

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


def substituted(
    model: Step[PretrainedClassifier], seed: int, documents: int
) -> Step[Mapping[str, pd.DataFrame]]:
    """Decisions of test documents with trained, flat and shuffled attention."""
    return examined(model, ("substitution",), ("random",), documents, {}, seed, "substituted")


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
        return examine(
            results[picked].to(results.device),
            test,
            {name: AUDITS[name].rows for name in audits},
            methods,
            device=results.device,
            among={name: sampled(test, fewer.get(name, documents), 0) for name in audits},
            at_once=Portion(tokens=TOKENS),
        )

    inputs: dict[str, Any] = {"audits": list(audits), "documents": documents, "fewer": dict(fewer)}
    inputs |= {"methods": None if methods is None else list(methods), "seed": seed}
    needs: tuple[Step[Any], ...] = (text, model) if chooses is None else (text, chooses, *among)
    return Step(_beside(model, tag), compute, inputs, TABLES, needs)


def _beside(step: Step[Any], name: str) -> str:
    return named(*step.name.split("/")[:-1], name)
