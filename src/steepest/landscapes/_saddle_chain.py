"""A chain of saddles: a smooth function on which descent takes exponential time, and descent with noise does not."""

import numpy as np
from jax import numpy as jnp
from jaxtyping import Array, Float

from steepest.core.errors import UserError
from steepest.core.signatures import checked
from steepest.nn.types import Risk, Values

WELL = 4.0  # where a coordinate comes to rest, in units of the exit
HALF_LOG = float(np.euler_gamma + np.log(2)) / 2  # −E log|N| of a standard normal number


@checked
def saddle_chain(gain: float, loss: float) -> Risk:
    """Return a function of x, shape ``(d,)``, whose saddles form a chain of d rooms that descent passes one by one.

    With ``w(x) = g (x⁴/32 − x²)``, a double well with minima at ±4, and a smooth step s from |x| = 1 to |x| = 2,

        ``f(x) = w(x_1) + Σ_{i≥2} [s(x_{i−1}) w(x_i) + (1 − s(x_{i−1})) ℓ x_i²]``.

    In room i the first i − 1 coordinates rest at ±4, ``x_i`` leaves the saddle at zero with curvature −2g, and all
    later ones are pulled to zero with curvature 2ℓ: the longer one room takes, the longer the next. Rooms are left at
    |x_i| = 1. The saddles are strict, with index one, and the 2^d minima at (±4, …, ±4) are all global.

    Args:
        gain: g > 0.
        loss: ℓ > 0.

    Raises:
        UserError: numbers that are not positive.

    Source: after Du, Jin, Lee, Jordan, Singh and Póczos 2017, whose rooms are joined by splines; this is shorter.

    >>> f = saddle_chain(0.5, 1.0)
    >>> float(f(jnp.zeros(3))), float(f(jnp.array([4.0, 4.0, 0.0])))
    (0.0, -8.0)
    """
    _check(gain, loss)
    return lambda x: chain_value(x, gain, loss)


@checked
def chain_value(x: Float[Array, " d"], gain: Values | float, loss: Values | float) -> Array:
    """Return :func:`saddle_chain` at x, for numbers that may be traced.

    >>> float(chain_value(jnp.array([0.0, 1.0]), 0.5, 1.0))
    1.0
    """
    well = gain * (x**4 / (2 * WELL**2) - x**2)
    opened = jnp.concatenate([jnp.ones(1), _step(jnp.abs(x[:-1]))])
    return jnp.sum(opened * well + (1 - opened) * loss * x**2)


@checked
def chain_saddles(rooms: int) -> Float[np.ndarray, "_ d"]:
    """Return the d saddles of the chain that descent passes, and the minimum behind them, ``(d + 1, d)``.

    >>> chain_saddles(2).tolist()
    [[0.0, 0.0], [4.0, 0.0], [4.0, 4.0]]
    """
    return WELL * np.tril(np.ones((rooms + 1, rooms)), -1)


@checked
def chain_ratio(gain: float, loss: float, lr: float) -> float:
    """Return ρ, by which each room of the chain takes longer than the one before, without noise.

    ``ρ = 1 + log(1/(1 − 2ηℓ)) / log(1 + 2ηg)``, which tends to 1 + ℓ/g as η → 0.

    Args:
        gain: g.
        loss: ℓ.
        lr: η, with 2ηℓ < 1.

    Raises:
        UserError: numbers that are not positive, or a step that overshoots.

    >>> round(chain_ratio(0.5, 1.0, 0.25), 3)
    4.106
    """
    shrink, grow = _rates(gain, loss, lr)
    return 1 + shrink / grow


