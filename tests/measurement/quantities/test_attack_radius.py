"""The attack radius against hyperplanes, spheres, a convex program, and networks whose gradients vanish."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy.optimize import minimize

from steepest.core.errors import UserError
from steepest.measurement.quantities import attack_radius

RNG = np.random.default_rng(0)


def test_the_distance_from_a_hyperplane():
    w = RNG.normal(size=5)
    x = RNG.normal(size=(6, 5))
    y = np.sign(x @ w + 0.3)
    starts = -3 * y[:, None, None] * np.stack([w, w + RNG.normal(size=5)])
    attack = jax.jit(lambda w: attack_radius(lambda w, x: x @ w + 0.3, w, x, y, starts))(w)
    distance = np.abs(x @ w + 0.3) / np.linalg.norm(w)
    np.testing.assert_allclose(attack.radius, distance, rtol=1e-6)
    # the change is as long as it says, and turns the sign, just so
    np.testing.assert_allclose(np.linalg.norm(attack.delta, axis=1), attack.radius, rtol=1e-12)
    np.testing.assert_allclose((x + attack.delta) @ w + 0.3, 0, atol=1e-7)


def test_the_nearest_of_two_boundaries():
    """f = 1 − x₁² from 0.5: the sphere of radius one is 0.5 away on one side and 1.5 on the other."""
    net = lambda p, x: 1 - x @ x
    far = jnp.array([[-3.0, 0.0]])
    both = jnp.array([[-3.0, 0.0], [2.0, 0.5]])
    x = jnp.array([0.5, 0.0])
    y = jnp.array(1.0)
    assert float(attack_radius(net, None, x, y, both).radius) == pytest.approx(0.5, rel=1e-6)
    assert 0.5 - 1e-9 < float(attack_radius(net, None, x, y, far).radius) <= 1.5 + 1e-6


@pytest.mark.parametrize("power", [1.0, 1.5, 2.0, 3.0])
def test_powers_of_relu_at_orthogonal_centres(power):
    """The closed form √(c/(1 + c)), c = min(1, K₂^(1 − 2/p)), and SLSQP from many starts."""
    others = 3
    eye = np.eye(2 + others)

    def net(params, x):
        relu = jnp.maximum(x, 0) ** power
        return relu[..., :2].sum(-1) - relu[..., 2:].sum(-1)

    ways = np.concatenate([eye[2:] - eye[0], [eye[2:].sum(0) - eye[0]]])
    attack = attack_radius(net, None, eye[0], np.array(1.0), ways, steps=100)
    c = min(1, others ** (1 - 2 / power))
    assert float(attack.radius) == pytest.approx(np.sqrt(c / (1 + c)), rel=1e-3)
    solved = [
        minimize(
            lambda delta: delta @ delta,
            0.6 * way,
            jac=lambda delta: 2 * delta,
            constraints={"type": "eq", "fun": lambda delta: float(net(None, eye[0] + delta))},
            method="SLSQP",
        )
        for way in ways
    ]
    best = min(np.sqrt(end.fun) for end in solved if end.success)
    assert float(attack.radius) == pytest.approx(best, rel=1e-3)


def test_gradients_that_vanish_at_the_input_do_not_fool_it():
    """Half-way between two centres, where descent from the input never gets."""
    net = lambda p, x: jnp.maximum(x[..., 0], 0) ** 4 - jnp.maximum(x[..., 1], 0) ** 4
    x = jnp.array([1.0, 0.0])
    attack = attack_radius(net, None, x, jnp.array(1.0), jnp.array([[-1.0, 1.0]]))
    assert float(attack.radius) == pytest.approx(np.sqrt(0.5), rel=1e-6)


def test_no_change_of_sign_is_said():
    attack = attack_radius(
        lambda p, x: 1 + x @ x, None, jnp.zeros(2), jnp.array(1.0), jnp.ones((3, 2))
    )
    assert np.isinf(attack.radius)
    assert np.isnan(attack.delta).all()


def test_what_is_wrong_already_needs_no_attack():
    attack = attack_radius(
        lambda p, x: x[0], None, jnp.array([1.0]), jnp.array(-1.0), jnp.ones((1, 1))
    )
    assert float(attack.radius) == 0
    assert attack.delta.tolist() == [0.0]


def test_it_is_pure_and_mapped():
    net = lambda w, x: jnp.tanh(x @ w) + 0.1
    x = RNG.normal(size=(3, 2))
    y = np.sign(np.tanh(x @ [1.0, 2.0]) + 0.1)
    starts = -2 * y[:, None, None] * np.array([[1.0, 2.0]])
    w = jnp.array([1.0, 2.0])
    together = jax.jit(lambda w: attack_radius(net, w, x, y, starts))(w)
    alone = [attack_radius(net, w, *row).radius for row in zip(x, y, starts, strict=True)]
    np.testing.assert_allclose(together.radius, alone, rtol=1e-9)


@pytest.mark.parametrize(
    ("x", "y", "starts"),
    [
        (np.zeros(3), np.array(1.0), np.zeros((2, 4))),
        (np.zeros((2, 3)), np.ones(3), np.zeros((2, 1, 3))),
        (np.zeros((2, 3)), np.ones(2), np.zeros((2, 0, 3))),
        (np.zeros((2, 2, 3)), np.ones((2, 2)), np.zeros((2, 2, 1, 3))),
    ],
)
def test_shapes_that_do_not_belong_together(x, y, starts):
    with pytest.raises(UserError, match="attack_radius: expected inputs"):
        attack_radius(lambda p, x: x.sum(), None, x, y, starts)
