"""Modules as others write them, against the exact Hessian: padded, keyword-called, checkpointed, beginning in place."""

import math

import pytest

from steepest.core.errors import UserError
from steepest.measurement import Monitor, measure
from tests.extras import need

torch = need("torch")
nn = torch.nn
F = nn.functional
DRAWN = torch.Generator().manual_seed(0)
X = torch.randn(24, 4, generator=DRAWN, dtype=torch.float64)
Y = torch.randint(0, 3, (24,), generator=DRAWN)
WORDS = torch.randint(1, 9, (24, 6), generator=DRAWN)
WORDS[:, 4:] = 0  # padding


def exact(model, x, y):
    """Return risk and largest eigenvalue of the Hessian, row by row, of weights that a training moves."""
    weights = [weight for weight in model.parameters() if weight.requires_grad]
    loss = F.cross_entropy(model(x.clone()), y)
    slopes = torch.autograd.grad(loss, weights, create_graph=True)
    rows = []
    for slope in torch.cat([slope.flatten() for slope in slopes]):
        again = torch.autograd.grad(slope, weights, retain_graph=True, materialize_grads=True)
        rows.append(torch.cat([row.flatten() for row in again]))
    return float(loss.detach()), float(torch.linalg.eigvalsh(torch.stack(rows))[-1])


class Pooled(nn.Module):
    def __init__(self, cell=None):
        super().__init__()
        self.words = nn.Embedding(9, 4, padding_idx=0)
        self.cell = cell and cell(4, 4, batch_first=True)
        self.head = nn.Linear(4, 3)

    def forward(self, x):
        z = self.words(x)
        return self.head(self.cell(z)[0][:, -1] if self.cell else torch.tanh(z).mean(1))


class ByName(nn.Module):
    def __init__(self):
        super().__init__()
        self.first = nn.Linear(4, 6)
        self.last = nn.Linear(6, 3)

    def forward(self, x):
        return self.last(input=torch.tanh(self.first(input=x)))


class Checkpointed(nn.Module):
    def __init__(self, reentrant):
        super().__init__()
        self.first = nn.Linear(4, 6)
        self.body = nn.Sequential(nn.Linear(6, 6), nn.Tanh())
        self.last = nn.Linear(6, 3)
        self.reentrant = reentrant

    def forward(self, x):
        from torch.utils.checkpoint import checkpoint

        z = torch.tanh(self.first(x))
        if self.reentrant is None:
            return self.last(self.body(z))
        return self.last(checkpoint(self.body, z, use_reentrant=self.reentrant))


class Standardized(nn.Module):
    def __init__(self):
        super().__init__()
        self.first = nn.Linear(4, 6)
        self.last = nn.Linear(6, 3)

    def forward(self, x):
        x.sub_(0.5).mul_(2.0)
        return self.last(torch.tanh_(self.first(x)))


def masked():
    model = nn.Sequential(nn.Linear(4, 6), nn.Tanh(), nn.Linear(6, 3))
    model[0] = nn.utils.parametrize.register_parametrization(model[0], "weight", Masked())
    return model


class Masked(nn.Module):
    """Half of the rows take no gradient, though the outputs depend on them."""

    def forward(self, weight):
        mask = (torch.arange(6) % 2).to(weight)[:, None]
        return mask * weight + (1 - mask) * weight.detach()


BUILDS = {
    "padding": (Pooled, WORDS),
    "padding, LSTM": (lambda: Pooled(nn.LSTM), WORDS),
    "padding, GRU": (lambda: Pooled(nn.GRU), WORDS),
    "gradient mask": (masked, X),
    "by keyword": (ByName, X),
    "checkpointed": (lambda: Checkpointed(False), X),
    "checkpointed, reentrant": (lambda: Checkpointed(True), X),
    "standardized in place": (Standardized, X),
    "ReLU in place": (
        lambda: nn.Sequential(nn.ReLU(inplace=True), nn.Linear(4, 5), nn.Tanh(), nn.Linear(5, 3)),
        X,
    ),
}


