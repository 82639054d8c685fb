"""Training with a fixed kernel, in closed form: gradient flow, descent and momentum on the squared loss."""

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from steepest.core.errors import UserError
from steepest.kernels._arguments import as_floats

Vector = NDArray[np.float64]


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
    """Shape ``(T, m)``."""
    covariance: Vector
    """Shape ``(T, m, m)``."""


@dataclass(frozen=True)
class KernelDynamics:
    """The dynamics ``f' = −(1/n) Θ (f − y)`` of the risk ``(1/n) Σ ½‖f(x_i) − y_i‖²`` with a fixed kernel Θ.

    The risk is a mean over the n examples and a sum over outputs. Of a matrix ``(n, n)`` several outputs are columns
    ``(n, k)``, each with this kernel by itself, as in infinitely wide networks. A kernel ``(n, k, n, k)`` couples them,
    as that of a finite network; as a matrix ``(n k, n k)`` it would be read as n k examples, and times k times as long.
    So are times of a risk that is a mean over outputs too, as in ``torch.nn.MSELoss`` (and half as long without the ½).

    Along the eigenvector v_k of Θ/n with eigenvalue λ_k, residuals are multiplied by exp(−λ_k t) under the flow, and
    by (1 − ηλ_k) in each step of descent. Make it with :func:`kernel_dynamics`.

    Attributes:
        eigenvalues: λ of Θ/n, ascending, shape ``(n,)``; ``(n k,)`` of a kernel that couples outputs.
        vectors: eigenvectors in columns, a square matrix.
        resolution: eigenvalues up to this one cannot be told from zero, by the rounding of the kernel's entries.
        coupled: k where the kernel couples outputs; None where it is a matrix.

    Source: ORF 543, lectures 10/10 and 10/31; Jacot, Gabriel and Hongler 2018; Lee et al. 2019.
    """

    eigenvalues: Vector
    vectors: Vector
    resolution: float = 0.0
    coupled: int | None = None

    @property
    def points(self) -> int:
        """Count the training points, n."""
        return len(self.eigenvalues) // (self.coupled or 1)

    def largest_step(self, momentum: float = 0.0) -> float:
        """Return 2(1 + β)/λ_max, above which descent with momentum β diverges; infinite for a kernel of zero.

        Raises:
            UserError: for a momentum outside [0, 1).
        """
        _check_momentum(momentum)
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
        times = np.atleast_1d(np.asarray(times, float))
        if not (times >= 0).all():
            raise UserError(
                f"the flow needs times of at least zero, got {times.min()}; it starts at time 0"
            )
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
        _check_momentum(momentum)
        if not 0 < lr < np.inf:
            raise UserError(f"descent needs a positive finite step size, got lr = {lr}")
        counts = np.atleast_1d(np.asarray(steps))
        if not (
            np.isfinite(counts).all() and (counts >= 0).all() and (counts == np.round(counts)).all()
        ):
            raise UserError(f"descent needs whole numbers of steps, at least zero, got {steps}")
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
        """Return outputs on other points, ``f_0(x) + (1/n) Θ(x, X) V gained Vᵀ (y − f_0)``: ``(T, m)``, ``(T, m, k)``.

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
        at = np.asarray(at, float)
        if at.shape not in ((), shape):
            raise UserError(
                f"outputs on other points at the start: expected shape {shape}, got {_shown(at)}"
            )
        return at + reached.reshape(len(progress.gained), *shape) / self.points

    def outputs(self, progress: Progress, kernel: Vector, start: Vector, targets: Vector) -> Vector:
        """Return outputs of many networks on training and other points, each from its own start, ``(..., T, n + m)``.

        Args:
            progress: of the training.
            kernel: Θ between all points, training points first, and the training points, shape ``(n + m, n)``.
            start: outputs on all points at initialization, shape ``(..., n + m)``.
            targets: y, shape ``(n,)``.

        Raises:
            UserError: arrays that do not fit together.
        """
        self._need_single("outputs")
        kernel = self._across(kernel)
        start = np.asarray(start, float)
        n = len(self.eigenvalues)
        if start.shape[-1:] != (len(kernel),) or len(kernel) < n:
            raise UserError(
                f"outputs at the start need one number for each of the {len(kernel)} rows of the kernel, at least {n} "
                f"of them, got {_shown(start)}"
            )
        outputs = np.empty((*start.shape[:-1], len(progress.left), len(kernel)))
        for index in np.ndindex(start.shape[:-1]):
            f = start[index]
            outputs[(*index, ..., slice(n))] = self.train(progress, targets, f[:n])
            outputs[(*index, ..., slice(n, None))] = self.test(
                progress, kernel[n:], targets, f[:n], f[n:]
            )
        return outputs

    def ensemble(
        self, progress: Progress, targets: Vector, nngp: Vector, cross: Vector | None = None
    ) -> Ensemble:
        """Return mean and covariance over initializations with covariance ``nngp``, on training or on other points.

        Args:
            progress: of the training.
            targets: y, shape ``(n,)``.
            nngp: covariance at initialization over the training points and then the other points, shape
                ``(n + m, n + m)``; ``(n, n)`` for the training points themselves.
            cross: Θ between other points and training points, shape ``(m, n)``; None for the training points.

        Raises:
            UserError: targets that are not one number for each training point, kernels of other shapes.

        Source: Lee et al. 2019, equations 14 to 16, there for the flow.
        """
        n = len(self.eigenvalues)
        self._need_single("ensemble")
        targets = np.broadcast_to(self._one_each("targets", targets), (n,))
        if targets.ndim != 1:
            raise UserError(
                f"ensemble takes one column of targets at a time, got shape {targets.shape}"
            )
        nngp = np.asarray(nngp, float)
        cross = None if cross is None else self._across(cross)
        size = n if cross is None else n + len(cross)
        if nngp.shape != (size, size):
            raise UserError(
                f"the covariance at initialization must cover the {n} training points"
                f"{'' if cross is None else f' and then the {len(cross)} other points'}, got shape {nngp.shape}"
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
                a = (cross @ self.vectors * gained) @ self.vectors.T / n
                part = a @ nngp[:n, n:]
                means.append(a @ targets)
                # Cov(f_0(x) − A f_0(X)) = K** − A K_X* − (A K_X*)ᵀ + A K Aᵀ; y is fixed
                covariances.append(nngp[n:, n:] - part - part.T + a @ nngp[:n, :n] @ a.T)
        return Ensemble(np.stack(means), np.stack(covariances))

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
            raise UserError(f"{name}: expected {wanted}, got {_shown(values)}")
        return values

    def _both(self, targets: Vector | float, start: Vector | float) -> tuple[Vector, Vector]:
        """Return targets and outputs at the start, of one shape."""
        targets = self._one_each("targets", targets)
        start = self._one_each("outputs at the start", start)
        if targets.ndim and start.ndim and targets.shape != start.shape:
            raise UserError(
                f"outputs at the start: expected shape {targets.shape}, as targets have, got {_shown(start)}"
            )
        shape = max(targets.shape, start.shape, key=len)
        if not shape:
            shape = (self.points, self.coupled) if self.coupled else (self.points,)
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
        cross = as_floats("the cross kernel", cross).astype(float)
        n = len(self.eigenvalues)
        if self.coupled:
            if cross.shape[1:] != (self.coupled, self.points, self.coupled):
                raise UserError(
                    f"the cross kernel of coupled outputs has shape (m, {self.coupled}, {self.points}, "
                    f"{self.coupled}), got {_shown(cross)}"
                )
            cross = cross.reshape(-1, n)
        if cross.ndim != 2 or cross.shape[1] != n or not np.isfinite(cross).all():
            raise UserError(
                f"the cross kernel has a row for each other point and a column for each of the {n} training points, "
                f"got {_shown(cross)}; transpose it if it is the other way round"
            )
        return cross


def kernel_dynamics(ntk: Vector) -> KernelDynamics:
    """Decompose a kernel over the training points, which gives its dynamics in closed form.

    Args:
        ntk: Θ, shape ``(n, n)``, of one output or of several that each have it; or ``(n, k, n, k)`` of k outputs that
            it couples, as ``empirical_ntk(..., outputs="all")`` gives it.

    Raises:
        UserError: not a finite symmetric matrix, or one that is not positive semidefinite.

    >>> dynamics = kernel_dynamics(np.array([[2.0, 1.0], [1.0, 2.0]]))
    >>> dynamics.eigenvalues.round(6).tolist(), round(dynamics.largest_step(), 6)
    ([0.5, 1.5], 1.333333)
    >>> step = dynamics.descent(1.9 * 2 / 3, [1, 2])
    >>> dynamics.train(step, np.array([1.0, 1.0])).round(6).tolist()  # beyond 1/λ_max it overshoots
    [[1.9, 1.9], [0.19, 0.19]]
    """
    ntk = as_floats("a kernel", ntk)
    precision = np.finfo(ntk.dtype).eps
    ntk = ntk.astype(float)
    coupled = None
    if ntk.ndim == 4 and ntk.shape[:2] == ntk.shape[2:]:
        coupled = ntk.shape[1]
        ntk = ntk.reshape(ntk.shape[0] * coupled, -1)
    if ntk.ndim != 2 or ntk.shape[0] != ntk.shape[1] or not ntk.size or not np.isfinite(ntk).all():
        raise UserError(
            f"dynamics need a finite square kernel matrix over the training points, or (n, k, n, k) of k outputs, got "
            f"{_shown(ntk)}"
        )
    if not np.allclose(ntk, ntk.T, rtol=1e-5, atol=1e-6 * np.abs(ntk).max()):
        raise UserError(
            "dynamics need a symmetric kernel matrix over the training points; pass the cross kernel to test()"
        )
    # Θ/n with n examples: a kernel of k coupled outputs has n k rows
    eigenvalues, vectors = np.linalg.eigh((ntk + ntk.T) / (2 * len(ntk) / (coupled or 1)))
    floor = -1e-5 * eigenvalues[-1]
    if not eigenvalues[0] >= floor:
        raise UserError(
            f"the kernel has the eigenvalue {eigenvalues[0]:.2g} beside {eigenvalues[-1]:.2g}: it is not positive "
            "semidefinite; check that all entries come from one kernel, and compute it in float64"
        )
    resolution = max(len(ntk) * precision * float(eigenvalues[-1]), 0.0)
    return KernelDynamics(np.maximum(eigenvalues, 0.0), vectors, resolution, coupled)


def _check_progress(progress: Progress) -> None:
    if not isinstance(progress, Progress):
        raise UserError(
            f"expected the progress of a training, got {type(progress).__name__}; take flow(times) or "
            "descent(lr, steps)"
        )


def _check_momentum(momentum: float) -> None:
    if not 0 <= momentum < 1:
        raise UserError(
            f"momentum must be at least 0 and below 1, got {momentum}; 0 is plain descent"
        )


def _shown(values: Vector) -> str:
    return f"shape {values.shape}" + (
        "" if np.isfinite(values).all() else " with entries that are not finite"
    )
