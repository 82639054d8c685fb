"""Training with a fixed kernel under any loss: gradient flow, and descent with momentum, of the outputs."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from typing import Any, NamedTuple, Protocol, cast

import jax
import jax.numpy as jnp
import numpy as np
import scipy.integrate
import scipy.linalg
from jaxtyping import Float
from numpy.typing import NDArray

from steepest.core.errors import UserError
from steepest.kernels._arguments import as_floats, as_number
from steepest.kernels.prediction._checks import (
    Vector,
    as_counts,
    as_cross,
    as_kernel,
    as_momentum,
    as_step_size,
    as_times,
    shown,
)

Loss = Callable[[jax.Array, jax.Array], jax.Array]
"""A loss of outputs and targets: one number for each example, whose mean is the risk, or the risk itself."""

COARSER = 30.0  # times the tolerance: the integration that the error is measured by
EXPLICIT = ("DOP853", "RK45")  # of orders 8 and 5, the second to measure the error of the first
IMPLICIT = ("Radau", "BDF")
FEW = 20_000  # gradients, after which an implicit method is tried if the system is small
MOST = 200_000  # gradients of one integration
SMALL = 1500  # numbers of outputs up to which a Jacobian is factored
UNBOUNDED = 1e200  # allowed error of what cannot amplify errors: its own outputs are controlled


@dataclass(frozen=True)
class KernelPath:
    """What was trained, at each of T times: ``f_t(x) = f_0(x) + Θ(x, X) α_t`` at every x.

    Attributes:
        coefficients: α, of the shape of outputs behind the times, ``(T, n)`` or ``(T, n, k)``.
        train: outputs on the training points, of the same shape.
        risk: of the training points, shape ``(T,)``.
        error: of the outputs on the training points: the largest difference from another integration, of lower order at
            30 times the tolerance, which is less accurate; zero of descent, which is followed step by step.
        coupled: k where the kernel couples outputs; None where it is a matrix.
    """

    coefficients: Float[np.ndarray, "T n *k"]
    train: Float[np.ndarray, "T n *k"]
    risk: Float[np.ndarray, " T"]
    error: float
    coupled: int | None = None

    def test(self, cross: Vector, at: Vector | float = 0.0) -> Vector:
        """Return outputs on other points, ``f_0(x) + Θ(x, X) α``, shape ``(T, m)`` or ``(T, m, k)``.

        Args:
            cross: Θ between those points and the training points, shape ``(m, n)``, or ``(m, k, n, k)`` of coupled
                outputs.
            at: outputs on the other points at initialization, shape ``(m,)`` or ``(m, k)``.

        Raises:
            UserError: a cross kernel or outputs at the start of another shape, or not finite.
        """
        cross = as_cross(cross, self.coefficients.shape[1], self.coupled)
        shape = (len(cross) // (self.coupled or 1), *self.coefficients.shape[2:])
        at = as_floats("outputs on other points at the start", at).astype(float)
        if at.shape not in ((), shape) or not np.isfinite(at).all():
            raise UserError(
                f"outputs on other points at the start: expected shape {shape}, got {shown(at)}"
            )
        moved = [_times(cross, alpha, shape) for alpha in self.coefficients]
        return at + np.stack(moved)


@dataclass(frozen=True)
class KernelTraining:
    """Training of outputs by a fixed kernel Θ, ``f' = −Θ ∂R/∂f`` with the risk R; made by :func:`kernel_training`.

    Attributes:
        kernel: Θ as a matrix; of k outputs that it couples, with n k rows.
        start: f_0 on the training points, shape ``(n,)`` or ``(n, k)``.
        coupled: k where the kernel couples outputs; None where it is a matrix.
        objective: the risk of outputs, with its derivatives.
    """

    kernel: Vector
    start: Vector
    coupled: int | None
    objective: "Objective"

    def flow(
        self, times: Any, *, friction: float | None = None, tolerance: float = 1e-8
    ) -> KernelPath:
        """Follow gradient flow to these times, or with ``friction`` the flow of the heavy ball.

        Explicit steps of order 8; where the flow is so stiff that these would be too many, and n k is at most 1500,
        implicit steps of order 5. The error of a step is controlled on the training points; it is as small on other
        points, whose outputs are sums with the same coefficients. The number of explicit steps grows with λ_max t.

        Args:
            times: each at least zero, and finite.
            friction: γ of ``f'' = −γ f' − Θ ∂R/∂f``, which starts at rest. Descent with momentum β and a small step
                size η tends to it, with γ = (1 − β)/√η, at time √η for each step.
            tolerance: of a step, relative and absolute, of outputs on the training points.

        Raises:
            UserError: such times, frictions or tolerances; a flow that cannot be followed so far.
        """
        times = as_times(times)
        if not np.isfinite(times).all():
            raise UserError(
                "the flow of any loss needs finite times; only the squared loss has an end in closed form, by "
                "kernel_dynamics(ntk).flow(np.inf)"
            )
        tolerance = as_number("tolerance", tolerance, 1e-13)
        equations: Equations = GradientFlow(self)
        if friction is not None:
            equations = HeavyBall(self, as_number("friction", friction, 0))
        with double():
            fine, coarse = self._integrated(
                equations, *np.unique(times, return_inverse=True), tolerance
            )
        shape = (len(times), *self.start.shape)
        # halves of a state begin with f and with α
        halves = np.split(fine, 2, axis=1)
        train, coefficients = (half[:, : self.start.size].reshape(shape) for half in halves)
        error = np.abs(fine - coarse)[:, : self.start.size].max()
        return self._path(coefficients, train, float(error))

    def descent(self, lr: float, steps: Any, momentum: float = 0.0) -> KernelPath:
        """Follow full-batch descent for these numbers of steps, ``v ← βv − η∇, w ← w + v`` (heavy ball) when β > 0.

        Steps that are too large give outputs that grow, and values that are not finite once they overflow.

        Raises:
            UserError: for a step size that is not positive and finite, a momentum outside [0, 1), or numbers of steps
                that are not whole and at least zero.
        """
        lr = as_step_size(lr)
        momentum = as_momentum(momentum)
        counts = as_counts(steps)
        alpha = np.zeros_like(self.start)
        velocity = np.zeros_like(self.start)
        f = self.start
        states = {}
        with np.errstate(over="ignore", invalid="ignore"), double():
            for step in range(int(counts.max()) + 1):
                if step in counts:
                    states[step] = (alpha, f)
                # weights move by −J ᵀ∂R/∂f, so their coefficients by −∂R/∂f
                velocity = momentum * velocity - lr * self.objective.slope(f)
                alpha = alpha + velocity
                f = self.start + _times(self.kernel, alpha, f.shape)
        alphas, outputs = map(np.stack, zip(*(states[count] for count in counts), strict=True))
        return self._path(alphas, outputs, 0.0)

    def _path(self, coefficients: Vector, train: Vector, error: float) -> KernelPath:
        with double():
            risk = np.array([float(self.objective.risk(f)) for f in train])
        return KernelPath(coefficients, train, risk, error, self.coupled)

    def _integrated(
        self, equations: "Equations", times: Vector, places: NDArray, tolerance: float
    ) -> tuple[Vector, Vector]:
        """Integrate states to these places of increasing times, in two ways, each of shape ``(T, state)``."""
        small = self.start.size <= SMALL
        ways = ((EXPLICIT, FEW), (IMPLICIT, MOST)) if small else ((EXPLICIT, MOST),)
        for methods, most in ways:
            with suppress(_TooManyError):
                fine = _solved(equations, methods[0], times, tolerance, most)
                coarse = _solved(equations, methods[1], times, COARSER * tolerance, most)
                return fine[places], coarse[places]
        raise UserError(
            f"the flow up to time {times[-1]:g} needs more than {MOST} gradients; take shorter times, or "
            "descent with large steps"
        )

    def pull(self, f: Vector) -> tuple[Vector, Vector]:
        """Return −Θ ∂R/∂f and −∂R/∂f at flat outputs."""
        pull = -self.objective.slope(f.reshape(self.start.shape))
        return _times(self.kernel, pull, self.start.shape).ravel(), pull.ravel()

    def bend(self, f: Vector) -> tuple[Vector, Vector]:
        """Return the derivatives of :meth:`pull` by f, two square matrices."""
        size = self.start.size
        bend = -self.objective.hessian(f.reshape(self.start.shape)).reshape(size, size)
        moved = _times(self.kernel, bend, (*self.start.shape, size)).reshape(size, size)
        return moved, bend


class Equations(Protocol):
    """Differential equations of a state, whose halves are outputs and coefficients, ``f = f_0 + Θα``.

    Steps keep this, which is linear, to rounding.
    """

    def begin(self) -> Vector:
        """Return the state at time zero."""
        ...

    def rate(self, state: Vector) -> Vector:
        """Return the derivative of a state by time."""
        ...

    def jacobian(self, state: Vector) -> Vector:
        """Return the derivative of the rate by the state."""
        ...


@dataclass(frozen=True)
class GradientFlow:
    """``f' = −Θ ∂R/∂f`` and ``α' = −∂R/∂f``, of the state (f, α)."""

    training: KernelTraining

    def begin(self) -> Vector:
        """Return (f_0, 0)."""
        start = self.training.start.ravel()
        return np.concatenate([start, np.zeros_like(start)])

    def rate(self, state: Vector) -> Vector:
        """Return (f', α')."""
        f, _ = np.split(state, 2)
        return np.concatenate(self.training.pull(f))

    def jacobian(self, state: Vector) -> Vector:
        """Return the derivatives by f; there are none by α."""
        f, _ = np.split(state, 2)
        by_f = np.vstack(self.training.bend(f))
        return np.hstack([by_f, np.zeros_like(by_f)])


@dataclass(frozen=True)
class HeavyBall:
    """``f'' = −γ f' − Θ ∂R/∂f`` and ``α'' = −γ α' − ∂R/∂f``, of the state (f, f', α, α')."""

    training: KernelTraining
    friction: float

    def begin(self) -> Vector:
        """Return (f_0, 0, 0, 0)."""
        start = self.training.start.ravel()
        return np.concatenate([start, np.zeros(3 * start.size)])

    def rate(self, state: Vector) -> Vector:
        """Return the velocities and accelerations."""
        f, f_velocity, _, velocity = np.split(state, 4)
        moved, pull = self.training.pull(f)
        of_outputs = moved - self.friction * f_velocity
        of_coefficients = pull - self.friction * velocity
        return np.concatenate([f_velocity, of_outputs, velocity, of_coefficients])

    def jacobian(self, state: Vector) -> Vector:
        """Return the derivatives by (f, f', α, α')."""
        f, *_ = np.split(state, 4)
        moved, bend = self.training.bend(f)
        zero = np.zeros_like(bend)
        identity = np.eye(len(bend))
        damped = -self.friction * identity
        return np.block(
            [
                [zero, identity, zero, zero],
                [moved, damped, zero, zero],
                [zero, zero, zero, identity],
                [bend, zero, zero, damped],
            ]
        )


def _solved(
    equations: Equations, method: str, times: Vector, tolerance: float, most: int
) -> Vector:
    """Integrate states, shape ``(T, state)``.

    Raises:
        UserError: a flow that cannot be followed so far.
    """
    begin = equations.begin()
    count = iter(range(most))

    def field(_: float, state: Vector) -> Vector:
        if next(count, None) is None:
            raise _TooManyError
        return equations.rate(state)

    if times[-1] == 0:
        return begin[None]
    options: dict[str, Any] = {}
    if method in IMPLICIT:
        options["jac"] = lambda _, state: equations.jacobian(state)
    run = scipy.integrate.solve_ivp(
        field,
        (0.0, float(times[-1])),
        begin,
        method=method,
        t_eval=times,
        rtol=tolerance,
        # an error of α changes nothing but what it is a sum for: Θα is controlled as f
        atol=np.repeat([tolerance, UNBOUNDED], begin.size // 2),
        **options,
    )
    if run.status != 0 or not np.isfinite(run.y).all():
        reached = run.t[-1] if len(run.t) else 0.0
        raise UserError(
            f"the flow could be followed to time {reached:g} only, not to {times[-1]:g}: {run.message} The loss "
            "may have no derivative there, or outputs may grow without bound"
        )
    return run.y.T


class _TooManyError(Exception):
    """More gradients than one integration may take."""


class Objective(NamedTuple):
    """A risk of outputs on the training points, shape ``(n,)`` or ``(n, k)``, in NumPy and float64.

    Attributes:
        risk: a number.
        slope: ∂R/∂f, of the shape of f.
        hessian: ∂²R/∂f², of the shape of f twice.
    """

    risk: Callable[[Vector], Any]
    slope: Callable[[Vector], Vector]
    hessian: Callable[[Vector], Vector]


def kernel_training(
    ntk: Vector, loss: Loss, targets: Any, *, start: Vector | float = 0.0
) -> KernelTraining:
    """Prepare training with a fixed kernel Θ under any loss.

    Outputs are f = f_0 + Θ α at all times and points, and the coefficients α move by −∂R/∂f of the training points. For
    the squared loss :func:`kernel_dynamics` has the closed form. For one output, the same flow is integrated by
    ``kernel_flow`` of ``steepest.dynamics``, a compiled function of JAX.

    Args:
        ntk: Θ over the training points, shape ``(n, n)``, of one output or of several that each have it; or
            ``(n, k, n, k)`` of k outputs that it couples.
        loss: a function of JAX of outputs and targets. If it returns a number for each example, shape ``(n,)``, the
            risk is their mean, as with ``squared`` and ``cross_entropy`` of ``steepest.nn.losses``. If it returns one
            number, this number is the risk, such as ``lambda f, y: 0.5 * jnp.mean((f - y) ** 2)``.
        targets: what the loss takes, one row for each example: numbers ``(n,)`` or ``(n, k)``, one-hot rows ``(n, C)``,
            or whole class numbers ``(n,)``.
        start: outputs f_0 on the training points at initialization. Outputs have its shape, or the shape of targets if
            it is one number; for class numbers give ``np.zeros((n, C))``.

    Raises:
        UserError: a kernel that is not finite, symmetric and positive semidefinite, shapes that do not fit, a loss that
            is not finite at the start or returns anything else.

    >>> from steepest.nn.losses import cross_entropy
    >>> training = kernel_training(np.eye(2), cross_entropy, np.array([0, 1]), start=np.zeros((2, 2)))
    >>> path = training.flow([0.0, 10.0])
    >>> path.risk.round(4).tolist()
    [0.6931, 0.1074]
    >>> path.test(np.array([[1.0, 0.0]])).round(4).tolist()
    [[[0.0, 0.0]], [[1.0887, -1.0887]]]
    """
    kernel, coupled, _ = as_kernel(ntk)
    _check_semidefinite(kernel)
    n = len(kernel) // (coupled or 1)
    y = _as_targets(targets, n)
    f = as_floats("outputs at the start", start).astype(float)
    shape = f.shape or y.shape
    fits = shape == (n, coupled) if coupled else len(shape) in (1, 2) and shape[0] == n
    if not fits or not np.isfinite(f).all() or not np.prod(shape):
        wanted = (
            f"shape ({n}, {coupled}), as the kernel couples {coupled} outputs"
            if coupled
            else f"a finite number, or a row, for each of the {n} training points"
        )
        raise UserError(f"outputs at the start: expected {wanted}, got {shown(f)}")
    f = np.broadcast_to(f, shape).copy()
    with double():
        objective = _objective(loss, y, f)
    return KernelTraining((kernel + kernel.T) / 2, f, coupled, objective)


def _check_semidefinite(kernel: Vector) -> None:
    """Raise a UserError if an eigenvalue is negative by more than 1e-5 of a bound of the largest."""
    shift = 1e-5 * float(np.abs(kernel).sum(1).max())
    try:
        np.linalg.cholesky(kernel + (shift or 1.0) * np.eye(len(kernel)))
    except np.linalg.LinAlgError:
        raise UserError(
            "the kernel is not positive semidefinite, so outputs would run away from their targets; check that all "
            "entries come from one kernel, and compute it in float64"
        ) from None


def _as_targets(targets: Any, n: int) -> NDArray:
    """Return targets of n rows; whole numbers stay whole, as they may be classes."""
    y = as_floats("targets", targets).astype(float)
    if np.asarray(targets).dtype.kind in "iub":
        y = np.asarray(targets).astype(int)
    if y.ndim not in (1, 2) or len(y) != n or not np.isfinite(y).all():
        raise UserError(
            f"targets: expected a finite number, or a row, for each of the {n} training points, got {shown(y)}"
        )
    return y


def _objective(loss: Any, y: NDArray, start: Vector) -> Objective:
    """Return the risk of a loss, once it is known that it gives one at the start."""
    if not callable(loss):
        raise UserError(
            f"loss: expected a function of outputs and targets, got {type(loss).__name__}; try "
            "steepest.nn.losses.cross_entropy"
        )
    try:
        given = np.asarray(loss(jnp.asarray(start), jnp.asarray(y)))
    except UserError:
        raise
    except Exception as trouble:
        raise UserError(
            f"the loss failed on outputs of shape {start.shape} and targets of shape {y.shape}: {trouble}"
        ) from trouble
    if given.shape not in ((), (len(y),)) or given.dtype.kind not in "fiu":
        raise UserError(
            f"the loss must give one real number, or one for each of the {len(y)} examples, got {given.dtype} of shape "
            f"{given.shape}; take the mean or the sum over outputs in it"
        )
    if not np.isfinite(given).all():
        raise UserError(
            "the loss is not finite at the start; look at the outputs at the start and at targets: classes are numbers "
            "from 0 to C − 1 of C outputs"
        )
    of_outputs = cast(Loss, loss)
    risk = jax.jit(lambda f: jnp.mean(of_outputs(f, jnp.asarray(y))))
    slope = jax.jit(jax.grad(risk))
    hessian = jax.jit(jax.hessian(risk))
    return Objective(risk, lambda f: np.asarray(slope(f)), lambda f: np.asarray(hessian(f)))


def _times(matrix: Vector, v: Vector, shape: tuple[int, ...]) -> Vector:
    """Return Θ v in a shape: a column for each output that has the kernel to itself, one where they are coupled."""
    return (matrix @ v.reshape(matrix.shape[1], -1)).reshape(shape)


@contextmanager
def double() -> Iterator[None]:
    """Compute in float64, whatever the caller's setting is."""
    with jax.enable_x64(True):
        yield
