"""Cooled walks between two wells: exact laws step by step, rates from mean exit times, and a product in closed form."""

import jax
import numpy as np
import pytest

from steepest.claims.noise.annealing_schedule import theory
from steepest.claims.noise.annealing_schedule.claim import AnnealingSchedule
from steepest.claims.noise.annealing_schedule.experiment import (
    in_the_wrong_well,
    landscape,
    law,
    metropolis,
    walk,
)
from steepest.core.errors import UserError

CS = np.array([0.5, 0.8, 1.0, 1.5])


@pytest.fixture(scope="module")
def rings():
    rng = np.random.default_rng(0)
    return np.stack([landscape(rng, 3, 0.5, 1.5) for _ in range(3)])


def test_wells_of_a_landscape(rings):
    for energies in rings:
        for turned in (energies, np.roll(energies, 5)):
            pair = theory.wells(turned)
            assert pair[3:] == pytest.approx((1.0, 0.5, 0.5))
            assert turned[pair.wrong].min() == 0
            assert turned[pair.right].min() == -0.5
            assert pair.wrong.sum() + pair.right.sum() == len(energies) - 2
        assert (theory.wells(energies).wrong == in_the_wrong_well(3)).all()
    with pytest.raises(UserError, match="two wells"):
        theory.wells(np.array([0.0, 1.0, 2.0, 1.0]))


def test_the_walk_is_in_detailed_balance_with_gibbs(rings):
    T = np.array([0.2, 0.5, 1.0])
    matrix = metropolis(rings, T)
    gibbs = np.exp(-rings / T[:, None])
    flow = gibbs[:, :, None] * matrix
    assert flow == pytest.approx(flow.swapaxes(1, 2))
    assert matrix.sum(-1) == pytest.approx(np.ones(rings.shape))
    assert matrix.min() >= 0
    # two neighbours by hand
    rise = rings[0, 1] - rings[0, 0]
    assert matrix[0, 0, 1] == pytest.approx(0.5 * np.exp(-rise / 0.2))
    assert matrix[0, 1, 0] == pytest.approx(0.5)


def test_blocks_are_the_product_of_all_steps(rings):
    marks = np.array([130.0, 400.0, 2000.0])
    blocks = law(rings[:, None], lambda k: CS / np.log(k), 100, marks, 0.03)
    for i, energies in enumerate(rings):
        for j, c in enumerate(CS):
            chance = np.eye(12)[0]
            for step in range(100, 2000):
                chance = chance @ metropolis(energies, c / np.log(step))
                if step + 1 in marks:
                    place = list(marks).index(step + 1)
                    assert blocks[i, j, place] == pytest.approx(chance, rel=0.01)
                    inside = in_the_wrong_well(3)
                    share = blocks[i, j, place][inside].sum()
                    assert share == pytest.approx(chance[inside].sum(), rel=3e-3)


def test_powers_keep_chances_that_are_far_below_rounding():
    energies = np.array([0.0, 1.0, -0.5, 1.5])
    cold = 0.02  # chances of 1e-22 to leave, and 2⁶⁰ steps
    schedule = lambda k: np.array(cold)
    far = 2.0**60
    chance = law(energies, schedule, 1, np.array([1 + far]), 1e30)[0]
    rate = 0.25 * np.exp(-1 / cold)
    assert rate * far == pytest.approx(5.6e-5, rel=0.05)
    assert chance[2] == pytest.approx(rate * far, rel=1e-3)


@pytest.mark.parametrize("T", [0.08, 0.12])
def test_rates_are_inverse_mean_exit_times(rings, T):
    """Of the chain of two states at one temperature: the mean time to the other bottom, by a linear system."""
    for energies in rings:
        matrix = metropolis(energies, np.array(T))
        bottoms = (0, 6)
        for start, end in (bottoms, bottoms[::-1]):
            inner = np.delete(np.arange(12), end)
            times = np.linalg.solve(np.eye(11) - matrix[np.ix_(inner, inner)], np.ones(11))
            time = times[list(inner).index(start)]
            weight = np.exp(-(energies - energies[start]) / T)
            edges = np.exp((np.maximum(energies, np.roll(energies, -1)) - energies[start]) / T)
            flow = 1 / (2 * edges[:6].sum()) + 1 / (2 * edges[6:].sum())
            pair = theory.wells(energies)
            well = pair.wrong if start == 0 else pair.right
            assert 1 / time == pytest.approx(flow / weight[well].sum(), rel=0.02)