def built(build):
    torch.manual_seed(3)
    return build().double()


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", BUILDS)
def test_curvature_is_exact_and_data_stay(name):
    build, x = BUILDS[name]
    model = built(build)
    plain = built(lambda: Checkpointed(None)) if name.startswith("checkpointed") else model
    risk, largest = exact(plain, x, Y)
    before = x.clone()
    for micro_batch in (24, 10):
        report = measure(
            model, F.cross_entropy, (x, Y), what=["risk", "sharpness"], micro_batch=micro_batch
        )
        assert report["risk"].value == pytest.approx(risk, rel=1e-10)
        assert report["sharpness"].value == pytest.approx(largest, rel=1e-3)
    assert torch.equal(x, before)


class Parted(nn.Module):
    """Reads numbers and words, in a tuple, a list or a dictionary."""

    def __init__(self):
        super().__init__()
        self.embedding = nn.Embedding(9, 2)
        self.head = nn.Linear(6, 3)

    def forward(self, given):
        x, words = given.values() if isinstance(given, dict) else given
        return self.head(torch.cat([x, torch.tanh(self.embedding(words)).mean(1)], 1))


ENDED = {"class": Y, "weight": torch.linspace(0.5, 1.5, 24, dtype=torch.float64)}


def weighted(outputs, targets):
    losses = F.cross_entropy(outputs, targets["class"], reduction="none")
    return (losses * targets["weight"]).mean()


PARTED = {
    "tuple": (((X, WORDS), Y), F.cross_entropy),
    "list": (([X, WORDS], Y), F.cross_entropy),
    "dictionary": (({"x": X, "words": WORDS}, Y), F.cross_entropy),
    "targets too": (((X, WORDS), ENDED), weighted),
}


@pytest.mark.parametrize("name", PARTED)
def test_inputs_and_targets_of_several_arrays_are_measured_with_their_errors(name):
    (x, y), loss = PARTED[name]
    model = built(Parted)
    scalar = lambda *weights: loss(
        torch.func.functional_call(
            model, dict(zip([n for n, _ in model.named_parameters()], weights, strict=True)), (x,)
        ),
        y,
    )
    weights = tuple(weight.detach() for weight in model.parameters())
    blocks = torch.autograd.functional.hessian(scalar, weights)
    sizes = [weight.numel() for weight in weights]
    dense = torch.cat(
        [
            torch.cat([b.reshape(n, -1) for b in row], 1)
            for row, n in zip(blocks, sizes, strict=True)
        ]
    )
    for micro_batch in (24, 5):
        report = measure(model, loss, (x, y), what=["sharpness"], micro_batch=micro_batch)
        right = pytest.approx(float(torch.linalg.eigvalsh(dense)[-1]), rel=1e-3)
        assert report["sharpness"].value == right
        low, high = report["sharpness"].over_examples
        assert low < report["sharpness"].value < high < float("inf")


class Sparse(nn.Module):
    def __init__(self, sparse):
        super().__init__()
        self.embedding = nn.Embedding(9, 3, padding_idx=0, sparse=sparse)
        self.head = nn.Linear(3, 3)

    def forward(self, words):
        return self.head(torch.tanh(self.embedding(words)).mean(1))


@pytest.mark.parametrize("what", ["hessian", "gauss-newton", "fisher"])
def test_sparse_embeddings_have_the_curvature_of_dense_ones(what):
    sparse, dense = (built(lambda kind=kind: Sparse(kind)) for kind in (True, False))
    values = [
        measure(m, F.cross_entropy, (WORDS, Y), what=["sharpness"], curvature=what)["sharpness"]
        for m in (sparse, dense)
    ]
    assert values[0].value == pytest.approx(values[1].value, rel=1e-9)
    if what == "hessian":
        assert values[0].value == pytest.approx(exact(dense, WORDS, Y)[1], rel=1e-3)


