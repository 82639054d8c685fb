"""What the infinitely wide network says of the largest stable step."""

from dataclasses import replace

import numpy as np
from jaxtyping import Float

from steepest.claims.signals._near_fit_networks import CRITICAL, Law, Shape
from steepest.kernels import gram
from steepest.nn.networks import Limit, mlp


def limit_of(shape: Shape, law: Law) -> Limit:
    """Return the infinitely wide network, with the tangent kernel of what is trained, scaled to these widths."""
    net = mlp(
        shape.widths,
        shape.sigma,
        parameterized=law.parameterization,
        c_w=CRITICAL[shape.sigma],
        bias=law.trained == "b",
    )
    limit = replace(net.limit(), name="")  # networks of one limit are one
    if law.trained == "w":
        return limit
    # training of the weights adds nothing to Θ where biases alone are trained
    return replace(limit, layers=tuple(layer._replace(t_w=0.0) for layer in limit.layers))


def steps_of_limits(x: Float[np.ndarray, "P d"], limits: list[Limit]) -> Float[np.ndarray, " n"]:
    """Return 2/λ_max(Θ/P) of every limit; each is evaluated once."""
    # descent on the mean of ½(f − y)² has the factors 1 − ηλ(Θ)/P: stable up to ηλ_max/P = 2
    tops = {limit: np.linalg.eigvalsh(gram(limit, x).ntk)[-1] for limit in set(limits)}
    return np.array([2 * len(x) / tops[limit] for limit in limits])
