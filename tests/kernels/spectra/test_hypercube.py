"""Spectra of kernels on the cube, by a dense eigenvalue solver, and learning curves by regression on samples."""

import math

import numpy as np
import pytest

from steepest.core.errors import UserError
from steepest.kernels import hypercube_spectrum, learning_curve
from steepest.nn.data import hypercube

RNG = np.random.default_rng(0)


def angular(t):
    """The NTK of a two-layer ReLU network on unit inputs."""
    t = np.clip(t, -1, 1)
    angle = math.pi - np.arccos(t)
    return (2 * t * angle + np.sqrt(1 - t**2)) / math.pi


@pytest.mark.parametrize("n", [1, 2, 5, 7])
def test_dense_eigenvalues(n):
    points = hypercube(n) / math.sqrt(n)
    dense = np.linalg.eigvalsh(angular(points @ points.T) / 2**n)
    spectrum = hypercube_spectrum(angular, n)
    listed = np.repeat(spectrum.eigenvalues, spectrum.multiplicities.astype(int))
    np.testing.assert_allclose(np.sort(listed), dense, atol=1e-13)
    assert spectrum.beyond == pytest.approx(0, abs=1e-12)


def test_polynomials_are_known():
    """t² = 1/n + (2/n²) Σ of products of two coordinates."""
    spectrum = hypercube_spectrum(np.square, 30)
    np.testing.assert_allclose(spectrum.eigenvalues[:4], [1 / 30, 0, 2 / 900, 0], atol=1e-15)
    assert not spectrum.eigenvalues[3:].any()


def test_what_is_left_out_acts_as_a_ridge():
    whole = hypercube_spectrum(angular, 40)
    part = hypercube_spectrum(angular, 40, 12)
    assert whole.multiplicities @ whole.eigenvalues == pytest.approx(2)
    assert part.beyond == pytest.approx(2 - part.multiplicities @ part.eigenvalues)
    errors = [learning_curve(one, 2, 400.0).sign_error for one in (whole, part)]
    assert errors[0] == pytest.approx(errors[1], rel=1e-6)
    assert len(hypercube_spectrum(angular, 200).eigenvalues) < 30


def test_regression_learns_as_fast():
    """One eigenfunction of degree two, 16 samples of 60 and of 120 points; the limit leaves out some 2 %."""
    n = 14
    spectrum = hypercube_spectrum(angular, n)
    for samples in (60, 120):
        learned = []
        errors = []
        for _ in range(16):
            x = RNG.choice([-1.0, 1.0], (samples, n))
            test = RNG.choice([-1.0, 1.0], (1000, n))
            gram = angular(x @ x.T / n) + 1e-8 * np.eye(samples)
            outputs = angular(test @ x.T / n) @ np.linalg.solve(gram, x[:, 0] * x[:, 1])
            learned.append((outputs * test[:, 0] * test[:, 1]).mean())
            errors.append((outputs * test[:, 0] * test[:, 1] < 0).mean())
        curve = learning_curve(spectrum, 2, samples, 1e-8)
        for sample, theory in ((learned, curve.learned), (errors, curve.sign_error)):
            spread = np.std(sample, ddof=1) / math.sqrt(len(sample))
            assert abs(np.mean(sample) - theory) < 4 * spread + 0.01


def test_the_effective_ridge_counts_samples():
    """With one degree alone L is samples / C(n, k), as for random projections of that many unknowns."""
    n = 10
    spectrum = hypercube_spectrum(lambda t: t, n)
    assert learning_curve(spectrum, 1, 4.0).learned == pytest.approx(0.4)


@pytest.mark.parametrize(
    ("call", "sentence"),
    [
        (lambda: hypercube_spectrum(angular, 0), "dimension from 1 to 300, got 0"),
        (lambda: hypercube_spectrum(angular, 5, 6), "last degree from 0 to 5, got 6"),
        (lambda: learning_curve(hypercube_spectrum(angular, 5), 2, 0.5), "at least one sample"),
        (lambda: learning_curve(hypercube_spectrum(angular, 5), 2, 9, -1.0), "at least zero"),
        (lambda: learning_curve(hypercube_spectrum(angular, 5), 6, 9), "degree from 0 to 5"),
        (lambda: learning_curve(hypercube_spectrum(angular, 5), 2, 40), "pass a ridge"),
    ],
)
def test_bad_input(call, sentence):
    with pytest.raises(UserError, match=sentence) as caught:
        call()
    assert "\n" not in str(caught.value)
