"""In which precision JAX computes, whatever the device."""

from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def arithmetic(*, double: bool) -> Iterator[None]:
    """Compute in double or single precision inside a ``with``, in this thread; the caller's setting comes back.

    Products of matrices have the precision of their entries. JAX's own default rounds single precision to 10 or 7
    bits there on accelerators (TF32, bfloat16), far above the errors that our checks state; the CPU never does.

    Args:
        double: float64 rather than float32.

    >>> import jax.numpy as jnp
    >>> with arithmetic(double=False):
    ...     jnp.ones(1).dtype.name
    'float32'
    """
    import jax

    with jax.enable_x64(double), jax.default_matmul_precision("highest"):
        yield
