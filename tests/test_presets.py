"""The erasure study's presets against the table of its specification (erasure.md §2)."""

import pytest

from heedful.models import ModelConfig, parse
from heedful.training.presets import PRESETS

# p_s, p_d, p_c and rate of HANs; p_d and p_c of FLANs (§2.9).
RATES = {
    "yahoo": (0.4445, 0.2202, 0.3749, 0.0004, 0.4445, 0.4457),
    "imdb": (0.4445, 0.2202, 0.2457, 0.0004, 0.4445, 0.3457),
    "amazon": (0.6, 0.2, 0.4, 0.0002, 0.6, 0.4),
    "yelp": (0.7, 0.1, 0.7, 0.0001, 0.7, 0.7),
}
NAMES = [
    (corpus, family, encoder)
    for corpus in RATES
    for family in ("han", "flan")
    for encoder in ("rnn", "conv", "noenc")
]


def config_of(name: str) -> ModelConfig:
    preset = PRESETS[name]
    return parse(preset.recipe, **preset.model).model


@pytest.mark.parametrize(("corpus", "family", "encoder"), NAMES)
def test_a_preset_has_the_published_sizes_and_dropouts(
    corpus: str, family: str, encoder: str
) -> None:
    model = config_of(f"erasure/{corpus}/{family}-{encoder}")
    words, sentences, head, _, flat, flat_head = RATES[corpus]
    assert model.hierarchical == (family == "han")
    assert model.encoder == {"rnn": "bigru", "conv": "conv", "noenc": "none"}[encoder]
    assert (model.attention, model.layers, model.embedding_dim) == ("additive", 1, 200)
    # d = 100 with an encoder (50 a direction, 50 filters a window), 200 without; m = d.
    assert model.width == 100
    assert model.attention_dim == (200 if encoder == "noenc" else 100)
    assert model.dropout == (sentences if family == "han" else flat)
    if family == "han":
        assert model.word_dropout == words
    assert model.head_dropout == (head if family == "han" else flat_head)
    assert model.head_dropout_on == "logits"
    assert model.window_dropout == 0.3
    assert model.start == "orthogonal"
    assert not model.freeze_embeddings


@pytest.mark.parametrize(("corpus", "family", "encoder"), NAMES)
def test_a_preset_has_the_published_schedule(corpus: str, family: str, encoder: str) -> None:
    preset = PRESETS[f"erasure/{corpus}/{family}-{encoder}"]
    train = preset.train
    assert (train.optimiser, train.batch_size) == ("adam", 64)
    assert train.learning_rate == RATES[corpus][3]
    assert train.patience == (10 if encoder == "noenc" else 5)
    assert train.epochs == (15 if corpus in ("yahoo", "imdb") and encoder != "noenc" else 60)
    assert train.halve_on_plateau
    assert train.select == "accuracy"
    is_clamped = corpus in ("amazon", "yelp") and encoder in ("rnn", "noenc")
    assert (train.clip_norm, train.clip_value) == ((0.0, 50.0) if is_clamped else (10.0, 0.0))
    bounds = {"yahoo": 15_000, "imdb": 20_000, "amazon": 135_000, "yelp": 90_000}
    assert train.max_batch_tokens == bounds[corpus]
    assert preset.words == {"min_count": 5}


def test_without_a_corpus_the_values_are_those_of_imdb() -> None:
    assert PRESETS["erasure/han-rnn"] == PRESETS["erasure/imdb/han-rnn"]
    assert sum(name.startswith("erasure/") for name in PRESETS) == 24 + 6
