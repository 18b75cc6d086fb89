"""The Stanford Sentiment Treebank, from its trees."""

from __future__ import annotations

import re
from collections import Counter
from pathlib import Path

import numpy as np

from heedful.corpora.documents import Corpus, Document
from heedful.corpora.entries import CATALOGUE
from heedful.corpora.recipes import Wanted, arrange
from heedful.corpora.root import expect, find, lines_of
from heedful.corpora.tokens import tokenise
from heedful.errors import InputError

ENTRY = CATALOGUE["sst"]
_LEAF = re.compile(r"\((\d) ([^()\s]+)\)")
_BRACKETS = {"-LRB-": "(", "-RRB-": ")"}


def _document(id: str, tree: str, label: int, rule: str) -> Document:
    """One sentence; each token has the label of the leaf that it is (part of).

    The treebank's tokens are taken as they are; under any rule but `whitespace` the leaves are
    joined, brackets deleted, and cut again.
    """
    leaves = [(int(mark), word.replace("\\/", "/")) for mark, word in _LEAF.findall(tree)]
    if rule == "whitespace":
        leaves = [(mark, _BRACKETS.get(word, word)) for mark, word in leaves]
    else:
        leaves = [(mark, word) for mark, word in leaves if word not in _BRACKETS]
    text = " ".join(word for _, word in leaves)
    tokens, spans = tokenise(text, rule)
    ends = np.cumsum([len(word) + 1 for _, word in leaves])
    marks = np.array([mark for mark, _ in leaves], dtype=np.int64)
    return Document(
        id=id,
        text=text,
        tokens=tokens,
        spans=spans,
        label=label,
        sentence=np.zeros(len(tokens), dtype=np.int32),
        word_labels=marks[np.searchsorted(ends, spans[:, 0], side="right")],
    )


def read_sst(wanted: Wanted) -> Corpus:
    """SST in 5 classes, or in 2 with neutral sentences dropped; `word_labels` are 0 to 4."""
    # The plain reading has nothing to cut: the treebank comes in tokens.
    rule = "whitespace" if wanted.recipe.tokeniser == "words" else wanted.recipe.tokeniser
    given: dict[str, list[Document]] = {}
    for file in ENTRY.files:
        split = Path(file).name.split(".")[0]
        path = find(wanted.root, file, ENTRY.source)
        trees = lines_of(path)
        if any(not re.match(r"\([0-4] ", tree) for tree in trees):
            raise InputError(f"{path}: expected one labelled tree in each line.")
        found = Counter(f"sentences of root label {tree[1]}" for tree in trees)
        expected = {f"sentences of root label {k}": n for k, n in enumerate(ENTRY.counts[split])}
        expect(path, found, expected)
        labels = [int(tree[1]) for tree in trees]
        if wanted.task == "2":
            labels = [-1 if label == 2 else int(label > 2) for label in labels]
        given[split] = [
            _document(f"{split}-{number}", tree, label, rule)
            for number, (tree, label) in enumerate(zip(trees, labels, strict=True))
            if label >= 0
        ]
    splits, notes = arrange(given, wanted.recipe, wanted.seed)
    classes = ENTRY.names[wanted.task]
    return Corpus(
        name=wanted.name, classes=classes, splits=splits, notes=dict(+notes), tokeniser=rule
    )
