"""Linear quadratic regulator: a cost over feedback matrices that is not convex and has one critical point."""

from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float
from numpy.typing import ArrayLike

from steepest.core.errors import UserError
from steepest.core.signatures import checked
from steepest.nn.types import Key

DOUBLINGS = 16
"""Terms of a Lyapunov series, as a power of two: enough where the spectral radius is at most 0.9995."""
SETTLED = 1e-8
"""Size of the last power of the closed loop, from which the loop counts as not stable."""


class Optimum(NamedTuple):
    """The best feedback, from Riccati's equation.

    Attributes:
        feedback: K* = (R + BᵀPB)⁻¹BᵀPA, shape ``(k, n)``.
        value: P, the cost-to-go xᵀPx, shape ``(n, n)``.
        covariance: Σ*, the states' sum E Σ x_t x_tᵀ, shape ``(n, n)``.
        curvature: M* = R + BᵀPB, shape ``(k, k)``; the Hessian of the cost at K* is 2 M* ⊗ Σ*.
        cost: C*.
    """

    feedback: Float[Array, "k n"]
    value: Float[Array, "n n"]
    covariance: Float[Array, "n n"]
    curvature: Float[Array, "k k"]
    cost: Float[Array, ""]


class Terms(NamedTuple):
    """What gradient, natural gradient and Gauss–Newton step at one feedback are made of.

    Attributes:
        value: P_K, shape ``(n, n)``.
        covariance: Σ_K, shape ``(n, n)``.
        curvature: M_K = R + BᵀP_K B, shape ``(k, k)``.
        residual: E_K = M_K K − BᵀP_K A, shape ``(k, n)``.
        settled: size of the last power of A − BK, zero where it is stable.
    """

    value: Float[Array, "n n"]
    covariance: Float[Array, "n n"]
    curvature: Float[Array, "k k"]
    residual: Float[Array, "k n"]
    settled: Float[Array, ""]


class Lqr(NamedTuple):
    """A linear system x' = Ax + Bu with the cost E Σ xᵀQx + uᵀRu; a pytree, so that systems can be stacked and mapped.

    Attributes:
        A: shape ``(n, n)``.
        B: shape ``(n, k)``.
        Q: cost of states, shape ``(n, n)``.
        R: cost of inputs, shape ``(k, k)``.
        root: a root of the starts' covariance, Σ_0 = root rootᵀ, shape ``(n, n)``.
    """

    A: Float[Array, "n n"]
    B: Float[Array, "n k"]
    Q: Float[Array, "n n"]
    R: Float[Array, "k k"]
    root: Float[Array, "n n"]

    @property
    def start(self) -> Float[Array, "n n"]:
        """Σ_0, the covariance of the first state."""
        return self.root @ self.root.T

    def terms(self, K: Float[Array, "k n"], doublings: int = DOUBLINGS) -> Terms:
        """Return P_K, Σ_K, M_K and E_K by doubled Lyapunov series; not finite, or huge, where K is not stable.

        Args:
            K: the feedback.
            doublings: of the series; 10 are exact to rounding where the spectral radius is at most 0.98.
        """
        loop = self.A - self.B @ K

        def double(_: int, state: tuple[Array, Array, Array]) -> tuple[Array, Array, Array]:
            value, covariance, power = state
            # S_{2m} = S_m + (A_K^m)ᵀ S_m A_K^m for the sum of m terms (A_K^t)ᵀ (Q + KᵀRK) A_K^t
            value = value + power.T @ value @ power
            covariance = covariance + power @ covariance @ power.T
            return value, covariance, power @ power

        first = (self.Q + K.T @ self.R @ K, self.start, loop)
        # value is P_K = Σ (A_K^t)ᵀ (Q + KᵀRK) A_K^t
        value, covariance, power = jax.lax.fori_loop(0, doublings, double, first)
        curvature = self.R + self.B.T @ value @ self.B
        residual = curvature @ K - self.B.T @ value @ self.A
        return Terms(value, covariance, curvature, residual, jnp.abs(power).max())

    def cost(self, K: Float[Array, "k n"]) -> Float[Array, ""]:
        """Return C(K) = tr(P_K Σ_0), infinite where A − BK is not stable."""
        terms = self.terms(K)
        return jnp.where(terms.settled < SETTLED, jnp.vdot(terms.value, self.start), jnp.inf)

    def gradient(self, K: Float[Array, "k n"]) -> Float[Array, "k n"]:
        """Return ∇C(K) = 2 E_K Σ_K, NaN where A − BK is not stable."""
        terms = self.terms(K)
        gradient = 2 * terms.residual @ terms.covariance  # ∇C = 2 E_K Σ_K
        return jnp.where(terms.settled < SETTLED, gradient, jnp.nan)

    @property
    def optimum(self) -> Optimum:
        """K* and what belongs to it, by the structure-preserving doubling of Riccati's equation."""
        eye = jnp.eye(len(self.A))

        def double(_: int, state: tuple[Array, Array, Array]) -> tuple[Array, Array, Array]:
            loop, gain, value = state
            # twice as many steps in one, with W = (I + GH)⁻¹: AWA, G + AWGAᵀ and H + AᵀHWA;
            # G = BR⁻¹Bᵀ and H = Q at first
            inverse = jnp.linalg.inv(eye + gain @ value)
            return (
                loop @ inverse @ loop,
                gain + loop @ inverse @ gain @ loop.T,
                value + loop.T @ value @ inverse @ loop,
            )

        gain = self.B @ jnp.linalg.solve(self.R, self.B.T)
        value = jax.lax.fori_loop(0, DOUBLINGS, double, (self.A, gain, self.Q))[2]
        value = (value + value.T) / 2
        curvature = self.R + self.B.T @ value @ self.B
        feedback = jnp.linalg.solve(curvature, self.B.T @ value @ self.A)  # K* = (R + BᵀPB)⁻¹ BᵀPA
        covariance = self.terms(feedback).covariance
        return Optimum(feedback, value, covariance, curvature, jnp.vdot(value, self.start))

    def excess(self, K: Float[Array, "k n"], optimum: Optimum) -> Float[Array, ""]:
        """Return C(K) − C* = tr Σ_K (K − K*)ᵀ M* (K − K*), exact however small; infinite where K is not stable."""
        terms = self.terms(K)
        away = K - optimum.feedback
        excess = jnp.vdot(away.T @ optimum.curvature @ away, terms.covariance)
        return jnp.where(terms.settled < SETTLED, excess, jnp.inf)

    def rollouts(
        self, K: Float[Array, "k n"], key: Key, count: int, length: int
    ) -> Float[Array, " count"]:
        """Return costs of ``count`` rollouts of ``length`` states each, from Gaussian starts of covariance Σ_0.

        Their mean is C(K) up to what lies beyond ``length``. The same key gives the same starts, whatever K.
        """
        loop = self.A - self.B @ K
        weight = self.Q + K.T @ self.R @ K

        def step(state: tuple[Array, Array], _: None) -> tuple[tuple[Array, Array], None]:
            x, cost = state  # xᵀQx + uᵀRu = xᵀ(Q + KᵀRK)x
            return (x @ loop.T, cost + ((x @ weight) * x).sum(-1)), None

        # E xxᵀ = root rootᵀ
        first = jax.random.normal(key, (count, len(self.A)), self.A.dtype) @ self.root.T
        return jax.lax.scan(step, (first, jnp.zeros(count, self.A.dtype)), None, length)[0][1]


