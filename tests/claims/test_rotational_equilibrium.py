"""Weight decay in balance: laws against the recursions' own covariances, angles against arccosines, lanes of optax."""

import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest
from scipy.linalg import solve_discrete_lyapunov

from steepest import kit
from steepest.claims.training.rotational_equilibrium import experiment, theory
from steepest.claims.training.rotational_equilibrium.claim import RotationalEquilibrium

RNG = np.random.default_rng(0)
DECAY = np.array(0.03)


@pytest.mark.parametrize(
    ("balance", "matrix", "enters"),
    [
        # w and v of momentum: v' = βv + g + λw, w' = w − v'
        (
            theory.momentum(DECAY, 0.8),
            [[1 - 0.03, -0.8], [0.03, 0.8]],
            [-1.0, 1.0],
        ),
        # w and m of AdamW: m' = β₁m + (1 − β₁)g, w' = (1 − ηλ)w − m'
        (theory.adamw(DECAY, 0.8), [[1 - 0.03, -0.8], [0.0, 0.8]], [-0.2, 0.2]),
    ],
)
def test_balances_by_lyapunovs_equation(balance, matrix, enters):
    step = np.array(matrix)
    noise = np.array(enters)
    covariance = solve_discrete_lyapunov(step, np.outer(noise, noise))
    after = step @ covariance
    gain = covariance[0, 0] / noise[0] ** 2
    assert balance.gain == pytest.approx(gain)
    assert np.cos(balance.angle) == pytest.approx(after[0, 0] / covariance[0, 0])


def test_balances_are_the_usual_ones_at_small_decays():
    decay = np.array(1e-6)
    sgd = theory.momentum(decay, 0.0)
    heavy = theory.momentum(decay, 0.9)
    adam = theory.adamw(decay, 0.9)
    for balance, wanted in ((sgd, 2e-6), (heavy, 2e-6 / 1.9), (adam, 2e-6 / 19)):
        assert balance.angle**2 == pytest.approx(wanted, rel=1e-3)
    assert theory.square_of_adamw(adam, 0.1, 0.9, 11) == pytest.approx(0.01 * 10 / 2e-6, rel=1e-4)
    assert theory.square_of_descent(sgd, 0.1, 3.0) == pytest.approx(0.3 / 2e-6**0.5, rel=1e-4)


def test_turns_are_angles():
    before, after = RNG.standard_normal((2, 5, 7))
    cosine = (
        (before * after).sum(1) / np.linalg.norm(before, axis=1) / np.linalg.norm(after, axis=1)
    )
    np.testing.assert_allclose(experiment.turned(before, after), np.arccos(cosine) ** 2)


def test_weights_on_noise_by_a_loop():
    key = jax.random.key(0)
    optimizer = experiment.adamw(0.01, 0.9, 0.99)(0.5)
    on_noise = experiment.on_noise(key, optimizer, jnp.array(2.0), 5, 6)
    of_start, of_steps = jax.random.split(key)
    w = jax.random.normal(of_start, (5,))
    w = w / jnp.linalg.norm(w)
    state = optimizer.init(w)
    squares = []
    for number in range(6):
        noise = 2 * jax.random.normal(jax.random.fold_in(of_steps, number), (5,))
        unit = w / jnp.linalg.norm(w)
        gradient = (noise - unit * (noise @ unit)) / jnp.linalg.norm(w)
        update, state = optimizer.update(gradient, state, w)
        w = optax.apply_updates(w, update)
        squares.append(float(w @ w))
    assert float(on_noise.square) == pytest.approx(np.mean(squares[3:]))


def test_lengths_of_normalized_rows_do_not_matter():
    key = jax.random.key(1)
    shown = experiment.images()
    plain = optax.sgd(0.1)
    angles = [
        experiment.in_network(key, (plain, plain), shown, 4, 6, jnp.array(flag))
        for flag in (True, False)
    ]
    assert float(angles[0]) != pytest.approx(float(angles[1]))
    assert all(0 < float(angle) < 1 for angle in angles)


def test_the_point_has_the_claims_law_and_its_weights():
    claim = RotationalEquilibrium(
        decays=(0.02,), sizes=(2.0,), beta=0.8, weights=5, steps=6, seeds=3
    )
    point = RotationalEquilibrium.point.of(claim)
    for name in ("angle", "square"):
        assert point.predict(None)[name] == pytest.approx(claim.predict(None)[name][2, 0, 0])
    key = jax.random.key(0)
    optimizer = experiment.adamw(claim.rates[2], 0.8, 0.99)(0.02 / claim.rates[2])
    first = jax.random.split(key, 3)[0]
    wanted = kit.compiled(lambda: experiment.on_noise(first, optimizer, jnp.array(2.0), 5, 6))()
    angles = kit.compiled(point.observe)(None, key)["angle"]
    assert float(angles[0]) == pytest.approx(float(wanted.angle), rel=1e-4)
