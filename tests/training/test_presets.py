"""The erasure study's presets against the table of its page.

See docs/studies/erasure.md, "Training".
"""

from dataclasses import asdict, replace

import pytest
import torch

from heedful.corpora import Vocabulary
from heedful.corpora.vocabulary import SPECIALS
from heedful.errors import InputError
from heedful.models import ModelConfig, build, parse
from heedful.models.classifier_stack import ClassifierStack
from heedful.models.recipe import LATER, described
from heedful.training.presets import PRESETS

WORDS = Vocabulary((*SPECIALS, "long", "short", "unread"))

# p_s, p_d, p_c and rate of HANs; p_d and p_c of FLANs.
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


def test_only_two_models_of_yelp_cut_their_word_vectors() -> None:
    cut = {
        name for name in PRESETS if name.startswith("erasure/") and config_of(name).embedding_norm
    }
    assert cut == {"erasure/yelp/han-rnn", "erasure/yelp/han-noenc"}
    assert config_of("erasure/yelp/han-rnn").embedding_norm == 1.0
    assert not config_of("erasure/yelp/han-rnn").gru_bias_quirk  # an option, not what we train


def test_the_release_starts_a_quarter_of_the_recurrent_bias_at_one() -> None:
    config = replace(config_of("erasure/imdb/flan-rnn"), gru_bias_quirk=True)
    cells = dict(build(config, WORDS, ("a", "b")).level.encoder.cells.named_parameters())
    for end in ("", "_reverse"):
        bias = cells[f"bias_hh_l0{end}"].detach()
        assert len(bias) == 150
        assert torch.equal(torch.nonzero(bias)[:, 0], torch.arange(37, 74))
        assert bool((bias[37:74] == 1).all())
        assert not cells[f"bias_ih_l0{end}"].detach().any()
    with pytest.raises(InputError, match="gru and bigru"):
        parse("bilstm+additive", gru_bias_quirk=True)


def test_longer_word_vectors_are_cut_when_they_are_read() -> None:
    config = parse("none+additive", embedding_dim=2, embedding_norm=1.0).model
    model = build(config, WORDS, ("a", "b"))
    with torch.no_grad():
        model.embedding.weight[5:] = torch.tensor([[3.0, 4.0], [0.3, 0.4], [0.0, 2.0]])
    read = model.embed(model.batch(["long short"]))
    torch.testing.assert_close(read[0], torch.tensor([[0.6, 0.8], [0.3, 0.4]]))
    assert model.embedding.weight[7].tolist() == [0.0, 2.0]  # not read yet
    read.sum().backward()
    assert model.embedding.weight.grad is not None
    assert model.embedding.weight.grad[5].tolist() == [1.0, 1.0]  # the cut itself has no gradient
    with pytest.raises(InputError, match="embedding_norm must be above 0"):
        parse("none+additive", embedding_norm=0.0)
    with pytest.raises(InputError, match="cannot be stacked"):
        ClassifierStack([model], "cpu")


def test_later_settings_count_only_where_they_are_set() -> None:
    plain, changed = ModelConfig(), ModelConfig(embedding_norm=1.0)
    assert described(plain).keys() == asdict(plain).keys() - set(LATER)
    assert described(changed) == described(plain) | {"embedding_norm": 1.0}
