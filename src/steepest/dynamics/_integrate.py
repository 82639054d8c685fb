"""Two adaptive Runge–Kutta methods that land on given readings of a clock, as one small compiled program.

A flow of a claim is integrated once, and then compiling it costs more than computing it. So the right-hand side is
compiled a single time: stages are a loop, the slope at the start comes from a first step of length zero, and what is
recorded is computed where the flow lands instead of in every step.
"""

from collections.abc import Callable
from typing import Any, Literal, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float, Int

Method = Literal["explicit", "stiff"]
Field = Callable[[Float[Array, ""], Float[Array, " d"]], Float[Array, " d"]]
"""The right-hand side: the derivative at a reading ``s`` of the clock and a state of d numbers."""

_SAFETY = 0.9
_SHRINK = 0.2
_GROW = 10.0


class Landing(NamedTuple):
    """Where an integration went.

    Attributes:
        recorded: what was recorded at each reading, with a leading axis ``times``; of no meaning where not reached.
        reached: which readings were reached.
        end: the last state, shape ``(d,)``.
        steps: steps taken, rejected ones included.
        stopped: whether it ended because of ``stop``.
        exhausted: whether it ended because ``max_steps`` were used up.
    """

    recorded: Any
    reached: Bool[Array, " times"]
    end: Float[Array, " d"]
    steps: Int[Array, ""]
    stopped: Bool[Array, ""]
    exhausted: Bool[Array, ""]


class _State(NamedTuple):
    s: Float[Array, ""]
    y: Float[Array, " d"]
    slope: Float[Array, " d"]
    length: Float[Array, ""]
    steps: Int[Array, ""]
    stopped: Bool[Array, ""]
    lost: Bool[Array, ""]


def integrate(
    field: Field,
    start: Float[Array, " d"],
    times: Float[Array, " times"],
    record: Callable[[Float[Array, ""], Float[Array, " d"]], Any],
    *,
    method: Method,
    rtol: float,
    atol: float,
    max_steps: int,
    stop: Callable[[Float[Array, " d"]], Bool[Array, ""]] | None = None,
) -> Landing:
    """Integrate ``dy/ds = field(s, y)`` from s = 0 and record the state at each reading.

    Steps are as long as the estimate of their error allows: the root mean square of error/(atol + rtol |y|) is at
    most one. A step is shortened so that it ends on a reading, so nothing is interpolated. Call it inside a compiled
    function.

    Args:
        field: the right-hand side.
        start: the state at s = 0.
        times: increasing readings, the first at least 0.
        record: what to keep of a reading and the state there.
        method: ``"explicit"`` is Tsitouras 5(4); ``"stiff"`` is the Rosenbrock method RODAS 4(3), which is L-stable and
            factors the Jacobian, d + 1 rows, in every step.
        rtol: relative tolerance of a step.
        atol: absolute tolerance of a step.
        max_steps: the integration gives up after so many steps.
        stop: ends the integration after the first step where it holds.

    Source: Tsitouras, Runge–Kutta pairs of order 5(4) satisfying only the first column simplifying assumption, 2011,
    table 1; Hairer and Wanner, Solving ordinary differential equations II, sections IV.7 and VI.4 (RODAS).
    """
    attempt, order = {"explicit": (_tsitouras, 5), "stiff": (_rodas, 4)}[method]

    def step(state: _State, target: Float[Array, ""]) -> _State:
        left = target - state.s
        lands = state.length >= left
        length = jnp.where(lands, left, state.length)
        y, error, slope = attempt(field, state.s, state.y, state.slope, length)
        ratio = _ratio(error, state.y, y, rtol, atol)
        accepted = ratio <= 1  # not so for NaN
        # error ∝ length^order: this factor would bring the ratio to _SAFETY^order
        factor = jnp.clip(_SAFETY * ratio ** (-1 / order), _SHRINK, _GROW)
        following = length * jnp.where(jnp.isnan(factor), _SHRINK, factor)
        # A step cut short to land says nothing against the length that was planned.
        following = jnp.where(accepted & lands, jnp.maximum(following, state.length), following)
        # the first step has length zero: it only gives the slope at the start
        first = state.steps == 0
        following = jnp.where(first, _first_length(y, slope, rtol, atol), following)
        # set and not summed, so that it is the reading to the last digit
        s = jnp.where(lands, target, state.s + length)
        y = jnp.where(accepted, y, state.y)
        return _State(
            s=jnp.where(accepted, s, state.s),
            y=y,
            slope=jnp.where(accepted, slope, state.slope),
            length=following,
            steps=state.steps + 1,
            stopped=accepted & stop(y) if stop else state.stopped,
            # A length that no longer moves the clock: the flow has blown up here.
            lost=~first & (state.s + following == state.s),
        )

    def until(state: _State, target: Float[Array, ""]) -> tuple[_State, tuple[Any, Array]]:
        def going(state: _State) -> Bool[Array, ""]:
            return (state.s < target) & (state.steps < max_steps) & ~state.stopped & ~state.lost

        state = jax.lax.while_loop(going, lambda state: step(state, target), state)
        return state, (record(state.s, state.y), state.s >= target)

    zero = jnp.zeros_like(times[0])
    never = jnp.zeros((), bool)
    begin = _State(
        s=zero,
        y=start,
        slope=jnp.zeros_like(start),
        length=zero,
        steps=jnp.zeros((), int),
        stopped=never,
        lost=never,
    )
    end, (recorded, reached) = jax.lax.scan(until, begin, times)
    return Landing(
        recorded=recorded,
        reached=reached,
        end=end.y,
        steps=end.steps,
        stopped=end.stopped,
        exhausted=~reached[-1] & ~end.stopped & (end.steps >= max_steps),
    )


