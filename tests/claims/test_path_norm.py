"""What the claim about path norms rests on: norms of two layers, split neurons, and the risk of the comparison."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from steepest.catalogue import load
from steepest.claims.implicit_bias.path_norm.claim import NORMS, norms_of_two_layers
from steepest.programs import frobenius_norm, path_norm


@pytest.fixture(scope="module")
def small():
    with jax.enable_x64(True):
        claim = load("path-norm")(
            n=20,
            test=40,
            widths=(16, 24, 32),
            lr=0.05,
            steps=600,
            total=0.5,
            seeds=3,
        )
        setting = claim.setting(jax.random.key(0))
        yield claim, setting, claim.observe(setting, jax.random.key(1))


def verdicts(claim, predicted, observed) -> dict[str, str]:
    return {check.id: check.verdict.value for check in claim.checks(predicted, observed)}


def test_norms_of_two_layers_are_those_of_the_library():
    generator = np.random.default_rng(0)
    first = generator.normal(size=(4, 5, 3))
    second = generator.normal(size=(4, 2, 5))
    norms = norms_of_two_layers(first, second)
    for lane, weights in enumerate(zip(first, second, strict=True)):
        l2 = np.sqrt(sum(float(frobenius_norm(w)) ** 2 for w in weights))
        expected = [float(path_norm(weights, 2)), float(path_norm(weights, 1)), l2]
        np.testing.assert_allclose(norms[:, lane], expected, rtol=1e-12)


def test_no_image_is_in_both_sets(small):
    _, setting, _ = small
    far = jnp.abs(setting.x[:, :, None] - setting.test_x[:, None]).max(-1)
    assert float(far.min()) > 0


def test_widths_are_compared_at_the_risk_wanted(small):
    """Descent stops with the first step at which the risk is low enough; a step lowers it by a quarter or so."""
    claim, _, observed = small
    assert (observed["total"] <= claim.total).all() and (
        observed["total"] > 0.7 * claim.total
    ).all()
    assert (observed["error"] == 0).all() and (observed["norms"] > 0).all()


def test_the_law_is_that_of_split_neurons(small):
    """Two copies of each neuron, all weights over √2: π₂ falls by √2; π₁, ‖w‖ and the function stay."""
    claim, setting, _ = small
    below, above = (np.asarray(p["w"])[None] for p in claim.net(6).init(jax.random.key(3)))
    split = [np.concatenate([below, below], 1) / 2**0.5, np.concatenate([above, above], 2) / 2**0.5]
    ratios = (norms_of_two_layers(*split) / norms_of_two_layers(below, above))[:, 0]
    law = claim.predict(setting)["norms"]
    powers = np.log(law[:, 1] / law[:, 0]) / np.log(24 / 16)
    np.testing.assert_allclose(np.log2(ratios), powers, atol=1e-12)


def test_norms_of_split_neurons_hold_and_those_of_drawn_ones_fail(small):
    claim, setting, observed = small
    predicted = claim.predict(setting)
    widths = np.array(claim.widths, float)
    as_norms = lambda norms: observed.replace(
        norms=("norm seed c_w width", np.broadcast_to(norms[:, None, None], (3, 3, 3, 3)))
    )
    split = predicted["norms"]
    ids = ("order_2", "order_1", "l2")
    holds = verdicts(claim, predicted, as_norms(split))
    fails = verdicts(claim, predicted, as_norms(split * widths**0.5))
    assert {holds[id] for id in ids} == {"holds"} and {fails[id] for id in ids} == {"fails"}


def test_the_order_of_starts_and_of_widths_is_the_prediction(small):
    claim, setting, observed = small
    predicted = claim.predict(setting)
    widths = np.array(claim.widths, float)
    powers = np.array([0.0, 0.1, 0.3])[:, None] + 0.01 * np.arange(3)[:, None, None]
    norms = np.broadcast_to(widths**powers, (3, 3, 3, 3))
    test = np.broadcast_to([0.3, 0.2, 0.1], (3, 3, 3)) + 0.01 * np.arange(3)[:, None, None]
    shown = observed.replace(norms=("norm seed c_w width", norms), test=("seed c_w width", test))
    right = verdicts(claim, predicted, shown)
    turned = predicted.replace(growth=("c_w", claim.c_w[::-1]), errors=("end", [0.0, 1.0]))
    wrong = verdicts(claim, turned, shown)
    for id in ("order_2_start", "order_1_start", "l2_start", "test_error"):
        assert (right[id], wrong[id]) == ("holds", "fails")


def test_the_changed_worlds_are_what_they_are_called(small):
    claim, _, observed = small
    worlds = {world.id: world.observation for world in claim.changed_worlds(observed)}
    split = worlds["split"]["norms"]
    narrow = observed["norms"][..., 0]
    np.testing.assert_allclose(split[0, :, :, 1], narrow[0] * (24 / 16) ** -0.5)
    np.testing.assert_allclose(split[1:, :, :, 2], narrow[1:])
    assert len(NORMS) == len(split)
