"""Curvature in a report: against dense matrices, in Adam's coordinates, and errors that are true."""

from types import SimpleNamespace

import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest
from jax.flatten_util import ravel_pytree

from steepest.core.errors import UserError
from steepest.measurement import Report, errors, measure
from steepest.measurement._curvature import GROUPS, _over_examples
from steepest.measurement._optimizer import Optimizer, optimizer_of
from steepest.measurement.adapters import block, forms_by_group, subject
from tests.extras import need
from tests.measurement.adapters import models
from tests.measurement.test_measure import linear, regression, squared


@pytest.fixture(scope="module")
def dense():
    """The Hessian of the small network, by differentiating twice."""
    (network, params) = models.of_jax()
    (x, y) = models.data(40)
    with jax.enable_x64(True):
        flat, back = ravel_pytree(jax.tree.map(jnp.asarray, params))
        risk = lambda w: models.cross_entropy(
            network.apply(back(w), jnp.asarray(x)), jnp.asarray(y)
        )
        return np.asarray(jax.hessian(risk)(flat))


@pytest.fixture(scope="module")
def network():
    return subject(models.of_jax(), models.cross_entropy, models.data(40))


def test_blocks_are_those_of_the_dense_hessian(dense, network):
    for each in network.weights:
        products, size = block(network, [each.name])
        np.testing.assert_allclose(
            products(np.eye(size)), dense[each.place, each.place], atol=1e-12
        )
    first = network.weights[0]
    last = network.weights[-1]
    rows = np.r_[first.place, last.place]
    products, size = block(network, [first.name, last.name])
    np.testing.assert_allclose(products(np.eye(size)[0]), dense[rows[0], rows], atol=1e-12)
    with pytest.raises(UserError, match="no weights 'nothing'"):
        block(network, ["nothing"])


def test_layers_in_a_report(dense, network):
    found = measure(network, what=["blocks", "density", "sharpness"])
    sharpest = found["largest curvature of a layer"]
    for each in network.weights:
        exact = np.linalg.eigvalsh(dense[each.place, each.place])[-1]
        assert sharpest.parts[each.name] == pytest.approx(exact, rel=1e-2)
    assert sharpest.value <= sharpest.compared == found["sharpness"].value
    heaviest = found["largest trace of a layer"]
    exact = {each.name: float(np.trace(dense[each.place, each.place])) for each in network.weights}
    assert heaviest.parts == pytest.approx(exact, abs=5 * np.linalg.norm(dense) * (2 / 30) ** 0.5)
    norm = found["Frobenius norm of the Hessian"]
    assert norm.interval[0] < np.linalg.norm(dense) < norm.interval[1]


@pytest.mark.parametrize("seed", range(3))
def test_largest_curvatures_lie_between_residual_and_bound(dense, network, seed):
    report = measure(network, what=["sharpness", "blocks"], seed=seed, lr=0.1)
    blocks = [np.linalg.eigvalsh(dense[w.place, w.place])[-1] for w in network.weights]
    for name, exact in (
        ("sharpness", np.linalg.eigvalsh(dense)[-1]),
        ("largest curvature of a layer", max(blocks)),
    ):
        reading = report[name]
        rounding = 1e-9 * exact
        assert reading.interval[0] - rounding <= exact <= reading.interval[1] + rounding
        assert reading.missed == 1e-3 and reading.source_of_error == "residual"
        assert "larger with a probability below 0.1 %" in errors(reading)[0]
    assert report["largest trace of a layer"].missed is None
    record = report.to_json()
    assert Report.from_json(record) == report
    for entry in record["quantities"]:  # of an earlier version
        del entry["missed"]
    old = Report.from_json(record)["sharpness"]
    assert old.missed is None and "probability" not in errors(old)[0]


def lies_in(exact, reading, rounding=1e-9):
    """Whether a number lies in the interval of a reading, but for rounding."""
    low, high = reading.interval
    return low - rounding * abs(exact) <= exact <= high + rounding * abs(exact)


