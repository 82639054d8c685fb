"""Sizes of updates: the lanes of one program against optax, Muon against an exact spectrum."""

import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest

from steepest import kit
from steepest.claims.training.update_size import experiment
from steepest.claims.training.update_size.claim import UpdateSize
from steepest.core.errors import UserError
from steepest.optimizers import Moments, Muon

RNG = np.random.default_rng(0)


def test_muons_iteration_by_singular_values():
    matrices = RNG.standard_normal((1, 3, 6, 9))
    values = np.linalg.svd(matrices, compute_uv=False)
    values /= np.linalg.norm(values, axis=-1, keepdims=True)
    wanted = np.sqrt((Muon().polynomial(values) ** 2).sum() / (3 * 6 * 9))
    np.testing.assert_allclose(experiment.muon(matrices), [wanted])


def test_noise_that_is_repeated_once_is_optax_on_fresh_noise():
    """The lanes of one program are the optimizer by itself."""
    key = jax.random.key(0)
    lanes = (np.array([0.5, 0.9]), np.array([0.9, 0.95]), np.array([0.0, 1.0]))
    sizes = experiment.on_noise(key, lanes, 7, 40, 1)
    for lane, size in enumerate(sizes):
        beta1, beta2, mean = [float(values[lane]) for values in lanes]
        adam = optax.scale_by_adam(beta1, beta2, experiment.EPSILON)
        state = adam.init(jnp.zeros(7))
        squares = []
        for step in range(40):
            noise = jax.random.normal(jax.random.fold_in(key, step), (7,))
            update, state = adam.update(mean + noise, state)
            squares.append(float((update**2).mean()))
        assert float(size) == pytest.approx(np.mean(squares[20:]) ** 0.5, rel=1e-4)


def test_weights_without_a_gradient_do_not_count():
    zero = np.zeros((2, 3))
    moments = Moments(zero, zero, zero, zero)
    assert not experiment.told(moments, 8, 0.999, 1000).any()


def test_fields_that_do_not_go_together():
    with pytest.raises(UserError, match="--small 64"):
        UpdateSize(small=100)


def test_the_point_is_a_lane_of_the_claim():
    claim = UpdateSize(
        beta1=(0.8, 0.9), beta2=(0.95,), agreement=(0.3,), weights=7, steps=40, seeds=3
    )
    point = UpdateSize.point.of(claim)
    assert point.predict(None)["adam"] == pytest.approx(claim.on_noise()[0, 0, 0])
    key = jax.random.key(1)
    sizes = claim.adam_on_noise(key)[0][:, 0]
    np.testing.assert_allclose(kit.compiled(point.observe)(None, key)["adam"], sizes, rtol=1e-4)
