"""The slope on the support that tells one depth from the next."""

import numpy as np
import pytest

from steepest.claims.implicit_bias._stationarity import power_on_support, settled, unit
from steepest.core.words import Verdict


def check(sizes, pulls, support, still):
    return power_on_support("power", -1 / 3, sizes, pulls, support, still, "a power")


@pytest.mark.parametrize("power, verdict", [(-1 / 3, "holds"), (-1 / 2, "fails"), (0.0, "fails")])
def test_one_factor_for_each_set_does_not_matter(power, verdict):
    rng = np.random.default_rng(0)
    sizes = rng.lognormal(size=(6, 4))
    pulls = rng.lognormal(size=(6, 1)) * sizes**power
    found = check(sizes, pulls, np.ones((6, 4), bool), np.ones(6, bool))
    assert found.measured == pytest.approx(power, abs=1e-12)
    assert found.verdict == Verdict(verdict)


def test_only_the_supports_of_settled_sets_count():
    rng = np.random.default_rng(1)
    sizes = rng.lognormal(size=(6, 4))
    pulls = sizes ** (-1 / 3)
    support = np.ones((6, 4), bool)
    support[:, 3] = False
    pulls[:, 3] = 100.0  # off the support
    still = np.arange(6) < 5
    pulls[5] = 7.0  # not settled
    found = check(sizes, pulls, support, still)
    assert found.measured == pytest.approx(-1 / 3, abs=1e-12)
    assert "5 sets with two or more entries, of 5 settled of 6" in found.note


@pytest.mark.parametrize("still", [[True, False, False], [False, False, False]])
def test_too_few_settled_sets_decide_nothing(still):
    sizes = np.ones((3, 2))
    found = check(sizes, sizes, np.ones((3, 2), bool), np.array(still))
    assert found.verdict is Verdict.INCONCLUSIVE


def test_a_direction_that_still_turns_has_not_settled():
    angles = np.array([[0.0, 0.3, 0.301], [0.0, 0.1, 0.3]])
    lengths = np.array([1.0, 5.0, 70.0])  # growth is no turn
    weights = np.stack([np.cos(angles), np.sin(angles)], -1) * lengths[:, None]
    end, still = settled(weights, 1, 0.01)
    assert still.tolist() == [True, False]
    assert np.allclose(end, unit(weights[:, -1]))
