"""Gradient flow by adaptive integration, on four clocks.

Margins move like 1/log t, so that plain time is too slow to see a limit. Reparameterizing time changes nothing of the
path in parameter space, only how fast the computer walks along it.
"""

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any, Literal, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import optax
from jax.core import Tracer
from jax.flatten_util import ravel_pytree
from jaxtyping import Array, Bool, Float, Int

from steepest.core.errors import UserError
from steepest.core.fields import Count, NonNegative
from steepest.core.given import number
from steepest.core.signatures import checked
from steepest.nn.types import Params, Risk, Values

from ._integrate import Landing, Method, integrate

Clock = Literal["plain", "log", "risk", "log-risk"]
FlowSolver = Method
# Clocks whose reading does not give the time by itself.
_TIMED = ("risk", "log-risk")


class FlowPath(NamedTuple):
    """A gradient flow, recorded at given readings of its clock; entries that were never reached are NaN.

    Attributes:
        clock: readings ``s`` of the clock, shape ``(times,)``.
        log_time: ``log(1 + t)`` at each, ``t`` the plain time of ``dθ/dt = -∇R``; finite even where t overflows.
        risk: ``R(θ)`` at each; 0 where it underflows.
        log_risk: ``log R(θ)`` at each.
        observed: what was asked for, each with a leading axis ``times``.
        params: the last parameters that were reached.
        steps: integrator steps taken, rejected ones included.
        ok: whether the last reading, or the floor, was reached with finite numbers.
        settled: whether it stopped because the risk had fallen to the floor.
        exhausted: whether it stopped because ``max_steps`` was used up.
    """

    clock: Float[Array, " times"]
    log_time: Float[Array, " times"]
    risk: Float[Array, " times"]
    log_risk: Float[Array, " times"]
    observed: dict[str, Any]
    params: Params
    steps: Int[Array, ""]
    ok: Bool[Array, ""]
    settled: Bool[Array, ""]
    exhausted: Bool[Array, ""]

    @property
    def time(self) -> Float[Array, " times"]:
        """Return the plain time ``t`` at each reading; infinite where it overflows."""
        return jnp.expm1(self.log_time)


@checked
def flow(
    risk: Risk,
    params: Params,
    times: Float[Values, " times"],
    clock: Clock = "plain",
    log_risk: Risk | None = None,
    observe: Mapping[str, Callable[[Params], Any]] | None = None,
    rtol: NonNegative | None = None,
    atol: NonNegative | None = None,
    solver: FlowSolver = "explicit",
    max_steps: Count = 100_000,
    floor: NonNegative | None = None,
) -> FlowPath:
    """Follow the gradient flow ``dθ/dt = -∇R(θ)`` from ``params`` and record it at the clock readings ``times``.

    ============  =====================  ===========================  ==============================================
    clock         reading s              equation                     for
    ============  =====================  ===========================  ==============================================
    ``plain``     ``t``                  ``dθ/ds = -∇R``              short horizons
    ``log``       ``log(1 + t)``         ``dθ/ds = -(1 + t) ∇R``      power laws; a minimum at zero risk
    ``risk``      ``∫ dt R(θ(t))``       ``dθ/ds = -∇ log R``         losses with an exponential tail
    ``log-risk``  ``log R(0) - log R``   ``dθ/ds = -∇ log R / ‖·‖²``  exponential tails, networks of any degree
    ============  =====================  ===========================  ==============================================

    On the risk and log-risk clocks log(1 + t) is carried along. Losses that reach zero like a square do so at a finite
    reading of the risk clock: use the log clock for them. So does a network of degree L > 2 with an exponential tail,
    as ``‖θ‖' ~ ‖θ‖^{L-1}`` there; on the log-risk clock its log-risk falls evenly. That one needs a start that is not
    critical, and integrator steps in proportion to ``-log R``. The integrator lands on every reading, so that nothing
    is interpolated. Compiled once for each ``risk`` and ``observe`` (by identity: make them once and reuse them); works
    under ``jit`` and ``vmap``.

    Args:
        risk: the risk as a function of the parameters.
        params: the start, any pytree of floating arrays.
        times: increasing clock readings, shape ``(times,)``, the first ≥ 0; the flow starts at 0.
        clock: ``"plain"``, ``"log"``, ``"risk"`` or ``"log-risk"``.
        log_risk: ``log R`` in a form that does not underflow, such as ``log_margin_risk``; default ``log(risk)``.
        observe: named functions of the parameters to record.
        rtol: relative tolerance of a step; default ``√ε`` of the floating type (1.5e-8 in float64).
        atol: absolute tolerance; default ``ε^{3/4}`` (1.8e-12 in float64).
        solver: ``"explicit"`` (Tsitouras 5(4)), or ``"stiff"`` (RODAS 4(3): an L-stable Rosenbrock method that
            factors the Hessian in every step, for up to a few hundred parameters).
        max_steps: give up after so many integrator steps; the path then says ``ok = False``.
        floor: stop once the risk is at most this; readings that come after stay NaN, and ``params`` is the limit as
            far as it was followed. A flow to zero risk needs one: below about ``1e-28`` the gradient is rounding
            noise, which the log clock multiplies by ``1 + t``.

    Raises:
        UserError: if clock or solver is unknown, or times are not increasing from 0 on. Divergence raises nothing:
            it is recorded in ``ok``.

    Source: ORF 543, lectures 11/9 and 11/14 (gradient flow); the risk clock is the time change under which margins
    converge like 1/s (Lyu and Li 2020; Telgarsky, Deep learning theory, §10).

    >>> path = flow(lambda w: 0.5 * jnp.sum(w**2), jnp.array([1.0]), jnp.array([1.0, 2.0]))
    >>> bool(jnp.allclose(path.risk, 0.5 * jnp.exp(-2 * path.time), rtol=1e-4)), bool(path.ok)
    (True, True)
    """
    _check(times)
    times = jnp.asarray(times, dtype=float)
    params = jax.tree.map(
        lambda leaf: jnp.asarray(leaf, dtype=jnp.result_type(leaf, float)), params
    )
    epsilon = float(jnp.finfo(times.dtype).eps)
    watched = tuple((observe or {}).items())
    rtol = epsilon**0.5 if rtol is None else rtol
    atol = epsilon**0.75 if atol is None else atol
    fixed = (risk, log_risk, watched, clock, solver, max_steps, floor is not None)
    return _integrate(*fixed, params, times, rtol, atol, 0.0 if floor is None else floor)


