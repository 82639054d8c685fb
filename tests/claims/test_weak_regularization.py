"""What the claim about weak regularization rests on: maximal margins, the networks that have them, and certificates."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from steepest.catalogue import load
from steepest.claims.implicit_bias.weak_regularization.claim import DEGREES, _excess, _sets
from steepest.nn.networks import DiagonalParams
from steepest.nn.networks._two_layer import Neurons
from steepest.programs import hard_margin, neuron_margin, penalized_minimum


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
    part = predicted["minima"] / predicted["limit"][..., None, None]
    assert (part <= 1 + 1e-6).all() and (part >= predicted["guarantee"]).all()
    assert (np.diff(part[..., -2:]) > 0).all()


def test_descent_ends_at_the_programs_minimum(small):
    _, _, predicted, observed = small
    assert observed["excess"].max() < 1e-2
    normalized_margins = observed["least"] / observed["length"]
    np.testing.assert_allclose(normalized_margins, predicted["minima"], rtol=5e-3)


def test_margins_and_size_belong_together(small):
    """The risk at the minimum is below λ‖θ‖², and above that of the least margin over n, for either loss."""
    claim, setting, _, observed = small
    least = observed["least"]
    assert (least > 0).all()
    n = setting.y.shape[1]
    size = observed["length"] ** (2 / DEGREES[:, None, None, None])
    losses = np.stack([np.exp(-least[:, :, 0]), np.log1p(np.exp(-least[:, :, 1]))], 2)
    assert (losses / n <= np.exp(claim.strengths) * size).all()


def test_the_programs_alone_gain_the_largest_margin_per_length(small):
    """Between weak penalties: the size of a program's minimum beside its margin, without any descent."""
    claim, setting, _, _ = small
    for penalty, limit, degree in (("l2", setting.margins[0], 1), ("l1", setting.margins[1], 2)):
        for (x, y), margin in zip(_sets(setting, 0), limit, strict=True):
            ends = [penalized_minimum(x, y, s, penalty, "logistic") for s in claim.strengths[1:]]
            least = np.diff([end.margins.min() for end in ends])
            length = np.diff([end.size ** (degree / 2) for end in ends])
            assert least / length == pytest.approx(margin, rel=0.02)


def test_the_two_losses_are_told_apart():
    """At the strongest penalty the exponential minima are off by more than the margin of the check, in every model."""
    with jax.enable_x64(True):
        claim = load("weak-regularization")(decades=(2, 8), n=8, dimension=3, seeds=3)
        setting = claim.setting(jax.random.key(0))
        predicted = claim.predict(setting)
    off = np.abs(predicted["minima"][:, :, 0] / predicted["minima"][:, :, 1] - 1)
    assert (off[..., 0].max(1) > 2e-3).all() and (off[..., 1] < 1e-4).all()


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
