"""Shifted signals: closed forms against the library's kernels, networks against its layers, descent by hand."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from steepest.claims.kernels.border_breaks_equivariance import experiment, theory
from steepest.claims.kernels.border_breaks_equivariance.claim import BorderBreaksEquivariance
from steepest.kernels import empirical_ntk, gram, kernel_dynamics
from steepest.nn.layers import conv, dense, flatten, global_pool, network

RNG = np.random.default_rng(0)
X = RNG.standard_normal((3, 6, 2))
Y = np.array([1.0, -1.0, 0.5])


def library(*layers, positions=6):
    return network(*layers, shape=(positions, 2), parameterized="ntk", bias=False, c_w=2.0)


@pytest.mark.parametrize("circular", [True, False])
def test_kernels_are_those_of_the_library(circular):
    padding = "circular" if circular else "zero"
    net = library(conv(4, 3, padding=padding), "relu", global_pool(), dense(1))
    wanted = gram(net.limit(), X)
    read = theory.windows(X, 3, circular=circular)
    computed = theory.kernels(read, read)
    np.testing.assert_allclose(computed.ntk, wanted.ntk, rtol=1e-8)
    np.testing.assert_allclose(computed.nngp, wanted.nngp, rtol=1e-8)


@pytest.mark.parametrize("circular", [True, False])
def test_both_sides_read_the_same_windows(circular):
    read = experiment.read_windows(X, 5, 8, circular=circular)
    np.testing.assert_array_equal(read[:, :6], theory.windows(X, 5, circular=circular))
    assert not read[:, 6:].any()


def test_a_window_around_a_circle_only_changes_places():
    read = theory.windows(X, 3, circular=True)
    moved = theory.windows(np.roll(X, 2, axis=1), 3, circular=True)
    np.testing.assert_array_equal(moved, np.roll(read, 2, axis=1))


@pytest.mark.parametrize(
    "world", ["pooled", "flattened", "strided"], ids=["pooled", "flattened", "strided"]
)
def test_networks_are_those_of_the_library(world):
    """With the same weights, windows of zeros behind the last position included."""
    weights = experiment.Weights(RNG.standard_normal((4, 6)), RNG.standard_normal((4, 8)))
    filters = weights.filters.reshape(4, 3, 2).swapaxes(1, 2)
    if world == "flattened":
        net = library(conv(4, 3, padding="circular"), "relu", flatten(), dense(1))
        last = weights.last[:, :6].T.reshape(1, -1)
        reads = experiment.flattening(6, 8)
    else:
        stride = 2 if world == "strided" else 1
        net = library(conv(4, 3, padding="circular"), "relu", global_pool(), dense(1))
        last = weights.last[:, :1].T
        reads = experiment.pooling(6, 8, stride)
    windows = experiment.read_windows(X, 3, 8, circular=True)
    computed = experiment.apply(weights, jnp.asarray(windows), jnp.asarray(reads))
    if world == "strided":
        signals = np.maximum(windows[:, [0, 2, 4]] @ weights.filters.T / 3**0.5, 0)
        wanted = signals.mean(1) @ last[0] / 2**0.5
    else:
        wanted = net.apply(({"w": jnp.asarray(filters)}, {}, {}, {"w": jnp.asarray(last)}), X)
    np.testing.assert_allclose(computed, wanted, rtol=2e-5)


def test_learned_coefficients_are_descent_step_by_step():
    kernel = theory.kernels(*[theory.windows(X, 3, circular=False)] * 2).ntk
    outputs = np.zeros(3)
    weights = np.zeros(3)
    by_step = {}
    for step in range(1, 6):
        weights = weights + 0.7 / 3 * (Y - outputs)
        outputs = kernel @ weights
        by_step[step] = weights
    computed = theory.coefficients(kernel, Y, 0.7, (2, 5))
    np.testing.assert_allclose(computed, [by_step[2], by_step[5]], rtol=1e-10)


def test_many_small_steps_are_the_flow():
    kernel = theory.kernels(*[theory.windows(X, 3, circular=False)] * 2).ntk
    dynamics = kernel_dynamics(kernel)
    flow = dynamics.train(dynamics.flow([2.0]), Y)[0]
    computed = theory.coefficients(kernel, Y, 1e-4, (20_000,))[0] @ kernel
    np.testing.assert_allclose(computed, flow, rtol=1e-3)


def test_training_is_descent_on_the_mean_square():
    task = experiment.Task(
        experiment.read_windows(X, 3, 6),
        Y,
        experiment.read_windows(np.stack([X, np.roll(X, 1, 1)]), 3, 6),
        experiment.pooling(6, 6),
    )
    weights = experiment.Weights(RNG.standard_normal((5, 6)), RNG.standard_normal((5, 6)))
    output = lambda w, a, x: np.maximum(x @ w.T / 3**0.5, 0).mean(-2) @ a * (2 / 5) ** 0.5
    filters = weights.filters
    last = weights.last[:, 0]
    start = output(filters, last, task.train)
    at_start = output(filters, last, task.test)
    for _ in range(3):
        signals = task.train @ filters.T / 3**0.5
        residual = (output(filters, last, task.train) - start - Y) / 3
        to_last = (2 / 5) ** 0.5 * residual @ np.maximum(signals, 0).mean(1)
        back = residual[:, None, None] * (signals > 0) * last / 6 * (2 / 5) ** 0.5 / 3**0.5
        filters = filters - 0.4 * np.einsum("mpn,mpd->nd", back, task.train)
        last = last - 0.4 * to_last
    wanted = output(filters, last, task.test) - at_start
    computed = experiment.train(weights, jax.tree.map(jnp.asarray, task), 0.4, (1, 3))[-1]
    np.testing.assert_allclose(computed, wanted, rtol=1e-4)


def test_narrow_networks_are_invariant_around_a_circle_and_depart_from_the_limit_behind_zeros():
    """By one over the root of the number of channels: sixteen times as many depart by a quarter."""
    claim = BorderBreaksEquivariance(sizes=(8,), signals=4, tests=6, shifts=(1, 3), times=(4,))
    (signals,) = claim.setting(jax.random.key(0)).signals
    limit = claim.learned(signals)
    departures = []
    for channels in (12, 192):
        tasks = [
            experiment.Task(
                experiment.read_windows(signals.train, 5, 8, circular=circular),
                signals.y,
                experiment.read_windows(signals.test, 5, 8, circular=circular),
                experiment.pooling(8, 8),
            )
            for circular in (True, False)
        ]
        around, behind = experiment.train_all(
            np.random.default_rng(0), tasks, channels, 60, claim.rate, claim.times
        )
        assert experiment.largest_move(around).max() < 1e-4
        moved = behind[:, :, 1:] - behind[:, :, :1]
        departures.append(((moved - (limit[:, 1:] - limit[:, :1])) ** 2).mean() ** 0.5)
    assert departures[0] / departures[1] == pytest.approx(4, rel=0.25)


def test_the_kernel_of_wide_networks_is_the_limit():
    read = experiment.read_windows(X, 3, 6)
    weights = experiment.Weights(RNG.standard_normal((5000, 6)), RNG.standard_normal((5000, 6)))
    apply = lambda weights, x: experiment.apply(weights, x, jnp.asarray(experiment.pooling(6, 6)))
    computed = empirical_ntk(apply, jax.tree.map(jnp.asarray, weights), jnp.asarray(read))
    np.testing.assert_allclose(computed, theory.kernels(read, read).ntk, rtol=0.1)


@pytest.mark.parametrize("padding", ["circular", "zero"])
def test_kernels_of_deeper_networks_are_invariant_around_a_circle(padding):
    layers = [conv(4, 3, padding=padding), "relu"] * 2
    limit = library(*layers, global_pool(), dense(1)).limit()
    before = gram(limit, X).ntk
    after = gram(limit, np.roll(X, 2, axis=1), X).ntk
    apart = np.abs(after - before).max() / before.max()
    assert (apart < 1e-10) == (padding == "circular")


def test_a_stride_keeps_even_shifts():
    layers = (conv(4, 3, padding="circular"), "relu", conv(4, 3, stride=2, padding="circular"))
    limit = library(*layers, "relu", global_pool(), dense(1)).limit()
    before = gram(limit, X).ntk
    move = lambda shift: np.abs(gram(limit, np.roll(X, shift, axis=1), X).ntk - before).max()
    assert move(2) < 1e-10 < 1e-3 < move(1)


def test_deviations_and_moves():
    outputs = RNG.standard_normal((2, 4, 5))
    apart = outputs[:, 1:] - outputs[:, :1]
    wanted = (apart**2).mean(-1) ** 0.5
    largest = np.abs(apart).max((1, 2)) / (outputs[:, 0] ** 2).mean(-1) ** 0.5
    for module in (theory, experiment):
        np.testing.assert_allclose(module.deviation(outputs), wanted)
        np.testing.assert_allclose(module.largest_move(outputs), largest)


def test_textures_have_the_correlations_of_their_labels():
    signals, labels = experiment.textures(np.random.default_rng(0), 400, 50, 2)
    neighbours = (signals * np.roll(signals, 1, axis=1)).mean((1, 2))
    for label in (1.0, -1.0):
        assert neighbours[labels == label].mean() == pytest.approx(label / 2, abs=0.02)


def test_large_steps_are_out_of_range():
    claim = BorderBreaksEquivariance(rate=6.0)
    holds = [assumed.holds for assumed in claim.hypotheses(claim.setting(jax.random.key(0)))]
    assert holds == [False, True]
