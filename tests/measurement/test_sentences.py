"""What a report says about a network, in words: each sentence is true of a network where it could be wrong."""

import json
import pickle
import random
from itertools import pairwise

import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest

from steepest.core.errors import UserError
from steepest.measurement import Monitor, Reading, Report, _kernel, errors, measure, read_log
from steepest.measurement._class_decomposition import class_rows
from steepest.measurement._context import Context
from steepest.measurement._optimizer import Optimizer
from steepest.measurement._sample import sample
from steepest.measurement.adapters import subject
from steepest.measurement.quantities import three_levels
from steepest.site.pages import report_page
from tests.extras import need

torch = need("torch")
nn = torch.nn
parametrizations = need("torch.nn.utils.parametrizations")
RNG = np.random.default_rng(0)


def regression(n=40, d=3, seed=0):
    """A linear model with examples and the loss ½(f − y)², and its dense Hessian."""
    rng = np.random.default_rng(seed)
    x = rng.standard_normal((n, d)) * np.arange(1, d + 1)
    model = nn.Linear(d, 1, bias=False).double()
    data = torch.as_tensor(x), torch.as_tensor(rng.standard_normal((n, 1)))
    half = lambda outputs, targets: ((outputs - targets) ** 2).mean() / 2
    return model, half, data, x.T @ x / n


def test_each_error_says_what_it_is_about(tmp_path, capsys):
    from steepest.app.measure import show

    reading = Reading("sharpness", 12.56, (12.56, 12.56), "residual", over_examples=(11.0, 14.0))
    probes = Reading("trace", 3.0, (2.0, 4.0), "probes")
    report = Report("Net", 3, 5, (reading, probes), 1, 0.1)
    show(report, all_readings=True)
    terminal = " ".join(capsys.readouterr().out.split())
    page = report_page(report, tmp_path / "page.html").read_text("utf-8")
    notebook = report._repr_html_()
    entries = json.loads(json.dumps(report.to_json()))["quantities"]
    assert entries[0]["interval"] == [12.56, 12.56] and len(entries[0]["errors"]) == 2
    for text in (terminal, page, notebook, " ".join(entries[0]["errors"])):
        assert "12.56, 12.56" not in text
        assert "no confidence interval" in text
        assert "for other examples like these" in text
    for text in (terminal, page, notebook, entries[1]["errors"][0]):
        assert "over random probes" in text
    assert "[11, 14] (95 %, examples)" in terminal


def test_a_residual_is_that_of_the_eigenvector():
    model, half, data, hessian = regression()
    found = measure(model, half, data, what=["sharpness"])["sharpness"]
    value, vector = (part[..., -1] for part in np.linalg.eigh(hessian))
    assert found.value == pytest.approx(value, rel=1e-9)
    said, _ = errors(found)
    assert said.startswith("± ") and float(said.split()[1]) < 1e-8 * value
    spread = ((data[0].numpy() @ vector) ** 2).std(ddof=1) / len(data[0]) ** 0.5
    low, high = found.over_examples
    assert (high - low) / 2 == pytest.approx(2 * spread, rel=0.5)


@pytest.mark.parametrize("lr_ratio", [0.98, 1.02])
@pytest.mark.parametrize("momentum", [0.0, 0.9])
def test_weight_decay_of_the_optimizer_is_in_the_limit(lr_ratio, momentum):
    """Torch's own SGD with decay converges below the largest step of the report, and diverges above it."""
    model, half, data, hessian = regression()
    decay = 5.0
    settings = {"momentum": momentum, "weight_decay": decay}
    step = 2 * (1 + momentum) / (np.linalg.eigvalsh(hessian)[-1] + decay)
    sgd = torch.optim.SGD(model.parameters(), lr_ratio * step, **settings)
    found = measure(model, half, data, what=["sharpness"], optimizer=sgd)["sharpness"]
    assert found.interpretation.startswith(f"your step size is {lr_ratio:.2f} of the stable limit")
    assert found.theory.endswith("/η − λ")
    assert found.compared is not None and (found.value > found.compared) == (lr_ratio > 1)
    assert dict(found.assumes)["weight decay 5 on all weights, which is counted here"] is True
    for _ in range(1200):
        sgd.zero_grad()
        half(model(data[0]), data[1]).backward()
        sgd.step()
    moved = float(model.weight.detach().abs().max())
    assert moved > 1e3 if lr_ratio > 1 else moved < 10


