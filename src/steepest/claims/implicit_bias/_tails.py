"""Flows on losses of margins with an exponential tail and with a power's: worlds in which margins do and do not decide.

What claims on the margins of networks share: the flow; and of two on networks of depth L what is read of it, and the
control that is the other tail.
"""

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import xarray

from steepest import kit
from steepest.dynamics import FlowPath, flow

READINGS = 13
"""Of the fall of log R, evenly spaced in its logarithm."""
FIRST = 0.1
"""Reading of log R's fall with which both losses begin."""
TAIL_FALL = 12.0
"""By how much log R falls with a power's tail: margins reach e^12, as many as with the exponential one."""
OF_BOTH = ("weights", "least", "pull", "off_margin")
"""Arrays that are there of both tails; those of the power's end in ``_tail``."""


class End(NamedTuple):
    """Where one network on a separable set ends."""

    weights: jax.Array  # β at all readings, (readings, d)
    pull: jax.Array  # Σ q_i y_i x_i at the end, q the loss's own multipliers, (d,)
    off_margin: jax.Array  # Σ q_i (u_i / min u − 1) at the end
    arrived: jax.Array


class Tails(NamedTuple):
    """Losses that are tried, those of the exponential tail at every depth first."""

    falls: np.ndarray  # of log R, at which weights are read, (2 depths, readings)
    power: np.ndarray  # whether the loss has a power's tail, (2 depths,)


def both_tails(horizons: Sequence[float]) -> Tails:
    """Return both losses at every depth; ``horizons`` are falls of the log of the exponential risk, by depth."""
    falls = [np.geomspace(FIRST, horizon, READINGS) for horizon in horizons]
    tail_falls = [np.geomspace(FIRST, TAIL_FALL, READINGS)] * len(falls)
    return Tails(np.stack([*falls, *tail_falls]), np.repeat([False, True], len(falls)))


def log_loss(margins: jax.Array, power: bool | jax.Array) -> jax.Array:
    """Return log Σ e^(−u), or log Σ 1/(1 + u) where ``power`` is true; margins u ``(examples,)``."""
    above = jnp.maximum(margins, -0.999)  # where it is not used, u may be less than −1
    # both losses by their logarithms, which do not underflow where margins are large
    return jax.nn.logsumexp(jnp.where(power, -jnp.log1p(above), -margins))


def multipliers(margins: jax.Array, power: bool | jax.Array) -> jax.Array:
    """Return the loss's own weights of the examples, its slopes over their sum, ``(examples,)``."""
    # −∂ log R/∂u_i are the slopes −ℓ'(u_i) over R: R cancels
    slopes = -jax.grad(log_loss)(margins, power)
    return slopes / slopes.sum()


def off_margin(margins: jax.Array, weights: jax.Array) -> jax.Array:
    """Return Σ q (u/min u − 1), the weight on examples off the margin: it is zero where complementarity holds."""
    return weights @ (margins / margins.min() - 1)


def margin_flow(
    margins: Callable[[Any], jax.Array],
    start: Any,
    falls: Any,
    power: bool | jax.Array,
    observe: dict[str, Callable[[Any], jax.Array]],
    *,
    rtol: float,
    atol: float,
    max_steps: int,
) -> FlowPath:
    """Follow gradient flow on a loss of margins while its logarithm falls.

    Args:
        margins: from parameters to u ``(examples,)``.
        start: parameters.
        falls: of the logarithm, at which the path is read.
        power: whether the loss has a power's tail.
        observe: what is read of the parameters, by name.
        rtol: relative tolerance of a step.
        atol: absolute tolerance of a step.
        max_steps: of the integrator.
    """
    log_risk = lambda params: log_loss(margins(params), power)
    return flow(
        lambda params: jnp.exp(log_risk(params)),
        start,
        falls,
        "log-risk",
        log_risk,
        observe,
        # explicit steps stay at the limit of stability, where the loss's multipliers are noise in some sets
        solver="stiff",
        rtol=rtol,
        atol=atol,
        max_steps=max_steps,
    )


def follow(
    weights: Callable[[Any], jax.Array],
    start: Any,
    x: jax.Array,
    y: jax.Array,
    falls: jax.Array,
    power: bool | jax.Array,
) -> End:
    """Follow the flow on a loss of margins while its logarithm falls.

    Args:
        weights: from parameters to β ``(d,)``.
        start: parameters.
        x: inputs of a separable set, ``(n, d)``.
        y: its labels.
        falls: of the logarithm, at which weights are read.
        power: whether the loss has a power's tail.
    """
    margins = lambda beta: y * (x @ beta)
    path = margin_flow(
        lambda params: margins(weights(params)),
        start,
        falls,
        power,
        {"weights": weights},
        rtol=1e-6,
        atol=1e-9,
        max_steps=50_000,
    )
    beta = path.observed["weights"]
    u = margins(beta[-1])
    q = multipliers(u, power)
    return End(beta, (q * y) @ x, off_margin(u, q), path.ok)


def read(
    ends: End, tails: Tails, x: kit.Values, y: kit.Values, along: str
) -> dict[str, tuple[str, np.ndarray]]:
    """Return the arrays of all ends, those of the power's tail apart.

    Args:
        ends: of both losses at every depth and set, as ``tails`` has them.
        tails: which losses.
        x: inputs of the sets, ``(draws, n, d)``.
        y: their labels.
        along: the axis of β.
    """
    depths = len(tails.power) // 2
    outputs = np.einsum("snd,Lsrd->Lsrn", x, ends.weights)
    values = {
        "weights": (f"depth draw reading {along}", ends.weights),
        "least": ("depth draw reading", (np.asarray(y)[:, None] * outputs).min(-1)),
        "pull": (f"depth draw {along}", ends.pull),
        "off_margin": ("depth draw", ends.off_margin),
    }
    arrived = np.asarray(ends.arrived)
    return {
        "fall": ("depth reading", tails.falls[:depths]),
        "arrived": ("depth draw", arrived[:depths] & arrived[depths:]),
        **{name: (dims, array[:depths]) for name, (dims, array) in values.items()},
        **{f"{name}_tail": (dims, array[depths:]) for name, (dims, array) in values.items()},
    }


def other_worlds(seen: xarray.Dataset) -> list[kit.Control]:
    """Yield the controls: the loss with a power's tail, and networks of another depth."""
    return [
        kit.control(
            "the loss 1/(1 + u)",
            "its multipliers stay on examples off the margin",
            **{name: seen[f"{name}_tail"] for name in OF_BOTH},
        ),
        kit.control(
            "networks of another depth",
            "their norm is another",
            **{name: seen[name].roll(depth=1) for name in OF_BOTH},
        ),
    ]
