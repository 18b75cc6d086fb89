"""Co-occurrence counts and IBM Model 1."""

from itertools import pairwise

import numpy as np
import pytest
from nltk.translate import AlignedSent, IBMModel1

from heedful.dynamics.cooccurrence import (
    alignments,
    cooccurrence,
    grid,
    iterate,
    looked_up,
    normalised,
    side,
    table_bytes,
    translation_table,
    with_empty_word,
)

FIGURE_1 = np.array(
    [
        [22, 26, 97, 13, 200],
        [4, 2, 15, 20, 21],
        [1, 43, 2, 3, 35],
        [18, 22, 100, 8, 54],
        [44, 1, 19, 3, 35],
    ]
)
"""Dieser, Film, großartig, ist, schlecht over bad, great, is, movie, This."""


def _random_pairs(count, types, seed):
    generator = np.random.default_rng(seed)
    return [
        generator.integers(0, types, size=generator.integers(1, 9)).tolist() for _ in range(count)
    ]


def test_counts_equal_the_loop_over_token_pairs():
    sources, targets = _random_pairs(40, 12, 0), _random_pairs(40, 10, 1)
    wanted = np.zeros((12, 10))
    for x, y in zip(sources, targets, strict=True):
        for i in x:
            for o in y:
                wanted[i, o] += 1 / len(x)
    found = cooccurrence(side(sources, 12), side(targets, 10)).toarray()
    np.testing.assert_allclose(found, wanted, rtol=0, atol=1e-14)


def test_the_first_iteration_is_the_normalised_count_table():
    source, target = side(_random_pairs(60, 12, 2), 12), side(_random_pairs(60, 10, 3), 10)
    counted = normalised(cooccurrence(source, target)).toarray()
    found = translation_table(source, target, 1).toarray()
    np.testing.assert_allclose(found, counted, rtol=0, atol=1e-15)


def test_probabilities_are_those_of_nltk():
    # Repeated words on both sides, and the empty word that nltk puts before every source.
    sources, targets = _random_pairs(80, 15, 4), _random_pairs(80, 12, 5)
    bitext = [
        AlignedSent([str(o) for o in y], [str(i) for i in x])
        for x, y in zip(sources, targets, strict=True)
    ]
    source, target = with_empty_word(side(sources, 15)), side(targets, 12)
    for iterations in (1, 3, 10):
        theirs = IBMModel1(bitext, iterations).translation_table
        ours = translation_table(source, target, iterations, counts_repeats=False).toarray()
        for o, row in theirs.items():
            for i, probability in row.items():
                if i is not None and float(ours[int(i), int(o)]) == 0.0:
                    continue  # nltk fills in pairs that never met when it aligns
                place = 15 if i is None else int(i)
                assert ours[place, int(o)] == pytest.approx(probability, abs=1e-11)


def test_rows_sum_to_one_and_the_loss_never_rises():
    source, target = side(_random_pairs(90, 12, 6), 12), side(_random_pairs(90, 10, 7), 10)
    losses = []
    for step in iterate(source, target, 8):
        np.testing.assert_allclose(step.table.sum(1), 1.0, atol=1e-12)
        losses.append(step.loss)
    assert losses[0] == pytest.approx(np.log(10))  # a uniform table knows nothing
    assert all(later <= before + 1e-12 for before, later in pairwise(losses))


def test_repeated_targets_count_each_time_unless_asked_otherwise():
    source, target = side([[0], [1]], 2), side([[0, 0, 1], [1]], 2)
    often = translation_table(source, target, 1).toarray()
    once = translation_table(source, target, 1, counts_repeats=False).toarray()
    np.testing.assert_allclose(often[0], [2 / 3, 1 / 3])
    np.testing.assert_allclose(once[0], [1 / 2, 1 / 2])


def test_the_worked_example_of_figure_1():
    from scipy.sparse import csr_array

    table = normalised(csr_array(FIGURE_1.astype(float)))
    movie = table.toarray()[:, 3]
    np.testing.assert_allclose(movie.round(2), [0.04, 0.32, 0.04, 0.04, 0.03])
    sentence = movie[[0, 1, 3, 4]]
    # The paper divides the rounded probabilities.
    rounded = sentence.round(2)
    assert (rounded / rounded.sum())[1] == pytest.approx(0.74, abs=0.005)
    assert (sentence / sentence.sum())[1] == pytest.approx(0.7539, abs=1e-4)


def test_permutations_of_one_set_tell_nothing_and_a_larger_vocabulary_does():
    generator = np.random.default_rng(0)
    same = [generator.permutation(8).tolist() for _ in range(50)]
    table = translation_table(side(same, 8), side(same, 8)).toarray()
    np.testing.assert_allclose(table, 1 / 8, atol=1e-15)
    more = [generator.permutation(12)[:8].tolist() for _ in range(8_000)]
    table = translation_table(side(more, 12), side(more, 12)).toarray()
    # Trans(i | i) = 1/8, Trans(o | i) = 7/11 · 1/8 (docs/studies/dynamics.md, "Copying").
    np.testing.assert_allclose(np.diag(table), 1 / 8, atol=1e-12)
    assert table[~np.eye(12, dtype=bool)].mean() == pytest.approx(7 / 11 / 8, rel=1e-9)


def test_entries_are_looked_up_and_missing_ones_are_zero():
    source, target = side(_random_pairs(20, 12, 8), 12), side(_random_pairs(20, 10, 9), 10)
    table = translation_table(source, target)
    rows, columns = np.divmod(np.arange(120), 10)
    np.testing.assert_array_equal(looked_up(table, rows, columns), table.toarray().ravel())
    assert table_bytes(table) >= 12 * table.nnz


def test_every_target_token_is_a_row_over_its_source():
    source, target = side([[4, 5], [], [6]], 7), side([[1], [2, 3], [0, 0]], 4)
    found = grid(source, target)
    assert found.lengths.tolist() == [2, 1, 1]
    assert found.item.tolist() == [0, 2, 2]
    assert source.ids[found.source_token].tolist() == [4, 5, 6, 6]
    assert target.ids[found.target_token].tolist() == [1, 1, 0, 0]


def test_alignments_find_the_words_that_belong_together():
    words = [[0, 1], [1, 2], [2, 0], [0, 2], [1], [0]]
    source, target = side(words, 3), side([sentence[::-1] for sentence in words], 3)
    table = translation_table(source, target, 20)
    assert alignments(table, source, target)[0] == ((0, 1), (1, 0))
    assert alignments(table, source, target)[4] == ((0, 0),)


def test_words_from_the_empty_word_have_no_link():
    # Word 9 stands in every target, whatever the source says.
    sources = [[0], [1], [2], [0, 1], [1, 2]]
    source = with_empty_word(side(sources, 3))
    target = side([[*sentence, 9] for sentence in sources], 10)
    found = alignments(translation_table(source, target, 30), source, target, empty_word=3)
    assert found[0] == ((0, 0),)
    assert found[3] == ((0, 0), (1, 1))


def test_sides_of_different_length_are_refused():
    with pytest.raises(ValueError, match="2 source sentences but 1 target"):
        cooccurrence(side([[0], [0]], 1), side([[0]], 1))
