"""Exact moments of random ReLU networks against enumeration, the limit, autodiff and sampling."""

import itertools
import math

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from steepest.kernels import empirical_ntk
from steepest.nn.networks import mlp
from steepest.nn.networks._relu_paths import (
    KURTOSIS,
    derivative_moments,
    expected_ntk,
    log_column_moments,
    ntk_growth,
    ntk_moments,
)
from steepest.nn.networks._relu_sampling import (
    _draw,
    sample_columns,
    sample_ntk,
    tilted_ntk_moments,
)

GENERIC = np.array([1.0, math.sqrt(2.0)])


def signs(count):
    return np.array(list(itertools.product((-1.0, 1.0), repeat=count)))


def enumerated(widths, x, gates):
    """∂z/∂x_1 and Θ of every network with Rademacher weights; ``gates`` is "coin" (all of them) or a rule on z."""
    shapes = list(itertools.pairwise(widths))
    flat = signs(sum(a * b for a, b in shapes))
    coins = (signs(sum(widths[1:-1])) + 1) / 2 if gates == "coin" else np.zeros((1, 0))
    flat, coins = np.repeat(flat, len(coins), 0), np.tile(coins, (len(flat), 1))
    weights = []
    opens = []
    signals = [np.tile(x, (len(flat), 1))]
    for n, m in shapes:
        w = flat[:, : n * m].reshape(-1, m, n) * math.sqrt(2 / n)
        flat = flat[:, n * m :]
        weights.append(w)
        z = np.round(
            np.einsum("kij,kj->ki", w, signals[-1]), 12
        )  # exact ties, not those up to rounding
        if gates == "coin":
            on = coins[:, :m]
            coins = coins[:, m:]
        else:
            on = gates(z).astype(float)
        opens.append(on)
        signals.append(on * z if on.shape == z.shape else z)
    delta = np.ones((len(z), 1))
    total = 0.0
    for k in reversed(range(len(shapes))):
        if k < len(shapes) - 1:
            delta = opens[k] * delta
        total = total + 2 / widths[k] * (signals[k] ** 2).sum(1) * (delta**2).sum(1)
        delta = np.einsum("kij,ki->kj", weights[k], delta)
    return delta[:, 0], total


@pytest.mark.parametrize("widths", [(2, 2, 1), (2, 3, 1), (2, 2, 2, 1), (2, 3, 2, 1)])
def test_moments_equal_the_sum_over_all_rademacher_networks(widths):
    """With coins for gates every weight matrix and every gate is summed over: equality to rounding."""
    slope, ntk = enumerated(widths, GENERIC, "coin")
    np.testing.assert_allclose(
        derivative_moments(widths, "rademacher"), ((slope**2).mean(), (slope**4).mean()), 1e-11
    )
    np.testing.assert_allclose(
        ntk_moments(widths, GENERIC, "rademacher"), (ntk.mean(), (ntk**2).mean()), 1e-11
    )


@pytest.mark.parametrize("rule", [lambda z: z > 0, lambda z: z >= 0])
def test_real_gates_are_coins_where_the_input_is_generic(rule):
    """Rademacher weights at x = (1, √2): moments as with coins; at x = (1, 1), with ties, not so."""
    widths = (2, 3, 2, 1)
    slope, _ = enumerated(widths, GENERIC, rule)
    np.testing.assert_allclose(
        derivative_moments(widths, "rademacher"), ((slope**2).mean(), (slope**4).mean()), 1e-11
    )
    tied, _ = enumerated(widths, np.ones(2), rule)
    assert abs((tied**2).mean() - 1) > 0.3


def test_fourth_moment_of_gaussian_weights():
    for widths in ((7, 1), (3, 5, 1), (3, 5, 2, 9, 4)):
        exact = 12 / widths[0] ** 2 * math.prod(1 + 5 / n for n in widths[1:-1])
        np.testing.assert_allclose(derivative_moments(widths).fourth, exact, 1e-13)