def is_lowest_of(values, report, rounding=1e-9):
    """Whether a report has the smallest of these eigenvalues, and its size over the largest."""
    lowest, ratio = report.readings("lowest-curvature")
    spread = values[-1] - values[0]
    assert abs(lowest.value - values[0]) <= 1e-3 * spread
    assert lies_in(values[0], lowest, rounding)
    assert ratio.value == pytest.approx(abs(lowest.value) / values[-1], rel=1e-3)
    assert lies_in(abs(values[0]) / values[-1], ratio, rounding)
    assert (lowest.missed, ratio.missed) == (1e-3, 2e-3)
    assert lowest.source_of_error == ratio.source_of_error == "residual"


@pytest.mark.parametrize("seed", range(3))
def test_the_lowest_curvature_is_that_of_the_dense_hessian(dense, network, seed):
    values = np.linalg.eigvalsh(dense)
    assert values[0] < 0
    report = measure(network, what=["lowest-curvature"], seed=seed)
    is_lowest_of(values, report)
    assert report["lowest-curvature"].interval[1] < 0
    low, high = report["lowest-curvature"].over_examples
    assert low < report["lowest-curvature"].value < high


@pytest.mark.parametrize("kind", ["gauss-newton", "fisher"])
def test_the_lowest_curvature_of_other_matrices(network, kind):
    values = np.linalg.eigvalsh(network.products(np.eye(network.size), kind))
    is_lowest_of(values, measure(network, what=["lowest-curvature"], curvature=kind), 1e-6)


@pytest.mark.parametrize("precision", ["float32", "float64"])
def test_the_lowest_curvature_of_torch(precision):
    """Against the dense Hessian of the same weights in double precision; more weights than a Krylov space holds."""
    torch = need("torch")
    torch.manual_seed(0)
    model = torch.nn.Sequential(torch.nn.Linear(5, 20), torch.nn.Tanh(), torch.nn.Linear(20, 3))
    x = torch.randn(50, 5)
    y = torch.arange(50) % 3
    exact = model.double()
    names = dict(exact.named_parameters())
    flat = torch.cat([w.detach().ravel() for w in names.values()])

    def risk(flat):
        parts = flat.split([w.numel() for w in names.values()])
        weights = {
            name: part.view(w.shape) for part, (name, w) in zip(parts, names.items(), strict=True)
        }
        outputs = torch.func.functional_call(exact, weights, x.double())
        return torch.nn.functional.cross_entropy(outputs, y)

    values = np.linalg.eigvalsh(torch.autograd.functional.hessian(risk, flat).numpy())
    cast = getattr(torch, precision)
    data = (x.to(cast), y)
    report = measure(
        model.to(cast), torch.nn.functional.cross_entropy, data, what=["lowest-curvature"]
    )
    is_lowest_of(values, report, 1e-5)


@pytest.mark.parametrize("n", [20, 4])
def test_a_convex_loss_curves_nowhere_downwards(n):
    """Of six weights, four examples leave two directions flat."""
    x, y = regression(n)
    values = np.linalg.eigvalsh(x.T @ x / n)
    report = measure((linear, np.zeros(6)), squared, (x, y), what=["lowest-curvature"])
    lowest, ratio = report.readings("lowest-curvature")
    assert lowest.value >= -1e-12 * values[-1]
    assert lowest.value == pytest.approx(values[0], abs=1e-12 * values[-1])
    assert ratio.value == pytest.approx(max(values[0], 0) / values[-1], abs=1e-12)
    assert lowest.interval[0] > 0 if n == 20 else lowest.interval[0] <= 0 <= lowest.interval[1]


