"""Class means in covariances: collapsed features, random labels, and a dense calculation."""

import numpy as np
import pytest

from steepest.core.errors import UserError
from steepest.measurement import measure
from steepest.measurement.adapters import subject
from tests.measurement.adapters import models


def dense(values, labels, classes):
    """Σ_k v_kᵀ B v_k / Σ_k λ_k by averages over examples, every class with the same weight."""
    centre = np.mean([values[labels == c].mean(0) for c in range(classes)], 0)
    total = 0.0
    between = 0.0
    for c in range(classes):
        rows = values[labels == c] - centre
        total = total + rows.T @ rows / len(rows) / classes
        between = between + np.outer(rows.mean(0), rows.mean(0)) / classes
    found, vectors = np.linalg.eigh(total)
    top = vectors[:, -(classes - 1) :]
    return np.trace(top.T @ between @ top) / found[-(classes - 1) :].sum()


def test_agrees_with_a_dense_calculation():
    x, y = models.data(40)
    network, params = models.of_jax()
    found = measure((network, params), models.cross_entropy, (x, y), what=["class-covariances"])
    h = x
    for i, layer in enumerate(params):
        z = network.preactivations(params, x)[i]
        parts = found["class means in the pre-activations, last layer"].parts
        assert parts[str(i)] == pytest.approx(dense(np.asarray(z), y, 3), rel=1e-9)
        assert layer["w"].shape[1] == h.shape[1]
        h = np.tanh(np.asarray(z))
    outputs = np.asarray(network.apply(params, x))
    p = np.exp(outputs) / np.exp(outputs).sum(1, keepdims=True)
    sent = found["class means in the errors, last layer"]
    assert sent.value == pytest.approx(dense(p - np.eye(3)[y], y, 3), rel=1e-9)


def test_collapsed_inputs_are_all_class_means():
    _, y = models.data(40)
    x = np.eye(3, 4)[y]  # every example of a class is the same point
    found = measure(models.of_jax(), models.cross_entropy, (x, y), what=["class-covariances"])
    for each in found.quantities:
        assert np.allclose(list(each.parts.values()), 1)


def test_a_class_without_examples_is_named():
    x, y = models.data(40)
    small = subject(models.of_jax(), models.cross_entropy, (x, np.minimum(y, 1)))
    with pytest.raises(UserError, match=r"none of \[2\]"):
        measure(small, what=["class-covariances"])
