"""The best step at several widths: quadratics whose best step is known, torch and JAX, and what is refused."""

import itertools
import json
import math
import random

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from steepest.app.cli import main
from steepest.core.errors import UserError
from steepest.measurement import FindingId, Plan, Report, step_transfer
from steepest.measurement.widths._best_step import Minimum, carried, minimum, power_of_width
from tests.extras import need
from tests.measurement.widths import test_widths

CURVATURES = np.array([1.0, 0.5, 0.25])
STEPS = 5
WIDTHS = (1, 2, 4)
LR = 0.5
GRID = 2.0 ** np.arange(-5, 5)


def start(seed):
    """What the outputs' weights add up to at the start."""
    return np.random.default_rng(seed).standard_normal(3)


def risk_of(step, n, seed, steps=STEPS):
    """Risk ½ Σ h u² (1 − ηnh)^2T of n columns of weights that add up, whose curvature is n times that of one."""
    return (CURVATURES * start(seed) ** 2 * (1 - step * n * CURVATURES) ** (2 * steps)).sum() / 2


def inputs():
    """Three examples with the curvatures as second moments."""
    return np.diag(np.sqrt(3 * CURVATURES))


def half_square(outputs, targets):
    return ((outputs - targets) ** 2).mean() / 2


def add_up(params, x):
    """The model of JAX, one function for all networks, which is compiled but once."""
    return x @ params["w"].sum(1, keepdims=True)


slope = jax.jit(jax.grad(lambda params, x, y: half_square(add_up(params, x), y)))


def columns(width):
    return int(2 * width)


def in_torch(scaled=False, change=None, lr=LR):
    """The quadratic; ``scaled`` divides the step by the width; ``change`` gets the parts and may replace some."""
    torch = need("torch")

    class Sum(torch.nn.Module):
        def __init__(self, n, seed):
            super().__init__()
            columns = np.repeat(start(seed)[:, None] / n, n, 1)
            self.w = torch.nn.Parameter(torch.as_tensor(columns))

        def forward(self, x):
            return x @ self.w.sum(1, keepdim=True)

    def build(seed=0, width=1.0):
        model = Sum(columns(width), seed)
        x = torch.as_tensor(inputs())
        y = torch.zeros(3, 1, dtype=torch.double)
        optimizer = torch.optim.SGD(model.parameters(), lr / width if scaled else lr)

        def train():
            while True:
                optimizer.zero_grad()
                half_square(model(x), y).backward()
                optimizer.step()
                yield

        parts = {
            "model": model,
            "loss": half_square,
            "data": (x, y),
            "optimizer": optimizer,
            "train": train,
        }
        return parts if change is None else parts | change(parts)

    return build


def in_jax(seed=0, width=1.0, lr=LR):
    """The same, whose step size is a knob."""
    n = columns(width)
    x = jnp.asarray(inputs(), jnp.float32)
    y = jnp.zeros((3, 1), jnp.float32)
    begin = {"w": jnp.asarray(np.repeat(start(seed)[:, None] / n, n, 1), jnp.float32)}

    def train():
        params = begin
        while True:
            params = {"w": params["w"] - lr * slope(params, x, y)["w"]}
            yield add_up, params

    return {"model": (add_up, begin), "loss": half_square, "data": (x, y), "train": train}


def transfer(build, widths=WIDTHS, **options):
    return step_transfer(build, widths, **{"factors": GRID, "seeds": 3, "steps": STEPS, **options})


def finding(report, id):
    return next(finding for finding in report.findings if finding.id is id)


# ------------------------------------------------------------------------------------- a best step that is known


