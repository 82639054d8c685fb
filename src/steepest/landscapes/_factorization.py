"""The landscape of symmetric factorization, ¼‖XXᵀ − M‖²: all of its critical points, with their whole Hessians."""

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

NEGATIVE = 1e-9  # eigenvalues below minus this, relative to the largest of M, lead down


class FactorizationPoint(NamedTuple):
    """What theory says of one critical point, up to a rotation of the columns of X.

    Attributes:
        chosen: the indices S of the eigenvectors of M that X spans.
        value: ¼ Σ_{i∉S} λ_i².
        eigenvalues: of the Hessian, increasing, shape ``(n r,)``.
        lowest: the first of them.
        index: how many are negative.
    """

    chosen: tuple[int, ...]
    value: float
    eigenvalues: Float[np.ndarray, " nr"]
    lowest: float
    index: int


@checked
def factorization_risk(matrix: Float[Values, "n n"]) -> Callable[[Float[Values, "n r"]], Array]:
    """Return ``f(X) = ¼‖XXᵀ − M‖_F²`` as a function of X, shape ``(n, r)``.

    Its gradient is ``(XXᵀ − M) X`` and its Hessian ``∇²f[Z, Z] = ½‖XZᵀ + ZXᵀ‖² + ⟨XXᵀ − M, ZZᵀ⟩``.

    >>> float(factorization_risk(np.eye(2))(jnp.zeros((2, 1))))
    0.5
    """

    def risk(x: Float[Array, "n r"]) -> jax.Array:
        return jnp.sum((x @ x.T - matrix) ** 2) / 4

    return risk


@checked
def factorization_point(
    eigenvalues: Float[Values, " n"], chosen: Sequence[int], rank: int
) -> FactorizationPoint:
    """Predict the critical point of ``¼‖XXᵀ − M‖²``, X of shape ``(n, r)``, on a set S of k eigenvectors of M.

    X = U_S Λ_S^½ Q for any k orthonormal rows Q of length r; where the λ_i differ there are no others. With ``u, u' ∈
    S`` and ``v ∉ S`` the n r eigenvalues of the Hessian are

    =================  =====================  ========================================================
    eigenvalue         for                    direction
    =================  =====================  ========================================================
    ``2λ_u``           each u                 longer
    ``λ_u + λ_u'``     each pair u < u'       mixing two, symmetrically
    ``λ_u − λ_v``      each pair (u, v)       turning u to v; negative where v is worth more
    ``−λ_v``           each v, r − k times    filling a column that is unused
    ``0``              k(k−1)/2 + k(r − k)    rotations of the columns
    =================  =====================  ========================================================

    Args:
        eigenvalues: of M, all n of them, none negative, in any order.
        chosen: S, indices into these, of positive eigenvalues.
        rank: r, the number of columns of X.

    Raises:
        UserError: negative eigenvalues, or a set that no X can span.

    Source: Ge's lecture at MIT, 2019; Ge, Jin and Zheng 2017. The table is derived in the comments.

    >>> point = factorization_point([4.0, 3.0, 2.0, 0.0], (0, 2), 2)
    >>> point.value, point.lowest, point.index
    (2.25, -1.0, 1)
    """
    levels = np.asarray(eigenvalues, float)
    if levels.ndim != 1 or not levels.size or not (levels >= 0).all():
        raise UserError(
            "factorization_point: expected the eigenvalues of a positive semidefinite matrix, a vector without "
            f"negative numbers, got {levels.tolist()}; XXᵀ cannot reach any other"
        )
    inside = list(dict.fromkeys(chosen))
    outside = [i for i in range(levels.size) if i not in inside]
    if len(inside) > rank or not all(0 <= i < levels.size and levels[i] > 0 for i in inside):
        raise UserError(
            f"factorization_point: expected at most {rank} indices of positive eigenvalues, got {tuple(chosen)}"
        )
    # Write Z = Σ z_ia u_i e_aᵀ in M's eigenvectors and in columns a that carry √λ_a, or nothing. XXᵀ − M is −λ_v on
    # each v ∉ S, and ½‖XZᵀ + ZXᵀ‖² is 2λ_a z_aa² + (√λ_a z_ia + √λ_i z_ai)² for i ∈ S, λ_a z_va² for v ∉ S.
    used = levels[inside]
    omitted = levels[outside]
    unused = rank - used.size
    # mixing two, by (√λ_a z_ia + √λ_i z_ai)²
    pairs = [a + b for a, b in itertools.combinations(used, 2)]
    turns = (used[:, None] - omitted).ravel()  # −λ_v + λ_a on each z_va
    spectrum = np.concatenate([2 * used, pairs, turns, np.repeat(-omitted, unused)])
    # rotations of the columns: no change to first or second order
    zeros = np.zeros(levels.size * rank - spectrum.size)
    spectrum = np.sort(np.concatenate([spectrum, zeros])) + 0.0
    return FactorizationPoint(
        tuple(inside),
        float((omitted**2).sum() / 4),
        spectrum,
        float(spectrum[0]),
        int((spectrum < -NEGATIVE * levels.max()).sum()),
    )


@checked
def factorization_points(
    eigenvalues: Float[Values, " n"], rank: int
) -> tuple[FactorizationPoint, ...]:
    """Predict all critical points of ``¼‖XXᵀ − M‖²``: one for each set of at most r positive eigenvalues of M.

    Args:
        eigenvalues: of M, none negative.
        rank: r, the number of columns of X.

    Raises:
        UserError: see :func:`factorization_point`.

    >>> [point.index for point in factorization_points([4.0, 3.0, 2.0], 3)]
    [9, 4, 5, 6, 1, 2, 3, 0]
    """
    positive = [i for i, level in enumerate(np.asarray(eigenvalues, float)) if level > 0]
    sets = [
        chosen
        for size in range(min(rank, len(positive)) + 1)
        for chosen in itertools.combinations(positive, size)
    ]
    return tuple(factorization_point(eigenvalues, chosen, rank) for chosen in sets)


@checked
def nearest_root(
    x: Float[Values, "*batch n r"], root: Float[Values, "*batch n r"]
) -> Float[np.ndarray, "*batch n r"]:
    """Return ``U R``, the rotation of a root U of M = UUᵀ that is nearest to X in Frobenius norm.

    R = P Qᵀ from the singular vectors of ``UᵀX = P Σ Qᵀ``. With Δ = X − UR, ``‖ΔΔᵀ‖_F² ≤ 2 ‖XXᵀ − M‖_F²``, with
    equality where ``XᵀU = 0`` and ``XᵀX = UᵀU = cI``; with another R no constant bounds the ratio.

    Args:
        x: X.
        root: U, of the same shape.

    Raises:
        UserError: shapes that differ.

    Source: Ge's lecture at MIT, 2019; orthogonal Procrustes problem, Schönemann 1966.

    >>> nearest_root(np.array([[2.0], [0.0]]), np.array([[-1.0], [0.0]])).ravel().tolist()
    [1.0, 0.0]
    """
    x = np.asarray(x, float)
    root = np.asarray(root, float)
    if x.shape != root.shape or x.ndim < 2:
        raise UserError(
            f"nearest_root: expected X and U of one shape (n, r), got {x.shape} and {root.shape}"
        )
    left, _, right = np.linalg.svd(np.swapaxes(root, -1, -2) @ x, full_matrices=False)
    return root @ (left @ right)  # R = PQᵀ maximizes ⟨UR, X⟩ = tr RᵀPΣQᵀ
