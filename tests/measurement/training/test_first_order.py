"""First-order numbers against plain arithmetic, without data, and a training that is as it would be alone."""

import numpy as np
import pytest

from steepest.measurement import Monitor, read_log, watch
from steepest.measurement.training._names import GRADIENT, LARGEST, LOSS, UPDATE
from tests.extras import need

torch = need("torch")
nn = torch.nn
X = torch.randn(32, 4, generator=torch.Generator().manual_seed(0))
Y = X.sum(1, keepdim=True).sin()


def train(monitor, steps, lr=0.1, each=lambda model: None):
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(4, 8), nn.BatchNorm1d(8), nn.Tanh(), nn.Linear(8, 1))
    optimizer = torch.optim.SGD(model.parameters(), lr, momentum=0.9)
    loss = None
    for step in range(steps + 1):
        if monitor is not None:
            monitor(step, model, loss=loss)
        each(model)
        optimizer.zero_grad()
        loss = nn.functional.mse_loss(model(X), Y)
        loss.backward()
        optimizer.step()
    return model


def test_without_data_a_short_training_has_a_score_of_records(tmp_path):
    """The schedule alone: 200 steps have 22 due ones, of which the first knows nothing yet."""
    monitor = Monitor(tmp_path / "log")
    train(monitor, 200)
    records = read_log(tmp_path / "log")
    assert [record["step"] for record in records] == [s for s in range(201) if monitor.due(s)][1:]
    assert len(records) >= 20
    assert {UPDATE, LARGEST, GRADIENT, LOSS} <= set(watch(tmp_path / "log").names)


def test_numbers_are_those_of_the_arrays(tmp_path):
    before = []
    slopes = []

    def keep(model):
        before.append([w.detach().clone() for w in model.parameters()])
        slopes.append([None if w.grad is None else w.grad.clone() for w in model.parameters()])

    train(Monitor(tmp_path / "log", every=1), 3, each=keep)
    norm = lambda arrays: float(torch.cat([a.ravel() for a in arrays]).norm())
    last = read_log(tmp_path / "log")[-1]
    moved = [a - b for a, b in zip(before[3], before[2], strict=True)]
    assert last["quantities"][UPDATE]["value"] == pytest.approx(
        norm(moved) / norm(before[3]), rel=1e-5
    )
    assert last["quantities"][GRADIENT]["value"] == pytest.approx(norm(slopes[3]), rel=1e-5)
    first = float(moved[0].norm() / before[3][0].norm())
    assert last["updates"]["0.weight"] == pytest.approx(first, rel=1e-5)
    assert last["quantities"][LARGEST]["value"] == pytest.approx(max(last["updates"].values()))


def test_medians_are_over_the_steps_since_the_last_record(tmp_path):
    losses = []

    class Kept(Monitor):
        def __call__(self, step, model, **given):
            losses.append(given["loss"])
            return super().__call__(step, model, **given)

    train(Kept(tmp_path / "log", every=5), 10)
    recorded = [r["quantities"][LOSS]["value"] for r in read_log(tmp_path / "log")[-1:]]
    values = [float(loss.detach()) for loss in losses[6:11]]
    assert recorded == [pytest.approx(np.median(values))]


def test_the_training_is_bit_for_bit_the_same(tmp_path):
    monitor = Monitor(tmp_path / "log", nn.MSELoss(), (X, Y), budget=None, lr=0.1)
    watched = train(monitor, 40).state_dict()
    alone = train(None, 40).state_dict()
    assert all(torch.equal(watched[name], alone[name]) for name in alone)


def test_weights_that_are_not_finite_are_said_once(tmp_path):
    def spoil(model):
        spoiled.append(0)
        if len(spoiled) == 25:
            with torch.no_grad():
                model[0].weight[0, 0] = float("nan")

    spoiled = []
    train(Monitor(tmp_path / "log", every=1000), 100, each=spoil)
    said = [r["trouble"] for r in read_log(tmp_path / "log") if "trouble" in r]
    assert said == ["the weights are not finite at step 25: the training has diverged"]
    assert "diverged" in watch(tmp_path / "log").findings[0].text


def test_other_models_have_none(tmp_path, capsys):
    monitor = Monitor(tmp_path / "log")
    assert monitor(0, (lambda w, x: x @ w, np.zeros(2))) is None
    assert monitor(1, "a network") is None
    assert capsys.readouterr().err == ""


@pytest.mark.parametrize("change", ["replaced", "frozen", "freed", "added"])
def test_weights_that_change_their_place_are_listed_anew(tmp_path, change):
    model = nn.Sequential(nn.Linear(4, 3), nn.Linear(3, 2))
    if change == "freed":
        model[0].weight.requires_grad_(False)
    monitor = Monitor(tmp_path / "log", every=1)

    def step(number):
        with torch.no_grad():
            for weight in model.parameters():
                weight.mul_(1.5)
        return monitor(number, model)

    for number in range(4):
        step(number)
    if change == "replaced":
        model[1] = nn.Linear(3, 5)
    elif change == "added":
        model.append(nn.Linear(2, 2))
    else:
        model[0].weight.requires_grad_(change == "freed")
    for number in range(4, 24):
        record = step(number)
    trained = {name for name, weight in model.named_parameters() if weight.requires_grad}
    assert set(record["updates"]) == trained
    assert record["updates"]["1.weight"] == pytest.approx(1 / 3)
