"""Observed entries of symmetric matrices: which, in what order, how uniformly."""

import jax
import numpy as np
import pytest

from steepest.core.errors import UserError
from steepest.nn.data import masked


def test_entries_are_those_of_the_matrix_and_nested():
    matrix = np.arange(36.0).reshape(6, 6)
    matrix = matrix + matrix.T
    key = jax.random.key(0)
    few, more = masked(key, matrix, 7), masked(key, matrix, 15)
    assert np.array_equal(few.values, matrix[few.rows, few.cols])
    assert np.all(few.rows <= few.cols)
    assert np.array_equal(more.rows[:7], few.rows)
    assert np.array_equal(more.place < 7, few.mask == 1)
    assert np.array_equal(few.mask, few.mask.T)
    assert np.triu(few.mask).sum() == 7
    assert np.array_equal(few.degrees, few.mask.sum(0))


def test_all_entries_are_met_once():
    everything = masked(jax.random.key(1), np.eye(5), 15)
    assert np.array_equal(everything.mask, np.ones((5, 5)))
    assert len(set(zip(everything.rows.tolist(), everything.cols.tolist(), strict=True))) == 15


def test_entries_are_drawn_uniformly():
    """Each of 6 entries is among 2 drawn with probability 1/3: z ≤ 4 over 300 keys."""
    draws = [masked(key, np.eye(3), 2).mask for key in jax.random.split(jax.random.key(2), 300)]
    share = np.triu(np.mean(draws, 0))[np.triu_indices(3)]
    assert np.abs(share - 1 / 3).max() < 4 * np.sqrt(2 / 9 / 300)


@pytest.mark.parametrize(
    ("matrix", "observed", "says"),
    [
        (np.triu(np.ones((3, 3))), 2, "symmetric"),
        (np.eye(3), 7, "1 to 6"),
        (np.eye(3), 0, "1 to 6"),
    ],
)
def test_bad_input_is_one_sentence(matrix, observed, says):
    with pytest.raises(UserError, match=says):
        masked(jax.random.key(0), matrix, observed)