def test_the_lowest_curvature_of_no_curvature_and_of_a_hill():
    flat = measure(
        (lambda w, x: x @ w * 0, np.zeros(6)), squared, regression(), what=["lowest-curvature"]
    )
    lowest, ratio = flat.readings("lowest-curvature")
    assert lowest.value == 0 and np.isnan(ratio.value)
    x, y = regression()
    hill = lambda outputs, targets: -squared(outputs, targets)
    lowest, ratio = measure(
        (linear, np.zeros(6)), hill, (x, y), what=["lowest-curvature"]
    ).readings("lowest-curvature")
    assert lowest.value == pytest.approx(-np.linalg.eigvalsh(x.T @ x / len(x))[-1])
    assert np.isnan(ratio.value)


def test_the_lowest_curvature_is_measured_where_all_is_asked_for():
    """And among the defaults, which take seconds, it is not."""
    asked = []
    measure((linear, np.zeros(6)), squared, regression(), thorough=True, watch=asked.append)
    assert "lowest-curvature" in asked
    asked.clear()
    measure((linear, np.zeros(6)), squared, regression(), watch=asked.append)
    assert "lowest-curvature" not in asked


@pytest.mark.parametrize("micro_batch", [7, 1024])
def test_groups_of_examples_add_up(dense, micro_batch):
    small = subject(models.of_jax(), models.cross_entropy, models.data(40), micro_batch=micro_batch)
    vectors = np.random.default_rng(0).standard_normal((3, small.size))
    forms, shares = forms_by_group(small, vectors, 6, np.random.default_rng(1))
    assert len(forms) >= 6 and shares.sum() == pytest.approx(1)
    np.testing.assert_allclose(
        shares @ forms, np.einsum("kp,pq,kq->k", vectors, dense, vectors), rtol=1e-12
    )


def test_intervals_over_examples_cover_the_population():
    """Of 400 data sets the intervals contain the curvature of the distribution: H = E[x xᵀ] = diag(9, 1, 1)."""
    rng = np.random.default_rng(0)
    n = 200
    covered = np.zeros(2)
    for _ in range(400):
        x = rng.standard_normal((n, 3)) * np.array([3.0, 1, 1])
        values, vectors = np.linalg.eigh(x.T @ x / n)
        forms = ((x @ vectors[:, -1:]) ** 2).reshape(GROUPS, -1, 1).mean(1)[:, 0]
        low, high = _over_examples(values[-1], forms, np.full(GROUPS, 1 / GROUPS))
        covered[0] += low <= 9 <= high
        traces = (x**2).sum(1).reshape(GROUPS, -1).mean(1)
        low, high = _over_examples(traces.mean(), traces, np.full(GROUPS, 1 / GROUPS))
        covered[1] += low <= 11 <= high
    assert (covered / 400 >= 0.90).all() and (covered / 400 <= 0.99).all()


def test_one_example_has_no_error_over_examples():
    x, y = regression()
    found = measure((linear, np.zeros(6)), squared, (x[:1], y[:1]), what=["sharpness"])["sharpness"]
    assert found.over_examples == (-np.inf, np.inf)


def test_the_density_counts_flat_and_descending_directions(dense, network):
    found = measure(network, what=["density"])
    values = np.linalg.eigvalsh(dense)
    edge = 0.01 * np.abs(values).max()
    flat = found["share of flat directions"]
    down = found["share of descending directions"]
    assert flat.interval[0] - 0.02 <= (np.abs(values) <= edge).mean() <= flat.interval[1] + 0.02
    assert down.interval[0] - 0.02 <= (values < -edge).mean() <= down.interval[1] + 0.02
    x = flat.panel.curves[0].x
    height = flat.panel.curves[0].y
    assert np.trapezoid(height, x) == pytest.approx(1, abs=0.02)
    zero = measure((lambda w, x: x @ w * 0, np.zeros(6)), squared, regression(), what=["density"])
    assert zero["share of flat directions"].value == 1


