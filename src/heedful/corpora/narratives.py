"""Spoken narratives with a rating over time: planted ones, those of a folder, and SEND.

A folder has one file of words and one of ratings for each narrative and split:

    train/words/165_4.tsv       columns time (seconds), word
    train/ratings/165_4.csv     columns time (seconds), rating (0 to 100)
    dev/… , test/…

SEND is given out by its authors on request; it lies in this layout under `send` of the data root.

Ratings are the evaluator-weighted estimate; the column may also be called
`evaluatorWeightedEstimate`.
"""

from __future__ import annotations

import csv
import hashlib
import math
import string
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

import numpy as np
from jaxtyping import Float

from heedful.corpora.documents import SPLITS
from heedful.corpora.planted_words import KINDS
from heedful.corpora.root import text_of
from heedful.errors import InputError
from heedful.runs.randomness import numpy_generator

WINDOW = 5.0
"""Seconds of a window."""
FILLER = "null"
"""What an empty window says in the text."""
EVERY = 0.5
"""Seconds between two ratings."""
EDGES = string.punctuation + string.whitespace
"""What is cut from both ends of a spoken word."""
LONGEST = 7 * 24 * 3600.0
"""Seconds of a narrative at most: a larger number is no time, and would make as many windows."""
RATING_COLUMNS = ("rating", "evaluatorWeightedEstimate")
SIZES = {"train": 114, "dev": 40, "test": 39}
"""Narratives of SEND, and of planted ones unless others are asked for."""
_SPOKEN = (
    "so and then i was at home with my brother when the phone rang we went to the station on a "
    "monday morning it had been raining all week they told us about it later that day my friend "
    "said something about the car the office was on second street there were people everywhere i "
    "mean you know we just stayed for an hour before dinner she asked me to come over"
)
SPOKEN = tuple(_SPOKEN.split())
"""Words that express nothing."""


@dataclass(frozen=True, eq=False)
class Narrative:
    """Words and ratings, each with its time in seconds."""

    id: str
    words: tuple[str, ...]
    """Lowercased."""
    times: Float[np.ndarray, " word"]
    rating_times: Float[np.ndarray, " rating"]
    ratings: Float[np.ndarray, " rating"]
    """Between -1 and 1."""


@dataclass(frozen=True, eq=False)
class Narratives:
    """Narratives in splits."""

    name: str
    splits: Mapping[str, Sequence[Narrative]]
    lexicon: Mapping[str, float] | None = None
    """Valence of words, where the narratives were made from one."""

    @property
    def fingerprint(self) -> str:
        """Sixteen hex digits that change when any word, time or rating changes."""
        digest = hashlib.sha256()
        for split in SPLITS:
            for one in self.splits.get(split, ()):
                digest.update(f"{split}\0{one.id}\0".encode() + "\0".join(one.words).encode())
                for numbers in (one.times, one.rating_times, one.ratings):
                    digest.update(np.ascontiguousarray(numbers, dtype="<f8").tobytes())
        return digest.hexdigest()[:16]


class Windows(NamedTuple):
    """A narrative cut into windows of time."""

    id: str
    words: tuple[tuple[str, ...], ...]
    """What is read in each window; in an empty one a copy of the word before."""
    is_filled: tuple[bool, ...]
    """Whether a window was empty."""
    ratings: Float[np.ndarray, " window"]
    """Mean rating of each window."""


def windowed(narrative: Narrative, seconds: float = WINDOW) -> Windows:
    """The narrative in windows as the published code cuts it.

    See docs/studies/tracing.md, "Narratives in windows".

    A word at time t ≤ b belongs to the window that ends at b; the first word beyond closes it. So
    the last window, which nothing closes, is dropped; ratings likewise, and both are cut to the
    shorter. An empty window gets a copy of the previous word, or of the first one.
    """
    said = _closed(narrative.times, seconds)
    rated = _closed(narrative.rating_times, seconds)
    count = min(len(said), len(rated))
    if not count:
        raise InputError(
            f"Narrative {narrative.id} has no whole window of {seconds:g} seconds; it needs words "
            "and ratings beyond the first one."
        )
    words: list[tuple[str, ...]] = []
    last = narrative.words[0]
    for window in said[:count]:
        found = narrative.words[window]
        words.append(found or (last,))
        last = words[-1][-1]
    ratings = []
    for number, window in enumerate(rated[:count]):
        if window.stop == window.start:
            raise InputError(
                f"Narrative {narrative.id} has no rating between {number * seconds:g} and "
                f"{(number + 1) * seconds:g} seconds."
            )
        ratings.append(narrative.ratings[window].mean())
    is_filled = tuple(window.stop == window.start for window in said[:count])
    return Windows(narrative.id, tuple(words), is_filled, np.array(ratings))


def _closed(times: Float[np.ndarray, " event"], seconds: float) -> list[slice]:
    """Which events lie in each window that a later event closes; times never fall."""
    count = math.ceil(times[-1] / seconds) - 1 if len(times) else 0
    if count < 1:
        return []
    ends = np.searchsorted(times, seconds * np.arange(1, count + 1), side="right")
    return [slice(a, b) for a, b in zip([0, *ends[:-1]], ends, strict=True)]


def planted_narratives(
    seed: int = 0, sizes: Mapping[str, int] | None = None, minutes: float = 2.0
) -> Narratives:
    """Narratives whose words express a latent valence curve, the same for the same seed.

    The curve is a sum of slow waves in [-1, 1]; every few words the speaker says an adjective whose
    valence is near the curve's. Ratings follow the curve two seconds late and smoothed, as people
    who listen do. Pauses leave some windows empty.
    """
    made = {
        split: [_planted(f"planted/{seed}/{split}/{n}", minutes) for n in range(size)]
        for split, size in (SIZES if sizes is None else sizes).items()
    }
    return Narratives("planted-narratives", made, KINDS["adj"])


