"""Gram matrices of infinitely wide networks: one product of the inputs and one pass over it."""

import math
import os
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Bool, Float
from numpy.typing import NDArray

from steepest.core.errors import UserError
from steepest.core.given import traced
from steepest.kernels._arguments import as_floats, check_limit_given, check_range
from steepest.kernels.connected._direct import Direct
from steepest.kernels.connected._layers import predict_signal
from steepest.kernels.connected._tabulated import Norms, Tabulated, part, put, squares
from steepest.kernels.wide import (
    NoSeriesError,
    Positions,
    Scaled,
    behind_nodes,
    check_mask,
    degrees,
    has_series,
    is_traced,
    linear_nodes,
    nodes_of,
    scaled,
    traced_gram,
)
from steepest.nn.activations import jumps
from steepest.nn.layers import WideLimit
from steepest.nn.layers._beside import (
    ALONE,
    NOTHING,
    Beside,
    Besides,
    as_graphs,
    is_masked,
    need_second,
)
from steepest.nn.layers._masks import NO_POSITIONS, blanked
from steepest.nn.networks import Limit

LARGEST = 4e9  # bytes of the kernels between all positions that are given at once
THREADS = 8
PAIRS = (
    2**18
)  # of inputs, up to which the series of smooth activations are summed sooner than a table is made
TILE = 256  # rows of a tile: what is computed for it stays in the cache


class Gram(NamedTuple):
    """Kernels of all pairs of inputs.

    Attributes:
        nngp: covariance of the outputs at initialization, shape ``(n, m)``.
        ntk: tangent kernel, shape ``(n, m)``; NaN when σ jumps.
        error: of a table of a fully connected network its largest error, relative to √(K_αα K_ββ). To it comes the
            rounding of the dtype. Between inputs that are nearly parallel the rounding of the angle comes too, where σ
            has kinks, or is smooth and variances are far above one: 1e-8 (float64) or 3e-4 (float32). Of a network of
            layers, and of few inputs of a fully connected one with a smooth σ, the error is a bound of all of it,
            rounding too, of which kinked σ make the worst case that signals at two positions are nearly parallel in
            every layer. Behind pools, attention or matrices, where variances are means over pairs, what their errors
            change is counted to first order.
    """

    nngp: NDArray
    ntk: NDArray
    error: float


