"""Short descents: their steps are those of the optimizer, the weights stay, and what is said is what was seen."""

import copy

import jax.numpy as jnp
import numpy as np
import pytest

from steepest.core.errors import UserError
from steepest.measurement import FindingId, measure
from steepest.measurement._descents import RATIO, Descent, _search, short_descents
from steepest.measurement._optimizer import Optimizer, Rule, optimizer_of
from steepest.measurement._tried import BEST, STEPS
from steepest.measurement.adapters import subject
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
    (tried,) = short_descents(attached, read, batches, lr, 1).tried
    assert (attached.values() == begun).all()
    torch_steps(model, optimizer, batches)
    with torch.no_grad():
        expected = float(cross_entropy(model(INPUTS), CLASSES))
    assert tried.step == lr
    # after 300 steps β₁ and β₂ have forgotten the start to 1e-12
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
    (tried,) = short_descents(attached, read, batches, 0.1, 1).tried
    torch_steps(model, optimizer, batches)
    with torch.no_grad():
        assert tried.risk == pytest.approx(float(cross_entropy(model(INPUTS), CLASSES)), rel=1e-4)


@pytest.mark.parametrize(("best", "count"), [(0, 3), (2, 5), (-2, 6), (5, 3)])
def test_the_search_climbs_down_a_valley(best, count):
    """Risks with one valley: the best step is descents where the count allows, and every step is tried once."""
    steps = []

    def descend(step):
        steps.append(step)
        return Descent(step, abs(np.log(step) - best * np.log(RATIO)))

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
        return Descent(step, np.inf if step > 0.5 else step)

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
    what = ["risk", "sharpness"]
    report = measure(
        model,
        cross_entropy,
        (INPUTS, CLASSES),
        what=what,
        lr=lr,
        batch=20,
        descents=count,
        **options,
    )
    assert all(torch.equal(before[name], now) for name, now in model.state_dict().items())
    (finding,) = [finding for finding in report.findings if finding.id in TRIED]
    return report, finding


def test_a_larger_step_that_ends_lower_is_one_to_try():
    report, finding = tried(0.01)
    assert finding.id == FindingId.STEP_TO_TRY
    assert report[BEST].value == 0.1
    assert finding.evidence == BEST
    assert FindingId.STEP_SMALL not in [line.id for line in report.findings]


def test_a_step_that_is_as_good_as_any_is_left_alone():
    _, finding = tried(0.5)
    assert (finding.sign, finding.id) == ("✓", FindingId.STEP_TRIED)


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
    descents = short_descents(attached, held, [(inputs, jnp.ones(4))] * 2, 0.1, 1)
    assert np.isfinite(descents.best.risk)