REFUSED = {
    "a bag": (lambda: nn.Sequential(nn.EmbeddingBag(9, 3), nn.Linear(3, 3)), WORDS, "nn.Embedding"),
    "traced": (lambda: torch.jit.trace(nn.Linear(4, 3), X.float()), X.float(), "was traced"),
    "several arguments": (lambda: nn.Bilinear(4, 4, 3), X.float(), "a module around it"),
    "complex": (lambda: nn.Linear(4, 3, dtype=torch.complex64), X.float(), "torch.complex"),
    "a norm at zero": (lambda: Norm(), torch.zeros(24, 4), "under the root"),
    "sinc at zero": (lambda: Sinc(), torch.zeros(24, 4), "norm or sinc at zero"),
}


class Norm(nn.Linear):
    """Divides nothing, and takes norms that are zero at inputs of zero."""

    def __init__(self):
        super().__init__(4, 3, bias=False)

    def forward(self, x):
        return super().forward(x).norm(dim=1, keepdim=True) * torch.ones(3)


class Sinc(nn.Module):
    def __init__(self):
        super().__init__()
        self.first = nn.Linear(4, 3, bias=False)

    def forward(self, x):
        return torch.sinc(self.first(x))


class Warped(nn.Module):
    """Reads an image of 2 × 2 pixels where six numbers say."""

    def __init__(self):
        super().__init__()
        self.places = nn.Linear(4, 6)
        self.head = nn.Linear(4, 3)

    def forward(self, x):
        images = x.view(-1, 1, 2, 2)
        grid = F.affine_grid(self.places(x).view(-1, 2, 3), list(images.shape), align_corners=False)
        return self.head(F.grid_sample(images, grid, align_corners=False).flatten(1))


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", REFUSED)
def test_what_cannot_be_differentiated_twice_is_refused_with_what_to_try(name):
    build, x, advice = REFUSED[name]
    with pytest.raises(UserError, match=advice):
        measure(build(), F.cross_entropy, (x, Y), what=["sharpness"])


class Product(nn.Module):
    """Multiplies all inputs, each times a weight."""

    def __init__(self):
        super().__init__()
        self.weights = nn.Parameter(torch.tensor([2.0, 3.0, 0.0, 0.0]))

    def forward(self, x):
        return (x * self.weights).prod(1, keepdim=True)


def test_a_product_with_two_factors_of_zero_has_its_curvature():
    """∂²f/∂w₃∂w₄ = 6 x₁x₂x₃x₄, all else is zero, and outputs are zero: ± 2 mean (−y) 6 x₁x₂x₃x₄."""
    y = torch.randn(24, 1, generator=torch.Generator().manual_seed(2), dtype=torch.float64)
    report = measure(Product().double(), F.mse_loss, (X, y), what=["sharpness"])
    right = abs(float((-2 * y[:, 0] * 6 * X.prod(1)).mean()))
    assert report["sharpness"].value == pytest.approx(right, rel=1e-6)


class Counting(nn.Module):
    """Returns its own loss, and writes on buffers and attributes in training."""

    def __init__(self):
        super().__init__()
        self.net = nn.Sequential(nn.Linear(4, 6), nn.BatchNorm1d(6), nn.Tanh(), nn.Linear(6, 3))
        self.register_buffer("mean", torch.zeros(4))
        self.calls = 0
        self.average = torch.zeros(4)

    def forward(self, inputs=None, labels=None):
        self.calls += 1
        self.average = 0.9 * self.average + 0.1 * inputs.mean(0).detach()
        if self.training:
            self.mean.mul_(0.9).add_(0.1 * inputs.mean(0).detach())
        out = self.net(inputs - self.mean)
        return {"loss": F.cross_entropy(out, labels), "logits": out}


