"""Sizes of Adam's updates against the weights that moved, and rounding to bfloat16 against torch's own."""

import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest

from steepest import measure
from steepest.core.errors import UserError
from steepest.measurement import FindingId
from steepest.measurement._updates import SIZE, STAYED, lost_in_bfloat16
from tests.extras import need

torch = need("torch")
nn = torch.nn
cross_entropy = nn.functional.cross_entropy
RNG = np.random.default_rng(0)
X = torch.as_tensor(RNG.standard_normal((60, 6)), dtype=torch.float32)
Y = torch.as_tensor(RNG.integers(0, 3, 60))


def trained(optimizer, steps=5, dtype=torch.float32):
    """Return a network after some steps, its optimizer, and the weights before the last step."""
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(6, 8), nn.Tanh(), nn.Linear(8, 3)).to(dtype)
    rule = optimizer(model.parameters())
    before = None
    for step in range(steps):
        rows = slice(10 * (step % 6), 10 * (step % 6) + 10)
        rule.zero_grad()
        cross_entropy(model(X[rows].to(dtype)), Y[rows]).backward()
        before = flat(model)
        rule.step()
    return model, rule, before


def flat(model):
    return torch.cat([weight.detach().flatten().clone() for weight in model.parameters()])


def updates(model, rule, **options):
    data = (X.to(next(model.parameters()).dtype), Y)
    return measure(model, cross_entropy, data, what=["updates"], optimizer=rule, **options)


def test_the_size_is_that_of_the_last_change_of_the_weights():
    model, rule, before = trained(lambda w: torch.optim.Adam(w, 1e-3, (0.8, 0.99)))
    change = (flat(model) - before).numpy() / 1e-3
    reading = updates(model, rule)[SIZE]
    assert reading.value == pytest.approx(np.sqrt((change**2).mean()), rel=1e-3)
    assert reading.compared == ((1 - 0.8) / (1 + 0.8)) ** 0.5
    first = change[:48]  # of the first layer's matrix
    assert reading.parts["0.weight"] == pytest.approx(np.sqrt((first**2).mean()), rel=1e-3)


def test_groups_of_weights_have_their_own_step_sizes():
    """The size is of what each weight's own step size is multiplied by; rounding is of what weights really move by."""
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(6, 8), nn.Tanh(), nn.Linear(8, 3))
    groups = [
        {"params": model[0].parameters()},
        {"params": model[2].parameters(), "lr": 1e-1},
    ]
    rule = torch.optim.AdamW(groups, 1e-5, weight_decay=0.0)
    cross_entropy(model(X), Y).backward()
    rule.step()  # of a first step every update is ±1
    report = updates(model, rule)
    assert report[SIZE].value == pytest.approx(1, rel=1e-3)
    assert report[STAYED].parts["0.weight"] > 0.9
    assert report[STAYED].parts["2.weight"] == 0


def test_the_size_of_an_optax_state_is_that_of_its_update():
    x = jnp.asarray(X.numpy())
    y = jnp.asarray(RNG.standard_normal(60))
    loss = lambda f, y: ((f - y) ** 2).mean()
    w = jnp.ones(6)
    adam = optax.adam(1e-2)
    state = adam.init(w)
    for rows in (slice(0, 20), slice(20, 40), slice(40, 60)):
        gradient = jax.grad(lambda w, r=rows: loss(x[r] @ w, y[r]))(w)
        update, state = adam.update(gradient, state)
    report = measure(
        (lambda w, x: x @ w, w), loss, (x, y), what=["updates"], optimizer=(adam, state)
    )
    expected = float(jnp.sqrt((update**2).mean())) / 1e-2
    assert report[SIZE].value == pytest.approx(expected, rel=1e-3)


def test_rounding_is_that_of_torch():
    rng = np.random.default_rng(1)
    weights = torch.as_tensor(rng.standard_normal(4000)).bfloat16()
    change = torch.as_tensor(0.003 * rng.standard_normal(4000), dtype=torch.float32)
    moved = (weights.float() - change).bfloat16()
    lost = lost_in_bfloat16(weights.float().numpy(), change.numpy())
    assert np.array_equal(lost, (moved == weights).numpy())
    assert 0.1 < lost.mean() < 0.9


@pytest.mark.parametrize(("lr", "drawn"), [(1e-5, True), (3e-2, False)])
def test_weights_kept_in_bfloat16_that_do_not_move_are_a_finding(lr, drawn):
    model, rule, before = trained(
        lambda w: torch.optim.AdamW(w, lr, weight_decay=0.0), dtype=torch.bfloat16
    )
    report = updates(model, rule)
    stayed = float((flat(model) == before).float().mean())
    assert report[STAYED].value == pytest.approx(stayed, abs=0.1)
    assert (FindingId.ROUNDED_AWAY in {finding.id for finding in report.findings}) == drawn


def test_weights_in_single_precision_are_no_finding():
    model, rule, _ = trained(lambda w: torch.optim.AdamW(w, 1e-5))
    report = updates(model, rule)
    assert report[STAYED].value > 0.9
    assert "would not move" in report[STAYED].interpretation
    assert not report.findings


def test_updates_of_other_optimizers_are_refused_and_not_measured_by_default():
    model, rule, _ = trained(lambda w: torch.optim.SGD(w, 0.1, 0.9))
    with pytest.raises(UserError, match="those of Adam"):
        updates(model, rule)
    report = measure(model, cross_entropy, (X, Y), optimizer=rule)
    assert not report.readings("updates")
