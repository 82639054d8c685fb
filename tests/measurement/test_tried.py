"""Short descents: their steps are those of the optimizer, the weights stay, and what is said is what was seen."""

import copy

import jax.numpy as jnp
import numpy as np
import pytest

from steepest.core.errors import UserError
from steepest.measurement import FindingId, measure
from steepest.measurement._context import Context
from steepest.measurement._descents import (
    RATIO,
    Descent,
    Descents,
    Judges,
    _descended,
    _search,
    short_descents,
)
from steepest.measurement._optimizer import Optimizer, Rule, optimizer_of
from steepest.measurement._tried import BEST, DRAWS, STEPS, _material
from steepest.measurement.adapters import normalizing_layers, subject
from tests.extras import need

torch = need("torch")
DATA = np.random.default_rng(0)
INPUTS = torch.as_tensor(DATA.standard_normal((200, 6)), dtype=torch.float32)
CLASSES = (INPUTS[:, 0] > 0).long() + (INPUTS[:, 1] > 0).long()
TRIED = (
    FindingId.STEP_TO_TRY,
    FindingId.STEP_TO_LOWER,
    FindingId.STEP_TRIED,
    FindingId.STEP_TO_START_WITH,
    FindingId.NO_STEP_DESCENDS,
)


def chain():
    torch.manual_seed(0)
    return torch.nn.Sequential(torch.nn.Linear(6, 16), torch.nn.ReLU(), torch.nn.Linear(16, 3))


def cross_entropy(outputs, targets):
    return torch.nn.functional.cross_entropy(outputs, targets)


def batches_of(count, size=20):
    rng = np.random.default_rng(1)
    drawn = [np.sort(rng.choice(200, size, replace=False)) for _ in range(count)]
    return [(INPUTS[rows], CLASSES[rows]) for rows in drawn]


def torch_steps(model, optimizer, batches):
    for inputs, classes in batches:
        optimizer.zero_grad()
        cross_entropy(model(inputs), classes).backward()
        optimizer.step()


def sgd(**settings):
    return lambda parameters, lr: torch.optim.SGD(parameters, lr, **settings)


def adam(**settings):
    return lambda parameters, lr: torch.optim.Adam(parameters, lr, **settings)


def adamw(parameters, lr):
    return torch.optim.AdamW(parameters, lr, weight_decay=0.3)


@pytest.mark.parametrize(
    ("rule", "lr", "before"),
    [
        (sgd(), 0.1, 0),
        (sgd(momentum=0.9, weight_decay=0.01), 0.05, 0),
        (sgd(momentum=0.9, nesterov=True), 0.05, 0),
        (adam(), 0.01, 0),
        (adam(betas=(0.8, 0.9)), 0.01, 0),
        (adamw, 0.01, 0),
        (adam(betas=(0.8, 0.9)), 0.01, 300),
        (adam(), 0.01, 30),
    ],
)
def test_a_descent_is_that_of_the_optimizer(rule, lr, before):
    model = chain()
    optimizer = rule(model.parameters(), lr)
    torch_steps(model, optimizer, batches_of(before))
    batches = batches_of(20)
    attached = subject(model, cross_entropy, (INPUTS, CLASSES))
    begun = attached.values()
    read = optimizer_of(optimizer, attached, None, 0.0)
    (tried,) = short_descents(attached, read, [batches], lr, 1).tried
    assert (attached.values() == begun).all()
    torch_steps(model, optimizer, batches)
    with torch.no_grad():
        expected = float(cross_entropy(model(INPUTS), CLASSES))
    assert tried.step == lr
    assert tried.risk == pytest.approx(expected, rel=1e-4)


def test_groups_descend_with_their_own_steps():
    model = chain()
    groups = [
        {"params": model[0].parameters(), "lr": 0.01},
        {"params": model[2].parameters(), "lr": 0.1},
    ]
    optimizer = torch.optim.SGD(groups)
    batches = batches_of(20)
    attached = subject(model, cross_entropy, (INPUTS, CLASSES))
    read = optimizer_of(optimizer, attached, None, 0.0)
    (tried,) = short_descents(attached, read, [batches], 0.1, 1).tried
    torch_steps(model, optimizer, batches)
    with torch.no_grad():
        assert tried.risk == pytest.approx(float(cross_entropy(model(INPUTS), CLASSES)), rel=1e-4)


