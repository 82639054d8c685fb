"""The semidefinite program of max-cut by an interior-point method, and both counts of equations."""

import numpy as np
from jaxtyping import Float

SOLVED = 1e-10  # gap between both programs, relative, at which it is solved
ITERATIONS = 100
BACK = 0.95  # part of the way to the boundary that a step may go


def enough(n: int, r: int) -> bool:
    """Return whether n constraints are fewer than a symmetric matrix of order r has entries.

    A point of rank r at which the program is stationary then moves along with others, which almost no matrix allows;
    and a local maximum of lower rank is a global one.
    """
    return r * (r + 1) // 2 > n


def traps(n: int, r: int) -> bool:
    """Return whether some matrix has a maximum in rows of length r that is not the program's.

    With SX = 0 and one negative eigenvalue of S, along z, every direction of ascent has the form XB + zyᵀ. It keeps
    the length of row i just if ⟨x_i, B x_i⟩ + z_i⟨y, x_i⟩ = 0: n equations for the r(r + 1)/2 entries of the symmetric
    part of B, whose other part only turns X, and the r of y. From as many equations on, zero alone solves them.
    """
    return r * (r + 3) // 2 <= n


def max_cut_program(a: Float[np.ndarray, "n n"]) -> float:
    """Return max ⟨A, Z⟩ over Z ⪰ 0 with diag Z = 1, by the primal-dual method of Helmberg and others.

    The dual is min Σy with Diag(y) − A ⪰ 0; what is returned is the dual value, an upper bound.
    """
    n = len(a)
    primal = np.eye(n)
    y = 1.1 * np.abs(a).sum(1)  # diagonally dominant: Diag(y) − A ≻ 0
    slack = np.diag(y) - a
    barrier = np.vdot(primal, slack) / (2 * n)  # half of the μ of the present gap nμ
    for _ in range(ITERATIONS):
        if y.sum() - np.vdot(a, primal) <= SOLVED * abs(y.sum()):
            break
        inverse = np.linalg.inv(slack)
        # ZX = μI, linearized: dX = μZ⁻¹ − X − Z⁻¹ Diag(dy) X, with Z = Diag(y) − A;
        # diag dX = 0 then says (Z⁻¹ ∘ X) dy = μ diag Z⁻¹ − 1
        dy = np.linalg.solve(inverse * primal, barrier * np.diag(inverse) - 1)
        move = -inverse @ np.diag(dy) @ primal + barrier * inverse - primal
        move = (move + move.T) / 2  # primal steps are symmetric
        along = _length(primal, move)
        along_dual = _length(slack, np.diag(dy))
        primal = primal + along * move
        y = y + along_dual * dy
        slack = np.diag(y) - a
        barrier = np.vdot(primal, slack) / (2 * n)
        if along + along_dual > 1.8:
            barrier /= 10 if along + along_dual > 1.9 else 2
    return float(y.sum())


def _length(matrix: Float[np.ndarray, "n n"], move: Float[np.ndarray, "n n"]) -> float:
    """Return how far a step may go, one at most, for the matrix to stay positive definite."""
    root = np.linalg.cholesky(matrix)
    # with M = LLᵀ, M + tD ≻ 0 while 1 + t λ_min(L⁻¹DL⁻ᵀ) > 0
    scaled = np.linalg.solve(root, np.linalg.solve(root, move).T)
    least = float(np.linalg.eigvalsh((scaled + scaled.T) / 2)[0])
    return 1.0 if least >= -BACK else -BACK / least
