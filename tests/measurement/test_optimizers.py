"""What optimizers of torch and of optax divide by, and where they are unstable, against their own steps."""

import copy

import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest

from steepest.core.errors import UserError
from steepest.measurement import measure
from steepest.measurement._clipping import with_clipping
from steepest.measurement._optimizer import Rule, optimizer_of
from steepest.measurement.adapters import subject
from tests.extras import need

RNG = np.random.default_rng(0)
X = RNG.normal(size=(30, 3)) * [1.0, 2.0, 3.0]
Y = RNG.normal(size=30)
HESSIAN = X.T @ X / 30
SQUARED = lambda outputs, targets: ((outputs - targets) ** 2).mean() / 2
LR = 1e-2


def top(optimizer):
    scale = np.ones(3) if optimizer.scale is None else np.asarray(optimizer.scale, float)
    return np.linalg.eigvalsh(HESSIAN / np.sqrt(np.outer(scale, scale)))[-1]


# ------------------------------------------------------------------------------------------------ torch


def of_torch(make, steps=400):
    """A linear model, and an optimizer after steps along random gradients."""
    torch = need("torch")
    model = torch.nn.Linear(3, 1, bias=False).double()
    optimizer = make([model.weight])
    for _ in range(steps):
        model.weight.grad = torch.as_tensor(RNG.normal(size=(1, 3)) * [1.0, 3.0, 0.3])
        optimizer.step()
    data = (torch.as_tensor(X), torch.as_tensor(Y)[:, None])
    return model, optimizer, subject(model, SQUARED, data, check=False)


def radius(model, optimizer, lr):
    """The spectral radius of one step as a linear map of weights and averages, by differences at rest."""
    torch = need("torch")
    hessian = torch.as_tensor(HESSIAN)
    kept = [k for k in ("exp_avg", "momentum_buffer") if k in optimizer.state[model.weight]]
    size = 3 * (1 + len(kept))

    def step(values):
        other, rule = copy.deepcopy((model, optimizer))
        parts = torch.as_tensor(values).reshape(-1, 1, 3)
        for group in rule.param_groups:
            group["lr"] = lr
        other.weight.data = parts[0].clone()
        for name, part in zip(kept, parts[1:], strict=True):
            rule.state[other.weight][name] = part.clone()
        other.weight.grad = other.weight.data @ hessian
        rule.step()
        after = [other.weight.data, *(rule.state[other.weight][name] for name in kept)]
        return torch.stack(after).reshape(-1).numpy()

    moved = [step(1e-7 * row) for row in np.eye(size)]
    jacobian = (np.array(moved) - step(np.zeros(size))).T / 1e-7
    return np.abs(np.linalg.eigvals(jacobian)).max()


RULES = {
    "adam": (Rule.ADAM, lambda o, w: o.Adam(w, LR)),
    "amsgrad": (Rule.AMSGRAD, lambda o, w: o.AdamW(w, LR, amsgrad=True, weight_decay=0.0)),
    "adamax": (Rule.ADAMAX, lambda o, w: o.Adamax(w, LR)),
    "radam": (Rule.RADAM, lambda o, w: o.RAdam(w, LR)),
    "nadam": (Rule.NADAM, lambda o, w: o.NAdam(w, LR)),
    "rmsprop": (Rule.RMSPROP, lambda o, w: o.RMSprop(w, LR, alpha=0.999)),
    "rmsprop-momentum": (Rule.RMSPROP, lambda o, w: o.RMSprop(w, LR, alpha=0.999, momentum=0.7)),
    "adagrad": (Rule.ADAGRAD, lambda o, w: o.Adagrad(w, LR, lr_decay=0.1)),
    "adadelta": (Rule.ADADELTA, lambda o, w: o.Adadelta(w, LR, rho=0.999)),
    "nesterov": (Rule.NESTEROV, lambda o, w: o.SGD(w, LR, momentum=0.6, nesterov=True)),
}


@pytest.mark.parametrize("name", RULES)
def test_the_limit_is_where_the_steps_of_torch_begin_to_grow(name):
    torch = need("torch")
    rule, make = RULES[name]
    model, optimizer, attached = of_torch(lambda weights: make(torch.optim, weights))
    read = optimizer_of(optimizer, attached, None, 0.0)
    assert read.rule == rule and not read.unknown
    largest = read.largest_step(top(read))
    assert radius(model, optimizer, 0.98 * largest) <= 1 + 1e-6
    assert radius(model, optimizer, 1.02 * largest) > 1 + 1e-3


def test_a_class_is_known_by_its_step_and_not_by_its_name():
    torch = need("torch")

    class Inherits(torch.optim.Adam):
        pass

    class Adam(torch.optim.Adam):
        def step(self, closure=None):
            return super().step(closure)

    _, optimizer, attached = of_torch(Inherits)
    assert optimizer_of(optimizer, attached, None, 0.0).limit
    for make in (
        Adam,
        torch.optim.ASGD,
        torch.optim.Rprop,
        lambda w: torch.optim.Adam(w, maximize=True),
    ):
        _, optimizer, attached = of_torch(make)
        read = optimizer_of(optimizer, attached, None, 0.0)
        assert read.unknown and read.limit is None