@pytest.mark.parametrize("ratio", [0.99, 1.01])
def test_decoupled_decay_is_in_the_limit(ratio):
    """AdamW at a fixed P: w ← (1 − ηλ)w − ηm/P is stable up to the largest step."""
    curvature = 3.0
    scale = 0.5
    optimizer = Optimizer(momentum=0.5, scale=np.full(1, scale), decay=0.4, decoupled=True)
    lr = ratio * optimizer.largest_step(curvature / scale)
    w = 1.0
    m = 0.0
    for _ in range(4000):
        m = 0.5 * m + 0.5 * curvature * w
        w = (1 - lr * 0.4) * w - lr * m / scale
    assert abs(w) < 1e-3 if ratio < 1 else abs(w) > 1e3
    limit = Optimizer(lr, 0.5, np.full(1, scale), 0.4, True).limit
    assert limit is not None and (curvature / scale < limit) == (ratio < 1)


def test_what_is_not_known_of_weight_decay_is_said():
    model, half, data, _ = regression()
    weights = [*model.parameters()]
    known = lambda **options: measure(model, half, data, what=["sharpness"], **options)["sharpness"]
    unknown = [text for text, holds in known(lr=0.1).assumes if holds is None]
    assert any("weight_decay=…" in text for text in unknown)
    assert dict(known(lr=0.1, weight_decay=0.0).assumes)["no weight decay"] is True
    plain = torch.optim.SGD(weights, 0.1)
    assert dict(known(optimizer=plain).assumes)["no weight decay"] is True
    two = nn.Sequential(nn.Linear(3, 2), nn.Linear(2, 1)).double()
    groups = [
        {"params": two[0].parameters(), "weight_decay": 0.01},
        {"params": two[1].parameters(), "weight_decay": 0.0},
    ]
    of_groups = torch.optim.SGD(groups, 0.1)
    found = measure(two, half, data, what=["sharpness"], optimizer=of_groups)["sharpness"]
    (text,) = [text for text, holds in found.assumes if holds is False]
    assert "some weights by 0 and others by 0.01" in text
    with pytest.raises(UserError, match="weight decay is a finite number ≥ 0"):
        known(lr=0.1, weight_decay=-1.0)


def test_the_largest_stable_step_is_a_number():
    model, half, data, hessian = regression()
    largest = 2 / np.linalg.eigvalsh(hessian)[-1]
    found = measure(model, half, data, what=["sharpness"])["sharpness"]
    assert found.interpretation == f"plain descent is stable for steps below {largest:.3g}"
    found = measure(model, half, data, what=["sharpness"], momentum=0.9)["sharpness"]
    assert found.interpretation.endswith(f"stable for steps below {1.9 * largest:.3g}")


def classifier(widths=(4, 8, 3), n=60, seed=0, scale=1.0):
    """A tanh network for Gaussian blobs, one a class, with examples sorted by class."""
    torch.manual_seed(seed)
    layers = []
    for before, after in pairwise(widths):
        layers += [nn.Linear(before, after), nn.Tanh()]
    model = nn.Sequential(*layers[:-1]).double()
    rng = np.random.default_rng(seed)
    y = np.sort(np.arange(n) % widths[-1])
    x = rng.standard_normal((n, widths[0])) + 3 * rng.standard_normal((widths[-1], widths[0]))[y]
    return model, nn.CrossEntropyLoss(), (torch.as_tensor(scale * x), torch.as_tensor(y))


def train(model, loss, data, lr, steps):
    """Full-batch descent; return the weights before it."""
    before = {name: weight.clone() for name, weight in model.state_dict().items()}
    sgd = torch.optim.SGD(model.parameters(), lr)
    for _ in range(steps):
        sgd.zero_grad()
        loss(model(data[0]), data[1]).backward()
        sgd.step()
    return before


