"""Modules of torch as subjects; this file is imported only when one arrives."""

import random
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from functools import cached_property, partial
from typing import Any

import numpy as np
import torch
from jaxtyping import Float
from numpy.typing import NDArray
from torch import Tensor, nn
from torch.autograd import grad
from torch.nn.attention import SDPBackend, sdpa_kernel

from steepest.core.errors import UserError
from steepest.measurement.adapters._batches import Batches, as_pair, examples, inputs_of, leaves
from steepest.measurement.adapters._dense import Dense
from steepest.measurement.adapters._example_gradients import of_examples
from steepest.measurement.adapters._generators import states_kept
from steepest.measurement.adapters._graph import Graph, gradients, one_tensor, run
from steepest.measurement.adapters._large_cross_entropy import LargeCrossEntropy
from steepest.measurement.adapters._loss import Loss
from steepest.measurement.adapters._processes import by_itself
from steepest.measurement.adapters._put_back import put_back
from steepest.measurement.adapters._subject import Kind, Subject, Vector, places
from steepest.measurement.adapters._torch_layers import (
    DIVIDING,
    NORMALIZING,
    calls_of,
    dense_layers,
    gates_of,
    last_call_of,
    linear_layers,
    normalized,
    shifts_of,
)
from steepest.measurement.adapters._wrappers import (
    bare,
    unwrapped,
    without_checkpoints,
)

STOCHASTIC = (
    nn.modules.batchnorm._BatchNorm,
    nn.modules.dropout._DropoutNd,
    nn.RNNBase,
    nn.MultiheadAttention,
)


CPU = torch.device("cpu")
HALF = (torch.bfloat16, torch.float16)
SINGLE = ("mps",)
"""Kinds of devices without float64."""


def _one_place(tensors: Mapping[str, Tensor]) -> None:
    """Refuse weights on several devices.

    Raises:
        UserError: they are.
    """
    devices = sorted({str(tensor.device) for tensor in tensors.values()})
    if len(devices) > 1:
        raise UserError(
            f"the weights must be on one device, got {', '.join(devices)}; use model.to({devices[0]!r})"
        )
    if "meta" in devices:
        raise UserError(
            "the weights must have numbers, and those on the device 'meta' have none; load a checkpoint into the model"
        )


def _initialized(module: nn.Module) -> list[tuple[str, nn.Parameter]]:
    """Return the parameters by name.

    Raises:
        UserError: a lazy layer has not seen a batch yet, and so has no weights.
    """
    for name, weight in module.named_parameters():
        if isinstance(weight, nn.parameter.UninitializedParameter):
            raise UserError(
                f"the weights {name!r} have no shape before their lazy layer has seen a batch; call the model on one"
            )
    return list(module.named_parameters())


def in_one_precision(tensors: dict[str, Tensor]) -> dict[str, Tensor]:
    """Return the weights in one precision: half precision, and what is mixed with it, in single.

    Raises:
        UserError: no weights, complex ones, or single and double ones together.
    """
    kinds = {weight.dtype for weight in tensors.values()}
    if kinds & set(HALF) and kinds <= {*HALF, torch.float32}:
        return {name: weight.float() for name, weight in tensors.items()}
    if any(kind.is_complex for kind in kinds):
        raise UserError(
            "complex weights of a module are not measured; keep the real and imaginary part of each as two real "
            "parameters, and join them by torch.complex in the forward pass"
        )
    if len(kinds) != 1 or not kinds <= {torch.float32, torch.float64}:
        said = sorted(str(kind) for kind in kinds) or "no weights that require gradients"
        raise UserError(
            f"the weights need one type, float32 or float64, got {said}; use model.float() or model.double()"
        )
    return tensors


def targets_of(y: Any) -> NDArray:
    """Return targets as one array.

    Raises:
        UserError: they are several, or none.
    """
    if not hasattr(y, "shape"):
        raise UserError(
            f"quantities of outputs need targets in one array, these are a {type(y).__name__}; those of the loss "
            "need none: risk, gradient, sharpness"
        )
    return as_array(y) if isinstance(y, Tensor) else np.asarray(y)


