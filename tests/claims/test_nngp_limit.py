"""What the claim about the Gaussian limit rests on: kurtosis of signs, its discrepancy, and its jackknife."""

import itertools

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from steepest.catalogue import load
from steepest.claims.signals.nngp_limit.claim import (
    COMBINATIONS,
    GROUPS,
    _characteristic,
    _kurtosis_of_signs,
    _pseudo_values,
    _signs,
)


def test_kurtosis_of_signs_in_closed_form():
    """ReLU: 3/n with one hidden layer, 18/n − 9/n² with two; a linear network has products of its own."""
    for n in (1, 8, 50):
        assert _kurtosis_of_signs((0.0, 1.0), n, 1) == pytest.approx(3 / n)
        assert _kurtosis_of_signs((0.0, 1.0), n, 2) == pytest.approx(18 / n - 9 / n**2)
        # one layer: 3 (1 + 2/n) − 2 · 3/n − 3
        assert _kurtosis_of_signs((1.0, 1.0), n, 1) == pytest.approx(0.0, abs=1e-12)


def test_kurtosis_of_signs_by_all_matrices():
    """Two ReLU layers of width two: every sign matrix and readout, Gaussian quadrature for the first layer."""
    nodes, weights = np.polynomial.hermite_e.hermegauss(40)
    weights = weights / weights.sum()
    first = np.array(list(itertools.product(nodes, repeat=2)))
    mass = np.array([a * b for a, b in itertools.product(weights, repeat=2)])
    second = fourth = 0.0
    signs = list(itertools.product((-1.0, 1.0), repeat=6))
    for row in signs:
        matrix = np.reshape(row[:4], (2, 2))
        hidden = np.maximum(np.maximum(first, 0) @ matrix, 0)
        z = hidden @ np.array(row[4:])
        second += mass @ z**2 / len(signs)
        fourth += mass @ z**4 / len(signs)
    # the kink of the second layer costs the quadrature some accuracy
    assert fourth / second**2 - 3 == pytest.approx(_kurtosis_of_signs((0.0, 1.0), 2, 2), rel=0.01)


def test_leading_order_of_signs_is_the_exact_one_of_relu():
    claim = load("nngp-limit")()
    setting = claim.setting(jax.random.key(0))
    coefficients = claim.coefficients(setting, 2)
    leading = coefficients - claim.sign_deficit(setting)
    np.testing.assert_allclose(leading[0], 18, rtol=1e-9)
    wide = 10**6
    assert wide * _kurtosis_of_signs((0.0, 1.0), wide, 2) == pytest.approx(18, rel=1e-5)


def test_signs_are_fair_and_independent():
    draws = np.asarray(_signs(jax.random.key(0), (400, 101)))
    assert set(np.unique(draws)) == {-1.0, 1.0}
    z = draws.sum() / np.sqrt(draws.size)
    lag = (draws[:, 1:] * draws[:, :-1]).sum() / np.sqrt(draws[:, 1:].size)
    assert abs(z) < 4 and abs(lag) < 4


def test_the_characteristic_function_is_that_of_samples():
    claim = load("nngp-limit")()
    setting = claim.setting(jax.random.key(0))
    variance = [claim.variance(case, setting.inputs, 2) for case in setting.cases]
    covariance = [claim.covariance(case, setting.inputs, 2) for case in setting.cases]
    phi = _characteristic(setting, variance, covariance)
    assert len(COMBINATIONS) == 13 and phi.shape == (2, 13)
    a, b, c = covariance[0]
    u, v, w = variance[0]
    kernel = np.array([[u, a, b], [a, v, c], [b, c, w]])
    z = np.random.default_rng(0).multivariate_normal(np.zeros(3), kernel, 200_000)
    means = np.cos(z @ setting.frequencies[0].T)
    errors = means.std(0) / np.sqrt(len(z))
    assert (np.abs(means.mean(0) - phi[0]) < 4 * errors).all()


def test_the_discrepancy_is_the_mean_over_pairs_of_networks():
    """The U-statistic against a loop over all ordered pairs, of all groups and without one."""
    claim = load("nngp-limit")(sign_networks=500, sign_widths=(4, 8, 12))
    rng = np.random.default_rng(1)
    cosines = rng.normal(size=(1, 3, GROUPS, claim.sign_group, 13))
    joint = rng.normal(size=13)
    observed = {
        "joint_sum": cosines.sum(3),
        "joint_square": (cosines**2).sum(3),
    }
    found = claim.distances(observed, 0, joint)

    def by_pairs(values):
        centred = values - joint
        total = np.einsum("iu,ju->", centred, centred) - (centred**2).sum()
        return total / (len(values) * (len(values) - 1)) / 13

    flat = cosines[0].reshape(3, -1, 13)
    np.testing.assert_allclose(found[0], [by_pairs(values) for values in flat], rtol=1e-8)
    without = cosines[0, :, 1:].reshape(3, -1, 13)
    np.testing.assert_allclose(found[1], [by_pairs(values) for values in without], rtol=1e-8)


def test_pseudo_values_of_a_mean_are_the_values():
    values = np.random.default_rng(2).normal(size=7)
    without = (values.sum() - values) / 6
    np.testing.assert_allclose(_pseudo_values(np.append(values.mean(), without)), values)


def test_networks_of_signs_are_networks():
    """Kurtosis at width 4 is the exact one, and the sums belong to as many networks as they say."""
    claim = load("nngp-limit")(sign_networks=20_000, sign_widths=(4, 6, 8), networks=500)
    setting = claim.setting(jax.random.key(0))
    with jax.enable_x64(True):
        found = claim.signs(setting, jax.random.key(1))
    second = found["sign_second"][1][0, 0] / claim.sign_group
    fourth = found["sign_fourth"][1][0, 0] / claim.sign_group
    kurtosis = (fourth / second**2 - 3).mean(1)
    error = kurtosis.std(ddof=1) / np.sqrt(GROUPS)
    assert abs(kurtosis.mean() - _kurtosis_of_signs((0.0, 1.0), 4, 2)) < 4 * error
    variance = claim.variance(setting.cases[0], setting.inputs, 2)
    z = (second.mean(0) - variance) / (second.std(0, ddof=1) / np.sqrt(GROUPS))
    assert np.abs(z).max() < 4
    assert np.isfinite(jnp.asarray(found["joint_sum"][1])).all()
