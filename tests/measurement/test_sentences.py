"""What a report says about a network, in words: each sentence is true of a network where it could be wrong."""

import json

import numpy as np
import pytest

from steepest.measurement import Reading, Report, errors, measure
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
        assert "no confidence interval" in text or "no confidence" in terminal
        assert "for other examples like these" in text or "for other" in terminal
    for text in (page, notebook, entries[1]["errors"][0]):
        assert "over random probes" in text


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