@pytest.mark.parametrize(("best", "count"), [(0, 3), (2, 5), (-2, 6), (5, 3)])
def test_the_search_climbs_down_a_valley(best, count):
    """Risks with one valley: the best step is descents where the count allows, and every step is tried once."""
    steps = []

    def descend(step):
        steps.append(step)
        return Descent(step, (abs(np.log(step) - best * np.log(RATIO)),))

    descents = _search(descend, 1.0, count, 10.0)
    assert len(set(steps)) == len(steps) <= count
    assert [descent.step for descent in descents.tried] == sorted(steps)
    assert descents.is_inside == (best != 5)
    if best != 5:
        assert descents.best.step == pytest.approx(RATIO**best, rel=0.02)


def test_after_a_divergence_the_search_goes_down_at_once():
    steps = []

    def descend(step):
        steps.append(step)
        return Descent(step, (0.1, np.inf) if step > 0.5 else (step, step))

    _search(descend, 1.0, 3, 10.0)
    assert steps == [1.0, 0.32, 0.1]


def test_on_a_parabola_the_risks_are_those_of_the_closed_form():
    """Full batches of ½(w − 1)²: after STEPS steps the risk is ½(1 − η)^(2 STEPS)."""
    inputs = jnp.array([[1.0], [-1.0], [1.0], [-1.0]])
    loss = lambda outputs, targets: ((outputs - targets) ** 2).mean() / 2
    model = (lambda w, x: x @ w, jnp.zeros(1))
    data = (inputs, inputs[:, 0])
    report = measure(model, loss, data, what=["risk", "descents"], lr=0.01, batch=4, descents=2)
    reading = report[BEST]
    assert reading.value == 0.032
    for step in (0.01, 0.032):
        expected = (1 - step) ** (2 * STEPS) / 2
        assert reading.parts[f"risk after steps of {step:g}"] == pytest.approx(expected, rel=1e-4)
    (finding,) = [finding for finding in report.findings if finding.id in TRIED]
    assert finding.id == FindingId.STEP_TO_TRY


def tried(lr, count=3, **options):
    model = chain()
    before = copy.deepcopy(model.state_dict())
    given = {"what": ["risk", "sharpness"], "lr": lr, "batch": 20, "descents": count, **options}
    report = measure(model, cross_entropy, (INPUTS, CLASSES), **given)
    assert all(torch.equal(before[name], now) for name, now in model.state_dict().items())
    (finding,) = [finding for finding in report.findings if finding.id in TRIED]
    return report, finding


def test_a_larger_step_that_ends_lower_is_one_to_try():
    report, finding = tried(0.01)
    assert finding.id == FindingId.STEP_TO_TRY
    assert report[BEST].value == 0.1
    assert finding.evidence == BEST


def test_a_step_that_is_as_good_as_any_is_left_alone():
    report, finding = tried(0.5)
    assert (finding.sign, finding.id) == ("✓", FindingId.STEP_TRIED)
    assert report[BEST].value == 0.5


def descents_of(start, *tried):
    """Descents whose usual step is 1, of pairs of a step and its risks."""
    return Descents(tuple(Descent(*pair) for pair in tried), start, 1.0, True)


@pytest.mark.parametrize(
    ("risks", "is_better"),
    [
        ((1.0, 1.0), True),
        ((1.39, 1.39), True),  # 1.22 times as far down
        ((1.45, 1.0), False),  # 1.1 times in one draw
        ((1.0, 1.6), False),
    ],
)
def test_another_step_is_better_only_in_both_draws(risks, is_better):
    descents = descents_of(2.0, (1.0, (1.5, 1.5)), (3.2, risks))
    assert (descents.better is not None) == is_better


