"""KKT residuals vanish at the solutions of convex margin problems, in the parameters of the networks that hide them."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from steepest.core.errors import UserError
from steepest.nn.networks import DiagonalParams, diagonal_weights, mlp
from steepest.programs import Kinks, hard_margin, kkt_from_gradients, kkt_residuals
from tests.programs.test_programs import clouds


def test_linear_networks_have_the_program_s_multipliers():
    x, y = clouds(0)
    program = hard_margin(x, y)
    for scale in (1.0, 1e3):
        found = kkt_residuals(lambda w: y * (x @ w), scale * program.direction, 1)
        assert found.stationarity < 1e-8 and found.complementarity < 1e-8
        assert found.margin == pytest.approx(program.margin, rel=1e-9)
        # at ‖θ‖ = 1/γ the multipliers are q/γ²
        assert np.allclose(found.multipliers, program.dual / program.margin**2, atol=1e-5)


def test_l1_is_stationary_for_the_diagonal_network_and_l2_is_not():
    """β = θ₊² - θ₋²: ‖θ‖² = ‖β‖₁ at balance, so that the ℓ1 separator is a KKT point in θ."""
    x, y = clouds(1, n=5, d=8, gap=1.0)
    margins = lambda params: y * (x @ diagonal_weights(params))

    def at(beta):
        return kkt_residuals(
            margins,
            DiagonalParams(jnp.sqrt(jnp.maximum(beta, 0)), jnp.sqrt(jnp.maximum(-beta, 0))),
            2,
        )

    sparse = hard_margin(x, y, "l1")
    dense = hard_margin(x, y, "l2")
    cleaned = np.where(np.abs(sparse.direction) > 1e-9, sparse.direction, 0.0)
    assert at(cleaned).stationarity < 1e-5
    assert at(dense.direction).stationarity > 0.1
    assert at(cleaned).margin == pytest.approx(sparse.margin, rel=1e-6)


def test_residuals_do_not_depend_on_the_scale_of_a_relu_network(key):
    net = mlp((3, 5, 1), "relu", bias=False)
    params = net.init(key)
    x = jax.random.normal(jax.random.key(1), (6, 3))
    y = jnp.sign(net.apply(params, x))
    margins = lambda theta: y * net.apply(theta, x)
    one, other = (
        kkt_residuals(margins, jax.tree.map(lambda w, c=c: c * w, params), 2) for c in (1.0, 7.0)
    )
    assert one.stationarity == pytest.approx(other.stationarity, rel=1e-8)
    assert 0 < one.stationarity <= 1
    assert one.margin == pytest.approx(other.margin, rel=1e-10)


def test_wrong_labels_have_no_residuals():
    found = kkt_residuals(lambda w: jnp.array([1.0, -1.0]) * w, jnp.array(2.0), 1)
    assert np.isnan(found.stationarity)
    assert found.margin < 0


@pytest.mark.parametrize(
    ("margins", "degree", "message"),
    [
        (lambda w: jnp.array([1.0, 2.0]) * w**2, 3, "degree 3, got"),
        (lambda w: jnp.array([1.0, 2.0]) * w + 1.0, 1, "drop the biases"),
        (lambda w: jnp.array([1.0, jnp.nan]) * w, 1, "finite margins"),
    ],
)
def test_bad_input_is_one_sentence(margins, degree, message):
    with pytest.raises(UserError, match=message):
        kkt_residuals(margins, jnp.array(1.5), degree)


def kinked(seed, examples=5, size=12, kinks=9):
    """A random problem of degree one with kinks, several of them of one example."""
    rng = np.random.default_rng(seed)
    slopes = rng.normal(size=(examples, size))
    params = slopes.T @ rng.uniform(0.2, 1, examples) + 0.5 * rng.normal(size=size)
    margins = slopes @ params
    slopes = slopes * np.sign(margins)[:, None]
    return (
        params,
        np.abs(margins),
        slopes,
        Kinks(rng.integers(examples, size=kinks), rng.normal(size=(kinks, size))),
    )


@pytest.mark.parametrize("seed", range(4))
def test_clarke_residuals_are_a_convex_program(seed):
    """The same least squares, with a multiplier for every kink, by Clarabel."""
    import cvxpy as cp

    params, margins, slopes, kinks = kinked(seed)
    found = kkt_from_gradients(params, margins, slopes, 1, kinks)
    # at the scale where the least margin is one, and relative to ‖θ‖, as the definition says
    scaled = params / margins.min()
    size = np.linalg.norm(scaled)
    multipliers = cp.Variable(len(margins))
    shares = cp.Variable(len(kinks.example))
    distance = scaled - slopes.T @ multipliers - kinks.jump.T @ shares
    off = (margins / margins.min() - 1) @ multipliers / size**2
    program = cp.Problem(
        cp.Minimize(cp.sum_squares(distance) / size**2 + off**2),
        [multipliers >= 0, shares >= 0, shares <= multipliers[kinks.example]],
    )
    program.solve(solver=cp.CLARABEL)
    least = found.stationarity**2 + found.complementarity**2
    assert least == pytest.approx(program.value, rel=1e-6)
    assert found.multipliers == pytest.approx(multipliers.value, abs=1e-4)
    assert found.stationarity < kkt_from_gradients(params, margins, slopes, 1).stationarity


def test_which_side_of_a_kink_is_given_does_not_matter():
    params, margins, slopes, kinks = kinked(5)
    found = kkt_from_gradients(params, margins, slopes, 1, kinks)
    # Euler's identity holds on both sides only where θ is on the kink: turn the jumps orthogonal to it
    flat = kinks.jump - np.outer(kinks.jump @ params, params) / (params @ params)
    turned = np.array(slopes)
    np.add.at(turned, kinks.example, flat)
    one = kkt_from_gradients(params, margins, slopes, 1, Kinks(kinks.example, flat))
    other = kkt_from_gradients(params, margins, turned, 1, Kinks(kinks.example, -flat))
    assert one.stationarity == pytest.approx(other.stationarity, rel=1e-9)
    assert one.stationarity != pytest.approx(found.stationarity, rel=1e-3)
