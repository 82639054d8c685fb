"""Softmax on two clusters: integrals against dense Hessians and other quadratures, and a judge that rejects."""

import jax
import numpy as np
import pytest
from scipy.integrate import quad
from scipy.stats import norm

from steepest.claims.curvature.two_cluster_hessian.claim import TIMES, TwoClusterHessian
from steepest.claims.curvature.two_cluster_hessian.experiment import (
    World,
    along_and_across,
    class_direction,
    crossings,
    draw,
    outliers,
    place_of_class,
    train,
)
from steepest.claims.curvature.two_cluster_hessian.theory import (
    crossing,
    curvatures,
    ratio,
    ratio_at_optimum,
    weights_of_flow,
)
from steepest.core.errors import UserError

ROOT = np.sqrt(2)


def logistic_slope(z):
    return 1 / (2 + 2 * np.cosh(z))


@pytest.mark.parametrize("a, spread", [(0.0, 0.7), (0.4, 1.3), (2.2, 0.8), (1.0, 2.0)])
def test_curvatures_are_the_integrals(a, spread):
    density = norm(ROOT, spread).pdf
    ends = (ROOT - 12 * spread, ROOT + 12 * spread)
    weight = lambda u: 2 * logistic_slope(2 * a * u) * density(u)
    along = quad(lambda u: weight(u) * u**2, *ends, limit=200, epsabs=1e-13)[0]
    across = quad(lambda u: weight(u) * spread**2, *ends, limit=200, epsabs=1e-13)[0]
    np.testing.assert_allclose(curvatures(a, spread), (along, across), rtol=1e-6)


def test_curvatures_are_those_of_a_dense_hessian():
    """Points of a grid with their masses in place of a sample: Σ (diag p − p pᵀ) ⊗ x xᵀ, as a matrix."""
    a = 0.9
    spread = 1.1
    nodes, masses = np.polynomial.hermite_e.hermegauss(60)
    masses /= masses.sum()
    first, second = (grid.ravel() for grid in np.meshgrid(nodes, nodes))
    mass = np.outer(masses, masses).ravel()
    x = 1 + spread * np.stack([first, second], 1)
    e = np.full(2, 1 / ROOT)
    logits = a * np.outer(x @ e, [-1, 1])
    p = np.exp(logits) / np.exp(logits).sum(1, keepdims=True)
    inner = p[:, :, None] * np.eye(2) - p[:, :, None] * p[:, None]
    # both clusters give the same matrix, as x xᵀ and p(1 − p) are even
    hessian = np.einsum("n,nab,ni,nj->aibj", mass, inner, x, x).reshape(4, 4)
    values = np.sort(np.linalg.eigvalsh(hessian))
    np.testing.assert_allclose(values[:2], 0, atol=1e-14)
    np.testing.assert_allclose(values[2:], sorted(curvatures(a, spread)), rtol=1e-9)
    np.testing.assert_allclose(along_and_across(hessian, 2), curvatures(a, spread), rtol=1e-9)


@pytest.mark.parametrize("spread", [0.8, 1.0, 1.7])
def test_start_optimum_and_crossing(spread):
    assert ratio(0.0, spread) == pytest.approx(1 + 2 / spread**2)
    assert ratio(ROOT / spread**2, spread) == pytest.approx(ratio_at_optimum(spread), rel=1e-6)
    assert ratio_at_optimum(spread) < 1
    assert ratio(crossing(spread), spread) == pytest.approx(1, abs=1e-9)
    # the true chance of a class is the logistic function of 2⟨μ, x⟩/s²: there the risk is flat
    u = ROOT + spread * np.linspace(-12, 12, 20001)
    slope = norm(ROOT, spread).pdf(u) * u / (1 + np.exp(2 * ROOT / spread**2 * u))
    assert np.trapezoid(slope, u) == pytest.approx(0, abs=1e-9)


def test_the_flow_by_its_time_as_an_integral():
    spread = 1.2
    nodes = np.linspace(-12, 12, 4001)
    density = norm.pdf(nodes) * (nodes[1] - nodes[0])
    u = ROOT + spread * nodes
    speed = lambda a: density @ (u / (1 + np.exp(2 * a * u)))
    for time, a in zip(TIMES[::4], weights_of_flow(TIMES, spread)[::4], strict=True):
        if time < 40:
            assert quad(lambda b: 1 / speed(b), 0, a)[0] == pytest.approx(time, rel=1e-5)


