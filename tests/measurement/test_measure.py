"""What is measured: closed forms, the same from both frameworks, and refusals in one sentence."""

import json
from types import SimpleNamespace

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy import stats

import steepest
from steepest.core.errors import UserError
from steepest.measurement import QUANTITIES, Builder, load_checkpoint, measure
from steepest.measurement._context import Context
from steepest.measurement._quantities import measure_margins
from steepest.measurement.adapters import subject
from tests.extras import need
from tests.measurement.adapters import models


def linear(w, x):
    return x @ w


def squared(outputs, targets):
    return ((outputs - targets) ** 2).mean() / 2


def regression(n=20, d=6, seed=0):
    rng = np.random.default_rng(seed)
    return rng.standard_normal((n, d)) * np.arange(1, d + 1), rng.standard_normal(n)


def test_linear_regression_has_the_hessian_of_its_inputs():
    x, y = regression()
    values = np.linalg.eigvalsh(x.T @ x / len(x))
    found = measure(
        (linear, np.zeros(6)),
        squared,
        (x, y),
        what=["sharpness", "spectrum", "ntk"],
        lr=1 / values[-1],
    )
    sharpness = found["sharpness"]
    trace = found["trace of the Hessian"]
    assert sharpness.value == pytest.approx(values[-1], rel=1e-10)
    assert sharpness.compared == pytest.approx(2 * values[-1])
    assert sharpness.interpretation.startswith("your step size is 0.50 of the stable limit")
    assert trace.value == pytest.approx(
        values.sum(), rel=1e-10
    )  # the sketch is as large as the matrix
    assert found["λ_max of the tangent kernel / n"].value == pytest.approx(values[-1], rel=1e-10)
    assert np.isnan(found["condition of the tangent kernel"].value)  # 20 examples, 6 weights


def test_logistic_and_softmax_regression():
    x, _ = regression()
    y = np.random.default_rng(1).integers(0, 2, len(x))
    logistic = lambda outputs, targets: jnp.logaddexp(0, -(2 * targets - 1) * outputs).mean()
    w = np.full(6, 0.1)
    p = 1 / (1 + np.exp(-x @ w))
    found = measure((linear, w), logistic, (x, y), what=["sharpness"])
    exact = np.linalg.eigvalsh((x.T * (p * (1 - p))) @ x / len(x))[-1]
    assert found["sharpness"].value == pytest.approx(exact, rel=1e-9)
    weights = np.random.default_rng(2).standard_normal((6, 3)) / 10
    scores = np.exp(x @ weights)
    p = scores / scores.sum(1, keepdims=True)
    inner = np.einsum("na,ab->nab", p, np.eye(3)) - np.einsum("na,nb->nab", p, p)
    exact = np.linalg.eigvalsh(np.einsum("nab,ni,nj->iajb", inner, x, x).reshape(18, 18) / len(x))[
        -1
    ]
    found = measure((linear, weights), models.cross_entropy, (x, y), what=["sharpness"])
    assert found["sharpness"].value == pytest.approx(exact, rel=1e-9)


def test_a_balanced_deep_linear_network_is_aligned():
    u, v = np.linalg.qr(np.random.default_rng(0).standard_normal((2, 4, 4)))[0]
    params = [u @ np.diag([3.0, 1, 1, 1]) @ v.T, v @ np.diag([2.0, 1, 1, 1]) @ u.T]
    apply = lambda params, x: x @ params[0].T @ params[1].T
    x = np.random.default_rng(1).standard_normal((5, 4))
    params = [params[1], params[0]]  # reads u and writes v, then reads v and writes u
    found = measure((apply, params), squared, (x, x), what=["alignment", "norms"])
    assert found["alignment of layers"].value == pytest.approx(1.0)
    assert found["product of spectral norms"].value == pytest.approx(6.0)
    assert found["largest stable rank"].value == pytest.approx(7 / 4)