def test_the_best_step_falls_like_the_width_to_the_digits():
    report = transfer(in_torch())
    power = report["best-step-power"]
    assert power.value == pytest.approx(-1, abs=1e-9)
    assert power.interval == pytest.approx((-1, -1), abs=1e-9)
    told = finding(report, FindingId.STEP_GOES_WITH_WIDTH)
    assert told.sign == "!"
    words = "the best step falls like width^(-1.00 ± 0.00): halve it when you double the width"
    assert told.text == words
    assert {told.evidence for told in report.findings} <= {q.name for q in report.quantities}
    assert all(holds for _, holds in power.assumes)
    dense = np.exp(np.linspace(np.log(0.05), np.log(1), 4000))
    for width, reading in zip(WIDTHS, report.readings("best-step"), strict=True):
        exact = [
            dense[np.argmin([risk_of(step, columns(width), seed) for step in dense])]
            for seed in range(3)
        ]
        assert LR * reading.value == pytest.approx(np.exp(np.mean(np.log(exact))), rel=0.1)


def test_every_risk_is_that_of_the_recursion():
    report = transfer(in_torch())
    picture = report["best step at width 1"].panel
    for width, curve in zip(WIDTHS, picture.curves, strict=False):
        for seed, risks in enumerate(np.asarray(curve.y)):
            for factor, risk in zip(GRID, risks, strict=True):
                exact = risk_of(LR * factor, columns(width), seed)
                if exact <= 10 * risk_of(0, columns(width), seed):
                    assert risk == pytest.approx(exact, rel=1e-9)
                else:
                    assert math.isnan(risk)  # ten times the risk of the start is a divergence
    labels = [curve.label for curve in picture.curves]
    assert labels == ["width 1", "width 2", "width 4", "best step", "", ""]


def test_the_risk_is_the_mean_over_the_last_fifth():
    held_out = lambda parts: {"held_out": (2 * parts["data"][0], parts["data"][1])}
    build = in_torch(change=held_out)
    report = transfer(build, factors=(0.125, 0.25, 0.5), seeds=1, steps=20)
    (observed,) = np.asarray(report["best step at width 1"].panel.curves[0].y)
    exact = np.mean([risk_of(LR * 0.125, 2, 0, steps) for steps in (17, 18, 19, 20)])
    assert observed[0] == pytest.approx(exact, rel=1e-9)
    (unseen,) = np.asarray(report["best step at width 1, held out"].panel.curves[0].y)
    assert unseen[0] == pytest.approx(4 * exact, rel=1e-9)


def test_a_step_that_is_divided_by_the_width_transfers():
    report = transfer(in_torch(scaled=True))
    assert report["best-step-power"].value == pytest.approx(0, abs=1e-9)
    told = finding(report, FindingId.STEP_TRANSFERS)
    assert told.sign == "✓"
    assert told.text.startswith("the same multiple of your step sizes is best at all widths")
    assert report["carried-step"].value == pytest.approx(0, abs=1e-12)
    assert finding(report, FindingId.STEP_COSTS).sign == "?"


def test_what_the_narrow_step_costs_the_wide_network():
    """Between widths 1 and 2 the narrow step is too large by a factor of two, and does not diverge."""
    report = transfer(in_torch(), (1, 1.5, 2), steps=1)
    risks = np.array(
        [
            [[risk_of(LR * factor, n, seed, 1) for factor in GRID] for seed in range(3)]
            for n in (2, 4)
        ]
    )
    narrow, wide = (
        [np.delete(np.log(of_width), seed, 0).mean(0).argmin() for seed in range(3)]
        for of_width in risks
    )
    lost = [risks[1, seed, narrow[seed]] - risks[1, seed, wide[seed]] for seed in range(3)]
    assert report["carried-step"].value == pytest.approx(np.mean(lost), rel=1e-9)
    assert narrow != wide


def test_the_same_in_jax_by_a_knob():
    report = transfer(in_jax, seeds=1, factors=2.0 ** np.arange(-3, 3))
    assert report["best-step-power"].value == pytest.approx(-1, abs=1e-4)
    assert "times your step 0.5" in report["best step at width 1"].interpretation


def test_held_out_examples_have_readings_of_their_own():
    held_out = lambda parts: {"held_out": (parts["data"][0] / 2, parts["data"][1])}
    report = transfer(in_torch(change=held_out), seeds=2)
    assert report["best-step-power"].value == pytest.approx(-1, abs=1e-9)
    unseen = report["power of the width of the best step, held out"]
    assert unseen.value == pytest.approx(-1, abs=1e-9) and report.held_out
    assert report["best step at width 1, held out"].panel.title.endswith("held out")


