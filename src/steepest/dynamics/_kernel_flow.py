"""Training with a fixed kernel under any loss: gradient flow of the outputs as an ordinary differential equation."""

from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float, Int

from steepest.core.errors import UserError
from steepest.core.signatures import checked

from ._integrate import Method, integrate

Slope = Callable[[Float[Array, " n"], Float[Array, " n"]], Float[Array, " n"]]
"""The derivative ∂ℓ/∂f of a loss by the output, of outputs and targets, entry by entry."""

_SOLVERS = ("explicit", "stiff")


class KernelFlow(NamedTuple):
    """Outputs along the flow, at each of T times; NaN where the integrator gave up before.

    Attributes:
        train: on the training points, shape ``(T, n)``.
        test: on the other points, shape ``(T, m)``; ``(T, 0)`` without them.
        steps: integrator steps, rejected ones included.
        ok: whether the last time was reached with finite numbers.
    """

    train: Float[Array, "T n"]
    test: Float[Array, "T m"]
    steps: Int[Array, ""]
    ok: Bool[Array, ""]


@checked
def kernel_flow(
    ntk: Float[np.ndarray, "n n"],
    loss_slope: Slope,
    targets: Float[np.ndarray, " n"],
    times: Float[np.ndarray, " T"],
    *,
    start: Float[np.ndarray, " n"] | float = 0.0,
    cross: Float[np.ndarray, "m n"] | None = None,
    at: Float[np.ndarray, " m"] | float = 0.0,
    rtol: float = 1e-9,
    atol: float = 1e-11,
    solver: Method = "explicit",
    max_steps: int = 100_000,
) -> KernelFlow:
    """Integrate gradient flow of ``(1/n) Σ ℓ(f(x_i), y_i)`` with a fixed kernel Θ, on training and on other points.

    ``f'(x) = −(1/n) Σ_i Θ(x, x_i) ∂ℓ/∂f(f(x_i), y_i)``. For the squared loss :func:`kernel_dynamics` has the closed
    form. Compiled once for each ``loss_slope`` (by identity: make it once and reuse it).

    Args:
        ntk: Θ over the training points.
        loss_slope: ∂ℓ/∂f as a function of outputs and targets, such as ``lambda f, y: f - y`` for ½(f − y)², or
            ``lambda f, y: -y * jax.nn.sigmoid(-y * f)`` for the logistic loss with labels ±1.
        targets: y.
        times: increasing, the first at least 0; the flow starts at 0.
        start: outputs on the training points at time 0.
        cross: Θ between other points and the training points.
        at: outputs on the other points at time 0.
        rtol: relative tolerance of a step.
        atol: absolute tolerance of a step.
        solver: ``"explicit"`` (Tsitouras 5(4)) or ``"stiff"`` (RODAS 4(3), for large λ_max t).
        max_steps: the integrator gives up after so many; the result then says ``ok = False``.

    Raises:
        UserError: shapes that do not fit, numbers that are not finite, times that do not increase from 0 on, an
            unknown solver.

    Source: ORF 543, lecture 10/10, ``z' = −K ∇_z L̃(z)``; Jacot, Gabriel and Hongler 2018.

    >>> times = jnp.array([1.0, 2.0])
    >>> path = kernel_flow(jnp.eye(2), lambda f, y: f - y, jnp.array([1.0, -1.0]), times)
    >>> bool(jnp.allclose(path.train[:, 0], 1 - jnp.exp(-times / 2)))
    True
    """
    kernel, y, ts, across = _arrays(ntk, targets, times, cross)
    n = kernel.shape[0]
    m = across.shape[0]
    f = _outputs("start", start, n)
    g = _outputs("at", at, m)
    if solver not in _SOLVERS:
        raise UserError(f"the solver must be one of {', '.join(_SOLVERS)}, got {solver!r}")
    # (n + m, n): only residuals on training points drive the flow
    whole = jnp.concatenate([kernel, across])
    return _integrate(
        loss_slope, solver, max_steps, whole, y, ts, jnp.concatenate([f, g]), rtol, atol
    )


@partial(jax.jit, static_argnums=(0, 1, 2))
def _integrate(
    loss_slope: Slope,
    solver: Method,
    max_steps: int,
    kernel: Float[Array, "points n"],
    targets: Float[Array, " n"],
    times: Float[Array, " T"],
    start: Float[Array, " points"],
    rtol: float,
    atol: float,
) -> KernelFlow:
    n = targets.shape[0]
    landing = integrate(
        # f' = −(1/n) Θ ∂ℓ/∂f on all n + m points; the loss sees the first n
        lambda t, f: -kernel @ loss_slope(f[:n], targets) / n,
        start,
        times,
        lambda t, f: f,
        method=solver,
        rtol=rtol,
        atol=atol,
        max_steps=max_steps,
    )
    path = jnp.where(landing.reached[:, None], landing.recorded, jnp.nan)
    return KernelFlow(path[:, :n], path[:, n:], landing.steps, jnp.isfinite(path[-1]).all())


def _arrays(ntk: Any, targets: Any, times: Any, cross: Any) -> tuple[Array, Array, Array, Array]:
    kernel, targets, times = (jnp.asarray(array, float) for array in (ntk, targets, times))
    n = kernel.shape[0] if kernel.ndim else 0
    cross = jnp.zeros((0, n)) if cross is None else jnp.asarray(cross, float)
    if kernel.shape != (n, n) or not n or cross.ndim != 2 or cross.shape[1] != n:
        raise UserError(
            "the flow needs a square kernel over the training points, and a cross kernel with as many columns, "
            f"got shapes {kernel.shape} and {cross.shape}"
        )
    if targets.shape != (n,):
        raise UserError(
            f"the flow needs one target for each of the {n} training points, got shape {targets.shape}"
        )
    if times.ndim != 1 or not times.size or not times[0] >= 0 or not (jnp.diff(times) > 0).all():
        raise UserError(
            "the flow needs increasing times, the first at least 0; it starts at time 0"
        )
    if not all(bool(jnp.isfinite(array).all()) for array in (kernel, cross, targets, times)):
        raise UserError("the flow needs finite kernels, targets and times; look for NaN in them")
    return kernel, targets, times, cross


def _outputs(name: str, values: Any, n: int) -> Array:
    values = jnp.asarray(values, float)
    if values.shape not in ((), (n,)) or not bool(jnp.isfinite(values).all()):
        raise UserError(
            f"{name} must be one finite number, or one for each of {n} points, got shape {values.shape}"
        )
    return jnp.broadcast_to(values, (n,))
