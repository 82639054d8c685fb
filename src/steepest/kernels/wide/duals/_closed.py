"""Expectations in a closed form of both variances and the covariance."""

from dataclasses import dataclass
from typing import Any

import jax.numpy as jnp
import numpy as np
from jaxtyping import Array
from numpy.typing import NDArray

from steepest.kernels.duals._expectations import single_moments
from steepest.kernels.wide.duals._bounds import Bends, Singles, Tolerances
from steepest.kernels.wide.duals._tables import FLOOR, moment_table, third_table
from steepest.nn.activations import Activation, DualForm, closed_form, gaussian_mean


@dataclass(frozen=True)
class Closed:
    """σ with a closed form of both variances and the covariance.

    Attributes:
        activation: σ.
    """

    activation: Activation

    @property
    def form(self) -> DualForm:
        """Return the closed form."""
        form = closed_form(self.activation)
        assert form is not None
        return form

    def tolerances(self, eps: float) -> Tolerances:
        """Return its errors in an arithmetic of this precision."""
        return Tolerances(64 * eps, 64 * eps)

    def singles(self, variances: NDArray[np.float64]) -> Singles:
        """Return expectations at single positions."""
        value, slope = single_moments(self.activation, variances.ravel())
        high = float(variances.max())
        low = max(float(variances.min()), FLOOR * high)
        curvature, mean = np.moveaxis(moment_table(self.activation, low, high).at(variances), -1, 0)
        shape = variances.shape
        return Singles(value.reshape(shape), slope.reshape(shape), curvature, mean)

    def bends(self, variances: NDArray[np.float64]) -> Bends:
        """Return how both expectations change with a variance."""
        high = float(variances.max())
        low = max(float(variances.min()), FLOOR * high)
        third = third_table(self.activation, low / 1.05, high * 1.05).at(variances)[..., 0]
        return Bends(self.singles(variances).curvature, third)

    def moments(self, variances: Array, xp: Any) -> tuple[Any, Any, Any]:
        """Return E σ², E σ'² and E σ, in JAX."""
        del xp
        value, slope = self.pair(variances, [variances], [variances])
        mean = gaussian_mean(self.activation.function, variances, self.activation.kinks).value
        return value, slope, mean

    @property
    def pairing(self) -> "Closed":
        """Return what programs are compiled for: all of it."""
        return self

    @property
    def arrays(self) -> int:
        """Count the arrays of ``sides``."""
        return 1

    def sides(self, variances: Any, xp: Any = np) -> list[Any]:
        """Return what a pair needs of each position: its variance."""
        del xp
        return [variances]

    def pair(self, k: Array, one: list[Array], two: list[Array]) -> tuple[Array, Array]:
        """Compute ``E σ(u)σ(v)`` and ``E σ'(u)σ'(v)``."""
        largest = jnp.sqrt(one[0] * two[0])
        return self.form(one[0], two[0], jnp.clip(k, -largest, largest))
