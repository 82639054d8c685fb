"""Exact mean exit times of a double well, on the line and beside a second direction, and of a ball."""

from dataclasses import dataclass
from functools import cache
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from numpy.lib.stride_tricks import as_strided
from scipy import linalg
from scipy.special import gamma

from steepest import kit
from steepest.claims.noise._double_well import DEPTH, reach, well
from steepest.kit.points import Arrays, equal
from steepest.noise import exit_moments, kramers, passage_time, transfer_matrix

START = -1.0  # the minimum that is left
TARGET = 1.0  # the minimum behind the barrier, which is at zero
BARRIER = 0.25
PRECISE = 90.0  # β up to which elimination by columns is right to 0.005; at 110 it is off by 0.04, at 130 negative
WIDTH = 2.0  # the stiffness changes like exp(−2x²)
POINT_CELLS = (160, 30)  # of a point's grid, even
CELLS = (100, 24)  # of the coarser of two grids of the plane, along x and |y|
FINER = 1.5


def stiffness(x: Any, ratio: Any, mean: Any, exp: Any = np.exp) -> Any:
    """Return κ(x), from ``mean/√ratio`` far away to ``mean √ratio`` at the saddle, like exp(−2x²)."""
    basin = mean / ratio**0.5
    return basin * (1 + (ratio - 1) * exp(-WIDTH * x**2))


class ChainTimes(NamedTuple):
    """Exit times of the walk with steps ε on the line.

    Attributes:
        mean: from the start, as a time.
        variation: standard deviation over mean, from the start.
        variation_saddle: the same from the saddle.
    """

    mean: float
    variation: float
    variation_saddle: float


def chain_times(step: float, beta: float) -> ChainTimes:
    """Return the exact exit times of the walk that is absorbed from the target on."""
    variance = 2 * step / beta  # of the noise in a step x − εf' + √(2ε/β) ξ
    far = -reach(beta)
    # Gauss's nodes stand half a standard deviation of a step apart in the mean
    count = int((TARGET - far) / (0.5 * variance**0.5)) + 10
    nodes, weights = np.polynomial.legendre.leggauss(count)
    half = (TARGET - far) / 2
    # the two last are places to start from
    x = np.append(far + half * (nodes + 1), [0.0, START])
    weights = np.append(half * weights, [0.0, 0.0])
    drift = -step * (x**3 - x)
    moments = exit_moments(transfer_matrix(x, drift, variance, weights, killed=True))
    saddle, start = moments.variation[-2:]
    return ChainTimes(step * float(moments.mean[-1]), float(start), float(saddle))


def plane_chain_mean(step: float, beta: float, ratio: float, mean: float) -> float:
    """Return the mean exit time of the walk on ``f(x) + κ(x)y²/2``; even functions of y suffice."""
    variance = 2 * step / beta
    far = -reach(beta)
    count = int((TARGET - far) / (0.85 * variance**0.5)) + 8
    nodes, weights = np.polynomial.legendre.leggauss(count)
    half = (TARGET - far) / 2
    x = far + half * (nodes + 1)
    spacing = 0.9 * variance**0.5
    softest = min(mean * ratio**0.5, mean / ratio**0.5)
    # as far as βκy²/2 = 16 where the second direction is softest
    rows = int(np.sqrt(2 * 16 / (beta * softest)) / spacing) + 1
    y = spacing * (np.arange(rows) + 0.5)
    upper = np.stack(np.meshgrid(x, y, indexing="ij"), -1).reshape(-1, 2)
    masses = np.repeat(half * weights, rows) * spacing
    places = np.concatenate([upper, upper * [1, -1], [[START, 0.0]]])
    across, up = places.T
    kappa = stiffness(across, ratio, mean)
    bend = -2 * WIDTH * across * (kappa - mean / ratio**0.5)  # κ'
    drift = -step * np.stack([across**3 - across + bend * up**2 / 2, kappa * up], 1)
    whole = transfer_matrix(
        places, drift, variance, np.concatenate([masses, masses, [0]]), killed=True
    )
    size = len(upper)
    kept = np.append(np.arange(size), 2 * size)
    folded = whole[kept]
    # on even functions of y the columns of y and −y act as their sum
    folded = np.append(folded[:, :size] + folded[:, size : 2 * size], folded[:, 2 * size :], 1)
    return step * float(exit_moments(folded).mean[-1])


def line_time(beta: float, target: float = TARGET) -> float:
    """Return the exact mean time from the start to a target on the line."""
    return passage_time(well, beta, START, target, -1 - reach(beta))