def test_one_network_of_each_width():
    build = in_torch()
    report = transfer(lambda width=1.0: build(0, width))
    assert report["best-step-power"].source_of_error == "fit"
    assert report["carried-step"].interval is None
    assert Report.from_json(report.to_json()).to_json() == report.to_json()


# ------------------------------------------------------------------------------------- minima and powers


def test_a_minimum_at_the_end_of_the_grid_is_no_number():
    report = transfer(in_torch(), factors=2.0 ** np.arange(-8, -1))
    low = report["best step at width 1"]
    assert math.isnan(low.value) and "the least risk is that of the largest step in 3 of 3" in (
        low.interpretation
    )
    assert math.isnan(report["best-step-power"].value) and math.isnan(report["carried-step"].value)
    told = finding(report, FindingId.GRID_OF_STEPS)
    assert told.sign == "?" and "add factors, larger ones, such as 0.5" in told.text
    other_end = transfer(in_torch(), factors=2.0 ** np.arange(1, 5))
    assert "smaller ones, such as 1" in finding(other_end, FindingId.GRID_OF_STEPS).text
    nowhere = transfer(in_torch(), factors=2.0 ** np.arange(7, 10))
    assert "training diverged at every step" in finding(nowhere, FindingId.GRID_OF_STEPS).text


def test_weights_that_are_not_finite_are_a_divergence():
    report = transfer(in_torch(), (1, 1.5, 2), factors=[0.25, 0.5, 1, 2, 1e200], seeds=1)
    assert report["best-step-power"].value == pytest.approx(-1, abs=0.1)


@pytest.mark.parametrize("bottom", [-0.4, 0.1, 0.45])
def test_a_parabola_is_found_on_any_grid(bottom):
    x = np.array([-2.0, -1.2, 0.0, 0.7, 2.0])
    lowest = minimum(x, 3 * (x - bottom) ** 2 - 1)
    assert lowest.at == pytest.approx(bottom) and lowest.log_risk == pytest.approx(-1)


def test_beside_a_divergence_the_best_step_is_known_to_a_step_of_the_grid():
    beside = minimum([0, 1, 2, 3], [2, 1, 0, np.inf])
    assert beside == Minimum(2.0, 0.0, 1.0, "inside")
    assert minimum([0, 1, 2], [np.inf] * 3).place == "nowhere"
    assert minimum([0, 1, 2], [1.0, 1.0, 1.0]).place == "below"
    exact = [[Minimum(-math.log(width), 0.0, 0.0, "inside") for width in WIDTHS]] * 2
    power = power_of_width(WIDTHS, exact)
    assert power.interval == pytest.approx((-1, -1))
    unsure = [[network._replace(within=math.log(2)) for network in row] for row in exact]
    assert power_of_width(WIDTHS, unsure).interval == pytest.approx((-2, 0))
    # the extreme lines: one end a step up, the other a step down


def test_a_step_is_not_judged_on_the_network_that_chose_it():
    """Each seed has another lucky step; on the others' choice nothing is gained by it."""
    noise = np.array([[0.0, 1.0, 1.0], [1.0, 0.0, 1.0], [1.0, 1.0, 0.0]])
    across = carried(noise, noise)
    assert (across.risk == across.at_best).all() and (across.risk > 1).all()
    alone = carried(noise[:1], noise[:1])
    assert alone.at_best == [1.0] and not alone.by_others


# ------------------------------------------------------------------------------------- the same random numbers


def drawing(record, generator=None):
    """Parts whose training notes what it draws, from torch, NumPy and Python."""
    torch = need("torch")

    def change(parts):
        train = parts["train"]

        def noted():
            for step in train():
                drawn = torch.rand(1, generator=generator).item()
                record.append((drawn, np.random.rand(), random.random()))
                if generator is not None:
                    with torch.no_grad():
                        parts["model"].w.mul_(1 + 0.5 * drawn)
                yield step

        return {"train": noted}

    return change


