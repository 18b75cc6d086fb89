"""Keeping a translator with its pieces, and using it on text."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

import torch
from safetensors import SafetensorError
from safetensors.torch import load_file, save_file

from heedful.corpora.pairs import PairSide, PairSplit, pair_batches
from heedful.corpora.pieces import PieceTokeniser
from heedful.errors import InputError
from heedful.models.decoding import beam_search, greedy
from heedful.models.saved import CONFIG, WEIGHTS
from heedful.models.translator import Translator, TranslatorConfig
from heedful.runs.atomic import read_json, write_json, writing

FORMAT = 1
PIECES_FILE = "pieces.model"
SENTENCES = {"cpu": 128, "cuda": 1_024}
"""Translated together: on a GPU a word costs its launches, whatever the number of sentences."""


@dataclass(frozen=True, eq=False)
class SavedTranslator:
    """A translator and the pieces it reads and writes."""

    model: Translator
    pieces: PieceTokeniser

    def translate(self, texts: Sequence[str], beam: int = 5) -> list[str]:
        """The texts in the other language; a beam of 1 is greedy."""
        rows = self.pieces.encode(texts)
        split = PairSplit(
            PairSide.of(rows),
            PairSide.of([[] for _ in rows]),
            tuple(map(str, range(len(rows)))),
            (),
        )
        return translations(self.model, split, self.pieces, beam)


def translations(
    model: Translator, split: PairSplit, pieces: PieceTokeniser, beam: int = 5
) -> list[str]:
    """What the model makes of every source of a split, in its order."""
    found = [""] * len(split)
    at_once = SENTENCES.get(model.device.type, SENTENCES["cpu"])
    for rows, pairs in pair_batches(split, at_once):
        here = pairs.to(model.device)
        ids = greedy(model, here) if beam == 1 else beam_search(model, here, beam)
        for row, text in zip(rows.tolist(), pieces.decode(ids), strict=True):
            found[row] = text
    return found


def save_translator(saved: SavedTranslator, folder: Path) -> None:
    """Writes weights, configuration and the pieces' own file to a folder; the weights come last."""
    config = {"format": FORMAT, "kind": "translator", "model": asdict(saved.model.config)}
    write_json(folder / CONFIG, config)
    with writing(folder / PIECES_FILE) as path:
        path.write_bytes(saved.pieces.model)
    weights = {n: w.detach().cpu().contiguous() for n, w in saved.model.state_dict().items()}
    with writing(folder / WEIGHTS) as path:
        save_file(weights, path)


def load_translator(folder: Path, device: torch.device | str = "cpu") -> SavedTranslator:
    """The translator kept in a folder, in evaluation mode."""
    if not (folder / WEIGHTS).is_file() or not (folder / PIECES_FILE).is_file():
        raise InputError(f"{folder} holds no translator ({WEIGHTS} or {PIECES_FILE} is missing).")
    stored = read_json(folder / CONFIG)
    try:
        if stored["kind"] != "translator" or stored["format"] != FORMAT:
            raise InputError(
                f"{folder} holds a {stored['kind']} of format {stored['format']}, expected a "
                f"translator of format {FORMAT}."
            )
        model = Translator(TranslatorConfig(**stored["model"]))
        model.load_state_dict(load_file(folder / WEIGHTS))
    except InputError:
        raise
    except (KeyError, TypeError, RuntimeError, ValueError, SafetensorError) as error:
        reason = str(error).splitlines()[0]
        raise InputError(
            f"{folder} is not a translator heedful can read ({reason}); train it again."
        ) from error
    pieces = PieceTokeniser((folder / PIECES_FILE).read_bytes())
    return SavedTranslator(model.to(device).eval(), pieces)
