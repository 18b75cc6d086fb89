"""Text as sentencepiece ids, and back."""

from __future__ import annotations

import io
import re
from collections.abc import Iterable, Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Any

from heedful.corpora.pairs import END, PAD, START, UNKNOWN, EncodedPairs, PairSide, PairSplit
from heedful.corpora.parallel import Parallel
from heedful.errors import InputError

if TYPE_CHECKING:
    import numpy as np
    import pandas as pd
    from sacrebleu.metrics.bleu import BLEUScore

PIECES = 8_000
"""Of source and target together."""
MAX_PIECES = 400
"""Of a sentence at most."""


class PieceTokeniser:
    """A sentencepiece tokeniser, from the bytes of its own file."""

    def __init__(self, model: bytes) -> None:
        self.model = model

    @cached_property
    def _processor(self) -> Any:
        from sentencepiece import SentencePieceProcessor

        try:
            return SentencePieceProcessor(model_proto=self.model)
        except RuntimeError as error:
            reason = str(error).splitlines()[0]
            raise InputError(f"This is not a sentencepiece model ({reason}).") from error

    def __len__(self) -> int:
        return int(self._processor.get_piece_size())

    @property
    def words(self) -> tuple[str, ...]:
        """How each id is written."""
        return tuple(self._processor.id_to_piece(number) for number in range(len(self)))

    def encode(self, texts: Sequence[str]) -> list[list[int]]:
        """The ids of each text, without start and end."""
        found: list[list[int]] = self._processor.encode(list(texts), out_type=int)
        return found

    def decode(self, rows: Sequence[Sequence[int]]) -> list[str]:
        """Texts from ids."""
        found: list[str] = self._processor.decode([list(row) for row in rows])
        return found


def normalised(texts: Sequence[str]) -> list[str]:
    """The texts as pieces see them: NFKC, and single blanks also for zero-width ones."""
    from sentencepiece import SentencePieceNormalizer

    seen: list[str] = SentencePieceNormalizer(rule_name="nmt_nfkc").normalize(list(texts))
    return [" ".join(text.split()) for text in seen]


def train_pieces(texts: Iterable[str], size: int = PIECES, is_exact: bool = True) -> PieceTokeniser:
    """A unigram tokeniser of exactly so many pieces, learnt from the texts.

    Padding, start, end and unknown have the ids 0 to 3. The same texts give the same pieces. If not
    exact, a text that supports fewer pieces gets fewer.
    """
    from sentencepiece import SentencePieceTrainer

    written = io.BytesIO()
    softly: dict[str, Any] = {} if is_exact else {"hard_vocab_limit": False}
    try:
        SentencePieceTrainer.train(
            sentence_iterator=iter(texts), model_writer=written, vocab_size=size,
            pad_id=PAD, bos_id=START, eos_id=END, unk_id=UNKNOWN, num_threads=1, minloglevel=2,
            **softly,
        )  # fmt: skip
    except RuntimeError as error:
        most = re.search(r"<= (\d+)", str(error))
        if most:
            raise InputError(
                f"The text supports {int(most[1]):,} pieces at most, {size:,} were asked for; "
                "lower --pieces or give more text."
            ) from error
        least = re.search(r"(\d+) vs (\d+)", str(error))
        if least:
            raise InputError(
                f"The text has {int(least[2]):,} characters and special pieces, more than the "
                f"{size:,} pieces asked for; raise --pieces."
            ) from error
        reason = " ".join(str(error).split())
        raise InputError(
            f"No {size:,} pieces can be learnt from this text ({reason}); change --pieces, or give "
            "sentences to learn from."
        ) from error
    return PieceTokeniser(written.getvalue())


def encode_parallel(
    corpus: Parallel,
    size: int = PIECES,
    max_pieces: int = MAX_PIECES,
    pieces: PieceTokeniser | None = None,
) -> EncodedPairs:
    """A parallel corpus as ids; the pieces are learnt from both sides of its training pairs.

    Pieces that are given are used as they are.
    """
    training = corpus.splits.get("train", ())
    if not training:
        raise InputError(f"{corpus.name} has no training pairs to learn pieces from.")
    if pieces is None:
        pieces = train_pieces((text for pair in training for text in pair), size)
    splits = {}
    for split, pairs in corpus.splits.items():
        sides = [pieces.encode([pair[side] for pair in pairs]) for side in (0, 1)]
        for rows in sides:
            for number, row in enumerate(rows, 1):
                if len(row) > max_pieces:
                    raise InputError(
                        f"{corpus.name}, {split} pair {number:,} has {len(row):,} pieces, more "
                        f"than the limit of {max_pieces:,}; leave it out or raise the limit."
                    )
        names = tuple(f"{corpus.name}/{split}/{number}" for number in range(len(pairs)))
        texts = tuple(target for _, target in pairs)
        splits[split] = PairSplit(PairSide.of(sides[0]), PairSide.of(sides[1]), names, texts)
    return EncodedPairs(corpus.name, splits, pieces.words, pieces.model)


def bleu(translations: Sequence[str], references: Sequence[str]) -> BLEUScore:
    """Corpus BLEU of sacrebleu with its defaults: 13a tokens, exponential smoothing, mixed case."""
    from sacrebleu import corpus_bleu

    if len(translations) != len(references) or not len(references):
        raise InputError(
            f"BLEU needs one reference for each translation, got {len(translations):,} and "
            f"{len(references):,}."
        )
    return corpus_bleu(list(translations), [list(references)])


ORDERS = (1, 2, 3, 4)
"""Lengths of the n-grams that BLEU counts."""


def bleu_counts(translations: Sequence[str], references: Sequence[str]) -> pd.DataFrame:
    """What corpus BLEU adds up, for each sentence: matches and n-grams of each order, lengths."""
    import pandas as pd
    from sacrebleu import sentence_bleu

    rows = []
    for translation, reference in zip(translations, references, strict=True):
        found = sentence_bleu(translation, [reference])
        row: dict[str, int] = {f"matches {n}": found.counts[n - 1] for n in ORDERS}
        row |= {f"ngrams {n}": found.totals[n - 1] for n in ORDERS}
        rows.append(row | {"length": found.sys_len, "reference length": found.ref_len})
    return pd.DataFrame(rows)


def bleu_of_counts(
    counts: pd.DataFrame, weights: np.ndarray[Any, Any]
) -> np.ndarray[Any, np.dtype[np.float64]]:
    """Corpus BLEU of each resample: weights [replicate sentence] to [replicate].

    exp(min(0, 1 - r / c)) (Π pₙ)^¼ in points, as sacrebleu smooths: the first order without a match
    counts half a match, the next a quarter, and so on. Without any match it is 0.
    """
    import numpy as np

    def total(name: str) -> np.ndarray[Any, np.dtype[np.float64]]:
        return np.asarray(weights @ counts[name].to_numpy(dtype=np.float64))

    matches = np.stack([total(f"matches {n}") for n in ORDERS])
    ngrams = np.stack([total(f"ngrams {n}") for n in ORDERS])
    with np.errstate(divide="ignore", invalid="ignore"):
        is_missed = (matches == 0) & (ngrams > 0)
        smoothed = np.where(is_missed, 0.5 ** np.cumsum(is_missed, 0), matches)
        precision = np.log(smoothed / ngrams).mean(0)
        brevity = np.minimum(0.0, 1 - total("reference length") / total("length"))
        score = np.nan_to_num(100 * np.exp(precision + brevity), nan=0.0)
    return np.where(matches.any(0), score, 0.0)
