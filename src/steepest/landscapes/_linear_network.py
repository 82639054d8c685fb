"""The landscape of deep linear networks, ½‖W_L⋯W_1 − Y‖²: balanced critical points, and how long a mode waits."""

import itertools
from collections.abc import Callable, Sequence
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from steepest.core.errors import UserError
from steepest.core.signatures import checked
from steepest.nn.types import Values

NEGATIVE = 1e-9  # eigenvalues below minus this, relative to the largest singular value, lead down


class LinearNetworkPoint(NamedTuple):
    """What theory says of one balanced critical point, up to rotations of the layers.

    Attributes:
        chosen: the indices S of the singular pairs of Y that the product has.
        value: ½ Σ_{i∉S} s_i².
        eigenvalues: of the Hessian, increasing, shape ``(p,)``, p the number of weights.
        lowest: the first of them.
        index: how many are negative.
    """

    chosen: tuple[int, ...]
    value: float
    eigenvalues: Float[np.ndarray, " p"]
    lowest: float
    index: int


@checked
def linear_network_risk(
    target: Float[Values, "m n"],
) -> Callable[[Sequence[Float[Values, "_ _"]]], Array]:
    """Return ``½‖W_L⋯W_1 − Y‖_F²`` as a function of ``(W_1, …, W_L)``: whitened inputs, the squared loss.

    >>> float(linear_network_risk(np.eye(2))([jnp.zeros((3, 2)), jnp.zeros((2, 3))]))
    1.0
    """

    def risk(weights: Sequence[Array]) -> jax.Array:
        product = weights[0]
        for weight in weights[1:]:
            product = weight @ product
        return jnp.sum((product - target) ** 2) / 2

    return risk


@checked
def balanced_weights(
    singular: Float[Values, " d"], chosen: Sequence[int], depth: int, hidden: int
) -> tuple[Float[np.ndarray, "_ _"], ...]:
    """Return the balanced layers ``(W_1, …, W_L)`` whose product is Y = diag(s) on S and zero elsewhere.

    Mode number a of S runs through hidden neuron a of every layer, with weight ``s_i^{1/L}``.

    Args:
        singular: s, the singular values of Y.
        chosen: S, indices into these.
        depth: L.
        hidden: width of all hidden layers.

    Raises:
        UserError: fewer than two layers, or more modes than hidden neurons.

    >>> [weight.tolist() for weight in balanced_weights([4.0, 1.0], [0], 2, 1)]
    [[[2.0, 0.0]], [[2.0], [0.0]]]
    """
    levels, inside, _ = _parts(singular, chosen, depth, hidden)
    root = levels[inside] ** (1 / depth)  # mode a of S through hidden neuron a
    through = np.arange(len(inside))
    first = np.zeros((hidden, levels.size))
    first[through, inside] = root
    middle = np.zeros((hidden, hidden))
    middle[through, through] = root
    return (first, *([middle] * (depth - 2)), first.T)


@checked
def linear_network_point(
    singular: Float[Values, " d"], chosen: Sequence[int], depth: int, hidden: int
) -> LinearNetworkPoint:
    """Predict the balanced critical point of ``½‖W_L⋯W_1 − Y‖²`` on a set S of k singular pairs of Y.

    Y is d × d, all hidden layers have width h. With ``u, u' ∈ S`` and ``v ∉ S`` the eigenvalues of the Hessian that
    are not zero are

    ============================================  ===================================================================
    eigenvalue                                    for
    ============================================  ===================================================================
    ``Σ_l (s_u^{2(L−l)} s_u'^{2(l−1)})^{1/L}``    each ordered pair (u, u'), u = u' too: ``L s_u^{2−2/L}``
    ``s_u^{1−2/L} (s_u ± s_v)``                   each pair (u, v); negative where v is worth more
    ``± s_v``                                     each v, h − k times, if L = 2 only
    ============================================  ===================================================================

    With two layers an unused neuron is a way down, −max s_v; with three or more it is not: where S holds the largest
    k singular values the lowest eigenvalue is zero although f is not minimal, and f falls first in order L.

    Args:
        singular: s, the d singular values of Y, none negative, in any order.
        chosen: S, indices into these, of positive ones.
        depth: L, the number of layers, at least 2.
        hidden: h, the width of every hidden layer, at least k.

    Raises:
        UserError: sets that no such network can have, or singular values that are negative.

    Source: Ge's lecture at MIT, 2019, and Kawaguchi 2016 for the two kinds of saddles; the table is derived here.

    >>> linear_network_point([3.0, 2.0, 1.0], [0], 2, 3)[3:]
    (-2.0, 4)
    >>> linear_network_point([3.0, 2.0, 1.0], [0], 3, 3)[3:]
    (0.0, 0)
    >>> linear_network_point([3.0, 2.0, 1.0], [2], 3, 3)[3:]
    (-2.0, 2)
    """
    levels, inside, outside = _parts(singular, chosen, depth, hidden)
    # With W_l = s_i^{1/L} on each mode of S, f changes to second order by ½‖D_1‖² + ⟨E, D_2⟩, with
    # E = −Σ_{v∉S} s_v e_v e_vᵀ.
    # D_1 in (i, j) is Σ_l w_i^{L−l} w_j^{l−1} Z_l[i, j]. E meets only Z_L[v, ·] ⋯ Z_1[·, v], so ⟨E, D_2⟩ is
    # −Σ_v s_v Σ_j w_j^{L−2} Z_L[v, j] Z_1[j, v]; the sum over hidden j ∉ S is there for L = 2 alone.
    used = levels[inside]
    omitted = levels[outside]
    root = used ** (1 / depth)
    layer = np.arange(1, depth + 1)
    # squares of D_1's coefficients w_i^{L−l} w_j^{l−1}, (k, k, L); orthogonal to them all is flat
    powers = root[:, None, None] ** (2 * (depth - layer)) * root[None, :, None] ** (2 * (layer - 1))
    scale = used[:, None] ** (1 - 2 / depth)
    # Z_1[u, v] and Z_L[v, u]: s_u^{2−2/L} on the diagonal, −s_v s_u^{1−2/L} off it
    up = scale * (used[:, None] + omitted)
    down = scale * (used[:, None] - omitted)
    spectrum = [powers.sum(-1).ravel(), up.ravel(), down.ravel()]
    if depth == 2:
        # ±s_v of −s_v Z_2[v, j] Z_1[j, v] at an unused neuron j
        ways = np.repeat(omitted, hidden - used.size)
        spectrum += [ways, -ways]
    size = 2 * levels.size * hidden + (depth - 2) * hidden**2  # number of weights
    nonzero = np.concatenate(spectrum)
    eigenvalues = np.sort(np.concatenate([nonzero, np.zeros(size - nonzero.size)])) + 0.0
    return LinearNetworkPoint(
        tuple(inside),
        float((omitted**2).sum() / 2),
        eigenvalues,
        float(eigenvalues[0]),
        int((eigenvalues < -NEGATIVE * levels.max()).sum()),
    )


