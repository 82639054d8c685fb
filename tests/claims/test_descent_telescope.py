"""The constants of descent-telescope: by a grid, by autodiff, and on a risk that is almost linear."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from steepest.catalogue import load
from steepest.claims.descent.descent_telescope.claim import _slope_constant
from steepest.claims.descent.descent_telescope.experiment import least_of_one_example, regress
from steepest.dynamics import telescope
from steepest.nn.losses import logistic


def test_the_constant_of_the_logistic_loss():
    u = np.linspace(-20, 20, 400_001)
    slope = 1 / (1 + np.exp(u))
    loss = np.log1p(np.exp(-u))
    assert _slope_constant() == pytest.approx((slope**2 / loss).max(), rel=1e-9)


@pytest.mark.parametrize("length", [1.0, 0.5])
@pytest.mark.parametrize("lr", [0.5, 3.0])
def test_one_example_leaves_what_its_length_says(lr, length):
    expected = 2 - _slope_constant() * lr * length**2
    assert least_of_one_example(lr, length) == pytest.approx(expected, abs=5e-3)


def test_no_path_of_one_example_does_worse():
    """Twenty steps by autodiff, from margins and to references at random: the bound with 2 − cη is kept."""
    rng = np.random.default_rng(0)
    lr = 3.0
    risk = lambda w: logistic(w)
    with jax.enable_x64(True):
        for start, away in rng.normal(size=(20, 2)) * 2:
            points = [jnp.asarray(start)]
            for _ in range(20):
                points.append(points[-1] - lr * jax.grad(risk)(points[-1]))
            path = jnp.stack(points)
            sums = telescope(risk, path, jnp.asarray(start + away))
            steps = np.arange(1, 21)
            ahead = 2 * lr * steps * float(risk(start + away)) - np.asarray(sums.left)
            spent = lr * np.cumsum([float(risk(w)) for w in path[:-1]])
            assert (ahead / spent).min() >= 2 - _slope_constant() * lr - 1e-9


def test_the_convex_bound_is_nearly_met_where_the_risk_is_nearly_linear():
    """With a constant gradient the ratio for W̄ = W_k is (2k − 1)/(k − 1), at t = 1."""
    ratios = regress(np.ones((2, 1)), np.ones(2), steps=5, slowdown=1e6)
    assert ratios == pytest.approx([3, 5 / 2, 7 / 3, 9 / 4], rel=1e-4)


def test_other_constants_are_refuted():
    claim = load("descent-telescope")(steps=30, width=8, n=20)
    with jax.enable_x64(True):
        setting = claim.setting(jax.random.key(0))
        predicted = claim.predict(setting)
        observed = claim.observe(setting, jax.random.key(1))
    for constant in (0.1, 0.25, 0.5, 1.0):
        wrong = predicted.replace(least=("step_size", 2 - constant * np.array(claim.step_sizes)))
        checks = {check.id: check.verdict.value for check in claim.checks(wrong, observed)}
        assert checks["best_constant"] == "fails"
