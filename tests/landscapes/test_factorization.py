"""Critical points of ¼‖XXᵀ − M‖²: closed forms against automatic differentiation and differences."""

import numpy as np
import pytest
from scipy.optimize import minimize

from steepest.core.errors import UserError
from steepest.landscapes import (
    factorization_point,
    factorization_points,
    factorization_risk,
    nearest_root,
    strict_saddles,
)


def construct(levels, columns, seed=0):
    """M with random eigenvectors, and X at each of its critical points, turned."""
    rng = np.random.default_rng(seed)
    basis = np.linalg.qr(rng.normal(size=(levels.size, levels.size)))[0]
    points = factorization_points(levels, columns)
    roots = np.zeros((len(points), levels.size, columns))
    for root, point in zip(roots, points, strict=True):
        chosen = list(point.chosen)
        root[:, : len(chosen)] = basis[:, chosen] * np.sqrt(levels[chosen])
        root[:] = root @ np.linalg.qr(rng.normal(size=(columns, columns)))[0]
    return basis * levels @ basis.T, points, roots


@pytest.mark.parametrize("levels", [[4.0, 3, 2, 0, 0], [2.0, 2, 1, 0.5]])
@pytest.mark.parametrize("columns", [1, 3])
def test_values_and_whole_spectra_are_those_of_automatic_differentiation(levels, columns):
    """Equal eigenvalues and zeros of M included."""
    matrix, points, roots = construct(np.array(levels), columns)
    for point, certificate in zip(
        points, strict_saddles(factorization_risk(matrix), roots), strict=True
    ):
        assert certificate.gradient < 1e-13
        assert certificate.value == pytest.approx(point.value, abs=1e-13)
        assert np.allclose(certificate.eigenvalues, point.eigenvalues, atol=1e-12)
        assert certificate.index == point.index
        assert point.lowest == point.eigenvalues[0]


def test_curvatures_by_differences_of_the_value():
    """Without any derivative: f along its own predicted directions."""
    levels = np.array([3.0, 2.0, 1.0])
    point = factorization_point(levels, (1,), 2)
    root = np.zeros((3, 2))
    root[1, 0] = 2**0.5
    value = lambda x: ((x @ x.T - np.diag(levels)) ** 2).sum() / 4
    step = 1e-4
    curvature = {}
    for i in range(3):
        for a in range(2):
            move = np.zeros((3, 2))
            move[i, a] = step
            both = value(root + move) + value(root - move) - 2 * value(root)
            curvature[i, a] = both / step**2
    wanted = {(0, 0): -1, (1, 0): 4, (2, 0): 1, (0, 1): -3, (1, 1): 0, (2, 1): -1}
    assert curvature == pytest.approx(wanted, abs=1e-6)
    assert np.allclose(np.sort(list(wanted.values())), point.eigenvalues)


def test_only_the_best_set_has_no_direction_down():
    points = factorization_points([5.0, 4, 3, 2, 1, 0], 3)
    assert len(points) == 1 + 5 + 10 + 10
    assert [point.chosen for point in points if point.index == 0] == [(0, 1, 2)]
    assert min(points, key=lambda point: point.value).chosen == (0, 1, 2)
    assert sum(point.eigenvalues.size for point in points) == 18 * len(points)


def test_the_nearest_root_is_nearest():
    """Against a search over angles and reflections in two columns."""
    rng = np.random.default_rng(1)
    x, root = rng.normal(size=(2, 5, 2))
    near = nearest_root(x, root)
    assert np.allclose(near @ near.T, root @ root.T)

    def distance(angle, sign):
        c, s = np.cos(angle), np.sin(angle)
        return np.linalg.norm(x - root @ np.array([[c, -s], [s, c]]) @ np.diag([1, sign]))

    best = min(
        minimize(lambda a, sign=sign: distance(a[0], sign), [start], tol=1e-12).fun
        for sign in (1, -1)
        for start in (0, 2, 4)
    )
    assert np.linalg.norm(x - near) == pytest.approx(best, abs=1e-9)


def test_the_lemma_and_where_it_is_sharp():
    rng = np.random.default_rng(2)
    x, root = rng.normal(size=(2, 200, 6, 2))
    frame = np.linalg.qr(rng.normal(size=(6, 4)))[0]
    x[0], root[0] = 3 * frame[:, :2], 3 * frame[:, 2:]
    delta = x - nearest_root(x, root)
    left = ((delta @ delta.swapaxes(1, 2)) ** 2).sum((1, 2))
    right = ((x @ x.swapaxes(1, 2) - root @ root.swapaxes(1, 2)) ** 2).sum((1, 2))
    assert (left / right)[0] == pytest.approx(2, abs=1e-12)
    assert (left / right).max() <= 2 + 1e-12


@pytest.mark.parametrize(
    ("wrong", "says"),
    [
        (lambda: factorization_point([1.0, -1.0], (0,), 1), "semidefinite"),
        (lambda: factorization_point([], (), 1), "eigenvalues must be"),
        (lambda: factorization_point([1.0, 0.5], (0, 1), 1), "at most 1"),
        (lambda: factorization_point([1.0, 0.0], (1,), 1), "positive"),
        (lambda: nearest_root(np.ones((3, 1)), np.ones((2, 1))), "root must be"),
    ],
)
def test_bad_input_is_one_sentence(wrong, says):
    with pytest.raises(UserError, match=says):
        wrong()
