"""What ntk-depth-to-width tells apart, by measurements that are made up, and its networks of unequal widths."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from steepest import kit
from steepest.claims.signals.ntk_depth_to_width.claim import (
    EXCESSES,
    NtkDepthToWidth,
    tangent_kernels,
)
from steepest.kernels import empirical_ntk
from steepest.nn.networks import mlp, ntk_moments, sample_ntk

CLAIM = NtkDepthToWidth(inputs=4, kernel_depth=1)


@pytest.fixture(scope="module")
def theory():
    setting = CLAIM.setting(jax.random.key(0))
    return setting, CLAIM.predict(setting)


def ideal(law):
    """Return measurements that agree, with an interval of one percent of the logarithms."""
    noise = 0.01 * np.random.default_rng(0).standard_normal(20)
    scattered = lambda values: np.multiply.outer(values, 1 + noise)
    depth = {name: ("depth draw", scattered(law[name])) for name in ("mean", "log_ratio")}
    names = ("deep_mean", "deep_ratio", "turns_mean", "turns_ratio")
    deep = {name: ("deep draw", scattered(law[name])) for name in names}
    typical = ("depth draw", scattered(law["mean"] * np.exp(-law["log_ratio"] / 2)))
    return kit.seen(
        typical=typical,
        tail=("depth excess draw", scattered(law["tail"])),
        uneven=("draw", scattered(law["uneven"])),
        top=("draw", scattered(law["top"])),
        **depth,
        **deep,
    )


def verdicts(predicted, observed):
    return {check.id: check.verdict.value for check in CLAIM.checks(predicted, observed)}


def test_the_exact_recursion_holds(theory):
    _, law = theory
    assert set(verdicts(law, ideal(law)).values()) == {"holds"}


@pytest.mark.parametrize(
    ("rival", "failed"),
    [
        ("rate_of_four", ("log_ratio", "deep_log_ratio", "turns_log_ratio")),
        ("two_thirds", ("deep_log_ratio",)),
        ("full_rate", ("deep_log_ratio",)),
        ("wide_limit", ("deep_log_ratio", "turns_log_ratio")),
        ("mean_width", ("log_ratio_uneven", "turns_log_ratio")),
        ("linear_growth", ("log_ratio", "deep_log_ratio")),
        ("last_layer_forgotten", ("mean", "deep_mean", "turns_mean")),
        ("typical_kernel", ("mean", "deep_mean")),
    ],
)
def test_near_misses_fail(theory, rival, failed):
    setting, law = theory
    wrong = {r.id: r.prediction for r in CLAIM.wrong_theories(setting, law)}[rival]
    against = verdicts(wrong, ideal(law))
    assert [against[id] for id in failed] == ["fails"] * len(failed)


def test_changed_worlds_fail_what_the_first_sentence_says(theory):
    _, law = theory
    failed = set()
    for world in CLAIM.changed_worlds(ideal(law)):
        against = verdicts(law, world.observation)
        failed |= {id for id, verdict in against.items() if verdict == "fails"}
    assert failed >= set(CLAIM.headline)


def test_widths_that_take_turns():
    widths = NtkDepthToWidth(width=4, turns=(2, 8), deep=(1, 2, 5)).deep_widths
    assert widths.tolist() == [[4, 4, 4, 4, 4, 4], [4, 2, 8, 2, 8, 2]]


def test_tangent_kernels_are_those_of_automatic_derivatives():
    """The same weights, drawn again in the same order, in a network that JAX differentiates."""
    widths = [3, 5, 4, 1]
    inputs = np.random.default_rng(1).normal(size=(2, 3)).astype(np.float32)
    kernels = tangent_kernels(np.random.default_rng(2), 3, widths, inputs)
    again = np.random.default_rng(2)
    shapes = [(5, 3), (4, 5), (1, 4)]
    drawn = [again.standard_normal((3, *shape), np.float32) for shape in shapes]
    net = mlp(widths, "relu", parameterized="ntk", c_w=2.0, bias=False)
    for i in range(3):
        params = tuple({"w": jnp.asarray(weights[i])} for weights in drawn)
        np.testing.assert_allclose(kernels[i], empirical_ntk(net, params, inputs), rtol=2e-4)


def test_explicit_networks_have_the_law_of_those_drawn_neuron_by_neuron():
    """Means and mean squares of Θ, against the recursion and the library's conditional sampling."""
    x = np.array([1.0, -2.0, 0.5, 1.0], np.float32)
    theta = tangent_kernels(np.random.default_rng(3), 40_000, [4, 8, 8, 1], x[None])[:, 0, 0]
    other = np.asarray(sample_ntk(jax.random.key(0), 40_000, (4, 8, 8, 1), jnp.asarray(x)))
    mean, square = ntk_moments((4, 8, 8, 1), x)
    for drawn in (theta, other):
        assert drawn.mean() == pytest.approx(mean, rel=0.03)
        assert (drawn.astype(float) ** 2).mean() == pytest.approx(square, rel=0.08)


def test_the_tail_of_one_hidden_layer_by_active_neurons():
    """Θ/E Θ is Σ gate (g² + h²)/n, with g the signal and h the readout of a neuron, both normal."""
    rng = np.random.default_rng(5)
    g, h = rng.standard_normal((2, 100_000, CLAIM.width))
    theta = ((g > 0) * (g**2 + h**2)).mean(1)
    shares = [(theta >= 1 + excess).mean() for excess in EXCESSES]
    expected = CLAIM.tail(1, np.nan)
    assert (np.abs(shares - expected) < 4 * np.sqrt(expected / 100_000)).all()


def test_the_lognormal_tail_has_the_moments():
    rng = np.random.default_rng(6)
    log_ratio = 0.8
    theta = np.exp(log_ratio**0.5 * rng.standard_normal(400_000) - log_ratio / 2)
    assert theta.mean() == pytest.approx(1, abs=0.01)
    assert (theta**2).mean() == pytest.approx(np.exp(log_ratio), rel=0.03)
    shares = [(theta >= 1 + excess).mean() for excess in EXCESSES]
    np.testing.assert_allclose(CLAIM.tail(4, log_ratio), shares, rtol=0.02)
