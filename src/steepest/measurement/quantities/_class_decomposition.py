r"""Class decomposition of the Gauss–Newton matrix of the cross-entropy: classes, pairs, examples (Papyan).

With softmax probabilities p_i and labels y_i, write ``g_{i,c'} = J_iᵀ (p_i − e_{c'})`` for the gradient that example i
would have if its label were c'. Then, exactly,

.. math:: G = \frac1n \sum_i J_i^\top (\mathrm{diag}\, p_i − p_i p_i^\top) J_i
    = \sum_i \sum_{c'} w_{i,c'}\, g_{i,c'} g_{i,c'}^\top,\qquad w_{i,c'} = p_{i,c'}/n.

Examples of class c with c' ≠ c have a mean ``g_{c,c'}`` and weight ``w_{c,c'} = Σ_{i∈c} w_{i,c'}``; these, over c' ≠ c,
have a mean ``g_c`` and weight ``w_c = Σ_{c'≠c} w_{c,c'}``. The variances around the means add up to G::

    G = Σ_c w_c g_c g_cᵀ                                       class: rank at most C
      + Σ_{c≠c'} w_cc' (g_cc' − g_c)(g_cc' − g_c)ᵀ             cross: rank at most C(C − 2)
      + Σ_{i, c'≠y_i} w_ic' (g_ic' − g_{y_i c'})(…)ᵀ           within
      + Σ_i w_{i,y_i} g_{i,y_i} g_{i,y_i}ᵀ                     own: the terms c' = c

Conventions. ``means="weighted"`` is the above: means with weights w (Papyan 2020; the lecture's w_c and w_cc').
``means="plain"`` puts √p into the vectors, ``g_{i,c'} = √p_{i,c'} J_iᵀ (p_i − e_{c'})`` with ``w_{i,c'} = 1/n``, so
that means are plain averages over examples and over c' (Papyan 2019); for equally large classes its class part is
``(C − 1) Ave_c g_c g_cᵀ``. Both add up to the same G, the mean over examples; the parts differ. Nothing is centred,
and factors carry the square roots of their weights: the class part is ``classesᵀ classes``.
"""

from collections.abc import Callable
from typing import Any, Literal, NamedTuple

import jax
import numpy as np
from jaxtyping import Float, Int, Integer
from numpy.typing import ArrayLike

from steepest.core.errors import UserError

Means = Literal["weighted", "plain"]
MEANS = ("weighted", "plain")
Array = Any
"""An array of NumPy or of JAX; what comes in decides what comes out."""


class Levels(NamedTuple):
    """The low-rank parts as factors, one vector a row.

    Attributes:
        classes: rows ``√w_c g_c``, shape ``(C, p)``: G_class is ``classesᵀ classes``.
        cross: rows ``√w_cc' (g_cc' − g_c)``, c ≠ c' in the order of :func:`pairs`, shape ``(C(C−1), p)``.
        weights: ``w_cc'``, shape ``(C, C)``, with the own classes on the diagonal.
    """

    classes: Float[Array, "C p"]
    cross: Float[Array, "pairs p"]
    weights: Float[Array, "C C"]


def three_levels(
    vjp: Callable[[Float[Array, "n C"]], Float[Array, " p"]],
    outputs: Float[Array, "n C"],
    labels: Integer[Array, " n"],
    means: Means = "weighted",
) -> Levels:
    """Split the Gauss–Newton matrix of the mean cross-entropy into class and cross-class parts, by C(C − 1) products.

    Args:
        vjp: cotangent u ↦ ``Σ_i J_iᵀ u_i``, the sum over examples; of NumPy arrays (``Subject.vjp``) or of JAX.
        outputs: logits, shape ``(n, C)``, C ≥ 2; NumPy or JAX like ``vjp``.
        labels: class numbers, shape ``(n,)``; a class without examples has weight zero.
        means: how the means are weighted, see above.

    Raises:
        UserError: shapes that do not belong together, labels that are no whole numbers, an unknown kind of means.

    Source: Papyan 2019, 2020; ORF 543, lecture 10/5.

    One example of each of two classes, f = w with J = I: g_{0,1} = p − e_1 has weight p_1/2.

    >>> import numpy as np
    >>> levels = three_levels(lambda u: u.sum(0), np.zeros((2, 2)), np.array([0, 1]))
    >>> (levels.classes**2 / 0.25).round(6).tolist(), abs(levels.cross).max().item()
    ([[0.25, 0.25], [0.25, 0.25]], 0.0)
    """
    xp, p, of_class = _read(outputs, labels, means)
    classes = p.shape[1]
    weight = p / len(p) if means == "weighted" else xp.ones_like(p) / len(p)  # w_{i,c'}
    scale = xp.ones_like(p) if means == "weighted" else xp.sqrt(p)
    weights = of_class.T @ weight

    def mean(pair: Any) -> Array:
        c, other = pair
        share = of_class[:, c] * (weight * scale)[:, other] / _positive(xp, weights[c, other])
        return vjp(share[:, None] * (p - (xp.arange(classes) == other)))

    order = pairs(classes)
    if isinstance(outputs, jax.Array):
        means_of_pairs = jax.lax.map(mean, tuple(xp.asarray(indices) for indices in order))
    else:
        means_of_pairs = xp.stack([mean(pair) for pair in zip(*order, strict=True)])
    return gather(means_of_pairs, weights)


