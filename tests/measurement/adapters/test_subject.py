"""Subjects from both frameworks against dense derivatives, and against each other."""

import itertools

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.flatten_util import ravel_pytree

from steepest.core.errors import UserError
from steepest.measurement.adapters import subject
from tests.measurement.adapters import models


@pytest.fixture(scope="module", params=[4, 1024], ids=["small batches", "one batch"])
def ours(request):
    return subject(models.of_jax(), models.cross_entropy, models.data(), micro_batch=request.param)


@pytest.fixture(scope="module")
def dense():
    """Hessian, Gauss–Newton and Fisher matrix by differentiating everything at once."""
    (network, params) = models.of_jax()
    (x, y) = models.data()
    with jax.enable_x64(True):
        flat, back = ravel_pytree(jax.tree.map(jnp.asarray, params))
        x = jnp.asarray(x)
        y = jnp.asarray(y)
        outputs = lambda w: network.apply(back(w), x)
        jacobian = jax.jacobian(outputs)(flat)
        losses = lambda w: jax.vmap(
            lambda out, label: models.cross_entropy(out[None], label[None])
        )(outputs(w), y)
        bend = jax.vmap(
            jax.hessian(lambda out, label: models.cross_entropy(out[None], label[None]))
        )(outputs(flat), y)
        slopes = jax.jacobian(losses)(flat)
        return {
            "risk": losses(flat).mean(),
            "gradient": slopes.mean(0),
            "hessian": jax.hessian(lambda w: losses(w).mean())(flat),
            "gauss-newton": jnp.einsum("nap,nab,nbq->pq", jacobian, bend, jacobian) / len(x),
            "fisher": slopes.T @ slopes / len(x),
            "jacobian": jacobian,
            "outputs": outputs(flat),
        }


@pytest.mark.parametrize("kind", ["hessian", "gauss-newton", "fisher"])
def test_products_are_those_of_the_dense_matrix(ours, dense, kind):
    found = ours.products(np.eye(ours.size), kind)
    np.testing.assert_allclose(found, dense[kind], atol=1e-13)
    np.testing.assert_allclose(
        ours.products(np.eye(ours.size)[3], kind), dense[kind][3], atol=1e-13
    )


def test_first_derivatives_and_outputs(ours, dense):
    assert ours.risk() == pytest.approx(float(dense["risk"]), rel=1e-13)
    np.testing.assert_allclose(ours.gradient(), dense["gradient"], atol=1e-14)
    v = np.random.default_rng(2).standard_normal(ours.size)
    u = np.random.default_rng(3).standard_normal((11, 3))
    np.testing.assert_allclose(ours.jvp(v), dense["jacobian"] @ v, atol=1e-13)
    np.testing.assert_allclose(
        ours.vjp(u), np.einsum("na,nap->p", u, dense["jacobian"]), atol=1e-13
    )
    outputs, targets = ours.outputs()
    np.testing.assert_allclose(outputs, dense["outputs"], atol=1e-14)
    assert targets.tolist() == models.data()[1].tolist()


def test_features_times_classifier_are_the_outputs(ours):
    matrix, bias = (ours.weight(name) for name in ours.classifier)
    multiplier = ours.outputs()[0] - ours.features() @ matrix.T - bias
    np.testing.assert_allclose(multiplier, 0, atol=1e-13)


def test_other_weights_leave_the_model_alone(ours, dense):
    moved = ours.at(np.zeros(ours.size))
    assert moved.risk() == pytest.approx(np.log(3))
    assert ours.risk() == pytest.approx(float(dense["risk"]))


def test_a_loss_of_the_parameters_gives_the_same(dense):
    network, params = models.of_jax()

    def loss(params, batch):
        return models.cross_entropy(network.apply(params, batch["x"]), batch["y"])

    x, y = models.data()
    batches = [{"x": x[:5], "y": y[:5]}, {"x": x[5:], "y": y[5:]}]
    found = subject((network, params), loss, batches)
    np.testing.assert_allclose(found.products(np.eye(found.size)), dense["hessian"], atol=1e-13)
    np.testing.assert_allclose(
        found.products(np.eye(found.size), "fisher"), dense["fisher"], atol=1e-13
    )
    with pytest.raises(UserError, match="Gauss–Newton"):
        found.products(np.eye(found.size), "gauss-newton")


def linear(w, x):
    return x @ w


def squared(outputs, targets):
    return ((outputs - targets) ** 2).mean() / 2


