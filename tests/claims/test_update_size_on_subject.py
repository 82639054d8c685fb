"""Sizes of updates on a reader's gradients: moments by autodiff of every example, updates against optax."""

import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest

from steepest.claims.training.update_size.on_subject import Given, SizeOnSubject, moments_of
from steepest.core.words import Verdict
from steepest.measurement.adapters import gradient_of
from steepest.measurement.adapters import subject as attach
from steepest.optimizers import Adam
from tests.claims.on_subject import asked, broken
from tests.subjects import models

FIELDS = {"images": 12, "batches": (3, 9), "steps": 200, "seeds": 3}


def classes(seed=0):
    """Two classes of wide inputs, so that every weight has a gradient in every batch."""
    rng = np.random.default_rng(0)
    x = rng.standard_normal((60, 40))
    y = np.sign(x[:, 0] + 0.5 * rng.standard_normal(60))
    w = 0.3 * jax.random.normal(jax.random.key(seed), (40,))
    return (lambda w, x: x @ w, w), models.half_square, (x, y)


def test_moments_are_those_of_every_example():
    (apply, w), loss, (x, y) = classes()
    of_one = lambda w, row, label: loss(apply(w, row[None]), label[None])
    slopes = np.asarray(jax.vmap(jax.grad(of_one), (None, 0, 0))(w, x, y))
    away = slopes - slopes.mean(0)
    moments = moments_of(attach(*classes()))
    np.testing.assert_allclose(moments.mean, slopes.mean(0), atol=1e-6)
    for power, values in enumerate(moments[1:], start=2):
        np.testing.assert_allclose(values, (away**power).mean(0), rtol=1e-4, atol=1e-6)


def test_updates_are_those_of_optax():
    subject = attach(*classes())
    given = Given((0.8, 0.95), (moments_of(subject),))
    claim = SizeOnSubject(**FIELDS)
    every = np.ones(subject.size, bool)
    size = claim.run(subject, given, every, 6, np.random.default_rng(1))
    adam = optax.scale_by_adam(0.8, 0.95, 1e-12)
    state = adam.init(jnp.zeros(subject.size))
    rng = np.random.default_rng(1)
    squares = []
    for _ in range(claim.steps):
        gradient = gradient_of(subject, rng.integers(60, size=6))
        update, state = adam.update(gradient, state)
        squares.append(float((update**2).mean()))
    assert size == pytest.approx(np.mean(squares[claim.steps // 2 :]) ** 0.5, rel=1e-4)
    # all examples in every step give the sign of the gradient
    assert claim.run(subject, given, every, 0, rng) == pytest.approx(1.0, rel=1e-6)


def test_it_holds_on_a_regression_and_follows_its_agreement():
    result = asked("update-size", classes, images=60, batches=(4, 12, 30), steps=600, seeds=8)
    assert result.verdict == Verdict.HOLDS
    (check,) = [check for check in result.checks if check.id == "digits"]
    assert check.verdict == Verdict.HOLDS
    sizes = result.observed["digits"].mean(0)
    assert (np.diff(sizes) > 0).all()
    assert sizes[0] > Adam(0.9).update_size()


def test_weights_that_few_examples_reach_are_out_of_range():
    def rare(seed=0):
        (apply, w), loss, (x, y) = classes(seed)
        x = np.where(np.arange(60)[:, None] == np.arange(40), 1.0, 0.0)
        return (apply, w), loss, (x, y)

    result = asked("update-size", rare, **FIELDS | {"images": 60})
    assert result.verdict == Verdict.OUT_OF_RANGE
    assert "second moments" in broken(result)[0]
