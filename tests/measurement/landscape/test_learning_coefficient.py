"""Estimated learning coefficients beside closed forms and exact values, and what is refused."""

from itertools import pairwise

import jax.numpy as jnp
import numpy as np
import pytest

from steepest.core.errors import UserError
from steepest.landscapes import linear_network_singularity
from steepest.measurement import learning_coefficient
from tests.extras import need
from tests.measurement.state import of

SHORT = {"chains": 2, "steps": 60, "warm_up": 40, "leapfrogs": 6}


def half_square(outputs, targets):
    return ((outputs - targets) ** 2).sum(1).mean() / 2


def quadratic(curvatures):
    """A linear model whose mean loss is ``½ Σ h_i w_i²``, at its minimum."""
    count = len(curvatures)
    rows = np.diag(np.sqrt(count * np.asarray(curvatures)))
    model = (lambda w, x: (x @ w)[:, None], jnp.zeros(count))
    return model, half_square, (rows, np.zeros((count, 1)))


def deep_linear(widths, rank, examples=16):
    """A deep linear network at the most singular weights of this rank, with its own outputs as targets."""
    weights = [jnp.eye(out, fan_in).at[rank:].set(0.0) for fan_in, out in pairwise(widths)]

    def apply(params, x):
        for matrix in params:
            x = x @ matrix.T
        return x

    drawn = np.random.default_rng(0).normal(size=(examples, widths[0]))
    x = np.linalg.qr(drawn)[0] * np.sqrt(examples)
    return (apply, weights), half_square, (x, np.asarray(apply(weights, x)))


def test_a_quadratic_risk_has_its_closed_form():
    """Each direction gives ``½ nβ h/(nβ h + γ)``; curvatures far below γ/nβ do not count."""
    curvatures = np.array([1e-4, 0.1, 1.0, 4.0])
    estimate = learning_coefficient(
        *quadratic(curvatures),
        inverse_temperature=100.0,
        localization=1.0,
        **SHORT | {"steps": 250},
    )
    exact = (50 * curvatures / (100 * curvatures + 1)).sum()
    error = (
        estimate.losses.std() * 100 / np.sqrt(estimate.losses.size / 4)
    )  # some moves in a row are alike
    assert abs(estimate.value - exact) < 3 * error
    assert error < 0.2
    assert 0.6 < estimate.accepted < 0.95
    assert estimate.below == 0


@pytest.mark.parametrize("widths, rank", [((2, 2, 2), 1), ((2, 2, 2), 0), ((2, 2, 2, 2), 1)])
def test_deep_linear_networks_have_their_exact_coefficients(widths, rank):
    """Far below half the number of weights, 4 and 6; crossing directions lower the mean of the loss."""
    exact, crossing = linear_network_singularity(widths, rank)
    estimate = learning_coefficient(*deep_linear(widths, rank), inverse_temperature=1e4, steps=300)
    expected = float(exact) - (crossing - 1) / np.log(1e4)
    assert estimate.interval.low - 0.1 < expected < estimate.interval.high + 0.1
    assert estimate.interval.high - estimate.interval.low < 1.5


def test_chains_that_start_elsewhere_say_that_they_went_below():
    """At weights that are no minimum the estimate is below zero, and ``below`` tells why."""
    (apply, _), loss, data = quadratic([1.0, 1.0])
    model = (apply, jnp.array([1.0, -1.0]))
    estimate = learning_coefficient(model, loss, data, inverse_temperature=50.0, **SHORT)
    assert estimate.value < 0
    assert estimate.below > 0.5


def test_the_same_seed_gives_the_same_numbers_and_others_do_not():
    case = quadratic([1.0, 2.0])
    options = SHORT | {"steps": 8, "warm_up": 4, "inverse_temperature": 30.0}
    first, again, other = (learning_coefficient(*case, seed=s, **options) for s in (3, 3, 4))
    np.testing.assert_array_equal(first.losses, again.losses)
    assert not np.array_equal(first.losses, other.losses)


def test_a_module_of_torch_stays_as_it_is():
    need("torch")
    import torch

    torch.manual_seed(0)
    model = torch.nn.Sequential(torch.nn.Linear(3, 4), torch.nn.Dropout(0.5), torch.nn.Linear(4, 1))
    model.train()
    x = torch.randn(10, 3)
    y = torch.randn(10, 1)
    model(x).sum().backward()
    before = of(model), torch.get_rng_state().tolist(), torch.is_grad_enabled()
    estimate = learning_coefficient(
        model, torch.nn.functional.mse_loss, (x, y), chains=2, steps=4, warm_up=2, leapfrogs=2
    )
    assert (of(model), torch.get_rng_state().tolist(), torch.is_grad_enabled()) == before
    assert estimate.inverse_temperature == pytest.approx(10 / np.log(10))


@pytest.mark.parametrize(
    "options",
    [
        {"chains": 1},
        {"steps": 1},
        {"warm_up": 0},
        {"leapfrogs": 0},
        {"localization": -1.0},
        {"localization": float("inf")},
        {"inverse_temperature": 0.0},
        {},  # two examples have no n/log n
    ],
)
def test_wrong_numbers_are_refused(options):
    with pytest.raises(UserError):
        learning_coefficient(*quadratic([1.0, 1.0]), **options)
