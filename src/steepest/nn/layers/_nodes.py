"""The limit of infinitely many channels as data: one node for each step of the recursion of two kernels.

Write ``K[p, q]`` and ``Θ[p, q]`` for covariance and tangent kernel of the signals of two inputs at positions p and q.
``kernels/wide`` evaluates the nodes; each of them says here how it changes K and Θ. They are dataclasses, as named
tuples of two kinds are equal where their entries are, and programs are kept by what they compute.
"""

import math
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from enum import Enum
from functools import cached_property
from typing import Any, ClassVar, Literal, NamedTuple

import jax
import numpy as np
from numpy.typing import NDArray

from steepest.core.errors import UserError
from steepest.nn.activations import Activation
from steepest.nn.layers._window import Window

Divisor = Literal["existing", "volume"]
"""What a mean of a pooling divides by: the positions that exist, or all of the window."""


class Kind(Enum):
    """What is known of a signal's channels at a position, given the input."""

    INPUT = "the input"
    GAUSSIAN = "independent Gaussian channels"
    BRANCHES = "channels of several branches side by side, which have several variances"
    OTHER = "channels that are not Gaussian"


class Coefficients:
    """What nodes have in common: some of their entries are numbers, which may differ between equal architectures."""

    coefficients: ClassVar[tuple[str, ...]] = ()
    """The names of these entries, each a number or a tuple of numbers; JAX may trace them."""


@dataclass(frozen=True)
class Input(Coefficients):
    """The inputs, ``K[p, q] = <x_p, x'_q>/channels`` and Θ = 0."""

    sources: tuple[int, ...] = ()


@dataclass(frozen=True)
class Linear(Coefficients):
    """Weights: ``K' = c_b + c_w M K`` and ``Θ' = t_b + t_w M K + c_w M Θ``.

    M is the mean over what both outputs read, ``(M K)[p, q] = mean_δ K[r p + δ, r q + δ]``, with zeros beyond the edge.
    Where each position has weights of its own, both kernels are zero for p ≠ q.

    Attributes:
        sources: the node that it reads.
        c_w: variance of the effective weights times fan-in.
        c_b: variance of the biases.
        t_w: squared multiplier times fan-in.
        t_b: 1, or 0 without biases.
        window: of a convolution; None where each position is read for itself.
        shared: whether all positions have the same weights.
    """

    coefficients = ("c_w", "c_b", "t_w", "t_b")

    sources: tuple[int]
    c_w: float
    c_b: float
    t_w: float
    t_b: float
    window: Window | None = None
    shared: bool = True


@dataclass(frozen=True)
class Activate(Coefficients):
    """An activation: ``K' = E σ(u)σ(v)`` and ``Θ' = E σ'(u)σ'(v) Θ``, with (u, v) of covariance K."""

    sources: tuple[int]
    activation: Activation


@dataclass(frozen=True)
class Average(Coefficients):
    """Average pooling, the mean over both windows, of K and of Θ.

    Attributes:
        sources: the node that it reads.
        window: of the pooling.
        divisor: by what sums over windows are divided: the positions that exist, or the window's volume.
    """

    sources: tuple[int]
    window: Window
    divisor: Divisor = "existing"


@dataclass(frozen=True)
class EqualPositions(Coefficients):
    """All positions become channels: the mean over p = q, of K and of Θ."""

    sources: tuple[int]


@dataclass(frozen=True)
class AllPositions(Coefficients):
    """The mean over all positions: that over all p and q, of K and of Θ.

    Attributes:
        sources: the node that it reads.
        divisor: by what the sum is divided: the positions that exist, or all.
    """

    sources: tuple[int]
    divisor: Divisor = "existing"


@dataclass(frozen=True)
class Sum(Coefficients):
    """A weighted sum of independent branches: ``Σ r_i² K_i``, ``Σ r_i² Θ_i``, with means by r_i.

    Attributes:
        sources: the branches.
        weights: r_i.
    """

    coefficients = ("weights",)

    sources: tuple[int, ...]
    weights: tuple[float, ...]

    @property
    def squares(self) -> tuple[float, ...]:
        """Return r_i², by which kernels are multiplied."""
        return tuple(r**2 for r in self.weights)


