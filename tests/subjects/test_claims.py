"""What the versions of claims for subjects measure, against the same by another way."""

import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest

from steepest.catalogue import entry
from steepest.claims.descent.edge_of_stability.on_subject import EdgeOnSubject
from steepest.claims.signals.critical_tuning.on_subject import (
    CriticalOnSubject,
    _grams,
    _plane,
    _squares,
    hidden_layers,
)
from steepest.claims.signals.lazy_or_rich.on_subject import LazyOnSubject
from steepest.engine.subjects import run_on
from steepest.kernels import criticality
from steepest.measurement import Builder, is_cross_entropy
from steepest.measurement.adapters import subject
from steepest.nn.activations import activation
from tests.subjects import models


def small(seed=0):
    return models.standard(seed, width=0.2)


def flat_risk(function, **knobs):
    """The risk of a built model as a function of its flat weights, by JAX alone, and the weights."""
    (net, params), loss, (x, y) = function(**knobs)
    flat, back = jax.flatten_util.ravel_pytree(params)
    return jax.jit(lambda w: loss(net.apply(back(w), jnp.asarray(x)), jnp.asarray(y))), flat


def test_descent_is_plain_descent_and_its_sharpness_the_largest_eigenvalue():
    with jax.enable_x64(True):
        risk, w = flat_risk(small)
        attached = subject(*small())
        claim = EdgeOnSubject(steps=25, products=60, lr=0.5).on(Builder.of(small))
        seen = claim.descent(attached, 0.5, np.random.default_rng(0))
        risks = []
        sharpest = []
        slope = jax.jit(jax.grad(risk))
        for _ in range(26):
            risks.append(float(risk(w)))
            if len(risks) in (1, 26):
                sharpest.append(float(jnp.linalg.eigvalsh(jax.hessian(risk)(w))[-1]))
            w = w - 0.5 * slope(w)
    np.testing.assert_allclose(seen["risk"], risks, rtol=1e-5)
    np.testing.assert_allclose([seen["sharpness"][0], seen["sharpness"][-1]], sharpest, rtol=1e-3)


def test_batches_are_compared_by_their_own_sharpness():
    """With all examples in a batch the batch sharpness is gᵀHg/gᵀg of the full gradient."""
    with jax.enable_x64(True):
        risk, w = flat_risk(small)
        g = jax.grad(risk)(w)
        expected = float(g @ jax.jvp(jax.grad(risk), (w,), (g,))[1] / (g @ g))
        claim = EdgeOnSubject(batch=12).on(Builder.of(small))
        look = claim.look(subject(*small()), np.random.default_rng(0), None)
    assert look["sharpness"] == pytest.approx(expected, rel=1e-4)
    assert look["full_sharpness"] > look["sharpness"]
    result = run_on(
        entry("edge-of-stability"),
        small,
        changes={"batch": 3, "steps": 5, "seeds": 3, "n": 12, "products": 5},
    )
    assert [control.id for control in result.controls] == ["full_batch"]


def test_cross_entropy_is_recognized_by_its_value():
    """With its own optax, and not the squared loss, nor a smoothed one."""
    x = models.X.astype(np.float32)
    y = np.arange(12) % 3
    pair = (lambda w, x: x @ w, jnp.ones((4, 3)) * jnp.arange(3.0))
    entropy = lambda f, y: optax.softmax_cross_entropy_with_integer_labels(f, y).mean()
    smooth = lambda f, y: entropy(f, y) + 0.1 * jnp.log(jnp.exp(-f).sum(-1)).mean() ** 2
    assert is_cross_entropy(subject(pair, entropy, (x, y)))
    assert not is_cross_entropy(subject(pair, smooth, (x, y)))
    assert not is_cross_entropy(subject(*models.tanh()))


