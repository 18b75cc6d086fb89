"""Questions whose one needed passage is known: a fact hidden in passages of made-up text."""

from __future__ import annotations

import re

import numpy as np

from heedful.corpora.questions import PromptSource, Question
from heedful.errors import InputError
from heedful.runs.randomness import numpy_generator

PREFIX = "needles:"
"""`needles:2000` are questions whose passages have about 2,000 words together."""
PASSAGES = 16
QUESTIONS = 48
LEAST = 160
"""Words in all: shorter passages would hold nothing but the fact."""
TOWNS = (
    "Aldermoor", "Brackwell", "Corrinth", "Dunhollow", "Elverton", "Farrowby", "Glenmarsh",
    "Harrowgate", "Ilverstone", "Jasperfield", "Kestrelton", "Lindenholt", "Marrowick", "Netherby",
    "Oakhaven", "Pellingham", "Quarrydale", "Ravensford", "Silverbrook", "Thornbury",
)  # fmt: skip
FACTS = {
    "favourite animal": (
        "heron", "badger", "otter", "falcon", "salmon", "squirrel", "turtle", "donkey",
    ),
    "official colour": (
        "purple", "orange", "crimson", "yellow", "silver", "violet", "turquoise", "brown",
    ),
    "best known food": (
        "cheese", "honey", "bread", "pumpkin", "noodles", "chocolate", "onions", "mustard",
    ),
    "oldest instrument": (
        "violin", "trumpet", "drum", "harp", "organ", "flute", "guitar", "piano",
    ),
}  # fmt: skip
"""What a town is known for, and what that may be."""
SUBJECTS = (
    "the old road", "a narrow bridge", "the market square", "a quiet garden", "the stone wall",
    "the river bank", "a small library", "the wooden gate", "the tall tower", "a long meadow",
    "the village school", "the northern hill",
)  # fmt: skip
VERBS = (
    "was repaired", "was painted again", "stood empty", "was visited by travellers",
    "was measured", "was closed", "became well known", "was drawn on a map", "was swept clean",
    "was described in a letter",
)  # fmt: skip
ENDS = (
    "after the long winter", "before the harvest began", "in the early morning",
    "while the rain was falling", "by people from the valley", "for the third time that year",
    "without much noise", "during the summer months", "when the bells were rung",
    "with the help of neighbours",
)  # fmt: skip


def are_needles(name: object) -> bool:
    """Whether this names questions that are made here."""
    return str(name).startswith(PREFIX)


def needles(name: str, seed: int = 0, count: int = QUESTIONS) -> list[Question]:
    """Questions about a fact that one of sixteen passages says; `name` tells how many words."""
    said = name.removeprefix(PREFIX)
    if not re.fullmatch(r"\d{1,6}", said) or int(said) < LEAST:
        raise InputError(
            f"Expected {PREFIX}WORDS with {LEAST} words or more in all, as in {PREFIX}2000, got "
            f"{name!r}."
        )
    return [_question(f"needle-{said}-{n}", int(said) // PASSAGES, seed) for n in range(count)]


def _question(name: str, words: int, seed: int) -> Question:
    drawn = numpy_generator(seed, "needle", name)
    town = str(drawn.choice(TOWNS))
    kind = str(drawn.choice(list(FACTS)))
    value = str(drawn.choice(FACTS[kind]))
    fact = f"The {kind} of {town} is {value}."
    place = int(drawn.integers(PASSAGES))
    sources = []
    for n in range(PASSAGES):
        hidden = fact if n == place else ""
        sources.append(PromptSource(_passage(words, hidden, drawn), is_evidence=n == place))
    return Question(name, f"What is the {kind} of {town}?", tuple(sources), value)


def _passage(words: int, fact: str, drawn: np.random.Generator) -> str:
    """Sentences up to about so many words, with the fact somewhere among them."""
    sentences, length = list[str](), len(fact.split())
    while length < words:
        parts = (drawn.choice(of) for of in (SUBJECTS, VERBS, ENDS))
        sentence = " ".join(str(part) for part in parts)
        sentences.append(f"{sentence[0].upper()}{sentence[1:]}.")
        length += len(sentence.split())
    if fact:
        sentences.insert(int(drawn.integers(len(sentences) + 1)), fact)
    return " ".join(sentences)