@dataclass(frozen=True)
class Concatenate(Coefficients):
    """Channels of branches side by side: ``Σ π_i K_i``, ``Σ π_i Θ_i``.

    Attributes:
        sources: the branches.
        shares: π_i, the share of a branch in all channels.
    """

    sources: tuple[int, ...]
    shares: tuple[float, ...]


@dataclass(frozen=True)
class Stack(Coefficients):
    """Positions of independent branches side by side: K_i and Θ_i within each branch, zero between two.

    Attributes:
        sources: the branches.
        axis: the dimension of space along which they stand.
    """

    sources: tuple[int, ...]
    axis: int


@dataclass(frozen=True)
class Product(Coefficients):
    """The product of independent branches, channel by channel: ``Π K_i`` and ``Σ_i Θ_i Π_{j≠i} K_j``."""

    sources: tuple[int, ...]


@dataclass(frozen=True)
class Mix(Coefficients):
    """A fixed matrix P that mixes positions: ``P K Pᵀ`` and ``P Θ Pᵀ``.

    Attributes:
        sources: the node that it reads.
        matrix: the rows of P.
        axis: the dimension of space along which it mixes; None for all positions in one line.
    """

    sources: tuple[int]
    matrix: tuple[tuple[float, ...], ...]
    axis: int | None = None

    @cached_property
    def array(self) -> NDArray[np.float64]:
        """Return P, shape ``(outputs, positions)``."""
        return np.array(self.matrix)


@dataclass(frozen=True)
class MixGiven(Coefficients):
    """A matrix A beside each input that mixes its positions in one line: ``A K A'ᵀ`` and ``A Θ A'ᵀ``."""

    sources: tuple[int]


@dataclass(frozen=True)
class Select(Coefficients):
    """Some of the positions: ``K[p, q]`` and ``Θ[p, q]`` where they are taken.

    Attributes:
        sources: the node that it reads.
        taken: positions in each dimension of space; one number where the dimension is left out.
    """

    sources: tuple[int]
    taken: tuple[int | tuple[int, ...], ...]


@dataclass(frozen=True)
class Embed(Coefficients):
    """Gaussian embeddings of positions that all inputs share, and that are trained: ``c R`` for both kernels.

    Attributes:
        sources: a node with the positions that are embedded; its kernels are not read.
        c: variance of an embedding where R is one.
        covariance: the rows of R, positions in one line; None for the identity.
    """

    coefficients = ("c",)

    sources: tuple[int]
    c: float
    covariance: tuple[tuple[float, ...], ...] | None = None


@dataclass(frozen=True)
class ExpNormalize(Coefficients):
    """The exponential of normalized signals, ``K' = √(K_pp K_qq) e^{γ (ρ + s)}`` and ``Θ' = γ e^{γ (ρ + s)} Θ``.

    Attributes:
        sources: the node that it reads.
        gamma: γ.
        shift: s.
    """

    coefficients = ("gamma", "shift")

    sources: tuple[int]
    gamma: float
    shift: float


@dataclass(frozen=True)
class Drop(Coefficients):
    """Dropout: both kernels of an input with itself at equal positions are divided by ``keep``, others as they are.

    Attributes:
        sources: the node that it reads.
        keep: the probability with which a unit is kept.
    """

    coefficients = ("keep",)

    sources: tuple[int]
    keep: float


@dataclass(frozen=True)
class Attend(Coefficients):
    """Attention whose weights are the same in all heads: ``ζ K ζ'ᵀ`` and ``ζ Θ ζ'ᵀ``, with ζ of each input.

    ``ζ[p, q] = exp(s K°[p, q]) / Σ_q exp(s K°[p, q])``, with K° the covariance of one input with itself at the second
    source.

    Attributes:
        sources: the values, and what queries and keys read.
        sharpness: s.
    """

    coefficients = ("sharpness",)

    sources: tuple[int, int]
    sharpness: float