@pytest.mark.parametrize("kind", ["gauss-newton", "fisher"])
def test_other_curvatures(network, kind):
    found = measure(network, what=["sharpness", "spectrum"], curvature=kind)
    exact = network.products(np.eye(network.size), kind)
    top = found.quantities[0]
    total = found.quantities[1]
    assert top.value == pytest.approx(np.linalg.eigvalsh(exact)[-1], rel=1e-6)
    assert total.interval[0] <= np.trace(exact) <= total.interval[1]
    assert {"gauss-newton": "Gauss–Newton", "fisher": "Fisher"}[kind] in top.name


def test_adam_is_measured_in_its_own_coordinates(dense):
    torch = need("torch")
    model = models.of_torch()
    (x, y) = models.data(40)
    x = torch.as_tensor(x)
    y = torch.as_tensor(y)
    adam = torch.optim.Adam(model.parameters(), lr=0.0, betas=(0.9, 0.99), eps=1e-3)
    for rows in torch.arange(40).split(13):
        adam.zero_grad()
        torch.nn.functional.cross_entropy(model(x[rows]), y[rows]).backward()
        adam.step()
    model.zero_grad()
    adam.param_groups[0]["lr"] = 0.02
    report = measure(model, torch.nn.CrossEntropyLoss(), (x, y), what=["sharpness"], optimizer=adam)
    found = report["preconditioned sharpness"]
    second = np.concatenate(
        [adam.state[p]["exp_avg_sq"].numpy().ravel() for p in model.parameters()]
    )
    root = (np.sqrt(second / (1 - 0.99**4)) + 1e-3) ** -0.5  # four batches
    order = models.in_torch_order(np.arange(len(root)))
    exact = np.linalg.eigvalsh(root[:, None] * dense[np.ix_(order, order)] * root)[-1]
    assert found.value == pytest.approx(exact, rel=1e-6)
    assert found.compared == pytest.approx(38 / 0.02) and found.theory == "38/η"
    assert report["sharpness"].compared is None  # plain descent's limit is not Adam's


def test_adam_of_optax_agrees():
    network, params = models.of_jax()
    x, y = models.data(40)
    with jax.enable_x64(True):
        adam = optax.adam(0.02)
        gradient = jax.grad(lambda p: models.cross_entropy(network.apply(p, x), y))(params)
        _, state = adam.update(gradient, adam.init(params))
    small = subject((network, params), models.cross_entropy, (x, y))
    found = optimizer_of((adam, state), small, 0.02, 0.0)
    np.testing.assert_allclose(
        found.scale, np.abs(small.gradient()) + 1e-8, rtol=1e-3
    )  # after one step v̂ = g²
    assert found.limit == pytest.approx(38 / 0.02)


@pytest.mark.parametrize("lr", [1.9, 2.1])
def test_the_limit_of_averaged_momentum_is_where_a_quadratic_diverges(lr):
    """m ← βm + (1−β)g, w ← w − ηm on curvature 1: stable below η = 2(1+β)/(1−β)."""
    beta = 0.5
    eta = lr * (1 + 0.5) / (1 - 0.5)
    limit = Optimizer(eta, beta, np.ones(1)).limit
    w = 1.0
    m = 0.0
    for _ in range(400):
        m = beta * m + (1 - beta) * w
        w -= eta * m
    assert (abs(w) < 1e-3) == (limit > 1) and (abs(w) > 1e3) == (limit < 1)


