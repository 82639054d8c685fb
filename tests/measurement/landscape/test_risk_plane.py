"""Planes through trained weights beside a closed form, and the norms of their directions."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from steepest.core.errors import UserError
from steepest.measurement import risk_plane
from tests.extras import need
from tests.measurement.state import of


def half_square(outputs, targets):
    return ((outputs - targets) ** 2).sum(1).mean() / 2


def linear_model(rows=3, columns=2, seed=0):
    """A linear model on whitened inputs: its mean loss is half the squared distance of the matrices, over inputs."""
    matrix = np.random.default_rng(seed).normal(size=(rows, columns))
    model = (lambda w, x: x @ w.T, jnp.asarray(matrix))
    return model, half_square, (np.eye(columns), matrix.T)


def test_the_loss_is_the_quadratic_form_of_the_directions():
    model, loss, data = linear_model()
    plane = risk_plane(model, loss, data, size=2.0, points=5)
    a, b = np.meshgrid(plane.offsets, plane.offsets, indexing="ij")
    moved = a[..., None] * plane.directions[0] + b[..., None] * plane.directions[1]
    np.testing.assert_allclose(plane.risks, (moved**2).sum(-1) / 2 / 2, rtol=1e-5, atol=1e-12)
    assert plane.risk == 0


def test_filters_have_the_norms_of_the_weights():
    (apply, matrix), loss, data = linear_model()
    plane = risk_plane((apply, matrix), loss, data, points=3)
    for direction in plane.directions.reshape(2, 3, 2):
        np.testing.assert_allclose(
            np.linalg.norm(direction, axis=1), np.linalg.norm(matrix, axis=1)
        )
    turned = risk_plane((apply, matrix), loss, data, points=3, outputs_axis=-1)
    for direction in turned.directions.reshape(2, 3, 2):
        np.testing.assert_allclose(
            np.linalg.norm(direction, axis=0), np.linalg.norm(matrix, axis=0)
        )


def test_a_scaled_relu_network_has_the_same_plane():
    """Relu units may be scaled up before and down behind without a change of the function: so may the plane."""
    need("torch")
    import torch

    torch.manual_seed(1)
    x = torch.randn(12, 3).double()
    y = torch.randn(12, 2).double()
    planes = []
    for factor in (1.0, 8.0):
        torch.manual_seed(2)
        model = torch.nn.Sequential(
            torch.nn.Linear(3, 5, bias=False), torch.nn.ReLU(), torch.nn.Linear(5, 2, bias=False)
        ).double()
        with torch.no_grad():
            model[0].weight.mul_(factor)
            model[2].weight.div_(factor)
        before = of(model)
        planes.append(risk_plane(model, torch.nn.functional.mse_loss, (x, y), points=5).risks)
        assert of(model) == before
    np.testing.assert_allclose(*planes, rtol=1e-10)


def test_biases_and_factors_of_normalization_stay():
    need("torch")
    import torch

    model = torch.nn.Sequential(
        torch.nn.Conv2d(1, 2, 3), torch.nn.BatchNorm2d(2), torch.nn.Flatten()
    )
    model.eval()
    x = torch.randn(6, 1, 4, 4)
    plane = risk_plane(model, torch.nn.functional.mse_loss, (x, torch.zeros(6, 8)), points=3)
    weights = 2 * 9
    assert np.count_nonzero(plane.directions[0]) == weights
    filters = plane.directions[:, :weights].reshape(2, 2, 9)
    weight = model[0].weight.detach().numpy().reshape(2, 9)
    np.testing.assert_allclose(
        np.linalg.norm(filters, axis=2), [np.linalg.norm(weight, axis=1)] * 2, rtol=1e-5
    )


def test_flax_has_its_outputs_at_the_end():
    need("flax")
    import flax.linen as nn

    dense = nn.Dense(2, use_bias=False)
    x = jnp.eye(3)
    variables = dense.init(jax.random.key(0), x)
    plane = risk_plane((dense, variables), half_square, (x, jnp.zeros((3, 2))), points=3)
    kernel = variables["params"]["kernel"]
    for direction in plane.directions.reshape(2, 3, 2):
        np.testing.assert_allclose(
            np.linalg.norm(direction, axis=0), jnp.linalg.norm(kernel, axis=0), rtol=1e-5
        )


def test_a_picture_is_written(tmp_path):
    plane = risk_plane(*linear_model(), points=5)
    plane.draw(tmp_path / "plane.svg")
    assert (tmp_path / "plane.svg").read_text("utf-8").lstrip().startswith("<?xml")


@pytest.mark.parametrize(
    "options", [{"size": 0.0}, {"points": 4}, {"points": 1}, {"outputs_axis": 2}, {"size": "far"}]
)
def test_wrong_numbers_are_refused(options):
    with pytest.raises(UserError):
        risk_plane(*linear_model(), **options)


def test_a_model_without_filters_is_refused():
    model = (lambda w, x: x @ w[:, None], jnp.ones(2))
    with pytest.raises(UserError):
        risk_plane(model, half_square, (np.eye(2), np.zeros((2, 1))))
