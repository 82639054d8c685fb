"""Parities: the cube by enumeration, correlations, noise."""

import itertools

import jax
import numpy as np
import pytest

from steepest.core.errors import UserError
from steepest.nn.data import parity

KEY = jax.random.key(0)


def test_the_cube_has_every_point_once_with_its_product():
    data = parity(KEY, 4, 3)
    signs = np.asarray(data.x) * 2
    points = {tuple(point) for point in signs.tolist()}
    assert points == set(itertools.product((-1.0, 1.0), repeat=4))
    np.testing.assert_array_equal(data.y, signs[:, 0] * signs[:, 1] * signs[:, 2])
    np.testing.assert_allclose(np.linalg.norm(data.x, axis=1), 1, rtol=1e-6)


def test_nothing_of_lower_degree_is_correlated():
    data = parity(KEY, 5, 2)
    signs = np.sign(np.asarray(data.x))
    for size in range(5):
        for subset in itertools.combinations(range(5), size):
            mean = (np.asarray(data.y) * signs[:, list(subset)].prod(1)).mean()
            assert mean == (1.0 if subset == (0, 1) else 0.0)


def test_drawn_points_and_flips():
    data = parity(KEY, 6, 2, examples=4000, flip=0.1)
    signs = np.sign(np.asarray(data.x))
    wrong = np.asarray(data.y) != signs[:, 0] * signs[:, 1]
    np.testing.assert_array_equal(wrong, data.known["flipped"])
    assert abs(wrong.mean() - 0.1) < 4 * np.sqrt(0.09 / 4000)
    assert abs(signs.mean(0)).max() < 4 / np.sqrt(4000)


@pytest.mark.parametrize(
    ("arguments", "options", "words"),
    [
        ((2, 3), {}, "at most n = 2 bits"),
        ((21, 2), {}, "at most 20 coordinates"),
        ((3, 2), {"flip": 1.5}, "a probability"),
        ((3, 0), {}, "bits must be positive"),
    ],
)
def test_bad_input_is_one_sentence(arguments, options, words):
    with pytest.raises(UserError, match=words):
        parity(KEY, *arguments, **options)
