"""What matrix-completion rests on: which graphs determine a matrix, the number that does, and its descent."""

from dataclasses import replace

import jax
import numpy as np
import pytest

from steepest import kit
from steepest.catalogue import load
from steepest.claims.descent.matrix_completion.experiment import (
    DONE,
    LR,
    completes,
    draw_problems,
)
from steepest.claims.descent.matrix_completion.theory import (
    chance_connected,
    entries_that_determine,
    expected_entries,
)
from steepest.kit._laws import law_and_seen


def problems(draws=3, size=6, **changes):
    values = {"contrast": 3.0, **changes}
    return draw_problems(np.random.default_rng(0), draws, size, **values)


def entries_in_order(size, *pairs):
    """Places where these entries become known first, then all others."""
    place = np.full((size, size), np.inf)
    rest = [(i, j) for i in range(size) for j in range(i, size) if (i, j) not in pairs]
    for at, (i, j) in enumerate((*pairs, *rest)):
        place[i, j] = place[j, i] = at
    return place


def descend(problem, at, known, scale, steps=5000):
    with jax.enable_x64(True):
        u, place, start = problem.u[at], problem.place[at], scale * problem.start[at]
        return bool(jax.jit(completes)(u, place, start, known, steps))


@pytest.mark.parametrize(
    ("pairs", "wanted"),
    [
        (((0, 1), (1, 2), (0, 2)), 3),  # a triangle
        (((0, 1), (1, 2), (2, 2)), 3),  # a path with a loop
        (((0, 1), (1, 2), (0, 0), (2, 2)), 3),  # the second loop is not needed
        (((0, 0), (1, 1), (2, 2), (0, 1), (1, 2)), 5),  # sizes alone leave signs open
    ],
)
def test_connected_with_an_odd_cycle_determines(pairs, wanted):
    assert entries_that_determine(entries_in_order(3, *pairs)) == wanted


def test_a_square_leaves_a_factor_open():
    """In a cycle of four, two rows could be twice as large and the others half as large."""
    place = entries_in_order(4, (0, 1), (1, 2), (2, 3), (0, 3))
    assert entries_that_determine(place) == 5


def test_determined_just_when_the_known_products_have_one_answer():
    """By the rank of the logarithms' equations, and of those of the signs modulo two."""
    for place in problems(40, 6).place:
        enough = entries_that_determine(place)
        for known in (enough - 1, enough):
            rows, columns = np.nonzero(np.triu(place < known))
            sums = np.zeros((rows.size, 6))
            np.add.at(sums, (np.arange(rows.size), rows), 1)
            np.add.at(sums, (np.arange(rows.size), columns), 1)
            sizes_known = np.linalg.matrix_rank(sums) == 6
            # signs are known but for one that all share: the graph without its loops is connected
            walks = np.linalg.matrix_power(np.eye(6) + (place < known), 6)
            assert (sizes_known and (walks > 0).all()) == (known == enough)


def test_the_mean_number_is_that_of_random_graphs():
    places = problems(400, 48).place
    needed = np.array([entries_that_determine(place) for place in places])
    assert needed.mean() == pytest.approx(expected_entries(48), rel=0.05)
    at_the_mean = chance_connected(expected_entries(48), 48)
    assert at_the_mean == pytest.approx(np.exp(-np.exp(-np.euler_gamma)))
    assert (needed <= expected_entries(48)).mean() == pytest.approx(at_the_mean, abs=0.08)


def test_orders_are_permutations_and_the_last_row_comes_last():
    drawn = problems(3, 5)
    for place, row_last in zip(drawn.place, drawn.row_last, strict=True):
        assert sorted(place[np.triu_indices(5)]) == list(range(15))
        assert np.array_equal(place, place.T)
        assert np.array_equal(row_last, row_last.T)
        assert row_last[:-1, :-1].max() < row_last[-1].min()
        assert entries_that_determine(row_last) > 10
    assert not np.array_equal(drawn.place[0], drawn.place[1])


def test_rows_differ_by_the_contrast_at_most():
    drawn = np.abs(problems(20, 40).u)
    ratio = drawn.max(1) / drawn.min(1)
    assert 2.5 < ratio.max() <= 3
    assert np.allclose(np.linalg.norm(drawn, axis=1), 1)
    assert (np.abs(problems(3, 40, spike=30.0).u)[:, 0] > 0.9).all()


def test_one_step_is_that_of_the_gradient():
    """Descent by hand, with the gradient by differentiation, arrives after as many steps."""
    drawn = problems(1, 6)
    u, place = drawn.u[0], drawn.place[0]
    mask = place < 15
    lr = LR / (mask * np.abs(np.outer(u, u))).sum(1).max()
    slope = jax.grad(lambda x: ((mask * (x[:, None] * x - np.outer(u, u))) ** 2).sum() / 4)
    with jax.enable_x64(True):
        x = 0.5 * u
        after = x - lr * np.asarray(slope(jax.numpy.asarray(x)))
        error = np.linalg.norm(np.outer(after, after) - np.outer(u, u))
        taken = 1
        while error > DONE:
            after = after - lr * np.asarray(slope(jax.numpy.asarray(after)))
            error = np.linalg.norm(np.outer(after, after) - np.outer(u, u))
            taken += 1
        assert taken > 3
        assert bool(completes(u, place, x, 15, taken))
        assert not bool(completes(u, place, x, 15, taken - 1))


def test_descent_from_small_starts_completes_as_soon_as_it_can():
    drawn = problems(12, 12)
    for at, place in enumerate(drawn.place):
        enough = entries_that_determine(place)
        assert descend(drawn, at, enough, 1e-9)
    assert not descend(drawn, 0, 6, 1e-9)


def test_a_row_that_nothing_meets_is_not_completed():
    drawn = problems(3, 12)
    without = drawn._replace(place=drawn.row_last)
    assert not any(descend(without, at, 66, 1e-9) for at in range(3))
    assert all(descend(without, at, 78, 1e-9) for at in range(3))


def test_what_is_needed_is_where_failure_ends():
    """Failure up to 2, success from 3 on: between them, at 2.5 entries a row."""

    claim = replace(
        load("matrix-completion")(), sizes=(8, 16), densities=(1.0, 2.0, 3.0, 4.0), draws=3
    )
    done = np.broadcast_to(np.array([False, False, True, True]), (3, 2, 4))
    dims = "draw size density"

    law = kit.law(connected=(dims, done), needed=("size", [20.0, 40.0]))
    names = ("completes", "completes_from_large", "completes_row_last")
    _, seen = law_and_seen(claim, law, kit.seen(**{name: (dims, done) for name in names}))
    assert seen.needed.transpose("draw", "size").values.tolist() == [[20.0, 40.0]] * 3