def as_array(tensor: Tensor) -> NDArray:
    """Return a tensor's numbers; those in half precision, which NumPy does not have, in single."""
    tensor = tensor.detach()
    return (tensor.float() if tensor.dtype in HALF else tensor).cpu().numpy()


class TorchSubject(Subject):
    """A module with a loss and data; make it with ``subject``. The module itself is never changed.

    Derivatives are those of ``functional_call`` on detached weights, by double backward, which is safe for every
    operation that has a second derivative at all. The graph of the gradient is kept while the batch stays the same, so
    that products with the Hessian of data in one batch cost one backward pass each.

    Attributes:
        module: the user's.
        loss: mean loss.
        descended: the same, with the statistics of the batch where the loss calls the module itself.
        tensors: weights by name, detached; frozen parameters are not among them.
        head: name of the last linear layer that the forward pass reaches, or as the user said.
        normalizing: names of the layers that take the statistics of the batch, as in training; the module's own running
            statistics stay as they are.
        noise: seed of the random numbers that the module and the loss draw, the same in every pass; None where they
            must draw none.
    """

    def __init__(
        self,
        module: nn.Module,
        loss: Loss,
        batches: Batches,
        tensors: dict[str, Tensor],
        head: str | None,
        normalizing: tuple[str, ...] = (),
        noise: int | None = None,
    ):
        self.module = module
        self.loss = loss
        self.batches = batches
        self.tensors = tensors
        self.head = head
        self.normalizing = normalizing
        self.noise = noise
        self.name = type(module).__name__
        self.weights = places([(name, tuple(tensor.shape)) for name, tensor in tensors.items()])
        first = next(iter(tensors.values()))
        self.device = first.device
        self.precision = first.dtype
        self.dtype = np.dtype("float64" if first.dtype == torch.float64 else "float32")
        self.descended = loss
        if loss.of_params:
            self.descended = replace(loss, function=normalized(loss.function, module, normalizing))
        # no methods: a graph that knew its subject would be a cycle
        self.forward = partial(run, module, first.dtype, normalizing)
        self.forward_alone = partial(run, module, first.dtype, ())
        self._kept: tuple[Any, Graph] | None = None

    @classmethod
    def of(
        cls,
        module: nn.Module,
        loss: Loss,
        batches: Batches,
        head: str | None = None,
        normalizing: tuple[str, ...] | None = None,
        noise: int | None = None,
    ) -> "TorchSubject":
        """Build it from a module as it is.

        Raises:
            UserError: dropout in training mode without fixed ``noise``, or batch normalization if ``normalizing`` is
                None; no weights, several precisions, weights that are not finite, an unknown ``head``.
        """
        for name, layer in module.named_modules():
            if normalizing is not None and isinstance(layer, NORMALIZING):
                continue
            # of dropping; batch normalization has none
            chance = getattr(layer, "p", getattr(layer, "dropout", 1.0))
            fixed = noise is not None and not isinstance(layer, NORMALIZING)
            if layer.training and isinstance(layer, STOCHASTIC) and chance and not fixed:
                raise UserError(
                    f"{name or type(layer).__name__} ({type(layer).__name__}) is in training mode, where the loss is "
                    "no function of the weights alone; call model.eval() first, or measure with noise='fixed', the "
                    "same random numbers in every pass"
                )
        tensors = in_one_precision(
            {
                name: weight.detach().clone()  # some layers write on their weights in their forward pass
                for name, weight in _initialized(module)
                if weight.requires_grad
            }
        )
        _one_place(tensors)
        for name, weight in tensors.items():
            if not bool(torch.isfinite(weight).all()):
                raise UserError(
                    f"the weights {name!r} are not finite; take a checkpoint from before the divergence"
                )
        linear = linear_layers(module, (nn.Linear,))
        if head is not None and head not in linear:
            raise UserError(
                f"there is no linear layer {head!r}; known are: {', '.join(linear) or 'none'}"
            )
        made = cls(module, loss, batches, tensors, head, normalizing or (), noise)
        made.head = head or (None if loss.of_params else made._last_linear())
        return made

    @property
    def normalizes(self) -> bool:
        return bool(self.normalizing)

    def alone(self) -> "TorchSubject":
        return self._with(self.module, self.tensors, normalizing=()) if self.normalizes else self

    @property
    def kept_in(self) -> str:
        kinds = {
            parameter.dtype for parameter in self.module.parameters() if parameter.requires_grad
        }
        # mixed: some weights in half precision, and others in single
        lowest = min(kinds, key=lambda kind: torch.finfo(kind).bits)
        return str(lowest).removeprefix("torch.")

    @property
    def has_normalization(self) -> bool:
        return any(isinstance(layer, DIVIDING) for layer in self.module.modules())

    @property
    def frozen(self) -> dict[str, int]:
        return {
            name: parameter.numel()
            for name, parameter in self.module.named_parameters()
            if not parameter.requires_grad
        }

    @property
    def is_noisy(self) -> bool:
        return self.noise is not None

    @contextmanager
    def untouched(self, batch: Any) -> Iterator[None]:
        """Evaluate on a batch, with its own random numbers where the subject has some."""
        seed = None if self.noise is None else self.noise + self.batches.position
        with (
            untouched(self.name, batch, seed, self.device, self.module),
            put_back(self.module, self.loss.function, seed),
            bare(self.module),
            by_itself(),
            without_checkpoints(),
        ):
            yield

    def values(self) -> Vector:
        return (
            torch.cat([tensor.reshape(-1) for tensor in self.tensors.values()]).cpu().numpy().copy()
        )

    def at(self, values: Vector) -> "TorchSubject":
        if np.shape(values) != (self.size,):
            raise UserError(
                f"{self.name} has {self.size} weights, got a vector of shape {np.shape(values)}"
            )
        tensors = dict(zip(self.tensors, self.split(values), strict=True))
        return self._with(self.module, tensors)

    def redrawn(self, seed: int) -> "TorchSubject":
        other = self.at(self.values())
        other.noise = seed
        return other

    def precise(self) -> "TorchSubject":
        if self.device.type in SINGLE:
            raise UserError(
                f"the device {self.device.type!r} has no float64, which this needs; use model.cpu()"
            )
        tensors = {name: tensor.double() for name, tensor in self.tensors.items()}
        return self._with(self.module, tensors)

    def now(self, model: Any) -> "TorchSubject":
        model = unwrapped(model)
        named = dict(model.named_parameters())
        tensors = {
            name: named[name].detach().to(self.precision, copy=True) for name in self.tensors
        }
        return self._with(model, tensors)

    def _with(
        self,
        module: nn.Module,
        tensors: dict[str, Tensor],
        normalizing: tuple[str, ...] | None = None,
    ) -> "TorchSubject":
        """Return the same subject with another module, weights, or layers that normalize by the batch."""
        names = self.normalizing if normalizing is None else normalizing
        return TorchSubject(module, self.loss, self.batches, tensors, self.head, names, self.noise)

    @cached_property
    def classifier(self) -> tuple[str, str | None] | None:
        if self.head is None:
            return None
        layer = self.module.get_submodule(self.head)
        names = {
            id(parameter): name
            for name, parameter in self.module.named_parameters()
            if name in self.tensors
        }
        matrix = names.get(id(layer.weight))  # tied weights have the name of the first
        bias = names.get(id(layer.bias))
        return None if matrix is None else (matrix, bias)

    def _named(self, params: Any) -> dict[str, Any]:
        try:
            named = dict(params)
        except (TypeError, ValueError):  # neither a mapping nor pairs
            raise UserError(
                "weights of a torch module are a state dict, arrays by their names, got "
                f"{type(params).__name__}"
            ) from None
        return {
            name: as_array(weight) if isinstance(weight, Tensor) else weight
            for name, weight in named.items()
        }

    def split(self, vector: Vector) -> list[Tensor]:
        """Split a flat vector into tensors of the weights' shapes."""
        flat = torch.tensor(np.asarray(vector, self.dtype), device=self.device)
        return [flat[weight.place].reshape(weight.shape) for weight in self.weights]

    def join(self, tensors: Any) -> Vector:
        """Join tensors of the weights' shapes into a flat vector."""
        return torch.cat([tensor.detach().reshape(-1) for tensor in tensors]).cpu().numpy()

    def cast(self, batch: Any) -> Any:
        """Turn arrays into tensors on the module's device; floating point ones in its precision."""
        if isinstance(batch, Mapping):
            return {key: self.cast(part) for key, part in batch.items()}
        if isinstance(batch, tuple | list):
            return type(batch)(self.cast(part) for part in batch)
        if not hasattr(batch, "shape"):
            return batch
        # a copy in any case: a module or loss may write on what it is given
        tensor = batch.detach() if isinstance(batch, Tensor) else torch.as_tensor(batch)
        kind = self.precision if tensor.is_floating_point() else tensor.dtype
        return tensor.to(self.device, kind, copy=True)

    def graph(self, batch: Any) -> "Graph":
        """Return the graph of this batch, kept until another one comes."""
        if self._kept is None or self._kept[0] is not batch:
            self._kept = None  # frees the last one first
            self._kept = (batch, self._graph(batch))
        return self._kept[1]

    def _graph(self, batch: Any) -> "Graph":
        return Graph(self.name, self.forward, self.descended, self.tensors, self.cast(batch))

    def _risk(self, batch: Any) -> float:
        with self.untouched(batch):
            return float(self.graph(batch).loss.detach())

    def _gradient(self, batch: Any) -> Vector:
        with self.untouched(batch):
            return self.join(self.graph(batch).gradient)

    def _products(
        self, kind: Kind, batch: Any, vectors: Float[np.ndarray, "k p"]
    ) -> Float[np.ndarray, "k p"]:
        with self.untouched(batch):
            product = getattr(self.graph(batch), {"gauss-newton": "gauss_newton"}.get(kind, kind))
            return np.stack([self.join(product(self.split(v))) for v in vectors])

    def _outputs(self, batch: Any) -> tuple[NDArray, NDArray]:
        x, y = as_pair(batch)
        with self.untouched(batch), torch.no_grad():
            out = one_tensor(self.name, self.forward(self.tensors, self.cast(x)))
        return as_array(out), targets_of(y)

    def numbers(self) -> int:
        total = 0
        for batch, _ in self.batches:
            with self.untouched(batch), torch.no_grad():
                total += self._graph(batch).numbers
        return total

    def loss_at(self, outputs: NDArray, targets: Any) -> float:
        self.loss.need_outputs("the loss of outputs")
        with self.untouched(targets), torch.no_grad():
            at = torch.tensor(outputs, dtype=self.precision, device=self.device)
            return float(self.loss.function(at, self.cast(targets)))

    def slopes(self, outputs: NDArray, targets: Any) -> NDArray:
        self.loss.need_outputs("weighing parts of a batch")
        with self.untouched(targets), LargeCrossEntropy():
            at = torch.tensor(outputs, dtype=self.precision, device=self.device).requires_grad_()
            value = self.loss.function(at, self.cast(targets))
            return as_array(grad(value, at, materialize_grads=True)[0])

    def _features(self, batch: Any) -> Float[np.ndarray, "b q"]:
        if self.head is None:
            raise UserError(
                f"{self.name} has no linear layer last; name the one that reads the features, features=..."
            )
        with (
            self.untouched(batch),
            torch.no_grad(),
            calls_of(self.module, [self.head]) as calls,
        ):
            self.forward(self.tensors, self.cast(as_pair(batch)[0]))
        return as_array(calls[-1][1])

    def _jvp(self, batch: Any, vector: Vector) -> NDArray:
        with self.untouched(batch):
            return as_array(self.graph(batch).jvp(self.split(vector)))

    def _vjp(self, batch: Any, cotangent: NDArray) -> Vector:
        with self.untouched(batch):
            graph = self.graph(batch)
            back = torch.tensor(cotangent, device=self.device)
            return self.join(gradients(graph.outputs, graph.leaves, back))

    def _inputs(self, batch: Any) -> NDArray:
        return as_array(self.cast(inputs_of(batch)))

    def _evaluate(self, x: NDArray) -> NDArray:
        with self.untouched(x), torch.no_grad():
            return as_array(one_tensor(self.name, self.forward_alone(self.tensors, self.cast(x))))

    def _pull(self, x: NDArray, cotangent: NDArray) -> NDArray:
        with self.untouched(x):
            at = self.cast(x).requires_grad_()
            # a copy, as the module may begin in place
            out = one_tensor(self.name, self.forward_alone(self.tensors, at.clone()))
            back = torch.tensor(cotangent, device=self.device)
            return grad(out, at, back, materialize_grads=True)[0].cpu().numpy()

    def _layers(self, x: NDArray) -> dict[str, NDArray]:
        with (
            self.untouched(x),
            torch.no_grad(),
            calls_of(self.module, linear_layers(self.module)) as calls,
        ):
            self.forward(self.tensors, self.cast(x))
        return {
            name or self.name: as_array(out) for name, _, out in calls if out.shape[:1] == (len(x),)
        }

    def _gates(self, x: NDArray) -> dict[str, float]:
        with self.untouched(x), torch.no_grad(), gates_of(self.module) as shares:
            self.forward(self.tensors, self.cast(x))
        return dict(shares)

    def _errors(self, batch: Any) -> dict[str, NDArray]:
        count = examples(batch)
        with (
            self.untouched(batch),
            shifts_of(self.module, linear_layers(self.module)) as shifts,
        ):
            loss = self._graph(batch).loss
            slopes = grad(loss, list(shifts.values()), materialize_grads=True) if shifts else ()
        named = zip(shifts, slopes, strict=True)
        return {
            name or self.name: as_array(count * s) for name, s in named if s.shape[:1] == (count,)
        }

    def _reads(self, x: NDArray) -> dict[str, NDArray]:
        with (
            self.untouched(x),
            torch.no_grad(),
            calls_of(self.module, linear_layers(self.module)) as calls,
        ):
            self.forward(self.tensors, self.cast(x))
        return {
            name or self.name: as_array(given)
            for name, given, out in calls
            if out.shape[:1] == given.shape[:1] == (len(x),)
        }

    def _layer_vjp(self, x: NDArray, cotangent: NDArray) -> dict[str, NDArray]:
        with (
            self.untouched(x),
            shifts_of(self.module, linear_layers(self.module)) as shifts,
        ):
            out = one_tensor(self.name, self.forward(self.tensors, self.cast(x)))
            back = torch.tensor(cotangent, device=self.device)
            slopes = (
                grad(out, list(shifts.values()), back, materialize_grads=True) if shifts else ()
            )
        return {
            name or self.name: as_array(slope)
            for name, slope in zip(shifts, slopes, strict=True)
            if slope.shape[:1] == (len(x),)
        }

    def example_gradients(
        self, batch: Any, output: Callable[[Any, Any], Any], sketch: Any
    ) -> tuple[NDArray, NDArray, NDArray]:
        with self.untouched(batch):
            pair = tuple(self.cast(as_pair(batch)))
            values, kept = of_examples(
                self.name, self.forward_alone, self.tensors, pair, output, sketch
            )
        return as_array(values), as_array(kept), targets_of(as_pair(batch)[1])

    def dense(self) -> list[Dense] | None:
        return dense_layers(self.module, self.tensors)

    def _last_linear(self) -> str | None:
        """Return the linear layer that the forward pass reaches last, if it gives the outputs."""
        names = linear_layers(self.module, (nn.Linear,))
        try:
            batch, _ = self.batches.first()
            out, last = self._calls(names, batch)
        except (
            UserError
        ):  # a model may read batches only as they are given, as the vertices of a graph
            batch = self.batches.first_as_given()
            out, last = self._calls(names, batch)
        if not isinstance(out, Tensor):
            return None
        return next(
            (name for name, its in last.items() if torch.equal(its.flatten(), out.flatten())), None
        )

    def _calls(self, names: Any, batch: Any) -> tuple[Any, dict[str, Tensor]]:
        """Return the outputs of a batch, and what each of these layers wrote at its last call."""
        with self.untouched(batch), torch.no_grad(), last_call_of(self.module, names) as last:
            out = self.forward(self.tensors, self.cast(as_pair(batch)[0]))
        return out, last


