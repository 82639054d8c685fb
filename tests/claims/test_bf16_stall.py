"""Weights in bfloat16: roundings against torch's, laws against chains that are followed exactly."""

from dataclasses import replace

import jax
import jax.numpy as jnp
import ml_dtypes
import numpy as np
import pytest

from steepest.claims.training.bf16_stall.claim import Bf16Stall, Setting
from steepest.claims.training.bf16_stall.experiment import Lane, at_random, descend, nearest

KEY = jax.random.key(0)
VALUES = jnp.asarray(np.random.default_rng(0).uniform(-3, 3, 500), jnp.float32)


def test_nearest_is_numpys_bfloat16():
    wanted = np.asarray(VALUES).astype(ml_dtypes.bfloat16).astype(np.float32)
    np.testing.assert_array_equal(nearest(VALUES, KEY), wanted)


def test_at_random_takes_a_neighbour_and_keeps_the_mean():
    draws = jax.vmap(lambda key: at_random(VALUES, key))(jax.random.split(KEY, 4000))
    spacing = 2.0 ** (np.floor(np.log2(abs(np.asarray(VALUES)))) - 7)
    assert (abs(draws - VALUES) < spacing).all()
    np.testing.assert_array_equal(draws, jax.vmap(lambda row: nearest(row, KEY))(draws))
    assert (abs(draws.mean(0) - VALUES) < 4 * spacing / 2 / 4000**0.5).all()


@pytest.mark.parametrize("eta", [0.05, 0.2, 0.7])
def test_the_law_of_rounding_to_nearest_by_whole_numbers(eta):
    """In units of the spacing a weight is a whole number, and so is its step."""
    minima = np.linspace(40, 41, 2001)[:-1]
    w = np.zeros_like(minima)
    for _ in range(3000):
        w = np.rint(w - eta * (w - minima))
    claim = Bf16Stall(etas=(eta, eta + 0.01))
    law = claim.predict(Setting(np.ones(3)))
    away = minima - w
    assert abs(away).max() == pytest.approx(law["furthest"][0, 0], rel=0.01)
    assert 0.5 * (away**2).mean() == pytest.approx(law["left"][0, 0], rel=0.01)


def test_the_law_of_rounding_at_random_by_its_stationary_chances():
    """A chain on five neighbours of the minimum, by the eigenvector of its matrix."""
    eta = 0.3
    risks = []
    for minimum in (np.arange(20) + 0.5) / 20:
        places = np.arange(-2, 4)
        moved = places - eta * (places - minimum)
        below = np.floor(moved)
        chain = np.zeros((6, 6))
        for row, (low, share) in enumerate(zip(below, moved - below, strict=True)):
            chain[row, int(low) + 2] += 1 - share
            chain[row, min(int(low) + 3, 5)] += share
        values, vectors = np.linalg.eig(chain.T)
        chances = np.real(vectors[:, np.argmax(np.real(values))])
        risks.append(0.5 * (chances / chances.sum()) @ (places - minimum) ** 2)
    law = Bf16Stall(etas=(eta, 0.4)).predict(Setting(np.ones(3)))
    assert np.mean(risks) == pytest.approx(law["at_random"][0, 0], rel=2e-3)


def test_descent_in_float32_reaches_the_minimum():
    lane = Lane(*(jnp.float32(value) for value in (0.5, 4.0, 0.0)))
    ends = descend(lane, KEY, "float32", 1.0, 20, 60, noisy=True)
    assert float(ends.furthest) < 1e-5


def test_the_point_has_the_claims_laws_over_hu2():
    claim = Bf16Stall(etas=(0.1,), exponents=(2.0,), curvature=1.3, noise=0.8)
    point = Bf16Stall.point.of(claim)
    law = claim.predict(claim.setting(KEY))
    unit = 1.3 * point.spacing**2
    for name in ("dithered", "left"):
        assert unit * point.predict(None)[name] == pytest.approx(law[name][0, 0])


def test_the_predicted_line_of_the_diagram_is_where_both_laws_agree():
    point = Bf16Stall.point.of(Bf16Stall())
    line = point.boundaries("etas", "noise")[0]
    place = 100
    here = replace(point, etas=float(line.x[place]), noise=float(line.y[place])).predict(None)
    assert here["dithered"] == pytest.approx(here["left"])
