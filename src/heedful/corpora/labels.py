"""What a label column says: class names, numbers of classes, or ratings that are cut in two."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from shlex import quote
from typing import Any, NamedTuple

from heedful.corpora.columns import class_name, in_class_order, is_missing
from heedful.errors import InputError

MOST_LETTERS = 200
"""Of a class name."""
_WHOLE = re.compile(r"[+-]?\d{1,300}\.0*")
_LOW = frozenset(("0", "neg", "negative", "bad", "false", "no", "label0"))
_HIGH = frozenset(("1", "pos", "positive", "good", "true", "yes", "label1"))
"""Usual names of the two classes of a decision between bad and good."""


class Labelling(NamedTuple):
    """What the user says of the labels in a file."""

    names: Mapping[str, str] = {}
    """The class that a label stands for, where it has another name."""
    threshold: float | None = None
    """Where ratings are cut in two: below it, and from it on."""

    @classmethod
    def of(
        cls, labels: str | Mapping[str, str] | None, threshold: float | None = None
    ) -> Labelling:
        """As typed: `neg=LABEL_0,pos=LABEL_1`.

        >>> Labelling.of("neg=LABEL_0, pos=LABEL_1").names
        {'neg': 'LABEL_0', 'pos': 'LABEL_1'}
        """
        if not isinstance(labels, str):
            return cls(dict(labels or {}), threshold)
        pairs = [part.partition("=") for part in labels.split(",")]
        if not all(own.strip() and other.strip() for own, _, other in pairs):
            raise InputError(
                f"Labels are matched by OWN=CLASS, such as --labels neg=LABEL_0,pos=LABEL_1; got "
                f"{labels!r}."
            )
        return cls({own.strip(): other.strip() for own, _, other in pairs}, threshold)


class Labels(NamedTuple):
    """A label column as class names."""

    names: tuple[str | None, ...]
    """None where a label is missing."""
    said: tuple[str, ...] = ()


def read_labels(
    cells: Sequence[Any],
    column: str,
    where: str,
    labelling: Labelling = Labelling(),
    classes: Sequence[str] = (),
) -> Labels:
    """The cells as class names; ratings are refused unless the user says where to cut them.

    `classes` are those of a model: of two, what lies below the threshold is the first.
    """
    for row, cell in enumerate(cells, start=1):
        if isinstance(cell, list | dict):
            raise InputError(
                f"{where}, row {row}: column {column!r} holds a {type(cell).__name__}, and a "
                "document has one label here; give one class name or number for each."
            )
    names = [None if is_missing(cell) else _whole_number(class_name(cell)) for cell in cells]
    long = max((name for name in names if name), key=len, default="")
    if len(long) > MOST_LETTERS:
        raise InputError(
            f"{where}: column {column!r} holds a label of {len(long):,} letters, which is a text "
            f"and no class ({MOST_LETTERS} at most); name the column of the labels by --label."
        )
    said: tuple[str, ...] = ()
    if labelling.threshold is not None:
        names, said = _cut(names, column, where, labelling.threshold, classes)
    elif is_rating(cells) and not set(filter(None, names)) <= set(labelling.names):
        raise InputError(
            f"{where}: column {column!r} holds numbers with decimals, which are no classes; "
            f"{threshold_hint(names)}, or name another column by --label."
        )
    strange = sorted(set(labelling.names) - set(names))
    if strange:
        seen = ", ".join(map(repr, in_class_order([name for name in names if name])[:10]))
        raise InputError(
            f"{where}: no row has the label {strange[0]!r} that --labels names; there are {seen}."
        )
    return Labels(tuple(name and labelling.names.get(name, name) for name in names), said)


def is_rating(cells: Sequence[Any]) -> bool:
    """Whether the values are numbers of which some have decimals."""
    values = _numbers(_whole_number(class_name(cell)) for cell in cells if not is_missing(cell))
    return bool(values) and any(value != int(value) for value in values)


def threshold_hint(names: Sequence[str | None]) -> str:
    """How to make two classes of ratings: cut at 0, or in the middle of their range."""
    values = _numbers(filter(None, names))
    low, high = min(values), max(values)
    middle = 0.0 if low < 0 < high else (low + high) / 2
    return f"make two classes of them by --threshold {middle:g} (below it, and from it on)"


def _cut(
    names: Sequence[str | None],
    column: str,
    where: str,
    threshold: float,
    classes: Sequence[str],
) -> tuple[list[str | None], tuple[str, ...]]:
    strange = next((name for name in names if name and not _numbers([name])), None)
    if strange is not None:
        raise InputError(
            f"{where}: --threshold is for ratings, and column {column!r} holds {strange!r}; leave "
            "it out, or name the column of the ratings by --label."
        )
    if classes and len(classes) != 2:
        raise InputError(
            f"--threshold makes two classes of ratings, and this model has {len(classes)}; give a "
            "column of class names by --label."
        )
    low, high = classes or (f"below {threshold:g}", f"from {threshold:g} on")
    told = f"{column} is cut at {threshold:g}: less is taken for {low!r}, the rest for {high!r}"
    cut = [None if name is None else (low, high)[float(name) >= threshold] for name in names]
    return cut, (told,)


def _whole_number(name: str) -> str:
    """The name, without the decimals of a whole number: `1.0` and `1` are the same class."""
    return str(int(name.partition(".")[0])) if _WHOLE.fullmatch(name) else name


def _numbers(names: Any) -> list[float]:
    """The names as finite numbers; nothing where one of them is none."""
    try:
        values = [float(name) for name in names]
    except ValueError:
        return []
    return values if all(abs(value) < float("inf") for value in values) else []


class Matched(NamedTuple):
    """Which class of a model each label of the data is."""

    places: Mapping[str, int]
    said: str
    """How they were matched, where it was not by equal names; else nothing."""


def match_labels(classes: Sequence[str], labels: Sequence[str]) -> Matched:
    """The class of each label: by name, else whatever the case, else by the number of the class.

    Numbers are taken for those of the classes only where 0 is among them and all of them exist:
    ratings from 1 to 5 are not ids. Anything else is refused with both lists, and with the option
    that would match them.

    >>> match_labels(("NEGATIVE", "POSITIVE"), ("negative", "positive")).places
    {'negative': 0, 'positive': 1}
    >>> match_labels(("LABEL_0", "LABEL_1"), ("0", "1")).said
    'labels 0, 1 are taken for the numbers of the classes LABEL_0, LABEL_1'
    """
    exact = {name: place for place, name in enumerate(classes)}
    if set(labels) <= set(exact):
        return Matched({label: exact[label] for label in labels}, "")
    folded = {name.casefold(): place for place, name in enumerate(classes)}
    lowered = [label.casefold() for label in labels]
    is_one_to_one = len(folded) == len(classes) and len(set(lowered)) == len(labels)
    if is_one_to_one and set(lowered) <= set(folded):
        index = {label: folded[label.casefold()] for label in labels}
        pairs = ", ".join(f"{label} = {classes[place]}" for label, place in index.items())
        return Matched(index, f"labels matched whatever their case: {pairs}")
    numbers = {str(place) for place in range(len(classes))}
    if "0" in labels and set(labels) <= numbers:
        numbered = {label: int(label) for label in labels}
        names = ", ".join(classes[place] for place in sorted(numbered.values()))
        said = f"labels {', '.join(sorted(numbered))} are taken for the numbers of the classes"
        return Matched(numbered, f"{said} {names}")
    strange = sorted(set(labels) - set(classes))
    raise InputError(
        "The data has labels that the model does not know: "
        f"{', '.join(map(repr, strange[:5]))}{', ...' if len(strange) > 5 else ''}; it knows "
        f"{', '.join(map(repr, classes))}. {_way_out(classes, labels)}"
    )


def _way_out(classes: Sequence[str], labels: Sequence[str]) -> str:
    """What to do about labels that a model does not know."""
    if pairs := suggested(classes, labels):
        python = f"give labels={pairs!r} in Python"
        return f"If these go together, {python}, or add: --labels {quote(pairs)}"
    told = "Say which is which by --labels OWN=CLASS,OWN=CLASS, or remove the rows of the others"
    if len(classes) == 2 and _numbers(labels):
        return f"If they are ratings, {threshold_hint(labels)}. {told}."
    return f"{told}."


def suggested(classes: Sequence[str], labels: Sequence[str]) -> str:
    """Labels and the classes that they may be in another spelling, as `--labels` takes them.

    By beginnings (`neg`, `negative`), by usual names of bad and good, else in their order where a
    model has names such as LABEL_0. Nothing where that leaves a label without a class of its own.

    >>> suggested(("LABEL_0", "LABEL_1"), ("pos", "neg"))
    'neg=LABEL_0,pos=LABEL_1'
    >>> suggested(("ham", "spam"), ("politics", "sports"))
    ''
    """
    ordered = in_class_order(labels)
    is_plain = len(classes) == len(ordered) and all(
        re.fullmatch(r"(label_?)?\d+", name.casefold()) for name in classes
    )
    rules: list[Callable[[str, int], bool]] = [
        lambda label, place: _is_start(label, classes[place]),
        lambda label, place: any({_bare(label), _bare(classes[place])} <= s for s in (_LOW, _HIGH)),
        lambda label, place: is_plain and ordered.index(label) == place,
    ]
    for is_alike in rules:
        found = [[p for p in range(len(classes)) if is_alike(label, p)] for label in ordered]
        places = [one[0] for one in found if len(one) == 1]
        if len(places) == len(set(places)) == len(ordered):
            pairs = zip(ordered, places, strict=True)
            return ",".join(f"{label}={classes[place]}" for label, place in pairs)
    return ""


def _bare(name: str) -> str:
    return re.sub(r"[\W_]+", "", name.casefold())


def _is_start(one: str, other: str) -> bool:
    short, long = sorted((_bare(one), _bare(other)), key=len)
    return (len(short) > 1 or short.isdigit()) and long.startswith(short)
