"""Parameterizations: abc-exponents of the width for initial scale, multiplier and step size."""

from dataclasses import dataclass
from typing import Any, NamedTuple

import jax
import numpy as np

from steepest.core.errors import UserError, nearest
from steepest.core.given import traced
from steepest.core.signatures import checked


class ByLayer(NamedTuple):
    """One exponent for each kind of layer."""

    first: float
    hidden: float
    last: float


@dataclass(frozen=True)
class Parameterization:
    """Exponents of the hidden width n: a weight acts as ``n^-a w``, starts as ``w ~ N(0, n^-2b)``, steps as ``η n^-c``.

    Constant factors (C_W and the input dimension n_0) stand beside the width factor that they accompany: in the
    initial scale for the standard parameterization, in the multiplier for the others (``constants_in_multiplier``).

    Attributes:
        name: its usual name.
        multiplier: the exponents a.
        scale: the exponents b.
        step: the exponent c, one for all layers.
        constants_in_multiplier: where √C_W and 1/√n_0 stand.

    Source: Yang and Hu 2021 (Tensor Programs IV), table 1; c is relative to the step size of the limit.
    """

    name: str
    multiplier: ByLayer
    scale: ByLayer
    step: float
    constants_in_multiplier: bool = True


PARAMETERIZATIONS = {
    p.name: p
    for p in (
        Parameterization(
            "standard", ByLayer(0, 0, 0), ByLayer(0, 0.5, 0.5), 0, constants_in_multiplier=False
        ),
        Parameterization("ntk", ByLayer(0, 0.5, 0.5), ByLayer(0, 0, 0), 0),
        Parameterization("mean-field", ByLayer(0, 0.5, 1), ByLayer(0, 0, 0), -1),
        Parameterization("mup", ByLayer(-0.5, 0, 0.5), ByLayer(0.5, 0.5, 0.5), 0),
    )
}


@checked
def parameterization(name: str | Parameterization) -> Parameterization:
    """Find a parameterization by name: standard, ntk, mean-field or mup.

    Raises:
        UserError: for an unknown name.

    >>> parameterization("mup").multiplier.last
    0.5
    """
    if isinstance(name, Parameterization):
        return name
    if name not in PARAMETERIZATIONS:
        raise UserError(
            f"there is no parameterization {name!r}; {nearest(name, PARAMETERIZATIONS)}"
        )
    return PARAMETERIZATIONS[name]


def width_factor(exponent: float, width: int) -> float:
    """Return the width to the power of minus the exponent."""
    return width**-exponent


def _check_variances(**given: Any) -> None:
    """Raise a UserError unless c_w and c_b are finite numbers ≥ 0, one or several of each; traced ones may be any."""
    for name, values in given.items():
        plain = [value for value in jax.tree.leaves(values) if not traced(value)]
        try:
            numbers = np.asarray(plain, float)
        except (TypeError, ValueError):
            numbers = np.array(np.nan)
        if not (np.isfinite(numbers).all() and (numbers >= 0).all()):
            raise UserError(f"{name} is a variance and must be a finite number ≥ 0, got {values!r}")


def _number_or_traced(value: Any) -> Any:
    """Return a plain number, or what JAX traces as it is."""
    return value if traced(value) else float(value)


def check_limit(abc: Parameterization) -> None:
    """Raise a UserError unless effective weights have variance of order 1/fan-in, so that a limit kernel exists."""
    effective = [a + b for a, b in zip(abc.multiplier, abc.scale, strict=True)]
    if effective == [0.0, 0.5, 0.5]:
        return
    if effective[:2] == [0.0, 0.5] and effective[2] > 0.5:
        raise UserError(
            f"no kernel describes the limit of the {abc.name} parameterization: its output tends to zero at "
            "initialization and its features, hence the tangent kernel, move by order one in training; try "
            "parameterized='ntk', or the tangent kernel of a finite network, empirical_ntk"
        )
    raise UserError(
        f"the {abc.name} parameterization has no limit: effective weights scale as width to the powers "
        f"{[-exponent for exponent in effective]}, and only 0, -1/2, -1/2 keep signals of order one"
    )