def close(samples, exact):
    """Within four standard errors."""
    samples = np.asarray(samples, float)
    assert abs(samples.mean() - exact) <= 4 * samples.std() / math.sqrt(samples.size) + 1e-12


@pytest.mark.parametrize("law", KURTOSIS)
def test_sampled_columns_have_the_exact_moments(law):
    """Every layer's preactivations are the outputs of a network that ends there."""
    widths = (4, 6, 3, 5, 2)
    x = jax.random.normal(jax.random.key(7), (4,))
    for gates in ("real", "coin"):
        found = sample_columns(jax.random.key(1), 10_000, widths, x, law, columns=2, gates=gates)
        assert found.norms.shape == (10_000, 3, 2)
        for layer in range(4):
            exact = derivative_moments(widths[: layer + 2], law)
            close(found.squares[:, layer], exact.second)
            close(found.fourths[:, layer], exact.fourth)
        for layer in range(3):
            close(found.norms[:, layer].mean(1), 1.0)


def test_real_gates_and_coins_agree_in_law():
    """Two samples of log-norms: mean and variance within four standard errors."""
    x = jax.random.normal(jax.random.key(2), (8,))
    one, other = (
        np.log(
            sample_columns(jax.random.key(i), 3_000, (8, *[24] * 6, 1), x, gates=g).norms[:, :, 0]
        )
        for i, g in enumerate(("real", "coin"))
    )
    for statistic in (lambda s: s, lambda s: (s - s.mean(0)) ** 2):
        a = statistic(one)
        b = statistic(other)
        assert np.abs((a.mean(0) - b.mean(0)) / np.sqrt((a.var(0) + b.var(0)) / len(a))).max() <= 4


def test_gates_come_from_the_input():
    """The same key gives the same networks: gates do not change with the length of the input, but with its sign."""
    x = jnp.array([0.3, -1.2, 0.8])
    arguments = (jax.random.key(3), 10, (3, 6, 4, 2))
    found, again, longer, turned = (
        sample_columns(*arguments, y, columns=3).norms for y in (x, x, 2 * x, -x)
    )
    np.testing.assert_array_equal(found, again)
    np.testing.assert_allclose(found, longer, rtol=1e-12)
    assert np.abs(found - turned).max() > 0.1


def test_logarithms_of_the_column():
    """Exact mean and variance against sampling; the theorem's −β/2 and β are their limit."""
    widths = (4, *[20] * 5, 1)
    mean, variance = log_column_moments(widths)
    logs = np.log(
        sample_columns(jax.random.key(4), 20_000, widths, jnp.arange(1.0, 5)).norms[:, :, 0]
    )
    for layer in range(5):
        close(logs[:, layer], mean[layer])
        close((logs[:, layer] - mean[layer]) ** 2, variance[layer])
    for n, allowed in ((100, 0.05), (1000, 0.005)):
        mean, variance = log_column_moments((1, *[n] * 10, 1))
        assert abs(mean[-1] / (-25 / n) - 1) < allowed
        assert abs(variance[-1] / (50 / n) - 1) < allowed


def test_sampled_ntk_has_the_exact_moments_and_the_law_of_autodiff():
    """Without weights, with weights and autodiff, and exactly: mean and second moment, unequal widths."""
    widths = (3, 4, 2, 5, 1)
    x = jnp.array([0.5, -1.0, 2.0])
    exact = ntk_moments(widths, x)
    net = mlp(widths, "relu", parameterized="ntk", c_w=2.0, bias=False)
    explicit = jax.jit(jax.vmap(lambda key: empirical_ntk(net.apply, net.init(key), x[None])[0, 0]))
    for samples in (
        sample_ntk(jax.random.key(5), 100_000, widths, x),
        explicit(jax.random.split(jax.random.key(6), 100_000)),
    ):
        close(samples, exact.mean)
        close(samples**2, exact.square)
    assert exact.mean == pytest.approx(2 * 4 * 5.25 / 3, rel=1e-14)


