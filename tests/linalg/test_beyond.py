"""The bound beyond the most extreme eigenpairs, against spectra that are known and dense Hessians."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from steepest.core.errors import UserError
from steepest.krylov._space import KrylovSpace
from steepest.linalg import top_eigenpairs
from tests.oracles import random_symmetric

RNG = np.random.default_rng(20)
BULK = 0.02 * RNG.standard_normal(150)
TWO_OUTPUTS = np.r_[BULK, 1.087, 1.176]
SPECTRA = {
    "two outputs": TWO_OUTPUTS,
    "a close cluster": np.r_[BULK, 1 + 1e-3 * np.arange(6)],
    "one that occurs five times": np.r_[BULK, np.ones(5)],
    "negative definite": -np.linspace(0.1, 1, 120),
    "a large negative end": np.r_[-1000, np.linspace(-1, 1, 120)],
    "even": np.linspace(0, 1, 300),
    "rank one": np.r_[2, np.zeros(80)],
    "zero": np.zeros(30),
    "one": np.array([-3.0]),
    "two": np.array([2.0, 1.0]),
    "three": np.array([-1.0, 0.0, -2.0]),
}


def search(spectrum, seed, dtype=np.float64, **options):
    values = spectrum.astype(dtype)
    start = np.random.default_rng(seed).standard_normal(len(values)).astype(dtype)
    return top_eigenpairs(lambda v: v * values, start, **options)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("name", SPECTRA)
def test_no_eigenvalue_lies_above_the_bound(name, dtype):
    spectrum = SPECTRA[name]
    rounding = 1e-5 * np.abs(spectrum).max()
    for seed in range(10):
        found = search(spectrum, seed, dtype, tolerance=1e-2)
        assert found.missed == 1e-3
        assert found.values[0] <= spectrum.max() + rounding
        assert found.bound >= spectrum.max() - rounding
        assert found.bound >= found.values[0]


def test_a_residual_alone_misses_what_the_bound_does_not():
    """Two outputs of nearly equal curvature: from few starts the second one settles first."""
    missed = 0
    for seed in range(60):
        alone = search(TWO_OUTPUTS, seed, tolerance=1e-2, missed=None)
        assert (alone.bound, alone.missed) == (None, None)
        missed += alone.values[0] + alone.residuals[0] < 1.176
        found = search(TWO_OUTPUTS, seed, tolerance=1e-2)
        assert found.values[0] == pytest.approx(1.176, rel=1e-4)
        assert 1.176 - 1e-12 <= found.bound <= 1.176 * 1.01
    assert missed >= 1


@pytest.mark.parametrize("limit", [3, 4, 6, 10, 25])
def test_a_bound_is_wrong_as_seldom_as_it_says(limit):
    """At most a fifth of 150 starts, and three standard errors, whenever the search is ended."""
    spectrum = np.r_[np.linspace(0, 1, 60), 1.05, 1.1]
    bounds = [search(spectrum, seed, limit=limit, missed=0.2).bound for seed in range(150)]
    assert np.mean(np.array(bounds) < 1.1 - 1e-12) <= 0.2 + 3 * (0.2 * 0.8 / 150) ** 0.5
    assert np.median(bounds) < 4


def test_the_next_vector_is_the_polynomial_of_the_start():
    """Its part along every eigenvector is P(λ) times that of the start, over a restart too."""
    values = np.linspace(-1, 2, 40)
    start = np.random.default_rng(3).standard_normal(40)
    start /= np.linalg.norm(start)
    space = KrylovSpace(start, 8, float, images=True)
    for _ in range(3):
        while space.count < 8:
            space.grow(values * space.direction())
        ritz, turn = np.linalg.eigh(space.small)
        following = np.abs(space.remainder) / space.link
        expected = np.exp(space.log_growth(ritz, values)) * np.abs(start)
        np.testing.assert_allclose(following, expected, rtol=1e-7)
        space.cut(ritz[::-1], turn[:, ::-1], 3)


@pytest.mark.parametrize("which", ["smallest", "magnitude"])
def test_the_other_ends_have_bounds(which):
    for sign in (1, -1):
        spectrum = {"smallest": -TWO_OUTPUTS, "magnitude": sign * np.r_[-1.08, TWO_OUTPUTS]}[which]
        for seed in range(10):
            found = search(spectrum, seed, which=which)
            top = 1.176 if which == "magnitude" else -1.176
            assert abs(found.values[0]) == pytest.approx(1.176, rel=1e-4)
            assert found.bound == pytest.approx(top, rel=1.1e-2)
            assert abs(found.bound) >= 1.176 - 1e-12


def test_a_warm_start_sees_a_new_largest_eigenvalue():
    """The eigenvectors found last are orthogonal to it: by themselves they never find it."""
    spectrum = np.r_[3.0, 2.0, np.linspace(0, 1, 98)]
    warm = np.eye(100)[1] + np.eye(100)[2]
    operator = lambda v: v * spectrum
    assert top_eigenpairs(operator, warm, limit=30, missed=None).values[0] < 2.5
    found = top_eigenpairs(operator, warm)
    assert found.values[0] == pytest.approx(3, rel=1e-3) and found.bound >= 3 - 1e-12


def test_several_pairs_are_the_largest():
    spectrum = np.r_[BULK, 1, 1.05, 1.1, 1.15, 1.2]
    for seed in range(20):
        found = search(spectrum, seed, np.float32, count=3, tolerance=1e-2)
        np.testing.assert_allclose(found.values, [1.2, 1.15, 1.1], rtol=5e-3)
        assert 1.2 * (1 - 1e-5) <= found.bound <= 1.2 * 1.01


def two_outputs(weights, x, y):
    """The risk of a tanh network with two outputs."""
    outputs = jnp.tanh(x @ weights[:48].reshape(6, 8)) @ weights[48:].reshape(8, 2)
    return jnp.mean((outputs - y) ** 2)


def test_networks_with_two_outputs_lie_within_their_intervals():
    hessian_of = jax.jit(jax.hessian(two_outputs))
    for seed in range(20):
        rng = np.random.default_rng(seed)
        weights = rng.uniform(-0.4, 0.4, 64)
        hessian = np.asarray(
            hessian_of(weights, rng.standard_normal((60, 6)), rng.standard_normal((60, 2)))
        )
        exact = np.linalg.eigvalsh(hessian)[-1]
        for start in range(3):
            begin = np.random.default_rng([seed, start]).standard_normal(64)
            found = top_eigenpairs(lambda v, h=hessian: v @ h, begin, tolerance=1e-2)
            assert found.values[0] - found.residuals[0] <= exact <= found.bound


def test_a_matrix_in_general_position_has_its_bound():
    matrix = random_symmetric(4, 200)
    exact = np.linalg.eigvalsh(matrix)[-1]
    for seed in range(10):
        start = np.random.default_rng(seed).standard_normal(200)
        found = top_eigenpairs(lambda v: v @ matrix, start, tolerance=1e-2)
        assert exact - 1e-10 <= found.bound <= 1.05 * exact


@pytest.mark.parametrize("missed", [0.0, 1.0, -0.1, 2.0])
def test_missed_is_a_probability(missed):
    with pytest.raises(UserError, match=f"probability in \\(0, 1\\).*got {missed}"):
        search(TWO_OUTPUTS, 0, missed=missed)
