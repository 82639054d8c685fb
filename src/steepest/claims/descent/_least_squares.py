"""Least squares of given condition numbers and of two real sets, and exact descents on them, with momentum or not."""

from dataclasses import dataclass
from typing import Annotated, NamedTuple

import numpy as np

from steepest import kit
from steepest.nn.data import breast_cancer
from steepest.nn.types import Values

TARGET = 1e-6
"""Relative distance that is counted to."""


class Setting(NamedTuple):
    """Problems, one per seed for each κ, and problems from real data."""

    grams: Values  # H = XXᵀ, (kappa, seed, d, d)
    starts: Values  # θ_0 − θ*, (kappa, seed, d)
    real: tuple[Values, ...]  # H of diabetes and of breast cancer
    real_starts: tuple[Values, ...]


@dataclass(frozen=True)
class LeastSquares(kit.Claim[Setting]):
    """Random least squares of given condition number, diabetes and breast cancer."""

    kappas: tuple[Annotated[float, kit.Within(4)], ...] = kit.param(
        (10.0, 30.0, 100.0, 300.0, 1000.0),
        "κ",
        scope=kit.choices((10.0, 30.0, 100.0, 300.0, 1000.0), (20.0, 80.0, 400.0, 1200.0)),
    )
    dimension: Annotated[int, kit.Within(2)] = kit.param(20, "d", scope=kit.between(12, 30))
    seeds: kit.Seeds = kit.param(24, "problems of each condition")
    horizon: kit.Count = kit.param(12, "steps in units of κ, and of √κ with momentum")

    def setting(self, key):
        rng = kit.numpy_generator(key)
        size = self.dimension
        shape = (len(self.kappas), self.seeds, size)
        turns = np.linalg.qr(rng.standard_normal((*shape, size)))[0]
        spectra = np.array([np.geomspace(1 / kappa, 1, size) for kappa in self.kappas])
        grams = np.einsum("ksij,kj,kslj->ksil", turns, spectra, turns)
        real = []
        for x in (diabetes(), np.asarray(breast_cancer().x)):
            gram = x.T @ x / len(x)
            real.append(gram / np.linalg.eigvalsh(gram)[-1])
        starts = tuple(rng.standard_normal(len(gram)) for gram in real)
        return Setting(grams, rng.standard_normal(shape), tuple(real), starts)

    def have_arrived(self, counts: Values) -> kit.Hypothesis:
        """Return the condition that all descents came to ``TARGET``."""
        arrived = np.isfinite(counts).mean()
        return kit.assume(
            "share of descents that came to 1e-6", arrived, "==", 1, "raise --horizon"
        )


def follow(
    gram: Values, start: Values, step: float, momentum: float, steps: int, nesterov: bool = False
) -> Values:
    """Descend on ½(θ − θ*)ᵀ H (θ − θ*) for several problems at once, and return ‖θ_t − θ*‖.

    Args:
        gram: H of each problem, shape ``(problems, d, d)``.
        start: θ_0 − θ*, shape ``(problems, d)``.
        step: η.
        momentum: β.
        steps: how many.
        nesterov: whether the gradient is taken after the momentum's step.

    Returns:
        distances, shape ``(problems, steps + 1)``.
    """
    state = (start, start)
    lengths = np.empty((steps + 1, len(start)))
    for t in range(steps + 1):
        now, before = state
        lengths[t] = np.sqrt((now**2).sum(1))
        push = momentum * (now - before)
        at = now + push if nesterov else now
        slope = (gram @ at[..., None])[..., 0]
        state = (now + push - step * slope, now)  # θ + β(θ − θ₋) − η∇R
    return lengths.T


def steps_to_target(path: Values) -> Values:
    """Return the step from which each distance stays below ``TARGET`` of its first; infinite where there is none."""
    above = path > TARGET * path[:, :1]
    last = above.shape[1] - np.argmax(above[:, ::-1], axis=1)
    return np.where(above[:, -1], np.inf, last.astype(float))


def diabetes() -> Values:
    """Return the standardized inputs of scikit-learn's diabetes set, 442 × 10."""
    from sklearn.datasets import load_diabetes

    x = np.asarray(load_diabetes(return_X_y=True)[0], float)
    return (x - x.mean(0)) / x.std(0)
