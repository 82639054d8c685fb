"""One thread for the algebra beside the products."""

from collections.abc import Callable
from functools import cache, wraps
from typing import ParamSpec, TypeVar

from threadpoolctl import ThreadpoolController

Given = ParamSpec("Given")
Found = TypeVar("Found")


def sequential(function: Callable[Given, Found]) -> Callable[Given, Found]:
    """Run the function with one thread of BLAS.

    Threads of BLAS wait actively, and so do those with which torch and JAX compute products. Taking turns after every
    product, on cores that others use too, they cost thousands of times what the small algebra of a Krylov space saves.
    """

    @wraps(function)
    def run(*args: Given.args, **options: Given.kwargs) -> Found:
        with _pools().limit(limits=1, user_api="blas"):
            return function(*args, **options)

    return run


@cache
def _pools() -> ThreadpoolController:
    return ThreadpoolController()
