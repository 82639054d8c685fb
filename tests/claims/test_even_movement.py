"""Movements of neurons: the theory's pull against a limit by hand, its two orders against wide and narrow networks."""

import numpy as np
import pytest

from steepest.claims.features.even_movement.claim import EvenMovement
from steepest.claims.features.even_movement.experiment import start, train
from steepest.claims.features.even_movement.theory import (
    Movements,
    far_outputs,
    largest,
    pull,
)
from steepest.core.errors import UserError

RNG = np.random.default_rng(0)


def test_the_expected_largest_is_that_of_draws():
    size = np.abs(RNG.standard_normal(20_000))
    drawn = RNG.choice(size, (4000, 32)).max(1)
    assert abs(drawn.mean() - largest(size, 64)) < 4 * drawn.std() / 4000**0.5


def test_one_example_is_pulled_until_its_loss_is_the_target():
    """With one example of kernel k the margin is k C, and its loss the target in small steps."""
    total, delayed = pull(np.array([[0.7]]), np.array([-1.0]), 0.002, 0.3)
    assert np.isclose(np.log1p(np.exp(0.7 * total[0])), 0.3, rtol=0.02)
    assert total[0] < 0
    # ∫ C dC = C²/2
    assert np.isclose(delayed[0, 0], total[0] ** 2 / 2, rtol=0.02)


def few_examples():
    x = RNG.normal(size=(6, 8))
    return x / np.linalg.norm(x, axis=1, keepdims=True), RNG.choice([-1.0, 1.0], 6)


def kernels_by_hand(x):
    cosine = np.clip(x @ x.T, -1, 1)
    angle = np.arccos(cosine)
    inner = cosine * (np.pi - angle) / (2 * np.pi)
    outer = (np.sin(angle) + (np.pi - angle) * cosine) / (2 * np.pi)
    return inner, outer


def test_a_wide_layer_moves_as_the_pull_says():
    """Neuron by neuron, to the order that is left out: 1/√m."""
    x, y = few_examples()
    m = 20_000
    w = start(m, 8, RNG)
    moved = train(x, y, w, m**-0.5, 0.5, 0.5, both=False)
    total = pull(kernels_by_hand(x)[0], y, 0.5, 0.5).total
    theory = np.linalg.norm(((w @ x.T > 0) * total) @ x, axis=1) / m**0.5
    assert np.corrcoef(moved.hidden, theory)[0, 1] > 0.99
    assert np.isclose(moved.hidden.mean(), theory.mean(), rtol=0.03)
    assert np.all(moved.output == 0)


def test_output_weights_follow_two_orders_neuron_by_neuron():
    """The second order is that by which the two of a pair differ."""
    x, y = few_examples()
    m = 20_000
    w = start(m, 8, RNG)
    moved = train(x, y, w, m**-0.5, 0.1, 0.5, both=True).output
    total, delayed = pull(sum(kernels_by_hand(x)), y, 0.1, 0.5)
    gates = (w[::2] @ x.T > 0).astype(float)
    first = np.abs(np.maximum(w[::2] @ x.T, 0) @ total) / m**0.5
    grown = np.abs(np.einsum("ji,ik,ik,jk->j", gates, delayed, x @ x.T, gates)) / m
    pairs = moved.reshape(-1, 2)
    assert np.corrcoef(pairs.mean(1), first)[0, 1] > 0.999
    # where no gate flips, half the difference of the two
    clear = (np.abs(w[::2] @ x.T).min(1) > 0.1) & (grown > 0)
    apart = np.abs(pairs[:, 0] - pairs[:, 1])[clear] / 2
    assert np.median(np.abs(apart / grown[clear] - 1)) < 0.05


def test_the_second_order_is_felt_by_narrow_networks_alone():
    moved = Movements(np.ones(1000), np.abs(RNG.standard_normal(1000)), np.ones(1000))
    first = far_outputs(moved, (16, 10**8), second=False)
    both = far_outputs(moved, (16, 10**8))
    np.testing.assert_allclose(both[1], first[1], rtol=1e-3)
    assert abs(both[0] / first[0] - 1) > 0.01


@pytest.mark.parametrize("widths", [(64, 256), (256, 64, 1024)])
def test_widths_that_show_no_growth_in_one_sentence(widths):
    with pytest.raises(UserError, match="three increasing --widths"):
        EvenMovement(widths=widths)
