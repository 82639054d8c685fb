"""Rotational equilibrium on a reader's network: which weights have no length, how they are trained, how they turn."""

import numpy as np
import pytest

from steepest.claims.training.rotational_equilibrium import on_subject
from steepest.claims.training.rotational_equilibrium.on_subject import Recipe
from steepest.core.errors import UserError
from steepest.core.words import Verdict
from steepest.measurement import Builder
from tests.claims.on_subject import asked
from tests.extras import need

torch = need("torch")
nn = torch.nn
RNG = np.random.default_rng(0)
X = torch.as_tensor(RNG.standard_normal((96, 6)), dtype=torch.float32)
Y = torch.as_tensor(RNG.integers(0, 3, 96))


def network(kind="rows"):
    """Return a classifier with a normalization behind its first layer: of each row, of all of it, or none."""
    behind = {"rows": nn.BatchNorm1d(8), "whole": nn.LayerNorm(8), "none": nn.Identity()}[kind]
    return nn.Sequential(nn.Linear(6, 8, bias=False), behind, nn.ReLU(), nn.Linear(8, 3))


def descent(groups):
    return torch.optim.SGD(groups, 0.1, weight_decay=0.1)


def builder(kind="rows", steps=600, optimizer=None, schedule=None):
    """Return a reader's function: random labels, drawn anew in every step."""

    def build(seed=0):
        torch.manual_seed(seed)
        model = network(kind)
        behind = [*model[1].parameters(), *model[3].parameters()]
        slow = {"params": behind, "weight_decay": 0.0, "lr": 1e-3}
        groups = [{"params": model[0].parameters()}, slow]
        rule = optimizer(model.parameters()) if optimizer else descent(groups)
        lower = schedule and schedule(rule)

        def train():
            generator = torch.Generator().manual_seed(seed)
            model.train()
            for _ in range(steps):
                rows = torch.randint(96, (16,), generator=generator)
                labels = torch.randint(3, (16,), generator=generator)
                rule.zero_grad()
                nn.functional.cross_entropy(model(X[rows]), labels).backward()
                rule.step()
                if lower:
                    lower.step()
                yield

        return {
            "model": model,
            "loss": nn.functional.cross_entropy,
            "data": (X, Y),
            "optimizer": rule,
            "train": train,
            "batch": 16,
            "length": steps,
        }

    return build


@pytest.mark.parametrize(
    ("kind", "expected"),
    [("rows", {"0.weight": True}), ("whole", {"0.weight": False}), ("none", {})],
)
def test_weights_without_a_length_are_those_behind_a_normalization(kind, expected):
    torch.manual_seed(0)
    built = Builder.of(builder(kind))()
    assert on_subject.without_length(on_subject.attached_as_trained(built)) == expected


def test_the_loss_does_not_change_where_they_are_stretched():
    torch.manual_seed(0)
    model = network().train()
    before = nn.functional.cross_entropy(model(X), Y).item()
    with torch.no_grad():
        model[0].weight *= torch.linspace(1, 3, 8)[:, None]
    after = nn.functional.cross_entropy(model(X), Y).item()
    assert after == pytest.approx(before, rel=1e-3)


def test_the_angle_between_directions_is_that_of_a_rotation():
    angle = 0.01
    turn = np.array([[np.cos(angle), -np.sin(angle)], [np.sin(angle), np.cos(angle)]])
    rows = np.array([[1.0, 0.0], [0.6, 0.8]])
    squares = on_subject.mean_squares({"w": rows}, {"w": rows @ turn}, {"w": True})
    assert squares[0] ** 0.5 == pytest.approx(angle, rel=1e-9)
    assert np.isnan(squares[1])  # there are no other matrices


def test_noise_turns_a_normalized_layer_by_the_law():
    result = asked("rotational-equilibrium", builder(), seeds=3)
    assert result.verdict == Verdict.HOLDS
    assert {rival.id for rival in result.rivals} == {"half"}


def test_a_training_too_short_to_feel_its_decay_is_out_of_range():
    result = asked("rotational-equilibrium", builder(steps=60), seeds=3)
    assert result.verdict == Verdict.OUT_OF_RANGE


def test_a_schedule_that_lowers_the_step_to_the_end_is_out_of_range():
    halving = lambda rule: torch.optim.lr_scheduler.LinearLR(rule, 1.0, 0.2, total_iters=600)
    result = asked("rotational-equilibrium", builder(schedule=halving), seeds=3)
    assert result.verdict == Verdict.OUT_OF_RANGE


def test_recipes_are_those_of_the_optimizer():
    adamw = builder(optimizer=lambda w: torch.optim.AdamW(w, 1e-2, (0.8, 0.95), weight_decay=0.3))
    built = Builder.of(adamw)()
    recipe = on_subject.recipe_of(built, {"0.weight": True})
    assert recipe == Recipe(True, 0.01, 0.3, 0.8, 0.95)
    assert recipe.angle == pytest.approx((2 * 0.003 * 0.2 / 1.8) ** 0.5, rel=0.01)
    assert recipe.memory == pytest.approx(1 / 0.006)


@pytest.mark.parametrize(
    ("make", "said"),
    [
        (lambda w: torch.optim.Adam(w, 1e-2, weight_decay=0.1), "use AdamW"),
        (lambda w: torch.optim.RMSprop(w, 1e-2, weight_decay=0.1), "got RMSprop"),
        (lambda w: torch.optim.SGD(w, 0.1, 0.9, nesterov=True), "without nesterov"),
    ],
)
def test_optimizers_without_a_law_are_named(make, said):
    built = Builder.of(builder(optimizer=make))()
    with pytest.raises(UserError, match=said):
        on_subject.recipe_of(built, {"0.weight": True})
