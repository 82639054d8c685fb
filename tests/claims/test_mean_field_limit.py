"""The limit by another solver, its constants by redrawn masses, networks by hand, and refused fields."""

from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from steepest.claims.features._mean_field import Setting, draw_examples, risk_of
from steepest.claims.features._mean_field_theory import limit_of, relative_difference
from steepest.claims.features.mean_field_limit.claim import KERNEL, MeanFieldLimit
from steepest.core.errors import UserError
from steepest.engine.run import execute, ready
from tests.claims.mean_field import DATA, TIMES, follow

RNG = np.random.default_rng(0)


@pytest.fixture(scope="module")
def limit():
    with jax.enable_x64(True):
        return limit_of(DATA.x, DATA.y, TIMES)


def test_the_limit_is_where_wide_networks_are(limit):
    """20 000 neurons, mirrored through zero and turned by a right angle, are 0.003 off by themselves."""
    w = RNG.normal(size=(20_000, 2))
    outputs, movement = follow(np.concatenate([w, -w]), TIMES, 1e-6)
    np.testing.assert_allclose(outputs, limit.outputs, atol=0.015)
    np.testing.assert_allclose(movement, limit.movement, rtol=0.015)


def test_lattices_half_a_spacing_apart_agree(limit):
    with jax.enable_x64(True):
        other = limit_of(DATA.x, DATA.y, TIMES, 0.5)
    np.testing.assert_allclose(other.outputs, limit.outputs, atol=1e-3)
    assert relative_difference(limit, other, 1000) < 0.03
    assert relative_difference(limit, limit._replace(start=limit.start * 1.1), 1000) > 0.09
    assert relative_difference(limit, limit._replace(noise=limit.noise * 1.1), 1000) > 0.09


def test_the_constant_of_the_start_is_that_of_networks(limit):
    """400 networks of 300 neurons by another solver: the standard error of a mean square is 6 %."""
    squares = []
    for _ in range(400):
        outputs, _ = follow(RNG.normal(size=(300, 2)), TIMES, 1e-5)
        squares.append(300 * ((outputs - limit.outputs) ** 2).mean(1))
    squares = np.array(squares)
    error = squares.std(0) / np.sqrt(len(squares))
    assert np.all(np.abs(squares.mean(0) - limit.start) < 4 * error)
    assert np.all(np.abs(squares.mean(0) - limit.alone) > 4 * error)


def test_at_the_start_neurons_are_independent():
    """F(0) = mean over examples of var tanh⟨w, x⟩, by quadrature on the line: ⟨w, x⟩ ~ N(0, ‖x‖²)."""
    nodes, weights = np.polynomial.hermite_e.hermegauss(60)
    expected = (weights / weights.sum()) @ np.tanh(1.4 * nodes) ** 2
    with jax.enable_x64(True):
        early = limit_of(DATA.x, DATA.y, (1e-4,))
    assert early.start[0] == pytest.approx(expected, rel=1e-3)
    assert early.alone[0] == pytest.approx(expected, rel=1e-3)


def test_risks_have_the_slopes_of_neurons():
    """−∇ of the risk in the time of a width is −(1/n) Σ e σ' x in the mean-field scaling, √N times in the kernel's."""
    w = jnp.asarray(RNG.normal(size=(7, 2)))
    active = np.tanh(np.asarray(w) @ DATA.x.T)
    for power in (1.0, KERNEL):
        error = active.sum(0) / 7**power - DATA.y
        slope = -((1 - active**2) * error) @ DATA.x / len(DATA.y) * 7 ** (power - 1)
        risk = partial(risk_of, data=DATA, power=power)
        np.testing.assert_allclose(-jax.grad(risk)((w, w))[1], slope, rtol=1e-5, atol=1e-6)


def test_flows_are_those_of_another_solver():
    claim = MeanFieldLimit(widths=(6,), times=TIMES, examples=5, seeds=3, starts=1)
    with jax.enable_x64(True):
        trained = claim.observe(DATA, jax.random.key(1))
        # untrained networks of the same draws
        key = jax.random.split(jax.random.key(1), 3)[0]
        start = np.asarray(jax.random.normal(jax.random.fold_in(key, 6), (6, 2)))
    outputs, movement = follow(start, TIMES)
    np.testing.assert_allclose(trained["flows"][0, 0, :, 0], outputs, atol=1e-3)
    np.testing.assert_allclose(trained["moved"][0, 0, :, 0], movement, rtol=1e-2)


def test_examples_are_on_a_circle_with_an_odd_target():
    data = draw_examples(jax.random.key(0), 9, 1.2, 0.3)
    np.testing.assert_allclose(np.linalg.norm(data.x, axis=1), 1.2)
    np.testing.assert_allclose(data.y, 0.3 * (np.tanh(2 * data.x) @ [1, -1]))
    assert isinstance(data, Setting)


def test_refused():
    with pytest.raises(UserError, match="times must increase"):
        ready("mean-field-limit", changes={"times": (1.0, 1.0)})


def test_out_of_range():
    asked = ready("mean-field-limit", "tiny", changes={"widths": (3, 5)})
    assert execute(asked).verdict == "out-of-range"
