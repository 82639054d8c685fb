"""What counts as one batch, and what passing over it leaves behind."""

import random

import numpy as np

from steepest.measurement.adapters import Batches


def test_a_pair_of_which_one_is_several_arrays_is_one_batch():
    x, y = np.ones((3, 2)), np.zeros(3)
    for source in (((x, x), y), ([x, x], y), ({"a": x}, y), (x, (y, y)), (x, {"class": y})):
        assert [count for _, count in Batches(source, 2)] == [2, 1]
    assert [count for _, count in Batches([(x, y), (x, y)])] == [3, 3]


class Drawing:
    """Draws random numbers for each batch."""

    def __iter__(self):
        for _ in range(2):
            yield np.full(2, np.random.random()), np.full(2, random.random())


def test_a_source_that_draws_random_numbers_leaves_their_generators_as_they_were():
    batches = Batches(Drawing())
    for look in (list, Batches.first, Batches.sizes, Batches.given):
        before = np.random.get_state()[1].copy(), random.getstate()
        look(batches)
        assert np.array_equal(np.random.get_state()[1], before[0])
        assert random.getstate() == before[1]
