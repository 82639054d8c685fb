"""Recommended initializations and the phase diagram of an activation."""

import math
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from steepest.core.errors import UserError
from steepest.kernels._arguments import as_floats
from steepest.kernels.duals._expectations import Vector
from steepest.kernels.finite._finite_width import finite_width
from steepest.kernels.signals._criticality import Criticality, criticality
from steepest.kernels.signals._depth_scales import depth_scales
from steepest.nn.activations import Activation, activation


@dataclass(frozen=True)
class Initialization:
    """The initialization that theory recommends for an activation; print it.

    Attributes:
        activation: its name.
        criticality: the critical initialization, or why there is none.
        width_per_layer: the relative standard deviation of the kernel after l layers of width n is about
            √(width_per_layer · l/n); nan without a critical initialization.
    """

    activation: str
    criticality: Criticality
    width_per_layer: float

    def __str__(self) -> str:
        c = self.criticality
        if not c.exists:
            return f"{self.activation}: no critical initialization. {c.reason}"
        biases = f"biases from N(0, {c.c_b:.8g})" if c.c_b else "biases zero"
        scale = (
            "any scale of the inputs"
            if c.any_k
            else f"inputs with C_b + C_W ‖x‖²/n_0 = {c.k_star:.8g}"
        )
        if c.k_star == 0:
            scale = "inputs of order one: the variance falls slowly with depth"
        return (
            f"{self.activation}: weights from N(0, {c.c_w:.8g}/fan_in), {biases}; {scale}.\n"
            f"In torch: torch.nn.init.normal_(layer.weight, std=({c.c_w:.8g}/layer.in_features)**0.5).\n"
            f"{c.reason} Class: {c.universality_class}.\n"
            f"Width: {self.width_per_layer / 0.01:.0f} neurons for each layer of depth keep the kernel of one random "
            "network within 10 % of its mean."
        )


def recommended_initialization(sigma: str | Activation) -> Initialization:
    """Recommend the critical initialization of an activation, in words and numbers.

    >>> print(recommended_initialization("relu"))
    relu: weights from N(0, 2/fan_in), biases zero; any scale of the inputs.
    In torch: torch.nn.init.normal_(layer.weight, std=(2/layer.in_features)**0.5).
    σ(λz) = λσ(z) with slopes 0 and 1: C_W = 2/(a₊² + a₋²) keeps every variance. Class: scale invariant.
    Width: 500 neurons for each layer of depth keep the kernel of one random network within 10 % of its mean.
    """
    sigma = activation(sigma)
    critical = criticality(sigma)
    if not critical.exists:
        return Initialization(sigma.name, critical, math.nan)
    start = 1.0 if critical.any_k or critical.k_star == 0 else critical.k_star
    # so wide that only the term of order 1/n is left, which grows with l/n
    width = 1e9
    depth = 32
    spread = finite_width(sigma, critical.c_w, critical.c_b, start, [int(width)] * depth)
    relative = float(spread.variance[-1] / spread.kernel[-1] ** 2)
    return Initialization(sigma.name, critical, relative * width / depth)


class PhaseDiagram(NamedTuple):
    """Where signals survive, over a grid of C_W (rows) and C_b (columns); nan where no variance is stable."""

    k_star: Vector
    """Fixed variance."""
    chi_perpendicular: Vector
    """Slope of the correlation map at equal inputs: below 1 ordered, above 1 chaotic."""
    correlation: Vector
    """Correlation that two inputs tend to."""
    depth: Vector
    """Depth scale ξ of the correlation, in layers."""


def phase_diagram(sigma: str | Activation, c_w: Vector, c_b: Vector) -> PhaseDiagram:
    """Map the phases of deep random networks of one activation.

    >>> diagram = phase_diagram("tanh", [0.8, 2.5], [0.05])
    >>> (diagram.chi_perpendicular > 1).tolist()  # order, chaos
    [[False], [True]]
    """
    sigma = activation(sigma)
    rows = []
    c_w, c_b = (as_floats(name, values).ravel() for name, values in (("c_w", c_w), ("c_b", c_b)))
    if not (c_w.size and c_b.size and np.isfinite(c_w).all() and np.isfinite(c_b).all()):
        raise UserError("a diagram needs at least one c_w and one c_b, all of them finite")
    for w in c_w:
        for b in c_b:
            try:
                s = depth_scales(sigma, float(w), float(b))
                rows.append((s.k_star, s.chi_perpendicular, s.correlation, s.xi_correlation))
            except UserError:
                rows.append((math.nan,) * 4)
    shape = (len(c_w), len(c_b))
    return PhaseDiagram(*(np.array(column).reshape(shape) for column in zip(*rows, strict=True)))
