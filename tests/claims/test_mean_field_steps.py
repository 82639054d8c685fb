"""The constant of the noise by runs of small steps, steps against descent and flow, and refused fields."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from steepest.claims.features._mean_field import Setting, risk_of
from steepest.claims.features._mean_field_theory import limit_of
from steepest.claims.features.mean_field_steps.claim import MeanFieldSteps, risk_of_draws
from steepest.core.errors import UserError
from steepest.engine.run import execute, ready
from tests.claims.mean_field import DATA, TIMES, follow

RNG = np.random.default_rng(0)


@pytest.fixture(scope="module")
def limit():
    with jax.enable_x64(True):
        return limit_of(DATA.x, DATA.y, TIMES)


def test_early_noise_in_closed_form():
    """G → t · mean over examples of var_j of K(x, x_j) y_j, with K = ⟨x, x_j⟩ E σ'(⟨w, x⟩) σ'(⟨w, x_j⟩)."""
    w = RNG.normal(size=(400_000, 2))
    active = 1 / np.cosh(w @ DATA.x.T) ** 2
    kernel = (DATA.x @ DATA.x.T) * (active.T @ active) / len(w)
    expected = (kernel * DATA.y).var(1).mean()
    with jax.enable_x64(True):
        early = limit_of(DATA.x, DATA.y, (1e-3,))
    assert early.noise[0] / 1e-3 == pytest.approx(expected, rel=0.02)


def test_the_constant_of_the_noise_is_that_of_small_steps(limit):
    """400 runs of SGD by hand on 400 neurons, against descent on the population: the error of the mean is 7 %."""
    lr = 0.01
    runs = 400
    N = 400
    start = RNG.normal(size=(N, 2))
    w = np.broadcast_to(start, (runs, N, 2)).copy()
    whole, _ = follow(start, TIMES)
    squares = []
    for step in range(round(TIMES[-1] / lr)):
        drawn = RNG.integers(len(DATA.y), size=runs)
        x = DATA.x[drawn]
        y = DATA.y[drawn]
        active = np.tanh((w * x[:, None]).sum(-1))
        w -= lr * ((1 - active**2) * (active.mean(1) - y)[:, None])[..., None] * x[:, None]
        if step + 1 in (round(TIMES[0] / lr), round(TIMES[-1] / lr)):
            outputs = np.tanh(w @ DATA.x.T).mean(1)
            squares.append(((outputs - whole[len(squares)]) ** 2).mean(1) / lr)
    squares = np.array(squares)
    error = squares.std(1) / np.sqrt(runs)
    assert np.all(np.abs(squares.mean(1) - limit.noise) < 4 * error + 0.05 * limit.noise)


def test_drawn_risks_are_the_risk_in_the_mean():
    networks = tuple(jnp.asarray(RNG.normal(size=(N, 2))) for N in (4, 9))
    data = Setting(*map(jnp.asarray, DATA))
    draw = jax.jit(jax.vmap(lambda key: risk_of_draws(networks, key, data)))
    drawn = np.asarray(draw(jax.random.split(jax.random.key(0), 4000)))
    error = drawn.std() / np.sqrt(len(drawn))
    assert abs(drawn.mean() - float(risk_of(networks, DATA))) < 4 * error
    # each network draws its own example
    assert len(np.unique(drawn.round(6))) > len(DATA.y)


def test_narrow_steps_are_near_the_flow():
    claim = MeanFieldSteps(widths=(6,), times=TIMES, rates=(0.05,), examples=5, seeds=3, starts=1)
    with jax.enable_x64(True):
        values = claim.observe(DATA, jax.random.key(1))
        # untrained networks of the same draws
        key = jax.random.split(jax.random.key(1), 3)[0]
        start = np.asarray(jax.random.normal(jax.random.fold_in(key, 6), (6, 2)))
    outputs, _ = follow(start, TIMES)
    np.testing.assert_allclose(values["flows"][0, 0, :, 0], outputs, atol=1e-3)
    np.testing.assert_allclose(values["whole"][0, 0, :, 0], outputs, atol=0.02)
    assert values["sgd"].shape == (3, 1, 1, 2, 1, 5)
    assert np.abs(values["sgd"][0, 0, 0, :, 0] - values["whole"][0, 0, :, 0]).max() > 0.005


@pytest.mark.parametrize(
    ("fields", "sentence"),
    [
        ({"times": (1.0, 1.0)}, "times must increase"),
        ({"times": (1e5,), "rates": (0.1,)}, "more than 100000 steps"),
        ({"times": (0.25,), "rates": (0.1,)}, "a whole number of steps"),
    ],
)
def test_refused(fields, sentence):
    with pytest.raises(UserError, match=sentence):
        ready("mean-field-steps", changes=fields)


@pytest.mark.parametrize(
    "fields", [{"rates": (0.5, 0.25)}, {"times": (40.0,), "rates": (0.1, 0.2)}]
)
def test_out_of_range(fields):
    asked = ready("mean-field-steps", "tiny", changes=fields)
    assert execute(asked).verdict == "out-of-range"
