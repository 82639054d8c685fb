"""Every test, and every doctest of the package, runs in float64, as the command line does."""

import os

# Several processes test at a time, on all processors: their pools of threads would wait for one another, spinning.
# Libraries read this when they are first imported.
for pool in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS"):
    os.environ.setdefault(pool, "1")

import jax  # noqa: E402
import pytest  # noqa: E402

pytest_plugins = ["tests.extras"]

jax.config.update("jax_enable_x64", True)


@pytest.fixture
def key():
    """A fixed random key."""
    return jax.random.key(0)
