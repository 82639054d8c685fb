"""Radii of ideal networks by a convex program, centres without a neuron, and fields that make no experiment."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from steepest.claims.features.prelu_robustness.claim import _to_average, _unserved
from steepest.claims.features.prelu_robustness.experiment import (
    Clusters,
    clusters_from,
    plain_radius,
    radius_in_theory,
    starts_from,
    train_and_attack,
)
from steepest.core.errors import UserError
from steepest.engine.run import execute, ready
from steepest.measurement.quantities import attack_radius
from steepest.nn.networks import Neurons, two_layer
from steepest.programs import kkt_residuals


def ideal(power, k, at_centres):
    """Neurons at the centres, or at the averages of the classes, with margins of one at all centres."""
    signs = np.where(np.arange(k) % 2 == 0, 1.0, -1.0)
    if at_centres:
        return Neurons(np.eye(k), signs)
    sums = np.stack([signs > 0, signs < 0]).astype(float)
    lengths = np.linalg.norm(sums, axis=1)
    return Neurons(sums, np.array([1.0, -1.0]) * lengths ** (power - 1))


@pytest.mark.parametrize("k", [4, 6])
@pytest.mark.parametrize(("power", "at_centres"), [(1.0, False), (1.5, False), (3.0, True)])
def test_radii_of_ideal_networks(power, k, at_centres):
    params = ideal(power, k, at_centres)
    net = two_layer(k, len(params.v), power=power)
    np.testing.assert_allclose(np.abs(net.apply(params, np.eye(k))), 1, rtol=1e-12)
    ways = np.eye(k)[1::2] - np.eye(k)[0]
    radius = attack_radius(net.apply, params, np.eye(k)[0], np.array(1.0), ways).radius
    assert float(radius) == pytest.approx(float(radius_in_theory(power, k)), rel=1e-3)


def test_plain_descent_is_blind_at_centres_only():
    cubic = two_layer(4, 4, power=3.0)
    margin = lambda x: cubic.apply(ideal(3.0, 4, True), x)
    assert float(plain_radius(margin, np.eye(4)[0])) == np.inf
    linear = two_layer(4, 2, power=1.0)
    margin = lambda x: linear.apply(ideal(1.0, 4, False), x)
    # past 1/√2, where the own neuron dies, it sees the other
    assert 0.5 <= float(plain_radius(margin, np.eye(4)[0])) <= np.inf


def test_a_trained_network_of_six_clusters():
    """After no step at all the cosine is that of the start."""
    rng = np.random.default_rng(0)
    w = rng.normal(size=(7, 6))
    v = np.linalg.norm(w, axis=1) * rng.choice([-1, 1], 7)
    signs = np.array([1.0, -1, 1, -1, 1, -1])
    data = Clusters(np.eye(6), signs, np.eye(6), Neurons(w, v))
    with jax.enable_x64(True):
        data = jax.tree.map(jnp.asarray, data)
        ends = train_and_attack(3.0, 6, data, 0, 2)
    sums = np.where(v[:, None] > 0, signs > 0, signs < 0) / np.sqrt(3)
    cosines = (w * sums).sum(1) / np.linalg.norm(w, axis=1)
    weights = np.abs(v) * np.linalg.norm(w, axis=1)
    assert float(ends.cosine) == pytest.approx((weights * cosines).sum() / weights.sum())
    assert float(ends.start_cosine) == float(ends.cosine)


def test_centres_without_a_neuron_are_counted():
    start = Neurons(
        np.array([[[1.0, 0, 0, 0], [0, 1, 0, 0], [0, 0, 1, 0]]]), np.array([[1.0, -1, 1]])
    )
    data = Clusters(None, None, np.eye(4)[None], start)
    assert _unserved(data, 4) == 1
    assert _unserved(data, 3) == 0
    assert _unserved(data, 2) == 0


def test_the_cosine_of_centres_with_their_average():
    for k in (2, 3, 7, 8):
        signs = np.where(np.arange(k) % 2 == 0, 1.0, -1.0)
        averages = [signs == sign for sign in signs]
        cosines = [own[i] / np.sqrt(own.sum()) for i, own in enumerate(averages)]
        assert _to_average(np.array(k)) == pytest.approx(np.mean(cosines))


@pytest.mark.parametrize(
    ("fields", "sentence"),
    [
        ({"clusters": [4, 30]}, "at most --dimension 24 centres"),
        ({"spread": -1.0}, "spread must be at least 0"),
        ({"images": 1790}, "there are 1797 digits"),
        ({"powers": [0.5]}, "powers must be at least 1"),
    ],
)
def test_refused(fields, sentence):
    with pytest.raises(UserError, match=sentence):
        ready("prelu-robustness", changes=fields)


@pytest.mark.parametrize("fields", [{"width": 3}, {"powers": (2.5,), "scale": 3.0}])
def test_out_of_range(fields):
    from steepest.catalogue import load

    tiny = load("prelu-robustness").tiny
    asked = ready("prelu-robustness", "tiny", changes={**tiny, **fields})
    assert execute(asked).verdict == "out-of-range"


@pytest.mark.parametrize("power", [1.5, 2.0, 3.0])
def test_the_remark_on_kkt_points(power):
    """Centres and averages both meet the conditions; margins differ by (k/2)^(1 − p/2)."""
    k = 6
    signs = np.where(np.arange(k) % 2 == 0, 1.0, -1.0)
    sums = np.stack([signs > 0, signs < 0]) / np.sqrt(k / 2)
    points = [Neurons(np.eye(k), signs), Neurons(sums, np.array([1.0, -1.0]))]
    margins = []
    for point in points:
        net = two_layer(k, len(point.v), power=power)
        u = lambda params, net=net: signs * net.apply(params, np.eye(k))
        residuals = kkt_residuals(u, point, degree=2)
        assert residuals.largest < 1e-6
        margins.append(residuals.margin)
    assert margins[1] / margins[0] == pytest.approx((k / 2) ** (1 - power / 2))
    mixed = Neurons(sums * np.array([2.0, 1, 1, 1, 1, 1]), np.array([1.0, -1.0]))
    net = two_layer(k, 2, power=3.0)
    assert kkt_residuals(lambda p: signs * net.apply(p, np.eye(k)), mixed, 2).largest > 0.1


def test_draws_are_those_of_the_library():
    """Orthonormal centres, noise of variance α²/d, and balanced starts of mean square ε²."""
    rng = np.random.default_rng(0)
    x, y, centres = clusters_from(rng, 4, 20, 500, 0.1)
    np.testing.assert_allclose(centres @ centres.T, np.eye(4), atol=1e-12)
    assert y.reshape(4, 500).mean(1).tolist() == [1, -1, 1, -1]
    noise = x.reshape(4, 500, 20) - centres[:, None]
    assert abs((noise**2).mean() / (0.01 / 20) - 1) < 4 * np.sqrt(2 / noise.size)
    start = starts_from(rng, 3, 400, 20, 0.3)
    np.testing.assert_allclose(start.v**2, (start.w**2).sum(-1))
    assert abs((start.w**2).mean() / (0.09 / 20) - 1) < 4 * np.sqrt(2 / start.w.size)
    assert abs((start.v > 0).mean() - 0.5) < 4 * 0.5 / np.sqrt(1200)
