"""Losses in the forms in which users have them."""

import inspect
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from steepest.core.errors import UserError

OF_PARAMS = ("params", "parameters", "weights")


@dataclass(frozen=True)
class Loss:
    """A mean loss over the examples of a batch.

    Attributes:
        function: of ``(outputs, targets)``, or of ``(params, batch)``.
        of_params: which of them: the latter when its first argument is called so.
    """

    function: Callable[[Any, Any], Any]
    of_params: bool

    @classmethod
    def of(cls, function: Any) -> "Loss":
        """Build it from a callable.

        Raises:
            UserError: if it is none.

        >>> Loss.of(lambda params, batch: 0.0).of_params, Loss.of(lambda outputs, targets: 0.0).of_params
        (True, False)
        """
        if not callable(function):
            raise UserError(
                f"a loss is a function of (outputs, targets) or of (params, batch), got {type(function).__name__}"
            )
        try:
            first = next(iter(inspect.signature(function).parameters), "")
        except (TypeError, ValueError):  # written in C: nothing is known of it
            first = ""
        return cls(function, first in OF_PARAMS)

    def need_outputs(self, what: str) -> None:
        """Refuse a loss of ``(params, batch)``.

        Raises:
            UserError: it is one.
        """
        if self.of_params:
            raise UserError(f"{what} needs a loss of (outputs, targets), not of (params, batch)")

    def checked(self, value: Any) -> Any:
        """Return the loss, if it is one number.

        Raises:
            UserError: if it has another shape.
        """
        shape = tuple(getattr(value, "shape", ()))
        if shape != ():
            raise UserError(
                f"a loss is one number, the mean over a batch; got shape {shape}; take the mean"
            )
        return value
