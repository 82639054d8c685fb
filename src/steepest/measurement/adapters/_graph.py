"""The graph of one batch of a torch module, through which its loss is differentiated twice."""

from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from functools import cached_property
from typing import Any

import torch
from torch import Tensor, nn
from torch.autograd import grad
from torch.func import functional_call
from torch.nn.functional import embedding
from torch.overrides import TorchFunctionMode

from steepest.core.errors import UserError
from steepest.measurement.adapters._batches import as_pair
from steepest.measurement.adapters._large_cross_entropy import LargeCrossEntropy
from steepest.measurement.adapters._loss import Loss
from steepest.measurement.adapters._torch_layers import statistics_of_batch


def run(
    module: nn.Module,
    precision: torch.dtype,
    normalizing: tuple[str, ...],
    tensors: dict[str, Tensor],
    x: Any,
) -> Any:
    """Return outputs of a module at these weights; buffers are copies, in case the module writes to them.

    Args:
        module: the user's, whose mode is the same afterwards.
        precision: of weights that are not among the tensors, and of buffers.
        normalizing: names of the layers that take the statistics of the batch.
        tensors: weights by name.
        x: what the module is called with.
    """
    with statistics_of_batch(module, normalizing):
        return called(module, precision, tensors, (x,))


def called(
    module: nn.Module,
    precision: torch.dtype,
    tensors: dict[str, Tensor],
    given: tuple,
    named: dict[str, Any] | None = None,
) -> Any:
    """Return what a module returns in the mode in which it is; ``given`` and ``named`` are what it is called with."""
    fixed = {
        name: tensor.detach() for name, tensor in module.named_parameters() if name not in tensors
    }
    fixed |= {name: tensor.clone() for name, tensor in module.named_buffers()}
    fixed = {
        name: tensor.to(precision) if tensor.is_floating_point() else tensor
        for name, tensor in fixed.items()
    }
    weights = {**fixed, **tensors}
    for name, parameter in module.named_parameters():
        # what a library has written on its weights, such as the base shapes of µP, and reads in the forward pass
        for attribute, value in vars(parameter).items():
            setattr(weights[name], attribute, value)
    with _twice_differentiable(module):
        return functional_call(module, weights, given, named)


class _Replaced(TorchFunctionMode):
    """Normalize weights by operations whose second derivative is right, and look rows up with dense derivatives.

    The second derivative of torch's own kernel of the former is not right; the latter's sparse ones have none.
    """

    def __torch_function__(
        self, func: Callable, types: Any, args: Any = (), kwargs: Any = None
    ) -> Any:
        kwargs = kwargs or {}
        if func is embedding:
            return embedding(*args[:6], **{**kwargs, "sparse": False})
        if getattr(func, "__name__", "") != "_weight_norm":
            return func(*args, **kwargs)
        return _weight_norm(*args, **kwargs)


def _weight_norm(v: Tensor, g: Tensor, dim: int = 0) -> Tensor:
    """Return ``g v / ‖v‖``, with norms over all axes but one, or over all of them if ``dim`` is −1."""
    axes = [axis for axis in range(v.dim()) if axis != dim]
    return v * (g / torch.linalg.vector_norm(v, dim=axes, keepdim=True))


def _twice_differentiable(module: nn.Module) -> AbstractContextManager:
    """Replace operations without a correct second derivative, for modules that have them."""
    hooks = [hook for part in module.modules() for hook in part._forward_pre_hooks.values()]
    names = {type(part).__name__ for part in [*module.modules(), *hooks]}
    is_sparse = any(getattr(part, "sparse", False) for part in module.modules())
    return _Replaced() if is_sparse or names & {"_WeightNorm", "WeightNorm"} else nullcontext()


def one_tensor(name: str, returned: Any) -> Tensor:
    """Return the outputs of a module.

    Raises:
        UserError: it returns anything but one tensor.
    """
    if not isinstance(returned, Tensor):
        raise UserError(
            f"{name} returns a {type(returned).__name__}, and this needs its outputs in one tensor; measure a module "
            "around it that returns the outputs, or only what needs the loss: risk, gradient, sharpness"
        )
    return returned