def gather(means: Float[Array, "pairs q"], weights: Float[Array, "C C"]) -> Levels:
    """Return the two levels above the examples from the means ``g_cc'``, c ≠ c' in the order of :func:`pairs`."""
    xp = means.__array_namespace__()
    classes = len(weights)
    c, other = pairs(classes)
    weight = weights[c, other][:, None]  # w_cc'
    grouped = lambda rows: rows.reshape(classes, classes - 1, -1)
    total = grouped(weight).sum(1)  # w_c
    centres = grouped(weight * means).sum(1) / _positive(xp, total)
    return Levels(xp.sqrt(total) * centres, xp.sqrt(weight) * (means - centres[c]), weights)


def pairs(classes: int) -> tuple[Int[np.ndarray, " pairs"], Int[np.ndarray, " pairs"]]:
    """List the pairs c ≠ c' in order.

    >>> [indices.tolist() for indices in pairs(3)]
    [[0, 0, 1, 1, 2, 2], [1, 2, 0, 2, 0, 1]]
    """
    c, other = np.nonzero(~np.eye(classes, dtype=bool))
    return c, other


class Parts(NamedTuple):
    """Products of one vector ``(p,)`` with G and with its parts, which add up to it.

    Attributes:
        all: the Gauss–Newton matrix.
        classes: its class part.
        cross: its cross-class part.
        own: its terms c' = c.
        within: what is left.
    """

    all: Callable[[Array], Array]
    classes: Callable[[Array], Array]
    cross: Callable[[Array], Array]
    own: Callable[[Array], Array]
    within: Callable[[Array], Array]


def level_products(
    levels: Levels,
    jvp: Callable[[Float[Array, " p"]], Float[Array, "n C"]],
    vjp: Callable[[Float[Array, "n C"]], Float[Array, " p"]],
    outputs: Float[Array, "n C"],
    labels: Integer[Array, " n"],
) -> Parts:
    """Return the parts as operators; the within part is G less the others.

    Args:
        levels: from :func:`three_levels` at the same weights.
        jvp: v ↦ ``J_i v`` for every example.
        vjp: as for :func:`three_levels`.
        outputs: logits, shape ``(n, C)``.
        labels: class numbers, shape ``(n,)``.
    """
    own = own_cotangents(outputs, labels)
    p = softmax(outputs)

    def everything(v: Array) -> Array:
        moved = p * jvp(v)
        return vjp((moved - p * moved.sum(1, keepdims=True)) / len(p))

    of_own = lambda v: vjp(own * (own * jvp(v)).sum(1, keepdims=True))
    of_classes = lambda v: (levels.classes @ v) @ levels.classes
    of_cross = lambda v: (levels.cross @ v) @ levels.cross
    within = lambda v: everything(v) - of_classes(v) - of_cross(v) - of_own(v)
    return Parts(everything, of_classes, of_cross, of_own, within)


def level_maps(outputs: Float[Array, "n C"], labels: Integer[Array, " n"]) -> Parts:
    """Return G and its parts (weighted means) as maps of the outputs' change, without a factor of any of them.

    Each part A is ``Jᵀ B J`` with a symmetric B on arrays ``(n, C)``, so that a product with A is ``vjp(B(jvp(v)))``
    and ``vᵀ A v = Σ (J v) · B(J v)``. Nothing of the size of the weights is stored: with ``a_{i,c'} = g_{i,c'}·v`` and
    its means a_cc' and a_c, B sends back ``w_ic'`` times a_c, a_cc' − a_c, a_ic' − a_cc', or a_ic' of the own class.

    Args:
        outputs: logits, shape ``(n, C)``.
        labels: class numbers, or any other groups of the examples, shape ``(n,)``.

    Raises:
        UserError: as for :func:`three_levels`.

    >>> import numpy as np
    >>> maps = level_maps(np.zeros((2, 2)), np.array([0, 1]))
    >>> maps.all(np.array([[1.0, 0.0], [0.0, 1.0]])).tolist()
    [[0.125, -0.125], [-0.125, 0.125]]
    """
    xp, p, of_class = _read(outputs, labels, "weighted")
    weight = p / len(p)
    wrong = (1 - of_class) * weight
    weights = of_class.T @ wrong  # w_cc', zero on the diagonal
    total = weights.sum(1, keepdims=True)  # w_c

    def through(kind: str) -> Callable[[Array], Array]:
        def product(moved: Array) -> Array:
            along = (p * moved).sum(1, keepdims=True) - moved
            sums = of_class.T @ (wrong * along)
            centres = of_class @ (sums.sum(1, keepdims=True) / _positive(xp, total))
            means = of_class @ (sums / _positive(xp, weights))
            back = {
                "all": weight * along,
                "classes": wrong * centres,
                "cross": wrong * (means - centres),
                "own": of_class * weight * along,
                "within": wrong * (along - means),
            }[kind]
            return p * back.sum(1, keepdims=True) - back

        return product

    return Parts(*(through(kind) for kind in Parts._fields))


