"""Chances to leave a tube around the noiseless path: exact ones by killed kernels, and least actions of theory."""

from collections.abc import Callable
from functools import cache
from typing import Any, NamedTuple

import numpy as np
from scipy.integrate import simpson, solve_bvp, solve_ivp
from scipy.optimize import minimize_scalar
from scipy.special import ndtr

from steepest.nn.types import Values

SPACING = 0.7  # of Gauss's nodes, in standard deviations of a step
POINTS = 301  # of a path of least action
SHARES = np.linspace(
    0.1, 1.0, 10
)  # of the time, near the best of which the time of the exit is sought
SHARE_ROUNDING = 1e-5  # of the time of the exit
FAR = 1.5  # how much dearer a side may be on these for its time to be sought
DEAR = 1e3  # action of a path that is not found
ACTION_ROUNDING = 1e-9  # of least actions, relative
FREE = 1e-9  # curvature that is none
# −ζ(½)/√(2π): in standard deviations of a step, how much wider a tube seems that is looked at after whole steps only
OVERSHOOT = 0.5825971579
DIGITS = 40.0  # powers of e down to which sums are taken


class LeastAction(NamedTuple):
    """The cheapest way out of the tube within the time.

    Attributes:
        rate: I(δ), its action.
        linearized: what the rate would be if deviations were Gaussian.
        latest: share of the time at which it leaves.
        path: it, at even times, shape ``(points,)``.
    """

    rate: float
    linearized: float
    latest: float
    path: Values


def well_slope(x: Any) -> Any:
    """Return f' of the double well ``f = (x² − 1)²/4``."""
    return x**3 - x


def well_curvature(x: Any) -> Any:
    """Return f″ of the double well."""
    return 3 * x**2 - 1


def leave_chance(
    decay: Callable[[Values, int], Values], deviation: float, delta: float, steps: int
) -> float:
    """Return the chance that a walk from zero is outside of [−δ, δ] after one of its first steps.

    Backwards: the chance to leave from a place is that to leave at once plus the mean chance from the next place. All
    terms are positive, so that tiny chances have as many digits as large ones.

    Args:
        decay: mean next place, from places and the number of the step.
        deviation: standard deviation of a step.
        delta: δ.
        steps: how many.
    """
    count = int(2 * delta / (SPACING * deviation)) + 20
    nodes, weights = np.polynomial.legendre.leggauss(count)
    nodes = delta * nodes
    weights = delta * weights / (np.sqrt(2 * np.pi) * deviation)
    places = np.append(nodes, 0.0)
    chances = np.zeros(count)
    kernel = np.zeros((count + 1, count))
    at_once = np.zeros(count + 1)
    before = None
    start = 0.0
    for step in range(steps - 1, -1, -1):
        means = decay(places, step)
        if before is None or not np.array_equal(means, before):
            # (places, nodes): density of the next place, times Gauss's weight
            kernel = weights * np.exp((nodes - means[:, None]) ** 2 / (-2 * deviation**2))
            at_once = ndtr((means - delta) / deviation) + ndtr(-(means + delta) / deviation)
            before = means
        now = at_once + kernel @ chances
        chances = now[:-1]
        start = float(now[-1])
    return start


def parabola_chance(
    curvature: float, delta: float, horizon: float, beta: float, scale: float
) -> float:
    """Return the chance on a parabola, of the exact process looked at every ``scale/β``."""
    steps = round(horizon * beta / scale)
    exponent = curvature * horizon / steps
    # exact transition over a time h: the factor e^(−λh), the variance (1 − e^(−2λh))/λβ
    factor = np.exp(-exponent)
    deviation = np.sqrt(-np.expm1(-2 * exponent) / (curvature * beta))
    return leave_chance(lambda x, step: factor * x, float(deviation), delta, steps)


def end_chance(curvature: float, delta: float, horizon: float, beta: float) -> float:
    """Return the chance to be out at the end on a parabola, on either side."""
    spread = np.sqrt(-np.expm1(-2 * curvature * horizon) / (curvature * beta))
    return float(2 * ndtr(-delta / spread))


def euler_chance(curvature: float, delta: float, horizon: float, beta: float, step: float) -> float:
    """Return the chance on a parabola, of a walk with steps ε."""
    factor = 1 - step * curvature
    deviation = np.sqrt(2 * step / beta)
    steps = round(horizon / step)
    return leave_chance(lambda x, step: factor * x, float(deviation), delta, steps)


def well_chance(
    start: float, delta: float, horizon: float, beta: float, scale: float, gaussian: bool = False
) -> float:
    """Return the chance in the double well, of a walk with steps ``scale/β``, around the walk without noise.

    Args:
        start: of both walks.
        delta: δ.
        horizon: T.
        beta: β.
        scale: β times a step.
        gaussian: whether the slope is linearized around the walk without noise.
    """
    steps = round(horizon * beta / scale)
    size = horizon / steps
    noiseless = np.empty(steps)
    noiseless[0] = start
    for k in range(steps - 1):
        noiseless[k + 1] = noiseless[k] - size * well_slope(noiseless[k])

    def decay(x: Values, step: int) -> Values:
        centre = noiseless[step]
        linear = well_curvature(centre) * x
        pull = linear if gaussian else well_slope(centre + x) - well_slope(centre)
        return x - size * pull

    return leave_chance(decay, float(np.sqrt(2 * size / beta)), delta, steps)


