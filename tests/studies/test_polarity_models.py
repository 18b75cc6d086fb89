"""The polarity study's models start, are penalised and are refused as its section 2 says."""

import numpy as np
import pytest
import torch

from heedful.corpora.vocabulary import SPECIALS, Vocabulary
from heedful.errors import InputError
from heedful.models import AttentionClassifier, Penalties, Recipe, build, parse
from heedful.training import TrainConfig, objectives
from heedful.training.optimisers import optimiser_of
from heedful.training.presets import POLARITY_MODELS, POLARITY_SCALES, PRESETS

WORDS = Vocabulary(SPECIALS + tuple(f"w{i}" for i in range(400)))


def of_preset(name: str, classes: int = 2) -> AttentionClassifier:
    preset = PRESETS[f"polarity/{name}"]
    config = parse(preset.recipe, **preset.model).model
    return build(config, WORDS, tuple(map(str, range(classes))), 0)


def test_there_are_28_models_for_two_classes_and_for_more() -> None:
    names = [name for name in PRESETS if name.startswith("polarity/")]
    assert len(names) == 2 * len(POLARITY_MODELS) * len(POLARITY_SCALES) == 56
    three = of_preset("dp-a@0.001/classes", 3)
    assert three.head.weight.shape == (3, 100)
    assert three.level.attention.scale == 0.001


@pytest.mark.parametrize("name", POLARITY_MODELS)
def test_starts_are_those_of_the_released_code(name: str) -> None:
    model = of_preset(f"{name}@10")
    words = model.embedding.weight[len(SPECIALS) :].detach()
    assert float(words.abs().max()) <= 0.1
    assert float(words.std()) == pytest.approx(0.1 / np.sqrt(3), rel=0.02)
    query = model.level.attention.query.weight.detach()
    assert query.shape == (1, 100)
    assert 0.7 < float(query.std()) < 1.3
    assert float(model.head.weight.abs().max()) <= 0.1
    assert model.head.bias is None
    assert model.head.out_features == 1
    assert model.level.dropout.p == model.head_dropout.p == 0.5
    if name == "dp-l":
        gates = model.level.encoder.cells.weight_ih_l0.detach()
        assert gates.shape == (200, 100)
        torch.testing.assert_close(gates.T @ gates, torch.eye(100), rtol=0, atol=1e-5)
        assert float(model.level.encoder.cells.bias_ih_l0.abs().max()) > 0
    if name == "ad":
        assert model.level.attention.hidden.weight.shape == (100, 100)
        assert model.level.attention.hidden.bias is not None


@pytest.mark.parametrize(
    ("name", "decayed"),
    [("dp", set()), ("dp-a", {"level.encoder.linear"}), ("ad", {"level.attention.hidden"})],
)
def test_weight_decay_acts_on_the_map_alone(name: str, decayed: set[str]) -> None:
    model, config = of_preset(f"{name}@10"), PRESETS[f"polarity/{name}@10"].train
    optimiser = optimiser_of(model, config)
    names = {id(p): n for n, p in model.named_parameters()}
    groups = [g for g in optimiser.param_groups if g["weight_decay"]]
    found = {names[id(p)].rpartition(".")[0] for g in groups for p in g["params"]}
    assert found == decayed
    assert optimiser.param_groups[0]["lr_decay"] == 1e-3
    assert optimiser.param_groups[0]["lr"] == 0.02


def test_synthetic_starts_are_wider_and_the_map_may_lack_a_bias() -> None:
    config = parse("none+additive@10", head_start=1.0, embedding_start=1.0, additive_bias=False)
    model = build(config.model, WORDS, ("0", "1"))
    assert 0.9 < float(model.head.weight.abs().max()) <= 1
    assert 0.9 < float(model.embedding.weight.abs().max()) <= 1
    assert float(model.embedding.weight[0].abs().max()) == 0
    assert model.level.attention.hidden.bias is None


@pytest.mark.parametrize("classes", [2, 3])
def test_the_penalty_is_the_size_of_the_raw_product(classes: int) -> None:
    plain = of_preset("dp@10" if classes == 2 else "dp@10/classes", classes)
    product = plain.head.weight @ plain.level.attention.query.weight[0]
    torch.testing.assert_close(objectives.alignment(plain), product.abs().sum())
    mapped = of_preset("dp-a@10" if classes == 2 else "dp-a@10/classes", classes)
    through = mapped.level.encoder.linear.weight
    product = mapped.head.weight @ through @ through.T @ mapped.level.attention.query.weight[0]
    torch.testing.assert_close(objectives.alignment(mapped), product.abs().sum())
    with torch.no_grad():
        plain.head.weight.zero_()
    objectives.alignment(plain).backward()
    assert float(plain.head.weight.grad.abs().max()) == 0


def test_recipes_name_the_penalty_and_models_without_a_product_refuse_it() -> None:
    recipe = parse("none+scaled-dot@100+vw:0.0001")
    assert recipe.penalties == Penalties(alignment=1e-4)
    assert parse(str(recipe)) == recipe
    assert str(Recipe(recipe.model)) == "none+scaled-dot@100"
    with pytest.raises(InputError, match="V·W penalty"):
        objectives.check(of_preset("ad@10").config, Penalties(alignment=1e-4))
    with pytest.raises(InputError, match="alignment"):
        Penalties(alignment=-1)


@pytest.mark.parametrize("scale", ["0", "-3"])
def test_scales_of_nothing_and_less_are_refused(scale: str) -> None:
    with pytest.raises(InputError, match="λ must be above 0"):
        parse(f"none+scaled-dot@{scale}")


def test_settings_that_mean_nothing_are_refused() -> None:
    with pytest.raises(InputError, match="embedding_start"):
        parse("none+dot", embedding_start=0.0)
    with pytest.raises(InputError, match="rate_decay"):
        TrainConfig(rate_decay=1e-3)
    with pytest.raises(InputError, match="random start"):
        parse("none+dot", start="orthogonal heads")
