"""The class decomposition on any subject: dense oracles, the same from both frameworks, refusals in one sentence."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from steepest.core.errors import UserError
from steepest.measurement._class_decomposition import measure_class_decomposition
from steepest.measurement._context import Context
from steepest.measurement.adapters import subject
from tests.extras import need
from tests.measurement.adapters import models
from tests.measurement.quantities import test_class_decomposition as dense


def measured(model, loss, data, seed=0):
    found = measure_class_decomposition(
        Context(subject(model, loss, data), np.random.default_rng(seed))
    )
    return {each.name: each for each in found}


def test_agrees_with_dense_matrices():
    x, y = models.data(40)
    network, params = models.of_jax()
    found = measured((network, params), models.cross_entropy, (x, y))
    flat, unflatten = jax.flatten_util.ravel_pytree(params)
    parts, _ = dense.oracle(
        jnp.asarray(flat), lambda w: network.apply(unflatten(w), x), y, "weighted"
    )
    total = sum(np.trace(each) for each in parts.values())
    for name, part in {"class": "classes", "cross-class": "cross", "within": "within"}.items():
        top = np.linalg.eigvalsh(parts[part])[-1]
        assert found[f"top eigenvalue, {name} part"].value == pytest.approx(top, rel=1e-8)
        share = found[f"trace share, {name} part"]
        near = (share.interval[1] - share.interval[0]) if share.interval else 0
        assert share.value == pytest.approx(np.trace(parts[part]) / total, abs=2 * near + 0.02)
    hessian = jax.hessian(lambda w: models.cross_entropy(network.apply(unflatten(w), x), y))(
        jnp.asarray(flat)
    )
    said = found["outliers explained by class means"].interpretation
    assert _count(np.linalg.eigvalsh(hessian)[::-1][:7]) in said


def _count(values):
    level = np.maximum(values, 1e-3 * values[0])
    return f"{np.argmax(level[:-1] / level[1:]) + 1} eigenvalues"


def test_collapsed_classes_explain_their_outliers():
    """Examples at their class means, a common feature: C − 1 outliers, in the class means' span, nothing within."""
    rng = np.random.default_rng(0)
    classes = 4
    means = np.c_[np.eye(classes), np.full(classes, 5.0)]
    y = np.repeat(np.arange(classes), 10)
    found = measured((lambda w, x: x @ w, 6.0 * means.T), models.cross_entropy, (means[y], y))
    by_chance = found["outliers explained by shuffled classes"].value
    assert found["outliers explained by class means"].value - by_chance == classes - 1
    assert found["top eigenvalue, within part"].value == pytest.approx(0, abs=1e-12)
    noisy = means[y] + 2 * rng.normal(size=(len(y), 5))
    found = measured((lambda w, x: x @ w, 0.1 * means.T), models.cross_entropy, (noisy, y))
    assert found["top eigenvalue, within part"].value > 0.1


def test_torch_and_jax_agree():
    torch = need("torch")
    x, y = models.data(40)
    ours = measured(models.of_jax(), models.cross_entropy, (x, y))
    theirs = measured(
        models.of_torch(), torch.nn.CrossEntropyLoss(), (torch.as_tensor(x), torch.as_tensor(y))
    )
    for name, each in ours.items():
        if each.source_of_error != "probes":
            assert each.value == pytest.approx(theirs[name].value, rel=1e-6), name


def test_single_precision_is_enough():
    x, y = models.data(40)
    network, params = models.of_jax()
    small = jax.tree.map(lambda leaf: leaf.astype(np.float32), params)
    a = measured((network, params), models.cross_entropy, (x, y))
    b = measured((network, small), models.cross_entropy, (x.astype(np.float32), y))
    name = "top eigenvalue, class part"
    assert a[name].value == pytest.approx(b[name].value, rel=1e-4)


def test_other_losses_are_refused():
    x, y = models.data()
    with pytest.raises(UserError, match="cross-entropy of its outputs"):
        measured(
            models.of_jax(),
            lambda outputs, targets: 1.1 * models.cross_entropy(outputs, targets),
            (x, y),
        )
    with pytest.raises(UserError, match="class numbers"):
        measured(
            models.of_jax(), lambda outputs, targets: (outputs**2).mean(), (x, np.ones((len(x), 3)))
        )
