"""NumPy's random numbers from a key."""

import jax
import numpy as np

from steepest.nn.draws import numpy_generator


def test_stream_is_that_of_the_keys_words():
    words = np.asarray(jax.random.key_data(jax.random.key(5)))
    expected = np.random.default_rng([int(word) for word in words]).normal(size=4)
    assert np.array_equal(numpy_generator(jax.random.key(5)).normal(size=4), expected)


def test_split_keys_draw_apart():
    left, right = jax.random.split(jax.random.key(0))
    together = np.corrcoef(
        numpy_generator(left).normal(size=4000), numpy_generator(right).normal(size=4000)
    )
    assert abs(together[0, 1]) < 4 / np.sqrt(4000)