@dataclass(frozen=True)
class AttendEntrywise(Coefficients):
    """Attention whose weights are a function of each product: ``ζ K ζ'ᵀ`` and ``ζ Θ ζ'ᵀ``, ``ζ[p, q] = f(s K°[p, q])``.

    Attributes:
        sources: the values, and what queries and keys read.
        sharpness: s.
        activation: f.
    """

    coefficients = ("sharpness",)

    sources: tuple[int, int]
    sharpness: float
    activation: Activation


@dataclass(frozen=True)
class AttendLinearly(Coefficients):
    """Attention whose weights are products over √d themselves, another draw in each head: means over heads.

    With K° and Θ° of the queries, the second source, and keys of the same law, K is ``s² K°[p, p'] <K°, K>`` and Θ is

        s² (K°[p, p'] <K°, Θ> + Θ°[p, p'] <K°, K> + K°[p, p'] <Θ°, K>),

    where ``<A, B>`` is the sum of ``A[q, q'] B[q, q']`` over all pairs of positions.

    Attributes:
        sources: the values, and the queries.
        sharpness: s.
    """

    coefficients = ("sharpness",)

    sources: tuple[int, int]
    sharpness: float


@dataclass(frozen=True)
class AttendAtRandom(Coefficients):
    """Attention whose weights are another draw in each head: means over heads, ``E ζ K ζ'ᵀ`` and more in Θ.

    The logits of a head are Gaussian, ``Cov(L[p, q], L'[p', q']) = s² K°[p, p'] K°[q, q']``, with K° and Θ° those of
    queries, the second source; keys have the same law. With the derivative of softmax, Θ is the mean of

        (ζ Θ ζ'ᵀ)[p, p'] + s² Σ_{q,q'} D[p, q, p', q'] (K°[q, q'] Θ°[p, p'] + K°[p, p'] Θ°[q, q']),
        D[p, q, p', q'] = ζ[p, q] ζ'[p', q'] (K − (ζK)[p, ·] − (Kζ'ᵀ)[·, p'] + (ζKζ'ᵀ)[p, p'])[q, q'].

    Where weights are a function f of each logit, ``D[p, q, p', q'] = f'(L[p, q]) f'(L'[p', q']) K[q, q']``.

    Attributes:
        sources: the values, and the queries.
        sharpness: s.
        activation: f; None for softmax.
    """

    coefficients = ("sharpness",)

    sources: tuple[int, int]
    sharpness: float
    activation: Activation | None = None


@dataclass(frozen=True)
class Normalize(Coefficients):
    """Layer normalization at each position: ``(K − m_p m'_q)/(s_p s'_q)`` and ``Θ/(s_p s'_q)``.

    m is the mean of the channels and ``s_p² = K[p, p] − m_p²`` for both equal.
    """

    sources: tuple[int]


@dataclass(frozen=True)
class NormalizeTogether(Coefficients):
    """Layer normalization of several positions together: ``(K − m_p m'_q + d_p d'_q)/(s s')`` and ``Θ/(s s')``.

    m_p is the mean of the channels at p, m the mean of m_p over the positions, ``d_p = m_p − m``, and s² the mean of
    ``K[p, p]`` less m².

    Attributes:
        sources: the node that it reads.
        dimensions: of space, along which positions are normalized together.
    """

    sources: tuple[int]
    dimensions: tuple[int, ...]


Node = (
    Input
    | Linear
    | Activate
    | Average
    | EqualPositions
    | AllPositions
    | Sum
    | Concatenate
    | Stack
    | Product
    | Mix
    | MixGiven
    | Select
    | Drop
    | ExpNormalize
    | Embed
    | Attend
    | AttendEntrywise
    | AttendLinearly
    | AttendAtRandom
    | Normalize
    | NormalizeTogether
)


