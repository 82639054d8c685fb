"""Tangent kernels of finite networks: as matrices, by the cheapest of three ways."""

import math
from collections.abc import Callable
from typing import Any, Literal

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float

from steepest.core.errors import UserError, nearest
from steepest.core.given import call, dtype_kind, shown, traced
from steepest.kernels._arguments import as_floats, check_apply
from steepest.kernels.finite._blocks import Inputs
from steepest.kernels.finite._jacobian import jacobian_diagonal, jacobian_ntk
from steepest.kernels.finite._layerwise import layerwise_ntk
from steepest.kernels.finite._products import output_of, product_ntk
from steepest.kernels.finite._structured import structured_ntk
from steepest.kernels.finite._torch import is_torch_module, torch_ntk
from steepest.nn.layers import LayeredNetwork
from steepest.nn.layers._beside import (
    NOT_READ,
    NOTHING,
    Beside,
    Besides,
    as_graphs,
    is_masked,
    need_second,
)
from steepest.nn.layers._masks import NO_POSITIONS, as_mask
from steepest.nn.networks import Mlp
from steepest.nn.types import Network, Params

Method = Literal["auto", "jacobian", "layerwise", "vectors"]
Outputs = Literal["scalar", "trace", "each", "all"]
TOGETHER = 256  # examples of one batch in which it is looked for interactions
ALONE = 8  # of them, by themselves
ROUNDING = 1e3  # times the precision: what a batch changes by its order of summation
INTERACT = (
    "outputs of some examples change when others are left out, as with batch normalization in training mode, so that "
    "there is no Jacobian of each example alone"
)
METHODS = ("auto", "jacobian", "layerwise", "vectors")
OUTPUTS = ("scalar", "trace", "each", "all")
ON_DIAGONAL = {
    "scalar": "iap,iap->i",
    "trace": "iap,iap->i",
    "each": "iap,iap->ia",
    "all": "iap,ibp->iab",
}
"""Products of the Jacobian ``(n, k, p)`` of an example with itself, by the choice of outputs."""
PRODUCTS = {"mean": "ia,ja->ij", "each": "ia,ja->ija", "all": "ia,jb->iajb"}
"""Products of outputs ``(n, k)`` and ``(m, k)``; the first is a mean over k."""


def empirical_ntk(
    network: Network | Callable[[Params, Array], Array],
    params: Params,
    x: Float[Array, "n ..."],
    other: Float[Array, "m ..."] | None = None,
    *,
    mask: Bool[Array, "n ..."] | None = None,
    other_mask: Bool[Array, "m ..."] | None = None,
    graphs: Float[Array, "..."] | None = None,
    other_graphs: Float[Array, "..."] | None = None,
    method: Method = "auto",
    outputs: Outputs = "scalar",
) -> Array:
    """Compute the tangent kernel Θ_ij = ⟨∇f(x_i), ∇f(x'_j)⟩ of a network at these parameters.

    Args:
        network: a network, or its ``apply``, which maps parameters and inputs ``(n, …)`` to outputs ``(n,)`` or
            ``(n, k)``; axes behind the second count as outputs too. Of a tuple, list or dict of such arrays each gets
            its kernel, in the same tuple, list or dict. A module of torch is taken too.
        params: any pytree; of a module of torch None for the module's own, or tensors by name.
        x: inputs; of a function that reads several arrays of each example a tuple or dict of them, as it takes them.
        other: the inputs x', by default x again.
        mask: of a ``network(...)`` of layers: which positions exist, True or False, shape ``(n, *space)``; by default
            all.
        other_mask: that of x'.
        graphs: of a ``network(...)`` with ``aggregate()`` without a matrix: weights between positions, shape
            ``(n, P, P)``, or ``(P, P)`` for all inputs.
        other_graphs: graphs beside x'.
        method: ``"layerwise"`` sums over the layers of an ``mlp(...)`` or a ``network(...)`` and never holds the
            Jacobian of all of them; ``"jacobian"`` contracts the Jacobian leaf by leaf, in blocks of examples, so that
            memory stays bounded; ``"vectors"`` multiplies Θ with every unit vector, which needs least memory, and is
            the only way that allows examples to interact, as in batch normalization: then f(x_i) is an output of the
            whole batch. ``"auto"`` takes layerwise where it can; else vectors if outputs of some examples change when
            others are left out (of a traced call this is not known), and jacobian if not.
        outputs: ``"scalar"`` for one output; with k outputs, ``"all"`` gives ⟨∇f_a(x_i), ∇f_b(x'_j)⟩, ``"each"`` only
            a = b, and ``"trace"`` the sum (not the mean) over a = b.

    Returns:
        Shape ``(n, m)``; ``(n, m, k)`` of each output, or ``(n, k, m, k)`` of all pairs of outputs.

    Raises:
        UserError: an unknown method or outputs; layerwise without layers; jacobian where examples interact; several
            outputs where one is expected; outputs that are no array with a row an input; arrays of different length; a
            mask that is none of these positions, or of a network without positions.

    Source: Jacot, Gabriel and Hongler 2018; ORF 543, lecture 10/10.

    >>> linear = lambda w, x: x @ w
    >>> empirical_ntk(linear, jnp.ones(2), jnp.array([[3.0, 4.0]])).tolist()
    [[25.0]]
    """
    besides = (Beside(mask, graphs), Beside(other_mask, other_graphs))
    check_apply(network)
    _need_choice("method", method, METHODS)
    _need_choice("choice of outputs", outputs, OUTPUTS)
    if is_torch_module(network):
        _need_none(besides)
        return torch_ntk(network, params, x, other, outputs)
    network, first, second = _given(network, x, other, besides)
    apply = network.apply if isinstance(network, Network) else network
    container = output_of(apply, params, *first)
    if not isinstance(container, (tuple, list, dict)):
        return kernel_of(network, params, first, second, method=method, outputs=outputs)
    kernels = [
        kernel_of(part, params, first, second, method=method, outputs=outputs)
        for part in _parts(apply, container)
    ]
    return jax.tree.unflatten(jax.tree.structure(container), kernels)


