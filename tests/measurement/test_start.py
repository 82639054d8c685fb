"""Findings about the start: drawn of starts that train worse, and not of those that people take with good results."""

import numpy as np
import pytest

from steepest import measure
from steepest.measurement import FindingId
from steepest.measurement.adapters import subject
from tests.extras import need

torch = need("torch")
nn = torch.nn
cross_entropy = nn.functional.cross_entropy
RNG = np.random.default_rng(0)
X = torch.as_tensor(RNG.standard_normal((120, 16)), dtype=torch.float32)
Y = (X[:, 0] > 0).long() + 2 * (X[:, 1] > 0).long()
ABOUT_THE_START = (FindingId.SIGNALS, FindingId.SATURATED, FindingId.START_TOO_LARGE)
WHAT = ("risk", "signal-propagation")
STARTS = {
    "torch": lambda weights: None,
    "He": nn.init.kaiming_normal_,
    "Glorot": nn.init.xavier_uniform_,
    "orthogonal": nn.init.orthogonal_,
}


def network(activation=nn.ReLU, depth=2, start="torch", norm=None, seed=0):
    torch.manual_seed(seed)
    layers = []
    for inputs in [16, *[32] * (depth - 1)]:
        layers.append(nn.Linear(inputs, 32))
        if norm is not None:
            layers.append(norm(32))
        layers.append(activation())
    model = nn.Sequential(*layers, nn.Linear(32, 4))
    for layer in model:
        if isinstance(layer, nn.Linear):
            STARTS[start](layer.weight)
    return model


def scaled(model, factor):
    with torch.no_grad():
        for weights in model.parameters():
            if weights.ndim > 1:
                weights *= factor
    return model


def drawn(model, loss=cross_entropy, data=(X, Y), stepped=False):
    """Return what is said of the start; an optimizer with momentum tells that it has not taken a step."""
    optimizer = torch.optim.SGD(model.parameters(), 1e-3, momentum=0.9) if not stepped else None
    findings = measure(model, loss, data, what=WHAT, optimizer=optimizer).findings
    return [finding for finding in findings if finding.id in ABOUT_THE_START]


@pytest.mark.parametrize("start", STARTS)
@pytest.mark.parametrize("activation", [nn.ReLU, nn.Tanh])
def test_usual_starts_are_silent(start, activation):
    for depth in (1, 2, 3):
        assert not drawn(network(activation, depth, start))


@pytest.mark.parametrize(
    ("activation", "factor"), [(nn.ReLU, 0.25), (nn.ReLU, 4.0), (nn.Tanh, 0.25)]
)
def test_one_wrong_factor_at_every_layer_is_found_in_a_shallow_network(activation, factor):
    (finding,) = drawn(scaled(network(activation), factor))
    assert finding.sign == "!"
    assert finding.id == (FindingId.SIGNALS if factor < 1 else FindingId.START_TOO_LARGE)
    assert "/fan-in, where yours have" in finding.text


def test_the_factor_that_is_said_is_that_of_backpropagation():
    """By hand: the gradient in what the first layer writes, over that of the second."""
    model = scaled(network(), 0.25)
    (finding,) = drawn(model)
    first = model[0](X).detach().requires_grad_()
    second = model[2](torch.relu(first))
    second.retain_grad()
    (len(X) * cross_entropy(model[4](torch.relu(second)), Y)).backward()
    factor = float(first.grad.norm() / second.grad.norm())
    assert f"by a factor of {factor:.2g} a layer" in finding.text


def test_outputs_that_are_too_large_are_measured_by_the_risk_of_outputs_of_zero():
    model = scaled(network(), 4.0)
    (finding,) = drawn(model)
    times = cross_entropy(model(X), Y).item() / np.log(4)
    assert f"{times:.2g} times the {np.log(4):.3g} of outputs of zero" in finding.text
    (unknown,) = drawn(model, stepped=True)  # nobody says whether a step was taken
    assert unknown.sign == "?" and "it has diverged" in unknown.text


def test_rare_classes_make_no_start_too_large():
    """A constant guess has a small risk there; what a start should be compared with is the risk of outputs of zero."""
    rare = torch.zeros(120, dtype=torch.long)
    rare[:2] = 1
    assert not drawn(network(), data=(X, rare))


def test_a_squared_loss_is_judged_by_the_spread_of_the_outputs():
    target = X[:, :1]
    half = lambda outputs, targets: ((outputs - targets) ** 2).mean() / 2
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(16, 32), nn.Tanh(), nn.Linear(32, 1))
    far = (X, target + 100)  # whose mean no start knows
    assert not drawn(model, half, (X, target)) and not drawn(model, half, far)
    with torch.no_grad():
        model[2].weight *= 10
        times = float(model(X).var() / target.var())
    (finding,) = drawn(model, half, (X, target))
    assert f"variance over the examples is {times:.2g} times" in finding.text


