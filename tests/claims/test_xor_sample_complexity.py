"""Regressions of xor-sample-complexity by other ways, padding, crossings, and the figures of its page."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import xarray

from steepest import kit
from steepest.claims.features.xor_sample_complexity.claim import XorSampleComplexity
from steepest.claims.features.xor_sample_complexity.experiment import (
    RIDGE,
    crossing,
    draw_signs,
    draw_start,
    frozen_error,
    kernel_errors,
    network_errors,
    tables_of,
    tangent_kernel,
)
from steepest.claims.features.xor_sample_complexity.theory import (
    LEVEL,
    both_layers,
    inner_kernel,
    output_kernel,
    samples_needed,
)
from steepest.core.errors import UserError
from steepest.kernels import empirical_ntk, kernel_ridge, ntk
from steepest.nn.networks import Neurons, mlp, two_layer


def test_the_kernel_is_that_of_the_library():
    x = np.random.default_rng(0).normal(size=(5, 4))
    x /= np.linalg.norm(x, axis=1, keepdims=True)
    limit = mlp((4, 9, 1), "relu", parameterized="ntk", c_w=2.0, bias=False).limit()
    ours = both_layers(x @ x.T)
    theirs = np.asarray(ntk(limit, x))
    np.testing.assert_allclose(ours / ours[0, 0], theirs / theirs[0, 0], atol=1e-7)
    t = np.linspace(-1, 1, 7)
    with jax.enable_x64(True):
        np.testing.assert_allclose(tangent_kernel(t), both_layers(t), atol=1e-7)
    np.testing.assert_allclose(inner_kernel(0.3) + output_kernel(0.3), both_layers(0.3))


def test_prefixes_of_one_factor_are_regressions():
    sizes = (10, 25, 60)
    fast = kernel_errors(np.random.default_rng(1), tables_of([8])[0], sizes, 200)
    generator = np.random.default_rng(1)
    x = draw_signs(generator, 60, 8)
    test = draw_signs(generator, 200, 8)
    y = x[:, 0] * x[:, 1]
    for n, error in zip(sizes, fast, strict=True):
        fitted = kernel_ridge(both_layers(x[:n] @ x[:n].T / 8), y[:n], RIDGE)
        outputs = fitted.predict(both_layers(test @ x[:n].T / 8))
        assert (outputs * test[:, 0] * test[:, 1] <= 0).mean() == pytest.approx(error, abs=0.011)


def test_examples_of_weight_zero_change_nothing():
    generator = np.random.default_rng(2)
    x = draw_signs(generator, 30, 5) / np.sqrt(5)
    y = np.sign(x[:, 0] * x[:, 1])
    start = draw_start(generator, 6, 5, 0.3)
    np.testing.assert_allclose(start.v**2, (start.w**2).sum(1))
    start = jax.tree.map(jnp.asarray, start)
    both = network_errors(x, y, x, y, start, 2.0, jnp.array([10.0, 20.0]), 40)
    alone = network_errors(x[:10], y[:10], x, y, start, 2.0, jnp.array([10.0]), 40)
    assert both[0][0] == pytest.approx(float(alone[0][0]))
    assert both[1][0] == pytest.approx(float(alone[1][0]))


def test_frozen_features_are_those_of_the_network():
    generator = np.random.default_rng(3)
    x = draw_signs(generator, 40, 6) / np.sqrt(6)
    start = draw_start(generator, 8, 6, 0.3)
    net = two_layer(6, 8)
    gram = np.asarray(empirical_ntk(net.apply, jax.tree.map(jnp.asarray, start), x)).reshape(40, 40)
    y = np.sign(x[:, 0] * x[:, 1])
    train = slice(0, 20)
    test = slice(20, 40)
    regular = gram[train, train] + RIDGE * np.diag(np.diag(gram[train, train]))
    outputs = gram[test, train] @ np.linalg.solve(regular, y[train])
    error = (outputs * y[test] <= 0).mean()
    assert frozen_error(start, x[train], y[train], x[test], y[test]) == pytest.approx(
        error, abs=0.051
    )


def test_crossings():
    samples = np.array([10, 20, 40])
    errors = np.array([[0.5, 0.3, 0.2], [0.2, 0.1, 0.0], [0.5, 0.5, 0.4], [0.5, 0.2, 0.28]])
    between = 20 * 2**0.5
    pooled = 10 * 2 ** (0.25 / 0.26)
    np.testing.assert_allclose(crossing(samples, errors, LEVEL), [between, 10, 40, pooled])


def test_the_page_s_figures():
    exponent = np.log2(samples_needed(both_layers, 128) / samples_needed(both_layers, 64))
    assert exponent == pytest.approx(1.84, abs=0.005)
    samples = [samples_needed(both_layers, d) for d in (16, 32, 64)]
    assert np.polyfit(np.log([16, 32, 64]), np.log(samples), 1)[0] == pytest.approx(1.78, abs=0.005)
    whole = samples_needed(both_layers, 26)
    assert samples_needed(output_kernel, 26) / whole == pytest.approx(0.92, abs=0.01)
    assert samples_needed(inner_kernel, 26) / whole == pytest.approx(1.03, abs=0.01)
    own = lambda d: lambda t: inner_kernel(t) + output_kernel(t) / d
    more = [samples_needed(own(d), d) / samples_needed(both_layers, d) - 1 for d in (12, 16, 32)]
    np.testing.assert_allclose(more, [-0.003, 0.011, 0.03], atol=0.001)


def test_an_exponent_needs_increasing_dimensions():
    with pytest.raises(UserError, match="increasing --dimensions"):
        XorSampleComplexity(dimensions=(16, 25, 16))


@pytest.mark.parametrize("power, verdict", [(1.5, "fails"), (1.0, "fails"), (2.0, "fails")])
def test_neighbouring_powers_are_refuted(power, verdict):
    """Counts of d log d with a scatter of 5 % refute powers beside it."""
    claim = XorSampleComplexity()
    d = np.array(claim.dimensions, float)
    scatter = np.exp(0.05 * np.random.default_rng(0).normal(size=(3, 16)))
    samples = xarray.DataArray(
        (d * np.log(d))[:, None] * scatter, {"dimension": d}, ("dimension", "seed")
    )
    law = xarray.DataArray(d**power, {"dimension": d}, ("dimension",))
    assert kit.power("a", law, samples, 0.15, over="dimension").verdict.value == verdict


def test_frozen_features_where_no_neuron_is_active():
    """An input on which every neuron is off has a row of zeros: its output is zero, an error."""
    x = np.array([[1.0, 0.0], [-1.0, 0.0]])
    start = Neurons(jnp.array([[1.0, 0.5]]), jnp.array([1.0]))
    assert frozen_error(start, x, np.array([1.0, 1.0]), x, np.array([1.0, 1.0])) == 0.5


def test_parities_of_more_bits_by_a_plain_regression():
    """On explicit labels of four coordinates, with the same draws; all corners of a small cube are fitted."""
    from steepest.claims.features.xor_sample_complexity.experiment import (
        RIDGE,
        TESTS,
        draw_signs,
        regress_parities,
    )
    from steepest.claims.features.xor_sample_complexity.theory import both_layers

    (of_degree,) = regress_parities(np.random.default_rng(0), {8: (60, 120)}, 2, 4)
    generator = np.random.default_rng(0)
    for errors in of_degree:
        x = draw_signs(generator, 120, 8)
        test = draw_signs(generator, TESTS, 8)
        for n, error in zip((60, 120), errors, strict=True):
            gram = both_layers(np.clip(x[:n] @ x[:n].T / 8, -1, 1)) + RIDGE * np.eye(n)
            labels = x[:n, 0] * x[:n, 1] * x[:n, 2] * x[:n, 3]
            outputs = both_layers(np.clip(test @ x[:n].T / 8, -1, 1)) @ np.linalg.solve(
                gram, labels
            )
            expected = (outputs * test[:, 0] * test[:, 1] * test[:, 2] * test[:, 3] <= 0).mean()
            assert abs(error - expected) < 0.01
