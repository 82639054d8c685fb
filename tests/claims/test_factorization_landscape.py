"""What factorization-landscape rests on: its search, its times, and the points of its diagram."""

import jax
import numpy as np
import pytest
from scipy.integrate import solve_ivp

from steepest.catalogue import load
from steepest.claims.descent.factorization_landscape.claim import _identity
from steepest.claims.descent.factorization_landscape.experiment import (
    DIMENSION,
    critical_points,
    escape,
)


def test_the_search_finds_what_one_column_has():
    """For M = diag(3, 1), r = 1: the origin and the two roots, with values 10/4, 1/4 and 9/4."""
    starts = np.random.default_rng(0).normal(size=(60, 2))
    value, slope = critical_points(np.diag([3.0, 1.0]), 1, starts, 80)
    assert slope.max() < 1e-8
    levels = np.array([0.25, 2.25, 2.5])
    nearest = np.abs(value[:, None] - levels)
    assert nearest.min(1).max() < 1e-10
    assert set(nearest.argmin(1)) == {0, 1, 2}


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


def test_terms_of_the_identity_by_differences():
    rng = np.random.default_rng(0)
    x, root = rng.normal(size=(2, 1, 4, 2))
    terms, _, _ = _identity(x, root)
    from steepest.landscapes import nearest_root

    delta = (x - nearest_root(x, root))[0]
    matrix = root[0] @ root[0].T
    value = lambda t: (((x[0] + t * delta) @ (x[0] + t * delta).T - matrix) ** 2).sum() / 4
    step = 1e-4
    assert (value(step) - value(-step)) / 2 / step == pytest.approx(terms[0, 2], rel=1e-6)
    second = (value(step) + value(-step) - 2 * value(0)) / step**2
    assert second == pytest.approx(terms[0, 3], rel=1e-5)


def test_a_wrong_hessian_is_noticed_by_the_index_alone():
    """The judge on made-up data: one direction more at one saddle."""
    claim = load("factorization-landscape")(pairs=10, searches=5, starts=3, steps=10)
    predicted = claim.predict(claim.setting(jax.random.key(0)))
    index = predicted["index"].copy()
    index[3] += 1
    wrong = predicted.replace(index=("point", index))
    owner, _ = claim.points()
    values = [predicted["value"][owner == i].min() for i in (0, 1)]
    observed = predicted.replace(
        critical_value=("matrix search", np.array(values)[:, None]),
        critical_gradient=("matrix search", np.zeros((2, 1))),
        end=("matrix start", np.array(values)[:, None]),
        terms=("pair term", [[1.0, 1.0, 1.0, 3.0]]),
        ratio=("pair", [1.5]),
        orthogonal_ratio=("pair", [2.0]),
        time=(
            "gap radius direction",
            predicted["ahead"] / predicted["rate"][:, None, None],
        ),
    )
    verdicts = lambda theory: {c.id: c.verdict.value for c in claim.judge(theory, observed)}
    assert set(verdicts(predicted).values()) == {"holds"}
    assert [name for name, word in verdicts(wrong).items() if word == "fails"] == ["index"]
