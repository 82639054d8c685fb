"""Neural collapse: closed forms on frames, invariances, a dense oracle, and what is refused."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from steepest.core.errors import UserError
from steepest.measurement.quantities import class_means, collapse, cosines


def example(seed, classes=4, p=7, each=5, noise=0.3):
    rng = np.random.default_rng(seed)
    y = np.repeat(np.arange(classes), each)
    h = rng.normal(size=(classes, p))[y] + noise * rng.normal(size=(len(y), p))
    return jnp.array(h), jnp.array(y), jnp.array(rng.normal(size=(classes, p)))


def simplex(classes, p, seed=0):
    frame = np.linalg.qr(np.random.default_rng(seed).normal(size=(p, classes)))[
        0
    ].T  # orthonormal rows
    return jnp.array((np.eye(classes) - 1 / classes) @ frame)


def oracle(h, y, w):
    """NC1 as it is written: p × p covariances and a pseudo-inverse."""
    h = np.asarray(h)
    y = np.asarray(y)
    classes = len(w)
    means = np.stack([h[y == c].mean(0) for c in range(classes)])
    centred = means - means.mean(0)
    within = np.mean([np.cov(h[y == c].T, bias=True) for c in range(classes)], axis=0)
    between = centred.T @ centred / classes
    duality = np.linalg.norm(w / np.linalg.norm(w) - centred / np.linalg.norm(centred))
    distances = np.linalg.norm(h[:, None] - means, axis=-1)
    return {
        "variability": np.trace(within @ np.linalg.pinv(between, rcond=1e-12)) / classes,
        "duality": duality,
        "mismatch": np.mean((h @ np.asarray(w).T).argmax(1) != distances.argmin(1)),
        "rank": np.linalg.matrix_rank(between, tol=1e-12),
    }


@pytest.mark.parametrize("classes", [2, 3, 5, 10])
def test_a_collapsed_simplex_is_zero_in_every_metric(classes):
    frame = simplex(classes, 12)
    y = jnp.repeat(jnp.arange(classes), 3)
    found = collapse(
        3.0 * frame[y] + 1.0, y, 0.1 * frame, bias=-0.1 * frame.sum(1)
    )  # a common shift, compensated
    off = ~np.eye(classes, dtype=bool)
    assert np.allclose(found.cosines[off], -1 / (classes - 1), atol=1e-12)
    for name in (
        "variability",
        "angle_error",
        "angle_spread",
        "norm_spread",
        "duality",
        "mismatch",
    ):
        assert abs(float(getattr(found, name))) < 1e-12, name
    assert int(found.rank) == classes - 1
    assert np.allclose(found.spectrum[:-1], 1.0) and found.spectrum[-1] < 1e-12


@pytest.mark.parametrize("classes", [2, 4, 7])
def test_orthogonal_means_are_a_simplex_once_centred(classes):
    """The lecture's "mutually orthogonal": cosine 0 before centring and −1/(C−1) after it; W orthogonal too is not
    self-dual, at the distance √(2 − 2√((C−1)/C)).
    """
    y = jnp.arange(classes)
    found = collapse(jnp.eye(classes), y, jnp.eye(classes))
    off = ~np.eye(classes, dtype=bool)
    assert np.allclose(found.raw_cosines[off], 0.0, atol=1e-12)
    assert np.allclose(found.cosines[off], -1 / (classes - 1))
    assert np.isclose(found.duality, np.sqrt(2 - 2 * np.sqrt(1 - 1 / classes)))


def test_orthogonal_centred_means_cannot_be():
    """Centred means sum to zero, so equally long ones have mean cosine −1/(C−1) whatever their angles."""
    h, y, w = example(0, each=1)
    found = collapse(h, y, w)
    m = np.asarray(h) - np.asarray(h).mean(0)
    assert np.isclose((m @ m.T).sum(), 0.0, atol=1e-12)
    assert float(found.angle_error) > 0


@pytest.mark.parametrize(("seed", "classes", "p"), [(0, 4, 7), (1, 2, 3), (2, 5, 3), (3, 10, 20)])
def test_agrees_with_dense_matrices(seed, classes, p):
    """With p < C − 1, too, where Σ_B has rank p."""
    h, y, w = example(seed, classes, p)
    found = jax.jit(collapse)(h, y, w)
    for name, value in oracle(h, y, w).items():
        assert np.isclose(getattr(found, name), value, rtol=1e-10), name


@settings(max_examples=20, deadline=None)
@given(st.integers(0, 10_000), st.floats(1e-3, 1e3), st.floats(-5, 5))
def test_rotation_scale_and_shift_change_nothing(seed, scale, shift):
    h, y, w = example(seed)
    turn = jnp.array(np.linalg.qr(np.random.default_rng(seed).normal(size=(7, 7)))[0])
    a = collapse(h, y, w)
    b = collapse(scale * h @ turn, y, w @ turn)
    for name in a._fields:
        assert np.allclose(getattr(a, name), getattr(b, name), atol=1e-7), name
    c = collapse(h + shift, y, w, bias=-shift * w.sum(1))  # the same decisions
    for name in set(a._fields) - {"raw_cosines"}:
        assert np.allclose(getattr(a, name), getattr(c, name), atol=1e-7), name


def test_every_class_weighs_the_same():
    """Doubling one class's examples leaves everything but the mismatch, a share of examples, as it was."""
    h, y, w = example(4)
    more = jnp.concatenate([jnp.arange(len(y)), jnp.flatnonzero(y == 1)])
    a = collapse(h, y, w)
    b = collapse(h[more], y[more], w)
    assert np.isclose(a.variability, b.variability) and np.allclose(a.cosines, b.cosines)


