"""The three levels on a reader's network: a dense calculation, the claim's own networks, what is refused."""

from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from steepest.claims.curvature._on_classifiers import decay, undecided_decay
from steepest.claims.curvature._trained import Training, lanes
from steepest.claims.curvature.three_level_hessian.experiment import measure, products, spectra
from steepest.claims.curvature.three_level_hessian.on_subject import ThreeLevelOnSubject
from steepest.core.errors import UserError
from steepest.kit.subjects import Networks
from steepest.measurement import Built
from steepest.measurement.adapters import subject
from tests.claims.on_subject import asked, broken, classifier, clusters
from tests.extras import need
from tests.measurement.adapters import models
from tests.measurement.quantities.test_class_decomposition import oracle

torch = need("torch")


def test_spectra_are_those_of_dense_matrices():
    # of some networks sixteen probes of a trace are off by more than a half
    torch.manual_seed(0)
    x, y = clusters(24)
    model = torch.nn.Sequential(
        torch.nn.Linear(4, 5), torch.nn.Tanh(), torch.nn.Linear(5, 3)
    ).double()
    attached = subject(model, torch.nn.CrossEntropyLoss(), (x.astype(float), y), check=False)
    rows = [
        [attached.vjp(np.eye(72)[3 * i + a].reshape(24, 3)) for a in range(3)] for i in range(24)
    ]
    jacobian = jnp.asarray(np.array(rows))
    outputs = attached.outputs()[0]
    # a linear function with this Jacobian and these outputs at v = 0
    forward = lambda v: jnp.asarray(outputs) + jacobian @ v
    parts, whole = oracle(jnp.zeros(attached.size), forward, y, "weighted")
    claim = ThreeLevelOnSubject(classes=3, n=24)
    found = claim.spectra_of(attached, np.random.default_rng(0))
    largest = lambda matrix, count: np.linalg.eigh(matrix)[0][::-1][:count]
    np.testing.assert_allclose(found["eigenvalues"], largest(whole, 7), atol=1e-6)
    left = (found["left_of_class_part"], *found["left"])
    for values, removed in zip(
        left, (("classes",), ("classes", "cross"), ("within",)), strict=True
    ):
        less = whole - sum(parts[name] for name in removed)
        np.testing.assert_allclose(values, largest(less, 5), atol=1e-6)
    vectors = np.linalg.eigh(whole)[1][:, ::-1][:, :2]
    share = np.diag(vectors.T @ parts["classes"] @ vectors)
    np.testing.assert_allclose(found["carried"][:2], share / largest(whole, 2), rtol=1e-4)
    both = share + np.diag(vectors.T @ parts["cross"] @ vectors)
    np.testing.assert_allclose(found["class_share"], share / both, rtol=1e-4)
    for trace, name in zip(found["trace"], ("classes", "cross", "within"), strict=True):
        assert trace == pytest.approx(np.trace(parts[name]), rel=0.5)  # 16 probes
    assert max(found["deviation"]) < 1e-12


def test_the_claims_own_network_gives_what_the_claim_measures():
    training = Training(12, 2, 0.05, 0.02, 32, 60)
    lane = jax.tree.map(lambda a: a[0], lanes(jax.random.key(0), (10,), 3, 100))
    w = training(jax.tree.map(lambda a: a[None], lane), np.array([60]))[0][0, 0]
    of_classes = measure(training, w, lane, lane.keys)
    product = jax.jit(partial(products, training))
    lane = lane._replace(keys=None)
    expected = spectra(10, product, w, lane, lane, of_classes, of_classes)
    model = training.net, training.unflatten(w)
    attached = subject(model, models.cross_entropy, (lane.x, lane.y), check=False)
    found = ThreeLevelOnSubject(classes=10, n=100).spectra_of(attached, np.random.default_rng(0))
    for name in ("eigenvalues", "carried", "class_share", "left", "left_of_class_part"):
        np.testing.assert_allclose(found[name], expected[name], atol=1e-3, err_msg=name)
    for name in ("residual", "deviation"):
        assert np.max(found[name]) < 1e-3
    np.testing.assert_allclose(found["trace"], expected["trace"], rtol=0.5)


def test_runs_on_a_trained_network():
    result = asked("three-level-hessian", classifier(steps=80), seeds=3)
    assert {check.id for check in result.checks} >= {"outliers", "class_share", "level_order"}
    assert result.params["n"] == 60
    assert all(hypothesis.holds for hypothesis in result.assumptions)
    assert next(c for c in result.checks if c.id == "parts_sum").verdict.value == "holds"
    subject_ = result.about["subject"]
    assert subject_["networks"] == 3 and subject_["assumed"] == []


def test_no_decay_is_out_of_range():
    result = asked("three-level-hessian", classifier(decay=0.0), seeds=3)
    assert result.verdict.value == "out-of-range"
    assert broken(result) == ["largest weight decay of your optimizer = 0 > 0"]


@pytest.mark.parametrize(
    ("decays", "said"),
    [
        ((0.01, 0.01), ()),
        ((0.01, 0.0), ("decay of some of its weights is enough",)),
        (None, ("its weights are decayed",)),
    ],
)
def test_what_is_not_known_of_the_decay_is_assumed(decays, said):
    built = classifier()()
    model = built["model"]
    groups = [
        {"params": layer.parameters(), "weight_decay": weight_decay}
        for layer, weight_decay in zip((model[0], model[2]), decays or (), strict=False)
    ]
    optimizer = torch.optim.SGD(groups, lr=0.1) if groups else None
    networks = Networks([Built(model, None, None, optimizer)], [], {})
    assert undecided_decay(networks) == said
    assert all(hypothesis.holds for hypothesis in decay(networks))


@pytest.mark.parametrize(
    "loss",
    [
        torch.nn.CrossEntropyLoss(label_smoothing=0.1),
        torch.nn.CrossEntropyLoss(weight=torch.tensor([1.0, 1.0, 5.0])),
        lambda f, y: 2 * torch.nn.functional.cross_entropy(f, y),
    ],
)
def test_another_loss_is_refused(loss):
    def build():
        built = classifier(train=False)()
        return built["model"], loss, built["data"]

    with pytest.raises(UserError, match="expected the mean cross-entropy"):
        asked("three-level-hessian", build)


def test_targets_that_are_no_class_numbers_are_refused():
    with pytest.raises(UserError, match="class numbers"):
        asked("three-level-hessian", classifier(squared=True))
