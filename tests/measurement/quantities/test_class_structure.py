"""Class structure of features and errors: dense oracles, identities, what random classes explain."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from steepest.core.errors import UserError
from steepest.measurement.quantities import (
    Rows,
    error_parts,
    error_rows,
    explained,
    explained_of_rows,
    feature_parts,
    feature_rows,
    softmax,
    three_levels,
)


def example(seed=0, n=24, classes=4, q=6):
    rng = np.random.default_rng(seed)
    return rng.normal(size=(n, q)), np.r_[:classes, rng.integers(0, classes, n - classes)], rng


def test_features_split_as_they_are_written():
    h, y, _ = example()
    parts = feature_parts(jnp.array(h), jnp.array(y), 4)
    means = np.stack([h[y == c].mean(0) for c in range(4)])
    within = np.mean([np.cov(h[y == c].T, bias=True) for c in range(4)], axis=0)
    assert np.allclose(parts.between, np.cov(means.T, bias=True), atol=1e-12)
    assert np.allclose(parts.within, within, atol=1e-12)
    raw = feature_parts(jnp.array(h), jnp.array(y), 4, centred=False)
    second = np.mean([h[y == c].T @ h[y == c] / (y == c).sum() for c in range(4)], axis=0)
    assert np.allclose(raw.between + raw.within, second, atol=1e-12)


def test_errors_split_as_they_are_written():
    _, y, rng = example(1)
    delta = rng.normal(size=(24, 4, 5))
    w = rng.random((24, 4))
    parts = error_parts(*map(jnp.array, (delta, w, y)))
    whole = np.einsum("nc,nca,ncb->ab", w, delta, delta)
    assert np.abs(sum(parts) - whole).max() < 1e-12
    classes = np.zeros((5, 5))
    for c in range(4):
        inside = y == c
        others = np.arange(4) != c
        weight = w[inside][:, others].sum()
        mean = np.einsum("nc,ncq->q", w[inside][:, others], delta[inside][:, others]) / weight
        classes += weight * np.outer(mean, mean)
    assert np.abs(parts.classes - classes).max() < 1e-12


def test_wrong_means_do_not_add_up():
    """Errors split by other labels than their own still add up, but not with the class part of the right ones."""
    _, y, rng = example(2)
    delta = rng.normal(size=(24, 4, 5))
    w = rng.random((24, 4))
    right, wrong = (error_parts(*map(jnp.array, (delta, w, each))) for each in (y, (y + 1) % 4))
    whole = np.einsum("nc,nca,ncb->ab", w, delta, delta)
    assert np.abs(right.classes + wrong.cross + wrong.within + wrong.own - whole).max() > 1e-3


def test_last_layer_errors_are_the_levels_of_its_biases():
    """With f = b the errors are p − e_c', and their parts those of the Gauss–Newton matrix of the biases."""
    _, y, rng = example(3)
    outputs = jnp.array(rng.normal(size=(24, 4)))
    p = softmax(outputs)
    parts = error_parts(p[:, None] - jnp.eye(4), p / 24, jnp.array(y))
    levels = three_levels(lambda u: u.sum(0), outputs, jnp.array(y))
    assert np.allclose(parts.classes, levels.classes.T @ levels.classes, atol=1e-12)
    assert np.allclose(parts.cross, levels.cross.T @ levels.cross, atol=1e-12)


def test_explained_is_one_for_collapsed_and_small_for_random_classes():
    rng = np.random.default_rng(4)
    y = np.repeat(np.arange(5), 100)
    means = rng.normal(size=(5, 8))
    split = jax.jit(lambda h, y: feature_parts(h, y, 5))
    share = lambda h, y: (lambda parts: explained(parts, parts[:1], 4))(split(h, y))
    assert np.isclose(share(jnp.array(means[y]), jnp.array(y)), 1.0)
    noisy = jnp.array(means[y] + 0.5 * rng.normal(size=(500, 8)))
    random = np.array([share(noisy, jnp.array(rng.permutation(y))) for _ in range(50)])
    assert share(noisy, jnp.array(y)) > 0.6
    # the between-class share of random classes is about (C − 1)/(n − 1)
    assert abs(random.mean() - 4 / 499) < 4 * random.std() / np.sqrt(50) + 1e-3


def test_bad_shapes_are_one_sentence():
    with pytest.raises(UserError, match="features"):
        feature_parts(jnp.ones((3, 2)), jnp.zeros(4, int), 2)
    with pytest.raises(UserError, match="errors"):
        error_parts(jnp.ones((3, 2)), jnp.ones((3, 2)), jnp.zeros(3, int))


@pytest.mark.parametrize("q", [3, 6, 200])
def test_rows_give_the_shares_of_the_parts(q):
    """Both Gram matrices, and a layer narrower than C − 1 eigenvalues need, against q × q eigenpairs."""
    h, y, rng = example(3, q=q)
    delta = rng.normal(size=(24, 4, q))
    w = rng.random((24, 4))
    for groups in (y, rng.permutation(y)):
        top = min(3, q)
        of_features = [np.asarray(a) for a in feature_parts(jnp.array(h), jnp.array(groups), 4)]
        expected = explained(of_features, of_features[:1], top)
        assert explained_of_rows(feature_rows(h, groups, 4), 3) == pytest.approx(expected, rel=1e-9)
        of_errors = [np.asarray(a) for a in error_parts(*map(jnp.array, (delta, w, groups)))]
        expected = explained(of_errors, of_errors[:2], top)
        assert explained_of_rows(error_rows(delta, w, groups), 3) == pytest.approx(
            expected, rel=1e-9
        )


def test_large_ones_are_resolved_by_lanczos():
    rng = np.random.default_rng(4)
    x = rng.normal(size=(450, 5)) @ rng.normal(size=(5, 420)) + 0.3 * rng.normal(size=(450, 420))
    _, lengths, directions = np.linalg.svd(x)
    expected = ((x[:7] @ directions[:4].T) ** 2).sum() / (lengths[:4] ** 2).sum()
    assert explained_of_rows(Rows(x, 7), 4) == pytest.approx(expected, rel=1e-6)
