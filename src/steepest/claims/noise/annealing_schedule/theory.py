"""A cooled walk between two wells as a chain of two states, whose rates are those of an electrical network."""

from typing import NamedTuple

import numpy as np
from jaxtyping import Bool, Float

from steepest.core.errors import UserError

GRID = 0.005  # steps of log k in which the chain of two states is solved
TRIES = 0.25  # half of the steps at a pass's foot go up, and half of those at its top down on the other side


class Wells(NamedTuple):
    """What a landscape on a ring is made of.

    Attributes:
        wrong: sites of the higher of both wells, ``(sites,)``.
        right: sites of the other.
        top: the sites of both passes.
        depth: D, of the wrong well: from its bottom to the lower pass.
        gap: Δ, between both bottoms.
        spread: by which the other pass is higher than the lower one.
    """

    wrong: Bool[np.ndarray, " sites"]
    right: Bool[np.ndarray, " sites"]
    top: tuple[int, int]
    depth: float
    gap: float
    spread: float


def wells(energies: Float[np.ndarray, " sites"]) -> Wells:
    """Find the two wells of a landscape.

    Raises:
        UserError: it has not just two.

    >>> wells(np.array([0.0, 1.0, -0.5, 1.5]))[3:]
    (1.0, 0.5, 0.5)
    """
    left = np.roll(energies, 1)
    right = np.roll(energies, -1)
    bottoms = np.flatnonzero((energies < left) & (energies < right))
    tops = np.flatnonzero((energies > left) & (energies > right))
    if len(bottoms) != 2 or len(tops) != 2:
        raise UserError(f"a landscape must have two wells on the ring, got {len(bottoms)}")
    low, high = tops
    inner = (np.arange(len(energies)) > low) & (np.arange(len(energies)) < high)
    outer = (np.arange(len(energies)) < low) | (np.arange(len(energies)) > high)
    wrong, right = sorted((inner, outer), key=lambda well: -energies[well].min())
    passes = np.sort(energies[tops])
    bottom = energies[wrong].min()
    return Wells(
        wrong,
        right,
        (int(low), int(high)),
        float(passes[0] - bottom),
        float(bottom - energies[right].min()),
        float(passes[1] - passes[0]),
    )


def exponent(c: float, depth: float, gap: float) -> float:
    """Return the exponent of k in the chance to be in the wrong well, as k grows.

    Escapes have the rate k^{−D/c}/4. Below D they end, and a part of the walks stays. Beyond, the chance follows
    Gibbs's, k^{−Δ/c}. At c = D it decays by k^{−1/4} of itself, unless Gibbs's is higher.

    >>> [exponent(c, 1.0, 0.5) for c in (0.9, 1.0, 2.0)]
    [0.0, -0.25, -0.25]
    """
    if c < depth:
        # the sum of the rates k^(−D/c) over k converges: some walks never leave
        return 0.0
    return -min(TRIES, gap / depth) if c == depth else -gap / c


def two_states(
    energies: Float[np.ndarray, " sites"],
    cs: Float[np.ndarray, " c"],
    first: float,
    marks: Float[np.ndarray, " k"],
    escapes: float = 1.0,
) -> Float[np.ndarray, "c k"]:
    """Return the chance to be in the wrong well at each step in ``marks``, from certainty at step ``first``.

    Between neighbours a and b a walk of Metropolis in its steady state goes ½e^{−max(E_a, E_b)/T} times a step; this is
    the conductance of the edge. The flow between the bottoms of both wells is that of both arcs in parallel, each with
    its edges in series; over the weight of a well, Σe^{−E/T}, it is the rate at which that is left.

    Args:
        energies: of the sites of the ring.
        cs: of the temperatures c/log k.
        first: the step at which the walk starts.
        marks: steps.
        escapes: a factor of both rates.
    """
    pair = wells(energies)
    u = np.arange(np.log(first), np.log(marks[-1]) + GRID, GRID)
    # T = c/log k at the middle of each cell of u = log k, (cells, c)
    T = cs / ((u[1:] + u[:-1]) / 2)[:, None]
    weight = np.exp(-energies / T[..., None])
    wrong = weight[..., pair.wrong].sum(-1)
    right = weight[..., pair.right].sum(-1)
    # of the edge from a to a + 1: one over ½ e^(−max(E_a, E_b)/T)
    resistance = 2 * np.exp(np.maximum(energies, np.roll(energies, -1)) / T[..., None])
    bottoms = [np.flatnonzero(well)[energies[well].argmin()] for well in (pair.wrong, pair.right)]
    arc = (np.arange(len(energies)) >= min(bottoms)) & (np.arange(len(energies)) < max(bottoms))
    # edges in series add resistances, and both arcs in parallel add conductances
    flow = 1 / resistance[..., arc].sum(-1) + 1 / resistance[..., ~arc].sum(-1)
    # the chance relaxes to Gibbs's share with the sum of the rates out of both wells
    rate = escapes * flow * (1 / wrong + 1 / right)
    # rates are frozen in a cell of u, whose number of steps is the difference of k = e^u
    remaining = np.exp(-rate * np.diff(np.exp(u))[:, None])
    resting = wrong / (wrong + right)
    chance = np.ones(len(cs))
    path = [chance]
    for q, factor in zip(resting, remaining, strict=True):
        chance = q + (chance - q) * factor
        path.append(chance)
    # chances are nearly powers of k, hence straight lines in log k
    logs = np.log(np.array(path))
    return np.exp(np.stack([np.interp(np.log(marks), u, log) for log in logs.T]))


def equilibrium(
    energies: Float[np.ndarray, " sites"],
    cs: Float[np.ndarray, " c"],
    marks: Float[np.ndarray, " k"],
) -> Float[np.ndarray, "c k"]:
    """Return the chance of the wrong well under Gibbs's law at temperatures c/log k."""
    pair = wells(energies)
    weight = np.exp(-energies * (np.log(marks) / cs[:, None])[..., None])
    wrong = weight[..., pair.wrong].sum(-1)
    return wrong / (wrong + weight[..., pair.right].sum(-1))
