"""Findings: each line is drawn where it is so, and not where it is not; what was measured is beneath."""

import json
from itertools import pairwise

import numpy as np
import pytest

from steepest.measurement import FindingId, measure
from steepest.site.pages import report_page
from tests.extras import need

torch = need("torch")
nn = torch.nn
DATA = np.random.default_rng(0)
X = torch.as_tensor(DATA.standard_normal((200, 6)), dtype=torch.float32)
Y = (X[:, 0] > 0).long() + (X[:, 1] > 0).long()
cross_entropy = nn.functional.cross_entropy


def chain(depth=1, std=None, activation=nn.ReLU, width=16):
    torch.manual_seed(0)
    sizes = [6, *[width] * depth]
    layers = []
    for inputs, outputs in pairwise(sizes):
        layers += [nn.Linear(inputs, outputs), activation()]
    model = nn.Sequential(*layers, nn.Linear(width, 3))
    if std is not None:
        for layer in model:
            if isinstance(layer, nn.Linear):
                nn.init.normal_(layer.weight, std=std)
                nn.init.zeros_(layer.bias)
    return model


def trained(model, steps=200, lr=0.3, n=200):
    optimizer = torch.optim.SGD(model.parameters(), lr)
    for _ in range(steps):
        optimizer.zero_grad()
        cross_entropy(model(X[:n]), Y[:n]).backward()
        optimizer.step()
    return model


WHAT = ("risk", "sharpness", "signal-propagation")  # the cheap ones


def lines(model, what=WHAT, **options):
    return measure(model, cross_entropy, (X, Y), what=what, **options).findings


def about(findings, evidence):
    return [finding for finding in findings if finding.evidence == evidence]


def test_a_network_that_trains_well_has_nothing_to_act_on():
    model = trained(chain())
    report = measure(model, cross_entropy, (X, Y), what=WHAT)
    limit = 2 / report["sharpness"].value
    findings = lines(model, lr=0.5 * limit)
    assert [finding.sign for finding in findings] == ["✓", "✓"]
    assert f"{limit:.3g}" in about(findings, "sharpness")[0].text
    assert {finding.evidence for finding in findings} <= {q.name for q in report.quantities}


@pytest.mark.parametrize(("share", "sign"), [(0.5, "✓"), (1.0, "?"), (1.3, "!"), (0.01, "✓")])
def test_how_near_the_step_is(share, sign):
    model = trained(chain())
    limit = 2 / measure(model, cross_entropy, (X, Y), what=["sharpness"])["sharpness"].value
    (step,) = about(lines(model, lr=share * limit, what=["risk", "sharpness"]), "sharpness")
    assert step.sign == sign


def test_without_a_step_the_largest_is_said():
    (step,) = lines(trained(chain()), what=["sharpness"])
    assert step.sign == "?"
    assert "largest stable step is" in step.text


def test_the_law_that_binds_is_said():
    """Batches of one allow a smaller step than the full batch."""
    model = trained(chain())
    findings = lines(model, what=["sharpness", "batch-noise"], batch=1)
    assert "of your batches" in about(findings, "batch sharpness")[0].text


def test_a_dead_network_has_one_line():
    model = chain()
    with torch.no_grad():
        model[0].bias.fill_(-100.0)
    findings = lines(model, lr=0.1)
    assert len(findings) == 1
    assert findings[0].sign == "!"
    assert "dead" in findings[0].text
    assert "2/fan-in" in findings[0].text


def test_dead_units_are_counted_by_layer():
    model = trained(chain(width=20))
    with torch.no_grad():
        model[0].bias[:8] = -100.0
    (units,) = about(lines(model), "errors, first layer over last")
    assert "8 of 20 hidden units are dead" in units.text
    assert not about(lines(trained(chain(width=20))), "errors, first layer over last")


@pytest.mark.parametrize(("std", "way"), [(0.05, "shrink"), (2.0, "grow")])
def test_signals_that_vanish_or_explode_have_a_cure(std, way):
    findings = lines(chain(depth=6, std=std))
    (signals,) = about(findings, "mean square of the last pre-activations")
    assert f"signals {way} by a factor" in signals.text
    assert "variance 2/fan-in" in signals.text
    cured = lines(chain(depth=6, std=(2 / 16) ** 0.5))
    assert not about(cured, "mean square of the last pre-activations")


