"""Many descents at once are the single descents."""

import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from steepest.dynamics import descend, grid, stability_threshold

RATES = (0.1, 0.5, 0.9)


def one(key, lr):
    """Descent on ½(w₁² + 3w₂²) from a random start: stable below 2/3."""
    risk = lambda w: 0.5 * jnp.sum(jnp.array([1.0, 3.0]) * w**2)
    look = {"w": lambda w: w}
    return descend(
        risk, jax.random.normal(key, (2,)), optax.sgd(lr), 60, record=20, observe=look, ceiling=1e6
    )


def test_a_grid_equals_its_single_runs(key):
    seeds = jax.random.split(key, 3)
    together = grid(one, seeds, RATES)
    assert together.risk.shape == (3, 3, 4)
    assert together.observed["w"].shape == (3, 3, 4, 2)
    alone = jax.jit(one)
    for i, seed in enumerate(seeds):
        for j, lr in enumerate(RATES):
            run = alone(seed, lr)
            for a, b in zip(jax.tree.leaves(together), jax.tree.leaves(run), strict=True):
                np.testing.assert_allclose(np.asarray(a)[i, j], b, rtol=1e-12)


def test_thresholds_of_a_grid_bracket_the_truth(key):
    rates = (0.2, 0.4, 0.6, 0.72, 0.9)
    path = grid(one, jax.random.split(key, 4), rates)
    threshold = stability_threshold(rates, path.diverged_at >= 0)
    longer = lambda key, lr: descend(
        lambda w: 1.5 * w @ w,
        jax.random.normal(key, (1,)),
        optax.sgd(lr),
        400,
        record=400,
        ceiling=1e6,
    )
    exact = stability_threshold(rates, grid(longer, jax.random.split(key, 4), rates).diverged)
    np.testing.assert_allclose(exact, 0.66, rtol=1e-12)  # midway of 0.6 and 0.72, 2/3 lies between
    assert ((threshold >= 0.6) | np.isnan(threshold)).all()


def test_any_pure_function_has_a_grid(key):
    seeds = jax.random.split(key, 2)
    found = grid(lambda key, value: {"a": value, "b": jax.random.normal(key, (3,))}, seeds, [1, 2])
    np.testing.assert_array_equal(found["a"], [[1.0, 2.0], [1.0, 2.0]])
    np.testing.assert_array_equal(
        found["b"][:, 0], found["b"][:, 1]
    )  # the key is the seed's at every value
    assert (found["b"][0] != found["b"][1]).all()


@pytest.mark.parametrize(
    ("diverged", "threshold"),
    [
        ([False, False, True, True], 3.0),
        ([False, True, True, True], 1.5),
        ([False, False, False, True], 6.0),
        ([True, True, True, True], np.nan),
        ([False, False, False, False], np.nan),
        ([False, True, False, True], 1.5),  # the first that diverges counts
        ([True, False, False, True], np.nan),
    ],
)
def test_the_threshold_lies_midway(diverged, threshold):
    found = stability_threshold((1.0, 2.0, 4.0, 8.0), np.array([diverged]))
    np.testing.assert_array_equal(found, [threshold])


@given(st.integers(2, 12), st.integers(0, 12), st.integers(1, 4))
@settings(max_examples=25, deadline=None)
def test_a_monotone_divergence_is_bracketed(count, first, seeds):
    sizes = np.geomspace(0.1, 10, count)
    lost = np.tile(np.arange(count) >= first, (seeds, 1))
    found = stability_threshold(sizes, lost)
    assert found.shape == (seeds,)
    if 0 < first < count:
        np.testing.assert_allclose(found, (sizes[first - 1] + sizes[first]) / 2, rtol=1e-12)
    else:
        assert np.isnan(found).all()