@pytest.fixture
def small_kernels(monkeypatch):
    """Kernels on sixty outputs, which take half the time."""
    monkeypatch.setattr(_kernel, "ENTRIES", 60)


@pytest.mark.usefixtures("small_kernels")
def test_one_small_step_is_not_lazy():
    model, loss, data = classifier()
    before = train(model, loss, data, 1e-3, 1)
    found = measure(model, loss, data, what=["drift"], since=before)
    kernel = found["relative change of the tangent kernel"]
    assert kernel.value < 1e-2 and kernel.interpretation.startswith("nothing follows yet")
    with torch.no_grad():
        now = float(loss(model(data[0]), data[1]))
        earlier = float(loss(torch.func.functional_call(model, before, data[0]), data[1]))
    assert f"the risk from {earlier:.4g} to {now:.4g}" in kernel.interpretation


@pytest.mark.usefixtures("small_kernels")
def test_a_wide_linear_model_is_lazy_when_it_has_moved():
    """A linear model has a fixed kernel: the word is earned once outputs and risk have moved."""
    model, half, data, _ = regression()
    model.weight.data.fill_(1.0)
    before = train(model, half, data, 0.05, 30)
    found = measure(model, half, data, what=["drift"], since=before)
    assert found["relative change of the tangent kernel"].value == pytest.approx(0, abs=1e-12)
    said = found["relative change of the tangent kernel"].interpretation
    assert said.startswith("lazy so far")
    outputs = data[0].numpy() @ model.weight.detach().numpy().T
    start = data[0].numpy().sum(1, keepdims=True)
    moved = np.linalg.norm(outputs - start) / max(np.linalg.norm(outputs), np.linalg.norm(start))
    assert found["relative change of the outputs"].value == pytest.approx(moved, rel=1e-10)


@pytest.mark.usefixtures("small_kernels")
def test_the_order_of_the_examples_does_not_choose_the_sample():
    """Alignment of kernel and targets on rows sorted by class, beside that of all rows by a dense calculation."""
    model, loss, (x, y) = classifier(n=120)
    inputs = x.numpy()
    weights = [p.detach().numpy() for p in model.parameters()]
    h = np.tanh(inputs @ weights[0].T + weights[1])
    slope = (1 - h**2)[:, None, :] * weights[2]  # ∂f_k/∂z
    first = np.einsum("ikh,jlh->ikjl", slope, slope) * (1 + inputs @ inputs.T)[:, None, :, None]
    last = np.einsum("ij,kl->ikjl", 1 + h @ h.T, np.eye(3))
    theta = (first + last).reshape(360, 360)
    targets = (np.eye(3)[y.numpy()] - 1 / 3).ravel()
    exact = targets @ theta @ targets / (np.linalg.norm(theta) * (targets @ targets))
    alignments = []
    for rows in (torch.arange(120), torch.randperm(120)):
        found = measure(model, loss, (x[rows], y[rows]), what=["ntk"])
        assert "drawn by class" in found["ntk"].interpretation
        alignments.append(found["alignment of kernel and targets"].value)
    assert alignments == pytest.approx([exact, exact], rel=0.3)
    small = measure(model, loss, (x[::6], y[::6]), what=["ntk"])["ntk"]
    assert "all 20 examples" in small.interpretation


def test_a_loader_in_small_batches_is_sampled_as_a_whole():
    model, loss, (x, y) = classifier(n=90)
    context = Context(subject(model, loss, list(zip(x.split(7), y.split(7), strict=True))), RNG)
    drawn = sample(context, 30)
    outputs, labels = drawn.subject.outputs()
    assert np.bincount(labels).tolist() == [10, 10, 10] and drawn.count == 30
    rows = [int(np.flatnonzero((x.numpy() == row).all(1))[0]) for row in drawn.subject.inputs()]
    assert len(set(rows)) == 30 and (y.numpy()[rows] == labels).all()
    np.testing.assert_allclose(outputs, model(x[rows]).detach().numpy(), rtol=1e-12)
    assert (sample(context, 30).subject.inputs() == drawn.subject.inputs()).all()


