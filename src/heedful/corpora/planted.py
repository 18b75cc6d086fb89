"""Planted reviews: a generated corpus whose evidence is known by construction.

A document reviews one film, restaurant or product. Some clauses judge it; others carry valence
words that do not bear on the label (someone else's view, another thing, a hope); the rest are
neutral.
The evidence of a document is the valence words of its judgements with their negations and
intensifiers, and the label follows from these words alone:

1. read the evidence words in order; each valence word has its value in the lexicon (-3 to 3);
2. an intensifier multiplies the next valence word, a negation turns its sign;
3. the score is the mean over the valence words;
4. 2 classes: the sign of the score. 3 classes: `mixed` if it lies within ±0.6. 5 classes: besides,
   `very` if it lies beyond ±1.7.

Scores keep a distance of 0.1 from these bounds (0.4 from zero in 2 classes). A bag of words does
well but not perfectly, because distractors use the same words and negations turn them.
"""

from __future__ import annotations

import random
from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from typing import NamedTuple

import numpy as np

from heedful.corpora.documents import Corpus, Document
from heedful.corpora.planted_words import (
    BEFORE,
    DISTRACTORS,
    DOMAINS,
    FILLERS,
    INTENSIFIERS,
    JUDGEMENTS,
    KINDS,
    LEXICON,
    NEGATIONS,
    NEUTRAL,
    PARTS,
    SUPPORT,
)
from heedful.errors import InputError, unknown

CLASSES: dict[int, tuple[str, ...]] = {
    2: ("negative", "positive"),
    3: ("negative", "mixed", "positive"),
    5: ("very negative", "negative", "mixed", "positive", "very positive"),
}
SIZES: Mapping[str, int] = {"train": 2_400, "dev": 400, "test": 800}
BOUNDS: dict[int, tuple[float, ...]] = {2: (0.0,), 3: (-0.6, 0.6), 5: (-1.7, -0.6, 0.6, 1.7)}
MARGINS: dict[int, float] = {2: 0.4, 3: 0.1, 5: 0.1}
LENGTHS = ("long", "short")

_POOLS = {
    kind: {sign: [w for w, v in words.items() if v * sign > 0] for sign in (-1, 1)}
    for kind, words in KINDS.items()
}
_CAPITALISED = {"i", *FILLERS["day"], *FILLERS["month"]}
_KINDS = ("adj", "adj", "adj", "adj", "noun", "verb", "adv")


class Opinion(NamedTuple):
    """One judgement before it is put into words."""

    kind: str
    word: str
    intensifier: str | None
    is_negated: bool

    @property
    def value(self) -> float:
        """What the judgement adds to the score."""
        factor = INTENSIFIERS[self.intensifier] if self.intensifier else 1.0
        return LEXICON[self.word] * factor * (-1 if self.is_negated else 1)


class Word(NamedTuple):
    """A token of a clause and whether it carries the label."""

    text: str
    is_evidence: bool = False


def score(evidence: Sequence[str]) -> float:
    """The mean value of the valence words among the evidence words, by the rule above.

    >>> score(["not", "good", "very", "dull"])
    -1.5
    """
    values, factor = [], 1.0
    for word in evidence:
        if word in NEGATIONS:
            factor = -factor
        elif word in INTENSIFIERS:
            factor *= INTENSIFIERS[word]
        else:
            values.append(factor * LEXICON[word])
            factor = 1.0
    return sum(values) / len(values)


@cache
def graded(word: str) -> int:
    """How a word alone would be labelled, 0 (very negative) to 4 (very positive); 2 for most."""
    value = LEXICON.get(word, 0.0)
    return sum(value > bound for bound in (-1.75, -0.25, 0.25, 1.75))


def _opinion(rng: random.Random, sign: int) -> Opinion:
    """A judgement of the given sign; one in eight says so by negating the opposite."""
    kind = rng.choice(_KINDS)
    is_negated = rng.random() < 0.125
    word = rng.choice(_POOLS[kind][-sign if is_negated else sign])
    intensifier = None
    if BEFORE[kind] and not is_negated and rng.random() < 0.3:
        intensifier = rng.choice(BEFORE[kind])
    return Opinion(kind, word, intensifier, is_negated)


