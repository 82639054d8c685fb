"""Calls between looks: what they leave alone, and that nothing is lost or late by them."""

import weakref

import numpy as np
import pytest

from steepest.measurement import Monitor, read_log
from steepest.measurement.training._alarms import Rule
from steepest.measurement.training._divergence import Course
from steepest.measurement.training._first_order import (
    ALL,
    EVERY,
    HELD,
    SELDOM,
    FirstOrder,
    StepNumbers,
)
from steepest.measurement.training._monitor import _next_due
from steepest.measurement.training._names import LARGEST, LOSS
from tests.extras import need

MODEL = (lambda w, x: x @ w, np.ones(3))


def courses():
    """Yield courses of losses: descents that scatter, climb, leap or end, and losses of single examples."""
    for seed in range(40):
        rng = np.random.default_rng(seed)
        steps = np.arange(240)
        losses = 2.3 * np.exp(-steps / rng.uniform(10, 80)) + 0.1
        losses += rng.uniform(0.01, 0.3) * losses * rng.standard_normal(240)
        begin = rng.integers(60, 200)
        late = steps - begin
        ends = (
            np.where(late > 0, 0.1 * late, 0.0),
            np.where(late > 0, 1e-2 * 1.5 ** np.minimum(late, 100), 0.0),
            np.where(late == 0, 500.0, 0.0),
            np.where(late > 0, np.nan, 0.0),
            np.where(late > 0, rng.exponential(1.0, 240), 0.0),
        )
        yield (np.abs(losses) + ends[seed % len(ends)]).tolist()


def alarms_of(losses):
    """Return steps and rules of the alarms where each step is looked at by itself, and how calm the step was."""
    course = Course()
    raised = []
    for step, loss in enumerate(losses):
        calm = course.calm()
        for alarm in course.alarms_of_step(StepNumbers(step, loss, None, True)):
            raised.append((step, alarm.rule, loss <= calm))
    return raised


def test_no_loss_that_can_wait_raises_an_alarm():
    raised = [alarm for losses in courses() for alarm in alarms_of(losses)]
    rules = {Rule.LOSSES_CLIMB, Rule.LOSSES_LEAP, Rule.BAD_BATCH, Rule.NOT_FINITE}
    assert {rule for _, rule, _ in raised} == rules
    assert not any(could_wait for _, _, could_wait in raised)


def test_alarms_are_those_of_looking_at_each_step(tmp_path):
    """The first of each course, at the same step: losses on a processor are compared in each call."""
    late = []
    for number, losses in enumerate(courses()):
        monitor = Monitor(tmp_path / f"{number}")
        for step, loss in enumerate(losses):
            monitor(step, MODEL, loss=loss)
        warned = [r for r in read_log(tmp_path / f"{number}") if "rules" in r]
        expected = [(step, rule) for step, rule, _ in alarms_of(losses)]
        alarms = [(r["step"], rule) for r in warned for rule in r["rules"]]
        assert [rule for _, rule in alarms] == [rule for _, rule in expected]
        late += [a[0] - b[0] for a, b in zip(alarms, expected, strict=True)]
    assert max(late) <= SELDOM and np.mean(np.array(late) == 0) > 0.9


@pytest.fixture
def looks(monkeypatch):
    """Return the steps that monitors look at."""
    steps = []
    looked = Monitor._looked

    def spy(self, clock, step, *given):
        steps.append(step)
        return looked(self, clock, step, *given)

    monkeypatch.setattr(Monitor, "_looked", spy)
    return steps


@pytest.mark.parametrize("schedule", [{"per_decade": 10}, {"every": 50}])
def test_due_steps_are_looked_at_with_the_two_before(tmp_path, looks, schedule):
    """The two before tell whether each step moves the weights; few others are looked at besides."""
    monitor = Monitor(tmp_path / "log", **schedule)
    for step in range(2000):
        monitor(step, MODEL, loss=1.0)
    due = [step for step in range(2000) if monitor.due(step)]
    wanted = {step - back for step in due for back in range(3) if step >= back}
    assert wanted <= set(looks)
    others = sorted(set(looks) - wanted)
    assert len(others) <= 2 * 2000 / EVERY
    assert max(np.diff(sorted(looks))) <= SELDOM
    medians = [r for r in read_log(tmp_path / "log") if LOSS in r["quantities"]]
    assert [r["step"] for r in medians] == due


@pytest.mark.parametrize("is_handed_over", [False, True])
def test_updates_are_looked_at_whenever_the_step_size_has_grown_by_a_fifth(
    tmp_path, is_handed_over
):
    """Also where looks cost too much: of a ramp to a hundredfold these are log(100) / log(1.2), about 25."""
    torch = need("torch")
    model = torch.nn.Linear(3, 1)
    optimizer = torch.optim.SGD(model.parameters(), 1e-6)
    given = {} if is_handed_over else {"optimizer": optimizer}
    monitor = Monitor(tmp_path / "log", **given)
    monitor.first_order._affords = lambda now, share=0.0: False
    shares = []
    watch = monitor.course.alarms_of_step
    monitor.course.alarms_of_step = lambda numbers: shares.append(numbers) or watch(numbers)
    for step in range(601):
        lr = 1e-6 * (1 + 99 * step / 400) if step < 400 else 1e-4
        optimizer.param_groups[0]["lr"] = lr
        with torch.no_grad():
            for weight in model.parameters():
                weight.mul_(1 + lr)
        monitor(step, model, loss=1.0, **({"lr": lr} if is_handed_over else {}))
    looked = [n.step for n in shares if n.share is not None and not monitor.due(n.step)]
    late = [step for step in looked if step > ALL]
    assert 15 <= len(late) <= 27
    assert max(late) <= 402