def parabola_rate(curvature: float, delta: float, horizon: float) -> float:
    """Return ``I(δ) = λδ²/(2(1 − e^{−2λT}))``."""
    return curvature * delta**2 / (2 * -np.expm1(-2 * curvature * horizon))


def exit_factor(curvature: float, delta: float, horizon: float, scale: float) -> float:
    """Return how much likelier it is to be out at one of the looks than at the last, as β → ∞, on a parabola.

    Back from the end, in units of 1/β, the path falls from where it ends like a walk S of steps N(−ac, 2c), with
    a = λδ coth λT, and where it ends is out by an exponential number of rate θ = λδ/(1 − e^{−2λT}). So the factor is
    E e^{θ max S}, which Spitzer's identity gives: log E e^{θ max S} = Σ E(e^{θ max(S_n, 0)} − 1)/n.
    """
    ahead = curvature * delta / -np.expm1(-2 * curvature * horizon)
    fall = curvature * delta / np.tanh(curvature * horizon)
    decay = ahead * (fall - ahead)
    # e^(−θ(a − θ)t) falls slowest, as Gaussian tails fall like e^(−a²t/4) at least
    time = scale * np.arange(1, int(DIGITS / (decay * scale)) + 2)
    root = np.sqrt(2 * time)
    # E e^(θ max(S, 0)) for S ~ N(−at, 2t): P(S ≤ 0), and the rest by tilting the Gaussian with θ
    stays = ndtr(fall * time / root)
    rises = np.exp(-decay * time) * ndtr((2 * ahead - fall) * time / root)
    return float(np.exp(((stays + rises - 1) * scale / time).sum()))


@cache
def well_rate(start: float, delta: float, horizon: float) -> LeastAction:
    """Return the least action ``¼∫|ẋ + f'|²`` of paths that leave the tube in the double well within the time.

    Euler and Lagrange's equation is ``ẍ = f' f″``, from the start to ``x^∞(t) ± δ``, for times up to T; the time is
    that of the least action, near the best of a few.
    """
    best: tuple[float, float, Values] = (np.inf, 0.0, np.zeros(POINTS))
    sides = (-delta, delta)
    coarse = np.array([[_leave_at(s, start, side, horizon)[0] for s in SHARES] for side in sides])
    for side, actions in zip(sides, coarse, strict=True):
        nearest = int(actions.argmin())
        shares = [1.0]
        # not where the other side is cheaper by far
        if actions[nearest] < FAR * coarse.min():
            low = SHARES[max(nearest - 1, 0)]
            high = SHARES[min(nearest + 1, len(SHARES) - 1)]
            # a path that is not found is a dear one
            exact = lambda s, side=side: min(_leave_at(s, start, side, horizon)[0], DEAR)
            found: Any = minimize_scalar(
                exact, bounds=(low, high), method="bounded", options={"xatol": SHARE_ROUNDING}
            )
            shares.append(float(found.x))
        # the end first, so that a time within the minimizer's rounding of it is the end
        for share in shares:
            action, path = _leave_at(share, start, side, horizon)
            if action < best[0] * (1 - ACTION_ROUNDING):
                best = (action, share, path)
    # the deviation to first order has the variance v/β with v' = 2 − 2f''v
    linear = lambda t, y: [-well_slope(y[0]), 2 - 2 * well_curvature(y[0]) * y[1]]
    spread = solve_ivp(linear, (0, horizon), [start, 0.0], rtol=1e-10, atol=1e-12).y[1, -1]
    # a Gaussian of variance v/β leaves [−δ, δ] with −log chance ≈ βδ²/2v
    return LeastAction(best[0], float(delta**2 / (2 * spread)), best[1], best[2])


def _leave_at(share: float, start: float, side: float, horizon: float) -> tuple[float, Values]:
    """Return the least action, and its path, of those that leave at a share of the time on one side."""
    time = np.linspace(0, share * horizon, POINTS)
    noiseless = _follow(start, time)
    return _least(noiseless, noiseless[-1] + side, time)


def _follow(start: float, time: Values) -> Values:
    slope = lambda t, x: -well_slope(x)
    return solve_ivp(slope, (0, time[-1]), [start], t_eval=time, rtol=1e-10, atol=1e-12).y[0]


def _least(noiseless: Values, end: float, time: Values) -> tuple[float, Values]:
    """Return action and path of the extremal from the start of the noiseless path to an end."""
    guess = noiseless + (end - noiseless[-1]) * (time / time[-1]) ** 2
    solution: Any = solve_bvp(
        lambda t, y: np.stack([y[1], well_slope(y[0]) * well_curvature(y[0])]),
        lambda a, b: np.array([a[0] - noiseless[0], b[0] - end]),
        time,
        np.stack([guess, np.gradient(guess, time)]),
        tol=1e-8,
        max_nodes=20000,
    )
    if not solution.success:
        return np.inf, guess
    place, speed = solution.sol(time)
    return float(simpson((speed + well_slope(place)) ** 2 / 4, x=time)), place
