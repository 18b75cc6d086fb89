"""How much is measured: the sizes of the published table, and small ones for tests."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Sizes:
    """Sizes of all cases."""

    documents: int = 32
    units: int = 400
    classes: int = 5
    repeats: int = 9
    slow_repeats: int = 3
    """Samples of what takes seconds."""
    lengths: tuple[int, ...] = (400, 800, 1_600, 3_200)
    """Units over which growth is fitted."""
    pair_lengths: tuple[int, ...] = (100, 200, 400)
    """Units up to which the pair adversary looks at every pair."""
    pair_documents: int = 8
    short_documents: int = 128
    """Documents of the lengths of SST."""
    steps: int = 500
    """Steps of the gradient search."""
    instances: int = 2_000
    """Training documents of the stacked models."""
    texts: int = 6_920
    words: int = 13_800
    """Those of SST."""
    traced: int = 256
    """Sentences of 20 words whose attention is traced."""
    tokens: int = 512
    """Of a text that a Transformer is explained on, special ones included."""
    short_words: int = 48
    """Words of one that every word is taken away from, or every point of a path computed for."""
    layers: int = 6
    """Of that Transformer."""
    pairs: int = 29_000
    """Sentence pairs that are aligned: those of Multi30k."""
    few: int = 600
    many: int = 2_400
    memory_units: int = 200
    audited: int = 800
    """Documents of a whole audit."""
    compared: int = 50
    """Documents whose ranking is made with captum too: those of an audit's first look."""
    audited_few: int = 2_000
    audited_many: int = 100_000
    """Of audits at effort normal, whose cost is compared."""
    grown: tuple[int, int, int] = (100, 60, 1)
    """Documents, words and layers of an exhaustive audit, each of which grows so many times."""
    grown_times: tuple[int, ...] = (1, 2, 4)


PUBLISHED = Sizes()
SMALL = Sizes(
    documents=3,
    units=30,
    repeats=2,
    slow_repeats=1,
    lengths=(16, 32),
    pair_lengths=(8, 16),
    pair_documents=2,
    short_documents=6,
    steps=20,
    instances=120,
    texts=200,
    words=300,
    traced=8,
    tokens=16,
    short_words=5,
    layers=2,
    pairs=200,
    few=32,
    many=64,
    memory_units=20,
    audited=60,
    compared=4,
    audited_few=60,
    audited_many=120,
    grown=(3, 6, 1),
    grown_times=(1, 2),
)
