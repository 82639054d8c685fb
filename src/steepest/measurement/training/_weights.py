"""The weights of a model as first-order numbers look at them: norms on their device, fetched many at once."""

import sys
from collections.abc import Callable, Sequence
from functools import cache
from typing import Any, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from steepest.measurement.adapters import (
    is_addressable,
    is_sharded,
    is_torch_module,
    local,
    unwrapped,
)

RELIST = 16  # looks, after which all weights of a module are listed anew


class Norms(NamedTuple):
    """Norms of each array of weights, on their device; empty where they were not taken."""

    weights: Sequence[Any] = ()
    updates: Sequence[Any] = ()  # since the copy
    gradients: Sequence[Any] = ()  # of the last backward pass, if they are still at hand


NOT_TAKEN = Norms()


class Weights(Protocol):
    """Arrays of weights of a model at one step.

    Attributes:
        names: of the arrays.
        places: what must be the same where weights are compared with the weights of an earlier step.
    """

    names: list[str]
    places: list[Any]

    def are_still(self, model: Any) -> bool:
        """Tell whether these are the weights of a model still, as far as a quick look at it tells."""
        ...

    def copy(self, into: Any) -> Any:
        """Return a copy of all, in the arrays of an earlier one if there is one."""
        ...

    def norms(self, before: Any) -> Norms:
        """Take norms; those of weights and updates only where there is a copy of the step before."""
        ...

    def gradients(self) -> Sequence[Any]:
        """Take norms of the gradients of the last backward pass; none where they are not at hand."""
        ...

    def are_finite(self) -> bool:
        """Tell whether all weights are finite, now."""
        ...

    def entries(self) -> dict[str, NDArray]:
        """Return copies of the finite entries of each array and of its gradient, if that is at hand, on the host.

        Their names are ``weights/NAME`` and ``gradients/NAME``; what has no finite entry is left out.
        """
        ...

    def have_arrived(self, norms: Norms) -> bool:
        """Tell whether norms can be fetched without waiting for a device."""
        ...

    def fetch(self, norms: Sequence[Sequence[Any]]) -> list[list[float]]:
        """Bring norms to the host."""
        ...


def weights_of(model: Any) -> Weights | None:
    """Return the weights of a module of torch, or of a model of JAX; None for anything else."""
    model = unwrapped(model)
    if is_torch_module(model):
        weights = TorchWeights(model)
        return weights if weights.arrays else None
    if "jax" not in sys.modules:
        return None
    from steepest.measurement.adapters._jax_models import holds_weights, weights_in

    return JaxWeights(weights_in(model)) if holds_weights(model) else None


def is_at_hand(value: Any) -> bool:
    """Tell whether a value can be read without waiting: what JAX has calculated, what torch has on a processor."""
    if hasattr(value, "is_ready"):
        return value.is_ready()
    return getattr(getattr(value, "device", None), "type", "cpu") == "cpu"


class TorchWeights:
    """Weights of a module that are trained; listing them costs more than a norm of all.

    Of weights that are spread over processes these are the parts of this one: nothing waits for the others. The update
    over the weight of such a part stands for the whole; the norm of its gradient does not, and is not taken.
    """

    def __init__(self, module: Any) -> None:
        self._module = module
        self._held = [
            (part._parameters, key, w, w.requires_grad)
            for part in module.modules()
            for key, w in part._parameters.items()
            if w is not None
        ]
        self._looks = 0
        named = [
            (name, w)
            for name, w in module.named_parameters()
            # weights of a lazy module have no numbers before its first pass
            if w.requires_grad and not hasattr(w, "materialize") and w.numel()
        ]
        self.is_sharded = is_sharded(module)
        if self.is_sharded:  # small weights may have no part on this process
            named = [(name, w) for name, w in named if local(w).numel()]
        self.names = [name for name, _ in named]
        self.arrays = [w for _, w in named]
        self.places = [(name, id(w)) for name, w in named]

    def are_still(self, model: Any) -> bool:
        """Tell whether no weight was replaced, frozen or freed; parts that were added are found some looks later."""
        self._looks += 1
        return (
            unwrapped(model) is self._module
            and self._looks % RELIST != 0
            and all(
                held.get(key) is w and w.requires_grad == is_trained
                for held, key, w, is_trained in self._held
            )
        )

    def copy(self, into: Any) -> Any:
        """Return a copy of all, in the tensors of an earlier one if there is one."""
        import torch

        detached = [local(w) for w in self.arrays]
        if into is None:
            return [w.clone() for w in detached]
        torch.ops.aten._foreach_copy_.default(into, detached)
        return into

    def norms(self, before: Any) -> Norms:
        """Take norms by operations on whole lists, as torch's own optimizers do."""
        import torch

        ops = torch.ops.aten
        norms = ops._foreach_norm.Scalar
        taken = NOT_TAKEN
        if before is not None:
            weights = [local(w) for w in self.arrays]
            updates = norms(ops._foreach_sub.List(weights, before), 2)
            taken = Norms(norms(weights, 2), updates)
        return taken._replace(gradients=self.gradients())

    def gradients(self) -> Sequence[Any]:
        """Take norms of the gradients of the last backward pass; none where they are not at hand, whole and dense."""
        import torch

        slopes = [w.grad for w in self.arrays]
        if (
            not slopes
            or self.is_sharded
            or any(slope is None or slope.is_sparse for slope in slopes)
        ):
            return ()
        return torch.ops.aten._foreach_norm.Scalar(slopes, 2)

    def are_finite(self) -> bool:
        """Tell whether all weights are finite, now."""
        import torch

        return all(bool(torch.isfinite(local(w)).all()) for w in self.arrays)

    def entries(self) -> dict[str, NDArray]:
        """Return copies of the finite entries of weights, and of the gradients of the last backward pass."""
        named = list(zip(self.names, self.arrays, strict=True))
        arrays = {f"weights/{name}": local(w) for name, w in named}
        if not self.is_sharded:
            slopes = {name: w.grad for name, w in named if w.grad is not None}
            arrays |= {f"gradients/{n}": s.detach() for n, s in slopes.items() if not s.is_sparse}
        return _finite({name: _of_torch(array) for name, array in arrays.items()})

    def have_arrived(self, norms: Norms) -> bool:
        """Tell whether norms lie on a processor."""
        return all(is_at_hand(row[-1]) for row in norms if row)

    def fetch(self, norms: Sequence[Sequence[Any]]) -> list[list[float]]:
        """Bring norms to the host in one transfer."""
        import torch

        every = [norm.float() for row in norms for norm in row]
        numbers = torch.stack(every).cpu().tolist() if every else []
        ends = np.cumsum([len(row) for row in norms])
        return [numbers[end - len(row) : end] for row, end in zip(norms, ends, strict=True)]


