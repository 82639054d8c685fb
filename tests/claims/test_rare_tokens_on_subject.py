"""Rare classes of a reader's network: when they are learned, what the law says of it, and where it does not hold."""

import numpy as np
import pytest

from steepest.claims.training.rare_tokens import on_subject
from steepest.claims.training.rare_tokens.on_subject import RareOnSubject
from steepest.core.errors import UserError
from steepest.core.words import Verdict
from steepest.measurement import Builder
from steepest.measurement.adapters import subject as attach
from tests.claims.on_subject import asked, broken, rejections
from tests.extras import need

torch = need("torch")
nn = torch.nn
COUNTS = (96, 48, 24, 12)


def sgd(weights):
    return torch.optim.SGD(weights, 0.15)


def forgetful(weights):
    return torch.optim.Adam(weights, betas=(0.9, 0.9))


def builder(counts=COUNTS, rule=sgd, batch=64, steps=600, hidden=0):
    """Return a reader's function: each class has an input of its own, and a hidden layer may share them."""

    def build(seed=0):
        torch.manual_seed(seed)
        y = torch.arange(len(counts)).repeat_interleave(torch.tensor(counts))
        x = torch.eye(len(counts))[y]
        if hidden:
            parts = [nn.Linear(len(counts), hidden), nn.ReLU(), nn.Linear(hidden, len(counts))]
            model = nn.Sequential(*parts)
        else:
            model = nn.Linear(len(counts), len(counts), bias=False)
            nn.init.normal_(model.weight, std=0.01)
        optimizer = rule(model.parameters())

        def train():
            for _ in range(steps):
                rows = torch.randint(len(y), (batch,))
                optimizer.zero_grad()
                nn.functional.cross_entropy(model(x[rows]), y[rows]).backward()
                optimizer.step()
                yield

        return {
            "model": model,
            "loss": nn.functional.cross_entropy,
            "data": (x, y),
            "optimizer": optimizer,
            "train": train,
            "batch": batch,
            "length": steps,
        }

    return build


def claim(counts, batches):
    fields = {"words": counts, "batches": batches}
    return RareOnSubject(**fields)


def test_times_of_descent_are_inverse_to_frequencies():
    np.testing.assert_allclose(claim((90, 30, 10), ()).delay(), [1, 3, 9])


def test_times_of_adam_are_those_of_averages_over_random_batches():
    counts = np.array([90, 30, 10])
    shares = np.random.default_rng(0).multinomial(16, counts / 130, size=200_000) / 16
    steps = np.sqrt((shares**2).mean(0)) / shares.mean(0)
    np.testing.assert_allclose(claim((90, 30, 10), (16,)).delay(), steps / steps[0], rtol=0.01)


def test_laws_that_are_nearly_flat_say_what_they_cannot_tell():
    assert set(claim((90, 30, 10), (4096,)).not_told) == {
        "delay.count.flat",
        "delay.count.reversed",
    }
    assert claim((90, 30, 10), ()).not_told == {}


def test_half_times_are_interpolated():
    marks = np.array([0.0, 2.0, 6.0])
    losses = np.array([[4.0, 8.0, 1.0], [3.0, 4.0, 1.2], [1.0, 1.0, 0.9]])
    learned = on_subject.half_times(marks, losses)
    assert learned.steps.tolist() == [4, 2, 6]
    assert learned.reached.tolist() == [True, True, False]


def test_the_losses_of_classes_are_those_of_torch():
    torch.manual_seed(0)
    built = Builder.of(builder(hidden=5))()
    x, y = built.data
    subject = attach(built.model, built.loss, (x, y), check=False)
    with torch.no_grad():
        losses = nn.functional.cross_entropy(built.model(x), y, reduction="none")
    expected = [float(losses[y == label].mean()) for label in (2, 0)]
    np.testing.assert_allclose(
        on_subject.class_losses(subject, np.array([2, 0])), expected, rtol=1e-5
    )


def test_softmax_regression_by_sgd_follows_the_law():
    result = asked("rare-tokens", builder(), seeds=3)
    assert result.verdict == Verdict.HOLDS, result.reason
    assert rejections([*result.rivals, *result.controls]) == {
        "all_alike": True,
        "root": True,
        "exchanged": True,
    }


def test_softmax_regression_by_adam_learns_all_at_nearly_one_time():
    adam = lambda weights: torch.optim.Adam(weights, 0.02)
    result = asked("rare-tokens", builder((64, 32, 16), adam, batch=256), seeds=3)
    assert result.verdict == Verdict.HOLDS, result.reason
    assert "inverse" in rejections(result.rivals)


def test_classes_that_share_a_hidden_layer_do_not_follow_the_law_of_adam():
    adam = lambda weights: torch.optim.Adam(weights, 0.004)
    result = asked("rare-tokens", builder((64, 32, 16), adam, batch=64, hidden=32), seeds=3)
    assert result.verdict == Verdict.FAILS, result.reason


@pytest.mark.parametrize(
    ("build", "said"),
    [
        (builder(counts=(20, 15, 10)), "largest frequency over the smallest"),
        (builder(steps=60), "classes that never came to half of their loss"),
        (builder(rule=lambda w: torch.optim.SGD(w, 30.0)), "steps until the most frequent class"),
        (builder(rule=forgetful, batch=2, steps=20), "times that the rarest class is in v's"),
    ],
)
def test_other_trainings_are_out_of_range(build, said):
    result = asked("rare-tokens", build, seeds=3)
    assert result.verdict == Verdict.OUT_OF_RANGE
    assert any(said in line for line in [*broken(result), *map(str, result.run_conditions)])


def test_other_optimizers_and_unknown_batches_are_named():
    built = Builder.of(builder(rule=torch.optim.RMSprop))()
    with pytest.raises(UserError, match="got RMSprop"):
        on_subject.beta2_of(built)
    parts = builder(rule=torch.optim.Adam)()
    del parts["batch"]
    with pytest.raises(UserError, match="needs 'batch'"):
        asked("rare-tokens", lambda: parts)