def empirical_ntk_diagonal(
    network: Network | Callable[[Params, Array], Array],
    params: Params,
    x: Float[Array, "n ..."],
    *,
    mask: Bool[Array, "n ..."] | None = None,
    graphs: Float[Array, "..."] | None = None,
    outputs: Outputs = "scalar",
) -> Array:
    """Compute Θ_ii = ‖∇f(x_i)‖² of each input with itself, at the cost of one Jacobian and without pairs of inputs.

    Args:
        network: as for :func:`empirical_ntk`, but no module of torch, and with one array of outputs; examples must not
            interact.
        params: any pytree.
        x: inputs.
        mask: as for :func:`empirical_ntk`.
        graphs: as for :func:`empirical_ntk`.
        outputs: ``"scalar"``; of k outputs ``"trace"``, ``"each"`` or ``"all"``.

    Returns:
        Shape ``(n,)``; ``(n, k)`` of each output, or ``(n, k, k)`` of all pairs of outputs.

    Raises:
        UserError: as :func:`empirical_ntk`; examples that interact.

    >>> linear = lambda w, x: x @ w
    >>> empirical_ntk_diagonal(linear, jnp.ones(2), jnp.array([[3.0, 4.0], [1.0, 0.0]])).tolist()
    [25.0, 1.0]
    """
    check_apply(network)
    _need_jax(network, "empirical_ntk_diagonal")
    _need_choice("choice of outputs", outputs, OUTPUTS)
    network, first, _ = _given(network, x, None, (Beside(mask, graphs), NOTHING))
    apply = network.apply if isinstance(network, Network) else network
    _check_outputs(_output_shape(apply, params, first), len(first[0]), outputs)
    if not _without_interaction(network) and examples_interact(apply, params, first):
        raise UserError(f"{INTERACT}; take evaluation mode")
    return jacobian_diagonal(apply, params, first, ON_DIAGONAL[outputs])


