"""Cross-entropy of very many logits, twice differentiable in the memory of the logits and their derivative.

The graph that torch keeps for two derivatives of it has a dozen arrays of the logits' size. Each row's part has a
closed form: with the softmax p of the logits z and the label y, the derivative is ``w (p − e_y)``, and along U the next
one is ``w (p ∘ U − p (p·U))``. So only the logits, and the logarithm of each row's sum, need be kept.
"""

from collections.abc import Callable, Iterator
from typing import Any

import torch
from torch import Tensor
from torch.autograd.function import once_differentiable
from torch.nn.functional import cross_entropy
from torch.overrides import TorchFunctionMode

MANY = 2**20
"""Logits, from which on it pays."""
AT_ONCE = 2**18
"""Logits of the rows that are worked on together: what is not kept has this size."""


class LargeCrossEntropy(TorchFunctionMode):
    """Calculate torch's cross-entropy so where logits are many, of class numbers, without smoothing.

    Attributes:
        logits: of the largest cross-entropy so far, how many.
    """

    def __init__(self) -> None:
        super().__init__()
        self.logits = 0

    def __torch_function__(
        self, func: Callable, types: Any, args: Any = (), kwargs: Any = None
    ) -> Any:
        kwargs = kwargs or {}
        if func is not cross_entropy:
            return func(*args, **kwargs)
        logits = args[0] if args else kwargs.get("input")
        self.logits = max(self.logits, getattr(logits, "numel", int)())
        value = _mean_or_sum(*args, **kwargs)
        return func(*args, **kwargs) if value is None else value


def _mean_or_sum(
    input: Tensor,
    target: Tensor,
    weight: Tensor | None = None,
    size_average: bool | None = None,
    ignore_index: int = -100,
    reduce: bool | None = None,
    reduction: str = "mean",
    label_smoothing: float = 0.0,
) -> Tensor | None:
    """Return the cross-entropy, by the names of torch's arguments; None where torch shall do it."""
    is_ours = size_average is None and reduce is None and reduction in ("mean", "sum")
    is_ours &= not label_smoothing and (weight is None or not weight.requires_grad)
    if not is_ours or not _is_large(input, target):
        return None
    logits = input.movedim(1, -1).flatten(0, -2)
    labels = target.flatten()
    counts = labels != ignore_index
    labels = torch.where(counts, labels, 0)
    if not bool(((labels >= 0) & (labels < logits.shape[1])).all()):
        return None  # torch says what is wrong
    weights = counts.to(logits.dtype) if weight is None else counts * weight[labels]
    if reduction == "mean":
        weights = weights / weights.sum()
    return _Total.apply(logits, labels, weights)


def _is_large(logits: Any, labels: Any) -> bool:
    """Tell whether these are many plain logits ``(n, C, …)`` with class numbers ``(n, …)``."""
    if type(logits) is not Tensor or not isinstance(labels, Tensor) or logits.numel() < MANY:
        return False
    if torch._C._functorch.is_functorch_wrapped_tensor(logits):  # pyright: ignore
        return False
    shape = (logits.shape[0], *logits.shape[2:]) if logits.dim() >= 2 else None
    is_exact = logits.dtype in (torch.float32, torch.float64)
    return is_exact and labels.dtype == torch.int64 and tuple(labels.shape) == shape


def _rows(logits: Tensor) -> Iterator[slice]:
    count = max(1, AT_ONCE // logits.shape[1])
    return (slice(start, start + count) for start in range(0, len(logits), count))


class _Total(torch.autograd.Function):
    """The sum of ``w_i (log Σ_c exp z_ic − z_i,y_i)``."""

    @staticmethod
    def forward(ctx: Any, logits: Tensor, labels: Tensor, weights: Tensor) -> Tensor:
        sums = torch.cat([logits[rows].logsumexp(1) for rows in _rows(logits)])
        ctx.save_for_backward(logits, labels, weights, sums)
        chosen = logits.gather(1, labels[:, None])[:, 0]
        # a row without weight adds nothing, also where it is infinite
        return torch.where(weights == 0, 0, weights * (sums - chosen)).sum()

    @staticmethod
    def backward(ctx: Any, *slopes: Any) -> Any:
        logits, labels, weights, sums = ctx.saved_tensors
        return _Slopes.apply(logits, slopes[0], labels, weights, sums), None, None


class _Slopes(torch.autograd.Function):
    """The derivative ``s w_i (p_i − e_{y_i})`` of s times the sum."""

    @staticmethod
    def forward(
        ctx: Any, logits: Tensor, slope: Tensor, labels: Tensor, weights: Tensor, sums: Tensor
    ) -> Tensor:
        ctx.save_for_backward(logits, slope, labels, weights, sums)
        result = torch.empty_like(logits)
        for rows in _rows(logits):
            part = torch.sub(logits[rows], sums[rows, None], out=result[rows]).exp_()
            part.scatter_add_(1, labels[rows, None], torch.full_like(part[:, :1], -1.0))
            part.mul_((slope * weights[rows])[:, None])
        return result

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, *directions: Any) -> Any:
        logits, slope, labels, weights, sums = ctx.saved_tensors
        along = directions[0]
        result = torch.empty_like(logits)
        of_slope = torch.zeros_like(slope)
        for rows in _rows(logits):
            p = (logits[rows] - sums[rows, None]).exp_()
            u = along[rows]
            inner = (p * u).sum(1)
            chosen = u.gather(1, labels[rows, None])[:, 0]
            of_slope = of_slope + (weights[rows] * (inner - chosen)).sum()
            part = torch.sub(u, inner[:, None], out=result[rows])
            part.mul_(p).mul_((slope * weights[rows])[:, None])
        return result, of_slope, None, None, None