class Graph:
    """Outputs, loss and gradient of one batch, with the graph through which they are differentiated again."""

    def __init__(
        self, name: str, forward: Callable, loss: Loss, tensors: dict[str, Tensor], batch: Any
    ) -> None:
        self.name = name
        self.forward = forward
        self.loss_of = loss
        self.batch = batch
        self.tensors = {name: tensor.clone().requires_grad_() for name, tensor in tensors.items()}
        self.leaves = list(self.tensors.values())
        self.mode = LargeCrossEntropy()

    @cached_property
    def returned(self) -> Any:
        """Return whatever the module does, such as logits with hidden states."""
        return self.forward(self.tensors, as_pair(self.batch)[0])

    @property
    def outputs(self) -> Tensor:
        return one_tensor(self.name, self.returned)

    @cached_property
    def loss(self) -> Tensor:
        loss = self.loss_of
        if loss.of_params:
            value = loss.checked(self._evaluated(self.tensors, self.batch))
        else:
            value = loss.checked(self._evaluated(self.returned, as_pair(self.batch)[1]))
        if not value.requires_grad:
            raise UserError(
                f"the loss of {self.name} has no derivative in the weights: outputs or loss are cut off from them "
                "(detach, no_grad, argmax, .item()); give the loss that you descend on"
            )
        return value

    def _evaluated(self, first: Any, second: Any) -> Any:
        with self.mode:
            return self.loss_of.function(first, second)

    @property
    def numbers(self) -> int:
        """Count the outputs, or the logits of the loss where they are more."""
        if self.loss_of.of_params:
            self._evaluated(self.tensors, self.batch)
            return self.mode.logits
        returned = self.returned
        if isinstance(returned, Tensor):
            return returned.numel()
        self._evaluated(returned, as_pair(self.batch)[1])
        return self.mode.logits

    @cached_property
    def gradient(self) -> tuple[Tensor, ...]:
        return gradients(self.loss, self.leaves, None, again=True)

    def hessian(self, vector: list[Tensor]) -> tuple[Tensor, ...]:
        return gradients(self.gradient, self.leaves, vector)

    def jvp(self, vector: list[Tensor]) -> Tensor:
        return self._along(*self._linear, vector)

    def gauss_newton(self, vector: list[Tensor]) -> tuple[Tensor, ...]:
        self.loss_of.need_outputs("the Gauss–Newton matrix")
        at = self.outputs.detach().requires_grad_()
        slope = grad(self._evaluated(at, as_pair(self.batch)[1]), at, create_graph=True)
        return gradients(self.outputs, self.leaves, gradients(slope, [at], [self.jvp(vector)])[0])

    def fisher(self, vector: list[Tensor]) -> tuple[Tensor, ...]:
        # example i adds c_i J_i to the gradient of the mean of n, c = ∂L/∂f, so that its own gradient is n c_i J_i,
        # also where examples have weights; then Σ_i g_i (g_i·v) / n = Jᵀ(s ∘ c) with s_i = n c_i·(J v)_i
        rows = self._slopes.flatten(1) if self._slopes.dim() > 1 else self._slopes[:, None]
        moved = self.jvp(vector).reshape(rows.shape)
        along = len(rows) * (rows * moved).sum(1, keepdim=True) * rows
        return gradients(self.outputs, self.leaves, along.reshape(self._slopes.shape))

    @cached_property
    def _slopes(self) -> Tensor:
        """Return the derivative of the loss in the outputs, (b, …)."""
        self.loss_of.need_outputs("the empirical Fisher matrix of a torch module")
        at = self.outputs.detach().requires_grad_()
        return grad(self._evaluated(at, as_pair(self.batch)[1]), at)[0]

    # J v by differentiating Jᵀu, which is linear in u, with respect to u

    @cached_property
    def _linear(self) -> tuple[Tensor, tuple[Tensor, ...]]:
        return self._transposed(self.outputs)

    def _transposed(self, values: Tensor) -> tuple[Tensor, tuple[Tensor, ...]]:
        u = torch.zeros_like(values, requires_grad=True)
        return u, gradients(values, self.leaves, u, again=True)

    def _along(self, u: Tensor, back: tuple[Tensor, ...], vector: list[Tensor]) -> Tensor:
        return gradients(back, [u], vector)[0]


def gradients(of: Any, at: list[Tensor], back: Any, again: bool = False) -> tuple[Tensor, ...]:
    """Differentiate, zero where there is no dependence; with a graph of the derivatives if ``again``."""
    several = isinstance(of, tuple)
    parts = (
        [(one, cotangent) for one, cotangent in zip(of, back, strict=True) if one.requires_grad]
        if several
        else [(of, back)]
    )
    if not parts or not parts[0][0].requires_grad:
        return tuple(torch.zeros_like(tensor) for tensor in at)
    # the derivative of the inner product: given cotangents instead, torch imports its symbolic shapes, half a second
    inner = [one if cotangent is None else (one * cotangent).sum() for one, cotangent in parts]
    return grad(inner, at, retain_graph=True, create_graph=again, materialize_grads=True)
