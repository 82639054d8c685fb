"""A monitor that cannot measure says so once, records what each step has at hand, and the training goes on."""

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
        (lambda: "a network", torch.nn.MSELoss(), "a model is a torch.nn.Module"),
        (lambda: torch.nn.Linear(2, 1), None, "without a loss"),
        (lambda: torch.nn.Linear(2, 1), lambda f, y: 1 / 0, "ZeroDivisionError"),
    ],
)
def test_what_does_not_fit_together_is_said_once_and_first_order_numbers_go_on(
    tmp_path, capsys, model, loss, sentence
):
    data = (torch.ones(4, 2), torch.zeros(4, 1))
    monitor = Monitor(tmp_path / "log", loss, data, budget=None)
    trained = model()
    record = monitor(0, trained)
    assert sentence in record["trouble"]
    for step in range(1, 4):
        monitor(step, trained, now=True, loss=1.0 / step)
    assert capsys.readouterr().err.count("only what each step has at hand is recorded") == 1
    records = read_log(tmp_path / "log")
    assert [entry["step"] for entry in records] == [0, 1, 2, 3]
    assert [entry["quantities"]["loss of the batch"]["value"] for entry in records[1:]] == [
        1.0,
        0.5,
        1 / 3,
    ]
    assert not any("trouble" in entry for entry in records[1:])
