"""Shares of the covariances of features and of errors that class means explain, layer by layer."""

import jax.numpy as jnp
import numpy as np
from numpy.typing import NDArray

from steepest.core.errors import UserError
from steepest.measurement._context import Context
from steepest.measurement._report import Reading
from steepest.measurement.quantities import explained, feature_parts

WIDEST = 2000  # numbers that a layer writes for an example, at most: the covariance is their square


def measure_class_covariances(context: Context) -> list[Reading]:
    """Measure the share of the C − 1 largest eigenvalues that class means carry, in layers and in errors.

    The errors are those of the true labels, ``∂loss_i/∂z_i``; Papyan's are extended by all wrong ones.

    Raises:
        UserError: no classifier; a class without examples; layers that cannot be seen, or are all too wide.

    Source: Papyan 2020.
    """
    (_, labels) = context.outputs
    classes = context.classes
    if classes < 2 or len(np.unique(labels)) < classes:
        missing = sorted(set(range(classes)) - set(labels.tolist()))
        raise UserError(
            f"class means need two classes with examples at least; there are none of {missing}"
        )
    written = context.subject.layers()
    errors = context.subject.errors()
    if any(len(rows) != len(labels) for rows in written.values()):
        raise UserError("the layers write other numbers of rows than there are examples")
    narrow = [name for name, rows in written.items() if rows[0].size <= WIDEST]
    if not narrow:
        raise UserError(f"every layer writes more than {WIDEST} numbers an example")
    assumes = (("error rate 0", bool((context.outputs[0].argmax(1) == labels).all())),)
    of = lambda arrays: {
        name: _share(arrays[name], labels, classes) for name in narrow if name in arrays
    }
    theory = "nearly 1 in the last layers (Papyan 2020)"
    return [
        Reading(
            f"class means in the {what}, last layer",
            list(shares.values())[-1],
            theory=theory,
            compared=1.0,
            assumes=assumes,
            interpretation=f"share of the {classes - 1} largest eigenvalues of their covariance",
            parts=shares,
        )
        for what, shares in (("pre-activations", of(written)), ("errors", of(errors)))
        if shares
    ]


def _share(values: NDArray, labels: NDArray, classes: int) -> float:
    """Return the share of one layer."""
    rows = np.asarray(values, float).reshape(len(values), -1)
    parts = [
        np.asarray(part) for part in feature_parts(jnp.asarray(rows), jnp.asarray(labels), classes)
    ]
    return float(explained(parts, parts[:1], min(classes - 1, rows.shape[1])))