def _opinions(rng: random.Random, classes: int, label: int, is_short: bool) -> list[Opinion]:
    """Judgements whose mean value lies in the label's band, away from its bounds."""
    middle = (classes - 1) / 2
    leaning = 0.5 + 0.45 * (label > middle) - 0.45 * (label < middle)
    bounds, margin = BOUNDS[classes], MARGINS[classes]
    while True:
        count = rng.choice((1, 1, 2) if is_short else (2, 3, 3, 4, 5))
        opinions = [_opinion(rng, 1 if rng.random() < leaning else -1) for _ in range(count)]
        mean = sum(opinion.value for opinion in opinions) / count
        if sum(mean > bound for bound in bounds) != label:
            continue
        if all(abs(mean - bound) >= margin for bound in bounds):
            return opinions


class _Writer:
    """Puts judgements, distractors and neutral remarks about one thing into words."""

    def __init__(self, rng: random.Random) -> None:
        self.rng = rng
        self.domain = rng.choice(tuple(DOMAINS))
        self.thing = rng.choice(DOMAINS[self.domain])

    def _fill(self, slot: str) -> str:
        if slot == "thing":
            return self.thing
        if slot == "part":
            return self.rng.choice(PARTS[self.domain])
        if slot == "other":
            return self.rng.choice([t for t in DOMAINS[self.domain] if t != self.thing])
        return self.rng.choice(FILLERS[slot])

    def clause(self, pattern: str, opinion: Opinion | None = None) -> list[Word]:
        """The words of a pattern; those of an opinion are evidence, other slots are not."""
        words: list[Word] = []
        for piece in pattern.split():
            slot = piece[1:-1] if piece[0] == "{" else ""
            if slot == "not":
                self._negate(words, opinion)
            elif slot in KINDS and opinion is not None:
                if opinion.intensifier:
                    words.append(Word(opinion.intensifier, True))
                words.append(Word(opinion.word, True))
            elif slot in KINDS:
                words.append(Word(self.rng.choice(_POOLS[slot][self.rng.choice((-1, 1))])))
            elif slot:
                words.extend(Word(part) for part in self._fill(slot).split())
            else:
                words.append(Word(piece))
        return _with_articles(words)

    def _negate(self, words: list[Word], opinion: Opinion | None) -> None:
        """Adds the negation, or takes back a `do` that only stood there to carry one."""
        before = words[-1].text
        if opinion is None or not opinion.is_negated:
            if before in SUPPORT:
                words.pop()
            return
        carried = ("not", "n't") if before in SUPPORT else ("not", "n't", "never", "hardly")
        if before == "would":
            carried = ("not", "never")
        words.append(Word(self.rng.choice(carried), True))

    def judgement(self, opinion: Opinion) -> list[Word]:
        """A clause that states the opinion."""
        patterns = JUDGEMENTS[opinion.kind]
        if opinion.is_negated:
            patterns = tuple(pattern for pattern in patterns if "{not}" in pattern)
        return self.clause(self.rng.choice(patterns), opinion)

    def distractor(self) -> list[Word]:
        """A clause with a valence word that does not count."""
        return self.clause(self.rng.choice(DISTRACTORS))

    def neutral(self) -> list[Word]:
        """A clause without valence words."""
        return self.clause(self.rng.choice(NEUTRAL))

    def short(self, opinions: list[Opinion]) -> list[list[Word]]:
        """One sentence: the judgements, then perhaps a remark that does not count."""
        clauses = [self.judgement(opinion) for opinion in opinions]
        words = clauses[0]
        for opinion, clause in zip(opinions[1:], clauses[1:], strict=True):
            agrees = opinion.value * opinions[0].value > 0
            words = [*words, Word(","), Word("and" if agrees else "but"), *clause]
        chance = self.rng.random()
        if chance < 0.3:
            words = [*words, Word(","), Word("though"), *self.distractor()]
        elif chance < 0.6:
            words = [*self.neutral(), Word(","), Word("and"), *words]
        return [words]

    def long(self, opinions: list[Opinion]) -> list[list[Word]]:
        """Several sentences in random order; sometimes two judgements share one."""
        rng = self.rng
        sentences = [self.judgement(opinion) for opinion in opinions]
        if len(opinions) > 2 and rng.random() < 0.4:
            first, second = sentences[:2]
            agrees = opinions[0].value * opinions[1].value > 0
            joint = Word("and") if agrees else Word("but")
            sentences[:2] = [[*first, Word(","), joint, *second]]
        sentences += [self.distractor() for _ in range(rng.choice((0, 1, 1, 2)))]
        sentences += [self.neutral() for _ in range(rng.choice((1, 1, 2, 3)))]
        rng.shuffle(sentences)
        return sentences


