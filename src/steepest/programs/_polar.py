"""Polars: how much the best new unit would gain, the certificate of networks of parallel units."""

from typing import NamedTuple

import numpy as np
from jaxtyping import Float

from steepest.core.errors import UserError
from steepest.core.signatures import checked
from steepest.nn.types import Values
from steepest.programs._neurons import neuron_edges


class Polar(NamedTuple):
    """The largest correlation of a residual with a unit of norm one.

    Attributes:
        value: ``max_u |⟨r, unit(u)⟩|``.
        direction: the u where it is reached: of neurons ``(2,)``, of rank-one matrices the pair ``(left, right)``.
        sign: of the correlation there.
    """

    value: float
    direction: np.ndarray | tuple[np.ndarray, np.ndarray]
    sign: float


@checked
def polar(residual: Float[Values, " n"], x: Float[Values, "n 2"]) -> Polar:
    """Return ``max_{‖u‖ = 1} |Σ_i r_i relu(⟨u, x_i⟩)|`` for inputs in the plane, exactly.

    A two-layer network that minimizes ``½‖f − y‖² + (λ/2)(‖W‖² + ‖v‖²)`` among those of its width is a minimum over
    all widths if and only if the polar of ``y − f`` is at most λ. In more dimensions than two the maximum is hard to
    find in general (NP-hard); along the arcs of a circle it is a sinusoid.

    Args:
        residual: r = y − f, shape ``(n,)``.
        x: inputs in the plane, shape ``(n, 2)``.

    Raises:
        UserError: inputs that are not in the plane, shapes that do not match, entries that are not finite.

    Source: Haeffele and Vidal 2015, 2017; Vidal's talk of 2024.

    >>> best = polar([1.0, -2.0], [[3.0, 4.0], [-1.0, 0.0]])
    >>> round(best.value, 6), best.direction.round(6).tolist()
    (5.0, [0.6, 0.8])
    """
    edges, directions = neuron_edges(x, residual)
    best = int(np.abs(edges).argmax())
    return Polar(float(abs(edges[best])), directions[best], float(np.sign(edges[best])))


@checked
def matrix_polar(residual: Float[Values, "m n"]) -> Polar:
    """Return ``max_{‖a‖ = ‖b‖ = 1} aᵀ E b``, the largest singular value, with its pair.

    Columns of a factorization ``UVᵀ`` are the units; ``½‖Y − UVᵀ‖² + (λ/2)(‖U‖² + ‖V‖²)`` at a minimum among its
    number of columns is minimal over all if and only if the polar of ``Y − UVᵀ`` is at most λ.

    Raises:
        UserError: not a matrix, or entries that are not finite.

    Source: Haeffele and Vidal 2015; Srebro, Rennie and Jaakkola 2005.

    >>> matrix_polar([[0.0, -3.0], [1.0, 0.0]]).value
    3.0
    """
    e = np.asarray(residual, float)
    if e.ndim != 2 or e.size == 0 or not np.isfinite(e).all():
        raise UserError(
            f"polar of a matrix: expected a matrix of finite numbers, got shape {e.shape}; a vector has no pairs"
        )
    left, values, right = np.linalg.svd(e, full_matrices=False)
    return Polar(float(values[0]), (left[:, 0], right[0]), 1.0)
