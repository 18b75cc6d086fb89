"""Row by row, word vectors become what the optimiser makes of the whole table."""

import numpy as np
import pytest
import torch
from torch import nn

from heedful.corpora.batches import Batch
from heedful.training import TrainConfig
from heedful.training.optimisers import optimiser_for
from heedful.training.rows import WordRows, fits

MODELS, WORDS, DIM = 3, 20, 4


def batch_of(generator: np.random.Generator) -> Batch:
    ids = torch.from_numpy(
        generator.integers(0, WORDS // 2, (5, 6))
    )  # half the words are never read
    plain = torch.zeros(5, dtype=torch.long)
    return Batch(ids, torch.ones_like(ids, dtype=torch.bool), plain, ids * 0, tuple("abcde"))


@pytest.mark.parametrize(
    "config",
    [
        TrainConfig(optimiser="adagrad", learning_rate=0.1, rate_decay=0.3),
        TrainConfig(optimiser="sgd", learning_rate=0.2),
        TrainConfig(optimiser="adagrad", learning_rate=0.1, weight_decay=0.1, decay="encoder"),
    ],
)
def test_rows_end_where_the_whole_table_ends(config: TrainConfig) -> None:
    assert fits(config)
    start = torch.randn(MODELS, WORDS, DIM, dtype=torch.float64)
    whole, table = nn.Parameter(start.clone()), nn.Parameter(start.clone())
    optimiser, rows = optimiser_for([("embedding.weight", whole)], config), WordRows(table, config)
    generator = np.random.default_rng(0)
    aims = torch.randn(MODELS, 5, 6, DIM, dtype=torch.float64)
    for _ in range(6):
        batch = batch_of(generator)
        optimiser.zero_grad()
        (whole[:, batch.ids] - aims).square().sum().backward()
        optimiser.step()
        lent = rows.lend(batch)
        assert torch.equal(rows.rows[:, lent.ids], table[:, batch.ids])
        (rows.rows[:, lent.ids] - aims).square().sum().backward()
        rows.update()
        torch.testing.assert_close(table, whole, rtol=0, atol=1e-13)
    assert torch.equal(table[:, WORDS // 2 :], start[:, WORDS // 2 :])
    assert float((table - start).detach()[:, : WORDS // 2].abs().min()) > 0


@pytest.mark.parametrize(
    "config",
    [
        TrainConfig(optimiser="adam"),  # it moves words that were not read, too
        TrainConfig(optimiser="sgd", weight_decay=0.1),
        TrainConfig(optimiser="adagrad", weight_decay=0.1, decay="all but attention"),
    ],
)
def test_where_unread_words_move_the_whole_table_is_needed(config: TrainConfig) -> None:
    assert not fits(config)


def test_without_a_gradient_nothing_moves() -> None:
    table = nn.Parameter(torch.randn(MODELS, WORDS, DIM))
    before = table.detach().clone()
    rows = WordRows(table, TrainConfig(optimiser="sgd"))
    rows.lend(batch_of(np.random.default_rng(1)))
    rows.update()
    assert torch.equal(table, before)
