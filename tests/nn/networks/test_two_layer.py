"""Two-layer networks of powers of ReLU: balance, homogeneity, conservation."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from steepest.core.errors import UserError
from steepest.nn.networks import Neurons, two_layer

POWERS = (1.0, 1.5, 2.0, 3.0)
seeds = st.integers(0, 2**31 - 1)


def random_point(seed, h=6, d=3, n=5):
    rng = np.random.default_rng(seed)
    neurons = Neurons(jnp.asarray(rng.normal(size=(h, d))), jnp.asarray(rng.normal(size=h)))
    return neurons, jnp.asarray(rng.normal(size=(n, d))), jnp.asarray(rng.choice([-1.0, 1.0], n))


@pytest.mark.parametrize("power", POWERS)
def test_it_equals_the_formula(power):
    params, x, _ = random_point(0)
    w = np.asarray(params.w)
    v = np.asarray(params.v)
    expected = [
        sum(
            v[j] * max(w[j] @ one, 0) ** power / np.linalg.norm(w[j]) ** (power - 1)
            for j in range(len(v))
        )
        for one in np.asarray(x)
    ]
    np.testing.assert_allclose(two_layer(3, 6, power=power).apply(params, x), expected, rtol=1e-12)


def test_the_first_power_is_a_relu_network():
    params, x, _ = random_point(1)
    expected = np.maximum(np.asarray(x) @ np.asarray(params.w).T, 0) @ np.asarray(params.v)
    np.testing.assert_allclose(two_layer(3, 6).apply(params, x), expected, rtol=1e-12)


@given(seeds, st.floats(1e-3, 1e3), st.sampled_from(POWERS))
@settings(max_examples=25, deadline=None)
def test_it_starts_balanced_whatever_the_scale(seed, scale, power):
    start = two_layer(3, 6, scale=scale, power=power).init(jax.random.key(seed))
    np.testing.assert_allclose(start.v**2, (start.w**2).sum(1), rtol=1e-12)
    unit = two_layer(3, 6).init(jax.random.key(seed))
    np.testing.assert_allclose(start.w, scale * unit.w, rtol=1e-12)


def test_neurons_are_gaussian_with_fair_signs(key):
    start = two_layer(4, 4000, scale=0.5).init(key)
    squares = 4 / 0.5**2 * np.asarray(start.w) ** 2
    assert abs(squares.mean() - 1) <= 4 * np.sqrt(2 / squares.size)
    assert abs(np.sign(start.v).sum()) <= 4 * np.sqrt(4000)


def test_the_scale_may_be_traced(key):
    def output(scale):
        net = two_layer(3, 6, scale=scale)
        return net.apply(net.init(key), jnp.ones(3))

    out = jax.vmap(output)(jnp.array([1.0, 2.0]))
    assert out[1] == pytest.approx(4 * float(out[0]), rel=1e-12)


@given(seeds, st.floats(1e-2, 1e2), st.sampled_from(POWERS))
@settings(max_examples=30, deadline=None)
def test_it_is_homogeneous_of_degree_two_in_parameters_and_p_in_inputs(seed, factor, power):
    params, x, _ = random_point(seed)
    net = two_layer(3, 6, power=power)
    out = net.apply(params, x)
    scaled = jax.tree.map(lambda leaf: factor * leaf, params)
    np.testing.assert_allclose(
        net.apply(scaled, x), factor**2 * out, rtol=1e-10, atol=1e-12 * factor**2
    )
    np.testing.assert_allclose(
        net.apply(params, factor * x), factor**power * out, rtol=1e-10, atol=1e-12 * factor**power
    )


@given(seeds, st.sampled_from(POWERS))
@settings(max_examples=20, deadline=None)
def test_gradient_flow_conserves_the_balance_of_every_neuron(seed, power):
    """d/dt (v_j² − ‖w_j‖²) = −2 (v_j ∂_v L − ⟨w_j, ∂_w L⟩) = 0, balanced or not."""
    params, x, y = random_point(seed)
    net = two_layer(3, 6, power=power)
    slope = jax.grad(lambda p: jnp.mean(jnp.logaddexp(0.0, -y * net.apply(p, x))))(params)
    by_v = params.v * slope.v
    by_w = (params.w * slope.w).sum(1)
    np.testing.assert_allclose(by_v, by_w, rtol=1e-10, atol=1e-12)
    assert jnp.abs(by_v).max() > 0 or not (x @ params.w.T > 0).any()


@pytest.mark.parametrize("power", POWERS)
def test_inactive_neurons_do_nothing_and_do_not_move(power):
    params = Neurons(-jnp.ones((2, 3)), jnp.array([1.0, -1.0]))
    net = two_layer(3, 2, power=power)
    x = jnp.ones((4, 3))
    np.testing.assert_array_equal(net.apply(params, x), 0.0)
    slope = jax.grad(lambda p: net.apply(p, x).sum())(params)
    assert all((leaf == 0).all() for leaf in slope)


def test_shapes_and_names(key):
    net = two_layer(3, 6, power=2)
    assert net.apply(net.init(key), jnp.ones(3)).shape == ()
    assert net.apply(net.init(key), jnp.ones((2, 5, 3))).shape == (2, 5)
    assert net.name == "two-layer 2-ReLU network of width 6"
    assert two_layer(3, 6).name == "two-layer ReLU network of width 6"


@pytest.mark.parametrize("power", [0.99, 0.0, -2.0])
def test_a_power_below_one_is_refused(power):
    with pytest.raises(UserError, match=f"at least 1, got {power}"):
        two_layer(3, 6, power=power)


@pytest.mark.parametrize("power", POWERS)
def test_the_power_may_be_traced(power):
    params, x, _ = random_point(3)
    value = lambda power: two_layer(3, 6, power=power).apply(params, x).sum()
    slope = lambda power: jax.grad(lambda x: two_layer(3, 6, power=power).apply(params, x).sum())(x)
    np.testing.assert_allclose(jax.jit(value)(power), value(power), rtol=1e-12)
    np.testing.assert_allclose(jax.jit(slope)(power), slope(power), rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("power", [1.0, 1.5, 3.0])
def test_a_traced_power_is_a_plain_one(power):
    """Outputs and gradients, with neurons that are off and products that are far below one."""
    rng = np.random.default_rng(0)
    w = rng.standard_normal((5, 4))
    w[1] *= 1e-12
    with jax.enable_x64(True):
        params = Neurons(jnp.asarray(w), jnp.asarray(rng.standard_normal(5)))
        x = jnp.asarray(rng.standard_normal((6, 4)))
        total = lambda params, power: (two_layer(4, 5, power=power).apply(params, x) ** 2).sum()
        plain = jax.value_and_grad(lambda params: total(params, power))(params)
        traced = jax.jit(jax.value_and_grad(total))(params, power)
    for one, other in zip(jax.tree.leaves(traced), jax.tree.leaves(plain), strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-10, atol=1e-25)
