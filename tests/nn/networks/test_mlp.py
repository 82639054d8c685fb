"""Fully connected networks against plain loops, and the law of their start."""

import itertools

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from steepest.core.errors import UserError
from steepest.nn.networks import (
    PARAMETERIZATIONS,
    ByLayer,
    Parameterization,
    deep_linear,
    mlp,
    parameterization,
    step_scale,
)
from steepest.nn.types import count

NAMES = ("standard", "ntk", "mean-field", "mup")
SIGMA = {"relu": lambda z: np.maximum(z, 0), "tanh": np.tanh, "linear": lambda z: z}


def factors(name, widths, c_w):
    """(multiplier, initial scale) of each layer, written out from the definitions."""
    found = []
    for i, n in enumerate(widths[:-1]):
        first = i == 0
        last = i == len(widths) - 2
        constant = np.sqrt(c_w)
        found.append(
            {
                "standard": (1.0, constant / np.sqrt(n)),
                "ntk": (constant / np.sqrt(n), 1.0),
                "mean-field": (constant / (n if last else np.sqrt(n)), 1.0),
                "mup": (
                    constant
                    * (np.sqrt(widths[1] / n) if first else 1 / np.sqrt(n) if last else 1.0),
                    1 / np.sqrt(widths[1] if first else n),
                ),
            }[name]
        )
    return found


X = np.random.default_rng(0).normal(
    size=(5, 3)
)  # the same shapes everywhere: JAX compiles every shape anew


@pytest.mark.parametrize("sigma", SIGMA)
@pytest.mark.parametrize("name", NAMES)
def test_it_equals_a_loop_over_neurons(name, sigma, key):
    widths = (3, 7, 5, 2)
    net = mlp(widths, sigma, parameterized=name, c_w=1.7, c_b=0.3)
    params = net.init(key)
    x = X
    z = []
    hidden = x
    for layer, (multiplier, _) in zip(params, factors(name, widths, 1.7), strict=True):
        w = np.asarray(layer["w"])
        b = np.asarray(layer["b"])
        rows = range(len(x)), range(len(w))
        z.append(
            np.array(
                [[b[i] + multiplier * sum(w[i] * hidden[k]) for i in rows[1]] for k in rows[0]]
            )
        )
        hidden = SIGMA[sigma](z[-1])
    np.testing.assert_allclose(net.apply(params, x), z[-1], rtol=1e-10)
    for found, expected in zip(net.preactivations(params, x), z, strict=True):
        np.testing.assert_allclose(found, expected, rtol=1e-10)
    np.testing.assert_allclose(net.features(params, x), SIGMA[sigma](z[-2]), rtol=1e-10)


@pytest.mark.parametrize("name", NAMES)
def test_the_start_has_the_asked_scales(name, key):
    """Weights are Gaussian with the initial scale, biases with √C_b: chi-square to four standard deviations."""
    widths = (3, 400, 300, 500)
    c_w = 1.7
    c_b = 0.3
    params = mlp(widths, parameterized=name, c_w=c_w, c_b=c_b).init(key)
    for layer, (_, scale) in zip(params, factors(name, widths, c_w), strict=True):
        for leaf, size in ((layer["w"], scale), (layer["b"], np.sqrt(c_b))):
            numbers = np.asarray(leaf)
            assert abs((numbers**2).mean() / size**2 - 1) <= 4 * np.sqrt(2 / numbers.size)
            assert abs(numbers.mean()) / size <= 4 / np.sqrt(numbers.size)
    drawn = [np.asarray(leaf).ravel()[:40] for layer in params for leaf in layer.values()]
    for a, b in itertools.combinations(drawn, 2):
        assert abs(np.corrcoef(a, b)[0, 1]) <= 4 / np.sqrt(40)  # no two tensors share their draw


@pytest.mark.parametrize("sigma", ["relu", "tanh"])
@pytest.mark.parametrize("name", NAMES)
def test_the_variance_of_each_layer_follows_the_layer_before(name, sigma, key):
    """E z^(l+1)² = C_b + C_W mean σ(z^(l))², given layer l; the last layer of mean-field and µP has C_W/n in place."""
    widths = (3, 400, 300, 500)
    c_w = 1.5
    c_b = 0.2
    net = mlp(widths, sigma, parameterized=name, c_w=c_w, c_b=c_b)
    params = net.init(key)
    x = X[0]
    before = x
    for i, z in enumerate(net.preactivations(params, x)):
        shrink = widths[i] if i == 2 and name in ("mean-field", "mup") else 1
        variance = c_b + c_w / shrink * (before**2).mean()
        z = np.asarray(z)
        assert abs((z**2).mean() / variance - 1) <= 4 * np.sqrt(2 / z.size)
        before = SIGMA[sigma](z)


