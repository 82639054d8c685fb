"""Numbers handed over to other loggers: TensorBoard's own file read back, wandb offline, functions, and refusals."""

import numpy as np
import pytest

from steepest.core.errors import UserError
from steepest.measurement import Monitor, read_log
from steepest.measurement.training._handover import receivers
from tests.extras import need
from tests.measurement.test_measure import linear, regression, squared


def trained(folder, to, **options):
    """Measure three steps of a linear regression; return the records."""
    monitor = Monitor(
        folder / "log", squared, regression(), every=1, budget=None, lr=1e-3, to=to, **options
    )
    for step in range(3):
        monitor(step, (linear, np.full(6, 0.1 * step)))
    return read_log(folder / "log")


def test_a_function_and_a_list_of_them(tmp_path):
    first, second, third = [], [], []
    trained(tmp_path, [first.append, second.append], then=third.append)
    assert [record["step"] for record in first] == [0, 1, 2]
    assert first == second == third


def test_a_logger_with_log_metrics(tmp_path):
    class Logger:
        def __init__(self):
            self.rows = {}

        def log_metrics(self, numbers, step):
            self.rows[step] = numbers

    logger = Logger()
    records = trained(tmp_path, logger)
    assert logger.rows[2]["steepest/sharpness"] == records[2]["quantities"]["sharpness"]["value"]
    assert logger.rows[2]["steepest/sharpness, limit"] == 2000.0


def test_what_takes_no_numbers_is_refused(tmp_path):
    for to in ("tensorboard", 3, object()):
        with pytest.raises(UserError, match="nothing that takes numbers"):
            Monitor(tmp_path / "log", squared, regression(), to=to)
    import logging

    with pytest.raises(UserError, match="nothing that takes numbers"):  # it has a method log too
        receivers(logging.getLogger("steepest"))


def test_a_receiver_that_fails_costs_nothing_but_a_line(tmp_path, capsys):
    def broken(record):
        raise ConnectionError("no route")

    rows = []
    assert len(trained(tmp_path, [broken, rows.append])) == 3 == len(rows)
    assert (
        capsys.readouterr().err
        == "steepest: handing the record over failed: ConnectionError: no route\n"
    )


def test_a_log_that_cannot_be_written(tmp_path, capsys):
    monitor = Monitor(tmp_path, squared, regression(), budget=None)
    assert "cannot write the log" in monitor(0, (linear, np.zeros(6)))["trouble"]
    assert monitor(1, (linear, np.zeros(6))) is None
    assert capsys.readouterr().err.startswith("steepest: the monitor is off: cannot write the log")
    monitor = Monitor(tmp_path / "log", squared, regression(), every=1, budget=None)
    monitor(0, (linear, np.zeros(6)))
    (tmp_path / "log").unlink()
    (tmp_path / "log").mkdir()  # as when a disk goes away in the middle of a training
    for step in (1, 2):
        assert monitor(step, (linear, np.zeros(6)))["step"] == step
    assert capsys.readouterr().err.count("the log cannot be written") == 1


def test_tensorboard_reads_what_was_written(tmp_path):
    tensorboard = need("torch.utils.tensorboard")
    accumulator = need("tensorboard.backend.event_processing.event_accumulator")
    writer = tensorboard.SummaryWriter(tmp_path / "events")
    records = trained(tmp_path, writer)
    writer.close()
    events = accumulator.EventAccumulator(str(tmp_path / "events")).Reload()
    for name in ("risk", "sharpness", "gradient norm"):
        stored = events.Scalars(f"steepest/{name}")
        assert [event.step for event in stored] == [0, 1, 2]
        expected = [record["quantities"][name]["value"] for record in records]
        assert [event.value for event in stored] == pytest.approx(expected, rel=1e-6)
    limits = events.Scalars("steepest/sharpness, limit")
    assert [event.value for event in limits] == [2000.0] * 3


@pytest.mark.parametrize("of_module", [False, True])
def test_wandb_offline_beside_steps_of_the_user(tmp_path, monkeypatch, of_module):
    wandb = need("wandb")
    monkeypatch.setenv("WANDB_SILENT", "true")
    run = wandb.init(mode="offline", dir=tmp_path, project="p")
    rows = []
    usual = run.log
    monkeypatch.setattr(
        run, "log", lambda row, *more, **named: (rows.append(row), usual(row, *more, **named))
    )
    if of_module:
        monkeypatch.setattr(wandb, "log", run.log)
        monkeypatch.setattr(wandb, "define_metric", run.define_metric)
    for step in range(20):
        usual({"loss": 1.0}, step=step)  # a user's own count is ahead of ours, and goes on
    records = trained(tmp_path, wandb if of_module else run)
    summary = {name: run.summary.get(name) for name in ("steepest/step", "steepest/risk")}
    run.finish()
    assert [row["steepest/step"] for row in rows] == [0, 1, 2]
    assert [row["steepest/risk"] for row in rows] == [
        record["quantities"]["risk"]["value"] for record in records
    ]
    assert summary["steepest/step"] == 2
    assert summary["steepest/risk"] == pytest.approx(rows[-1]["steepest/risk"])
