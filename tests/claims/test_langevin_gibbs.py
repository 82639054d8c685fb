"""langevin-gibbs: exact laws of its walks, and distances, against closed forms and other ways to them."""

import jax
import numpy as np
import pytest
from scipy import special

from steepest.claims.noise._double_well_walk import line_law
from steepest.claims.noise.langevin_gibbs.claim import LangevinGibbs
from steepest.claims.noise.langevin_gibbs.point import LangevinGibbsPoint
from steepest.claims.noise.langevin_gibbs.transport import (
    AWAY,
    SLOPE,
    parabola_distances,
    wasserstein,
    well_rate,
)
from steepest.core.errors import UserError
from steepest.kit import compiled
from steepest.noise import stationary, transfer_matrix


def test_the_walk_keeps_what_a_step_keeps():
    # in the stationary law E X'² = E X², so E (x − εf')² + 2ε/β = E x²
    step, beta = 0.1, 4.0
    x = np.linspace(-3.2, 3.2, 101)
    law = stationary(transfer_matrix(x, -step * (x**3 - x), 2 * step / beta))
    moved = law @ (x - step * (x**3 - x)) ** 2 + 2 * step / beta
    assert moved == pytest.approx(law @ x**2, rel=1e-10)
    assert line_law(step, beta).moments[0] == pytest.approx(law @ x**2, rel=1e-10)


def test_the_slowest_mode_is_the_second_eigenvalue():
    step, beta = 0.1, 4.0
    x = np.linspace(-3.2, 3.2, 101)
    sizes = np.linalg.eigvals(transfer_matrix(x, -step * (x**3 - x), 2 * step / beta))
    second = np.sort(np.abs(sizes))[-2]
    assert line_law(step, beta).rate == pytest.approx(-np.log(second) / step, rel=1e-9)


def test_a_point_has_the_law_of_the_chain():
    point = LangevinGibbsPoint(0.05, 8.0)
    observed = compiled(lambda key: point.observe(None, key))(jax.random.key(0))
    assert float(observed["square"]) == pytest.approx(line_law(0.05, 8.0).moments[0], rel=1e-10)


def test_the_distance_of_normal_laws_is_the_known_one():
    x = np.linspace(-12, 12, 8001)
    first = np.exp(-((x - 1) ** 2) / (2 * 0.5))
    second = 3 * np.exp(-((x + 0.5) ** 2) / (2 * 2.0))
    expected = np.hypot(1.5, 2**0.5 - 0.5**0.5)
    assert wasserstein(first, second, x) == pytest.approx(expected, rel=1e-5)


def test_distances_on_a_parabola_are_those_of_the_walks_normal_law():
    step = 0.05
    beta = 4.0
    steps = 20
    gibbs_variance = 1 / (beta * SLOPE)
    for narrow in (False, True):
        mean = AWAY
        variance = gibbs_variance
        if narrow:
            # r − 1 − log r = βm a² for the ratio of the variances
            ratio = -special.lambertw(-np.exp(-1 - beta * SLOPE * AWAY**2)).real
            mean = 0.0
            variance = ratio * gibbs_variance
        for _ in range(steps):
            mean *= 1 - step * SLOPE
            variance = variance * (1 - step * SLOPE) ** 2 + 2 * step / beta
        expected = np.hypot(mean, variance**0.5 - gibbs_variance**0.5)
        distance = parabola_distances(step, beta, [steps * step], narrow=narrow)[0]
        assert distance == pytest.approx(expected, rel=3e-5)


def test_the_bound_on_the_parabola_is_the_distance_of_the_flow():
    claim = LangevinGibbs()
    times = np.array([0.0, 1.0, 3.0])
    assert claim.distance_bound(times) == pytest.approx(AWAY * np.exp(-SLOPE * times))


def test_the_late_rate_of_distances_is_that_of_the_walk():
    x = np.linspace(-3.2, 3.2, 101)
    sizes = np.linalg.eigvals(transfer_matrix(x, -0.1 * (x**3 - x), 0.05))
    second = np.sort(np.abs(sizes))[-2]
    for about in (0.15, 0.2):
        assert well_rate(0.1, 4.0, about) == pytest.approx(-np.log(second) / 0.1, rel=1e-4)


@pytest.mark.parametrize(
    ("fields", "words"),
    [
        ({"crowd": 100}, "crowd: expected a multiple of 32"),
        ({"steps": (0.05,)}, "steps: expected at least 3 different"),
    ],
)
def test_fields_that_cannot_be_run_are_refused(fields, words):
    with pytest.raises(UserError, match=words):
        LangevinGibbs(**fields)
