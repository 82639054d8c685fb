"""A network of squares on Gaussian inputs, whose mean-field limit is an ordinary differential equation."""

from dataclasses import dataclass
from typing import Any

import numpy as np
from jaxtyping import Float
from scipy.integrate import solve_ivp

from steepest.core.errors import UserError
from steepest.core.signatures import checked
from steepest.nn.types import Values

LARGEST = 6
"""Dimensions up to which moments of degree eight are sums over 5^D nodes."""


@dataclass(frozen=True)
class QuadraticMeanField:
    """The network f(x) = (1/N) Σ_i ⟨θ_i, x⟩² with the target xᵀ A x, on x ~ N(0, I).

    It sees its neurons through ``M = (1/N) Σ θ_i θ_iᵀ`` alone: ``f(x) = xᵀ M x``, and with Δ = M − A the risk is
    ``½ E(f − y)² = ½ (2 tr Δ² + (tr Δ)²)``. Gradient flow of every neuron, in time multiplied by N, closes:

        θ' = −2 S θ,   M' = −2 (S M + M S),   S = 2Δ + (tr Δ) I.

    Neurons start as θ ~ N(0, τ² I), so that the limit N → ∞ is the solution from M(0) = τ² I, and a network of width N
    is another solution, from a Wishart matrix. Distances are those of outputs, ``‖xᵀ(M − M')x‖ = √(2 tr Δ² + tr² Δ)``.

    Attributes:
        target: A, symmetric, shape ``(D, D)``.
        scale: τ.
    """

    target: Float[np.ndarray, "D D"]
    scale: float

    def limit(self, times: Float[np.ndarray, " T"]) -> Float[np.ndarray, "T D D"]:
        """Return M of the limit at increasing times from 0 on, to 1e-9."""
        return self.flow(self.scale**2 * np.eye(len(self.target)), times)

    def flow(
        self, starts: Float[np.ndarray, "*batch D D"], times: Float[np.ndarray, " T"]
    ) -> Float[np.ndarray, "T *batch D D"]:
        """Return M at increasing times from any starts: a network of finite width is one of them."""
        shape = np.shape(starts)
        slope = lambda _, flat: self.slope(flat.reshape(shape)).ravel()
        return _solve(slope, np.ravel(starts), times).reshape(len(times), *shape)

    def slope(self, M: Values) -> Values:
        """Return M' at M, shape ``(..., D, D)``; NumPy or JAX."""
        S = self._force(M - self.target)
        return -2 * (S @ M + M @ S)

    def step(self, M: Values, x: Values, lr: Values) -> Values:
        """Take one step of SGD, θ ← θ − ε N ∇_θ ½ (f(x) − y)², on M, at one input each, shapes ``(..., D)``."""
        # f(x) − y = xᵀ (M − A) x
        error = ((M - self.target) * x[..., :, None] * x[..., None, :]).sum((-2, -1))
        rate = (2 * lr * error)[..., None, None]
        Mx = (M * x[..., None, :]).sum(-1)
        square = (x * Mx).sum(-1)[..., None, None]
        cross = x[..., :, None] * Mx[..., None, :]
        outer = x[..., :, None] * x[..., None, :]
        # θ ← (I − rate x xᵀ) θ makes (I − rate x xᵀ) M (I − rate x xᵀ)
        return M - rate * (cross + cross.swapaxes(-1, -2)) + rate**2 * square * outer

    def distance(self, M: Values, other: Values) -> Values:
        """Return the distance of two networks' outputs, in the mean square over x."""
        return self._square(M - other) ** 0.5

    def fluctuations(self, times: Float[np.ndarray, " T"]) -> Float[np.ndarray, " T"]:
        """Return ``N · E distance²`` from the limit as N → ∞.

        That is the central limit of the start, carried by the linearized flow. At time 0 it is
        ``τ⁴ (2 (D² + D) + 2D)``.
        """
        basis = self._basis()
        size = basis[0].size

        def slope(_: float, flat: np.ndarray) -> np.ndarray:
            M, ways = _split(flat, size, basis.shape)
            return np.concatenate([self.slope(M).ravel(), self._linear(M, ways).ravel()])

        begin = np.concatenate([self._start.ravel(), basis.ravel()])
        path = _solve(slope, begin, times)
        # the covariance of a Wishart matrix over N is 2τ⁴/N in every direction of an orthonormal basis
        ways = path[:, size:].reshape(len(times), *basis.shape)
        return 2 * self.scale**4 * self._square(ways).sum(-1)

    def noise(self, times: Float[np.ndarray, " T"]) -> Float[np.ndarray, " T"]:
        """Return ``E distance² / ε`` between one-pass SGD of step ε, at steps ``t/ε``, and the limit, as ε → 0.

        The covariance of M in units of ε obeys ``C' = L C + C Lᵀ + Q`` with the linearized flow L and the covariance Q
        of a step, an average over x of degree eight that Gauss–Hermite quadrature gives exactly.

        Raises:
            UserError: more than six dimensions.
        """
        D = len(self.target)
        if D > LARGEST:
            raise UserError(
                f"noise: expected at most {LARGEST} dimensions for moments of degree eight, got {D}"
            )
        # five nodes are exact up to degree nine in each coordinate
        nodes, weights = _gauss(5, D)
        upper = (
            np.arange(len(nodes)) < len(nodes) // 2
        )  # a step is even in x, and the middle node is 0
        nodes = nodes[upper]
        weights = 2 * weights[upper]
        basis = self._basis()
        # coordinates of a symmetric matrix: its inner products with the basis
        flat_basis = basis.reshape(len(basis), -1)
        squares = (nodes[:, :, None] * nodes[:, None, :]).reshape(len(nodes), -1)
        size = basis[0].size

        def slope(_: float, flat: np.ndarray) -> np.ndarray:
            M, C = _split(flat, size, (len(basis), len(basis)))
            # L_ab: component a of the derivative in the direction of basis matrix b
            L = flat_basis @ self._linear(M, basis).reshape(len(basis), -1).T
            # sums by einsum: threads of BLAS cost more than they save on so few numbers
            error = np.einsum("ni,i->n", squares, (M - self.target).ravel())
            steps = np.einsum("ni,ai->na", squares, (basis @ M).reshape(len(basis), -1))
            # component a of −2 (f − y)(x xᵀ M + M x xᵀ) is −4 (f − y) xᵀ B_a M x
            steps *= -4 * error[:, None]
            mean = np.einsum("n,na->a", weights, steps)
            # covariance of one step, its mean being the flow
            Q = np.einsum("n,na,nb->ab", weights, steps, steps) - np.outer(mean, mean)
            return np.concatenate([self.slope(M).ravel(), (L @ C + C @ L.T + Q).ravel()])

        begin = np.concatenate([self._start.ravel(), np.zeros(len(basis) ** 2)])
        path = _solve(slope, begin, times, 1e-6)
        C = path[:, size:].reshape(len(times), len(basis), len(basis))
        # E (2 tr Δ² + tr² Δ) with Δ = Σ_a c_a B_a: 2 Σ C_aa + Σ C_ab tr B_a tr B_b
        traces = np.trace(basis, axis1=1, axis2=2)
        return 2 * np.trace(C, axis1=1, axis2=2) + np.einsum("a,tab,b->t", traces, C, traces)

    @property
    def _start(self) -> np.ndarray:
        return self.scale**2 * np.eye(len(self.target))

    def _basis(self) -> np.ndarray:
        """Return an orthonormal basis of the symmetric matrices, shape ``(D(D+1)/2, D, D)``."""
        D = len(self.target)
        rows, columns = np.triu_indices(D)
        basis = np.zeros((len(rows), D, D))
        at = np.arange(len(rows))
        # 1/√2 twice off the diagonal: norm one
        basis[at, rows, columns] = np.where(rows == columns, 1.0, 0.5**0.5)
        basis[at, columns, rows] = basis[at, rows, columns]
        return basis

    def _force(self, delta: Values) -> Values:
        trace = (delta * np.eye(len(self.target))).sum((-2, -1))[..., None, None]
        # Wick: E (xᵀ Δ x) x xᵀ = 2Δ + (tr Δ) I
        return 2 * delta + trace * np.eye(len(self.target))

    def _linear(self, M: np.ndarray, ways: np.ndarray) -> np.ndarray:
        """Return the derivative of the slope at M in several directions."""
        S = self._force(M - self.target)
        turned = self._force(ways)
        return -2 * (turned @ M + M @ turned + S @ ways + ways @ S)

    def _square(self, delta: Values) -> Values:
        trace = (delta * np.eye(len(self.target))).sum((-2, -1))
        # Wick: E (xᵀ Δ x)² = 2 tr Δ² + (tr Δ)²
        return 2 * (delta**2).sum((-2, -1)) + trace**2