def effective_time(beta: float, ratio: float, mean: float) -> float:
    """Return the same in the effective potential ``f + log κ/2β``, as for a second direction that is fast."""
    # ∫ e^(−βκy²/2) dy ∝ κ^(−1/2): the second direction integrated out adds log κ/2β to f
    potential = lambda x: well(x) + np.log(stiffness(x, ratio, mean)) / (2 * beta)
    return passage_time(potential, beta, START, TARGET, -1 - reach(beta))


def plane_time(beta: float, ratio: float, mean: float) -> float:
    """Return the mean time to x = 1 of the diffusion on ``f(x) + κ(x)y²/2``, extrapolated from two grids."""
    coarse = _plane_time(beta, ratio, mean, *CELLS)
    fine = _plane_time(beta, ratio, mean, *(int(FINER * cells) for cells in CELLS))
    # Richardson: the error of second order is FINER² times as small on the finer grid
    return fine + (fine - coarse) / (FINER**2 - 1)


def _plane_time(beta: float, ratio: float, mean: float, columns: int, rows: int) -> float:
    """Solve ``L τ = −1`` on cells, with exponentially fitted rates, which keep exp(−βf); errors of second order."""
    far = -reach(beta)
    width = (TARGET - far) / columns
    x = far + width * (np.arange(columns) + 0.5)
    softest = min(mean * ratio**0.5, mean / ratio**0.5)
    height = np.sqrt(2 * 25 / (beta * softest)) / rows
    y = height * (np.arange(rows) + 0.5)
    potential = _plane(x[:, None], y, ratio, mean)
    number = np.arange(columns * rows).reshape(columns, rows)
    # row i holds the rates from cell i to the cells i − rows, …, i + rows
    jumps = np.zeros((columns * rows, 2 * rows + 1))
    for axis, size in ((0, width), (1, height)):
        lower = [slice(None)] * 2
        upper = [slice(None)] * 2
        lower[axis] = slice(None, -1)
        upper[axis] = slice(1, None)
        low = tuple(lower)
        high = tuple(upper)
        rise = beta * (potential[high] - potential[low])
        for start, end, jump in ((low, high, rise), (high, low, -rise)):
            shift = number[end] - number[start] + rows
            # rates B(βΔf)/βh² balance e^(−βf) on every edge, as B(z)/B(−z) = e^(−z)
            jumps[number[start], shift] = _bernoulli(jump) / (beta * size**2)
    # absorbed at x = 1, half a cell away
    rise = beta * (_plane(TARGET, y, ratio, mean) - potential[-1])
    out = np.zeros((columns, rows))
    out[-1] = _bernoulli(rise) / (beta * width**2 / 2)
    times = absorption_times(jumps, out.ravel(), rows)
    # even in y, so that the first row is within its second order
    return float(np.interp(START, x, times.reshape(columns, rows)[:, 0]))


def absorption_times(jumps: kit.Values, out: kit.Values, band: int) -> kit.Values:
    """Return the mean times to absorption of a Markov chain in continuous time, by elimination without subtraction.

    One state after another is taken out of the chain, and its jumps are handed to those that are left.
    All numbers are positive and only added, multiplied and divided, so that every time is right to some multiple of
    the precision of rates, however long it is: an ordinary solver loses a factor of the condition, here e^(β/4).

    Args:
        jumps: rates from state i to state ``i + k − band`` in entry ``[i, k]``, shape ``(n, 2 band + 1)``.
        out: rates at which states are absorbed, shape ``(n,)``.
        band: the longest jump.
    """
    count = len(out)
    # states behind the last, which nothing reaches, so that every window is whole
    rates = np.concatenate([jumps, np.zeros((band, 2 * band + 1))])
    out = np.concatenate([out, np.zeros(band)])
    gains = np.concatenate([np.ones(count), np.zeros(band)])
    # windows[k, i]: the rates from state k + 1 + i to k, k + 1, …, k + band
    step = rates.strides[1]
    strides = (rates.strides[0], 2 * band * step, step)
    windows = as_strided(rates[1:, band - 1 :], (count, band, band + 1), strides)
    for k in range(count):
        later = slice(k + 1, k + 1 + band)
        # Grassmann, Taksar and Heyman: chances of the next state, from the rates out of k alone,
        # whose sum takes no difference of large numbers
        share = 1 / (rates[k, band + 1 :].sum() + out[k])
        rates[k, band + 1 :] *= share
        # what flowed into k goes on to its later states, is absorbed, or waits there
        back = windows[k, :, 0].copy()
        windows[k, :, 1:] += back[:, None] * rates[k, band + 1 :]
        out[later] += back * (share * out[k])
        gains[k] *= share
        gains[later] += back * gains[k]
    times = np.zeros(count + band)
    # τ_k = gain_k + Σ p_kj τ_j over later states j, from the last one back
    for k in reversed(range(count)):
        times[k] = gains[k] + rates[k, band + 1 :] @ times[k + 1 : k + 1 + band]
    return times[:count]


