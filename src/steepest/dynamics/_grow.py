"""Growing a network of parallel units until a certificate says that it is globally optimal."""

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from steepest.core.errors import UserError
from steepest.core.signatures import checked
from steepest.programs import Polar


class Fit(NamedTuple):
    """A minimum of the penalized risk over some units.

    Attributes:
        value: the penalized risk.
        residual: targets minus outputs, what the polar is taken of.
        units: the units that are left, those of weight zero dropped, in any form that the caller's ``fit`` reads.
    """

    value: float
    residual: np.ndarray
    units: list[Any]


class Growth(NamedTuple):
    """The record of a growth, one entry for each number of rounds, before any unit first.

    Attributes:
        values: penalized risks after each fit, shape ``(rounds + 1,)``.
        polars: the polar of the residual after each fit.
        sizes: units after each fit.
        fit: the last fit.
        certified: whether the last polar is at most the penalty times one plus the tolerance.
    """

    values: np.ndarray
    polars: np.ndarray
    sizes: np.ndarray
    fit: Fit
    certified: bool


@checked
def grow(
    fit: Callable[[list[Any]], Fit],
    certificate: Callable[[np.ndarray], Polar],
    penalty: float,
    *,
    tolerance: float = 1e-9,
    rounds: int = 100,
) -> Growth:
    """Fit, ask the polar for the best new unit, add it, and go on until no unit would lower the penalized risk.

    For units that are positively homogeneous, with a penalty of the same degree, a local minimum over some units is
    a minimum over all as soon as the polar of its residual is at most the penalty: then a new unit of weight zero
    stays at zero.

    Args:
        fit: from a list of units, perhaps empty, to a minimum over them.
        certificate: from the residual to its polar; the pair ``(direction, sign)`` is appended to the units.
        penalty: λ.
        tolerance: of the certificate, relative to λ.
        rounds: after which it gives up; the record then says ``certified=False``.

    Raises:
        UserError: a penalty that is not positive.

    Source: Haeffele and Vidal 2015, 2017; Vidal's talk.

    >>> y = np.array([3.0, -1.5])  # units are ±e_i, and the fit on them shrinks by λ = 1
    >>> def fit(units):
    ...     kept = sorted({int(d) for d, _ in units})
    ...     r = np.where(np.isin([0, 1], kept), np.sign(y), y)
    ...     return Fit(float(r @ r / 2 + np.abs(y - r).sum()), r, [(i, 1.0) for i in kept])
    >>> certificate = lambda r: Polar(float(np.abs(r).max()), np.abs(r).argmax(), 1.0)
    >>> growth = grow(fit, certificate, 1.0)
    >>> growth.sizes.tolist(), growth.polars.tolist(), growth.certified
    ([0, 1, 2], [3.0, 1.5, 1.0], True)
    """
    if not penalty > 0:
        raise UserError(
            f"grow: expected a positive penalty λ, got {penalty}; without one every unit gains"
        )
    units: list[Any] = []
    record = []
    for _ in range(rounds + 1):
        now = fit(units)
        best = certificate(now.residual)
        record.append((now.value, best.value, len(now.units)))
        # the certificate: no unit of small weight gains more than the penalty λ takes from it
        if best.value <= penalty * (1 + tolerance):
            break
        units = [*now.units, (best.direction, best.sign)]
    values, polars, sizes = np.array(record).T
    return Growth(values, polars, sizes.astype(int), now, best.value <= penalty * (1 + tolerance))
