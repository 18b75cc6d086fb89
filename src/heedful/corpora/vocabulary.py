"""Words and their ids."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, field

from heedful.corpora.documents import Document

PAD, UNKNOWN, MASK, START, END = range(5)
SPECIALS = ("<pad>", "<unk>", "<mask>", "<bos>", "<eos>")


@dataclass(frozen=True)
class Vocabulary:
    """Words by id: the five special symbols first, then words by falling frequency."""

    words: tuple[str, ...]
    """All entries, specials included; the position is the id."""
    ids: dict[str, int] = field(init=False, repr=False, compare=False)
    """The inverse of `words`."""

    def __post_init__(self) -> None:
        if self.words[: len(SPECIALS)] != SPECIALS:
            raise ValueError(f"a vocabulary starts with {SPECIALS}, got {self.words[:5]}")
        object.__setattr__(self, "ids", {word: index for index, word in enumerate(self.words)})

    def __len__(self) -> int:
        return len(self.words)

    def encode(self, tokens: Sequence[str]) -> list[int]:
        """Ids of the tokens; words that are not in the vocabulary become `<unk>`.

        So does a token that reads `<pad>`: no document holds padding, whatever its text says.
        """
        # Padding is id 0, the only one that is false.
        return [self.ids.get(token, UNKNOWN) or UNKNOWN for token in tokens]

    @classmethod
    def of(
        cls,
        documents: Iterable[Document],
        min_count: int = 1,
        max_size: int | None = None,
        known: Collection[str] = (),
    ) -> Vocabulary:
        """The words of the documents seen at least `min_count` times, most frequent first.

        Those that are `known` anyhow may be rarer. Ties keep the order of first appearance. A word
        of the text that looks like a special symbol is not taken in: it reads as unknown.
        """
        counts: Counter[str] = Counter()
        for document in documents:
            counts.update(document.tokens)
        for special in SPECIALS:
            counts.pop(special, None)
        kept = [
            word
            for word, count in counts.most_common(max_size)
            if count >= min_count or word in known
        ]
        return cls(SPECIALS + tuple(kept))
