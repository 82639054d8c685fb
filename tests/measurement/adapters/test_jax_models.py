"""Models of flax, equinox and haiku: which leaves are weights, against dense Hessians of exactly these."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.flatten_util import ravel_pytree

import steepest
from steepest.core.errors import UserError
from steepest.measurement.adapters import in_evaluation, subject
from tests.extras import need

rng = np.random.default_rng(0)
X = 2 * rng.normal(size=(12, 3))
Y = rng.integers(0, 2, 12)
DATA = (X, Y)


@pytest.fixture(autouse=True)
def double():
    with jax.enable_x64(True):
        yield


def loss(outputs, targets):
    return -jnp.take_along_axis(jax.nn.log_softmax(outputs), targets[:, None], 1).mean()


def right(tree, outputs):
    """Number of weights, largest eigenvalue and gradient norm of the dense Hessian in the leaves of a tree."""
    flat, unflatten = ravel_pytree(tree)
    risk = lambda w: loss(outputs(unflatten(w)), Y)
    return (
        len(flat),
        float(jnp.linalg.eigvalsh(jax.hessian(risk)(flat))[-1]),
        float(jnp.linalg.norm(jax.grad(risk)(flat))),
    )


def measured(model, loss=loss, **options):
    attached = subject(model, loss, DATA, check=False, **options)
    hessian = attached.products(np.eye(attached.size))
    return (
        attached.size,
        float(np.linalg.eigvalsh(hessian)[-1]),
        float(np.linalg.norm(attached.gradient())),
    )


def linen_module():
    nn = need("flax.linen")

    class Net(nn.Module):
        @nn.compact
        def __call__(self, x, train):
            x = nn.Dense(4, param_dtype=x.dtype)(x)
            x = nn.BatchNorm(use_running_average=not train, param_dtype=x.dtype)(x)
            x = nn.Dropout(0.5, deterministic=not train)(nn.tanh(x))
            return nn.Dense(2, param_dtype=x.dtype)(x)

    net = Net()
    variables = net.init(jax.random.key(0), X, False)
    keys = {"dropout": jax.random.key(1)}
    _, changed = net.apply(variables, X, True, mutable=["batch_stats"], rngs=keys)
    return net, {**variables, **changed}


def test_only_the_collection_params_of_linen_is_weights():
    net, variables = linen_module()
    of_params = lambda params: net.apply({**variables, "params": params}, X, False)
    expected = pytest.approx(right(variables["params"], of_params), rel=1e-6)
    of_pair = lambda params, batch: loss(net.apply(params, batch[0], False), batch[1])
    assert measured((net, variables)) == expected
    assert measured(net.bind(variables)) == expected
    assert measured((lambda v, x: net.apply(v, x, False), variables)) == expected
    assert measured((net, variables), of_pair) == expected


def test_a_recurrent_network_of_linen():
    nn = need("flax.linen")

    class Net(nn.Module):
        @nn.compact
        def __call__(self, x):
            hidden = nn.RNN(nn.GRUCell(3, param_dtype=x.dtype))(x[..., None])
            return nn.Dense(2, param_dtype=x.dtype)(hidden[:, -1])

    net = Net()
    variables = net.init(jax.random.key(0), X)
    of_params = lambda params: net.apply({"params": params}, X)
    assert measured((net, variables)) == pytest.approx(
        right(variables["params"], of_params), rel=1e-6
    )


def test_what_linen_cannot_call_is_said_in_a_sentence():
    net, variables = linen_module()
    with pytest.raises(UserError, match="cannot be called"):
        measured((lambda v, x: net.apply(v, x, True), variables))
    with pytest.raises(UserError, match="cannot be called"):
        measured((net.apply, variables))
    with pytest.raises(UserError, match="holds no variables"):
        measured(net)


def nnx_module(batch_norm=True):
    nnx = need("flax.nnx")

    class Net(nnx.Module):
        def __init__(self, rngs):
            kind = {"param_dtype": X.dtype, "rngs": rngs}
            self.first = nnx.Linear(3, 4, **kind)
            self.norm = nnx.BatchNorm(4, **kind) if batch_norm else None
            self.dropout = nnx.Dropout(0.3, rngs=rngs)
            self.last = nnx.Linear(4, 2, **kind)

        def __call__(self, x):
            x = self.first(x)
            x = x if self.norm is None else self.norm(x)
            return self.last(self.dropout(jnp.tanh(x)))

    net = Net(nnx.Rngs(0))
    net.train()
    net(X)
    return net


def arrays_of(net):
    nnx = need("flax.nnx")
    plain = lambda leaf: jax.random.key_data(leaf) if "key" in str(leaf.dtype) else leaf
    return [np.array(plain(leaf)) for leaf in jax.tree.leaves(nnx.state(net))]


def test_only_params_of_nnx_are_weights_and_the_module_stays():
    nnx = need("flax.nnx")
    net = nnx_module()
    before = arrays_of(net)
    with pytest.raises(UserError, match="training mode"):
        measured(net)
    net.eval()
    graph, params, others = nnx.split(net, nnx.Param, ...)
    of_params = lambda params: nnx.merge(graph, params, others)(X)
    expected = pytest.approx(right(params, of_params), rel=1e-6)
    assert measured(net) == expected
    graph, state = nnx.split(net)
    assert measured((lambda state, x: nnx.merge(graph, state)(x), state)) == expected
    of_module = lambda params, batch: loss(params(batch[0]), batch[1])
    assert measured(net, of_module) == expected
    for now, then in zip(arrays_of(net), before, strict=True):
        np.testing.assert_array_equal(now, then)


def test_keys_of_nnx_that_change_the_loss_are_refused_or_fixed():
    net = nnx_module(batch_norm=False)
    with pytest.raises(UserError, match="training mode"):
        measured(net)
    count, _, _ = measured(net, noise="fixed")
    assert count == 26
    assert subject(net, loss, DATA, noise="fixed").is_noisy
    net.eval()
    assert not subject(net, loss, DATA).is_noisy


def test_in_evaluation_a_module_of_nnx_is_read_as_a_copy(tmp_path):
    nnx = need("flax.nnx")
    net = nnx_module()
    monitor = steepest.Monitor(tmp_path / "run.jsonl", loss, DATA, every=1, budget=None)
    first = monitor(0, net)
    assert net.dropout.deterministic is False
    net(3 * X)  # moves the running statistics
    second = monitor(1, net)
    copy = nnx.clone(net)
    copy.eval()
    assert second["quantities"]["risk"]["value"] == pytest.approx(float(loss(copy(X), Y)))
    assert first["quantities"]["risk"]["value"] != second["quantities"]["risk"]["value"]
    layers = ("first", "last")
    arrays = [f"{layer}.{array}" for layer in layers for array in ("bias", "kernel")]
    assert monitor.first_order.names == [*arrays, "norm.bias", "norm.scale"]


class WithState(eqx.Module):
    first: eqx.nn.Linear
    norm: eqx.nn.BatchNorm
    dropout: eqx.nn.Dropout
    last: eqx.nn.Linear
    places: jax.Array
    table: np.ndarray
    factor: float = 2.0

    def __init__(self, key):
        keys = jax.random.split(key)
        self.first = eqx.nn.Linear(3, 4, key=keys[0])
        self.norm = eqx.nn.BatchNorm(4, "batch", mode="ema")
        self.dropout = eqx.nn.Dropout(0.3)
        self.last = eqx.nn.Linear(4, 2, key=keys[1])
        self.places = jnp.arange(2)
        self.table = np.linspace(1.0, 2.0, 4)

    def __call__(self, x, state):
        hidden, state = self.norm(self.first(x), state)
        hidden = self.dropout(jnp.tanh(hidden)) * self.table
        return self.last(hidden)[self.places] * self.factor, state


def test_an_equinox_module_with_state_and_tables():
    net, state = eqx.nn.make_with_state(WithState)(jax.random.key(0))
    axes = {"axis_name": "batch", "in_axes": (0, None), "out_axes": (0, None)}
    _, state = jax.vmap(lambda x, state: net.norm(net.first(x), state), **axes)(X, state)
    with pytest.raises(UserError, match="training mode"):
        measured((net, state))
    still = eqx.nn.inference_mode(net)
    params, static = eqx.partition(still, eqx.is_inexact_array)
    outputs = lambda params: jax.vmap(eqx.combine(params, static), **axes)(X, state)[0]
    expected = pytest.approx(right(params, outputs), rel=1e-6)
    assert measured((still, state)) == expected
    with in_evaluation(net):
        again = subject((net, state), loss, DATA)
    assert again.risk() == pytest.approx(float(loss(outputs(params), Y)))
    assert net.dropout.inference is False


def test_an_equinox_module_is_called_for_each_example():
    net = eqx.nn.MLP(3, 2, 4, 1, key=jax.random.key(0))
    params, static = eqx.partition(net, eqx.is_inexact_array)
    outputs = lambda params: jax.vmap(eqx.combine(params, static))(X)
    assert measured(net) == pytest.approx(right(params, outputs), rel=1e-6)


def test_the_state_of_haiku_is_no_weights():
    hk = need("haiku")

    def function(x, train=False):
        hidden = hk.BatchNorm(True, True, 0.9)(hk.Linear(4)(x), is_training=train)
        return hk.Linear(2)(jnp.tanh(hidden))

    transformed = hk.transform_with_state(function)
    params, state = transformed.init(jax.random.key(0), X, True)
    state = jax.tree.map(lambda leaf: leaf + 1, state)
    expected = right(params, lambda params: transformed.apply(params, state, None, X)[0])
    for form in (transformed, transformed.apply, hk.without_apply_rng(transformed)):
        assert measured((form, (params, state))) == pytest.approx(expected, rel=1e-6)


def test_complex_weights_are_pairs_of_real_ones():
    filters = jnp.asarray(rng.normal(size=2) + 1j * rng.normal(size=2))
    tree = {"filters": filters, "last": jnp.asarray(rng.normal(size=(3, 2)))}
    apply = lambda tree, x: (
        jnp.tanh(jnp.fft.irfft(jnp.fft.rfft(x) * tree["filters"], 3)) @ tree["last"]
    )
    pairs = {"re": filters.real, "im": filters.imag, "last": tree["last"]}
    outputs = lambda w: apply({"filters": w["re"] + 1j * w["im"], "last": w["last"]}, X)
    assert measured((apply, tree)) == pytest.approx(right(pairs, outputs), rel=1e-6)
    attached = subject((apply, tree), loss, DATA)
    assert [weight.name for weight in attached.weights] == [
        "filters.real",
        "filters.imag",
        "last",
    ]
    np.testing.assert_allclose(attached.flatten(tree), attached.values())


def test_numbers_of_python_are_weights_and_keys_are_not():
    tree = {
        "w": jnp.asarray(rng.normal(size=(3, 2))),
        "scale": 0.5,
        "shift": jnp.arange(2),
        "key": jax.random.key(0),
    }
    apply = lambda tree, x: jnp.tanh(x @ tree["w"] * tree["scale"]) + tree["shift"]
    params = {"w": tree["w"], "scale": 0.5}
    assert measured((apply, tree)) == pytest.approx(
        right(params, lambda params: apply({**tree, **params}, X)), rel=1e-6
    )
