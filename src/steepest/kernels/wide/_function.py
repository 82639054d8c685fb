"""Kernels inside of JAX's transformations: differentiated, mapped and compiled, by inputs and by coefficients."""

from dataclasses import replace
from functools import partial
from typing import Any, NamedTuple, Protocol

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float

from steepest.core.errors import UserError
from steepest.core.given import traced
from steepest.kernels._arguments import as_floats, check_limit_given, check_range
from steepest.kernels.connected._layers import Kernels
from steepest.kernels.wide._evaluate import attention_products, evaluate
from steepest.kernels.wide._plan import Plan, plan_of
from steepest.kernels.wide._presence import check_mask
from steepest.kernels.wide._scaling import degrees, multiplied_or_nan, read_in_range, scaled
from steepest.kernels.wide._survey import survey
from steepest.kernels.wide._walk import Walk
from steepest.kernels.wide.duals import Dual, Expansion, Piecewise, ScaleInvariant, Series
from steepest.nn.layers import WideLimit
from steepest.nn.layers._beside import Beside, Besides, as_graphs, is_masked
from steepest.nn.layers._masks import NO_POSITIONS, as_mask, blanked
from steepest.nn.layers._nodes import Activate, Input, Linear, Node, Normalize, Sum
from steepest.nn.networks import Limit

TOLERANCE = 1e-7
ROOM = 2.0  # factor by which variances may differ from those of ``like``
CELLS = 2**16  # pairs of positions and inputs that are computed at a time


class KernelFunction(Protocol):
    """NNGP and NTK of two inputs without a batch axis, and of which of their positions exist and their graphs."""

    def __call__(
        self,
        x: Array,
        other: Array,
        mask: Array | None = None,
        other_mask: Array | None = None,
        *,
        graphs: Array | None = None,
        other_graphs: Array | None = None,
    ) -> Kernels:
        """Return both kernels, two numbers in the precision of the inputs."""
        ...


def kernel_function(
    limit: Limit | WideLimit,
    like: Float[np.ndarray, "n ..."],
    *,
    mask: Bool[np.ndarray, "n ..."] | None = None,
    graphs: Float[np.ndarray, "..."] | None = None,
    tolerance: float = TOLERANCE,
) -> KernelFunction:
    """Return NNGP and NTK of one pair of inputs as a pure function, for ``jax.jit``, ``grad`` and ``vmap``.

    For a matrix of many inputs ``gram`` is far faster. Gradients are finite at equal and opposite inputs too, where
    the NTK of a kinked activation has a corner: the derivative of its slope is taken as zero there.

    Args:
        limit: of ``mlp(...)`` or of ``network(...)``.
        like: some inputs of the kind that will come. Shapes follow from them, and for an activation without closed
            form the range of variances that its series covers, two times wider than theirs; beyond it, and beyond the
            precision, kernels are NaN.
        mask: which positions of these inputs exist, as for ``gram``; numbers at others are not read.
        graphs: those beside these inputs, as for ``gram``.
        tolerance: of each activation's expectation, relative to √(K_αα K_ββ).

    Returns:
        a function of two inputs without a batch axis, which gives two numbers, in the precision of its inputs. Of a
        network of layers it also takes ``mask`` and ``other_mask``, shape ``space``: which positions of either exist,
        all of them without. Where a mask leaves no position kernels are NaN. Of a network that reads graphs it needs
        ``graphs`` and ``other_graphs`` by name, shape ``(P, P)``: the graph of either input.

    Raises:
        UserError: as ``gram``; an output that keeps its positions.

    >>> import jax
    >>> from steepest.nn.networks import mlp
    >>> net = mlp((2, 100, 100, 1), "relu", parameterized="ntk", c_w=2.0, bias=False)
    >>> kernel = kernel_function(net.limit(), np.eye(2))
    >>> one, two = jnp.array([1.0, 1.0]), jnp.array([1.0, -1.0])
    >>> round(float(kernel(one, two).ntk), 4)
    1.3714
    >>> bool(jnp.isfinite(jax.grad(lambda x: kernel(x, one).ntk)(one)).all())
    True
    """
    check_limit_given(limit, traces=True)
    general = nodes_of(limit) if isinstance(limit, Limit) else limit
    plan = plan_of(general)
    like = as_floats("like", like).astype(float)
    shape = general.shape
    if isinstance(limit, Limit):
        shape = like.shape[1:] if limit.inputs is None else (limit.inputs,)
    if like.ndim != 1 + len(shape) or like.shape[1:] != shape or not like.size:
        raise UserError(
            f"like needs inputs of shape (n, {', '.join(map(str, shape))}), got {like.shape}"
        )
    degree = None
    duals = None
    if not is_traced(limit):
        degree = degrees(general)[-1]
        if degree is None:
            check_range(like.reshape(len(like), -1))
        else:
            like = scaled(like, None).x
        duals = _covering(plan, limit, like, Beside(mask, graphs), tolerance)

    def kernel(
        x: Array,
        other: Array,
        mask: Array | None = None,
        other_mask: Array | None = None,
        *,
        graphs: Array | None = None,
        other_graphs: Array | None = None,
    ) -> Kernels:
        masked = mask is not None or other_mask is not None
        if masked:
            _need_space(limit)
        chosen = plan_of(general, masked=masked)
        for given in (x, other):
            if np.shape(given) != shape:
                raise UserError(
                    f"this kernel reads two inputs of shape {shape} without a batch axis, got {np.shape(given)}; use "
                    "jax.vmap for several, or gram"
                )
        batch = lambda given: None if given is None else jnp.asarray(given)[None]
        here = read_in_range(jnp.asarray(x)[None], batch(mask), degree)
        there = read_in_range(jnp.asarray(other)[None], batch(other_mask), degree)
        first = _walked(chosen, duals, here.x, Beside(batch(mask), graphs))
        second = _walked(chosen, duals, there.x, Beside(batch(other_mask), other_graphs))
        pairs = evaluate(
            chosen, first.padded_duals(), len(general.nodes) - 1, first.sides, second.sides
        )
        theta = jnp.zeros(()) if pairs.theta is None else pairs.theta[0, 0]
        inside = jnp.asarray([here.held, there.held, *first.covered, *second.covered]).all()
        power = (degree or 0) * (here.exponent + there.exponent)
        k, theta = (multiplied_or_nan(kernel, power) for kernel in (pairs.k[0, 0], theta))
        valid = jnp.where(inside, 1.0, jnp.nan)
        return Kernels(k * valid, theta * valid)

    return kernel


