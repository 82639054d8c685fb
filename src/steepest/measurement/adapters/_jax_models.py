"""Models of JAX in the forms in which people have them: which leaves are weights, and how the model is called.

Frameworks say which arrays they train: linen by the collection ``params``, nnx by variables of type ``Param``, equinox
by its inexact arrays, haiku by the first of two trees. None is imported: who hands over a model of one has done so.
"""

import inspect
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from types import FunctionType
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from steepest.core.errors import UserError
from steepest.measurement.adapters._modes import is_in_evaluation, is_of
from steepest.nn.types import Network

PARAMS = "params"
"""The collection of linen that is trained."""
EVALUATION = {
    "train": False,
    "training": False,
    "is_training": False,
    "deterministic": True,
    "use_running_average": True,
}
"""How linen modules are told to be as they are after training, by the names that people give the argument."""

FORMS = (
    "a model is a torch.nn.Module; a pair (apply, params) of JAX; a module of flax.nnx or of equinox; (module, "
    "variables) of flax.linen; (transformed, params) or (transformed, (params, state)) of haiku"
)

is_variable = lambda node: is_of(node, "flax.nnx", "Variable")
is_equinox = lambda node: is_of(node, "equinox._module", "Module")
is_equinox_state = lambda node: is_of(node, "equinox.nn._stateful", "State")
is_linen = lambda node: is_of(node, "flax.linen.module", "Module")
is_nnx = lambda node: is_of(node, "flax.nnx.module", "Module")


@dataclass(frozen=True)
class JaxModel:
    """A model of JAX as it is measured.

    Attributes:
        apply: a network of ours, or a function of ``(tree, x)`` for a batch of inputs.
        tree: a pytree that holds the weights, and what stands beside them.
        form: makes of a tree what a loss of ``(params, batch)`` takes: the tree itself, or the module.
        name: how reports call it.
    """

    apply: Any
    tree: Any
    form: Callable[[Any], Any]
    name: str


class HaikuTree(NamedTuple):
    """The parameters of haiku, which are trained, and its state, which is not."""

    params: Any
    state: Any


def read_model(model: Any, noise: bool = False) -> JaxModel:
    """Read a model in the form in which people have it; it stays as it is.

    Args:
        model: see ``FORMS``.
        noise: whether layers may draw random numbers.

    Raises:
        UserError: another form; a module in training mode.
    """
    if is_nnx(model):
        return _of_nnx(model, noise)
    if is_equinox(model):
        return _of_equinox(model, None)
    if is_linen(model):
        if model.scope is None:
            raise UserError(
                f"the linen module {type(model).__name__} holds no variables; give (module, variables)"
            )
        return _of_linen(*model.unbind())
    if not _is_pair(model):
        raise UserError(f"{FORMS}; got {type(model).__name__}")
    first, second = model
    if is_linen(first):
        return _of_linen(first, second)
    if is_equinox(first) and is_equinox_state(second):
        return _of_equinox(first, second)
    if _is_haiku(first):
        return _of_haiku(first, second)
    if not isinstance(first, Network) and not callable(first):
        raise UserError(
            f"{FORMS}; got a pair of {type(first).__name__} and {type(second).__name__}"
        )
    name = getattr(first, "name", getattr(first, "__name__", "model"))
    return JaxModel(first, second, _same, name)


def tree_of(model: Any) -> Any:
    """Return the tree that holds the weights of a model; parameters without a model come back as they are."""
    if is_nnx(model):
        return sys.modules["flax"].nnx.state(model)
    if is_linen(model) and model.scope is not None:
        return model.variables
    if not _is_pair(model):
        return model
    first, second = model
    if _is_haiku(first):
        return _haiku_tree(second)
    if is_equinox(first):
        return first if is_equinox_state(second) else model
    return second if callable(first) or isinstance(first, Network) else model


def holds_weights(model: Any) -> bool:
    """Tell whether this is a model of JAX, in one of the forms that are read here."""
    return is_nnx(model) or is_equinox(model) or is_linen(model) or tree_of(model) is not model