def _plane(x: Any, y: Any, ratio: float, mean: float) -> Any:
    return well(x) + stiffness(x, ratio, mean) * y**2 / 2


def _bernoulli(z: kit.Values) -> kit.Values:
    """Return ``z/(e^z − 1)``, the rate over a rise of z where the potential is straight, in units of flat ones."""
    small = np.abs(z) < 1e-6
    safe = np.where(small, 1.0, z)
    # z/(e^z − 1) = 1 − z/2 + O(z²)
    return np.where(small, 1 - z / 2, safe / np.expm1(safe))


def leave_chance(radius: float, dimension: int, horizon: float) -> float:
    """Return the chance that an Ornstein–Uhlenbeck process from its law in a ball leaves it before a time.

    In units in which the stationary law is normal and the pull one: ``dX = −X dt + √2 dW``. Radial cells.
    """
    cells = 400
    size = radius / cells
    edges = size * np.arange(1, cells + 1)
    middles = edges - size / 2
    # the radius has the density r^(d−1) e^(−r²/2)
    weigh = lambda r: r ** (dimension - 1) * np.exp(-(r**2) / 2)
    masses = weigh(middles)
    flows = weigh(edges) / size**2
    flows[-1] *= 2  # to the edge it is half a cell
    diagonal = np.zeros(cells)
    diagonal += flows / masses
    diagonal[1:] += flows[:-1] / masses[1:]
    # symmetric form of the generator, D^½ L D^(−½) with D the masses: the same eigenvalues
    beside = -flows[:-1] / np.sqrt(masses[1:] * masses[:-1])
    values, vectors = linalg.eigh_tridiagonal(diagonal, beside, select="i", select_range=(0, 7))
    # modes above the eighth have died at any horizon above one
    # the chance to stay is Σ c_i² e^(−λ_i t), as the start is the stationary law in the ball
    overlaps = (np.sqrt(masses / masses.sum()) @ vectors) ** 2
    return float(1 - overlaps @ np.exp(-values * horizon))


def leave_rate(radius: Any, dimension: int) -> Any:
    """Return the rate ``a^d e^{−a²/2} 2^{1−d/2}/Γ(d/2)`` at which it leaves a large ball of radius a."""
    factor = 2 ** (1 - dimension / 2) / gamma(dimension / 2)
    return radius**dimension * np.exp(-(radius**2) / 2) * factor


def plane_time_by_columns(beta: Any, ratio: Any, mean: Any) -> jax.Array:
    """Return what :func:`plane_time` does, on one grid in JAX, by elimination of one column of cells after another."""
    columns, rows = POINT_CELLS
    far = -jnp.sqrt(1 + jnp.sqrt(4 * DEPTH / beta))
    # the start is an edge of cells
    left = columns // 2
    x = jnp.concatenate(
        [far + (START - far) * (jnp.arange(left) + 0.5) / left, _inner(columns - left)]
    )
    sizes = jnp.where(x < START, (START - far) / left, (TARGET - START) / (columns - left))
    softest = mean * jnp.minimum(ratio**0.5, ratio**-0.5)
    height = jnp.sqrt(2 * 25 / (beta * softest)) / rows
    y = height * (jnp.arange(rows) + 0.5)
    kappa = stiffness(x, ratio, mean, jnp.exp)
    potential = well(x)[:, None] + kappa[:, None] * y**2 / 2

    def rate(rise: jax.Array) -> jax.Array:
        small = jnp.abs(rise) < 1e-6
        safe = jnp.where(small, 1.0, rise)
        return jnp.where(small, 1 - rise / 2, safe / jnp.expm1(safe))

    # finite volumes: over the distance of the middles, and the size of the cell that is left
    between = (sizes[1:] + sizes[:-1]) / 2
    rise = beta * jnp.diff(potential, axis=0)
    forward = rate(rise) / (beta * (between * sizes[:-1])[:, None])
    back = rate(-rise) / (beta * (between * sizes[1:])[:, None])
    end = well(TARGET) + stiffness(TARGET, ratio, mean, jnp.exp) * y**2 / 2
    out = rate(beta * (end - potential[-1])) / (beta * sizes[-1] ** 2 / 2)
    ahead = jnp.concatenate([forward, out[None]])
    behind = jnp.concatenate([jnp.zeros((1, rows)), back])
    up = rate(beta * jnp.diff(potential, axis=1)) / (beta * height**2)
    down = rate(-beta * jnp.diff(potential, axis=1)) / (beta * height**2)

    def eliminate(carry: tuple, column: tuple) -> tuple:
        # τ_i = M_i τ_{i+1} + r_i
        matrix, constant = carry
        ahead, behind, up, down = column
        leave = ahead + behind + jnp.append(up, 0.0) + jnp.append(0.0, down)
        # leave τ_i − up − down − behind τ_{i−1} = 1 + ahead τ_{i+1}, with τ_{i−1} = M τ_i + r
        system = jnp.diag(leave) - jnp.diag(up, 1) - jnp.diag(down, -1) - behind[:, None] * matrix
        right = jnp.concatenate([jnp.diag(ahead), (1 + behind * constant)[:, None]], 1)
        solved = jnp.linalg.solve(system, right)
        return (solved[:, :-1], solved[:, -1]), solved

    start = (jnp.zeros((rows, rows)), jnp.zeros(rows))
    _, solved = jax.lax.scan(eliminate, start, (ahead, behind, up, down))

    def substitute(later: jax.Array, column: jax.Array) -> tuple[jax.Array, jax.Array]:
        times = column[:, :-1] @ later + column[:, -1]
        return times, times[0]

    _, times = jax.lax.scan(substitute, jnp.zeros(rows), solved, reverse=True)
    # between the two cells at the start
    share = sizes[left - 1] / (sizes[left - 1] + sizes[left])
    return times[left - 1] * (1 - share) + times[left] * share


