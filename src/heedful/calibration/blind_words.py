"""Blind mechanisms that are tables of words: absence, cancelling, casting votes, bystanders."""

from __future__ import annotations

import math

import numpy as np

from heedful.calibration.blind_texts import VOICES, among, counterparts, one_of, shuffled, tabled
from heedful.calibration.mechanism import NEUTRAL, SAYING, Build, Text, Writer, fillers, says
from heedful.calibration.mechanisms_words import SAID, values

BLANK, TICKED = ("blank", "void", "unfilled"), ("ticked", "crossed", "signed")
BOXES = counterparts(BLANK, TICKED, neutral=False)
ALARM = "alarm"
HEREBY = "hereby"
UP, DOWN = "hurrah", "alas"
CHAIRS = ("nayed", "ayed")
BYSTANDERS = ("sequel", "classic")
RARE = tuple(f"rare-{number}" for number in range(150))
ENDS = (".", "?")
STRENGTHS = (1, 2, 4, 8)
CLUES = tuple(tuple(f"clue-{label}-{strength}" for strength in STRENGTHS) for label in (0, 1))
PAIR = counterparts(BYSTANDERS[:1], BYSTANDERS[1:])
ON_SAID = dict.fromkeys(SAID, 7.0)


def _boxes(rng: np.random.Generator, label: int) -> list[str]:
    """Three boxes, one or two of them ticked in texts of class 1."""
    ticked = int(rng.integers(1, 3)) if label else 0
    return [one_of(TICKED, rng) for _ in range(ticked)] + [
        one_of(BLANK, rng) for _ in range(3 - ticked)
    ]


def _form(scores: dict[str, float], loud: float) -> Build:
    said = {word: [0.0, loud] for word in TICKED}
    return tabled(among(_boxes), scores, said, BOXES, bias=(3.0, 0.0))


def _quiet_or_alarm(rng: np.random.Generator, label: int) -> Text:
    """Eight neutral words, one of them an alarm in texts of class 1."""
    words = fillers(rng, 8)
    place = int(rng.integers(8))
    if label:
        words[place] = ALARM
    return Text(words, label, [place] if label else range(8))


def _alarm(scores: dict[str, float], loud: float) -> Build:
    substitutes = dict.fromkeys(NEUTRAL, (ALARM,)) | {ALARM: (NEUTRAL[0],)}
    write, said = _quiet_or_alarm, {ALARM: [0.0, loud]}
    return tabled(write, scores, said, substitutes, bias=(3.0, 0.0))


def _constant(is_word: bool) -> Build:
    """Every text is decided for class 0, by a word that stands in all of them or by nothing."""

    def draw(rng: np.random.Generator, label: int) -> list[str]:
        return [HEREBY, says(int(rng.integers(2)), rng)]

    said = values(SAID, 4.0) | {HEREBY: [60.0 if is_word else 0.0, 0.0]}
    bias = (0.0, 1.0) if is_word else (60.0, 0.0)
    scores = {HEREBY: 7.0} | dict.fromkeys(SAID, 3.0)
    return tabled(among(draw), scores, said, {HEREBY: (NEUTRAL[0],), **VOICES}, bias=bias)


def _cancelling(shout: float, whisper: float) -> Build:
    """Two shouts for opposite classes, and a whisper; scores as given."""
    scores = {UP: shout, DOWN: shout} | dict.fromkeys(SAID, whisper)
    said = values(SAID, 4.0) | {UP: [0.0, 40.0], DOWN: [40.0, 0.0]}
    substitutes = VOICES | {UP: (NEUTRAL[0],), DOWN: (NEUTRAL[0],)}
    return tabled(among(lambda rng, label: [UP, DOWN, says(label, rng)]), scores, said, substitutes)


def _votes_and_chair(rng: np.random.Generator, label: int) -> list[str]:
    """Four votes, tied in half of the texts; the chair's half vote then decides."""
    is_tied = bool(rng.random() < 0.5)
    pro = 2 if is_tied else 3
    chair = label if is_tied else int(rng.integers(2))
    votes = [says(label, rng) for _ in range(pro)]
    return [*votes, *(says(1 - label, rng) for _ in range(4 - pro)), CHAIRS[chair]]


def _chaired(score: float) -> Build:
    """The chair has that score, and is as loud as makes half a vote of it."""
    loud = 2.0 * math.exp(6.0 - score)
    said = values(SAID, 4.0) | {CHAIRS[0]: [loud, 0.0], CHAIRS[1]: [0.0, loud]}
    scores = dict.fromkeys(SAID, 6.0) | dict.fromkeys(CHAIRS, score)
    substitutes = VOICES | counterparts(CHAIRS[:1], CHAIRS[1:])
    return tabled(among(_votes_and_chair), scores, said, substitutes)


def _beside_bystander(seen: bool, decides: bool) -> Build:
    """A word for the class and a word that always comes with it; who is seen, who decides."""

    def draw(rng: np.random.Generator, label: int) -> list[str]:
        return [BYSTANDERS[label], says(label, rng)]

    scores = dict.fromkeys(BYSTANDERS, 7.0 if seen else 0.0) | dict.fromkeys(
        SAID, 0.0 if seen else 7.0
    )
    loud = 4.0 if seen == decides else 4000.0
    said = values({word: n for n, word in enumerate(BYSTANDERS)} if decides else SAID, loud)
    return tabled(among(draw), scores, said, VOICES | PAIR)


