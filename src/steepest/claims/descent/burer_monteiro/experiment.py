"""Coordinate ascent on ⟨A, XXᵀ⟩ over unit rows, and matrices that trap it."""

from typing import NamedTuple

import numpy as np

from steepest.nn.types import Values

NOISE = 1e-5  # in each entry, of starts near a stationary point
LOOSE = 1e-6  # a direction of ascent that costs nothing, beyond rounding
NULL = 1e-10  # eigenvalues below are zero
SADDLE = 0.2  # t of a trap that cannot hold
POSITIVE = 0.02  # least multiplier of a row, so that ascent does not turn it round
TRIES = 3  # of which the trap with the most room is kept


def gaussian(rng: np.random.Generator, n: int) -> Values:
    """Draw a symmetric Gaussian matrix with no diagonal and norm about two."""
    a = rng.standard_normal((n, n))
    a = (a + a.T) / np.sqrt(2 * n)  # variance 1/n: a semicircle of radius two
    np.fill_diagonal(a, 0.0)
    return a


def unit_rows(x: Values) -> Values:
    """Return rows of length one; all must have some length."""
    return x / np.linalg.norm(x, axis=-1, keepdims=True)


def ascend(a: Values, x: Values, sweeps: int) -> Values:
    """Replace each row in turn by the best one for all others, Σ_j A_ij x_j over its length.

    Args:
        a: matrices without a diagonal, ``(..., n, n)``.
        x: starts, ``(..., starts, n, r)``; columns of zeros stay so, and rows are shorter by them.
        sweeps: over all rows.
    """
    x = x.copy()
    rows = a[..., None, :, None, :]  # (..., 1, n, 1, n)
    for _ in range(sweeps):
        for i in range(a.shape[-1]):
            # without a diagonal Σ_j A_ij x_j does not depend on x_i
            x[..., i, :] = unit_rows((rows[..., i, :, :] @ x)[..., 0, :])
    return x


class Ends(NamedTuple):
    """Values ⟨A, XXᵀ⟩, the least eigenvalue of Diag(λ) − A, and how far from stationary, ``(..., starts)``.

    The multipliers are λ_i = ⟨x_i, Σ_j A_ij x_j⟩. Where the least eigenvalue is not negative, Σλ_i, which is the value,
    bounds the program's: X is the best of all.
    """

    value: Values
    least: Values
    residual: Values


def ends(a: Values, x: Values) -> Ends:
    """Look at rows ``(..., starts, n, r)`` of matrices ``(..., n, n)``."""
    pulls = a[..., None, :, :] @ x
    multipliers = (pulls * x).sum(-1)
    certificate = multipliers[..., None] * np.eye(a.shape[-1]) - a[..., None, :, :]
    residual = np.abs(pulls - multipliers[..., None] * x).max((-2, -1))
    # ⟨A, XXᵀ⟩ = Σ_i ⟨x_i, Σ_j A_ij x_j⟩ = Σ_i λ_i
    return Ends(multipliers.sum(-1), np.linalg.eigvalsh(certificate)[..., 0], residual)


def starts(rng: np.random.Generator, n: int, longest: int, count: int) -> Values:
    """Draw starts for rows of every length from one on, padded by zeros, ``(lengths, starts, n, longest)``."""
    x = rng.standard_normal((longest, count, n, longest))
    used = np.arange(longest) <= np.arange(longest)[:, None]
    return unit_rows(x * used[:, None, None])


class Trap(NamedTuple):
    """A matrix whose program is solved by the cut that puts all on one side, and rows at which it is stationary.

    Attributes:
        a: the matrix, ``(n, n)``.
        x: the rows, ``(n, r)``.
        room: the t up to which they are a local maximum; zero where they are none for any.
        t: the negative eigenvalue of Diag(λ) − A, less its sign.
    """

    a: Values
    x: Values
    room: float
    t: float


def trap(rng: np.random.Generator, n: int, r: int, share: float) -> Trap:
    """Make a trap for rows of length r, with t at this share of its room.

    Let the rows of X sum to zero, z be the vector of ones over √n, and P project on what is orthogonal to z and to the
    columns of X. Then S = P − tzzᵀ has SX = 0, so that X is stationary for A = Diag(diag S) − S, and
    Diag(diag S + t) − A = S + t is positive semidefinite and vanishes on z alone: Z = 11ᵀ is the program's only
    solution, by tn better than X. In a direction U, of which row i is orthogonal to x_i, the second variation is
    t‖zᵀU‖² − ‖PU‖²: X is a maximum up to the least ratio of both norms, the room.
    """
    z = np.full(n, n**-0.5)
    made = []
    while len(made) < TRIES:
        x = _balanced(rng, n, r)
        span = np.linalg.qr(np.column_stack([z, x]))[0]
        projection = np.eye(n) - span @ span.T
        room = _room(x, projection)
        t = share * room if room > 0 else SADDLE
        s = projection - t * np.outer(z, z)
        if np.diag(s).min() > POSITIVE:
            made.append(Trap(np.diag(np.diag(s)) - s, x, room, t))
    return max(made, key=lambda one: one.room)


def _balanced(rng: np.random.Generator, n: int, r: int) -> Values:
    """Draw unit rows that sum to zero."""
    x = unit_rows(rng.standard_normal((n, r)))
    while np.abs(x.mean(0)).max() > 1e-15:
        x = unit_rows(x - x.mean(0))
    return x


def _room(x: Values, projection: Values) -> float:
    """Return the least ‖PU‖²/‖zᵀU‖² over directions U, zero where PU vanishes for one whose zᵀU does not."""
    n, r = x.shape
    sides = np.linalg.svd(x[:, None, :])[2][:, 1:]  # of each row, orthogonal to it
    # ‖PU‖² = Σ_ij P_ij ⟨u_i, u_j⟩, as P² = P, with u_i in coordinates of its sides
    cost = np.einsum("ij,iak,jbk->iajb", projection, sides, sides).reshape(n * (r - 1), -1)
    gain = (n**-0.5 * sides).reshape(n * (r - 1), r)  # zᵀU of each direction
    size, vectors = np.linalg.eigh(cost)
    null = size < NULL
    if np.linalg.norm(vectors[:, null].T @ gain) > LOOSE:
        return 0.0
    along = vectors[:, ~null].T @ gain
    # the largest ‖Gᵀc‖²/cᵀCc is λ_max(GᵀC⁻¹G), on the directions that cost something
    return 1 / float(np.linalg.eigvalsh(along.T @ (along / size[~null][:, None]))[-1])
