"""Residuals by JAX's gradients, margins by a linear program, descents step by step, and fields that are refused."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import xarray
from scipy.optimize import linprog, minimize

from steepest import kit
from steepest.claims.features.prelu_kkt.claim import PreluKkt
from steepest.claims.features.prelu_kkt.experiment import (
    NETWORKS,
    STEP,
    descents,
    exact_network,
    network,
    random_networks,
    residuals,
    search,
    starts_that_miss_a_class,
    two_to_one,
)
from steepest.claims.features.prelu_kkt.theory import (
    disagreement,
    margins,
    residuals_of_two_to_one,
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
    ratios = margins((power,), (k,))
    for name in NETWORKS:
        params = exact_network(x, y, power, name)
        outputs = two_layer(k, len(params.v), power=power).apply(params, x)
        np.testing.assert_allclose(outputs, y, rtol=1e-12)
        kkt = residuals(params, x=x, y=y, power=power)
        assert kkt.largest < 1e-9
        assert kkt.margin == pytest.approx(ratios[name][0, 0] / (2 * k))
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
    expected = residuals_of_two_to_one((power,), (8,))[0, 0]
    assert kkt.largest == pytest.approx(expected, abs=1e-7)
    assert (kkt.largest < 1e-9) == (power == 2)
    single = two_to_one(x, y, all_of_them=False)
    assert residuals(single, x=x, y=y, power=power).largest > 0.1
    if power == 2:
        assert kkt.margin == pytest.approx(1 / 16)


def labelled(networks):
    """Return the weights of many networks with the names of their axes."""
    w = xarray.DataArray(networks.w, dims=("try", "neuron", "centre"))
    return w, xarray.DataArray(networks.v, dims=("try", "neuron"))


def present(networks):
    """Return every network without the neurons that are zero."""
    pairs = zip(networks.w, networks.v, strict=True)
    return [Neurons(w[v != 0], v[v != 0]) for w, v in pairs]


@pytest.mark.parametrize("power", [1.0, 1.5, 2.2, 4.0])
@pytest.mark.parametrize("apart", [False, True])
def test_residuals_lie_between_multiples_of_the_disagreement(power, apart):
    x, y = problem(6)
    networks = random_networks(y, power, 30, np.random.default_rng(0), apart=apart)
    far = disagreement(*labelled(networks), power).values
    low = min(1.0, power / 2**0.5)
    high = max(1.0, power / 2**0.5)
    for params, apart_by in zip(present(networks), far, strict=True):
        outputs = y * two_layer(6, len(params.v), power=power).apply(params, x)
        np.testing.assert_allclose(outputs, 1, rtol=1e-9)
        residual = residuals(params, x=x, y=y, power=power).largest
        assert low * apart_by - 1e-8 <= residual <= high * apart_by + 1e-8


def test_random_networks_see_both_classes_unless_they_are_apart():
    _, y = problem(6)
    sees_other = lambda networks: ((networks.w > 0) & (np.sign(networks.v)[..., None] * y < 0)).any(
        (1, 2)
    )
    rng = np.random.default_rng(0)
    assert sees_other(random_networks(y, 3.0, 30, rng))[:10].all()
    assert not sees_other(random_networks(y, 3.0, 30, rng, apart=True)).any()


@pytest.mark.parametrize("power", [1.5, 3.0])
def test_disagreement_is_least_over_multipliers(power):
    """By a minimization over λ ≥ 0 for one network that sees both classes, neuron by neuron."""
    _, y = problem(6)
    networks = random_networks(y, power, 3, np.random.default_rng(1))
    far = disagreement(*labelled(networks), power).values[0]
    neurons = present(networks)[0]

    def squared(multipliers):
        total = 0.0
        for w, v in zip(neurons.w, neurons.v, strict=True):
            unit = w / np.linalg.norm(w)
            wanted = np.sign(v) * y * multipliers * unit.clip(0) ** (power - 1)
            total += v**2 * ((wanted - unit) ** 2).sum()
        return total / (neurons.v**2).sum()

    least = minimize(squared, np.ones(6), bounds=[(0, None)] * 6, method="L-BFGS-B").fun
    assert far**2 == pytest.approx(least, rel=1e-5)


@pytest.mark.parametrize("name", NETWORKS)
def test_exact_networks_disagree_about_nothing(name):
    x, y = problem(8)
    params = exact_network(x, y, 3.0, name)
    w = xarray.DataArray(params.w, dims=("neuron", "centre"))
    v = xarray.DataArray(params.v, dims="neuron")
    assert float(disagreement(w, v, 3.0)) < 1e-12
    # nor does one whose neurons are of the other class agree about anything
    assert float(disagreement(w, -v, 3.0)) == pytest.approx(1)


def test_search_finds_the_ties_at_two():
    setting = PreluKkt().setting(jax.random.key(0))
    searched = search(setting, (3.0,), 6, 20, np.random.default_rng(0))
    assert searched["random"][1].shape == (20, 1)
    assert searched["tied_random"][1].max() < 1e-6
    assert searched["tied_elsewhere"][1].max() > 0.1


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
        ends = descents(setting, (3.0,), (4, 6), 3)
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


def as_predicted(claim):
    """Return an observation that follows the law, with some scatter between seeds and tries."""
    law = claim.predict(None)
    scatter = 1 - 0.002 * np.arange(claim.seeds)[:, None, None]
    ends = "seed trained_power trained_clusters"
    rng = np.random.default_rng(0)
    _, y = problem(claim.clusters[0])
    tied = random_networks(y, 2.0, 6, rng, apart=True)
    networks = [random_networks(y, power, 6, rng) for power in claim.other_powers]
    far = np.stack(
        [
            disagreement(*labelled(one), power).values
            for one, power in zip(networks, claim.other_powers, strict=True)
        ],
        axis=1,
    )
    near = np.arange(6)[:, None] % 2 == 0
    return kit.seen(
        **{
            name: (law.quantity(name).dims, law[name]) for name in ("residual", "unequal", "margin")
        },
        random=("try other_power", far * np.where(near, law["nearest"], law["farthest"])),
        random_w=("try other_power neuron centre", np.stack([one.w for one in networks], axis=1)),
        random_v=("try other_power neuron", np.stack([one.v for one in networks], axis=1)),
        tied_random=("try", np.zeros(6)),
        tied_elsewhere=("try other_power", 3 + 0 * far),
        tied_w=("try neuron centre", tied.w),
        tied_v=("try neuron", tied.v),
        far_side=("network power clusters", 0.5 + law["residual"]),
        tied=("power clusters", 0 * law["unequal"]),
        lopsided=("power clusters", 0.3 + 0 * law["unequal"]),
        end=(ends, scatter * law["end"]),
        end_residual=(ends, 0.01 + 0 * scatter * law["end"]),
    )


def test_laws_flat_reversed_and_tilted_fail():
    claim = PreluKkt()
    law = claim.predict(None)
    judgement = claim.judged(law, as_predicted(claim), claim.wrong_theories(None, law))
    assert {check.verdict for check in judgement.checks} == {"holds"}
    laws = {(null.law, null.axis) for null in judgement.nulls if null.headline}
    assert {("end", "trained_clusters"), ("end", "trained_power"), ("unequal", "power")} <= laws
    assert {("nearest", "other_power"), ("farthest", "other_power")} <= laws
    assert [null for null in judgement.nulls if null.headline and not null.rejected] == []
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
        ({"trained_powers": [3.0]}, "--trained-powers must hold a power below 2 and one above"),
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
        {"trained_powers": (1.5, 2.0, 3.0)},
        {"trained_powers": (1.95, 3.0)},
    ],
)
def test_out_of_range(fields):
    claim = PreluKkt(**({"width": 60, "trained_clusters": (4,), "seeds": 3} | fields))
    with jax.enable_x64(True):
        hypotheses = tuple(claim.hypotheses(claim.setting(jax.random.key(0))))
    assert [one.holds for one in hypotheses].count(False) == 1


def test_centres_with_an_overlap():
    x = PreluKkt(overlap=0.3, width=2).setting(jax.random.key(0)).x
    np.testing.assert_allclose(x @ x.T, 0.7 * np.eye(16) + 0.3, atol=1e-12)


def test_an_overlap_is_out_of_range():
    from steepest.catalogue import load

    asked = ready("prelu-kkt", "tiny", changes={**load("prelu-kkt").tiny, "overlap": 0.1})
    assert execute(asked).verdict == "out-of-range"