@contextmanager
def full_precision() -> Iterator[None]:
    """Let no autocast begin, also inside of the module's forward pass, where transformers' Trainer puts it.

    Second derivatives of operations in half precision are rounded too coarsely to measure by.
    """
    begin = torch.autocast.__enter__

    def begin_disabled(self: Any) -> Any:
        enabled = self._enabled
        self._enabled = False
        try:
            return begin(self)
        finally:
            self._enabled = enabled  # the object may be the user's, who goes on to use it

    torch.autocast.__enter__ = begin_disabled
    try:
        with torch.autocast("cpu", enabled=False), torch.autocast("cuda", enabled=False):
            yield
    finally:
        torch.autocast.__enter__ = begin


@contextmanager
def untouched(
    name: str,
    batch: Any,
    seed: int | None = None,
    device: torch.device = CPU,
    module: nn.Module | None = None,
) -> Iterator[None]:
    """Use the attention kernel with second derivatives, restore random states, and raise errors in one sentence.

    Args:
        name: of the model.
        batch: on which it is evaluated, for the sentence.
        seed: of the random numbers that are drawn; None for what comes.
        device: of the weights.
        module: the model, for what to try.
    """
    fast = torch.backends.mha.get_fastpath_enabled()
    other = [device] if device.type == "cuda" else []
    try:
        with (
            states_kept(),
            torch.random.fork_rng(other, enabled=seed is not None),
            sdpa_kernel(SDPBackend.MATH),
            torch.enable_grad(),
            full_precision(),
        ):
            # its kernels have no derivatives, and skip the layers inside
            torch.backends.mha.set_fastpath_enabled(False)
            if seed is not None:
                torch.manual_seed(seed)
                np.random.seed(seed)
                random.seed(seed)
            yield
    except UserError:
        raise
    except Exception as trouble:  # whatever module and loss raise
        said = str(trouble).strip().splitlines()[0] if str(trouble).strip() else ""
        if not said or not isinstance(trouble, RuntimeError):
            said = f"{type(trouble).__name__}: {said}".removesuffix(": ")
        kinds = sorted(
            {str(getattr(leaf, "dtype", "?")).removeprefix("torch.") for leaf in leaves(batch)}
        )
        given = f"a batch of {', '.join(kinds)}"
        raise UserError(
            f"{name} cannot be evaluated or differentiated on {given}: {said}; {_to_try(module)}"
        ) from trouble
    finally:
        torch.backends.mha.set_fastpath_enabled(fast)


def _to_try(module: nn.Module | None) -> str:
    """Return what helps where a module cannot be evaluated or differentiated twice."""
    if isinstance(module, torch.jit.ScriptModule):
        return "measure the module that was traced or scripted"
    parts = [] if module is None else list(module.modules())
    if any(isinstance(part, nn.EmbeddingBag) for part in parts):
        return "nn.EmbeddingBag has no second derivative: use nn.Embedding and the mean or sum of its rows"
    return (
        "see that model(x) and loss(outputs, y) run on one batch (x, y); a model of several arguments needs a module "
        "around it that takes them as one"
    )