def test_third_moment_of_the_ntk_without_and_with_weights():
    """Beyond the moments that are known exactly the two samplers agree too."""
    widths = (2, 12, 12, 1)
    x = jnp.array([0.5, -1.0])
    net = mlp(widths, "relu", parameterized="ntk", c_w=2.0, bias=False)
    explicit = jax.jit(jax.vmap(lambda key: empirical_ntk(net.apply, net.init(key), x[None])[0, 0]))
    one = np.asarray(sample_ntk(jax.random.key(8), 50_000, widths, x))
    other = np.asarray(explicit(jax.random.split(jax.random.key(9), 50_000)))
    for f in (lambda s: s**3, np.sqrt, lambda s: s > 3.0):
        a = f(one).astype(float)
        b = f(other).astype(float)
        assert abs(a.mean() - b.mean()) <= 4 * math.sqrt((a.var() + b.var()) / len(a))
    tilt = np.exp(tilted(4, 50, 1000, widths[:-1], x, 3.0)[:, -1])
    for cubes in (one.astype(float) ** 3, other**3):
        spread = math.hypot(cubes.std() / len(cubes) ** 0.5, tilt.std() / len(tilt) ** 0.5)
        assert abs(cubes.mean() - tilt.mean()) < 4 * spread


def tilted(seed, groups, particles, widths, x, power):
    keys = jax.random.split(jax.random.key(seed), groups)
    one = lambda key: tilted_ntk_moments(key, particles, widths, x, power)
    return np.asarray(jax.vmap(one)(keys))


def test_tilted_moments_are_exact_far_beyond_plain_means():
    """Up to β = 3, in widths that differ; the mean of the logarithm is low by half its variance."""
    widths = (5, *(8, 16) * 16)
    x = jnp.linspace(0.5, 1.5, 5)
    for power, name in ((1.0, "mean"), (2.0, "square")):
        logs = tilted(0, 20, 1000, widths, x, power)
        means = np.exp(logs).mean(0)
        errors = np.exp(logs).std(0) / 20**0.5
        for depth in (1, 2, 8, 16):
            exact = getattr(ntk_moments((*widths[: depth + 1], 1), x), name)
            assert abs(means[depth - 1] - exact) < 4 * errors[depth - 1]
        exact = getattr(ntk_moments((*widths, 1), x), name)
        assert logs[:, -1].mean() == pytest.approx(math.log(exact), rel=0.03)


def test_tilted_moments_have_the_right_mean_with_four_particles():
    """Resampling leaves the product of mean weights unbiased at every number of particles."""
    widths = (3, 8, 8, 8)
    drawn = np.exp(tilted(1, 40_000, 4, widths, jnp.ones(3), 2.0)[:, -1])
    z = (drawn.mean() - ntk_moments((*widths, 1), jnp.ones(3)).square) / (drawn.std() / 200)
    assert abs(z) < 4


def test_dead_networks_are_never_resampled():
    """A quarter of the layers of two neurons is dead; rounding of summed weights must not choose one of these."""
    widths = (3, *(2,) * 12)
    logs = tilted(6, 200, 3000, widths, jnp.ones(3, jnp.float32), 1.0)[:, -1]
    assert np.isfinite(logs).all()
    drawn = np.exp(logs.astype(float))
    z = (drawn.mean() - ntk_moments((*widths, 1), jnp.ones(3)).mean) / (drawn.std() / 200**0.5)
    assert abs(z) < 4


def test_an_array_of_widths_gives_the_same_numbers():
    x = jnp.ones(3)
    key = jax.random.key(5)
    given = tilted_ntk_moments(key, 50, (3, 4, 8), x)
    array = tilted_ntk_moments(key, 50, jnp.array([3.0, 4.0, 8.0]), x, largest=8)
    np.testing.assert_array_equal(given, array)


