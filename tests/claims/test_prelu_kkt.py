"""Residuals by JAX's gradients, margins by a linear program, descents step by step, and fields that are refused."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy.optimize import linprog

from steepest import kit
from steepest.claims.features.prelu_kkt.claim import PreluKkt
from steepest.claims.features.prelu_kkt.experiment import (
    NETWORKS,
    STEP,
    dead_on_all_but_two,
    descents,
    disagreement,
    exact_network,
    network,
    random_weights,
    residuals,
    search,
    starts_that_miss_a_class,
    two_to_one,
    weights_of_shared,
)
from steepest.core.errors import UserError
from steepest.engine.run import execute, ready
from steepest.nn.networks import Neurons, two_layer
from steepest.programs import kkt_residuals


def problem(k):
    return np.eye(k), np.where(np.arange(k) % 2 == 0, 1.0, -1.0)


@pytest.mark.parametrize("power", [1.0, 1.5, 2.0, 3.0])
def test_residuals_are_those_of_jax(power):
    x, y = problem(6)
    x = x + 0.02 * np.random.default_rng(0).standard_normal(x.shape)
    params = exact_network(x, y, power, "averages")
    params = Neurons(params.w * 1.2, params.v)
    net = two_layer(6, 2, power=power)
    by_jax = kkt_residuals(lambda params: y * net.apply(params, x), params, 2)
    by_hand = residuals(params, x=x, y=y, power=power)
    assert by_hand.margin == pytest.approx(by_jax.margin)
    assert by_hand.stationarity == pytest.approx(by_jax.stationarity, abs=1e-9)
    assert by_hand.complementarity == pytest.approx(by_jax.complementarity, abs=1e-9)
    assert by_hand.largest > 1e-3


@pytest.mark.parametrize("power", [1.0, 1.5, 2.0, 3.5])
@pytest.mark.parametrize("k", [6, 10])
def test_exact_networks_are_kkt_points_with_their_margins(power, k):
    x, y = problem(k)
    claim = PreluKkt(powers=(power, 1.0), clusters=(k,))
    for name, (ratio, _) in zip(NETWORKS, claim.margins()[..., 0], strict=True):
        params = exact_network(x, y, power, name)
        outputs = two_layer(k, len(params.v), power=power).apply(params, x)
        np.testing.assert_allclose(outputs, y, rtol=1e-12)
        kkt = residuals(params, x=x, y=y, power=power)
        assert kkt.largest < 1e-9
        assert kkt.margin == pytest.approx(ratio / (2 * k))
        # Euler: the multipliers are the sum of |v|‖w‖ over all neurons
        assert kkt.multipliers.sum() == pytest.approx((params.v**2).sum())


@pytest.mark.parametrize(
    ("power", "weights"),
    [(1.0, (0.894, 0.447)), (1.5, (0.846, 0.533)), (3.0, (0.783, 0.622)), (4.0, (0.765, 0.644))],
)
def test_overlapping_neurons_of_three_centres(power, weights):
    """Of centres {1, 2} and {2, 3}: tan^p φ = ½ and strengths cos^(−p) φ."""
    x, y = problem(6)
    params = exact_network(x, y, power, "overlapping")
    strengths = np.asarray(params.v) ** 2
    unit = np.asarray(params.w) / np.sqrt(strengths)[:, None]
    assert len(strengths) == 4
    assert unit[0, 2] == pytest.approx(weights[0], abs=1e-3)
    assert unit[0, 0] == pytest.approx(weights[1], abs=1e-3)
    np.testing.assert_allclose((unit[0, 0] / unit[0, 2]) ** power, 0.5)
    np.testing.assert_allclose(strengths, unit[0, 2] ** -power)


@pytest.mark.parametrize("power", [1.0, 1.5, 2.0, 2.5, 4.0])
def test_no_network_has_a_larger_margin(power):
    """All directions in the span of two centres, by a linear program: the least Σ|v|‖w‖ with margins of one."""
    angles = np.linspace(0, np.pi / 2, 201)
    cover = np.stack([np.cos(angles), np.sin(angles)]).clip(0) ** power
    program = linprog(np.ones(201), A_ub=-cover, b_ub=-np.ones(2))
    x, y = problem(4)
    both = [
        residuals(exact_network(x, y, power, name), x=x, y=y, power=power)
        for name in ("centres", "averages")
    ]
    # two classes, and ‖θ‖² is twice the sum
    assert max(kkt.margin for kkt in both) == pytest.approx(1 / (4 * program.fun), rel=1e-6)


@pytest.mark.parametrize("power", [1.0, 1.5, 1.9, 2.0, 3.0])
def test_unequal_weights_are_kkt_points_at_two_only(power):
    x, y = problem(8)
    mixed = two_to_one(x, y, all_of_them=True)
    outputs = y * two_layer(8, 8, power=power).apply(mixed, x)
    np.testing.assert_allclose(outputs, outputs[0], rtol=1e-12)
    kkt = residuals(mixed, x=x, y=y, power=power)
    expected = PreluKkt(powers=(power, 1.0), clusters=(8,)).residuals_of_two_to_one()[0, 0]
    assert kkt.largest == pytest.approx(expected, abs=1e-7)
    assert (kkt.largest < 1e-9) == (power == 2)
    single = two_to_one(x, y, all_of_them=False)
    assert residuals(single, x=x, y=y, power=power).largest > 0.1
    if power == 2:
        assert kkt.margin == pytest.approx(1 / 16)


@pytest.mark.parametrize("power", [1.0, 1.5, 2.2, 4.0])
def test_residuals_lie_between_multiples_of_the_disagreement(power):
    x, y = problem(6)
    weights, strengths = random_weights(y, power, 40, np.random.default_rng(0))
    margins = np.einsum("tj,tji->ti", strengths, weights**power)
    np.testing.assert_allclose(margins[::2], 1, rtol=0.01)  # every second has all weights
    low = min(1.0, power / 2**0.5)
    high = max(1.0, power / 2**0.5)
    for directions, strength in zip(weights[::2], strengths[::2], strict=True):
        far = disagreement(directions, strength, power)
        residual = residuals(network(directions @ x, y, strength), x=x, y=y, power=power).largest
        assert 0.99 * low * far <= residual <= 1.01 * high * far


def test_a_partition_disagrees_about_nothing():
    weights = np.kron(np.eye(2), np.full((2, 2), 0.5**0.5))
    assert disagreement(weights, np.ones(4), 3.0) == pytest.approx(0, abs=1e-7)


def test_search_finds_the_ties_at_two():
    searched = search(
        PreluKkt().setting(jax.random.key(0)), (3.0,), 6, 20, np.random.default_rng(0)
    )
    assert searched["nearest"][1] >= 1
    assert searched["nearest_at_two"][1] < 1e-6


def test_one_side_of_a_kink_is_not_enough():
    x, y = problem(4)
    centres = exact_network(x, y, 1.0, "centres")
    assert residuals(centres, x=x, y=y, power=1.0).largest < 1e-9
    assert residuals(centres, x=x, y=y, power=1.0, clarke=False).largest > 0.5
    off = network(np.eye(4) - 1e-3, y, 1.0)  # no kinks: dead on other examples
    kkt = residuals(off, x=x, y=y, power=1.0)
    assert 1e-4 < kkt.largest < 1e-2


def test_descents_are_steps_on_log_risk():
    """Of the first four examples, with the gradient of log Σ e^(−u) taken by JAX."""
    claim = PreluKkt(
        trained_powers=(1.0, 3.0), trained_clusters=(4, 6), width=5, scale=0.8, steps=3, seeds=3
    )
    with jax.enable_x64(True):
        setting = claim.setting(jax.random.key(0))
        ends, _ = descents(setting, (3.0,), (4, 6), 3, 5)
        net = two_layer(6, 5, power=3.0)
        x, y = problem(6)
        risk = lambda params: jax.nn.logsumexp(-y[:4] * net.apply(params, x[:4]))
        params = jax.tree.map(lambda leaf: jnp.asarray(leaf[1]), setting.starts)
        slope = jax.jit(jax.grad(risk))
        for _ in range(3):
            squares = float((params.w**2).sum() + (params.v**2).sum())
            step = STEP / max(1.0, squares / 4)
            params = jax.tree.map(lambda w, g, step=step: w - step * g, params, slope(params))
    assert ends.w.shape == (3, 1, 2, 5, 6)
    np.testing.assert_allclose(ends.w[1, 0, 0], params.w, rtol=1e-9)
    np.testing.assert_allclose(ends.v[1, 0, 0], params.v, rtol=1e-9)


def test_starts_that_do_not_see_a_class():
    w = np.array([[[1.0, -1, 1, -1], [-1, 1, -1, 1]], [[1, 1, 1, 1], [1, 1, -1, -1]]])
    v = np.array([[1.0, -1.0], [1.0, -1.0]])
    assert starts_that_miss_a_class(Neurons(w, v), (4,)) == 1
    assert starts_that_miss_a_class(Neurons(w, -v), (4,)) == 3


def test_dead_neurons_see_the_first_centre_of_their_class_and_one_other():
    w = np.random.default_rng(0).standard_normal((3, 8, 8))
    dead = dead_on_all_but_two(Neurons(w, np.linalg.norm(w, axis=2)), 8)
    assert (np.asarray(dead.w[0]) > 0).sum(1).tolist() == [2] * 8
    assert np.nonzero(dead.w[0, 3] > 0)[0].tolist() == [1, 5]
    assert np.sign(dead.v[0]).tolist() == [1, -1] * 4
    np.testing.assert_array_equal(np.abs(dead.w), np.abs(w))
    expected = np.abs(w[0, :2, 0])
    neuron = Neurons(dead.w[:1, :1], dead.v[:1, :1])
    assert weights_of_shared(neuron)[0] == pytest.approx(expected[0] / abs(w[0, 0, 2]))


def as_predicted(claim):
    """Return an observation that follows the law, with some scatter between seeds."""
    law = claim.predict(None)
    scatter = 1 - 0.002 * np.arange(claim.seeds)[:, None, None]
    ends = "seed trained_power trained_clusters"
    return kit.seen(
        **{
            name: (law.quantity(name).dims, law[name]) for name in ("residual", "unequal", "margin")
        },
        nearest=("other_power", 1.02 * law["nearest"]),
        nearest_at_two=("other_power", 0 * law["nearest"]),
        random=("try other_power", 0.3 + np.zeros((4, len(claim.other_powers)))),
        far_side=("network power clusters", 0.5 + law["residual"]),
        tied=("power clusters", 0 * law["unequal"]),
        lopsided=("power clusters", 0.3 + 0 * law["unequal"]),
        end=(ends, scatter * law["end"]),
        end_residual=(ends, 0.01 + 0 * scatter * law["end"]),
        dead_end=(ends, 0.8 * scatter * law["end"]),
        shared_weight=("seed lower_power trained_clusters", scatter * law["shared_weight"]),
    )


def test_laws_flat_reversed_and_tilted_fail():
    claim = PreluKkt()
    law = claim.predict(None)
    judgement = claim.judged(law, as_predicted(claim), claim.wrong_theories(None, law))
    assert {check.verdict for check in judgement.checks} == {"holds"}
    laws = {(null.law, null.axis) for null in judgement.nulls if null.headline}
    assert {("end", "trained_clusters"), ("end", "trained_power"), ("unequal", "power")} <= laws
    assert [null for null in judgement.nulls if not null.rejected] == []
    assert [rival.id for rival in judgement.rivals if not rival.rejected] == []
    assert [control.id for control in judgement.controls if not control.rejected] == []
    assert [clause.verdict for clause in judgement.says] == ["holds"] * 3


@pytest.mark.parametrize("crossing", ["early_crossing", "late_crossing"])
def test_a_crossing_elsewhere_fails(crossing):
    claim = PreluKkt()
    law = claim.predict(None)
    wrong = {rival.id: rival.prediction for rival in claim.wrong_theories(None, law)}[crossing]
    checks = {check.id: check for check in claim.checks(wrong, as_predicted(claim))}
    assert checks["end"].verdict == "fails"


@pytest.mark.parametrize(
    ("fields", "sentence"),
    [
        ({"clusters": [6, 7]}, "--clusters must be even, half of each class, got 7"),
        ({"trained_clusters": [5]}, "--trained-clusters must be even"),
        ({"clusters": [4]}, "clusters must be at least 6"),
        ({"powers": [2.0]}, "--powers must hold a power other than 2"),
        ({"trained_powers": [3.0]}, "--trained-powers must hold a power below 2"),
        ({"powers": [0.5]}, "powers must be"),
        ({"spread": -0.1}, "spread must be at least 0"),
    ],
)
def test_refused(fields, sentence):
    with pytest.raises(UserError, match=sentence):
        ready("prelu-kkt", changes=fields)


@pytest.mark.parametrize(
    "fields",
    [
        {"overlap": 0.3},
        {"spread": 0.1},
        {"scale": 1e-8},
        {"width": 2},
        {"trained_powers": (1.5, 2.0)},
        {"trained_powers": (1.95,)},
    ],
)
def test_out_of_range(fields):
    claim = PreluKkt(**({"width": 60, "trained_clusters": (4,), "seeds": 3} | fields))
    with jax.enable_x64(True):
        hypotheses = claim.hypotheses(claim.setting(jax.random.key(0)))
    assert [one.holds for one in hypotheses].count(False) == 1


def test_centres_with_an_overlap():
    x = PreluKkt(overlap=0.3, width=2).setting(jax.random.key(0)).x
    np.testing.assert_allclose(x @ x.T, 0.7 * np.eye(16) + 0.3, atol=1e-12)


def test_an_overlap_is_out_of_range():
    from steepest.catalogue import load

    asked = ready("prelu-kkt", "tiny", changes={**load("prelu-kkt").tiny, "overlap": 0.1})
    assert execute(asked).verdict == "out-of-range"
