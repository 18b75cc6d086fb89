"""Recipes: what a person types, and what it stands for."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from heedful.errors import InputError
from heedful.models.recipe import (
    ATTENTIONS,
    ENCODERS,
    JOINS,
    ModelConfig,
    Penalties,
    Recipe,
    looks_like_recipe,
    parse,
    with_settings,
)

positive = st.floats(min_value=1e-12, max_value=1e18)


@st.composite
def recipes(draw: st.DrawFn) -> Recipe:
    encoder = draw(st.sampled_from(ENCODERS))
    is_recurrent = encoder.endswith(("lstm", "gru"))
    masked_words = draw(st.one_of(st.just(0.0), positive))
    model = ModelConfig(
        encoder=encoder,
        layers=draw(st.integers(1, 4)) if is_recurrent else 1,
        attention=draw(st.sampled_from(ATTENTIONS)),
        scale=draw(st.one_of(st.none(), positive)),
        join=draw(st.sampled_from(JOINS)),
        hierarchical=draw(st.booleans()),
        embedding_dim=100,
        freeze_embeddings=masked_words > 0,
    )
    return Recipe(model, Penalties(draw(st.one_of(st.just(0.0), positive)), masked_words))


@given(recipes())
def test_a_recipe_reads_back_from_its_own_text(recipe: Recipe) -> None:
    assert parse(str(recipe), embedding_dim=100) == recipe
    assert looks_like_recipe(str(recipe))


def test_each_part_of_a_recipe_goes_where_it_belongs() -> None:
    recipe = parse("han:bilstm*2+scaled-dot@10+concat+tying:0.5", width=64)
    assert recipe.model == ModelConfig(
        encoder="bilstm",
        layers=2,
        attention="scaled-dot",
        scale=10.0,
        join="concat",
        hierarchical=True,
        width=64,
    )
    assert recipe.penalties == Penalties(tying=0.5)
    assert str(recipe) == "han:bilstm*2+scaled-dot@10+concat+tying:0.5"


def test_the_order_of_penalties_and_join_does_not_matter() -> None:
    assert parse("gru+dot+mlm:1+tying:2+concat") == parse("gru+dot+concat+tying:2+mlm:1")


@pytest.mark.parametrize(
    ("recipe", "said"),
    [
        ("", "A recipe reads"),
        ("bilstm", "A recipe reads"),
        ("xhan:bilstm+additive", "A recipe reads"),
        ("han:han:bilstm+additive", "A recipe reads"),
        ("bilsm+additive", "Did you mean 'bilstm'?"),
        ("bilstm+aditive", "Did you mean 'additive'?"),
        ("bilstm*two+additive", "Expected a number, got 'two'"),
        ("bilstm*+additive", "Expected a number, got ''"),
        ("bilstm*0+additive", "has 1 to 1000 layers"),
        ("conv*2+additive", "only recurrent encoders are stacked"),
        ("bilstm+additive@", "Expected a number, got ''"),
        ("bilstm+additive@0", "λ must be above 0"),
        ("bilstm+additive@nan", "λ must be above 0"),
        ("bilstm+additive@inf", "λ must be above 0"),
        ("bilstm+additive+tying", "Cannot read 'tying'"),
        ("bilstm+additive+tying:-1", "must be a number from 0 up, got -1"),
        ("bilstm+additive+tying:nan", "must be a number from 0 up, got nan"),
        ("bilstm+additive+tying:1+tying:2", "Cannot read 'tying:2'"),
        ("bilstm+additive+concat+residual", "Cannot read 'residual'"),
        ("bilstm+additive+glue", "Cannot read 'glue'"),
        ("bilstm+additive+glue:1", "Cannot read"),
    ],
)
def test_a_bad_recipe_is_refused_in_one_sentence(recipe: str, said: str) -> None:
    with pytest.raises(InputError) as caught:
        parse(recipe)
    text = str(caught.value)
    assert said in text
    assert text.endswith((".", "?"))
    assert "\n" not in text


@pytest.mark.parametrize(
    ("settings", "said"),
    [
        ({"widht": 3}, "Did you mean 'width'?"),
        ({"width": 0}, "width must be 1 to"),
        ({"width": 7}, "needs an even width, got 7"),
        ({"embedding_dim": -1}, "embedding_dim must be 1 to"),
        ({"attention_dim": 0}, "attention_dim must be 1 to"),
        ({"dropout": 1.0}, "dropout lies in [0, 1), got 1.0"),
        ({"head_dropout": math.nan}, "head_dropout lies in [0, 1)"),
        ({"head_dropout_on": "both"}, "Unknown place for head dropout"),
    ],
)
def test_a_bad_size_is_refused_in_one_sentence(settings: dict[str, float], said: str) -> None:
    with pytest.raises(InputError) as caught:
        parse("bilstm+additive", **settings)
    assert said in str(caught.value)


@pytest.mark.parametrize("text", ["runs/first", "model", "./a+b", "C:+x", "hf:name", "bilstm+"])
def test_a_path_does_not_look_like_a_recipe(text: str) -> None:
    assert not looks_like_recipe(text)


def test_a_number_larger_than_any_float_is_refused_in_one_sentence() -> None:
    with pytest.raises(InputError, match="The setting scale must be"):
        with_settings(ModelConfig, {"scale": 10**400})