@pytest.mark.parametrize("training", [True, False])
def test_a_module_with_its_own_loss_is_left_as_it_is(tmp_path, training):
    model = built(Counting).train(training)
    state = {name: tensor.clone() for name, tensor in model.state_dict().items()}
    average = model.average
    data = [{"inputs": X, "labels": Y}]
    measure(model, None, data, what=["risk", "sharpness"])
    Monitor(tmp_path / "log", data=data)(0, model)
    assert all(torch.equal(state[name], tensor) for name, tensor in model.state_dict().items())
    assert model.calls == 0 and model.average is average and model.training == training


class Normed(nn.Module):
    """Returns its own loss; a norm divides its weights, and it keeps a shift in single precision."""

    def __init__(self, norm):
        super().__init__()
        self.net = nn.Sequential(norm(nn.Linear(4, 6)), nn.Tanh(), nn.Linear(6, 3))
        self.register_buffer("shift", torch.full((4,), 0.5))

    def forward(self, inputs=None, labels=None):
        return {"loss": F.cross_entropy(self.net(inputs - self.shift), labels)}


@pytest.mark.parametrize("seed", range(3))
def test_spectral_normalization_that_iterates_is_refused_in_single_precision_too(seed):
    """Its vectors follow the weights without a derivative; in evaluation they stand still."""
    torch.manual_seed(seed)
    model = Normed(nn.utils.parametrizations.spectral_norm)
    data = [{"inputs": X.float(), "labels": Y}]
    with pytest.raises(UserError, match="spectral normalization in training"):
        measure(model, None, data, what=["sharpness"])
    report = measure(model.eval(), None, data, what=["sharpness"])
    right = pytest.approx(exact(model.net.double(), X - 0.5, Y)[1], rel=1e-3)
    assert report["sharpness"].value == right


def by_differences(model, loss_of):
    """Return the largest eigenvalue of the Hessian by central differences of the gradient."""
    weights = list(model.parameters())
    start = nn.utils.parameters_to_vector(weights).detach()

    def slope(values):
        nn.utils.vector_to_parameters(values, weights)
        return torch.cat([part.flatten() for part in torch.autograd.grad(loss_of(model), weights)])

    rows = [
        (slope(start + 1e-6 * way) - slope(start - 1e-6 * way)) / 2e-6
        for way in torch.eye(len(start), dtype=torch.float64)
    ]
    hessian = torch.stack(rows)
    return float(torch.linalg.eigvalsh((hessian + hessian.T) / 2)[-1])


@pytest.mark.filterwarnings("ignore")
def test_weight_normalization_in_a_module_with_its_own_loss_has_its_hessian():
    """By differences, as the second derivative of torch's kernel is not right."""
    torch.manual_seed(0)
    model = Normed(torch.nn.utils.weight_norm).double()
    report = measure(model, None, [{"inputs": X, "labels": Y}], what=["sharpness"])
    right = by_differences(model, lambda model: model(X, Y)["loss"])
    assert report["sharpness"].value == pytest.approx(right, rel=1e-3)


def test_an_image_that_is_warped_has_its_curvature():
    model = built(Warped)
    report = measure(model, F.cross_entropy, (X, Y), what=["sharpness"])
    right = by_differences(model, lambda model: F.cross_entropy(model(X), Y))
    assert report["sharpness"].value == pytest.approx(right, rel=1e-3)


@pytest.mark.parametrize("kind", [ValueError, KeyError, AttributeError, AssertionError, OSError])
def test_whatever_a_module_raises_is_one_sentence(kind):
    class Failing(nn.Linear):
        def forward(self, x):
            raise kind("mine")

    with pytest.raises(UserError, match=f"cannot be evaluated.*{kind.__name__}.*mine"):
        measure(Failing(4, 3).double(), F.cross_entropy, (X, Y), what=["risk"])


@pytest.mark.parametrize("precision", [torch.float32, torch.float64])
@pytest.mark.parametrize("seed", [1, 3])
def test_curvature_that_is_lost_in_rounding_is_no_missing_derivative(seed, precision):
    """Logits of thousands: the Hessian of a softmax is 1e-10 and less, of which rounding leaves no digit or few."""
    torch.manual_seed(seed)
    x = (1e4 * torch.rand(60, 1)).to(precision)
    model = nn.Linear(1, 2).to(precision)
    with pytest.raises(UserError, match="scale the inputs"):
        measure(model, nn.functional.cross_entropy, (x, torch.arange(60) % 2), what=["risk"])


