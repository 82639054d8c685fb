"""Neural collapse of a classifier's features: NC1 to NC4 of Papyan, Han and Donoho.

Conventions, which differ between papers and change the numbers:

* Every average is over the examples of a class first and over the C classes then, so that all classes weigh the same;
  with equally large classes that is the average over examples. The centre μ_G is the mean of the *class means*.
* Covariances are divided by counts, not by counts − 1. NC1 carries the factor 1/C.
* Cosines (NC2), norms and self-duality (NC3) are those of the *centred* class means μ_c − μ_G. Class means that are
  mutually orthogonal and equally long before centring have cosines −1/(C−1) after it.
* W is compared with the centred means as it is: its row mean is not removed.
* A direction of the class means is numerically zero when its standard deviation is below ``cut`` times the largest.
"""

from typing import NamedTuple

import jax.numpy as jnp
import numpy as np
from jax.core import Tracer
from jaxtyping import Array, Bool, Float, Int, Integer

from steepest.core.errors import UserError


class Collapse(NamedTuple):
    """The state of collapse of one set of features; all numbers but ``rank`` are without unit and scale-free.

    Attributes:
        variability: NC1, ``tr(Σ_W Σ_B⁺)/C``; 0 when every example sits on its class mean.
        cosines: NC2, cosines between the centred class means, shape ``(C, C)``; −1/(C−1) off the diagonal of a simplex.
        raw_cosines: the same before centring; 0 off the diagonal where class means are orthogonal.
        angle_error: NC2, mean of ``|cos + 1/(C−1)|`` over pairs of classes.
        angle_spread: NC2, standard deviation of the cosines over pairs of classes.
        norm_spread: NC2, standard deviation over mean of the lengths of the centred class means.
        spectrum: singular values of the centred class means over the largest, decreasing, shape ``(min(C, p),)``; C − 1
            ones and a zero for a simplex.
        rank: numerical rank of Σ_B; C − 1 for a simplex, less where dimensions have collapsed.
        duality: NC3, ``‖W/‖W‖_F − M/‖M‖_F‖_F`` with the centred means as the rows of M; between 0 and 2.
        mismatch: NC4, share of examples whose decision by the network is not the class of the nearest class mean.
    """

    variability: Float[Array, ""]
    cosines: Float[Array, "C C"]
    raw_cosines: Float[Array, "C C"]
    angle_error: Float[Array, ""]
    angle_spread: Float[Array, ""]
    norm_spread: Float[Array, ""]
    spectrum: Float[Array, " _"]
    rank: Int[Array, ""]
    duality: Float[Array, ""]
    mismatch: Float[Array, ""]


def collapse(
    features: Float[Array, "n p"],
    labels: Integer[Array, " n"],
    classifier: Float[Array, "C p"],
    bias: Float[Array, " C"] | None = None,
    *,
    cut: float = 1e-6,
) -> Collapse:
    """Measure neural collapse of last-layer features h_i with labels y_i, read by a classifier W h + b.

    With class means μ_c and their mean μ_G, Σ_W = Avg_c Avg_{i∈c} (h_i − μ_c)(h_i − μ_c)ᵀ and
    Σ_B = Avg_c (μ_c − μ_G)(μ_c − μ_G)ᵀ. Nothing of size p × p is formed: with M = U S Vᵀ the centred means as rows,
    tr(Σ_W Σ_B⁺)/C = Σ_k v_kᵀ Σ_W v_k / s_k² over the directions with s_k > cut · s_1.

    Args:
        features: h_i, shape ``(n, p)``.
        labels: class numbers 0 … C−1, shape ``(n,)``; every class must occur.
        classifier: W, shape ``(C, p)``.
        bias: b, shape ``(C,)``; none by default.
        cut: directions of the class means shorter than this times the longest count as zero. Σ_B⁺ divides by the
            squares, so a cut below the square root of the arithmetic's precision would divide by rounding errors.

    Raises:
        UserError: shapes that do not belong together, fewer than two classes, a class without examples (the last is
            seen only outside ``jit``; inside it, the numbers are NaN).

    Source: Papyan, Han and Donoho 2020; ORF 543, lecture 10/5.

    Orthogonal class means are a simplex once centred:

    >>> collapsed = collapse(jnp.eye(4), jnp.arange(4), jnp.eye(4))
    >>> collapsed.raw_cosines[0, 1].round(4).item(), round(collapsed.cosines[0, 1].item(), 4), collapsed.rank.item()
    (0.0, -0.3333, 3)
    """
    _check(features, labels, classifier, bias)
    classes = classifier.shape[0]
    means = class_means(features, labels, classes)
    weights = _weights(labels, classes)
    centred = means - means.mean(0)
    _, lengths, directions = jnp.linalg.svd(centred, full_matrices=False)
    kept = lengths > cut * lengths[0]
    within = weights @ ((features - means[labels]) @ directions.T) ** 2  # v_kᵀ Σ_W v_k

    norms = jnp.linalg.norm(centred, axis=1)
    angles = cosines(centred)
    pairs = angles[~np.eye(classes, dtype=bool)]
    scores = features @ classifier.T + (0.0 if bias is None else bias)
    nearest = jnp.argmin((means**2).sum(1) - 2 * features @ means.T, axis=1)
    return Collapse(
        variability=jnp.where(kept, within / jnp.where(kept, lengths, 1.0) ** 2, 0.0).sum(),
        cosines=angles,
        raw_cosines=cosines(means),
        angle_error=jnp.abs(pairs + 1 / (classes - 1)).mean(),
        angle_spread=pairs.std(),
        norm_spread=norms.std() / norms.mean(),
        spectrum=lengths / lengths[0],
        rank=kept.sum(),
        duality=jnp.linalg.norm(_unit(classifier) - _unit(centred)),
        mismatch=(scores.argmax(1) != nearest).astype(features.dtype).mean(),
    )


