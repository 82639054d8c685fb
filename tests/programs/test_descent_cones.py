"""Descent cones of the ℓ1 norm: intrinsic volumes by sampling and by projection, and what they say of recovery."""

import numpy as np
import pytest
from scipy.integrate import quad
from scipy.optimize import minimize_scalar, nnls

from steepest.core.errors import UserError
from steepest.programs import (
    l1_intrinsic_volumes,
    recovery_probability,
    statistical_dimension_l1,
)

RNG = np.random.default_rng(0)


def sampled(n, s, nonnegative, draws=100_000):
    """The law of the face on which the projection lies, from the root τ of each normal vector."""
    g = RNG.standard_normal((draws, n))
    others = g[:, s:] if nonnegative else np.abs(g[:, s:])
    largest_first = -np.sort(-others, axis=1)
    sums = np.cumsum(np.hstack([g[:, :s].sum(1, keepdims=True), largest_first]), axis=1)
    tau = sums / (s + np.arange(n - s + 1))
    without = s + (others > 0).sum(1) if nonnegative else n
    face = np.where(tau.max(1) > 0, s - 1 + tau.argmax(1), without)
    return np.bincount(face, minlength=n + 1) / draws


CASES = [(2, 1, True), (3, 2, False), (12, 3, False), (12, 3, True), (15, 11, True), (30, 4, False)]


@pytest.mark.parametrize(("n", "s", "nonnegative"), CASES)
def test_intrinsic_volumes_are_the_sampled_law(n, s, nonnegative):
    volumes = l1_intrinsic_volumes(n, s, nonnegative)
    np.testing.assert_allclose(volumes.sum(), 1, atol=1e-12)
    # the Gauss–Bonnet formula of cones
    np.testing.assert_allclose((volumes * (-1.0) ** np.arange(n + 1)).sum(), 0, atol=1e-12)
    np.testing.assert_allclose(volumes, sampled(n, s, nonnegative), atol=4 * 0.5 / 100_000**0.5)


@pytest.mark.parametrize("nonnegative", [False, True])
@pytest.mark.parametrize("n", [400, 1000])
def test_intrinsic_volumes_of_many_coordinates_add_to_one(n, nonnegative):
    volumes = l1_intrinsic_volumes(n, 100, nonnegative)
    np.testing.assert_allclose(volumes.sum(), 1, atol=3e-12)
    assert volumes.min() > -1e-12
    assert abs(n * statistical_dimension_l1(100 / n, nonnegative) - volumes @ np.arange(n + 1)) < 1
    assert recovery_probability(volumes)[-1] == 1


@pytest.mark.parametrize("nonnegative", [False, True])
def test_the_mean_is_the_squared_projection(nonnegative):
    """E‖Π_C g‖² by least squares on the generators of the polar cone: nonnegative sums of them."""
    n, s = 5, 2
    signs = np.array([[1.0] * s + list(e) for e in np.ndindex(*[2] * (n - s))])
    generators = np.hstack([signs[:, :s], 2 * signs[:, s:] - 1])
    if nonnegative:
        generators = np.vstack([np.ones((1, n)), -np.eye(n)[s:]])
    squares = [nnls(generators.T, g)[1] ** 2 for g in RNG.standard_normal((4000, n))]
    delta = l1_intrinsic_volumes(n, s, nonnegative) @ np.arange(n + 1)
    assert abs(np.mean(squares) - delta) < 4 * np.std(squares) / 4000**0.5


@pytest.mark.parametrize(("n", "s", "nonnegative"), CASES)
def test_mean_and_variance_of_the_first_success(n, s, nonnegative):
    volumes = l1_intrinsic_volumes(n, s, nonnegative)
    k = np.arange(n + 1)
    delta = volumes @ k
    failure = 1 - recovery_probability(volumes)
    mean = failure.sum()
    assert mean == pytest.approx(delta + 0.5, abs=1e-9)
    assert ((2 * k + 1) * failure).sum() - mean**2 == pytest.approx(
        volumes @ (k - delta) ** 2 - 0.25, abs=1e-9
    )
    assert (np.diff(failure) <= 1e-12).all() and failure[-1] == pytest.approx(0, abs=1e-12)


@pytest.mark.parametrize("nonnegative", [False, True])
def test_the_curve_is_the_limit(nonnegative):
    for n, s in ((60, 6), (240, 24)):
        delta = l1_intrinsic_volumes(n, s, nonnegative) @ np.arange(n + 1)
        psi = n * statistical_dimension_l1(s / n, nonnegative)
        assert psi - 2 * np.sqrt(n / s) <= delta <= psi
        assert abs(psi - delta - 0.5) < 0.2


@pytest.mark.parametrize(("rho", "nonnegative"), [(0.05, False), (0.6, False), (0.3, True)])
def test_the_curve_by_quadrature(rho, nonnegative):
    sides = 1 if nonnegative else 2
    normal = lambda u: np.exp(-(u**2) / 2) / np.sqrt(2 * np.pi)

    def value(tau):
        beyond = quad(lambda u: (u - tau) ** 2 * normal(u), tau, 12)[0]
        return rho * (1 + tau**2) + (1 - rho) * sides * beyond

    least = minimize_scalar(value, bounds=(0, 6), method="bounded", options={"xatol": 1e-9}).fun
    assert statistical_dimension_l1(rho, nonnegative) == pytest.approx(least, abs=1e-9)


@pytest.mark.parametrize(
    ("build", "words"),
    [
        (lambda: statistical_dimension_l1(1.2), "share"),
        (lambda: l1_intrinsic_volumes(3, 4), "4 of 3"),
        (lambda: l1_intrinsic_volumes(3, 0), "nonzero"),
        (lambda: l1_intrinsic_volumes(2000, 4), "1000"),
        (lambda: recovery_probability(np.ones(3)), "add to one"),
    ],
)
def test_bad_input(build, words):
    with pytest.raises(UserError, match=words):
        build()