def test_a_lazy_module_asks_for_a_batch():
    with pytest.raises(UserError, match="no shape before their lazy layer has seen a batch"):
        measure(nn.LazyLinear(3), F.cross_entropy, (X.float(), Y), what=["risk"])


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("loss", [F.mse_loss, F.l1_loss, F.huber_loss, F.smooth_l1_loss])
@pytest.mark.parametrize("width", [1.0, 0.0])
def test_targets_that_are_broadcast_are_refused(loss, width):
    """Also at weights of zero, where outputs are all alike and the mean over all pairs looks like one over examples."""
    model = nn.Linear(4, 1).double()
    with torch.no_grad():
        model.weight.mul_(width)
    y = X @ torch.tensor([1.0, 2.0, 0.0, 0.0], dtype=torch.float64)
    with pytest.raises(UserError, match="broadcast"):
        measure(model, loss, (X, y), what=["risk"])
    measure(model, loss, (X, y[:, None]), what=["risk"])
    squeezed = lambda f, y: loss(f.squeeze(1), y)
    measure(model, squeezed, (X, y), what=["risk"])


def test_losses_that_align_or_compare_examples_are_no_broadcasts():
    y = torch.randn(24, 3, dtype=torch.float64, generator=torch.Generator().manual_seed(1))
    model = nn.Sequential(nn.Linear(4, 3), nn.Unflatten(1, (3, 1))).double()
    measure(model, lambda f, y: ((f[:, :, 0] - y) ** 2).mean(), (X, y), what=["risk"])
    ranked = lambda f, y: F.softplus(-(f - f.T) * torch.sign(y[:, None] - y[None, :])).mean()
    measure(nn.Linear(4, 1).double(), ranked, (X, y[:, 0]), what=["risk"])


class OverGraph(nn.Module):
    """Two graph convolutions over all vertices: it reads all rows or none."""

    def __init__(self):
        super().__init__()
        self.first = nn.Linear(4, 5)
        self.last = nn.Linear(5, 3)
        drawn = torch.rand(24, 24, generator=torch.Generator().manual_seed(1), dtype=torch.float64)
        self.register_buffer("adjacency", drawn / drawn.sum(1, keepdim=True))

    def forward(self, x):
        return self.adjacency @ self.last(torch.tanh(self.adjacency @ self.first(x)))


@pytest.mark.parametrize("micro_batch", [7, 1024])
def test_vertices_of_a_graph_stay_together(micro_batch):
    torch.manual_seed(0)
    model = OverGraph().double()
    risk, sharpness = exact(model, X, Y)
    report = measure(
        model, F.cross_entropy, (X, Y), what=["risk", "sharpness"], micro_batch=micro_batch
    )
    assert report["risk"].value == pytest.approx(risk)
    assert report["sharpness"].value == pytest.approx(sharpness, rel=1e-4)
    assert report["sharpness"].over_examples == (-math.inf, math.inf)


def test_groups_of_a_loss_that_compares_examples_give_no_interval():
    """A batch's curvature is right, and parts with fewer examples to compare have another one."""
    torch.manual_seed(0)
    model = nn.Linear(4, 3).double()
    views = lambda z, y: F.cross_entropy(z @ z.T, torch.arange(len(z)))
    report = measure(model.eval(), views, (X, Y), what=["sharpness"])
    assert report["sharpness"].over_examples == (-math.inf, math.inf)


def test_groups_of_examples_give_an_interval():
    torch.manual_seed(0)
    model = nn.Linear(4, 3).double()
    low, high = measure(model.eval(), F.cross_entropy, (X, Y), what=["sharpness"])[
        "sharpness"
    ].over_examples
    assert -math.inf < low < high < math.inf