def test_hessians_of_training_are_those_of_its_points():
    """At the start all points are undecided: Σ x xᵀ/4 in both outputs, minus it between them."""
    (trained,) = train(
        jax.random.key(3), (World(),), (1.3,), (0.0, 1.0), dimension=3, examples=64, seeds=2
    )
    assert trained.hessian.shape == (2, 1, 2, 6, 6)
    first = trained.hessian[0, 0, 0]
    blocks = first.reshape(2, 3, 2, 3)
    np.testing.assert_allclose(blocks[0, :, 0], -blocks[0, :, 1], rtol=1e-6)
    np.testing.assert_allclose(blocks[0, :, 0], blocks[1, :, 1], rtol=1e-6)
    along, across = along_and_across(first, 3)
    assert along / across == pytest.approx(1 + 2 / 1.3**2, rel=0.1)
    separate = trained.separate[0, 0].reshape(2, 3, 2, 3)
    np.testing.assert_allclose(separate[0, :, 0], blocks[0, :, 0], rtol=1e-3)
    np.testing.assert_allclose(separate[0, :, 1], 0, atol=1e-12)
    assert outliers(first, 3) == 1
    assert outliers(trained.separate[0, 0], 3) == 2


def test_points_fill_their_clusters():
    e = class_direction(3)
    rng = np.random.default_rng(0)
    x = draw(rng, World(centre=0.7, stretch=1.5), 0.9, 1024, e)
    for half, sign in ((x[:512], -1), (x[512:], 1)):
        np.testing.assert_allclose(half.mean(0), 0.7 * ROOT * sign * e, atol=0.02)
        widths = np.eye(3) + (1.5**2 - 1) * np.outer(e, e)
        np.testing.assert_allclose(np.cov(half.T), 0.81 * widths, atol=0.03)


def test_places_and_crossings_by_hand():
    across = np.eye(2) - np.outer(class_direction(2), class_direction(2))
    apart = np.array([[1, -1], [-1, 1]]) / 2
    for high, place in ((3.0, 1), (0.5, 2)):
        inner = high * np.outer(class_direction(2), class_direction(2)) + across
        hessian = np.kron(apart, inner)
        assert place_of_class(hessian, 2) == place
        np.testing.assert_allclose(along_and_across(hessian, 2), (high, 1.0))
    weights = np.linspace(0.1, 2, 12)
    np.testing.assert_allclose(crossings(weights, np.exp(1.2 - weights)), 1.2, rtol=1e-9)
    assert np.isnan(crossings(weights, np.exp(5 - weights)))


def test_wrong_theories_fail():
    claim = TwoClusterHessian(spreads=(1.2, 1.7), dimension=2, examples=512, seeds=3)
    setting = claim.setting(jax.random.key(0))
    law = claim.predict(setting)
    observed = claim.observe(setting, jax.random.key(1))
    right = {check.id: check.verdict.value for check in claim.checks(law, observed)}
    assert "fails" not in right.values()
    wrong = {
        "start": law.replace(start=("spread", 1.05 * law["start"])),
        "end": law.replace(end=("spread", 1.3 * law["end"])),
        "ratio": law.replace(ratio=("spread time", law["ratio"][:, ::-1])),
        "crossing": law.replace(crossing=("spread", 1.1 * law["crossing"])),
        "place": law.replace(place=("moment", law["place"][::-1])),
        "weights": law.replace(weights=("spread time", 1.2 * law["weights"])),
    }
    for id, theory in wrong.items():
        verdicts = {check.id: check.verdict.value for check in claim.checks(theory, observed)}
        assert verdicts[id] == "fails"


def test_fields():
    claim = TwoClusterHessian(**{**TwoClusterHessian.tiny, **TwoClusterHessian.out_of_scope})
    assert not all(hypothesis.holds for hypothesis in claim.hypotheses(None))
    with pytest.raises(UserError, match="power of two"):
        TwoClusterHessian(examples=1000)