def test_a_class_decomposition_sees_every_class_of_sorted_data():
    model, loss, (x, y) = classifier((3, 3, 4), n=800)
    train(model, loss, (x, y), 0.1, 5)
    found = measure(model, loss, (x, y), what=["class-decomposition"])
    assert found["top eigenvalue, class part"].value > 0
    reading = found["outliers explained by class means"]
    assert dict(reading.assumes)["every class has examples"] is True
    assert "drawn by class" in reading.interpretation


def test_random_labels_are_not_explained_by_class_means():
    """The span of the class means has them all; the share of the eigenvalues has not."""
    model, loss, (x, _) = classifier((3, 4, 4), n=40)
    y = torch.as_tensor(np.random.default_rng(5).integers(0, 4, 40))
    train(model, loss, (x, y), 0.1, 30)
    found = measure(model, loss, (x, y), what=["class-decomposition"])
    counted = found["outliers explained by class means"].value
    by_chance = found["outliers explained by shuffled classes"].value
    assert counted - by_chance < 3


def test_rows_of_classes_are_those_of_the_three_levels():
    model, loss, data = classifier()
    attached = subject(model, loss, data)
    outputs, labels = attached.outputs()
    factors = three_levels(attached.vjp, outputs, labels)
    rows = class_rows(attached.vjp, outputs, labels, labels)
    np.testing.assert_allclose(rows.T @ rows, factors.classes.T @ factors.classes, atol=1e-12)


def test_shuffled_classes_explain_nothing_of_collapsed_ones():
    """Collapsed classes explain C − 1 eigenvalues and the mean gradient, random groups the mean gradient alone."""
    means = np.c_[np.eye(4), np.full(4, 5.0)]
    y = np.repeat(np.arange(4), 10)
    model = nn.Linear(5, 4, bias=False).double()
    with torch.no_grad():
        model.weight.copy_(torch.as_tensor(6.0 * means))
    data = torch.as_tensor(means[y]), torch.as_tensor(y)
    found = measure(model, nn.CrossEntropyLoss(), data, what=["class-decomposition"])
    explained = found["outliers explained by class means"].value
    assert explained - found["outliers explained by shuffled classes"].value == 3
    top = found["outliers explained by class means"].parts
    weight = model.weight.detach().clone().requires_grad_()
    risk = lambda w: nn.functional.cross_entropy(data[0] @ w.reshape(4, 5).T, data[1])
    hessian = torch.func.hessian(risk)(weight.detach().ravel()).numpy()
    values, vectors = np.linalg.eigh(hessian)
    p = torch.softmax(data[0] @ model.weight.detach().T, 1).numpy()
    part = np.zeros((20, 20))  # Σ_c w_c g_c g_cᵀ, by its definition
    for c in range(4):
        gradients = []
        weights = []
        for i in np.flatnonzero(y == c):
            for other in set(range(4)) - {c}:
                gradients.append(np.outer(p[i] - np.eye(4)[other], means[c]).ravel())
                weights.append(p[i, other] / 40)
        mean = np.average(gradients, axis=0, weights=weights)
        part += np.sum(weights) * np.outer(mean, mean)
    exact = vectors[:, -1] @ part @ vectors[:, -1] / values[-1]
    assert top["share of eigenvalue 1"] == pytest.approx(exact, rel=1e-4)


def relu(*widths, seed=0):
    torch.manual_seed(seed)
    layers = []
    for before, after in pairwise(widths):
        layers += [nn.Linear(before, after), nn.ReLU()]
    return nn.Sequential(*layers[:-1]).double()


def test_a_dead_network_is_not_stable():
    """All units of the first layer are off: only biases learn, and the sharpness is that of the last ones."""
    _, loss, data = classifier()
    model = relu(4, 6, 5, 3)
    with torch.no_grad():
        model[0].bias.fill_(-1e3)
    found = measure(model, loss, data, what=["sharpness", "signal-propagation", "risk"], lr=0.1)
    assert found["sharpness"].interpretation.startswith("the network is dead")
    errors = found["errors, first layer over last"]
    assert errors.value == 0 and errors.interpretation.startswith("no error reaches 0, behind dead")
    assert errors.interpretation.endswith("with what 2, 4 writes it does")
    assert "no better than a constant guess" in found["risk"].interpretation
    assert found["risk"].compared == pytest.approx(np.log(3))
    before = train(model, loss, data, 0.1, 1)
    assert (model[4].bias != before["4.bias"]).all()  # the last bias learns
    assert (model[0].weight == before["0.weight"]).all()