@checked
def chain_times(
    start: Float[Values, "*batch d"], gain: float, loss: float, lr: float, noise: float = 0.0
) -> Float[np.ndarray, "*batch d"]:
    """Predict the steps that descent spends in each room of the chain.

    With ``c_ℓ = −log(1 − 2ηℓ)``, ``c_g = log(1 + 2ηg)`` and S_i the steps before room i, coordinate i has shrunk to
    ``|x_i| e^{−c_ℓ S_i}`` when its room is entered, and needs ``log(1/·)/c_g`` steps to reach one, but for the few
    steps in which the door opens. Noise of size ν a step keeps coordinates at ``ν/√(1 − (1 − 2ηℓ)²)`` and adds
    ``ν/√((1 + 2ηg)² − 1)`` on the way out, so that no room takes longer than about ``log(1/ν)/c_g``.

    Args:
        start: x_0, nonzero.
        gain: g.
        loss: ℓ.
        lr: η.
        noise: ν, standard deviation of what is added to every coordinate at every step.

    Raises:
        UserError: numbers that are not positive, or a step that overshoots.

    Source: Du et al. 2017, §4; the constants are derived here. Mean of the logarithm for the Gaussian part.

    >>> chain_times(np.full(3, 0.1), 0.5, 1.0, 0.25).round().tolist()
    [11.0, 52.0, 212.0]
    """
    shrink, grow = _rates(gain, loss, lr)
    start = np.abs(np.asarray(start, float))
    if not (4 * lr * gain < 1 and noise >= 0 and start.ndim and (start > 0).all()):
        raise UserError(
            "saddle chain: expected starts off zero, noise of at least 0 and a step with 4ηg < 1, got "
            f"|x_0| from {start.min(initial=np.inf):.3g} on in shape {start.shape}, ν = {noise:g} and 4ηg = "
            f"{4 * lr * gain:.3g}"
        )
    door, kept, noisy = _door(gain, loss, lr)
    # what noise adds while a coordinate grows, in units of ν²
    # Σ_k (1 + 2ηg)^{−2k} over k ≥ 1
    growing = 1 / np.expm1(2 * grow)
    elapsed = np.zeros(start.shape[:-1])
    times = np.zeros(start.shape)
    for i in range(start.shape[-1]):
        logs = (np.log(start[..., i]) - shrink * elapsed)[..., None]  # log of |x_i| e^{−c_ℓ S_i}
        variance = growing + np.zeros(1)
        if i:
            logs = logs + kept
            variance = growing + noisy
        if noise > 0:
            # log|mean + sd N| on average, between its two limits
            # 2 E log|ν sd N|, sd² the variance, as E log|N| = −HALF_LOG
            typical = np.log(variance) + 2 * np.log(noise) - 2 * HALF_LOG
            logs = np.logaddexp(2 * logs, typical) / 2
        # half a step more, as a whole number of steps is needed
        steps = -logs / grow + 0.5 + (door if i else 0.0)
        times[..., i] = np.maximum(steps.mean(-1), 0.0)
        elapsed = elapsed + times[..., i]
    return times


def _step(x: Array) -> Array:
    """Return the smooth step from 0 at one to 1 at two, twice continuously differentiable."""
    t = jnp.clip(x - 1, 0.0, 1.0)
    return t**3 * (10 - 15 * t + 6 * t**2)


def _door(gain: float, loss: float, lr: float) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return what happens to the next coordinate while |x| goes from one to two and opens its room.

    For twenty places in [1, 1 + 2ηg), evenly in the logarithm, where the first step past one may land.

    Returns:
        ``(steps, kept, noisy)``: how many steps that takes, the logarithm of the factor on the coordinate, and the
        variance that noise has given it, in units of ν², from that at rest on; ``(20,)`` each.
    """
    shrink, grow = _rates(gain, loss, lr)
    x = np.exp(grow * (np.arange(20) + 0.5) / 20)
    steps = np.zeros(x.size)
    kept = np.zeros(x.size)
    noisy = np.full(x.size, -1 / np.expm1(-2 * shrink))  # at rest ν²/(1 − (1 − 2ηℓ)²)
    while x.min() < 2:
        t = np.clip(x - 1, 0, 1)
        opened = t**3 * (10 - 15 * t + 6 * t**2)
        closing = x < 2
        # 1 − η f″ at x_i = 0, where w″ = −2g
        factor = np.where(closing, 1 - 2 * lr * ((1 - opened) * loss - opened * gain), 1.0)
        steps += closing
        kept += np.log(factor)
        noisy = np.where(closing, factor**2 * noisy + 1, noisy)  # Var(factor x + noise)
        x = x - lr * gain * (2 * x**3 / WELL**2 - 2 * x)  # a step of descent on w(x_{i−1})
    return steps, kept, noisy


def _rates(gain: float, loss: float, lr: float) -> tuple[float, float]:
    """Return −log(1 − 2ηℓ) and log(1 + 2ηg)."""
    _check(gain, loss)
    if not 0 < 2 * lr * loss < 1:
        raise UserError(
            f"saddle chain: expected a step with 0 < 2ηℓ < 1, got η = {lr:g} and ℓ = {loss:g}; try a smaller step"
        )
    return -float(np.log1p(-2 * lr * loss)), float(np.log1p(2 * lr * gain))


def _check(gain: float, loss: float) -> None:
    if not (gain > 0 and loss > 0):
        raise UserError(
            f"saddle chain: expected a positive gain and loss, got {gain:g} and {loss:g}"
        )
