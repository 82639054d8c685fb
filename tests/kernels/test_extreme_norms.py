"""Inputs of extreme norms: kernels that are scaled and scaled back, or a sentence; never NaN, zero or infinity."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from steepest.core.errors import UserError
from steepest.kernels import gram, gram_diagonal, gram_layers, gram_positions, kernel_function
from steepest.nn.layers import (
    add,
    aggregate,
    concatenate,
    conv,
    dense,
    flatten,
    identity,
    layer_norm,
    multiply,
    network,
    pool,
)
from steepest.nn.networks import mlp

RNG = np.random.default_rng(0)
PRECISIONS = [(np.float32, 50), (float, 500)]
"""Powers of two: the squares of inputs are below, or above, what checks let pass, and kernels are still held."""


def close(found, right):
    """Rows are scaled each for itself, so that angles, and tables over norms, are rounded otherwise."""
    rtol = 5e-3 if found.dtype == np.float32 else 1e-6
    np.testing.assert_allclose(found, right, rtol=rtol)


def plain(name, *, bias=False):
    return mlp((3, 8, 8, 1), name, parameterized="ntk", c_w=2.0, bias=bias).limit()


def of_layers(*layers, bias=False):
    options = {"shape": (4, 3, 2), "parameterized": "ntk", "c_w": 2.0, "bias": bias}
    return network(*layers, flatten(), dense(1), **options).limit()


LIMITS = {
    "relu": (plain("relu"), 1),
    "leaky": (plain("leaky_relu(0.2)"), 1),
    "abs": (plain("abs"), 1),
    "linear": (plain("linear"), 1),
    "pool": (of_layers(conv(4), "relu", pool(2)), 1),
    "residual": (of_layers(conv(4), add(identity, conv(4)), "abs"), 1),
    "beside": (of_layers(concatenate(conv(2), conv(3, window=1)), "relu"), 1),
    "matrix": (of_layers(conv(4), "relu", aggregate(np.eye(12) + 0.1)), 1),
    "product": (of_layers(multiply(conv(4), dense(4)), conv(4), "relu"), 2),
    "norm": (of_layers(conv(4), "relu", layer_norm()), 0),
    "quadratic": (mlp((3, 8, 1), "quadratic", parameterized="ntk", bias=False).limit(), 2),
}


def inputs(limit, dtype):
    shape = limit.shape if hasattr(limit, "shape") else (limit.inputs,)
    return RNG.normal(size=(4, *shape)).astype(dtype)


@pytest.mark.parametrize("name", LIMITS)
@pytest.mark.parametrize(("dtype", "power"), PRECISIONS)
@pytest.mark.parametrize("sign", [-1, 1])
def test_kernels_are_those_of_inputs_times_a_power_of_two(name, dtype, power, sign):
    """Kernels grow as the norms to twice the degree."""
    limit, degree = LIMITS[name]
    x = inputs(limit, dtype)
    power = sign * (power // max(degree, 1))
    far = np.ldexp(x, power)
    near, both = gram(limit, x), gram(limit, far)
    close(both.nngp, np.ldexp(near.nngp, 2 * degree * power))
    close(both.ntk, np.ldexp(near.ntk, 2 * degree * power))
    single = gram_diagonal(limit, far)
    close(single.ntk, np.diag(both.ntk))


@pytest.mark.parametrize(
    ("dtype", "powers"), [(np.float32, (-50, 0, 40, 50)), (float, (-500, 0, 300, 500))]
)
@pytest.mark.parametrize("name", ["relu", "pool"])
def test_rows_of_very_different_norms_in_one_call(name, dtype, powers):
    limit, _ = LIMITS[name]
    x = inputs(limit, dtype)
    shape = (-1, *(1 for _ in x.shape[1:]))
    far = np.ldexp(x, np.array(powers).reshape(shape))
    near, both = gram(limit, x), gram(limit, far)
    scales = np.add.outer(powers, powers)
    close(both.ntk, np.ldexp(near.ntk, scales))
    last = gram_layers(limit, far)[-1]
    close(last.ntk, both.ntk)
    cross = gram(limit, far[:2], far[2:])
    close(cross.ntk, both.ntk[:2, 2:])


@pytest.mark.parametrize(
    ("dtype", "size"), [(np.float32, 1e20), (np.float32, 1e-20), (float, 1e200), (float, 1e-200)]
)
@pytest.mark.parametrize("name", ["relu", "pool", "quadratic"])
def test_kernels_beyond_the_precision_are_refused(name, dtype, size):
    limit, _ = LIMITS[name]
    x = inputs(limit, dtype) * dtype(size)
    for function in (gram, gram_diagonal, gram_layers):
        with pytest.raises(UserError):
            function(limit, x)


@pytest.mark.parametrize(("dtype", "size"), [(np.float32, 1e20), (float, 1e200)])
def test_large_rows_beside_small_ones_have_kernels(dtype, size):
    limit, _ = LIMITS["relu"]
    x = inputs(limit, dtype)
    both = gram(limit, x * dtype(size), x / dtype(size))
    close(both.ntk, gram(limit, x).ntk)


@pytest.mark.parametrize(
    ("dtype", "size"), [(np.float32, 1e20), (np.float32, 1e-20), (float, 1e200), (float, 1e-200)]
)
@pytest.mark.parametrize(
    "limit", [plain("relu", bias=True), plain("tanh"), of_layers(conv(4), "relu", bias=True)]
)
def test_networks_that_are_not_homogeneous_are_refused_before(limit, dtype, size):
    x = inputs(limit, dtype) * dtype(size)
    for function in (gram, gram_diagonal, gram_layers):
        with pytest.raises(UserError):
            function(limit, x)


def test_numbers_that_a_mask_hides_do_not_count():
    limit, _ = LIMITS["pool"]
    x = inputs(limit, float)
    mask = np.ones((4, 4, 3), bool)
    mask[0, 0] = False
    far = np.ldexp(x, 490)
    far[0, 0] = 1e300
    close(gram(limit, far, mask=mask).ntk, np.ldexp(gram(limit, x, mask=mask).ntk, 980))


def test_all_positions_are_scaled_back():
    limit = network(
        conv(4), "relu", conv(4), shape=(4, 3, 2), parameterized="ntk", bias=False
    ).limit()
    x = inputs(limit, float)
    right = np.ldexp(gram_positions(limit, x).ntk, 1000)
    close(gram_positions(limit, np.ldexp(x, 500)).ntk, right)


@pytest.mark.parametrize("name", ["relu", "pool", "product"])
def test_a_kernel_function_scales_and_has_its_gradient(name):
    limit, degree = LIMITS[name]
    x = inputs(limit, float)
    kernel = kernel_function(limit, x)
    power = 400 // degree
    far = jnp.asarray(np.ldexp(x, power))
    near = kernel(jnp.asarray(x[0]), jnp.asarray(x[1]))
    right = np.ldexp(float(near.ntk), 2 * degree * power)
    assert float(kernel(far[0], far[1]).ntk) == pytest.approx(right, rel=1e-12)
    slope = jax.grad(lambda z: kernel(z, far[1]).ntk)(far[0])
    right = jax.grad(lambda z: kernel(z, jnp.asarray(x[1])).ntk)(jnp.asarray(x[0]))
    np.testing.assert_allclose(
        slope, np.ldexp(np.asarray(right), (2 * degree - 1) * power), rtol=1e-12
    )


@pytest.mark.parametrize("size", [1e200, 1e-200])
def test_a_kernel_function_gives_no_number_beyond_the_precision(size):
    for limit in (LIMITS["relu"][0], plain("erf")):
        x = jnp.asarray(inputs(limit, float))
        kernel = kernel_function(limit, np.asarray(x))
        assert np.isnan(float(kernel(x[0] * size, x[1] * size).ntk))
    with pytest.raises(UserError):
        kernel_function(plain("erf"), np.asarray(x) * size)
