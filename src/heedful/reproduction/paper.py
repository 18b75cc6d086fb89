"""What a study says in words and what its paper printed, read from the `paper.toml` beside it.

    reference = "…"                    # the paper
    [[deviation]]                      # text, and the scale where it holds at one alone
    [symbols]                          # the paper's symbols, each in a sentence
    [stands_for]                       # our corpus = "the published one"
    [corpora.sst]                      # title, reader, stand_in_for, scales, deviation
    [artifacts.T1]                     # title, where, kind, paper
    [claims.ERA-1]                     # sentence, where, statistic, side, paper, over
    [claims.ERA-2.side]                # one for each part: "{HAN|FLAN}: size" names two of them
    [printed]                          # tables as `heedful.reproduction.tables.numbers` reads them

How a claim is measured and an artifact made stands in the study's modules, under the same ids.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import product
from pathlib import Path
from typing import TYPE_CHECKING, Any

from heedful.corpora import Corpus, load_corpus
from heedful.reproduction.ledger import Measured, Sides, sides_of
from heedful.reproduction.study import SCALES, Artifact, Claim, Made, Needs, Plan, Source, nothing
from heedful.reproduction.tables import numbers

if TYPE_CHECKING:
    import pandas as pd

    from heedful.reproduction.view import View, Views


@dataclass(frozen=True)
class Paper:
    """The words and printed numbers of one study."""

    said: Mapping[str, Any]

    @classmethod
    def beside(cls, module: str) -> Paper:
        """That of the folder in which a module lies: `Paper.beside(__file__)`."""
        return cls(tomllib.loads((Path(module).parent / "paper.toml").read_text("utf-8")))

    @property
    def reference(self) -> str:
        """The paper, as one cites it."""
        return str(self.said["reference"])

    @property
    def stands_for(self) -> Mapping[str, str]:
        """Which corpus of the paper each of ours stands for, or is."""
        found: Mapping[str, str] = self.said.get("stands_for", {})
        return found

    def deviations(self, plan: Plan, **values: object) -> tuple[str, ...]:
        """Where the whole reproduction differs at the plan's scale; `values` fill in numbers."""
        given = [one for one in self.said["deviation"] if one.get("scale") in (None, plan.scale)]
        return tuple(one["text"].format(**values) for one in given)

    @property
    def readers(self) -> Mapping[str, str]:
        """How the real corpora are asked for, by our names."""
        named = self.said["corpora"].items()
        return {name: said["reader"] for name, said in named if "reader" in said}

    def source(
        self,
        name: str,
        load: Callable[[Plan], Corpus] | None = None,
        inputs: Mapping[str, Any] | None = None,
    ) -> Source:
        """The corpus of that name, read so, or from the data root by its `reader`."""
        said = dict(self.said["corpora"][name])
        reader = said.pop("reader", None)
        if reader is not None and load is None:
            load = partial(_from_root, reader)
        scales = tuple(said.pop("scales", SCALES))
        return Source(name, load=load, inputs=inputs or {}, scales=scales, **said)

    def artifact(
        self,
        id: str,
        make: Callable[[Views], Made],
        needs: Needs = nothing,
        corpora: tuple[str, ...] | None = None,
    ) -> Artifact:
        """The artifact of that id, made so."""
        return Artifact(id, make=make, needs=needs, corpora=corpora, **self.said["artifacts"][id])

    def claim(
        self,
        id: str,
        measure: Callable[[View], Measured] | None,
        needs: Needs = nothing,
        corpora: tuple[str, ...] | None = None,
        measure_all: Callable[[Views], Measured] | None = None,
        seeds: int | Callable[[Plan, str], int] | None = None,
    ) -> Claim:
        """The claim of that id, measured so; values of the paper's corpora are those of ours."""
        said = dict(self.said["claims"][id])
        said["side"] = _sides(said["side"])
        if self.stands_for and not isinstance(said["paper"], str):
            theirs = said["paper"]
            said["paper"] = {
                ours: theirs[corpus] for ours, corpus in self.stands_for.items() if corpus in theirs
            }
        return Claim(
            id, measure=measure, needs=needs, corpora=corpora, measure_all=measure_all, seeds=seeds,
            **said,
        )  # fmt: skip

    def printed(self, name: str, keys: Sequence[str]) -> pd.DataFrame:
        """A printed table; the columns in `keys` stay text."""
        return numbers(self.said["printed"][name], keys)


def _sides(text: str | Mapping[str, str]) -> Sides:
    if isinstance(text, str):
        return sides_of(text)
    return sides_of({part: side for name, side in text.items() for part in named_parts(name)})


def named_parts(name: str) -> list[str]:
    """The parts that a name with alternatives stands for, in their order.

    >>> named_parts("{HAN|FLAN}{rnn|conv}: size")
    ['HANrnn: size', 'HANconv: size', 'FLANrnn: size', 'FLANconv: size']
    """
    pieces = re.split(r"{(.*?)}", name)
    alternatives = [[one] if at % 2 == 0 else one.split("|") for at, one in enumerate(pieces)]
    return ["".join(chosen) for chosen in product(*alternatives)]


def _from_root(reader: str, plan: Plan) -> Corpus:
    return load_corpus(reader, plan.data_root)