def empirical_nngp(
    network: Network | Callable[[Params, Array], Array],
    params: Params,
    x: Any,
    other: Any = None,
    *,
    outputs: Literal["mean", "each", "all"] = "mean",
) -> Array:
    """Compute the mean over outputs of ``f_a(x_i) f_a(x'_j)``, which tends to the NNGP kernel with many outputs.

    For the kernel of one draw of a wide network give it many outputs, or take a function that ends at a hidden layer.

    Args:
        network: a network, or its ``apply``, which maps parameters and inputs ``(n, …)`` to outputs ``(n, …)``; all
            their axes but the first are averaged over.
        params: any pytree.
        x: inputs, as the network takes them.
        other: the inputs x', by default x again.
        outputs: ``"mean"``; ``"each"`` for the products themselves, ``"all"`` for f_a(x_i) f_b(x'_j).

    Returns:
        shape ``(n, m)``; ``(n, m, k)`` of each output, or ``(n, k, m, k)`` of all pairs of outputs.

    Raises:
        UserError: outputs of both sets that differ in shape, or no array; another choice of outputs; a module of torch.

    >>> empirical_nngp(lambda w, x: x @ w, jnp.eye(2), jnp.array([[3.0, 4.0]])).tolist()
    [[12.5]]
    """
    check_apply(network)
    _need_jax(network, "empirical_nngp")
    _need_choice("choice of outputs", outputs, tuple(PRODUCTS))
    apply = network.apply if isinstance(network, Network) else network
    first = _outputs(apply, params, x)
    second = first if other is None else _outputs(apply, params, other)
    if first.ndim < 1 or first.shape[1:] != second.shape[1:]:
        raise UserError(
            f"outputs need one row for each input and one shape beside, got {first.shape} and {second.shape}"
        )
    rows, columns = (f.reshape(len(f), -1) for f in (first, second))
    products = jnp.einsum(PRODUCTS[outputs], rows, columns)
    return products / rows.shape[1] if outputs == "mean" else products


def _outputs(apply: Callable[[Params, Any], Any], params: Params, x: Any) -> Array:
    """Return the array of outputs; whole numbers become floats, whose products do not overflow."""
    outputs = call("the network", apply, params, x)
    if not hasattr(outputs, "shape"):
        raise UserError(
            f"the network must return one array of outputs, got {type(outputs).__name__}; wrap it in a function that "
            "returns the part that is meant"
        )
    outputs = jnp.asarray(outputs)
    return outputs if jnp.issubdtype(outputs.dtype, jnp.inexact) else outputs.astype(float)


def _need_jax(network: Any, function: str) -> None:
    if is_torch_module(network):
        raise UserError(
            f"{function} needs a network or a function of JAX, got a module of torch; take empirical_ntk, or call the "
            "module on tensors"
        )


def _need_choice(what: str, value: str, choices: tuple[str, ...]) -> None:
    if value not in choices:
        raise UserError(f"there is no {what} {value!r}; {nearest(str(value), choices)}")


def _given(
    network: Network | Callable[..., Array], x: Any, other: Any, besides: Besides
) -> tuple[Network | Callable[..., Array], Inputs, Inputs | None]:
    """Return a function of arrays with a row for each example, and these arrays of both sets."""
    if isinstance(x, (tuple, dict)) and not isinstance(network, (LayeredNetwork, Mlp)):
        _need_none(besides)
        return _of_several(network, x, other)
    return network, *read_by(network, x, other, besides)


def _need_none(besides: Besides) -> None:
    """Raise a UserError where something is given beside inputs of what reads nothing beside them."""
    if is_masked(besides):
        raise UserError(NO_POSITIONS)
    if any(beside.graphs is not None for beside in besides):
        raise UserError(NOT_READ)


def _parts(apply: Callable[..., Any], container: Any) -> list[Callable[..., Array]]:
    """Return a function for each array that a function returns in a tuple, list or dict."""

    def part(index: int) -> Callable[..., Array]:
        return lambda params, *x: jax.tree.leaves(apply(params, *x))[index]

    return [part(index) for index in range(len(jax.tree.leaves(container)))]


def _of_several(
    network: Network | Callable[..., Array], x: Any, other: Any
) -> tuple[Callable[..., Array], Inputs, Inputs | None]:
    """Return a function of the arrays that are read of each example, one argument each, and these arrays."""
    apply = network.apply if isinstance(network, Network) else network
    leaves, tree = jax.tree.flatten(x)
    others, tree_of_other = jax.tree.flatten(x if other is None else other)
    if tree != tree_of_other:
        raise UserError(
            f"both sets of inputs need the same arrays of each example, got {tree} and {tree_of_other}"
        )
    for arrays in (leaves, others):
        counts = {np.shape(array)[:1] for array in arrays}
        if len(counts) != 1 or () in counts:
            raise UserError(
                "several arrays of inputs need one row for each example in all of them, got shapes "
                f"{', '.join(str(np.shape(array)) for array in arrays)}; stack the rows of one array to a matrix"
            )
    flat = lambda params, *arrays: apply(params, jax.tree.unflatten(tree, arrays))
    first = tuple(jnp.asarray(leaf) for leaf in leaves)
    return flat, first, None if other is None else tuple(jnp.asarray(leaf) for leaf in others)