def test_several_optimizers_and_wrappers_of_one():
    torch = need("torch")
    model = torch.nn.Sequential(torch.nn.Linear(3, 2), torch.nn.Linear(2, 1)).double()
    parts = [list(part.parameters()) for part in model]
    data = (torch.as_tensor(X), torch.as_tensor(Y)[:, None])
    attached = subject(model, SQUARED, data, check=False)

    def stepped(*optimizers):
        for weight in model.parameters():
            weight.grad = torch.ones_like(weight)
        for optimizer in optimizers:
            optimizer.step()
        return list(optimizers)

    adams = stepped(torch.optim.Adam(parts[0], 1e-3), torch.optim.Adam(parts[1], 1e-4))
    groups = [{"params": parts[0], "lr": 1e-3}, {"params": parts[1], "lr": 1e-4}]
    (one,) = stepped(torch.optim.Adam(groups))
    read, expected = (optimizer_of(given, attached, None, 0.0) for given in (adams, one))
    np.testing.assert_allclose(read.scale, expected.scale)
    assert read.limit == expected.limit and not read.not_held
    mixed = optimizer_of(
        stepped(torch.optim.SGD(parts[0], 0.1), torch.optim.Adam(parts[1])), attached, None, 0.0
    )
    assert mixed.unknown and not mixed.not_held
    schedule = torch.optim.lr_scheduler.StepLR(one, 10)
    assert optimizer_of(schedule, attached, None, 0.0).limit == expected.limit


def test_the_step_of_rmsprop_is_not_compared_with_the_limit_of_plain_descent():
    torch = need("torch")
    model, optimizer, _ = of_torch(torch.optim.RMSprop)
    data = (torch.as_tensor(X), torch.as_tensor(Y)[:, None])
    for given in (optimizer, torch.optim.Rprop(model.parameters())):
        report = measure(model, SQUARED, data, what=["batch-noise"], optimizer=given, batch=10)
        assert report["batch-noise"].compared is None


# ------------------------------------------------------------------------------------------------ optax


def of_optax(transformation, steps=20):
    """A linear model, and the state of a transformation after steps along random gradients."""
    with jax.enable_x64(True):
        params = {"a": jnp.array([0.5, -1.0]), "b": jnp.array([2.0])}
        apply = lambda params, x: x @ jnp.concatenate([params["a"], params["b"]])
        state = transformation.init(params)
        update = jax.jit(transformation.update)
        gradients = []
        for _ in range(steps):
            row = RNG.normal(size=3) * [1.0, 3.0, 0.3]
            gradients.append(row)
            slope = {"a": jnp.asarray(row[:2]), "b": jnp.asarray(row[2:])}
            _, state = update(slope, state, params)
        attached = subject((apply, params), SQUARED, (X, Y), check=False)
    return attached, state, np.array(gradients)


def root(gradients, steps, beta=0.999):
    """√v̂ of Adam."""
    weights = (1 - beta) * beta ** np.arange(len(gradients) - 1, -1, -1)
    return np.sqrt(weights @ gradients**2 / (1 - beta**steps))


def running(gradients):
    """√v̂ of AMSGrad, the largest so far."""
    return np.max([root(gradients[:n], n) for n in range(1, len(gradients) + 1)], 0)


def largest(gradients):
    """What Adamax divides by."""
    return (0.999 ** np.arange(len(gradients) - 1, -1, -1)[:, None] * np.abs(gradients)).max(0)


TRANSFORMATIONS = {
    "adamw": (optax.adamw(LR, weight_decay=0.3), Rule.ADAM, root, 38.0),
    "amsgrad": (optax.amsgrad(LR), Rule.AMSGRAD, lambda g, n: running(g), 38.0),
    "adamax": (optax.adamax(LR), Rule.ADAMAX, lambda g, n: largest(g), 38.0),
    "nadam": (optax.nadam(LR), Rule.NADAM, root, 2 * 1.9 / (0.1 * 2.8)),
    "eps": (optax.adam(LR, eps=0.5), Rule.ADAM, lambda g, n: root(g, n) + 0.5, 38.0),
    "groups": (
        optax.partition({"a": optax.adam(LR), "b": optax.adam(LR / 4)}, {"a": "a", "b": "b"}),
        Rule.ADAM,
        lambda g, n: root(g, n) * [1, 1, 4],
        38.0,
    ),
    "schedule": (
        optax.chain(
            optax.clip_by_global_norm(1e3),
            optax.inject_hyperparams(optax.adamw)(optax.linear_schedule(0.0, 10 * LR, 200)),
        ),
        Rule.ADAM,
        root,
        38.0,
    ),
    "accumulated": (
        optax.MultiSteps(optax.adam(LR), 4),
        Rule.ADAM,
        lambda g, n: root(g.reshape(5, 4, 3).mean(1), 5),
        38.0,
    ),
    "momentum": (optax.sgd(LR, 0.6), Rule.MOMENTUM, lambda g, n: np.ones(3), 3.2),
    "nesterov": (optax.sgd(LR, 0.6, True), Rule.NESTEROV, lambda g, n: np.ones(3), 3.2 / 2.2),
}


