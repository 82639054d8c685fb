"""How many threads a claim's own algebra takes."""

from collections.abc import Iterator
from contextlib import contextmanager

from threadpoolctl import ThreadpoolController


@contextmanager
def one_thread() -> Iterator[None]:
    """Run what is inside with one thread of BLAS, so that numbers do not depend on how many cores there are.

    Claims multiply small matrices, and several run at once. Threads of BLAS wait actively for each other: two of them
    on two cores that others use too took up to three times the CPU-seconds of one.
    """
    with ThreadpoolController().limit(limits=1, user_api="blas"):
        yield
