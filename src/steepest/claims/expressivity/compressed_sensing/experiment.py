"""Recovery of signals by least ℓ1 norm: linear programs, and the first number of measurements that suffices."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from typing import Annotated

import jax
import jax.numpy as jnp
import numpy as np

from steepest import kit
from steepest.kit.points import equal
from steepest.linalg import sequential
from steepest.programs import l1_intrinsic_volumes, recovery_probability

Size = Annotated[int, kit.Within(4, 200)]

CLOSE = 1e-7  # relative difference of norms below which the program's minimum is the signal's norm


class Law:
    """How many measurements recover a signal, by the intrinsic volumes of its descent cone.

    Attributes:
        dimension: δ, the mean of the law of intrinsic volumes.
        variance: its variance.
        success: probability that m = 0, …, n measurements recover, shape ``(n + 1,)``.
    """

    def __init__(self, n: int, nonzero: int, nonnegative: bool) -> None:
        volumes = l1_intrinsic_volumes(n, nonzero, nonnegative)
        k = np.arange(n + 1)
        # the mean of the intrinsic volumes' law is the statistical dimension
        self.dimension = float(volumes @ k)
        self.variance = float(volumes @ (k - self.dimension) ** 2)
        self.success = recovery_probability(volumes)


@cache
def of_signals(n: int, nonzero: int, nonnegative: bool = False) -> Law:
    """Return the law of measurements that recover signals of so many nonzero coordinates, computed once."""
    return Law(n, nonzero, nonnegative)


def recovers(matrix: kit.Values, signal: kit.Values, nonnegative: bool) -> bool:
    """Say whether the signal has the least ℓ1 norm of all (nonnegative) vectors with the same measurements.

    The dual program, ``max ⟨Ax₀, y⟩`` with ``|Aᵀy| ≤ 1`` (or ``Aᵀy ≤ 1``), has the same value as the program itself.
    That value is ‖x₀‖₁ if and only if x₀ is a minimizer, for normal A then almost surely the only one.

    Args:
        matrix: A, shape ``(m, n)``.
        signal: x₀, shape ``(n,)``.
        nonnegative: whether the program knows that no coordinate is negative.
    """
    from scipy.optimize import Bounds, LinearConstraint, milp

    if not len(matrix):
        return not signal.any()
    free = Bounds(-np.inf, np.inf)
    limits = LinearConstraint(matrix.T, -np.inf if nonnegative else -1.0, 1.0)
    # milp minimizes: the objective is −⟨Ax₀, y⟩, without integers a linear program
    solution = milp(-matrix @ signal, constraints=limits, bounds=free)
    if solution.fun is None:
        raise RuntimeError(f"the linear program was not solved: {solution.message}")
    norm = np.abs(signal).sum()
    return bool(-solution.fun >= norm * (1 - CLOSE))


def first_success(works: Callable[[int], bool], most: int, guess: int) -> int:
    """Return the least m ≤ most at which a monotone condition holds, which it does at ``most``.

    From the guess on steps double until the answer is enclosed, and then are halved.
    """
    low = -1  # fails
    high = most  # works
    step = 2
    m = min(max(guess, 0), most - 1)
    while low < 0 or high == most:
        if works(m):
            high = m
            if m == 0:
                return 0
            m = max(m - step, 0)
        else:
            low = m
            if m == most - 1:
                return most
            m = min(m + step, most - 1)
        if low >= 0 and high < most:
            break
        step *= 2
    while high - low > 1:
        middle = (low + high) // 2
        if works(middle):
            high = middle
        else:
            low = middle
    return high


@sequential
def thresholds(
    matrices: Callable[[int], kit.Values], signals: kit.Values, nonnegative: bool
) -> kit.Values:
    """Return the first number of measurements that recovers each signal, taken row by row, shape ``(draws,)``.

    Rows are added to those that are there, so that more measurements never lose a signal.

    Args:
        matrices: A of the draw of this number, ``(n, n)``, of which m measurements are the first m rows.
        signals: shape ``(draws, n)``.
        nonnegative: whether the program knows that no coordinate is negative.
    """
    n = signals.shape[1]
    counts: list[int] = []
    for draw, signal in enumerate(signals):
        matrix = matrices(draw)
        works = lambda m, matrix=matrix, signal=signal: recovers(matrix[:m], signal, nonnegative)
        # the mean of the draws before is near, and needs no theory
        counts.append(first_success(works, n, round(np.mean(counts)) if counts else n // 2))
    return np.array(counts)


def sparse_signals(
    rng: np.random.Generator, draws: int, n: int, nonzero: int, nonnegative: bool
) -> kit.Values:
    """Draw signals with s normal coordinates at random places, or their absolute values, shape ``(draws, n)``."""
    values = rng.standard_normal((draws, n))
    places = rng.permuted(np.broadcast_to(np.arange(n) < nonzero, (draws, n)), axis=1)
    return np.where(places, np.abs(values) if nonnegative else values, 0.0)


@sequential
def share_recovered(words: kit.Values, n: int, nonzero: int, m: int, draws: int) -> np.ndarray:
    """Return which of so many draws m normal measurements recover, shape ``(draws,)``."""
    rng = np.random.default_rng(np.asarray(words).ravel())
    signals = sparse_signals(rng, draws, n, int(nonzero), False)
    return np.array(
        [recovers(rng.standard_normal((int(m), n)), signal, False) for signal in signals], float
    )


@dataclass(frozen=True)
class CompressedSensingPoint(kit.Point):
    """The share of sparse signals that m measurements recover, at one sparsity."""

    size: Size
    sparsities: kit.Count
    measurements: kit.Count
    draws: kit.Seeds

    batched = ("sparsities", "measurements")
    diagram = {"sparsities": "1:20:2", "measurements": "2:40:2"}
    base = {"size": 40, "draws": 20}
    labels = {"success": "share of draws that are recovered"}
    contours = {"success_predicted": (0.5, "one half, predicted")}
    diagram_remarks = (
        "Each draw has a new signal and new normal measurements. The predicted probability has no fitted number.",
    )

    def hypotheses(self, setting):
        yield sparse(self.sparsities, self.size)
        yield fewer(self.measurements, self.size)

    def predict(self, setting):
        within = 1 <= self.sparsities <= self.size and self.measurements <= self.size
        if not within:
            return kit.Prediction(success=1.0)
        return kit.Prediction(
            success=of_signals(self.size, self.sparsities).success[self.measurements]
        )

    def observe(self, setting, key):
        shape = jax.ShapeDtypeStruct((self.draws,), jnp.zeros(()).dtype)
        solve = lambda words, nonzero, m: share_recovered(
            words, self.size, nonzero, m, self.draws
        ).astype(shape.dtype)
        success = jax.pure_callback(
            solve,
            shape,
            jax.random.key_data(key),
            jnp.asarray(self.sparsities),
            jnp.asarray(self.measurements),
            vmap_method="sequential",
        )
        return {"success": success}

    def judge(self, predicted, observed):
        share = observed["success"]
        chance = float(predicted["success"])
        # three standard deviations of a share, and one trial and a half, which is what is rare where these are small
        margin = 3 * np.sqrt(max(chance * (1 - chance), 0) / len(share)) + 1.5 / len(share)
        yield equal(
            "success",
            predicted["success"],
            share.mean(),
            margin,
            absolute=True,
            label="share of draws that are recovered",
        )


def sparse(nonzero: int, n: int) -> kit.Hypothesis:
    """Assume that some coordinate of a signal is zero."""
    return kit.assume("nonzero coordinates s / n", nonzero / n, "<", 1, "lower --sparsities")


def fewer(measurements: int, n: int) -> kit.Hypothesis:
    """Assume that there are at most as many measurements as coordinates."""
    return kit.assume("measurements m / n", measurements / n, "<=", 1, "lower --measurements")