def gram(
    limit: Limit | WideLimit,
    x: Float[np.ndarray, "n ..."],
    other: Float[np.ndarray, "m ..."] | None = None,
    *,
    mask: Bool[np.ndarray, "n ..."] | None = None,
    other_mask: Bool[np.ndarray, "m ..."] | None = None,
    graphs: Float[np.ndarray, "..."] | None = None,
    other_graphs: Float[np.ndarray, "..."] | None = None,
    tile: int | None = None,
    tolerance: float | None = None,
) -> Gram:
    """Compute NNGP and NTK of an infinitely wide network between all rows of x, or between those of x and of other.

    Of a fully connected network depth and activation cost little per entry: the recursion is tabulated once as a
    function of two norms and an angle (``tabulate``), and the table is kept; a few layers with closed forms over
    unequal norms are evaluated directly, and of few inputs the series of a smooth activation. Of a network of layers
    each pair of positions runs through all layers, and only the pairs that the output depends on. The result has the
    dtype of x: float64 or float32.

    Where JAX traces the inputs or coefficients of the limit, as in ``jax.grad`` over C_W and C_b, both kernels are
    arrays of JAX in the precision that it has there, and can be differentiated. Their ``error`` is then what the series
    of activations leave, each by itself, and no bound of the whole.

    Args:
        limit: of ``mlp(...).limit()``, or of ``network(...).limit()`` of ``steepest.nn.layers``.
        x: inputs, one a row; images of the network's shape, channels last. Of an input or patch of zeros without biases
            σ' is its value at zero, as it is in finite networks.
        other: a second set; without it the matrix is symmetric and only one half is computed.
        mask: of a network of layers: which positions exist, True or False, shape ``(n, *space)``; by default all. It is
            for sequences of different length that are filled up, and for images with missing pixels, and means what
            it means to the ``apply`` of ``network``. Numbers at positions that do not exist are not read.
        other_mask: that of the second set.
        graphs: of a network with ``aggregate()`` without a matrix: weights between positions beside each input, shape
            ``(n, P, P)``, or ``(P, P)`` for all inputs; entry (p, q) is the weight of position q in output p.
        other_graphs: graphs beside the second set.
        tile: rows of the square tiles in which the matrix is computed.
        tolerance: of the table, or of each activation's expectation, relative to √(K_αα K_ββ).

    Raises:
        UserError: shapes, NaN, norms that the precision does not hold, a row of zeros where σ jumps or is normalized, a
            tolerance that cannot be met, an output that keeps its positions.

    >>> from steepest.nn.networks import mlp
    >>> net = mlp((2, 100, 100, 1), "relu", parameterized="ntk", c_w=2.0, bias=False)
    >>> gram(net.limit(), np.array([[1.0, 1.0], [1.0, -1.0]])).ntk.round(4).tolist()
    [[6.0, 1.3714], [1.3714, 6.0]]
    """
    check_limit_given(limit, traces=True)
    besides = (Beside(mask, graphs), Beside(other_mask, other_graphs))
    if is_traced(limit, x, other, graphs, other_graphs):
        need_second(other, besides[1])
        inside: Any = traced_gram(
            limit, _traced_inputs(x, limit), _traced_inputs(other, limit), besides
        )
        return Gram(*inside)
    scaling = scaling_of(limit, x, other, besides)
    x, other, besides = checked_inputs(limit, scaling.x, scaling.other, besides)
    way = evaluator(limit, x, other, tolerance, besides, once=True)
    rows = rows_of(way, x, besides[0])
    columns = rows if other is None else rows_of(way, other.astype(x.dtype), besides[1])
    shape = (len(x), columns[0].shape[-2])
    out = np.empty((2, *shape), x.dtype)
    fill(out, way, rows, columns, symmetric=other is None, tile=tile)
    check_finite(out[0])
    k, theta = (scaling.back(kernel, -1) for kernel in out)
    return Gram(k, theta, way.error)


def check_finite(kernel: NDArray) -> None:
    """Raise a UserError where signals have outgrown the precision on their way through the layers."""
    with np.errstate(over="ignore", invalid="ignore"):
        total = kernel.sum()  # one pass: entries are looked at if it is not finite
    if not np.isfinite(total) and not np.isfinite(kernel).all():
        raise UserError(
            f"kernels of these inputs are beyond {kernel.dtype}: signals grow too much from layer to layer; use a "
            "smaller c_w, smaller inputs or float64"
        )


class Scaling(NamedTuple):
    """Inputs as kernels are computed of them, and how kernels are scaled back.

    Attributes:
        x: the first inputs.
        other: a second set.
        scaled: by which powers; None where nothing was scaled.
        degrees: in which kernels behind each node are homogeneous.
    """

    x: Any
    other: Any
    scaled: Scaled | None
    degrees: list[int | None]

    def back(self, kernel: NDArray, node: int) -> NDArray:
        """Return kernels of the inputs as they were, behind a node."""
        degree = self.degrees[node]
        if self.scaled is None or degree is None:
            return kernel
        return self.scaled.back(kernel, degree)


def scaling_of(limit: Limit | WideLimit, x: Any, other: Any, besides: Besides) -> Scaling:
    """Return the inputs with norms that the precision holds, where kernels may be scaled back; else as they are."""
    check_limit_given(limit)
    wide = nodes_of(limit) if isinstance(limit, Limit) else limit
    behind = degrees(wide)
    first = _scalable(as_floats("inputs", x), besides[0].mask)
    second = None if other is None else _scalable(as_floats("inputs", other), besides[1].mask)
    as_given = Scaling(x, other, None, behind)
    if behind[-1] is None or first is None or (second is None and other is not None):
        return as_given
    both = scaled(first, second)
    return Scaling(both.x, both.other, both, behind) if both.moved else as_given


