"""ReLU networks that look bits up in a table: more labels than the network has weights."""

from collections.abc import Sequence
from typing import Any

import numpy as np
from jaxtyping import Bool

from steepest.core.errors import UserError
from steepest.core.signatures import checked
from steepest.geometry._layers import Layer, relu_layers


@checked
def bit_reader(table: Bool[Any, "m n"], width: float = 1.0) -> list[Layer]:
    """Build a ReLU network that reads bit (i, j) of a table, from about 3m + 23n weights for its m n bits.

    Row i is kept as one number, ``α_i = Σ_j bit_ij 2^(−j−1)``, and a piecewise linear function of i goes through all
    α_i. Each further layer takes the first bit off: it is ``(σ(r − ½ + δ) − σ(r − ½))/δ``, exact for multiples r of δ,
    and what is left is ``2r − bit``. The bit is added to the output if its number is j, as ``σ(bit − |j − t|)``.
    Everything is exact in double precision while n and twice log₂ m have some 50 bits together: see
    :func:`bits_needed`.

    Args:
        table: the bits, shape ``(m, n)``, at least two rows and two columns.
        width: of the steps that take bits off, in units of δ. Only up to 1 are the bits right.

    Returns:
        n + 3 hidden layers, and the output; the inputs are i = 0, …, m − 1 and j = 0, …, n − 1.

    Raises:
        UserError: if the table is too small, or not of bits.

    Source: Bartlett, Harvey, Liaw and Mehrabian 2019, theorem 3, after Bartlett, Maiorov and Meir 1998.

    >>> from steepest.geometry import preactivations
    >>> network = bit_reader([[1, 0, 0], [0, 1, 1]])
    >>> places = np.array([[0.0, 0.0], [0.0, 1.0], [1.0, 1.0], [1.0, 2.0]])
    >>> preactivations(network, places)[-1].ravel().tolist()
    [1.0, 0.0, 1.0, 1.0]
    """
    bits = np.asarray(table)
    if bits.ndim != 2 or min(bits.shape) < 2 or not np.isin(bits, (0, 1)).all():
        raise UserError(
            f"bit_reader: expected a table of zeros and ones with two rows and columns or more, got shape {bits.shape}"
        )
    m, n = bits.shape
    numbers = bits @ 2.0 ** -np.arange(1, n + 1)  # α_i = Σ_j bit_ij 2^(−j−1)
    slopes = np.diff(numbers)
    # changes of slope: α_i = α_0 + Σ_k bends_k σ(i − k)
    bends = np.append(slopes[:1], np.diff(slopes))
    kinks = np.arange(m - 1.0)
    # (i, j) to the ramps σ(i − k) and j
    weights = [np.vstack([np.tile([1.0, 0.0], (m - 1, 1)), [0.0, 1.0]])]
    biases = [np.append(-kinks, 0.0)]
    # to r = α_i and j
    weights.append(np.vstack([np.append(bends, 0.0), np.append(0 * bends, 1.0)]))
    biases.append(np.array([numbers[0], 0.0]))
    # δ before bit t: the r left over are multiples of 2^(t − 1 − n)
    steps = width * 2.0 ** (np.arange(n) - n)
    # to u = σ(r − ½ + δ), u' = σ(r − ½), r, σ(j − t), σ(t − j), and the last bit and the sum, of which there are none
    weights.append(np.array([[1, 0], [1, 0], [1, 0], [0, 1], [0, -1], [0, 0], [0, 0]], float))
    biases.append(np.array([steps[0] - 0.5, -0.5, 0, 0, 0, 0, 0]))
    for t in range(1, n + 1):
        bit = np.array([1.0, -1.0, 0, 0, 0, 0, 0]) / steps[t - 1]  # (u − u')/δ
        left = 2 * np.eye(7)[2] - bit  # 2r − bit
        number = np.array([0, 0, 0, 1.0, -1.0, 0, 0])
        # bit − |j − t|: above zero at j = t alone, where it is the bit
        chosen = bit - np.abs(number)
        total = np.array([0, 0, 0, 0, 0, 1.0, 1.0])  # last bit and the sum until then
        if t < n:
            weights.append(np.stack([left, left, left, number, -number, chosen, total]))
            biases.append(np.array([steps[t] - 0.5, -0.5, 0, -1.0, 1.0, 0, 0]))
        else:
            weights.append(np.stack([chosen, total]))
            biases.append(np.zeros(2))
    weights.append(np.ones((1, 2)))
    biases.append(np.zeros(1))
    return relu_layers(weights, biases)


@checked
def bits_needed(rows: int, columns: int) -> float:
    """Return how many binary digits the sums of a :func:`bit_reader` have at most; doubles hold 53.

    The second differences of α are multiples of 2^(−n) below 4, and the largest sum of ramps is below 4 m²/2.

    >>> bits_needed(192, 24)
    40.16992500144231
    """
    return columns + 1 + 2 * float(np.log2(rows))


@checked
def weights_used(layers: Sequence[Layer]) -> int:
    """Count the weights and biases that are not zero.

    >>> table = np.random.default_rng(0).integers(0, 2, (8, 12))
    >>> weights_used(bit_reader(table)), 3 * 8 + 23 * 12 - 10
    (290, 290)
    """
    return int(
        sum(np.count_nonzero(part) for layer in layers for part in (layer.matrix, layer.bias))
    )
