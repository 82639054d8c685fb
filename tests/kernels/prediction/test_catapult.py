"""The two-number recursion against real gradient descent, and the figures of Lewkowycz et al."""

from functools import cache, partial

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from steepest.kernels import catapult_map

STEPS = 12
follow = jax.jit(catapult_map, static_argnums=5)


@cache
def descent(m, d):
    """Outputs and ‖∇z‖² of plain descent on ½(z − y)², z = v·(U x)/√(m d): compiled once a shape, looped in Python."""

    def z(params, x):
        return params[1] @ (params[0] @ x) / np.sqrt(m * d)

    @jax.jit
    def step(params, x, y, lr):
        slope = jax.grad(lambda p: 0.5 * (z(p, x) - y) ** 2)(params)
        gradient = jax.grad(z)(params, x)
        seen = z(params, x), sum((leaf**2).sum() for leaf in gradient)
        return jax.tree.map(lambda p, g: p - lr * g, params, slope), seen

    return step


@given(
    st.sampled_from([(1, 1), (2, 4), (20, 3), (300, 2)]),
    st.integers(0, 2**31 - 1),
    st.floats(-2, 2),
    st.floats(0.05, 3.5),
)
@settings(max_examples=50, deadline=None)
def test_it_is_gradient_descent_on_the_network(shape, seed, y, multiple):
    m, d = shape
    rng = np.random.default_rng(seed)
    params = (rng.normal(size=(m, d)), rng.normal(size=m))
    x = rng.normal(size=d)
    u, v = params
    start = v @ u @ x / np.sqrt(m * d)
    steep = (((u @ x) ** 2).sum() + (v**2).sum() * (x**2).sum()) / (m * d)
    lr = multiple / steep
    seen = []
    for _ in range(STEPS + 1):
        params, pair = descent(m, d)(params, x, y, lr)
        seen.append(pair)
    outputs, kernels = np.array(seen, float).T
    assert (outputs[0], kernels[0]) == pytest.approx((start, steep), rel=1e-12)
    found = follow(start, steep, y, lr, (x**2).sum() / (m * d), STEPS)
    for a, b in zip(found, (outputs, kernels), strict=True):
        sizes = np.maximum.accumulate(np.abs(b)) + np.abs(y)
        keep = sizes < 1e6  # beyond, it diverges doubly exponentially
        # a bounded orbit may be chaotic, and multiply its rounding in each step
        np.testing.assert_allclose(
            np.asarray(a)[keep] / sizes[keep], b[keep] / sizes[keep], rtol=0, atol=1e-8
        )


def reference(multiple, steps=4000):
    z, kernel = follow(1.0, 1.0, 0.0, multiple, 1e-3, steps)
    return np.asarray(z), np.asarray(kernel)


@pytest.mark.parametrize(
    ("multiple", "final", "peak", "digits"),
    [(2.1, 0.883, 1.1, 0.05), (2.5, 0.507, 13.6, 0.05), (3.0, 0.060, 46, 0.5)],
)
def test_the_reference_figures(multiple, final, peak, digits):
    """λ_0 = 1, f_0 = 1, width 1000: the end of the tangent kernel and the peak of the loss, to the digits printed."""
    z, kernel = reference(multiple)
    assert kernel[-1] == pytest.approx(final, abs=0.0005)
    assert (z**2 / 2).max() == pytest.approx(peak, abs=digits)
    assert abs(z[-1]) < 1e-10
    assert kernel[-1] < 2 / multiple


def test_it_converges_below_four_and_diverges_above():
    assert abs(reference(3.99)[0][-1]) < 1e-6
    assert not np.isfinite(reference(4.01)[0][-1])


def test_below_two_it_stays_lazy():
    z, kernel = reference(1.0)
    assert np.abs(z).max() == 1.0
    assert abs(kernel[-1] - 1) < 1e-2
    assert abs(z[-1]) < 1e-10


@given(st.floats(-3, 3), st.floats(0.1, 5), st.floats(0, 2))
@settings(max_examples=15, deadline=None)
def test_without_curvature_it_is_the_linearized_network(target, ntk, lr):
    z, kernel = follow(1.0, ntk, target, lr, 0.0, 10)
    np.testing.assert_allclose(kernel, ntk, rtol=1e-12)
    expected = target + (1 - target) * (1 - lr * ntk) ** np.arange(11)
    np.testing.assert_allclose(z, expected, rtol=1e-9, atol=1e-12)


def test_a_solution_is_a_fixed_point_and_no_steps_are_no_steps():
    z, kernel = follow(2.0, 3.0, 2.0, 0.7, 0.1, 5)
    np.testing.assert_array_equal(z, 2.0)
    np.testing.assert_array_equal(kernel, 3.0)
    assert [a.tolist() for a in catapult_map(2.0, 3.0, 0.0, 0.7, 0.1, 0)] == [[2.0], [3.0]]


def test_it_maps_over_step_sizes():
    rates = jnp.array([1.0, 2.5])
    together = jax.vmap(partial(catapult_map, 1.0, 1.0, 0.0, curvature=1e-3, steps=20))(rates)
    for i, lr in enumerate(rates):
        np.testing.assert_allclose(
            together[0][i], catapult_map(1.0, 1.0, 0.0, lr, 1e-3, 20)[0], rtol=1e-12
        )
