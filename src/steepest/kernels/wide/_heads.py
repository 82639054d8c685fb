"""Limits with attention over √d: logits stay random, so that heads are drawn and kernels averaged over them.

Keys are wide and channels many, but heads are counted. In all inputs at once the logits of a head are
``L_i = s C_i E C_iᵀ``, with E of independent Gaussian entries and C_i the rows of input i in a root of the queries'
kernel between all inputs and positions: their covariance is the one that ``AttendAtRandom`` asks for, and the Gram
matrix of each draw has no negative eigenvalues.
"""

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array
from numpy.typing import NDArray

from steepest.core.precision import arithmetic
from steepest.kernels.wide._evaluate import behind_node, gained
from steepest.kernels.wide._layouts import AllPairs
from steepest.kernels.wide._plan import plan_of
from steepest.kernels.wide._rule import Pairs, Values
from steepest.kernels.wide._walk import Walk
from steepest.kernels.wide.duals import Dual
from steepest.nn.activations import Activation
from steepest.nn.layers import WideLimit
from steepest.nn.layers._beside import Beside
from steepest.nn.layers._nodes import Attend, AttendAtRandom, AttendEntrywise
from steepest.nn.types import Key

TOLERANCE = 1e-9  # of expectations: far below what heads leave
ROOM = 2.0  # factor by which variances of one draw may differ from those of the first
RANK = 1e-12  # eigenvalues of the queries' kernel below this share of the largest are rounding


def over_heads(
    limit: WideLimit, x: NDArray, key: Key, heads: int, count: int, beside: Beside
) -> Values:
    """Compute both kernels between all inputs for some draws of the heads, shape ``(count, 2, n, n)``.

    Args:
        limit: with some attention over √d.
        x: inputs, ``(n, *shape)``; zero where no position exists.
        key: random key of the draws.
        heads: drawn in each layer of attention, of each draw.
        count: how many draws.
        beside: which positions exist, and graphs of the inputs.
    """
    plan = plan_of(limit, masked=beside.mask is not None, drawn=True)
    first = next(i for i, node in enumerate(limit.nodes) if isinstance(node, AttendAtRandom))
    x = x.astype(np.float64)
    with arithmetic(double=True):
        walk = Walk.begin(plan, x, beside, tolerance=TOLERANCE, room=ROOM)
        start = Draw(walk, [], heads)
        start.go_on(0, first, key)
        duals = None
        draws = []
        for of_draw in jax.random.split(key, count):
            draw = start.copy(duals)
            draw.go_on(first, len(limit.nodes), of_draw)
            duals = duals or draw.walk.padded_duals()
            draws.append([np.asarray(kernel) for kernel in draw.computed[-1]])
    return np.array(draws)


