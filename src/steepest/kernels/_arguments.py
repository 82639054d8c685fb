"""What callers gave, checked: every refusal is a sentence with what was expected, what came and what to try."""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from numpy.typing import NDArray

from steepest.core.errors import UserError
from steepest.core.given import key as random_key
from steepest.core.given import traced
from steepest.nn.layers import WideLimit
from steepest.nn.networks import Limit
from steepest.nn.types import Network


def as_floats(name: str, x: Any) -> NDArray:
    """Return an array of float32 or float64.

    Raises:
        UserError: complex numbers, or what is no array of numbers.
    """
    if hasattr(x, "nngp"):
        raise UserError(f"{name} must be one array, got both kernels of gram; give .nngp or .ntk")
    try:
        x = np.asarray(x)
        if x.dtype.kind in "US" or (x.dtype == object and None in x.ravel().tolist()):
            raise TypeError(f"got {_kind(x)}")
        if x.dtype.kind != "c":
            return x if x.dtype in (np.float32, np.float64) else x.astype(np.float64)
    except (
        TypeError,
        ValueError,
        RuntimeError,
    ) as trouble:  # torch's where a gradient is asked for
        raise UserError(f"{name} must be an array of real numbers: {trouble}") from None
    raise UserError(
        f"{name} must be real, got {x.dtype}; give real and imaginary parts as two columns, or the modulus"
    )


def as_number(name: str, value: Any, least: float = -np.inf, *, above: bool = False) -> float:
    """Return a finite real number of at least ``least``, or above it.

    Raises:
        UserError: anything else.
    """
    wanted = "" if least == -np.inf else f" {'>' if above else '≥'} {least:g}"
    try:
        number = as_floats(name, value)
    except UserError:
        number = np.array([])
    if (
        number.shape != ()
        or not np.isfinite(number)
        or number < least
        or (above and number == least)
    ):
        kind = "positive and finite" if above and least == 0 else f"a finite number{wanted}"
        raise UserError(f"{name} must be {kind}, got {_shown(value)}")
    return float(number)


def as_count(name: str, value: Any, least: int) -> int:
    """Return a whole number of at least ``least``."""
    number = as_number(name, value, least)
    if number != int(number):
        raise UserError(f"{name} must be a whole number ≥ {least}, got {value}")
    return int(number)


REFUSED = 0.75  # power of the precision's range up to which the squares of norms are taken


def beyond_range(rows: NDArray, power: float = REFUSED) -> NDArray[np.bool_]:
    """Mark rows the mean of whose squares is beyond this power of the range of the precision."""
    numbers = np.finfo(rows.dtype)
    least = float(numbers.tiny) ** power
    most = float(numbers.max) ** power
    with np.errstate(over="ignore", under="ignore"):
        sizes = np.einsum("nd,nd->n", rows, rows, dtype=np.float64) / rows.shape[1]
    return (sizes > most) | ((sizes < least) & rows.any(1))


def check_range(rows: NDArray) -> None:
    """Raise a UserError where the square of a norm, or a few layers' multiple of it, has no digits or is infinite."""
    bad = beyond_range(rows)
    if bad.any():
        which = int(np.argmax(bad))
        largest = float(np.abs(rows[which]).max())
        finer = ", or take float64" if rows.dtype == np.float32 and 1e-100 < largest < 1e100 else ""
        raise UserError(
            f"row {which} of the inputs has entries up to {largest:.3g}, whose squares {rows.dtype} does not hold with "
            f"all digits; scale all inputs by one number{finer} (without biases, relu and powers are scaled for you)"
        )


def as_variances(name: str, value: Any) -> jax.Array:
    """Return variances, finite and ≥ 0, as an array of JAX; of what is traced nothing is known."""
    if traced(value):
        return jnp.asarray(value, float)
    numbers = as_floats(name, value)
    if not (np.isfinite(numbers).all() and (numbers >= 0).all()):
        raise UserError(f"{name} must be finite and ≥ 0, got {_shown(value)}")
    return jnp.asarray(value, float)


def check_limit_given(limit: Any, *, traces: bool = False) -> None:
    """Raise a UserError unless this is the limit of a network, whose numbers JAX does not trace, or may."""
    if isinstance(limit, (Limit, WideLimit)):
        if not traces and any(map(traced, jax.tree.leaves(limit))):
            raise UserError(
                "JAX traces coefficients of this limit, as by grad, jit or vmap; gram and kernel_function take it, and "
                "for others make the limit of known numbers"
            )
        return
    hint = "call its limit()" if isinstance(limit, Network) else "make one by mlp(...).limit()"
    raise UserError(f"expected the limit of a network, got {_shown(limit)}; {hint}")


def check_key(key: Any) -> None:
    """Raise a UserError unless this is a random key of JAX."""
    random_key("key", key)


def check_apply(network: Any) -> None:
    """Raise a UserError unless this maps parameters and inputs to outputs."""
    if not (isinstance(network, Network) or callable(network)):
        raise UserError(
            f"expected a network, or a function of parameters and inputs, got {_shown(network)}"
        )


def _shown(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= 60 and "\n" not in text else f"{_kind(value)}"


def _kind(value: Any) -> str:
    shape = f" of shape {np.shape(value)}" if isinstance(value, (np.ndarray, jax.Array)) else ""
    return type(value).__name__ + shape