def _scalable(x: NDArray, mask: Any) -> NDArray | None:
    """Return inputs with zeros where no position exists; None of inputs that checks will refuse."""
    if x.ndim < 2 or not x.size:
        return None
    if mask is not None:
        mask = np.asarray(mask)
        if mask.shape != x.shape[:-1] or mask.dtype != bool:
            return None
        x = blanked(x, mask, np)
    return x if np.isfinite(x).all() else None


def checked_inputs(limit, x, other, besides: Besides) -> tuple[NDArray, NDArray | None, Besides]:
    """Return checked inputs, which are zero where no position exists, with checked masks and graphs beside them."""
    check_limit_given(limit)
    if isinstance(limit, Limit) and other is not None:
        x, other = as_floats("inputs", x), as_floats("inputs", other)
        if x.ndim == other.ndim == 2 and x.shape[1] != other.shape[1]:
            raise UserError(
                f"both sets of inputs need the same dimension, got {x.shape[1]} and {other.shape[1]}"
            )
    need_second(other, besides[1])
    masked = is_masked(besides)
    if masked and isinstance(limit, Limit):
        raise UserError(NO_POSITIONS)
    x, first = _with_beside(limit, x, besides[0], masked)
    if other is None:
        return x, None, (first, NOTHING)
    other, second = _with_beside(limit, other, besides[1], masked)
    return x, other, (first, second)


def _with_beside(
    limit: Limit | WideLimit, x, beside: Beside, masked: bool
) -> tuple[NDArray, Beside]:
    """Return checked inputs and what is beside them; all positions exist where only other inputs have a mask."""
    mask = None
    if masked and isinstance(limit, WideLimit):
        x = np.asarray(x)
        if x.shape[1:] == limit.shape:  # else the inputs are what is wrong
            mask = check_mask(limit, x, beside.mask)
            x = blanked(x, mask, np)
    inputs = as_inputs(x, limit)
    sizes = limit.graphs if isinstance(limit, WideLimit) else frozenset[int]()
    return inputs, Beside(mask, as_graphs(beside.graphs, sizes, inputs.shape[:1], np))


def rows_of(way: Tabulated | Direct | Positions, x: NDArray, beside: Beside) -> tuple:
    """Return what a tile needs of each input."""
    return way.rows(x, beside) if isinstance(way, Positions) else way.rows(x)


class GramDiagonal(NamedTuple):
    """Kernels of each input with itself.

    Attributes:
        nngp: variance of the outputs at initialization, shape ``(n,)``.
        ntk: tangent kernel, shape ``(n,)``; NaN when σ jumps.
    """

    nngp: NDArray
    ntk: NDArray


def gram_diagonal(
    limit: Limit | WideLimit,
    x: Float[np.ndarray, "n ..."],
    *,
    mask: Bool[np.ndarray, "n ..."] | None = None,
    graphs: Float[np.ndarray, "..."] | None = None,
) -> GramDiagonal:
    """Compute NNGP and NTK of each input with itself, at the cost of one pass over the inputs.

    It is what predictive variances need of new inputs. Where positions are pooled, pairs of positions of one input
    are computed, but no pairs of inputs.

    Args:
        limit: as for ``gram``.
        x: inputs, as for ``gram``.
        mask: which positions exist, as for ``gram``.
        graphs: those beside the inputs, as for ``gram``.

    Raises:
        UserError: as ``gram``.

    >>> from steepest.nn.networks import mlp
    >>> net = mlp((2, 100, 100, 1), "relu", parameterized="ntk", c_w=2.0, bias=False)
    >>> gram_diagonal(net.limit(), np.array([[1.0, 1.0], [1.0, 2.0]])).ntk.round(4).tolist()
    [6.0, 15.0]
    """
    scaling = scaling_of(limit, x, None, (Beside(mask, graphs), NOTHING))
    x, _, besides = checked_inputs(limit, scaling.x, None, (Beside(mask, graphs), NOTHING))
    computed = _diagonal(limit, x, besides)
    if scaling.scaled is None:
        return computed
    return GramDiagonal(*(scaling.scaled.diagonal(k, scaling.degrees[-1]) for k in computed))