def _inner(columns: int) -> jax.Array:
    """Return the middles of the cells between start and target."""
    return START + (TARGET - START) * (jnp.arange(columns) + 0.5) / columns


@cache
def plane_formula(ratio: float, mean: float) -> tuple[float, float]:
    """Return Kramers' prefactor and barrier on ``f(x) + κ(x)y²/2``."""

    def potential(place: Any) -> Any:
        return well(place[0]) + stiffness(place[0], ratio, mean, jnp.exp) * place[1] ** 2 / 2

    law = kramers(potential, np.array([START, 0.0]), np.zeros(2), 1.0)
    return law.prefactor, law.barrier


@dataclass(frozen=True)
class LangevinMetastabilityPoint(kit.Point):
    """The exact mean exit time beside a second direction, at one temperature and one ratio of stiffnesses."""

    plane_beta: kit.Positive
    ratios: kit.Positive
    stiffness: kit.Positive

    batched = ("plane_beta", "ratios", "stiffness")
    diagram = {"plane_beta": "log:2:80:13", "ratios": "log:0.0625:16:13"}
    labels = {
        "over_formula": "exit time over Kramers'",
        "over_arrhenius": "exit time over 2π/√2 e^(β/4)",
    }
    contours = {"over_formula_measured": (1.1, "a tenth above Kramers' formula")}
    diagram_remarks = (
        "Exact times, of the diffusion and not of walkers. The formula of Eyring and Kramers is a limit: at a barrier "
        "of two (β = 8) it may be half of the time, and is right to a tenth only from β = 15 to 60 on.",
    )

    def hypotheses(self, setting):
        yield kit.assume(
            "β",
            float(self.plane_beta),
            "<=",
            PRECISE,
            "elimination by columns subtracts, and loses e^(β/4) of its precision; choose a smaller --plane-beta",
        )

    def predict(self, setting):
        prefactor, barrier = plane_formula(float(self.ratios), float(self.stiffness))
        return kit.Prediction(time=prefactor * np.exp(self.plane_beta * barrier))

    def observe(self, setting, key):
        return {"time": plane_time_by_columns(self.plane_beta, self.ratios, self.stiffness)}

    def run_conditions(self, observed):
        yield kit.assume("mean exit time", float(observed["time"]), ">", 0, "choose a smaller β")

    def judge(self, predicted, observed):
        share = float(observed["time"]) / float(predicted["time"])
        # a tenth of it for the next order in 1/β
        yield equal("over_formula", 1.0, share, 0.1, label="exit time over Kramers'")

    def quantities(self, predicted: kit.Prediction, observed: Arrays) -> dict[str, float]:
        # Kramers: 2π/√(f''(−1)|f''(0)|) e^(βΔf), with the curvatures 2 and −1
        flat = np.sqrt(2) * np.pi * np.exp(self.plane_beta * BARRIER)
        return {"over_arrhenius": float(observed["time"]) / float(flat)}
