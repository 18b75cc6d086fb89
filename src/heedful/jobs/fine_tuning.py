"""Fine-tune a Hugging Face classifier, from its folder and a corpus to a run folder."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, replace
from pathlib import Path

from heedful.corpora import Corpus, EncodedCorpus
from heedful.errors import InputError
from heedful.jobs.decider import device_of, read_by, repeatable
from heedful.jobs.settings import Settings, WordSettings
from heedful.jobs.sources import DocumentSource
from heedful.jobs.training_run import kept
from heedful.models import Penalties
from heedful.models.huggingface import PretrainedClassifier, open_classifier
from heedful.models.huggingface.opening import PREFIX
from heedful.models.huggingface.starting import save_classifier, start_from
from heedful.models.recipe import PENALTIES, penalised, reductions, with_settings
from heedful.models.saved import weights_digest
from heedful.training import FINE_TUNING, History, Observer, evaluate, fit

DEFAULT = Settings(train=FINE_TUNING)


def fine_tune(
    start: str | Path,
    corpus: Corpus | EncodedCorpus,
    out: str | Path | None = None,
    *,
    settings: Settings = DEFAULT,
    penalties: Penalties = Penalties(),
    seed: int = 0,
    device: str = "auto",
    deterministic: bool = False,
    observers: Sequence[Observer] = (),
    source: DocumentSource | None = None,
    show: bool = False,
    trust_remote_code: bool = False,
) -> PretrainedClassifier:
    """The model of a folder or `hf:NAME`, fine-tuned on a corpus; with `out`, kept in a run folder.

    An encoder without a head, or with one for other labels, gets a fresh head for the corpus's.
    The run folder's `model` is a folder of `transformers`; the run is gone on with, or its model
    given back, as in `train`. Of the settings a model from elsewhere takes [train], [penalties] and
    max_tokens of [words], the pieces that are read of a text.
    """
    _refuse(settings, corpus)
    penalties = replace(penalties, **settings.penalties)
    target = device_of(device)
    model, head = start_from(
        start,
        corpus.classes,
        seed=seed,
        max_pieces=settings.words.max_tokens,
        trust_remote_code=trust_remote_code,
    )
    name = model.recipe.removeprefix(PREFIX)
    is_folder = Path(name).is_dir()
    title = penalised(f"{PREFIX}{Path(name).name if is_folder else name}", penalties)
    model.recipe = title
    encoded = read_by(model, corpus)

    def learn(folder: Path | None) -> tuple[PretrainedClassifier, History]:
        with repeatable(deterministic):
            history = fit(
                model, encoded, settings.train, penalties,
                seed=seed, device=target, observers=observers, folder=folder, show=show,
            )  # fmt: skip
        return model.eval(), history

    return kept(
        out,
        {
            "recipe": title,
            "model": {"start": weights_digest(model), "head": head},
            "train": settings.train.described(),
            "words": asdict(settings.words),
            "penalties": reductions(penalties),
        },
        encoded,
        learn=learn,
        save=save_classifier,
        reopen=lambda folder: open_classifier(
            folder, device=target, trust_remote_code=trust_remote_code
        ),
        measure=evaluate,
        seed=seed,
        device=target,
        notes=dict(encoded.notes),
        source=source,
        start=str(Path(name).resolve()) if is_folder else f"{PREFIX}{name}",
    )


def objective_of(text: str) -> Penalties:
    """The penalties that an objective such as `tying:3` stands for; none without text."""
    if not text:
        return Penalties()
    name, _, strength = text.partition(":")
    try:
        value = float(strength)
    except ValueError:
        value = -1.0
    if PENALTIES.get(name) != "tying" or value < 0:
        raise InputError(
            f"An objective for a model of transformers reads tying:STRENGTH, such as tying:3; got "
            f"{text!r}."
        )
    return with_settings(Penalties, {"tying": value})


def _refuse(settings: Settings, corpus: Corpus | EncodedCorpus) -> None:
    if settings.model:
        raise InputError(
            f"A model of transformers has its own sizes; leave {', '.join(settings.model)} out of "
            "[model]."
        )
    if replace(settings.words, max_tokens=WordSettings().max_tokens) != WordSettings():
        raise InputError(
            "A model of transformers knows its own pieces of words; of [words] only max_tokens, "
            "the pieces read of a text, can be set."
        )
    if "masked_over" in settings.penalties:
        raise InputError(
            "A model of transformers has no masked words to guess; leave masked_over out of "
            "[penalties]."
        )
    if len(corpus.classes) < 2:
        raise InputError(f"{corpus.name} has one label, {corpus.classes[0]}: nothing to decide.")
