"""The count sketch: its mean and variance over seeds beside closed forms, and the same hash in every framework."""

import jax.numpy as jnp
import numpy as np
import pytest
import torch

from steepest.measurement.attribution._sketch import Sketch, hashed

SEEDS = 6000
SIZE = 200
DIMENSION = 16


def gradients(count=3, size=SIZE):
    rng = np.random.default_rng(0)
    return rng.normal(size=(count, size)) * rng.exponential(size=size)  # of unequal sizes


def in_numpy(rows, sketch):
    """The sketch by its definition, entry by entry."""
    place, odd = hashed(np.arange(rows.shape[1]), sketch.words().tolist(), int)
    sums = np.zeros((len(rows), sketch.dimension))
    for j in range(rows.shape[1]):
        sums[:, place[j] % sketch.dimension] += rows[:, j] * (-1) ** odd[j]
    return sums


def products_over_seeds(rows):
    products = []
    for seed in range(SEEDS):
        kept = Sketch(DIMENSION, seed).of_torch([torch.tensor(rows)]).numpy()
        products.append(kept @ kept.T)
    return np.array(products)


def test_products_have_the_mean_and_the_variance_that_are_said():
    rows = gradients()
    over_seeds = products_over_seeds(rows)
    products = rows @ rows.T
    squares = (rows**2).sum(1)
    variance = np.outer(squares, squares) + products**2 - 2 * (rows**2) @ (rows**2).T
    variance /= DIMENSION
    deviations = (over_seeds.mean(0) - products) / np.sqrt(variance / SEEDS)
    assert np.abs(deviations).max() < 4
    # the variance of a sample's variance, by the sample's own fourth moment
    fourth = ((over_seeds - products) ** 2).var(0)
    assert (np.abs(over_seeds.var(0) - variance) < 4 * np.sqrt(fourth / SEEDS)).all()


@pytest.mark.parametrize("cuts", [(), (1,), (30, 31, 150)])
def test_jax_torch_and_the_definition_agree_however_the_weights_are_cut(cuts):
    rows = gradients()
    sketch = Sketch(DIMENSION, seed=5)
    expected = in_numpy(rows, sketch)
    leaves = [torch.tensor(part) for part in np.split(rows, cuts, axis=1)]
    np.testing.assert_allclose(sketch.of_torch(leaves).numpy(), expected, atol=1e-12)
    single = sketch.of_jax(jnp.asarray(rows, jnp.float32), sketch.words())
    np.testing.assert_allclose(np.asarray(single), expected, atol=1e-5)


def test_places_and_signs_are_even_and_independent():
    place, odd = hashed(np.arange(100_000), Sketch(8, 3).words().tolist(), int)
    counts = np.histogram2d(place % 8, odd, bins=(8, 2))[0].ravel()
    chi_square = ((counts - 6250) ** 2 / 6250).sum()
    assert chi_square < 15 + 4 * np.sqrt(30)


def test_other_seeds_are_other_sketches():
    rows = [torch.tensor(gradients())]
    assert not torch.equal(Sketch(8, 1, 0).of_torch(rows), Sketch(8, 1, 1).of_torch(rows))
    assert not torch.equal(Sketch(8, 0).of_torch(rows), Sketch(8, 1).of_torch(rows))
    assert torch.equal(Sketch(8, 1).of_torch(rows), Sketch(8, 1).of_torch(rows))
