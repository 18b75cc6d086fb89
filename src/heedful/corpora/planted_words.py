"""The words and sentence patterns of the planted reviews. All made for this package.

In a pattern, `{adj}`, `{noun}`, `{verb}`, `{adv}` is the slot of a valence word with its optional
intensifier, `{not}` is where a negation goes if there is one, `{part}` is a part of the thing
reviewed and `{thing}` the thing itself.
"""

from __future__ import annotations


def _graded(**strengths: str) -> dict[str, float]:
    """Words with valences, from one string of words per strength."""
    values = {"faint": 0.5, "mild": 1.0, "clear": 1.5, "strong": 2.0, "extreme": 3.0}
    return {word: values[name] for name, line in strengths.items() for word in line.split()}


def _signed(sign: int, graded: dict[str, float]) -> dict[str, float]:
    return {word: sign * value for word, value in graded.items()}


ADJECTIVES = _signed(
    1,
    _graded(
        faint="acceptable adequate passable tolerable",
        mild="decent fine pleasant solid likeable agreeable neat sensible welcome tidy",
        clear="good nice charming enjoyable fresh graceful warm friendly polished engaging "
        "thoughtful",
        strong="great lovely delightful impressive terrific memorable elegant superb gorgeous "
        "generous",
        extreme="excellent brilliant wonderful fantastic outstanding magnificent flawless dazzling "
        "stunning perfect",
    ),
) | _signed(
    -1,
    _graded(
        faint="forgettable unremarkable uneven middling",
        mild="bland dull slow clumsy flat tired thin stale fussy awkward",
        clear="bad poor boring tedious sloppy weak annoying dreary shabby careless lifeless",
        strong="ugly nasty miserable lousy painful ridiculous insulting unpleasant shoddy rotten",
        extreme="terrible awful horrible dreadful atrocious disgusting appalling abysmal worthless "
        "unbearable",
    ),
)
NOUNS = _signed(
    1,
    _graded(
        clear="bargain pleasure treat success", strong="joy gem delight", extreme="triumph marvel"
    ),
) | _signed(
    -1,
    _graded(
        clear="letdown bore chore mistake", strong="mess failure flop", extreme="disaster disgrace"
    ),
)
VERBS = _signed(
    1,
    _graded(
        mild="like appreciate",
        clear="enjoy admire recommend",
        strong="love treasure",
        extreme="adore",
    ),
) | _signed(
    -1,
    _graded(
        mild="dislike doubt", clear="resent regret", strong="hate despise", extreme="loathe detest"
    ),
)
ADVERBS = _signed(
    1,
    _graded(
        mild="nicely smoothly", clear="well gracefully", strong="beautifully", extreme="perfectly"
    ),
) | _signed(
    -1,
    _graded(mild="clumsily slowly", clear="badly poorly", strong="miserably", extreme="terribly"),
)
KINDS = {"adj": ADJECTIVES, "noun": NOUNS, "verb": VERBS, "adv": ADVERBS}

LEXICON: dict[str, float] = ADJECTIVES | NOUNS | VERBS | ADVERBS
"""Valence of every valence word, from -3 to 3."""

INTENSIFIERS: dict[str, float] = {
    "very": 1.5, "really": 1.5, "truly": 1.5, "extremely": 2.0, "utterly": 2.0,
    "fairly": 0.75, "rather": 0.75, "somewhat": 0.5, "slightly": 0.5,
}  # fmt: skip
"""What an intensifier multiplies the next valence word by."""
BEFORE = {
    "adj": tuple(INTENSIFIERS),
    "noun": (),
    "verb": ("really", "truly", "rather"),
    "adv": ("very", "really", "rather", "fairly"),
}
"""Intensifiers that can stand before each kind of word."""

NEGATIONS: tuple[str, ...] = ("not", "n't", "never", "hardly")
"""Words that turn the sign of the next valence word."""

