"""Two corpora of one file each: the SMS Spam Collection and Amazon multi-domain reviews."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from pathlib import Path

from heedful.corpora.documents import Corpus
from heedful.corpora.recipes import PLAIN, CorpusRecipe, Row, build
from heedful.corpora.root import expect, fields_of, find

SMS_SOURCE = "the SMS Spam Collection v.1 (Almeida et al. 2011), label TAB text"
SMS_FILES = ("sms_spam/SMSSpamCollection.tsv",)
SMS_CLASSES = ("ham", "spam")
SMS_COUNTS: dict[str, int] = {"ham": 4_827, "spam": 747}

AMAZON_SOURCE = (
    "the Multi-Domain Sentiment Dataset (Blitzer et al. 2007), domain, label, stars, ..."
)
AMAZON_FILES = ("amazon_mds/reviews.tsv.gz",)
AMAZON_DOMAINS = ("books", "dvd", "electronics", "kitchen_and_housewares")
AMAZON_STARS = ("1", "2", "4", "5")
AMAZON_TASKS: Mapping[str, tuple[str, ...]] = {
    "2": ("negative", "positive"),
    "stars": AMAZON_STARS,
}
AMAZON_COUNT = 1_000
STANDS_FOR = "Amazon review full, 5 classes (Zhang et al. 2015)"


def read_sms(
    root: Path, task: str = "", recipe: CorpusRecipe = PLAIN, seed: int = 0, name: str = "sms"
) -> Corpus:
    """Text messages, ham or spam, split by the seed."""
    path = find(root, SMS_FILES[0], SMS_SOURCE)
    messages = list(fields_of(path, 2))
    expect(path, Counter(label for label, _ in messages), SMS_COUNTS)
    rows = [
        Row(f"sms-{number}", text, SMS_CLASSES.index(label))
        for number, (label, text) in enumerate(messages)
    ]
    return build(name, SMS_CLASSES, {"train": rows}, recipe, seed)


def read_amazon(
    root: Path, task: str = "2", recipe: CorpusRecipe = PLAIN, seed: int = 0, name: str = "amazon:2"
) -> Corpus:
    """Reviews of four kinds of goods by sign or by stars (there are no 3s), split by the seed.

    The title is a sentence of its own before the text.
    """
    path = find(root, AMAZON_FILES[0], AMAZON_SOURCE)
    reviews = list(fields_of(path, 5))
    found = Counter(f"{sign} reviews of {domain}" for domain, sign, *_ in reviews)
    expected = {
        f"{sign} reviews of {domain}": AMAZON_COUNT
        for domain in AMAZON_DOMAINS
        for sign in ("positive", "negative")
    }
    expect(path, found, expected)
    classes = AMAZON_TASKS[task]
    rows = [
        Row(
            f"{domain}-{number}",
            f"{title}\n\n{text}" if recipe.with_title and title else text,
            classes.index(sign if task == "2" else stars.removesuffix(".0")),
        )
        for number, (domain, sign, stars, title, text) in enumerate(reviews)
    ]
    stand_in_for = STANDS_FOR if task == "stars" else None
    return build(name, classes, {"train": rows}, recipe, seed, stand_in_for=stand_in_for)
