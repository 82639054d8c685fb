"""When neurons have selected: exact arcs against an integrator with gates, the bound and the pairs that reach it."""

import numpy as np
import pytest
from scipy.integrate import solve_ivp

from steepest.catalogue import load
from steepest.claims.features.alignment_time.claim import AlignmentTime, Sets, _exact, _separability
from steepest.core.errors import UserError
from steepest.engine.run import execute, ready


def selection_time(x, y, u, sign):
    """Integrate u' = (I − u uᵀ) G between gates until the neuron sees its class and no other."""
    signs = y * sign

    def velocity(_, u):
        pull = ((x @ u > 0) * signs) @ x
        return pull - (u @ pull) * u

    time = 0.0
    for _ in range(4 * len(x)):
        waiting = np.flatnonzero(signs * (x @ u) < 0)
        if not len(waiting):
            return time
        events = [lambda _, u, i=i: signs[i] * (x[i] @ u) for i in waiting]
        for event in events:
            event.terminal = True
            event.direction = 1
        solved = solve_ivp(velocity, (0, 60), u, events=events, rtol=1e-10, atol=1e-12)
        if solved.status != 1:
            return np.inf
        time += solved.t[-1]
        u = solved.y[:, -1] / np.linalg.norm(solved.y[:, -1])
        met = next(i for i, at in zip(waiting, solved.t_events, strict=True) if len(at))
        # just beyond the gate, so that the same event does not stop the next piece at once
        u = u + 1e-13 * signs[met] * x[met]
    return np.inf


def separable(rng, n, d):
    """Draw examples of both classes whose y_i x_i lie within 30° of one direction, and a start that sees some."""
    centre = np.eye(d)[0]
    y = np.where(np.arange(n) % 2, -1.0, 1.0)
    s = centre + 0.25 * rng.standard_normal((n, d))
    x = y[:, None] * s / np.linalg.norm(s, axis=1, keepdims=True)
    u = rng.standard_normal(d)
    return x, y, u / np.linalg.norm(u)


def test_exact_arcs_are_those_of_an_integrator():
    rng = np.random.default_rng(0)
    compared = 0
    for _ in range(12):
        x, y, u = separable(rng, 5, 3)
        sign = 1.0
        arcs = _exact(Sets(x[None], y[None], u[None, None], np.array([[sign]])))[0, 0]
        integrated = selection_time(x, y, u, sign)
        if np.isfinite(arcs):
            assert arcs == pytest.approx(integrated, abs=1e-6)
            compared += arcs > 0
        else:
            assert np.isinf(integrated)
    assert compared >= 4


@pytest.mark.parametrize("copies", [1, 7])
@pytest.mark.parametrize("mu", [0.3, 0.01])
def test_two_examples_take_the_whole_bound(copies, mu):
    p = 0.2
    x = np.array([[1.0, 0.0]] + copies * [[mu, np.sqrt(1 - mu**2)]])
    u = np.array([p, -np.sqrt(1 - p**2)])
    sets = Sets(x[None], np.ones((1, copies + 1)), u[None, None], np.ones((1, 1)))
    assert _exact(sets)[0, 0] == pytest.approx(np.arccosh(1 / mu) - np.arctanh(p))


def test_no_drawn_neuron_takes_longer_than_the_bound():
    claim = AlignmentTime()
    rng = np.random.default_rng(1)
    shares = []
    for _ in range(200):
        x, y, u = separable(rng, 4, 3)
        sets = Sets(x[None], y[None], u[None, None], np.ones((1, 1)))
        sees_own = (y * (x @ u) > 0)[y > 0].any()
        if sees_own and _separability(sets)[0] > 0:  # otherwise there is no bound
            shares.append(float(_exact(sets)[0, 0] / claim.worst(sets)[0, 0]))
    assert len(shares) > 50
    assert max(shares) <= 1 + 1e-9


@pytest.mark.parametrize(
    ("fields", "sentence"),
    [
        ({"copies": [1, 4]}, "three values of --copies"),
        ({"mus": 2}, "at least three --mus"),
        ({"links": [1, 8]}, "at least 2"),
    ],
)
def test_refused(fields, sentence):
    with pytest.raises(UserError, match=sentence):
        ready("alignment-time", changes=fields)


def test_flipped_labels_are_out_of_range():
    asked = ready("alignment-time", "tiny", changes={**load("alignment-time").tiny, "flipped": 0.3})
    assert execute(asked).verdict == "out-of-range"
