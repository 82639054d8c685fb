"""One pass of two methods: against JAX's gradients and multiplicative weights, and the regret that the proofs bound."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from steepest.claims.noise._one_pass import exponentiated, hinge, sgd
from steepest.claims.noise.one_pass_sgd.claim import OnePassSgd
from steepest.claims.noise.one_pass_sgd.experiment import perceptron
from steepest.claims.noise.sparse_or_dense.claim import SparseOrDense
from steepest.core.errors import UserError


@pytest.fixture
def sample():
    rng = np.random.default_rng(0)
    x = 2.0 * rng.integers(0, 2, (3, 50, 7)) - 1
    return x, np.sign(x[..., 0] + x[..., 1] + x[..., 2])


def loss(w, x, y):
    return jnp.maximum(0, 1 - y * (x @ w))


def iterates_of_sgd(x, y, radius):
    n, d = x.shape
    w = jnp.zeros(d)
    path = []
    for t in range(n):
        path.append(w)
        w = w - radius / np.sqrt(d * n) * jax.grad(loss)(w, x[t], y[t])
    return np.array(path)


def iterates_of_weights(x, y, radius):
    """Multiplicative weights on 2d coordinates, of losses over the radius."""
    n, d = x.shape
    p = np.full(2 * d, 1 / (2 * d))
    path = []
    for t in range(n):
        w = radius * (p[:d] - p[d:])
        path.append(w)
        slope = -y[t] * x[t] if y[t] * (x[t] @ w) < 1 else np.zeros(d)
        p = p * np.exp(-np.sqrt(2 * np.log(2 * d) / n) * np.concatenate([slope, -slope]))
        p = p / p.sum()
    return np.array(path)


@pytest.mark.parametrize("radius", [1.0, 2.5])
def test_averages_in_another_way(sample, radius):
    x, y = sample
    descent = sgd(x, y, radius)
    weights = exponentiated(x, y, radius)
    for i in range(3):
        assert np.allclose(descent[i], iterates_of_sgd(x[i], y[i], radius).mean(0), atol=1e-12)
        assert np.allclose(weights[i], iterates_of_weights(x[i], y[i], radius).mean(0), atol=1e-12)


def test_the_regret_is_bounded_on_every_sequence():
    """Also where labels are chosen against the learner."""
    n, d, B = 60, 5, 1.5
    rng = np.random.default_rng(1)
    x = 2.0 * rng.integers(0, 2, (n, d)) - 1
    for labels in (np.sign(x[:, 0]), rng.choice([-1.0, 1.0], n), np.sign(np.sin(np.arange(n)))):
        regret = lambda path, u, y=labels: float(
            hinge(y * (x * path).sum(1)).mean() - hinge(y * (x @ u)).mean()
        )
        balls = (
            (iterates_of_sgd(x, labels, B), 2, B * np.sqrt(d / n)),
            (iterates_of_weights(x, labels, B), 1, B * np.sqrt(2 * np.log(2 * d) / n)),
        )
        for path, norm, limit in balls:
            for _ in range(50):
                u = rng.normal(size=d)
                u *= B / np.linalg.norm(u, norm)
                assert regret(path, u) <= limit + 1e-12
    assert np.abs(path).sum(1).max() <= B + 1e-12


def test_the_target_is_the_best_there_is():
    """Twice the share of flips is the least hinge loss, on all inputs at d = 3 and by a search."""
    x = 2.0 * np.array(list(np.ndindex(2, 2, 2))) - 1
    risk = lambda w: (0.9 * hinge(x[:, 0] * (x @ w)) + 0.1 * hinge(-x[:, 0] * (x @ w))).mean()
    assert risk(np.array([1.0, 0, 0])) == pytest.approx(0.2)
    for w in np.random.default_rng(0).normal(size=(500, 3)):
        assert risk(w) >= 0.2


def test_the_perceptron_fits_within_its_bound_of_steps(sample):
    x, _ = sample
    target = np.sign(x[..., 0])
    weights = perceptron(x, target)
    assert hinge(target * np.einsum("snd,sd->sn", x, weights)).max() == 0
    # w is a sum of at most d + 2 examples
    assert np.abs(weights).max() <= x.shape[-1] + 2
    assert np.abs(sgd(x, target, 1.0) - weights).max() > 0.1


def test_other_inputs_and_many_flips_are_out_of_range():
    held = lambda **fields: [
        hypothesis.holds for hypothesis in OnePassSgd(**fields).hypotheses(None)
    ]
    assert held() == [True, True]
    assert held(scale=3.0) == [False, True]
    assert held(scale=0.5) == [False, True]
    assert held(flipped=0.7) == [True, False]


@pytest.mark.parametrize(
    "fields, message",
    [
        ({"dimensions": (8,)}, "dimensions must be 2"),
        ({"rays": (8, 16)}, "rays must be 3"),
        ({"log_rays": (64, 16, 8)}, "log_rays must be 3"),
    ],
)
def test_bad_fields_are_refused(fields, message):
    with pytest.raises(UserError, match=message):
        OnePassSgd(**fields)


def test_an_even_number_of_voters_is_refused():
    with pytest.raises(UserError, match="odd"):
        SparseOrDense(majority=1024)
