"""Every test runs in float64, as the command line does."""

import jax
import pytest

jax.config.update("jax_enable_x64", True)


@pytest.fixture
def key():
    """A fixed random key."""
    return jax.random.key(0)