def _covering(
    plan: Plan, limit: Limit | WideLimit, like: np.ndarray, beside: Beside, tolerance: float
) -> tuple[Dual | None, ...]:
    """Choose expectations for inputs like these, of which some positions may be without signal."""
    mask = beside.mask
    if mask is not None:
        _need_space(limit)
        mask = check_mask(plan.limit, like, mask)
        like = blanked(like, mask, np)
        plan = plan_of(plan.limit, masked=True)
    _need_finite(like)
    graphs = as_graphs(beside.graphs, plan.limit.graphs, like.shape[:1], np)
    duals = survey(plan, like, tolerance, room=ROOM, beside=Beside(mask, graphs)).duals
    return tuple(
        replace(d, empty=True) if isinstance(d, (ScaleInvariant, Piecewise, Series)) else d
        for d in duals
    )


def _need_finite(like: np.ndarray) -> None:
    if not np.isfinite(like).all():
        raise UserError("like must be finite; drop the inputs that are not")


def _need_space(limit: Limit | WideLimit) -> None:
    if isinstance(limit, Limit):
        raise UserError(NO_POSITIONS)


def nodes_of(limit: Limit) -> WideLimit:
    """Write a fully connected network's limit node by node.

    >>> from steepest.nn.networks import mlp
    >>> len(nodes_of(mlp((3, 8, 8, 1), "relu", parameterized="ntk", skip=1.0).limit()).nodes)
    7
    """
    (start, *others) = limit.layers
    nodes: list[Node] = [Input(), Linear((0,), *start)]
    for index, layer in enumerate(others, 1):
        source = len(nodes) - 1
        if limit.normalized:
            nodes.append(Normalize((source,)))
        nodes.append(Activate((len(nodes) - 1,), limit.activation))
        nodes.append(Linear((len(nodes) - 1,), *layer))
        if 0 < index < limit.depth and (traced(limit.skip) or limit.skip):
            nodes.append(Sum((source, len(nodes) - 1), (limit.skip, 1.0)))
    return WideLimit((1,), tuple(nodes), ((),) * len(nodes), limit.name)