def test_optimizers_without_a_limit_say_why():
    torch = need("torch")
    model = models.of_torch()
    x, y = models.data()
    small = subject(model, torch.nn.CrossEntropyLoss(), (torch.as_tensor(x), torch.as_tensor(y)))
    weights = list(model.parameters())
    sgd = optimizer_of(torch.optim.SGD(weights, 0.1, momentum=0.9), small, None, 0.0)
    assert (sgd.lr, sgd.momentum, sgd.limit) == (0.1, 0.9, pytest.approx(38))
    several = [{"params": weights[:1]}, {"params": weights[1:], "momentum": 0.5}]
    of_another = torch.optim.Adam(models.of_torch().parameters())
    for weight in of_another.param_groups[0]["params"]:
        weight.grad = torch.ones_like(weight)
    of_another.step()
    for given, sentence in (
        (torch.optim.Adam(weights), "has not taken a step"),
        (of_another, "moments of another model's weights"),
        (torch.optim.RMSprop(weights), "RMSprop has not taken a step"),
        (torch.optim.Rprop(weights), "no stable limit is known here for Rprop"),
        (torch.optim.SGD(several, lr=0.1, momentum=0.9), "several momenta"),
        (torch.optim.SGD(weights, lr=0.0), "the step size is 0"),
        (optax.adam(0.1).init({"w": jnp.zeros(2)}), "has not taken a step"),
        (optax.sgd(0.1).init({"w": jnp.zeros(2)}), "does not tell its rule"),
    ):
        optimizer = optimizer_of(given, small, None, 0.0)
        assert sentence in optimizer.unknown and optimizer.limit is None
        report = measure(small, what=["risk", "sharpness"], optimizer=given)
        assert report["sharpness"].compared is None and report["sharpness"].value > 0
        assert sentence in report["sharpness"].interpretation
        assert any(sentence in finding.text for finding in report.findings)
    with pytest.raises(UserError, match="got str"):
        optimizer_of("adam", small, None, 0.0)
    with pytest.raises(UserError, match="no curvature 'hesian'"):
        measure(small, curvature="hesian")


@pytest.mark.parametrize("lr", [0.98, 1.02])
@pytest.mark.parametrize("options", [{"nesterov": True}, {"dampening": 0.3}, {}])
def test_the_limit_of_momentum_of_torch_is_where_a_quadratic_diverges(lr, options):
    torch = need("torch")
    w = torch.nn.Parameter(torch.ones(1, dtype=torch.float64))
    curvature = 3.0
    limit = optimizer_of(
        torch.optim.SGD([w], 1.0, momentum=0.8, **options), SimpleNamespace(size=1), None, 0.0
    ).limit
    sgd = torch.optim.SGD([w], lr * limit / curvature, momentum=0.8, **options)
    for _ in range(2000):
        sgd.zero_grad()
        (curvature * w**2 / 2).sum().backward()
        sgd.step()
    assert (abs(w.item()) < 1e-2) == (lr < 1) and (abs(w.item()) > 1e2) == (lr > 1)


def test_groups_with_several_steps_have_one_limit_together():
    """λ of D^{1/2} H D^{1/2} with the steps of the groups, of a dense Hessian; a frozen group does not count."""
    torch = need("torch")
    model = models.of_torch()
    x, y = models.data(40)
    loss = torch.nn.CrossEntropyLoss()
    data = (torch.as_tensor(x), torch.as_tensor(y))
    small = subject(model, loss, data)
    weights = list(model.parameters())
    steps = [0.3] * 2 + [0.05] * 2 + [0.0] * 2
    groups = [{"params": [w], "lr": step} for w, step in zip(weights, steps, strict=True)]
    report = measure(
        model,
        loss,
        data,
        what=["sharpness"],
        optimizer=torch.optim.SGD(groups, lr=0.1, momentum=0.5),
    )
    hessian = small.products(np.eye(small.size))
    root = np.sqrt(np.repeat(steps, [w.numel() for w in weights]))
    exact = np.linalg.eigvalsh(root[:, None] * hessian * root)[-1]
    together = report["preconditioned sharpness"]
    assert together.value * 0.3 == pytest.approx(exact, rel=1e-6)
    assert together.compared == pytest.approx(3.0 / 0.3)
    assert report["sharpness"].compared is None