def trained(tree: Any) -> list[bool]:
    """Tell of each leaf, in the order in which JAX flattens the tree, whether it is trained.

    Of a tree without a framework all floating point and complex leaves are, and so are Python's numbers, as
    ``jax.grad`` has it. Whole numbers and keys of random numbers never are.
    """
    leaves = jax.tree.leaves(tree)
    if isinstance(tree, HaikuTree):
        count = len(jax.tree.leaves(tree.params))
        return [i < count and is_inexact(leaf) for i, leaf in enumerate(leaves)]
    if _is_variables(tree):
        paths = jax.tree_util.tree_leaves_with_path(tree)
        return [path[0].key == PARAMS and is_inexact(leaf) for path, leaf in paths]
    nodes = jax.tree.leaves(tree, is_leaf=is_variable)
    if any(map(is_variable, nodes)):
        params = [is_of(node, "flax.nnx", "Param") for node in nodes]
        # without any Param somebody has chosen another type of variables
        wanted = params if any(params) else [True] * len(nodes)
        return [
            is_wanted and is_inexact(leaf)
            for node, is_wanted in zip(nodes, wanted, strict=True)
            for leaf in jax.tree.leaves(node)
        ]
    if any(map(is_equinox, jax.tree.leaves(tree, is_leaf=is_equinox))):
        return list(map(sys.modules["equinox"].is_inexact_array, leaves))
    return [isinstance(leaf, float) or is_inexact(leaf) for leaf in leaves]


def inner_trees(tree: Any) -> list[Any]:
    """Return the parts of a tree that optimizers are given: what is trained in a framework's own form, and arrays."""
    if isinstance(tree, HaikuTree):
        return [tree.params]
    leaves, treedef = jax.tree.flatten(tree)
    only = lambda wanted: treedef.unflatten(
        [leaf if is_wanted else None for leaf, is_wanted in zip(leaves, wanted, strict=True)]
    )
    inner = [tree[PARAMS]] if _is_variables(tree) else []
    if is_of(tree, "flax.nnx", "State"):
        params = tree.filter(sys.modules["flax"].nnx.Param)
        inner += [plain_arrays(params), params]
    return [*inner, only(trained(tree)), only(map(is_array, leaves))]


def plain_arrays(tree: Any) -> Any:
    """Return a tree with arrays in place of nnx's variables, as its optimizers hand them to optax."""
    return jax.tree.map(
        lambda node: node.get_value() if is_variable(node) else node, tree, is_leaf=is_variable
    )


def named_leaves(tree: Any) -> list[tuple[str, Any]]:
    """Return all leaves with their paths as names, without what a framework puts around them."""
    around = f"{PARAMS}." if isinstance(tree, HaikuTree) or _is_variables(tree) else ""
    entries = []
    for path, node in jax.tree_util.tree_leaves_with_path(tree, is_leaf=is_variable):
        name = jax.tree_util.keystr(path, simple=True, separator=".").removeprefix(around)
        leaves = jax.tree.leaves(node)
        ends = [f".{i}" if len(leaves) > 1 else "" for i in range(len(leaves))]
        entries += [(name + end, leaf) for end, leaf in zip(ends, leaves, strict=True)]
    return entries


def weights_in(model: Any) -> list[tuple[str, Any]]:
    """Return the arrays of weights of a model with their names; complex ones are one array."""
    tree = tree_of(model)
    marked = zip(named_leaves(tree), trained(tree), strict=True)
    return [entry for entry, is_trained in marked if is_trained]


def real_parts(name: str, leaf: Any) -> list[tuple[str, Any]]:
    """Return an array of weights as real ones: a complex one is the pair of its parts.

    >>> [name for name, _ in real_parts("w", jnp.ones(2, complex))], [name for name, _ in real_parts("w", jnp.ones(2))]
    (['w.real', 'w.imag'], ['w'])
    """
    if not jnp.issubdtype(jnp.result_type(leaf), jnp.complexfloating):
        return [(name, leaf)]
    return [(f"{name}.real", leaf.real), (f"{name}.imag", leaf.imag)]


def is_inexact(leaf: Any) -> bool:
    """Tell whether this is an array of floating point or complex numbers."""
    return hasattr(leaf, "dtype") and jnp.issubdtype(leaf.dtype, jnp.inexact)


def is_key(leaf: Any) -> bool:
    """Tell whether this is an array of keys of random numbers."""
    return hasattr(leaf, "dtype") and jnp.issubdtype(leaf.dtype, jax.dtypes.prng_key)


