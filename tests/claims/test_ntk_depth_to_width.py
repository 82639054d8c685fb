"""What ntk-depth-to-width tells apart, by measurements that are made up, and its networks of unequal widths."""

import jax
import numpy as np
import pytest

from steepest.claims.signals.ntk_depth_to_width.claim import NtkDepthToWidth

CLAIM = NtkDepthToWidth(inputs=4, kernel_depth=1)


@pytest.fixture(scope="module")
def theory():
    setting = CLAIM.setting(jax.random.key(0))
    return setting, CLAIM.predict(setting)


def ideal(predicted):
    """Measurements that agree, with an interval of one percent of the logarithms."""
    noise = 0.01 * np.random.default_rng(0).standard_normal((20, 1)).T

    def spread(values):
        return values[:, None] * (1 + noise)

    log_square = 2 * np.log(predicted["deep_mean"])[:, None]
    square = predicted["mean"] ** 2 * np.exp(predicted["log_ratio"])
    return {
        "mean": np.repeat(predicted["mean"][:, None], 20, 1),
        "square": np.repeat(square[:, None], 20, 1),
        "uneven": predicted["uneven"] * (1 + noise[0]),
        "deep_mean": spread(predicted["deep_mean"]),
        "deep": log_square + spread(predicted["deep"]),
        "turns": log_square + spread(predicted["turns"]),
        "top": predicted["top"] * (1 + noise[0]),
    }


def verdicts(theory, predicted):
    return {c.id: c.verdict.value for c in CLAIM.judge(predicted, ideal(theory[1]))}


def test_the_exact_recursion_holds(theory):
    assert set(verdicts(theory, theory[1]).values()) == {"holds"}


@pytest.mark.parametrize(
    ("rival", "failed"),
    [
        ("rate_of_four", ("deep_log_ratio_0", "turns_log_ratio_0")),
        ("two_thirds", ("deep_log_ratio_1", "deep_log_ratio_2", "rate")),
        ("full_rate", ("deep_log_ratio_1", "deep_log_ratio_2", "rate")),
        ("wide_limit", ("deep_log_ratio_1", "turns_log_ratio_2", "rate")),
        ("mean_width", ("turns_log_ratio_1",)),
        ("last_layer_forgotten", ("deep_mean_0",)),
        ("typical", ("deep_mean_1", "deep_mean_2")),
    ],
)
def test_near_misses_fail_in_deep_networks(theory, rival, failed):
    setting, predicted = theory
    wrong = {r.id: r.prediction for r in CLAIM.rivals(setting, predicted)}[rival]
    found = verdicts(theory, wrong)
    assert [found[id] for id in failed] == ["fails"] * len(failed)


def test_widths_that_take_turns():
    widths = NtkDepthToWidth(width=4, turns=(2, 8), deep=(1, 2, 5)).deep_widths
    assert widths.tolist() == [[4, 4, 4, 4, 4, 4], [4, 2, 8, 2, 8, 2]]
