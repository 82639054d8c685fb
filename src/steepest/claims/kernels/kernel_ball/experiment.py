"""The least weights that leave random hidden neurons and fit labels."""

from collections.abc import Callable, Sequence

import numpy as np

from steepest import kit


def least_weights(
    sigma: Callable[[kit.Values], kit.Values],
    x: kit.Values,
    y: kit.Values,
    neurons: Sequence[int],
    networks: int,
    rng: np.random.Generator,
    copies: int = 1,
) -> kit.Values:
    """Return ‖u‖² of the least u for which Σ_j u_j σ(⟨w_j, x_i⟩)/√n is y_i, with n Gaussian neurons of each network.

    Args:
        sigma: σ, on arrays.
        x: inputs, one a row, shape ``(m, d)``.
        y: labels, shape ``(m,)``.
        neurons: every n, a multiple of ``copies``; fewer are the first of them.
        networks: how many.
        rng: of the weights into the neurons.
        copies: how many neurons of a network are equal.

    Returns:
        Shape ``(networks, neurons)``.
    """
    # Gaussian weights see no more than the angles between the inputs
    turned = np.linalg.qr(x.T, mode="r")
    weights = rng.standard_normal((networks, max(neurons) // copies, len(turned)))
    features = np.repeat(np.asarray(sigma(weights @ turned)), copies, axis=1)
    squares = np.empty((networks, len(neurons)))
    for place, n in enumerate(neurons):
        active = features[:, :n] / np.sqrt(n)
        gram = active.swapaxes(1, 2) @ active
        # least norm: u = A (AᵀA)⁻¹y, with the features A of shape (n, m), over √n
        least = active @ np.linalg.solve(gram, np.broadcast_to(y[:, None], (networks, len(y), 1)))
        squares[:, place] = (least**2).sum((1, 2))
    return squares