def test_weights_that_never_had_a_gradient_do_not_count_in_adams_metric():
    torch = need("torch")
    model = models.of_torch()
    model.unused = torch.nn.Linear(2, 2).double()
    model.forward = lambda x: torch.nn.Sequential(*list(model)[:5])(x)
    x, y = models.data(40)
    data = (torch.as_tensor(x), torch.as_tensor(y))
    loss = torch.nn.CrossEntropyLoss()
    adam = torch.optim.Adam(model.parameters(), 0.01)
    loss(model(data[0]), data[1]).backward()
    adam.step()
    report = measure(model, loss, data, what=["sharpness"], optimizer=adam)
    assert report["preconditioned sharpness"].value > 0


def test_a_schedule_that_has_ended_is_compared_by_its_first_step():
    torch = need("torch")
    model = models.of_torch()
    x, y = models.data()
    sgd = torch.optim.SGD(model.parameters(), 0.2)
    cosine = torch.optim.lr_scheduler.CosineAnnealingLR(sgd, 4)
    for _ in range(4):
        sgd.step()
        cosine.step()
    assert sgd.param_groups[0]["lr"] == 0
    data = (torch.as_tensor(x), torch.as_tensor(y))
    report = measure(model, torch.nn.CrossEntropyLoss(), data, what=["sharpness"], optimizer=sgd)
    assert report["sharpness"].compared == pytest.approx(10)
    assert "the first step size of your schedule" in report["sharpness"].interpretation


def test_settings_that_optax_keeps_are_read():
    network, params = models.of_jax()
    x, y = models.data(40)
    with jax.enable_x64(True):
        adam = optax.inject_hyperparams(optax.adam)(learning_rate=0.02, b1=0.8)
        gradient = jax.grad(lambda p: models.cross_entropy(network.apply(p, x), y))(params)
        _, state = adam.update(gradient, adam.init(params))
    small = subject((network, params), models.cross_entropy, (x, y))
    optimizer = optimizer_of((adam, state), small, None, 0.0)
    assert optimizer.limit == pytest.approx(2 * 1.8 / (0.2 * 0.02), rel=1e-3)


def test_probes_of_a_share_have_a_true_error():
    """Coverage of the share of flat directions over 200 repetitions, on a spectrum with a gap at its edge."""
    from steepest.measurement._context import Context
    from steepest.measurement._curvature import measure_density

    values = np.r_[np.linspace(1, 2, 12), np.zeros(28)]
    diagonal = SimpleNamespace(size=40, products=lambda v, kind: v * values)
    hits = 0
    for seed in range(200):
        low, high = measure_density(Context(diagonal, np.random.default_rng(seed)))[0].interval
        hits += low <= 0.7 <= high
    assert 0.90 <= hits / 200 <= 0.99


@pytest.mark.parametrize(("seed", "size"), [(0, 1.0), (0, 1e3), (1, 1e4), (3, 1e3)])
def test_the_interval_counts_the_rounding_of_single_precision(seed, size):
    """Saturated units leave the last layer's weights, of large inputs: residuals of 10⁻⁷ hide what rounding moves."""
    rng = np.random.default_rng(seed)
    x = (size * (1 + rng.standard_normal((60, 3)))).astype(np.float32)
    y = rng.standard_normal((60, 1)).astype(np.float32)
    params = {
        "a": rng.standard_normal((3, 4)).astype(np.float32),
        "b": rng.standard_normal((4, 1)).astype(np.float32),
    }
    model = lambda params, x: jnp.tanh(x @ params["a"]) @ params["b"]
    square = lambda out, y: ((out - y) ** 2).mean()
    flat, back = ravel_pytree({name: leaf.astype(float) for name, leaf in params.items()})
    hessian = jax.hessian(lambda w: square(model(back(w), x.astype(float)), y.astype(float)))(flat)
    smallest, *_, largest = np.linalg.eigvalsh(hessian)
    report = measure((model, params), square, (x, y), what=["sharpness", "lowest-curvature"])
    low, high = report["sharpness"].interval
    assert low <= largest <= high
    assert high - low < 0.02 * largest
    low, high = report["lowest-curvature"].interval
    assert low <= smallest <= high
    assert high - low < 0.02 * largest
