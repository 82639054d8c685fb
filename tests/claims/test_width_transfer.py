"""Adam's first step at several widths: a, b and c in closed form, gradients by autodiff, steps by optax."""

import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest

from steepest import kit
from steepest.claims.training.width_transfer import experiment, theory
from steepest.claims.training.width_transfer.claim import WidthTransfer
from steepest.claims.training.width_transfer.experiment import STANDARD

RNG = np.random.default_rng(0)
X = RNG.standard_normal((3, 6)) + 0.5
Y = np.array([1.0, -1.0, 1.0])


def outputs(weights, x):
    inputs, hidden, readout = weights
    first = jnp.maximum(x @ inputs.T, 0)
    return jnp.maximum(first @ hidden.T, 0) @ readout


def test_one_example_in_closed_form():
    x = X[:1]
    size = np.sqrt(2 * (x**2).sum() / 6)
    wanted = [
        size / (2 * np.pi),
        size / np.sqrt(2 * np.pi),
        np.abs(x).sum() / np.sqrt(2 * np.pi),
    ]
    parts = theory.parts(x, np.ones(1))
    np.testing.assert_allclose(parts.means, wanted, rtol=0.03)
    assert parts.errors.max() < 0.015


def test_covariances_by_neurons():
    """Those of the second layer and of what comes back are means over neurons of a very wide network."""
    of_batch = theory.covariances(X)
    first = RNG.standard_normal((100_000, 6)) * np.sqrt(2 / 6) @ X.T
    np.testing.assert_allclose(of_batch.first, first.T @ first / 100_000, rtol=0.05, atol=0.03)
    active = np.maximum(first, 0)
    np.testing.assert_allclose(of_batch.second, 2 * active.T @ active / 100_000, rtol=0.05)
    root = np.linalg.cholesky(of_batch.second)
    second = RNG.standard_normal((100_000, 3)) @ root.T > 0
    np.testing.assert_allclose(
        of_batch.back, 2.0 * (second.T @ (1.0 * second)) / 100_000, atol=0.02
    )


def test_gaussian_has_its_covariance():
    of_batch = theory.covariances(X)
    rng = np.random.default_rng(0)
    drawn = np.concatenate([theory.gaussian(rng, of_batch.second) for _ in range(200)])
    np.testing.assert_allclose(drawn.mean(0), 0, atol=1e-12)
    # four standard errors of a product of deviations near one
    errors = 4 * 2 / len(drawn) ** 0.5
    np.testing.assert_allclose(drawn.T @ drawn / len(drawn), of_batch.second, atol=errors)


def test_slopes_by_autodiff():
    weights = experiment.draw(RNG, 6, 8)
    start = experiment.outputs(weights, X)

    def risk(weights):
        return ((outputs(weights, X) - start - Y) ** 2).mean() / 2

    wanted = jax.jit(jax.grad(risk))(tuple(map(jnp.asarray, weights)))
    for slope, by_autodiff in zip(experiment.slopes(weights, X, -Y), wanted, strict=True):
        np.testing.assert_allclose(slope, by_autodiff, atol=1e-6)


def test_first_update_is_that_of_optax():
    slopes = experiment.slopes(experiment.draw(RNG, 6, 8), X, -Y)
    update = experiment.first_update(slopes, STANDARD)
    optimizer = optax.adam(1.0, eps=experiment.EPSILON)
    hidden = jnp.asarray(slopes.hidden)
    wanted, _ = optimizer.update(hidden, optimizer.init(hidden))
    np.testing.assert_allclose(update.hidden, jnp.asarray(wanted), atol=1e-4)
    halved = experiment.first_update(slopes, experiment.mup(128, 64))
    np.testing.assert_allclose(halved.hidden, update.hidden / 2)
    np.testing.assert_allclose(halved.readout, update.readout / 2)
    np.testing.assert_allclose(halved.inputs, update.inputs)


def test_small_steps_move_outputs_by_the_sum_of_absolute_slopes():
    weights = experiment.draw(RNG, 6, 16)
    slopes = experiment.slopes(weights, X, -Y)
    update = experiment.first_update(slopes, STANDARD)
    for name in experiment.PARTS:
        moved = experiment.move(weights, update, X, Y, 1e-7, [name])
        assert moved == pytest.approx(np.abs(getattr(slopes, name)).sum(), rel=1e-3)


def test_mup_is_as_usual_at_its_base_width():
    assert experiment.mup(64, 64) == STANDARD
    scales = experiment.mup(256, 64)
    assert scales.steps == 1 / 4
    # weights of the read-out then have the size √64/N
    assert scales.readout / 256**0.5 == pytest.approx(64**0.5 / 256)


def test_weights_have_their_variances():
    weights = experiment.draw(RNG, 60, 200)
    assert weights.inputs.var() == pytest.approx(2 / 60, rel=0.05)
    assert weights.hidden.var() == pytest.approx(2 / 200, rel=0.05)
    assert weights.readout.var() == pytest.approx(1 / 200, rel=0.3)


def test_networks_move_as_the_law_says():
    """With the hidden layer's step at other neurons that part is gone."""
    law = theory.parts(X, Y).means * theory.powers(200)
    several = []
    for _ in range(40):
        network = experiment.draw(RNG, 6, 200)
        several.append(experiment.moves(RNG, network, X, Y, 1e-3, 50))
    mean = lambda name: np.mean([getattr(moves, name) for moves in several], 0)
    np.testing.assert_allclose(mean("parts"), law, rtol=0.1)
    assert mean("standard") == pytest.approx(law.sum(), rel=0.1)
    assert abs(mean("hidden_elsewhere")) < 0.2 * law[0]
    at_base = (theory.parts(X, Y).means * theory.powers(50)).sum()
    assert mean("mup") == pytest.approx(at_base, rel=0.1)


def test_the_point_steps_like_the_claim():
    claim = WidthTransfer(widths=(16,), batches=(1,), neurons=32, seeds=3)
    point = WidthTransfer.point.of(claim)
    key = jax.random.key(0)
    setting = claim.setting(key)
    observed = claim.observe(setting, key)
    law = claim.predict(setting)
    predicted = point.predict(point.setting(key))
    moved = point.moves(kit.numpy_generator(key), *setting, 16, claim.part)
    for name, of_point in moved.items():
        np.testing.assert_allclose(of_point, observed[name][:, 0, 0])
        size = {"standard": 16, "mup": claim.base_width}[name]
        assert predicted[name] == pytest.approx(claim.part / size**1.5 * law[name][0, 0])
