"""The kernels of two inputs as a function of JAX: to be differentiated, mapped and compiled with what surrounds it."""

from dataclasses import replace
from functools import partial
from typing import Protocol

import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float

from steepest.core.errors import UserError
from steepest.kernels._arguments import as_floats, check_limit_given
from steepest.kernels.connected._layers import Kernels
from steepest.kernels.wide._duals import Dual, ScaleInvariant, Series
from steepest.kernels.wide._evaluate import attention_weights, evaluate
from steepest.kernels.wide._plan import Plan, plan_of
from steepest.kernels.wide._presence import Presence, check_mask, followed
from steepest.kernels.wide._survey import survey
from steepest.kernels.wide._walk import window_mean
from steepest.nn.layers import WideLimit
from steepest.nn.layers._masks import NO_POSITIONS, as_mask, blanked
from steepest.nn.layers._nodes import (
    Activate,
    AllPositions,
    Attend,
    Average,
    Concatenate,
    EqualPositions,
    Input,
    Linear,
    Mix,
    Node,
    Normalize,
    Product,
    Sum,
)
from steepest.nn.networks import Limit

TOLERANCE = 1e-7
ROOM = 2.0  # factor by which variances may differ from those of ``like``


class KernelFunction(Protocol):
    """NNGP and NTK of two inputs without a batch axis, and of which of their positions exist."""

    def __call__(
        self, x: Array, other: Array, mask: Array | None = None, other_mask: Array | None = None
    ) -> Kernels:
        """Return both kernels, two numbers in the precision of the inputs."""
        ...