class Draw:
    """One draw of all heads, as it goes through the nodes.

    Attributes:
        walk: what is known of each input with itself.
        computed: both kernels of each node for all pairs of inputs and positions, ``(*space, *space, n, n)``.
        heads: how many are drawn in each layer of attention.
    """

    def __init__(self, walk: Walk, computed: list[Pairs], heads: int):
        self.walk = walk
        self.computed = computed
        self.heads = heads
        inputs = walk.sides[0][0].shape[-2]
        self.layout = AllPairs(walk.plan, itself=jnp.eye(inputs))

    def copy(self, duals: tuple[Dual | None, ...] | None) -> "Draw":
        """Return a draw that goes on from here by itself, with the expectations of another draw if there is one."""
        walk = replace(self.walk.copy(), duals=duals)
        return Draw(walk, [*self.computed], self.heads)

    def go_on(self, start: int, end: int, key: Key) -> None:
        """Compute the nodes from ``start`` up to ``end``, which is not among them."""
        for index in range(start, end):
            if index == 0:
                self._compute(index, key)
                continue
            itself = partial(self._with_itself, index, key)
            self.walk.step(index, itself, partial(self._products, index))
            if len(self.computed) == index:  # of nodes that mix positions it was asked for
                self._compute(index, key)

    def _compute(self, index: int, key: Key) -> None:
        node = self.walk.plan.limit.nodes[index]
        read = [self.computed[source] for source in node.sources]
        sides = self.walk.sides
        rows = {i: [jnp.asarray(array) for array in arrays] for i, arrays in sides.items()}
        columns = {i: [jnp.swapaxes(a, -1, -2) for a in arrays] for i, arrays in rows.items()}
        if isinstance(node, AttendAtRandom):
            mixed = self._at_random(node, read, jax.random.fold_in(key, index))
            self.computed.append(gained(mixed, index, self.layout, rows, columns))
            return
        dual = self.walk.padded_duals()[index]
        pairing = None if dual is None else dual.pairing
        self.computed.append(behind_node(self.layout, index, read, rows, columns, pairing))

    def _with_itself(self, index: int, key: Key) -> tuple[Values, Values | None]:
        """Return both kernels of each input with itself at equal positions, ``(*space, n)``."""
        self._compute(index, key)
        space = self.walk.plan.limit.spaces[index]
        size = int(np.prod(space))

        def equal(kernel: Array) -> Values:
            square = np.asarray(kernel).reshape(size, size, *kernel.shape[-2:])
            diagonal = np.einsum("ppii->pi", square)
            return diagonal.reshape(*space, -1)

        k, theta = self.computed[index]
        return equal(k), None if theta is None else equal(theta)

    def _products(self, index: int) -> Values:
        """Return the products of attention over d, ``(keys, *space, n)``, as ``attention_products``."""
        node = self.walk.plan.limit.nodes[index]
        assert isinstance(node, (Attend, AttendEntrywise))
        keys = node.sources[1]
        space = self.walk.plan.limit.spaces[keys]
        size = int(np.prod(space))
        k = np.asarray(self.computed[keys].k).reshape(size, size, *self.computed[keys].k.shape[-2:])
        products = node.sharpness * np.einsum("qpii->qpi", k)
        return products.reshape(size, *space, -1)

    def _at_random(self, node: AttendAtRandom, read: list[Pairs], key: Key) -> Pairs:
        """Average over the heads of one draw, arrays ``(*space, *space, n, n)``."""
        plan = self.walk.plan
        space = plan.limit.spaces[node.sources[0]]
        size = int(np.prod(space))
        # positions in one line, inputs first: (n, n, P, P)
        by_input = lambda k: jnp.moveaxis(k.reshape(size, size, *k.shape[-2:]), (2, 3), (0, 1))
        arrays = [by_input(kernel) for pairs in read for kernel in pairs if kernel is not None]
        n = len(arrays[0])
        exists = self.walk.places[node.sources[1]].exists
        keys = np.ones((n, size), bool) if exists is None else exists.reshape(n, size)
        root = jnp.asarray(_root(np.asarray(arrays[2])))
        among = jnp.asarray(keys)
        f = node.activation
        mixed = _averaged(arrays, root, among, node.sharpness, key, self.heads, f)
        shape = (*space, *space, n, n)
        return Pairs(*(jnp.moveaxis(k, (0, 1), (2, 3)).reshape(shape) for k in mixed))


def _root(k: Values) -> Values:
    """Return C with ``K_ij[p, q] = C_i[p] · C_j[q]``, shape ``(n, P, rank)``, of kernels ``(n, n, P, P)``."""
    n, _, size, _ = k.shape
    whole = k.transpose(0, 2, 1, 3).reshape(n * size, n * size)
    values, vectors = np.linalg.eigh((whole + whole.T) / 2)
    # K° = V Λ Vᵀ, C = V √Λ over all inputs and positions, without rounding's eigenvalues
    live = values > RANK * values[-1]
    return (vectors[:, live] * np.sqrt(values[live])).reshape(n, size, -1)


class Head(NamedTuple):
    """The weights of one head.

    Attributes:
        weights: ζ, ``(n, P, P)``; keys that do not exist weigh nothing.
        through: computes ``Σ_{q,q'} D[p, q, p', q'] B[q, q']`` of the values' K and of B, ``(n, n, P, P)`` both.
    """

    weights: Array
    through: Callable[[Array, Array], Array]