@pytest.mark.parametrize("load", [0.1, 1.0, 4.0])
def test_growth_of_the_ntk_is_the_limit_of_the_recursion(load):
    """The recursion tends to the closed form, with an error of order 1/n; the factor of exp(5 b) is in (1/3, 1)."""
    errors = []
    for n in (500, 1000):
        mean, square = ntk_moments((2, *[n] * int(load * n), 1), GENERIC)
        errors.append(square / mean**2 / ntk_growth(load) - 1)
    assert 1.7 < errors[0] / errors[1] < 2.3
    assert abs(errors[1]) < 0.08
    assert 1 / 3 < ntk_growth(load) / math.exp(5 * load) < 1
    assert ntk_growth(1.01e-4 / 6) == pytest.approx(ntk_growth(0.99e-4 / 6), rel=1e-5)


def test_expected_ntk_against_sampled_networks():
    """Exact for one hidden layer; deep and wide within its correction of order 1/n."""
    inputs = jax.random.normal(jax.random.key(10), (3, 4))
    net = mlp((4, 5, 1), "relu", parameterized="ntk", c_w=2.0, bias=False)
    kernels = jax.vmap(lambda k: empirical_ntk(net.apply, net.init(k), inputs))(
        jax.random.split(jax.random.key(11), 20_000)
    )
    exact = expected_ntk(inputs, 1)
    for i, j in ((0, 0), (0, 1), (0, 2), (1, 2)):
        close(kernels[:, i, j], exact[i, j])
    deep = expected_ntk(inputs, 3)
    np.testing.assert_allclose(jnp.diag(deep), 2 * 4 * (inputs**2).sum(1) / 4, rtol=1e-12)
    wide = mlp((4, 256, 256, 256, 1), "relu", parameterized="ntk", c_w=2.0, bias=False)
    sampled = jax.lax.map(
        lambda k: empirical_ntk(wide.apply, wide.init(k), inputs),
        jax.random.split(jax.random.key(12), 30),
    ).mean(0)
    np.testing.assert_allclose(sampled, deep, atol=0.12 * float(deep.max()))


@pytest.mark.parametrize("law", KURTOSIS)
def test_laws_have_unit_variance_and_their_kurtosis(law):
    w = np.asarray(
        _draw(jax.random.key(0), (1000, 37), jnp.asarray(list(KURTOSIS).index(law)), jnp.float64)
    )
    assert w.shape == (1000, 37)
    for power, exact in ((1, 0.0), (2, 1.0), (3, 0.0), (4, KURTOSIS[law])):
        if np.ptp(w**power) > 0:
            close(w**power, exact)
        else:
            assert (w**power == exact).all()
    close(w[:-1] * w[1:], 0.0)


def test_mistakes_are_said_in_a_sentence():
    key = jax.random.key(0)
    x = jnp.ones(2)
    for match, call in (
        ("did you mean 'gaussian'", lambda: derivative_moments((2, 3, 1), "gausian")),
        ("at least 2 positive whole numbers", lambda: derivative_moments((2,))),
        (r"shape \(3,\)", lambda: ntk_moments((3, 3, 1), x)),
        ("'real' or 'coin'", lambda: sample_columns(key, 3, (2, 3, 1), x, gates="fair")),
        ("columns 1 to 2", lambda: sample_columns(key, 3, (2, 3, 1), x, columns=3)),
        ("at least 3 positive", lambda: sample_columns(key, 3, (2, 1), x)),
        ("one output", lambda: sample_ntk(key, 3, (2, 3, 2), x)),
        (r"shape \(3,\)", lambda: tilted_ntk_moments(key, 3, (3, 3), x)),
        ("at least 2 positive", lambda: tilted_ntk_moments(key, 3, (2,), x)),
        ("must be positive, got 0", lambda: tilted_ntk_moments(key, 3, (2, 3), x, 0)),
        ("needs a bound", lambda: tilted_ntk_moments(key, 3, jnp.array([2.0, 3.0]), x)),
    ):
        with pytest.raises(ValueError, match=match):
            call()
