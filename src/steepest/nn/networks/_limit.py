"""Networks whose hidden widths go to infinity: a description that `steepest.kernels` evaluates."""

from dataclasses import dataclass, field
from functools import partial
from typing import NamedTuple

import jax

from steepest.nn.activations import Activation


class LayerLimit(NamedTuple):
    """One layer z' = b + W σ(z), or z' = b + W x for the first, in the limit.

    Attributes:
        c_w: variance of the effective weights times fan-in: how strongly the layer passes signals on.
        c_b: variance of the biases.
        t_w: what training the weights adds to the tangent kernel, in units of the mean of σσ over the neurons: the
            squared multiplier times fan-in.
        t_b: what training the biases adds: 1, or 0 without biases.
    """

    c_w: float
    c_b: float
    t_w: float
    t_b: float


@partial(
    jax.tree_util.register_dataclass,
    data_fields=["layers", "skip"],
    meta_fields=["activation", "normalized", "name", "inputs"],
)
@dataclass(frozen=True)
class Limit:
    """An infinitely wide fully connected network: pass it to ``nngp``, ``ntk`` or ``gram`` of ``steepest.kernels``.

    The kernels follow, with ``G = <x, x'>/n_0`` and expectations under the pair Gaussian of covariance K^(l)::

        K^(1) = c_b + c_w G                    Θ^(1) = t_b + t_w G
        K^(l+1) = r² K^(l) + c_b + c_w E σσ    Θ^(l+1) = r² Θ^(l) + t_b + t_w E σσ + c_w E σ'σ' Θ^(l)

    where r is ``skip`` (0 at the output). With ``normalized``, σ sees pre-activations divided by their deviation over
    the layer: K^(l) and Θ^(l) are divided by √(K_αα K_ββ) in the expectations and in their product with E σ'σ'.

    JAX sees the coefficients of layers and the skip as leaves, so that kernels can be differentiated by them.

    Attributes:
        activation: σ.
        layers: one for each weight matrix, first to last.
        skip: factor r of the residual branch z' = r z + b + W σ(z) between hidden layers; 0 without.
        normalized: whether layer normalization stands before σ.
        name: how pages and tables call it.
        inputs: n_0, so that inputs of another dimension are refused; None where it is not known. The kernels do not
            depend on it.

    Source: ORF 543, lectures 9/14 and 10/10; Jacot, Gabriel and Hongler 2018; Lee et al. 2018.
    """

    activation: Activation
    layers: tuple[LayerLimit, ...]
    skip: float = 0.0
    normalized: bool = False
    name: str = "infinitely wide network"
    inputs: int | None = field(default=None, compare=False)

    @property
    def depth(self) -> int:
        """Count the hidden layers."""
        return len(self.layers) - 1

    def kept(self, layer: int) -> float:
        """Return the share r² of K and Θ that a residual branch carries past this layer; 0 in first and last."""
        return self.skip**2 if 0 < layer < self.depth else 0.0
