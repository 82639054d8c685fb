"""SGD on quadratics with steps that are a share of the best ones, or all alike."""

import numpy as np
from numpy.typing import NDArray

LONGEST = 200_000  # steps, after which a run is given up


def best_steps(errors: NDArray, curvatures: NDArray, jitter: NDArray) -> NDArray:
    """Return the step of each group after which its mean risk is least, ``(groups,)``.

    Args:
        errors: ``(groups, runs, d)``.
        curvatures: ``(d,)``.
        jitter: the mean of the noise's square, weighted by curvature, ``(groups,)``.
    """
    # η = ‖g‖²/(gᵀHg + tr HΣ/b) with means over the runs of a group, g = λe
    squared = (errors * curvatures) ** 2
    return squared.sum(2).mean(1) / ((squared @ curvatures).mean(1) + jitter)


def steps(
    rng: np.random.Generator,
    curvatures: NDArray,
    squares: NDArray,
    noise: float,
    batch: float,
    share: float,
    target: float,
    shape: tuple[int, int],
    *,
    fading: bool = False,
) -> NDArray:
    """Return the steps until the mean risk of a group of runs has come to a share of the first, ``(groups,)``.

    All runs of a group take steps of one size. The logarithm of the risk is taken as linear within the last step.

    Args:
        rng: of the noise.
        curvatures: of the quadratic, ``(d,)``.
        squares: of the errors at the start, ``(d,)``.
        noise: variance of an example's gradient, over the curvature.
        batch: examples of a step.
        share: of the best step.
        target: the risk over that of the start.
        shape: groups, and runs of a group.
        fading: whether the variance is proportional to the risk, and not constant.
    """
    errors = np.tile(np.sqrt(squares), (*shape, 1))
    spread = np.sqrt(noise * curvatures / batch)
    # tr HΣ/b = Σ λ · σ²λ/b
    jitter = float(spread**2 @ curvatures)
    risks = lambda errors: (errors**2 @ curvatures).mean(1)
    first = risks(errors)
    previous = first
    counts = np.full(shape[0], np.nan)
    for step in range(LONGEST):
        left = previous / first if fading else np.ones(shape[0])
        size = share * best_steps(errors, curvatures, left * jitter)
        deviations = np.sqrt(left)[:, None, None] * spread * rng.standard_normal(errors.shape)
        errors = errors - size[:, None, None] * (errors * curvatures + deviations)
        current = risks(errors)
        crossed = np.isnan(counts) & (current <= target * first)
        part = np.log(previous / (target * first)) / np.log(previous / current)
        counts = np.where(crossed, step + part, counts)
        if not np.isnan(counts).any():
            break
        previous = current
    return counts


def constant_steps(
    curvatures: NDArray, squares: NDArray, noise: float, batch: float, target: float
) -> float:
    """Return the steps in the mean with the best step size that is the same throughout.

    Squares of errors tend to those of a steady state by a factor (1 − ηλ)² a step.
    """
    sizes = np.geomspace(1e-4, 1.9, 400)[:, None] / curvatures.max()
    factors = (1 - sizes * curvatures) ** 2
    # D ← (1 − ηλ)²D + η²σ²λ/b has the fixed point η²σ²λ/b/(1 − (1 − ηλ)²)
    steady = sizes**2 * noise * curvatures / batch / (1 - factors)
    first = curvatures @ squares
    risk = lambda count: (steady + (squares - steady) * factors ** count[:, None]) @ curvatures
    low = np.zeros(len(sizes))
    high = np.full(len(sizes), float(LONGEST))
    for _ in range(50):
        middle = (low + high) / 2
        above = risk(middle) > target * first
        low = np.where(above, middle, low)
        high = np.where(above, high, middle)
    arrives = steady @ curvatures < target * first
    return float(high[arrives].min())


def critical(batches: NDArray, counts: NDArray) -> NDArray:
    """Fit counts of steps, ``(..., batches)``, by s + e/b with small relative errors, and return e/s."""
    columns = np.stack([np.ones(len(batches)), 1 / batches], 1)
    fits = np.empty(counts.shape[:-1])
    for place in np.ndindex(fits.shape):
        # residuals over the counts: relative errors weigh alike
        relative = columns / counts[place][:, None]
        constant, slope = np.linalg.lstsq(relative, np.ones(len(batches)), rcond=None)[0]
        fits[place] = slope / constant
    return fits