def test_inputs_that_are_not_scaled_are_blamed_first():
    (finding,) = drawn(network(start="He"), data=(100 * X, Y))
    assert finding.id == FindingId.START_TOO_LARGE
    assert (
        f"Scale the inputs, whose mean square is {float((100 * X).square().mean()):.3g}"
        in finding.text
    )


@pytest.mark.parametrize("norm", [nn.LayerNorm, nn.BatchNorm1d])
@pytest.mark.parametrize("factor", [0.25, 4.0])
def test_what_a_normalization_undoes_is_not_said(norm, factor):
    model = network(depth=3, norm=norm)
    with torch.no_grad():
        for layer in model[:-1]:
            if isinstance(layer, nn.Linear):
                layer.weight *= factor
                layer.bias *= factor
    assert not drawn(model) and not drawn(model, data=(100 * X, Y))


class Recurrent(nn.Module):
    def __init__(self, kind):
        super().__init__()
        torch.manual_seed(0)
        self.read = kind(4, 8, batch_first=True)
        self.last = nn.Linear(8, 4)

    def forward(self, x):
        states, _ = self.read(x.reshape(-1, 4, 4))
        return self.last(states[:, -1])


def share_by_hand(model, x):
    """Step by step in NumPy: which share of each gate's inputs lies beyond its range, the largest of them."""
    layer = model.read
    w, u, b, c = (weight.detach().double().numpy() for weight in layer.parameters())
    states, _ = layer(x.reshape(-1, 4, 4))
    before = np.zeros((len(x), 8))
    rows = []
    for step in range(4):
        z = x.reshape(-1, 4, 4)[:, step].double().numpy() @ w.T + b + before @ u.T + c
        rows.append(np.abs(z).reshape(len(x), -1, 8))
        before = states[:, step].detach().double().numpy()
    sizes = np.stack(rows)
    ends = [4.6, 4.6, 2.65, 4.6] if isinstance(layer, nn.LSTM) else [4.6, 4.6]
    return max(float((sizes[:, :, gate] > end).mean()) for gate, end in enumerate(ends))


@pytest.mark.parametrize("kind", [nn.LSTM, nn.GRU])
def test_gates_that_are_saturated(kind):
    model = Recurrent(kind)
    assert not drawn(model)
    large = 100 * X
    share = share_by_hand(model, large)
    assert share > 0.5
    assert subject(model, cross_entropy, (large, Y)).gates()["read"] == pytest.approx(
        share, abs=1e-3
    )
    (finding,) = drawn(model, data=(large, Y))
    assert finding.id == FindingId.SATURATED and f"at {share:.0%} of its inputs" in finding.text


@pytest.mark.parametrize("batch_first", [True, False])
def test_a_first_state_that_was_given_counts(batch_first):
    torch.manual_seed(0)
    layer = nn.GRU(3, 5, batch_first=batch_first)
    cell = nn.GRUCell(3, 5)
    cell.load_state_dict(
        {name.removesuffix("_l0"): value for name, value in layer.state_dict().items()}
    )
    x = 10 * torch.randn(2, 1, 3)  # (b, t, n)
    start = 10 * torch.randn(1, 1, 5)

    class Model(nn.Module):
        def __init__(self):
            super().__init__()
            self.read = layer

        def forward(self, x):
            rows = x if batch_first else x.transpose(0, 1)
            return self.read(rows, start.repeat(1, len(x), 1))[1][0]

    z = x[:, 0] @ cell.weight_ih.T + cell.bias_ih + start[0] @ cell.weight_hh.T + cell.bias_hh
    share = max(float((gate.abs() > 4.6).double().mean()) for gate in z.chunk(3, -1)[:2])
    loss = nn.functional.mse_loss
    assert subject(Model(), loss, (x, torch.zeros(2, 5))).gates() == {"read": pytest.approx(share)}


def test_the_cause_of_a_deep_sigmoid_network_is_its_gradients():
    (finding,) = drawn(network(nn.Sigmoid, depth=8))
    assert (finding.sign, finding.id) == ("!", FindingId.SIGNALS)
    assert "gradients shrink by a factor of 0.1" in finding.text and "over 7 layers" in finding.text


def test_weights_of_three_over_the_root_of_the_width_explode():
    """Nine in place of two over fan-in: each layer of ReLU multiplies by about √(9/2), sixteen by 10⁵."""
    model = network(depth=16)
    for layer in model:
        if isinstance(layer, nn.Linear):
            nn.init.normal_(layer.weight, std=3 / layer.in_features**0.5)
    hidden = [layer.weight for layer in model if isinstance(layer, nn.Linear)][1:-1]
    yours = np.mean([32 * weights.square().mean().item() for weights in hidden])
    said = {finding.id: finding for finding in drawn(model)}
    assert "signals grow by a factor of " in said[FindingId.SIGNALS].text
    assert f"variance 2/fan-in, where yours have {yours:.3g}/fan-in" in said[FindingId.SIGNALS].text
    assert FindingId.START_TOO_LARGE in said
