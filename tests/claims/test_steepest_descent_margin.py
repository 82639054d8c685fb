"""Descents of the claim against loops in NumPy, and what its judge accepts."""

import numpy as np
import pytest

from steepest.claims.implicit_bias.steepest_descent_margin.claim import SteepestDescentMargin
from steepest.claims.implicit_bias.steepest_descent_margin.experiment import (
    ORDERS,
    follow,
    margins,
    marks,
    sizes,
)

STEPS = 1000
LR = 0.5
PLAIN = 0.1


@pytest.fixture(scope="module")
def sets():
    rng = np.random.default_rng(0)
    w = np.array([1.0, -0.5, 0.3])
    x = rng.normal(size=(2, 8, 3))
    y = np.sign(x @ w)
    return x + 0.3 * y[..., None] * w, y


@pytest.fixture(scope="module")
def paths(sets):
    return follow(*sets, LR, PLAIN, STEPS)


def steepest(gradient, order):
    """The direction of norm one that falls most steeply."""
    if order == 1.0:
        best = np.abs(gradient).argmax()
        return -np.sign(gradient[best]) * np.eye(len(gradient))[best]
    if order == np.inf:
        return -np.sign(gradient)
    dual = np.abs(gradient) ** (1 / (order - 1)) * np.sign(gradient)
    return -dual / np.linalg.norm(dual, ord=order)


@pytest.mark.parametrize("place", range(len(ORDERS)))
@pytest.mark.parametrize("kind", ["unit", "plain"])
def test_descents_are_their_definitions(sets, paths, kind, place):
    order = ORDERS[place]
    conjugate = {1.0: np.inf, np.inf: 1.0}.get(order) or order / (order - 1)
    x, y = sets
    w = np.zeros(3)
    recorded = []
    for step in range(STEPS):
        weights = np.exp(-y[0] * (x[0] @ w)) / len(y[0])
        gradient = -(weights * y[0]) @ x[0]
        length = LR / np.sqrt(step + 1)
        if kind == "plain":
            length = PLAIN * np.linalg.norm(gradient, ord=conjugate)
        w = w + length * steepest(gradient, order)
        if step + 1 in marks(STEPS):
            recorded.append(w)
    ours = getattr(paths, kind)[place, 0]
    np.testing.assert_allclose(ours, recorded, rtol=1e-6)
    np.testing.assert_allclose(
        sizes(getattr(paths, kind))[place, 0], np.linalg.norm(recorded, ord=order, axis=1)
    )
    margin = [(y[0] * (x[0] @ w)).min() / np.linalg.norm(w, ord=order) for w in recorded]
    signed = x * y[..., None]
    np.testing.assert_allclose(margins(getattr(paths, kind)[place], signed, order)[0], margin)


def test_readings_begin_at_a_hundredth_and_end_at_the_last_step():
    every = marks(20_000)
    assert every[0] >= 200 and every[-1] == 20_000
    assert len(SteepestDescentMargin().axes()["step"]) == len(every) >= 10
