"""Networks that are a chain of dense layers, of which theory says more: recognized, and compared with the model."""

from collections.abc import Callable, Sequence

import jax
import jax.numpy as jnp
import numpy as np
from numpy.typing import NDArray

from steepest.activations import activation, homogeneous_slopes
from steepest.errors import UserError
from steepest.subject import Dense, Subject

NEAR, FAR = 1000, 32  # points at which model and chain are compared: examples, and others away from them
LIPSCHITZ = {"tanh": 1.0, "softplus": 1.0, "elu": 1.0, "sigmoid": 0.25, "sin": 1.0, "cos": 1.0, "hard_tanh": 1.0,
             "erf": 1.1284, "gelu": 1.1290, "silu": 1.0999}  # fmt: skip


def chain(subject: Subject) -> list[Dense] | None:
    """The dense layers whose composition is the model, first layer first, or None if it is none.

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
    found = activation_of(layers[-1])(signals[-1])
    if outputs.size != found.size:
        return None
    size = max(float(np.abs(each).max(initial=0)) for each in signals)
    far = float(np.abs(outputs.reshape(found.shape) - found).max(initial=0))
    return layers if far <= 100 * np.finfo(subject.dtype).eps * len(layers) * size else None


def compose(layers: Sequence[Dense], x: NDArray) -> list[NDArray]:
    """Pre-activations ``(m, n_l)`` of every layer in float64 at inputs ``(m, …)``."""
    h, found = np.asarray(x, float).reshape(len(x), -1), []
    for each in layers:
        found.append(written(each, h))
        h = activation_of(each)(found[-1])
    return found


def written(layer: Dense, h: NDArray) -> NDArray:
    """``W h + b`` of one layer, ``(m, out)`` for h of shape ``(m, inp)``, in float64."""
    linear = h @ np.asarray(layer.matrix, float).T
    return linear if layer.bias is None else linear + layer.bias


def activation_of(layer: Dense) -> Callable[[NDArray], NDArray]:
    """σ of one layer on float64 arrays of NumPy."""
    slopes = slopes_of(layer)
    if slopes is not None:
        return lambda z: np.where(z > 0, slopes[1] * z, slopes[0] * z)

    def apply(z: NDArray) -> NDArray:
        with jax.enable_x64(True):
            return np.asarray(activation(layer.activation)(jnp.asarray(z)))

    return apply


def slopes_of(layer: Dense) -> tuple[float, float] | None:
    """The slopes of σ left and right of zero where it is linear on both sides; None for others."""
    with jax.enable_x64(True):
        sigma, ends = activation(layer.activation), jnp.array([-1.0, 1.0])
        if homogeneous_slopes(sigma) is None:
            return None
        left, right = np.asarray(sigma(ends) / ends).tolist()
    return left, right


def kinked(layer: Dense) -> bool:
    """Whether σ is linear on both sides of zero, with a corner between them."""
    slopes = slopes_of(layer)
    return slopes is not None and slopes[0] != slopes[1]


def lipschitz_bound(layers: Sequence[Dense]) -> float | None:
    """Product of the spectral norms and of the activations' largest slopes; None for an activation without a known one.

    A bound of ``‖f(x) − f(x')‖₂ / ‖x − x'‖₂``, usually a loose one.
    """
    largest = [steepest_slope(each) for each in layers]
    if None in largest:
        return None
    norms = [float(np.linalg.norm(np.asarray(each.matrix, float), 2)) for each in layers]
    return float(np.prod(norms) * np.prod([each for each in largest if each is not None]))


def steepest_slope(layer: Dense) -> float | None:
    """The largest ``|σ'|``, rounded up, if it is known."""
    slopes = slopes_of(layer)
    return LIPSCHITZ.get(layer.activation) if slopes is None else max(map(abs, slopes))


def require_chain(subject: Subject, what: str) -> list[Dense]:
    """The chain.

    Raises:
        UserError: if the model is none.
    """
    found = chain(subject)
    if found is None:
        raise UserError(
            f"{what} need a chain of dense layers and activations (nn.Sequential of nn.Linear, or a network of "
            f"steepest.networks.mlp without residual branches), and {subject.name} is not recognized as one"
        )
    return found