def test_a_hair_of_the_risk_is_no_evidence_however_little_the_usual_step_goes():
    """Ten times as far down, and a fiftieth lower."""
    assert descents_of(1.0, (1.0, (0.998, 0.998)), (3.2, (0.98, 0.98))).better is None
    assert descents_of(1.0, (1.0, (0.998, 0.998)), (3.2, (0.94, 0.94))).better.step == 3.2


def test_of_steps_that_end_nearly_as_low_the_nearest_is_named():
    tried = ((1.0, (1.9, 1.9)), (3.2, (1.5, 1.5)), (10.0, (0.95, 0.95)), (32.0, (0.75, 0.75)))
    descents = descents_of(2.0, *tried)
    assert descents.best.step == 32.0
    assert descents.better.step == 10.0  # 0.84 of the best's way
    downwards = descents_of(2.0, (0.1, (0.5, 0.5)), (0.32, (0.6, 0.6)), (1.0, (1.9, 1.9)))
    assert downwards.better.step == 0.32


def test_beside_a_step_that_diverges_in_one_draw_each_that_descends_is_better():
    descents = descents_of(2.0, (0.32, (1.9, 1.95)), (1.0, (1.0, np.inf)))
    assert descents.better.step == 0.32


def test_both_draws_have_their_own_batches_and_every_step_the_same():
    attached = subject(chain(), cross_entropy, (INPUTS, CLASSES))
    draws = [batches_of(10), batches_of(20)[10:]]
    both = short_descents(attached, Optimizer(0.1), draws, 0.1, 2)
    for place, draw in enumerate(draws):
        alone = short_descents(attached, Optimizer(0.1), [draw], 0.1, 2)
        for descent, single in zip(both.tried, alone.tried, strict=True):
            assert descent.risks[place] == single.risks[0]
    assert both.tried[0].risks[0] != both.tried[0].risks[1]


# ------------------------------------------------------------------------------------------- who judges

MANY = torch.arange(400.0)[:, None] / 400  # each example is known by its input
HALVES = (MANY[:, 0] > 0.5).long()


def material_of(inputs, classes, held_out=None, model=None, batch=20):
    model = torch.nn.Linear(1, 2) if model is None else model
    layers = normalizing_layers(model)
    attached = subject(model, cross_entropy, (inputs, classes), normalizing=layers, batch=batch)
    unseen = None
    if held_out is not None:
        unseen = subject(model, cross_entropy, held_out, check=False, normalizing=())
    context = Context(attached, np.random.default_rng(0), batch=batch, held_out=unseen)
    return _material(context, len(inputs), batch)


def seen_by(batches):
    return {float(x) for inputs, _ in batches for x in inputs[:, 0]}


def test_without_held_out_examples_a_fifth_judges_that_no_descent_uses():
    material = material_of(MANY, HALVES)
    assert material.judges == Judges.ASIDE
    judging = seen_by(batch for batch, _ in material.judge.batches)
    assert len(judging) == 80
    assert [len(draw) for draw in material.draws] == [STEPS] * DRAWS
    used = [seen_by(draw) for draw in material.draws]
    assert used[0] | used[1] == set(MANY[:, 0].tolist()) - judging
    assert not torch.equal(material.draws[0][0][0], material.draws[1][0][0])


def test_a_loader_that_shuffles_sets_no_example_aside_that_a_descent_uses():
    data = torch.utils.data.TensorDataset(MANY, HALVES)
    generator = torch.Generator().manual_seed(0)
    loader = torch.utils.data.DataLoader(data, 20, shuffle=True, generator=generator)
    attached = subject(torch.nn.Linear(1, 2), cross_entropy, loader)
    material = _material(Context(attached, np.random.default_rng(0)), 400, 20)
    judging = seen_by(batch for batch, _ in material.judge.batches)
    assert len(judging) == 80
    assert not judging & (seen_by(material.draws[0]) | seen_by(material.draws[1]))


def test_few_examples_judge_and_are_used():
    material = material_of(MANY[::2], HALVES[::2])
    assert material.judges == Judges.GIVEN
    assert seen_by(batch for batch, _ in material.judge.batches) == set(MANY[::2, 0].tolist())


