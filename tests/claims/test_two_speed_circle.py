"""Rings and tori with two speeds: exact laws in two ways, and walkers against them."""

import jax
import numpy as np
import pytest
from scipy import sparse

from steepest.claims.noise.two_speed_circle.claim import TwoSpeedCircle, on_the_plane
from steepest.claims.noise.two_speed_circle.experiment import (
    conducts,
    jumps,
    lattice_share,
    on_the_torus,
    quadrant,
    slow_share,
    waits,
)
from steepest.core.errors import UserError
from steepest.noise import stationary


@pytest.mark.parametrize("slow, fast", [(50, 50), (51, 51), (20, 60), (21, 60), (33, 44), (44, 33)])
def test_the_exact_share_is_that_of_the_stationary_law(slow, fast):
    matrix = jumps(slow, fast, 2)
    assert matrix.sum(1) == pytest.approx(np.ones(slow + fast))
    assert stationary(matrix)[:slow].sum() == pytest.approx(lattice_share(slow, fast), abs=1e-13)


def test_the_exact_law_site_by_site():
    # the masses of the proof, with β = 1, n = m = 8
    slow = np.array([10, 18, 18, 18, 18, 18, 18, 10])
    fast = np.array([8, 2, 6, 4, 4, 6, 2, 8])
    law = np.concatenate([slow, fast]) / (slow.sum() + fast.sum())
    assert np.allclose(law @ jumps(8, 8, 2).toarray(), law, atol=1e-15)
    assert lattice_share(8, 8) == pytest.approx(law[:8].sum(), abs=1e-15)


def test_the_limits_of_longer_steps():
    for step in (3, 4):
        shares = [stationary(jumps(n, 2 * n, step))[:n].sum() for n in (120, 240)]
        assert 2 * shares[1] - shares[0] == pytest.approx(slow_share(1 / 3, step), abs=1e-4)


def test_waiting_is_detailed_balance_and_conducting_is_uniform():
    law = stationary(waits(20, 12, 4.0))
    assert law * np.where(np.arange(32) < 20, 0.25, 1.0) == pytest.approx(np.full(32, law[-1]))
    assert stationary(conducts(20, 12, 4.0)) == pytest.approx(np.full(32, 1 / 32))


def torus(kind, sites):
    """The chain on the torus, one coordinate after the other."""
    first, second = np.divmod(np.arange(sites**2), sites)
    half = sites // 2
    drivers = {"own": (first, second), "cross": (second, first)}
    if kind == "isotropic":
        return quadrant(sites)
    chain = sparse.eye_array(sites**2)
    for axis, driver in enumerate(drivers[kind]):
        length = 1 + (driver >= half)
        moves = []
        for sign in (1, -1):
            if axis == 0:
                ends = (first + sign * length) % sites * sites + second
            else:
                ends = first * sites + (second + sign * length) % sites
            moves.append(ends)
        rows = np.tile(np.arange(sites**2), 2)
        chain = chain @ sparse.csr_array((np.full(len(rows), 0.5), (rows, np.concatenate(moves))))
    return chain


@pytest.mark.parametrize("kind", ["own", "cross", "isotropic"])
def test_walkers_on_the_torus_have_its_exact_law(kind):
    sites = 12
    power = torus(kind, sites).toarray()
    for _ in range(12):  # averages out the period of even and odd steps
        power = (power @ power + power @ power @ power) / 2
    law = power.mean(0).reshape(sites, sites)
    half = sites // 2
    corners = [law[:half, :half], law[:half, half:], law[half:, :half], law[half:, half:]]
    exact = np.array([corner.sum() for corner in corners])
    share = lattice_share(half, half)
    product = {
        "own": np.outer([share, 1 - share], [share, 1 - share]).ravel(),
        "cross": np.full(4, 0.25),
    }
    if kind in product:
        assert exact == pytest.approx(product[kind], abs=1e-10)
    else:
        zones = [exact[0], exact[1] + exact[2], exact[3]]
        assert on_the_plane(sites) == pytest.approx(zones, abs=1e-10)
    shares = on_the_torus(np.random.default_rng(0), (8, 100), sites, 1500, 0.0)[kind]
    error = shares.std(0, ddof=1) / np.sqrt(8)
    assert np.abs(shares.mean(0) - exact).max() < 4 * error.max()
    assert error.max() < 0.005


def test_a_bias_is_out_of_range_and_sites_are_checked():
    claim = TwoSpeedCircle(bias=0.05)
    assert not all(hypothesis.holds for hypothesis in claim.hypotheses(None))
    with pytest.raises(UserError, match="multiples of 4"):
        TwoSpeedCircle(sites=(102,))
    for sites in ((100,), (200, 100), (100, 100)):
        with pytest.raises(UserError, match="increasing order"):
            TwoSpeedCircle(sites=sites)


def test_moves_on_the_plane_site_by_site():
    """Every row by hand: each coordinate a quarter each way, by two only where both are fast."""
    sites = 8
    chain = quadrant(sites).toarray().reshape((sites,) * 4)
    for a, b in np.ndindex(sites, sites):
        step = 2 if min(a, b) >= sites // 2 else 1
        row = np.zeros((sites, sites))
        for sign in (1, -1):
            row[(a + sign * step) % sites, b] += 0.25
            row[a, (b + sign * step) % sites] += 0.25
        assert np.array_equal(chain[a, b], row)


def test_the_point_is_the_sparse_law():
    point = TwoSpeedCircle.point.of(TwoSpeedCircle(steps=(3,), slow=0.25, fine=80))
    share = jax.jit(lambda: point.observe(None, jax.random.key(0))["share"])()
    assert float(share) == pytest.approx(stationary(jumps(20, 60, 3))[:20].sum(), abs=1e-12)