def test_zeros_in_the_last_layer_are_not_dead():
    _, loss, data = classifier()
    model = relu(4, 6, 3)
    for weight in model[2].parameters():
        nn.init.zeros_(weight)
    found = measure(model, loss, data, what=["sharpness"])
    assert "dead" not in found["sharpness"].interpretation
    train(model, loss, data, 0.1, 30)
    found = measure(model, loss, data, what=["risk"])
    assert "constant guess" not in found["risk"].interpretation


def test_the_constant_guess_of_a_regression():
    model, half, data, _ = regression()
    model.weight.data.fill_(10.0)
    found = measure(model, half, data, what=["risk"])["risk"]
    assert found.compared == pytest.approx(data[1].numpy().var() / 2)
    assert "nothing has been learned" in found.interpretation
    other = measure(model, lambda f, y: (f - y).abs().mean(), data, what=["risk"])["risk"]
    least = np.abs(data[1].numpy() - np.median(data[1].numpy())).mean()
    assert other.compared == pytest.approx(least)


def test_margins_without_a_scale_come_first():
    model, loss, data = classifier((4, 6, 3))
    one = measure(model, loss, data, what=["margins"])
    names = [each.name for each in one.quantities]
    assert names.index("median normalized margin") < names.index("median margin")
    assert "60 examples given" in one["error rate"].interpretation
    assert "held out" in one["error rate"].interpretation
    with torch.no_grad():
        outputs = model(data[0]).numpy()
        for weight in model[2].parameters():
            weight.mul_(7.0)
    name = "median margin over the size of the logits"
    centred = outputs - outputs.mean(1, keepdims=True)
    y = data[1].numpy()
    own = outputs[np.arange(60), y]
    margins = own - np.where(np.eye(3)[y] > 0, -np.inf, outputs).max(1)
    assert one[name].value == pytest.approx(np.median(margins) / centred.std(), rel=1e-10)
    scaled = measure(model, loss, data, what=["margins"])
    assert scaled[name].value == pytest.approx(one[name].value, rel=1e-10)
    assert scaled["median margin"].value == pytest.approx(7 * one["median margin"].value)


@pytest.mark.parametrize("linear", [True, False])
def test_one_is_theory_for_linear_networks_alone(linear):
    _, loss, data = classifier()
    between = nn.Identity() if linear else nn.ReLU()
    model = nn.Sequential(nn.Linear(4, 6), between, nn.Linear(6, 3)).double()
    found = measure(model, loss, data, what=["alignment", "norms"])
    for name in ("alignment of layers", "largest stable rank"):
        assert found[name].compared == (1.0 if linear else None)
        assert dict(found[name].assumes)["the network is linear in its inputs"] is linear
        assert ("this one is not linear" in found[name].theory) is not linear


class Skip(nn.Module):
    """x + W x: its Jacobian is larger than ‖W‖."""

    def __init__(self):
        super().__init__()
        self.inner = nn.Linear(4, 4)
        self.head = nn.Linear(4, 3)

    def forward(self, x):
        return self.head(x + self.inner(x))


def test_spectral_norms_bound_chains_alone():
    _, loss, data = classifier()
    model = Skip().double()
    with torch.no_grad():
        model.inner.weight.copy_(0.1 * torch.eye(4))
    found = measure(model, loss, data, what=["norms"])["product of spectral norms"]
    jacobian = torch.func.jacrev(model)(data[0][0]).detach().numpy()
    assert np.linalg.norm(jacobian, 2) > found.value  # which is why it is no bound
    assert found.theory == "" and found.compared is None
    assert found.interpretation.startswith("no bound of the whole network")
    chain = relu(4, 6, 3)
    found = measure(chain, loss, data, what=["norms"])["product of spectral norms"]
    norms = [np.linalg.norm(chain[i].weight.detach().numpy(), 2) for i in (0, 2)]
    assert found.compared == pytest.approx(np.prod(norms))
    assert found.theory.startswith("the Lipschitz constant is at most")
    assert found.compared is not None
    for x in data[0][:5]:
        assert np.linalg.norm(torch.func.jacrev(chain)(x).detach().numpy(), 2) <= found.compared