def test_the_cut_drops_collapsed_dimensions():
    """A direction in which means differ by 1e-9 would dominate Σ_B⁺; the default cut leaves it out."""
    means = jnp.array([[1.0, 0.0], [-1.0, 1e-9], [0.0, -1e-9]])
    y = jnp.repeat(jnp.arange(3), 2)
    h = means[y] + jnp.array([[0.1, 0.1], [-0.1, -0.1]] * 3)
    found = collapse(h, y, means)
    assert int(found.rank) == 1
    assert np.isclose(found.variability, 0.01 / 2, rtol=1e-6)  # v Σ_W v / s², s² = 1 + 1
    assert collapse(h, y, means, cut=1e-12).variability > 1e12


def test_the_decision_may_differ_from_the_nearest_mean():
    h = jnp.array([[2.0], [1.0], [-1.0], [-2.0]])
    y = jnp.array([0, 0, 1, 1])
    w = jnp.array([[1.0], [-1.0]])
    assert float(collapse(h, y, w).mismatch) == 0.0
    assert float(collapse(h, y, w, bias=jnp.array([0.0, 3.0])).mismatch) == 0.25


def test_parts():
    assert class_means(jnp.eye(2), jnp.array([1, 1]), 2)[1].tolist() == [0.5, 0.5]
    assert np.allclose(np.diag(cosines(simplex(4, 6))), 1.0)


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"labels": jnp.zeros((20, 4), int)}, "argmax"),
        ({"labels": jnp.zeros(20)}, "whole class numbers"),
        ({"labels": jnp.full(20, 7)}, "between 0 and 3"),
        ({"labels": jnp.zeros(20, int)}, r"no example of class \[1, 2, 3\]"),
        ({"classifier": jnp.ones((4, 3))}, "expected features"),
        ({"bias": jnp.ones(3)}, "bias"),
        ({"labels": jnp.zeros(20, int), "classifier": jnp.ones((1, 7))}, "at least two classes"),
    ],
)
def test_bad_input_is_one_sentence(change, words):
    h, y, w = example(0)
    with pytest.raises(UserError, match=words):
        collapse(**{"features": h, "labels": y, "classifier": w, **change})
