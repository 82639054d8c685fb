"""Averages over a graph: their normal law against simulation and by hand, readouts against fits, and the judge."""

import jax
import numpy as np
import pytest
from scipy.optimize import minimize
from scipy.special import ndtr
from sklearn.linear_model import LinearRegression

from steepest.claims.expressivity.depth_of_averaging.claim import DepthOfAveraging
from steepest.claims.expressivity.depth_of_averaging.experiment import (
    averaged,
    features,
    ring_of_arcs,
    two_blocks,
)
from steepest.claims.expressivity.depth_of_averaging.theory import (
    averages,
    chance_of,
    chance_of_each,
    chances,
    deviations,
    least_squares,
)
from steepest.core.errors import UserError
from steepest.graphs import lazy_walk

PATH = np.array([[0, 1, 0], [1, 0, 1], [0, 1, 0]])


def test_a_path_by_hand():
    """Ends average over two nodes, the middle over three: classes +, −, +."""
    classes = np.array([1.0, -1.0, 1.0])
    of = averages(PATH, classes, 0.5, 1)
    np.testing.assert_allclose(of.signal, [[0.5, 0.5, 0.5], [0.0, -0.5 / 3, 0.0]], atol=1e-15)
    np.testing.assert_allclose(deviations(of)[1], [2**-0.5, 3**-0.5, 2**-0.5])
    # the middle's own reading is one of three
    np.testing.assert_allclose(of.noise[1], [[1, 1 / 3], [1 / 3, 1 / 3]])
    wanted = [ndtr(0.5), (0.5 + 0.5 + ndtr(-0.5 / 3 * 3**0.5)) / 3]
    np.testing.assert_allclose(chances(of), wanted)


def test_averages_are_steps_of_the_lazy_walk():
    rng = np.random.default_rng(0)
    graph, _ = two_blocks(20, 4.0, 0.2, rng)
    x = rng.standard_normal((20, 3))
    after = averaged(graph, x, 3)
    walk = lazy_walk(graph)
    for k in range(4):
        np.testing.assert_allclose(after[k], np.linalg.matrix_power(walk, k) @ x, atol=1e-14)


def test_the_law_is_that_of_drawn_readings():
    rng = np.random.default_rng(1)
    graph, classes = two_blocks(24, 5.0, 0.2, rng)
    draws = 40_000
    after = averaged(graph, features(classes, 0.6, draws, "normal", rng), 3)
    of = averages(graph, classes, 0.6, 3)
    np.testing.assert_allclose((after * classes[:, None]).mean(2), of.signal, atol=0.03)
    centred = after - after.mean(2, keepdims=True)
    noise = np.einsum("jzd,kzd->zjk", centred, centred) / draws
    np.testing.assert_allclose(noise, of.noise, atol=0.05)
    shares = (after * classes[:, None] > 0).mean((1, 2))
    np.testing.assert_allclose(shares, chances(of), atol=0.005)


def test_least_squares_is_a_fit_of_drawn_readings():
    rng = np.random.default_rng(2)
    graph, classes = two_blocks(30, 4.0, 0.2, rng)
    draws = 20_000
    after = averaged(graph, features(classes, 0.5, draws, "normal", rng), 3)
    columns = after.reshape(4, -1).T
    fit = LinearRegression(fit_intercept=False).fit(columns, np.repeat(classes, draws))
    of = averages(graph, classes, 0.5, 3)
    weights = least_squares(of)
    np.testing.assert_allclose(fit.coef_, weights, atol=0.03 * np.abs(weights).max())
    share = (np.tensordot(weights, after, 1) * classes[:, None] > 0).mean()
    assert share == pytest.approx(chance_of(of, weights), abs=0.005)


def test_chances_of_weights():
    rng = np.random.default_rng(3)
    graph, classes = two_blocks(20, 4.0, 0.2, rng)
    of = averages(graph, classes, 0.5, 3)
    for k, unit in enumerate(np.eye(4)):
        assert chance_of(of, unit) == pytest.approx(chances(of)[k])
    best = []
    for node in range(20):
        signal = of.signal[:, node]
        noise = of.noise[node]
        ratio = lambda w, v=signal, c=noise: -(w @ v) / np.sqrt(w @ c @ w + 1e-300)
        optimum = minimize(
            ratio, np.ones(4), method="Nelder-Mead", options={"maxiter": 10_000, "xatol": 1e-10}
        )
        best.append(ndtr(-optimum.fun))
    assert chance_of_each(of) >= np.mean(best) - 1e-9
    assert chance_of_each(of) == pytest.approx(np.mean(best), abs=2e-3)
    assert chance_of_each(of) >= chances(of).max()


def test_graphs():
    rng = np.random.default_rng(4)
    graph, classes = two_blocks(1000, 8.0, 0.2, rng)
    assert graph.sum(0).mean() == pytest.approx(8, abs=0.4)
    across = graph[np.not_equal.outer(classes, classes)].sum() / graph.sum()
    assert across == pytest.approx(0.2, abs=0.02)
    assert classes.sum() == 0
    ring, arcs = ring_of_arcs(12)
    assert (ring.sum(0) == 4).all()
    assert np.flatnonzero(ring[0]).tolist() == [1, 2, 10, 11]
    assert arcs.tolist() == [1.0] * 6 + [-1.0] * 6


def test_without_returns_and_ends_noise_falls_by_the_root_of_the_degree():
    """On a star whose leaves are its centre's neighbours the first round is the rival's."""
    degree = 6
    star = np.zeros((degree + 1, degree + 1))
    star[0, 1:] = star[1:, 0] = 1
    of = averages(star, np.ones(degree + 1), 1.0, 1)
    assert deviations(of)[1, 0] == pytest.approx((degree + 1) ** -0.5)


def test_wrong_theories_fail():
    claim = DepthOfAveraging(degrees=(4.0, 8.0), nodes=100, groups=12, draws=100)
    setting = claim.setting(jax.random.key(0))
    law = claim.predict(setting)
    observed = claim.observe(setting, jax.random.key(1))
    assert "fails" not in {check.verdict.value for check in claim.checks(law, observed)}
    wrong = {
        "accuracy": law.replace(accuracy=("graph k", law["accuracy"][:, ::-1])),
        "best": law.replace(best=("graph", 2 * law["best"])),
        "together": law.replace(together=("graph", law["accuracy"].max(1))),
        "gain": law.replace(gain=("graph", 2 * law["gain"])),
    }
    for id, theory in wrong.items():
        verdicts = {check.id: check.verdict.value for check in claim.checks(theory, observed)}
        assert verdicts[id] == "fails"


def test_fields():
    claim = DepthOfAveraging(**{**DepthOfAveraging.tiny, **DepthOfAveraging.out_of_scope})
    setting = claim.setting(jax.random.key(0))
    assert not all(hypothesis.holds for hypothesis in claim.hypotheses(setting))
    with pytest.raises(UserError, match="even"):
        DepthOfAveraging(nodes=301)
    with pytest.raises(UserError, match="below half"):
        DepthOfAveraging(nodes=20)
