"""The needle holds the minimum and nearly all of the mass."""

import jax.numpy as jnp
import numpy as np
import pytest
from scipy.integrate import quad

from steepest.claims.noise._rippled_bowl import NEEDLE, THIN, Bumps, bumpy
from steepest.claims.noise.hidden_needle.claim import DEPTH


def test_the_needle_holds_the_minimum_and_the_mass():
    """At d = 1 by quadrature with T = ½, at every d ≤ 64 by Laplace's method on the needle's bottom."""
    T = 0.5
    F = lambda x: x**2 / 2 - DEPTH * np.exp(-((x - NEEDLE) ** 2) / THIN)
    weight = lambda x: np.exp(-F(x) / T)
    inside = quad(weight, NEEDLE - 0.05, NEEDLE + 0.05, points=[NEEDLE], limit=400)[0]
    assert inside > 100 * np.sqrt(2 * np.pi * T)
    for d in (1, 2, 16, 64):
        curvature = 1 + 2 * DEPTH * d / THIN
        assert (DEPTH - NEEDLE**2 / 2) / T - np.log(curvature) / 2 > 4
        bumps = Bumps(d, 0.0, 1.0, 0.0, 0.0, DEPTH * d)
        assert float(bumpy(bumps, jnp.full(d, NEEDLE))) == pytest.approx(-7 * d)
