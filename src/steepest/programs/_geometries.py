"""Maximum margins in norms with structure: groups of coordinates, the Fourier domain, kernels."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from jaxtyping import Float

from steepest.core.errors import UserError
from steepest.core.signatures import checked
from steepest.programs._inputs import check_inputs, check_positive
from steepest.programs._programs import Geometry, MarginProgram, hard_margin, margin_in

# An eigenvalue of a Gram matrix below this fraction of the largest is rounding.
_RANK = 1e-12


@checked
def group_margin(
    x: Float[Any, "n d"],
    y: Float[Any, " n"],
    groups: Sequence[Sequence[int]],
    weights: Float[Any, " k"] | None = None,
    bias: bool = False,
) -> MarginProgram:
    """Find the maximum margin under a group norm, ``‖w‖ = Σ_g c_g ‖w_g‖₂``, by a second-order cone program.

    Args:
        x: inputs, shape ``(n, d)``.
        y: labels ±1, shape ``(n,)``.
        groups: the numbers of the coordinates of each of k groups; every coordinate belongs to one.
        weights: ``c_g > 0``, shape ``(k,)``; ones by default.
        bias: whether an unpenalized constant b is allowed.

    Returns:
        As ``hard_margin``. Groups of one coordinate give the ℓ1 margin, one group of all the ℓ2 margin.

    Raises:
        UserError: as ``hard_margin``, and if the groups are no partition of the coordinates.

    Source: Yuan and Lin 2006 (the norm).

    >>> program = group_margin([[3.0, 4.0, 1.0]], [1], [[0, 1], [2]])
    >>> round(program.margin, 6), program.direction.round(6).tolist()
    (5.0, [0.6, 0.8, 0.0])
    """
    x, y = check_inputs("group margin", x, y)
    if sorted(i for group in groups for i in group) != list(range(x.shape[1])):
        raise UserError(
            f"group margin: expected groups that hold each of the coordinates 0 to {x.shape[1] - 1} once, "
            f"got {[list(group) for group in groups]}"
        )
    c = check_positive(
        "group margin", "weights", np.ones(len(groups)) if weights is None else weights, len(groups)
    )
    return margin_in(_grouped([np.asarray(group, int) for group in groups], c), x, y, bias)


@checked
def fourier_margin(x: Float[Any, "n d"], y: Float[Any, " n"], bias: bool = False) -> MarginProgram:
    """Find the maximum margin under the ℓ1 norm of the Fourier transform, ``‖ŵ‖₁ = Σ_k |ŵ_k|``.

    The transform is the unitary one, ``ŵ_k = d^{-1/2} Σ_j w_j e^{-2πi jk/d}``. In an orthonormal basis of cosines and
    sines each pair of frequencies ±k is a group of two coordinates with weight √2.

    Args:
        x: real inputs, shape ``(n, d)``.
        y: labels ±1, shape ``(n,)``.
        bias: whether an unpenalized constant b is allowed.

    Returns:
        As ``hard_margin``, with w in the original coordinates.

    Raises:
        UserError: as ``hard_margin``.

    Source: Gunasekar, Lee, Soudry and Srebro 2018 (linear convolutional networks of depth two).

    >>> wave = np.cos(2 * np.pi * np.arange(8) / 8)[None]
    >>> program = fourier_margin(wave, [1])  # ‖ŵ‖₁ of a unit wave is √2, its product with the wave is 2
    >>> round(program.margin, 6), bool(np.allclose(program.direction, wave[0] / 2 / np.sqrt(2)))
    (1.414214, True)
    """
    x, y = check_inputs("Fourier margin", x, y)
    basis, groups, c = _waves(x.shape[1])
    # an orthonormal basis keeps inner products: x @ basis, (n, d)
    program = margin_in(_grouped(groups, c), x @ basis, y, bias)
    return replace(program, direction=basis @ program.direction)


@checked
def kernel_margin(
    gram: Float[Any, "n n"], y: Float[Any, " n"], bias: bool = False
) -> MarginProgram:
    """Find the maximum margin in the norm of a kernel's Hilbert space, from the Gram matrix alone.

    Args:
        gram: ``k(x_i, x_j)``, symmetric and positive semidefinite, shape ``(n, n)``.
        y: labels ±1, shape ``(n,)``.
        bias: whether an unpenalized constant b is allowed.

    Returns:
        As ``hard_margin``, with ``direction`` the coefficients ``a`` of ``f = Σ_i a_i k(x_i, ·)``, shape ``(n,)``, of
        norm ``√(aᵀ K a) = 1``.

    Raises:
        UserError: as ``hard_margin``, and for a matrix that is not symmetric and positive semidefinite.

    >>> program = kernel_margin([[4.0, 0.0], [0.0, 1.0]], [1, -1])
    >>> round(program.margin ** -2, 6)  # two orthogonal examples of norms 2 and 1: 1/γ² = 1/4 + 1
    1.25
    """
    gram, y = check_inputs("kernel margin", gram, y)
    if gram.shape[0] != gram.shape[1] or not np.allclose(
        gram, gram.T, rtol=1e-10, atol=1e-12 * np.abs(gram).max()
    ):
        raise UserError(
            f"kernel margin: expected a symmetric Gram matrix (n, n), got shape {gram.shape} with K ≠ Kᵀ"
        )
    values, vectors = np.linalg.eigh((gram + gram.T) / 2)
    if values[0] < -1e-8 * max(values[-1], 0.0):
        raise UserError(
            f"kernel margin: expected a positive semidefinite matrix, got the eigenvalue {values[0]:.3g}"
        )
    kept = values > _RANK * values[-1]
    if not kept.any():
        kept[-1] = True  # the zero kernel: no margin, found by the program
    root = np.sqrt(np.maximum(values[kept], 0))
    features = vectors[:, kept] * root  # rows φ(x_i) with φφᵀ = K
    program = hard_margin(features, y, "l2", bias)
    # w = Σ_i a_i φ(x_i) with φ the rows of V √Λ: a = V Λ^{-1/2} w.
    with np.errstate(divide="ignore", invalid="ignore"):
        a = vectors[:, kept] @ np.where(root > 0, program.direction / root, 0.0)
    return replace(program, direction=a)


def _grouped(groups: list[np.ndarray], c: np.ndarray) -> Geometry:
    import cvxpy as cp

    def expression(w: Any) -> Any:
        return cp.sum(
            [
                weight * cp.norm(w[group], 2)
                for weight, group in zip(c.tolist(), groups, strict=True)
            ]
        )

    def sizes(w: np.ndarray) -> np.ndarray:
        return np.array([np.linalg.norm(w[group]) for group in groups])

    # the dual norm is max_g ‖z_g‖₂/c_g
    return Geometry(
        expression, lambda w: float(c @ sizes(w)), lambda z: float((sizes(z) / c).max())
    )


def _waves(d: int) -> tuple[np.ndarray, list[np.ndarray], np.ndarray]:
    """Return an orthonormal basis of cosines and sines ``(d, d)``, its groups of equal frequency, and their weights.

    With unit waves of coefficients (a, b), ``|ŵ_k| = |ŵ_{-k}| = √(a² + b²)/√2``, which makes √2 √(a² + b²) together;
    the constant and, for even d, the alternating wave have no partner.
    """
    at = np.arange(d)
    columns = []
    groups = []
    c = []
    for k in range(d // 2 + 1):
        alone = k == 0 or 2 * k == d
        pair = [np.cos(2 * np.pi * k * at / d)] + (
            [] if alone else [np.sin(2 * np.pi * k * at / d)]
        )
        groups.append(np.arange(len(columns), len(columns) + len(pair)))
        columns += [wave / np.linalg.norm(wave) for wave in pair]
        c.append(1.0 if alone else np.sqrt(2.0))
    return np.stack(columns, 1), groups, np.array(c)