def test_batches_are_the_same_at_every_step_and_the_random_states_are_put_back():
    torch = need("torch")
    record = []
    before = (torch.get_rng_state(), np.random.get_state()[1].copy(), random.getstate())
    factors = (0.125, 0.25, 0.5, 1)
    report = transfer(in_torch(change=drawing(record)), seeds=2, factors=factors)
    assert torch.equal(torch.get_rng_state(), before[0])
    assert (np.random.get_state()[1] == before[1]).all() and random.getstate() == before[2]
    trainings = [
        tuple(record[i : i + STEPS]) for i in range(len(record) - 8 * STEPS, len(record), STEPS)
    ]
    assert len(set(trainings)) == 1  # the last network's, all of one seed
    assert len({record[i] for i in range(len(record))}) == 2 * STEPS
    assert report["best-step-power"].assumes[0][1] is True


def test_random_numbers_that_go_on_from_training_to_training_are_told():
    torch = need("torch")
    generator = torch.Generator().manual_seed(0)
    report = transfer(in_torch(change=drawing([], generator)), seeds=1)
    assert report["best-step-power"].assumes[0] == (
        "batches and random numbers are the same at every step size",
        False,
    )


# ------------------------------------------------------------------------------------- step sizes and schedules


def test_a_schedule_of_training_starts_from_the_step_that_is_turned():
    torch = need("torch")

    def scheduled(parts):
        schedule = torch.optim.lr_scheduler.StepLR(parts["optimizer"], 2, 0.5)

        def train():
            for step in parts["train"]():
                schedule.step()
                yield step

        return {"train": train}

    assert transfer(in_torch(change=scheduled))["best-step-power"].value == pytest.approx(-1)


def test_a_schedule_that_sets_the_step_back_is_refused():
    torch = need("torch")

    def scheduled(parts):
        schedule = torch.optim.lr_scheduler.LambdaLR(parts["optimizer"], lambda step: 0.9**step)

        def train():
            for step in parts["train"]():
                schedule.step()
                yield step

        return {"train": train}

    with pytest.raises(UserError, match="schedule of build sets the step size .* back to its own"):
        transfer(in_torch(change=scheduled))


def test_a_training_that_fails_because_it_diverged_has_diverged():
    torch = need("torch")

    def strict(parts):
        def train():
            for step in parts["train"]():
                if parts["model"].w.abs().max() > 100:
                    raise FloatingPointError("too large")
                yield step

        return {"train": train}

    assert transfer(in_torch(change=strict))["best-step-power"].value == pytest.approx(-1)
    broken = lambda parts: {"train": lambda: (1 / 0 for _ in range(3))}
    with pytest.raises(UserError, match="your 'train' failed: ZeroDivisionError"):
        transfer(in_torch(change=broken))
    assert torch.is_grad_enabled()


def test_a_training_that_ends_early():
    short = lambda parts: {"train": lambda: itertools.islice(parts["train"](), 2)}
    report = transfer(in_torch(change=short))
    assert report["best-step-power"].interpretation.startswith("after 2 steps")
    ends = lambda parts: {"train": lambda: iter(())}
    with pytest.raises(UserError, match="ends before its first step"):
        transfer(in_torch(change=ends))


# ------------------------------------------------------------------------------------------ what is refused


def test_a_step_size_that_cannot_be_turned():
    without = lambda parts: {"optimizer": None}
    with pytest.raises(
        UserError, match=r"cannot be turned: return torch's 'optimizer' .* or write"
    ):
        transfer(in_torch(change=without))
    other = lambda parts: {
        "optimizer": need("torch").optim.SGD([parts["model"].w.detach().clone()], 0.1)
    }
    with pytest.raises(
        UserError, match=r"whatever the step size of the 'optimizer' is; let 'train'"
    ):
        transfer(in_torch(change=other))
    with pytest.raises(UserError, match=r"lr of build needs a default above 0.* got None"):

        def build(lr, seed=0, width=1.0):
            return in_jax(seed, width, 0.1 if lr is None else lr)

        transfer(_with_default(build))
    with pytest.raises(UserError, match=r"whatever lr is; let 'train' step with it"):
        transfer(lambda seed=0, width=1.0, lr=0.1: in_jax(seed, width))


