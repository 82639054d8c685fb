"""What the claim about functions on the line rests on: its network, how it reads a function, its rivals."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from steepest.catalogue import load
from steepest.claims.implicit_bias.function_space_norm.claim import Net, bends
from steepest.programs import relu_cost


@pytest.fixture(scope="module")
def small():
    claim = load("function-space-norm")(n=4, width=60, seeds=3, steps=6000, penalties=(1e-2, 3e-2))
    setting = claim.setting(jax.random.key(0))
    return claim, setting, claim.predict(setting)


def test_slopes_read_from_neurons_are_those_of_the_function():
    net = load("function-space-norm")(width=9).start(jax.random.key(1))
    knots, slopes = bends(*(np.asarray(part) for part in (net.w, net.b, net.v)))
    places = np.concatenate([[knots[0] - 1], (knots[1:] + knots[:-1]) / 2, [knots[-1] + 1]])
    by_autodiff = jax.vmap(jax.grad(lambda t: net(t[None])[0]))(jnp.asarray(places))
    np.testing.assert_allclose(slopes, by_autodiff, atol=1e-10)


def test_dead_weights_are_left_out():
    net = Net(
        w=jnp.array([1.0, 0.0]), b=jnp.array([0.0, 1.0]), v=jnp.array([2.0, 3.0]), c=jnp.zeros(())
    )
    assert relu_cost(*bends(*(np.asarray(part) for part in (net.w, net.b, net.v)))) == 2


def test_the_ramp_and_the_zigzag_are_decided_by_different_terms(small):
    """The cost is ∫|f''| for the zigzag, and more than that for the ramp."""
    claim, setting, predicted = small
    chords = np.diff(predicted["values"]) / np.diff(setting.x)[None, :, None]
    bent = np.abs(np.diff(chords)).sum(-1)
    assert (predicted["cost"][1] > bent[1] * 1.01).all()
    assert np.isclose(predicted["cost"][0], bent[0]).any()
    wrong = {
        rival.id: rival.prediction["cost"] for rival in claim.wrong_theories(setting, predicted)
    }
    np.testing.assert_allclose(wrong["bend"], bent, atol=1e-12)


def test_a_wrong_constant_fails(small):
    """A cost that is off by a tenth."""
    claim, setting, predicted = small
    observed = claim.observe(setting, jax.random.key(1))
    verdict = lambda law: claim.checks(law, observed)[0].verdict.value
    wrong = predicted.replace(cost=("family seed penalty", 1.1 * predicted["cost"]))
    assert verdict(wrong) == "fails"
    assert verdict(predicted) == "holds"
