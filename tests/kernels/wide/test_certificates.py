"""The bound of the error: never below what planted errors do, and not far above."""

import numpy as np
import pytest

from steepest.kernels import gram
from steepest.kernels.wide import Positions, _evaluate, duals
from steepest.nn.layers import (
    aggregate,
    attention,
    conv,
    dense,
    flatten,
    global_pool,
    layer_norm,
    network,
    pool,
    serial,
)

PLANTED = 1e-5


def build(last, activation):
    layers = [layer for _ in range(4) for layer in (conv(3), activation)]
    return network(
        *layers, last(), dense(1), shape=(4, 4, 2), parameterized="ntk", c_w=1.8, c_b=0.05
    )


def tile(way, x):
    rows = way.rows(x)
    return [np.asarray(kernel, float) for kernel in way.tile(rows, rows, same=False)]


@pytest.mark.parametrize("last", [flatten, global_pool])
@pytest.mark.parametrize("activation", ["erf", "tanh"])
def test_planted_errors_stay_below_the_bound_and_within_a_hundredth_of_it(
    last, activation, monkeypatch
):
    """Each expectation is wrong by the share ``PLANTED`` of √(E σ(u)² E σ(v)²), the largest that is declared."""
    x = np.random.default_rng(0).normal(size=(6, 4, 4, 2))
    limit = build(last, activation).limit()
    exact = tile(Positions.of(limit, x, None, None), x)
    way = Positions.of(limit, x, None, None)
    dual = next(dual for dual in way.duals if dual is not None)
    kind = type(dual.pairing)
    right = kind.pair

    def wrong(self, k, one, two):
        value, slope = right(self, k, one, two)
        own = [right(self, _variance(self, side), side, side) for side in (one, two)]
        size = [(a * b) ** 0.5 for a, b in zip(*own, strict=True)]
        return value + PLANTED * size[0], slope + PLANTED * size[1]

    monkeypatch.setattr(kind, "pair", wrong)
    monkeypatch.setattr(
        type(dual), "tolerances", lambda self, eps: duals.Tolerances(PLANTED, PLANTED)
    )
    _evaluate._program.cache_clear()  # no compiled program of the right expectations is used again
    mistaken = Positions.of(limit, x, None, None)
    bound = mistaken.error
    found = tile(mistaken, x)
    _evaluate._program.cache_clear()
    ratios = []
    for right_kernel, wrong_kernel in zip(exact, found, strict=True):
        size = np.sqrt(np.outer(np.diag(right_kernel), np.diag(right_kernel)))
        ratios.append(np.abs(wrong_kernel - right_kernel) / size / bound)
    assert max(ratio.max() for ratio in ratios) <= 1
    assert np.median(ratios) >= 0.01


def test_linear_networks_have_a_finite_bound_above_their_error():
    x = np.random.default_rng(0).normal(size=(6, 4, 4, 2))
    limit = build(flatten, "linear").limit()
    exact = gram(limit, x)
    single = gram(limit, x.astype(np.float32))
    size = np.sqrt(np.outer(np.diag(exact.ntk), np.diag(exact.ntk)))
    error = (np.abs(single.ntk - exact.ntk) / size).max()
    assert error <= single.error < 1e-4


QUADRATIC = "polynomial(0,0,1)"
MIXED = [
    ("softplus", pool(2), ("exp",), 8.0),
    ("softplus", aggregate(np.full((8, 8), 1 / 8)), ("exp",), 8.0),
    ("softplus", pool(2), ("relu",), 8.0),
    ("softplus", pool(2), (QUADRATIC, QUADRATIC), 1.0),
    ("tanh", serial(pool(2), layer_norm()), ("exp",), 1.0),
    ("softplus", pool(2), ("polynomial(0,0.8,0.1)",), 1.0),  # its third derivative is zero
]


@pytest.mark.parametrize(("first", "mixing", "behind", "c_w"), MIXED)
def test_errors_of_variances_are_within_the_bound(first, mixing, behind, c_w):
    """Behind what mixes positions variances err as pairs do; the inputs are equal there, so that errors add up."""
    x = np.ones((2, 8, 1)) * np.array([1.0, 0.7])[:, None, None]
    layers = [layer for activation in behind for layer in (conv(4, window=1), activation)]
    net = network(
        conv(4, window=1),
        first,
        mixing,
        *layers,
        flatten(),
        dense(1),
        shape=(8, 1),
        parameterized="ntk",
        c_w=c_w,
        bias=False,
    )
    exact = gram(net.limit(), x, tolerance=1e-10)
    coarse = gram(net.limit(), x, tolerance=1e-2)
    for right, wrong in zip(exact[:2], coarse[:2], strict=True):
        size = np.sqrt(np.outer(np.diag(right), np.diag(right)))
        assert (np.abs(wrong - right) / size).max() <= coarse.error < 1


@pytest.mark.parametrize("sharpness", [-3.0, 3.0])
def test_weights_of_attention_err_by_either_sign_of_their_sharpness(sharpness):
    x = np.ones((2, 4, 1)) * np.array([1.0, 0.7])[:, None, None]
    head = attention(4, heads=1, key=2, sharpness=sharpness)
    layers = [conv(4, window=1), "softplus", head, flatten(), dense(1)]
    options = {"shape": (4, 1), "parameterized": "ntk", "c_w": 2.0, "bias": False}
    limit = network(*layers, **options).limit()
    exact = gram(limit, x, tolerance=1e-10)
    coarse = gram(limit, x, tolerance=1e-2)
    for right, wrong in zip(exact[:2], coarse[:2], strict=True):
        size = np.sqrt(np.outer(np.diag(right), np.diag(right)))
        assert (np.abs(wrong - right) / size).max() <= coarse.error < 1e-3


def _variance(dual, side):
    """The variance from what a dual keeps of a position."""
    return side[0] if isinstance(dual, duals.Closed) else side[0] ** -2