class Stage(NamedTuple):
    """A layer of the outermost chain, all of whose branches are joined behind it.

    Attributes:
        name: of the layer.
        node: the last of its nodes.
    """

    name: str
    node: int


@dataclass(frozen=True)
class WideLimit:
    """A network of any architecture with infinitely many channels; pass it to ``gram`` of ``steepest.kernels``.

    JAX sees the coefficients of nodes as leaves, so that kernels can be differentiated by them.

    Attributes:
        shape: of one input, space first and channels last.
        nodes: in an order in which sources come first; the last is the output.
        spaces: numbers of positions of each node's output, one tuple a node.
        name: how pages and tables call it.
        stages: the layers one after the other, with the nodes behind which their kernels stand.

    Source: Novak et al. 2019 for convolutions; Yang 2019 and 2020 for the rules of any composition.
    """

    shape: tuple[int, ...]
    nodes: tuple[Node, ...]
    spaces: tuple[tuple[int, ...], ...]
    name: str = "infinitely wide network"
    stages: tuple[Stage, ...] = ()

    @property
    def coefficients(self) -> tuple[dict[str, Any], ...]:
        """Return the numbers of each node by name: a tree that JAX can trace and differentiate."""
        return tuple({name: getattr(n, name) for name in n.coefficients} for n in self.nodes)

    def with_coefficients(self, coefficients: tuple[dict[str, Any], ...]) -> "WideLimit":
        """Return the same architecture with other numbers."""
        nodes = zip(self.nodes, coefficients, strict=True)
        return replace(self, nodes=tuple(replace(n, **given) for n, given in nodes))

    @property
    def graphs(self) -> frozenset[int]:
        """Return the numbers of positions of the graphs that are read beside inputs."""
        nodes = zip(self.nodes, self.spaces, strict=True)
        return frozenset(math.prod(space) for node, space in nodes if isinstance(node, MixGiven))

    @property
    def structure(self) -> "WideLimit":
        """Return what plans and programs are made for: all numbers are one, and names are left out."""
        ones = jax.tree.map(lambda _: 1.0, self.coefficients)
        return replace(self.with_coefficients(ones), name="", stages=())


jax.tree_util.register_pytree_node(
    WideLimit,
    lambda limit: (
        limit.coefficients,
        replace(limit.structure, name=limit.name, stages=limit.stages),
    ),
    lambda architecture, coefficients: architecture.with_coefficients(tuple(coefficients)),
)


class Draft:
    """Nodes as they are collected, with what is known of each output."""

    def __init__(self, space: tuple[int, ...]):
        self.nodes: list[Node] = [Input()]
        self.kinds = [Kind.INPUT]
        self.spaces = [space]
        self.stages: list[Stage] = []
        self._depth = 0  # of branches within branches

    def add(self, node: Node, kind: Kind, space: tuple[int, ...]) -> int:
        """Append a node and return its index."""
        self.nodes.append(node)
        self.kinds.append(kind)
        self.spaces.append(space)
        return len(self.nodes) - 1

    def mark(self, name: str, node: int) -> None:
        """Note that a layer ends at a node, unless it is inside a branch."""
        if not self._depth:
            self.stages.append(Stage(name, node))

    @contextmanager
    def branches(self) -> Iterator[None]:
        """Say that what is added meanwhile is inside branches."""
        self._depth += 1
        yield
        self._depth -= 1

    def several_laws(self, node: int) -> bool:
        """Tell whether channels behind a node differ in their laws, as channels of several branches or positions do."""
        if self.kinds[node] is Kind.GAUSSIAN:
            return False
        if isinstance(self.nodes[node], Concatenate | EqualPositions):
            return True
        return any(map(self.several_laws, self.nodes[node].sources))

    def refuse(self, what: str, why: str, instead: str) -> UserError:
        """Return the error of a layer that has no known limit."""
        return UserError(
            f"no limit kernel is known for {what} (node {len(self.nodes)}): {why}; {instead}, "
            "or take the kernels of finite networks, sampled_gram"
        )