def test_held_out_examples_judge_where_there_are_some():
    material = material_of(MANY[::2], HALVES[::2], (MANY[1::2], HALVES[1::2]))
    assert material.judges == Judges.HELD_OUT
    assert seen_by(batch for batch, _ in material.judge.batches) == set(MANY[1::2, 0].tolist())
    assert seen_by(material.draws[0]) <= set(MANY[::2, 0].tolist())


@pytest.mark.parametrize("has_held_out", [True, False])
def test_weights_that_have_moved_are_judged_with_the_statistics_of_batches(has_held_out):
    """Running statistics belong to the weights before, and a descent does not move them."""
    torch.manual_seed(0)
    model = torch.nn.Sequential(
        torch.nn.Linear(1, 4), torch.nn.BatchNorm1d(4), torch.nn.Linear(4, 2)
    )
    held_out = (MANY[1::2], HALVES[1::2]) if has_held_out else None
    given = (MANY[::2], HALVES[::2]) if has_held_out else (MANY, HALVES)
    material = material_of(*given, held_out, model.train())
    losses = []
    for (inputs, classes), count in material.judge.batches:
        assert count == 20
        with torch.no_grad():
            losses.append(float(cross_entropy(copy.deepcopy(model)(inputs), classes)))
    assert len(losses) == (10 if has_held_out else 4)
    assert material.judge.risk() == pytest.approx(np.mean(losses), rel=1e-5)


def test_the_sentence_says_on_which_examples():
    held_out = (INPUTS[:60] + 0.01, CLASSES[:60])
    _, finding = tried(0.01, held_out=held_out)
    assert "on the held-out examples" in finding.text
    _, finding = tried(0.01)
    assert "on the examples given" in finding.text


def test_a_gain_on_the_examples_given_alone_is_none():
    """Targets of noise: larger steps learn them sooner, and held-out noise cannot be learned."""
    rng = np.random.default_rng(3)
    noise = torch.as_tensor(rng.integers(0, 3, 400))
    inputs = torch.as_tensor(rng.standard_normal((400, 40)), dtype=torch.float32)
    torch.manual_seed(0)
    model = torch.nn.Sequential(torch.nn.Linear(40, 64), torch.nn.ReLU(), torch.nn.Linear(64, 3))
    options = {"what": ["risk", "descents"], "lr": 0.03, "batch": 20, "descents": 3}
    given = (inputs[:100], noise[:100])
    alone = measure(model, cross_entropy, given, **options)
    assert FindingId.STEP_TO_TRY in [finding.id for finding in alone.findings]
    both = measure(model, cross_entropy, given, held_out=(inputs[100:], noise[100:]), **options)
    assert FindingId.STEP_TO_TRY not in [finding.id for finding in both.findings]


def test_each_step_of_a_noisy_loss_draws_other_numbers():
    """Dropout of one example: with one mask for all steps the weights of half of the inputs would stay."""
    torch.manual_seed(0)
    model = torch.nn.Sequential(torch.nn.Dropout(0.5), torch.nn.Linear(30, 1)).train()
    squared = lambda outputs, targets: ((outputs - targets) ** 2).mean()
    batch = (torch.ones(1, 30), torch.ones(1, 1))
    attached = subject(model, squared, batch, noise="fixed")
    moved = _descended(attached, Optimizer(0.001), [batch] * 20, 0.001) - attached.values()
    assert (moved[:30] != 0).all()


# --------------------------------------------------------------------------------------------- schedules


def with_schedule(kind, steps, momentum=0.9, **options):
    model = chain()
    optimizer = torch.optim.SGD(model.parameters(), 0.2, momentum=momentum)
    schedule = kind(optimizer, **options)
    for batch in batches_of(steps):
        torch_steps(model, optimizer, [batch])
        schedule.step()
    return model, optimizer, schedule


SCHEDULES = torch.optim.lr_scheduler
ONE_CYCLE = {"kind": SCHEDULES.OneCycleLR, "max_lr": 0.5, "total_steps": 100}


