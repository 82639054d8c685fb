"""When neurons have selected: exact arcs against an integrator with gates, the bound and the pairs that reach it."""

import numpy as np
import pytest
from scipy.integrate import solve_ivp

from steepest.catalogue import load
from steepest.claims.features.alignment_time.claim import AlignmentTime, out_of_plane
from steepest.claims.features.alignment_time.sets import Sets, separability
from steepest.claims.features.alignment_time.theory import selection_time, worst
from steepest.core.errors import UserError
from steepest.engine.run import execute, ready


def integrated_time(x, y, u, sign):
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
        arcs = selection_time(Sets(x[None], y[None], u[None, None], np.array([[sign]])))[0, 0]
        integrated = integrated_time(x, y, u, sign)
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
    assert selection_time(sets)[0, 0] == pytest.approx(np.arccosh(1 / mu) - np.arctanh(p))


def test_a_search_keeps_sizes_and_comes_near_the_bound():
    claim = AlignmentTime(seeds=3, searched=(3, 5), climb=400)
    sets = claim.search(np.random.default_rng(4))
    lengths = np.linalg.norm(sets.x, axis=-1)
    np.testing.assert_allclose(lengths.sum(1), np.repeat([3, 5], 3))
    shares = claim.slowness(sets)
    assert shares.min() > 0.2
    assert shares.max() <= 1 + 1e-9
    # the slowest by an integrator, without the rows that are no examples
    slowest = int(shares.argmax())
    real = lengths[slowest] > 0
    x = sets.x[slowest][real]
    y = sets.y[slowest][real]
    time = integrated_time(x, y, sets.u[slowest, 0], 1.0)
    assert time == pytest.approx(shares[slowest] * worst(sets)[slowest, 0], abs=1e-5)


def test_a_start_out_of_the_plane_is_faster():
    p = 0.2
    mu = 0.1
    x = np.array([[1.0, 0.0], [mu, np.sqrt(1 - mu**2)]])
    u = np.array([p, -np.sqrt(1 - p**2)])
    aside = out_of_plane(Sets(x[None], np.ones((1, 2)), u[None, None], np.ones((1, 1))))
    assert np.linalg.norm(aside.u) == pytest.approx(1)
    time = selection_time(aside)[0, 0]
    assert time == pytest.approx(
        integrated_time(aside.x[0], np.ones(2), aside.u[0, 0], 1.0), abs=1e-6
    )
    assert time < 0.95 * worst(aside)[0, 0]


def test_no_drawn_neuron_takes_longer_than_the_bound():
    rng = np.random.default_rng(1)
    shares = []
    for _ in range(200):
        x, y, u = separable(rng, 4, 3)
        sets = Sets(x[None], y[None], u[None, None], np.ones((1, 1)))
        sees_own = (y * (x @ u) > 0)[y > 0].any()
        if sees_own and separability(sets)[0] > 0:  # otherwise there is no bound
            shares.append(float(selection_time(sets)[0, 0] / worst(sets)[0, 0]))
    assert len(shares) > 50
    assert max(shares) <= 1 + 1e-9


@pytest.mark.parametrize(
    ("fields", "sentence"),
    [
        ({"searched": [1, 8]}, "at least 2"),
        ({"links": [1, 8]}, "at least 2"),
    ],
)
def test_refused(fields, sentence):
    with pytest.raises(UserError, match=sentence):
        ready("alignment-time", changes=fields)


def test_flipped_labels_are_out_of_range():
    asked = ready("alignment-time", "tiny", changes={**load("alignment-time").tiny, "flipped": 0.3})
    assert execute(asked).verdict == "out-of-range"
