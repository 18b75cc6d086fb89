"""Which token rule gives the mean lengths and vocabularies of the faithful study's Table 5?

    python -m benchmarks.token_rules DATA docs/results/faithful/token-rules.csv

Every rule on every corpus of the table that is at hand, without filters of length: mean length over
train and over all texts, words of train seen once, twice and three times, words of all texts, and
the share of the tokens of train that have a word vector. One thread, a minute or two.
"""

from __future__ import annotations

import gzip
import re
import string
import sys
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path

import pandas as pd

from heedful.corpora import load_corpus
from heedful.corpora.tokens import TOKENISERS
from heedful.reproduction.stages import GLOVE
from heedful.studies.faithful.printed import CORPORA, PAPER

NAMES = ("sst", "ag", "ng", "imdb")
HYPHENS = re.compile(r"[^\W_]+(?:['’-][^\W_]+)*")


def _stripped(text: str) -> Iterable[str]:
    words = (word.strip(string.punctuation) for word in text.lower().split())
    return [word for word in words if word]


RULES: dict[str, Callable[[str], Iterable[str]]] = {
    name: lambda text, rule=rule: rule(text).tokens  # type: ignore[misc]
    for name, rule in TOKENISERS.items()
}
RULES["hyphens kept too"] = lambda text: HYPHENS.findall(text.lower())
RULES["white space, marks stripped"] = _stripped


def counted(corpus: str, root: Path, known: frozenset[str]) -> list[dict[str, object]]:
    """A row for each rule."""
    given = load_corpus(PAPER.readers[corpus], root)
    texts = {split: [one.text for one in part] for split, part in given.splits.items()}
    paper = CORPORA.set_index("corpus").loc[corpus]
    return [
        {"corpus": corpus, "rule": name}
        | _numbers(rule, texts, known)
        | {"length, paper": paper["length"], "words, paper": paper["vocabulary"]}
        for name, rule in RULES.items()
    ]


def _numbers(
    rule: Callable[[str], Iterable[str]], texts: dict[str, Sequence[str]], known: frozenset[str]
) -> dict[str, float]:
    counts = {
        split: Counter(word for text in part for word in rule(text))
        for split, part in texts.items()
    }
    train, every = counts["train"], sum(counts.values(), Counter[str]())
    documents = sum(map(len, texts.values()))
    return {
        "length, train": round(train.total() / len(texts["train"]), 2),
        "length, all": round(every.total() / documents, 2),
        **{f"words of train, {n} times": sum(c >= n for c in train.values()) for n in (1, 2, 3, 5)},
        "words of all": len(every),
        "tokens with a vector": round(
            sum(c for word, c in train.items() if word in known) / train.total(), 4
        ),
    }


if __name__ == "__main__":
    root, out = map(Path, sys.argv[1:])
    with gzip.open(root / GLOVE, "rt", encoding="utf-8") as file:
        words = frozenset(line.partition(" ")[0] for line in file)
    table = pd.DataFrame([row for name in NAMES for row in counted(name, root, words)])
    table.to_csv(out, index=False)
    print(table.to_string())
