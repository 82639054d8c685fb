"""Synthetic data against what is promised of them by construction."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from steepest.core.errors import UserError
from steepest.nn.data import (
    Dataset,
    chebyshev,
    clusters,
    orthogonal_clusters,
    orthogonal_separability,
    orthogonally_separable,
    relabel,
    separable,
    sparse_regression,
)
from steepest.programs import hard_margin

seeds = st.integers(0, 2**31 - 1)
# few shapes, many keys: JAX compiles every shape anew
shapes = st.sampled_from([(1, 2), (12, 3)])

MAKERS = {
    "separable": lambda key: separable(key, 12, 3),
    "clusters": lambda key: clusters(key, 12, 3, 4),
    "orthogonally_separable": lambda key: orthogonally_separable(key, 12, 3),
    "sparse_regression": lambda key: sparse_regression(key, 12, 8, 3, noise=0.1),
    "relabel": lambda key: relabel(key, separable(jax.random.key(1), 12, 3), 0.5),
}


@pytest.mark.parametrize("maker", MAKERS)
def test_the_key_decides_every_bit(maker, key):
    one, again, other = (MAKERS[maker](k) for k in (key, key, jax.random.key(5)))
    assert one.x.tobytes() == again.x.tobytes()
    assert one.y.tobytes() == again.y.tobytes()
    changed = one.y if maker == "relabel" else one.x
    assert changed.tobytes() != (other.y if maker == "relabel" else other.x).tobytes()


@pytest.mark.parametrize("maker", MAKERS)
def test_sizes_and_names(maker, key):
    data = MAKERS[maker](key)
    assert isinstance(data, Dataset)
    assert (data.n, data.d) == data.x.shape
    assert data.n == 12
    assert len(data.y) == 12
    assert data.name
    assert jnp.isfinite(data.x).all()
    assert jnp.isfinite(data.y).all()


# -------------------------------------------------------------------------------------------- separable


@given(seeds, shapes, st.floats(0.01, 3.0))
@settings(max_examples=20, deadline=None)
def test_every_point_keeps_the_margin(seed, shape, margin):
    data = separable(jax.random.key(seed), *shape, margin)
    w = data.known["separator"]
    assert jnp.linalg.norm(w) == pytest.approx(1.0, rel=1e-12)
    assert (data.y * (data.x @ w)).min() >= margin - 1e-12
    assert set(np.asarray(data.y)) <= {-1.0, 1.0}
    assert data.known["margin_at_least"] == margin


@pytest.mark.parametrize("margin", [0.1, 1.0])
def test_the_convex_program_finds_at_least_the_margin(key, margin):
    data = separable(key, 12, 3, margin)
    assert hard_margin(data.x, data.y).margin >= margin * (1 - 1e-6)


# --------------------------------------------------------------------------------------------- clusters


def test_clusters_have_unit_means_and_the_asked_spread(key):
    data = clusters(key, n=4000, d=5, classes=4, spread=0.3)
    means = data.known["means"]
    label = np.argmax(data.y, axis=1)
    np.testing.assert_allclose(jnp.linalg.norm(means, axis=1), 1.0, rtol=1e-12)
    np.testing.assert_array_equal(np.bincount(label), 1000)
    for c in range(4):
        z = (np.asarray(data.x)[label == c].mean(0) - means[c]) / (0.3 / np.sqrt(1000))
        assert np.abs(z).max() <= 4
    noise = (np.asarray(data.x) - np.asarray(means)[label]) / 0.3
    assert abs((noise**2).mean() - 1) <= 4 * np.sqrt(2 / noise.size)


@pytest.mark.parametrize(("n", "classes"), [(2, 5), (12, 4), (13, 4)])
def test_classes_are_as_equal_as_possible(key, n, classes):
    counts = clusters(key, n, 3, classes).y.sum(0)
    assert counts.shape == (classes,)
    assert counts.sum() == n
    assert counts.max() - counts.min() <= 1


def test_clusters_without_spread_are_their_means(key):
    data = clusters(key, 12, 3, 4, spread=0.0)
    np.testing.assert_allclose(data.x, data.y @ data.known["means"], rtol=1e-14)


# ------------------------------------------------------------------------------- orthogonally separable


def smallest_by_hand(x, y):
    x = np.asarray(x)
    y = np.asarray(y)
    cosine = lambda a, b: a @ b / np.sqrt((a @ a) * (b @ b))
    return min(y[i] * y[j] * cosine(x[i], x[j]) for i in range(len(x)) for j in range(len(x)))


@given(seeds, shapes, st.floats(0.01, 0.99))
@settings(max_examples=20, deadline=None)
def test_every_pair_is_as_separable_as_asked(seed, shape, mu):
    data = orthogonally_separable(jax.random.key(seed), *shape, mu)
    assert data.known["mu"] >= mu - 1e-12
    assert data.known["mu"] == pytest.approx(smallest_by_hand(data.x, data.y), abs=1e-12)
    assert abs(data.y.sum()) <= 1
    length = np.linalg.norm(data.x, axis=1)
    assert 0.5 - 1e-12 <= length.min() <= length.max() <= 1.5 + 1e-12


def test_the_separability_of_known_sets():
    x = jnp.array([[1.0, 0.0], [2.0, 2.0], [0.0, -3.0]])
    assert orthogonal_separability(x, jnp.array([1.0, 1.0, -1.0])) == pytest.approx(0.0, abs=1e-15)
    assert orthogonal_separability(x, jnp.array([1.0, 1.0, 1.0])) == pytest.approx(
        -np.sqrt(0.5), rel=1e-12
    )
    assert orthogonal_separability(x[:2], jnp.ones(2)) == pytest.approx(np.sqrt(0.5), rel=1e-12)


# ------------------------------------------------------------------------------------ sparse regression


@given(seeds, st.sampled_from([(1, 1), (8, 1), (8, 3), (8, 8)]))
@settings(max_examples=15, deadline=None)
def test_the_coefficients_are_as_sparse_as_asked(seed, sizes):
    d, nonzero = sizes
    data = sparse_regression(jax.random.key(seed), 12, d, nonzero)
    beta = np.asarray(data.known["beta"])
    assert (beta != 0).sum() == nonzero
    assert set(np.abs(beta)) <= {0.0, 1.0}
    np.testing.assert_allclose(data.y, np.asarray(data.x) @ beta, rtol=1e-10, atol=1e-12)


def test_the_noise_has_the_asked_size(key):
    data = sparse_regression(key, 5000, 4, 2, noise=0.2)
    noise = np.asarray(data.y - data.x @ data.known["beta"]) / 0.2
    assert abs(noise.mean()) <= 4 / np.sqrt(noise.size)
    assert abs((noise**2).mean() - 1) <= 4 * np.sqrt(2 / noise.size)


def test_places_and_signs_are_fair():
    betas = np.stack(
        [sparse_regression(jax.random.key(s), 1, 4, 1).known["beta"] for s in range(200)]
    )
    assert np.abs((betas != 0).sum(0) - 50).max() <= 4 * np.sqrt(200 * 0.25 * 0.75)
    assert abs(betas.sum()) <= 4 * np.sqrt(200)


# -------------------------------------------------------------------------------------------- Chebyshev


@pytest.mark.parametrize("n", [1, 2, 20])
@pytest.mark.parametrize("degree", [0, 1, 2, 5, 12])
def test_chebyshev_is_numpys(n, degree):
    data = chebyshev(n, degree)
    x = np.linspace(-1, 1, n)
    np.testing.assert_allclose(data.x[:, 0], x, rtol=1e-15, atol=1e-15)
    expected = np.polynomial.chebyshev.Chebyshev.basis(degree)(x)
    np.testing.assert_allclose(data.y[:, 0], expected, rtol=1e-10, atol=1e-12)
    assert data.x.shape == data.y.shape == (n, 1)


# ---------------------------------------------------------------------------------------------- relabel


@given(seeds, st.sampled_from([1, 12]))
@settings(max_examples=15, deadline=None)
def test_relabelling_everything_permutes_the_targets(seed, n):
    data = clusters(jax.random.key(seed), n, 3, 4)
    noisy = relabel(jax.random.key(seed + 1), data)
    assert noisy.known["noisy"].all()
    np.testing.assert_array_equal(noisy.y.sum(0), data.y.sum(0))
    np.testing.assert_array_equal(noisy.x, data.x)


@pytest.mark.parametrize("one_hot", [True, False])
def test_relabelling_nothing_changes_nothing(key, one_hot):
    data = clusters(key, 12, 3, 4) if one_hot else separable(key, 12, 3)
    same = relabel(key, data, 0.0)
    np.testing.assert_array_equal(same.y, data.y)
    assert not same.known["noisy"].any()


def test_only_marked_targets_change(key):
    data = Dataset(jnp.zeros((4000, 1)), jnp.arange(4000.0), "all different")
    some = relabel(key, data, 0.3)
    marked = np.asarray(some.known["noisy"])
    changed = np.asarray(some.y != data.y)
    assert not (changed & ~marked).any()
    assert abs(marked.mean() - 0.3) <= 4 * np.sqrt(0.3 * 0.7 / 4000)
    assert (marked & ~changed).sum() <= 8  # fixed points of a permutation: one on average
    assert set(np.asarray(some.y)) <= set(range(4000))


def test_part_of_the_labels_keeps_their_frequencies_on_average(key):
    data = separable(key, 4000, 2)
    some = relabel(jax.random.key(3), data, 0.5)
    assert abs(float(some.y.sum() - data.y.sum())) <= 4 * np.sqrt(4 * 0.5 * 4000)
    assert "50% random labels" in some.name


# -------------------------------------------------------------------------------------------- bad input


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda k: separable(k, 0, 2), "n must be positive, got 0"),
        (lambda k: separable(k, 2, -1), "d must be positive, got -1"),
        (lambda k: separable(k, 2, 2, margin=0.0), "margin must be positive"),
        (lambda k: separable(k, 2, 2, margin=float("nan")), "margin must be a number, got nan"),
        (lambda k: clusters(k, 2, 2, 0), "classes must be positive"),
        (lambda k: orthogonally_separable(k, 2, 2, mu=0.0), "mu must be positive"),
        (lambda k: orthogonally_separable(k, 2, 2, mu=1.0), "mu is a cosine and must lie in"),
        (lambda k: orthogonally_separable(k, 2, 1), "d must be"),
        (lambda k: sparse_regression(k, 2, 3, 0), "nonzero must be positive"),
        (lambda k: sparse_regression(k, 2, 3, 4), "at most d = 3 coefficients"),
        (lambda k: chebyshev(0, 1), "n must be positive"),
        (lambda k: relabel(k, separable(k, 2, 2), 1.5), "between 0 and 1, got 1.5"),
        (lambda k: relabel(k, separable(k, 2, 2), -0.1), "between 0 and 1"),
        (lambda k: relabel(k, separable(k, 2, 2), float("nan")), "fraction must be"),
    ],
)
def test_bad_input_is_refused_in_a_sentence(key, make, words):
    with pytest.raises(UserError, match=words):
        make(key)


def test_orthogonal_clusters_lie_around_orthonormal_centres(key):
    data = orthogonal_clusters(key, k=5, d=7, each=400, spread=0.2)
    centres = np.asarray(data.known["centres"])
    np.testing.assert_allclose(centres @ centres.T, np.eye(5), atol=1e-12)
    cluster = np.asarray(data.known["cluster"])
    assert np.bincount(cluster).tolist() == [400] * 5
    assert np.asarray(data.y).tolist() == np.where(cluster % 2 == 0, 1.0, -1.0).tolist()
    noise = np.asarray(data.x) - centres[cluster]
    # variance 0.04/7 in every coordinate: 14000 of them
    assert abs((noise**2).mean() * 7 / 0.04 - 1) <= 4 * np.sqrt(2 / noise.size)


@pytest.mark.parametrize(
    ("settings", "sentence"),
    [
        ({"k": 4, "d": 3, "each": 1}, "expected at most d = 3 orthogonal centres, got 4"),
        ({"k": 2, "d": 3, "each": 1, "spread": -0.1}, "expected a spread of at least 0"),
        ({"k": 0, "d": 3, "each": 1}, "k must be positive"),
    ],
)
def test_orthogonal_clusters_that_cannot_be(key, settings, sentence):
    with pytest.raises(UserError, match=sentence):
        orthogonal_clusters(key, **settings)
