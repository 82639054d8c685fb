"""The claim parity-margins: its sampled margins, its limits, and what it refuses."""

import numpy as np
import pytest

from steepest.claims.features.parity_margins.claim import ParityMargins, _gate_limit, _leading
from steepest.claims.features.parity_margins.experiment import cube, gate_lengths, sampled_margin
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
    for fields in ({"bits": (3,)}, {"bits": (8,)}, {"bits": (6,), "dimensions": (6,)}):
        claim = ParityMargins(**fields)
        assert not all(hypothesis.holds for hypothesis in claim.hypotheses(None))
