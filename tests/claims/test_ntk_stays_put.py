"""The linear flow of ntk-stays-put, against an integration of the linearized network's own weights."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.flatten_util import ravel_pytree
from scipy.integrate import solve_ivp

from steepest.claims.kernels.ntk_stays_put.claim import NtkStaysPut

SMALL = {"widths": (32, 48, 64), "narrow": (8,), "inputs": 3, "seeds": 3, "horizon": 4.0}


@pytest.fixture(scope="module")
def small():
    with jax.enable_x64(True):
        claim = NtkStaysPut(**SMALL)
        return claim, claim.setting(jax.random.key(5))


@pytest.mark.parametrize("place", [0, 3])
def test_weights_of_the_linearized_network_are_integrated(small, place):
    """``w' = −Jᵀ(f₀ + J(w − w₀) − y)/m`` of every weight, where the claim has the kernel's eigenvectors."""
    claim, setting = small
    n = claim.all[place]
    seed = 1
    with jax.enable_x64(True):
        start, unravel = ravel_pytree(jnp.asarray(setting.weights[place][seed]))
        outer = jnp.asarray(setting.outer[place][seed])
        network = lambda flat: jnp.sin(setting.x @ unravel(flat).T) @ outer / np.sqrt(n)
        outputs = np.asarray(network(start))
        jacobian = np.asarray(jax.jacobian(network)(start))
    first = outputs - setting.y
    velocity = lambda t, moved: -jacobian.T @ (first + jacobian @ moved) / claim.inputs
    path = solve_ivp(
        velocity,
        (0, claim.times[-1]),
        np.zeros(len(start)),
        t_eval=claim.times,
        rtol=1e-10,
        atol=1e-13,
    ).y.T
    residuals = first + path @ jacobian.T
    by_neuron = np.linalg.norm(path.reshape(len(claim.times), n, -1), axis=2)
    linear = claim.linearized(setting)
    np.testing.assert_allclose(linear.movement[place, seed], by_neuron.max(), rtol=1e-6)
    np.testing.assert_allclose(
        linear.risk[place, seed], 0.5 * (residuals**2).mean(1), rtol=1e-6, atol=1e-14
    )


def test_smallest_eigenvalues_and_risks_are_those_of_the_start(small):
    claim, setting = small
    for place, n in enumerate(claim.all):
        slopes = np.cos(np.asarray(setting.weights[place][0]) @ setting.x.T)
        kernel = (setting.x @ setting.x.T) * (slopes.T @ slopes) / n
        np.testing.assert_allclose(setting.smallest[place, 0], np.linalg.eigvalsh(kernel)[0])
