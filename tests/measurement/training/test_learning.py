"""What is said of learning rests on the newest records: losses of the batches, or a risk that is no older."""

import json

import numpy as np
import pytest

from steepest.measurement import Monitor, read_log, watch
from steepest.measurement._report import FindingId
from steepest.measurement.training._first_order import FirstOrder
from steepest.measurement.training._names import LOSS
from tests.measurement.test_measure import linear, squared

GUESS = 2.3


def entry(value, error=None, compared=None):
    over = None if error is None else [value - 1.96 * error, value + 1.96 * error]
    more = {"interval": None, "source_of_error": "rounding", "theory": ""}
    return {"value": value, "over_examples": over, "compared": compared, **more}


def log_of(folder, losses, error=0.02, risks=None, warned=(), every=10):
    """Write a log with the losses of the batches at every tenth step, and risks by step."""
    risks = {0: GUESS} if risks is None else risks
    file = folder / "run.jsonl"
    with file.open("w") as lines:
        for row, loss in enumerate(losses):
            step = every * row
            quantities = {} if loss is None else {LOSS: entry(loss, error)}
            if step in risks:
                quantities["risk"] = entry(risks[step], compared=GUESS)
            record = {"step": step, "seconds": 0.0, "quantities": quantities}
            if step in warned:
                record["warnings"] = ["expect divergence"]
            lines.write(json.dumps(record) + "\n")
    return watch(file)


def about(run):
    return {finding.id: finding for finding in run.findings}


FALLING = [None, *np.geomspace(2.3, 0.02, 20)]
STANDING = [None, *(2.3 + 0.02 * np.sin(np.arange(20)))]


@pytest.mark.parametrize(
    ("losses", "sign", "said"),
    [
        (FALLING, "✓", FindingId.LEARNED),
        (STANDING, "!", FindingId.NOTHING_LEARNED),
        ([None, *np.linspace(2.3, 9.0, 20)], "!", FindingId.NOTHING_LEARNED),
        ([*FALLING, 3.0, 3.1, 3.0, 3.2], "!", FindingId.FORGOTTEN),
        ([*FALLING[:-2], 0.03, 3.0], "!", FindingId.LEAPT),
        ([None, *np.geomspace(2.3, 0.1, 15), 0.8, 0.8, 0.8], "?", FindingId.RISK_ABOVE_ITS_LOWEST),
    ],
)
def test_losses_are_newer_than_a_risk_of_the_start(tmp_path, losses, sign, said):
    shown = about(log_of(tmp_path, losses))
    assert shown[said].sign == sign and shown[said].evidence == LOSS
    assert (FindingId.NOTHING_LEARNED in shown) == (said is FindingId.NOTHING_LEARNED)
    assert FindingId.STALE in shown  # the risk is as old as the training


def test_without_a_guess_losses_rise_fall_or_stand(tmp_path):
    other = {0: 50.0}  # another loss than that of the batches, whose guess is no measure of it
    assert FindingId.LEARNED in about(log_of(tmp_path, FALLING, risks=other))
    assert FindingId.LOSS_STANDS in about(log_of(tmp_path, STANDING, risks=other))
    rising = about(log_of(tmp_path, [None, *np.linspace(2.3, 9.0, 20)], risks=other))
    assert rising[FindingId.RISK_RISEN].sign == "!"
    # a fall within the scatter, and one whose scatter is not known
    assert FindingId.LOSS_STANDS in about(log_of(tmp_path, FALLING, error=2.0, risks=other))
    unknown = about(log_of(tmp_path, FALLING, error=None, risks=other))
    assert unknown[FindingId.LOSS_STANDS].sign == "?"
    # a loss that may be negative
    assert FindingId.LEARNED in about(log_of(tmp_path, np.linspace(0.5, -3.0, 20), risks={}))


def test_a_new_risk_counts_before_the_losses(tmp_path):
    shown = about(log_of(tmp_path, FALLING, risks={0: GUESS, 200: 0.5}))
    assert shown[FindingId.LEARNED].evidence == "risk" and FindingId.STALE not in shown
    apart = about(log_of(tmp_path, FALLING, risks={0: GUESS, 200: 2.4}))
    assert apart[FindingId.RISK_APART].sign == "?" and FindingId.NOTHING_LEARNED not in apart


