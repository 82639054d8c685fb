"""One pass of SGD and of exponentiated gradient over samples, and their risk where the label is one coordinate."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from steepest.core.errors import UserError
from steepest.nn.types import Values


def increasing(name: str, numbers: Sequence[int], count: int) -> None:
    """Refuse a field that is not so many numbers in increasing order."""
    if len(numbers) < count or (np.diff(numbers) <= 0).any():
        raise UserError(
            f"{name} must be {count} numbers or more in increasing order, to compare their excess risks; "
            f"got {[*numbers]}; try 8 64 256"
        )


def hinge(margins: Values) -> Values:
    """Return max(0, 1 − margin)."""
    return np.maximum(0, 1 - margins)


def sgd(x: Values, y: Values, radius: float) -> Values:
    """Pass once over each sample by SGD on the hinge loss, at η = B/(√d √n); return the average iterate.

    Args:
        x: inputs of length √d, shape ``(seeds, n, d)``.
        y: labels ±1, shape ``(seeds, n)``.
        radius: B, of the ℓ2 ball that is competed with.

    Returns:
        the mean of the iterates before each step, shape ``(seeds, d)``.
    """
    seeds, n, d = x.shape
    lr = radius / np.sqrt(d * n)
    weights = np.zeros((seeds, d))
    total = np.zeros((seeds, d))
    for t in range(n):
        total += weights
        # the hinge loss has the subgradient −yx where the margin is below one, else zero
        wrong = y[:, t] * (x[:, t] * weights).sum(1) < 1
        weights += lr * (wrong * y[:, t])[:, None] * x[:, t]
    return total / n


def exponentiated(x: Values, y: Values, radius: float) -> Values:
    """Pass once over each sample by exponentiated gradient with signs, η = √(2 log 2d/n); return the average iterate.

    The weights are B (p⁺ − p⁻) with p± ∝ exp(±θ) on 2d coordinates, and θ sums the subgradients: mirror descent by
    relative entropy, with losses divided by B.

    Args:
        x: inputs of size ±1, shape ``(seeds, n, d)``.
        y: labels ±1, shape ``(seeds, n)``.
        radius: B, of the ℓ1 ball that is competed with.

    Returns:
        the mean of the iterates before each step, shape ``(seeds, d)``.
    """
    seeds, n, d = x.shape
    lr = np.sqrt(2 * np.log(2 * d) / n)
    theta = np.zeros((seeds, d))
    total = np.zeros((seeds, d))
    for t in range(n):
        # the largest of ±θ is taken off both exponents against overflow: it cancels in the weights
        largest = np.abs(theta).max(1, keepdims=True)
        up = np.exp(theta - largest)
        down = np.exp(-theta - largest)
        weights = radius * (up - down) / (up + down).sum(1, keepdims=True)
        total += weights
        wrong = y[:, t] * (x[:, t] * weights).sum(1) < 1
        theta += lr * (wrong * y[:, t])[:, None] * x[:, t]
    return total / n


def signs(rng: np.random.Generator, *shape: int) -> Values:
    """Return independent signs ±1."""
    return 2 * rng.integers(0, 2, shape, dtype=np.int8) - 1


@dataclass(frozen=True)
class OneCoordinate:
    """Samples whose label is the first coordinate of inputs of entries ±X, and their flips.

    Attributes:
        seeds: independent samples.
        test: fresh examples for each population risk.
        flipped: share of labels flipped, in the noisy half of the runs.
        scale: X.
    """

    seeds: int
    test: int
    flipped: float
    scale: float

    def excess(
        self, rng: np.random.Generator, d: int, n: int, only: str = "", repeats: int = 1
    ) -> dict[str, Values]:
        """Return excess risks, ``(seeds, flips)``, and of SGD without flips its training risk and the sample.

        The population risk is a mean over fresh inputs and, exactly, over the flips of their labels.

        Args:
            rng: of the samples.
            d: dimension.
            n: examples.
            only: ``"sgd"`` or ``"eg"`` for one of the methods, without flips.
            repeats: times that an example is shown in a row.
        """
        rows = np.repeat(signs(rng, self.seeds, -(-n // repeats), d), repeats, axis=1)[:, :n]
        x = self.scale * rows
        clean = np.sign(x[..., 0])
        flips = np.where(rng.random(clean.shape) < self.flipped, -1, 1)[:, ::repeats]
        flips = np.repeat(flips, repeats, axis=1)[:, :n]
        fresh = self.scale * signs(rng, self.seeds, self.test, d)
        right = np.sign(fresh[..., 0])
        out: dict[str, Values] = {"x": x, "labels": clean}
        noises = [(clean, 0.0)] if only else [(clean, 0.0), (clean * flips, self.flipped)]
        for name, learn in (("sgd", sgd), ("eg", exponentiated)):
            if only not in ("", name):
                continue
            columns = []
            for labels, share in noises:
                weights = learn(x, labels, 1.0)
                margins = right * np.einsum("smd,sd->sm", fresh, weights)
                risk = (1 - share) * hinge(margins) + share * hinge(-margins)
                columns.append(risk.mean(1) - 2 * share)
                if name == "sgd" and not share:
                    out["train"] = sample_risk(x, labels, weights)
            out[name] = np.stack(columns, 1)
        return out


def sample_risk(x: Values, labels: Values, weights: Values) -> Values:
    """Return the hinge loss of weights on their sample, ``(seeds,)``."""
    return hinge(labels * np.einsum("snd,sd->sn", x, weights)).mean(1)
