"""Sparse solutions by enumeration: quasi-norms of order below one, in problems small enough to try every vertex."""

from itertools import combinations
from math import comb
from typing import Any

import numpy as np
from jaxtyping import Float

from steepest.core.errors import UserError
from steepest.core.signatures import checked
from steepest.programs._inputs import check_inputs

_MOST = 2_000_000  # vertices that are tried at most
_SINGULAR = 1e-10  # determinants below this, of columns of norm one, are zeros


@checked
def quasi_norm_interpolation(
    x: Float[Any, "n d"], y: Float[Any, " n"], order: float
) -> Float[np.ndarray, " d"]:
    """Find the interpolant of least ``Σ |β_i|^p``, ``0 < p ≤ 1``, subject to ``Xβ = y``, X of full row rank.

    In each orthant the sum is concave, so that its minimum is at a vertex, an interpolant with at most n nonzero
    entries; all ``C(d, n)`` of them are tried. For ``p < 1`` each is a local minimum, which is why conditions of
    stationarity say nothing here.

    Args:
        x: inputs, shape ``(n, d)``, ``n ≤ d``.
        y: targets, shape ``(n,)``.
        order: p.

    Raises:
        UserError: if shapes do not match, an entry is not finite, the order is not in (0, 1], there are more equations
            than unknowns, no square part of X is regular, or there are more than two million vertices.

    >>> quasi_norm_interpolation([[2.0, 1.0, 3.0], [1.0, 1.0, 0.0]], [1.0, 1.0], order=0.5).round(9).tolist()
    [0.0, 1.0, 0.0]
    """
    x, y = check_inputs("quasi-norm", x, y)
    _check_order(order)
    n, d = x.shape
    if n > d:
        raise UserError(
            f"quasi-norm: expected at most as many equations as unknowns, got {n} and {d}; drop examples"
        )
    _check_count(comb(d, n))
    places = np.array(list(combinations(range(d), n)))
    blocks = np.moveaxis(x[:, places], 1, 0)  # (vertices, n, n)
    regular = _regular(blocks)
    if not regular.any():
        raise UserError(
            "quasi-norm: expected inputs of full row rank, got none; drop repeated examples"
        )
    candidates = np.linalg.solve(blocks[regular], y[:, None])[..., 0]  # (regular vertices, n)
    best = int(np.argmin((np.abs(candidates) ** order).sum(1)))
    beta = np.zeros(d)
    beta[places[regular][best]] = candidates[best]
    return beta


@checked
def quasi_norm_margins(
    x: Float[Any, "n d"], y: Float[Any, " n"], order: float
) -> Float[np.ndarray, "minima d"]:
    """Find all local minima of ``Σ |β_i|^p`` with ``y_i ⟨β, x_i⟩ ≥ 1``, for ``0 < p ≤ 1``, least value first.

    They are vertices: as many examples on the margin as nonzero entries. A vertex is a minimum within its support if
    the multipliers that solve ``p |β_i|^{p-1} sign β_i = Σ_k λ_k y_k x_ki`` are positive. For ``p < 1`` that is all, as
    the slope at ``β_i = 0`` is infinite; for ``p = 1`` the other entries need ``|Σ_k λ_k y_k x_ki| ≤ 1``, and the one
    minimum is the ℓ1 margin's. Examples and entries are assumed to be in general position.

    Args:
        x: inputs, shape ``(n, d)``.
        y: labels ±1, shape ``(n,)``.
        order: p; ``2/L`` for diagonal networks of depth L.

    Returns:
        The minima, shape ``(minima, d)``, scaled to a least margin of one; none if the data are not separable.

    Raises:
        UserError: if shapes do not match, an entry is not finite, the order is not in (0, 1], or there are more than
            two million vertices.

    >>> x, y = [[1.5, 0.1], [1.0, 1.1]], [1.0, 1.0]
    >>> quasi_norm_margins(x, y, order=1.0).round(3).tolist()  # on the margin of both
    [[0.645, 0.323]]
    >>> quasi_norm_margins(x, y, order=2 / 3).round(3).tolist()  # that one is no minimum: one entry is enough
    [[1.0, 0.0], [0.0, 10.0]]
    """
    x, y = check_inputs("quasi-norm", x, y)
    _check_order(order)
    signed = y[:, None] * x
    (n, d) = x.shape
    sizes = range(1, min(n, d) + 1)
    _check_count(sum(comb(n, k) * comb(d, k) for k in sizes))
    minima = np.concatenate([_minima(signed, k, order) for k in sizes])
    return minima[np.argsort((np.abs(minima) ** order).sum(1))]


