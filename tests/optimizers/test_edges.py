"""Edges: by the roots of two successive steps, and by optax on a parabola just below and just above them."""

import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest
from scipy.optimize import brentq

from steepest.core.errors import UserError
from steepest.optimizers import Adam, Momentum, Sam

RULES = [
    Momentum(),
    Momentum(0.7),
    Momentum(0.7, nesterov=True),
    Momentum(0.6, dampening=0.5),
    Adam(0.0),
    Adam(0.9),
]


def roots(rule, product, decay=0.0):
    """Return the largest absolute root of two successive steps on ½hw² at ηh, from the matrix of (w, v)."""
    if isinstance(rule, Adam):
        beta = rule.beta1
        carried = np.array([(1 - beta) * product, beta])
        # v first, and then w ← (1 − ηλ)w − v
        step = np.array([np.array([1 - decay, 0]) - carried, carried])
    else:
        taken = (1 - rule.dampening) * product
        ahead = np.array([taken, rule.beta])
        along = np.array([taken, 0]) + rule.beta * ahead if rule.nesterov else ahead
        step = np.array([np.array([1, 0]) - along, ahead])
    return np.abs(np.linalg.eigvals(step.astype(float))).max()


@pytest.mark.parametrize("rule", RULES)
def test_the_edge_is_where_a_root_leaves_the_circle(rule):
    outside = lambda product: roots(rule, product) - 1 - 1e-12
    assert brentq(outside, 1e-3, 100.0) == pytest.approx(rule.turn, rel=1e-6)


def test_decay_of_adam_is_that_of_its_roots():
    lr = 0.01
    decay = 20.0
    outside = lambda product: roots(Adam(0.9), product, lr * decay) - 1 - 1e-12
    assert brentq(outside, 10.0, 100.0) / lr == pytest.approx(Adam(0.9).edge(lr, decay), rel=1e-6)


def size_after(transform, curvature, steps=4000):
    """Return |w| after steps of optax on ½hw²."""
    w = jnp.ones(())
    state = transform.init(w)

    def step(carried, _):
        w, state = carried
        update, state = transform.update(curvature * w, state, w)
        return (optax.apply_updates(w, update), state), None

    (w, _), _ = jax.lax.scan(step, (w, state), None, steps)
    return abs(float(w))


@pytest.mark.parametrize("rule", RULES[:3])
@pytest.mark.parametrize("decay", [0.0, 3.0])
def test_optax_shrinks_below_the_edge_and_grows_above(rule, decay):
    lr = 0.1
    transform = optax.chain(
        optax.add_decayed_weights(decay), optax.sgd(lr, rule.beta or None, rule.nesterov)
    )
    edge = rule.edge(lr, decay)
    assert size_after(transform, 0.99 * edge) < 0.01
    assert size_after(transform, 1.01 * edge) > 100


@pytest.mark.parametrize("decay", [0.0, 3.0])
def test_so_does_adamw_at_a_scale_that_stays(decay):
    """Its scale is one where ε is one and gradients are tiny, as √v is nothing beside it."""
    lr = 0.1
    transform = optax.adamw(lr, 0.9, 0.999, eps=1.0, weight_decay=decay)
    edge = Adam(0.9).edge(lr, decay)
    tiny = 1e-8

    def sizes(curvature):
        """Return |w| after each step over the first."""
        w = tiny * jnp.ones(())

        def step(carried, _):
            w, state = carried
            update, state = transform.update(curvature * w, state, w)
            after = optax.apply_updates(w, update)
            return (after, state), abs(after)

        return np.asarray(jax.lax.scan(step, (w, transform.init(w)), None, 400)[1]) / tiny

    assert sizes(0.97 * edge)[-1] < 0.01
    # until its second moments have seen it grow
    assert sizes(1.03 * edge).max() > 1000


@pytest.mark.parametrize("rule", [*RULES[:3], *RULES[4:]])
def test_the_largest_step_has_its_edge_there(rule):
    for decay in (0.0, 0.3):
        assert rule.edge(rule.largest_step(7.0, decay), decay) == pytest.approx(7.0)


def test_sharpness_aware_steps_come_to_the_size_that_has_its_edge_there():
    rule = Sam(0.05)
    lr = 0.1
    curvature = 13.0
    w = 1.0
    for _ in range(2000):
        gradient = curvature * w
        w -= lr * curvature * (w + rule.radius * np.sign(gradient))
    size = abs(curvature * w)
    assert size == pytest.approx(rule.gradient(lr, curvature))
    assert rule.edge(lr, size) == pytest.approx(curvature)


def test_the_edge_of_sharpness_aware_steps_by_bisection():
    outside = lambda curvature: 0.2 * curvature * (1 + 0.03 * curvature / 0.4) - 2
    assert Sam(0.03).edge(0.2, 0.4) == pytest.approx(brentq(outside, 0.1, 10.0))


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda: Momentum(1.0), "momentum β lies in"),
        (lambda: Adam(-0.1), "β₁ lies in"),
        (lambda: Momentum(0.5, nesterov=True, dampening=0.1), "no dampening"),
        (lambda: Sam(0.0), "radius ρ is positive"),
        (lambda: Sam(0.1).gradient(0.1, 20.0), "below ηλ = 2"),
    ],
)
def test_numbers_that_make_no_sense_are_refused(make, words):
    with pytest.raises(UserError, match=words):
        make()
