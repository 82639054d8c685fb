"""The claim parity-margins: its sampled margins, its limits, and what it refuses."""

import numpy as np
import pytest

from steepest.claims.features.parity_margins.claim import ParityMargins, _leading
from steepest.claims.features.parity_margins.experiment import (
    cube,
    gate_lengths,
    gate_program,
    measure_margins,
    sampled_margin,
)
from steepest.core.errors import UserError
from steepest.kernels import arc_cosine
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


def test_no_weights_on_the_cube_beat_the_uniform_ones():
    margin = gate_program(np.random.default_rng(0), 4, 2)
    assert margin == pytest.approx(parity_margins(4, 2).tangent, rel=0.03)


def test_a_wrong_kernel_moves_what_is_predicted_and_not_what_is_measured(monkeypatch):
    """κ × 4/3 once held in all checks, as it was on both sides."""
    right = arc_cosine

    def wrong(t):
        kernels = right(t)
        return kernels._replace(inner=kernels.inner * 4 / 3)

    claim = ParityMargins(dimensions=(4, 5, 6), large=(64, 128, 256), gates=500, gate_dimension=8)
    fields = {"groups": 3, "gates": 500, "samples": 200, "gate_dimension": 8}

    def sides():
        rng = np.random.default_rng(0)
        seen = measure_margins(rng, claim.bits, claim.dimensions, claim.large, **fields)
        return claim.predict(None), seen

    law, seen = sides()
    monkeypatch.setattr("steepest.programs._parity_margins.arc_cosine", wrong)
    monkeypatch.setattr("steepest.kernels.arc_cosine", wrong)
    wrong_law, still_seen = sides()
    for name in ("tangent", "sampled"):
        np.testing.assert_allclose(wrong_law[name] / law[name], np.sqrt(4 / 3))
        np.testing.assert_array_equal(still_seen[name], seen[name])


def test_limits():
    assert _leading(2) == pytest.approx(1 / np.pi)
    assert _leading(4) == pytest.approx(2 / np.pi)
    # as d grows only a gate's weights on the k bits count: E√(Σ_i ∏_{j≠i} w_j²)/√k
    for k, limit in ((2, np.sqrt(np.pi) / 2), (4, 0.62)):
        squares = np.random.default_rng(0).normal(size=(200_000, k)) ** 2
        ratios = np.sqrt((squares.prod(1)[:, None] / squares).sum(1)) / np.sqrt(k)
        assert ratios.mean() == pytest.approx(limit, rel=0.01)
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
        ({"dimensions": (4, 5, 9)}, "at most 8 bits"),
        ({"gate_dimension": 20}, "gate dimension must be from 6 to 16"),
    ],
)
def test_fields_in_one_sentence(fields, sentence):
    with pytest.raises(UserError, match=sentence):
        ParityMargins(**fields)
