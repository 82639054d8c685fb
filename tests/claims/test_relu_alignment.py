"""What is measured of the layers: on matrices whose singular values and vectors are known."""

import numpy as np
import pytest

from steepest.claims.features.relu_alignment.claim import ReluAlignment
from steepest.claims.features.relu_alignment.experiment import look_at
from steepest.core.errors import UserError
from steepest.core.experiment import seeded
from steepest.programs import stable_rank

RNG = np.random.default_rng(0)


def test_aligned_layers_of_rank_one():
    u = RNG.normal(size=5)
    v = RNG.normal(size=5)
    first = np.outer(u, RNG.normal(size=3))
    second = np.outer(v, u)
    assert np.allclose(look_at(first, second, v[None]), 1.0)
    across = np.linalg.svd(np.outer(u, u))[0][:, 1]
    assert np.allclose(look_at(first, np.outer(v, across), v[None])[2], 0.0, atol=1e-9)


def test_stable_ranks_are_the_librarys():
    first = RNG.normal(size=(2, 5, 3))
    second = RNG.normal(size=(2, 5, 5))
    layers = look_at(first, second, RNG.normal(size=(2, 1, 5)))
    assert np.allclose(layers[:, 0], [float(stable_rank(w)) for w in first])
    assert np.allclose(layers[:, 1], [float(stable_rank(w)) for w in second])


@pytest.mark.parametrize("scales", [(0.1, 1.0), (1.0, 1.0), (1.0,)])
def test_scales_in_one_sentence(scales):
    with pytest.raises(UserError, match="--scales are decreasing"):
        ReluAlignment(scales=scales)


@pytest.mark.parametrize("scales", [(0.5, 0.1), (1.0, 0.25)])
def test_the_standard_start_and_a_small_one(scales):
    claim = ReluAlignment(scales=scales, examples=4, seeds=3)
    assert not all(one.holds for one in claim.hypotheses(claim.setting(seeded(0)[0])))


def test_a_start_in_directions_of_its_own_adds_its_share():
    """What is learned has stable rank 1.25; a start orthogonal to it adds to the Frobenius norm alone."""
    left, _, right = np.linalg.svd(RNG.normal(size=(6, 6)))
    learned = (left * [2.0, 1.0, 0, 0, 0, 0]) @ right
    start = (left * [0, 0, 0.4, 0.3, 0.2, 0.1]) @ right
    last = RNG.normal(size=(1, 6))
    rank = look_at(learned + start, learned + start, last)[0]
    share = (start**2).sum() / (learned**2).sum()
    assert rank == pytest.approx(1.25 * (1 + share))