def kernel_of(
    network: Network | Callable[..., Array],
    params: Params,
    first: Inputs,
    second: Inputs | None,
    *,
    method: Method = "auto",
    outputs: Outputs = "scalar",
) -> Array:
    """Compute the kernel of inputs that were checked, with masks beside them if there are any."""
    apply = network.apply if isinstance(network, Network) else network
    shape = _output_shape(apply, params, first)
    _check_outputs(shape, len(first[0]), outputs)
    if outputs == "each":
        return _of_each(apply, params, first, second, method, math.prod(shape[1:]))
    alone = _without_interaction(network)
    if method == "layerwise" and not alone:
        raise UserError(
            "the layerwise kernel needs a network of mlp() or network(), not its apply; try method='jacobian'"
        )
    traced = outputs != "all"
    interact = method != "vectors" and not alone and examples_interact(apply, params, first)
    if interact and method == "jacobian":
        raise UserError(
            f"{INTERACT}; take method='vectors', the kernel of this batch, or evaluation mode"
        )
    if method == "vectors" or interact:
        return product_ntk(apply, params, first, second, traced)
    if method == "jacobian" or not alone:
        return jacobian_ntk(apply, params, first, second, traced)
    if isinstance(network, LayeredNetwork):
        return structured_ntk(apply, params, first, second, traced)
    assert isinstance(network, Mlp)
    return layerwise_ntk(network, params, first[0], None if second is None else second[0], traced)


def _without_interaction(network: Network | Callable[..., Array]) -> bool:
    """Tell whether examples of a network cannot interact."""
    layered = isinstance(network, LayeredNetwork) and network.apply is network.watched
    return layered or isinstance(network, Mlp)


def _check_outputs(shape: tuple[int, ...], n: int, outputs: Outputs) -> None:
    if 0 in shape:
        raise UserError(f"the kernel needs inputs and outputs, got outputs of shape {shape}")
    if outputs == "scalar" and shape not in ((n,), (n, 1)):
        raise UserError(
            f"a scalar kernel needs outputs of shape {(n,)}, got {shape}; try outputs='trace' or outputs='all'"
        )


def _of_each(
    apply: Callable[..., Array],
    params: Params,
    first: Inputs,
    second: Inputs | None,
    method: Method,
    k: int,
) -> Array:
    """Compute the kernel of each of k outputs by itself, one after the other, ``(n, m, k)``."""
    if method == "layerwise":
        raise UserError(
            "the layerwise kernel is of one output, of their sum or of all pairs; try method='jacobian'"
        )
    interact = method != "vectors" and examples_interact(apply, params, first)
    if interact and method == "jacobian":
        raise UserError(
            f"{INTERACT}; take method='vectors', the kernel of this batch, or evaluation mode"
        )
    way = product_ntk if method == "vectors" or interact else jacobian_ntk

    def of_one(index: Array) -> Array:
        output = lambda p, *x: apply(p, *x).reshape(len(x[0]), -1)[:, index]
        return way(output, params, first, second, traced=True)

    return jnp.moveaxis(jax.lax.map(of_one, jnp.arange(k)), 0, -1)


def _output_shape(apply: Callable[..., Array], params: Params, x: Inputs) -> tuple[int, ...]:
    """Return the shape of the outputs.

    Raises:
        UserError: no array, or no row for each input.
    """
    whole = [leaf for leaf in jax.tree.leaves(params) if dtype_kind(leaf) in "iub"]
    if whole:
        raise UserError(
            f"params must be real numbers, got whole ones, {shown(whole[0])}, by which nothing has a derivative; try "
            "jax.tree.map(lambda leaf: leaf * 1.0, params)"
        )
    out = output_of(apply, params, *x)
    if not hasattr(out, "shape"):
        raise UserError(
            f"the network must return one array of outputs, got {type(out).__name__}; wrap it in a function that "
            "returns the part that is meant"
        )
    if out.shape[:1] != (len(x[0]),):
        raise UserError(
            f"the network must return one row of outputs for each of the {len(x[0])} inputs, got shape {out.shape}"
        )
    return out.shape