@checked
def linear_network_points(
    singular: Float[Values, " d"], depth: int, hidden: int
) -> tuple[LinearNetworkPoint, ...]:
    """Predict all balanced critical points: one for each set of at most h positive singular values.

    Args:
        singular: s, the singular values of Y.
        depth: L.
        hidden: h.

    Raises:
        UserError: see :func:`linear_network_point`.

    >>> [point.index for point in linear_network_points([3.0, 2.0, 1.0], 3, 3)]
    [0, 0, 1, 2, 0, 1, 2, 0]
    """
    positive = [i for i, level in enumerate(np.asarray(singular, float)) if level > 0]
    sets = [
        chosen
        for size in range(min(hidden, len(positive)) + 1)
        for chosen in itertools.combinations(positive, size)
    ]
    return tuple(linear_network_point(singular, chosen, depth, hidden) for chosen in sets)


@checked
def mode_time(scale: float, level: float, depth: int, share: float = 0.5) -> float:
    """Return when one mode of a linear network of L layers, all weights α at first, has learned a share of s.

    Gradient flow on ``½(u^L − s)²`` by L weights u is ``u̇ = u^{L−1}(s − u^L)``, so that with ``b = (share · s)^{1/L}``

        ``T = log(b/α)/s + (1/s) ∫_α^b u/(s − u²) du``                              if L = 2,
        ``T = (α^{2−L} − b^{2−L})/((L − 2)s) + (1/s) ∫_α^b u/(s − u^L) du``         if L ≥ 3:

    as α → 0 a logarithm with two layers and a power with more.

    Args:
        scale: α, the weights at the start.
        level: s, the singular value.
        depth: L, at least 2.
        share: of s that the product has at that time.

    Raises:
        UserError: fewer than two layers, numbers that are not positive, a share of one or more, or a start that has
            already learned so much.

    Source: Saxe, McClelland and Ganguli 2014; the exact form is one partial fraction.

    >>> round(mode_time(0.01, 1.0, 2), 4), round(mode_time(0.01, 1.0, 3), 2)
    (4.6051, 99.15)
    """
    if depth < 2 or not (scale > 0 and level > 0 and 0 < share < 1):
        raise UserError(
            "mode_time: expected at least two layers, a positive scale and level, and a share between 0 and 1, got "
            f"depth {depth}, scale {scale}, level {level}, share {share}"
        )
    from scipy.integrate import quad

    end = (share * level) ** (1 / depth)
    if scale >= end:
        raise UserError(
            f"mode_time: expected a scale below {end:.3g}, where the mode has learned {share:g} of {level:g}, got "
            f"{scale:g}; try a smaller scale"
        )
    # partial fraction: 1/(u^{L−1}(s − u^L)) = (u^{1−L} + u/(s − u^L))/s
    late, _ = quad(lambda u: u / (level - u**depth), scale, end, epsabs=1e-13, epsrel=1e-12)
    if depth == 2:
        early = np.log(end / scale)
    else:
        early = (scale ** (2 - depth) - end ** (2 - depth)) / (depth - 2)
    return float((early + late) / level)


def _parts(
    singular: Float[Values, " d"], chosen: Sequence[int], depth: int, hidden: int
) -> tuple[np.ndarray, list[int], list[int]]:
    """Return the singular values, S and what S leaves out, after checking that such a network exists."""
    levels = np.asarray(singular, float)
    inside = list(dict.fromkeys(chosen))
    if levels.ndim != 1 or not levels.size or not (levels >= 0).all():
        raise UserError(
            f"linear network: expected a vector of singular values, none negative, got {levels.tolist()}"
        )
    if depth < 2 or hidden < 1:
        raise UserError(
            f"linear network: expected at least two layers and one hidden neuron, got depth {depth} and width {hidden}"
        )
    if len(inside) > hidden or not all(0 <= i < levels.size and levels[i] > 0 for i in inside):
        raise UserError(
            f"linear network: expected at most {hidden} indices of positive singular values, one a hidden neuron, got "
            f"{tuple(chosen)}"
        )
    return levels, inside, [i for i in range(levels.size) if i not in inside]