def linear_nodes(limit: Limit) -> list[int]:
    """Return the nodes of ``nodes_of`` behind which the pre-activations of each layer stand."""
    nodes = nodes_of(limit).nodes
    places = [i for i, node in enumerate(nodes) if isinstance(node, Linear)]
    # a residual branch is added behind its matrix
    added = {node.sources[-1]: i for i, node in enumerate(nodes) if isinstance(node, Sum)}
    return [added.get(place, place) for place in places]


def is_traced(limit: Limit | WideLimit, *arrays: Any) -> bool:
    """Tell whether JAX traces a coefficient of a limit, or one of these arrays."""
    return any(map(traced, [*jax.tree.leaves(limit), *arrays]))


class TracedGram(NamedTuple):
    """Kernels of all pairs of inputs, as arrays of JAX.

    Attributes:
        nngp: shape ``(n, m)``.
        ntk: shape ``(n, m)``.
        error: what the series of activations leave at most, relative to their second moments, each by itself.
    """

    nngp: Array
    ntk: Array
    error: Array


def traced_gram(limit: Limit | WideLimit, x: Any, other: Any, besides: Besides) -> TracedGram:
    """Compute what ``gram`` does where JAX traces coefficients or inputs, some rows at a time."""
    general = nodes_of(limit) if isinstance(limit, Limit) else limit
    if is_masked(besides):
        _need_space(limit)
    plan = plan_of(general, masked=is_masked(besides))
    x = jnp.asarray(x, float)
    first = second = _walked(plan, None, x, besides[0])
    if other is not None:
        second = _walked(plan, None, jnp.asarray(other, x.dtype), besides[1])
    columns = {i: [jnp.swapaxes(a, -1, -2) for a in arrays] for i, arrays in second.sides.items()}
    rows = {i: [jnp.moveaxis(a, -2, 0) for a in arrays] for i, arrays in first.sides.items()}
    duals = first.padded_duals()
    end = len(general.nodes) - 1

    @jax.checkpoint  # or derivatives would keep every layer of every pair
    def row(sides: dict[int, list[Array]]) -> tuple[Array, Array]:
        of_row = {i: [a[..., None, :] for a in arrays] for i, arrays in sides.items()}
        pairs = evaluate(plan, duals, end, of_row, columns)
        theta = jnp.zeros_like(pairs.k) if pairs.theta is None else pairs.theta
        return pairs.k[0], theta[0]

    m = columns[0][0].shape[-1]
    size = min(len(x), max(1, CELLS // (m * plan.cells)))
    k, theta = jax.lax.map(row, rows, batch_size=size)
    if other is None:
        last = first.diagonals[-1]
        exact = (last.k, last.theta)
        k, theta = (
            a if d is None else jnp.fill_diagonal((a + a.T) / 2, d, inplace=False)
            for a, d in zip((k, theta), exact, strict=True)
        )
    errors = [jnp.zeros(()), *_remainders(first), *([] if other is None else _remainders(second))]
    return TracedGram(k, theta, jnp.stack(errors).max())


def _remainders(walk: Walk) -> list[Array]:
    """Return what each series leaves at most at these variances."""
    remainders = []
    for index, dual in enumerate(walk.chosen):
        if isinstance(dual, Expansion):
            source = walk.plan.limit.nodes[index].sources[0]
            remainders.append(dual.remainder(walk.diagonals[source].k).max())
    return remainders


def _walked(plan: Plan, duals: tuple[Dual | None, ...] | None, x: Any, beside: Beside) -> Walk:
    """Compute what pairs need of each input by itself, ``(n, *shape)``."""
    if not jnp.issubdtype(x.dtype, jnp.floating):
        x = x.astype(float)
    mask = beside.mask
    if plan.masked:
        mask = as_mask(mask, (len(x), *plan.limit.spaces[0]), jnp)
        x = blanked(x, mask, jnp)
    graphs = as_graphs(beside.graphs, plan.limit.graphs, x.shape[:1], jnp)
    given = Beside(mask, None if graphs is None else graphs.astype(x.dtype))
    walk = Walk.begin(plan, x, given, tolerance=TOLERANCE, duals=duals, xp=jnp)

    def with_itself(index: int) -> tuple[Array, Array | None]:
        duals = walk.padded_duals()
        pairs = evaluate(plan, duals, index, walk.sides, walk.sides, itself=1.0)
        return pairs.k[..., 0], None if pairs.theta is None else pairs.theta[..., 0]

    for index in range(1, len(plan.limit.nodes)):
        products = partial(attention_products, plan, walk.padded_duals(), index, walk.sides)
        walk.step(index, partial(with_itself, index), products)
    return walk
