"""Networks from their posterior by a Gibbs chain over all matrices; nothing here knows what theory says."""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from steepest import kit
from steepest.claims.bayes_and_transfer.bayesian_deep_linear.data import Data


class Layers(NamedTuple):
    """What is read off the whole product of a network sampled layer by layer, ``(data, chains, sweeps + 1)``.

    The start comes first: a network of the prior whose W^(1) is drawn anew so that it interpolates.

    Attributes:
        scale: s = ‖W^(L+1)⋯W^(2)‖².
        square: ‖θ_⊥‖².
        residual: ‖Xᵀθ − y‖/‖y‖.
        outputs: f(x) at the new inputs, with an axis of these before the last.
    """

    scale: kit.Values
    square: kit.Values
    residual: kit.Values
    outputs: kit.Values


def gibbs_over_layers(
    data: Sequence[Data],
    widths: Sequence[int],
    chains: int,
    sweeps: int,
    rng: np.random.Generator,
    start: list[kit.Values] | None = None,
) -> Layers:
    """Sample all matrices from the posterior on interpolants, each in turn given the others; nothing is integrated.

    Given the others y = uWB is linear in W, u the row above and B = W^(l−1)⋯W^(1)X below. A draw G from the prior
    becomes one from the conditional by the least change that interpolates,
    G + uᵀ(y − uGB)B⁺/‖u‖². Sweeps go from the first layer to the last.

    The chain is irreducible only where all n_l > P: otherwise the row above W^(l) never moves.

    Args:
        data: all of the same P and n_0.
        widths: n_1, …, n_L.
        chains: for each data.
        sweeps: through all layers.
        rng: of the draws.
        start: matrices W^(1), …, W^(L+1), each ``(data, chains, rows, columns)``; drawn from the prior if left out.
    """
    problem = _problem(data, chains)
    pinned = min(widths) <= len(data[0].y)
    fans = (len(data[0].x), *widths)
    heights = (*widths, 1)
    shapes = [(len(data), chains, *shape) for shape in zip(heights, fans, strict=True)]

    def draw(layer: int) -> kit.Values:
        # single precision halves the time, and rounds at 1e-7
        return rng.standard_normal(shapes[layer], np.float32) / np.sqrt(float(fans[layer]))

    weights = [draw(layer) for layer in range(len(fans))] if start is None else list(start)
    records = []
    for sweep in range(sweeps + 1):
        above = _rows_above(weights)
        below = problem.x
        for layer in range(len(fans) if sweep else 1):
            fresh = draw(layer)
            # u(G + ΔW)B = y asks uΔW B = y − uGB; the least such ΔW is uᵀr/‖u‖² with the least r
            gap = problem.y - (above[layer] @ fresh) @ below
            step = gap @ problem.inverse if layer == 0 else _least_change(gap, below, pinned)
            norms = (above[layer] ** 2).sum((-1, -2), keepdims=True)
            weights[layer] = fresh + above[layer].swapaxes(-1, -2) @ (step / norms)
            below = weights[layer] @ below
        records.append(_read(weights, problem))
    return Layers(*(np.stack(part, -1) for part in zip(*records, strict=True)))


class _Problem(NamedTuple):
    """All data: inputs ``(data, chains, n_0, P)``, targets ``(data, chains, 1, P)``, inverses ``(data, 1, P, n_0)``.

    New inputs have the shape ``(data, 1, n_0, new)``.
    """

    x: kit.Values
    y: kit.Values
    inverse: kit.Values
    new: kit.Values


def _problem(data: Sequence[Data], chains: int) -> _Problem:
    inputs = np.stack([data_set.x for data_set in data])[:, None]
    targets = np.stack([data_set.y for data_set in data])[:, None, None]
    inverses = np.stack([data_set.inverse for data_set in data])[:, None]
    lanes = (len(data), chains)
    return _Problem(
        np.broadcast_to(inputs, (*lanes, *inputs.shape[2:])),
        np.broadcast_to(targets, (*lanes, *targets.shape[2:])),
        inverses,
        np.stack([data_set.new for data_set in data])[:, None],
    )


def _rows_above(weights: Sequence[kit.Values]) -> list[kit.Values]:
    """Return W^(L+1)⋯W^(l+1) for l = 1, …, L + 1, the last of which is one."""
    rows = [np.ones((*weights[0].shape[:2], 1, 1))]
    for matrix in weights[:0:-1]:
        rows.append(rows[-1] @ matrix)
    return rows[::-1]


def _least_change(gap: kit.Values, below: kit.Values, pinned: bool) -> kit.Values:
    """Return the least row r with rB = gap; the rank of B is P except where a layer is no wider than the data."""
    if pinned:
        return gap @ np.linalg.pinv(below, rcond=1e-10)
    # B⁺ = (BᵀB)⁻¹Bᵀ, as the columns of B are independent
    gram = below.swapaxes(-1, -2) @ below
    return (below @ np.linalg.solve(gram, gap.swapaxes(-1, -2))).swapaxes(-1, -2)


def _read(weights: Sequence[kit.Values], problem: _Problem) -> tuple[kit.Values, ...]:
    """Return s, ‖θ_⊥‖², the relative residual and the outputs at new inputs of every chain."""
    row = _rows_above(weights)[0]
    theta = row @ weights[0]
    # yX⁺ = θ_∥, the part in the span of the data
    off = theta - problem.y @ problem.inverse
    gap = np.linalg.norm(theta @ problem.x - problem.y, axis=(-1, -2))
    return (
        (row**2).sum((-1, -2)),
        (off**2).sum((-1, -2)),
        gap / np.linalg.norm(problem.y, axis=(-1, -2)),
        (theta @ problem.new)[..., 0, :],
    )