def recorded(monitor, step, model):
    record = monitor(step, model)
    assert record is not None
    return record


def test_a_training_that_diverges_is_logged_and_goes_on(tmp_path):
    model, loss, data = classifier()
    monitor = Monitor(tmp_path / "log", loss, data, every=1, budget=None)
    good = recorded(monitor, 0, model)
    for step in (1, 2):
        with torch.no_grad():
            model[2].weight.fill_(float("nan"))
        monitor(step, model)
    with torch.no_grad():
        model[2].weight.fill_(0.1)  # as after loading a checkpoint
    monitor(3, model)
    records = read_log(tmp_path / "log")
    assert [each["step"] for each in records] == [0, 1, 2, 3]
    for each in records[1:3]:
        # what is read of the training itself is kept: nothing of it needs a gradient
        assert each["quantities"] == {}
        assert "'2.weight' are not finite" in each["trouble"]
        assert each["last_good"] == {"step": 0, "quantities": good["quantities"]}
    assert np.isfinite(records[3]["quantities"]["sharpness"]["value"])


def test_any_failure_is_logged(tmp_path, monkeypatch):
    model, half, data, _ = regression()
    monitor = Monitor(tmp_path / "log", half, data, ["risk"], every=1, budget=None)
    monitor(0, model)
    monkeypatch.setattr(type(monitor.subject), "gradient", lambda self: 1 / 0)
    record = recorded(monitor, 1, model)
    assert record["trouble"] == "ZeroDivisionError: division by zero"
    assert record["last_good"]["step"] == 0


def test_an_adam_without_a_step_is_compared_with_nothing(tmp_path):
    model, half, data, _ = regression()
    adam = torch.optim.AdamW(model.parameters(), 0.1, weight_decay=0.01)
    monitor = Monitor(tmp_path / "log", half, data, every=1, budget=None, optimizer=adam, lr=0.1)
    before = recorded(monitor, 0, model)
    assert before["quantities"]["sharpness"]["compared"] is None
    assert "has not taken a step" in before["not_measured"]["optimizer"]
    half(model(data[0]), data[1]).backward()
    adam.step()
    after = recorded(monitor, 1, model)
    preconditioned = after["quantities"]["preconditioned sharpness"]
    assert preconditioned["compared"] == pytest.approx(380 * (1 - 0.1 * 0.01 / 2))
    assert "not_measured" not in after and after["quantities"]["sharpness"]["compared"] is None


@pytest.mark.usefixtures("small_kernels")
def test_what_does_not_exist_is_noted_in_the_log(tmp_path):
    torch.manual_seed(0)
    model = nn.Linear(4, 3).double()  # of every token of a sequence
    x = torch.randn(6, 5, 4, dtype=torch.float64)
    y = torch.randint(0, 3, (6, 5))
    loss = lambda outputs, targets: nn.functional.cross_entropy(outputs.mT, targets)
    what = ["margins", "drift", "risk"]
    monitor = Monitor(tmp_path / "log", loss, (x, y), what, every=1, budget=None)
    first = recorded(monitor, 0, model)
    assert "class numbers" in first["not_measured"]["margins"]
    assert first["quantities"]["relative change of the weights"]["value"] == 0
    start = torch.cat([weight.detach().ravel() for weight in model.parameters()])
    with torch.no_grad():
        model.weight.add_(0.5)
    second = recorded(monitor, 1, model)
    exact = 0.5 * 12**0.5 / float(start.norm())
    value = second["quantities"]["relative change of the weights"]["value"]
    assert value == pytest.approx(exact, rel=1e-10)


def test_options_of_a_monitor_are_listed(tmp_path):
    _, half, data, _ = regression()
    assert "``optimizer``" in str(Monitor.__doc__)
    with pytest.raises(UserError, match="did you mean 'optimizer'"):
        Monitor(tmp_path / "log", half, data, optimiser=None)


