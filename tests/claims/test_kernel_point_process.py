"""The process of a kernel: sums over subsets, pivots against determinants, leverages by other libraries, the judge."""

import itertools

import jax
import numpy as np
import pytest
from scipy.stats import chi2
from sklearn.gaussian_process import GaussianProcessRegressor
from sklearn.gaussian_process.kernels import DotProduct

from steepest import kit
from steepest.claims.kernels.kernel_point_process.claim import KernelPointProcess
from steepest.claims.kernels.kernel_point_process.experiment import (
    Plan,
    interpolated,
    moments,
    over_all_subsets,
    pivot,
    sampled,
)
from steepest.claims.kernels.kernel_point_process.theory import pair_chances, smoother

RNG = np.random.default_rng(0)


def kernel_of(n, features=None):
    phi = RNG.standard_normal((n, features or n + 1))
    return phi @ phi.T / phi.shape[1]


def subsets_of(n):
    return [list(s) for k in range(n + 1) for s in itertools.combinations(range(n), k)]


def summed(kernel, ridge, value):
    """The mean of a function of the subset, subset by subset."""
    weights = [np.linalg.det(kernel[np.ix_(s, s)] / ridge) for s in subsets_of(len(kernel))]
    values = [value(s) for s in subsets_of(len(kernel))]
    return sum(w * v for w, v in zip(weights, values, strict=True)) / sum(weights)


@pytest.mark.parametrize("features", [None, 3])
def test_the_marginal_kernel_is_that_of_the_sums(features):
    """Also where the kernel has a rank that bounds the number of points."""
    n = 5
    kernel = kernel_of(n, features)
    marginal = smoother(kernel, 0.4)
    for i, j in itertools.product(range(n), repeat=2):
        chance = summed(kernel, 0.4, lambda s, i=i, j=j: float(i in s and j in s))
        assert pair_chances(marginal)[i, j] == pytest.approx(chance, abs=1e-12)
    size = summed(kernel, 0.4, len)
    assert np.trace(marginal) == pytest.approx(size)
    square = summed(kernel, 0.4, lambda s: len(s) ** 2)
    assert np.trace(marginal - marginal @ marginal) == pytest.approx(square - size**2)


def test_the_mean_interpolant_is_ridge_regression():
    n = 5
    kernel = kernel_of(n)
    targets = RNG.standard_normal(n)

    def through(s):
        return kernel[:, s] @ np.linalg.solve(kernel[np.ix_(s, s)], targets[s])

    mean = summed(kernel, 0.3, through)
    assert mean == pytest.approx(kernel @ np.linalg.solve(kernel + 0.3 * np.eye(n), targets))
    sums = over_all_subsets(kernel, targets, 0.3)
    assert sums.output == pytest.approx(mean)
    assert sums.pairs == pytest.approx(pair_chances(smoother(kernel, 0.3)))


def test_leverage_is_posterior_variance_over_the_noise():
    """And not one less it: by scikit-learn's Gaussian process of the same features."""
    phi = RNG.standard_normal((12, 4))
    for noise in (0.2, 1.0):
        process = GaussianProcessRegressor(
            DotProduct(0.0, "fixed"), alpha=noise, optimizer=None
        ).fit(phi, np.zeros(12))
        _, deviation = process.predict(phi, return_std=True)
        leverage = smoother(phi @ phi.T, noise).diagonal()
        assert deviation**2 / noise == pytest.approx(leverage)


def test_a_pivot_has_the_odds_of_all_points_on_its_diagonal():
    n = 6
    matrix = kernel_of(n)
    pivoted = matrix[None].copy()
    inside = []
    for point in (2, 4, 0, 4, 5):
        pivoted = pivot(pivoted, point)
        inside = sorted(set(inside) ^ {point})
        det = lambda s: np.linalg.det(matrix[np.ix_(s, s)])
        odds = [det(sorted(set(inside) ^ {i})) / det(inside) for i in range(n)]
        assert pivoted[0].diagonal() == pytest.approx(odds)
    block = np.ix_(inside, inside)
    assert pivoted[0][block] == pytest.approx(np.linalg.inv(matrix[block]))


def test_samples_have_the_probabilities_of_determinants():
    n = 4
    matrix = 2 * kernel_of(n)
    subsets = sampled(matrix, Plan(40, 100, 1), RNG).reshape(-1, n)
    counts = np.bincount(subsets @ 2 ** np.arange(n), minlength=2**n)
    chances = np.zeros(2**n)
    for s in subsets_of(n):
        chances[sum(2**i for i in s)] = np.linalg.det(matrix[np.ix_(s, s)])
    expected = chances / chances.sum() * len(subsets)
    assert len(subsets) == counts.sum() == 4000
    statistic = ((counts - expected) ** 2 / expected).sum()
    assert statistic < chi2.ppf(1 - 1e-4, 2**n - 1)


def test_interpolants_are_of_least_norm_and_fit_their_own_targets():
    n = 7
    phi = RNG.standard_normal((n, 20))
    targets = RNG.standard_normal(n)
    subsets = RNG.random((5, n)) < 0.5
    outputs = interpolated(phi @ phi.T, targets, subsets)
    for subset, output in zip(subsets, outputs, strict=True):
        weights = np.linalg.lstsq(phi[subset], targets[subset])[0]
        assert output == pytest.approx(phi @ weights)
        assert output[subset] == pytest.approx(targets[subset])


def test_moments_by_hand():
    subsets = np.array([[[1, 1, 0, 0], [1, 0, 1, 0]]], bool)
    size, spread, repulsion, _ = moments(np.eye(4), np.ones(4), subsets)
    assert size == 2
    assert spread == 0
    # of eight pairs of neighbours (four places, two draws) one is taken, of opposite ones two
    assert repulsion[0] == pytest.approx([1 / 8 / 0.25, 2 / 8 / 0.25])


def test_the_judge_refutes_wrong_laws():
    claim = KernelPointProcess(points=12, images=12, seeds=6)
    setting = claim.setting(jax.random.key(0))
    law = claim.predict(setting)
    noise = lambda *shape: 1e-3 * RNG.standard_normal(shape)
    around = lambda name, dims: (dims, law[name][..., None] + noise(*law[name].shape, 6))
    observed = kit.seen(
        size=around("size", "ridge seed"),
        spread=around("spread", "ridge seed"),
        repulsion=around("repulsion", "ridge angle seed"),
        output=around("output", "ridge direction seed"),
        leverage=around("leverage", "image seed"),
        pairs=("ridge first second", law["pairs"]),
        few_output=("ridge first", law["few_output"]),
    )

    def fails(name, factor):
        wrong = law.replace(**{name: (law.quantity(name).dims, law[name] * factor)})
        return {
            check.id for check in claim.checks(wrong, observed) if check.verdict.value == "fails"
        }

    assert not fails("size", 1.0)
    assert fails("size", 1.05) == {"size"}
    assert fails("spread", 1.3) == {"spread"}
    assert fails("repulsion", 0.8) == {"repulsion"}
    assert fails("output", 0.8) == {"ridge"}
    assert fails("leverage", 0.7) == {"leverage"}
    assert fails("pairs", 1.001) == {"enumerated"}
    assert fails("few_output", 1.001) == {"enumerated"}


def test_a_kernel_with_a_negative_eigenvalue_is_out_of_range():
    claim = KernelPointProcess(points=12, images=12, lowered=0.5)
    assert not all(h.holds for h in claim.hypotheses(claim.setting(jax.random.key(0))))