def level_forms(
    moved: Float[Array, "n C"],
    outputs: Float[Array, "n C"],
    labels: Integer[Array, " n"],
    means: Means = "weighted",
) -> dict[str, Float[Array, ""]]:
    """Compute ``vᵀ A v`` of every part A as defined, from ``moved = J v`` alone: a second way to the same numbers.

    With ``a_{i,c'} = g_{i,c'}·v`` each part is a weighted sum of squares; the within part is summed over examples
    instead of being what the others leave.

    Args:
        moved: change of the outputs along v, shape ``(n, C)``.
        outputs: logits, shape ``(n, C)``.
        labels: class numbers, shape ``(n,)``.
        means: as for :func:`three_levels`.
    """
    xp, p, of_class = _read(outputs, labels, means)
    along = (p * moved).sum(1, keepdims=True) - moved  # J_iᵀ(p_i − e_c')·v
    weight = p / len(p) if means == "weighted" else xp.ones_like(p) / len(p)
    along = along if means == "weighted" else xp.sqrt(p) * along
    weights = of_class.T @ weight
    centres = (of_class.T @ (weight * along)) / _positive(xp, weights)
    levels = gather(centres[pairs(p.shape[1])][:, None], weights)
    squares = {"classes": (levels.classes**2).sum(), "cross": (levels.cross**2).sum()}
    squares["own"] = (of_class * weight * along**2).sum()
    return squares | {"within": ((1 - of_class) * weight * (along - of_class @ centres) ** 2).sum()}


def own_cotangents(
    outputs: Float[Array, "n C"], labels: Integer[Array, " n"]
) -> Float[Array, "n C"]:
    """Return rows ``√(p_{i,y_i}/n) (p_i − e_{y_i})``; pulled back one by one they are a factor of the own part."""
    xp, p, of_class = _read(outputs, labels, "weighted")
    return xp.sqrt((p * of_class).sum(1, keepdims=True) / len(p)) * (p - of_class)


def softmax(outputs: Float[Array, "n C"]) -> Float[Array, "n C"]:
    """Return the probabilities of the classes, in NumPy or in JAX.

    >>> import numpy as np
    >>> softmax(np.log([[1.0, 3.0]])).tolist()
    [[0.25, 0.75]]
    """
    xp = outputs.__array_namespace__()
    raised = xp.exp(outputs - outputs.max(1, keepdims=True))
    return raised / raised.sum(1, keepdims=True)


def _read(outputs: Array, labels: Array, means: str) -> tuple[Any, Array, Array]:
    """Return the array library, the probabilities and the one-hot labels."""
    if means not in MEANS:
        raise UserError(f"means of gradients are 'weighted' or 'plain', got {means!r}")
    if outputs.ndim != 2 or outputs.shape[1] < 2 or labels.shape != outputs.shape[:1]:
        raise UserError(
            f"levels: expected logits (n, C), C ≥ 2, and labels (n,), got {outputs.shape} and {labels.shape}; "
            "for one-hot targets pass labels.argmax(1)"
        )
    xp = outputs.__array_namespace__()
    if not xp.issubdtype(labels.dtype, xp.integer):
        raise UserError(
            f"levels: labels must be whole class numbers, got {labels.dtype}; use labels.astype(int)"
        )
    return (
        xp,
        softmax(outputs),
        (labels[:, None] == xp.arange(outputs.shape[1])).astype(outputs.dtype),
    )


def _positive(xp: Any, weights: ArrayLike) -> Array:
    """Replace zeros by one: where a weight is zero, so is what it weighs."""
    return xp.where(weights == 0, 1.0, weights)
