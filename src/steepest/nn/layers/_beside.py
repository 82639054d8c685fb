"""What is given beside inputs: which of their positions exist, and graphs that differ from input to input."""

import math
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from steepest.core.errors import UserError
from steepest.core.given import numbers, shape_of, traced

NOT_READ = (
    "this network reads no graphs; leave graphs out, or build it with aggregate() without a matrix"
)


class Beside(NamedTuple):
    """What is given beside one set of inputs, as arrays of NumPy or JAX.

    Attributes:
        mask: which positions exist, shape ``(n, *space)``; None where all do.
        graphs: matrices of ``aggregate()``, shape ``(n, P, P)``, entry (p, q) the weight of position q in output p;
            None where no layer reads them.
    """

    mask: Any = None
    graphs: Any = None


NOTHING = Beside()
Besides = tuple[Beside, Beside]
"""What is given beside the first inputs and beside a second set; of checked ones both have a mask, or none."""
ALONE = (NOTHING, NOTHING)


def is_masked(besides: Besides) -> bool:
    """Tell whether there is a mask beside either set of inputs."""
    return any(beside.mask is not None for beside in besides)


def need_second(other: Any, beside: Beside) -> None:
    """Raise a UserError where something is given beside a second set of inputs that is not."""
    for name, array in zip(("mask", "graphs"), beside, strict=True):
        if other is None and array is not None:
            raise UserError(
                f"other_{name} is beside a second set of inputs; give other too, or {name} alone"
            )


def beside_both(besides: Besides) -> Beside:
    """Join what is given beside two sets of inputs, one behind the other."""
    first, second = besides
    joined = lambda here, there: None if here is None else np.concatenate([here, there])
    return Beside(joined(first.mask, second.mask), joined(first.graphs, second.graphs))


def one_size(sizes: frozenset[int]) -> int | None:
    """Return the number of positions of all graphs that a network reads; None where it reads none.

    Raises:
        UserError: layers that read graphs of different sizes.
    """
    if len(sizes) > 1:
        raise UserError(
            f"one graph beside each input serves layers with equally many positions, got {sorted(sizes)}; "
            "put every aggregate() without a matrix behind the same pools and strides"
        )
    return next(iter(sizes), None)


def as_graphs(graphs: Any, sizes: frozenset[int], batch: tuple[int, ...], xp: Any) -> Any:
    """Return checked graphs ``(n, P, P)``, in JAX or NumPy; None where a network reads none.

    Args:
        graphs: as they were given: one for each input, ``(*batch, P, P)``, or one for all, ``(P, P)``.
        sizes: numbers of positions P of the graphs that the network reads.
        batch: numbers of inputs.
        xp: ``jax.numpy`` or ``numpy``.

    Raises:
        UserError: graphs that are not read, or that are missing; another shape; what is no finite real number.
    """
    size = one_size(sizes)
    if size is None and graphs is None:
        return None
    if size is None:
        raise UserError(NOT_READ)
    shape = (*batch, size, size)
    if graphs is None:
        raise UserError(
            f"this network reads a graph beside each input; give graphs of shape {shape}, weights of position q in "
            "output p"
        )
    if shape_of(graphs) not in (shape, (size, size)):
        raise UserError(
            f"graphs are matrices of positions, one for each input or one for all, shape {shape} or {(size, size)}, "
            f"got {shape_of(graphs)}; adjacency(edges, {size}) makes them of lists of edges"
        )
    weights = xp.asarray(numbers("graphs", graphs), float)
    has_numbers = not any(map(traced, jax.tree.leaves(graphs)))
    if has_numbers and not np.isfinite(np.asarray(graphs, float)).all():
        raise UserError("graphs must be finite; give the weight 0 to positions without an edge")
    return xp.broadcast_to(weights, shape).reshape(math.prod(batch), size, size)


def floats_of(weights: Any, x: Any) -> Any:
    """Return weights of positions in the precision of a signal, or as floats where it has whole numbers."""
    return jnp.asarray(weights, jnp.result_type(x.dtype, float))
