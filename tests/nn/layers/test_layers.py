"""Finite networks of layers: against XLA's convolution, fully connected networks, and hand-made sums."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import scipy.sparse

from steepest.core.errors import UserError
from steepest.nn.layers import (
    add,
    aggregate,
    attention,
    concatenate,
    conv,
    dense,
    flatten,
    global_pool,
    identity,
    layer_norm,
    multiply,
    network,
    pool,
    serial,
)
from steepest.nn.networks import mlp

SHAPE = (7, 6, 3)
IMAGES = np.random.default_rng(0).normal(size=(2, *SHAPE))


@pytest.mark.parametrize("padding", ["zero", "none", "circular"])
@pytest.mark.parametrize(("window", "stride"), [(3, 1), (3, 2), (2, 1), ((4, 1), (3, 2))])
def test_convolutions_are_those_of_xla(window, stride, padding):
    net = network(conv(5, window, stride=stride, padding=padding), shape=SHAPE, c_b=0.5)
    params = net.init(jax.random.key(0))
    ((layer),) = params
    size, strides = (v if isinstance(v, tuple) else (v, v) for v in (window, stride))
    x = jnp.asarray(IMAGES)
    if padding == "circular":
        outputs = [-(-n // r) for n, r in zip(SHAPE, strides, strict=False)]
        missing = [
            max((out - 1) * r + w - n, 0)
            for n, w, r, out in zip(SHAPE, size, strides, outputs, strict=False)
        ]
        sides = [(m // 2, m - m // 2) for m in missing]
        x = jnp.pad(x, [(0, 0), *sides, (0, 0)], mode="wrap")
    kind = "SAME" if padding == "zero" else "VALID"
    expected = jax.lax.conv_general_dilated(
        x, layer["w"], strides, kind, dimension_numbers=("NHWC", "OIHW", "NHWC")
    )
    np.testing.assert_allclose(net.apply(params, IMAGES), expected + layer["b"], atol=2e-5)
    assert net.output == expected.shape[1:]


@pytest.mark.parametrize("padding", ["zero", "none"])
@pytest.mark.parametrize(("window", "stride"), [(3, 1), (3, 2), (2, 3), ((4, 1), (3, 2))])
def test_transposed_convolutions_are_those_of_xla(window, stride, padding):
    net = network(conv(5, window, stride=stride, padding=padding, transposed=True), shape=SHAPE)
    params = net.init(jax.random.key(0))
    ((layer),) = params
    strides = stride if isinstance(stride, tuple) else (stride, stride)
    kind = "SAME" if padding == "zero" else "VALID"
    expected = jax.lax.conv_transpose(
        jnp.asarray(IMAGES),
        layer["w"],
        strides,
        kind,
        dimension_numbers=("NHWC", "OIHW", "NHWC"),
    )
    np.testing.assert_allclose(net.apply(params, IMAGES), expected + layer["b"], atol=2e-5)
    assert net.output == expected.shape[1:]


def test_a_transposed_convolution_with_filters_of_ones_own_is_refused():
    with pytest.raises(UserError, match="one filter"):
        conv(3, transposed=True, shared=False)


@pytest.mark.parametrize("parameterized", ["standard", "ntk", "mean-field", "mup"])
def test_dense_layers_are_a_fully_connected_network(parameterized):
    options = {"parameterized": parameterized, "c_w": 1.7, "c_b": 0.2}
    ours = network(dense(8), "tanh", dense(9), "tanh", dense(1), shape=(3,), **options)
    theirs = mlp((3, 8, 9, 1), "tanh", **options)
    params = theirs.init(jax.random.key(0))
    x = IMAGES[0, 0]
    same = (params[0], {}, params[1], {}, params[2])
    np.testing.assert_allclose(ours.apply(same, x), theirs.apply(params, x), rtol=1e-5)
    drawn = ours.init(jax.random.key(1))
    for mine, given in zip((drawn[0], drawn[2], drawn[4]), params, strict=True):
        assert mine["w"].shape == given["w"].shape
    # the law of the first weights: their deviation, over many draws
    many = jax.vmap(ours.init)(jax.random.split(jax.random.key(2), 400))
    given = jax.vmap(theirs.init)(jax.random.split(jax.random.key(3), 400))
    for mine, other in zip((many[0], many[2], many[4]), given, strict=True):
        assert float(mine["w"].std() / other["w"].std()) == pytest.approx(1, abs=0.06)


def test_pools_flatten_and_sums_by_hand():
    x = jnp.asarray(IMAGES)
    run = lambda *layers: network(*layers, shape=SHAPE).apply(
        network(*layers, shape=SHAPE).init(jax.random.key(0)), x
    )
    blocks = x[:, :6].reshape(2, 3, 2, 3, 2, 3).mean((2, 4))
    np.testing.assert_allclose(run(pool(2)), blocks, rtol=1e-5, atol=1e-6)
    np.testing.assert_allclose(
        run(pool(2, 1))[:, 1, 2], x[:, 1:3, 2:4].mean((1, 2)), rtol=1e-5, atol=1e-6
    )
    np.testing.assert_allclose(run(global_pool()), x.mean((1, 2)), rtol=1e-4, atol=1e-6)
    np.testing.assert_array_equal(run(flatten()), x.reshape(2, -1))
    doubled = run(add(identity, "relu", weights=(2.0, -1.0)))
    np.testing.assert_allclose(doubled, 2 * x - jnp.maximum(x, 0), rtol=1e-5, atol=1e-6)
    normal = run(layer_norm())
    np.testing.assert_allclose(normal.mean(-1), 0, atol=1e-5)
    np.testing.assert_allclose((normal**2).mean(-1), 1, rtol=1e-4)


def test_branches_and_graphs_by_hand():
    x = jnp.asarray(IMAGES)
    run = lambda *layers: network(*layers, shape=SHAPE).apply(
        network(*layers, shape=SHAPE).init(jax.random.key(0)), x
    )
    both = run(concatenate(identity, "relu"))
    np.testing.assert_array_equal(both, jnp.concatenate([x, jnp.maximum(x, 0)], -1))
    np.testing.assert_array_equal(
        run(multiply(identity, "relu", identity)), x * jnp.maximum(x, 0) * x
    )
    walk = np.roll(np.eye(42), 1, 1)  # each position takes what stands at the next
    np.testing.assert_array_equal(
        run(aggregate(scipy.sparse.csr_array(walk))).reshape(2, 42, 3),
        jnp.roll(x.reshape(2, 42, 3), -1, 1),
    )
    np.testing.assert_allclose(
        run(aggregate(np.full((5, 42), 1 / 42)))[:, 3], x.mean((1, 2)), atol=1e-6
    )


@pytest.mark.parametrize("padding", ["zero", "none", "circular"])
def test_own_weights_at_each_position(padding):
    """With equal weights everywhere they are a convolution; moved at one position, its output alone moves."""
    options = {"stride": 2, "padding": padding}
    shared = network(conv(5, 3, **options), shape=SHAPE, c_b=0.5)
    local = network(conv(5, 3, **options, shared=False), shape=SHAPE, c_b=0.5)
    (filters,) = shared.init(jax.random.key(0))
    (own,) = local.init(jax.random.key(0))
    positions = own["w"].shape[:2]
    assert own["b"].shape == (*positions, 5)
    assert abs(float(own["w"].std() / filters["w"].std()) - 1) < 0.2
    spread = jax.tree.map(lambda w: jnp.broadcast_to(w, (*positions, *w.shape)), filters)
    y = local.apply((spread,), IMAGES)
    np.testing.assert_allclose(y, shared.apply((filters,), IMAGES), rtol=1e-5, atol=1e-6)
    moved = {"w": spread["w"].at[1, 0].add(1.0), "b": spread["b"]}
    change = np.abs(local.apply((moved,), IMAGES) - y).max((0, 3))
    assert change[1, 0] > 0.1 and np.count_nonzero(change) == 1


@pytest.mark.parametrize("join", [add, concatenate, multiply])
def test_single_precision_stays_single(join):
    net = network(conv(4), join(identity, conv(4)), global_pool(), dense(2), shape=SHAPE)
    params = jax.tree.map(lambda w: w.astype(jnp.float32), net.init(jax.random.key(0)))
    assert net.apply(params, jnp.asarray(IMAGES, jnp.float32)).dtype == jnp.float32


def test_inputs_may_have_any_axes_in_front():
    net = network(conv(4), "relu", global_pool(), dense(1), shape=SHAPE)
    params = net.init(jax.random.key(0))
    y = net.apply(params, IMAGES)
    assert y.shape == (2,)
    np.testing.assert_allclose(net.apply(params, IMAGES[0]), y[0], rtol=1e-5)
    np.testing.assert_allclose(net.apply(params, IMAGES[:, None])[:, 0], y, rtol=1e-5)


def test_a_network_can_be_trained_and_drawn_many_times():
    net = network(conv(4), "relu", flatten(), dense(1), shape=SHAPE, parameterized="ntk")
    many = jax.vmap(net.init)(jax.random.split(jax.random.key(0), 3))
    risk = lambda params: jnp.mean((net.apply(params, IMAGES) - 1.0) ** 2)
    gradients = jax.jit(jax.vmap(jax.grad(risk)))(many)
    moved = jax.tree.map(lambda w, g: w - 0.1 * g, many, gradients)
    assert (jax.vmap(risk)(moved) < jax.vmap(risk)(many)).all()


def test_equal_descriptions_are_equal():
    assert serial(conv(3), "relu") == serial(conv(3), "relu")
    assert hash(serial(conv(3), "relu")) == hash(serial(conv(3), "relu"))
    one, two = (
        network(conv(3), "relu", last(), dense(1), shape=SHAPE, parameterized="ntk").limit()
        for last in (flatten, global_pool)
    )
    assert one != two  # nodes of two kinds with equal entries are not equal


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: network(flatten(), conv(2), shape=SHAPE), r"conv\(2\) needs positions"),
        (lambda: network(dense(2), pool(2), shape=(4,)), "pool needs positions"),
        (lambda: network(conv(2, 9, padding="none"), shape=SHAPE), "9 × 9 does not fit into 7 × 6"),
        (lambda: network(conv(2, padding="same"), shape=SHAPE), "no padding 'same'"),
        (lambda: network(conv(2, (3, 3, 3)), shape=SHAPE), "one for each of 2 dimensions"),
        (lambda: network(conv(2, 0), shape=SHAPE), "window must be"),
        (lambda: conv(0), "got 0"),
        (lambda: network("thanh", shape=SHAPE), "did you mean 'tanh'"),
        (lambda: network(flatten, shape=SHAPE), r"call it, as in flatten\(\)"),
        (lambda: network(shape=SHAPE), "at least one layer"),
        (lambda: network(dense(1), shape=()), "space first and channels last"),
        (lambda: network(dense(1), shape=3), "space first and channels last"),
        (lambda: network(dense(1), shape=(None, 3)), "space first and channels last"),
        (lambda: network(dense(1), shape=(4,), c_w=-1.0), "c_w is a variance"),
        (lambda: dense(2, c_b=-0.1), "c_b is a variance"),
        (lambda: conv(2, c_w=-0.1), "c_w is a variance"),
        (lambda: attention(2, heads=1, key=2, c_w=-1.0), "c_w is a variance"),
        (lambda: add(identity), "two or more branches"),
        (lambda: multiply("relu"), "multiply needs two or more branches"),
        (lambda: add(identity, "relu", weights=(1.0,)), "one weight for each of 2 branches, got 1"),
        (
            lambda: network(concatenate(conv(2), pool(2)), shape=SHAPE),
            r"the same positions, got shapes \(7, 6, 2\) and \(3, 3, 3\)",
        ),
        (lambda: network(aggregate(np.eye(3)), shape=SHAPE), "each of 42 positions, got 3 × 3"),
        (lambda: network(aggregate(np.eye(3)), shape=(4,)), "aggregate needs positions"),
        (lambda: aggregate(np.ones(3)), r"matrix of finite numbers.*got shape \(3,\)"),
        (
            lambda: network(add(identity, conv(4)), shape=SHAPE),
            r"one shape, got \(7, 6, 3\) and \(7, 6, 4\)",
        ),
        (lambda: network(conv(2), shape=SHAPE, parameterized="ntc"), "no parameterization 'ntc'"),
    ],
)
def test_bad_input_gets_a_sentence(make, message):
    with pytest.raises(UserError, match=message):
        make()


def test_inputs_of_another_shape_are_refused():
    net = network(conv(2), shape=SHAPE)
    with pytest.raises(UserError, match=r"reads inputs of shape \(7, 6, 3\)"):
        net.apply(net.init(jax.random.key(0)), jnp.ones((2, 6, 7, 3)))


@pytest.mark.parametrize("tied", [True, False])
def test_attention_by_loops_over_heads_and_positions(tied):
    net = network(
        attention(5, heads=3, key=4, tied=tied, sharpness=0.8),
        shape=SHAPE,
        parameterized="ntk",
        c_w=1.3,
        c_b=0.2,
    )
    params = net.init(jax.random.key(0))
    ((layer),) = params
    c = SHAPE[-1]
    x = IMAGES[0].reshape(-1, c)
    linear = lambda name, z, fan_in: np.sqrt(1.3 / fan_in) * z @ np.asarray(layer[name]["w"]).T
    query = linear("query", x, c)
    key = query if tied else linear("key", x, c)
    value = linear("value", x, c) + np.asarray(layer["value"]["b"])
    heads = []
    for h in range(3):
        part = slice(4 * h, 4 * h + 4)
        rows = []
        for q in query[:, part]:
            weight = np.exp(0.8 / 4 * key[:, part] @ q)
            rows.append(weight / weight.sum() @ value[:, part])
        heads.append(rows)
    mixed = np.concatenate(np.array(heads), axis=-1)
    expected = linear("output", mixed, 12) + np.asarray(layer["output"]["b"])
    np.testing.assert_allclose(net.apply(params, IMAGES[0]).reshape(-1, 5), expected, atol=2e-5)
    assert ("key" in layer) is not tied


@pytest.mark.parametrize("parameterized", ["standard", "ntk"])
def test_a_network_without_weights_has_the_limit_of_very_small_ones(parameterized):
    layers = (dense(8), "relu", dense(1))
    none = network(*layers, shape=(3,), c_w=0.0, c_b=1.0, parameterized=parameterized).limit()
    small = network(*layers, shape=(3,), c_w=1e-12, c_b=1.0, parameterized=parameterized).limit()
    for zero, tiny in zip(none.nodes, small.nodes, strict=True):
        if hasattr(zero, "t_w"):
            assert zero.t_w == pytest.approx(tiny.t_w, rel=1e-9, abs=1e-11)


@pytest.mark.parametrize("parameterized", ["standard", "ntk"])
def test_an_mlp_without_weights_has_the_limit_of_very_small_ones(parameterized):
    none, small = (
        mlp((3, 8, 1), c_w=c_w, c_b=1.0, parameterized=parameterized).limit()
        for c_w in (0.0, 1e-12)
    )
    for zero, tiny in zip(none.layers, small.layers, strict=True):
        assert zero.t_w == pytest.approx(tiny.t_w, rel=1e-9, abs=1e-11)
