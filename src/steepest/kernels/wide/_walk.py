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
from typing import Any

import numpy as np
from numpy.typing import NDArray

from steepest.kernels.wide._plan import Plan
from steepest.kernels.wide._presence import Mask, followed, presence
from steepest.kernels.wide._rule import Computed, Diagonal, Presence, Step, Values
from steepest.kernels.wide.duals import Dual, Piecewise, Series, dual_of
from steepest.nn.activations import Activation
from steepest.nn.layers._beside import Beside
from steepest.nn.layers._nodes import Activate

TYPICAL = 8.0  # relative error of a variance behind some layers, in units of the tolerance or of the precision


@dataclass(frozen=True)
class Walk:
    """What is known behind the nodes so far; ``step`` adds the next one.

    Attributes:
        plan: of the limit.
        xp: NumPy, in float64 and with bounds of errors, or JAX's twin of it, without.
        eps: precision of the arithmetic of pairs.
        tolerance: of the expectations.
        room: factor by which variances may be larger or smaller at other inputs.
        duals: those of a survey of more inputs; chosen at each activation without.
        places: which positions exist behind each node.
        graphs: those beside the inputs, ``(q, p, n)``, weights of position q in output p; None where none are read.
        chosen: the expectations of each node; None without activation.
        sides: numbers at single positions that pairs are computed from, by node.
        diagonals: of each node.
        covered: of JAX, whether the expectations cover the variances of each activation.
    """

    plan: Plan
    xp: Any
    eps: float
    tolerance: float
    room: float
    duals: tuple[Dual | None, ...] | None
    places: list[Presence]
    graphs: Values | None
    chosen: list[Dual | None]
    sides: dict[int, list[Values]]
    diagonals: list[Diagonal]
    covered: list[Any]

    @classmethod
    def begin(
        cls,
        plan: Plan,
        x: NDArray,
        beside: Beside,
        *,
        tolerance: float,
        room: float = 1.0,
        duals: tuple[Dual | None, ...] | None = None,
        xp: Any = np,
    ) -> "Walk":
        """Begin at inputs ``(n, *shape)``; in NumPy their precision is that in which pairs will be computed."""
        eps = float(np.finfo(x.dtype).eps)
        inputs = xp.moveaxis(x.astype(np.float64) if xp is np else x, 0, -1)
        inputs = xp.moveaxis(inputs, -2, 0)  # (channels, *space, n)
        places = _places(plan, len(x), beside.mask, xp)
        sides = {0: [inputs[..., None], *_gain_side(places[0])]}
        square = (inputs**2).mean(0)
        start = Diagonal(square, None, inputs.mean(0))
        if xp is np:
            start = start._replace(g=4 * eps * square, v=np.zeros_like(square))
        chosen: list[Dual | None] = [None]
        graphs = None if beside.graphs is None else xp.moveaxis(beside.graphs, (0, 1, 2), (2, 1, 0))
        about = (plan, xp, eps, tolerance, room, duals, places, graphs)
        return cls(*about, chosen, sides, [start], [])

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
        products: Callable[[], Values],
    ) -> None:
        """Go on to a node.

        Args:
            index: of the node.
            itself: both kernels of each input with itself behind this node, where they mix positions.
            products: scaled ones of the keys and queries of an attention node.
        """
        rule = self.plan.rules[index]
        assert isinstance(rule, Computed)  # all but the inputs are
        read = [self.diagonals[source] for source in rule.node.sources]
        if rule.fills:
            read[0] = self._filled(read[0], self.places[rule.node.sources[0]])
        dual = None
        if isinstance(rule.node, Activate):
            dual = self._dual(index, rule.node.activation, read[0].k)
        typical = self._typical
        self.chosen.append(dual)
        bounded = self.xp is np
        about = (dual, bounded, self.eps, typical, itself, products)
        exists = self.places[rule.node.sources[0]].exists
        exists = None if exists is None else self.xp.moveaxis(exists, 0, -1)
        step = Step(self.plan, index, read, exists, self.graphs, self.xp, *about)
        numbers = rule.numbers(step)
        if sides := [*(side[..., None] for side in numbers), *_gain_side(self.places[index])]:
            self.sides[index] = sides  # what mixes positions reads it
        diagonal = rule.diagonal(step, numbers)
        self.diagonals.append(_gained(diagonal, self.places[index], rule))

    @property
    def _typical(self) -> float:
        """Return the relative error of a variance that λ is made for; it must not depend on the inputs.

        Before the first series there are roundings alone.
        """
        size = self.eps
        for dual in self.chosen:
            if isinstance(dual, Series):
                size = max(size, self.tolerance)
            if isinstance(dual, Piecewise) and dual.jumps:
                size = size**0.5  # |ΔE σσ| ≤ b √|Δρ| where σ jumps
        return TYPICAL * size

    def _dual(self, index: int, activation: Activation, variances: Values) -> Dual:
        """Return the expectations of an activation: what was given, or what these variances need."""
        given = None if self.duals is None else self.duals[index]
        if self.xp is not np:
            if isinstance(given, Series):
                self.covered.append(given.covers(variances).all())
            return given or dual_of(activation, None, self.tolerance)
        if isinstance(given, Series) and not given.covers(variances).all():
            given = None
        return given or dual_of(activation, variances, self.tolerance, self.room)

    def _filled(self, read: Diagonal, at: Presence) -> Diagonal:
        """Put the largest variance where no position exists: zero would stretch what expectations must cover."""
        if at.exists is None:
            return read
        xp = self.xp
        return read._replace(k=xp.where(xp.moveaxis(at.exists, 0, -1), read.k, read.k.max()))


def _places(plan: Plan, count: int, mask: Mask | None, xp: Any) -> list[Presence]:
    if not plan.masked:
        return [Presence(None, None)] * len(plan.limit.nodes)
    exists = xp.ones((count, *plan.limit.spaces[0]), bool) if mask is None else mask
    return presence(plan.limit, exists) if xp is np else list(followed(plan.limit, exists, xp))


def _gain_side(at: Presence) -> list[Values]:
    """Return γ as the last of a node's numbers at single positions, if it is not one."""
    return [] if at.gain is None else [at.gain[..., None]]


def _gained(diagonal: Diagonal, at: Presence, rule: Computed) -> Diagonal:
    """Multiply by γ² what is not so yet; kernels that come from pairs are."""
    if at.gain is None:
        return diagonal
    square = at.gain**2
    gained = diagonal.each(lambda values: values * square)._replace(mean=diagonal.mean * at.gain)
    if rule.meets:
        return gained._replace(k=diagonal.k, theta=diagonal.theta)
    return gained
