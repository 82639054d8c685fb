"""Minima of quasi-norms by enumeration, exact programs of the squared loss, and which problems tell them apart."""

from collections.abc import Sequence

import numpy as np
import xarray

from steepest.programs import (
    depth_interpolation,
    l1_vertex,
    quasi_norm_interpolation,
    quasi_norm_margins,
)

Problems = Sequence[tuple[np.ndarray, np.ndarray]]


def tells_apart(x: np.ndarray, y: np.ndarray, slack: float, orders: Sequence[float]) -> bool:
    """Return whether the ℓ1 interpolant is strictly complementary, and not the one of least quasi-norm.

    Args:
        x: inputs of one problem.
        y: its targets.
        slack: largest dual coefficient |z_i| allowed off the support.
        orders: of the quasi-norms.
    """
    sparse, dual = l1_vertex(x, y)
    sizes = np.abs(sparse[sparse != 0])
    largest = np.abs(dual[sparse == 0]).max(initial=0.0)
    fair = largest <= slack and sizes.min() >= 0.1 * sizes.max()
    return fair and not any(
        np.allclose(sparse, quasi_norm_interpolation(x, y, order)) for order in orders
    )


def interpolants(
    problems: Problems, depths: Sequence[int], alphas: np.ndarray, factor: float = 1.0
) -> np.ndarray:
    """Return what the exact programs give for starts at α, ``(depths, problems, scales, unknowns)``.

    Args:
        problems: pairs of inputs and targets.
        depths: L.
        alphas: scales of the start, ``(depths, scales)``.
        factor: of α^L, the scale of the potential.
    """
    return np.array(
        [
            [
                # a factor f of α^L is one of f^(1/L) of α
                [depth_interpolation(x, y, depth, a * factor ** (1 / depth)).beta for a in row]
                for x, y in problems
            ]
            for depth, row in zip(depths, alphas, strict=True)
        ]
    )


def all_minima(sets: Problems, orders: Sequence[float]) -> np.ndarray:
    """Return all local minima of ℓ_p with margins of one, ``(orders, sets, minima, features)``; copies fill up."""
    of_sets = [[quasi_norm_margins(x, y, order) for x, y in sets] for order in orders]
    most = max(len(minima) for row in of_sets for minima in row)
    features = sets[0][0].shape[1]
    return np.array([[np.resize(minima, (most, features)) for minima in row] for row in of_sets])


def quasi_norm(beta: xarray.DataArray, order: xarray.DataArray) -> xarray.DataArray:
    """Return ``(Σ |β_i|^p)^(1/p)`` along ``feature``."""
    return (abs(beta) ** order).sum("feature") ** (1 / order)


def missing_margin(
    law: xarray.Dataset, weights: xarray.DataArray, least: xarray.DataArray
) -> xarray.DataArray:
    """Return how far the margin in ℓ_{2/L} is from that of the nearest predicted minimum, as a part of it."""
    fits = least > 0
    # a least margin of one, as the minima have it
    beta = weights / least.where(fits, 1.0)
    gaps = ((beta - law.minima) ** 2).sum("feature")
    nearest = law.minima.isel(start=gaps.argmin("start"))
    # with margins of one the normalized margin is 1/‖β‖_p
    ratio = quasi_norm(nearest, law.order) / quasi_norm(beta, law.order)
    return abs(1 - ratio).where(fits, 1.0)
