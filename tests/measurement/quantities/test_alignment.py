"""Cosines of vectors with directions."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from steepest.measurement.quantities import alignment


@given(st.integers(0, 10_000), st.floats(1e-6, 1e6), st.floats(1e-6, 1e6))
@settings(max_examples=30, deadline=None)
def test_it_is_the_cosine_whatever_the_lengths(seed, one, two):
    rng = np.random.default_rng(seed)
    a = rng.normal(size=(4, 3))
    b = rng.normal(size=(4, 3))
    expected = [u @ v / np.sqrt((u @ u) * (v @ v)) for u, v in zip(a, b, strict=True)]
    np.testing.assert_allclose(alignment(one * a, two * b), expected, rtol=1e-10, atol=1e-14)
    np.testing.assert_allclose(
        alignment(-one * a, two * b), -np.array(expected), rtol=1e-10, atol=1e-14
    )
    assert np.abs(alignment(a, b)).max() <= 1 + 1e-12


def test_parallel_opposite_orthogonal_and_none():
    a = jnp.array([[3.0, 4.0], [-3.0, -4.0], [4.0, -3.0], [0.0, 0.0]])
    b = jnp.array([[6.0, 8.0]])
    np.testing.assert_allclose(alignment(a, b), [1.0, -1.0, 0.0, 0.0], atol=1e-15)
    np.testing.assert_array_equal(alignment(a, jnp.zeros((1, 2))), 0.0)


@pytest.mark.parametrize(
    ("vectors", "directions"),
    [((6, 4, 3), (6, 4, 3)), ((6, 4, 3), (6, 1, 3)), ((6, 4, 3), (1, 1, 3)), ((6, 4, 3), (1, 3))],
)
def test_directions_are_broadcast(vectors, directions):
    rng = np.random.default_rng(0)
    a = rng.normal(size=vectors)
    b = rng.normal(size=directions)
    found = alignment(a, b)
    assert found.shape == (6, 4)
    full = np.broadcast_to(b, vectors)
    for i, j in np.ndindex(6, 4):
        u = a[i, j]
        v = full[i, j]
        assert found[i, j] == pytest.approx(u @ v / np.sqrt((u @ u) * (v @ v)), rel=1e-10)


def test_rotations_change_nothing(key):
    rng = np.random.default_rng(1)
    a = rng.normal(size=(5, 3))
    b = rng.normal(size=(5, 3))
    rotation, _ = np.linalg.qr(rng.normal(size=(3, 3)))
    np.testing.assert_allclose(alignment(a @ rotation, b @ rotation), alignment(a, b), rtol=1e-10)


def test_single_precision_stays_single():
    a = jnp.array([[1e-15, 0.0]], jnp.float32)  # early alignment starts from neurons this small
    found = alignment(a, jnp.ones((1, 2), jnp.float32))
    assert found.dtype == jnp.float32
    assert found[0] == pytest.approx(0.5**0.5, rel=1e-6)
    assert jax.jit(alignment)(a, a)[0] == pytest.approx(1.0, rel=1e-6)