def test_drift_is_measured_from_the_checkpoint():
    network, params = models.of_jax()
    later = jax.tree.map(lambda leaf: 1.1 * leaf, params)
    found = measure(
        (network, later), models.cross_entropy, models.data(), what=["drift"], since=params
    )
    assert found["relative change of the weights"].value == pytest.approx(0.1 / 1.0)
    again = measure(
        (network, later), models.cross_entropy, models.data(), what=["drift"], since=later
    )
    assert again["relative change of the tangent kernel"].value == 0
    said = again["relative change of the tangent kernel"].interpretation
    assert said.startswith("nothing follows yet")


def test_torch_and_jax_agree_on_every_quantity():
    torch = need("torch")
    x, y = models.data(40)
    loss = torch.nn.CrossEntropyLoss()
    options = {
        "lr": 0.3,
        "momentum": 0.9,
        "batch": 8,
        # regions are not of tanh, updates are those of an optimizer of torch
        "what": [name for name in QUANTITIES if name not in ("regions", "updates")],
    }
    start = subject(models.of_jax(), models.cross_entropy, (x, y)).values()
    theirs = {name: 0.9 * each for name, each in models.of_torch().state_dict().items()}
    ours = measure(models.of_jax(), models.cross_entropy, (x, y), since=0.9 * start, **options)
    found = measure(
        models.of_torch(), loss, (torch.as_tensor(x), torch.as_tensor(y)), since=theirs, **options
    )
    assert [q.name for q in ours.quantities] == [q.name for q in found.quantities]
    missing = [q.name for q in ours.quantities if np.isnan(q.value)]  # 120 outputs, 80 weights
    assert missing == ["condition of the tangent kernel"]
    for a, b in zip(ours.quantities, found.quantities, strict=True):
        if (
            a.source_of_error == "probes"
        ):  # the probes are other vectors in another order of the weights
            assert max(a.interval[0], b.interval[0]) <= min(a.interval[1], b.interval[1])
        else:
            assert a.value == pytest.approx(b.value, rel=1e-8, abs=1e-8, nan_ok=True), a.name
        assert a.interpretation == b.interpretation or a.source_of_error == "probes" or a.parts


def test_intervals_over_examples_cover_the_population():
    """Margins drawn from N(1, 1): median 1, error rate Φ(−1); 400 repetitions."""
    covered = np.zeros(2)
    for seed in range(400):
        z = np.random.default_rng(seed).normal(1.0, 1.0, 60)
        outputs = np.stack([z, np.zeros(60)], 1), np.zeros(60, int)
        context = Context(
            SimpleNamespace(outputs=lambda outputs=outputs: outputs, dense=lambda: None),
            np.random.default_rng(0),
        )
        readings = {each.name: each for each in measure_margins(context)}
        known = (("error rate", stats.norm.cdf(-1)), ("median margin", 1.0))
        for i, (name, true) in enumerate(known):
            each = readings[name]
            covered[i] += each.interval[0] <= true <= each.interval[1]
    assert (covered >= 0.90 * 400).all() and (covered <= 0.99 * 400).all()


def test_what_makes_no_sense_is_a_note_unless_it_was_asked_for():
    found = measure((linear, np.zeros(6)), squared, regression())
    assert "not measured" in found["margins"].interpretation and np.isnan(found["margins"].value)
    assert json.loads(json.dumps(found.to_json()))["quantities"][0]["name"] == "risk"
    assert "<table>" in found._repr_html_()
    assert repr(found).startswith("<linear: 6 weights, ")
    with pytest.raises(UserError, match="class numbers"):
        measure((linear, np.zeros(6)), squared, regression(), what=["margins"])
    with pytest.raises(KeyError, match="measured were"):
        found["nonsense"]


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        ({"what": ["sharpnes"]}, "did you mean 'sharpness'"),
        ({"lr": -1.0}, "step size"),
        ({"lr": 0.1, "momentum": 1.0}, "momentum"),
        ({"what": ["drift"]}, "checkpoint"),
        ({"since": np.ones(3)}, "has 3 weights"),
    ],
)
def test_bad_options_get_one_sentence(options, sentence):
    with pytest.raises(UserError, match=sentence):
        measure((linear, np.zeros(6)), squared, regression(), **options)


def test_labels_out_of_range_are_named():
    x, y = models.data()
    with pytest.raises(UserError, match="between 0 and 2"):
        measure(
            models.of_jax(),
            lambda outputs, targets: (outputs**2).mean(),
            (x, y + 5),
            what=["margins"],
        )


