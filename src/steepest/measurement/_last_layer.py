"""The last linear layer of a classifier, with the features that it reads."""

from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from numpy.typing import NDArray

from steepest.core.errors import UserError
from steepest.measurement.adapters import Subject

if TYPE_CHECKING:
    from steepest.measurement.quantities import Collapse

AGREES = 1e-3  # of the outputs' size: the layer gives them, in single precision


class LastLayer(NamedTuple):
    """What gives the outputs, ``features @ matrix.T + bias``, in double precision.

    Attributes:
        features: that it reads, shape ``(n, q)``.
        matrix: as it acts, shape ``(C, q)``.
        bias: shape ``(C,)``; zeros where there is none.
    """

    features: NDArray
    matrix: NDArray
    bias: NDArray


def last_layer(subject: Subject, outputs: NDArray) -> LastLayer:
    """Find the matrix of weights that turns the features into the outputs, and check that it does.

    The matrix that the model names is tried first, then all others of its shape, each also transposed, as flax and
    plain JAX write it. A common factor, such as that of a parameterization, belongs to the matrix as it acts. The bias
    is what the outputs have besides.

    Args:
        subject: the classifier.
        outputs: of its examples, shape ``(n, C)``.

    Raises:
        UserError: no features, data in another order in every pass, no layer that gives these outputs.
    """
    read = subject.features()
    if read.ndim != 2:
        raise UserError(
            f"the last layer of a classifier reads features (n, q), these have shape {read.shape}"
        )
    features = read.astype(float)
    outputs = outputs.astype(float)
    shape = (outputs.shape[1], features.shape[1])
    named = subject.classifier
    first = [] if named is None else [named[0]]
    matrices = [weight.name for weight in subject.weights if sorted(weight.shape) == sorted(shape)]
    for name in sorted(matrices, key=lambda name: name not in first):
        matrix = subject.weight(name).astype(float)
        turned = [way for way in (matrix, matrix.T) if way.shape == shape]
        for candidate in turned:
            layer = _fitted(features, candidate, outputs)
            if layer is not None:
                return layer
    if not np.array_equal(read, subject.features()):
        raise UserError(
            "the data come in another order in every pass; give a loader that does not shuffle, or arrays"
        )
    raise UserError(
        f"no matrix of weights of {subject.name} turns the features of shape {features.shape} into the outputs of "
        f"shape {outputs.shape}: the last layer must be linear, without softmax; say which features it reads, "
        "features=..."
    )


def collapse_of(layer: LastLayer, labels: NDArray) -> "Collapse":
    """Measure neural collapse of a last layer, in double precision.

    Args:
        layer: from :func:`last_layer`.
        labels: class numbers, shape ``(n,)``.

    Raises:
        UserError: as ``collapse``.
    """
    import jax  # a last layer is found without it
    import jax.numpy as jnp

    from steepest.measurement.quantities import collapse

    with jax.enable_x64(True):
        measured = collapse(*map(jnp.asarray, (layer.features, labels, layer.matrix, layer.bias)))
        return jax.tree.map(np.asarray, measured)


def _fitted(features: NDArray, matrix: NDArray, outputs: NDArray) -> LastLayer | None:
    """Return the layer if its outputs are these, up to a positive factor and a bias."""
    scores = features @ matrix.T
    varied = scores - scores.mean(0)
    given = outputs - outputs.mean(0)
    square = float((varied**2).sum())
    factor = float((varied * given).sum()) / square if square else 1.0
    off = float(np.linalg.norm(given - factor * varied))
    near = AGREES * float(np.linalg.norm(given)) + 1e-6 * float(np.linalg.norm(outputs))
    if not (factor > 0 and off <= near):
        return None
    return LastLayer(features, factor * matrix, (outputs - factor * scores).mean(0))