def class_means(
    features: Float[Array, "n p"], labels: Integer[Array, " n"], classes: int
) -> Float[Array, "C p"]:
    """Return the mean of the features of each class, not centred; NaN for a class without examples.

    >>> class_means(jnp.array([[1.0], [3.0], [5.0]]), jnp.array([0, 0, 1]), 2).tolist()
    [[2.0], [5.0]]
    """
    members = _members(labels, classes)
    return (members.T @ features) / members.sum(0)[:, None]


def cosines(vectors: Float[Array, "C p"]) -> Float[Array, "C C"]:
    """Return the cosines of the angles between all pairs of vectors; NaN for a vector of length zero.

    >>> cosines(jnp.array([[2.0, 0.0], [0.0, 1.0]])).tolist()
    [[1.0, 0.0], [0.0, 1.0]]
    """
    lengths = jnp.linalg.norm(vectors, axis=1)
    return vectors @ vectors.T / jnp.outer(lengths, lengths)


def _members(labels: Integer[Array, " n"], classes: int) -> Bool[Array, "n C"]:
    return labels[:, None] == jnp.arange(classes)


def _weights(labels: Integer[Array, " n"], classes: int) -> Float[Array, " n"]:
    """Return the weight 1/(C n_c) of each example in an average over classes of averages over examples."""
    sizes = _members(labels, classes).sum(0)
    return 1.0 / (classes * sizes[labels])


def _unit(matrix: Float[Array, "C p"]) -> Float[Array, "C p"]:
    return matrix / jnp.linalg.norm(matrix)


def _check(features: Array, labels: Array, classifier: Array, bias: Array | None) -> None:
    shapes = tuple(jnp.shape(a) for a in (features, labels, classifier))
    fits = [len(s) for s in shapes] == [2, 1, 2] and shapes[0] == (*shapes[1], shapes[2][1])
    if not fits or (bias is not None and jnp.shape(bias) != shapes[2][:1]):
        got = ", ".join(map(str, shapes)) + (
            "" if bias is None else f" and a bias {jnp.shape(bias)}"
        )
        raise UserError(
            "collapse: expected features (n, p), labels (n,), a classifier (C, p) and maybe a bias (C,), "
            f"got shapes {got}; for one-hot targets pass labels.argmax(1)"
        )
    if not jnp.issubdtype(labels.dtype, jnp.integer):
        raise UserError(
            f"collapse: labels must be whole class numbers, got {labels.dtype}; use labels.astype(int)"
        )
    classes = shapes[2][0]
    if classes < 2:
        raise UserError(
            f"collapse: between-class quantities need at least two classes, got {classes}"
        )
    if isinstance(labels, Tracer):
        return
    sizes = np.bincount(np.clip(np.asarray(labels), -1, classes) + 1, minlength=classes + 2)
    if sizes[0] or sizes[-1]:
        raise UserError(
            f"collapse: labels must lie between 0 and {classes - 1}, got {sorted(set(map(int, labels)))}"
        )
    if missing := np.flatnonzero(sizes[1:-1] == 0).tolist():
        raise UserError(
            f"collapse: no example of class {missing}; drop its row of the classifier and renumber"
        )