class Noisy(nn.Module):
    """A linear layer with noise of several kinds."""

    def __init__(self, noise):
        super().__init__()
        self.layer = nn.Linear(3, 1)
        self.noise = noise

    def forward(self, x):
        return self.layer(self.noise(x))


@pytest.mark.parametrize(
    "noise",
    [
        lambda x: nn.functional.dropout(x, 0.5),
        lambda x: x + torch.randn(x.shape),
        lambda x: x + torch.as_tensor(np.random.standard_normal(x.shape)),
        lambda x: x * random.random(),
    ],
)
def test_noise_in_the_forward_pass_is_refused(noise):
    _, half, data, _ = regression()
    model = Noisy(noise).double()
    states = lambda: (
        torch.get_rng_state().tolist(),
        pickle.dumps(np.random.get_state()),
        random.getstate(),
    )
    before = states()
    with pytest.raises(UserError, match="with other random numbers"):
        measure(model, half, data, what=["risk"])
    assert states() == before


class Augmented:
    """Batches with new noise in every pass."""

    def __init__(self, x, y):
        self.x = x
        self.y = y

    def __iter__(self):
        yield self.x + torch.randn(self.x.shape), self.y


def test_noise_in_loss_or_loader_is_refused_and_shuffling_is_not():
    model, half, (x, y), _ = regression()
    noisy = lambda outputs, targets: half(outputs, targets) * (1 + torch.rand(()))
    with pytest.raises(UserError, match="take noise and augmentation out"):
        measure(model, noisy, (x, y), what=["risk"])
    with pytest.raises(UserError, match="take noise and augmentation out"):
        measure(model, half, Augmented(x, y), what=["risk"])
    shuffled = torch.utils.data.DataLoader([*zip(x, y, strict=True)], batch_size=8, shuffle=True)
    found = measure(model, half, shuffled, what=["risk"])["risk"]
    assert found.value == pytest.approx(float(half(model(x), y).detach()))


@pytest.mark.parametrize(
    "loss",
    [
        lambda outputs, targets: ((outputs - targets).detach() ** 2).mean(),
        lambda outputs, targets: (outputs > targets).double().mean(),
        lambda outputs, targets: torch.tensor(((outputs - targets) ** 2).mean().item()),
    ],
)
def test_detached_losses_are_refused(loss):
    model, _, data, _ = regression()
    with pytest.raises(UserError, match="cut off from them"):
        measure(model, loss, data, what=["sharpness"])


def test_a_stopped_gradient_is_refused():
    x = np.eye(2)
    y = np.ones(2)
    squared = lambda outputs, targets: ((outputs - targets) ** 2).mean()
    stopped = lambda w, x: x @ jax.lax.stop_gradient(w)
    with pytest.raises(UserError, match="its derivatives are all zero"):
        measure((stopped, np.zeros(2)), squared, (x, y), what=["sharpness"])


@pytest.mark.parametrize("normalized", [nn.utils.weight_norm, parametrizations.weight_norm])
@pytest.mark.filterwarnings("ignore")
def test_weight_norm_has_its_own_hessian(normalized):
    _, half, data, _ = regression()
    model = normalized(nn.Linear(3, 1, bias=False)).double()
    found = measure(model, half, data, what=["sharpness"])["sharpness"]
    named = {weight.numel(): weight.detach() for weight in model.parameters()}  # of g 1, of v 3
    flat = torch.cat([named[1].ravel(), named[3].ravel()])
    risk = lambda w: half(data[0] @ (w[0] * w[1:] / w[1:].norm())[:, None], data[1])
    hessian = torch.autograd.functional.hessian(risk, flat).numpy()
    assert found.value == pytest.approx(np.linalg.eigvalsh(hessian)[-1], rel=1e-8)


