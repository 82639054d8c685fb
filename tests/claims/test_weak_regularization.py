"""What the claim about weak regularization rests on: maximal margins, the networks that have them, and certificates."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from steepest.catalogue import load
from steepest.claims.implicit_bias.weak_regularization.claim import DEGREES, _excess, _sets
from steepest.nn.networks import DiagonalParams
from steepest.nn.networks._two_layer import Neurons
from steepest.programs import hard_margin, neuron_margin


@pytest.fixture(scope="module")
def small():
    with jax.enable_x64(True):
        claim = load("weak-regularization")(
            decades=(3, 6, 12), n=8, dimension=3, width=24, steps=20_000, seeds=3
        )
        setting = claim.setting(jax.random.key(0))
        yield claim, setting, claim.predict(setting), claim.observe(setting, jax.random.key(1))


def normalized(net, params, x, y):
    size = sum(float((leaf**2).sum()) for leaf in jax.tree.leaves(params))
    return float((y * net.apply(params, x)).min()) / size


def test_the_best_parameters_have_the_maximal_margin(small):
    """From the programs' solutions: β± = √β for the diagonal network, |v_j| = ‖w_j‖ for the neurons."""
    claim, setting, _, _ = small
    _, diagonal, neurons = claim.nets()
    x, y = _sets(setting, 1)[0]
    beta = jnp.asarray(hard_margin(x, y, "l1").direction)
    params = DiagonalParams(jnp.sqrt(jnp.maximum(beta, 0)), jnp.sqrt(jnp.maximum(-beta, 0)))
    assert normalized(diagonal, params, x, y) == pytest.approx(setting.margins[1, 0], rel=1e-6)
    x, y = _sets(setting, 2)[0]
    found = neuron_margin(x, y)
    root = jnp.sqrt(jnp.abs(found.weights))
    params = Neurons(root[:, None] * found.directions, jnp.sign(found.weights) * root)
    assert normalized(neurons, params, x, y) == pytest.approx(setting.margins[2, 0], rel=1e-6)


def test_random_parameters_have_no_larger_one(small):
    claim, setting, _, _ = small
    for model in (1, 2):
        net = claim.nets()[model]
        (x, y) = _sets(setting, model)[0]
        start = net.init(jax.random.key(0))
        for key in jax.random.split(jax.random.key(2), 50):
            leaves, shape = jax.tree.flatten(start)
            drawn = [
                jax.random.normal(k, a.shape)
                for k, a in zip(jax.random.split(key), leaves, strict=True)
            ]
            assert (
                normalized(net, jax.tree.unflatten(shape, drawn), x, y) <= setting.margins[model, 0]
            )


def test_no_line_separates_the_plane(small):
    _, setting, _, _ = small
    for x, y in _sets(setting, 2):
        assert not hard_margin(x, y).separable
        assert neuron_margin(x, y).separable


def test_the_curve_lies_between_guarantee_and_limit(small):
    _, _, predicted, _ = small
    part = predicted["curve"] / predicted["limit"][..., None]
    assert (part <= 1 + 1e-6).all() and (part >= predicted["guarantee"]).all()
    assert (np.diff(part[:, :, -2:]) > 0).all()


def test_descent_ends_at_the_programs_minimum(small):
    _, _, predicted, observed = small
    assert observed["excess"].max() < 1e-2
    np.testing.assert_allclose(observed["normalized"], predicted["curve"], rtol=5e-3)


def test_margins_and_size_belong_together(small):
    """Euler's identity at a minimum: L Σ q m = 2 ‖θ‖², so ‖θ‖² can be had from the normalized margin's bounds."""
    claim, setting, _, observed = small
    least = observed["normalized"] * observed["size"] ** (DEGREES[:, None, None] / 2)
    assert (least > 0).all()
    n = setting.y.shape[1]
    # the risk at the minimum is below λ‖θ‖², and above exp(−least margin)/n
    assert (np.exp(-least) / n <= np.exp(claim.strengths) * observed["size"]).all()


def test_the_two_losses_are_told_apart():
    """At the strongest penalty the exponential minima are off by more than the margin of the check, in every model."""
    with jax.enable_x64(True):
        claim = load("weak-regularization")(decades=(2, 8), n=8, dimension=3, seeds=3)
        setting = claim.setting(jax.random.key(0))
        predicted = claim.predict(setting)
        rivals = {rival.id: rival.prediction for rival in claim.rivals(setting, predicted)}
    off = np.abs(rivals["one_loss"]["curve"] / predicted["curve"] - 1)
    assert (off[:, ::2] == 0).all() and (off[:, 1, 0] > 2e-3).all()


def test_where_descent_starts_the_excess_is_large(small):
    claim, setting, _, _ = small
    for model, net in enumerate(claim.nets()):
        x, y = _sets(setting, model)[0]
        start = net.init(jax.random.key(3))
        size = sum(float((leaf**2).sum()) for leaf in jax.tree.leaves(start))
        assert (
            _excess(model, x, y, np.asarray(y * net.apply(start, x)), size, claim.strengths[0])
            > 0.1
        )


def test_contradictions_end_separability():
    with jax.enable_x64(True):
        claim = load("weak-regularization")(n=6, dimension=3, seeds=3, contradictions=1)
        assert not any(h.holds for h in claim.hypotheses(claim.setting(jax.random.key(0))))
