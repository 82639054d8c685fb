"""Networks of norm one on coin tosses: neurons by grids and in closed form, networks by a plain copy of them."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy.integrate import dblquad

from steepest.claims.margins.size_independent_bound.claim import SizeIndependentBound
from steepest.claims.margins.size_independent_bound.experiment import (
    Run,
    correlations,
    deep,
    draw,
    pad,
    search,
    shallow,
)
from steepest.claims.margins.size_independent_bound.theory import (
    neuron_constant,
    neuron_correlation,
)
from steepest.core.checks import Verdict

RNG = np.random.default_rng(0)


def arrays(*parts):
    return jax.tree.map(jnp.asarray, parts)


def relu(z):
    return np.maximum(z, 0)


def on_grid(x, signs, count):
    angles = 2 * np.pi * np.arange(count) / count
    return np.abs(signs @ relu(x @ [np.cos(angles), np.sin(angles)])).max() / len(x)


@pytest.mark.parametrize("n", [1, 2, 5, 30])
def test_the_best_neuron_is_that_of_a_fine_grid(n):
    for _ in range(10):
        x = RNG.standard_normal((n, 2))
        signs = RNG.choice([-1.0, 1.0], n)
        exact = neuron_correlation(x, signs)
        grid = on_grid(x, signs, 20_000)
        assert grid <= exact + 1e-12
        assert exact == pytest.approx(grid, abs=1e-3)


def test_no_mean_of_neurons_is_above_the_best_one():
    """Random networks, with the arithmetic mean ½‖θ‖² and with the smaller geometric one, Σ|v|‖w‖."""
    for _ in range(200):
        x = RNG.standard_normal((6, 2))
        signs = RNG.choice([-1.0, 1.0], 6)
        w = RNG.standard_normal((5, 2))
        v = RNG.standard_normal(5)
        value = abs(signs @ relu(x @ w.T) @ v) / 6
        geometric = (np.abs(v) * np.linalg.norm(w, axis=1)).sum()
        assert geometric <= ((v**2).sum() + (w**2).sum()) / 2
        assert value / geometric <= neuron_correlation(x, signs) * (1 + 1e-9)


def test_the_covariance_of_neurons_by_an_integral():
    """At ninety degrees in an isotropic plane the kernel is 1/4π; the process of two directions, by hand."""
    density = lambda a, b: a * b * np.exp(-(a**2 + b**2)) / np.pi  # variance ½ of a coordinate
    quadrant = dblquad(density, 0, np.inf, 0, np.inf)[0]
    assert quadrant == pytest.approx(1 / (4 * np.pi))


@pytest.mark.parametrize("aspect", [1.0, 0.4])
def test_the_limit_is_that_of_many_points(aspect):
    many = draw(RNG, 400, (1, 2000), aspect, 0.0)
    mean = np.sqrt(400) * search(many.x[0], many.signs[0]).mean()
    assert neuron_constant(aspect, RNG) == pytest.approx(mean, rel=0.03)


def test_the_limit_is_between_that_of_one_direction_and_that_of_a_vector():
    """One neuron of fixed direction has √(2/π)/2 = 0.40 at most; both signs of a vector √π/2 = 0.89."""
    constant = neuron_constant(1.0, RNG)
    assert 0.4 < constant < 0.886
    assert constant == pytest.approx(0.817, rel=0.01)


def test_the_search_is_one_of_few_directions():
    sample = draw(RNG, 30, (1, 20), 1.0, 0.0)
    for correlation, x, signs in zip(
        search(sample.x[0], sample.signs[0]), sample.x[0], sample.signs[0], strict=True
    ):
        assert correlation == pytest.approx(on_grid(x, signs, 256), rel=1e-5)


def plain(x, signs, w, v):
    """Descend one network of two layers by a loop of its own, in NumPy: projected gradients with small steps."""
    for step in range(1500):
        z = x @ w.T
        value = signs @ (relu(z) @ v)
        toward = np.sign(value) * 0.05 * (1 - step / 1500)
        slope_v = signs @ relu(z)
        slope_w = ((z > 0) * v).T @ (signs[:, None] * x)
        size = np.sqrt((slope_v**2).sum() + (slope_w**2).sum())
        v = v + toward * slope_v / size
        w = w + toward * slope_w / size
        norm = np.sqrt(((v**2).sum() + (w**2).sum()) / 2)
        v = v / norm
        w = w / norm
    return abs(signs @ (relu(x @ w.T) @ v))


def test_training_by_a_loop_in_numpy():
    n = 12
    x = RNG.standard_normal((n, 2))
    signs = RNG.choice([-1.0, 1.0], n) / n
    w = RNG.standard_normal((6, 2))
    v = RNG.standard_normal(6)
    alike = np.ones((6, 6))
    start, end = shallow(*arrays(x, signs, (w, v), alike, False), 1000)
    scale = ((v**2).sum() + (w**2).sum()) / 2
    assert float(start) == pytest.approx(abs(signs @ (relu(x @ w.T) @ v)) / scale, rel=1e-4)
    assert float(end) == pytest.approx(plain(x, signs, w, v), rel=0.02)


def test_networks_of_a_bank_are_apart():
    """Two networks of three neurons end at the better of what each ends at alone."""
    x = RNG.standard_normal((15, 2))
    signs = RNG.choice([-1.0, 1.0], 15) / 15
    w = RNG.standard_normal((6, 2))
    v = RNG.standard_normal(6)
    blocks = np.kron(np.eye(2), np.ones((3, 3)))
    bank = shallow(*arrays(x, signs, (w, v), blocks, False), 100)
    alone = [
        shallow(*arrays(x, signs, (w[part], v[part]), np.ones((3, 3)), False), 100)
        for part in (slice(0, 3), slice(3, 6))
    ]
    assert np.allclose(bank, np.max(alone, axis=0), rtol=1e-3)


def test_layers_of_spectral_norm_one():
    w = RNG.standard_normal((5, 2))
    v = RNG.standard_normal(5)
    x = RNG.standard_normal((9, 2))
    signs = RNG.choice([-1.0, 1.0], 9) / 9
    start, _ = shallow(*arrays(x, signs, (w, v), np.ones((5, 5)), True), 0)
    value = abs(signs @ relu(x @ w.T) @ v) / np.linalg.norm(w, 2) / np.linalg.norm(v)
    assert float(start) == pytest.approx(value, rel=1e-4)


HEXAGON = np.array([[np.cos(a), np.sin(a)] for a in np.pi / 3 * np.arange(6)])
ALTERNATING = np.array([1.0, -1.0] * 3)


def test_on_a_hexagon_two_layers_see_nothing_and_three_do():
    assert neuron_correlation(HEXAGON, ALTERNATING) < 1e-12
    x = jnp.pad(jnp.asarray(HEXAGON), ((0, 0), (0, 4)))
    signs = jnp.asarray(ALTERNATING) / 6
    keys = jax.random.split(jax.random.key(0), 16)
    three = lambda key: deep(
        x,
        signs,
        (jax.random.normal(key, (2, 6, 6)), jax.random.normal(key, (6,))),
        jnp.ones(2),
        jnp.array(0.0),
        300,
    )
    assert float(jax.vmap(three)(keys).max()) > 0.02


def test_unused_layers_are_none_and_padding_changes_nothing():
    sample = draw(RNG, 10, (2, 1), 1.0, 0.0)
    x, signs = pad(sample, 25)
    run = Run((2,), (1, 3), 8, 200)
    results = correlations(np.random.default_rng(1), run, [sample])
    padded = correlations(np.random.default_rng(1), run, [sample, draw(RNG, 25, (2, 1), 1.0, 0.0)])
    for name, values in results.items():
        assert np.allclose(values[0], padded[name][0], rtol=1e-3), name
    vectors = np.linalg.norm(np.einsum("sn,snd->sd", signs, x), axis=1)
    assert np.allclose(results["deep"][0], vectors[:, None], rtol=1e-3)


def test_copies_are_out_of_range():
    claim = SizeIndependentBound(**{**SizeIndependentBound.tiny, "repeated": 0.9})
    assert not all(h.holds for h in claim.hypotheses(claim.setting(jax.random.key(0))))


def test_the_judge_refutes_wrong_laws():
    claim = SizeIndependentBound(**{**SizeIndependentBound.tiny, "draws": 400})
    setting = claim.setting(jax.random.key(2))
    law = claim.predict(setting)
    observed = claim.observe(setting, jax.random.key(3))
    fails = lambda **wrong: {
        check.id
        for check in claim.checks(law.replace(**wrong), observed)
        if check.verdict is Verdict.FAILS
    }
    assert not fails()
    neuron = lambda factor: ("size seed width", law["neuron"] * factor)
    assert "width" in fails(neuron=neuron(1.1))
    assert "above" in fails(neuron=neuron(0.95))
    assert fails(rad=("size", law["rad"] * 1.15)) == {"rad"}
    assert fails(vector=("size seed depth", law["vector"] * 1.02)) == {"depth"}
