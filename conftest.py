"""Every test, and every doctest of the package, runs in float64, as the command line does."""

import jax
import pytest

pytest_plugins = ["tests.extras"]

jax.config.update("jax_enable_x64", True)


@pytest.fixture
def key():
    """A fixed random key."""
    return jax.random.key(0)
