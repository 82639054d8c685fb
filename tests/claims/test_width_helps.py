"""The law of coupons by enumeration, the largest margin by a program, and the figures of width-helps' page."""

import itertools

import jax
import numpy as np
import pytest

from steepest import kit
from steepest.claims.features.width_helps.claim import WidthHelps
from steepest.claims.features.width_helps.experiment import (
    coupons,
    kinds_drawn,
    largest_margin,
    reached_margin,
    start_of,
    waiting,
    xor,
)
from steepest.nn.networks import Neurons
from steepest.programs import neuron_margin


@pytest.mark.parametrize("width", [1, 3, 4, 6])
@pytest.mark.parametrize("wanted", [3, 4])
def test_coupons_by_enumeration(width, wanted):
    draws = [len(set(draw)) for draw in itertools.product(range(4), repeat=width)]
    assert coupons(width, wanted=wanted) == pytest.approx(np.mean(np.array(draws) >= wanted))
    closed = 1 - 4 * 0.75**width + 6 * 0.5**width - 4 * 0.25**width
    assert coupons(width) == pytest.approx(closed)


def test_the_largest_margin():
    """By the program in the plane, and attained by the four directions in every dimension."""
    assert largest_margin(2) == pytest.approx(neuron_margin(*xor(2)).margin / 2, rel=1e-6)
    for d in (2, 3, 5):
        x, y = xor(d)
        w = np.zeros((4, d))
        w[:, :2] = [[1, 1], [-1, -1], [1, -1], [-1, 1]]
        v = np.array([1, 1, -1, -1]) * 2**0.5
        outputs = np.maximum(x @ w.T, 0) @ v
        assert (y * outputs).min() / ((w**2).sum() + (v**2).sum()) == pytest.approx(
            largest_margin(d)
        )


def test_four_neurons_of_four_kinds_reach_it_and_three_kinds_do_not():
    w = np.array([[1.0, 0.6], [-0.2, -1.0], [1.0, -0.4], [-0.5, 0.7]])
    size = np.linalg.norm(w, axis=1)
    good = Neurons(w, size * [1, 1, -1, -1])
    bad = Neurons(w * [[1], [-1], [1], [1]], good.v)
    assert kinds_drawn(good.w, good.v).all()
    assert kinds_drawn(bad.w, bad.v).tolist() == [True, False, True, True]
    run = jax.jit(lambda start: reached_margin(start, 4, 400))
    assert run(good) == pytest.approx(largest_margin(2), rel=0.005)
    assert run(bad) < 0.05 * largest_margin(2)


def test_neurons_whose_gate_is_another_coordinate_wait():
    w = np.array(
        [[0.1, 0.2, 1.0, 0.1], [0.1, 0.2, -1.0, 0.1], [1.0, 0.9, 0.2, 0.1], [1.0, 0.1, 0.1, 0.1]]
    )
    v = np.array([1.0, -1.0, 1.0, 0.0])
    assert waiting(w, v).tolist() == [True, True, False, False]
    start = np.asarray(start_of(jax.random.key(0), 4, 5000, 1.0, 1.0).w)
    assert waiting(start, np.ones(5000)).mean() == pytest.approx(1 / 6, abs=0.02)


def test_narrow_networks_are_out_of_range():
    claim = WidthHelps(widths=(2, 3), starts=9)
    conditions = tuple(claim.hypotheses(claim.setting(jax.random.key(0))))
    assert [condition.holds for condition in conditions] == [False, True, True, True, True, True]


def test_the_law_reversed_in_width_is_refuted():
    """The mean over widths, which was judged before, accepts it."""
    claim = WidthHelps(widths=(4, 6, 8, 12, 16), starts=600, dimension=3)
    predicted = claim.predict(claim.setting(jax.random.key(0)))
    rng = np.random.default_rng(0)
    margins = np.where(rng.random((5, 600)) < predicted["rate"][:, None], largest_margin(2), 0.0)
    observed = kit.seen(
        margins=("width draw", margins),
        unbalanced_margins=("width draw", margins),
        cube_margins=("width draw", margins),
    )
    verdict = lambda law: {c.id: c.verdict.value for c in claim.checks(law, observed)}["rate"]
    assert verdict(predicted) == "holds"
    reversed_rate = predicted["rate"][::-1]
    assert reversed_rate.mean() == predicted["rate"].mean()
    assert verdict(predicted.replace(rate=("width", reversed_rate))) == "fails"
