"""Steps of the erasure study: train all seeds of a model side by side, erase their attention.

What is kept of a model is one small row per test document and one line per epoch, easy to carry;
tables, figures and claims are computed from those alone. The weights are not kept.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from heedful.corpora.samples import sampled, subset
from heedful.models import build, parse
from heedful.models.recipe import described
from heedful.reproduction.results import Results, Step
from heedful.reproduction.study import Needs, Plan
from heedful.runs import TABLES, Form
from heedful.studies.erasure.corpora import text
from heedful.studies.erasure.models import preset_of, schedule_of

TESTED = 3_000
"""At most so many test documents are erased, the same for every model: what is left undecided
hangs on seeds, of which there are few, and not on documents."""
LOGGED = ("step", "epoch", "loss", "dev_loss", "dev_accuracy", "dev_entropy", "learning_rate")
"""What is kept of an evaluation while training."""
Tables = Mapping[str, pd.DataFrame]


def erased(plan: Plan, corpus: str, model: str) -> Step[Tables]:
    """All seeds of one model, trained and erased.

    `rows` has a row for each seed and test document (`examination.erase`), `log` one for each seed
    and evaluation while training.
    """
    source, preset = text(plan, corpus), preset_of(plan, corpus, model)
    recipe, schedule = parse(preset.recipe, **preset.model), schedule_of(plan)
    seeds = plan.seeds

    def compute(results: Results) -> Tables:
        from heedful.audits.examination import examine
        from heedful.studies.erasure.examination import METHODS, READ, erasing
        from heedful.training.ragged import fit_ragged, mean_logits

        read, device = results[source], results.device
        models = [
            build(recipe.model, read.vocabulary, read.classes, seed, read.vectors, read.tokeniser)
            for seed in seeds
        ]
        config = schedule.of(preset.train, read.splits["train"])
        folder = results.scratch(step)
        histories = fit_ragged(models, read, config, seeds=seeds, device=device, folder=folder)
        left = mean_logits(models, read.splits["train"], device)
        tested = read.splits["test"]
        documents = subset(tested, sampled(tested.names, TESTED, 0))
        rows, log = [], []
        for seed, trained, history, mean in zip(seeds, models, histories, left, strict=True):
            found = examine(
                trained, documents, {"erased": erasing(mean)}, METHODS,
                seed=seed, device=device, at_once=READ,
            )  # fmt: skip
            # By name: the order of batches depends on lengths, which nobody should have to know.
            ordered = found["erased"].sort_values("instance", ignore_index=True)
            rows.append(ordered.assign(seed=np.int16(seed)))
            log += [{"seed": seed} | {key: one[key] for key in LOGGED} for one in history.entries]
        return {"rows": pd.concat(rows, ignore_index=True), "log": pd.DataFrame(log)}

    inputs = {
        "recipe": str(recipe), "model": described(recipe.model), "seeds": list(seeds),
        "train": preset.train.described(), "schedule": schedule.described(), "tested": TESTED,
    }  # fmt: skip
    step = Step(source.beside(str(recipe), "erased"), compute, inputs, SMALL, (source,))
    return step


def needs(*models: str) -> Needs:
    """The rows of the named models; what an artifact or claim asks for."""

    def of(plan: Plan, corpus: str) -> list[Step[Any]]:
        return [erased(plan, corpus, model) for model in models]

    return of


def _save_small(folder: Path, tables: Tables) -> None:
    """Floats split into byte planes, whose high ones compress; the rest by dictionaries."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    for name, table in tables.items():
        floats = [str(one) for one in table if table[one].dtype == np.float32]
        others = [str(one) for one in table if str(one) not in floats]
        pq.write_table(
            pa.Table.from_pandas(table, preserve_index=False),
            folder / f"{name}.parquet",
            compression="zstd",
            compression_level=15,
            use_dictionary=others,
            use_byte_stream_split=floats,
        )


SMALL: Form[Tables] = Form("", _save_small, TABLES.load)
"""Tables of many rows that travel."""
