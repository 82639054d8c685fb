"""Numbers handed over to other loggers: TensorBoard's own file read back, wandb offline, functions, and refusals."""

import numpy as np
import pytest

from steepest.core.errors import UserError
from steepest.measurement import Monitor, read_log
from steepest.measurement.training._handover import receivers
from steepest.measurement.training._names import PARTS
from steepest.measurement.training._weights import JaxWeights, TorchWeights
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


# ------------------------------------------------------------------------------- layers, histograms


def train(monitor, steps=4, now=None):
    """Train a small module of torch; return weights and gradients that it held at each call, by name."""
    torch = need("torch")
    torch.manual_seed(0)
    model = torch.nn.Sequential(torch.nn.Linear(4, 8), torch.nn.Tanh(), torch.nn.Linear(8, 1))
    x = torch.randn(32, 4)
    optimizer = torch.optim.SGD(model.parameters(), 0.1)
    held = []
    for step in range(steps):
        optimizer.zero_grad()
        loss = torch.nn.functional.mse_loss(model(x), x.sum(1, keepdim=True).sin())
        loss.backward()
        optimizer.step()
        copied = lambda tensor: tensor.detach().numpy().flatten()
        named = dict(model.named_parameters())
        held.append({f"weights/{name}": copied(w) for name, w in named.items()})
        held[-1] |= {f"gradients/{name}": copied(w.grad) for name, w in named.items()}
        monitor(step, model, loss=loss, now=step == now)
    return held


def with_parts(records):
    """The numbers of layers of records: step, tag, value."""
    for record in records:
        for part in PARTS.values():
            for layer, value in record.get(part, {}).items():
                yield record["step"], f"steepest/{part}/{layer}", value


def test_tensorboard_has_numbers_and_histograms_of_each_layer(tmp_path):
    tensorboard = need("torch.utils.tensorboard")
    accumulator = need("tensorboard.backend.event_processing.event_accumulator")
    writer = tensorboard.SummaryWriter(tmp_path / "events")
    held = train(Monitor(tmp_path / "log", every=2, to=writer, histograms=True), 5, now=3)
    writer.close()
    events = accumulator.EventAccumulator(
        str(tmp_path / "events"), {"histograms": 0, "scalars": 0}
    ).Reload()
    records = read_log(tmp_path / "log")
    assert [record["step"] for record in records] == [0, 2, 3, 4]
    numbers = list(with_parts(records))
    assert "steepest/updates/0.weight" in {tag for _, tag, _ in numbers}
    for step, tag, value in numbers:
        (event,) = [event for event in events.Scalars(tag) if event.step == step]
        assert event.value == pytest.approx(value, rel=1e-6)
    assert set(events.Tags()["histograms"]) == {f"steepest/{name}" for name in held[0]}
    for name in held[0]:
        stored = events.Histograms(f"steepest/{name}")
        assert [event.step for event in stored] == [0, 2, 4]  # the record at 3 was not due
        for event in stored:
            drawn = event.histogram_value
            exact = held[event.step][name]
            assert drawn.num == exact.size and sum(drawn.bucket) == exact.size
            ends = (drawn.min, drawn.max, drawn.sum, drawn.sum_squares)
            expected = (exact.min(), exact.max(), exact.sum(), (exact.astype(float) ** 2).sum())
            assert ends == pytest.approx(expected, rel=1e-5, abs=1e-6)


@pytest.mark.parametrize("of_module", [False, True])
def test_wandb_has_numbers_and_histograms_of_each_layer(tmp_path, monkeypatch, of_module):
    """In one row a record: a second one would move the run's own count of steps."""
    wandb = need("wandb")
    monkeypatch.setenv("WANDB_SILENT", "true")
    run = wandb.init(mode="offline", dir=tmp_path, project="p")
    rows = []
    usual = run.log
    monkeypatch.setattr(run, "log", lambda row: (rows.append(row), usual(row)))
    if of_module:
        monkeypatch.setattr(wandb, "log", run.log)
        monkeypatch.setattr(wandb, "define_metric", run.define_metric)
    monitor = Monitor(tmp_path / "log", every=2, to=wandb if of_module else run, histograms=True)
    held = train(monitor, 5, now=3)
    run.finish()
    assert [row["steepest/step"] for row in rows] == [0, 2, 3, 4]
    for step, tag, value in with_parts(read_log(tmp_path / "log")):
        assert [row[tag] for row in rows if row["steepest/step"] == step] == [value]
    for row in rows:
        drawn = {name: cell for name, cell in row.items() if isinstance(cell, wandb.Histogram)}
        if row["steepest/step"] == 3:
            assert not drawn
            continue
        now = held[row["steepest/step"]]
        assert set(drawn) == {f"steepest/{name}" for name in now}
        for name, exact in now.items():
            counts, edges = np.histogram(exact, 64)
            assert drawn[f"steepest/{name}"].histogram == counts.tolist()
            assert drawn[f"steepest/{name}"].bins == pytest.approx(edges.tolist(), rel=1e-6)