X = np.ones((3, 2))
Y = np.ones(3)


@pytest.mark.parametrize(
    ("model", "loss", "given", "sentence"),
    [
        ((linear, np.ones(2)), squared, iter([(X, Y)]), "only once"),
        ((linear, np.ones(2)), squared, 3, "pair of arrays"),
        ((linear, np.ones(2)), squared, (X[:0], Y[:0]), "no examples"),
        ((linear, np.ones(2)), squared, [], "no examples"),
        ((linear, np.ones(2)), squared, [(X, Y[:2])], "one length"),
        ((linear, np.ones(2)), squared, [(X, Y, Y)], r"pair \(inputs, targets\)"),
        ((linear, np.ones(2)), lambda outputs, targets: outputs - targets, (X, Y), "mean"),
        ((linear, np.ones(2)), "mse", (X, Y), "function"),
        ((linear, np.full(2, np.nan)), squared, (X, Y), "not finite"),
        ((linear, np.ones(2, int)), squared, (X, Y), "floating point"),
        ((linear, np.ones(2)), squared, (np.full((3, 2), np.nan), Y), "NaN"),
        (linear, squared, (X, Y), r"\(apply, params\)"),
    ],
)
def test_bad_input_gets_one_sentence(model, loss, given, sentence):
    with pytest.raises(UserError, match=sentence) as caught:
        subject(model, loss, given)
    assert "\n" not in str(caught.value)


def test_a_wrong_second_derivative_is_found():
    @jax.custom_jvp
    def square(z):
        return z**2

    square.defjvps(lambda tangent, out, z: 2 * jax.lax.stop_gradient(z) * tangent)
    with pytest.raises(UserError, match="second derivative"):
        subject((lambda w, x: square(x @ w), np.ones(2)), squared, (X, Y))


def test_random_losses_are_found():
    noise = np.random.default_rng(0)

    class Loader:
        def __iter__(self):
            return iter([(X + noise.standard_normal(X.shape), Y)])

    with pytest.raises(UserError, match="random"):
        subject((linear, np.ones(2)), squared, Loader())


@pytest.mark.parametrize("widths", [(3, 2, 2), (3, 2, 2, 2), (3, 4, 4, 4, 1)])
@pytest.mark.parametrize("target", [0.0, 1.0])
def test_deep_networks_that_are_zero_are_measured(widths, target):
    """All derivatives up to the depth are zero there, of a loss that changes with the weights all the same."""
    weights = [np.zeros((out, fan_in)) for fan_in, out in itertools.pairwise(widths)]

    def apply(params, x):
        for matrix in params:
            x = x @ matrix.T
        return x

    x = np.random.default_rng(0).normal(size=(20, widths[0]))
    y = np.full((20, widths[-1]), target)
    attached = subject((apply, weights), lambda f, t: ((f - t) ** 2).mean(), (x, y))
    assert attached.risk() == target**2
    assert not attached.gradient().any()


def test_a_detached_network_is_refused_as_before():
    weights = [np.zeros((2, 3)), np.zeros((2, 2))]
    apply = lambda w, x: x @ jax.lax.stop_gradient(w[0]).T @ jax.lax.stop_gradient(w[1]).T + 1.0
    data = np.ones((20, 3)), np.zeros((20, 2))
    with pytest.raises(UserError):
        subject((apply, weights), lambda f, t: ((f - t) ** 2).mean(), data)


@pytest.mark.parametrize("micro_batch", [5, 1024])
def test_vertices_of_a_graph_stay_together(micro_batch):
    """A network of JAX that reads all vertices or none has its own risk and gradient."""
    adjacency = np.random.default_rng(0).random((20, 20)) / 20
    apply = lambda w, x: adjacency @ jnp.tanh(adjacency @ x @ w)
    x = np.random.default_rng(1).normal(size=(20, 3))
    y = np.ones((20, 2))
    weights = np.random.default_rng(2).normal(size=(3, 2))
    loss = lambda f, t: ((f - t) ** 2).mean()
    attached = subject((apply, weights), loss, (x, y), micro_batch=micro_batch)
    with jax.enable_x64(True):
        risk, slope = jax.value_and_grad(lambda w: loss(apply(w, x), y))(jnp.asarray(weights))
    assert attached.risk() == pytest.approx(float(risk))
    np.testing.assert_allclose(attached.gradient(), slope.ravel(), rtol=1e-6)