def test_biases_before_batch_normalization_are_left_out_of_adams_metric():
    """They have no gradient in training mode, but curvature in evaluation mode."""
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(4, 5), nn.BatchNorm1d(5), nn.Tanh(), nn.Linear(5, 3)).double()
    _, loss, (x, y) = classifier()
    adam = torch.optim.AdamW(model.parameters(), 0.01, weight_decay=0.0)
    for rows in torch.randperm(60).split(12):
        adam.zero_grad()
        loss(model(x[rows]), y[rows]).backward()
        adam.step()
    model.eval()
    found = measure(model, loss, (x, y), what=["sharpness"], optimizer=adam, statistics="running")
    reading = found["preconditioned sharpness"]
    (text,) = [text for text, holds in reading.assumes if holds is False]
    assert "left out, are those of 0.bias" in text
    named = dict(model.named_parameters())
    flat = torch.cat([weight.detach().ravel() for weight in named.values()])

    def risk(w):
        parts = w.split([weight.numel() for weight in named.values()])
        state = {
            name: part.reshape(named[name].shape) for name, part in zip(named, parts, strict=True)
        }
        return loss(torch.func.functional_call(model, state, x), y)

    hessian = torch.autograd.functional.hessian(risk, flat).numpy()
    second = torch.cat([adam.state[weight]["exp_avg_sq"].ravel() for weight in named.values()])
    root = (np.sqrt(second.numpy() / (1 - 0.999**5)) + 1e-8) ** -0.5
    whole = np.linalg.eigvalsh(root[:, None] * hessian * root)[-1]
    root[20:25] = 0.0  # the first biases
    exact = np.linalg.eigvalsh(root[:, None] * hessian * root)[-1]
    assert reading.value == pytest.approx(exact, rel=1e-6)
    assert whole > 100 * exact  # which is what was reported with them


def test_what_exists_is_kept_where_another_quantity_does_not():
    model, half, data, _ = regression()
    found = measure(model, half, data, what=["risk", "margins"])
    assert np.isfinite(found["risk"].value)
    assert found["margins"].interpretation.startswith("not measured: a classifier has")
    with pytest.raises(UserError, match="class numbers"):
        measure(model, half, data, what=["margins"])


def test_the_command_leaves_the_precision_to_the_users_file(tmp_path, monkeypatch, capsys):
    from steepest.app.cli import main

    monkeypatch.setenv("JAX_ENABLE_X64", "0")
    monkeypatch.delenv("JAX_ENABLE_X64")
    text = (
        "import os, numpy as np\n"
        "def build():\n"
        "    assert 'JAX_ENABLE_X64' not in os.environ\n"
        "    half = lambda f, y: ((f - y) ** 2).mean() / 2\n"
        "    return (lambda w, x: x @ w, np.ones(2, 'float32')), half, (np.eye(2), np.ones(2))\n"
    )
    (tmp_path / "mine.py").write_text(text, "utf-8")
    assert main(["measure", f"{tmp_path / 'mine.py'}:build", "--what", "risk", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["quantities"][0]["value"] == 0.0


def test_samples_of_sorted_data_have_every_class():
    """Distances and cosines of sorted examples, beside those of all of them."""
    model, loss, (x, y) = classifier(n=300)
    attached = subject(model, loss, (x, y))
    found = measure(attached, what=["input-margins", "signal-propagation"])
    assert "200 of the 300 examples, drawn by class" in found["input-margins"].interpretation
    last = model(x).detach().numpy()
    turned = last / np.linalg.norm(last, axis=1, keepdims=True)
    exact = ((turned @ turned.T).sum() - 300) / (300 * 299)
    first = ((turned[:100] @ turned[:100].T).sum() - 100) / (100 * 99)
    cosine = found["cosine between examples, last pre-activations"].value
    assert abs(cosine - exact) < 0.1 < abs(first - exact)


def test_the_constant_guess_of_tokens():
    """Of a loss over all places of sequences it is the entropy of their labels' frequencies."""
    x = np.random.default_rng(0).integers(0, 4, (30, 5))
    rows = jnp.zeros((4, 4))
    loss = lambda f, y: optax.softmax_cross_entropy_with_integer_labels(f, y).mean()
    report = measure((lambda w, x: w[x], rows), loss, (x, x), what=["risk"])
    shares = np.bincount(x.ravel()) / x.size
    assert report["risk"].compared == pytest.approx(-(shares * np.log(shares)).sum())