def test_where_nothing_is_known_nothing_is_said(tmp_path):
    shown = about(log_of(tmp_path, [None] * 20))
    assert set(shown) == {FindingId.STALE}
    # one risk without anything beside it
    file = tmp_path / "one.jsonl"
    record = {"step": 0, "seconds": 0.0, "quantities": {"risk": entry(1.05)}}
    file.write_text(json.dumps(record) + "\n")
    assert watch(file).findings == ()


def test_an_old_curvature_is_no_finding(tmp_path):
    file = tmp_path / "run.jsonl"
    sharp = {**entry(30.0, compared=20.0), "theory": "2/η"}
    rows = [{"step": 0, "seconds": 0.0, "quantities": {"sharpness": sharp}, "lr": 0.1}]
    rows += [
        {"step": s, "seconds": 0.0, "quantities": {LOSS: entry(1.0, 0.1)}} for s in range(1, 20)
    ]
    file.write_text("".join(json.dumps(row) + "\n" for row in rows))
    assert {FindingId.STALE, FindingId.LOSS_STANDS} == set(about(watch(file)))


@pytest.mark.parametrize(
    ("after", "said", "sign"),
    [
        ([0.5, 0.3, 0.2, 0.1, 0.1, 0.1], FindingId.NO_LONGER_WARNED, "?"),
        ([40.0, 80.0, 83.0, 80.0, 82.0, 81.0], FindingId.WARNED, "!"),
        ([None] * 6, FindingId.NO_LONGER_WARNED, "?"),
    ],
)
def test_what_came_of_a_warning(tmp_path, after, said, sign):
    losses = [None, *np.geomspace(2.3, 1.0, 8), *after]
    shown = about(log_of(tmp_path, losses, warned=(90,)))
    assert shown[said].sign == sign and shown[said].evidence == "warnings"


def test_losses_that_are_not_finite_are_said_though_no_weights_are_known(tmp_path):
    monitor = Monitor(tmp_path / "log", warn=False)
    for step in range(1, 40):
        monitor(step, (linear, np.zeros(2)), loss=2.0 / step if step < 20 else np.nan)
    finding = about(watch(tmp_path / "log"))[FindingId.DIVERGED]
    assert finding.evidence == LOSS
    assert (
        json.loads(json.dumps(read_log(tmp_path / "log")))[-1]["quantities"][LOSS]["value"] is None
    )


def error_of(levels, rng):
    """Return median and standard error that a record states of losses about these levels."""
    order = FirstOrder(clock=lambda: 0.0)
    for step, level in enumerate(levels):
        order.look(step, (linear, np.zeros(2)), level + 0.1 * rng.standard_normal())
    (reading,) = [reading for reading in order.readings() if reading.name == LOSS]
    low, high = reading.over_examples
    return reading.value, (high - low) / 2 / 1.96


def test_the_interval_of_a_median_holds_it_as_often_as_it_says():
    rng = np.random.default_rng(0)
    medians, errors = np.transpose([error_of(np.ones(45), rng) for _ in range(300)])
    assert 0.9 < np.mean(np.abs(medians - 1) < 1.96 * errors) < 0.99
    # the median of 45 normal numbers of deviation 0.1 scatters by 0.0185, and a steady fall is no scatter
    assert np.std(medians) == pytest.approx(0.0185, rel=0.15)
    _, falling = np.transpose([error_of(np.linspace(30, 1, 45), rng) for _ in range(100)])
    assert np.median(falling) == pytest.approx(np.median(errors), rel=0.1)


def test_a_monitor_of_its_own_training(tmp_path):
    x = np.random.default_rng(0).standard_normal((64, 3))
    y = x @ [1.0, -2.0, 0.5]
    w = np.zeros(3)
    monitor = Monitor(tmp_path / "log", squared, (x, y))
    monitor(0, (linear, w))
    for step in range(1, 60):
        loss = float(((x @ w - y) ** 2).mean() / 2)
        w = w - 0.1 * x.T @ (x @ w - y) / len(x)
        monitor(step, (linear, w), loss=loss)
    assert FindingId.LEARNED in about(watch(tmp_path / "log"))
