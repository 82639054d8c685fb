"""What a node of a limit has to say of itself: one rule a kind of node, in a file of ``nodes/``.

A rule changes the kernels of pairs of positions, what is known of each input with itself, which positions exist, and
which pairs the nodes before must provide. The defaults hold for a node that acts on each position for itself.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from functools import reduce
from types import ModuleType
from typing import TYPE_CHECKING, Any, ClassVar, Generic, NamedTuple, TypeVar

import numpy as np
from jaxtyping import Array
from numpy.typing import NDArray

from steepest.core.errors import UserError
from steepest.nn.layers._nodes import Node
from steepest.nn.layers._window import Window

if TYPE_CHECKING:
    from steepest.kernels.wide._layouts import AllPairs, Layout
    from steepest.kernels.wide._plan import Plan
    from steepest.kernels.wide.duals import Dual, Pairing

Values = Any
"""Numbers of NumPy in float64, or of JAX where it traces them."""
Sides = Mapping[int, Sequence[Any]]
"""Numbers at single positions that a node needs, by its index."""
N = TypeVar("N")


class Pairs(NamedTuple):
    """Covariance and tangent kernel of some pairs; no tangent kernel before the first weights."""

    k: Array
    theta: Array | None

    def map(self, change: Callable[[Array], Array]) -> "Pairs":
        """Change both kernels alike."""
        return Pairs(change(self.k), None if self.theta is None else change(self.theta))

    def merge(self, other: "Pairs", change: Callable[[Array, Array], Array]) -> "Pairs":
        """Change both kernels, each with the same kernel of other pairs."""
        if self.theta is None or other.theta is None:
            return Pairs(change(self.k, other.k), None)
        return Pairs(change(self.k, other.k), change(self.theta, other.theta))


class Diagonal(NamedTuple):
    """A node's kernels of each input with itself, arrays ``(*space, n)``, with bounds where they are asked for.

    Attributes:
        k: the variance ``K[p, p]``.
        theta: the tangent kernel; None before the first weights.
        mean: of the channels.
        g: ``|ΔK[p, q]| ≤ √(g_p g'_q)``.
        h: ``|ΔΘ[p, q]| ≤ √(h_p h'_q)``; None before the first weights.
        v: ``|ΔK[p, p]|`` of the variance that is used, at most: zero where it is computed without pairs.
    """

    k: Values
    theta: Values | None
    mean: Values
    g: Values = None
    h: Values | None = None
    v: Values = None

    def each(self, change: Callable[[Values], Values]) -> "Diagonal":
        """Change all arrays that exist."""
        return Diagonal(*(None if array is None else change(array) for array in self))


class Presence(NamedTuple):
    """What a node knows of positions.

    Attributes:
        exists: of its output, shape ``(n, *space)``; None where it has no positions.
        gain: γ, shape ``(*space, n)``; None where it is one.
    """

    exists: Any
    gain: Any


class Step(NamedTuple):
    """What a rule is told of the inputs one by one, when its turn comes.

    Attributes:
        plan: of the limit.
        index: of the node.
        read: what is known behind its sources.
        exists: which positions of the first source exist, ``(*space, n)``; None where all do.
        graphs: those beside the inputs, weights of position q in output p, ``(q, p, n)``; None where none are read.
        xp: NumPy, or JAX's twin of it.
        dual: the expectations of the node's activation, if it has one.
        bounded: whether errors are bounded, which is done in NumPy.
        eps: precision of the arithmetic of pairs.
        typical: relative error of a variance that bounds are made for; it does not depend on the inputs.
        itself: gives both kernels of each input with itself behind a node that mixes positions.
        products: gives the scaled products of keys and queries of an attention node, ``(keys, *space, n)``.
    """

    plan: "Plan"
    index: int
    read: list[Diagonal]
    exists: Values | None
    graphs: Values | None
    xp: ModuleType | Any
    dual: "Dual | None"
    bounded: bool
    eps: float
    typical: float
    itself: Callable[[], tuple[Values, Values | None]]
    products: Callable[[], Values]

    @property
    def space(self) -> tuple[int, ...]:
        """Return the numbers of positions behind the node."""
        return self.plan.limit.spaces[self.index]

    @property
    def source_space(self) -> tuple[int, ...]:
        """Return the numbers of positions of what the node reads."""
        return self.plan.limit.spaces[self.plan.limit.nodes[self.index].sources[0]]


class Displacements(NamedTuple):
    """What a rule that mixes positions is told where displacements run apart.

    Attributes:
        plan: of the limit.
        index: of the node.
        run: gives the pairs of one displacement behind the source.
    """

    plan: "Plan"
    index: int
    run: Callable[[tuple], Pairs]

    @property
    def source(self) -> int:
        """Return the index of what the node reads."""
        return self.plan.limit.nodes[self.index].sources[0]

    @property
    def space(self) -> tuple[int, ...]:
        """Return the numbers of positions of what the node reads."""
        return self.plan.limit.spaces[self.source]


class Rule(Generic[N]):
    """The rule of one node, as far as plans need it; a kind of node registers its own by :func:`rule_for`.

    Attributes:
        node: the node, with its coefficients.
        drawn: whether there is a kernel only in the mean over draws.
        whole: whether all pairs of positions must be there.
        draws: whether it draws for each input, so that an input has other kernels with itself than with its equal.
    """

    drawn: ClassVar[bool] = False
    whole: ClassVar[bool] = False
    draws: ClassVar[bool] = False

    def __init__(self, node: N):
        self.node = node

    @property
    def window(self) -> Window | None:
        """Return the window that the node slides over its source, if it has one."""
        return None

    @property
    def weighs(self) -> bool:
        """Tell whether there is a gain although no positions are left."""
        return False

    @property
    def omits_edges(self) -> bool:
        """Tell whether there is a gain where all positions exist: at edges, of which positions beyond do not count."""
        return False

    def degree(self, read: list[int]) -> int | None:
        """Return the degree in which both kernels are homogeneous in either input; None where they are not.

        Args:
            read: the degrees behind the sources, which all have one.
        """
        return None

    def needs(self, behind: NDArray[np.bool_], shape: tuple[int, ...]) -> NDArray[np.bool_]:
        """Mark the displacements that a source needs for the displacements behind; ``shape`` is N of the source."""
        return strided(behind, shape, self.window)

    def presence(self, read: list[Any], space: tuple[int, ...], xp: Any) -> Presence:
        """Follow which positions exist; ``read`` has masks ``(n, *space)`` of sources with positions, at least one."""
        return present(reduce(xp.logical_and, read), xp)

    def arrays(self, dual: "Dual | None") -> int:
        """Count the arrays of numbers that pairs need at single positions."""
        return 0


class Computed(Rule[N], ABC):
    """The rule of a node that is computed from others.

    Attributes:
        meets: whether positions meet others of the same input, so that the diagonal comes from pairs.
        fills: whether zeros where no position exists would be out of its range.
    """

    meets: ClassVar[bool] = False
    fills: ClassVar[bool] = False

    def numbers(self, step: Step) -> list[Values]:
        """Return what pairs need at single positions, arrays ``(…, *space, n)``."""
        return []

    @abstractmethod
    def diagonal(self, step: Step, numbers: list[Values]) -> Diagonal:
        """Change what is known of each input with itself."""


class Local(Computed[N]):
    """The rule of a node that keeps displacements: it acts on each position for itself, or on windows."""

    @abstractmethod
    def pairs(
        self,
        read: list[Pairs],
        index: int,
        layout: "Layout",
        one: list[Array],
        two: list[Array],
        pairing: "Pairing | None",
    ) -> Pairs:
        """Change the kernels of pairs.

        Args:
            read: the pairs of the sources.
            index: of the node.
            layout: of the pairs.
            one: the node's numbers at single positions of the first inputs, spread over the pairs.
            two: the same of the second inputs.
            pairing: the expectations of its activation, if it has one.
        """


class Mixing(Computed[N]):
    """The rule of a node that mixes positions, for which all pairs of them are computed at once."""

    @abstractmethod
    def all_pairs(
        self, k: Array, index: int, layout: "AllPairs", one: list[Array], two: list[Array]
    ) -> Array:
        """Mix positions of either kernel; numbers at single positions come as they are."""


class Displaced(Mixing[N]):
    """The rule of a node that mixes positions displacement by displacement too."""

    @abstractmethod
    def displaced(self, at: Displacements) -> Pairs:
        """Mix positions, from the pairs of one displacement after the other."""


def common(degrees: list[int]) -> int | None:
    """Return the degree that all have; None where they differ."""
    return degrees[0] if len(set(degrees)) == 1 else None


RULES: dict[type, type[Rule]] = {}
"""The rule of each kind of node."""


def rule_for(kind: type) -> Callable[[type[Rule]], type[Rule]]:
    """Register the rule of a kind of node."""

    def register(rule: type[Rule]) -> type[Rule]:
        RULES[kind] = rule
        return rule

    return register


def rule_of(node: Node) -> Rule:
    """Return the rule of a node.

    Raises:
        UserError: it has none.
    """
    kind = type(node)
    if kind not in RULES:
        raise UserError(
            f"the node {kind.__name__} has no rule, so that the kernel of its network is not known; give it one as "
            "examples/own_layer.py does"
        )
    return RULES[kind](node)


def present(mask: Any, xp: Any) -> Presence:
    """Return what a node knows whose numbers are zero where nothing exists."""
    return Presence(mask, xp.moveaxis(mask, 0, -1).astype(float))


def everywhere(behind: NDArray[np.bool_], shape: tuple[int, ...]) -> NDArray[np.bool_]:
    """Mark all displacements."""
    return np.ones(shape, bool)


def nowhere_else(behind: NDArray[np.bool_], shape: tuple[int, ...]) -> NDArray[np.bool_]:
    """Mark the displacement zero: equal positions."""
    marks = np.zeros(shape, bool)
    marks[(0,) * len(shape)] = True
    return marks


def strided(
    behind: NDArray[np.bool_], shape: tuple[int, ...], window: Window | None, reach: Any = None
) -> NDArray[np.bool_]:
    """Mark ``r s`` of a source for each displacement s; with pooling ``r s + δ`` for all ``|δ| < w`` of ``reach``."""
    source = np.zeros(shape, bool)
    stride = (1,) * len(shape) if window is None else window.stride
    at = np.argwhere(behind)
    for shift in np.ndindex(*(2 * w - 1 for w in reach or (1,) * len(shape))):
        delta = np.array(shift, int) - np.array([w - 1 for w in reach or (1,) * len(shape)], int)
        index = (at * stride + delta) % source.shape
        source[tuple(index.T)] = True
    return source


def of_variances(a: Values, b: Values, typical: float) -> Values:
    """Return h with ``½ (a_p b_q + b_p a_q) ≤ √(h_p h_q)``, least where a is the typical error times b."""
    # ½ (λ a² + b²/λ) with λ = 1/typical, of the bound in the docstring of _walk.py
    return (a**2 / typical + typical * b**2) / 2


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


ROUNDING = 8  # roundings of one sum over a window, in units of the precision
