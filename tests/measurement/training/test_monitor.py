"""The monitor: its schedule, its budget, its log, and warm starts."""

import numpy as np
import pytest

from steepest.core.errors import UserError
from steepest.measurement import Monitor, read_log
from tests.extras import need
from tests.measurement.adapters import models
from tests.measurement.test_measure import linear, regression, squared


def test_log_spaced_steps(tmp_path):
    monitor = Monitor(tmp_path / "log", squared, regression(), per_decade=3)
    assert [step for step in range(101) if monitor.due(step)] == [0, 1, 2, 5, 10, 22, 46, 100]


def test_records_follow_the_weights(tmp_path):
    network, params = models.of_jax()
    monitor = Monitor(
        tmp_path / "log", models.cross_entropy, models.data(), ["risk"], every=1, budget=None
    )
    for step in range(3):
        monitor(
            step,
            (
                network,
                [{name: (1 + step) * each for name, each in layer.items()} for layer in params],
            ),
        )
    risks = [each["quantities"]["risk"]["value"] for each in read_log(tmp_path / "log")]
    assert len(set(risks)) == 3


def test_a_module_in_training_is_measured_in_evaluation_mode_and_set_back(tmp_path):
    torch = need("torch")
    model = torch.nn.Sequential(
        torch.nn.Linear(4, 5), torch.nn.BatchNorm1d(5), torch.nn.Dropout(), torch.nn.Linear(5, 3)
    )
    model[1].eval()
    x, y = models.data()
    data = torch.as_tensor(x, dtype=torch.float32), torch.as_tensor(y)
    monitor = Monitor(
        tmp_path / "log",
        torch.nn.CrossEntropyLoss(),
        data,
        ["risk", "sharpness"],
        every=1,
        budget=None,
    )
    first = monitor(0, model)
    with torch.no_grad():
        model[3].weight.mul_(3.0)  # as an optimizer does, in place
    second = monitor(1, model)
    assert first["quantities"]["risk"]["value"] != second["quantities"]["risk"]["value"]
    assert [each.training for each in model] == [True, False, True, True]


def test_a_step_that_had_to_wait_is_made_up_for(tmp_path):
    monitor = Monitor(tmp_path / "log", squared, regression(), ["risk"], every=10)
    model = (linear, np.zeros(6))
    assert monitor(0, model) is None  # no time has passed of which measuring could take a share
    monitor.took = {True: 1e9}
    assert monitor(10, model) is None
    monitor.took = {True: 0.0}
    assert monitor(13, model)["step"] == 13
    assert monitor(14, model) is None


def test_the_first_measurement_is_within_the_budget(tmp_path):
    """The risk comes first by itself, then all; each when what other looks leave of the share allows for it."""
    now = [0.0]

    def clock():
        now[0] += 0.5  # each look at it takes half a second
        return now[0]

    monitor = Monitor(tmp_path / "log", squared, regression(), every=1, budget=0.5)
    monitor.clock = clock
    model = (linear, np.zeros(6))
    for step in range(300):
        now[0] += 20.0
        monitor(step, model)
        assert monitor.spent + monitor.besides <= 0.5 * (clock() - monitor.started)
    measured = [r for r in read_log(tmp_path / "log") if "risk" in r["quantities"]]
    assert "sharpness" not in measured[0]["quantities"]
    assert "sharpness" in measured[-1]["quantities"]


@pytest.mark.parametrize(("besides", "is_measured"), [(0.5, True), (7.4, True), (7.6, False)])
def test_what_other_looks_take_is_left_out_of_the_budget(tmp_path, besides, is_measured):
    """Of a thousand seconds ten are the budget, of which 2.5 are there in any case."""
    monitor = Monitor(tmp_path / "log", squared, regression())
    monitor.besides = besides
    assert monitor._affords(1000.0, 2.5)
    assert monitor._affords(1000.0, 2.55) == is_measured


def test_the_log_survives_a_kill(tmp_path):
    file = tmp_path / "log"
    monitor = Monitor(
        file,
        squared,
        regression(),
        ["risk"],
        every=1,
        budget=None,
        then=lambda record: seen.append(record["step"]),
    )
    seen = []
    monitor(0, (linear, np.zeros(6)))
    with file.open("ab") as log:
        log.write(b'{"step": 1, "quanti')  # killed while it wrote
    again = Monitor(file, squared, regression(), ["risk"], every=1, budget=None)
    again(2, (linear, np.zeros(6)))
    assert [each["step"] for each in read_log(file)] == [0, 2]
    assert seen == [0]


def test_a_schedule_of_optax_is_told_in_each_call(tmp_path):
    monitor = Monitor(tmp_path / "log", squared, regression(), ["sharpness"], every=1, budget=None)
    limits = []
    for step in range(3):
        record = monitor(step, (linear, np.zeros(6)), lr=0.1 / (step + 1))
        limits.append(record["quantities"]["sharpness"]["compared"])
    assert limits == pytest.approx([20.0, 40.0, 60.0])


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        ({"budget": 0}, "budget"),
        ({"every": 0}, "schedule"),
        ({"what": ["sharpnes"]}, "did you mean"),
    ],
)
def test_bad_options_get_one_sentence(tmp_path, options, sentence):
    with pytest.raises(UserError, match=sentence):
        Monitor(tmp_path / "log", squared, regression(), **options)
    with pytest.raises(UserError, match="no log"):
        read_log(tmp_path / "nothing")
