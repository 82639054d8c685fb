"""How depth-scale judges training, on accuracies that were written down and not measured."""

import numpy as np

from steepest.claim import Observation, Prediction, Verdict
from steepest.claims.signals.depth_scale.claim import DepthScale, Setting

CLAIM = DepthScale(depths=(5, 8, 11, 14, 18, 22, 26, 31, 37), train_c_w=(0.5, 0.8, 1.0))
TRAINED = np.array([1.2, 2.3, 3.6])  # ξ of these C_W
SCALES = (2.0, 3.0, 4.0, 5.0)


def predicted():
    return Prediction(
        scale=("point", np.array(SCALES), "layers"),
        trained_scale=("point", TRAINED, "layers"),
        multiple=6.0,
    )


def observed(limits):
    """Return correlations that fall as predicted, and accuracies that fall through one half at these depths."""
    layers = np.arange(CLAIM.layers + 1)
    falling = np.exp(-layers / np.array(SCALES)[:, None])
    pairs = np.stack([falling, 0 * falling], -1)
    correlation = np.repeat(pairs[:, None], 10, 1)
    slope = np.log(np.array(CLAIM.depths)[:, None, None] / limits)  # (depth, seed, c_w)
    scatter = np.linspace(-0.02, 0.02, 6)[:, None]
    accuracy = np.clip(0.5 - slope + scatter, 0.1, 1.0)
    return Observation(
        correlation=("point group layer pair", correlation), accuracy=("depth seed c_w", accuracy)
    )


def verdicts(prediction, observation):
    checks = CLAIM.judge(prediction, observation)
    return {check.id: check.verdict for check in checks if check.id.startswith("training")}


def test_depths_in_proportion_to_the_scale_agree_and_both_rivals_fail():
    data = observed(10.0 * TRAINED)
    assert set(verdicts(predicted(), data).values()) == {Verdict.HOLDS}
    rivals = CLAIM.rivals(Setting([], []), predicted())
    for rival in rivals[-2:]:
        assert rival.id in ("training_root", "training_fixed")
        prediction = predicted().replace(trained_scale=("point", rival.prediction["trained_scale"]))
        assert Verdict.FAILS in verdicts(prediction, data).values()


def test_a_depth_that_does_not_grow_is_refuted():
    outcome = verdicts(predicted(), observed(np.full(3, 9.0)))
    assert outcome["training_depth_order"] is not Verdict.HOLDS
    assert outcome["training_depth_2"] is not Verdict.HOLDS
