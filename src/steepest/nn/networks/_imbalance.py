"""The imbalance of neighbouring layers of a linear network, which gradient flow conserves."""

from itertools import pairwise
from typing import Any

from steepest.core.errors import UserError
from steepest.core.signatures import checked
from steepest.nn.types import Params


@checked
def imbalance(params: Params) -> list[Any]:
    """Return ``D_l = W_{l+1}ᵀW_{l+1} − W_l W_lᵀ`` of each pair of neighbouring layers.

    Gradient flow on any loss of the product ``W_L⋯W_1`` conserves each. For two layers ``W_2 = U``, ``W_1 = Vᵀ`` it is
    ``UᵀU − VᵀV``; of a network with homogeneous activations only the diagonal is conserved. Zero is *balanced*.

    Args:
        params: layers ``{"w": (n_{l+1}, n_l)}``, first layer first, as of ``deep_linear``; leading axes are kept.

    Returns:
        matrices of shape ``(…, n_l, n_l)``, one for each hidden layer.

    Raises:
        UserError: fewer than two layers, or layers with a bias.

    Source: Arora, Cohen and Hazan 2018; Vidal's talk, theorem 1.

    >>> import numpy as np
    >>> imbalance(({"w": np.array([[1.0], [0.0]])}, {"w": np.array([[2.0, 0.0]])}))
    [array([[3., 0.],
           [0., 0.]])]
    """
    if len(params) < 2 or any(set(layer) != {"w"} for layer in params):
        raise UserError(
            "imbalance: expected at least two layers with a weight matrix 'w' and no bias, got "
            f"{[sorted(layer) for layer in params]}; try deep_linear(…) or bias=False"
        )
    return [
        after["w"].swapaxes(-1, -2) @ after["w"] - before["w"] @ before["w"].swapaxes(-1, -2)
        for before, after in pairwise(params)
    ]
