"""Langevin walkers against closed forms of parabolas and exact chains."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from steepest.core.errors import UserError
from steepest.kit import compiled
from steepest.noise import exit_moments, langevin, langevin_exits, transfer_matrix

KEY = jax.random.key(0)


def parabola(x):
    return 3 * (x**2).sum() / 2


def test_the_variance_of_a_parabola_at_every_reading():
    # Var_t = v + (1 − ελ)^{2t}(0 − v), v = 1/(βλ(1 − ελ/2))
    step, beta, walkers = 0.2, 2.0, 20000
    path = langevin(
        parabola,
        np.zeros((walkers, 2)),
        step,
        beta,
        6,
        KEY,
        record=2,
        observe={"square": lambda x: (x**2).mean()},
    )
    last = 1 / (beta * 3 * (1 - 0.3))
    exact = last * (1 - 0.4 ** (2 * np.arange(0, 7, 2)))
    assert path.steps.tolist() == [0, 2, 4, 6]
    # z ≤ 4 for 40000 squares
    assert np.allclose(path.observed["square"], exact, rtol=4 * np.sqrt(2 / 40000), atol=1e-12)
    assert path.x.shape == (walkers, 2)


def test_without_noise_it_is_descent():
    path = langevin(parabola, np.ones((1, 2)), 0.1, 1e30, 5, KEY)
    assert np.allclose(path.x, 0.7**5, rtol=1e-12)


def test_it_maps_over_steps_and_temperatures_and_agrees_with_single_runs():
    def end(step, beta):
        return langevin(parabola, jnp.ones((3, 1)), step, beta, 4, KEY).x

    both = compiled(jax.vmap(end))(jnp.array([0.1, 0.2]), jnp.array([1.0, 5.0]))
    assert np.allclose(both[1], end(0.2, 5.0), rtol=1e-12)


def test_exits_are_first_steps_outside_one_by_one():
    # the same walk, recorded at every step
    start = np.zeros(1000)
    inside = lambda x: jnp.abs(x) < 0.6
    cap = 12
    walk = lambda key: langevin_exits(lambda x: x**2 / 2, start, 0.1, 2.0, inside, cap, key)
    exits = compiled(walk)(KEY)
    path = langevin(
        lambda x: x**2 / 2, start, 0.1, 2.0, cap, KEY, record=1, observe={"x": lambda x: x}
    )
    outside = np.abs(np.asarray(path.observed["x"])) >= 0.6
    first = np.where(outside.any(0), outside.argmax(0), cap)
    # until the walkers are moved together they are those of the plain walk; those that left before agree
    early = first < np.sort(first)[750]
    assert (np.asarray(exits.steps)[early] == first[early]).all()
    assert np.asarray(exits.left).mean() == pytest.approx(outside.any(0).mean(), abs=0.06)
    # all agree where they are not; the last step counts
    alone = lambda key: langevin_exits(
        lambda x: x**2 / 2, start, 0.1, 2.0, inside, 5, key, shrinks=0
    )
    exits = compiled(alone)(KEY)
    outside = outside[:6]
    assert (outside[5] & ~outside[:5].any(0)).any()
    assert (np.asarray(exits.left) == outside.any(0)).all()
    assert (np.asarray(exits.steps) == np.where(outside.any(0), outside.argmax(0), 5)).all()


def test_mean_and_variation_of_exits_are_those_of_the_killed_chain():
    step, beta = 0.1, 2.0
    nodes, weights = np.polynomial.legendre.leggauss(60)
    grid = np.append(nodes, 0.0)
    matrix = transfer_matrix(
        grid, -step * grid, 2 * step / beta, np.append(weights, 0), killed=True
    )
    moments = exit_moments(matrix)
    walkers = 2000
    inside = lambda x: jnp.abs(x) < 1
    walk = lambda key: langevin_exits(
        lambda x: x**2 / 2, np.zeros(walkers), step, beta, inside, 2000, key
    )
    exits = compiled(walk)(KEY)
    times = np.asarray(exits.steps)
    assert exits.left.all()
    error = moments.mean[-1] * moments.variation[-1] / np.sqrt(walkers)
    assert abs(times.mean() - moments.mean[-1]) < 4 * error
    assert times.std() / times.mean() == pytest.approx(moments.variation[-1], abs=0.08)


def test_walkers_that_never_leave_have_the_cap():
    exits = langevin_exits(lambda x: x**2, np.zeros(5), 0.1, 100.0, lambda x: x < 50, 7, KEY)
    assert exits.steps.tolist() == [7] * 5
    assert not exits.left.any()


def test_walkers_that_overflow_are_lost_and_have_not_left():
    # −x⁴ throws off whoever starts at −2, where the region has no end; from 0.5 they leave to the right
    start = np.array([-2.0] * 3 + [0.5] * 2)
    inside = lambda x: x < 1
    exits = langevin_exits(lambda x: -(x**4), start, 0.5, 1e9, inside, 40, KEY)
    assert exits.lost.tolist() == [True] * 3 + [False] * 2
    assert exits.left.tolist() == [False] * 3 + [True] * 2
    assert exits.steps.tolist()[:3] == [40] * 3


@pytest.mark.parametrize(
    ("step", "beta", "steps"),
    [
        (0.0, 1.0, 3),
        (0.1, -1.0, 3),
        (0.1, np.nan, 3),
        (0.1, 1.0, 0),
        (0.1, jnp.array(-1.0), 3),
        (0.1, 1.0, 2.5),
    ],
)
def test_numbers_that_are_not_positive_are_refused(step, beta, steps):
    with pytest.raises(UserError, match="above zero|(step|beta|steps) must be"):
        langevin(parabola, np.ones((2, 2)), step, beta, steps, KEY)


def test_a_potential_that_is_no_scalar_is_refused():
    with pytest.raises(UserError, match="a scalar value"):
        langevin(lambda x: x**2, np.ones((2, 2)), 0.1, 1.0, 3, KEY)


def test_exits_refuse_in_their_own_name():
    inside = lambda x: abs(x) < 1
    for beta, cap, words in ((1.0, 0, "a cap above zero"), (0.0, 3, "β above zero")):
        with pytest.raises(UserError, match=f"langevin_exits: expected .*{words}"):
            langevin_exits(lambda x: x**2, np.zeros(3), 0.1, beta, inside, cap, KEY)


def test_who_starts_outside_leaves_with_the_first_step_unless_it_leads_inside():
    inside = lambda x: jnp.abs(x) < 1
    exits = langevin_exits(lambda x: x**2 / 2, np.array([5.0, 1.2]), 0.5, 1e9, inside, 9, KEY)
    assert exits.left.tolist() == [True, False]
    assert int(exits.steps[0]) == 1