@partial(jax.jit, static_argnums=(0, 1, 2, 3, 4, 5, 6))
def _integrate(
    risk: Risk,
    log_risk: Risk | None,
    watched: tuple[tuple[str, Callable[[Params], Any]], ...],
    clock: Clock,
    solver: FlowSolver,
    max_steps: int,
    stops: bool,
    params: Params,
    times: Float[Array, " times"],
    rtol: float,
    atol: float,
    floor: float,
) -> FlowPath:
    risk = _one_number("risk", risk)
    log_risk = None if log_risk is None else _one_number("log_risk", log_risk)
    log_of = log_risk if log_risk is not None else lambda p: jnp.log(risk(p))
    timed = clock in _TIMED
    start, as_state = ravel_pytree((params, jnp.zeros_like(times[-1]) if timed else None))
    right_hand_side = _field(risk, log_risk, log_of, clock)

    def record(s: Array, flat: Array) -> dict[str, Any]:
        now_params, elapsed = as_state(flat)
        now = log_of(now_params)
        # Without a logarithmic form the risk itself is the better number (it may be exactly zero).
        value = risk(now_params) if log_risk is None else jnp.exp(now)
        return {
            "log_time": _log_time(clock, s, elapsed),
            "risk": value,
            "log_risk": now,
            "observed": {name: look(now_params) for name, look in watched},
        }

    landing = integrate(
        lambda s, flat: ravel_pytree(right_hand_side(s, as_state(flat)))[0],
        start,
        times,
        record,
        method=solver,
        rtol=rtol,
        atol=atol,
        max_steps=max_steps,
        stop=(lambda flat: log_of(as_state(flat)[0]) <= jnp.log(floor)) if stops else None,
    )
    return _path(times, landing, as_state(landing.end)[0])


def _one_number(name: str, risk: Risk) -> Risk:
    return lambda params: number(name, risk(params))


def _path(times: Float[Array, " times"], landing: Landing, end: Params) -> FlowPath:
    recorded = _blank_unreached(landing.recorded, landing.reached)
    finite = jnp.isfinite(landing.end).all()
    complete = landing.reached[-1] & ~jnp.isnan(recorded["log_risk"][-1])
    return FlowPath(
        clock=times,
        **recorded,
        params=end,
        steps=landing.steps,
        ok=(landing.stopped | complete) & finite,
        settled=landing.stopped,
        exhausted=landing.exhausted,
    )


def _field(risk: Risk, log_risk: Risk | None, log_of: Risk, clock: Clock) -> Callable:
    """Return the right-hand side of the flow in the clock's unit; the state is (params, log(1 + t) or None)."""

    def plain(s, state):
        return jax.tree.map(jnp.negative, jax.grad(risk)(state[0])), None

    def log(s, state):
        if log_risk is None:
            return jax.tree.map(lambda g: -jnp.exp(s) * g, jax.grad(risk)(state[0])), None
        # (1 + t) ∇R = exp(s + log R) ∇ log R stays of order one where R underflows and 1 + t overflows.
        now, slope = jax.value_and_grad(log_risk)(state[0])
        return jax.tree.map(lambda g: -jnp.exp(s + now) * g, slope), None

    def by_risk(s, state):
        now, slope = jax.value_and_grad(log_of)(state[0])
        # dt/ds = 1/R, hence d log(1 + t)/ds = 1/(R (1 + t)), here from the two logarithms
        return jax.tree.map(jnp.negative, slope), jnp.exp(-now - state[1])

    def by_fall(s, state):
        now, slope = jax.value_and_grad(log_of)(state[0])
        speed = 1 / optax.tree.norm(slope, squared=True)  # then d log R/ds = -speed ‖∇ log R‖² = -1
        # dt/ds = 1 / (R ‖∇ log R‖²).
        return jax.tree.map(lambda g: -speed * g, slope), speed * jnp.exp(-now - state[1])

    return {"plain": plain, "log": log, "risk": by_risk, "log-risk": by_fall}[clock]


def _log_time(clock: Clock, s: Array, elapsed: Array | None) -> Array:
    if clock == "plain":
        return jnp.log1p(s)
    return s if elapsed is None else elapsed


def _blank_unreached(path: Any, reached: Bool[Array, " times"]) -> Any:
    def blank(leaf):
        leaf = jnp.asarray(leaf)
        keep = reached.reshape((-1,) + (1,) * (leaf.ndim - 1))
        floating = leaf if jnp.issubdtype(leaf.dtype, jnp.inexact) else leaf.astype(float)
        return jnp.where(keep, floating, jnp.nan)

    return jax.tree.map(blank, path)


def _check(times: Any) -> None:
    if isinstance(times, Tracer):
        return
    readings = np.asarray(times, dtype=float)
    if (
        not np.isfinite(readings).all()
        or readings[0] < 0
        or (np.diff(readings) <= 0).any()
        or readings[-1] <= 0
    ):
        raise UserError(
            "flow: expected finite, increasing times that start at 0 or later and end after 0; sort them"
        )