def _diagonal(limit: Limit | WideLimit, x: NDArray, besides: Besides) -> GramDiagonal:
    if isinstance(limit, WideLimit):
        k, theta = Positions.of(limit, x, None, None, besides=besides).rows(x)[0][..., 0]
        return GramDiagonal(k, theta)
    path = predict_signal(limit, squares(x))
    check_finite(path.variance[-1].astype(x.dtype))
    jump = any(value for _, value, _ in jumps(limit.activation))
    theta = np.full(len(x), np.nan) if jump else np.asarray(path.ntk)
    return GramDiagonal(np.asarray(path.variance)[-1].astype(x.dtype), theta.astype(x.dtype))


def gram_positions(
    limit: WideLimit,
    x: Float[np.ndarray, "n ..."],
    other: Float[np.ndarray, "m ..."] | None = None,
    *,
    mask: Bool[np.ndarray, "n ..."] | None = None,
    other_mask: Bool[np.ndarray, "m ..."] | None = None,
    graphs: Float[np.ndarray, "..."] | None = None,
    other_graphs: Float[np.ndarray, "..."] | None = None,
    tolerance: float | None = None,
) -> Gram:
    """Compute NNGP and NTK between all positions of the outputs of a network that keeps them.

    Args:
        limit: of ``network(...).limit()``, before ``flatten()`` or ``global_pool()``.
        x: inputs, as for ``gram``.
        other: a second set; the first without.
        mask: which positions exist, as for ``gram``; kernels are zero at those of the output that do not.
        other_mask: that of the second set.
        graphs: those beside the inputs, as for ``gram``.
        other_graphs: graphs beside the second set.
        tolerance: of each activation's expectation, relative to √(K_αα K_ββ).

    Returns:
        kernels of shape ``(n, m, *space, *space)``: entry [i, j, p, q] is of the first input i at position p and the
        second input j at position q; the error is relative to the diagonals of both.

    Raises:
        UserError: as ``gram``; an output without positions; kernels of more than 4 GB.

    >>> from steepest.nn.layers import conv, network
    >>> net = network(conv(8), "relu", conv(8), shape=(4, 3, 2), parameterized="ntk")
    >>> gram_positions(net.limit(), np.ones((2, 4, 3, 2))).ntk.shape
    (2, 2, 4, 3, 4, 3)
    """
    check_limit_given(limit)
    if isinstance(limit, Limit) or not limit.spaces[-1]:
        raise UserError(
            "the output of this network has no positions; take gram, or end before flatten() or global_pool()"
        )
    besides = (Beside(mask, graphs), Beside(other_mask, other_graphs))
    scaling = scaling_of(limit, x, other, besides)
    x, other, besides = checked_inputs(limit, scaling.x, scaling.other, besides)
    nodes = (len(limit.nodes) - 1,)
    _need_room(limit, nodes, x, x if other is None else other)
    (last,) = behind_nodes(limit, nodes, x, other, tolerance, besides)
    return Gram(scaling.back(last[0], -1), scaling.back(last[1], -1), last[2])


class LayerGram(NamedTuple):
    """Kernels behind a layer.

    Attributes:
        name: of the layer, as ``"conv(64)"`` or ``"relu"``.
        nngp: covariance of a channel behind it, ``(n, m)``, or ``(n, m, *space, *space)`` where positions are left.
        ntk: tangent kernel, of the same shape; zeros before the first weights, NaN when σ jumps.
        error: as that of ``gram``, relative to the diagonals behind this layer.
    """

    name: str
    nngp: NDArray
    ntk: NDArray
    error: float