@pytest.mark.parametrize("widths", [(3, 8, 1), (3, 7, 5, 2)])
def test_standard_and_ntk_start_from_the_same_law(widths, key):
    """The same normal draws give the same function: multiplier times scale agree layer by layer."""
    nets = [mlp(widths, "tanh", parameterized=p, c_w=2.0, c_b=0.5) for p in ("standard", "ntk")]
    out = [net.apply(net.init(key), X) for net in nets]
    np.testing.assert_allclose(*out, rtol=1e-12)


@pytest.mark.parametrize("name", ["mean-field", "mup"])
@pytest.mark.parametrize("width", [5, 100])
def test_feature_learning_starts_from_an_output_smaller_by_root_width(name, width, key):
    widths = (3, 7, width, 2)
    x = X
    small, ntk = (mlp(widths, "tanh", parameterized=p, c_w=2.0) for p in (name, "ntk"))
    ratio = small.apply(small.init(key), x) / ntk.apply(ntk.init(key), x)
    np.testing.assert_allclose(ratio, width**-0.5, rtol=1e-10)


@pytest.mark.parametrize(("name", "slope"), [("standard", 0.0), ("mup", -1.0)])
def test_the_output_variance_scales_with_the_width(name, slope):
    """Var f ∝ n^slope: the log-ratio of two sample variances, to four standard errors of their kurtosis."""
    keys = jax.random.split(jax.random.key(4), 500)
    x = jnp.ones(3)
    moments = []
    for width in (16, 256):
        net = mlp((3, width, 1), "relu", parameterized=name)
        squares = (
            np.asarray(jax.jit(jax.vmap(lambda k, net=net: net.apply(net.init(k), x)))(keys)) ** 2
        )
        moments.append(
            (np.log(squares.mean()), squares.std() / squares.mean() / np.sqrt(squares.size))
        )
    (low, low_error), (high, high_error) = moments
    assert abs(high - low - slope * np.log(16)) <= 4 * np.hypot(low_error, high_error)


def test_shapes_of_outputs_and_parameters(key):
    net = mlp((3, 8, 1), "tanh")
    params = net.init(key)
    assert net.apply(params, jnp.ones((5, 3))).shape == (5,)
    assert net.apply(params, jnp.ones(3)).shape == ()
    assert net.apply(params, jnp.ones((2, 5, 3))).shape == (2, 5)
    assert net.features(params, jnp.ones((5, 3))).shape == (5, 8)
    assert [z.shape for z in net.preactivations(params, jnp.ones((5, 3)))] == [(5, 8), (5, 1)]
    assert mlp((3, 2)).apply(mlp((3, 2)).init(key), jnp.ones((5, 3))).shape == (5, 2)
    assert [{k: v.shape for k, v in layer.items()} for layer in params] == [
        {"w": (8, 3), "b": (8,)},
        {"w": (1, 8), "b": (1,)},
    ]
    assert count(params) == 8 * 3 + 8 + 8 + 1
    assert (net.widths, net.parameterization.name) == ((3, 8, 1), "standard")
    assert net.name == "tanh network 3-8-1, standard"


def test_the_last_layer_reads_the_features(key):
    net = mlp((3, 7, 5, 2), "relu", parameterized="ntk", c_b=0.1)
    params = net.init(key)
    x = X
    last = params[-1]["w"].T / np.sqrt(5)
    np.testing.assert_allclose(
        net.features(params, x) @ last + params[-1]["b"], net.apply(params, x), rtol=1e-10
    )


def test_without_hidden_layers_the_features_are_the_inputs(key):
    net = mlp((3, 2))
    np.testing.assert_array_equal(net.features(net.init(key), X), X)


def test_without_bias_there_is_none(key):
    net = mlp((3, 8, 2), "relu", bias=False, c_b=1.0)
    params = net.init(key)
    assert all(set(layer) == {"w"} for layer in params)
    np.testing.assert_array_equal(net.apply(params, jnp.zeros(3)), 0.0)
    x = X
    np.testing.assert_allclose(net.apply(params, 2.5 * x), 2.5 * net.apply(params, x), rtol=1e-12)
    with_bias = mlp((3, 8, 2), "relu", c_b=1.0)
    assert (with_bias.apply(with_bias.init(key), jnp.zeros(3)) != 0).all()


