"""BAOAB walkers and the rate of their mean, against matrices, Lyapunov's equation and closed forms."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy.linalg import solve_discrete_lyapunov

from steepest.core.errors import UserError
from steepest.noise import baoab_rate, underdamped


def matrices(eigenvalue, step, friction):
    """A step as a matrix on (x, v) and the place where noise enters, from the five maps."""
    kick = np.array([[1.0, 0.0], [-0.5 * step * eigenvalue, 1.0]])
    drift = np.array([[1.0, 0.5 * step], [0.0, 1.0]])
    keeps = np.exp(-friction * step)
    after = kick @ drift
    return after @ np.diag([1.0, keeps]) @ drift @ kick, after @ np.array([0.0, 1.0])


def moved(x, v, steps=1, eigenvalue=2.0, step=0.7, friction=0.9, beta=jnp.inf, seed=0, **options):
    return underdamped(
        lambda x: 0.5 * eigenvalue * (x**2).sum(),
        x,
        v,
        step,
        friction,
        beta,
        steps,
        jax.random.key(seed),
        **options,
    )


def test_a_step_without_noise_is_its_matrix():
    walk = moved(jnp.array([1.0, -2.0]), jnp.array([0.5, 3.0]), steps=3)
    power = np.linalg.matrix_power(matrices(2.0, 0.7, 0.9)[0], 3)
    assert np.allclose(
        power @ [[1.0, -2.0], [0.5, 3.0]], [walk.places[-1], walk.velocities[-1]], atol=1e-13
    )


def test_without_friction_and_noise_it_is_the_leapfrog_and_turns_back():
    start = jnp.array([1.0, -0.3])
    rest = jnp.array([0.2, 0.4])
    there = moved(start, rest, steps=20, friction=0.0)
    back = moved(there.places[-1], -there.velocities[-1], steps=20, friction=0.0)
    assert np.allclose(back.places[-1], start, atol=1e-12)
    assert np.allclose(back.velocities[-1], -rest, atol=1e-12)


@pytest.mark.parametrize("eigenvalue, step", [(1.0, 1.0), (3.0, 1.0), (0.2, 0.3)])
def test_stationary_places_are_exact_and_velocities_are_not(eigenvalue, step):
    """By Lyapunov's equation, S = M S Mᵀ + (1 − c²) b bᵀ/β."""
    friction, beta = 0.8, 5.0
    matrix, into = matrices(eigenvalue, step, friction)
    noise = (1 - np.exp(-2 * friction * step)) / beta
    law = solve_discrete_lyapunov(matrix, noise * np.outer(into, into))
    assert law[0, 0] == pytest.approx(1 / (beta * eigenvalue), rel=1e-12)
    assert law[1, 1] == pytest.approx((1 - step**2 * eigenvalue / 4) / beta, rel=1e-12)
    assert law[0, 1] == pytest.approx(0, abs=1e-12)


def test_walkers_have_the_stationary_law():
    def one(key):
        return underdamped(
            lambda x: x**2,
            jnp.array(0.0),
            jnp.array(0.0),
            1.0,
            1.5,
            2.0,
            120,
            key,
            record=np.arange(20, 121),
        )

    walk = jax.jit(jax.vmap(one))(jax.random.split(jax.random.key(0), 1000))
    for values, exact in ((walk.places, 1 / 4), (walk.velocities, (1 - 2 / 4) / 2)):
        squares = np.asarray(values**2).mean(1)
        assert abs(squares.mean() - exact) < 4 * squares.std() / 1000**0.5
        assert squares.std() / 1000**0.5 < 0.02 * exact


@pytest.mark.parametrize(
    "step, friction", [(0.3, 0.1), (1.0, 0.4), (1.9, 2.0), (2.1, 0.5), (0.5, 9.0)]
)
def test_the_rate_is_the_radius_of_the_matrix(step, friction):
    spectrum = np.array([0.05, 0.4, 1.0])
    radii = [np.abs(np.linalg.eigvals(matrices(e, step, friction)[0])).max() for e in spectrum]
    assert baoab_rate(spectrum, step, friction) == pytest.approx(max(radii), rel=1e-7)
    assert (baoab_rate(spectrum, step, friction) < 1) == (step < 2)


@pytest.mark.parametrize("kappa", [4.0, 100.0, 1e4])
def test_the_best_rate_is_that_of_the_heavy_ball(kappa):
    """At c = ρ², (1 + c)h²/2 = Polyak's step; by a scan nothing near is better."""
    best = (kappa**0.5 - 1) / (kappa**0.5 + 1)
    step = 2 / (1 + 1 / kappa) ** 0.5
    friction = -2 * np.log(best) / step
    spectrum = [1 / kappa, 1.0]
    assert (1 + best**2) * step**2 / 2 == pytest.approx(4 / (1 + kappa**-0.5) ** 2)
    # at a double root the radius has the square root of rounding
    assert baoab_rate(spectrum, step, friction) == pytest.approx(best, abs=1e-7)
    for stretch in (0.97, 0.99, 1.01, 1.03):
        assert baoab_rate(spectrum, step * stretch, friction) > best
        assert baoab_rate(spectrum, step, friction * stretch) > best


def test_observers_and_records():
    start = jnp.ones(3)
    full = moved(start, 0 * start, steps=9, beta=1.0)
    some = moved(start, 0 * start, steps=9, beta=1.0, record=4, observe={"sum": jnp.sum})
    assert some.steps.tolist() == [0, 4, 8, 9]
    assert np.allclose(some.places, full.places[np.array([0, 4, 8, 9])], atol=0)
    assert np.allclose(some.observed["sum"], some.places.sum(1))
    assert np.allclose(full.velocities[0], 0)


def test_bad_input_is_refused():
    one = jnp.ones(2)
    with pytest.raises(UserError, match="a velocity for each place"):
        moved(one, jnp.ones(3))
    with pytest.raises(UserError, match="a step above zero"):
        moved(one, one, step=0.0)
    with pytest.raises(UserError, match="a friction not negative"):
        moved(one, one, friction=-1.0)
    with pytest.raises(UserError, match="eigenvalues above zero"):
        baoab_rate([0.0, 1.0], 1.0, 1.0)
    for step, friction in ((0.0, 1.0), (-1.0, 1.0), (np.nan, 1.0)):
        with pytest.raises(UserError, match="a step above zero|step must be"):
            baoab_rate([1.0], step, friction)
    for friction in (-1.0, np.nan):
        with pytest.raises(UserError, match="a friction not negative|friction must be"):
            baoab_rate([1.0], 1.0, friction)


def test_bad_starts_and_functions_are_refused():
    walk = lambda f, x, v: underdamped(f, x, v, 0.5, 1.0, 1.0, 5, jax.random.key(0))
    with pytest.raises(UserError, match="x of floats, got int"):
        walk(lambda x: (x**2).sum(), jnp.array([1, 2]), jnp.zeros(2))
    with pytest.raises(UserError, match="v of floats, got int"):
        walk(lambda x: (x**2).sum(), jnp.ones(2), jnp.array([0, 0]))
    with pytest.raises(UserError, match="scalar value, got one of shape \\(2,\\)"):
        walk(lambda x: x**2, jnp.ones(2), jnp.zeros(2))