def gram_layers(
    limit: Limit | WideLimit,
    x: Float[np.ndarray, "n ..."],
    other: Float[np.ndarray, "m ..."] | None = None,
    *,
    layers: Sequence[int] | None = None,
    mask: Bool[np.ndarray, "n ..."] | None = None,
    other_mask: Bool[np.ndarray, "m ..."] | None = None,
    graphs: Float[np.ndarray, "..."] | None = None,
    other_graphs: Float[np.ndarray, "..."] | None = None,
    tolerance: float | None = None,
) -> tuple[LayerGram, ...]:
    """Compute NNGP and NTK behind every layer of an infinitely wide network, in one pass over the network.

    Layers are those that ``network`` was given, one after the other: of branches what they are joined to, and those
    inside ``serial(...)`` each for itself. Of ``mlp`` they are its weight matrices, so that kernels are those of
    pre-activations. Where positions are left all pairs of them are given, as by ``gram_positions``: memory for n m P²
    numbers, for P positions, so choose ``layers`` where images are large.

    Args:
        limit: as for ``gram``; the output may keep its positions.
        x: inputs, as for ``gram``.
        other: a second set; the first without.
        layers: which layers are wanted, counted from 0, or from the end by negative numbers; by default all.
        mask: which positions exist, as for ``gram_positions``.
        other_mask: that of the second set.
        graphs: those beside the inputs, as for ``gram``.
        other_graphs: graphs beside the second set.
        tolerance: as for ``gram``.

    Raises:
        UserError: as ``gram``; a layer that is not there; a limit that was not made by ``network`` or ``mlp``;
            kernels of more than 4 GB.

    >>> from steepest.nn.layers import conv, dense, flatten, network
    >>> net = network(conv(8), "relu", flatten(), dense(1), shape=(4, 3, 2), parameterized="ntk")
    >>> for layer in gram_layers(net.limit(), np.ones((2, 4, 3, 2))):
    ...     print(layer.name, layer.ntk.shape)
    conv(8) (2, 2, 4, 3, 4, 3)
    relu (2, 2, 4, 3, 4, 3)
    flatten (2, 2)
    dense(1) (2, 2)
    """
    besides = (Beside(mask, graphs), Beside(other_mask, other_graphs))
    scaling = scaling_of(limit, x, other, besides)
    x, other, besides = checked_inputs(limit, scaling.x, scaling.other, besides)
    if isinstance(limit, Limit):
        chosen = _chosen(layers, len(limit.layers))
        connected = _gram_of_connected_layers(limit, x, other, tolerance)
        places = linear_nodes(limit)
        return tuple(_scaled_back(connected[index], scaling, places[index]) for index in chosen)
    if not limit.stages:
        raise UserError(
            "gram_layers needs a limit that knows its layers, got one without stages; take network(...).limit()"
        )
    stages = [limit.stages[index] for index in _chosen(layers, len(limit.stages))]
    nodes = tuple(stage.node for stage in stages)
    _need_room(limit, nodes, x, x if other is None else other)
    kernels = behind_nodes(limit, nodes, x, other, tolerance, besides)
    behind = [LayerGram(stage.name, *k) for stage, k in zip(stages, kernels, strict=True)]
    return tuple(_scaled_back(k, scaling, node) for k, node in zip(behind, nodes, strict=True))


def _scaled_back(layer: LayerGram, scaling: Scaling, node: int) -> LayerGram:
    nngp, ntk = (scaling.back(kernel, node) for kernel in (layer.nngp, layer.ntk))
    return layer._replace(nngp=nngp, ntk=ntk)


def _chosen(layers: Sequence[int] | None, count: int) -> list[int]:
    """Return which of so many layers are wanted."""
    if layers is None:
        return list(range(count))
    wrong = [index for index in layers if not -count <= index < count]
    if wrong or not len(layers):
        raise UserError(
            f"layers are numbers from {-count} to {count - 1} for this network of {count} layers, got {list(layers)}"
        )
    return [index % count for index in layers]


