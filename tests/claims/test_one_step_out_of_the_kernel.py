"""One step's change of the kernel: against the library's networks and kernels, and its size against many flips."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from steepest.claims.features.one_step_out_of_the_kernel import (
    OneStepOutOfTheKernel,
    Setting,
    flip_amplitude,
    relative_change,
)
from steepest.kernels import empirical_ntk

RNG = np.random.default_rng(0)
X = RNG.normal(size=(6, 5))
X /= np.linalg.norm(X, axis=1, keepdims=True)
SETTING = Setting(X, RNG.choice([-1.0, 1.0], 6))
SCALES = {
    "ntk": lambda n: (n**-0.5, 1.0),
    "mean-field": lambda n: (1 / n, 1.0),
    "standard": lambda n: (1.0, n**-0.5),
}


@pytest.mark.parametrize("scaling", list(SCALES))
@pytest.mark.parametrize("activation", ["relu", "tanh"])
def test_the_change_is_that_of_autodiff(activation, scaling):
    n = 40
    scale, size = SCALES[scaling](n)
    rng = np.random.default_rng(3)
    params = {"w": jnp.asarray(rng.standard_normal((n, 5))), "a": size * rng.standard_normal(n)}
    sigma = jnp.tanh if activation == "tanh" else lambda z: jnp.sqrt(2) * jax.nn.relu(z)
    apply = lambda p, x: scale * sigma(x @ p["w"].T) @ p["a"]
    before = empirical_ntk(apply, params, jnp.asarray(X))
    risk = lambda p: 0.5 * jnp.sum((apply(p, X) - SETTING.y) ** 2)
    lr = 0.7 / np.linalg.eigvalsh(before)[-1]
    moved = jax.tree.map(lambda p, g: p - lr * g, params, jax.grad(risk)(params))
    after = empirical_ntk(apply, moved, jnp.asarray(X))
    expected = np.linalg.norm(after - before) / np.linalg.norm(before)
    got = relative_change(SETTING, n, activation, scaling, 0.7, np.random.default_rng(3))
    assert np.isclose(got, expected, rtol=1e-8)


def test_the_integral_over_one_neuron_counts_the_flips():
    """Two examples in the plane: a direct count of flips of a very wide layer, first order in n^(-1/2)."""
    angle = 1.0
    x = np.array([[1.0, 0.0], [np.cos(angle), np.sin(angle)]])
    y = np.array([1.0, -1.0])
    n = 4_000_000
    rng = np.random.default_rng(1)
    w = rng.standard_normal((n, 2))
    a = rng.standard_normal(n)
    cosine = x @ x.T
    theta = np.arccos(np.clip(cosine, -1, 1))
    nngp = (np.sin(theta) + cosine * (np.pi - theta)) / np.pi
    ntk = nngp + cosine * (np.pi - theta) / np.pi
    f = np.linalg.cholesky(nngp + 1e-12 * np.eye(2)) @ rng.standard_normal((2, n))
    gates = x @ w.T > 0
    pull = 2 * a * ((y[:, None] - f) * gates)  # on each example, before the overlaps
    small = 1e-3  # stands for n^(-1/2)
    after = x @ w.T + small * cosine @ pull / np.linalg.eigvalsh(ntk)[-1] > 0
    total = 0.0
    for i in range(2):
        for k in range(2):
            change = 1.0 * (after[i] & after[k]) - 1.0 * (gates[i] & gates[k])
            total += np.mean((2 * a**2 * cosine[i, k] * change) ** 2)
    counted = np.sqrt(total / small) / np.linalg.norm(ntk)
    assert np.isclose(flip_amplitude(x, y, 1.0), counted, rtol=0.05)


def test_too_few_widths_in_one_sentence():
    with pytest.raises(Exception, match="three different --widths"):
        OneStepOutOfTheKernel(widths=(128, 512))
