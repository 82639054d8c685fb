"""Which displacements are needed, against the sets of the pairs of positions that are read."""

import itertools

import numpy as np
import pytest

from steepest.kernels.wide._plan import plan_of
from steepest.nn.layers import (
    add,
    conv,
    dense,
    flatten,
    global_pool,
    identity,
    network,
    pool,
    serial,
)


def limit(*layers, shape=(16, 16, 3)):
    return network(*layers, shape=shape, parameterized="ntk").limit()


@pytest.mark.parametrize(
    ("layers", "first"),
    [
        ([conv(2), "relu", flatten(), dense(1)], 1),
        ([conv(2), "relu", global_pool(), dense(1)], 256),
        ([conv(2), "relu", pool(2), flatten(), dense(1)], 9),
        ([conv(2), "relu", pool(4), flatten(), dense(1)], 49),
        ([conv(2), pool(2), "relu", pool(2), flatten(), dense(1)], 49),
        # after strides of four only displacements that are multiples of four
        ([conv(2, stride=2), "relu", conv(2, stride=2), "relu", global_pool(), dense(1)], 16),
        ([conv(2), add(identity, serial("relu", conv(2))), "relu", flatten(), dense(1)], 1),
    ],
)
def test_displacements_at_the_input(layers, first):
    assert len(plan_of(limit(*layers)).needed[0]) == first


def test_sizes_divide_and_have_room():
    """A stride of two over seven positions counts displacements modulo eight."""
    plan = plan_of(
        limit(conv(2), "relu", conv(2, stride=2), global_pool(), dense(1), shape=(7, 5, 1))
    )
    assert plan.sizes[0] == (8, 6)
    for node, size in enumerate(plan.sizes):
        assert all(n <= m for n, m in zip(plan.limit.spaces[node], size, strict=True))


@pytest.mark.parametrize(("stride", "window"), [(2, 2), (1, 3), (2, 3), (3, 2)])
def test_pairs_that_a_pooling_reads_are_all_there(stride, window):
    """By listing the pairs that the pairs behind it read."""
    n = 9
    plan = plan_of(limit(conv(1, 1), pool(window, stride), flatten(), dense(1), shape=(n, 1)))
    outputs = (n - window) // stride + 1
    read = {
        (p * stride + b - p * stride - a) % plan.sizes[1][0]
        for p in range(outputs)
        for a, b in itertools.product(range(window), repeat=2)
    }
    assert {s for (s,) in plan.needed[1]} == read


def test_one_limit_has_one_plan():
    one, two = (limit(conv(2), "relu", flatten(), dense(1)) for _ in range(2))
    assert plan_of(one) == plan_of(two)
    assert np.prod(plan_of(one).sizes[0]) == plan_of(one).cells