@pytest.mark.parametrize("steps", [5, 30, 99])
def test_one_cycle_is_compared_by_its_peak_before_and_after_it(steps):
    """Its momentum there is the least, as it moves against the step."""
    model, optimizer, schedule = with_schedule(steps=steps, **ONE_CYCLE)
    attached = subject(model, cross_entropy, (INPUTS, CLASSES))
    for given in (optimizer, schedule):
        assert optimizer_of(given, attached, None, 0.0).peak == (0.5, 0.85)
    options = {"what": ["risk", "descents"], "batch": 20, "optimizer": optimizer, "descents": 3}
    report = measure(model, cross_entropy, (INPUTS, CLASSES), **options)
    (finding,) = [finding for finding in report.findings if finding.id in TRIED]
    assert "the peak of your schedule, 0.5" in finding.text
    steps = [float(name.rsplit(" ", 1)[1]) for name in report[BEST].parts]
    assert all(step >= 0.5 for step in steps)  # smaller ones come by themselves


def test_what_is_descended_from_the_peak_has_its_momentum():
    model, optimizer, _ = with_schedule(steps=5, **ONE_CYCLE)
    options = {"what": ["descents"], "batch": 200, "optimizer": optimizer, "descents": 1}
    report = measure(model, cross_entropy, (INPUTS, CLASSES), **options)
    torch_steps(
        model,
        torch.optim.SGD(model.parameters(), 0.5, momentum=0.85),
        [(INPUTS, CLASSES)] * STEPS,
    )
    with torch.no_grad():
        expected = float(cross_entropy(model(INPUTS), CLASSES))
    assert report[BEST].parts["risk after steps of 0.5"] == pytest.approx(expected, rel=1e-4)


@pytest.mark.parametrize(
    ("kind", "options", "peak"),
    [
        (SCHEDULES.CosineAnnealingLR, {"T_max": 10}, 0.2),
        (SCHEDULES.LinearLR, {"total_iters": 20}, 0.2),
        (SCHEDULES.LambdaLR, {"lr_lambda": lambda step: step / 20}, 0.2),
    ],
)
def test_schedules_leave_their_peak_in_the_groups(kind, options, peak):
    model, optimizer, _ = with_schedule(kind, 10, **options)
    attached = subject(model, cross_entropy, (INPUTS, CLASSES))
    read = optimizer_of(optimizer, attached, None, 0.0)
    assert read.peak == (peak, 0.9)
    assert optimizer_of(optimizer, attached, 0.01, 0.0).peak is None  # the user's own word counts


def test_a_cyclic_schedule_tells_its_peak_itself():
    options = {"base_lr": 0.01, "max_lr": 0.3, "cycle_momentum": False}
    model, optimizer, schedule = with_schedule(SCHEDULES.CyclicLR, 10, **options)
    attached = subject(model, cross_entropy, (INPUTS, CLASSES))
    assert optimizer_of(schedule, attached, None, 0.0).peak == (0.3, 0.9)
    assert optimizer_of(optimizer, attached, None, 0.0).peak.lr < 0.3
    plain = torch.optim.SGD(model.parameters(), 0.2)
    assert optimizer_of(plain, attached, None, 0.0).peak is None


# -------------------------------------------------------------------------- losses whose fall is no progress


def test_where_the_loss_changes_with_the_network_nothing_is_tried_or_said_of_learning():
    options = {"what": ["risk", "sharpness"], "batch": 20, "descents": 3, "lr": 0.1}
    given = (chain(), cross_entropy, (INPUTS, CLASSES))
    before = measure(*given, **options)
    assert {FindingId.NOTHING_LEARNED, FindingId.STEP_TO_TRY} <= {f.id for f in before.findings}
    report = measure(*given, stationary=False, **options)
    drawn = [finding.id for finding in report.findings]
    assert drawn.count(FindingId.NOT_STATIONARY) == 1
    assert not {FindingId.NOTHING_LEARNED, FindingId.LEARNED, *TRIED} & set(drawn)
    assert np.isnan(report["descents"].value)
    assert "no progress" in report["descents"].interpretation
    assert report["risk"].compared is None
    assert report["risk"].value == before["risk"].value
    without_a_step = measure(*given, what=["risk", "sharpness"], stationary=False)
    (step,) = [f for f in without_a_step.findings if f.id == FindingId.STEP_NOT_GIVEN]
    assert "--try" not in step.text
    with pytest.raises(UserError, match="no progress"):
        measure(*given, what=["descents"], lr=0.1, batch=20, stationary=False)
    with pytest.raises(UserError, match="stationary is True or False"):
        measure(*given, stationary="no")