def kernel_function(
    limit: Limit | WideLimit,
    like: Float[np.ndarray, "n ..."],
    *,
    mask: Bool[np.ndarray, "n ..."] | None = None,
    tolerance: float = TOLERANCE,
) -> KernelFunction:
    """Return NNGP and NTK of one pair of inputs as a pure function, for ``jax.jit``, ``grad`` and ``vmap``.

    For a matrix of many inputs ``gram`` is far faster. Gradients are finite at equal and opposite inputs too, where
    the NTK of a kinked activation has a corner: the derivative of its slope is taken as zero there.

    Args:
        limit: of ``mlp(...)`` or of ``network(...)``.
        like: some inputs of the kind that will come. Shapes follow from them, and for an activation without closed
            form the range of variances that its series covers, two times wider than theirs; beyond it kernels are NaN.
        mask: which positions of these inputs exist, as for ``gram``; numbers at others are not read.
        tolerance: of each activation's expectation, relative to √(K_αα K_ββ).

    Returns:
        a function of two inputs without a batch axis, which gives two numbers, in the precision of its inputs. Of a
        network of layers it also takes ``mask`` and ``other_mask``, shape ``space``: which positions of either exist,
        all of them without. Where a mask leaves no position kernels are NaN.

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
    check_limit_given(limit)
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
    if mask is None:
        _need_finite(like)
        duals = survey(plan, like, tolerance, room=ROOM).duals
    else:
        _need_space(limit)
        mask = check_mask(general, like, mask)
        like = blanked(like, mask, np)
        _need_finite(like)
        holed = plan_of(general, masked=True)
        duals = survey(holed, like, tolerance, room=ROOM, mask=mask).duals
    # an input that will come may be zero, or have patches of zeros
    duals = tuple(
        replace(d, empty=True) if isinstance(d, (ScaleInvariant, Series)) else d for d in duals
    )
    end = len(general.nodes) - 1

    def kernel(
        x: Array, other: Array, mask: Array | None = None, other_mask: Array | None = None
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
        one, inside = _sides(chosen, duals, jnp.asarray(x), mask)
        two, inside_too = _sides(chosen, duals, jnp.asarray(other), other_mask)
        pairs = evaluate(chosen, duals, end, one, two)
        theta = jnp.zeros(()) if pairs.theta is None else pairs.theta[0, 0]
        valid = jnp.where(inside & inside_too, 1.0, jnp.nan)
        return Kernels(pairs.k[0, 0] * valid, theta * valid)

    return kernel


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
        if limit.kept(index):
            nodes.append(Sum((source, len(nodes) - 1), (limit.kept(index), 1.0)))
    return WideLimit((1,), tuple(nodes), ((),) * len(nodes), limit.name)


def _sides(
    plan: Plan, duals: tuple[Dual | None, ...], x: Array, mask: Array | None
) -> tuple[dict[int, list[Array]], Array]:
    """Compute what pairs need of one input, and whether all variances are in range: ``_survey`` without bounds."""
    places = [Presence(None, None)] * len(plan.limit.nodes)
    if plan.masked:
        given = None if mask is None else jnp.asarray(mask)[None]
        exists = as_mask(given, (1, *plan.limit.spaces[0]), jnp)
        x = blanked(x, exists[0], jnp)
        places = list(followed(plan.limit, exists, jnp))
    inputs = jnp.moveaxis(x, -1, 0)[..., None]
    precision = jnp.result_type(x, float)  # of whole numbers too, as gains are none
    gains = [None if at.gain is None else jnp.asarray(at.gain, precision) for at in places]
    of_gain = [[] if gain is None else [gain[..., None]] for gain in gains]
    sides = {0: [inputs[..., None], *of_gain[0]]}
    variances = [(inputs**2).mean(0)]
    means = [inputs.mean(0)]
    inside = jnp.asarray(True)
    for index, node in enumerate(plan.limit.nodes[1:], 1):
        first = node.sources[0]
        space = plan.limit.spaces[first]
        averaged = partial(window_mean, space=space, xp=jnp)
        overall = partial(jnp.mean, axis=tuple(range(len(space))))
        k = variances[first]
        mean = means[first]
        dual = duals[index]
        numbers: list[Array] = []
        mixes = isinstance(node, (Average, AllPositions, Mix, Attend))
        if isinstance(node, (Activate, Normalize)) and places[first].exists is not None:
            # as in a survey: zero where nothing is would be out of range
            k = jnp.where(jnp.moveaxis(places[first].exists, 0, -1), k, k.max())
        if isinstance(node, Activate):
            assert dual is not None
            own = dual.sides(k, jnp)
            numbers = [side[..., None] for side in own]
            if isinstance(dual, Series):
                inside = inside & ((k == 0) | (k >= dual.low) & (k <= dual.high)).all()
            mean = dual.mean(k)
            k = dual.pair(k, own, own)[0]
        elif isinstance(node, (Average, AllPositions, Mix)):
            if isinstance(node, Mix):
                matrix = jnp.asarray(node.array, k.dtype)
                mean = (matrix @ mean.reshape(-1, 1)).reshape(*plan.limit.spaces[index], 1)
            else:
                mean = averaged(mean, node.window) if isinstance(node, Average) else overall(mean)
        elif isinstance(node, Attend):
            weights = attention_weights(plan, duals, index, sides)
            numbers = [weights[..., None]]
            mean = jnp.einsum("q...b,qb->...b", weights, mean.reshape(len(weights), -1))
        elif isinstance(node, EqualPositions):
            k = overall(k)
            mean = overall(mean)
        elif isinstance(node, Normalize):
            # variance over the channels: E z² − (E z)²
            spread = k - mean**2
            numbers = [mean[..., None], 1 / jnp.sqrt(spread)[..., None]]
            k = jnp.ones_like(k)
            mean = jnp.zeros_like(k)
        elif isinstance(node, Sum):
            branches = list(zip(node.squares, node.sources, strict=True))
            k = jnp.stack([r * variances[source] for r, source in branches]).sum(0)
            # squares are r_i², by which kernels of a branch are multiplied; its mean is by r_i
            of_means = zip(node.roots, node.sources, strict=True)
            mean = jnp.stack([r * means[source] for r, source in of_means]).sum(0)
        elif isinstance(node, Concatenate):
            branches = list(zip(node.shares, node.sources, strict=True))
            k = jnp.stack([share * variances[source] for share, source in branches]).sum(0)
            mean = jnp.stack([share * means[source] for share, source in branches]).sum(0)
        elif isinstance(node, Product):
            k = jnp.stack([variances[source] for source in node.sources]).prod(0)
            mean = jnp.stack([means[source] for source in node.sources]).prod(0)
        elif isinstance(node, Linear):
            k = node.c_b + node.c_w * (k if node.window is None else averaged(k, node.window))
            mean = jnp.zeros_like(k)
        if numbers or of_gain[index]:
            sides[index] = [*numbers, *of_gain[index]]
        gain = gains[index]
        if mixes:
            k = evaluate(plan, duals, index, sides, sides).k[..., 0]  # gained already
        elif gain is not None:
            k = k * gain**2
        variances.append(k)
        means.append(mean if gain is None else mean * gain)
    return sides, inside