@pytest.mark.parametrize("name", NAMES)
def test_each_layer_may_have_its_own_variance(name, key):
    """A linear network's output is multiplied by the product of the layers' √C_W."""
    widths = (3, 7, 5, 2)
    x = X
    one, many = (
        mlp(widths, "linear", parameterized=name, c_w=c, bias=False)
        for c in (1.0, (4.0, 0.25, 9.0))
    )
    np.testing.assert_allclose(
        many.apply(many.init(key), x), 3 * one.apply(one.init(key), x), rtol=1e-12
    )


def test_an_activation_may_be_a_function(key):
    named = mlp((3, 8, 2), "tanh")
    own = mlp((3, 8, 2), jnp.tanh)
    params = named.init(key)
    x = X
    np.testing.assert_array_equal(named.apply(params, x), own.apply(params, x))


@pytest.mark.parametrize("widths", [(3, 8, 2), (3, 7, 5, 2)])
@pytest.mark.parametrize("name", NAMES)
def test_a_deep_linear_network_is_a_product_of_matrices(widths, name, key):
    net = deep_linear(widths, c_w=1.3, parameterized=name)
    params = net.init(key)
    x = X
    product = np.eye(3)
    for layer, (multiplier, _) in zip(params, factors(name, widths, 1.3), strict=True):
        product = multiplier * np.asarray(layer["w"]) @ product
    expected = x @ product.T
    np.testing.assert_allclose(net.apply(params, x), expected, rtol=1e-10)
    assert all(set(layer) == {"w"} for layer in params)


@pytest.mark.parametrize("name", NAMES)
def test_one_layer_has_the_effective_variance_of_the_first(name):
    keys = jax.random.split(jax.random.key(2), 300)
    net = mlp((4, 5), parameterized=name, c_w=1.5, c_b=0.5)
    out = jax.jit(jax.vmap(lambda k: net.apply(net.init(k), 2 * jnp.ones(4))))(keys)
    assert abs(float((out**2).mean()) / (0.5 + 1.5 * 4) - 1) <= 4 * np.sqrt(2 / out.size)


def test_the_step_is_scaled_with_the_width():
    assert [step_scale(mlp((2, 100, 1), parameterized=p)) for p in NAMES] == [1.0, 1.0, 100.0, 1.0]
    assert step_scale(mlp((2, 100, 400, 1), parameterized="mean-field"), reference=100) == 4.0
    assert step_scale(mlp((2, 1), parameterized="mean-field")) == 1.0


@pytest.mark.parametrize("name", ["mean-field", "mup"])
def test_the_first_step_moves_the_function_as_much_at_every_width(name):
    """df/dt = −η n^-c Θ r with a tangent kernel whose limit exists: n^-c Θ at two large widths agrees."""
    keys = jax.random.split(jax.random.key(1), 200)
    x = jnp.ones(3)
    scaled = []
    for width in (50, 800):
        net = mlp((3, width, 1), "tanh", parameterized=name, bias=False)

        def kernel(key, net=net):
            slope = jax.grad(net.apply)(net.init(key), x)
            return step_scale(net) * sum(
                (leaf**2).sum() for layer in slope for leaf in layer.values()
            )

        found = np.asarray(jax.jit(jax.vmap(kernel))(keys))
        scaled.append((found.mean(), found.std() / np.sqrt(found.size)))
    (low, low_error), (high, high_error) = scaled
    assert abs(low - high) <= 4 * np.hypot(low_error, high_error)


def test_a_parameterization_may_be_ones_own(key):
    own = Parameterization("half", ByLayer(0, 0.5, 0.75), ByLayer(0, 0, 0), 0)
    assert parameterization(own) is own
    assert set(PARAMETERIZATIONS) == set(NAMES)
    x = X
    nets = [mlp((3, 8, 1), parameterized=p) for p in (own, "ntk")]
    mine, ntk = (net.apply(net.init(key), x) for net in nets)
    np.testing.assert_allclose(mine / ntk, 8**-0.25, rtol=1e-12)


@pytest.mark.parametrize("widths", [(), (3,), (3, 0, 1), (3, -2, 1), (3, 2.5, 1)])
def test_bad_widths_are_refused(widths):
    with pytest.raises(UserError, match="widths must be"):
        mlp(widths)


def test_unknown_names_are_refused_with_the_nearest():
    with pytest.raises(UserError, match="did you mean 'mean-field'"):
        mlp((3, 4, 1), parameterized="meanfield")


def test_an_unknown_activation_is_the_users_mistake():
    with pytest.raises(UserError, match="did you mean 'relu'"):
        mlp((3, 4, 1), "rleu")


@pytest.mark.parametrize("c_w", [(1.0,), (1.0, 2.0, 3.0)])
def test_as_many_variances_as_layers(c_w):
    with pytest.raises(UserError):
        mlp((3, 4, 1), c_w=c_w)
