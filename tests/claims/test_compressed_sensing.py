"""compressed-sensing: recovery against the program's own minimizer, searches by force, and bad input."""

import jax
import numpy as np
import pytest

from steepest.claims.expressivity.compressed_sensing.claim import CompressedSensing
from steepest.claims.expressivity.compressed_sensing.experiment import (
    first_success,
    of_signals,
    recovers,
    sparse_signals,
    thresholds,
)
from steepest.core.errors import UserError
from steepest.core.words import Verdict
from steepest.engine.run import run
from steepest.kit import seen
from steepest.programs import min_norm_interpolation

RNG = np.random.default_rng(0)


def test_recovery_is_told_by_the_value():
    answers = []
    for m in (5, 7, 9, 11, 13):
        for signal in sparse_signals(RNG, 3, 20, 3, False):
            matrix = RNG.standard_normal((m, 20))
            other = min_norm_interpolation(matrix, matrix @ signal, "l1").beta
            answers.append(np.abs(other - signal).max() < 1e-5)
            assert recovers(matrix, signal, False) is bool(answers[-1])
    assert 0 < sum(answers) < len(answers)


def test_first_success_by_force():
    for most in (1, 2, 6):
        for first in range(most + 1):
            for guess in range(most + 1):
                assert first_success(lambda m, first=first: m >= first, most, guess) == first


def test_first_numbers_have_the_predicted_law():
    draws = 90
    for nonnegative in (False, True):
        signals = sparse_signals(RNG, draws, 16, 3, nonnegative)
        first = thresholds(lambda draw: RNG.standard_normal((16, 16)), signals, nonnegative)
        own = of_signals(16, 3, nonnegative)
        assert abs(first.mean() - own.dimension - 0.5) < 4 * first.std() / draws**0.5
        share = (first[:, None] <= np.arange(17)).mean(0)
        assert np.abs(share - own.success).max() < 2 / draws**0.5


def test_signals_have_as_many_nonzero_coordinates_as_asked():
    signals = sparse_signals(RNG, 5, 12, 4, True)
    assert ((signals != 0).sum(1) == 4).all() and (signals >= 0).all()


def test_errors_of_opposite_sign_do_not_cancel():
    claim = CompressedSensing(size=40, sparsities=(3, 6), draws=30, measurements=(8,), images=3)
    rng = np.random.default_rng(1)
    own = claim.predict(claim.setting(jax.random.key(0)))
    steps = np.sign(rng.permuted(np.tile([-1, 1], (2, 2, 15)), axis=2))
    first = own["first"][..., None] + own["spread"][..., None] * steps
    draws = ("program sparsity draw", first)
    observed = seen(first=draws, digits=("program seed", own["digits"]))
    opposite = np.array([[8.0, -8.0], [0.0, 0.0]])
    tilted = own.replace(first=("program sparsity", own["first"] + opposite))
    verdicts = [
        {check.id: check.verdict for check in claim.checks(predicted, observed)}
        for predicted in (own, tilted)
    ]
    assert verdicts[0]["first"] is Verdict.HOLDS
    assert verdicts[1]["first"] is Verdict.FAILS


@pytest.mark.parametrize(
    "fields", [{"matrix": "coordinates"}, {"sparsities": (16,)}, {"measurements": (17,)}]
)
def test_out_of_range(fields):
    assert (
        run(CompressedSensing(size=16, draws=3, images=3, **fields)).verdict is Verdict.OUT_OF_RANGE
    )


def test_dense_signals_need_every_measurement():
    claim = CompressedSensing(size=16, sparsities=(2,), draws=4, measurements=(8,), images=3)
    observed = claim.observe(claim.setting(jax.random.key(0)), jax.random.key(1))
    assert (observed["turned"] == 16).all()


@pytest.mark.parametrize(
    ("fields", "words"),
    [({"images": 2000}, "1797"), ({"size": 3}, "at least 4"), ({"sparsities": (0,)}, "at least 1")],
)
def test_bad_input(fields, words):
    with pytest.raises(UserError, match=words):
        CompressedSensing(**fields)