class Writer:
    """A stand-in for SummaryWriter."""

    def __init__(self):
        self.histograms = []

    def add_scalar(self, name, value, step):
        pass

    def flush(self):
        pass


class DrawingWriter(Writer):
    """A stand-in that draws."""

    def add_histogram(self, name, values, step):
        self.histograms.append((name, values, step))


@pytest.mark.parametrize(
    ("to", "asked"),
    [(DrawingWriter(), False), (Writer(), True), (lambda record: None, True), (None, True)],
    ids=["not asked", "a writer of numbers", "a function", "nobody"],
)
def test_nothing_is_copied_that_nobody_draws(to, asked, tmp_path, monkeypatch):
    need("torch")
    monkeypatch.setattr(TorchWeights, "entries", lambda self: pytest.fail("it was copied"))
    train(Monitor(tmp_path / "log", every=1, to=to, histograms=asked))
    assert len(read_log(tmp_path / "log")) == 4


def test_beside_one_that_draws_others_get_numbers(tmp_path):
    writer = DrawingWriter()
    rows = []
    train(Monitor(tmp_path / "log", every=1, to=[Writer(), rows.append, writer], histograms=True))
    assert len(rows) == 4 and {step for *_, step in writer.histograms} == {0, 1, 2, 3}


def test_of_jax_the_weights_are_drawn(tmp_path):
    writer = DrawingWriter()
    monitor = Monitor(
        tmp_path / "log", squared, regression(), every=1, budget=None, to=writer, histograms=True
    )
    import jax.numpy as jnp

    monitor(0, (linear, {"w": jnp.arange(6.0)}))
    ((name, values, step),) = writer.histograms
    assert (name, step) == ("steepest/weights/w", 0)
    np.testing.assert_array_equal(values, np.arange(6.0))


def test_a_histogram_that_fails_costs_a_line(tmp_path, capsys, monkeypatch):
    need("torch")

    def broken(self):
        raise MemoryError("too large")

    monkeypatch.setattr(TorchWeights, "entries", broken)
    train(Monitor(tmp_path / "log", every=1, to=DrawingWriter(), histograms=True))
    assert capsys.readouterr().err == "steepest: no histograms: MemoryError: too large\n"
    assert len(read_log(tmp_path / "log")) == 4


def test_entries_are_copies_of_what_is_finite():
    torch = need("torch")
    model = torch.nn.Module()
    model.half_ = torch.nn.Parameter(torch.tensor([1.0, float("nan"), 2.0], dtype=torch.bfloat16))
    model.double_ = torch.nn.Parameter(torch.tensor([1e-300, 1e300], dtype=torch.float64))
    model.complex_ = torch.nn.Parameter(torch.tensor([1 + 2j]))
    model.gone = torch.nn.Parameter(torch.full((2,), float("inf")))
    model.frozen = torch.nn.Parameter(torch.ones(1), requires_grad=False)
    model.table = torch.nn.Embedding(3, 1, sparse=True)
    model.table(torch.tensor([1])).sum().backward()
    model.double_.grad = torch.tensor([3.0, 4.0], dtype=torch.float64)
    entries = TorchWeights(model).entries()
    table = model.table.weight.detach().numpy().ravel()
    expected = {
        "weights/half_": [1, 2],
        "weights/double_": [1e-300, 1e300],
        "weights/complex_": [1, 2],
        "weights/table.weight": table.tolist(),
        "gradients/double_": [3, 4],
    }
    assert {name: array.tolist() for name, array in entries.items()} == expected
    entries["weights/double_"][:] = 0
    assert model.double_.tolist() == [1e-300, 1e300]


def test_entries_of_half_precision_in_jax():
    import jax.numpy as jnp

    half = jnp.array([[1.0, jnp.inf], [2.0, 3.0]], jnp.bfloat16)
    (entries,) = JaxWeights([("w", half)]).entries().values()
    assert entries.dtype == np.float32 and entries.tolist() == [1, 2, 3]
