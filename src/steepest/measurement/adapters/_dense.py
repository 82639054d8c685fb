"""One layer of a chain of dense layers, in NumPy."""

from typing import NamedTuple

from jaxtyping import Float
from numpy import ndarray


class Dense(NamedTuple):
    """One dense layer, ``σ(W h + b)``.

    Attributes:
        name: of the layer, as ``Subject.layers`` calls it.
        matrix: W as it acts, with the multiplier of its parameterization, shape ``(out, inp)``.
        bias: b, shape ``(out,)``, or None.
        activation: name of σ, for ``steepest.nn.activations.activation``; ``"linear"`` where there is none.
    """

    name: str
    matrix: Float[ndarray, "out inp"]
    bias: Float[ndarray, " out"] | None
    activation: str
