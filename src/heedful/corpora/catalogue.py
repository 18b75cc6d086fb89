"""Every corpus by name.

NAME          what
planted       the embedded default, 2 classes; planted:3, planted:5, planted:2:short
synthetic     bags of words tied to classes, embedded: synthetic:data1, data2, three, ratio-1-2
FAMILY        a corpus of the data root, its default task: sst is sst:2
FAMILY:TASK   another task: sst:5, imdb:stars, ag_news:world-business,
              20newsgroups:rec.sport.baseball,rec.sport.hockey
.../RECIPE    the pre-processing of a study: sst:2/polarity, imdb:2/jw
hf:NAME       a set of the Hugging Face hub (hf:NAME:CONFIG)
a path        the user's file: reviews.csv
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from heedful.corpora import (
    eraser,
    imdb,
    lexicon,
    messages,
    newsgroups,
    parallel_corpora,
    sst,
    zhang,
)
from heedful.corpora.documents import Corpus
from heedful.corpora.files import read_file
from heedful.corpora.hub import read_hub
from heedful.corpora.planted import LENGTHS, planted
from heedful.corpora.recipes import PLAIN, RECIPES, CorpusRecipe
from heedful.corpora.root import locate, root_of
from heedful.corpora.synthetic import TASKS as SYNTHETIC_TASKS
from heedful.corpora.synthetic import synthetic
from heedful.corpora.tables import SUFFIXES, suffix_of
from heedful.errors import InputError, unknown

Reader = Callable[..., Corpus]
"""What reads a family: (root, task, recipe, seed, name, options) to a corpus."""


@dataclass(frozen=True)
class Entry:
    """A corpus that has a name."""

    name: str
    what: str
    """One line for a person."""
    classes: str
    """Number of classes, of each task."""
    files: tuple[str, ...] = ()
    """What must lie in the data root; none for embedded corpora."""
    source: str = "embedded"
    """Where the files come from."""
    tasks: tuple[str, ...] = ()
    """Named tasks, the default first; empty when tasks are free or there is one."""
    free_task: bool = False
    """Whether other tasks than the named ones may be asked for (groups, pairs of classes)."""
    read: Reader | None = None
    """The reader of a classification corpus; None for planted, parallel text and lexicons."""
    alternatives: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    """Other files that will do in place of one of `files`."""
    stand_in_for: str | None = None
    """The published corpus that this one stands in for in the erasure study."""

    @property
    def variants(self) -> dict[str, CorpusRecipe]:
        """The recipes that can follow the name after a slash."""
        return RECIPES.get(self.name, {})


def _zhang(family: str) -> Reader:
    def read(
        root: Path, task: str, recipe: CorpusRecipe, seed: int, name: str, **options: Any
    ) -> Corpus:
        return zhang.read_zhang(root, family, task, recipe, seed, name, **options)

    return read


def _zhang_entry(family: str, what: str) -> Entry:
    published = zhang.PUBLISHED[family]
    files = tuple(f"{published.folder}/{split}.csv" for split in ("train", "test"))
    return Entry(
        family,
        what,
        str(len(published.classes)),
        files,
        zhang.SOURCE,
        read=_zhang(family),
        alternatives={file: (f"{family}/{Path(file).name}",) for file in files},
    )


CATALOGUE: dict[str, Entry] = {
    entry.name: entry
    for entry in (
        Entry(
            "planted", "generated reviews with known evidence", "2, 3 or 5",
            tasks=("2", "3", "5", "2:short", "3:short", "5:short"),
        ),
        Entry(
            "synthetic", "bags of words whose tie to a class is known (polarity study)", "2 or 3",
            tasks=SYNTHETIC_TASKS, free_task=True,
        ),
        Entry(
            "sst", "Stanford Sentiment Treebank, sentences", "2 or 5", sst.FILES, sst.SOURCE,
            ("2", "5"), read=sst.read_sst,
        ),
        Entry(
            "imdb", "Large Movie Review Dataset", "2 or 8 (stars)", imdb.FILES, imdb.SOURCE,
            ("2", "stars"), read=imdb.read_imdb, stand_in_for=imdb.STANDS_FOR,
        ),
        Entry(
            "ag_news", "AG News topics; any classes: ag_news:world-business", "4",
            ("ag_news/train.csv", "ag_news/test.csv"), zhang.AG_SOURCE, free_task=True,
            read=_zhang("ag_news"),
            alternatives={
                "ag_news/train.csv": ("ag_news_csv/train.csv", zhang.AG_SUBSET),
                "ag_news/test.csv": ("ag_news_csv/test.csv",),
            },
            stand_in_for="Yahoo Answers, 10 topics (Zhang et al. 2015)",
        ),
        Entry(
            "20newsgroups", "Usenet posts; any groups: 20newsgroups:baseball,hockey", "20",
            newsgroups.FILES, newsgroups.SOURCE, free_task=True, read=newsgroups.read_newsgroups,
            stand_in_for="Yahoo Answers, 10 topics (Zhang et al. 2015)",
        ),
        Entry(
            "sms", "SMS Spam Collection", "2", messages.SMS_FILES, messages.SMS_SOURCE,
            read=messages.read_sms,
        ),
        Entry(
            "amazon", "Amazon multi-domain reviews", "2 or 4 (stars)", messages.AMAZON_FILES,
            messages.AMAZON_SOURCE, ("2", "stars"), read=messages.read_amazon,
            stand_in_for=messages.STANDS_FOR,
        ),
        Entry(
            "eraser_movies", "film reviews with human rationales", "2", eraser.FILES,
            eraser.SOURCE, read=eraser.read_eraser,
        ),
        _zhang_entry("yelp_full", "Yelp reviews by stars"),
        _zhang_entry("amazon_full", "Amazon reviews by stars"),
        _zhang_entry("yahoo_answers", "questions and answers by topic"),
        Entry(
            "imdb_diao", "IMDB reviews by rating (Diao et al. 2014)", "10", imdb.DIAO_FILES,
            imdb.DIAO_SOURCE, read=imdb.read_imdb_diao,
            alternatives={"imdb_diao/data.json": ("imdb_diao/data1.json",)},
        ),
        Entry(
            "multi30k", "English and German captions (parallel)", "", parallel_corpora.FILES,
            parallel_corpora.SOURCE,
        ),
        Entry(
            "iwslt14", "German and English talks (parallel)", "", parallel_corpora.IWSLT_FILES,
            parallel_corpora.IWSLT,
        ),
        Entry(
            "news-commentary", "news in English, Dutch, Italian and Portuguese (parallel)", "",
            parallel_corpora.NEWS_FILES, parallel_corpora.NEWS,
        ),
        Entry("warriner", "valence norms (lexicon)", "", lexicon.FILES, lexicon.SOURCE),
    )
}  # fmt: skip
"""All named corpora, in the order of `heedful corpora`."""


def parse_name(name: str) -> tuple[Entry, str, str]:
    """The entry, the task and the recipe (`""` for none) that a corpus name asks for."""
    base, _, recipe = name.partition("/")
    family, _, task = base.partition(":")
    if family not in CATALOGUE:
        raise unknown("corpus", family, CATALOGUE)
    entry = CATALOGUE[family]
    if entry.tasks and not task:
        task = entry.tasks[0]
    known = task in entry.tasks or (not entry.tasks and not task)
    if not known and not entry.free_task:
        raise unknown(f"task of {family}", task, entry.tasks or ("(none)",))
    if recipe and recipe not in entry.variants:
        raise unknown(f"recipe of {family}", recipe, entry.variants or ("(none)",))
    return entry, task, recipe


def _planted(task: str, seed: int, **options: Any) -> Corpus:
    classes, _, length = task.partition(":")
    return planted(int(classes), length or LENGTHS[0], seed, **options)


def load_corpus(
    name: str = "planted",
    data_root: str | Path | None = None,
    seed: int = 0,
    **options: Any,
) -> Corpus:
    """The corpus of that name (see the module's head); real ones are read from the data root.

    Options go to the reader: `sizes` (planted), `instances` (synthetic), `keep` (20newsgroups),
    `limit` (the large CSVs), `text`, `label`, `split` (files, hub).

    >>> corpus = load_corpus("planted:5", sizes={"train": 10})
    >>> corpus.classes[0], len(corpus.splits["train"])
    ('very negative', 10)
    """
    if name.startswith("hf:"):
        return read_hub(name.removeprefix("hf:"), seed=seed, **options)
    if suffix_of(Path(name)) in SUFFIXES or Path(name).is_file():
        return read_file(name, seed=seed, **options).corpus
    entry, task, recipe = parse_name(name)
    if entry.name == "planted":
        return _planted(task, seed, **options)
    if entry.name == "synthetic":
        return synthetic(task, seed, **options)
    if entry.read is None:
        how = "load_lexicon" if entry.name == "warriner" else "load_parallel"
        raise InputError(f"{entry.name} is no classification corpus; read it with {how}.")
    full = entry.name + (f":{task}" if task else "") + (f"/{recipe}" if recipe else "")
    if recipe == "erasure" and not task and entry.stand_in_for:
        options = {"stand_in_for": entry.stand_in_for, **options}
    chosen = entry.variants[recipe] if recipe else PLAIN
    return entry.read(root_of(data_root), task, chosen, seed, full, **options)


def recipe_of(name: str) -> CorpusRecipe:
    """The recipe that a corpus name asks for; its `min_count` is for `encode` and `prepare`."""
    if name.startswith("hf:") or suffix_of(Path(name)) in SUFFIXES:
        return PLAIN
    entry, _, recipe = parse_name(name)
    return entry.variants[recipe] if recipe else PLAIN


@dataclass(frozen=True)
class Availability:
    """One line of `heedful corpora`."""

    name: str
    what: str
    classes: str
    is_present: bool
    missing: tuple[str, ...]
    """Files to put in the data root."""
    source: str
    variants: tuple[str, ...]
    stand_in_for: str | None


def available(data_root: str | Path | None = None) -> list[Availability]:
    """What is present here and, for the rest, which files to put where and where they come from.

    Without any data root everything but the embedded corpora is missing.
    """
    try:
        root: Path | None = root_of(data_root)
    except InputError:
        if data_root is not None:
            raise
        root = None
    rows = []
    for entry in CATALOGUE.values():
        missing = tuple(
            file
            for file in entry.files
            if root is None
            or not any(locate(root, name) for name in (file, *entry.alternatives.get(file, ())))
        )
        rows.append(
            Availability(
                name=entry.name,
                what=entry.what,
                classes=entry.classes,
                is_present=not missing,
                missing=missing,
                source=entry.source,
                variants=(
                    *(f"{entry.name}:{task}" for task in entry.tasks),
                    *(f".../{recipe}" for recipe in entry.variants),
                ),
                stand_in_for=entry.stand_in_for,
            )
        )
    return rows
