"""Activations with corners and jumps between positions: against quadrature, SciPy, finite networks and mlp."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy.stats import multivariate_normal

from steepest.core.errors import UserError
from steepest.kernels import covariance_map, gram, pair_kernels, sampled_gram
from steepest.kernels.duals._expectations import pair_moments, single_moments
from steepest.kernels.wide.duals import Piecewise, dual_of
from steepest.nn.activations import Activation, Term, activation, pieces_of, piecewise
from steepest.nn.layers import conv, dense, flatten, global_pool, network, pool
from steepest.nn.networks import mlp

SCALE, ALPHA = 1.0507009873554805, 1.6732632423543772
RELU6 = Activation("relu6", lambda z: jnp.clip(z, 0.0, 6.0), kinks=(0.0, 6.0))
HARD_SWISH = Activation(
    "hard_swish", lambda z: z * jnp.clip(z + 3, 0.0, 6.0) / 6, kinks=(-3.0, 3.0)
)
SELU = piecewise((0.0,), ((Term(SCALE * ALPHA, 0, 1.0), Term(-SCALE * ALPHA)), (Term(SCALE, 1),)))
TAILS = piecewise((-0.5, 1.0), ((Term(1.0, 0, 1.0),), (Term(0.3),), (Term(2.0, 1, -1.0),)))
SHRINK = piecewise((-0.5, 0.5), ((Term(0.5), Term(1.0, 1)), (), (Term(-0.5), Term(1.0, 1))))
CONTINUOUS = {
    "hard_tanh": activation("hard_tanh"),
    "relu6": RELU6,
    "hard_swish": HARD_SWISH,
    "elu": activation("elu"),
    "selu": SELU,
    "relu_power(3)": activation("relu_power(3)"),
    "soft_shrink": SHRINK,
}


def pairs(low, high, seed=0):
    """Variances over decades, some equal, and correlations up to ±1."""
    rng = np.random.default_rng(seed)
    variances = 10 ** rng.uniform(np.log10(low), np.log10(high), (2, 12))
    variances[1, :4] = variances[0, :4]
    rho = [1, -1, 1 - 1e-6, 1 - 1e-3, 1, -1, 1 - 1e-10, 1 - 1e-4, -1 + 1e-5, 0, 0.5, -0.8]
    return variances, np.array(rho) * np.sqrt(variances[0] * variances[1])


def computed(sigma, variances, k, dtype: type[np.floating] = np.float64):
    dual = Piecewise(sigma, 2.0 ** np.ceil(np.log2(variances.max())), empty=not variances.all())
    with jax.enable_x64(dtype == np.float64):
        sides = [[jnp.asarray(side, dtype) for side in dual.sides(v)] for v in variances]
        value, slope = dual.pairing.pair(jnp.asarray(k, dtype), *sides)
    return dual, np.asarray(value, float), np.asarray(slope, float)


@pytest.mark.parametrize(("low", "high"), [(1e-6, 1e-2), (1e-2, 10), (10, 1e3)])
@pytest.mark.parametrize("name", CONTINUOUS)
def test_pairs_against_quadrature(name, low, high):
    """Relative to √(E σ(u)² E σ(v)²); parts that cancel at large variances are in the tolerance that is declared."""
    sigma = CONTINUOUS[name]
    if name == "soft_shrink" and low < 1e-2:
        with pytest.raises(UserError):
            dual_of(sigma, np.full(1, low), 1e-6)
        return
    variances, k = pairs(low, high)
    roots = np.sqrt(np.maximum(variances[0] * variances[1] - k**2, 0.0))
    both = variances.ravel()
    index = np.arange(len(k))
    exact = pair_moments(sigma, both, index, index + len(k), k, roots, 1e-9)
    value_size, slope_size = (
        np.sqrt(square[: len(k)] * square[len(k) :]) for square in single_moments(sigma, both)
    )
    for dtype in (np.float64, np.float32):
        dual, value, slope = computed(sigma, variances, k, dtype)
        eps = float(np.finfo(dtype).eps)
        errors = dual.tolerances(eps)
        allowed = errors.value * value_size + exact.value_error
        # the quadrature ends at twelve deviations, where no more than this is left
        assert (np.abs(value - exact.value) <= allowed + 1e-30).all()
        # the inputs' own rounding of ρ, which a corner magnifies to its root
        near = errors.corner * np.sqrt(8 * eps) + 8 * eps * slope_size * (1 + variances.max())
        allowed = errors.slope * slope_size + near + exact.slope_error + 1e-30
        assert (np.abs(slope - exact.slope) <= allowed).all()
        if high <= 10 and dtype == np.float64:
            assert errors.value < 1e-12


def test_single_expectations_against_quadrature():
    variances = np.geomspace(1e-4, 1e2, 7)
    for sigma in [*CONTINUOUS.values(), TAILS]:
        dual = Piecewise(sigma, 100.0, empty=False)
        singles = dual.singles(variances)
        z = np.linspace(-12, 12, 2_000_001)
        weights = np.exp(-(z**2) / 2) / np.sqrt(2 * np.pi) * (z[1] - z[0])
        for i, variance in enumerate(variances):
            values = dual.pieces.values(np.sqrt(variance) * z)
            assert singles.value[i] == pytest.approx(values**2 @ weights, rel=1e-5)
            assert singles.mean[i] == pytest.approx(values @ weights, rel=1e-5, abs=1e-6)


@pytest.mark.parametrize("knot", [0.0, 0.4, -1.1])
def test_jumps_against_the_normal_distribution_of_scipy(knot):
    sigma = piecewise((knot,), ((), (Term(1.0),)))
    variances, k = pairs(0.3, 3.0)
    k[np.abs(k) > 0.9999 * np.sqrt(variances[0] * variances[1])] *= 0.999
    _, value, slope = computed(sigma, variances, k)
    assert np.isnan(slope).all()
    for a, b, c, mean in zip(*variances, k, value, strict=True):
        law = multivariate_normal(cov=np.array([[a, c], [c, b]]))
        right = law.cdf([-knot, -knot])
        assert mean == pytest.approx(right, abs=1e-13)


def test_exponentials_beyond_knots_that_jump():
    """By a double sum over a fine grid."""
    variances, k = pairs(0.5, 2.0)
    dual, value, _ = computed(TAILS, variances, k)
    z = (np.arange(2001) - 1000) / 125
    values = dual.pieces.values
    for a, b, c, found in list(zip(*variances, k, value, strict=True))[9:]:
        rho = c / np.sqrt(a * b)
        u = np.sqrt(a) * z[:, None]
        v = np.sqrt(b) * (rho * z[:, None] + np.sqrt(1 - rho**2) * z)
        weights = np.exp(-(z[:, None] ** 2 + z**2) / 2) / (2 * np.pi) * (z[1] - z[0]) ** 2
        assert found == pytest.approx((weights * values(u) * values(v)).sum(), abs=2e-3)


def test_a_signal_of_zero_is_a_number():
    sigma = HARD_SWISH
    _, value, slope = computed(sigma, np.array([[0.0, 0.0], [0.0, 2.0]]), np.zeros(2))
    assert value.tolist() == [0.0, 0.0]
    mean = covariance_map(sigma, np.array([[2.0, 2.0, 0.0]])).first.value ** 0.5
    np.testing.assert_allclose(slope, [0.25, 0.5 * mean.item()], rtol=1e-12)


@pytest.mark.parametrize("name", ["hard_tanh", "elu", "relu6", "relu_power(3)"])
def test_vectors_against_the_recursion_of_a_fully_connected_network(name):
    sigma = CONTINUOUS[name]
    x = np.random.default_rng(0).normal(size=(3, 5))
    options = {"parameterized": "ntk", "c_w": 1.4, "c_b": 0.1}
    layers = [layer for _ in range(2) for layer in (dense(8), sigma)]
    found = gram(network(*layers, dense(1), shape=(5,), **options).limit(), x)
    squares = (x**2).mean(1)
    cosines = x @ x.T / np.sqrt(np.outer(squares, squares)) / 5
    first, second = np.triu_indices(3, 1)
    exact = pair_kernels(
        mlp((5, 8, 8, 1), sigma, **options).limit(),
        squares,
        first,
        second,
        np.arccos(cosines[first, second]),
        1e-10,
    )
    for kernel, right in zip(found[:2], exact.pairs, strict=True):
        np.testing.assert_allclose(kernel[first, second], right, rtol=1e-8)
    for kernel, right in zip(found[:2], exact.singles, strict=True):
        np.testing.assert_allclose(np.diag(kernel), right, rtol=1e-8)


@pytest.mark.parametrize("name", ["hard_tanh", "elu", "step"])
def test_a_sequence_that_is_filled_up_is_the_shorter_sequence(name):
    x = np.random.default_rng(2).normal(size=(3, 6, 2))
    mask = np.arange(6) < np.array([[4], [4], [4]])

    def limit(length):
        layers = [conv(4), name, conv(4), name, global_pool(), dense(1)]
        net = network(*layers, shape=(length, 2), parameterized="ntk", c_w=1.5, c_b=0.1)
        return net.limit()

    filled = gram(limit(6), x, mask=mask)
    shorter = gram(limit(4), x[:, :4])
    np.testing.assert_allclose(filled.nngp, shorter.nngp, rtol=1e-7)
    np.testing.assert_allclose(filled.ntk, shorter.ntk, rtol=1e-7)


def test_behind_a_jump_variances_err_by_roots_of_rounding():
    """Means over pairs of positions err as pairs do: behind a step by the root of rounding, not by a tenth."""
    x = np.random.default_rng(3).normal(size=(3, 4, 2))
    layers = [conv(4), "step", pool(2), conv(4), "erf", flatten(), dense(1)]
    options = {"shape": (4, 2), "parameterized": "ntk", "c_w": 1.5, "c_b": 0.1}
    limit = network(*layers, **options).limit()
    exact = gram(limit, x)
    single = gram(limit, x.astype(np.float32))
    size = np.sqrt(np.outer(np.diag(exact.nngp), np.diag(exact.nngp)))
    assert exact.error < 1e-6
    assert (np.abs(single.nngp - exact.nngp) / size).max() <= single.error < 1e-2


def _near(mean, deviation, exact):
    """Tell whether a mean is within four standard errors, and a hundredth for the finite width."""
    size = np.sqrt(np.outer(np.diag(exact), np.diag(exact)))
    return (np.abs(mean - exact) <= 4 * deviation + 0.01 * size).all()


@pytest.mark.parametrize("name", ["hard_tanh", "elu", "step"])
def test_finite_convolutional_networks(name):
    x = np.random.default_rng(1).normal(size=(3, 4, 4, 2))
    net = network(
        conv(200),
        name,
        conv(200),
        name,
        flatten(),
        dense(1),
        shape=(4, 4, 2),
        parameterized="ntk",
        c_w=1.5,
        c_b=0.1,
    )
    limit = gram(net.limit(), x)
    drawn = sampled_gram(net, jnp.asarray(x), jax.random.key(0), count=60)
    assert _near(drawn.nngp, drawn.nngp_error, limit.nngp)
    if name == "step":
        assert np.isnan(limit.ntk).all()
    else:
        assert _near(drawn.ntk, drawn.ntk_error, limit.ntk)


@pytest.mark.parametrize("name", ["hard_tanh", "elu", "step", "relu_power(3)"])
def test_single_precision_stays_within_the_bound(name):
    x = np.random.default_rng(0).normal(size=(4, 4, 4, 2))
    layers = [layer for _ in range(3) for layer in (conv(3), name)]
    net = network(*layers, flatten(), dense(1), shape=(4, 4, 2), parameterized="ntk", c_b=0.05)
    exact = gram(net.limit(), x)
    single = gram(net.limit(), x.astype(np.float32))
    kernels = list(zip(exact[:2], single[:2], strict=True))[: 1 if name == "step" else 2]
    for right, wrong in kernels:
        size = np.sqrt(np.outer(np.diag(right), np.diag(right)))
        assert (np.abs(wrong - right) / size).max() <= single.error
    # three jumps leave the eighth root of rounding where signals are nearly parallel
    assert exact.error < (1e-2 if name == "step" else 1e-5)


@pytest.mark.parametrize("name", ["hard_tanh", "elu", "relu_power(3)"])
@pytest.mark.parametrize("c", [0.7, -1.2, "equal"])
def test_derivatives_by_differences(name, c):
    """In both variances and the covariance; of equal signals along the variance that they share."""
    dual = Piecewise(activation(name), 1e3, empty=True)

    def moments(at):
        sides = [dual.sides(at[i], jnp) for i in range(2)]
        return jnp.stack(dual.pairing.pair(at[2], *sides))

    with jax.enable_x64(True):
        at = jnp.array([1.5, 1.5, 1.5] if c == "equal" else [1.5, 2.0, c])
        ways = np.ones((1, 3)) if c == "equal" else np.eye(3)
        # of equal signals the slope of a corner has no derivative
        count = 1 if c == "equal" and name == "hard_tanh" else 2
        for way in ways:
            _, slope = jax.jvp(moments, (at,), (jnp.asarray(way),))
            h = 1e-5
            difference = (moments(at + h * way) - moments(at - h * way)) / (2 * h)
            np.testing.assert_allclose(slope[:count], difference[:count], rtol=1e-7, atol=1e-9)


def test_what_is_not_piecewise_is_refused():
    for sigma in ("abs_power(1.5)", Activation("odd", jnp.tanh, kinks=(0.5,))):
        with pytest.raises(UserError):
            dual_of(activation(sigma), np.ones(1), 1e-6)
    growing = piecewise((1.0,), ((Term(1.0),), (Term(1.0, 0, 1.0),)))
    with pytest.raises(UserError):
        dual_of(growing, np.ones(1), 1e-6)
    wrong = Activation("wrong", jnp.abs, kinks=(0.0,), pieces=pieces_of(activation("elu")))
    with pytest.raises(UserError):
        pieces_of(wrong)
    for knots, terms in (((), ((),)), ((1.0, 0.0), ((), (), ())), ((0.0,), ((),))):
        with pytest.raises(UserError):
            piecewise(knots, terms)
    with pytest.raises(UserError):
        piecewise((0.0,), ((), (Term(1.0, -1),)))
