"""Neural collapse on a reader's network: what is seen along a training, and what is refused."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from steepest.claims.curvature.neural_collapse.on_subject import CollapseOnSubject
from steepest.core.errors import UserError
from steepest.measurement import Builder
from steepest.measurement.quantities import collapse
from tests.claims.on_subject import asked, broken, classifier, clusters, rejections
from tests.extras import need
from tests.measurement.adapters import models

torch = need("torch")


def drifting(steps, length=None):
    """A linear classifier of fixed features in float64, whose weights grow by one a step from nothing."""
    x, y = clusters()
    x = x.astype(float)
    rng = np.random.default_rng(1)
    start, slope = rng.standard_normal((2, 4, 3))
    head = rng.standard_normal((3, 3))
    features = lambda p, x: jnp.tanh(x @ p["hidden"] / 10)
    apply = lambda p, x: features(p, x) @ p["head"]
    weights = lambda t: {"head": head, "hidden": start + t * slope}

    def build():
        def train():
            for t in range(1, steps + 1):
                yield apply, weights(t)

        return {
            "model": (apply, weights(0)),
            "loss": models.cross_entropy,
            "data": (x, y),
            "features": features,
            "train": train,
            "length": length,
        }

    at = lambda t: (np.asarray(features(weights(t), x)), y, head.T)
    return build, at


def test_what_is_seen_is_the_collapse_of_the_weights_of_that_step():
    """A training whose length is not known, that ends between two marks: the end is looked at too."""
    build, at = drifting(41)
    with jax.enable_x64(True):
        claim = CollapseOnSubject().on(Builder.of(build))
        networks = claim.setting(None)
        claim = claim.fitted(networks)
        observed = claim.observe(networks, jax.random.key(0))
        assert observed["step"][-1] == 41
        assert observed["variability"].shape == (2, len(observed["step"]))
        for record in (0, 5, -1):
            h, y, w = at(int(observed["step"][record]))
            expected = collapse(jnp.array(h), jnp.array(y), jnp.array(w))
            for name in ("variability", "norm_spread", "duality", "mismatch"):
                measured = observed[name][:, record]
                np.testing.assert_allclose(measured, float(getattr(expected, name)), atol=1e-9)
            error = ((h @ w.T).argmax(1) != y).mean()
            np.testing.assert_allclose(observed["error"][:, record], error)


def test_runs_with_the_squared_loss():
    result = asked("neural-collapse", classifier(steps=150, squared=True), seeds=3)
    assert [check.id for check in result.checks] == [
        "variability_falls",
        "angles",
        "norm_spread",
        "duality",
        "nearest_mean",
        "rank",
    ]
    assert rejections(result.rivals).keys() == {"orthogonal", "rest", "full_rank"}
    assert rejections(result.controls).keys() == {"random_means", "zero_error", "untrained"}
    assert result.observed["step"][-1] == 150


def test_fewer_steps_may_be_asked_for():
    result = asked("neural-collapse", classifier(), seeds=3, net_steps=20)
    assert result.observed["step"][-1] == 20


def test_without_training_it_is_refused():
    with pytest.raises(UserError, match="needs 'train'"):
        asked("neural-collapse", classifier(train=False))


def test_a_training_that_diverges_is_said():
    def build():
        built = classifier()()

        def train():
            with torch.no_grad():
                built["model"][0].weight.fill_(torch.nan)
            yield

        return built | {"train": train}

    with pytest.raises(UserError, match="its training diverged"):
        asked("neural-collapse", build)


def test_unequal_classes_are_out_of_range():
    def build():
        built = classifier()()
        x, y = built["data"]
        kept = (y > 0) | (torch.arange(len(y)) < 20)
        return built | {"data": (x[kept], y[kept])}

    result = asked("neural-collapse", build)
    assert result.verdict.value == "out-of-range"
    assert broken(result) == ["largest class over the smallest = 2.857 <= 1.5"]


def test_another_loss_of_one_hot_targets_is_refused():
    def build():
        built = classifier(squared=True)()
        return built | {"loss": torch.nn.L1Loss()}

    with pytest.raises(UserError, match="mean squared distance"):
        asked("neural-collapse", build)
