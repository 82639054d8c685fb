"""Cells of arrangements: against linear programs over all sign patterns, rays to infinity, and known counts."""

import itertools

import numpy as np
import pytest
from scipy.optimize import linprog

from steepest.core.errors import UserError
from steepest.geometry import (
    bounded_cell_count,
    bounded_cells,
    cell_count,
    cells,
    central_cell_count,
    general_position,
    parallel_cell_count,
)

RNG = np.random.default_rng(0)


def patterns_by_programs(w, b):
    """All sign patterns that leave room: the widest slab of points on the right sides is wider than nothing."""
    n, d = w.shape
    found = set()
    for signs in itertools.product([False, True], repeat=n):
        s = np.where(signs, 1.0, -1.0)
        rows = np.column_stack([-s[:, None] * w, np.ones(n)])
        solution = linprog(
            [*np.zeros(d), -1.0], A_ub=rows, b_ub=s * b, bounds=[(None, None)] * d + [(0, 1)]
        )
        if solution.x is not None and solution.x[-1] > 1e-7:
            found.add(signs)
    return found


@pytest.mark.parametrize(("n", "d"), [(6, 2), (6, 3), (4, 4), (3, 5), (5, 1)])
def test_cells_are_those_that_programs_find(n, d):
    w = RNG.standard_normal((n, d))
    b = RNG.standard_normal(n)
    arrangement = cells(w, b)
    patterns = {tuple(row) for row in arrangement.signs.tolist()}
    assert len(patterns) == len(arrangement.signs) == cell_count(n, d)
    assert patterns == patterns_by_programs(w, b)


def test_cells_of_hyperplanes_that_are_not_in_general_position():
    w = RNG.standard_normal((3, 2))
    w = np.vstack([w, 2 * w[:2], w[2]])
    b = np.array([0.3, -0.2, 0.5, 0.6, 1.0, 0.0])  # the fourth is the first again
    arrangement = cells(w, b)
    assert {tuple(row) for row in arrangement.signs.tolist()} == patterns_by_programs(w, b)
    assert len(arrangement.signs) == parallel_cell_count((1, 2, 2), 2)


def patterns_by_vertices(w, b):
    """All sign patterns around the vertices of an arrangement in general position, of which every cell has one."""
    n, d = w.shape
    around = np.array(list(itertools.product([False, True], repeat=d)))
    found = []
    for chosen in map(list, itertools.combinations(range(n), d)):
        vertex = np.linalg.solve(w[chosen], -b[chosen])
        signs = np.repeat((w @ vertex + b > 0)[None], 2**d, axis=0)
        signs[:, chosen] = around  # the hyperplanes through the vertex itself
        found.append(signs)
    return np.unique(np.concatenate(found), axis=0)


@pytest.mark.parametrize(("n", "d"), [(20, 2), (20, 3), (12, 4), (10, 10), (7, 1)])
def test_cells_are_those_around_vertices(n, d):
    w = RNG.standard_normal((n, d))
    b = RNG.standard_normal(n)
    np.testing.assert_array_equal(np.unique(cells(w, b).signs, axis=0), patterns_by_vertices(w, b))


def test_cells_of_few_hyperplanes_in_many_dimensions():
    w = RNG.standard_normal((3, 30_000))
    b = RNG.standard_normal(3)
    arrangement = cells(w, b)
    assert arrangement.points.shape == (8, 30_000)
    assert len(np.unique(arrangement.signs, axis=0)) == 8
    # of normals that span less
    assert len(cells(w[[0, 0, 1]], b).signs) == 6


@pytest.mark.parametrize(("n", "d"), [(7, 2), (9, 3), (6, 4)])
def test_central_and_parallel_counts(n, d):
    w = RNG.standard_normal((n, d))
    assert len(cells(w, np.zeros(n)).signs) == central_cell_count(n, d)
    thrice = np.repeat(w[:4], 3, axis=0)
    assert len(cells(thrice, RNG.standard_normal(12)).signs) == parallel_cell_count((3,) * 4, d)


@pytest.mark.parametrize(("n", "d"), [(10, 2), (8, 3), (4, 5), (3, 1)])
def test_bounded_cells_are_those_that_meet_no_cell_at_infinity(n, d):
    w = RNG.standard_normal((n, d))
    arrangement = cells(w, RNG.standard_normal(n))
    bounded = bounded_cells(w, arrangement.signs)
    far = {row.tobytes() for row in cells(w, np.zeros(n)).signs}
    assert bounded.tolist() == [row.tobytes() not in far for row in arrangement.signs]
    assert bounded.sum() == bounded_cell_count(n, d)


def test_counts_fit_one_another():
    for n, d in itertools.product(range(1, 9), range(1, 6)):
        assert cell_count(n, d) - bounded_cell_count(n, d) == central_cell_count(n, d)
        assert cell_count(n, d) == cell_count(n - 1, d) + cell_count(n - 1, d - 1)
        assert parallel_cell_count((1,) * n, d) == cell_count(n, d)


def test_general_position_notices_parallels_and_common_points():
    rng = np.random.default_rng(1)  # of its own: the order of tests is not always the same
    w = rng.standard_normal((5, 3))
    b = rng.standard_normal(5)
    assert general_position(w, b) > 1e-3
    assert general_position(w, 0 * b) == 0
    assert general_position(np.vstack([w, -w[:1]]), np.append(b, 9.0)) == 0
    # of fewer hyperplanes than dimensions only the normals matter
    assert general_position(w[:2], 0 * b[:2]) > 1e-3


@pytest.mark.parametrize(
    ("build", "words"),
    [
        (lambda: cells(np.ones((2, 2)), np.ones(3)), r"shape \(n,\)"),
        (lambda: cells([[1.0, 0.0], [0.0, 0.0]], [0.0, 1.0]), "number 1 is"),
        (lambda: cells([[np.nan]], [0.0]), "finite"),
        (lambda: bounded_cells(np.eye(2), np.ones((3, 5), bool)), "signs must be"),
        (lambda: cell_count(-1, 2), "not negative"),
    ],
)
def test_what_is_no_arrangement_is_refused(build, words):
    with pytest.raises(UserError, match=words):
        build()