def _planted(id: str, minutes: float) -> Narrative:
    random = numpy_generator(0, "narrative", id)
    length = 60 * minutes * random.uniform(0.75, 1.25)
    curve = _Curve(random, length)
    adjectives = list(KINDS["adj"])
    valence = np.array([KINDS["adj"][word] for word in adjectives]) / 3
    words: list[str] = []
    times: list[float] = []
    time = random.uniform(0.2, 1.5)
    while time < length:
        if random.random() < 0.22:
            # Said more often the nearer it lies to what the speaker feels.
            chance = np.exp(-((valence - curve(time)) ** 2) / (2 * 0.15**2))
            words.append(adjectives[random.choice(len(adjectives), p=chance / chance.sum())])
        else:
            words.append(SPOKEN[random.integers(len(SPOKEN))])
        times.append(round(time, 2))
        is_pause = random.random() < 0.012
        time += random.uniform(6, 11) if is_pause else random.uniform(0.15, 0.6)
    rated = np.arange(EVERY, length, EVERY)
    lagged = np.mean([curve(np.maximum(rated - lag, 0)) for lag in (1.0, 2.0, 3.0)], 0)
    ratings = np.clip(lagged + random.normal(0, 0.03, len(rated)), -1, 1)
    return Narrative(id, tuple(words), np.array(times), rated, ratings)


class _Curve:
    """What the speaker feels over time."""

    def __init__(self, random: np.random.Generator, length: float) -> None:
        periods = random.uniform(25, length, 3)
        self.rates = 2 * np.pi / periods
        self.phases = random.uniform(0, 2 * np.pi, 3)
        self.sizes = random.dirichlet(np.ones(3))

    def __call__(self, time: float | Float[np.ndarray, " time"]) -> Float[np.ndarray, "..."]:
        """Between -1 and 1, and often near both."""
        waves = np.sin(np.multiply.outer(time, self.rates) + self.phases) @ self.sizes
        return np.tanh(2 * waves)


def read_send(root: Path) -> Narratives:
    """The SEND corpus from the data root."""
    folder = root / "send"
    if not folder.is_dir():
        raise InputError(
            f"SEND is not in the data root ({folder} is missing); its authors give it out on "
            "request, and planted narratives stand in for it."
        )
    return read_narratives(folder)


def read_narratives(folder: Path) -> Narratives:
    """Narratives from a folder in the layout of the module's head."""
    splits = {split: list(_split(folder / split)) for split in SPLITS if (folder / split).is_dir()}
    for split in ("train", "dev"):
        if not splits.get(split):
            raise InputError(f"{folder} has no narratives in {split}/words; expected *.tsv files.")
    return Narratives(folder.name, splits)


def _split(folder: Path) -> Iterator[Narrative]:
    words = {path.stem: path for path in sorted((folder / "words").glob("*.tsv"))}
    ratings = {path.stem: path for path in sorted((folder / "ratings").glob("*.csv"))}
    missing = sorted(set(words) - set(ratings))
    if missing:
        shown = ", ".join(missing[:5]) + (f" and {len(missing) - 5} more" * (len(missing) > 5))
        raise InputError(
            f"{folder / 'ratings'} lacks the ratings of {shown}; add one CSV for each, or remove "
            "their words."
        )
    for id, path in words.items():
        said = _table(path, "\t", ("word",))
        rated = _table(ratings[id], ",", RATING_COLUMNS)
        numbers = np.array([_number(value, ratings[id]) for _, value in rated]) / 50 - 1
        if np.abs(numbers).max() > 1 + 1e-9:
            raise InputError(f"{ratings[id]}: ratings lie between 0 and 100, found others.")
        stripped = [(time, word.lower().strip(EDGES)) for time, word in said]
        spoken = [(time, word) for time, word in stripped if word]
        yield Narrative(
            id,
            tuple(word for _, word in spoken),
            np.array([time for time, _ in spoken]),
            np.array([time for time, _ in rated]),
            numbers,
        )


def _table(path: Path, separator: str, columns: Sequence[str]) -> list[tuple[float, str]]:
    """Times and the first of the named columns that the file has."""
    told = csv.DictReader(text_of(path).splitlines(), delimiter=separator)
    try:
        rows = list(told)
    except csv.Error as error:
        raise InputError(f"{path} is not a well-formed table: {error}.") from error
    names = {name.strip(): name for name in told.fieldnames or ()}
    column = next((names[name] for name in columns if name in names), None)
    if "time" not in names or column is None:
        raise InputError(
            f"{path}: expected the columns time and {' or '.join(columns)}, found "
            f"{', '.join(names) or 'nothing'}."
        )
    found = [(_number(row[names["time"]], path), row[column] or "") for row in rows]
    times = [time for time, _ in found]
    if not found or times != sorted(times):
        raise InputError(f"{path}: expected rows with rising times, found {len(found)} rows.")
    if max(map(abs, times)) > LONGEST:
        raise InputError(f"{path}: expected times in seconds, a week at most, found {times[-1]:g}.")
    return found


def _number(text: str | None, path: Path) -> float:
    try:
        number = float(text or "")
    except ValueError:
        number = math.nan
    if not math.isfinite(number):
        raise InputError(f"{path}: expected a number, got {text!r}.")
    return number