class JaxWeights:
    """Arrays that a model of JAX trains and that this process reaches.

    There is no gradient: a training step keeps it to itself.
    """

    def __init__(self, named: Sequence[tuple[str, Any]]) -> None:
        named = [(name, leaf) for name, leaf in named if is_addressable(leaf)]
        self.names = [name or "params" for name, _ in named]
        self.arrays = [leaf for _, leaf in named]
        self.places = [(name, leaf.shape) for name, leaf in named]

    def are_still(self, model: Any) -> bool:
        """Return no: a training step returns new arrays."""
        return False

    def copy(self, into: Any) -> Any:
        """Return a copy of all: a step that donates its arguments takes the arrays themselves away."""
        return _compiled()[0](self.arrays)

    def norms(self, before: Any) -> Norms:
        """Take norms of weights and updates where there is a copy of the step before."""
        if before is None or not self.arrays:
            return NOT_TAKEN
        return Norms(*_compiled()[1](self.arrays, before))

    def gradients(self) -> Sequence[Any]:
        """Return none: a training step keeps them to itself."""
        return ()

    def are_finite(self) -> bool:
        """Tell whether all weights are finite, now."""
        import jax.numpy as jnp

        return all(bool(jnp.isfinite(leaf).all()) for leaf in self.arrays)

    def entries(self) -> dict[str, NDArray]:
        """Return copies of the finite entries of weights; a training step keeps gradients to itself."""
        named = zip(self.names, self.arrays, strict=True)
        return _finite({f"weights/{name}": np.asarray(leaf) for name, leaf in named})

    def have_arrived(self, norms: Norms) -> bool:
        """Tell whether norms have been calculated."""
        return all(is_at_hand(row) for row in norms)

    def fetch(self, norms: Sequence[Sequence[Any]]) -> list[list[float]]:
        """Bring norms to the host."""
        return [np.asarray(row, float).tolist() for row in norms]


def _of_torch(tensor: Any) -> NDArray:
    """Return a tensor on the host; NumPy has no bfloat16."""
    import torch

    return tensor.to(torch.promote_types(tensor.dtype, torch.float32)).cpu().numpy()


def _finite(arrays: dict[str, NDArray]) -> dict[str, NDArray]:
    """Return copies of the finite entries of each array, shape ``(n,)``; nothing of an array without any."""
    entries = {name: _entries(array) for name, array in arrays.items()}
    return {name: finite for name, finite in entries.items() if finite.size}


def _entries(array: NDArray) -> NDArray:
    """Return a copy of the finite entries, shape ``(n,)``; of complex ones the real and the imaginary parts."""
    if np.iscomplexobj(array):
        array = np.stack([np.real(array), np.imag(array)])
    numbers = array.astype(np.promote_types(array.dtype, np.float32)).ravel()
    return numbers[np.isfinite(numbers)]


@cache
def _compiled() -> tuple[Callable, Callable]:
    """Return compiled functions that copy arrays, and that take norms of arrays and of what they moved by."""
    import jax
    import jax.numpy as jnp

    def norm(array: Any) -> Any:
        wide = jnp.promote_types(array.dtype, jnp.float32)
        return jnp.linalg.norm(array.astype(wide).ravel())

    @jax.jit
    def norms(arrays: list[Any], before: list[Any]) -> tuple[Any, Any]:
        moved = [now - then for now, then in zip(arrays, before, strict=True)]
        return jnp.stack([norm(a) for a in arrays]), jnp.stack([norm(a) for a in moved])

    return jax.jit(lambda arrays: [jnp.array(a, copy=True) for a in arrays]), norms
