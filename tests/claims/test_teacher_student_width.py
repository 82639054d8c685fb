"""The splitting formula of teacher-student-width by drawn inputs, and Wilson's interval."""

import jax
import numpy as np
import pytest
from numpy.polynomial.hermite_e import hermeval
from scipy.integrate import quad
from scipy.stats import norm

from steepest.catalogue import load
from steepest.claims.descent._shares import equal_share, wilson
from steepest.claims.descent.teacher_student_width.designed import (
    ascend,
    draw_examples,
    hermite_slopes,
    measure_ends,
)
from steepest.claims.descent.teacher_student_width.experiment import (
    WidthPoint,
    split,
    split_direction,
)
from steepest.kernels import teacher_risk

RISK = jax.jit(teacher_risk)


def test_a_split_moves_the_risk_by_its_form():
    """Away from critical points too: halves that part along ±u change nothing to first order."""
    weights = np.random.default_rng(0).normal(size=(3, 4))
    form, direction = split_direction(weights, 1)
    assert direction @ weights[1] == pytest.approx(0, abs=1e-12)
    assert np.linalg.norm(direction) == pytest.approx(1)
    push = 1e-4
    with jax.enable_x64(True):
        before = float(RISK(weights, np.eye(4))[0])
        still = float(RISK(split(weights, 1, direction, 0.0), np.eye(4))[0])
        after = float(RISK(split(weights, 1, direction, push), np.eye(4))[0])
    assert still == pytest.approx(before, abs=1e-13)
    assert (after - before) / push**2 == pytest.approx(2 * form, rel=5e-3)


def test_the_form_is_the_mean_of_the_residual_on_the_hyperplane():
    """E[(f − y) x xᵀ δ(w·x)] by drawing x on the hyperplane, of density 1/(√(2π) ‖w‖)."""
    rng = np.random.default_rng(1)
    weights = rng.normal(size=(2, 3))
    form, direction = split_direction(weights, 0)
    unit = weights[0] / np.linalg.norm(weights[0])
    x = rng.normal(size=(400_000, 3))
    x -= np.outer(x @ unit, unit)
    gap = np.maximum(x @ weights.T, 0).sum(1) - np.maximum(x, 0).sum(1)
    drawn = gap * (x @ direction) ** 2 / (np.sqrt(2 * np.pi) * np.linalg.norm(weights[0]))
    error = drawn.std() / np.sqrt(len(drawn))
    assert abs(drawn.mean() - form) < 4 * error


def test_wilsons_interval():
    """Against its definition: the ends are where the normal test of the share is at z = 1.96."""
    hits = np.arange(20) < 7
    band = wilson(hits)
    for end in (band.low, band.high):
        assert abs(hits.mean() - end) == pytest.approx(1.96 * np.sqrt(end * (1 - end) / 20))
    assert wilson(np.zeros(28, bool)).high < 0.13


def test_what_is_shown_of_a_share_is_the_share():
    check = equal_share("stuck", 0.0, np.zeros(28, bool), 0.15, label="share stuck")
    assert check.measured == 0
    assert check.verdict.value == "holds"
    assert (check.interval.low, check.interval.high) == (0, pytest.approx(0.1206, abs=1e-4))


def test_boundaries_follow_the_axes():
    point = WidthPoint(teacher=6, ratio=1.0, lr=0.1, steps=5, seeds=3)
    across = point.boundaries("teacher", "ratio")
    along = point.boundaries("ratio", "teacher")
    np.testing.assert_array_equal(across[0].x, along[0].y)
    assert point.boundaries("teacher", "lr") == ()


@pytest.mark.parametrize(("degree", "constant"), [(2, 1.0), (3, 0.0), (4, -1.0)])
def test_moments_of_a_neuron_with_hermite_polynomials(degree, constant):
    """√(2π) E relu(⟨a, x⟩) He_k(⟨b, x⟩) is a constant times ⟨a, b⟩^k: by quadrature over the two Gaussians."""
    he = lambda w: hermeval(w, np.eye(degree + 1)[degree])
    for c in (0.3, 0.8, 1.0):
        s = np.sqrt(1 - c**2)

        def given(w, c=c, s=s):  # E relu(cw + sv) over a normal v
            return c * w * norm.cdf(c * w / s) + s * norm.pdf(c * w / s) if s else max(w, 0)

        moment = quad(lambda w: given(w) * he(w) * norm.pdf(w), -12, 12, points=[0.0])[0]
        assert np.sqrt(2 * np.pi) * moment == pytest.approx(constant * c**degree, abs=1e-7)


def test_slopes_are_those_of_moments_with_hermite_polynomials():
    """By He_k itself on the labels less what a polynomial fits, found by another least squares."""
    rng = np.random.default_rng(2)
    _, x, y = draw_examples(rng, 4, 3000)
    slopes = hermite_slopes(x.astype(float), y.astype(float))
    pairs = [x[:, i] * x[:, j] for i in range(4) for j in range(i, 4)]
    b = rng.standard_normal((3, 4))
    b /= np.linalg.norm(b, axis=1, keepdims=True)
    for degree, sign in ((2, 1), (3, 1), (4, -1)):
        basis = np.c_[np.ones(3000), x, *([] if degree == 2 else pairs)].astype(float)
        left = y - basis @ np.linalg.lstsq(basis, y.astype(float))[0]
        he = hermeval(x @ b.T, np.eye(degree + 1)[degree])
        direct = sign * np.sqrt(2 * np.pi) * (left @ he) / 3000
        np.testing.assert_allclose((b * slopes[degree](b)).sum(1), direct, atol=1e-6)


def test_ascents_of_the_exact_objective_come_to_all_neurons_as_the_law_says():
    """With Σ⟨a_i, b⟩³a_i for a slope; and the law by the chance of each subset."""
    rng = np.random.default_rng(3)
    k = 15
    law = load("teacher-student-width")().predict(None)
    teacher = np.linalg.qr(rng.standard_normal((k, k)))[0]
    starts = rng.standard_normal((90 * 200, k))
    starts /= np.linalg.norm(starts, axis=1, keepdims=True)
    assert ((starts @ teacher.T) ** 4).sum(1).mean() == pytest.approx(law["height"][0], rel=0.01)
    ends = ascend(lambda b: (b @ teacher.T) ** 3 @ teacher, starts)
    tries = (5, 15, 45, 90)
    near, reached = measure_ends(ends, teacher, tries)
    assert near.mean() > 0.999
    np.testing.assert_allclose(reached, law["reached"], rtol=0.02)
    neurons = rng.integers(k, size=(4000, 90))
    for place, number in enumerate(tries):
        different = np.mean([len(set(row[:number])) for row in neurons])
        assert different == pytest.approx(law["reached"][place], rel=0.01)


def test_ascents_of_other_degrees_come_to_no_neuron():
    rng = np.random.default_rng(4)
    teacher, x, y = draw_examples(rng, 12, 20_000)
    slopes = hermite_slopes(x, y)
    starts = rng.standard_normal((90, 12))
    starts /= np.linalg.norm(starts, axis=1, keepdims=True)
    shares = {
        k: measure_ends(ascend(slope, starts), teacher, (90,))[0].mean()
        for k, slope in slopes.items()
    }
    assert shares[4] > 0.9
    assert max(shares[2], shares[3]) < 0.1