def _need_room(limit: WideLimit, nodes: Sequence[int], x: NDArray, other: NDArray) -> None:
    """Raise a UserError where kernels behind these nodes would take too much memory."""
    pairs = [math.prod(limit.spaces[node]) ** 2 for node in nodes]
    size = 2 * len(x) * len(other) * sum(pairs) * x.dtype.itemsize  # two kernels
    if size > LARGEST:
        raise UserError(
            f"kernels between all positions, up to {max(pairs)} pairs of them for each of {len(x)} × {len(other)} "
            f"pairs of inputs, take {size / 1e9:.3g} GB, more than {LARGEST / 1e9:.3g} GB; choose fewer layers or "
            "inputs, or take gram for the output alone"
        )


def _gram_of_connected_layers(
    limit: Limit, x: NDArray, other: NDArray | None, tolerance: float | None
) -> list[LayerGram]:
    """Compute the kernels of all pre-activations, each as the output of the network that ends there."""
    kernels: list[LayerGram] = []
    for index in range(len(limit.layers)):
        ending = replace(limit, layers=limit.layers[: index + 1])
        k = gram(ending, x, other, tolerance=tolerance)
        carried = limit.kept(index)
        if carried:  # an output has no residual branch, and both kernels of branches add up
            before = kernels[-1]
            error = max(k.error, before.error)
            k = Gram(k.nngp + carried * before.nngp, k.ntk + carried * before.ntk, error)
        kernels.append(LayerGram("dense", *k))
    return kernels


def nngp(
    limit: Limit | WideLimit,
    x: Float[np.ndarray, "n ..."],
    other: Float[np.ndarray, "m ..."] | None = None,
) -> NDArray:
    """Compute the covariance of the outputs at initialization; ``gram`` gives both kernels at the cost of one."""
    return gram(limit, x, other).nngp


def ntk(
    limit: Limit | WideLimit,
    x: Float[np.ndarray, "n ..."],
    other: Float[np.ndarray, "m ..."] | None = None,
) -> NDArray:
    """Compute the tangent kernel; ``gram`` gives both kernels at the cost of one."""
    return gram(limit, x, other).ntk


def as_inputs(x, limit: Limit | WideLimit | None = None) -> NDArray:
    """Return checked inputs as a float32 or float64 array: a matrix, or of the shape that a network of layers reads.

    Raises:
        UserError: another shape, no inputs, complex numbers, not finite, too large or too small for the precision, a
            row of zeros of which the network has no kernel.
    """
    x = as_floats("inputs", x)
    _check_shape(x, limit)
    rows = x.reshape(len(x), -1)
    finite = np.isfinite(rows).all(1)
    if not finite.all():
        raise UserError(
            f"inputs must be finite, row {int(np.argmin(finite))} is not; drop it or fill its gaps"
        )
    check_range(rows)
    if isinstance(limit, Limit):
        _check_zeros(rows, limit)
    return x


def _traced_inputs(x: Any, limit: Limit | WideLimit) -> Any:
    """Return inputs for a traced limit, or traced ones, whose shape is all that is known of them."""
    if x is None:
        return None
    if not traced(x):
        x = as_floats("inputs", x)
        if not np.isfinite(x).all():
            raise UserError("inputs must be finite; drop the rows that are not, or fill their gaps")
    elif jnp.issubdtype(x.dtype, jnp.complexfloating):
        raise UserError(f"inputs must be real, got {x.dtype}; give both parts as two columns")
    _check_shape(x, limit)
    return x


def _check_shape(x: NDArray, limit: Limit | WideLimit | None) -> None:
    if isinstance(limit, WideLimit):
        if x.ndim != 1 + len(limit.shape) or x.shape[1:] != limit.shape or not len(x):
            raise UserError(
                f"this network reads inputs of shape (n, {', '.join(map(str, limit.shape))}) with n from 1 on, got "
                f"{x.shape}"
            )
        return
    if x.ndim == 2 and not x.size:
        raise UserError(
            f"there are no inputs: expected at least one row and column, got shape {x.shape}"
        )
    if x.ndim != 2:
        raise UserError(
            f"inputs are rows of a matrix of shape (n, d), got shape {x.shape}; reshape images to rows, and one input "
            "to one row"
        )
    if limit is not None and limit.inputs not in (None, x.shape[1]):
        raise UserError(
            f"this network reads inputs of dimension {limit.inputs}, got {x.shape[1]} columns; build it with "
            f"{x.shape[1]} as the first width, or give {limit.inputs} columns"
        )


