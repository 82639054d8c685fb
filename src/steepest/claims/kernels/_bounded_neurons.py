"""Random hidden layers with a bounded odd activation, on orthonormal inputs and on digits of unit length."""

from dataclasses import dataclass
from typing import NamedTuple

import jax.numpy as jnp
import numpy as np

from steepest import kit
from steepest.kernels import hidden_kernel
from steepest.nn.activations import activation, gaussian_mean
from steepest.nn.data import digits
from steepest.nn.types import Values

SETS = ("orthonormal inputs", "digits")


class Setting(NamedTuple):
    """Unit inputs of each set and their expected kernels, as many as the largest size; smaller sizes are corners."""

    inputs: tuple[Values, ...]  # (m, d) each
    expected: tuple[Values, ...]  # (m, m) each
    y: Values  # labels of the digits, (m,): −1 below five, and 1


@dataclass(frozen=True)
class BoundedNeurons(kit.Claim[Setting]):
    """Random hidden layers on orthonormal inputs and on digits of unit length."""

    activation: str = kit.param(
        "erf", "σ with |σ| ≤ 1", unit="name", scope=kit.choices("erf", "tanh", "sin")
    )

    def draw(self, key: kit.Key, largest: int) -> Setting:
        """Return so many inputs of each set, their expected kernels, and labels of the digits."""
        sigma = activation(self.activation)
        images = digits(n=largest, key=key)
        raw = np.asarray(images.x)
        inputs = (np.eye(largest), raw / np.linalg.norm(raw, axis=1, keepdims=True))
        expected = tuple(np.asarray(hidden_kernel(sigma, jnp.asarray(x)).value) for x in inputs)
        labels = np.where(np.asarray(images.y).argmax(1) < 5, -1.0, 1.0)
        return Setting(inputs, expected, labels)

    def hypotheses(self, setting):
        sigma = activation(self.activation)
        grid = np.linspace(-50, 50, 20_001)
        values = np.asarray(sigma(jnp.asarray(grid)))  # on a grid that is symmetric around zero
        size = np.abs(values).max()
        even = np.abs(values + values[::-1]).max()
        yield kit.assume("largest |σ|", size, "<=", 1, "choose a bounded --activation, such as erf")
        yield kit.assume("largest |σ(z) + σ(−z)|", even, "<=", 1e-12, "the exact U is for an odd σ")

    def moments(self) -> tuple[float, float]:
        """Return E σ² and E σ⁴ of a standard normal."""
        sigma = activation(self.activation)
        square = lambda z: sigma(z) ** 2
        power = lambda z: sigma(z) ** 4
        moments = lambda: [gaussian_mean(of, 1.0, sigma.kinks).value for of in (square, power)]
        second, fourth = kit.compiled(moments)()
        return float(second), float(fourth)