def test_a_step_that_diverges_is_one_to_lower():
    report, finding = tried(20.0)
    assert (finding.sign, finding.id) == ("!", FindingId.STEP_TO_TRY)
    assert "risk after steps of 20" not in report[BEST].parts


def test_steps_of_which_none_descends_are_said():
    report, finding = tried(1e9)
    assert (finding.sign, finding.id) == ("!", FindingId.NO_STEP_DESCENDS)
    assert np.isnan(report[BEST].value)
    assert "give a smaller one" in finding.text


def test_at_the_floor_of_a_trained_network_it_is_no_alarm():
    """Descents with steps that are too large for what is left: batches are too noisy, and nothing is broken."""
    model = chain()
    torch_steps(model, torch.optim.SGD(model.parameters(), 0.3, momentum=0.9), batches_of(400))
    options = {"what": ["risk", "sharpness"], "lr": 50.0, "batch": 2, "descents": 1}
    report = measure(model, cross_entropy, (INPUTS, CLASSES), **options)
    (finding,) = [finding for finding in report.findings if finding.id in TRIED]
    assert (finding.sign, finding.id) == ("?", FindingId.NO_STEP_DESCENDS)


def test_without_a_step_there_is_one_to_start_with():
    report, finding = tried(None, 5)
    assert finding.id == FindingId.STEP_TO_START_WITH
    limit = 2 / report["sharpness"].value
    assert report[BEST].value < 2 * limit
    report_alone = measure(chain(), cross_entropy, (INPUTS, CLASSES), what=["risk", "sharpness"])
    (not_given,) = [f for f in report_alone.findings if f.id == FindingId.STEP_NOT_GIVEN]
    assert "--try 5" in not_given.text


def test_several_weight_decays_are_left_out_and_named():
    model = chain()
    groups = [
        {"params": model[0].parameters(), "weight_decay": 0.1},
        {"params": model[2].parameters()},
    ]
    optimizer = torch.optim.SGD(groups, lr=0.1)
    options = {"what": ["risk", "descents"], "batch": 20, "optimizer": optimizer}
    report = measure(model, cross_entropy, (INPUTS, CLASSES), **options)
    assert "several weight decays are left out" in report[BEST].interpretation


def test_what_cannot_be_tried_says_why():
    model = chain()
    adagrad = torch.optim.Adagrad(model.parameters())
    options = {"what": ["risk", "descents"], "batch": 20}
    report = measure(model, cross_entropy, (INPUTS, CLASSES), optimizer=adagrad, **options)
    assert "Adagrad" in report["descents"].interpretation
    with pytest.raises(UserError, match="a short descent needs the size of your batches"):
        measure(model, cross_entropy, (INPUTS, CLASSES), what=["descents"], lr=0.1)
    with pytest.raises(UserError, match="whole number of short descents"):
        measure(model, cross_entropy, (INPUTS, CLASSES), descents=1.5)


def test_weights_that_no_group_holds_stay():
    held = Optimizer(
        0.1, 0.9, np.array([1.0, np.inf]), rule=Rule.ADAM, update=np.array([0.5, np.nan])
    )
    inputs = jnp.ones((4, 2))
    loss = lambda outputs, targets: ((outputs - targets) ** 2).mean() / 2
    attached = subject((lambda w, x: x @ w, jnp.zeros(2)), loss, (inputs, jnp.ones(4)))
    descents = short_descents(attached, held, [[(inputs, jnp.ones(4))] * 2], 0.1, 1)
    assert np.isfinite(descents.best.risk)