def test_saturated_units():
    findings = lines(chain(std=8.0, activation=nn.Tanh))
    (saturated,) = about(findings, "mean square of the last pre-activations")
    assert "saturated" in saturated.text


def test_held_out_examples_tell_memory():
    random = torch.as_tensor(DATA.integers(0, 3, 200))
    model = chain(width=200)
    optimizer = torch.optim.Adam(model.parameters(), 0.01)
    for _ in range(400):
        optimizer.zero_grad()
        cross_entropy(model(X[:60]), random[:60]).backward()
        optimizer.step()
    seen_data = (X[:60], random[:60])
    report = measure(
        model, cross_entropy, seen_data, held_out=(X[60:], random[60:]), what=["risk", "margins"]
    )
    assert report["error rate"].value == 0
    assert report["error rate on held-out examples"].value > 0.4
    (memory,) = about(report.findings, "error rate on held-out examples")
    assert memory.sign == "!"
    # true labels of new examples carry over, some errors more than on those given notwithstanding
    small = trained(chain(width=200), 3000, n=100)
    learned = measure(
        small,
        cross_entropy,
        (X[:100], Y[:100]),
        held_out=(X[100:], Y[100:]),
        what=["risk", "margins"],
    )
    (usual,) = about(learned.findings, "error rate on held-out examples")
    assert (usual.sign, usual.id) == ("?", FindingId.MEMORIZED)
    same = measure(model, cross_entropy, seen_data, held_out=seen_data, what=["risk", "margins"])
    assert about(same.findings, "error rate on held-out examples")[0].sign == "✓"


def test_dead_channels_of_a_convolution_and_dead_units_behind_an_axis_of_positions():
    torch.manual_seed(0)
    images, labels = torch.randn(40, 1, 6, 6), torch.arange(40) % 3
    model = nn.Sequential(nn.Conv2d(1, 8, 3), nn.ReLU(), nn.Flatten(), nn.Linear(128, 3))
    with torch.no_grad():
        model[0].bias[:5] = -50.0
    report = measure(model, cross_entropy, (images, labels), what=["signal-propagation"])
    assert [f.sign for f in report.findings if f.id == FindingId.DEAD_UNITS] == ["!"]
    assert any("5 of 8 hidden units are dead" in finding.text for finding in report.findings)
    words = torch.randn(40, 7, 4)  # (n, positions, channels)
    along = nn.Sequential(
        nn.Linear(4, 10), nn.ReLU(), nn.Linear(10, 2), nn.Flatten(), nn.Linear(14, 3)
    )
    with torch.no_grad():
        along[0].bias[:4] = -50.0
    report = measure(along, cross_entropy, (words, labels), what=["signal-propagation"])
    assert any("4 of 12 hidden units are dead" in finding.text for finding in report.findings)


@pytest.mark.parametrize(("size", "sign"), [(8, "?"), (10**6, "!")])
def test_rows_that_are_twice_in_the_data_anyway_are_no_leak(size, sign):
    """Whole numbers of few values meet each other as often as held-out ones meet them; of many values they leak."""
    rng = np.random.default_rng(0)
    x = rng.integers(size, size=(240, 1)).astype(float)
    y = rng.integers(2, size=240)
    x[200:203], y[200:203] = x[:3], y[:3]
    given, held_out = (torch.tensor(x[:200]), torch.tensor(y[:200])), (x[200:], y[200:])
    model = nn.Linear(1, 2).double()
    nn.init.constant_(model.weight, 1e-6)  # logits of large numbers would leave no curvature
    report = measure(
        model, cross_entropy, given, held_out=tuple(map(torch.tensor, held_out)), what=["risk"]
    )
    found = {finding.id: finding.sign for finding in report.findings}
    about_twice = FindingId.REPEATED if sign == "?" else FindingId.LEAKING
    assert found[about_twice] == sign


def test_held_out_examples_that_were_given_are_told():
    overlapping = (X[40:120], Y[40:120])
    leaking = lines(chain(), held_out=overlapping)
    assert [finding.id for finding in leaking if "among those given" in finding.text] == [
        FindingId.LEAKING
    ]
    first = measure(chain(), cross_entropy, (X[:60], Y[:60]), held_out=overlapping, what=WHAT)
    assert any(finding.text.startswith("20 of 80 held-out") for finding in first.findings)
    apart = measure(chain(), cross_entropy, (X[:40], Y[:40]), held_out=overlapping, what=WHAT)
    assert all(finding.id != FindingId.LEAKING for finding in apart.findings)


