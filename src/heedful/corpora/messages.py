"""Two corpora of one file each: the SMS Spam Collection and Amazon multi-domain reviews."""

from __future__ import annotations

from collections import Counter

from heedful.corpora.documents import Corpus
from heedful.corpora.entries import CATALOGUE
from heedful.corpora.recipes import Row, Wanted, build
from heedful.corpora.root import expect, fields_of, find

SMS, AMAZON = CATALOGUE["sms"], CATALOGUE["amazon"]


def read_sms(wanted: Wanted) -> Corpus:
    """Text messages, ham or spam, split by the seed."""
    path = find(wanted.root, SMS.files[0], SMS.source)
    messages = list(fields_of(path, 2))
    expect(path, Counter(label for label, _ in messages), SMS.counts)
    classes = SMS.names[wanted.task]
    rows = [
        Row(f"sms-{number}", text, classes.index(label))
        for number, (label, text) in enumerate(messages)
    ]
    return build(wanted, classes, {"train": rows})


def read_amazon(wanted: Wanted) -> Corpus:
    """Reviews of four kinds of goods by sign or by stars (there are no 3s), split by the seed.

    The title is a sentence of its own before the text.
    """
    path = find(wanted.root, AMAZON.files[0], AMAZON.source)
    reviews = list(fields_of(path, 5))
    found = Counter(f"{sign} reviews of {domain}" for domain, sign, *_ in reviews)
    expected = {
        f"{sign} reviews of {domain}": count
        for domain, count in AMAZON.counts.items()
        for sign in ("positive", "negative")
    }
    expect(path, found, expected)
    classes = AMAZON.names[wanted.task]
    rows = [
        Row(
            f"{domain}-{number}",
            f"{title}\n\n{text}" if wanted.recipe.with_title and title else text,
            classes.index(sign if wanted.task == "2" else stars.removesuffix(".0")),
        )
        for number, (domain, sign, stars, title, text) in enumerate(reviews)
    ]
    stand_in_for = AMAZON.stand_in_for if wanted.task == "stars" else None
    return build(wanted, classes, {"train": rows}, stand_in_for=stand_in_for)
