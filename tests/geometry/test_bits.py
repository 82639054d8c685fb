"""Networks that look bits up: every table of a small size, exactness at the limit, and bad input."""

import itertools

import numpy as np
import pytest

from steepest.core.errors import UserError
from steepest.geometry import bit_reader, bits_needed, preactivations, weights_used

RNG = np.random.default_rng(0)


def read(layers, shape):
    places = np.stack([axis.ravel() for axis in np.indices(shape)], 1).astype(float)
    return preactivations(layers, places)[-1].reshape(shape)


def test_every_table_of_six_bits():
    for bits in itertools.product([0, 1], repeat=6):
        table = np.reshape(bits, (2, 3))
        np.testing.assert_array_equal(read(bit_reader(table), (2, 3)), table)


@pytest.mark.parametrize(("rows", "columns"), [(2, 40), (200, 3), (120, 30)])
def test_large_tables_are_exact(rows, columns):
    assert bits_needed(rows, columns) < 53
    table = RNG.integers(0, 2, (rows, columns))
    network = bit_reader(table)
    np.testing.assert_array_equal(read(network, table.shape), table)
    assert len(network) == columns + 4
    assert weights_used(network) <= 3 * rows + 23 * columns - 10


def test_the_sum_is_within_the_digits_that_are_said():
    """Largest sum of ramps in units of the last bit, for the table whose numbers go to and fro."""
    rows, columns = 16, 10
    table = np.tile([[0] * columns, [1] * columns], (rows // 2, 1))
    network = bit_reader(table)
    ramps = np.maximum(preactivations(network[:1], np.array([[rows - 1.0, 0.0]]))[-1], 0)
    largest = np.abs(network[1].matrix[0] * ramps).sum() * 2**columns
    assert np.log2(largest) < bits_needed(rows, columns)


def test_steps_that_are_too_wide_misread():
    table = RNG.integers(0, 2, (20, 8))
    assert (read(bit_reader(table, 1.0), table.shape) == table).all()
    assert (read(bit_reader(table, 0.5), table.shape) == table).all()
    assert ((read(bit_reader(table, 4.0), table.shape) > 0.5) != table).any()


@pytest.mark.parametrize(
    "table", [[[1, 0]], [[1], [0]], [[1, 2], [0, 1]], [1, 0], [[0.5, 1.0], [1.0, 0.0]]]
)
def test_what_is_no_table_is_refused(table):
    with pytest.raises(UserError, match="table must be|zeros and ones"):
        bit_reader(table)