@checked
def quadratic_mean_field(
    target: Float[np.ndarray, "D D"] | Float[np.ndarray, " D"], scale: float = 0.5
) -> QuadraticMeanField:
    """Return the network of squares with the target xᵀ A x and the start N(0, τ² I).

    Args:
        target: A, symmetric, shape ``(D, D)``, or its diagonal, shape ``(D,)``.
        scale: τ.

    Raises:
        UserError: a target that is no symmetric matrix, or a scale that is not above zero.

    Source: Mei, Montanari and Nguyen 2018 (the limit); the closed equation is Riccati's.

    >>> model = quadratic_mean_field([1.0, 0.0], scale=0.5)
    >>> model.limit([0.0, 5.0])[-1].round(1).tolist()  # learned: M = A
    [[1.0, 0.0], [0.0, 0.0]]
    >>> float(model.fluctuations([0.0])[0])  # τ⁴ (2 · 6 + 4)
    1.0
    """
    A = np.asarray(target, float)
    if A.ndim == 1:
        A = np.diag(A)
    if A.ndim != 2 or A.shape[0] != A.shape[1] or not np.allclose(A, A.T) or not A.size:
        raise UserError(
            f"quadratic_mean_field: expected a symmetric target (D, D) or its diagonal, got shape {A.shape}"
        )
    if not scale > 0:
        raise UserError(f"quadratic_mean_field: expected a scale above zero, got {scale:g}")
    return QuadraticMeanField(A, float(scale))