@pytest.mark.parametrize("every", [None, 1, 7])
@pytest.mark.parametrize("per_decade", [1, 3, 10, 37])
def test_the_next_due_step_is_the_next_of_the_schedule(every, per_decade):
    powers = {0} | {round(10 ** (place / per_decade)) for place in range(4 * per_decade)}
    due = sorted(powers if every is None else range(0, 5000, every))
    following = [next(later for later in due if later > step) for step in range(-1, due[-1])]
    assert [_next_due(step, every, per_decade) for step in range(-1, due[-1])] == following


def test_going_back_and_other_numbers_of_steps_are_looked_at(tmp_path, looks):
    monitor = Monitor(tmp_path / "log")
    for step in range(1005):
        monitor(step, MODEL, loss=1.0)
    del looks[:]
    for step in (500, np.int64(501), 502.0):  # a checkpoint; what is no int is read with care
        monitor(step, MODEL, loss=1.0)
    assert looks == [500, 501, 502]
    monitor("next", MODEL)
    assert monitor.stopped and monitor(503, MODEL) is None


def test_a_quiet_call_walks_over_no_weights_and_keeps_no_graph(tmp_path, looks, monkeypatch):
    torch = need("torch")
    model = torch.nn.Sequential(torch.nn.Linear(4, 8), torch.nn.Tanh(), torch.nn.Linear(8, 1))
    optimizer = torch.optim.SGD(model.parameters(), 0.1)
    monitor = Monitor(tmp_path / "log", optimizer=optimizer)
    walks = []
    for name in ("modules", "named_modules", "named_parameters", "parameters"):
        walk = getattr(torch.nn.Module, name)
        spy = lambda self, *given, walk=walk, **named: (
            walks.append(0) or walk(self, *given, **named)
        )
        monkeypatch.setattr(torch.nn.Module, name, spy)
    x = torch.ones(5, 4)
    quiet = 0
    for step in range(200):
        optimizer.zero_grad()
        loss = (model(x) ** 2).mean()
        loss.backward()
        optimizer.step()
        kept = weakref.ref(loss)
        looks_before = len(looks)
        del walks[:]
        monitor(step, model, loss=loss, grad_norm=torch.ones(()))
        del loss
        assert kept() is None
        if len(looks) == looks_before:
            quiet += 1
            assert not walks
    assert quiet > 100


def test_what_is_on_an_accelerator_is_not_read_until_a_look():
    """A tensor that has no numbers stands for one that would have to be waited for."""
    torch = need("torch")
    first_order = FirstOrder()
    scale = torch.ones((), device="meta", requires_grad=True)
    held = [first_order.hold(step, 2 * scale, 3 * scale, 1.0) for step in range(HELD)]
    assert held == [True] * (HELD - 1) + [False]  # then they are fetched together
    for look in first_order._held:
        assert not look.loss.requires_grad and not look.slope.requires_grad
    in_place = torch.ones((), device="meta")
    first_order = FirstOrder()
    first_order.hold(0, in_place, None, 1.0)
    assert first_order._held[0].loss is not in_place  # the training may change it


def test_a_loss_of_jax_is_read_some_steps_later_and_missing_where_it_was_donated(tmp_path, looks):
    jnp = need("jax.numpy")
    monitor = Monitor(tmp_path / "nan")
    for step in range(200):
        monitor(step, MODEL, loss=jnp.asarray(np.nan if step == 130 else 1.0))
    (trouble,) = [r for r in read_log(tmp_path / "nan") if "rules" in r]
    assert trouble["rules"] == [Rule.NOT_FINITE] and 130 <= trouble["step"] <= 130 + SELDOM
    assert "at step 130" in trouble["warnings"][0]
    del looks[:]
    monitor = Monitor(tmp_path / "donated", every=100)
    for step in range(101):
        loss = jnp.asarray(1.0)
        monitor(step, MODEL, loss=loss)
        loss.delete()
    assert len(looks) >= 101 - SELDOM  # once one was lost, each is read in its own call
    assert read_log(tmp_path / "donated")[-1]["quantities"][LOSS]["value"] == 1.0


def test_other_arrays_between_two_records_cost_no_numbers(tmp_path, capsys):
    """Medians are of the arrays that the record names."""
    torch = need("torch")
    model = torch.nn.Sequential(torch.nn.Linear(4, 3), torch.nn.Linear(3, 2))
    monitor = Monitor(tmp_path / "log", every=40)
    monitor.first_order._affords = lambda now, share=0.0: True
    for step in range(81):
        if step == 60:
            model[1].bias = None
        with torch.no_grad():
            for weight in model.parameters():
                weight.mul_(1.5)
        monitor(step, model)
    last = read_log(tmp_path / "log")[-1]
    assert last["step"] == 80 and set(last["updates"]) == {"0.weight", "0.bias", "1.weight"}
    assert last["quantities"][LARGEST]["value"] == pytest.approx(1 / 3)
    assert capsys.readouterr().err == ""


def test_a_held_out_loss_between_looks_costs_no_alarm(tmp_path):
    """Its record takes the numbers that are held; the rules still see their losses."""
    jnp = need("jax.numpy")
    monitor = Monitor(tmp_path / "log")
    for step in range(160):
        monitor(step, MODEL, loss=jnp.asarray(np.inf if step == 130 else 1.0))
        if step == 132:
            monitor.held_out(step, 1.0)
    (warned,) = [r for r in read_log(tmp_path / "log") if "rules" in r]
    assert warned["rules"] == [Rule.NOT_FINITE]
