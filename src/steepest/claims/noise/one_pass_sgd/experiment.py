"""One pass of SGD and of exponentiated gradient over samples, and problems that take half of their bounds."""

import numpy as np

from steepest.nn.types import Values

PASSES = 1000  # over a sample, at most, until weights fit it
SMALL = 0.1  # B of the hardest problems: margins stay below one, where the hinge loss is a line


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


def perceptron(x: Values, y: Values) -> Values:
    """Return weights of hinge loss zero on each sample, which w* with margins of one can fit.

    Steps w → w + yx wherever y⟨w, x⟩ < 1, pass after pass. ⟨w, w*⟩ grows by one a step at least and ‖w‖² by d + 2 at
    most, so that there are at most (d + 2)‖w*‖² steps in all.

    Args:
        x: inputs, shape ``(seeds, n, d)``.
        y: labels ±1, shape ``(seeds, n)``.

    Returns:
        shape ``(seeds, d)``.
    """
    weights = np.zeros((len(x), x.shape[-1]))
    for i, (inputs, labels) in enumerate(zip(x, y, strict=True)):
        signed = labels[:, None] * inputs
        w = weights[i]
        for _ in range(PASSES):
            steps = 0
            for row in signed:
                if row @ w < 1:
                    w += row
                    steps += 1
            if not steps:
                break
    return weights


def hard_for_sgd(rng: np.random.Generator, seeds: int, n: int, d: int, told_by: int) -> Values:
    """Return SGD's excess over the ball where each example tells one coordinate's sign, barely; shape ``(seeds,)``.

    Inputs are √d e_i and labels s_i with a bias δ = √(d/n'), which n' examples tell. In the ball of a small B the hinge
    loss is a line, and the best weights are B s/√d.
    """
    bias = np.sqrt(d / told_by)
    places = rng.integers(0, d, (seeds, n))
    x = np.zeros((seeds, n, d))
    np.put_along_axis(x, places[..., None], np.sqrt(d), 2)
    signs = rng.choice([-1.0, 1.0], (seeds, d))
    y = np.take_along_axis(signs, places, 1) * _biased(rng, bias, (seeds, n))
    margins = np.sqrt(d) * signs * sgd(x, y, SMALL)
    # labels agree with s_i with chance (1 + δ)/2, whatever the coordinate: (seeds, d)
    risk = (1 + bias) / 2 * hinge(margins) + (1 - bias) / 2 * hinge(-margins)
    # B s/√d has margins ±B with these chances, and so the risk 1 − δB
    return risk.mean(1) - (1 - SMALL * bias)


def hard_for_exponentiated(
    rng: np.random.Generator, seeds: int, n: int, d: int, told_by: int
) -> Values:
    """Return its excess over the ball where one coordinate of d tells the label, barely; shape ``(seeds,)``.

    Labels agree with x_1 with a bias δ = √(2 log 2d/n'), which n' examples tell; the best weights are B e_1, and the
    loss is a line.
    """
    bias = np.sqrt(2 * np.log(2 * d) / told_by)
    x = 2 * rng.integers(0, 2, (seeds, n, d), dtype=np.int8) - 1
    y = x[..., 0] * _biased(rng, bias, (seeds, n))
    weights = exponentiated(x, y, SMALL)
    # |⟨w, x⟩| ≤ B < 1: the population's loss is 1 − δ w_1
    return bias * (SMALL - weights[:, 0])


def _biased(rng: np.random.Generator, bias: float, shape: tuple[int, ...]) -> Values:
    """Return signs of mean ``bias``."""
    return np.where(rng.random(shape) < (1 + bias) / 2, 1.0, -1.0)