def _ratio(error: Array, old: Array, new: Array, rtol: float, atol: float) -> Float[Array, ""]:
    allowed = _allowed(jnp.maximum(jnp.abs(old), jnp.abs(new)), rtol, atol)
    return jnp.sqrt(jnp.mean((error / allowed) ** 2))


def _allowed(size: Array, rtol: float, atol: float) -> Array:
    """Return the error that is allowed; never zero, as a coordinate that is and stays zero has an error of zero."""
    return jnp.maximum(atol + rtol * size, jnp.finfo(size.dtype).tiny)


def _first_length(y: Array, slope: Array, rtol: float, atol: float) -> Float[Array, ""]:
    """Return a length over which the state changes by about a hundredth (Hairer and Wanner I, section II.4)."""
    allowed = _allowed(jnp.abs(y), rtol, atol)
    size = jnp.sqrt(jnp.mean((y / allowed) ** 2))
    speed = jnp.sqrt(jnp.mean((slope / allowed) ** 2))
    unusable = (size < 1e-5) | (speed < 1e-5) | ~jnp.isfinite(speed)
    return jnp.where(unusable, 1e-6, 0.01 * size / speed)


# Tsitouras 5(4): stage i starts from y + h Σ_j a_ij k_j. The seventh stage is at the new state, so that its slope is
# the next step's first; h Σ_j e_j k_j is the error.
_A = np.zeros((7, 7))
_A[1, :1] = [0.161]
_A[2, :2] = [-0.008480655492356989, 0.335480655492357]
_A[3, :3] = [2.8971530571054935, -6.359448489975075, 4.3622954328695815]
_A[4, :4] = [5.325864828439257, -11.748883564062828, 7.4955393428898365, -0.09249506636175525]
_A[5, :5] = [
    5.86145544294642,
    -12.92096931784711,
    8.159367898576159,
    -0.071584973281401,
    -0.028269050394068383,
]
_A[6, :6] = [
    0.09646076681806523,
    0.01,
    0.4798896504144996,
    1.379008574103742,
    -3.290069515436081,
    2.324710524099774,
]
_C = _A.sum(axis=1)  # the nodes: c_i = Σ_j a_ij
_E = np.array(
    [
        0.0017800110522257773,
        0.0008164344596567463,
        -0.007880878010261994,
        0.1447110071732629,
        -0.5823571654525552,
        0.45808210592918686,
        -1 / 66,
    ]
)