def _with_default(build):
    """A knob that has a default, but none that can be multiplied."""

    def built(seed=0, width=1.0, lr=None):
        return build(lr, seed, width)

    built.__name__ = "build"
    return built


def test_a_model_that_is_trained_further_each_time():
    kept = {}

    def shared(parts):
        return {name: kept.setdefault(name, parts[name]) for name in ("model", "optimizer")}

    with pytest.raises(UserError, match="returns the same model at every call"):
        transfer(in_torch(change=shared))
    one_optimizer = lambda parts: {"optimizer": kept["optimizer"]}
    with pytest.raises(UserError, match="returns the same optimizer at every call"):
        transfer(in_torch(change=one_optimizer))
    calls = itertools.count()

    def drifting(parts):
        with need("torch").no_grad():
            parts["model"].w += next(calls)
        return {}

    with pytest.raises(UserError, match="starts from other weights when it is called again with"):
        transfer(in_torch(change=drifting))


def test_risks_without_a_logarithm():
    below = lambda parts: {"loss": lambda outputs, targets: parts["loss"](outputs, targets) - 10}
    with pytest.raises(UserError, match=r"the risk is -.* at the start, and best steps are read"):
        transfer(in_torch(change=below))


def test_factors_and_widths():
    for factors in ((), (1, 2), (1, 1, 2), (0, 1, 2), (1, 2, math.inf)):
        with pytest.raises(UserError, match="at least 3 different factors above 0"):
            transfer(in_torch(), factors=factors)
    with pytest.raises(UserError, match="at least 3 different widths"):
        transfer(in_torch(), (1, 2))
    with pytest.raises(UserError, match="no width to turn"):
        transfer(lambda seed=0: in_torch()(seed))
    with pytest.raises(UserError, match="steps is a whole number"):
        transfer(in_torch(), steps=0)


# ------------------------------------------------------------------------------------------ how it is shown

FILE = test_widths.FILE.replace('"train": train}', '"train": train, "optimizer": optimizer}')


def test_the_cost_is_told_before():
    plans = []
    transfer(in_torch(), seeds=2, announce=plans.append)
    (plan,) = plans
    assert isinstance(plan, Plan)
    assert plan.trainings == 3 * 2 * (len(GRID) + 4) and plan.steps == STEPS and plan.seconds > 0

    def refuse(plan):
        raise UserError("too long")

    with pytest.raises(UserError, match="too long"):
        transfer(in_torch(), announce=refuse)


def test_the_command_finds_best_steps(tmp_path, capsys):
    need("torch")
    (tmp_path / "net.py").write_text(FILE, "utf-8")
    where = f"{tmp_path / 'net.py'}:build"
    page = tmp_path / "page.html"
    words = ["measure", where, "--widths", "1", "2", "4", "--best-step", "--seeds", "2"]
    words += ["--steps", "3", "--factors", "1", "16", "256"]
    assert main([*words, "--json", "--page", str(page)]) == 0
    told = capsys.readouterr()
    record = json.loads(told.out)
    assert Report.from_json(record).to_json() == record
    assert "take 42 trainings of 3 steps at most: about" in told.err
    assert "Risk after training against step size" in page.read_text("utf-8")
    assert main([*words, "--all"]) == 0
    assert "best step at width 1" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (["--best-step"], "--best-step goes with --widths"),
        (["--widths", "1", "2", "4", "--factors", "1"], "--factors goes with --widths and --best"),
        (["--yes"], "--yes goes with --widths and --best-step"),
    ],
)
def test_options_that_go_together(words, sentence, capsys):
    assert main(["measure", "net.py:build", *words]) == 2
    assert sentence in capsys.readouterr().err


def test_what_takes_long_wants_a_word(monkeypatch):
    from steepest.app import agreement

    monkeypatch.setattr("sys.stdin.isatty", lambda: False, raising=False)
    assert agreement.is_agreed(1) and agreement.is_agreed(599)
    with pytest.raises(UserError, match="more than ten minutes: add --yes"):
        agreement.is_agreed(601)
