"""Translations: greedy, beam, and how they are kept and scored."""

import itertools
from pathlib import Path

import pytest
import torch

from heedful.corpora.pairs import END, PAD, START, Pairs
from heedful.corpora.pieces import PieceTokeniser, bleu, train_pieces
from heedful.errors import InputError
from heedful.models.decoding import beam_search, greedy, search
from heedful.models.saved_translator import SavedTranslator, load_translator, save_translator
from heedful.models.translator import Translator, TranslatorConfig, build_translator
from tests.pairs_by_hand import pairs, translator

TEXTS = [f"the {a} {b} was {c}" for a in ("old", "new") for b in ("bar", "film", "phone")
         for c in ("good", "bad", "fine")]  # fmt: skip


def log_probability(model: Translator, given: Pairs, words: tuple[int, ...]) -> float:
    """log p of a whole translation, under teacher forcing."""
    before = torch.tensor([[START, *words[:-1]]])
    target = torch.tensor([list(words)])
    asked = Pairs(
        given.source, before, target, given.source_lengths, torch.tensor([len(words)]), given.names
    )
    with torch.no_grad():
        logits = model(asked).logits.log_softmax(-1)
    return float(logits.gather(-1, target[..., None]).sum())


def test_greedy_takes_the_most_probable_next_word() -> None:
    model, given = translator("published"), pairs()
    found = greedy(model, given, longest=6)
    for row, words in enumerate(found):
        one = pairs((row,))
        written: list[int] = []
        for _ in range(6):
            before = torch.tensor([[START, *written]])
            asked = Pairs(one.source, before, before, one.source_lengths,
                          torch.tensor([before.shape[1]]), one.names)  # fmt: skip
            with torch.no_grad():
                best = int(model(asked).logits[0, -1].argmax())
            if best == END:
                break
            written.append(best)
        assert words == [word for word in written if word != PAD]


def test_a_beam_of_all_finds_the_best_translation() -> None:
    torch.manual_seed(0)
    model = build_translator(TranslatorConfig(6, 4, 4)).double().eval()
    with torch.no_grad():
        for parameter in model.parameters():
            parameter *= 3
        model.words.bias[PAD] = -50  # a translation is never padding
    given = Pairs(
        torch.tensor([[START, 4, 5, END]]), torch.tensor([[START]]), torch.tensor([[END]]),
        torch.tensor([4]), torch.tensor([1]), ("a",),
    )  # fmt: skip
    words = (START, END, 3, 4, 5)
    everything = [
        (*middle, END)
        for length in range(3)
        for middle in itertools.product((START, 3, 4, 5), repeat=length)
    ] + [whole for whole in itertools.product(words, repeat=3) if END not in whole[:2]]
    best = max(set(everything), key=lambda one: log_probability(model, given, one))
    found = search(model, given, width=25, longest=3)
    assert float(found.score[0, 0]) == pytest.approx(log_probability(model, given, best), abs=1e-10)
    kept = [word for word in found.words[0, 0].tolist() if word != PAD]
    assert tuple(kept) == best


def test_a_wider_beam_is_never_worse_and_a_beam_of_one_is_greedy() -> None:
    model, given = translator("published"), pairs()
    one, all_words = (search(model, given, width, 2).score[:, 0] for width in (1, 12))
    assert bool((all_words >= one - 1e-12).all())
    assert beam_search(model, given, 1, longest=8) == greedy(model, given, longest=8)
    ordered = search(model, given, 5, longest=8).score
    assert torch.equal(ordered, ordered.sort(-1, descending=True).values)


def test_padding_does_not_change_a_translation() -> None:
    model = translator("published")
    together = beam_search(model, pairs(), 3, longest=7)
    for row in range(4):
        assert beam_search(model, pairs((row,)), 3, longest=7) == [together[row]]


def test_bleu_is_sacrebleu_s() -> None:
    assert bleu(["the cat sat on the mat"], ["the cat sat on the mat"]).score == pytest.approx(100)
    # Papineni et al.'s example: 2 of 7 unigrams survive clipping; no longer match is there.
    found = bleu(["the the the the the the the"], ["the cat is on the mat"])
    assert found.precisions[0] == pytest.approx(100 * 2 / 7)
    with pytest.raises(InputError, match="one reference"):
        bleu(["a"], [])


def test_a_translator_is_kept_with_its_pieces(tmp_path: Path) -> None:
    texts = TEXTS
    pieces = train_pieces(texts, 30)
    model = build_translator(TranslatorConfig(len(pieces), 8, 8)).eval()
    saved = SavedTranslator(model, pieces)
    save_translator(saved, tmp_path)
    back = load_translator(tmp_path)
    assert back.model.config == model.config
    assert back.translate(texts[:3], 2) == saved.translate(texts[:3], 2)
    assert (tmp_path / "pieces.model").read_bytes() == pieces.model
    (tmp_path / "model.safetensors").write_bytes(b"broken")
    with pytest.raises(InputError, match="train it again"):
        load_translator(tmp_path)
    with pytest.raises(InputError, match="holds no translator"):
        load_translator(tmp_path / "nowhere")


def test_pieces_come_back_as_text_and_bad_sizes_are_told() -> None:
    texts = TEXTS
    pieces = train_pieces(texts, 30)
    assert len(pieces) == 30
    assert pieces.words[:4] == ("<pad>", "<s>", "</s>", "<unk>")
    assert pieces.decode(pieces.encode(texts[:2])) == texts[:2]
    assert PieceTokeniser(pieces.model).encode(texts[:1]) == pieces.encode(texts[:1])
    assert train_pieces(texts, 30).model == pieces.model
    with pytest.raises(InputError, match=r"supports \d+ pieces at most, 5,000 were asked for"):
        train_pieces(texts, 5_000)
    with pytest.raises(InputError, match="more than the 6 pieces asked for"):
        train_pieces(texts, 6)
    with pytest.raises(InputError, match="not a sentencepiece model"):
        len(PieceTokeniser(b"nonsense"))
