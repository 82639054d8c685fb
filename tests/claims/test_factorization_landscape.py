"""What factorization-landscape rests on: its search, its times, and the points of its diagram."""

import jax
import numpy as np
import pytest
from scipy.integrate import solve_ivp

from steepest.catalogue import load
from steepest.claims.descent.factorization_landscape.experiment import (
    DIMENSION,
    critical_points,
    escape,
)


def test_the_search_finds_what_one_column_has():
    """For M = diag(3, 1), r = 1: the origin and the two roots, with values 10/4, 1/4 and 9/4."""
    starts = np.random.default_rng(0).normal(size=(60, 2))
    value, slope, lowest = critical_points(np.diag([3.0, 1.0]), 1, starts, 80)
    assert slope.max() < 1e-8
    levels = np.array([0.25, 2.25, 2.5])
    nearest = np.abs(value[:, None] - levels)
    assert nearest.min(1).max() < 1e-10
    ends = nearest.argmin(1)
    assert set(ends) == {0, 1, 2}
    # the best turns to the other root at the cost 3 − 1; that root falls to it; the origin falls to both
    assert np.allclose(lowest, np.array([2.0, -2.0, -3.0])[ends])


@pytest.mark.parametrize(("gap", "radius"), [(0.3, 1e-3), (1.5, 1e-5)])
def test_the_time_to_leave_is_that_of_the_flow(gap, radius):
    """Against SciPy's integrator, and log(x₂/x₁)/gap."""
    direction = np.zeros(DIMENSION)
    direction[0], direction[3] = 0.6, 0.8
    with jax.enable_x64(True):
        time, ahead = map(float, escape(direction, gap, radius))
    levels = np.zeros(DIMENSION)
    levels[:2] = 1 + gap, 1
    start = radius * direction
    start[1] += 1
    equal = lambda _, x: x[1] - x[0]
    equal.terminal = True
    path = solve_ivp(
        lambda _, x: levels * x - (x @ x) * x,
        (0, 1e3),
        start,
        events=equal,
        rtol=1e-9,
        atol=1e-14,
    )
    assert path.t_events[0][0] == pytest.approx(ahead / gap, rel=1e-6)
    assert time == pytest.approx(ahead / gap, rel=0.004)


def test_a_search_that_ends_elsewhere_is_noticed():
    """The judge on made-up data: a minimum at a predicted value, and a saddle at another."""
    claim = load("factorization-landscape")(searches=5, starts=3, steps=10)
    keys = jax.random.split(jax.random.key(0))
    with jax.enable_x64(True):
        setting = claim.setting(keys[0])
        law = claim.predict(setting)
        observed = claim.observe(setting, keys[1])
    verdicts = lambda world: {c.id: c.verdict.value for c in claim.checks(law, world)}
    assert verdicts(observed)["found_curvature"] == "holds"
    value = observed["critical_value"].copy()
    value[0, 0] += 0.1
    elsewhere = verdicts(observed.replace(critical_value=("matrix search", value)))
    assert elsewhere["complete"] == elsewhere["found_curvature"] == "fails"
    lowest = np.maximum(observed["critical_lowest"], 0.0)  # as if none were a saddle
    flat = verdicts(observed.replace(critical_lowest=("matrix search", lowest)))
    assert flat["complete"] == "holds"
    assert flat["found_curvature"] == "fails"


def test_a_wrong_hessian_is_noticed_by_the_index_alone():
    claim = load("factorization-landscape")(searches=5, starts=3)
    keys = jax.random.split(jax.random.key(0))
    with jax.enable_x64(True):
        setting = claim.setting(keys[0])
        law = claim.predict(setting)
        observed = claim.observe(setting, keys[1])
    index = law["index"].copy()
    index[3] += 1
    wrong = law.replace(index=("point", index))
    failed = lambda theory: [
        c.id for c in claim.checks(theory, observed) if c.verdict.value == "fails"
    ]
    assert failed(law) == []
    assert failed(wrong) == ["index"]
