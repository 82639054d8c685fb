"""Inputs made for a wanted covariance in the first layer."""

import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from steepest.core.errors import UserError
from steepest.kernels._arguments import as_number


def planar_inputs(
    variance: float, c_w: float, c_b: float, *polar: tuple[float, float]
) -> Float[Array, "m 2"]:
    """Place inputs in the plane by (relative length, angle); length one has this variance in the first layer.

    Solves K^(1) = C_b + C_W ‖x‖²/2 for the length: the inverse of ``first_layer`` on the diagonal.

    Raises:
        UserError: for a variance below C_b, which no input has.

    >>> x = planar_inputs(2.0, 1.0, 0.5, (1.0, 0.0), (1.0, np.pi / 2))
    >>> (0.5 + 1.0 * x @ x.T / 2).round(6).tolist()
    [[2.0, 0.5], [0.5, 2.0]]
    """
    variance = as_number("the variance", variance, 0.0)
    c_w = as_number("c_w", c_w, 0.0, above=True)
    c_b = as_number("c_b", c_b, 0.0)
    if not variance >= c_b:
        raise UserError(
            f"no input has first-layer variance {variance} with C_b = {c_b} and C_W = {c_w}"
        )
    for place in polar:
        if np.shape(place) != (2,):
            raise UserError(f"an input is placed by (relative length, angle), got {place!r}")
    length = np.sqrt((variance - c_b) / c_w * 2)
    directions = np.array([[r * np.cos(angle), r * np.sin(angle)] for r, angle in polar])
    return jnp.asarray(length * directions)
