"""When softmax regression gives the word that follows a half of the probability, from zero weights.

One word follows each. Its score rises above the others' by a gap y, alike for all, so that P = 1/(1 + (V − 1)e^(−y)):
a half at y = log(V − 1). A word is in the batch a share c of the time, with mean π.
"""

import numpy as np

from steepest.nn.types import Values


def frequencies(vocabulary: int, alpha: float) -> Values:
    """Return Zipf's π_k ∝ k^(−α), ``(vocabulary,)``.

    >>> frequencies(3, 1.0).round(4).tolist()
    [0.5455, 0.2727, 0.1818]
    """
    sizes = np.arange(1, vocabulary + 1) ** -float(alpha)
    return sizes / sizes.sum()


def descent_steps(vocabulary: int, chance: Values, eta: float) -> Values:
    """Return steps of descent for words of some frequencies: dy/dt = ηπ(1 − P)V/(V − 1), integrated."""
    others = vocabulary - 1
    # 1/(1 − P) = 1 + e^y/(V − 1), from 0 to log(V − 1)
    travelled = np.log(others) + (others - 1) / others  # ∫dy/(1 − P)
    return travelled * others / vocabulary / (eta * chance)


def descent_steps_at_first_pull(vocabulary: int, chance: Values, eta: float) -> Values:
    """Return the steps of descent if the gradient stayed as large as it is at first."""
    others = vocabulary - 1
    return np.log(others) * others / vocabulary / (eta * chance)


def moments(batch: int, chance: Values) -> Values:
    """Return E c, E c², E c³, E c⁴ of the share c of a word in a batch, ``(4, words)``.

    A count's power is a sum of falling factorials, whose means are those of the batch times powers of π.
    """
    falling = [np.prod(batch - np.arange(order)) * chance**order for order in range(1, 5)]
    first, second, third, fourth = falling
    # E n^k = Σ_j S(k, j) E n(n − 1)…(n − j + 1), with Stirling's numbers of the second kind
    of_count = [
        first,
        second + first,
        third + 3 * second + first,
        fourth + 6 * third + 7 * second + first,
    ]
    powers = float(batch) ** np.arange(1, 5)
    return np.array(of_count) / powers[:, None]


def update(batch: int, chance: Values) -> Values:
    """Return E c / √E c², Adam's update over η in the limit of long averages, ``(words,)``.

    It is 1/√(1 + (1 − π)/bπ).
    """
    mean, square, _, _ = moments(batch, chance)
    return mean / np.sqrt(square)


def fluctuation(batch: int, chance: Values, beta1: float, beta2: float) -> Values:
    """Return by what part E m/√v exceeds E m / √E v, as averages fluctuate, to the next order, ``(words,)``.

    It is ⅜ Var v / (E v)² − ½ Cov(m, v) / (E m E v), and both averages are geometric.
    """
    mean, square, cube, fourth = moments(batch, chance)
    # weights (1 − β)β^k of averages: Σ of squares is (1 − β)/(1 + β), of products of two
    # (1 − β₁)(1 − β₂)/(1 − β₁β₂)
    of_v = (1 - beta2) / (1 + beta2) * (fourth / square**2 - 1)
    of_both = (1 - beta1) * (1 - beta2) / (1 - beta1 * beta2) * (cube / (mean * square) - 1)
    # second order of m v^(−½): ½ · ¾ Var v/(E v)² and −½ Cov(m, v)/(E m E v)
    return 3 / 8 * of_v - of_both / 2


def lag(vocabulary: int, beta1: float, beta2: float) -> float:
    """Return the steps that Adam loses because v remembers larger gradients than m does.

    An average lags by β/(1 − β) steps. The gradient falls like 1 − P, so by P dy in logarithm, and
    ∫P dy = log(2(V − 1)/V).
    """
    behind = beta2 / (1 - beta2) - beta1 / (1 - beta1)
    return behind * float(np.log(2 * (vocabulary - 1) / vocabulary))


def adam_steps(
    vocabulary: int, chance: Values, batch: int, eta: float, beta1: float, beta2: float
) -> Values:
    """Return steps of Adam for words of some frequencies: the right score rises and the others fall, by η each."""
    # the right score and another move apart by η each
    rate = 2 * eta * update(batch, chance)
    rate = rate * (1 + fluctuation(batch, chance, beta1, beta2))
    return np.log(vocabulary - 1) / rate + lag(vocabulary, beta1, beta2)
