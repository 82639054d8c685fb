"""What a report says about a network, in words: each sentence is true of a network where it could be wrong."""

import json

import numpy as np
import pytest

from steepest.core.errors import UserError
from steepest.measurement import Reading, Report, errors, measure
from steepest.measurement._optimizer import Optimizer
from steepest.site.pages import report_page

torch = pytest.importorskip("torch")
nn = torch.nn


def regression(n=40, d=3, seed=0):
    """A linear model with examples and the loss ½(f − y)², and its dense Hessian."""
    rng = np.random.default_rng(seed)
    x = rng.standard_normal((n, d)) * np.arange(1, d + 1)
    model = nn.Linear(d, 1, bias=False).double()
    data = torch.as_tensor(x), torch.as_tensor(rng.standard_normal((n, 1)))
    half = lambda outputs, targets: ((outputs - targets) ** 2).mean() / 2
    return model, half, data, x.T @ x / n


def test_each_error_says_what_it_is_about(tmp_path, capsys):
    from steepest.app.measure import _report

    reading = Reading("sharpness", 12.56, (12.56, 12.56), "residual", over_examples=(11.0, 14.0))
    probes = Reading("trace", 3.0, (2.0, 4.0), "probes")
    report = Report("Net", 3, 5, (reading, probes), 1, 0.1)
    _report(report)
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