@checked
def lqr(A: ArrayLike, B: ArrayLike, Q: ArrayLike, R: ArrayLike, start: ArrayLike) -> Lqr:
    r"""Make a linear quadratic regulator, whose cost is a function of the feedback u = −Kx.

    .. math:: C(K) = E \sum_t x_t^⊤ Q x_t + u_t^⊤ R u_t = \operatorname{tr} P_K Σ_0, \quad ∇C = 2 E_K Σ_K

    Where Σ_0 ≻ 0, the one critical point is K*, although the set of stable K is not convex.

    Args:
        A: shape ``(n, n)``.
        B: shape ``(n, k)``.
        Q: positive semidefinite, shape ``(n, n)``.
        R: positive definite, shape ``(k, k)``.
        start: Σ_0, covariance of the first state, positive semidefinite, shape ``(n, n)``.

    Raises:
        UserError: shapes that do not fit, matrices that are not symmetric or not positive, or a system that no feedback
            makes stable.

    Source: Fazel, Ge, Kakade and Mesbahi 2018.

    >>> system = lqr([[2.0]], [[1.0]], [[1.0]], [[1.0]], [[1.0]])  # x' = 2x + u
    >>> round(float(system.optimum.feedback[0, 0]), 6)  # the golden ratio
    1.618034
    >>> [float(system.cost(jnp.array([[K]]))) for K in (2.0, 0.5)]  # 5 + 0·x; x' = 1.5 x grows
    [5.0, inf]
    """
    arrays = {"A": A, "B": B, "Q": Q, "R": R, "start": start}
    matrices = {name: np.asarray(matrix, float) for name, matrix in arrays.items()}
    for name, matrix in matrices.items():
        if matrix.ndim != 2 or not matrix.size or not np.isfinite(matrix).all():
            raise UserError(
                f"lqr: expected {name} as a matrix of finite numbers, got shape {matrix.shape}; "
                "give one row for each state"
            )
    n = len(matrices["A"])
    k = matrices["B"].shape[1]
    wanted = {"A": (n, n), "B": (n, k), "Q": (n, n), "R": (k, k), "start": (n, n)}
    for name, shape in wanted.items():
        if matrices[name].shape != shape:
            raise UserError(
                f"lqr: expected {name} of shape {shape} beside A of {n} rows and B of {k} columns, got "
                f"{matrices[name].shape}; check which of them is transposed"
            )
    for name, floor in (("Q", 0.0), ("start", 0.0), ("R", np.finfo(float).tiny)):
        matrix = matrices[name]
        size = np.abs(matrix).max()
        lowest = np.linalg.eigvalsh(matrix)[0] if np.allclose(matrix, matrix.T) else -np.inf
        if lowest < floor - 1e-12 * size * (floor == 0):
            kind = "semidefinite" if floor == 0 else "definite"
            raise UserError(
                f"lqr: expected {name} symmetric and positive {kind}, got the lowest eigenvalue {lowest:.3g}; "
                "try the identity"
            )
    values, vectors = np.linalg.eigh(matrices.pop("start"))
    root = vectors * np.sqrt(np.maximum(values, 0))  # root rootᵀ = Σ_0
    system = Lqr(*(jnp.asarray(matrix) for matrix in (*matrices.values(), root)))
    if not np.isfinite(system.cost(system.optimum.feedback)):
        raise UserError(
            "lqr: expected a system that some feedback makes stable, with a Q that sees every unstable state; "
            "Riccati's equation gave no stable one; try another B, or Q = I"
        )
    return system