def test_findings_are_in_json_on_the_page_and_in_the_terminal(tmp_path, capsys):
    from steepest.app.measure import show

    report = measure(trained(chain()), cross_entropy, (X, Y), lr=0.1, what=["risk", "sharpness"])
    text = report.findings[0].text
    show(report)
    assert text[:40] in " ".join(capsys.readouterr().out.split())
    page = report_page(report, tmp_path / "page.html").read_text("utf-8")
    assert text in page
    assert page.index(text) < page.index("<table>")
    assert json.loads(json.dumps(report.to_json()))["findings"][0]["text"] == text


def default_of_torch(depth):
    torch.manual_seed(0)
    layers = [nn.Linear(6, 32), nn.ReLU()]
    for _ in range(depth):
        layers += [nn.Linear(32, 32), nn.ReLU()]
    return nn.Sequential(*layers, nn.Linear(32, 3))


def test_the_initialization_is_judged_over_the_whole_depth():
    """Torch's default shrinks gradients by 0.4 a layer, which no layer shows alone, and makes examples alike."""
    findings = lines(default_of_torch(16), lr=0.1)
    (signals,) = about(findings, "mean square of the last pre-activations")
    assert signals.sign == "!"
    assert "over 16 layers" in signals.text and "gradients shrink" in signals.text
    assert "all examples alike, to a cosine of 1 − " in signals.text
    assert "variance 2/fan-in, where yours have 0.33" in signals.text
    assert not about(findings, "sharpness")  # no step is good for it
    shallow = lines(default_of_torch(1), lr=0.1)
    assert not about(shallow, "mean square of the last pre-activations")
    assert about(shallow, "sharpness")


@pytest.mark.parametrize(
    ("steps", "sign", "word"), [(0, "?", "yet, as before every training"), (1, "!", "nothing")]
)
def test_what_has_not_begun_is_no_fault(steps, sign, word):
    model = chain()
    optimizer = torch.optim.Adam(model.parameters(), 1e-8)
    for _ in range(steps):
        cross_entropy(model(X), Y).backward()
        optimizer.step()
    (learned,) = about(lines(model, optimizer=optimizer), "risk")
    assert learned.sign == sign and word in learned.text
    assert about(lines(model), "risk")[0].sign == "?"


def regression(n, seed):
    rng = np.random.default_rng(seed)
    x = torch.as_tensor(rng.standard_normal((n, 6)), dtype=torch.float32)
    return x, x[:, :1] + torch.as_tensor(rng.standard_normal((n, 1)), dtype=torch.float32)


@pytest.mark.parametrize(("n", "overfits"), [(20, True), (2000, False)])
def test_overfitting_is_a_finding_of_every_loss(n, overfits):
    x, y = regression(n, 0)
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(6, 64), nn.Tanh(), nn.Linear(64, 1))
    optimizer = torch.optim.Adam(model.parameters(), 0.01)
    for _ in range(500 if overfits else 60):
        optimizer.zero_grad()
        nn.functional.mse_loss(model(x), y).backward()
        optimizer.step()
    findings = measure(
        model, nn.functional.mse_loss, (x, y), held_out=regression(500, 1), what=["risk"]
    ).findings
    (memory,) = about(findings, "risk on held-out examples")
    assert memory.sign == ("!" if overfits else "✓")
    assert ("it overfits" in memory.text) == overfits


@pytest.mark.parametrize("share", [1e-4, 0.04, 0.5])
def test_without_descents_a_small_step_is_stable_and_nothing_more(share):
    """How small it is tells nothing of whether a larger one would train faster."""
    model = trained(chain())
    limit = 2 / measure(model, cross_entropy, (X, Y), what=["sharpness"])["sharpness"].value
    (step,) = about(lines(model, lr=share * limit, what=["risk", "sharpness"]), "sharpness")
    assert (step.sign, step.id) == ("✓", FindingId.STEP_STABLE)
    assert f"is {share:.2g} of the largest stable one" in step.text


def test_noise_of_batches_says_that_the_step_is_doubled_too():
    report = measure(
        trained(chain(), 2000), cross_entropy, (X, Y), batch=4, what=["risk", "batch-noise"]
    )
    (noise,) = about(report.findings, "gradient-noise scale")
    assert noise.id == FindingId.BATCH_NOISE
    assert "twice the batch with twice the step needs nearly half the steps" in noise.text
