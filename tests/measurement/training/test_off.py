"""A monitor that cannot measure says so once, and the training goes on."""

import pytest

from steepest.measurement import Monitor, read_log
from tests.extras import need

torch = need("torch")


def noisy(outputs, targets):
    return ((outputs - targets + torch.randn(())) ** 2).mean()


@pytest.mark.parametrize(
    ("model", "loss", "sentence"),
    [
        (lambda: torch.nn.Linear(2, 1), noisy, "model, loss or loader are random"),
        (lambda: torch.nn.Linear(3, 1), torch.nn.MSELoss(), "cannot be evaluated"),
        (lambda: "a network", torch.nn.MSELoss(), "a model is a pair"),
        (lambda: torch.nn.Linear(2, 1), None, "without a loss"),
        (lambda: torch.nn.Linear(2, 1), lambda f, y: 1 / 0, "ZeroDivisionError"),
    ],
)
def test_what_does_not_fit_together_is_said_once_and_turns_the_monitor_off(
    tmp_path, capsys, model, loss, sentence
):
    monitor = Monitor(tmp_path / "log", loss, (torch.ones(4, 2), torch.zeros(4, 1)))
    trained = model()
    record = monitor(0, trained)
    assert sentence in record["trouble"]
    assert [monitor(step, trained, now=True) for step in range(1, 4)] == [None] * 3
    assert capsys.readouterr().err.count("the monitor is off") == 1
    assert [entry["step"] for entry in read_log(tmp_path / "log")] == [0]