def _with_articles(words: list[Word]) -> list[Word]:
    """The words with `a` written `an` before a vowel."""
    following = [word.text for word in words[1:]] + [""]
    return [
        Word("an", word.is_evidence) if word.text == "a" and after[:1] in set("aeiou") else word
        for word, after in zip(words, following, strict=True)
    ]


def _document(id: str, sentences: list[list[Word]], label: int, rng: random.Random) -> Document:
    """The sentences as text with tokens, spans, sentence numbers and evidence."""
    text, tokens, spans, numbers, evidence = "", [], [], [], []
    for number, words in enumerate(sentences):
        end = Word("!" if rng.random() < 0.1 else ".")
        for position, word in enumerate([*words, end]):
            is_capital = position == 0 or word.text in _CAPITALISED
            written = word.text.capitalize() if is_capital else word.text
            if text and word.text not in (",", ".", "!", "n't"):
                text += " "
            spans.append((len(text), len(text) + len(written)))
            text += written
            tokens.append(word.text)
            numbers.append(number)
            evidence.append(word.is_evidence)
    return Document(
        id=id,
        text=text,
        tokens=tuple(tokens),
        spans=np.array(spans, dtype=np.int32),
        label=label,
        sentence=np.array(numbers, dtype=np.int32),
        evidence=np.array(evidence),
        word_labels=np.array([graded(token) for token in tokens], dtype=np.int64),
    )


def _documents(
    name: str, split: str, size: int, classes: int, is_short: bool, seed: int, seen: set[str]
) -> Iterator[Document]:
    """`size` new documents with labels as even as possible, in random order."""
    rng = random.Random(f"{name}/{split}/{seed}")
    labels = [index % classes for index in range(size)]
    rng.shuffle(labels)
    for index, label in enumerate(labels):
        while True:
            opinions = _opinions(rng, classes, label, is_short)
            writer = _Writer(rng)
            sentences = writer.short(opinions) if is_short else writer.long(opinions)
            document = _document(f"{name}/{seed}/{split}/{index}", sentences, label, rng)
            if document.text not in seen:
                break
        seen.add(document.text)
        yield document


def planted(
    classes: int = 2,
    length: str = "long",
    seed: int = 0,
    sizes: Mapping[str, int] | None = None,
) -> Corpus:
    """Reviews with known evidence, all different, the same for the same seed.

    `classes` is 2, 3 or 5; `length` is `long` (several sentences) or `short` (one); `sizes` gives
    the number of documents of each split.
    """
    if classes not in CLASSES:
        raise InputError(f"planted has 2, 3 or 5 classes, got {classes}; e.g. planted:5.")
    if length not in LENGTHS:
        raise unknown("length of planted reviews", length, LENGTHS)
    name = f"planted:{classes}" + (":short" if length == "short" else "")
    seen: set[str] = set()
    splits = {
        split: list(_documents(name, split, size, classes, length == "short", seed, seen))
        for split, size in (SIZES if sizes is None else sizes).items()
    }
    return Corpus(name=name, classes=CLASSES[classes], splits=splits, lexicon=LEXICON)