def test_below_the_depth_what_stays_is_a_product():
    """A well of one site that is hardly ever returned to: Π(1 − k^{−2}/4), the sine of π/2 over k from one on."""
    energies = np.array([0.0, 1.0, -3.0, 9.0])
    marks = np.array([1e3, 1e6])
    k = np.arange(20, 1_000_000, dtype=float)
    product = np.prod(1 - k**-2.0 / 4)
    whole = np.sin(np.pi / 2) / (np.pi / 2) / np.prod(1 - np.arange(1.0, 20) ** -2 / 4)
    assert product == pytest.approx(whole, rel=1e-6)
    chain = theory.two_states(energies, np.array([0.5]), 20, marks)
    assert chain[0, -1] == pytest.approx(product, rel=1e-3)
    exact = law(energies, lambda step: np.array(0.5 / np.log(step)), 20, marks, 0.03)
    assert exact[-1, 0] == pytest.approx(product, rel=2e-3)


def test_at_the_depth_and_beyond_the_chain_has_the_exponents(rings):
    marks = np.array([1e13, 1e14])
    cs = np.array([0.5, 1.0, 1.2, 2.0])
    chances = theory.two_states(np.array([0.0, 1.0, -0.5, 1.5]), cs, 100, marks)
    exponents = np.log10(chances[:, 1] / chances[:, 0])
    assert exponents == pytest.approx([theory.exponent(c, 1.0, 0.5) for c in cs], abs=0.005)
    gibbs = theory.equilibrium(rings[0], np.array([1.2, 2.0]), marks)
    assert theory.two_states(rings[0], np.array([1.2, 2.0]), 100, marks) == pytest.approx(
        gibbs,
        rel=0.02,  # it lags behind Gibbs's law by 4(Δ/c)k^{D/c − 1}
    )


def test_walkers_have_the_exact_law(rings):
    marks = (150, 300)
    places = walk(np.random.default_rng(1), rings, CS, 100, marks, 2000)
    shares = np.stack([(places == site).mean(-1) for site in range(12)], -1)
    exact = law(rings[:, None], lambda k: CS / np.log(k), 100, np.array(marks), 1e-9)
    error = np.sqrt(exact * (1 - exact) / 2000) + 1e-4
    assert (np.abs(shares - exact) / error).max() < 4.5


def test_right_laws_hold_and_wrong_ones_fail():
    claim = AnnealingSchedule(seeds=3, groups=6, walkers=50, decades=11)
    setting = claim.setting(jax.random.key(0))
    predicted = claim.predict(setting)
    observed = claim.observe(setting, jax.random.key(1))
    verdicts = lambda law: {check.id: check.verdict.value for check in claim.checks(law, observed)}
    assert verdicts(predicted)["wrong"] == verdicts(predicted)["exponent"] == "holds"
    assert all(condition.holds for condition in claim.run_conditions(observed))
    wrong = predicted.replace(wrong=("seed c k", predicted["wrong"] * 1.1))
    assert verdicts(wrong)["wrong"] == "fails"
    off = predicted.replace(exponent=("c", predicted["exponent"] - 0.05))
    assert verdicts(off)["exponent"] == "fails"
    met = predicted.replace(met=("draw c early", predicted["met"][:, ::-1]))
    assert verdicts(met)["walkers"] == "fails"


@pytest.mark.parametrize("fields", [{"gap": 0.0}, {"other_pass": 1.0}, {"cs": (0.5, 0.95, 2.0)}])
def test_outside_of_its_hypotheses(fields):
    claim = AnnealingSchedule(**fields)
    assert not all(h.holds for h in claim.hypotheses(claim.setting(jax.random.key(0))))


def test_fields_that_do_not_fit_are_refused():
    with pytest.raises(UserError, match="early"):
        AnnealingSchedule(early=(50,))
    with pytest.raises(UserError, match="decades"):
        AnnealingSchedule(decades=3)
