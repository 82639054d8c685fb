"""Networks that are a chain of dense layers, of which theory says more: recognized, and compared with the model."""

from collections.abc import Callable, Sequence

import numpy as np
from numpy.typing import NDArray

from steepest.core.errors import UserError
from steepest.measurement.adapters import Dense, Subject

NEAR = 1000  # examples at which model and chain are compared
FAR = 32  # points away from the examples at which they are compared
LIPSCHITZ = {
    "tanh": 1.0,
    "softplus": 1.0,
    "elu": 1.0,
    "sigmoid": 0.25,
    "sin": 1.0,
    "cos": 1.0,
    "hard_tanh": 1.0,
    "erf": 1.1284,
    "gelu": 1.1290,
    "silu": 1.0999,
}


def chain(subject: Subject) -> list[Dense] | None:
    """Return the dense layers whose composition is the model, first layer first, or None if it is none.

    A model that says to be one is believed only if composing the layers gives its outputs, to rounding, at the
    examples and at some points far from them, so that nothing is hidden in its forward pass.
    """
    layers = subject.dense()
    if layers is None:
        return None
    x = subject.inputs()
    if not np.issubdtype(x.dtype, np.floating) or x[0].size != layers[0].matrix.shape[1]:
        return None
    noise = np.random.default_rng(0).standard_normal(x[:FAR].shape).astype(x.dtype)
    x = np.concatenate([x[:NEAR], x[:FAR] + 3 * (np.abs(x).max() or 1) * noise])
    outputs = np.asarray(subject.evaluate(x), float)
    signals = compose(layers, x)
    composed = activation_of(layers[-1])(signals[-1])
    if outputs.size != composed.size:
        return None
    size = max(float(np.abs(signal).max(initial=0)) for signal in signals)
    far = float(np.abs(outputs.reshape(composed.shape) - composed).max(initial=0))
    return layers if far <= 100 * np.finfo(subject.dtype).eps * len(layers) * size else None


def compose(layers: Sequence[Dense], x: NDArray) -> list[NDArray]:
    """Return pre-activations ``(m, n_l)`` of every layer in float64 at inputs ``(m, …)``."""
    h = np.asarray(x, float).reshape(len(x), -1)
    signals = []
    for layer in layers:
        signals.append(written(layer, h))
        h = activation_of(layer)(signals[-1])
    return signals


def written(layer: Dense, h: NDArray) -> NDArray:
    """Return ``W h + b`` of one layer, ``(m, out)`` for h of shape ``(m, inp)``, in float64."""
    linear = h @ np.asarray(layer.matrix, float).T
    return linear if layer.bias is None else linear + layer.bias


def activation_of(layer: Dense) -> Callable[[NDArray], NDArray]:
    """Return σ of one layer on float64 arrays of NumPy."""
    slopes = slopes_of(layer)
    if slopes is not None:
        return lambda z: np.where(z > 0, slopes[1] * z, slopes[0] * z)

    import jax  # only where a layer has an activation to compute
    import jax.numpy as jnp

    from steepest.nn.activations import activation

    def apply(z: NDArray) -> NDArray:
        with jax.enable_x64(True):
            return np.asarray(activation(layer.activation)(jnp.asarray(z)))

    return apply


def slopes_of(layer: Dense) -> tuple[float, float] | None:
    """Return the slopes of σ left and right of zero where it is linear on both sides; None for others."""
    import jax
    import jax.numpy as jnp

    from steepest.nn.activations import activation, homogeneous_slopes

    with jax.enable_x64(True):
        sigma = activation(layer.activation)
        ends = jnp.array([-1.0, 1.0])
        if homogeneous_slopes(sigma) is None:
            return None
        left, right = np.asarray(sigma(ends) / ends).tolist()
    return left, right


def kinked(layer: Dense) -> bool:
    """Return whether σ is linear on both sides of zero, with a corner between them."""
    slopes = slopes_of(layer)
    return slopes is not None and slopes[0] != slopes[1]


def lipschitz_bound(layers: Sequence[Dense]) -> float | None:
    """Multiply the spectral norms and the activations' largest slopes; None where a slope is not known.

    A bound of ``‖f(x) − f(x')‖₂ / ‖x − x'‖₂``, usually a loose one.
    """
    largest = [steepest_slope(layer) for layer in layers]
    if None in largest:
        return None
    norms = [float(np.linalg.norm(np.asarray(layer.matrix, float), 2)) for layer in layers]
    return float(np.prod(norms) * np.prod([slope for slope in largest if slope is not None]))


def steepest_slope(layer: Dense) -> float | None:
    """Return the largest ``|σ'|``, rounded up, if it is known."""
    slopes = slopes_of(layer)
    return LIPSCHITZ.get(layer.activation) if slopes is None else max(map(abs, slopes))


def require_chain(subject: Subject, what: str) -> list[Dense]:
    """Return the chain.

    Raises:
        UserError: if the model is none.
    """
    layers = chain(subject)
    if layers is None:
        raise UserError(
            f"{what} need a chain of dense layers and activations (nn.Sequential of nn.Linear, or a network of "
            f"steepest.nn.networks.mlp without residual branches), and {subject.name} is not recognized as one"
        )
    return layers