@pytest.mark.parametrize("name", TRANSFORMATIONS)
def test_a_transformation_of_optax_is_told_by_its_updates(name):
    transformation, rule, divisor, turn = TRANSFORMATIONS[name]
    attached, state, gradients = of_optax(transformation)
    before = jax.tree.map(np.array, state)
    read = optimizer_of((transformation, state), attached, None, 0.0)
    assert (read.unknown, read.rule) == ("", rule)
    assert read.lr == pytest.approx(LR, rel=1e-3) and read.numerator == pytest.approx(turn)
    scale = np.ones(3) if read.scale is None else read.scale
    np.testing.assert_allclose(scale, divisor(gradients, len(gradients)), rtol=1e-3)
    decay = {"adamw": 0.3, "schedule": 1e-4}.get(name, 0.0)
    assert read.decay == pytest.approx(decay, rel=1e-2)
    jax.tree.map(np.testing.assert_array_equal, before, jax.tree.map(np.array, state))


@pytest.mark.parametrize(
    "transformation",
    [
        optax.lamb(LR),
        optax.lion(LR),
        optax.adabelief(LR),
        optax.novograd(LR),
        optax.partition({"a": optax.adam(LR), "b": optax.sgd(LR)}, {"a": "a", "b": "b"}),
        optax.chain(optax.adam(LR), optax.ema(0.9)),
    ],
    ids=["lamb", "lion", "adabelief", "novograd", "adam-and-sgd", "averaged"],
)
def test_of_other_rules_there_is_no_limit(transformation):
    attached, state, _ = of_optax(transformation)
    read = optimizer_of((transformation, state), attached, 0.1, 0.0)
    assert read.unknown and read.limit is None


def test_a_state_alone_tells_no_rule():
    for transformation in (optax.adam(LR), optax.adamax(LR), optax.nadam(LR), optax.lamb(LR)):
        attached, state, _ = of_optax(transformation, 2)
        assert optimizer_of(state, attached, 0.1, 0.0).limit is None


@pytest.mark.parametrize("params", [np.ones(3), {"weight": np.ones((1, 3))}, [np.ones(3)]])
def test_a_state_of_optax_of_other_weights_is_no_trouble_for_a_module(params):
    """Its moments are no state dict; what is known of the step stays."""
    torch = need("torch")
    _, _, attached = of_torch(torch.optim.SGD, 0)
    for given in (optax.adam(LR).init(params), (optax.adam(LR), optax.adam(LR).init(params))):
        read = optimizer_of(given, attached, LR, 0.0)
        assert read.limit is None and read.unknown
    with pytest.raises(UserError, match="state dict"):
        attached.flatten(3.0)


# --------------------------------------------------------------------------------------------- clipping


def trained(clip, steps=60):
    """A small network of torch under Adam, whose gradients are clipped."""
    torch = need("torch")
    torch.manual_seed(0)
    model = torch.nn.Sequential(
        torch.nn.Linear(3, 8), torch.nn.Tanh(), torch.nn.Linear(8, 1)
    ).double()
    data = (torch.as_tensor(X), 30 + 10 * torch.as_tensor(X[:, :1]))
    optimizer = torch.optim.Adam(model.parameters(), 1e-3)
    for _ in range(steps):
        optimizer.zero_grad()
        SQUARED(model(data[0]), data[1]).backward()
        clip(model.parameters())
        optimizer.step()
    attached = subject(model, SQUARED, data, check=False)
    read = optimizer_of(optimizer, attached, None, 0.0)
    return read, with_clipping(read, attached, None, 0), attached


def test_trainings_that_differ_by_clipping_have_one_limit():
    torch = need("torch")
    limits = []
    factors = []
    for norm in (1e9, 1.0, 0.03):
        read, counted, attached = trained(
            lambda weights, norm=norm: torch.nn.utils.clip_grad_norm_(weights, norm)
        )
        scale = np.asarray(counted.scale, float)
        hessian = attached.products(np.eye(attached.size))
        curvature = np.linalg.eigvalsh(hessian / np.sqrt(np.outer(scale, scale)))[-1]
        limits.append(counted.largest_step(curvature))
        factors.append(counted.passed_on)
        assert read.limit == counted.limit
        slope = np.linalg.norm(attached.gradient())
        assert factors[-1] == pytest.approx(min(1.0, norm / slope), rel=0.1)
    np.testing.assert_allclose(limits, limits[0], rtol=0.1)
    assert factors[0] == 1


def test_of_gradients_that_are_clipped_weight_by_weight_there_is_no_limit():
    torch = need("torch")
    read, counted, _ = trained(lambda weights: torch.nn.utils.clip_grad_value_(weights, 0.01))
    assert read.limit and counted.unknown and counted.limit is None
