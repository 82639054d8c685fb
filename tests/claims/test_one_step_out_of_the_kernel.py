"""One step's change of the kernel: against the library's networks and kernels, and its size against many flips."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from steepest.claims.features.one_step_out_of_the_kernel.claim import (
    OneStepOutOfTheKernel,
    Setting,
    flips,
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


def test_the_integrals_over_one_neuron_count_the_flips():
    """Three examples: gates before and after a real step of a very wide layer, for several outputs at the start."""
    x = X[:3]
    y = np.array([1.0, -1.0, 1.0])
    cosine = x @ x.T
    theta = np.arccos(np.clip(cosine, -1, 1))
    nngp = (np.sin(theta) + cosine * (np.pi - theta)) / np.pi
    ntk = nngp + cosine * (np.pi - theta) / np.pi
    root = np.linalg.cholesky(nngp)
    rng = np.random.default_rng(1)
    n = 400_000
    small = 1e-3  # stands for n^(-1/2)
    squares = []
    means = []
    for _ in range(30):
        w = rng.standard_normal((n, 5))
        a = rng.standard_normal(n)
        residual = y - root @ rng.standard_normal(3)
        before = w @ x.T
        slopes = np.sqrt(2) * (before > 0)  # σ′
        moved = w + small * a[:, None] * ((slopes * residual) @ x) / np.linalg.eigvalsh(ntk)[-1]
        change = np.sqrt(2) * (moved @ x.T > 0)
        each_neuron = a**2 * np.einsum("ji,jk->ikj", change, change)
        each_neuron -= a**2 * np.einsum("ji,jk->ikj", slopes, slopes)
        each_neuron *= cosine[..., None]
        squares.append((each_neuron**2).mean(-1).sum() / small)
        means.append(((each_neuron.mean(-1) / small) ** 2).sum())
    scatter, drift = flips(x, y, 1.0) * np.linalg.norm(ntk) ** 2
    assert np.isclose(np.mean(squares), scatter, rtol=0.1)
    # the mean square of the drift of one start has the noise of so many flips besides
    noise = np.mean(squares) / small / n
    drifts = np.array(means) - noise
    assert abs(drifts.mean() - drift) < 4 * drifts.std() / 30**0.5
    assert drifts.mean() > 4 * drifts.std() / 30**0.5


def test_too_few_widths_in_one_sentence():
    with pytest.raises(Exception, match="three increasing --widths"):
        OneStepOutOfTheKernel(widths=(512, 128, 1024))