# Patterns whose words count: they are the writer's judgement of the thing reviewed.
JUDGEMENTS: dict[str, tuple[str, ...]] = {
    "adj": (
        "the {part} was {not} {adj}",
        "the {part} is {not} {adj}",
        "i do {not} find the {part} {adj}",
        "overall the {thing} was {not} {adj}",
        "for me this {thing} is {not} {adj}",
        "i would {not} call the {part} {adj}",
        "i do {not} think the {part} is {adj}",
        "i found the {part} {adj} from start to finish",
        "it has a {adj} {part}",
        "this is a {adj} {thing} with the usual {part}",
        "even on a second look the {part} was {not} {adj}",
        "in the end its {part} and its {part} were {not} {adj}",
    ),
    "noun": (
        "the {part} was {not} a {noun}",
        "this {thing} is {not} a {noun}",
        "in short the {part} is {not} a {noun}",
        "i would {not} call it a {noun}",
    ),
    "verb": (
        "i do {not} {verb} the {part}",
        "we did {not} {verb} this {thing}",
        "i would {not} {verb} the {thing} or its {part}",
    ),
    "adv": (
        "the {part} was {not} done {adv}",
        "everything about the {part} was {not} handled {adv}",
    ),
}
# In these `do` and `did` only carry the negation ("i do not like"); without one they are left out.
SUPPORT = ("do", "did")

# Patterns whose words do not count: someone else's view, another thing, a hope, or mere content.
DISTRACTORS: tuple[str, ...] = (
    "my neighbour called it {adj}",
    "one critic found the {part} {adj}",
    "a {adj} {other} stands across the street",
    "the {other} i had before was {adj}",
    "last year i tried a {adj} {other} instead",
    "i had expected something {adj}",
    "the advert promised a {adj} {part}",
    "some people will say it is {adj}",
    "my brother says he would {verb} it",
    "a friend told me it was a {noun}",
    "the weather that day was {adj}",
    "they say the old owner treated people {adv}",
)

NEUTRAL: tuple[str, ...] = (
    "we went there on a {day} with {number} friends",
    "i bought it in {month} for my {person}",
    "it took about {number} minutes to get going",
    "my {person} and i talked about the {part} on the way home",
    "there were {number} other people in the room",
    "the {part} is much like that of any other {thing}",
    "it comes with a {part} and a {part}",
    "you can see the {part} from the first minute",
    "i read about it in a magazine in {month}",
    "we paid by card and left around {number}",
    "it is made in the same town as the {other}",
    "the whole thing lasted until {day} evening",
)

DOMAINS: dict[str, tuple[str, ...]] = {
    "film": ("film", "movie", "drama", "comedy", "thriller", "sequel"),
    "restaurant": ("restaurant", "cafe", "diner", "bakery", "bistro", "bar"),
    "product": ("kettle", "camera", "phone", "lamp", "backpack", "printer"),
}
PARTS: dict[str, tuple[str, ...]] = {
    "film": (
        "acting", "plot", "script", "music", "ending", "dialogue", "camera work", "pacing", "cast",
        "opening scene", "editing", "lead actor",
    ),
    "restaurant": (
        "soup", "service", "menu", "dessert", "bread", "coffee", "dining room", "waiter", "pasta",
        "wine list", "kitchen", "salad",
    ),
    "product": (
        "battery", "handle", "screen", "manual", "lid", "packaging", "design", "power button",
        "case", "sound", "zip", "cable",
    ),
}  # fmt: skip
FILLERS: dict[str, tuple[str, ...]] = {
    "day": ("monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday"),
    "month": ("january", "march", "april", "june", "july", "august", "october", "november"),
    "person": ("sister", "father", "mother", "uncle", "cousin", "partner", "colleague", "daughter"),
    "number": ("2", "3", "4", "5", "6", "7", "8", "9", "10", "12", "15", "20", "30", "45"),
}
