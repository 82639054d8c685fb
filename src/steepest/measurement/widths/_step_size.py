"""How the step size of a reader's own training is multiplied: in the groups of its optimizer, or by a knob."""

import inspect
import math
from typing import Any, NamedTuple

from steepest.core.errors import UserError
from steepest.measurement._building import Builder, Built
from steepest.measurement.adapters import is_torch_module
from steepest.measurement.widths._knobs import built_at

KNOB = "lr"
SIZES = ("lr", "initial_lr", "max_lr", "min_lr")
"""What groups of weights of torch hold of step sizes: that of now, and those from which schedules start."""


class StepSize(NamedTuple):
    """The step size of what a function builds, and how it is turned.

    Attributes:
        builder: the reader's function.
        usual: the default of its knob ``lr``; None where the groups of its optimizer are multiplied.
    """

    builder: Builder
    usual: float | None

    @classmethod
    def of(cls, builder: Builder, width: float, seed: int | None) -> "StepSize":
        """Find out how the step size can be turned; the knob goes before the optimizer.

        Raises:
            UserError: neither a knob nor an optimizer with groups; a knob without a usual value; a function that
                returns the same model or optimizer twice, which would be trained further each time.
        """
        first = built_at(builder, width, seed)
        _check_fresh(builder, first, built_at(builder, width, seed))
        if KNOB in builder.knobs:
            return cls(builder, _usual(builder))
        if not _groups(first):
            raise UserError(
                f"the step size of {builder.where} cannot be turned: return torch's 'optimizer' that 'train' uses "
                "among the parts, or write def build(seed=0, width=1.0, lr=0.001) and train with lr"
            )
        return cls(builder, None)

    def built(self, factor: float, width: float, seed: int | None) -> Built:
        """Build one network whose step sizes are ``factor`` times the usual ones."""
        if self.usual is not None:
            return built_at(self.builder, width, seed, lr=factor * self.usual)
        built = built_at(self.builder, width, seed)
        for group in _groups(built):
            for name in SIZES:
                if name in group:
                    group[name] = group[name] * factor
        return built

    def sizes(self, built: Built) -> tuple[float, ...]:
        """Return the step sizes that ``built`` has now, one a group of weights; none where a knob is turned."""
        if self.usual is not None:
            return ()
        return tuple(float(group["lr"]) for group in _groups(built))


def _groups(built: Built) -> list[dict[str, Any]]:
    """Return the groups of weights of an optimizer of torch; none of other optimizers."""
    groups = getattr(built.optimizer, "param_groups", None) or []
    return [group for group in groups if "lr" in group]


def _usual(builder: Builder) -> float:
    """Return the default of the knob."""
    given = inspect.signature(builder.function).parameters[KNOB].default
    number = isinstance(given, float | int) and not isinstance(given, bool)
    if not number or not 0 < given < math.inf:
        shown = "none" if given is inspect.Parameter.empty else repr(given)
        raise UserError(
            f"lr of {builder.where} needs a default above 0, which the factors multiply, got {shown}; write lr=0.001"
        )
    return float(given)


def _check_fresh(builder: Builder, first: Built, second: Built) -> None:
    """Refuse a function that returns one module or one optimizer at every call."""
    model = is_torch_module(first.model) and first.model is second.model
    optimizer = bool(_groups(first)) and first.optimizer is second.optimizer
    if model or optimizer:
        what = "model" if model else "optimizer"
        raise UserError(
            f"{builder.where} returns the same {what} at every call, which would be trained further each time; make it "
            "inside of the function"
        )
