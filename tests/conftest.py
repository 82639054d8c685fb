"""What holds for every test."""

import jax
import pytest


@pytest.fixture(scope="module", autouse=True)
def forget_compiled_programs():
    """Frees the compiled programs after each file.

    Every one keeps some memory maps, and the kernel allows a process 65 530 of them: a suite that compiles thousands
    of programs would end in a segmentation fault of the compiler.
    """
    yield
    jax.clear_caches()
