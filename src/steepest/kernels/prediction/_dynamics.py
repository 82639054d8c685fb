"""Training with a fixed kernel, in closed form: gradient flow, descent and momentum on the squared loss."""

from dataclasses import dataclass
from typing import Any, Literal, NamedTuple, get_args

import numpy as np

from steepest.core import given
from steepest.core.errors import UserError, nearest
from steepest.kernels._arguments import as_count, as_floats, as_number
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

SquaredRisk = Literal["sum over outputs", "mean over outputs", "mean squared error"]
"""Which multiple of Σ (f − y)² is descended; see :func:`kernel_dynamics`."""


class Progress(NamedTuple):
    """Progress of training along each eigenvector, at each of T times.

    Attributes:
        left: factor by which the residual along it is multiplied, shape ``(T, n)``.
        gained: ``(1 − left)/λ``, the limit where λ = 0, shape ``(T, n)``.
    """

    left: Vector
    gained: Vector


class Ensemble(NamedTuple):
    """Mean and covariance of the outputs of many networks, over their initializations, at each of T times."""

    mean: Vector
    """Shape ``(T, m)``, or ``(T, m, k)`` of targets ``(n, k)``."""
    covariance: Vector
    """Shape ``(T, m, m)``, of each output; different outputs are independent."""


@dataclass(frozen=True)
class KernelDynamics:
    """The dynamics ``f' = −(c/n) Θ (f − y)`` of the risk ``(c/n) Σ ½‖f(x_i) − y_i‖²`` with a fixed kernel Θ.

    c is one unless :func:`kernel_dynamics` was told of another risk. Of a matrix ``(n, n)`` several outputs are columns
    ``(n, k)``, each with this kernel by itself, as in infinitely wide networks. A kernel ``(n, k, n, k)`` couples them,
    as the kernel of a finite network does; as a matrix ``(n k, n k)`` it would be read as n k examples.

    Along the eigenvector v_k of cΘ/n with eigenvalue λ_k, residuals are multiplied by exp(−λ_k t) under the flow, and
    by (1 − ηλ_k) in each step of descent. Make it with :func:`kernel_dynamics`.

    Attributes:
        eigenvalues: λ of cΘ/n, ascending, shape ``(n,)``; ``(n k,)`` of a kernel that couples outputs.
        vectors: eigenvectors in columns, a square matrix.
        resolution: eigenvalues up to this one cannot be told from zero, by the rounding of the kernel's entries.
        coupled: k where the kernel couples outputs; None where it is a matrix.
        factor: c, one over k or two over k where the risk is a mean over k outputs.
        columns: k where the kernel or the caller says it, as many columns as targets must have; None otherwise.

    Source: ORF 543, lectures 10/10 and 10/31; Jacot, Gabriel and Hongler 2018; Lee et al. 2019.
    """

    eigenvalues: Vector
    vectors: Vector
    resolution: float = 0.0
    coupled: int | None = None
    factor: float = 1.0
    columns: int | None = None

    @property
    def points(self) -> int:
        """Count the training points, n."""
        return len(self.eigenvalues) // (self.coupled or 1)

    def largest_step(self, momentum: float = 0.0) -> float:
        """Return 2(1 + β)/λ_max, above which descent with momentum β diverges; infinite for a kernel of zero.

        Raises:
            UserError: for a momentum outside [0, 1).
        """
        momentum = as_momentum(momentum)
        top = float(self.eigenvalues[-1])
        # z² − (1 + β − ηλ) z + β leaves the unit disc at z = −1, where ηλ = 2 (1 + β)
        return 2 * (1 + momentum) / top if top > 0 else float("inf")

    def flow(self, times) -> Progress:
        """Follow gradient flow to these times, each at least zero.

        At ``np.inf`` training is over: outputs are those of the pseudo-inverse of the kernel, as directions whose
        eigenvalue is zero up to rounding are never learned.

        Raises:
            UserError: for a time that is negative or NaN.
        """
        times = as_times(times)
        ended = np.isinf(times)
        decay = np.multiply.outer(np.where(ended, 0.0, times), self.eigenvalues)
        positive = self.eigenvalues > 0
        # (1 − e^{−λt})/λ, its digits kept for slow directions; t where λ = 0
        gained = -np.expm1(-decay) / np.where(positive, self.eigenvalues, 1.0)
        left = np.exp(-decay)
        gained = np.where(positive, gained, times[:, None])
        # 1/λ at the end of training, and zero instead of it where λ is zero: the pseudo-inverse
        learned = self.eigenvalues > self.resolution
        left[ended] = np.where(learned, 0.0, 1.0)
        gained[ended] = np.divide(
            1.0, self.eigenvalues, out=np.zeros_like(self.eigenvalues), where=learned
        )
        return Progress(left, gained)

    def descent(self, lr: float, steps, momentum: float = 0.0) -> Progress:
        """Follow full-batch descent for these numbers of steps, ``v ← βv − η∇, w ← w + v`` (heavy ball) when β > 0.

        A step size above :meth:`largest_step` gives factors that grow, and values that are not finite once they
        overflow.

        Raises:
            UserError: for a step size that is not positive and finite, a momentum outside [0, 1), or numbers of steps
                that are not whole and at least zero.
        """
        momentum = as_momentum(momentum)
        lr = as_step_size(lr)
        counts = as_counts(steps)
        # along each eigenvector, started at rest: r_{t+1} = (1 + β − ηλ) r_t − β r_{t−1} for the residual, and with
        # η added for g = (1 − r)/λ, which keeps its digits where λ is small and needs no limit where it is zero
        one = np.zeros((len(self.eigenvalues), 3, 3))
        one[:, 0, 0] = 1 + momentum - lr * self.eigenvalues
        one[:, 0, 1] = -momentum
        one[:, 1, 0] = 1.0
        one[:, 0, 2] = lr
        one[:, 2, 2] = 1.0
        with np.errstate(over="ignore", invalid="ignore"):
            powers = np.stack([np.linalg.matrix_power(one, int(count)) for count in counts])
        # from (r_0, r_{−1}) = (1, 1), at rest; and from g = 0 with the constant one alone
        return Progress(powers[..., 0, :2].sum(-1), powers[..., 0, 2])

    def train(self, progress: Progress, targets: Vector, start: Vector | float = 0.0) -> Vector:
        """Return outputs on the training points, ``y + V left Vᵀ (f_0 − y)``, shape ``(T, n)`` or ``(T, n, k)``.

        Raises:
            UserError: targets or start that are not finite numbers for each training point and output.
        """
        _check_progress(progress)
        targets, start = self._both(targets, start)
        # Vᵀ (f_0 − y), one column for each output with the kernel to itself
        missing = self.vectors.T @ self._columns(start - targets)
        moved = np.einsum("ij,tj,jc->tic", self.vectors, progress.left, missing, optimize=True)
        return targets + moved.reshape(len(progress.left), *targets.shape)

    def test(
        self,
        progress: Progress,
        cross: Vector,
        targets: Vector,
        start: Vector | float = 0.0,
        at: Vector | float = 0.0,
    ) -> Vector:
        """Return outputs on other points, ``f_0(x) + (c/n) Θ(x, X) V gained Vᵀ (y − f_0)``: ``(T, m)``, ``(T, m, k)``.

        Args:
            progress: of the training.
            cross: Θ between those points and the training points, shape ``(m, n)``, or ``(m, k, n, k)`` of coupled
                outputs.
            targets: y, shape ``(n,)`` or ``(n, k)``.
            start: outputs f_0 on the training points at initialization, of the same shape.
            at: outputs on the other points at initialization, shape ``(m,)`` or ``(m, k)``.

        Raises:
            UserError: targets or start that are not finite numbers for each training point and output, a cross kernel
                or outputs on other points of another shape.
        """
        _check_progress(progress)
        targets, start = self._both(targets, start)
        cross = self._across(cross)
        residual = self.vectors.T @ self._columns(targets - start)
        reached = np.einsum(
            "ij,tj,jc->tic", cross @ self.vectors, progress.gained, residual, optimize=True
        )
        shape = (len(cross) // (self.coupled or 1), *targets.shape[1:])
        at = as_floats("outputs on other points at the start", at).astype(float)
        if at.shape not in ((), shape) or not np.isfinite(at).all():
            raise UserError(
                f"outputs on other points at the start: expected shape {shape}, got {shown(at)}"
            )
        return at + self._speed * reached.reshape(len(progress.gained), *shape)

    def outputs(self, progress: Progress, kernel: Vector, start: Vector, targets: Vector) -> Vector:
        """Return outputs of many networks on training and other points, each from its own start.

        Args:
            progress: of the training.
            kernel: Θ between all points, training points first, and the training points, shape ``(n + m, n)``.
            start: outputs on all points at initialization, shape ``(..., n + m)``, or ``(..., n + m, k)``.
            targets: y, shape ``(n,)``, or ``(n, k)``.

        Returns:
            Shape ``(..., T, n + m)``, or ``(..., T, n + m, k)``.

        Raises:
            UserError: arrays that do not fit together.
        """
        _check_progress(progress)
        self._need_single("outputs")
        kernel = self._across(kernel)
        targets = self._one_each("targets", targets)
        start = as_floats("outputs at the start", start).astype(float)
        n = len(self.eigenvalues)
        of_network = (len(kernel), *targets.shape[1:])
        if start.shape[max(start.ndim - len(of_network), 0) :] != of_network or len(kernel) < n:
            expected = ", ".join(map(str, of_network))
            raise UserError(
                f"outputs at the start: expected shape (..., {expected}), a number for each of the "
                f"{len(kernel)} rows of the kernel, at least {n} of them, got {shown(start)}"
            )
        networks = start.shape[: start.ndim - len(of_network)]
        outputs = np.empty((*networks, len(progress.left), *of_network))
        for index in np.ndindex(networks):
            f = start[index]
            outputs[index][:, :n] = self.train(progress, targets, f[:n])
            outputs[index][:, n:] = self.test(progress, kernel[n:], targets, f[:n], f[n:])
        return outputs

    def ensemble(
        self, progress: Progress, targets: Vector, nngp: Vector, cross: Vector | None = None
    ) -> Ensemble:
        """Return mean and covariance over initializations with covariance ``nngp``, on training or on other points.

        Args:
            progress: of the training.
            targets: y, shape ``(n,)``; or ``(n, k)`` of k outputs, which start independently of each other.
            nngp: covariance at initialization over the training points and then the other points, shape
                ``(n + m, n + m)``; ``(n, n)`` for the training points themselves.
            cross: Θ between other points and training points, shape ``(m, n)``; None for the training points.

        Raises:
            UserError: targets that are not one number for each training point, kernels of other shapes.

        Source: Lee et al. 2019, equations 14 to 16, there for the flow.
        """
        _check_progress(progress)
        n = len(self.eigenvalues)
        self._need_single("ensemble")
        targets, _ = self._both(targets, 0.0)
        nngp = as_floats("the covariance at initialization", nngp).astype(float)
        cross = None if cross is None else self._across(cross)
        size = n if cross is None else n + len(cross)
        if nngp.shape != (size, size) or not np.isfinite(nngp).all():
            raise UserError(
                f"the covariance at initialization must cover the {n} training points"
                f"{'' if cross is None else f' and then the {len(cross)} other points'}, got {shown(nngp)}"
            )
        means = []
        covariances = []
        for left, gained in zip(*progress, strict=True):
            # f_t = y + S (f_0 − y): the symmetric form keeps small variances positive
            if cross is None:
                s = (self.vectors * left) @ self.vectors.T
                means.append(targets - s @ targets)
                covariances.append(s @ nngp @ s.T)
            else:  # f_t(x) = f_0(x) + A (y − f_0)
                a = self._speed * (cross @ self.vectors * gained) @ self.vectors.T
                part = a @ nngp[:n, n:]
                means.append(a @ targets)
                # Cov(f_0(x) − A f_0(X)) = K** − A K_X* − (A K_X*)ᵀ + A K Aᵀ; y is fixed
                covariances.append(nngp[n:, n:] - part - part.T + a @ nngp[:n, :n] @ a.T)
        return Ensemble(np.stack(means), np.stack(covariances))

    @property
    def _speed(self) -> float:
        """Return c/n."""
        return self.factor / self.points

    def _one_each(self, name: str, values: Vector | float) -> Vector:
        values = as_floats(name, values).astype(float)
        n = self.points
        if self.coupled:
            fits = values.shape in ((), (n, self.coupled))
            wanted = f"shape ({n}, {self.coupled}), a row for each training point"
        else:
            fits = values.ndim == 0 or (values.ndim < 3 and len(values) == n and values.size > 0)
            wanted = f"{n} finite numbers, one for each training point, or a row for each of them"
        if not fits or not np.isfinite(values).all():
            raise UserError(f"{name}: expected {wanted}, got {shown(values)}")
        k = self.columns
        if k and values.ndim and values.size != n * k:
            raise UserError(
                f"{name}: expected {k} for each training point, as outputs={k} of kernel_dynamics says, got "
                f"{shown(values)}"
            )
        return values

    def _both(self, targets: Vector | float, start: Vector | float) -> tuple[Vector, Vector]:
        """Return targets and outputs at the start, of one shape."""
        targets = self._one_each("targets", targets)
        start = self._one_each("outputs at the start", start)
        if targets.ndim and start.ndim and targets.shape != start.shape:
            raise UserError(
                f"outputs at the start: expected shape {targets.shape}, as targets have, got {shown(start)}"
            )
        shape = max(targets.shape, start.shape, key=len)
        if not shape:
            k = self.coupled or self.columns or 1
            shape = (self.points, k) if self.coupled or k > 1 else (self.points,)
        return np.broadcast_to(targets, shape), np.broadcast_to(start, shape)

    def _columns(self, values: Vector) -> Vector:
        """Return one column for each output that has the kernel for itself; coupled ones are one."""
        return values.reshape(len(self.eigenvalues), -1)

    def _need_single(self, name: str) -> None:
        if self.coupled:
            raise UserError(
                f"{name} takes kernels of one output, and this one couples {self.coupled}; use train and test for each "
                "network"
            )

    def _across(self, cross: Vector) -> Vector:
        return as_cross(cross, self.points, self.coupled)


def kernel_dynamics(
    ntk: Vector,
    *,
    loss: SquaredRisk = "sum over outputs",
    outputs: int | None = None,
    regularization: float = 0.0,
    relative: bool = False,
) -> KernelDynamics:
    """Decompose a kernel over the training points, which gives its dynamics in closed form.

    The time of the flow, and the step size of descent, belong to a risk. Of n examples with k outputs it is a multiple
    of the sum of all squares, and the larger the multiple the faster the training:

    * ``"sum over outputs"``: the risk is (1/2n) Σ_i ‖f(x_i) − y_i‖², and c = 1, as of ``mean_risk(squared, …)`` of
      ``steepest.nn.losses``;
    * ``"mean over outputs"``: the same divided by k, so that c = 1/k, as of ``0.5 * mean((f - y)**2)`` and in
      neural-tangents;
    * ``"mean squared error"``: twice that, so that c = 2/k, as of ``torch.nn.MSELoss``, or ``optax.squared_error`` and
      a mean.

    A mean over outputs needs k, which a kernel ``(n, n)`` does not tell: say ``outputs=k``.

    With a regularization ε, the dynamics are ``f' = −(c/n) (Θ + ε) (f − y)``, as under ``diag_reg`` of
    neural-tangents. Outputs on other points then tend to kernel ridge regression with λ = ε. Outputs on the training
    points tend to the targets; for ridge there, take ``test`` with Θ itself as cross kernel.

    Args:
        ntk: Θ, shape ``(n, n)``, of one output or of several that each have it; or ``(n, k, n, k)`` of k outputs that
            it couples, as ``empirical_ntk(..., outputs="all")`` gives it.
        loss: which risk; see the table.
        outputs: k, where ``ntk`` is a matrix and the loss is a mean over outputs.
        regularization: ε ≥ 0, added to the diagonal.
        relative: whether ε is relative to the mean of the diagonal, as is ``diag_reg`` unless
            ``diag_reg_absolute_scale`` is set.

    Raises:
        UserError: not a finite symmetric matrix, or one that is not positive semidefinite; an unknown loss, a loss that
            needs ``outputs``, or a regularization that is negative.

    >>> dynamics = kernel_dynamics(np.array([[2.0, 1.0], [1.0, 2.0]]))
    >>> dynamics.eigenvalues.round(6).tolist(), round(dynamics.largest_step(), 6)
    ([0.5, 1.5], 1.333333)
    >>> step = dynamics.descent(1.9 * 2 / 3, [1, 2])
    >>> dynamics.train(step, np.array([1.0, 1.0])).round(6).tolist()  # beyond 1/λ_max it overshoots
    [[1.9, 1.9], [0.19, 0.19]]
    """
    ntk, coupled, precision = as_kernel(ntk)
    k = _outputs(coupled, outputs)
    factor = _factor(loss, k)
    epsilon = as_number("the regularization", regularization, 0)
    if not isinstance(relative, bool | np.bool_):
        raise UserError(f"relative is True or False, got {given.shown(relative)}")
    if relative:
        epsilon = epsilon * float(np.trace(ntk)) / len(ntk)
    # Θ/n with n examples: a kernel of k coupled outputs has n k rows
    speed = factor * (coupled or 1) / len(ntk)
    eigenvalues, vectors = np.linalg.eigh((ntk + ntk.T) / 2)
    eigenvalues = speed * (eigenvalues + epsilon)
    floor = -1e-5 * abs(eigenvalues[-1])
    if not eigenvalues[0] >= floor:
        raise UserError(
            f"the kernel has the eigenvalue {eigenvalues[0]:.2g} beside {eigenvalues[-1]:.2g}: it is not positive "
            "semidefinite; check that all entries come from one kernel, compute it in float64, or set a regularization"
        )
    resolution = max(len(ntk) * precision * float(eigenvalues[-1]), 0.0)
    return KernelDynamics(np.maximum(eigenvalues, 0.0), vectors, resolution, coupled, factor, k)


def _outputs(coupled: int | None, outputs: Any) -> int | None:
    """Return k, where the kernel or the caller says it."""
    if outputs is None:
        return coupled
    k = as_count("outputs", outputs, 1)
    if coupled and k != coupled:
        raise UserError(
            f"the kernel couples {coupled} outputs, got outputs={k}; leave outputs away, as the kernel tells it"
        )
    return k


def _factor(loss: Any, k: int | None) -> float:
    """Return c of the risk (c/n) Σ ½‖f − y‖²."""
    conventions = get_args(SquaredRisk)
    if not isinstance(loss, str) or loss not in conventions:
        raise UserError(
            f"loss: no risk is called {given.shown(loss)}; {nearest(str(loss), conventions)}"
        )
    if loss == "sum over outputs":
        return 1.0
    if k is None:
        raise UserError(
            f"the loss {loss!r} needs the number of outputs, which a kernel (n, n) does not tell; say outputs=1, or as "
            "many as targets have columns"
        )
    return (2.0 if loss == "mean squared error" else 1.0) / k


def _check_progress(progress: Progress) -> None:
    if not isinstance(progress, Progress):
        raise UserError(
            f"expected the progress of a training, got {type(progress).__name__}; take flow(times) or "
            "descent(lr, steps)"
        )
