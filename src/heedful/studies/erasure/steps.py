"""Steps of a study that erases attention: prepare a corpus, train a model, erase its attention.

Each is resumable and small enough to carry: a corpus is ids and word vectors as bytes, a model's
test set is one Parquet of small rows. What follows is computed from those rows alone.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from heedful.corpora import Corpus, Encoded, EncodedCorpus, Vocabulary, load_prepared, prepare
from heedful.errors import InputError
from heedful.reproduction import stages
from heedful.reproduction.results import Results, Step, named
from heedful.reproduction.study import Plan
from heedful.runs import Form
from heedful.statistics import draws
from heedful.statistics.draws import Draws

if TYPE_CHECKING:
    import pandas as pd

    from heedful.models import AttentionClassifier
    from heedful.studies.erasure.examination import Erased
    from heedful.training.presets import Preset

_TEXT, _VECTORS = "text", "vectors.safetensors"


def corpus_step(
    plan: Plan, corpus: str, min_count: int = 5, passes: int = 0, dim: int = 200
) -> Step[EncodedCorpus]:
    """The corpus as ids, with word vectors trained on it where `passes` is above 0.

    The vocabulary holds the words seen `min_count` times in train and dev together; documents
    without words are dropped, longer ones than 2,000 tokens cut, both counted (erasure.md §2.7).
    """
    source = plan.source(corpus)

    def compute(results: Results) -> Corpus:
        if source.load is None:
            raise InputError(f"{source.title} has no documents to prepare.")
        return without_empty(source.load(plan))

    def save(folder: Path, read: Corpus) -> None:
        from safetensors.numpy import save_file

        from heedful.corpora.pretraining import pack, train_vectors

        seen = [*read.splits["train"], *read.splits.get("dev", ())]
        words = Vocabulary.of(seen, min_count)
        encoded = prepare(read, folder / _TEXT, vocabulary=words)
        if passes:
            vectors = train_vectors(encoded, dim, passes)
            save_file(pack(vectors), str(folder / _VECTORS))

    def load(folder: Path) -> EncodedCorpus:
        from safetensors.numpy import load_file

        from heedful.corpora.pretraining import unpack

        encoded = load_prepared(folder / _TEXT)
        if not (folder / _VECTORS).is_file():
            return encoded
        return replace(encoded, vectors=unpack(load_file(str(folder / _VECTORS))))

    inputs = {
        "corpus": corpus,
        "scale": plan.scale,
        "source": source.inputs,
        "min_count": min_count,
        "vectors": {"passes": passes, "dim": dim} if passes else None,
    }
    # What goes in is a corpus with its text, what comes back is its ids: hence Any.
    form: Form[Any] = Form("", save, load)
    return Step(named(corpus, "corpus"), compute, inputs, form)


def without_empty(corpus: Corpus) -> Corpus:
    """The corpus without documents that have no words, which are counted."""
    splits = {name: [d for d in part if d.tokens] for name, part in corpus.splits.items()}
    dropped = sum(len(corpus.splits[name]) - len(part) for name, part in splits.items())
    notes = {"documents without words, dropped": dropped} if dropped else {}
    return replace(corpus, splits=splits, notes={**corpus.notes, **notes})


def counts_step(text: Step[EncodedCorpus], name: str) -> Step[Any]:
    """Sizes of a corpus: documents, classes, words and sentences per document, what was dropped."""

    def compute(results: Results) -> dict[str, Any]:
        corpus = results[text]
        parts = corpus.splits.values()
        words = np.concatenate([part.lengths for part in parts])
        sentences = np.concatenate([sentence_counts(part) for part in parts])
        sizes = {split: len(part) for split, part in corpus.splits.items()}
        return {
            "words": float(words.mean()),
            "words s.d.": float(words.std(ddof=1)),
            "sentences": float(sentences.mean()),
            "sentences s.d.": float(sentences.std(ddof=1)),
            "train+dev": sizes["train"] + sizes.get("dev", 0),
            "test": sizes["test"],
            "classes": list(corpus.classes),
            "vocabulary": len(corpus.vocabulary),
            "one sentence": int((sentences == 1).sum()),
            "one word": int((words == 1).sum()),
            "notes": dict(corpus.notes),
        }

    return Step(named(name, "counts"), compute, {}, needs=(text,))


def sentence_counts(part: Encoded) -> np.ndarray:
    """Sentences of each document: how often the sentence number changes, and one."""
    changes = np.zeros(len(part.ids), dtype=np.int64)
    changes[1:] = part.sentence[1:] != part.sentence[:-1]
    changes[part.starts[:-1]] = 1
    return np.add.reduceat(changes, part.starts[:-1])


def preset_step(
    plan: Plan, text: Step[EncodedCorpus], preset: Preset, seed: int
) -> Step[AttentionClassifier]:
    """A preset's model trained on a prepared corpus."""
    return stages.trained(plan, text, preset.recipe, seed, preset.train, **preset.model)


def erased_step(
    text: Step[EncodedCorpus], model: Step[AttentionClassifier], seed: int, split: str = "test"
) -> Step[pd.DataFrame]:
    """What erasing attention does to every document of a split: one small row each."""

    def compute(results: Results) -> pd.DataFrame:
        from heedful.audits.examination import examine
        from heedful.studies.erasure.examination import METHODS, READ, erase

        opened, documents = results[model].to(results.device), results[text].splits[split]
        rows = examine(
            opened,
            documents,
            {"erased": erase},
            METHODS,
            seed=seed,
            device=results.device,
            at_once=READ,
        )
        # By name: the order of batches depends on lengths, which nobody should have to know.
        return rows["erased"].sort_values("instance", ignore_index=True)

    name = named(*model.name.split("/")[:-1], "erased")
    return Step(name, compute, {"seed": seed, "split": split}, SMALL, (text, model))


def _save_small(path: Path, table: pd.DataFrame) -> None:
    """Floats split into byte planes, whose high ones compress; the rest by dictionaries."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    floats = [str(name) for name in table if table[name].dtype == np.float32]
    others = [str(name) for name in table if str(name) not in floats]
    pq.write_table(
        pa.Table.from_pandas(table, preserve_index=False),
        path,
        compression="zstd",
        compression_level=15,
        use_dictionary=others,
        use_byte_stream_split=floats,
    )


def _load_small(path: Path) -> pd.DataFrame:
    import pandas as pd

    return pd.read_parquet(path)


SMALL: Form[pd.DataFrame] = Form(".parquet", _save_small, _load_small)
"""A table of many rows that travels."""


def drawn(models: Sequence[Erased], statistic: Callable[[Erased], Draws]) -> Draws:
    """A statistic of one architecture from the rows of each of its seeds."""
    return draws.over_seeds([statistic(one) for one in models])
