"""A text with its words coloured by importance, for a paper."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import ArrayLike

ESCAPES = {
    "\\": r"\textbackslash{}", "{": r"\{", "}": r"\}", "$": r"\$", "&": r"\&", "#": r"\#",
    "%": r"\%", "_": r"\_", "^": r"\textasciicircum{}", "~": r"\textasciitilde{}",
}  # fmt: skip


def highlighted(words: Sequence[str], importance: ArrayLike, colour: str = "red") -> str:
    r"""The words as LaTeX (packages `xcolor`), the colour's strength from 0 to 100.

    Importances are rescaled to their least and largest; where all are equal nothing is coloured.

    >>> print(highlighted(["so", "bad"], [0.1, 0.4]))
    \colorbox{red!0}{\strut so} \colorbox{red!100}{\strut bad}
    """
    values = np.asarray(importance, dtype=np.float64)
    spread = float(np.ptp(values)) if len(values) else 0.0
    strength = np.round(100 * (values - values.min()) / spread) if spread else np.zeros(len(values))
    return " ".join(
        f"\\colorbox{{{colour}!{int(share)}}}{{\\strut {escaped(word)}}}"
        for word, share in zip(words, strength.tolist(), strict=True)
    )


def escaped(text: str) -> str:
    """The text as LaTeX prints it."""
    return "".join(ESCAPES.get(letter, letter) for letter in text)