def examples_interact(apply: Callable[..., Array], params: Params, x: Inputs) -> bool:
    """Tell whether outputs, or their derivative along a random direction, differ for some examples by themselves.

    The derivative tells too where all outputs are zero, as those of a last layer that begins at zero. Of what is traced
    nothing is known, and False is the answer.
    """
    leaves = jax.tree.leaves(params)
    if (
        len(x[0]) < 2
        or any(map(traced, (*leaves, *x)))
        or not all(_is_real(leaf) for leaf in leaves)
    ):
        return False
    spread = lambda count, most: np.unique(np.linspace(0, count - 1, most).astype(int))
    some = spread(len(x[0]), TOGETHER)
    few = spread(len(some), ALONE)
    batch = tuple(array[some] for array in x)
    keys = jax.random.split(jax.random.key(0), len(leaves))
    drawn = [
        jax.random.normal(key, np.shape(leaf), leaf.dtype)
        for key, leaf in zip(keys, map(jnp.asarray, leaves), strict=True)
    ]
    direction = jax.tree.unflatten(jax.tree.structure(params), drawn)
    floats = jax.tree.map(jnp.asarray, params)
    moved = lambda inputs: jax.jvp(lambda p: apply(p, *inputs), (floats,), (direction,))
    alone = jax.vmap(lambda example: moved(tuple(array[None] for array in example)))
    pairs = zip(moved(batch), alone(tuple(array[few] for array in batch)), strict=True)
    for together, apart in pairs:
        size = jnp.max(jnp.abs(together), initial=0.0)
        same = jnp.isclose(
            together[few], apart[:, 0], 0.0, ROUNDING * jnp.finfo(together.dtype).eps * size, True
        )
        if not bool(same.all()):
            return True
    return False


def _is_real(leaf: Any) -> bool:
    return jnp.issubdtype(jnp.asarray(leaf).dtype, jnp.floating)


def _numbers(x: Any) -> np.ndarray:
    """Return an array of numbers, whole ones as they are."""
    try:
        given = np.asarray(x)
    except ValueError as trouble:
        raise UserError(f"inputs must be one array of numbers: {trouble}") from None
    return given if given.dtype.kind in "iubc" else as_floats("inputs", given)


def read_by(
    network: Network | Callable, x: Any, other: Any, besides: Besides
) -> tuple[Inputs, Inputs | None]:
    """Return what a network reads of both sets: inputs, and masks and graphs beside them if there are any.

    Raises:
        UserError: a mask or graphs of a network without positions, of a second set that is not there, or of another
            shape.
    """
    x = jnp.asarray(x if isinstance(x, jax.Array) else _numbers(x))
    other = (
        None
        if other is None
        else jnp.asarray(other if isinstance(other, jax.Array) else _numbers(other))
    )
    if isinstance(network, Network) and jnp.iscomplexobj(x):
        raise UserError(f"this network reads real inputs, got {x.dtype}; give two columns")
    if not x.ndim:
        raise UserError("inputs need a row for each example, got one number; reshape it to (1, 1)")
    if not isinstance(network, LayeredNetwork):
        _need_none(besides)
    if all(array is None for beside in besides for array in beside):
        return (x,), None if other is None else (other,)
    assert isinstance(network, LayeredNetwork)
    need_second(other, besides[1])
    first = _with_beside(network, x, besides[0])
    return first, None if other is None else _with_beside(network, other, besides[1])


def _with_beside(network: LayeredNetwork, x: Array, beside: Beside) -> Inputs:
    """Return inputs with a mask, and with graphs if the network reads any."""
    mask = as_mask(beside.mask, (len(x), *network.shape[:-1]), jnp)
    graphs = as_graphs(beside.graphs, network.graphs, x.shape[:1], jnp)
    return (x, mask) if graphs is None else (x, mask, graphs)


def ntk_top(
    network: Network | Callable[[Params, Array], Array], params: Params, x: Float[Array, "n d"]
) -> Float[Array, ""]:
    """Compute the largest eigenvalue of Θ/n of a network with one scalar output.

    With the mean of ½(f − y)², descent on the linearized network is stable up to the step size 2 over it.
    """
    theta = empirical_ntk(network, params, x)
    return jnp.linalg.eigvalsh(theta / len(theta))[-1]