@checked
def l1_vertex(
    x: Float[Any, "n d"], y: Float[Any, " n"]
) -> tuple[Float[np.ndarray, " d"], Float[np.ndarray, " d"]]:
    """Find the interpolant of least ℓ1 norm by enumeration, with its dual coefficients ``Xᵀν``: signs on its support.

    Where all others are below one in size, it is the only minimum (strict complementarity).

    >>> beta, dual = l1_vertex([[2.0, 1.0]], [2.0])
    >>> beta.tolist(), dual.round(9).tolist()
    ([1.0, 0.0], [1.0, 0.5])
    """
    x, y = check_inputs("quasi-norm", x, y)
    beta = quasi_norm_interpolation(x, y, 1.0)
    support = beta != 0
    return beta, x.T @ np.linalg.lstsq(x[:, support].T, np.sign(beta[support]))[0]


@checked
def l1_margin_vertex(
    x: Float[Any, "n d"], y: Float[Any, " n"]
) -> tuple[Float[np.ndarray, " d"], Float[np.ndarray, " d"]]:
    """Find the weights of least ℓ1 norm with margins of one, with the dual coefficients ``Σ λ_k y_k x_k``.

    >>> beta, dual = l1_margin_vertex([[2.0, 1.0]], [1.0])
    >>> beta.tolist(), dual.round(9).tolist()
    ([0.5, 0.0], [1.0, 0.5])

    Raises:
        UserError: if the data are not separable.
    """
    x, y = check_inputs("quasi-norm", x, y)
    minima = quasi_norm_margins(x, y, 1.0)
    if not len(minima):
        raise UserError(
            "quasi-norm: expected separable data, got none; hard_margin gives the certificate"
        )
    on = y * (x @ minima[0]) < 1 + 1e-9
    support = minima[0] != 0
    signed = (y[:, None] * x)[on]
    return minima[0], np.linalg.lstsq(signed[:, support].T, np.sign(minima[0][support]))[0] @ signed


def _minima(signed: np.ndarray, k: int, order: float) -> np.ndarray:
    """Find local minima with k nonzero entries and k examples on the margin, shape ``(minima, d)``."""
    n, d = signed.shape
    on, support = (np.array(list(combinations(range(count), k))) for count in (n, d))
    vertices = (len(on), len(support))
    on = np.repeat(on, vertices[1], 0)
    support = np.tile(support, (vertices[0], 1))
    blocks = signed[on[:, :, None], support[:, None, :]]  # (vertices, k examples, k entries)
    kept = _regular(blocks)
    on = on[kept]
    support = support[kept]
    blocks = blocks[kept]
    beta = np.linalg.solve(blocks, np.ones((len(blocks), k, 1)))[..., 0]
    # gradient of Σ |β_i|^p on the support
    slope = order * np.abs(beta) ** (order - 1) * np.sign(beta)
    # blocksᵀ λ = slope
    multipliers = np.linalg.solve(np.swapaxes(blocks, 1, 2), slope[..., None])[..., 0]
    whole = np.zeros((len(beta), d))
    pull = np.zeros((len(beta), n))
    np.put_along_axis(whole, support, beta, 1)
    np.put_along_axis(pull, on, multipliers, 1)
    feasible = (whole @ signed.T >= 1 - 1e-9).all(1)
    flat = (np.abs(pull @ signed) <= 1 + 1e-9).all(1) if order == 1 else True
    return whole[feasible & (multipliers > 0).all(1) & flat]


def _regular(blocks: np.ndarray) -> np.ndarray:
    # Hadamard: |det| ≤ product of the columns' norms
    size = np.maximum(np.linalg.norm(blocks, axis=1), 1e-300).prod(-1)
    return np.abs(np.linalg.det(blocks)) > _SINGULAR * size


def _check_order(order: float) -> None:
    if not 0 < order <= 1:
        raise UserError(
            f"quasi-norm: expected an order above 0 and at most 1, got {order:g}; use 2/L for depth L"
        )


def _check_count(count: int) -> None:
    if count > _MOST:
        raise UserError(
            f"quasi-norm: expected at most {_MOST} vertices, got {count}; choose fewer examples or unknowns"
        )