def _check_zeros(rows: NDArray, limit: Limit) -> None:
    """Raise a UserError where a row of zeros gives a signal of zero that has no kernel."""
    if limit.layers[0].c_b or rows.any(1).all():
        return
    which = int(np.argmin(rows.any(1)))
    if limit.normalized:
        raise UserError(
            f"row {which} of the inputs is zero, and layer normalization would divide its signal by zero; drop it, or "
            "add biases by c_b"
        )
    if any(value and kink == 0 for kink, value, _ in jumps(limit.activation)):
        raise UserError(
            f"row {which} of the inputs is zero, where {limit.activation.name} jumps, so that its kernels have no "
            "limit there; drop it, or add biases by c_b"
        )


def evaluator(
    limit: Limit | WideLimit,
    x: NDArray,
    other: NDArray | None = None,
    tolerance: float | None = None,
    besides: Besides = ALONE,
    *,
    once: bool = False,
) -> Tabulated | Direct | Positions:
    """Choose the faster way to the kernels of these inputs, and of no others if it is used ``once``."""
    if isinstance(limit, WideLimit):
        return Positions.of(limit, x, other, tolerance, besides=besides)
    norms = Norms.of(x, other)
    if Direct.suits(limit, norms):
        return Direct.of(limit, x)
    pairs = len(x) * len(x if other is None else other)
    if once and pairs <= PAIRS and has_series(limit.activation):
        try:
            return Positions.of(nodes_of(limit), x, other, tolerance)
        except NoSeriesError:  # a table is made by other ways too
            pass
    return Tabulated.of(limit, norms, x.dtype, tolerance)


def blocks(n: int, tile: int) -> list[slice]:
    """Cut n rows into slices of at most ``tile`` rows, of nearly equal length so that few shapes are compiled."""
    count = -(-n // tile)
    size = -(-n // count)
    return [slice(start, min(start + size, n)) for start in range(0, n, size)]


def pairs_of_blocks(n: int, m: int, tile: int, *, symmetric: bool) -> list[tuple[slice, slice]]:
    """List rows and columns of every tile; of a symmetric matrix the upper half."""
    return [
        (i, j)
        for i in blocks(n, tile)
        for j in blocks(m, tile)
        if not symmetric or i.start <= j.start
    ]


def _threads() -> int:
    return min(os.cpu_count() or 1, THREADS)


def fill(
    out: NDArray,
    way: Tabulated | Direct | Positions,
    rows: tuple,
    columns: tuple,
    *,
    symmetric: bool,
    tile: int | None = None,
    kernels: Sequence[int] = (0, 1),
    device: jax.Device | None = None,
) -> None:
    """Put kernels (0 is the NNGP kernel, 1 the NTK) between rows and columns into ``out``, ``(kernels, n, m)``."""
    tile = tile or TILE
    # a tile of positions is much work, and is shared out inside
    inside = {"threads": _threads()} if isinstance(way, Positions) else {}
    parts = lambda arrays: {
        block.start: put(part(arrays, block), device) for block in blocks(arrays[0].shape[-2], tile)
    }
    down = parts(rows)
    across = down if columns is rows else parts(columns)

    def one(pair: tuple[slice, slice]) -> None:
        i, j = pair
        same = symmetric and i == j
        tiles = way.tile(down[i.start], across[j.start], same=same, **inside)
        for whole, kernel in zip(out, kernels, strict=True):
            values = np.asarray(tiles[kernel])
            whole[i, j] = values
            if symmetric and not same:
                whole[j, i] = values.T

    # tiles are too small to occupy all processors one after the other, and their copies occupy only one
    with ThreadPoolExecutor(1 if inside else _threads()) as threads:
        list(
            threads.map(one, pairs_of_blocks(out.shape[1], out.shape[2], tile, symmetric=symmetric))
        )