def _tsitouras(
    field: Field, s: Array, y: Array, slope: Array, length: Array
) -> tuple[Array, Array, Array]:
    a = jnp.asarray(_A, y.dtype)
    c = jnp.asarray(_C, s.dtype)

    def stage(i: Array, slopes: Array) -> Array:
        return slopes.at[i].set(field(s + c[i] * length, y + length * (a[i] @ slopes)))

    slopes = jnp.zeros((7, *y.shape), y.dtype).at[0].set(slope)
    slopes = jax.lax.fori_loop(1, 7, stage, slopes)
    error = length * (jnp.asarray(_E, y.dtype) @ slopes)
    # row 6 of A holds the weights b of order five
    return y + length * (a[6] @ slopes), error, slopes[6]


# RODAS 4(3): (I − γhJ) k_i = γ h f(y + Σ_j α_ij k_j) + γ Σ_j c_ij k_j; the sixth stage starts from the embedded
# solution, and its k is the error.
_GAMMA = 0.25
_ALPHA = np.zeros((6, 6))
_ALPHA[1, :1] = [1.544]
_ALPHA[2, :2] = [0.9466785280815826, 0.2557011698983284]
_ALPHA[3, :3] = [3.314825187068521, 2.896124015972201, 0.9986419139977817]
_ALPHA[4, :4] = [1.221224509226641, 6.019134481288629, 12.53708332932087, -0.6878860361058950]
_ALPHA[5, :5] = [*_ALPHA[4, :4], 1.0]
_MIX = np.zeros((6, 6))
_MIX[1, :1] = [-5.6688]
_MIX[2, :2] = [-2.430093356833875, -0.2063599157091915]
_MIX[3, :3] = [-0.1073529058151375, -9.594562251023355, -20.47028614809616]
_MIX[4, :4] = [7.496443313967647, -10.24680431464352, -33.99990352819905, 11.70890893206160]
_MIX[5, :5] = [
    8.083246795921522,
    -7.981132988064893,
    -31.52159432874371,
    16.31930543123136,
    -6.058818238834054,
]


def _rodas(
    field: Field, s: Array, y: Array, slope: Array, length: Array
) -> tuple[Array, Array, Array]:
    alpha = jnp.asarray(_ALPHA, y.dtype)
    mix = jnp.asarray(_MIX, y.dtype)

    def moving(z: Array) -> Array:
        """The clock as one more coordinate, so that its derivative is in the Jacobian."""
        return jnp.append(field(z[-1], z[:-1]), jnp.ones((), y.dtype))

    z = jnp.append(y, s.astype(y.dtype))
    # I − γhJ, J of the extended state: (d + 1, d + 1)
    matrix = jnp.eye(z.size, dtype=y.dtype) - _GAMMA * length * jax.jacfwd(moving)(z)
    factors = jax.scipy.linalg.lu_factor(matrix)

    def stage(i: Array, carry: tuple[Array, Array]) -> tuple[Array, Array]:
        ks, first = carry
        here = moving(z + alpha[i] @ ks)
        right = _GAMMA * (length * here + mix[i] @ ks)
        return ks.at[i].set(jax.scipy.linalg.lu_solve(factors, right)), jnp.where(
            i == 0, here, first
        )

    ks, first = jax.lax.fori_loop(
        0, 6, stage, (jnp.zeros((6, *z.shape), z.dtype), jnp.zeros_like(z))
    )
    new = z + alpha[5] @ ks + ks[5]  # the embedded solution plus the error estimate: order four
    return new[:-1], ks[5, :-1], first[:-1]
