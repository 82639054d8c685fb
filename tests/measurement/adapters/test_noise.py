"""Losses that draw random numbers, with the same ones in every pass."""

import numpy as np
import pytest

import steepest
from steepest.core.errors import UserError
from steepest.measurement import Monitor
from steepest.measurement.adapters import subject
from tests.extras import need

torch = need("torch")
nn = torch.nn


class Autoencoder(nn.Module):
    """A variational one, whose code is drawn in the forward pass."""

    def __init__(self):
        super().__init__()
        torch.manual_seed(0)
        self.encode = nn.Linear(4, 4)
        self.decode = nn.Linear(2, 4)
        self.double()

    def forward(self, x):
        mean, spread = self.encode(x).chunk(2, 1)
        return self.decode(mean + torch.exp(spread / 4) * torch.randn_like(mean))


X = torch.randn(12, 4, generator=torch.Generator().manual_seed(1), dtype=torch.float64)
SQUARED = nn.MSELoss()


def test_noise_is_refused_unless_it_is_fixed():
    with pytest.raises(UserError, match="noise='fixed'"):
        subject(Autoencoder(), SQUARED, (X, X))
    with pytest.raises(UserError, match="no noise 'common'"):
        subject(Autoencoder(), SQUARED, (X, X), noise="common")


def test_fixed_noise_gives_a_function_with_the_derivatives_that_it_says():
    """Each batch has numbers of its own, whatever was drawn before; products are differences of gradients."""
    attached = subject(Autoencoder(), SQUARED, (X, X), noise="fixed", micro_batch=6)
    risk = attached.risk()
    torch.manual_seed(5)
    weights = attached.values()
    assert attached.at(weights).risk() == risk
    v = np.random.default_rng(0).standard_normal(attached.size)
    ahead = attached.at(weights + 1e-6 * v).gradient()
    behind = attached.at(weights - 1e-6 * v).gradient()
    np.testing.assert_allclose((ahead - behind) / 2e-6, attached.products(v), atol=1e-6)
    twice = X[:6].repeat(2, 1)
    outputs = subject(
        Autoencoder(), SQUARED, (twice, twice), noise="fixed", micro_batch=6
    ).outputs()[0]
    assert np.abs(outputs[:6] - outputs[6:]).max() > 0.1


def test_one_draw_of_many_examples_is_near_every_other():
    many = X.repeat(400, 1)

    def measured(rows):
        options = {"what": ["sharpness"], "noise": "fixed", "lr": 0.1}
        return steepest.measure(Autoencoder(), SQUARED, (rows, rows), **options)["sharpness"]

    first = measured(many)
    assert ("one draw of the loss's random numbers stands for all", None) in first.assumes
    others = [measured(rows).value for rows in (many.flip(0), many.roll(5, 0), many.roll(7, 0))]
    np.testing.assert_allclose(others, first.value, rtol=0.1)


def test_dropout_is_measured_on_demand():
    model = nn.Sequential(nn.Linear(4, 8), nn.Dropout(0.5), nn.Linear(8, 4)).double().train()
    with pytest.raises(UserError, match=r"model.eval\(\) first, or measure with noise='fixed'"):
        subject(model, SQUARED, (X, X))
    noisy = subject(model, SQUARED, (X, X), noise="fixed").risk()
    assert noisy != pytest.approx(subject(model.eval(), SQUARED, (X, X)).risk(), rel=1e-3)


def test_a_monitor_measures_with_fixed_noise_and_does_not_disturb_the_training(tmp_path):
    def trained(watched):
        model = Autoencoder()
        optimizer = torch.optim.SGD(model.parameters(), 0.05)
        monitor = Monitor(
            tmp_path / "log", SQUARED, (X, X), every=1, budget=None, noise="fixed", lr=0.05
        )
        torch.manual_seed(3)
        for step in range(3):
            if watched:
                assert monitor(step, model)["quantities"]["sharpness"]["value"] is not None
            optimizer.zero_grad()
            SQUARED(model(X), X).backward()
            optimizer.step()
        return model

    watched = trained(watched=True).state_dict()
    alone = trained(watched=False).state_dict()
    assert all(torch.equal(watched[name], alone[name]) for name in alone)
