"""Normalized networks: the plain one's function at the start, derivatives by hand, what steps and flows keep."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from steepest.core.errors import UserError
from steepest.nn.networks import normalized_two_layer, two_layer

KEY = jax.random.key(3)
X = np.random.default_rng(0).normal(size=(7, 4))
Y = np.sign(X[:, 0] * X[:, 1])


def test_it_starts_as_the_plain_network():
    plain = two_layer(4, 9, scale=0.3)
    normalized = normalized_two_layer(4, 9, scale=0.3, norm=0.2)
    outputs = normalized.apply(normalized.init(KEY), X)
    np.testing.assert_allclose(outputs, plain.apply(plain.init(KEY), X), rtol=1e-10)


def test_gradients_are_those_of_the_formulas():
    """∇a = b ⟨G, u⟩, ∇b = a ⟨G, u⟩, ∇v = (ab/‖v‖) (G − ⟨G, u⟩ u) with G = Σ y 1[⟨u, x⟩ > 0] x; ∇v ⊥ v."""
    net = normalized_two_layer(4, 5, norm=0.5)
    start = net.init(KEY)
    slope = jax.tree.map(np.asarray, jax.grad(lambda params: Y @ net.apply(params, X))(start))
    a, b, v = map(np.asarray, start)
    for j in range(5):
        u = v[j] / np.linalg.norm(v[j])
        pull = (Y * (X @ u > 0)) @ X
        assert slope.a[j] == pytest.approx(b[j] * pull @ u)
        assert slope.b[j] == pytest.approx(a[j] * pull @ u)
        np.testing.assert_allclose(
            slope.v[j], a[j] * b[j] / 0.5 * (pull - pull @ u * u), atol=1e-12
        )
        moved = np.asarray(v[j] + 0.1 * slope.v[j])
        assert moved @ moved == pytest.approx(0.25 + 0.01 * slope.v[j] @ slope.v[j], rel=1e-12)


def test_norms_of_v_do_not_count():
    net = normalized_two_layer(4, 5)
    start = net.init(KEY)
    longer = start._replace(v=start.v * jnp.arange(1.0, 6.0)[:, None])
    np.testing.assert_allclose(net.apply(start, X), net.apply(longer, X), rtol=1e-12)


@pytest.mark.parametrize(
    ("fields", "sentence"),
    [
        ({"dimension": 0, "width": 3}, "dimension must be"),
        ({"dimension": 2, "width": 0}, "width must be"),
        ({"dimension": 2, "width": 3, "norm": 0.0}, "norm above zero, got 0"),
    ],
)
def test_bad_input(fields, sentence):
    with pytest.raises(UserError, match=sentence):
        normalized_two_layer(**fields)