MODEL = """
import numpy as np

def build():
    rng = np.random.default_rng(0)
    squared = lambda f, y: ((f - y) ** 2).mean() / 2
    return (lambda w, x: x @ w, np.zeros(3)), squared, (rng.normal(size=(9, 3)), np.ones(9))

def three():
    return 3

def broken():
    return 1 / 0
"""


@pytest.fixture
def file(tmp_path):
    (tmp_path / "model.py").write_text(MODEL, "utf-8")
    return tmp_path / "model.py"


def test_the_command_prints_json(file, capsys):
    from steepest.app.cli import main

    assert (
        main(["measure", f"{file}:build", "--what", "sharpness,risk", "--lr", "0.1", "--json"]) == 0
    )
    said = json.loads(capsys.readouterr().out)
    assert said["model"] == "<lambda>" and said["weights"] == 3 and said["examples"] == 9
    assert [each["name"] for each in said["quantities"]] == ["sharpness", "risk", "gradient norm"]
    assert main(["measure", f"{file}:build", "--lr", "0.1", "--all"]) == 0
    assert "of the stable limit" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        (lambda file: file, "FILE.py:FUNCTION"),
        (lambda file: f"{file}:bild", "did you mean 'build'"),
        (lambda file: f"{file.parent}/nothing.py:build", "no file"),
        (lambda file: f"{file}:three", "must return"),
        (lambda file: f"{file}:broken", "ZeroDivisionError"),
    ],
)
def test_files_that_do_not_work_get_one_sentence(file, change, sentence):
    with pytest.raises(UserError, match=sentence):
        Builder.of(str(change(file)))()


def test_a_file_that_does_not_import(tmp_path):
    (tmp_path / "bad.py").write_text("import nothing_of_this_name", "utf-8")
    with pytest.raises(UserError, match="install nothing_of_this_name"):
        Builder.of(f"{tmp_path / 'bad.py'}:build")()
    (tmp_path / "worse.py").write_text("def (", "utf-8")
    with pytest.raises(UserError, match="SyntaxError"):
        Builder.of(f"{tmp_path / 'worse.py'}:build")()


def test_checkpoints(tmp_path):
    np.savez(tmp_path / "w.npz", a=np.ones(3))
    assert load_checkpoint(tmp_path / "w.npz")["a"].tolist() == [1, 1, 1]
    (tmp_path / "w.txt").write_text("1", "utf-8")
    (tmp_path / "bad.npz").write_text("1", "utf-8")
    for name, sentence in (
        ("w.txt", ".npz"),
        ("bad.npz", "cannot be read"),
        ("none.npz", "no checkpoint"),
    ):
        with pytest.raises(UserError, match=sentence):
            load_checkpoint(tmp_path / name)


def test_measure_is_what_the_package_offers():
    assert steepest.measure is measure


def test_data_in_another_order_in_every_pass_do_not_mix():
    """Means stay the same; what pairs two passes is refused."""
    torch = need("torch")
    x, y = models.data(40)
    rng = np.random.default_rng(0)  # whose state nobody but the data knows

    class Shuffled:
        def __iter__(self):
            for rows in np.split(rng.permutation(40), 4):
                yield torch.as_tensor(x[rows]), torch.as_tensor(y[rows])

    loader = Shuffled()
    found = measure(models.of_torch(), torch.nn.CrossEntropyLoss(), loader, what=["risk"])
    assert found["risk"].value > 0
    with pytest.raises(UserError, match="another order in every pass"):
        measure(models.of_torch(), torch.nn.CrossEntropyLoss(), loader, what=["collapse"])


def test_what_is_asked_for_is_answered_by_the_same_id():
    report = measure(
        models.of_jax(), models.cross_entropy, models.data(), what=["spectrum", "signals"]
    )
    assert report["spectrum"] is report.readings("spectrum")[0]
    assert report["signals"] is report["signal-propagation"]
    assert {reading.id for reading in report.quantities} == {"spectrum", "signal-propagation"}
    assert len(report.readings("spectrum")) == 2
    with pytest.raises(KeyError, match="'ntk' was not measured; measured were: spectrum"):
        report["ntk"]
