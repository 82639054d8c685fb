"""A claim's algebra takes one thread of BLAS, and the caller's number of threads comes back."""

import numpy as np  # loads BLAS
from threadpoolctl import threadpool_info

from steepest.engine.threads import one_thread

MATRIX = np.eye(2) @ np.eye(2)


def threads():
    """Return how many threads each library of BLAS would take."""
    return [pool["num_threads"] for pool in threadpool_info() if pool["user_api"] == "blas"]


def test_one_thread_inside_and_as_before_outside():
    before = threads()
    assert before
    with one_thread():
        assert set(threads()) == {1}
    assert threads() == before
