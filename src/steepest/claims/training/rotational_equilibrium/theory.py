"""Where weight decay and the gradients of a scale-invariant weight balance: by how much it turns a step, and its norm.

The gradient at a weight whose length does not matter stands at right angles to it, and its size is c/‖w‖. Gradients of
successive steps are taken as independent. Then each coordinate of w follows w_{t+1} = φ₁w_t + φ₂w_{t−1} + e_t, with e
the new gradient times its factor, so that Var w = (1 − φ₂)/((1 + φ₂)((1 − φ₂)² − φ₁²)) Var e, and the cosine of
successive weights is φ₁/(1 − φ₂).
"""

from typing import NamedTuple

import numpy as np

from steepest.nn.types import Values


class Balance(NamedTuple):
    """The recursion of one optimizer at some ηλ, arrays of their shape.

    Attributes:
        first: φ₁.
        second: φ₂.
    """

    first: Values
    second: Values

    @property
    def angle(self) -> Values:
        """Return by how much the direction turns a step, in radians."""
        return np.arccos(self.first / (1 - self.second))

    @property
    def gain(self) -> Values:
        """Return Var w/Var e."""
        # variance of an autoregression of order two
        inner = (1 - self.second) ** 2 - self.first**2
        return (1 - self.second) / ((1 + self.second) * inner)


def momentum(decay: Values, beta: float) -> Balance:
    """Return that of descent whose gradients have λw, with v ← βv + g + λw: φ₁ = 1 + β − ηλ, φ₂ = −β.

    The cosine is 1 − ηλ/(1 + β), and the angle near √(2ηλ/(1 + β)); without momentum near √(2ηλ).

    >>> round(float(momentum(np.array(0.005), 0.0).angle), 4)
    0.1
    """
    return Balance(1 + beta - decay, -beta + 0 * decay)


def adamw(decay: Values, beta1: float) -> Balance:
    """Return that of w ← (1 − ηλ)w − ηm/√v, with m ← β₁m + (1 − β₁)g: φ₁ = 1 − ηλ + β₁, φ₂ = −(1 − ηλ)β₁.

    The cosine is 1 − ηλ(1 − β₁)/(1 + (1 − ηλ)β₁), and the angle near √(2ηλ(1 − β₁)/(1 + β₁)).
    """
    kept = 1 - decay
    return Balance(kept + beta1, -kept * beta1)


def square_of_descent(balance: Balance, eta: float, c: Values) -> Values:
    """Return ‖w‖², of ‖w‖² = gain · η²c²/‖w‖².

    Args:
        balance: of the optimizer.
        eta: η.
        c: ‖w‖ times the size of gradients.
    """
    # ‖w‖⁴ = gain · η²c²
    return eta * c * np.sqrt(balance.gain)


def square_of_adamw(balance: Balance, eta: float, beta1: float, weights: int) -> Values:
    """Return ‖w‖² with e of the size (1 − β₁)η in n − 1 directions, whatever the gradients; near ηn/2λ."""
    return ((1 - beta1) * eta) ** 2 * (weights - 1) * balance.gain