def _solve(slope: Any, begin: np.ndarray, times: Any, rtol: float = 1e-9) -> np.ndarray:
    """Integrate and return the states, shape ``(times, states)``; the clock starts at 0."""
    readings = np.asarray(times, float)
    end = max(float(readings[-1]), 1e-12)
    path = solve_ivp(
        slope, (0.0, end), begin, "DOP853", np.minimum(readings, end), rtol=rtol, atol=1e-3 * rtol
    )
    return path.y.T


def _split(flat: np.ndarray, size: int, shape: tuple[int, ...]) -> tuple[np.ndarray, np.ndarray]:
    """Return the matrix M and what is integrated along with it."""
    D = round(size**0.5)
    return flat[:size].reshape(D, D), flat[size:].reshape(shape)


def _gauss(order: int, dimension: int) -> tuple[np.ndarray, np.ndarray]:
    """Return nodes (order^D, D) and weights of Gauss–Hermite quadrature for N(0, I)."""
    points, weights = np.polynomial.hermite_e.hermegauss(order)
    weights = weights / weights.sum()
    grid = np.stack(np.meshgrid(*[points] * dimension, indexing="ij"), -1).reshape(-1, dimension)
    products = np.prod(np.stack(np.meshgrid(*[weights] * dimension, indexing="ij"), -1), -1).ravel()
    return grid, products