def _by_softmax(logits: Array, keys: Array) -> Head:
    """Weigh by softmax over the keys that exist."""
    weights = jax.nn.softmax(jnp.where(keys[:, None], logits, -jnp.inf), axis=-1)
    return Head(weights, partial(_through_softmax, weights))


def _by_function(activation: Activation, logits: Array, keys: Array) -> Head:
    """Weigh by a function of each logit."""
    weights = jnp.where(keys[:, None], activation(logits), 0)
    slopes = jnp.where(keys[:, None], activation.slope(logits), 0)
    # D[p, q, p', q'] = f'(L[p, q]) f'(L'[p', q']) K[q, q']
    return Head(weights, lambda values, others: _mixed(slopes, values * others))


@partial(jax.jit, static_argnames=("heads", "activation"))
def _averaged(
    arrays: list[Array],
    root: Array,
    keys: Array,
    sharpness: float,
    key: Key,
    heads: int,
    activation: Activation | None,
) -> tuple[Array, Array]:
    """Average ``E ζ K ζ'ᵀ`` and Θ of ``AttendAtRandom`` over heads, one head in memory at a time.

    Args:
        arrays: K and Θ of the values, then of the queries, each ``(n, n, P, P)``.
        root: of the queries' K, ``(n, P, rank)``.
        keys: which exist, ``(n, P)``.
        sharpness: s.
        key: random key.
        heads: how many.
        activation: what weights are of logits; None for softmax.
    """
    weigh = _by_softmax if activation is None else partial(_by_function, activation)
    k, theta, query_k, query_theta = arrays
    rank = root.shape[-1]

    def add(sums: tuple[Array, Array], of_head: Key) -> tuple[tuple[Array, Array], None]:
        products = jax.random.normal(of_head, (rank, rank), root.dtype)
        # E of independent entries: Cov(L[p, q], L'[p', q']) = s² K°[p, p'] K°[q, q'], as K° = C Cᵀ
        logits = sharpness * jnp.einsum("ipa,ab,iqb->ipq", root, products, root)
        head = weigh(logits, keys)
        mixed = _mixed(head.weights, k)
        # queries and keys have one law: K°[q, q'] Θ°[p, p'] and K°[p, p'] Θ°[q, q']
        slopes = query_theta * head.through(k, query_k)
        slopes = slopes + query_k * head.through(k, query_theta)
        tangent = _mixed(head.weights, theta) + sharpness**2 * slopes
        return (sums[0] + mixed, sums[1] + tangent), None

    zeros = jnp.zeros_like(k)
    sums, _ = jax.lax.scan(add, (zeros, zeros), jax.random.split(key, heads))
    return sums[0] / heads, sums[1] / heads


def _left(weights: Array, k: Array) -> Array:
    """Compute ``ζ_i K_ij``."""
    return jnp.einsum("ipa,ijab->ijpb", weights, k)


def _right(k: Array, weights: Array) -> Array:
    """Compute ``K_ij ζ_jᵀ``."""
    return jnp.einsum("ijab,jqb->ijaq", k, weights)


def _mixed(weights: Array, k: Array) -> Array:
    """Compute ``ζ_i K_ij ζ_jᵀ``."""
    return _right(_left(weights, k), weights)


def _through_softmax(weights: Array, values: Array, logits: Array) -> Array:
    """Compute ``Σ_{q,q'} D[p, q, p', q'] B[q, q']``, with D of ``AttendAtRandom``: four terms, each two products.

    Args:
        weights: ζ, ``(n, P, P)``.
        values: K of the values, ``(n, n, P, P)``.
        logits: B, of the same shape.
    """
    # ∂ζ_q/∂L_a = ζ_q (δ_qa − ζ_a) on both sides: the product of two differences has four terms
    first = _mixed(weights, values * logits)
    second = _right(_left(weights, values) * _left(weights, logits), weights)
    third = _left(weights, _right(values, weights) * _right(logits, weights))
    return first - second - third + _mixed(weights, values) * _mixed(weights, logits)
