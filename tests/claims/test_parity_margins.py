"""The claim parity-margins: its sampled margins, its limits, and what it refuses."""

import numpy as np
import pytest

from steepest.claims.features.parity_margins.claim import ParityMargins, _gate_limit, _leading
from steepest.claims.features.parity_margins.experiment import cube, gate_lengths, sampled_margin
from steepest.core.errors import UserError
from steepest.programs import parity_margins


@pytest.mark.parametrize("d, k", [(2, 2), (6, 4), (40, 2)])
def test_sampled_correlations_have_the_eigenvalue_for_their_mean(d, k):
    rng = np.random.default_rng(0)
    assert sampled_margin(rng, d, k, 20_000) == pytest.approx(
        parity_margins(d, k).tangent, rel=0.02
    )


def test_gates_have_the_kernel_s_margin_for_their_mean_square():
    rng = np.random.default_rng(0)
    lengths = gate_lengths(rng, 5, 2, 4000)
    root = np.sqrt((lengths**2).mean())
    assert root == pytest.approx(parity_margins(5, 2).tangent, rel=0.05)


def test_limits():
    assert _leading(2) == pytest.approx(1 / np.pi)
    assert _leading(4) == pytest.approx(2 / np.pi)
    assert _gate_limit(2) == pytest.approx(np.sqrt(np.pi) / 2, rel=0.005)
    x, y = cube(3, 2)
    assert np.allclose(np.linalg.norm(x, axis=1), 1) and y.sum() == 0


def test_fields_out_of_range():
    for fields in ({"bits": (3,)}, {"bits": (8,)}, {"bits": (6,), "dimensions": (6, 7, 8)}):
        claim = ParityMargins(**fields)
        assert not all(hypothesis.holds for hypothesis in claim.hypotheses(None))


@pytest.mark.parametrize("large", [(4, 5, 6), (32, 64, 128)])
def test_an_exponent_far_from_its_limit_is_out_of_range(large):
    failed = [one for one in ParityMargins(large=large).hypotheses(None) if not one.holds]
    assert [one.name for one in failed] == [
        "largest distance of an exact exponent over --large from its limit"
    ]


@pytest.mark.parametrize(
    ("fields", "sentence"),
    [
        ({"large": (128, 64)}, "increasing --large"),
        ({"dimensions": (4, 6, 6)}, "increasing --dimensions"),
        ({"gates": 2}, "gates must be at least 50"),
        ({"samples": 2}, "samples must be at least 50"),
    ],
)
def test_fields_in_one_sentence(fields, sentence):
    with pytest.raises(UserError, match=sentence):
        ParityMargins(**fields)
