"""Steps of the erasure study: train a model, erase its attention.

A model's test set is one Parquet of small rows, easy to carry; what follows is computed from those
rows alone.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from heedful.reproduction import stages
from heedful.reproduction.results import Results, Step
from heedful.reproduction.study import Needs, Plan
from heedful.runs import Form
from heedful.studies.erasure.corpora import text
from heedful.studies.erasure.models import preset_of


def erased(plan: Plan, corpus: str, model: str, seed: int) -> Step[pd.DataFrame]:
    """What erasing attention does to every test document of one model: one small row each."""
    source, preset = text(plan, corpus), preset_of(plan, corpus, model)
    trained = stages.trained(plan, source, preset.recipe, seed, preset.train, **preset.model)

    def compute(results: Results) -> pd.DataFrame:
        from heedful.audits.examination import examine
        from heedful.studies.erasure.examination import METHODS, READ, erase

        opened, documents = results[trained].to(results.device), results[source].splits["test"]
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

    name = trained.beside("erased")
    return Step(name, compute, {"seed": seed, "split": "test"}, SMALL, (source, trained))


def needs(*models: str) -> Needs:
    """The rows of the named models; what an artifact or claim asks for."""

    def of(plan: Plan, corpus: str) -> list[Step[Any]]:
        return [erased(plan, corpus, model, seed) for model in models for seed in plan.seeds]

    return of


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
    return pd.read_parquet(path)


SMALL: Form[pd.DataFrame] = Form(".parquet", _save_small, _load_small)
"""A table of many rows that travels."""
