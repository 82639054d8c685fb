"""Kernels as functions of C_W, C_b and the weights of branches: derivatives by differences of the untraced kernels."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.flatten_util import ravel_pytree

from steepest.core.errors import UserError
from steepest.kernels import (
    fit,
    gaussian_process,
    gram,
    kernel_function,
    log_marginal_likelihood,
    pair_kernels,
)
from steepest.kernels.duals._expectations import at_rest
from steepest.kernels.wide import _evaluate
from steepest.nn.layers import (
    add,
    aggregate,
    attention,
    concatenate,
    conv,
    dense,
    flatten,
    global_pool,
    identity,
    layer_norm,
    multiply,
    network,
    pool,
    serial,
)
from steepest.nn.networks import mlp

RNG = np.random.default_rng(0)
VECTORS = RNG.standard_normal((4, 3))
IMAGES = RNG.standard_normal((4, 4, 3, 2))
Y = RNG.standard_normal(4)
RING = (np.roll(np.eye(12), 1, 0) + np.roll(np.eye(12), -1, 0)) / 2
START = jnp.array([1.5, 0.2, 0.7])


def of(*layers):
    return lambda c_w, c_b, r: network(
        *(layer(r) if callable(layer) else layer for layer in layers),
        shape=IMAGES.shape[1:],
        parameterized="ntk",
        c_w=c_w,
        c_b=c_b,
    ).limit()


def connected(activation, **options):
    return lambda c_w, c_b, r: mlp(
        (3, 8, 8, 1), activation, parameterized="ntk", c_w=c_w, c_b=c_b, **options
    ).limit()


BRANCHED = lambda r: add(identity, serial(conv(2), "relu", conv(2)), weights=(1.0, r))
ATTENDING = lambda r: attention(8, heads=2, key=4, sharpness=r)
ARCHITECTURES = {
    "relu": (connected("relu"), VECTORS),
    "tanh": (connected("tanh"), VECTORS),
    "erf by layers": (
        lambda c_w, c_b, r: mlp(
            (3, 8, 8, 1), "erf", parameterized="ntk", c_w=(c_w, r, c_w), c_b=c_b
        ).limit(),
        VECTORS,
    ),
    "gelu, standard": (
        lambda c_w, c_b, r: mlp((3, 8, 8, 1), "gelu", c_w=c_w, c_b=c_b, skip=r).limit(),
        VECTORS,
    ),
    "normalized silu": (connected("silu", normalize=True), VECTORS),
    "flatten": (of(conv(8), "relu", conv(8), "tanh", flatten(), dense(1)), IMAGES),
    "corners": (of(conv(8), "hard_tanh", conv(8), "elu", flatten(), dense(1)), IMAGES),
    "pools": (of(conv(8), "relu", pool(2), conv(8), "erf", global_pool(), dense(1)), IMAGES),
    "residual": (of(conv(2), BRANCHED, flatten(), dense(1)), IMAGES),
    "attention": (of(conv(8), ATTENDING, global_pool(), dense(1)), IMAGES),
    "graph": (of(dense(8), "softplus", aggregate(RING), global_pool(), dense(1)), IMAGES),
    "gates": (
        of(conv(8), multiply(serial(conv(8), "tanh"), conv(8)), layer_norm(), flatten(), dense(1)),
        IMAGES,
    ),
    "side by side": (
        of(conv(8), concatenate(conv(8), serial("relu", conv(4))), "relu", flatten(), dense(1)),
        IMAGES,
    ),
}


def likelihoods(limit, x, c):
    kernels = gram(limit(*c), x)
    return jnp.stack([log_marginal_likelihood(k, Y, 0.1) for k in kernels[:2]])


@pytest.mark.parametrize("name", ARCHITECTURES)
def test_derivatives_of_the_likelihood_are_those_of_differences(name):
    limit, x = ARCHITECTURES[name]
    slopes = jax.jacrev(lambda c: likelihoods(limit, x, c))(START)
    at = lambda i, h: likelihoods(limit, x, [float(v) for v in START.at[i].add(h)])
    for i in range(3):
        # central differences at h and h/2, extrapolated: an error of order h⁴
        coarse, fine = ((at(i, h) - at(i, -h)) / (2 * h) for h in (2e-3, 1e-3))
        np.testing.assert_allclose(slopes[:, i], (4 * fine - coarse) / 3, rtol=1e-6, atol=1e-7)


@pytest.mark.parametrize("name", ARCHITECTURES)
def test_traced_kernels_are_the_same(name):
    limit, x = ARCHITECTURES[name]
    exact = gram(limit(*map(float, START)), x, x[:3])
    traced = jax.jit(lambda c: gram(limit(*c), x, x[:3]))(START)
    for kernel, right in zip(traced[:2], exact[:2], strict=True):
        # of equal inputs in two sets the angle of a kinked σ is only known to a root of rounding
        np.testing.assert_allclose(kernel, right, rtol=1e-8, atol=1e-10)
    assert float(traced.error) < 1e-9


def test_a_limit_is_a_tree_of_its_coefficients():
    """Two hidden ReLU layers, the kernels by their recursion at C_W = 1.5 and C_b = 0.2."""
    limit = connected("relu")(1.5, 0.2, 1.0)
    slopes = jax.grad(lambda limit: gram(limit, VECTORS).nngp.sum())(limit)
    whole = jax.grad(lambda c: gram(connected("relu")(*c), VECTORS).nngp.sum())(START)
    assert sum(layer.c_w for layer in slopes.layers) == pytest.approx(float(whole[0]), rel=1e-12)
    assert sum(layer.c_b for layer in slopes.layers) == pytest.approx(float(whole[1]), rel=1e-12)


def test_curvature_and_batches_of_coefficients():
    f = lambda c: likelihoods(connected("tanh"), VECTORS, c)[0]
    bend = jax.hessian(f)(START)
    slopes = [jax.grad(f)(START.at[0].add(h))[:2] for h in (1e-4, -1e-4)]
    np.testing.assert_allclose(bend[0, :2], (slopes[0] - slopes[1]) / 2e-4, rtol=1e-5)
    several = jnp.stack([START, 1.1 * START])
    by_turns = jnp.stack([f(c) for c in several])
    np.testing.assert_allclose(jax.vmap(f)(several), by_turns, rtol=1e-9)


def test_one_pair_is_a_function_of_coefficients_too():
    def pair(c):
        return kernel_function(connected("tanh")(*c), VECTORS)(VECTORS[0], VECTORS[1]).ntk

    whole = jax.grad(lambda c: gram(connected("tanh")(*c), VECTORS).ntk[0, 1])(START)
    np.testing.assert_allclose(jax.grad(pair)(START), whole, rtol=1e-9)


@pytest.mark.parametrize("activation", ["relu", "tanh"])
def test_pairs_may_be_mapped_before_anything_is_known_of_the_activation(activation):
    limit = connected(activation)
    pair = lambda c, x, y: kernel_function(limit(*c), VECTORS)(x, y).nngp
    at_rest.cache_clear()
    mapped = jax.jit(jax.vmap(pair, (None, 0, 0)))(START, VECTORS[:2], VECTORS[2:])
    exact = gram(limit(*map(float, START)), VECTORS).nngp
    np.testing.assert_allclose(mapped, [exact[0, 2], exact[1, 3]], rtol=1e-6)


@pytest.mark.parametrize("name", ["tanh", "flatten", "attention"])
def test_one_architecture_has_one_program(name):
    limit, x = ARCHITECTURES[name]
    _evaluate._program.cache_clear()
    for c_w in (1.4, 1.45, 1.5):
        gram(limit(c_w, 0.2, 1.0), x)
    programs = _evaluate._program.cache_info().currsize
    for c_w in np.linspace(1.41, 1.49, 5):
        gram(limit(float(c_w), 0.2, 1.0), x)
    assert _evaluate._program.cache_info().currsize == programs


def test_a_fit_ends_at_a_maximum_of_the_likelihood():
    """Targets are drawn from the process itself, whose numbers the fit comes near."""
    net = lambda c: mlp((3, 9, 1), "erf", parameterized="ntk", c_w=c["w"], c_b=c["b"]).limit()
    rng = np.random.default_rng(1)
    x = rng.standard_normal((60, 3))
    covariance = gram(net({"w": 3.0, "b": 0.5}), x).nngp + 0.05 * np.eye(60)
    y = np.linalg.cholesky(covariance) @ rng.standard_normal((60, 6))
    fitted = fit(net, {"w": 1.0, "b": 0.1}, x, y)
    assert fitted.converged

    def likelihood(w, b, noise):
        kernel = gram(net({"w": w, "b": b}), x).nngp
        return float(gaussian_process(kernel, y, noise).log_likelihood.sum())

    best = (fitted.hyperparameters["w"], fitted.hyperparameters["b"], fitted.noise)
    assert best == pytest.approx((3.0, 0.5, 0.05), rel=0.6)
    top = likelihood(*best)
    assert fitted.log_likelihood == pytest.approx(top, rel=1e-9)
    assert top > likelihood(1.0, 0.1, 0.1)
    for i in range(3):
        for factor in (0.8, 1.25):
            other = [value * (factor if i == j else 1.0) for j, value in enumerate(best)]
            assert likelihood(*other) <= top + 1e-6


def test_what_cannot_be_fitted_is_refused():
    net = lambda c: connected("relu")(c, 0.1, 1.0)
    with pytest.raises(UserError, match="hyperparameter"):
        fit(net, -1.0, VECTORS, Y)
    with pytest.raises(UserError, match="noise"):
        fit(net, 1.0, VECTORS, Y, noise=0.0)
    with pytest.raises(UserError, match="targets"):
        fit(net, 1.0, VECTORS, Y[:3])


def test_what_is_computed_in_numpy_refuses_traced_coefficients():
    def inside(c):
        limit = connected("relu")(*c)
        zero = np.zeros(1, int)
        return pair_kernels(limit, np.ones(1), zero, zero, np.zeros(1)).pairs.nngp[0]

    with pytest.raises(UserError, match="traces"):
        jax.grad(inside)(START)


def test_a_structure_has_no_numbers():
    limit, _ = ARCHITECTURES["flatten"]
    first = limit(1.5, 0.2, 1.0)
    second = limit(1.7, 0.0, 1.0)
    assert first != second and first.structure == second.structure
    numbers, unravel = ravel_pytree(first)
    assert unravel(numbers).structure == first.structure


@pytest.mark.parametrize("x", [VECTORS + 1j, VECTORS * np.nan, VECTORS[:, :2], VECTORS[:0]])
def test_inputs_are_refused_beside_traced_coefficients_too(x):
    with pytest.raises(UserError, match="inputs"):
        jax.grad(lambda c: gram(connected("relu")(*c), x).ntk.sum())(START)


def test_one_number_a_layer_may_be_an_array():
    several = lambda c: gram(mlp((3, 8, 8, 1), "relu", c_w=c).limit(), VECTORS).nngp
    same = several((1.0, 1.1, 1.2))
    np.testing.assert_allclose(several(np.array([1.0, 1.1, 1.2])), same)
    np.testing.assert_allclose(jax.jit(several)(jnp.array([1.0, 1.1, 1.2])), same, rtol=1e-12)