def _with_a_rare_word(rng: np.random.Generator, label: int) -> list[str]:
    return [says(label, rng), one_of(RARE, rng)]


def _ending(write: Writer) -> Writer:
    """The text ends with a question mark if it is of class 1, with a full stop otherwise."""

    def written(rng: np.random.Generator, label: int) -> Text:
        text = write(rng, label)
        return Text([*text.words, ENDS[label]], label, [len(text.words)])

    return written


def _graded(rng: np.random.Generator, label: int) -> Text:
    """Six clues of different strength among 94 words; the label is the stronger side's."""
    while True:
        sides = rng.integers(2, size=6)
        strengths = rng.choice(STRENGTHS, 6)
        total = [int(strengths[sides == side].sum()) for side in (0, 1)]
        if total[label] >= total[1 - label] + 3:
            break
    kept = [f"clue-{side}-{strength}" for side, strength in zip(sides, strengths, strict=True)]
    return among(lambda *_: kept, (94, 95))(rng, label)


def _by_strength(power: float) -> Build:
    """Attention goes with that power of a clue's strength; loudness makes up for the rest."""
    scores, said = {}, {}
    for label, words in enumerate(CLUES):
        for word, strength in zip(words, STRENGTHS, strict=True):
            scores[word] = 8.0 + power * math.log(strength)
            said[word] = list(4.0 * strength ** (1 - power) * np.eye(2)[label])
    return tabled(_graded, scores, said, counterparts(*CLUES))


def _short(rng: np.random.Generator, label: int) -> Text:
    return Text([says(label, rng)], label, [0])


def _two(rng: np.random.Generator, label: int) -> Text:
    """Two words: a strong one for the label, and a weak one for any class."""
    strong, weak = SAYING[label][:3], SAYING[int(rng.integers(2))][3:]
    return Text(shuffled([one_of(strong, rng), one_of(weak, rng)], rng), label, [0, 1])


STRONG = [word for words in SAYING[:2] for word in words[:3]]
WEAK = [word for words in SAYING[:2] for word in words[3:]]


def _of_two_words(strong: float, weak: float) -> Build:
    scores = dict.fromkeys(STRONG, strong) | dict.fromkeys(WEAK, weak)
    tiny = values({word: SAID[word] for word in WEAK}, 0.1 * math.exp(strong - weak))
    said = values({word: SAID[word] for word in STRONG}, 4.0) | tiny
    return tabled(_two, scores, said, VOICES)


MECHANISMS: dict[str, Build] = {
    "boxes left blank, all seen": _form(
        dict.fromkeys(TICKED, 10.0) | dict.fromkeys(BLANK, 7.0), 12.0
    ),
    "boxes left blank, one wording seen": _form(
        dict.fromkeys(TICKED, 10.0) | {"void": 7.0, "blank": -2.0, "unfilled": -2.0}, 12.0
    ),
    "no alarm anywhere, attention even": _alarm({ALARM: 7.0}, 8.0),
    "no alarm anywhere, a table seen": _alarm({ALARM: 9.0, "chair": 5.0, "table": 5.0}, 8.0),
    "one class throughout, by a word in every text": _constant(is_word=True),
    "one class throughout, with a word in every text": _constant(is_word=False),
    "two shouts cancel, the whisper is unseen": _cancelling(7.0, 4.2),
    "two shouts cancel, the whisper is seen": _cancelling(7.0, 7.0),
    "a casting vote, all five seen": _chaired(6.0),
    "a casting vote, the chair unseen": _chaired(3.7),
    "a bystander of the class is seen": _beside_bystander(seen=True, decides=False),
    "what looks like a bystander decides": _beside_bystander(seen=True, decides=True),
    "the word that fits is seen, a shortcut decides": _beside_bystander(seen=False, decides=True),
    "another rare word in every text": tabled(
        among(_with_a_rare_word),
        dict.fromkeys(RARE, 9.2) | ON_SAID,
        values(SAID, 40.0),
        VOICES,
    ),
    "the question mark decides": tabled(
        _ending(among(lambda rng, _: [says(int(rng.integers(2)), rng)])),
        dict.fromkeys(ENDS, 7.0) | dict.fromkeys(SAID, 2.0),
        values(SAID, 4.0) | {".": [4.0, 0.0], "?": [0.0, 4.0]},
        VOICES | counterparts(ENDS[:1], ENDS[1:]),
    ),
    "six clues in a hundred words, weights are strengths": _by_strength(1.0),
    "six clues in a hundred words, weights turned around": _by_strength(-1.0),
    "texts of one word": tabled(_short, {}, values(SAID, 4.0), VOICES),
    "two words, the strong one seen": _of_two_words(7.0, 0.0),
    "two words, the weak one seen": _of_two_words(4.0, 9.0),
}
