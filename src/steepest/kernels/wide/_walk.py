"""How the nodes of a limit change what is known of each input with itself.

An error bound of rank one, ``|ΔK[p, q]| ≤ √(g_p g'_q)``, survives every average by Cauchy and Schwarz, and an
activation by ``|∂E σσ/∂K_pq| ≤ √(E σ'(u)² E σ'(v)²)``: so g obeys the recursion of the diagonal, and costs as little.

This derivative is at fixed variances. Single positions give theirs without pairs, in float64. Where positions are mixed
(Average, AllPositions, Mix, Attend), variances are means over pairs and err as these do, by v. To first order that
changes ``E σσ`` by ``½ E σ''(u)σ(v) ΔK_pp`` and its like for q. Of two such terms

    a_p b_q + b_p a_q ≤ √(λa_p² + b_p²/λ) √(λa_q² + b_q²/λ)

by Cauchy and Schwarz, which is of rank one again: λ must be one number for all inputs, and is best near b/a.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial, reduce
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from steepest.core.errors import UserError
from steepest.kernels.wide._duals import Bends, Dual, Series, Singles, Tolerances, dual_of
from steepest.kernels.wide._plan import Plan
from steepest.kernels.wide._presence import Mask, Presence, presence
from steepest.nn.layers._nodes import (
    Activate,
    AllPositions,
    Attend,
    AttendAtRandom,
    Average,
    Concatenate,
    EqualPositions,
    Linear,
    Mix,
    Node,
    Normalize,
    Product,
    Sum,
)
from steepest.nn.layers._window import Window

ROUNDING = 8  # roundings of one sum over a window, in units of the precision
TYPICAL = 8.0  # relative error of a variance behind some layers, in units of the tolerance or of the precision

Values = NDArray[np.float64]


class Diagonal(NamedTuple):
    """A node's kernels of each input with itself, arrays ``(*space, n)``.

    Attributes:
        k: the variance ``K[p, p]``.
        theta: the tangent kernel; None before the first weights.
        mean: of the channels.
        g: ``|ΔK[p, q]| ≤ √(g_p g'_q)``.
        h: ``|ΔΘ[p, q]| ≤ √(h_p h'_q)``.
        v: ``|ΔK[p, p]|`` of the variance that is used, at most: zero where it is computed without pairs.
    """

    k: Values
    theta: Values | None
    mean: Values
    g: Values
    h: Values | None
    v: Values


@dataclass(frozen=True)
class Walk:
    """What is known behind the nodes so far; ``step`` adds the next one.

    Attributes:
        plan: of the limit.
        eps: precision of the arithmetic of pairs.
        tolerance: of the expectations.
        room: factor by which variances may be larger or smaller at other inputs.
        duals: those of a survey of more inputs; chosen at each activation without.
        places: which positions exist behind each node.
        chosen: the expectations of each node; None without activation.
        sides: numbers at single positions that pairs are computed from, by node.
        diagonals: of each node.
    """

    plan: Plan
    eps: float
    tolerance: float
    room: float
    duals: tuple[Dual | None, ...] | None
    places: list[Presence]
    chosen: list[Dual | None]
    sides: dict[int, list[Values]]
    diagonals: list[Diagonal]

    @classmethod
    def begin(
        cls,
        plan: Plan,
        x: NDArray,
        mask: Mask | None,
        *,
        tolerance: float,
        room: float,
        duals: tuple[Dual | None, ...] | None = None,
    ) -> "Walk":
        """Begin at inputs ``(n, *shape)``."""
        eps = float(np.finfo(x.dtype).eps)
        inputs = np.moveaxis(x.astype(np.float64), 0, -1)  # (*space, channels, n)
        inputs = np.moveaxis(inputs, -2, 0)
        places = _presence(plan, len(x), mask)
        sides = {0: [inputs[..., None], *_gain_side(places[0])]}
        square = (inputs**2).mean(0)
        nothing = np.zeros_like(square)
        start = Diagonal(square, None, inputs.mean(0), 4 * eps * square, None, nothing)
        return cls(plan, eps, tolerance, room, duals, places, [None], sides, [start])

    def copy(self) -> "Walk":
        """Return a walk that goes on from here by itself."""
        return replace(
            self, chosen=[*self.chosen], sides={**self.sides}, diagonals=[*self.diagonals]
        )

    def padded_duals(self) -> tuple[Dual | None, ...]:
        """Return the expectations of all nodes, None for those to come."""
        return (*self.chosen, *(None,) * (len(self.plan.limit.nodes) - len(self.chosen)))

    def step(
        self,
        index: int,
        itself: Callable[[], tuple[Values, Values | None]],
        weights: Callable[[], Values],
    ) -> None:
        """Go on to a node.

        Args:
            index: of the node.
            itself: both kernels of each input with itself behind this node, where they mix positions.
            weights: those of an attention node.
        """
        node = self.plan.limit.nodes[index]
        read = [self.diagonals[source] for source in node.sources]
        gain = _gain_side(self.places[index])
        numbers: list[Values] = []
        self.chosen.append(None)
        if isinstance(node, (Activate, Normalize)):
            read[0] = _filled(read[0], self.places[node.sources[0]])
        if isinstance(node, Activate):
            dual = self._dual(index, node, read[0].k)
            self.chosen[index] = dual
            numbers = [side[..., None] for side in dual.sides(read[0].k)]
            diagonal = _activated(read[0], dual, self.eps, self._typical)
        elif isinstance(node, Normalize):
            spread = _spread(read[0], index)
            numbers = [read[0].mean[..., None], 1 / np.sqrt(spread)[..., None]]
            diagonal = _normalized(read[0], spread, self._typical)
        elif isinstance(node, Attend):
            mixed_by = weights()
            numbers = [mixed_by[..., None]]
            self.sides[index] = [*numbers, *gain]
            diagonal = _attended(node, read[0], read[1], mixed_by, itself(), self.eps)
        elif isinstance(node, (Average, AllPositions, Mix, AttendAtRandom)):
            if gain:
                self.sides[index] = gain  # what mixes positions reads it
            diagonal = _pooled(self.plan, index, read[0], itself())
        else:
            diagonal = _joined(self.plan, node, read, self.eps)
        if numbers or gain:
            self.sides[index] = [*numbers, *gain]
        self.diagonals.append(_gained(diagonal, self.places[index], node))

    @property
    def _typical(self) -> float:
        """Return the relative error of a variance that λ is made for; it must not depend on the inputs.

        Before the first series there are roundings alone.
        """
        is_cut = any(isinstance(dual, Series) for dual in self.chosen[:-1])
        return TYPICAL * (max(self.tolerance, self.eps) if is_cut else self.eps)

    def _dual(self, index: int, node: Activate, variances: Values) -> Dual:
        """Return the expectations of an activation: those that were given, or what these variances need."""
        given = None if self.duals is None else self.duals[index]
        if isinstance(given, Series):
            in_range = (given.low <= variances) & (variances <= given.high)
            inside = in_range | ((variances == 0) if given.empty else False)
            given = given if inside.all() else None
        return given or dual_of(node.activation, variances, self.tolerance, self.room)


def _presence(plan: Plan, count: int, mask: Mask | None) -> list[Presence]:
    if not plan.masked:
        return [Presence(None, None)] * len(plan.limit.nodes)
    if mask is None:
        mask = np.ones((count, *plan.limit.spaces[0]), bool)
    return presence(plan.limit, mask)


def _gain_side(at: Presence) -> list[Values]:
    """Return γ as the last of a node's numbers at single positions, if it is not one."""
    return [] if at.gain is None else [at.gain[..., None]]


def _filled(read: Diagonal, at: Presence) -> Diagonal:
    """Put the largest variance where no position exists: zero there would stretch what expectations must cover."""
    if at.exists is None:
        return read
    return read._replace(k=np.where(np.moveaxis(at.exists, 0, -1), read.k, read.k.max()))


def _gained(diagonal: Diagonal, at: Presence, node: Node) -> Diagonal:
    """Multiply by γ² what is not so yet; kernels of mixing nodes come from pairs, which are."""
    if at.gain is None:
        return diagonal
    square = at.gain**2
    gained = _each(diagonal, lambda values: values * square)._replace(mean=diagonal.mean * at.gain)
    if isinstance(node, (Average, AllPositions, Mix, Attend, AttendAtRandom)):
        return gained._replace(k=diagonal.k, theta=diagonal.theta)
    return gained


def _activated(read: Diagonal, dual: Dual, eps: float, typical: float) -> Diagonal:
    singles = dual.singles(read.k)
    errors = dual.tolerances(eps)
    # |ΔE σσ| ≤ √(E σ'² E σ'²) |ΔK| by Cauchy and Schwarz, plus the expectation's own error
    g = singles.slope * read.g + errors.value * singles.value
    bends = dual.bends(read.k) if read.v.any() else None
    v = np.zeros_like(read.v)
    if bends is not None:
        g = g + _of_variances(np.sqrt(bends.value) * read.v, np.sqrt(singles.value), typical)
        # d E σ²/dK = E σ'² + E σσ''
        v = (singles.slope + np.sqrt(bends.value * singles.value)) * read.v
    if read.theta is None or read.h is None:
        return Diagonal(singles.value, None, singles.mean, g, None, v)
    # Δ(E σ'σ' Θ) = E σ'σ' ΔΘ + Θ ΔE σ'σ', to first order
    h = singles.slope * read.h + errors.slope * singles.slope * read.theta
    if errors.corner:
        relative = np.divide(read.g, read.k, out=np.zeros_like(read.g), where=read.k > 0)
        # |Δρ| ≤ √(g_p g_q/(K_pp K_qq)), and b √|Δρ| is the root of such a product: of rank one
        h = h + errors.corner * np.sqrt(relative) * read.theta
    else:
        # |ΔE σ'σ'| ≤ √(E σ''² E σ''²) |ΔK|
        h = h + np.where(read.g > 0, singles.curvature * read.g, 0.0) * read.theta
    if bends is not None:
        h = h + _turned(read, bends, singles, errors, typical) * read.theta
    return Diagonal(singles.value, singles.slope * read.theta, singles.mean, g, h, v)


def _turned(
    read: Diagonal, bends: Bends, singles: Singles, errors: Tolerances, typical: float
) -> Values:
    """Return what errors of variances change in ``E σ'σ'``.

    With a corner |Δρ| is ``½ (w_p + w_q)`` with w = v/K, at most, of which the root is ``√(w_p/2) + √(w_q/2)`` at most.
    """
    if bends.slope is not None:
        return _of_variances(np.sqrt(bends.slope) * read.v, np.sqrt(singles.slope), typical)
    relative = np.divide(read.v, read.k, out=np.zeros_like(read.v), where=read.k > 0)
    ones = np.ones_like(relative)
    return 2 * errors.corner * _of_variances(np.sqrt(relative / 2), ones, typical**0.5)


def _of_variances(a: Values, b: Values, typical: float) -> Values:
    """Return h with ``½ (a_p b_q + b_p a_q) ≤ √(h_p h_q)``, least where a is the typical error times b."""
    # ½ (λ a² + b²/λ) with λ = 1/typical, of the module's bound
    return (a**2 / typical + typical * b**2) / 2


def _joined(plan: Plan, node: Node, read: list[Diagonal], eps: float) -> Diagonal:
    """Follow a node whose kernels of an input with itself need no others: branches, linear layers, flattening."""
    if isinstance(node, Sum):
        return _sum(read, np.array(node.squares), np.array(node.roots))
    if isinstance(node, Concatenate):
        return _sum(read, np.array(node.shares), np.array(node.shares))
    if isinstance(node, Product):
        return reduce(partial(_times, eps=eps), read)
    (first,) = read
    if isinstance(node, EqualPositions):
        axes = tuple(range(first.k.ndim - 1))
        return _each(first, lambda values: values.mean(axes))
    assert isinstance(node, Linear)
    space = plan.limit.spaces[node.sources[0]]
    mean = lambda values: values if node.window is None else window_mean(values, node.window, space)
    rounding = ROUNDING * eps
    average = mean(first.k)
    g = mean(first.g) + rounding * average
    # Θ' = t_b + t_w M K + c_w M Θ on the diagonal
    theta = node.t_b + node.t_w * average
    h = node.t_w * g
    if first.theta is not None and first.h is not None:
        carried = mean(first.theta)
        theta = theta + node.c_w * carried
        h = h + node.c_w * (mean(first.h) + rounding * carried)
    zeros = np.zeros_like(average)
    v = node.c_w * mean(first.v)
    return Diagonal(node.c_b + node.c_w * average, theta, zeros, node.c_w * g, h, v)


def _times(one: Diagonal, two: Diagonal, eps: float) -> Diagonal:
    """Multiply branches; a product of two that err by rank one errs by ``(k + g)(k' + g') − k k'`` at most."""
    assert one.theta is not None and two.theta is not None
    assert one.h is not None and two.h is not None
    k = one.k * two.k
    # product rule: Θ K' + K Θ'
    theta = one.theta * two.k + one.k * two.theta
    above = (one.k + one.g, two.k + two.g)
    highest = (one.theta + one.h) * above[1] + above[0] * (two.theta + two.h)
    g = above[0] * above[1] - k + ROUNDING * eps * k
    h = highest - theta + ROUNDING * eps * theta
    v = (one.k + one.v) * (two.k + two.v) - k
    return Diagonal(k, theta, one.mean * two.mean, g, h, v)


def _sum(read: list[Diagonal], shares: Values, of_means: Values) -> Diagonal:
    """Add branches, whose means have other weights than all else."""
    # Σ r √(g_p g_q) ≤ √(Σ r g_p) √(Σ r g_q): bounds of rank one add up
    total = lambda rows, weights: np.tensordot(weights, np.stack(rows), 1)
    # a branch without weights behind the input has no tangent kernel: zeros
    trained = any(branch.theta is not None for branch in read)
    or_zero = lambda values, like: np.zeros_like(like) if values is None else values
    thetas = [or_zero(branch.theta, branch.k) for branch in read]
    bounds = [or_zero(branch.h, branch.k) for branch in read]
    return Diagonal(
        total([branch.k for branch in read], shares),
        total(thetas, shares) if trained else None,
        total([branch.mean for branch in read], of_means),
        total([branch.g for branch in read], shares),
        total(bounds, shares) if trained else None,
        total([branch.v for branch in read], shares),
    )


def _pooled(
    plan: Plan,
    index: int,
    read: Diagonal,
    itself: tuple[Values, Values | None],
) -> Diagonal:
    """Average means and bounds; kernels are those of each input with itself."""
    node = plan.limit.nodes[index]
    if isinstance(node, AttendAtRandom):  # values have mean zero, and heads that are drawn no bound
        averaged = _each(read, np.zeros_like)
    elif isinstance(node, Mix):
        averaged = _mixed(node, read, plan.limit.spaces[index])
    elif isinstance(node, AllPositions):
        axes = tuple(range(read.k.ndim - 1))
        averaged = _each(read, lambda values: values.mean(axes))
    else:
        assert isinstance(node, Average)
        space = plan.limit.spaces[node.sources[0]]
        averaged = _each(read, lambda values: window_mean(values, node.window, space))
    return averaged._replace(k=itself[0], theta=itself[1], v=averaged.g)


def _mixed(node: Mix, read: Diagonal, space: tuple[int, ...]) -> Diagonal:
    """Mix means, and bounds by ``|Σ P_pa ΔK_ab P_qb| ≤ (|P| √g)_p (|P| √g)_q``."""
    count = read.k.shape[-1]
    mix = lambda matrix, values: (matrix @ values.reshape(-1, count)).reshape(*space, count)
    bound = lambda values: mix(np.abs(node.array), np.sqrt(values)) ** 2
    h = None if read.h is None else bound(read.h)
    mean = mix(node.array, read.mean)
    return read._replace(mean=mean, g=bound(read.g), h=h)


def _attended(
    node: Attend,
    values: Diagonal,
    keys: Diagonal,
    weights: Values,
    itself: tuple[Values, Values | None],
    eps: float,
) -> Diagonal:
    """Mix means, and bounds: ζ is off by a factor 1 + δ at most, as its logits are by s max g.

    ``|Δ(ζKζ'ᵀ)| ≤ (1 + δ)² (ζ√g)(ζ'√g') + ((1 + δ)² − 1)(ζ√k)(ζ'√k')``, which is of rank one by Cauchy and Schwarz.
    """
    count = len(weights)
    mix = lambda numbers: np.einsum("q...n,qn->...n", weights, numbers.reshape(count, -1))
    # logits off by s max g at most: numerator and sum of softmax by e^{±s max g} each
    off = np.expm1(2 * node.sharpness * keys.g.max()) + ROUNDING * eps
    square = (1 + off) ** 2

    def bound(errors: Values, sizes: Values) -> Values:
        return square * mix(np.sqrt(errors)) ** 2 + (square - 1) * mix(np.sqrt(sizes)) ** 2

    k, theta = itself
    assert values.theta is not None and values.h is not None
    g = bound(values.g, values.k)
    return Diagonal(k, theta, mix(values.mean), g, bound(values.h, values.theta), g)


def _spread(read: Diagonal, index: int) -> Values:
    spread = read.k - read.mean**2
    bad = ~(spread > 1e-12 * read.k)
    if bad.any():
        which = int(np.argmax(bad.reshape(-1, bad.shape[-1]).any(0)))
        raise UserError(
            f"layer normalization (node {index}) divides by zero: all channels are equal at some positions of row "
            f"{which} of the inputs; add biases by c_b, or fill what is empty there"
        )
    return spread


def _normalized(read: Diagonal, spread: Values, typical: float) -> Diagonal:
    """Divide by the channels' variance; where that errs, so does what it divides, by half as much at each position."""
    divided = _each(read, lambda values: values / spread)
    ones = np.ones_like(spread)
    if read.v.any():
        moved = _of_variances(divided.v, ones, typical)
        h = None
        if divided.h is not None and divided.theta is not None:
            h = divided.h + moved * divided.theta
        divided = divided._replace(g=divided.g + moved, h=h)
    zeros = np.zeros_like(ones)
    return divided._replace(k=ones, mean=zeros, v=zeros)


def _each(diagonal: Diagonal, change: Callable[[Values], Values]) -> Diagonal:
    """Change all arrays that exist."""
    theta = None if diagonal.theta is None else change(diagonal.theta)
    h = None if diagonal.h is None else change(diagonal.h)
    return Diagonal(
        change(diagonal.k),
        theta,
        change(diagonal.mean),
        change(diagonal.g),
        h,
        change(diagonal.v),
    )


def window_mean(a: Any, window: Window, space: tuple[int, ...], xp: Any = np) -> Any:
    """Average over what each output reads, in each dimension of the space, first axes of a; zeros beyond the edge."""
    for d, taps in enumerate(window.taps(space)):
        inside = (taps >= 0).reshape(taps.shape + (1,) * (a.ndim - d - 1))
        read = [
            xp.take(a, np.maximum(column, 0), axis=d) * inside[:, tap]
            for tap, column in enumerate(taps.T)
        ]
        a = sum(read[1:], read[0]) / window.size[d]
    return a