def test_the_layers_covariances_are_those_of_the_network_itself():
    """Unscaled, the chain writes what the network writes; its C_W and C_b are those of its matrices."""
    attached = subject(*models.relu())
    chain = hidden_layers(attached)
    x = models.X[:3]
    written = list(attached.layers(x.astype(np.float32)).values())[:-1]
    expected = [z @ z.T / z.shape[1] for z in map(np.float64, written)]
    np.testing.assert_allclose(_grams(chain, x), expected, rtol=1e-4)
    c_w, c_b = _squares(chain[1])
    assert c_w == pytest.approx(40 * np.mean(np.square(chain[1].matrix, dtype=float)))
    assert c_b == 0


def test_critical_tuning_runs_through_and_finds_two_for_relu():
    result = run_on(entry("critical-tuning"), models.relu, changes={"seeds": 100})
    located = {check.id: check.measured for check in result.checks}
    assert located["c_w_along"] == pytest.approx(2, abs=0.15)
    assert located["c_w_across"] == pytest.approx(2, abs=0.15)
    assert set(result.params) == {"seeds", "scan", "small_variance", "perturbation"}
    assert result.about["subject"]["assumed"] == list(CriticalOnSubject.unchecked)


def test_the_pair_of_inputs_has_the_covariance_that_theory_starts_from():
    """Whatever plane of the data it lies in: C_W x·x'/d over coordinates is that of the plane."""
    claim = CriticalOnSubject()
    tuned = criticality(activation("relu"))
    pair = claim.pair(tuned)
    wide = pair @ _plane(models.X)
    np.testing.assert_allclose(wide @ wide.T / 4, pair @ pair.T / 2, rtol=1e-12)
    assert tuned.c_w * (pair @ pair.T / 2)[0, 0] == pytest.approx(1.0)


def test_changes_of_a_network_are_those_of_its_own_functions():
    """Outputs, layers and tangent kernel before and after, by JAX on the parameters."""
    claim = LazyOnSubject(examples=12, target=0.5, seeds=3).on(Builder.of(models.tanh))
    (net, params), loss, (x, y) = models.tanh(0)
    start = subject((net, params), loss, (x, y))
    end, steps = claim.descended(start)
    assert 1 < steps < claim.most and end.risk() <= 0.5 * start.risk()
    changes = claim.changes(start, end)
    after = jax.flatten_util.ravel_pytree(params)[1](jnp.asarray(end.values()))
    rms = lambda a, b: float(np.sqrt(np.mean((np.asarray(a) - np.asarray(b)) ** 2)))
    before_z, after_z = net.preactivations(params, x), net.preactivations(after, x)
    expected = [rms(a, b) for a, b in zip(before_z, after_z, strict=True)]
    np.testing.assert_allclose(changes[:3], [expected[2], *expected[:2]], rtol=1e-4)

    def kernel(p):
        rows = jax.jacobian(lambda p: net.apply(p, x))(p)
        flat = np.concatenate([np.reshape(leaf, (12, -1)) for leaf in jax.tree.leaves(rows)], 1)
        return flat @ flat.T

    a, b = kernel(params), kernel(after)
    assert changes[3] == pytest.approx(np.linalg.norm(b - a) / np.linalg.norm(a), rel=1e-3)


def test_the_share_of_the_first_layer_is_that_of_its_derivatives():
    (net, params), loss, (x, y) = models.standard(0)
    claim = LazyOnSubject(examples=12).on(Builder.of(models.standard))
    share = claim.first_share(subject((net, params), loss, (x, y)))
    rows = jax.jacobian(lambda p: net.apply(p, x))(params)
    squares = [float(sum((leaf**2).sum() for leaf in jax.tree.leaves(layer))) for layer in rows]
    assert share == pytest.approx(squares[0] / sum(squares), rel=1e-4)


def test_lazy_or_rich_runs_through():
    fields = {"parameterizations": ("ntk",), "widths": (1, 1.5, 2), "target": 0.8, "seeds": 3}
    result = run_on(entry("lazy-or-rich"), models.tanh, changes=fields)
    assert [check.id for check in result.checks] == [
        f"change_ntk_{what}" for what in ("output", "first", "second", "kernel")
    ]
    assert result.observed["change"].shape == (1, 3, 3, 4)
    assert "all_lazy" not in {rival.id for rival in result.rivals}  # which is the theory here
