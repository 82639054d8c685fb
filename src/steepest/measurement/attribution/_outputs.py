"""Model outputs that are attributed, one number of each example, and what the loss makes of them."""

import sys
from collections.abc import Callable
from typing import Any, Literal, NamedTuple, get_args

import numpy as np
from numpy.typing import NDArray

from steepest.core.errors import UserError, nearest
from steepest.core.given import shown

ModelOutput = Literal["margin", "value"]
"""``"margin"``, log p/(1 − p) with the probability p of an example's class; ``"value"``, the output of a regression."""
LossOfOutput = Literal["logistic", "squared"]
"""The loss ℓ of one example as a function of its model output f: log(1 + e^−f), or ½ (f − y)²."""


class Law(NamedTuple):
    """A model output and the loss that it enters.

    Attributes:
        output: of ``(outputs, targets)`` in the model's own framework, one number of each example.
        loss: as a function of this number.
        name: of the output; empty for the reader's own function.
    """

    output: Callable[[Any, Any], Any]
    loss: LossOfOutput
    name: str

    def slopes(self, values: NDArray, targets: NDArray) -> tuple[NDArray, NDArray]:
        """Return −ℓ' and ℓ'' at these outputs, shape ``(b,)`` each: y − f and 1, or 1 − p and p (1 − p)."""
        values = values.astype(float)
        if self.loss == "squared":
            return targets.reshape(len(values)) - values, np.ones_like(values)
        from scipy.special import expit

        wrong = expit(-values)  # in double precision, where 1 − p of a sure example is not yet zero
        return wrong, wrong * expit(values)


def law_of(model_output: Any, loss: Any) -> Law:
    """Read what the caller chose.

    Raises:
        UserError: no such output or loss; a function of the reader's own without its loss.
    """
    if loss is not None and loss not in get_args(LossOfOutput):
        raise UserError(f"there is no loss {loss!r}; {nearest(str(loss), get_args(LossOfOutput))}")
    if callable(model_output):
        if loss is None:
            raise UserError(
                "a model output of your own needs the loss that it enters; give loss='logistic' for log(1 + e^-f), or "
                "loss='squared' for (f - y)**2/2"
            )
        return Law(model_output, loss, "")
    if model_output not in get_args(ModelOutput):
        raise UserError(
            f"a model output is 'margin', 'value' or a function of (outputs, targets), got {shown(model_output)}; "
            f"{nearest(str(model_output), get_args(ModelOutput))}"
        )
    if model_output == "margin":
        return Law(margin, loss or "logistic", "margin")
    return Law(value, loss or "squared", "value")


def margin(outputs: Any, targets: Any) -> Any:
    """Return log p_y/(1 − p_y) of classes y: logits ``(b, C)``, or one logit of class 1 for each example.

    It is z_y − log Σ_{c ≠ y} e^{z_c}, so the cross-entropy is log(1 + e^−f) of it.
    """
    if outputs.ndim == 1 or outputs.shape[1] == 1:
        return (2 * targets.reshape(-1) - 1) * outputs.reshape(-1)
    is_target = targets.reshape(-1, 1) == _count_like(outputs)
    where = _where(outputs)
    right = where(is_target, outputs, 0.0).sum(-1)
    others = where(is_target, -np.inf, outputs)
    return right - _logsumexp(others)


def value(outputs: Any, targets: Any) -> Any:
    """Return the output of each example, of outputs ``(b,)`` or ``(b, 1)``."""
    return outputs.reshape(-1)


def check_pair(law: Law, shape: tuple[int, ...], targets: NDArray) -> None:
    """Refuse outputs of a shape ``(b, …)``, and targets of this batch, for which the chosen output does not exist.

    Raises:
        UserError: shapes, or classes that are no whole numbers from 0 to C − 1.
    """
    if law.name == "margin":
        _check_margin(shape, targets)
    count = shape[0]
    if law.name == "value" and shape not in ((count,), (count, 1)):
        raise UserError(
            f"the output of a regression is one number of each example, got outputs of shape {shape}; give "
            "model_output=lambda outputs, targets: ..., of shape (b,), and its loss"
        )
    if law.loss == "squared" and targets.size != count:
        raise UserError(
            f"the squared loss of one output needs one target of each example, got targets of shape {targets.shape}; "
            "give the target of this output only"
        )


def _check_margin(shape: tuple[int, ...], targets: NDArray) -> None:
    if len(shape) not in (1, 2):
        raise UserError(
            f"a margin needs logits of shape (b, C), got {shape}; give model_output=lambda outputs, targets: "
            "..., of shape (b,), such as the mean margin over positions, and loss='logistic'"
        )
    classes = 2 if len(shape) == 1 or shape[1] == 1 else shape[1]
    whole = targets.dtype.kind in "iub" or bool((targets % 1 == 0).all())
    if not whole or targets.size != shape[0]:
        raise UserError(
            f"a margin needs the class of each example, got targets of {targets.dtype} and shape {targets.shape}; for "
            "a regression take model_output='value'"
        )
    if targets.size and not 0 <= targets.min() <= targets.max() < classes:
        raise UserError(
            f"classes of {classes} logits are numbers from 0 to {classes - 1}, got {targets.min():g} to "
            f"{targets.max():g}; number the classes from 0, or leave the examples without a class out"
        )


def _is_tensor(array: Any) -> bool:
    torch = sys.modules.get("torch")
    return torch is not None and isinstance(array, torch.Tensor)


def _count_like(outputs: Any) -> Any:
    """Return 0, …, C − 1 where the outputs are."""
    if _is_tensor(outputs):
        import torch

        return torch.arange(outputs.shape[1], device=outputs.device)
    import jax.numpy as jnp

    return jnp.arange(outputs.shape[1])


def _where(outputs: Any) -> Callable[..., Any]:
    if _is_tensor(outputs):
        import torch

        return torch.where
    import jax.numpy as jnp

    return jnp.where


def _logsumexp(rows: Any) -> Any:
    if _is_tensor(rows):
        return rows.logsumexp(-1)
    import jax

    return jax.nn.logsumexp(rows, axis=-1)
