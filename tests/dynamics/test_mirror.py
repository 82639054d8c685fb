"""Potentials and mirror descent against closed forms, automatic differentiation and gradient descent."""

import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest

from steepest.core.errors import UserError
from steepest.dynamics import descend, mirror_descent
from steepest.programs import (
    Potential,
    entropy,
    hyperbolic_entropy,
    power,
    simplex_entropy,
    squared_norm,
)

EVERYWHERE = [
    squared_norm(1.3),
    squared_norm(2.0),
    squared_norm(4.0),
    power(1.5),
    power(3.0),
    hyperbolic_entropy(0.2),
]
POSITIVE = [entropy(), simplex_entropy()]
name = lambda potential: potential.name


def points(potential):
    w, v = np.random.default_rng(0).normal(size=(2, 7))
    if potential.domain == "simplex":
        return jax.nn.softmax(w), jax.nn.softmax(v)
    return (
        (jnp.exp(w), jnp.exp(v)) if potential.domain == "positive" else (jnp.array(w), jnp.array(v))
    )


@pytest.mark.parametrize("potential", EVERYWHERE + POSITIVE, ids=name)
def test_mirror_maps_are_the_gradient_and_its_inverse(potential):
    """∇ψ by automatic differentiation (on the simplex up to a constant), and ∇ψ* ∘ ∇ψ = 1."""
    w, _ = points(potential)
    slope = jax.grad(potential.value)(w) - potential.mirror(w)
    if potential.domain == "simplex":
        slope = slope - slope.mean()
    np.testing.assert_allclose(slope, 0, atol=1e-12)
    np.testing.assert_allclose(potential.unmirror(potential.mirror(w)), w, rtol=1e-12)


@pytest.mark.parametrize("potential", EVERYWHERE + POSITIVE, ids=name)
def test_divergences_are_positive_and_satisfy_the_law_of_cosines(potential):
    """D(w, v) > 0 = D(w, w), and D(a, b) + D(b, c) − D(a, c) = ⟨∇ψ(c) − ∇ψ(b), a − b⟩."""
    w, v = points(potential)
    u = 0.3 * w + 0.7 * v
    D = potential.divergence
    assert float(D(w, v)) > 1e-3
    assert float(D(w, w)) == pytest.approx(0, abs=1e-14)
    inner = jnp.dot(potential.mirror(v) - potential.mirror(u), w - u)
    assert float(D(w, u) + D(u, v) - D(w, v)) == pytest.approx(float(inner), abs=1e-12)


@pytest.mark.parametrize("potential", EVERYWHERE + POSITIVE, ids=name)
def test_the_center_is_the_least_point(potential):
    center = potential.center(5)
    moves = 0.01 * np.random.default_rng(1).normal(size=(20, 5))
    moves = moves - moves.mean(1, keepdims=True) * (potential.domain == "simplex")
    assert all(
        float(potential.value(center + move)) > float(potential.value(center)) for move in moves
    )


def test_known_divergences():
    """Half a squared distance; Kullback and Leibler's."""
    w, v = points(simplex_entropy())
    assert float(squared_norm(2.0).divergence(w, v)) == pytest.approx(
        0.5 * float(((w - v) ** 2).sum()), abs=1e-14
    )
    for potential in POSITIVE:
        assert float(potential.divergence(w, v)) == pytest.approx(
            float((w * jnp.log(w / v)).sum()), abs=1e-14
        )


def test_entropy_is_finite_on_the_boundary():
    assert float(
        simplex_entropy().divergence(jnp.array([1.0, 0.0]), jnp.array([0.5, 0.5]))
    ) == pytest.approx(np.log(2))


def quadratic(w):
    return 0.5 * jnp.sum(jnp.array([1.0, 3.0]) * (w - jnp.array([0.3, 0.6])) ** 2)


def test_the_euclidean_potential_is_gradient_descent():
    start = jnp.array([1.0, -1.0])
    mirror = descend(
        quadratic, start, mirror_descent(squared_norm(2.0), 0.1), 30, observe={"w": lambda w: w}
    )
    plain = descend(quadratic, start, optax.sgd(0.1), 30, observe={"w": lambda w: w})
    np.testing.assert_allclose(mirror.observed["w"], plain.observed["w"], rtol=1e-12)


def test_entropy_is_exponentiated_gradient():
    """w ← w exp(−ηg), and on the simplex the same divided by its sum."""
    for potential in POSITIVE:
        path = descend(quadratic, jnp.array([0.5, 0.5]), mirror_descent(potential, 0.2), 10)
        w = np.array([0.5, 0.5])
        for _ in range(10):
            w = w * np.exp(-0.2 * np.asarray(jax.grad(quadratic)(w)))
            w = w / w.sum() if potential.domain == "simplex" else w
        np.testing.assert_allclose(path.params, w, rtol=1e-12)


@pytest.mark.parametrize("potential", EVERYWHERE + POSITIVE, ids=name)
def test_the_weights_of_a_tree_are_one_vector(potential):
    w, _ = points(potential)
    target = jnp.arange(7.0)
    risk = lambda w: 0.5 * jnp.sum((w - target) ** 2)
    tree = {"a": w[:3], "b": {"c": w[3:].reshape(2, 2)}}
    joined = lambda t: jnp.concatenate([t["a"], t["b"]["c"].ravel()])
    rule = mirror_descent(potential, 0.01)
    alone = descend(risk, w, rule, 5)
    together = descend(lambda t: risk(joined(t)), tree, rule, 5)
    np.testing.assert_allclose(joined(together.params), alone.params, rtol=1e-12)


def test_dual_weights_remember_what_weights_round_away():
    """A weight that underflows to zero comes back: log w is what is carried on."""
    risk = lambda w: -w[0]
    rule = mirror_descent(simplex_entropy(), 1.0)
    state = rule.init(jnp.array([0.5, 0.5]))
    w = jnp.array([0.5, 0.5])
    for sign in [1.0] * 1000 + [-1.0] * 1000:
        updates, state = rule.update(sign * jax.grad(risk)(w), state, w)
        w = optax.apply_updates(w, updates)
    np.testing.assert_allclose(w, [0.5, 0.5], atol=1e-9)


def test_mapping_over_step_sizes():
    run = lambda lr: (
        descend(quadratic, jnp.array([0.5, 0.5]), mirror_descent(entropy(), lr), 20).params
    )
    rates = jnp.array([0.05, 0.1])
    np.testing.assert_allclose(jax.jit(jax.vmap(run))(rates)[1], run(0.1), rtol=1e-12)


def test_bad_starts_and_potentials_are_refused_in_one_sentence():
    lasso = Potential("absolute values", lambda w: jnp.abs(w).sum(), jnp.sign, jnp.sign)
    for make, start, message in (
        (entropy, [1.0, 0.0], "positive weights, got a least weight of 0"),
        (simplex_entropy, [0.5, 0.6], "sum 1, got the sum 1.1"),
        (lambda: lasso, [1.0, 0.5], "strictly convex"),
    ):
        with pytest.raises(UserError, match=message):
            mirror_descent(make(), 0.1).init(jnp.array(start))
    for make in (squared_norm, power):
        for p in (0.5, 1.0, np.inf):
            with pytest.raises(UserError, match="strictly convex"):
                make(p)
    with pytest.raises(UserError, match="positive scale"):
        hyperbolic_entropy(0.0)