def is_array(leaf: Any) -> bool:
    """Tell whether a compiled function can take this as an argument."""
    return isinstance(leaf, jax.Array) or (
        isinstance(leaf, np.ndarray | np.generic) and leaf.dtype.kind in "biufc"
    )


def _is_pair(model: Any) -> bool:
    return isinstance(model, tuple | list) and len(model) == 2


def _is_variables(tree: Any) -> bool:
    """Tell whether this is a dictionary of collections, as linen has it, of which one is called ``params``."""
    return (
        "flax" in sys.modules
        and isinstance(tree, Mapping)
        and not is_of(tree, "flax.nnx", "State")
        and isinstance(tree.get(PARAMS), Mapping)
        and all(isinstance(collection, Mapping) for collection in tree.values())
    )


def _same(tree: Any) -> Any:
    return tree


# ------------------------------------------------------------------------------------------------ frameworks


def _of_nnx(module: Any, noise: bool) -> JaxModel:
    nnx = sys.modules["flax"].nnx
    name = type(module).__name__
    copy = nnx.clone(module)
    if is_in_evaluation():
        copy.eval()
    for _, part in nnx.iter_modules(copy):
        kind = type(part).__name__
        if getattr(part, "use_running_average", None) is False:
            raise _in_training(name, f"{kind} takes the statistics of the batch")
        # attention has a rate of dropout by another name
        rate = getattr(part, "rate", getattr(part, "dropout_rate", 1.0))
        if getattr(part, "deterministic", None) is False and rate and not noise:
            raise _in_training(name, f"{kind} draws random numbers")
    graph, state = nnx.split(copy)
    form = lambda tree: nnx.merge(graph, tree)
    return JaxModel(lambda tree, x: form(tree)(x), state, form, name)


def _in_training(name: str, why: str) -> UserError:
    return UserError(
        f"{name} is in training mode: {why}; call model.eval() before measuring it, so that its outputs are a function "
        "of weights and inputs"
    )


def _of_linen(module: Any, variables: Any) -> JaxModel:
    takes = inspect.signature(type(module).__call__).parameters
    mode = {name: value for name, value in EVALUATION.items() if name in takes}
    apply = lambda tree, x: module.apply(tree, x, **mode)
    return JaxModel(apply, variables, _same, type(module).__name__)


def _of_equinox(module: Any, state: Any) -> JaxModel:
    """Read a module, which is called for one example, with its state where it has one."""
    name = type(module).__name__
    if is_in_evaluation():
        module = sys.modules["equinox"].nn.inference_mode(module)
    has_mode = lambda node: hasattr(node, "inference")
    for part in jax.tree.leaves(module, is_leaf=has_mode):
        if has_mode(part) and part.inference is False and getattr(part, "p", 1.0):
            raise UserError(
                f"{name} is in training mode, as its {type(part).__name__} is; give equinox.nn.inference_mode(model), "
                "whose outputs are a function of weights and inputs"
            )

    def apply(tree: Any, x: Any) -> Any:
        call = tree if state is None else lambda one: tree(one, state)[0]
        return jax.vmap(call, axis_name="batch")(x)

    return JaxModel(apply, module, _same, name)


def _is_haiku(value: Any) -> bool:
    """Tell whether this is what ``haiku.transform`` returns, or its ``apply``."""
    haiku = sys.modules.get("haiku")
    if haiku is None:
        return False
    if isinstance(value, haiku.Transformed | haiku.TransformedWithState):
        return True
    # an apply alone is a function that haiku has made, and bears no other mark
    return isinstance(value, FunctionType) and value.__module__.partition(".")[0] == "haiku"


def _haiku_tree(given: Any) -> HaikuTree:
    return HaikuTree(*given) if isinstance(given, tuple | list) else HaikuTree(given, {})


def _of_haiku(transformed: Any, given: Any) -> JaxModel:
    function = getattr(transformed, "apply", transformed)
    takes = inspect.signature(function).parameters
    rng = (None,) if "rng" in takes else ()
    has_state = "state" in takes

    def apply(tree: HaikuTree, x: Any) -> Any:
        state = (tree.state,) if has_state else ()
        outputs = function(tree.params, *state, *rng, x)
        return outputs[0] if has_state else outputs

    form = lambda tree: tuple(tree) if has_state else tree.params
    return JaxModel(apply, _haiku_tree(given), form, "haiku")
